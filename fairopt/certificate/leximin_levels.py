"""The levels of a leximin: who is settled at which, and the worst residuals of their proofs (`fairopt.certificate.levels`).

Everybody is settled once: at a level, or at its cap, without prices. All who rise rise together from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairopt.certificate.levels import LevelProofs
from fairopt.certificate.plain_levels import plain_gaps
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import DIGITS, FITS
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits

__all__ = ["level_gaps", "stage_gaps"]


OfLevel: TypeAlias = Callable[[LevelProofs, Stage, FloatArray, bool], tuple[float, float]]
"""The residuals of optimality and fairness of a level; given proofs, its stage, the levels of all, (users,), and whether it is the last."""


def level_gaps(program: Program, goal: Leximin | Equalize, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels."""
    if not goal.is_equal:
        return stage_gaps(program, solution, _level, plain=True)
    optimality, fairness = stage_gaps(program, solution, lambda *level: (_level(*level)[0], 0.0))
    levels = program.per_user(solution.x * program.worth)
    spread = levels[program.per_user(program.largest()) > 0]
    unequal = float(np.ptp(spread) / spread.max()) if spread.size else 0.0
    return max(optimality, unequal), fairness


def stage_gaps(
    program: Program,
    solution: Solution,
    of_level: OfLevel,
    value_of: Callable[[FloatArray], FloatArray] | None = None,
    *,
    plain: bool = False,
) -> tuple[float, float]:
    """Return the worst residuals over all stages, from the lowest; inf where somebody is settled by none of them, or by two.

    Values of stages are U[n] / phi[n], or what ``value_of`` makes of these, (users,). ``plain``: users rise together from 0, so the plain
    proofs of all levels at once are tried first (`fairopt.certificate.plain_levels`).
    """
    per_level = program.worth
    levels = program.per_user(solution.x * per_level)
    open_to = program.per_user(program.largest()) > 0  # users that can receive anything at all

    value = np.where(open_to, np.inf, 0.0)  # level at which each user is settled
    cap = OwnLimits(program, per_level).caps()[0]
    complete = ~open_to | (levels >= cap * (1 - FITS))
    value[complete] = (levels if value_of is None else value_of(levels))[complete]
    for stage in solution.stages:
        value[stage.users] = stage.value
    times = np.bincount(np.concatenate([np.zeros(0, np.int64), *(stage.users for stage in solution.stages)]), minlength=levels.size)
    if np.isinf(value).any() or times.max(initial=0) > 1 or not all(stage.users.size for stage in solution.stages):
        return 0.0, float("inf")
    if not solution.stages:
        return 0.0, 0.0
    uncertainty = np.where(complete, np.maximum(np.abs(np.where(open_to, cap, 0.0) - levels) - DIGITS * levels, 0.0), 0.0)
    stages = sorted(solution.stages, key=lambda stage: stage.value)
    if plain:
        with np.errstate(all="ignore"):  # a result that is not a number proves nothing
            found = plain_gaps(program, solution.x, levels, value, uncertainty, stages)
        if found is not None:
            return found
    proofs = LevelProofs(program, per_level, solution.x, levels, uncertainty)
    optimality = fairness = 0.0
    for stage in stages:
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow proves nothing
            optimality_of, fairness_of = of_level(proofs, stage, value, stage is stages[-1])
        if np.isnan(optimality_of) or np.isnan(fairness_of):
            optimality_of = fairness_of = float("inf")
        optimality, fairness = max(optimality, optimality_of), max(fairness, fairness_of)
        if np.isinf(optimality_of):
            break
    return optimality, fairness


def _level(proofs: LevelProofs, stage: Stage, value: FloatArray, is_last: bool) -> tuple[float, float]:
    """Return the residuals of optimality and fairness of a level; ``value`` (users,) are the levels at which users are settled."""
    if stage.prices is None:
        return float("inf"), float("inf")
    levels = proofs.levels
    # R: users settled at this level or later. A user at its cap below this level was settled before.
    rising = value >= stage.value
    rising[stage.users] = True
    reached = float(levels[rising].min())
    if reached <= 0:  # a user at level 0 with room left
        return float("inf"), float("inf")
    target = np.where(rising, reached, levels)
    missing, rise = proofs.of(stage.prices, stage.users, rising, target, rising.astype(np.float64), target, is_last=is_last)
    own = levels[stage.users]
    told = float(np.abs(stage.value / own - 1).max(initial=0.0)) if (own > 0).all() else float("inf")
    return max(missing, told), rise
