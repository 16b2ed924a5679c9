r"""Finish times: the leximin of z / (1 + delay z), z = U / weights, level by level, by Newton's method.

For a given ratio rho the z that reach it are constants, need[n](rho) = 1 / (rho - delay[n]), at most the cap of who has finite tasks. For
a guess of the next ratio an LP gives the largest theta with z[n] >= theta need[n] for all who rise and z[n] >= what they have for all who
are settled. Its prices q bound the ratio, whatever the guess was:

    rho >= the smallest rho with  sum of q[n] need[n](rho) over users who rise  <=  p.b - sum of q z over the settled ones.

This bound is the next guess. As every need is convex, the bounds rise to the ratio, quadratically in the end. At theta = 1 the prices
settle users as those of any leximin do (`fairopt.solvers.leximin.levels`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import EXACT, ROUNDING
from fairopt.program import FinishTimes, Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, exactly, settle_below
from fairopt.solvers.leximin.polish import on_levels
from fairopt.solvers.via_highs.level_points import Point
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.levels import settled_by_prices
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["solve_finish_times"]


log = logging.getLogger(__name__)


def solve_finish_times(program: Program, goal: FinishTimes, tolerance: float, deadline: Deadline) -> Solution:
    """Return the answer with its levels; prices are those of the limits of the program."""
    problem = LevelProblem.of(program, Leximin(goal.weights))
    programs = LevelPrograms(problem, deadline)
    needs, settle_at = _Needs.of(problem, goal), settle_below(tolerance)
    course, stages = Course.together(problem.members), list[Stage]()
    x, rho = np.zeros(program.n_pairs), 0.0
    while course.rising.any():
        needs = replace(needs, rising=course.rising)
        first = rho - needs.longest if rho else 0.0
        reached, course, point, lead = _next_level(programs, needs, course, first, stages)
        x, rho = point.x, needs.longest + lead
        at_cap = needs.reached_caps(lead)
        if reached and at_cap.size:  # whatever stops the others
            course = course.settled(at_cap, needs.cap[at_cap])
            continue
        course, point, proof, users = settled_by_prices(programs, course, point, None, settle_at)
        if reached and proof.bound <= point.t * (1 + SETTINGS.reached):  # whoever pays is stopped; the polish has the digits
            users = np.union1d(users, np.flatnonzero(course.rising)[proof.stops(course, point.t)])
        x, z = point.x, course.at(point.t)
        stages.append(Stage(float(goal.levels(z * goal.weights)[users].min()), users, proof.prices))
        course = course.settled(users, z[users])
        log.info("level %d: %.6g, %d users left", len(stages), stages[-1].value, int(course.rising.sum()))
        if course.rising.any():
            course = _to_the_last_digit(programs, course, goal, Solution(x, tuple(stages)))
            if reached:
                programs.narrow(course, proof)
    x = exactly(program, problem.per_level, x, course.start)
    return Solution(x, tuple(stages), iterations=programs.iterations, programs_solved=programs.programs)


@dataclass(frozen=True, slots=True, eq=False)
class _Needs:
    """The z that the next level needs of users who rise, (users,), for a ``lead`` y >= 0 of its ratio rho = 1 / t over the longest delay.

    They are 1 / (y + longest delay - delay), at most the ``cap``. In t, digits would be lost: a user who waited 10^6 times as long as it
    takes alone comes from half of its level to the whole by the seventh digit of t.
    """

    delay: FloatArray
    cap: FloatArray
    reach: FloatArray
    rising: BoolArray

    @classmethod
    def of(cls, problem: LevelProblem, goal: FinishTimes) -> _Needs:
        return cls(goal.delay, problem.own.caps()[0], problem.reach, problem.members)

    @property
    def longest(self) -> float:
        """The longest delay of users who rise."""
        return float(self.delay[self.rising].max())

    def at(self, lead: float) -> FloatArray:
        """Return what a level needs; 0 of who is settled, inf where nothing reaches it and there is no cap."""
        left = lead + np.maximum(self.longest - self.delay, 0.0)
        z = np.minimum(np.divide(1.0, left, out=np.full(left.size, np.inf), where=left > 0), self.cap)
        return np.where(self.rising, z, 0.0)

    def reached_caps(self, lead: float) -> IntArray:
        """Return who rises and needs its cap."""
        return np.flatnonzero(self.rising & (self.at(lead) >= self.cap * (1 - ROUNDING)))

    def least(self) -> float:
        """Return a lead that no level can be below: that of what a user without a cap reaches alone, and else of what all reach."""
        z = np.minimum(self.cap, self.reach)[self.rising]
        alone = 1 / z + self.delay[self.rising] - self.longest
        endless = np.isinf(self.cap[self.rising])
        return max(0.0, float(alone.min()), float(alone.max(initial=0.0, where=endless)))

    def bound(self, q: FloatArray, left: float, least: float) -> float:
        """Return the smallest lead, from ``least`` on, whose needs cost no more than what is left."""
        pays = self.rising & (q > 0)
        price, gap, cap = q[pays], self.longest - self.delay[pays], self.cap[pays]

        def costs(lead: float) -> float:
            with np.errstate(divide="ignore"):
                return float(price @ np.minimum(1 / (lead + gap), cap))

        if costs(least) <= left:
            return least
        low, high = least, max(2 * least, 1.0)
        while costs(high) > left and np.isfinite(high):
            low, high = high, 4 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if costs(middle) <= left else (middle, high)
        return low


def _to_the_last_digit(programs: LevelPrograms, course: Course, goal: FinishTimes, solution: Solution) -> Course:
    """Return the course on which settled users have the levels that solve their equations, if these can be had together.

    What a level lacks in the tenth digit, the next levels have too much, and users with a millionth of it have too much in the fourth.
    """
    problem, last = programs.problem, programs.last
    x = on_levels(problem.program, solution, course.rising, goal.delay)
    if x is None or last is None:
        return course
    settled = ~course.rising & (course.start > 0)
    limits = problem.program.limits
    used = limits.used(np.where(settled[problem.program.pair_users], x, 0.0))
    most = float(np.divide(used, limits.bounds, out=np.ones(used.size), where=limits.bounds > 0).max(initial=1.0))
    if most > 1 + EXACT:
        return course
    programs.last, programs.slack = replace(last, x=x / most), 0.0
    return replace(course, start=np.where(settled, problem.program.per_user(x * problem.per_level) / most, course.start))


def _next_level(
    programs: LevelPrograms, needs: _Needs, course: Course, first: float, stages: list[Stage]
) -> tuple[bool, Course, Point, float]:
    """Return whether its prices prove the next level, the course to it, a point of it, and its lead; ``first`` is the first guess."""
    least = needs.least()
    guess, off = max(first, least), np.inf
    for step in range(SETTINGS.most_steps):
        course = replace(course, rate=needs.at(guess))
        programs.in_units_of(course)
        programs.prepare(course, 1.0)
        point = programs.solve(course, None, stages)
        course = course.lowered(point.levels)
        _, q, _ = programs.prices(point)
        left = point.t * float(q @ course.rate)  # p.b - sum of q z, without the rounding of the difference
        following = needs.bound(q, left, least)
        log.debug("lead %.12g, part %.15g, next %.12g", guess, point.part, following)
        before, off, reached = off, abs(point.t - 1), point.t >= 1 - SETTINGS.reached
        stalled = step == SETTINGS.most_steps - 1 or following == guess or (before <= SETTINGS.near_whole and off >= before / 2)
        if off <= SETTINGS.reached or stalled or (reached and needs.reached_caps(guess).size):
            break
        guess = following
    return reached, course, point, guess
