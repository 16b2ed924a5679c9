"""Proof of a nested leximin, level by level, depth by depth, recomputed from the answer, its prices and multipliers.

For prices p >= 0 of limits and multipliers y >= 0 of agents with A'p >= sum over the agents of a pair's user of y u on every pair, every
feasible x has p.b >= p.Ax >= sum of y S. With S >= L for settled agents (those of earlier depths, and of earlier levels), and S >= unit t
for those who rise,

    g = p.b - sum over settled agents of y L - t sum over agents who rise of y unit  >=  0.

g bounds by how much t could rise, and what any agent could have above its part by g / y. Where a pair costs less than it should, the
difference is charged for as much as the pair can ever carry, or all prices are raised until no pair does, whichever costs less.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import safe_ratio
from fairopt.instance.tolerances import DIGITS, NOTHING
from fairopt.program import Nested, Program, Solution

__all__ = ["nested_gaps"]

_NEVER = (float("inf"), float("inf"))


def nested_gaps(program: Program, goal: Nested, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels of all depths."""
    shares = program.per_user(solution.x * program.utilities)
    largest, limits = program.largest(), program.limits
    reach = goal.sums(program.per_user(largest * program.utilities))
    sums, settled = goal.sums(shares), np.zeros(goal.depth.size, bool)
    optimality = fairness = 0.0
    before = 0
    for stage in solution.stages:
        agents = stage.agents
        if (
            stage.prices is None
            or agents is None
            or stage.part < before
            or settled[agents].any()
            or (goal.depth[agents] != stage.part).any()
        ):
            return _NEVER
        if stage.part > before:
            if not (settled | (goal.depth >= stage.part) | (sums <= NOTHING * reach)).all():
                return _NEVER
            before = stage.part
        units = goal.units(stage.part, sums, reach)
        rising = (units > 0) & ~settled & (reach > 0)
        prices, pays = np.maximum(stage.prices[: len(limits)], 0.0), np.maximum(stage.prices[len(limits) :], 0.0)
        pays = np.where(settled | rising, pays, 0.0)
        level = np.where(rising, units * stage.value, np.where(settled, sums, 0.0))
        spent = float(prices @ np.abs(limits.bounds))
        worth = (goal.below.T @ pays)[program.pair_users] * program.utilities
        cost = limits.transposed @ prices
        short = float(np.maximum(worth - cost, 0.0) @ largest)
        dearer = float(safe_ratio(worth, cost)[largest > 0].max(initial=1.0))  # prices times this charge no pair too little
        beyond = float(prices @ limits.bounds) - spent * DIGITS - float(pays @ level)
        gap = max(beyond, 0.0) + short
        if program.down_closed:
            gap = min(gap, max(beyond + (dearer - 1) * spent, 0.0))
        size = goal.sizes(level, reach)
        paid = pays * size
        if not (paid[agents] > 0).all():
            return _NEVER
        off = safe_ratio(sums - level, size)  # 0 of nothing is no residual, and anything else of nothing an infinite one
        optimality = max(optimality, gap / float(paid[rising].sum()), float(np.abs(off[agents]).max()))
        fairness = max(fairness, gap / float(paid[agents].min()))
        optimality = max(optimality, float(-off[rising].min()))
        settled[agents] = True
    if not (settled | (sums <= NOTHING * reach)).all():
        return _NEVER
    return optimality, fairness
