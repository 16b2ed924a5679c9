"""How far guarantees are met together in whole tasks, and whole tasks in a tree that keep this (`fairopt.program.guarantees`).

Of whole tasks the parts p of promises are not unique: of three GPUs, two queues that are each guaranteed three get 2/3 and 1/3, or 1/3 and
2/3. Unique are the sorted parts. So what is kept is no floor of each promise, but a condition on completions y, which are whole tasks, too:

    the sorted parts of y are the largest in lexicographic order: first those of the outermost promises, then those of the next depth, ...

A part of y is  p = min(amount, most) / b,  with the unit b and the most of the promise in divisible tasks. Every part k of the filling
obeys  U[n](x[k]) <= U[n](y).  In the surplus the amounts of the completion count on all servers, and are at least p b.

The sorted parts are found by the search of `fairopt.solvers.via_highs.whole_tree`, with parts of promises in place of stop times of users.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import Program, Solution, TreeFilling
from fairopt.program.guarantees import caps
from fairopt.program.promises import counted, groups_of, in_doubt
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
    try:
        keeping = _Keeping(first, deadline, branch_and_cut)
    except NoSolution:
        if deadline.left == 0.0:
            raise deadline.passed(first.best_known()) from None
        raise
    kept = found if keeping.has_best_parts(found.x) else keeping.solve()
    runs, iterations = first.runs + keeping.runs, first.iterations + keeping.iterations
    return replace(kept, programs_solved=max(runs, 1), iterations=iterations)


class _Keeping(Filling):
    """A filling whose parts leave room for a completion with the best sorted parts of promises.

    Attributes
    ----------
    part_of : list of int
        The column of the part of each promise.
    best_parts : list of (int array, array)
        Of each depth its promises, and their parts in ascending order.
    """

    def __init__(self, first: Filling, deadline: Deadline, branch_and_cut: Maker) -> None:
        program, goal = first.program, first.goal
        super().__init__(program, goal, deadline, branch_and_cut)
        self.first, self.looking = first, True
        self.promises, self.units, self.most = promised_alone(replace(program, integral=False), goal, SETTINGS.rounded_down, deadline)
        self.completions = [self._tasks()]
        self.part_of = [self.rows.column(self._most_part(k)) for k in range(len(self.promises))]
        self._count(self.completions[0], everywhere=False)
        self.best_parts: list[tuple[IntArray, FloatArray]] = []
        for above in sorted({promise.above for promise in self.promises}):
            members = np.array([k for k, each in enumerate(self.promises) if each.above == above and self._most_part(k) > 0], np.int64)
            model = PartModel(_NOTHING, np.zeros(0, bool), members, self.completions[0], {int(k): {self.part_of[k]: 1.0} for k in members})
            self.parts = [model]
            self._fill(model, 0)
            self.best_parts.append((members, np.sort(self._times(0)[members])))
        if not self._counts_alike():
            self.completions.append(self._tasks())
            self._count(self.completions[1], everywhere=True)
        self.parts, self.known, self.looking = [], [], False

    def has_best_parts(self, x: FloatArray) -> bool:
        """Are the sorted parts at x, (pairs,), the best ones?"""
        parts = self._parts_at(x)
        return all((np.sort(parts[members]) >= best * (1 - SETTINGS.told_apart)).all() for members, best in self.best_parts)

    # Completions ------------------------------------------------------------------------------------------------------------------

    def _tasks(self) -> IntArray:
        """Add whole tasks within the limits, and within what counts of users who rise for a guarantee alone; return their columns."""
        tasks = np.full(self.program.n_pairs, -1, np.int64)
        some = np.flatnonzero(self.largest > 0)
        tasks[some] = self.rows.columns(self.largest[some])
        limits = self.limits
        model = PartModel(_NOTHING, np.zeros(0, bool), np.zeros(0, np.int64), tasks, {})
        for row in np.flatnonzero(limits.bounds > 0).tolist():
            if entries := self._entries(limits.matrix, row, model, float(limits.bounds[row])):
                self.rows.row(entries, upper=1.0)
        for columns, values, most in caps(self.program, self.goal, self.promises):
            entries = {int(tasks[c]): float(v) for c, v in zip(columns, values, strict=True) if tasks[c] >= 0}
            if entries:
                self.rows.row(entries, upper=float(most) * (1 + FITS))
        return tasks

    def _count(self, tasks: IntArray, *, everywhere: bool) -> None:
        """Add what tasks hold of each promise, each group up to its guarantee: at least its part."""
        for k, (promise, unit) in enumerate(zip(self.promises, self.units, strict=True)):
            if not self._most_part(k) > 0:
                continue
            entries = {self.part_of[k]: -1.0}
            for columns, values, guarantee in groups_of(self.program, self.goal, promise, everywhere):
                held = self.rows.column(1.0)
                mine = {int(tasks[c]): float(v / guarantee) for c, v in zip(columns, values, strict=True) if tasks[c] >= 0}
                self.rows.row(mine | {held: -1.0}, lower=0.0)
                entries[held] = float(guarantee / unit)
            self.rows.row(entries, lower=0.0)

    def _counts_alike(self) -> bool:
        """Does every promise count the same on all servers as on its own?"""
        for promise in self.promises:
            there, everywhere = (list(groups_of(self.program, self.goal, promise, each)) for each in (False, True))
            for (columns, values, _), (all_columns, all_values, _) in zip(there, everywhere, strict=True):
                if columns.size != all_columns.size or not (values == all_values).all():
                    return False
        return True

    def _most_part(self, k: int) -> float:
        """Return the most that the part of a promise counts."""
        return float(self.most[k] / self.units[k]) if self.units[k] > 0 else 0.0

    def _parts_at(self, x: FloatArray) -> FloatArray:
        """Return the part of each promise at x, (promises,)."""
        held = [counted(self.program, self.goal, promise, x) for promise in self.promises]
        return np.array([min(h / u, self._most_part(k)) if u > 0 else 0.0 for k, (h, u) in enumerate(zip(held, self.units, strict=True))])

    # The search, of parts of promises while these are looked for --------------------------------------------------------------------

    def _times(self, number: int) -> FloatArray:
        return self._parts_at(self.known[0]) if self.looking else super()._times(number)

    def _highest(self, model: PartModel) -> float:
        return max(self._most_part(int(k)) for k in model.members) if self.looking else super()._highest(model)

    def _least(self, model: PartModel) -> FloatArray:
        """Return the smallest part of each promise that is not 0: that of one task."""
        if not self.looking:
            return super()._least(model)
        least = np.full(len(self.promises), np.inf)
        for k in model.members.tolist():
            of_a_task = [float(values.min()) for _, values, _ in groups_of(self.program, self.goal, self.promises[k]) if values.size]
            least[k] = min(*of_a_task, float(self.most[k]), np.inf) / self.units[k]
        return least

    def best_known(self) -> dict[str, object]:
        return self.first.best_known() if self.looking or not self.parts else super().best_known()

    def _add(self, part: Part) -> PartModel:
        """Add a part, in which nobody has more than in its completion."""
        model = super()._add(part)
        self._within(model, self.completions[0 if part.guarantees else -1])
        return model

    def _within(self, model: PartModel, completion: IntArray) -> None:
        for n in range(len(self.program.users)):
            if has := self._worths(n, model, 1.0):
                mine = np.flatnonzero((self.program.pair_users == n) & (completion >= 0))
                self.rows.row(has | {int(completion[p]): -float(self.worth[p]) for p in mine}, upper=0.0)
