"""Filling a tree of queues by warm-started linear programs: those of the leximin, with rates that change after each level.

The loop over parts and levels is `fairopt.solvers.leximin.tree`. A limit that is nothing but a cap on a share needs no row: the course
knows when a user has all its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairopt.program import Program, Solution, Stage, TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, Step, settle_below
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree
from fairopt.solvers.via_highs.level_programs import LevelProblem, LevelPrograms

__all__ = ["solve_filling"]


def solve_filling(program: Program, goal: TreeFilling, tolerance: float, deadline: Deadline) -> Solution:
    """Fill a tree by the LPs of all users.

    Raises
    ------
    NoSolution
        At the deadline, or where HiGHS finds no solution of a program that has one.
    """
    made: list[LevelPrograms] = []

    def solver_of(of_part: Program, _: TreeGoal) -> _Steps:
        made.append(LevelPrograms(LevelProblem.of(of_part, goal), deadline))
        return _Steps(made[-1], settle_below(tolerance))

    found = solve_tree(program, goal, solver_of, settle_below(tolerance))
    return replace(found, iterations=sum(each.iterations for each in made), programs_solved=sum(each.programs for each in made))


class _Steps:
    """One LP a level."""

    def __init__(self, programs: LevelPrograms, settle_at: float) -> None:
        self.programs, self.settle_at = programs, settle_at
        self.free = np.full(len(programs.problem.program.users), np.inf)

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve the LP of a course."""
        programs = self.programs
        programs.prepare(course, self._unit(course))
        point = programs.solve(course, None, stages)
        lowered = course.lowered(point.levels)
        proof = programs.proof(lowered, point, self.free)
        climbing = course.rising & (course.rate > 0)
        could = proof.rises(lowered, point.t)[climbing[course.rising]] * course.rate[climbing]
        if (could > self.settle_at * lowered.size(point.t)[climbing]).all():
            point = programs.sharper(lowered, point)
            lowered = lowered.lowered(point.levels)
            proof = programs.proof(lowered, point, self.free)
        return Step(point.x, point.levels, point.t, proof)

    def _unit(self, course: Course) -> float:
        """Return a t between that of everybody's slice by rate and that of what the least can reach alone."""
        up = course.rising & (course.rate > 0)
        rate = course.rate[up]
        alone = self.programs.problem.reach[up] / rate
        return float(np.sqrt((alone * rate / rate.sum()).min() * alone.min()))
