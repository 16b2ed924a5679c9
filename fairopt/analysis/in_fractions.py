"""Linear programs of the checks in fractions: solved in rationals, and proved by prices that the certificate recomputes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairopt.certificate.exact_largest import prove_largest
from fairopt.instance.fractions import ExactArray, from_rationals, rational
from fairopt.solvers import largest_exactly
from fairopt.solvers.backend import Deadline

__all__ = ["largest"]


def largest(cost: Sequence[Any], entries: Sequence[tuple[int, int, Any]], right: Sequence[Any], deadline: Deadline) -> ExactArray | None:
    """Return the z >= 0 of the largest cost z within A z <= right, in Fractions and proved; None where there is none.

    ``entries`` are those of A: row, column, value.

    Raises
    ------
    NoSolution, CertificateError

    >>> from fractions import Fraction
    >>> largest([1, 1], [(0, 0, 2), (0, 1, 3), (1, 0, 1)], [6, Fraction(1, 2)], Deadline(None))
    array([Fraction(1, 2), Fraction(5, 3)], dtype=object)
    """
    costs, sides = [rational(value) for value in cost], [rational(value) for value in right]
    rationals = [(i, j, rational(value)) for i, j, value in entries if value != 0]
    found = largest_exactly(costs, rationals, sides, deadline)
    if found is None:
        return None
    point, prices = found
    prove_largest(costs, rationals, sides, point.tolist(), prices.tolist())
    return from_rationals(point)
