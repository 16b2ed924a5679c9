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

__all__ = ["combination", "independent", "vertex_of"]

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

    >>> independent(np.array([[1.0, 1.0, 2.0], [0.0, 0.0, 1.0]]), [0.5, 0.2, 0.3])
    [0, 2]
    """
    return vertex_of(columns, sizes)[0]


def vertex_of(columns: FloatArray, sizes: Sequence[float]) -> tuple[list[int], FloatArray]:
    """Return the basis of a vertex of all sizes >= 0 with the same combination of the columns, and the sizes there.

    Dependent columns are taken out one by one, and what they contributed goes to the others; where one of these would become negative, it
    is taken out instead.
    """
    table, value = np.array(columns, float), np.array(sizes, float)
    largest = np.abs(table).max(axis=0, initial=0.0)
    open_rows = np.ones(table.shape[0], bool)
    basis = np.full(table.shape[0], -1)
    free: list[int] = []
    for k in np.argsort(-value, kind="stable").tolist():
        row = int(np.where(open_rows, np.abs(table[:, k]), -1.0).argmax()) if open_rows.any() else -1
        if row < 0 or abs(table[row, k]) <= _DEPENDENT * largest[k]:
            free.append(k)
            continue
        _pivot(table, row, k)
        basis[row], open_rows[row] = k, False
    used = np.flatnonzero(basis >= 0)
    for k in free:
        made_of = table[used, k]
        falling = np.flatnonzero(made_of < -_DEPENDENT)
        steps = value[basis[used[falling]]] / -made_of[falling]
        step = min(float(steps.min(initial=np.inf)), value[k])
        value[basis[used]] += step * made_of
        value[k] -= step
        if value[k] > 0 and falling.size:
            row = used[falling[steps.argmin()]]
            value[basis[row]] = 0.0
            basis[row] = k
            _pivot(table, row, k)
    return sorted(basis[used].tolist()), value


def _pivot(table: FloatArray, row: int, column: int) -> None:
    table[row] /= table[row, column]
    others = table[:, column].copy()
    others[row] = 0.0
    touched = np.flatnonzero(others)
    table[touched] -= others[touched, None] * table[row]
