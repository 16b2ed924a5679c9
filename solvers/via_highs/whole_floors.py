"""How far guarantees are met together in whole tasks, and whole tasks in a tree that keep this (`fairopt.program.guarantees`).

Of whole tasks the parts p of promises are not unique: of three GPUs, two queues that are each guaranteed three get 2/3 and 1/3, or 1/3 and
2/3. Unique are the sorted parts. So what is kept is no floor of each promise, but a condition on completions y, which are whole tasks, too:

    the sorted parts of y are the largest in lexicographic order: first those of the outermost promises, then those of the next depth, ...

A part of y is  p = min(amount, most) / b,  with the unit b and the most of the promise in divisible tasks. Every part k of the filling
obeys  U[n](x[k]) <= U[n](y).  In the surplus the amounts of the completion count on all servers, and are at least p b.

Three searches of `fairopt.solvers.via_highs.whole_tree` follow each other:

=====================  =========================================================================================================
`Filling`              the stages alone: the answer, where every guarantee is met as far as its users have tasks
``_BestParts``         else the best sorted parts, with parts of promises in place of stop times of users, and their completion y
``_WithinCompletion``  the filling again, each part within y; it goes on from the columns and rows of ``_BestParts``
=====================  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import Program, Solution, TreeFilling
from fairopt.program.guarantees import caps
from fairopt.program.promises import Promise, counted, groups_of, in_doubt
from fairopt.program.tree_filling import Part
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.rows import Maker, by_highs
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.tree import promised_alone
from fairopt.solvers.via_highs.whole_tree import Filling, PartModel

__all__ = ["solve_whole_guarantees"]

_NOTHING = Part("", np.zeros(0, bool))


def solve_whole_guarantees(program: Program, goal: TreeFilling, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Fill a tree with guarantees in whole tasks.

    The stages alone decide where every guarantee is met as far as its users have tasks. Else the best sorted parts are found, and the tree
    is filled again if the parts of the answer are not these.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks found.
    """
    first = Filling(program, goal, deadline, branch_and_cut)
    found = first.solve()
    if not in_doubt(program, goal, found.x):
        return found
    last: _BestParts | _WithinCompletion
    try:
        last = best = _BestParts(first, deadline, branch_and_cut)
    except NoSolution:
        if deadline.left == 0.0:
            raise deadline.passed(first.best_known()) from None
        raise
    if not best.are_those_of(found.x):
        last = _WithinCompletion(best)
        found = last.solve()
    return replace(found, programs_solved=max(first.runs + last.runs, 1), iterations=first.iterations + last.iterations)


@dataclass(frozen=True, slots=True, eq=False)
class _Promised:
    """What is promised, and the parts of it.

    Attributes
    ----------
    promises : sequence of Promise
    units, most : sequences of float
        The amount of a part of 1, and the largest amount that counts.
    """

    program: Program
    goal: TreeFilling
    promises: Sequence[Promise]
    units: Sequence[float]
    most: Sequence[float]

    @classmethod
    def of(cls, program: Program, goal: TreeFilling, deadline: Deadline) -> _Promised:
        """Return the promises of a tree, with units and the most in divisible tasks."""
        return cls(program, goal, *promised_alone(replace(program, integral=False), goal, SETTINGS.rounded_down, deadline))

    def most_part(self, k: int) -> float:
        """Return the most that the part of a promise counts."""
        return float(self.most[k] / self.units[k]) if self.units[k] > 0 else 0.0

    def least_part(self, k: int) -> float:
        """Return the smallest part of a promise that is not 0: that of one task."""
        of_a_task = [float(values.min()) for _, values, _ in groups_of(self.program, self.goal, self.promises[k]) if values.size]
        return min(*of_a_task, float(self.most[k]), np.inf) / float(self.units[k])

    def parts_at(self, x: FloatArray) -> FloatArray:
        """Return the part of each promise at x, (promises,)."""
        held = [counted(self.program, self.goal, promise, x) for promise in self.promises]
        return np.array([min(h / u, self.most_part(k)) if u > 0 else 0.0 for k, (h, u) in enumerate(zip(held, self.units, strict=True))])

    def by_depth(self) -> list[IntArray]:
        """Return the promises of each depth that count something, the outermost first."""
        depths = sorted({promise.above for promise in self.promises})
        return [
            np.array([k for k, each in enumerate(self.promises) if each.above == above and self.most_part(k) > 0], np.int64)
            for above in depths
        ]

    def counts_alike(self) -> bool:
        """Does every promise count the same on all servers as on its own?"""
        for promise in self.promises:
            there, everywhere = (list(groups_of(self.program, self.goal, promise, each)) for each in (False, True))
            for (columns, values, _), (all_columns, all_values, _) in zip(there, everywhere, strict=True):
                if columns.size != all_columns.size or not (values == all_values).all():
                    return False
        return True


