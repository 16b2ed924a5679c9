"""Whole tasks under rules by branch and cut: the stages of `fairopt.solvers.via_highs.whole_tasks`, with a column for each pair.

Identical servers are not taken together, because rules may tell them apart; nothing is filled greedily, because the empty allocation may
break a rule. The search begins with any whole tasks that obey the rules.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS, TINY
from fairopt.program import Feature, LimitKind, Program, Solution
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import Outcome, solved
from fairopt.solvers.via_highs.rows import Maker, Rows, begin, by_highs
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.whole_tasks import Outcomes

__all__ = ["Pairs", "fewest_whole_ruled", "solve_whole_ruled"]


def solve_whole_ruled(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return the integral leximin, or the largest integral total, of a program with rules.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks so far; where no whole tasks obey the rules.
    """
    pairs = Pairs(program, deadline, branch_and_cut)
    if program.goal.feature is not Feature.TOTAL:
        return _Outcomes(program, deadline, pairs).solve()
    worth = program.worth
    outcome = pairs.run({})
    best, runs, iterations = pairs.tasks(outcome), 1, outcome.iterations
    outcome = pairs.run(dict(enumerate((worth / (worth.max(initial=0.0) or 1.0)).tolist())), best)
    best, gap = pairs.tasks(outcome), outcome.gap
    value = float(worth @ best)
    bound = value * (1 + gap) if np.isfinite(gap) else value
    return Solution(best, gap=gap, bound=bound, iterations=iterations + outcome.iterations, programs_solved=runs + 1)


def fewest_whole_ruled(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return whole tasks that obey the rules and in which nobody has more, in all, than rules force.

    Raises
    ------
    NoSolution
        As `solve_whole_ruled`.
    """
    pairs = Pairs(program, deadline, branch_and_cut)
    unit = float(program.utilities.max(initial=0.0)) or 1.0
    outcome = pairs.run(dict(enumerate((-program.utilities / unit).tolist())))
    return Solution(pairs.tasks(outcome), gap=outcome.gap, bound=0.0, iterations=outcome.iterations, programs_solved=1)


class Pairs:
    """A model with a whole number of tasks on each pair, within all rows."""

    def __init__(self, program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> None:
        self.program, self.deadline, self.branch_and_cut = program, deadline, branch_and_cut
        limits = program.limits
        largest = np.floor(program.largest() * (1 + FITS) + FITS)
        self.upper: FloatArray = np.where(np.isfinite(largest), np.maximum(largest, 0.0), 0.0)
        size = abs(limits.matrix).max(axis=1).toarray().ravel() if len(limits) else np.zeros(0)
        size = np.where(size > TINY, size, 1.0)  # a rule about users who can run nowhere has no entry
        self.matrix = sp.csr_array(limits.matrix / size[:, None])
        room = np.where(limits.kinds == LimitKind.RULE, abs(limits.matrix) @ self.upper, limits.bounds)
        self.right = (limits.bounds + FITS * np.minimum(np.abs(limits.bounds), room)) / size

    def rows(self) -> tuple[Rows, IntArray]:
        """Return a model that can grow, and its columns."""
        rows = Rows(self.branch_and_cut)
        columns = rows.columns(self.upper)
        rows.block(self.matrix, columns, -np.inf, self.right)
        return rows, columns

    def run(self, goal: dict[int, float], best: FloatArray | None = None) -> Outcome:
        """Maximise a goal of the pairs.

        Raises
        ------
        NoSolution
            At the deadline; where nothing is feasible.
        """
        if self.deadline.left == 0.0:
            raise self.deadline.passed({} if best is None else self.known(best))
        model = self.rows()[0].model(goal)
        if best is not None:
            begin(model, best.copy)
        outcome = model.run(self.deadline.left)
        if outcome.status is Status.INFEASIBLE:
            raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        if outcome.status is Status.TIME_LIMIT and np.isfinite(outcome.gap):
            best = self.tasks(outcome)
        return solved(outcome, self.deadline, {} if best is None else self.known(best))

    def known(self, best: FloatArray) -> dict[str, object]:
        """Return what a time limit leaves: the tasks, what they reach, and a bound."""
        worth = self.program.worth
        return {"tasks": best, "value": float(worth @ best), "bound": float(worth @ self.upper)}

    def tasks(self, outcome: Outcome) -> FloatArray:
        """Return the tasks of an outcome, (pairs,)."""
        return np.asarray(np.round(outcome.x[: self.upper.size]), float)


class _Outcomes(Outcomes):
    """The levels found so far, with the pairs themselves as columns."""

    def __init__(self, program: Program, deadline: Deadline, pairs: Pairs) -> None:
        self.program, self.deadline, self.pairs = program, deadline, pairs
        self.per_level = per_level = program.worth
        users = program.pair_users
        self.reach = np.bincount(users, weights=pairs.upper * per_level, minlength=len(program.users)).astype(float)
        self.member = np.flatnonzero(self.reach > 0)
        some = pairs.upper > 0
        self.step = np.zeros(len(program.users))
        self.step[users[some]] = per_level[some]
        uneven = np.zeros(len(program.users), bool)
        uneven[users[some & (per_level != self.step[users])]] = True
        self.step, self.uneven = self.step[self.member], uneven[self.member]
        self.levels, self.counts = [], []
        self.bound = float(self.reach[self.member].min()) if self.member.size else 0.0
        self.slack = SETTINGS.told_apart if self.uneven.any() else 0.0
        first = pairs.run({})
        self.gap, self.iterations, self.runs = 0.0, first.iterations, 1
        self.best = pairs.tasks(first)

    def divisible_bound(self) -> float:
        """Return the bound so far."""
        return self.bound

    def _narrow(self) -> None:
        """Nothing narrows the first level."""

    def _spread(self, outcome: Outcome) -> FloatArray:
        return self.pairs.tasks(outcome)

    def _run(self, need: FloatArray, *allowed: int) -> tuple[IntArray, Outcome]:
        """Solve with one row a member, as `Outcomes` does."""
        if self.deadline.left == 0.0:
            raise self.deadline.passed(self._known())
        needs = [*(self._at_least(level) for level in self.levels), need]
        scale = np.where(self.uneven, 1.0 / np.maximum(need, TINY), 1.0)
        place = np.full(len(self.program.users), -1)
        place[self.member] = np.arange(self.member.size)
        kept = np.flatnonzero(place[self.program.pair_users] >= 0)
        position = place[self.program.pair_users[kept]]
        rows, columns = self.pairs.rows()
        worth = np.where(self.uneven[position], self.per_level[kept], 1.0) * scale[position]
        below = self._members(rows, columns[kept], position, worth, need * scale, [(b - a) * scale for a, b in pairwise(needs)], allowed)
        light = len(allowed) == len(self.levels)
        outcome = rows.model({} if light else dict.fromkeys(below.tolist(), -1.0)).run(self.deadline.left)
        self.runs, self.iterations = self.runs + 1, self.iterations + outcome.iterations
        return below, outcome
