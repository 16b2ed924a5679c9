"""A linear program in fractions: maximise cost x subject to matrix x <= bounds, x >= 0, by the two-phase simplex method with Bland's rule.

The tableau is of FLINT's rationals, which are ten times as fast as Python's. It has a column for each variable that is 0, and a row for
each that is not, with its value at the end; the last row is the goal's. A pivot goes through the entries of its row that are not 0.

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
ZERO, ONE = fmpq(0), fmpq(1)


def maximise(cost: Sequence[Any], matrix: Sequence[Sequence[Any]], bounds: Sequence[Any]) -> tuple[Fraction, list[Fraction]]:
    """Return the optimum and a point that has it.

    Raises
    ------
    ArithmeticError
        No point is feasible, or the goal has no bound.
    """
    n, rows = len(cost), len(matrix)
    table = [[*map(_read, line), _read(bound)] for line, bound in zip(matrix, bounds, strict=True)]
    goal = [*map(_read, cost), ZERO]
    zero, basis = [*range(n)], [*range(n, n + rows)]  # variables of columns and of rows; those from n on are the slacks
    if any(line[-1] < 0 for line in table):  # one variable more makes all rows feasible; then it is driven out
        extra = n + rows
        for line in (*table, goal):
            line.insert(-1, ZERO if line is goal else -ONE)
        zero.append(extra)
        table += [goal, [ZERO] * n + [-ONE, ZERO]]  # two goals: only the last one decides
        _pivot(table, zero, basis, min(range(rows), key=lambda i: table[i][-1]), n)
        _climb(table, zero, basis)
        table.pop()
        if extra in basis:
            k = basis.index(extra)
            if table[k][-1] != 0:
                raise ArithmeticError("no point is feasible")
            _pivot(table, zero, basis, k, next(j for j in range(n + 1) if table[k][j] != 0))
        for line in table:
            del line[zero.index(extra)]
        zero.remove(extra)
    else:
        table.append(goal)
    _climb(table, zero, basis)
    point = [Fraction(0)] * (n + rows)
    for line, j in zip(table, basis, strict=False):
        point[j] = Fraction(int(line[-1].p), int(line[-1].q))
    return sum((Fraction(c) * x for c, x in zip(cost, point, strict=False) if x), Fraction(0)), point[:n]


def _read(value: Any) -> Any:
    if not value:
        return ZERO
    number = value if type(value) in (int, Fraction) else Fraction(value)
    return fmpq(number.numerator, number.denominator)


def _climb(table: list[Line], zero: list[int], basis: list[int]) -> None:
    """Raise the goal of the last row."""
    while True:
        rising = [(variable, j) for j, variable in enumerate(zero) if table[-1][j] > 0]
        if not rising:
            return
        _, enters = min(rising)
        ratios = [(table[i][-1] / table[i][enters], variable, i) for i, variable in enumerate(basis) if table[i][enters] > 0]
        if not ratios:
            raise ArithmeticError("the goal has no bound")
        _, _, leaves = min(ratios)
        _pivot(table, zero, basis, leaves, enters)


def _pivot(table: list[Line], zero: list[int], basis: list[int], row: int, column: int) -> None:
    """Exchange the variable of a row for that of a column."""
    own = table[row]
    by = ONE / own[column]
    own[column] = ONE
    entries = [(j, entry * by) for j, entry in enumerate(own) if entry]
    for j, entry in entries:
        own[j] = entry
    for i, line in enumerate(table):
        if i != row and (factor := line[column]):
            line[column] = ZERO
            for j, entry in entries:
                line[j] -= factor * entry
    zero[column], basis[row] = basis[row], zero[column]