class _BestParts(Filling):
    """The search for the best sorted parts of promises.

    Attributes
    ----------
    completions : list of int array (pairs,)
        The columns of the tasks y; a second one counts on all servers, for the surplus, where that is not the same.
    part_of : list of int
        The column of the part of each promise.
    sorted_parts : list of (int array, array)
        Of each depth its promises, and their parts in ascending order.
    """

    def __init__(self, first: Filling, deadline: Deadline, branch_and_cut: Maker) -> None:
        super().__init__(first.program, first.goal, deadline, branch_and_cut, first.rounded_down)
        self.first = first
        self.promised = _Promised.of(self.program, self.goal, deadline)
        self.completions = [self._completion()]
        self.part_of = [self.rows.column(self.promised.most_part(k)) for k in range(len(self.promised.promises))]
        self._count(self.completions[0], everywhere=False)
        self.sorted_parts = [(members, self._sorted(members)) for members in self.promised.by_depth()]
        if not self.promised.counts_alike():
            self.completions.append(self._completion())
            self._count(self.completions[1], everywhere=True)

    def are_those_of(self, x: FloatArray) -> bool:
        """Are the sorted parts at x, (pairs,), the best ones?"""
        parts = self.promised.parts_at(x)
        return all((np.sort(parts[members]) >= best * (1 - SETTINGS.told_apart)).all() for members, best in self.sorted_parts)

    def _completion(self) -> IntArray:
        """Add whole tasks within the limits, and within what counts of users who rise for a guarantee alone; return their columns."""
        tasks = np.full(self.program.n_pairs, -1, np.int64)
        some = np.flatnonzero(self.largest > 0)
        tasks[some] = self.rows.columns(self.largest[some])
        limits = self.limits
        model = PartModel(_NOTHING, np.zeros(0, bool), np.zeros(0, np.int64), tasks, {})
        for row in np.flatnonzero(limits.bounds > 0).tolist():
            if entries := self._entries(limits.matrix, row, model, float(limits.bounds[row])):
                self.rows.row(entries, upper=1.0)
        for columns, values, most in caps(self.program, self.goal, self.promised.promises):
            entries = {int(tasks[c]): float(v) for c, v in zip(columns, values, strict=True) if tasks[c] >= 0}
            if entries:
                self.rows.row(entries, upper=float(most) * (1 + FITS))
        return tasks

    def _count(self, tasks: IntArray, *, everywhere: bool) -> None:
        """Add what tasks hold of each promise, each group up to its guarantee: at least its part."""
        for k, (promise, unit) in enumerate(zip(self.promised.promises, self.promised.units, strict=True)):
            if not self.promised.most_part(k) > 0:
                continue
            entries = {self.part_of[k]: -1.0}
            for columns, values, guarantee in groups_of(self.program, self.goal, promise, everywhere):
                held = self.rows.column(1.0)
                mine = {int(tasks[c]): float(v / guarantee) for c, v in zip(columns, values, strict=True) if tasks[c] >= 0}
                self.rows.row(mine | {held: -1.0}, lower=0.0)
                entries[held] = float(guarantee / unit)
            self.rows.row(entries, lower=0.0)

    def _sorted(self, members: IntArray) -> FloatArray:
        """Search the parts of the promises of one depth, those of the depths above kept; return them in ascending order."""
        parts = {int(k): {self.part_of[k]: 1.0} for k in members}
        model = PartModel(_NOTHING, np.zeros(0, bool), members, self.completions[0], parts)
        self.parts = [model]
        self._fill(model, 0)
        return np.sort(self._times(0)[members])

    # What the search of `Filling` asks for, of promises in place of users --------------------------------------------------------------

    def _times(self, number: int) -> FloatArray:
        return self.promised.parts_at(self.known[0])

    def _highest(self, model: PartModel) -> float:
        return max(self.promised.most_part(int(k)) for k in model.members)

    def _least(self, model: PartModel) -> FloatArray:
        least = np.full(len(self.promised.promises), np.inf)
        for k in model.members.tolist():
            least[k] = self.promised.least_part(k)
        return least

    def best_known(self) -> dict[str, object]:
        """Return what the first filling found: a completion is no allocation."""
        return self.first.best_known()


class _WithinCompletion(Filling):
    """The filling of a tree in which nobody has more than in a completion with the best sorted parts."""

    def __init__(self, best: _BestParts) -> None:
        super().__init__(best.program, best.goal, best.deadline, rounded_down=best.rounded_down)
        self.first, self.completions = best.first, best.completions
        self.rows, self.gap, self.runs, self.iterations = best.rows, best.gap, best.runs, best.iterations

    def best_known(self) -> dict[str, object]:
        return super().best_known() if self.parts else self.first.best_known()

    def _add(self, part: Part) -> PartModel:
        """Add a part, in which nobody has more than in its completion."""
        model = super()._add(part)
        completion = self.completions[0 if part.guarantees else -1]
        for n in range(len(self.program.users)):
            if has := self._worths(n, model, 1.0):
                mine = np.flatnonzero((self.program.pair_users == n) & (completion >= 0))
                self.rows.row(has | {int(completion[p]): -float(self.worth[p]) for p in mine}, upper=0.0)
        return model
