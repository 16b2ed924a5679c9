"""A linear program in rational numbers: from any basis to an optimal one, in a finite number of pivots, without rounding.

    maximise  cost z   subject to   sum_j column[j] z[j] <= right  (or >=),   z >= 0

Each row has a slack (of ``>=``: a surplus), so that there is always a basis. A basis from floating point is *lifted*: its two systems are
solved in fractions, and where z >= 0 and the prices hold, it is proved optimal. Where it is not, rational pivots go on from it:

* z >= 0, but not the prices: the primal simplex.
* The prices hold, but not z >= 0: the dual simplex.
* Neither: the dual simplex with a cost of 0 for everything, for which all prices hold, finds a basis with z >= 0; then the primal.

*No cycling.* The variable with the largest reduced cost enters while the goal rises. After a degenerate pivot the first variable enters
(Bland's rule) until the goal rises again. The dual simplex always follows Bland's rule.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flint import fmpq, fmpz

from fairopt.solvers.rational.settings import SETTINGS
from fairopt.solvers.rational.systems import Column, SingularError, System, common_denominator

__all__ = ["Optimum", "RationalProgram", "UnboundedError"]

log = logging.getLogger(__name__)

_ZERO = fmpq(0)


class UnboundedError(Exception):
    """The goal grows without bound."""


class InfeasibleError(Exception):
    """No z satisfies the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """An optimal basis of a program, and its proof.

    Attributes
    ----------
    z : list of fmpq (columns,)
        Without slacks.
    prices : list of fmpq (rows,)
        y, >= 0 for <= and <= 0 for >=.
    basis : list of int (rows,)
        Columns, and behind them the slack of each row.
    pivots : int
        How many rational pivots were needed; 0: the basis was optimal as it was given.
    """

    z: list[fmpq]
    prices: list[fmpq]
    basis: list[int]
    pivots: int


