r"""The levels of finish times, proved as those of a leximin (`fairopt.certificate.levels`) in z = U / weights.

At a level z[n] = 1 / (rho - delay[n]) of all who rise, which is convex in rho: prices that stop all of these z at once stop the ratio rho.
The residuals are those of z; relative to 1 / rho they are smaller, by 1 + delay z. The ratio of a level is that of its user with the
largest z, of whom it has the most digits.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from fairopt.certificate.levels import LevelProofs
from fairopt.certificate.leximin_levels import stage_gaps
from fairopt.instance import FloatArray
from fairopt.program import FinishTimes, Program, Solution, Stage

__all__ = ["finish_time_gaps"]


def finish_time_gaps(program: Program, goal: FinishTimes, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels."""
    return stage_gaps(program, solution, partial(_level, goal.delay), lambda z: goal.levels(z * goal.weights))


def _level(delay: FloatArray, proofs: LevelProofs, stage: Stage, value: FloatArray, is_last: bool) -> tuple[float, float]:
    """Return the residuals of a level; ``value`` (users,) are the levels at which users are settled."""
    z = proofs.levels
    if stage.prices is None or not (z[stage.users] > 0).all():  # a user at level 0 with room left
        return float("inf"), float("inf")
    rising = value >= stage.value
    rising[stage.users] = True
    first = stage.users[z[stage.users].argmax()]
    left = 1 / z[first] + (delay[first] - delay)  # of rho without the delay
    needed = np.divide(1.0, left, out=np.full(z.size, np.inf), where=left > 0)
    target = np.where(rising, np.minimum(needed, z), z)
    if not (target[rising] > 0).all():
        return float("inf"), float("inf")
    missing, rise = proofs.of(stage.prices, stage.users, rising, target, np.where(rising, target, 0.0), target, is_last=is_last)
    short = np.where(rising, 1 - target / needed, 0.0)
    short[stage.users] = np.abs(1 - z / needed)[stage.users]
    told = abs(stage.value * (1 / z[first] + delay[first]) - 1)
    return max(missing, told, float((short / (1 + delay * z)).max())), rise
