"""Whole tasks by branch and cut: the exact integral leximin and the exact integral total.

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
from collections.abc import Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS, TINY
from fairopt.program import Feature, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import Outcome, Status, solved
from fairopt.solvers.via_highs.identical_servers import Totals
from fairopt.solvers.via_highs.rows import Maker, Rows, begin, by_highs
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.whole_starts import WholeStarts

__all__ = ["Outcomes", "solve_whole"]

log = logging.getLogger(__name__)


def solve_whole(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Solve Total or Leximin over whole tasks; ``branch_and_cut`` solves the programs of whole numbers, HiGHS their bounds and packings."""
    if program.goal.feature is Feature.TOTAL:
        return _total(program, deadline, branch_and_cut)
    return Outcomes(program, deadline, branch_and_cut).solve()


def _totals(program: Program, worth: FloatArray) -> Totals:
    """Return the totals on identical servers; a task of a user is ``worth``, (pairs,), the same on all of these."""
    positive = np.flatnonzero(program.limits.bounds > 0)
    matrix = sp.csr_array(program.limits.matrix[positive] / program.limits.bounds[positive, None])
    largest = np.floor(program.largest() * (1 + FITS) + FITS)  # 0 where a bound is 0
    return Totals.of(program.pair_users, program.pair_servers, worth, matrix, largest)


