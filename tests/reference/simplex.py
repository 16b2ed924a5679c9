"""A linear program in fractions: maximise cost x subject to matrix x <= bounds, x >= 0, by the two-phase simplex method with Bland's rule.

The tableau is of FLINT's rationals, which are ten times as fast as Python's; a pivot goes through the entries of its row that are not 0.

>>> maximise([1, 1], [[1, 2], [3, 1]], [4, 6])
(Fraction(14, 5), [Fraction(8, 5), Fraction(6, 5)])
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from flint import fmpq

__all__ = ["maximise"]

Line: TypeAlias = list[Any]  # of fmpq, which has no types of its own


def maximise(cost: Sequence[Any], matrix: Sequence[Sequence[Any]], bounds: Sequence[Any]) -> tuple[Fraction, list[Fraction]]:
    """Return the optimum and a point that has it.

    Raises
    ------
    ArithmeticError
        No point is feasible, or the goal has no bound.
    """
    n, rows = len(cost), len(matrix)
    table = [[*map(_read, line), *(fmpq(int(i == k)) for k in range(rows))] for i, line in enumerate(matrix)]
    right = [*map(_read, bounds)]
    basis = [n + i for i in range(rows)]
    if any(value < 0 for value in right):  # one column of -1 makes all rows feasible; then it is driven out
        for line in table:
            line.append(fmpq(-1))
        extra = n + rows
        _pivot(table, right, basis, min(range(rows), key=right.__getitem__), extra)
        _climb(table, right, basis, [fmpq(0)] * (n + rows) + [fmpq(-1)])
        if extra in basis:
            k = basis.index(extra)
            if right[k] != 0:
                raise ArithmeticError("no point is feasible")
            _pivot(table, right, basis, k, next(j for j in range(n + rows) if table[k][j] != 0))
        for line in table:
            line.pop()
    _climb(table, right, basis, [*map(_read, cost), *[fmpq(0)] * rows])
    point = [Fraction(0)] * (n + rows)
    for value, j in zip(right, basis, strict=True):
        point[j] = Fraction(int(value.p), int(value.q))
    return sum((Fraction(c) * x for c, x in zip(cost, point, strict=False)), Fraction(0)), point[:n]


def _read(value: Any) -> Any:
    number = Fraction(value)
    return fmpq(number.numerator, number.denominator)


def _climb(table: list[Line], right: Line, basis: list[int], goal: Sequence[Any]) -> None:
    reduced = [*goal]
    for j, line in zip(basis, table, strict=True):
        _subtract(reduced, goal[j], _entries(line))
    while True:
        enters = next((j for j, value in enumerate(reduced) if value > 0), None)
        if enters is None:
            return
        ratios = [(right[i] / line[enters], basis[i], i) for i, line in enumerate(table) if line[enters] > 0]
        if not ratios:
            raise ArithmeticError("the goal has no bound")
        _, _, leaves = min(ratios)
        _pivot(table, right, basis, leaves, enters)
        _subtract(reduced, reduced[enters], _entries(table[leaves]))


def _pivot(table: list[Line], right: Line, basis: list[int], row: int, column: int) -> None:
    by = table[row][column]
    table[row] = [value / by for value in table[row]]
    right[row] /= by
    own = _entries(table[row])
    for i, line in enumerate(table):
        if i != row and (factor := line[column]) != 0:
            _subtract(line, factor, own)
            right[i] -= factor * right[row]
    basis[row] = column


def _entries(line: Line) -> list[tuple[int, Any]]:
    """Return the entries that are not 0, with their columns."""
    return [(j, entry) for j, entry in enumerate(line) if entry]


def _subtract(line: Line, factor: Any, entries: list[tuple[int, Any]]) -> None:
    if factor:
        for j, entry in entries:
            line[j] -= factor * entry
