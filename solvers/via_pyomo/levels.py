"""The levels of a leximin as one Pyomo model, whose rows of users change from level to level.

The loop is that of `fairopt.solvers.leximin.levels`. The multipliers that a Pyomo solver gives prove each level; without them there is no
leximin.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairopt.errors import FairoptError
from fairopt.instance import FloatArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage, TreeFilling
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.leximin.levels import Course, Proof, Step, Together, settle_below
from fairopt.solvers.leximin.levels import solve_levels as by_levels
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree
from fairopt.solvers.via_pyomo import model as pyomo_model
from fairopt.solvers.via_pyomo import running

__all__ = ["solve_filling", "solve_levels"]


def solve_levels(program: Program, goal: Leximin | Equalize, engine: Any, tolerance: float, deadline: Deadline) -> Solution:
    """Return the leximin, or the equal level, by one of Pyomo's solvers.

    Raises
    ------
    NoSolution
        At the deadline.
    FairoptError
        Where the solver fails, or gives no multipliers.
    """
    per_level = program.worth
    solver = _Levels(program, goal, per_level, engine, deadline)
    together = Together(solver.reach > 0, goal.is_equal)
    found = by_levels(program, per_level, solver, together, settle_below(tolerance))
    return dataclasses.replace(found, programs_solved=solver.programs)


def solve_filling(program: Program, goal: TreeFilling, engine: Any, tolerance: float, deadline: Deadline) -> Solution:
    """Return the filling of a tree of queues, each part as a model of its own."""
    made: list[_Levels] = []

    def solver_of(of_part: Program, _: TreeGoal) -> _Levels:
        alike = Leximin(np.ones(len(program.users)))  # what a level is; the course says who rises how fast
        made.append(_Levels(dataclasses.replace(of_part, goal=alike), alike, of_part.utilities, engine, deadline))
        return made[-1]

    found = solve_tree(program, goal, lambda _: solver_of, settle_below(tolerance), deadline)
    return dataclasses.replace(found, programs_solved=found.programs_solved + sum(each.programs for each in made))


class _Levels:
    """The model, in units of one level for all, and on which course its rows are."""

    def __init__(self, program: Program, goal: Leximin | Equalize, per_level: FloatArray, engine: Any, deadline: Deadline) -> None:
        self.program, self.engine, self.deadline = program, engine, deadline
        largest = program.largest()
        self.reach = program.per_user(largest * per_level)
        members = self.reach > 0
        self.unit = float(self.reach[members].min()) / max(1, int(members.sum())) ** 0.5
        self.scale = np.where(largest > 0, np.minimum(self.unit / per_level, largest), 1.0)
        self.weights = goal.weights * self.unit
        self.scaled = pyomo_model.in_units(program, self.scale, dataclasses.replace(goal, weights=self.weights))
        self.per_level = per_level * self.scale / self.unit
        self.room = largest > 0
        self.model = pyomo_model.with_duals(pyomo_model.build(self.scaled))
        self.variables = list(self.model.x.values())
        self.written = Course.together(members)
        self.programs = 0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve one LP."""
        program, scaled, unit = self.program, self.scaled, self.unit
        self._write(course)
        status, _ = running.run(self.model, self.engine, self.deadline.left)
        running.require_solved(status, self.deadline, final_levels(program, stages))
        self.programs += 1
        y = np.maximum(running.values(self.variables), 0.0) * self.room
        y /= max(1.0, float((scaled.limits.matrix @ y).max(initial=0.0)))
        levels, up = program.per_user(y * self.per_level) * unit, course.rising & (course.rate > 0)
        prices = pyomo_model.prices(self.model, scaled)
        q = np.where(self.reach > 0, program.cheapest((scaled.limits.matrix.T @ prices) / self.per_level / unit), 0.0)
        if not scaled.goal.is_equal and not q[up].any():
            raise FairoptError("Pyomo's solver gave no multipliers, which prove a leximin; use another solver")
        t = course.reached(levels, running.values([self.model.level])[0] * unit)
        full = prices * unit / np.where(program.limits.bounds > 0, program.limits.bounds, 1.0)
        proof = Proof.of(course.lowered(levels), full, q, float(prices @ scaled.limits.bounds))
        return Step(y * self.scale, levels, t, proof)

    def _write(self, course: Course) -> None:
        """Bring the rows of users up to date."""
        model, before = self.model, self.written
        for n in np.flatnonzero((course.start != before.start) | (course.rate != before.rate)):
            name = self.program.users[n]
            share = model.utility[name] / float(self.weights[n])
            model.share[name].set_value(share >= float(course.start[n]) / self.unit + float(course.rate[n]) * model.level)
        self.written = course