def _total(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    worth = program.worth
    totals = _totals(program, worth)
    value = worth[totals.first]
    best, bound, iterations, runs = _greedy_total(program, deadline), float(value @ totals.upper), 0, 0
    while True:
        rows = Rows(branch_and_cut)
        y = rows.columns(totals.upper)
        totals.limit(rows, y, np.arange(y.size))
        goal_of = dict(zip(y.tolist(), (value / value.max()).tolist(), strict=True))
        divisible = rows.model(goal_of, relaxed=True).run(deadline.left)
        if divisible.status is Status.OPTIMAL:
            bound = min(bound, float(value @ divisible.x[: y.size]) * (1 + FITS))
        model = rows.model(goal_of)
        if not totals.cuts:  # which have columns of their own, and which the best tasks may break
            begin(model, partial(totals.gathered, best))
        outcome = model.run(deadline.left)
        runs, iterations = runs + 1, iterations + outcome.iterations
        found = np.isfinite(outcome.gap)  # are there totals to relate the bound to
        y_found = np.round(outcome.x[: y.size]) if found else np.zeros(y.size)
        if found or outcome.status is Status.OPTIMAL:
            bound = min(bound, float(value @ y_found) * (1 + (outcome.gap if found else 0.0)))
        if outcome.bound < np.inf:  # not where it is unknown, which is no number
            bound = min(bound, outcome.bound * float(value.max()) * (1 + FITS))
        x = totals.spread(y_found, deadline, {"tasks": best, "value": float(worth @ best), "bound": bound})
        best = best if x is None else max(best, x, key=lambda tasks: float(worth @ tasks))
        bound = max(bound, float(worth @ best))
        solved(outcome, deadline, {"tasks": best, "value": float(worth @ best), "bound": bound})
        if x is not None:
            return Solution(best, gap=outcome.gap, bound=bound, iterations=iterations, programs_solved=runs)


def _greedy_total(program: Program, deadline: Deadline) -> FloatArray:
    """Return whole tasks, (pairs,), by the better of two orders: the lowest level first, or what is worth most for its load."""
    bounds = program.limits.bounds
    load = program.limits.matrix[np.flatnonzero(bounds > 0)].multiply(1 / bounds[bounds > 0][:, None]).sum(axis=0)
    cheap = np.divide(program.worth, np.asarray(load).ravel(), out=np.full(program.n_pairs, np.inf), where=np.asarray(load).ravel() > 0)
    x = np.zeros(program.n_pairs)
    matrix, free = sp.csc_array(program.limits.matrix), bounds * (1 + FITS)
    for p in np.argsort(-cheap, kind="stable").tolist():
        if not deadline.left:
            break
        entries = slice(matrix.indptr[p], matrix.indptr[p + 1])
        rows, sizes = matrix.indices[entries], matrix.data[entries]
        room = np.floor((free[rows] / sizes + FITS)[sizes > 0].min(initial=np.inf))
        x[p] = max(room, 0.0) if np.isfinite(room) else 0.0
        free[rows] -= x[p] * sizes
    return max(x, _one_by_one(program, program.worth, deadline), key=lambda tasks: float(program.worth @ tasks))


class Outcomes:
    """The levels found so far, how many users are counted at or below each, and the best allocation known."""

    def __init__(self, program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> None:
        self.program, self.deadline, self.branch_and_cut = program, deadline, branch_and_cut
        self.per_level = program.worth
        self.totals = totals = _totals(program, self.per_level)
        users, per_level = program.pair_users[totals.first], self.per_level[totals.first]
        self.reach = np.bincount(users, weights=totals.upper * per_level, minlength=len(program.users)).astype(float)
        self.member = np.flatnonzero(self.reach > 0)  # the others stay at 0 in every solution
        self.kept = np.flatnonzero(self.reach[users] > 0)
        step = np.zeros(len(program.users))
        step[users] = per_level
        uneven = np.zeros(len(program.users), bool)
        uneven[users[step[users] != per_level]] = True
        self.step: FloatArray = step[self.member]  # share of one task
        self.uneven: BoolArray = uneven[self.member]
        self.levels: list[float] = []
        self.counts: list[int] = []  # users at or below each level
        # No allocation's smallest level is larger; levels of users whose tasks differ in worth are known up to a step.
        self.bound = float(self.reach[self.member].min()) if self.member.size else 0.0
        self.slack = SETTINGS.told_apart if self.uneven.any() else 0.0
        self.gap, self.iterations, self.runs = 0.0, 0, 0
        self.best = _one_by_one(program, self.per_level, deadline)

    def solve(self) -> Solution:
        """Find level after level."""
        counted = 0
        self.bound = self.divisible_bound()
        if self.member.size and self.program.n_pairs >= SETTINGS.pairs_with_start and not self.uneven.any():
            self._narrow()
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

    def divisible_bound(self) -> float:
        """Return the largest smallest level of divisible tasks, a bound on that of whole tasks; at the time limit, the bound so far."""
        if not self.member.size or self.deadline.left == 0.0:
            return self.bound
        first = self.totals.first[self.kept]
        position = np.searchsorted(self.member, self.program.pair_users[first])
        rows = Rows()
        y = rows.columns(self.totals.upper[self.kept])
        level = rows.column(1.0)  # in parts of the bound so far
        self.totals.limit(rows, y, self.kept)
        each = rows.rows(self.member.size, 0.0)
        rows.put(each[position], y, self.per_level[first] / self.bound)
        rows.put(each, np.full(each.size, level), np.full(each.size, -1.0))
        outcome = rows.model({level: 1.0}, relaxed=True).run(self.deadline.left)
        return self.bound * min(1.0, float(outcome.x[level]) * (1 + FITS)) if outcome.status is Status.OPTIMAL else self.bound

    def _narrow(self) -> None:
        """Lower the bound on the first level, and raise the start, until they are near each other or first fit finds no more.

        A level that divisible totals cannot reach with a whole number of tasks for everybody is no level of whole tasks either.
        """
        low, high, wanted = float(self.reached()[0]), self.bound, None
        level = high * (1 - FITS)
        while level > low and self.deadline.left:
            outcome = self._divisible(self._at_least(level))
            if outcome.status is Status.OPTIMAL:
                low, wanted = level, self.totals.everywhere(self._of_totals(outcome.x))
            elif outcome.status is Status.INFEASIBLE:
                high = level
            else:
                break
            following = float(self._above(low).min())  # nobody has a level between these two
            high = low if following >= high else high
            level = max(0.5 * (low + high), following) if low < high * (1 - SETTINGS.near_bound) else low
        self.bound = min(self.bound, high)
        starts, high = WholeStarts.of(self.program), low
        level, low = high, float(self.reached()[0])
        while low < high * (1 - SETTINGS.near_bound) and self.deadline.left:
            need = np.zeros(len(self.program.users))
            need[self.member] = self._at_least(level)
            packed = starts.packed(need, wanted)
            if packed is None:
                high = level
            else:
                found = _one_by_one(self.program, self.per_level, self.deadline, packed)
                self.best = found if self._reached(found)[0] > low else self.best
                low = max(low, level)
            level = 0.5 * (low + high)

    def _divisible(self, need: FloatArray) -> Outcome:
        """Solve for divisible totals that have what each member needs, and take least of the servers."""
        first = self.totals.first[self.kept]
        rows = Rows()
        y = rows.columns(self.totals.upper[self.kept])
        self.totals.limit(rows, y, self.kept)
        each = rows.rows(self.member.size, need)
        rows.put(each[np.searchsorted(self.member, self.program.pair_users[first])], y, np.ones(y.size))
        cost = dict(zip(y.tolist(), (-self.totals.load[self.kept]).tolist(), strict=True))
        return rows.model(cost, relaxed=True).run(self.deadline.left)

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
            outcome = solved(outcome, self.deadline, self._known())
            fewest = round(float(outcome.x[below].sum()))
            x = self._spread(outcome)
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
            x = self._spread(solved(outcome, self.deadline, self._known()))
            if x is not None:
                return x

    def _spread(self, outcome: Outcome) -> FloatArray | None:
        """Return the tasks of these totals, (pairs,), or None where they do not fit."""
        return self.totals.spread(self._of_totals(np.round(outcome.x)), self.deadline, self._known())

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
        """Solve with one row a member: what it has >= what it needs, less what it may miss as an exception to this or an earlier need.

        needs[k] is due to all but allowed[k - 1] members: those of the levels so far, and the new one. Exceptions b[k] are nested, so that
        one row says it all: have[n] + sum over k of (needs[k][n] - needs[k-1][n]) b[k][n] >= needs[-1][n]. Nobody is an exception to the
        first need. Where nothing is said of the new need, its exceptions are minimised; else what the totals take of the servers is, up to
        a hundredth, so that they can be packed.
        """
        if self.deadline.left == 0.0:
            raise self.deadline.passed(self._known())
        needs = [*(self._at_least(level) for level in self.levels), need]
        scale = np.where(self.uneven, 1.0 / np.maximum(need, TINY), 1.0)
        first = self.totals.first[self.kept]
        position = np.searchsorted(self.member, self.program.pair_users[first])
        worth = np.where(self.uneven[position], self.per_level[first], 1.0) * scale[position]
        misses = [(later - earlier) * scale for earlier, later in pairwise(needs)]
        rounds = SETTINGS.rounds_of_totals if self.totals.cuts else 0
        while True:
            rows = Rows(self.branch_and_cut)
            y = rows.columns(self.totals.upper[self.kept])
            self.totals.limit(rows, y, self.kept)
            below = self._members(rows, y, position, worth, need * scale, misses, allowed)
            light = len(allowed) == len(self.levels)
            cost = (
                dict(zip(y.tolist(), (-self.totals.load[self.kept]).tolist(), strict=True))
                if light
                else dict.fromkeys(below.tolist(), -1.0)
            )
            model = rows.model(cost, relaxed=rounds > 0)
            if light and not rounds:
                model.set_options(mip_rel_gap=SETTINGS.light)
            if not light and not rounds and not self.totals.cuts:
                begin(model, partial(self._start, position, worth, [each * scale for each in needs[1:]]))
            outcome = model.run(self.deadline.left)
            self.runs += 1
            self.iterations += outcome.iterations
            if not rounds or outcome.status is Status.INFEASIBLE:
                return below, outcome
            solved(outcome, self.deadline, self._known())
            rounds = rounds - 1 if self.totals.tighten(self._of_totals(outcome.x), self.deadline, self._known()) else 0

    def _members(
        self,
        rows: Rows,
        columns: IntArray,
        position: IntArray,
        worth: FloatArray,
        need: FloatArray,
        misses: Sequence[FloatArray],
        allowed: Sequence[int],
    ) -> IntArray:
        """Add the row of each member: what its ``columns`` are worth, and its exceptions; return the exceptions to the last level."""
        size = self.member.size
        exceptions = [rows.columns(np.ones(size)) for _ in self.levels]
        each = rows.rows(size, need)
        rows.put(each[position], columns, worth)
        for k, own in enumerate(exceptions):
            rows.put(each, own, misses[k])
            rows.row(dict.fromkeys(own.tolist(), 1.0), upper=float(allowed[k]) if k < len(allowed) else float(size))
            if k:  # who is an exception to an earlier level is one to this
                nested = rows.rows(size, 0.0)
                rows.put(nested, own, np.ones(size))
                rows.put(nested, exceptions[k - 1], np.full(size, -1.0))
        return exceptions[-1] if exceptions else np.empty(0, np.int64)

    def _start(self, position: IntArray, worth: FloatArray, needs: Sequence[FloatArray]) -> FloatArray:
        """Return the best tasks as columns of `_run`: totals, and the members that miss each later need."""
        y = self.totals.gathered(self.best)[self.kept]
        have = np.bincount(position, weights=worth * y, minlength=self.member.size) * (1 + FITS)
        return np.concatenate([y, *((have < need).astype(float) for need in needs)])

    def _of_totals(self, x: FloatArray) -> FloatArray:
        y = np.zeros(self.totals.first.size)
        y[self.kept] = x[: self.kept.size]
        return y

    def _known(self) -> dict[str, object]:
        value = float(self.reached()[0]) if self.member.size else 0.0
        return {"levels": list(self.levels), "tasks": self.best.copy(), "value": value, "bound": max(value, self.bound)}


def _one_by_one(program: Program, per_level: FloatArray, deadline: Deadline, start: FloatArray | None = None) -> FloatArray:
    """Return whole tasks by progressive filling, (pairs,): always one for the user with the lowest level, on the first server with room."""
    limits = program.limits
    x = np.zeros(program.n_pairs) if start is None else start.copy()
    matrix, free = sp.csc_array(limits.matrix), limits.bounds * (1 + FITS) - limits.matrix @ x
    end = np.searchsorted(program.pair_users, np.arange(len(program.users)), side="right").tolist()
    # Level, user, and the first of its columns that may have room: what is full stays full.
    level_of = program.per_user(x * per_level).tolist()
    waiting = [(level_of[n], n, int(np.searchsorted(program.pair_users, n))) for n in program.members.tolist()]
    heapify(waiting)
    for _ in range(SETTINGS.greedy_tasks):
        if not waiting or not deadline.left:
            break
        level, n, p = heappop(waiting)
        while p < end[n]:
            entries = slice(matrix.indptr[p], matrix.indptr[p + 1])
            rows, sizes = matrix.indices[entries], matrix.data[entries]
            if (sizes <= free[rows]).all():
                free[rows] -= sizes
                x[p] += 1.0
                heappush(waiting, (level + float(per_level[p]), n, p))
                break
            p += 1
    return x
