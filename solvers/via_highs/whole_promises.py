"""Whole tasks in a tree with guarantees under rules, by branch and cut: a search of `fairopt.solvers.via_highs.whole_tree`.

Every part k of the filling has whole tasks x[k] of its own, and all of them obey all limits and rules. A rule may force a user to have more
than the filling gave it. So the shares of the filling are columns beside the tasks:

    S[k,n] = S[k-1,n] + gain[k,n] = U[n](x[k])     of users who rise in part k
    S[k,n] = S[k-1,n]            <= U[n](x[k])     of the others

and stop times are those of gains. In a part that meets guarantees, the amounts of x[k] are at most the guarantees; where rules and the
levels so far force a node to hold more, at most the least that it can hold, one node after the other. The last x is the answer: of those
with all these levels, one in which users have no more beyond their shares, in all, than rules force.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import FITS
from fairopt.program import LimitKind, Program, Solution, TreeFilling
from fairopt.program.stop_times import stop_times
from fairopt.program.tree_filling import Part
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.rows import Maker, by_highs
from fairopt.solvers.via_highs.whole_tree import Filling, PartModel

__all__ = ["solve_whole_promises"]


def solve_whole_promises(program: Program, goal: TreeFilling, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Fill a tree with guarantees in whole tasks that obey rules.

    Raises
    ------
    NoSolution
        No whole tasks obey the rules; or at the deadline, with the best tasks found.
    """
    return _Promises(program, goal, deadline, branch_and_cut).solve()


class _Promises(Filling):
    """The model of all parts so far."""

    def __init__(self, program: Program, goal: TreeFilling, deadline: Deadline, branch_and_cut: Maker = by_highs) -> None:
        super().__init__(program, goal, deadline, branch_and_cut)
        self.gains: list[dict[int, int]] = []

    def solve(self) -> Solution:
        """Fill part after part, then take away what no rule forces."""
        for number, part in enumerate(self.goal.parts):
            self._fill(self._add(part), number)
        last = self.parts[-1]
        self._run(self.rows, {k: -value for n in range(len(self.program.users)) for k, value in self._worths(n, last, 1.0).items()})
        return self._found()

    def _add(self, part: Part) -> PartModel:
        """Add the columns and rows of a part: tasks of everybody, and gains of those who rise."""
        program, rows = self.program, self.rows
        tasks = np.full(program.n_pairs, -1, np.int64)
        some = np.flatnonzero(self.largest > 0)
        tasks[some] = rows.columns(self.largest[some])
        rising = part.users & (program.per_user(self.largest * self.worth) > 0)
        model = PartModel(part, rising, np.flatnonzero(rising), tasks, {})
        self._within(model)
        gain = {int(n): rows.column() for n in model.members}
        self.gains.append(gain)
        for n in range(len(program.users)):
            share = {each[n]: -1.0 for each in self.gains if n in each}
            if share:
                rows.row(self._worths(n, model, 1.0) | share, lower=0.0, upper=0.0 if rising[n] else np.inf)
        self._stop_times(rows, model, gain)
        self.parts.append(model)
        self.known.append(self.best.copy())
        self._run(rows, {})
        self._promise(model)
        return model

    def _within(self, model: PartModel) -> None:
        """Add the limits and the rules of the program."""
        limits = self.limits
        for row in range(len(limits)):
            size = float(np.abs(limits.matrix[[row]].data).max(initial=0.0)) or 1.0
            bound, is_rule = float(limits.bounds[row]), limits.kinds[row] == LimitKind.RULE
            entries = self._entries(limits.matrix, row, model, size)
            if entries or is_rule:
                self.rows.row(entries, upper=(bound + FITS * (max(abs(bound), size) if is_rule else bound)) / size)

    def _promise(self, model: PartModel) -> None:
        """Add the guarantees of a part as limits: at least what rules and the levels so far force each node to hold."""
        extra = model.part.extra
        for j in range(0 if extra is None else len(extra)):
            assert extra is not None
            size = float(np.abs(extra.matrix[[j]].data).max(initial=0.0)) or 1.0
            entries, bound = self._entries(extra.matrix, j, model, size), float(extra.bounds[j]) / size
            if not entries:
                continue
            if self._used(entries) > bound * (1 + FITS):
                self._run(self.rows, {column: -value for column, value in entries.items()})
            self.rows.row(entries, upper=max(bound, self._used(entries)) * (1 + FITS))

    def _used(self, entries: dict[int, float]) -> float:
        return sum(value * round(float(self.point[column])) for column, value in entries.items())

    def _times(self, number: int) -> FloatArray:
        """Return the stop times of a part at the best point known, by its clock."""
        model, shares = self.parts[number], np.zeros(len(self.program.users))
        for part in range(number + 1):
            before, rising = shares, self.parts[part].rising
            shares = np.where(rising, self.program.per_user(self.worth * self.known[part]), before)
        gains = np.maximum(shares - before, 0.0)
        return stop_times(self.goal, model.part, model.rising, gains) * self._clock(model.part)
