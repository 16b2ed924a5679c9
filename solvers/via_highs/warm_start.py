"""A sequence of leximins on the same columns and limits, for users with varying numbers of tasks: each starts from the last one.

Between two moments of a simulation the numbers of tasks of users change, and sometimes weights. In the linear programs of
`fairopt.solvers.via_highs.level_programs` these are bounds of the users' rows and the coefficients of t, so the model is built once, and

* the first program of a moment starts at the optimal basis of the first program of the last moment. Only bounds differ, so this basis is
  still dual feasible, and dual simplex needs few pivots;
* users whose caps lie below the first level of the last moment are settled at their caps *before* the first program. That is a guess. If
  its level t is below some of these caps, their users are released, and it is solved again. Once none of these caps lies above t, some
  allocation gives these users their caps and all others t, so t is at most the first level, and the usual loop goes on from there. If the
  guess makes the program infeasible, nobody is settled.

The answer is a solution of the program like that of any engine, and its certificate is computed from its prices: nothing relies on the
guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Feature, Leximin, LimitKind, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, Step, Together, settle_below, solve_levels
from fairopt.solvers.via_highs.kept_basis import KeptBasis, LevelSystem
from fairopt.solvers.via_highs.level_points import Point
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.levels import reached_caps
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["RepeatedLevels"]


class RepeatedLevels:
    """The leximins of programs that differ only in the numbers of tasks of their users, and in weights.

    Parameters
    ----------
    program : Program
        One that `suits`.
    """

    def __init__(self, program: Program) -> None:
        goal = program.goal_as(Leximin)
        self.weights = self.weights_of_programs = goal.weights
        problem = LevelProblem.of(program, goal)
        self.programs = LevelPrograms(problem, Deadline(None))
        if problem.members.any():
            self.programs.prepare(Course.together(problem.members), problem.first_unit())
        self.task_share = program.per_user(program.utilities) / np.maximum(program.per_user(np.ones(program.n_pairs)), 1.0)
        self.first_level, self.first_basis = 0.0, None  # of the last moment
        self.system = LevelSystem.of(problem, self.weights)
        self.kept: dict[bool, KeptBasis] = {}  # the last bases with a level, and without one

    @staticmethod
    def suits(program: Program) -> bool:
        """Is the goal a leximin, and has each user in it a limit > 0 on its tasks, worth the same everywhere, and no other of its own?"""
        if program.goal.feature is not Feature.LEXIMIN or program.integral or not program.n_pairs:
            return False
        limits, own = program.limits, OwnLimits(program, program.utilities)
        of_tasks = (limits.kinds[own.rows] == LimitKind.TASKS) & own.even
        return bool(of_tasks.all() and np.isin(program.members, own.users[own.bounds > 0]).all())

    def solve_again(self, tasks: FloatArray, weights: FloatArray) -> tuple[Program, Solution]:
        """Return the program with these tasks, finite and >= 0 and not all 0, and these weights, (users,), and its solution.

        Raises
        ------
        NoSolution
            HiGHS did not find one. This model should not be used any more.
        """
        programs = self.programs
        program = programs.problem.program.with_tasks(tasks, weights)
        self.weights = weights.copy()
        found = self._from_kept(tasks)
        if found is not None:
            return program, found
        factor, self.weights_of_programs = self.weights_of_programs / weights, self.weights
        if (factor != 1.0).any():
            programs.reweigh(program, factor)
        else:
            programs.go_on_with(program)
        problem = programs.problem
        cap = np.where(problem.members, tasks * self.task_share / weights, 0.0)
        early = problem.members & (cap <= self.first_level)
        if (early == problem.members).all():
            early[cap.argmax()] = False  # somebody has to rise
        # A level beyond all caps is equivalent to one twice as high as the largest cap.
        programs.bound_t(2.0 * float(cap.max()))
        moment = _Moment(programs, cap, early, self.first_basis)
        found = solve_levels(program, programs.problem.per_level, moment, Together(problem.members), settle_below(CERTIFIED))
        self.first_level, self.first_basis = moment.first_level, moment.first_basis
        self._keep(len(found.stages))
        return program, replace(found, iterations=programs.iterations, programs_solved=programs.programs)

    def _from_kept(self, tasks: FloatArray) -> Solution | None:
        """Return the solution that the kept bases give, if one of them is right."""
        members = self.system.members
        weights, cap = self.weights[members], (tasks * self.task_share)[members]
        kept = self.kept.get(True)
        t = np.inf if kept is None else kept.level(cap, weights)
        if np.isinf(t):  # no prices say that there are too many tasks
            kept = self.kept.get(False)
        found = None if kept is None else kept.solve(cap, weights, t)
        if found is None:
            return None
        stages: tuple[Stage, ...] = ()
        if found.prices is not None:
            self.first_level = found.t
            stages = (Stage(found.t, members[cap > weights * found.t], found.prices),)
        return Solution(found.x, stages, programs_solved=self.programs.programs)

    def _keep(self, levels: int) -> None:
        """Keep the basis of the last run, where there was one level at most."""
        if levels > 1 or self.system.size > SETTINGS.most_rows:
            return
        kept = KeptBasis.of(self.system, *self.programs.basic_variables())
        if kept is not None and kept.has_level == bool(levels):
            self.kept[kept.has_level] = kept


class _Moment:
    """The steps of one leximin: users settled ``early``, by the guess, are in no course before the guess has proved right."""

    def __init__(self, programs: LevelPrograms, cap: FloatArray, early: BoolArray, basis: Any) -> None:
        self.programs, self.cap, self.early, self.basis = programs, cap, early, basis
        self.first_level, self.first_basis = 0.0, None

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve an LP, and take back what was guessed wrongly; else settle users whose caps are reached, else go on as always."""
        point = self._solve(course, stages)
        if (self.early & (self.cap > point.t)).any():
            self.early &= self.cap <= point.t
            return Step(point.x, point.levels, point.t)
        early, self.early = np.flatnonzero(self.early), np.zeros(self.early.size, bool)
        if not stages:
            self.first_level, self.first_basis = point.t, self.programs.basis
        held = np.minimum(self.cap[early], point.levels[early])
        left = course.lowered(point.levels).settled(early, held)
        capped = reached_caps(left, self.cap, point.t)
        at_cap, caps = np.append(early, capped), np.append(held, self.cap[capped])
        proof = None if capped.size else self.programs.proof(left, point, self.cap)
        return Step(point.x, point.levels, point.t, proof, at_cap=at_cap, caps=caps)

    def _solve(self, course: Course, stages: Sequence[Stage]) -> Point:
        programs = self.programs
        if self.early.any():
            guessed = self._with_early(course)
            programs.prepare(guessed, programs.t_unit)
            programs.go_on_by_dual(self.basis)
            self.basis = None
            outcome = programs.try_once(guessed)
            if outcome is not None:
                return programs.refined(guessed, outcome)
            self.early &= self.cap <= 0  # there is no such allocation
        course = self._with_early(course)
        programs.prepare(course, programs.t_unit)
        programs.go_on_by_dual(self.basis)
        self.basis = None
        return programs.solve(course, None, stages)

    def _with_early(self, course: Course) -> Course:
        early = np.flatnonzero(self.early)
        return course.settled(early, self.cap[early]) if early.size else course
