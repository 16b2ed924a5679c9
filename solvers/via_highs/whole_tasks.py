"""Whole tasks by branch and cut: the exact integral leximin and the exact integral total.

With x[p] whole, the users at the lowest level are no longer the same in every optimal solution, so levels cannot be settled user
by user. What *is* unique is the sorted vector of levels, and with it how many users lie at or below each level. So the search goes
level by level (lexicographic maximisation of sorted outcomes with distinct values; Ogryczak and Sliwinski 2006). Let c[1] < c[2] < ...
be how many users are counted at or below the levels t[1] < t[2] < ... found so far:

    A   the next level is the largest t such that all but c[k] users can have U[n]/phi[n] >= t, all but c[k-1] at least t[k], ...
    B   the next count is the smallest number of users at or below t under the same conditions

until everybody is counted. A is a bisection over feasibility problems, and an answer to one lifts the lower end to a level that is
really attained. A task of a user is mostly worth the same on every server: then its condition is "at least so many tasks", a row of
small whole numbers, and shares that differ by many orders of magnitude never meet in one row.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Leximin, Program, Solution, Stage, Total
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status, solved

__all__ = ["solve_whole"]

log = logging.getLogger(__name__)

_EXACT = 1e-9  # relative: whole multiples of a share are compared up to rounding
_STEP = 1e-6  # relative: levels of a user whose tasks differ in worth are told apart down to this


def solve_whole(program: Program, deadline: Deadline) -> Solution:
    """Solve Total or Leximin over whole tasks."""
    if isinstance(program.goal, Total):
        return _total(program, program.goal, deadline)
    assert isinstance(program.goal, Leximin)
    return _Outcomes(program, program.goal, deadline).solve()


def _limits(program: Program) -> tuple[sp.csr_array, FloatArray]:
    """Return the limits with bound 1, and the largest whole value of each column (0 where a bound is 0)."""
    positive = np.flatnonzero(program.limits.bounds > 0)
    matrix = sp.csr_array(program.limits.matrix[positive] / program.limits.bounds[positive, None])
    return matrix, np.floor(program.largest() * (1 + _EXACT) + _EXACT)


def _total(program: Program, goal: Total, deadline: Deadline) -> Solution:
    matrix, upper = _limits(program)
    worth = goal.weights[program.pair_users] * program.utilities
    rows = matrix.shape[0]

    def model(integral: IntArray | None) -> HighsModel:
        bounds = np.zeros(upper.size), upper
        return HighsModel(worth / worth.max(), *bounds, sp.csc_array(matrix), np.full(rows, -np.inf), np.ones(rows), integral=integral)

    divisible = model(None).run(deadline.left)
    most = float(worth @ (divisible.x if divisible.status is Status.OPTIMAL else upper)) * (1 + _EXACT)
    outcome = model(np.arange(upper.size)).run(deadline.left)
    found = bool(np.isfinite(outcome.gap))  # is there an allocation of whole tasks to relate the bound to
    x = np.round(outcome.x) if found else np.zeros(upper.size)
    reached = float(worth @ x)
    bound = max(reached, min(reached * (1 + outcome.gap), most)) if found else most
    solved(outcome, deadline, {"tasks": x, "value": reached, "bound": bound})
    return Solution(x, gap=outcome.gap, bound=bound, iterations=outcome.iterations)


class _Outcomes:
    """The levels found so far, how many users are counted at or below each, and the best allocation known."""

    def __init__(self, program: Program, goal: Leximin, deadline: Deadline) -> None:
        self.program, self.deadline = program, deadline
        self.matrix, self.upper = _limits(program)
        users = program.pair_users
        self.per_level = program.utilities / goal.weights[users]
        self.reach = program.per_user(self.upper * self.per_level)
        self.member = np.flatnonzero(self.reach > 0)  # the others stay at 0 in every solution
        self.columns = np.flatnonzero(self.reach[users] > 0)
        step = np.zeros(len(program.users))
        step[users] = self.per_level
        uneven = np.zeros(len(program.users), bool)
        uneven[users[step[users] != self.per_level]] = True
        self.step: FloatArray = step[self.member]  # share of one task
        self.uneven: BoolArray = uneven[self.member]
        self.levels: list[float] = []
        self.counts: list[int] = []  # users at or below each level
        # No allocation's smallest level is larger; levels of users whose tasks differ in worth are known up to a step.
        self.bound = float(self.reach[self.member].min()) if self.member.size else 0.0
        self.slack = _STEP if self.uneven.any() else 0.0
        self.best = np.zeros(users.size)
        self.gap, self.iterations, self.runs = 0.0, 0, 0

    def solve(self) -> Solution:
        """Find level after level."""
        counted = 0
        self.bound = self._divisible()
        while counted < self.member.size:
            level = self._highest_level(counted)
            self.levels.append(level)
            if len(self.levels) == 1:
                self.bound = max(level, min(level * (1 + self.slack), self.bound))
            now = self._fewest_at_or_below(level, counted)
            if now <= counted:  # cannot be, short of rounding; then nobody is counted twice, and the search ends
                now = int((self._reached() <= level * (1 + _STEP)).sum())
            counted = max(now, counted + 1)
            self.counts.append(counted)
            log.info("level %d: %.6g, %d users left", len(self.levels), level, self.member.size - counted)
        reached = self.program.per_user(self.best * self.per_level)
        nearest = np.abs(np.subtract.outer(reached[self.member], self.levels)).argmin(axis=1) if self.levels else np.empty(0)
        stages = tuple(Stage(level, self.member[nearest == k], None) for k, level in enumerate(self.levels))
        return Solution(self.best, stages, gap=self.gap, bound=self.bound, iterations=self.iterations, programs_solved=self.runs)

    def _divisible(self) -> float:
        """Return the largest smallest level of divisible tasks, which bounds that of whole tasks; the bound so far where time is up."""
        if not self.member.size or self.deadline.left == 0.0:
            return self.bound
        number, size = self.columns.size, self.member.size
        position = np.searchsorted(self.member, self.program.pair_users[self.columns])
        have = sp.csr_array((self.per_level[self.columns] / self.bound, (position, np.arange(number))), (size, number))
        limits, one = self.matrix[:, self.columns], sp.csr_array(-np.ones((size, 1)))
        model = HighsModel(
            np.r_[np.zeros(number), 1.0],
            np.zeros(number + 1),
            np.r_[self.upper[self.columns], 1.0],  # the level, in parts of the bound so far
            sp.vstack([sp.hstack([limits, sp.csr_array((limits.shape[0], 1))]), sp.hstack([have, one])], format="csc"),
            np.r_[np.full(limits.shape[0], -np.inf), np.zeros(size)],
            np.r_[np.ones(limits.shape[0]), np.full(size, np.inf)],
        )
        outcome = model.run(self.deadline.left)
        return self.bound * min(1.0, float(outcome.x[-1]) * (1 + _EXACT)) if outcome.status is Status.OPTIMAL else self.bound

    def _reached(self) -> FloatArray:
        """Levels of the members under the best allocation, ascending."""
        return np.sort(self.program.per_user(self.best * self.per_level)[self.member])

    def _highest_level(self, counted: int) -> float:
        """A: bisection between a level that is attained and one that cannot be."""
        low = float(self._reached()[counted])
        high = float(np.sort(self.reach[self.member])[counted]) * (1 + _STEP)  # all but `counted` users must be able to reach it
        while (following := float(self._above(low).min())) < high * (1 - _EXACT):
            middle = max(following, np.sqrt(low * high) if high > 100 * low > 0 else 0.5 * (low + high))
            found = self._feasible(self._at_least(middle))
            if found is None:
                high = middle
                if not self.levels:
                    self.bound = min(self.bound, high)
            else:
                self.best = found
                low = max(float(self._reached()[counted]), middle * (1 - _EXACT))
        return low

    def _fewest_at_or_below(self, level: float, counted: int) -> int:
        """B: minimise the number of users who do not get beyond the level."""
        above = self._above(level)
        binaries, outcome = self._run(self._in_tasks(above), count=True)
        outcome = solved(outcome, self.deadline, self._known())
        self.best = self._tasks(outcome)
        self.gap = max(self.gap, outcome.gap)
        return round(float(outcome.x[binaries].sum()))

    def _feasible(self, need: FloatArray) -> FloatArray | None:
        """Return tasks with which all but the users counted so far have what they need, or None if there are none."""
        _, outcome = self._run(need, count=False)
        if outcome.status is Status.INFEASIBLE:
            return None
        return self._tasks(solved(outcome, self.deadline, self._known()))

    def _at_least(self, level: float) -> FloatArray:
        """What a member needs to reach the level, in tasks (in levels, where tasks differ in worth)."""
        return self._in_tasks(np.full(self.member.size, level))

    def _in_tasks(self, levels: FloatArray) -> FloatArray:
        return np.where(self.uneven, levels, np.ceil(levels / self.step * (1 - _EXACT) - _EXACT))

    def _above(self, level: float) -> FloatArray:
        """The smallest level of each member that is greater."""
        whole = (np.floor(level / self.step * (1 + _EXACT) + _EXACT) + 1) * self.step
        return np.where(self.uneven, level * (1 + _STEP) if level > 0 else _STEP * self.reach[self.member], whole)

    def _run(self, need: FloatArray, *, count: bool) -> tuple[IntArray, Outcome]:
        """Solve with one row a member: what it has >= what it needs, less what it may miss as an exception to this or an earlier need.

        needs[k] is due to all but allowed[k] members: those of the levels so far, and the new one, whose exceptions are limited to the
        users counted so far or, to ``count`` users, minimised. Exceptions b[k] are nested, so that one row says it all:
        have[n] + sum over k of (needs[k][n] - needs[k-1][n]) b[k][n] >= needs[-1][n]. Nobody is an exception to the first need.
        """
        if self.deadline.left == 0.0:
            raise self.deadline.passed(self._known())
        needs = [*(self._at_least(level) for level in self.levels), need]
        size = self.member.size
        allowed = [0, *self.counts, size] if count else [0, *self.counts]
        families = len(needs) - 1
        number = self.columns.size
        total = number + families * size
        scale = np.where(self.uneven, 1.0 / np.maximum(need, 1e-300), 1.0)
        users = self.program.pair_users[self.columns]
        position = np.searchsorted(self.member, users)
        worth = np.where(self.uneven[position], self.per_level[self.columns], 1.0) * scale[position]
        have = sp.csr_array((worth, (position, np.arange(number))), (size, number))
        misses = [sp.diags_array((needs[k + 1] - needs[k]) * scale, format="csr") for k in range(families)]
        rows = [sp.hstack([self.matrix[:, self.columns], sp.csr_array((self.matrix.shape[0], total - number))], format="csr")]
        rows.append(sp.hstack([have, *misses], format="csr"))
        lower = [np.full(self.matrix.shape[0], -np.inf), need * scale]
        upper = [np.ones(self.matrix.shape[0]), np.full(size, np.inf)]
        for k in range(families):
            first = number + k * size
            rows.append(sp.csr_array((np.ones(size), (np.zeros(size, int), np.arange(first, first + size))), (1, total)))
            lower.append(np.zeros(1))
            upper.append(np.full(1, float(allowed[k + 1])))
            if k:  # who is an exception to an earlier level is one to this
                each = np.arange(size)
                entries = (np.repeat([1.0, -1.0], size), (np.tile(each, 2), np.r_[first + each, first - size + each]))
                rows.append(sp.csr_array(entries, (size, total)))
                lower.append(np.zeros(size))
                upper.append(np.full(size, np.inf))
        binaries = np.arange(total - size, total) if families else np.empty(0, np.int64)
        cost = np.zeros(total)
        cost[binaries] = -1.0 if count else 0.0
        model = HighsModel(
            cost,
            np.zeros(total),
            np.concatenate([self.upper[self.columns], np.ones(total - number)]),
            sp.vstack(rows, format="csc"),
            np.concatenate(lower),
            np.concatenate(upper),
            integral=np.arange(total),
        )
        outcome = model.run(self.deadline.left)
        self.runs += 1
        self.iterations += outcome.iterations
        return binaries, outcome

    def _tasks(self, outcome: Outcome) -> FloatArray:
        tasks = np.zeros(self.program.n_pairs)
        tasks[self.columns] = np.round(outcome.x[: self.columns.size])
        return tasks

    def _known(self) -> dict[str, object]:
        value = float(self._reached()[0]) if self.member.size else 0.0
        return {"levels": list(self.levels), "tasks": self.best.copy(), "value": value, "bound": max(value, self.bound)}
