"""Filling a tree of queues, part by part, by the loop over levels (`fairopt.solvers.leximin.levels`).

`TreeGoal` is the course of one part: rates of the tree, renewed after each level. An engine supplies a solver of levels for the program
of each part, that is, with its extra limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS
from fairopt.program import Limits, Program, Solution, Stage
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import TreeCourse, TreeFilling
from fairopt.solvers.leximin.levels import Course, LevelSolver, Step, exactly, raise_levels
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["TreeGoal", "solve_tree", "unit_of_part"]


def unit_of_part(reach: FloatArray, rate: FloatArray) -> float:
    """Return a t of about the right size: between that of everybody's slice by rate and that of what the least can reach alone.

    Parameters
    ----------
    reach, rate : arrays (users,)
        What users can reach alone, and their rates; those with a rate <= 0 do not count.

    >>> unit_of_part(np.array([4.0, 4.0]), np.array([1.0, 1.0]))
    2.8284271247461903
    """
    up = rate > 0
    alone = reach[up] / rate[up]
    return float(np.sqrt((alone * rate[up] / rate[up].sum()).min() * alone.min()))


class TreeGoal:
    """The course through one part of a filling.

    Attributes
    ----------
    way : TreeCourse
    x : array (pairs,)
        The last point. Users have at least what they have on the course now, for engines that go on from there.
    """

    equal = False

    def __init__(self, way: TreeCourse, x: FloatArray) -> None:
        self.way, self.x = way, x
        self._event: tuple[float, IntArray] | None = None

    @property
    def now(self) -> float:
        """The t of the last level."""
        return self.way.t

    def begin(self) -> Course:
        """From what earlier parts gave."""
        return self._course()

    def event(self, course: Course) -> tuple[float, IntArray]:
        """Return when a limit on shares is full, or somebody has caught up with a sibling who waits."""
        if self._event is None:
            self._event = self.way.event()
        return self._event

    def renew(self, course: Course, t: float) -> Course:
        """Return the course at new rates. It counts t on: the start is where users would have been at t = 0."""
        way, self._event = self.way, None
        way.advance(t)
        way.stop(np.flatnonzero(way.rising & ~course.rising))
        renewed = self._course()
        return replace(renewed, start=np.where(course.rising, renewed.start, course.start))

    def _course(self) -> Course:
        way = self.way
        return Course(way.rising.copy(), way.shares.users - way.rate * way.t, way.rate, way.least)


def solve_tree(program: Program, goal: TreeFilling, solver_of: Callable[[Program, TreeGoal], LevelSolver], settle_at: float) -> Solution:
    """Fill a tree.

    Parameters
    ----------
    program : Program
    goal : TreeFilling
    solver_of : function
        From the program of a part, which has its extra limits, and the course to the engine's solver.
    settle_at : float
        Who can rise by less, relative to its share, is settled.
    """
    per_level, most = program.utilities, program.per_user(program.largest() * program.utilities)
    shares, stages = goal.nothing(), tuple[Stage, ...]()
    x, before, ends = np.zeros(program.n_pairs), None, list[FloatArray]()
    for number, part in enumerate(goal.parts):
        extra = part.limits(before)
        of_part = program if extra is None else _with_guarantees(program, extra, part.names)
        room = most if extra is None else program.per_user(of_part.largest() * per_level)
        way = goal.course(part, shares, room > 0, most, ShareLimits.of(of_part))
        if way.rising.any():
            level_goal = TreeGoal(way, x)
            solver = _Ahead(of_part, level_goal, solver_of(of_part, level_goal))
            x, course, stages = raise_levels(x, solver, level_goal, settle_at, stages, number)
            x = exactly(program, per_level, x, course.start)
        shares = way.shares
        before = x
        ends.append(x)
    return Solution(x, stages, parts=tuple(ends))


class _Ahead:
    """The solver of a part; it is called only if no point beyond the next change of rates is known.

    During much of a filling, all servers have room. Then the last point may already lie beyond the change. If not, each user is put on all
    its servers, in proportion to what it could run there alone. If that does not fit, users continue from the last point: in a
    few rounds, each gets its missing tasks on servers with room. Points are computed further ahead than the next change, so that one point
    serves several changes.
    """

    def __init__(self, program: Program, goal: TreeGoal, engine: LevelSolver) -> None:
        self.program, self.goal, self.engine = program, goal, engine
        self.shares: FloatArray | None = program.per_user(goal.x * program.utilities)
        self.even = _slices(program, program.largest())
        limits = goal.way.limits
        assert limits is not None
        rows = ~limits.rows  # of the others the course knows that shares are within them
        self.matrix, self.bounds = sp.csr_array(program.limits.matrix[rows]), program.limits.bounds[rows]
        self.by_pair = sp.csr_array(self.matrix.T)
        self.measured = bool((np.diff(self.by_pair.indptr) > 0).all())  # has each pair such a row, so that its room can be told?
        self.ahead = 1.0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Return a point beyond the next change of rates, where one is known; else ask the engine."""
        goal, change = self.goal, self.goal.event(course)[0]
        beyond = float(np.nextafter(change, np.inf))
        if change < np.inf:
            if self.shares is not None and (self.shares >= course.at(change) * (1 - DIGITS)).all():
                return Step(goal.x, self.shares, beyond)
            found = self._guess(course, change)
            if found is not None:
                goal.x, self.shares = found
                return Step(goal.x, self.shares, beyond)
        step = self.engine.step(course, stages)
        if step.x is not goal.x:
            goal.x, self.shares = step.x, step.levels
        return step

    def _guess(self, course: Course, change: float) -> tuple[FloatArray, FloatArray] | None:
        """Return a point with the shares of a course at a change of rates or beyond, and these shares; None if none is found."""
        now = self.goal.now
        for ahead in (self.ahead, 1.0) if self.ahead > 1 else (1.0,):
            shares = course.at(now + ahead * (change - now)) if ahead > 1 else course.at(change)
            found = self._point(shares, self.goal.x)
            if found is not None:
                self.ahead = ahead * SETTINGS.further
                return found, shares
        self.ahead = 1.0
        return None

    def _point(self, shares: FloatArray, x: FloatArray) -> FloatArray | None:
        even = self.even * shares[self.program.pair_users]
        if self._fits(even):
            return even
        return self._onwards(shares, x) if self.measured else None

    def _fits(self, x: FloatArray) -> bool:
        return bool((self.matrix @ x <= self.bounds).all())

    def _onwards(self, shares: FloatArray, x: FloatArray) -> FloatArray | None:
        program, users = self.program, self.program.pair_users
        has = program.per_user(x * program.utilities)
        x = x * np.divide(shares, has, out=np.ones(has.size), where=has > shares)[users]
        lacks = np.maximum(shares - has, 0.0)
        for _ in range(SETTINGS.rounds_of_guess):
            left = np.maximum(self.bounds - self.matrix @ x, 0.0)
            room = np.minimum.reduceat(left[self.by_pair.indices] / self.by_pair.data, self.by_pair.indptr[:-1])
            slices = _slices(program, room)
            if (program.per_user(slices)[lacks > 0] == 0).any():
                return None
            x = x + slices * lacks[users] / SETTINGS.rounds_of_guess
        return x if self._fits(x) else None


def _slices(program: Program, room: FloatArray) -> FloatArray:
    """Return x for a share of 1, divided over the servers of each user by the ``room`` of its pairs, (pairs,)."""
    most = program.per_user(room * program.utilities)[program.pair_users]
    return np.divide(room, most, out=np.zeros(room.size), where=most > 0)


def _with_guarantees(program: Program, extra: Limits, names: tuple[str, ...]) -> Program:
    """Return the program with the extra limits of a part behind its own."""
    keys = extra.keys.copy()
    keys[:, 0] += len(program.queue_limits)
    numbered = replace(extra, keys=keys)
    return replace(program, limits=Limits.stack([program.limits, numbered]), queue_limits=program.queue_limits + names)
