"""Leximin and one equal level by a structured interior point, level by level.

``path`` climbs to a level and says by how much anybody could rise above it at most; who cannot is settled there, the others climb on, on
what these levels leave (``faces``). The loop, and what settles a user, are those of `fairopt.solvers.leximin.levels`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.interior_point.faces import Faces
from fairopt.solvers.interior_point.path import LevelCertificate, LevelPath, LevelResult, scaled_course, solve_level
from fairopt.solvers.leximin.levels import Course, NotConverged, Proof, Step, Together, settle_below
from fairopt.solvers.leximin.levels import solve_levels as by_levels
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["caps_on_the_way", "proof_of", "solve_levels", "unit_of_levels"]

log = logging.getLogger(__name__)


def solve_levels(
    program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY
) -> Solution | None:
    """Return the leximin (or the equal level), None if a path did not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        The program does not fit into a layout of `fairopt.solvers.structure.layouts` in these arrays.
    """
    scaled = ScaledProgram.of(program)
    if not scaled.n_pairs:
        return Solution(np.zeros(program.n_pairs), programs_solved=0)
    solver = _Levels(scaled, goal.is_equal, tolerance, deadline, arrays)
    members = np.zeros(len(program.users), bool)
    members[scaled.member] = True
    per_level = program.worth
    try:
        found = by_levels(program, per_level, solver, Together(members, solver.equal), settle_below(tolerance))
    except NotConverged as failure:
        log.info("%s", failure)
        return None
    return replace(found, iterations=solver.steps, programs_solved=max(len(found.stages), 1))


class _Levels:
    """A path to one level after another, each on the face that those before leave."""

    def __init__(self, scaled: ScaledProgram, equal: bool, tolerance: float, deadline: Deadline, arrays: Arrays) -> None:
        self.scaled, self.equal, self.tolerance, self.deadline = scaled, equal, tolerance, deadline
        self.unit = unit_of_levels(scaled)
        self.faces = Faces(scaled, arrays)
        self.path = LevelPath.first(lay_out(scaled, arrays), self.unit)
        self.last: LevelResult | None = None
        self.steps = 0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Rise to the next level."""
        if self.last is not None:
            self.path = self._next(self.last, course, len(stages))
        self.last = solve_level(self.path, settle_below(self.tolerance), self.deadline, final_levels(self.scaled.program, stages))
        path, reached, part = self.last.path, self.last.reached, self.path.pairs.scaled
        self.steps += self.last.steps
        at_cap, caps = caps_on_the_way(self.path, self.last)
        if not path.rising.any():  # the last of them run all their tasks
            return Step(self._tasks(path, reached), None, reached.level * self.unit, at_cap=at_cap, caps=caps)
        proved = path.rising if self.equal else path.stopped(reached, self.tolerance)
        if reached.error > settle_below(self.tolerance) or not proved.any():
            raise NotConverged(f"no convergence at level {len(stages) + 1}, with an error of {reached.error:.1e}")
        if (path.rising & ~proved).any():
            reached = path.ended(reached)
            self.last = replace(self.last, reached=reached)
        t, proof = reached.level * self.unit, proof_of(part, reached, self.unit, course.start.size)
        return Step(self._tasks(path, reached), None, t, proof, part.member[proved], at_cap=at_cap, caps=caps)

    def _tasks(self, path: LevelPath, reached: LevelCertificate) -> FloatArray:
        return self.scaled.tasks(self.faces.point(path, reached))

    def _next(self, last: LevelResult, course: Course, level: int) -> LevelPath:
        """Return the path to the next level, on what is left to those who rise."""
        path, faces, in_parts = last.path, self.faces, scaled_course(self.scaled, course, self.unit)
        faces.settle(path, last.reached, path.rising & ~course.rising[path.pairs.scaled.member], in_parts)
        if faces.leave_out_some(in_parts):
            raise NotConverged(f"stopped after level {level}: no open pair is left for a rising user")
        pairs, face = faces.next(in_parts, float(last.reached.level))
        return LevelPath.on(face, pairs)


def unit_of_levels(scaled: ScaledProgram) -> float:
    """Return a level near the first one, which lies somewhere between everybody's slice and what the least can reach alone."""
    return float(np.sqrt((scaled.reach / scaled.n_users).min() * scaled.reach.min()))


def caps_on_the_way(path: LevelPath, end: LevelResult) -> tuple[IntArray, FloatArray]:
    """Return the users who were settled at their caps on the way to the end of a path, and these caps, as levels."""
    part = path.pairs.scaled
    capped = path.rising & ~end.path.rising
    return part.member[capped], (end.path.course.start * part.reach)[capped]


def proof_of(part: ScaledProgram, reached: LevelCertificate, unit: float, n_users: int) -> Proof:
    """Return what the end of a path on a part of a program proves, for all users and limits of the program; levels are in this unit."""
    q = np.zeros(n_users)
    q[part.member] = reached.user_prices / part.reach
    return Proof(part.prices(reached.prices, reached.task_prices) * unit, q, reached.spent, reached.bound * unit)
