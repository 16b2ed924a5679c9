"""Whole tasks by branch and cut, with totals on identical servers as columns: the integral leximin, and the integral total."""

from __future__ import annotations

from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import Feature, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import Outcome, Status, solved
from fairopt.solvers.via_highs.identical_servers import Totals
from fairopt.solvers.via_highs.rows import Maker, Rows, begin, by_highs
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.whole_levels import Condition, WholeLevels
from fairopt.solvers.via_highs.whole_starts import WholeStarts

__all__ = ["LevelsOfTotals", "solve_whole"]


def solve_whole(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Solve Total or Leximin over whole tasks; ``branch_and_cut`` solves the programs of whole numbers, HiGHS their bounds and packings."""
    if program.goal.feature is Feature.TOTAL:
        return _total(program, deadline, branch_and_cut)
    return LevelsOfTotals(program, deadline, branch_and_cut).solve()


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


class LevelsOfTotals(WholeLevels):
    """The search for levels with the totals on identical servers as columns."""

    def __init__(self, program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> None:
        worth = program.worth
        self.totals, self.branch_and_cut = _totals(program, worth), branch_and_cut
        super().__init__(program, deadline, self.totals.first, self.totals.upper, _one_by_one(program, worth, deadline))

    def first_bound(self) -> float:
        """Return the bound that divisible tasks give, narrowed in large programs."""
        self.bound = self.divisible_bound()
        if self.member.size and self.program.n_pairs >= SETTINGS.pairs_with_start and not self.uneven.any():
            self._narrow()
        return self.bound

    def divisible_bound(self) -> float:
        """Return the largest smallest level of divisible tasks, a bound on that of whole tasks; at the time limit, the bound so far."""
        if not self.member.size or self.deadline.left == 0.0:
            return self.bound
        rows = Rows()
        y = rows.columns(self.totals.upper[self.kept])
        level = rows.column(1.0)  # in parts of the bound so far
        self.totals.limit(rows, y, self.kept)
        each = rows.rows(self.member.size, 0.0)
        rows.put(each[self.position], y, self.per_column / self.bound)
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
        rows = Rows()
        y = rows.columns(self.totals.upper[self.kept])
        self.totals.limit(rows, y, self.kept)
        each = rows.rows(self.member.size, need)
        rows.put(each[self.position], y, np.ones(y.size))
        cost = dict(zip(y.tolist(), (-self.totals.load[self.kept]).tolist(), strict=True))
        return rows.model(cost, relaxed=True).run(self.deadline.left)

    def search(self, condition: Condition) -> tuple[IntArray, Outcome]:
        """Search totals, at first divisible ones, whose violated limits are added before whole ones are looked for.

        Unless exceptions are minimised, the totals take as little of the servers as they can, up to a hundredth, so that they can be
        packed.
        """
        rounds = SETTINGS.rounds_of_totals if self.totals.cuts else 0
        while True:
            rows = Rows(self.branch_and_cut)
            y = rows.columns(self.totals.upper[self.kept])
            self.totals.limit(rows, y, self.kept)
            below = condition.add_to(rows, y, self.position)
            of_exceptions = dict.fromkeys(below.tolist(), -1.0)
            of_load = dict(zip(y.tolist(), (-self.totals.load[self.kept]).tolist(), strict=True))
            model = rows.model(of_exceptions if condition.minimises else of_load, relaxed=rounds > 0)
            if not rounds and not condition.minimises:
                model.set_options(mip_rel_gap=SETTINGS.light)
            if not rounds and condition.minimises and not self.totals.cuts:
                begin(model, partial(self._start, condition))
            outcome = model.run(self.deadline.left)
            self.runs += 1
            self.iterations += outcome.iterations
            if not rounds or outcome.status is Status.INFEASIBLE:
                return below, outcome
            solved(outcome, self.deadline, self.known())
            rounds = rounds - 1 if self.totals.tighten(self._of_totals(outcome.x), self.deadline, self.known()) else 0

    def _start(self, condition: Condition) -> FloatArray:
        """Return the best tasks as columns of the search: totals, and the members that miss each later need."""
        y = self.totals.gathered(self.best)[self.kept]
        have = np.bincount(self.position, weights=condition.worth * y, minlength=self.member.size) * (1 + FITS)
        return np.concatenate([y, *((have < need * condition.scale).astype(float) for need in condition.needs[1:])])

    def spread(self, outcome: Outcome) -> FloatArray | None:
        """Return the tasks of these totals, (pairs,), or None where they do not fit."""
        return self.totals.spread(self._of_totals(np.round(outcome.x)), self.deadline, self.known())

    def _of_totals(self, x: FloatArray) -> FloatArray:
        y = np.zeros(self.totals.first.size)
        y[self.kept] = x[: self.kept.size]
        return y


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
