"""A linear program in fractions: maximise cost x subject to matrix x <= bounds, x >= 0, by the two-phase simplex method with Bland's rule.

>>> maximise([1, 1], [[1, 2], [3, 1]], [4, 6])
(Fraction(14, 5), [Fraction(8, 5), Fraction(6, 5)])
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

__all__ = ["maximise"]


def maximise(cost: Sequence[Any], matrix: Sequence[Sequence[Any]], bounds: Sequence[Any]) -> tuple[Fraction, list[Fraction]]:
    """Return the optimum and a point that has it.

    Raises
    ------
    ArithmeticError
        No point is feasible, or the goal has no bound.
    """
    n, rows = len(cost), len(matrix)
    table = [[Fraction(v) for v in line] + [Fraction(int(i == k)) for k in range(rows)] for i, line in enumerate(matrix)]
    right = [Fraction(bound) for bound in bounds]
    basis = [n + i for i in range(rows)]
    if any(value < 0 for value in right):  # one column of -1 makes all rows feasible; then it is driven out
        for line in table:
            line.append(Fraction(-1))
        extra = n + rows
        _pivot(table, right, basis, min(range(rows), key=right.__getitem__), extra)
        goal = [Fraction(0)] * (n + rows) + [Fraction(-1)]
        _climb(table, right, basis, goal)
        if extra in basis:
            k = basis.index(extra)
            if right[k] != 0:
                raise ArithmeticError("no point is feasible")
            _pivot(table, right, basis, k, next(j for j in range(n + rows) if table[k][j] != 0))
        for line in table:
            line.pop()
    goal = [Fraction(value) for value in cost] + [Fraction(0)] * rows
    _climb(table, right, basis, goal)
    point = [Fraction(0)] * (n + rows)
    for i, j in enumerate(basis):
        point[j] = right[i]
    return sum((c * x for c, x in zip(goal, point, strict=True)), Fraction(0)), point[:n]


def _climb(table: list[list[Fraction]], right: list[Fraction], basis: list[int], goal: Sequence[Fraction]) -> None:
    reduced = list(goal)
    for i, j in enumerate(basis):
        if goal[j] != 0:
            reduced = [value - goal[j] * entry for value, entry in zip(reduced, table[i], strict=True)]
    while True:
        enters = next((j for j, value in enumerate(reduced) if value > 0), None)
        if enters is None:
            return
        ratios = [(right[i] / line[enters], basis[i], i) for i, line in enumerate(table) if line[enters] > 0]
        if not ratios:
            raise ArithmeticError("the goal has no bound")
        _, _, leaves = min(ratios)
        _pivot(table, right, basis, leaves, enters)
        factor = reduced[enters]
        reduced = [value - factor * entry for value, entry in zip(reduced, table[leaves], strict=True)]


def _pivot(table: list[list[Fraction]], right: list[Fraction], basis: list[int], row: int, column: int) -> None:
    by = table[row][column]
    table[row] = [value / by for value in table[row]]
    right[row] /= by
    own = table[row]
    for i, line in enumerate(table):
        if i != row and (factor := line[column]) != 0:
            table[i] = [value - factor * entry if entry != 0 else value for value, entry in zip(line, own, strict=True)]
            right[i] -= factor * right[row]
    basis[row] = column