class RationalProgram:
    """A program whose coefficients are whole numbers; right sides and costs may be fractions.

    Parameters
    ----------
    columns : sequence of Column
    right : sequence of fmpq (rows,)
    at_most : sequence of bool (rows,)
        Which rows are ``<=``; the others are ``>=``.
    cost : sequence of fmpq (columns,)
    """

    def __init__(self, columns: Sequence[Column], right: Sequence[fmpq], at_most: Sequence[bool], cost: Sequence[fmpq]) -> None:
        self.n, self.m = len(columns), len(right)
        self.right, self.cost = list(right), [*cost, *[_ZERO] * self.m]
        slacks: list[Column] = [[(i, fmpz(1 if less else -1))] for i, less in enumerate(at_most)]
        self.columns: list[Column] = [*columns, *slacks]
        self._entries, self._work = sum(map(len, self.columns)), 0.0

    def _spend(self, work: float) -> None:
        """Count steps (`fairopt.solvers.rational.settings`)."""
        self._work += work

    # A basis -----------------------------------------------------------------------------------------------------------------------

    def complete(self, basis: Sequence[int]) -> list[int]:
        """Return a basis with as many of these columns as are independent; slacks fill it up."""
        basis = list(basis)
        try:
            leave, rows = self._system(basis).dependent() if len(basis) == self.m else ([], [])
            if len(basis) == self.m:
                for k, i in zip(leave, rows, strict=True):
                    basis[k] = self.n + i
                return basis
        except SingularError:
            pass
        return self._independent(basis)

    def _independent(self, basis: Sequence[int]) -> list[int]:
        """Return a basis of the independent columns among these and of slacks, by eliminating one column after the other."""
        chosen: list[int] = []
        pivots: list[tuple[int, dict[int, fmpq]]] = []
        taken = set[int]()
        for j in [*dict.fromkeys(basis), *range(self.n, self.n + self.m)]:
            column = {i: fmpq(value) for i, value in self.columns[j]}
            for row, done in pivots:
                factor = column.get(row)
                if factor is not None and factor != 0:
                    self._spend(len(done))
                    for i, value in done.items():
                        column[i] = column.get(i, _ZERO) - factor * value
            pivot = next((i for i, value in column.items() if value != 0 and i not in taken), None)
            if pivot is None:
                continue
            inverse = 1 / column[pivot]
            pivots.append((pivot, {i: value * inverse for i, value in column.items() if value != 0}))
            taken.add(pivot)
            chosen.append(j)
            if len(chosen) == self.m:
                break
        return chosen

    def _system(self, basis: Sequence[int]) -> System:
        return System([self.columns[j] for j in basis], self._spend)

    # Pricing -----------------------------------------------------------------------------------------------------------------------

    def _reduced(self, prices: Sequence[fmpq], cost: Sequence[fmpq], basis: Sequence[int]) -> dict[int, fmpz]:
        """Return cost - prices . column of each variable that is not basic, times a common factor > 0."""
        self._spend(SETTINGS.steps_of_a_copy * self._entries)
        factor = common_denominator(prices)
        for of_cost in cost:
            factor = factor.lcm(of_cost.q) if of_cost.q != 1 else factor
        whole: list[Any] = [(price * factor).p for price in prices]
        basic = set(basis)
        zero = fmpz(0)
        reduced: dict[int, Any] = {}
        for j, column in enumerate(self.columns):
            if j in basic:
                continue
            total: Any = (cost[j] * factor).p if cost[j] != 0 else zero
            for i, value in column:
                if whole[i] != 0:
                    total = total - value * whole[i]
            reduced[j] = total
        return reduced

    # The way to the optimum --------------------------------------------------------------------------------------------------------

    def optimise(self, basis: Sequence[int], spend: Callable[[float], None]) -> Optimum:
        """Return the optimum, from a basis.

        Parameters
        ----------
        basis : sequence of int
            Any columns (behind them the slacks): what is dependent is left out, and what is missing filled up.
        spend : callable
            Takes the steps since its last call, before every pivot and every system of equations; it raises where nothing is left.

        Raises
        ------
        UnboundedError, InfeasibleError
        """

        def check() -> None:
            work, self._work = self._work, 0.0
            spend(work)

        check()
        basis = self.complete(basis)
        pivots = 0
        check()
        system = self._system(basis)
        values = system.solve(self.right)
        check()
        if any(value < 0 for value in values):
            reduced = self._reduced(system.solve_transposed([self.cost[j] for j in basis]), self.cost, basis)
            holds = all(value <= 0 for value in reduced.values())
            pivots = self._dual(basis, self.cost if holds else [_ZERO] * len(self.cost), check)
            system = self._system(basis)
            values = system.solve(self.right)
        values, prices, more = self._primal(basis, system, values, check)
        z = [_ZERO] * self.n
        for j, value in zip(basis, values, strict=True):
            if j < self.n:
                z[j] = value
        return Optimum(z, prices, basis, pivots + more)

    def _primal(
        self, basis: list[int], system: System, values: list[fmpq], check: Callable[[], None]
    ) -> tuple[list[fmpq], list[fmpq], int]:
        """Pivot until no variable would raise the goal; z >= 0 holds before and after. Return z, the prices, and the number of pivots."""
        pivots, first = 0, False
        while True:
            prices = system.solve_transposed([self.cost[j] for j in basis])
            reduced = self._reduced(prices, self.cost, basis)
            rising = [j for j, value in reduced.items() if value > 0]
            if not rising:
                return values, prices, pivots
            check()
            enter = min(rising) if first else max(rising, key=lambda j: (reduced[j], -j))
            direction = system.solve(self._dense(enter))
            ratios = [(values[k] / move, basis[k], k) for k, move in enumerate(direction) if move > 0]
            if not ratios:
                raise UnboundedError
            step, _, leave = min(ratios)
            first = step == 0
            if step != 0:
                values = [value - step * move if move != 0 else value for value, move in zip(values, direction, strict=True)]
            values[leave], basis[leave] = step, enter
            system = self._system(basis)
            pivots += 1
            log.debug("primal pivot %d: %d enters, step %s", pivots, enter, "0" if step == 0 else "> 0")

    def _dual(self, basis: list[int], cost: Sequence[fmpq], check: Callable[[], None]) -> int:
        """Pivot until z >= 0; the prices of this cost hold before and after."""
        pivots = 0
        while True:
            system = self._system(basis)
            values = system.solve(self.right)
            wrong = [(basis[k], k) for k, value in enumerate(values) if value < 0]
            if not wrong:
                return pivots
            check()
            _, leave = min(wrong)
            unit = [_ZERO] * self.m
            unit[leave] = fmpq(1)
            row = system.solve_transposed(unit)
            free = any(value != 0 for value in cost)
            reduced = self._reduced(system.solve_transposed([cost[j] for j in basis]), cost, basis) if free else None
            moves = self._reduced(row, [_ZERO] * len(cost), basis)  # minus the row of the tableau
            enters = [(-reduced[j] / fmpq(move) if reduced is not None else _ZERO, j) for j, move in moves.items() if move > 0]
            if not enters:
                raise InfeasibleError
            basis[leave] = min(enters)[1]
            pivots += 1
            log.debug("dual pivot %d: %d enters", pivots, basis[leave])

    def _dense(self, column: int) -> list[fmpq]:
        dense = [_ZERO] * self.m
        for i, value in self.columns[column]:
            dense[i] = fmpq(value)
        return dense
