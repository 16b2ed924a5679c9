"""Filling a tree of queues by warm-started linear programs: those of the leximin, with rates that change after each level.

The loop over parts and levels is `fairopt.solvers.leximin.tree`. A limit on shares alone needs no row: the course knows when it is full.

*Restricted LPs* (column generation). Few of many pairs are used. The LPs begin with some pairs of each user, the cheapest ones. A pair is
added if, at the prices of the LP, a unit of level costs less on it than its user pays (negative reduced cost), and the LP goes on from its
last basis. Without such a pair the prices prove the level for all pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program import Limits, Program, Solution, Stage, TreeFilling
from fairopt.program.promises import Promise
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, Proof, Step, could_rise, settle_below
from fairopt.solvers.leximin.tree import Begin, TreeGoal, promises_alone, solve_tree, unit_of_part
from fairopt.solvers.via_highs.level_points import Point
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["promised_alone", "solve_filling"]

log = logging.getLogger(__name__)


def solve_filling(program: Program, goal: TreeFilling, tolerance: float, deadline: Deadline) -> Solution:
    """Fill a tree by LPs.

    Raises
    ------
    NoSolution
        At the deadline, or where HiGHS finds no solution of a program that has one.
    """
    made: list[_Steps] = []
    found = solve_tree(program, goal, _beginning(tolerance, deadline, made), settle_below(tolerance), deadline)
    return replace(
        found,
        iterations=found.iterations + sum(each.programs.iterations for each in made),
        programs_solved=found.programs_solved + sum(each.programs.programs for each in made),
    )


def promised_alone(
    program: Program, goal: TreeFilling, tolerance: float, deadline: Deadline
) -> tuple[tuple[Promise, ...], list[float], list[float]]:
    """Return the promises of a filling, their units, and the most that each could hold alone."""
    return promises_alone(program, goal, _beginning(tolerance, deadline, []), settle_below(tolerance), deadline)


def _beginning(tolerance: float, deadline: Deadline, made: list[_Steps]) -> Begin:
    """Return what makes the solvers of the parts of programs, each of which is put into ``made``."""

    def begin(_: Program) -> Callable[[Program, TreeGoal], _Steps]:
        of_this: list[_Steps] = []

        def solver_of(of_part: Program, level_goal: TreeGoal) -> _Steps:
            used = of_this[-1].used if of_this else np.empty(0, np.int64)
            of_this.append(_Steps(of_part, of_part.goal_as(TreeFilling), level_goal, settle_below(tolerance), deadline, used))
            made.append(of_this[-1])
            return made[-1]

        return solver_of

    return begin


class _Steps:
    """One LP a level, or as many as it takes until no pair that it lacks would help.

    Attributes
    ----------
    columns : int array
        The pairs that the LPs hold.
    used : int array
        The pairs that its last point uses.
    """

    def __init__(
        self, program: Program, goal: TreeFilling, level_goal: TreeGoal, settle_at: float, deadline: Deadline, used: IntArray
    ) -> None:
        self.program, self.goal, self.level_goal, self.settle_at, self.used = program, goal, level_goal, settle_at, used
        self.by_column = sp.csr_array(program.limits.matrix.T)
        self.largest, self.ahead = program.largest(), SETTINGS.ahead
        self.columns = np.arange(program.n_pairs) if program.n_pairs <= SETTINGS.all_pairs else self._cheapest(used)
        self.programs = LevelPrograms(self._problem(), deadline)
        self.free = np.full(len(program.users), np.inf)

    def _cheapest(self, used: IntArray) -> IntArray:
        """Return some pairs of each user: those used so far, the cheapest if every limit costs the same as a whole, and some at random."""
        program, limits = self.program, self.program.limits
        prices = np.divide(1.0, limits.bounds, out=np.zeros(len(limits)), where=limits.bounds > 0)
        cost = (self.by_column @ prices) / program.utilities
        cost[self.largest <= 0] = np.inf
        some = np.random.default_rng(0).random(cost.size)  # the same each time: users whose cheapest pairs are the same need others
        cheapest = _first_of_each(program.pair_users, cost, SETTINGS.cheapest_pairs)
        chosen = np.append(cheapest, _first_of_each(program.pair_users, some, SETTINGS.random_pairs))
        return np.union1d(chosen[np.isfinite(cost[chosen])], used)

    def _problem(self) -> LevelProblem:
        program, columns = self.program, self.columns
        if columns.size == program.n_pairs:
            return LevelProblem.of(program, self.goal)
        limits = program.limits
        matrix = sp.csr_array(limits.matrix[:, columns])
        some = replace(
            program,
            pair_users=program.pair_users[columns],
            pair_servers=program.pair_servers[columns],
            utilities=program.utilities[columns],
            limits=Limits(matrix, limits.bounds, limits.kinds, limits.keys),
        )
        return LevelProblem.of(some, self.goal)

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve the LPs of a course, up to the next change of its rates."""
        programs = self.programs
        change, now = self.level_goal.event(course)[0], self.level_goal.now
        programs.prepare(course, unit_of_part(programs.problem.reach, np.where(course.rising, course.rate, 0.0)))
        while True:
            programs.bound_t(self._beyond(now, change))
            point = programs.solve(course, None, stages)
            lowered = course.lowered(point.levels)
            proof = programs.proof(lowered, point, self.free)
            if point.t > change:
                self.ahead *= SETTINGS.further
                return self._step(point, proof, course)
            if self.columns.size == self.program.n_pairs:
                break
            cheaper = self._cheaper(proof.prices, programs.paid(point))
            if not cheaper.size:
                break
            self._add(cheaper, course)
        return self._step(*self._sharper(course, point, proof), course)

    def _beyond(self, now: float, change: float) -> float:
        """Return a bound of t beyond the next change of rates; if an LP reaches it, its prices are not needed."""
        apart = change < np.inf and change - now > SETTINGS.apart * max(change, self.programs.t_unit)
        return now + self.ahead * (change - now) if apart else np.inf

    def _step(self, point: Point, proof: Proof, course: Course) -> Step:
        """Return what a point of the LPs shows."""
        x = np.zeros(self.program.n_pairs)
        x[self.columns] = point.x
        self.used = np.flatnonzero(x)
        return Step(x, point.levels, point.t, self._for_all(course.lowered(point.levels), proof))

    def _sharper(self, course: Course, point: Point, proof: Proof) -> tuple[Point, Proof]:
        """Return the point with prices of more digits, where those that it has stop nobody."""
        lowered = course.lowered(point.levels)
        if (could_rise(lowered, point.t, proof) <= self.settle_at).any():
            return point, proof
        point = self.programs.sharper(lowered, point)
        return point, self.programs.proof(course.lowered(point.levels), point, self.free)

    def _cost(self, prices: FloatArray) -> FloatArray:
        """Return the price of a unit of level on each pair, (pairs,); inf on those that can carry nothing."""
        return np.where(self.largest > 0, (self.by_column @ prices) / self.program.utilities, np.inf)

    def _cheaper(self, prices: FloatArray, pays: FloatArray) -> IntArray:
        """Return pairs that the LPs lack and that cost less than their users pay, a few of each user."""
        cost, paid = self._cost(prices), pays[self.program.pair_users]
        cheaper = np.flatnonzero(cost < paid * (1 - SETTINGS.cheaper))
        cheaper = np.setdiff1d(cheaper, self.columns, assume_unique=True)
        if not cheaper.size:
            return cheaper
        users = self.program.pair_users[cheaper]
        return cheaper[_first_of_each(users, cost[cheaper] / paid[cheaper], SETTINGS.added_pairs)]

    def _add(self, pairs: IntArray, course: Course) -> None:
        """Add pairs, and go on from the basis of the last LP."""
        programs = self.programs
        before, unit, basis = self.columns, programs.t_unit, programs.basis
        self.columns = np.union1d(before, pairs)
        log.debug("%d pairs added, %d in the LP", pairs.size, self.columns.size)
        room = self.largest > 0
        new = ~np.isin(self.columns[room[self.columns]], before)
        programs.go_on(self._problem(), course, unit, basis, new)

    def _for_all(self, course: Course, proof: Proof) -> Proof:
        """Return what the prices prove where users may use all pairs."""
        if self.columns.size == self.program.n_pairs:
            return proof
        q = self.program.cheapest(self._cost(proof.prices))
        return Proof.of(course, proof.prices, q, float(proof.prices @ self.program.limits.bounds))


def _first_of_each(users: IntArray, value: FloatArray, number: int) -> IntArray:
    """Return the positions of each user's smallest values, at most so many of each."""
    order = np.lexsort((value, users))
    sorted_users = users[order]
    start = np.flatnonzero(np.diff(sorted_users, prepend=-1))
    place = np.arange(order.size) - np.repeat(start, np.diff(np.append(start, order.size)))
    return order[place < number]
