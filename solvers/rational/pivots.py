r"""Active sets where columns, or rows, are nearly but not exactly dependent: which of them count, and exchanges among them.

Two users whose demands differ by 10^-30 are tied in floats, but not in rationals, and the equations of a tie that does not exist have no
solution. So of nearly dependent pairs only some may count as used, as in a vertex of a linear program; of nearly dependent limits only some
may have a price. Whether they were the right ones shows in the next digits, and then one is exchanged for another by the ratio test of the
simplex method.

The columns are scaled (a pair by its largest entry), so that dependence is a matter of relative distances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.instance import FloatArray

__all__ = ["combination", "independent"]

_DEPENDENT = 1e-7  # of the size of a column


def combination(basis: FloatArray, column: FloatArray) -> FloatArray | None:
    """Return the coefficients with which columns of a basis make up another column, None where they do not."""
    if not basis.shape[1]:
        return None if np.abs(column).max(initial=0.0) > 0 else np.empty(0)
    found = np.linalg.lstsq(basis, column, rcond=None)[0]
    off = np.abs(basis @ found - column).max(initial=0.0)
    return np.asarray(found) if off <= _DEPENDENT * np.abs(column).max(initial=0.0) else None


def independent(columns: FloatArray, sizes: Sequence[float]) -> list[int]:
    """Return which columns to use in a combination sum of sizes[k] columns[:, k], sizes >= 0, such that they are independent.

    Dependent columns are taken out one by one, and what they contributed goes to the others; where one of these would become negative, it
    is taken out instead.

    >>> independent(np.array([[1.0, 1.0, 2.0], [0.0, 0.0, 1.0]]), [0.5, 0.2, 0.3])
    [0, 2]
    """
    value = np.array(sizes, float)
    basis: list[int] = []
    for k in np.argsort(-value, kind="stable").tolist():
        made_of = combination(columns[:, basis], columns[:, k])
        if made_of is None:
            basis.append(k)
            continue
        blocking = [(value[q] / -a, place) for place, (q, a) in enumerate(zip(basis, made_of, strict=True)) if a < -_DEPENDENT]
        least, place = min(blocking, default=(value[k], -1))
        step = min(least, value[k])
        value[basis] += step * made_of
        value[k] -= step
        if place >= 0 and value[k] > 0:
            value[basis[place]] = 0.0
            basis[place] = k
    return sorted(basis)
