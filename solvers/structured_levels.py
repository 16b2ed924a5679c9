"""Leximin by a structured interior point, level by level, and the equal level, which is the first of them.

``structured_path`` climbs to a level and says by how much anybody could rise above it at most; who cannot is settled there, the others
climb on. As in ``via_highs``, users settled at t are those with sigma gap / q[n] below the tolerance, an inequality that the
certificate proves again from the answer. At the end everybody is given exactly its level.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structured_pairs import Pairs
from fairopt.solvers.structured_path import LevelPath

__all__ = ["solve_levels"]

log = logging.getLogger(__name__)

_NOISE = 1e-13  # a smaller part of all spending proves nothing, as in the certificate


def solve_levels(program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the leximin (or the first level, for everybody), None where the path got lost on the way."""
    pairs = Pairs(program)
    if not pairs.n_pairs:
        return Solution(np.zeros(program.n_pairs), programs_solved=0)
    equal = isinstance(goal, Equalize)
    if equal:
        pairs.cap[:] = np.inf
    settle_at = min(tolerance * 0.1, 1e-9)
    # The first level lies somewhere between everybody's slice and what the least can reach alone.
    unit = float(np.sqrt((pairs.reach / pairs.n_users).min() * pairs.reach.min()))
    path = LevelPath(pairs, unit, deadline)
    stages: list[Stage] = []
    x: FloatArray = np.zeros(pairs.n_pairs)
    while path.rising.any():
        reached = path.climb(settle_at)
        x = reached.x
        if not path.rising.any():  # the last of them run all their tasks
            break
        rise = path.rises(reached)
        spent = path.per_t * reached.level * reached.user_prices
        proved = path.rising & (rise <= settle_at) & (spent > _NOISE * reached.prices.sum())
        if equal:
            proved = path.rising
        elif not proved.any():
            log.info("interior point: lost at level %d, relative gap %.1e", len(stages) + 1, reached.gap)
            return None
        stages.append(Stage(reached.level * unit, pairs.positions(np.flatnonzero(proved)), pairs.prices(reached.prices) * unit))
        path.settle(proved, reached.level * path.per_t)
        log.info("level %d: %.6g, %d users left", len(stages), stages[-1].value, int(path.rising.sum()))
    reaches = pairs.level(x)
    exact = x * pairs.spread(np.divide(path.settled_at, reaches, out=np.zeros_like(reaches), where=reaches > 0))
    return Solution(pairs.tasks(exact), tuple(stages), iterations=path.steps, programs_solved=max(len(stages), 1))
