r"""The exact integral leximin, level by level, whatever the columns of its programs are.

With x[p] whole, the users at the lowest level are no longer the same in every optimal solution, so levels cannot be settled user
by user. What *is* unique is the sorted vector of levels, and with it how many users lie at or below each level. So the search goes
level by level (lexicographic maximisation of sorted outcomes with distinct values; Ogryczak and Sliwinski 2006). Let c[1] < c[2] < ...
be how many users are counted at or below the levels t[1] < t[2] < ... found so far:

    A   the next level is the largest t such that all but c[k] users can have U[n]/phi[n] >= t, all but c[k-1] at least t[k], ...
    B   the next count is the smallest number of users at or below t under the same conditions

until every user is counted. A is a bisection over feasibility problems; a solution raises the lower end to a level that is attained. If a
task of a user is worth the same on every server, its condition is a least number of tasks, a row of small whole numbers, so that no row has
shares of different orders of magnitude.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS, TINY
from fairopt.program import Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import Outcome, Status, solved
from fairopt.solvers.via_highs.rows import Rows
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Condition", "WholeLevels"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """What members must have: needs[k] is due to all but allowed[k - 1] of them, and needs[0] to all.

    Attributes
    ----------
    worth : array (columns,)
        What a task on a column of a member counts.
    needs : sequence of arrays (members,)
        At the levels so far, and at the new one.
    scale : array (members,)
        The unit of each member's row is 1 / scale.
    allowed : sequence of int
        How many exceptions there may be. If the last one is not given, its exceptions are minimised.
    """

    worth: FloatArray
    needs: Sequence[FloatArray]
    scale: FloatArray
    allowed: Sequence[int]

    @property
    def minimises(self) -> bool:
        """Are the exceptions to the last need minimised?"""
        return len(self.allowed) < len(self.needs) - 1

    def add_to(self, rows: Rows, columns: IntArray, position: IntArray) -> IntArray:
        """Add the row of each member; return the columns of the exceptions to the last need.

        A row says: what a member has >= what it needs, less what it may miss as an exception to this or an earlier need. Exceptions b[k]
        are nested, so that one row says it all: have[n] + sum over k of (needs[k][n] - needs[k-1][n]) b[k][n] >= needs[-1][n].

        Parameters
        ----------
        rows : Rows
        columns, position : int arrays (columns,)
            In the model, and whose they are: members.
        """
        size = self.scale.size
        exceptions = [rows.columns(np.ones(size)) for _ in self.needs[1:]]
        each = rows.rows(size, self.needs[-1] * self.scale)
        rows.put(each[position], columns, self.worth)
        for k, (own, (earlier, later)) in enumerate(zip(exceptions, pairwise(self.needs), strict=True)):
            rows.put(each, own, (later - earlier) * self.scale)
            rows.row(dict.fromkeys(own.tolist(), 1.0), upper=float(self.allowed[k]) if k < len(self.allowed) else float(size))
            if k:  # who is an exception to an earlier level is one to this
                nested = rows.rows(size, 0.0)
                rows.put(nested, own, np.ones(size))
                rows.put(nested, exceptions[k - 1], np.full(size, -1.0))
        return exceptions[-1] if exceptions else np.empty(0, np.int64)


class WholeLevels(ABC):
    """The levels found so far, how many users are counted at or below each, and the best allocation known.

    A subclass searches the tasks that satisfy a `Condition`.

    Parameters
    ----------
    program : Program
    deadline : Deadline
    pairs : int array (columns,)
        A pair of each column of the programs, which says whose it is and what its tasks are worth.
    most : array (columns,)
        How many tasks a column holds at most.
    best : array (pairs,)
        Tasks to begin with.
    """

    def __init__(self, program: Program, deadline: Deadline, pairs: IntArray, most: FloatArray, best: FloatArray) -> None:
        self.program, self.deadline, self.best = program, deadline, best
        self.per_level = program.worth
        users, per_level = program.pair_users[pairs], self.per_level[pairs]
        self.reach = np.bincount(users, weights=most * per_level, minlength=len(program.users)).astype(float)
        self.member = np.flatnonzero(self.reach > 0)  # the others stay at 0 in every solution
        self.kept = np.flatnonzero(self.reach[users] > 0)  # columns of members
        self.position = np.searchsorted(self.member, users[self.kept])  # whose these are
        self.per_column = per_level[self.kept]
        some = most > 0
        step = np.zeros(len(program.users))
        step[users[some]] = per_level[some]
        uneven = np.zeros(len(program.users), bool)
        uneven[users[some & (step[users] != per_level)]] = True
        self.step: FloatArray = step[self.member]  # share of one task
        self.uneven: BoolArray = uneven[self.member]
        self.levels: list[float] = []
        self.counts: list[int] = []  # users at or below each level
        # No allocation's smallest level is larger; levels of users whose tasks differ in worth are known up to a step.
        self.bound = float(self.reach[self.member].min()) if self.member.size else 0.0
        self.slack = SETTINGS.told_apart if self.uneven.any() else 0.0
        self.gap, self.iterations, self.runs = 0.0, 0, 0

    @abstractmethod
    def search(self, condition: Condition) -> tuple[IntArray, Outcome]:
        """Look for tasks that satisfy a condition; return the columns of the exceptions to its last need, and the outcome."""

    @abstractmethod
    def spread(self, outcome: Outcome) -> FloatArray | None:
        """Return the tasks of an outcome, (pairs,); None where they do not fit after all, and the next search will know it."""

    def first_bound(self) -> float:
        """Return a bound on the first level; a better start may be looked for, too."""
        return self.bound

    def solve(self) -> Solution:
        """Find level after level."""
        counted = 0
        self.bound = self.first_bound()
        while counted < self.member.size:
            level = self._highest_level(counted)
            self.levels.append(level)
            if len(self.levels) == 1:
                self.bound = max(level, min(level * (1 + self.slack), self.bound))
            now = self._fewest_at_or_below(level, counted)
            if now <= counted:  # cannot be, short of rounding; then nobody is counted twice, and the search ends
                now = int((self.reached() <= level * (1 + SETTINGS.told_apart)).sum())
            counted = max(now, counted + 1)
            self.counts.append(counted)
            log.info("level %d: %.6g, %d users left", len(self.levels), level, self.member.size - counted)
        reached = self.program.per_user(self.best * self.per_level)
        nearest = np.abs(np.subtract.outer(reached[self.member], self.levels)).argmin(axis=1) if self.levels else np.empty(0)
        stages = tuple(Stage(level, self.member[nearest == k], None) for k, level in enumerate(self.levels))
        return Solution(self.best, stages, gap=self.gap, bound=self.bound, iterations=self.iterations, programs_solved=self.runs)

    def reached(self) -> FloatArray:
        """Levels of the members under the best allocation, ascending."""
        return self._reached(self.best)

    def _reached(self, x: FloatArray) -> FloatArray:
        return np.sort(self.program.per_user(x * self.per_level)[self.member])

    def _highest_level(self, counted: int) -> float:
        """A: bisection between a level that is attained and one that cannot be."""
        low = float(self.reached()[counted])
        high = float(np.sort(self.reach[self.member])[counted])  # all but `counted` users must be able to reach it
        high = (high if self.levels else min(high, self.bound)) * (1 + SETTINGS.told_apart)
        while (following := float(self._above(low).min())) < high * (1 - FITS):
            middle = max(following, np.sqrt(low * high) if high > 100 * low > 0 else 0.5 * (low + high))
            found = self._feasible(self._at_least(middle))
            if found is None:
                high = middle
                if not self.levels:
                    self.bound = min(self.bound, high)
            else:
                self.best = found
                low = max(float(self.reached()[counted]), middle * (1 - FITS))
        return low

    def _fewest_at_or_below(self, level: float, counted: int) -> int:
        """B: minimise the number of users who do not get beyond the level."""
        above = self._in_tasks(self._above(level))
        while True:
            below, outcome = self._run(above, *self.counts)
            outcome = solved(outcome, self.deadline, self.known())
            fewest = round(float(outcome.x[below].sum()))
            x = self.spread(outcome)
            if x is None:  # others with as few may fit
                x = self._feasible(above, fewest)
            if x is not None:
                self.best, self.gap = x, max(self.gap, outcome.gap)
                return fewest

    def _feasible(self, need: FloatArray, *counts: int) -> FloatArray | None:
        """Return tasks with which all users have what they need, except those counted so far and at last ``counts``; None if there are
        none."""
        while True:
            _, outcome = self._run(need, *self.counts, *counts)
            if outcome.status is Status.INFEASIBLE:
                return None
            x = self.spread(solved(outcome, self.deadline, self.known()))
            if x is not None:
                return x

    def _at_least(self, level: float) -> FloatArray:
        """What a member needs to reach the level, in tasks (in levels, where tasks differ in worth)."""
        return self._in_tasks(np.full(self.member.size, level))

    def _in_tasks(self, levels: FloatArray) -> FloatArray:
        return np.where(self.uneven, levels, np.ceil(levels / self.step * (1 - FITS) - FITS))

    def _above(self, level: float) -> FloatArray:
        """The smallest level of each member that is greater."""
        whole = (np.floor(level / self.step * (1 + FITS) + FITS) + 1) * self.step
        above = level * (1 + SETTINGS.told_apart) if level > 0 else SETTINGS.told_apart * self.reach[self.member]
        return np.where(self.uneven, above, whole)

    def _run(self, need: FloatArray, *allowed: int) -> tuple[IntArray, Outcome]:
        """Search tasks with what is due at the levels so far, and a new need."""
        if self.deadline.left == 0.0:
            raise self.deadline.passed(self.known())
        needs = [*(self._at_least(level) for level in self.levels), need]
        scale = np.where(self.uneven, 1.0 / np.maximum(need, TINY), 1.0)
        worth = np.where(self.uneven[self.position], self.per_column, 1.0) * scale[self.position]
        return self.search(Condition(worth, needs, scale, allowed))

    def known(self) -> dict[str, object]:
        """Return what a time limit leaves: levels, tasks, the smallest level and a bound on it."""
        value = float(self.reached()[0]) if self.member.size else 0.0
        return {"levels": list(self.levels), "tasks": self.best.copy(), "value": value, "bound": max(value, self.bound)}
