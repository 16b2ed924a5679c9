"""Filling a tree of queues over any polytope A x <= b, x >= 0: the loop of `fairopt.solvers.leximin.tree`, with one program a level.

The course gives the least that each user must have. Rules may force a user to have more: it rests until its share on the course has caught
up. In the end nobody has more beyond its share on the course than rules force, in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.program import Program, Solution, Stage
from fairopt.program.tree_filling import TreeFilling
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.leximin.levels import Course, Proof, Step, settle_below
from fairopt.solvers.leximin.ruled import LinearProgram, Scaled, shares_of_users, solve_ruled
from fairopt.solvers.leximin.settings import SETTINGS
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree

__all__ = ["solve_by_programs"]


def solve_by_programs(program: Program, solve: LinearProgram, tolerance: float, deadline: Deadline) -> Solution:
    """Return the leximin, the largest total, or the filled tree, of a program with rules, by one linear program a level.

    Raises
    ------
    NoSolution
        At the deadline; whatever ``solve`` raises where nothing is feasible.
    """
    goal = program.goal
    if not isinstance(goal, TreeFilling):
        return solve_ruled(program, solve, deadline)
    made: list[_Levels] = []

    def solver_of(of_part: Program, level_goal: TreeGoal) -> _Levels:
        made.append(_Levels(of_part, level_goal, solve, deadline))
        return made[-1]

    found = solve_tree(program, goal, lambda _: solver_of, settle_below(tolerance), deadline, lambda of, shares: _least(of, shares, solve))
    return replace(found, programs_solved=2 + found.programs_solved + sum(each.programs for each in made))


class _Levels:
    """The programs of the levels of a part."""

    def __init__(self, program: Program, goal: TreeGoal, solve: LinearProgram, deadline: Deadline) -> None:
        self.program, self.goal, self.solve, self.deadline = program, goal, solve, deadline
        self.scaled = Scaled.of(program)
        self.own, self.members, self.reach = shares_of_users(self.scaled, program.utilities)
        self.open = program.largest() > 0
        self.programs = 0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Maximise t with everybody at least on its course."""
        if self.deadline.left == 0.0:
            raise self.deadline.passed(final_levels(self.program, stages))
        program, scaled, members, now = self.program, self.scaled, self.members, self.goal.now
        rate = np.where(course.rising, course.rate, 0.0)[members]
        reach = self.reach[members]
        least = np.where(course.rising, course.at(now), course.start)[members]
        up = rate > 0
        unit = float((reach[up] / rate[up]).min()) / float(up.sum()) ** 0.5
        climb = rate * unit / reach
        matrix = sp.block_array([[scaled.matrix, None], [-self.own, sp.csr_array(climb[:, None])]], format="csr")
        z, prices = self.solve(np.append(np.zeros(scaled.columns.size), 1.0), matrix, np.concatenate([scaled.right, -least / reach]))
        self.programs += 1
        x, t = scaled.point(z[:-1]), now + float(z[-1]) * unit
        rows = scaled.size.size
        pays = np.maximum(prices[rows:], 0.0) * climb  # of those who rise they sum to 1
        clearly = up & (pays >= SETTINGS.clearly_paying / int(up.sum()))
        stopped = members[clearly if clearly.any() else up & (pays >= pays[up].max())]
        of_limits = np.maximum(prices[:rows], 0.0) / scaled.size * unit  # by a unit of t
        cost = np.where(self.open, np.asarray(program.limits.transposed @ of_limits) / program.utilities, np.inf)
        proof = Proof(of_limits, np.maximum(program.cheapest(cost), 0.0), float(of_limits @ np.abs(program.limits.bounds)), t)
        return Step(x, program.per_user(x * program.utilities), t, proof, stopped)


def _least(program: Program, shares: FloatArray, solve: LinearProgram) -> FloatArray:
    """Return a point in which users have these shares, (users,), and no more beyond them, in all, than rules force."""
    scaled = Scaled.of(program)
    own, members, reach = shares_of_users(scaled, program.utilities)
    least: FloatArray = shares[members] / reach[members]
    cost = -np.asarray(own.sum(axis=0), float).ravel()
    z, _ = solve(cost, sp.csr_array(sp.vstack([scaled.matrix, -own])), np.append(scaled.right, -least))
    return scaled.point(z)
