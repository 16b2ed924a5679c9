"""Filling a tree of queues, part by part, by the loop over levels (`fairopt.solvers.leximin.levels`).

`TreeGoal` is the course of one part: rates of the tree, renewed after each level. An engine supplies a solver of levels for the program
of each part, that is, with its extra limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program import Limits, Program, Solution, Stage
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import TreeCourse, TreeFilling
from fairopt.solvers.leximin.levels import Course, LevelSolver, exactly, raise_levels

__all__ = ["TreeGoal", "solve_tree"]


class TreeGoal:
    """The course through one part of a filling."""

    equal = False

    def __init__(self, way: TreeCourse) -> None:
        self.way = way

    @property
    def now(self) -> float:
        """The t of the last level."""
        return self.way.t

    def begin(self) -> Course:
        """From what earlier parts gave."""
        return self._course()

    def event(self, course: Course) -> tuple[float, IntArray]:
        """Return when a limit on shares is full, or somebody has caught up with a sibling who waits."""
        return self.way.event()

    def renew(self, course: Course, t: float) -> Course:
        """Return the course at new rates. It counts t on: the start is where users would have been at t = 0."""
        way = self.way
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
            level_goal = TreeGoal(way)
            x, course, stages = raise_levels(x, solver_of(of_part, level_goal), level_goal, settle_at, stages, number, _Even(of_part))
            x = exactly(program, per_level, x, course.start)
        shares = way.shares
        before = x
        ends.append(x)
    return Solution(x, stages, parts=tuple(ends))


class _Even:
    """Points on which each user is on all its servers, on each as far as it could be alone there. Half a cluster is often divided so."""

    def __init__(self, program: Program) -> None:
        self.program = program
        largest = program.largest()
        most = program.per_user(largest * program.utilities)[program.pair_users]
        self.slices = np.divide(largest, most, out=np.zeros(largest.size), where=most > 0)

    def __call__(self, shares: FloatArray) -> FloatArray | None:
        """Return the point with these shares, None where it is not feasible."""
        x = self.slices * shares[self.program.pair_users]
        return x if (self.program.limits.matrix @ x <= self.program.limits.bounds).all() else None


def _with_guarantees(program: Program, extra: Limits, names: tuple[str, ...]) -> Program:
    """Return the program with the extra limits of a part behind its own."""
    keys = extra.keys.copy()
    keys[:, 0] += len(program.queue_limits)
    numbered = replace(extra, keys=keys)
    return replace(program, limits=Limits.stack([program.limits, numbered]), queue_limits=program.queue_limits + names)
