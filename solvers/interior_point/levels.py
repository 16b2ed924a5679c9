"""Leximin and one equal level by a structured interior point, level by level.

``structured_path`` climbs to a level and says by how much anybody could rise above it at most; who cannot is settled there, the others
climb on, on what these levels leave (``level_faces``). As in ``highs_levels``, users settled at t are those with sigma gap / q[n] below the
tolerance, an inequality that the certificate proves again from the answer. At the end everybody is given exactly its level. The equal level
is the first of them, for everybody.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.interior_point.faces import Faces
from fairopt.solvers.interior_point.path import LevelPath
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.pairs import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["solve_levels"]

log = logging.getLogger(__name__)

_NOISE = 1e-13  # a smaller part of all spending proves nothing, as in the certificate


def solve_levels(
    program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY
) -> Solution | None:
    """Return the leximin (or the equal level), None where the path got lost on the way.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        Where the program has no place in the layout of ``structured_pairs`` in these arrays.
    """
    scaled = ScaledProgram(program)
    if not scaled.n_pairs:
        return Solution(np.zeros(program.n_pairs), programs_solved=0)
    settle_at = min(tolerance * 0.1, 1e-9)
    # The first level lies somewhere between everybody's slice and what the least can reach alone.
    unit = float(np.sqrt((scaled.reach / scaled.n_users).min() * scaled.reach.min()))
    faces = Faces(scaled, arrays)
    path = LevelPath(lay_out(scaled, arrays), unit, deadline)
    stages: list[Stage] = []
    steps = 0
    while True:
        reached = path.climb(settle_at, final_levels(program, stages))
        steps += path.steps
        proved = np.zeros(path.rising.size, bool)
        if path.rising.any():  # else the last of them run all their tasks
            spent = path.per_t * reached.level * reached.user_prices
            # Once the gap is rounding, no other prices can prove more: a user with a small share of them is settled by what they do prove.
            settled_by = settle_at if reached.gap > reached.noise else max(settle_at, tolerance / 2)
            proved = path.rising & (path.rises(reached) <= settled_by) & (spent > _NOISE * reached.spent)
            if isinstance(goal, Equalize):
                proved = path.rising
            if reached.error > settle_at or not proved.any():
                log.info("lost on the way to level %d, with an error of %.1e", len(stages) + 1, reached.error)
                return None
            if (path.rising & ~proved).any():
                reached = path.ended(reached)
            part = path.pairs.scaled
            stages.append(Stage(reached.level * unit, part.member[proved], part.prices(reached.prices, reached.task_prices) * unit))
        faces.settle(path, reached, proved)
        if not faces.rising.any():
            break
        log.info("level %d: %.6g, %d users left", len(stages), stages[-1].value, int(faces.rising.sum()))
        if faces.leaves_out_some:
            log.info("lost after level %d: it left nothing to somebody who rises", len(stages))
            return None
        pairs, face = faces.next()
        path = LevelPath(pairs, unit, deadline, face)
    exact = faces.x * (faces.settled_at / scaled.sum_by_user(scaled.W * faces.x))[scaled.user]
    return Solution(scaled.tasks(exact), tuple(stages), iterations=steps, programs_solved=max(len(stages), 1))
