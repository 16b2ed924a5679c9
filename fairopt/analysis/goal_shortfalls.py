"""By how much an allocation falls short of the optimum of a goal, in floats.

`fairopt.analysis.regrets` defines the numbers. A goal has a function of its own, registered by its class. In fractions,
`fairopt.analysis.shortfalls` has the same for goals whose numbers are rational.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy

from fairopt.analysis.shortfalls import of_sorted, shortfall
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.instance import BoolArray, FloatArray
from fairopt.program import AlphaFair, Equalize, Equilibrium, FinishTimes, Leximin, Nested, Program, Separate, Total, Tradeoff, TreeFilling

__all__ = ["Both", "lost"]


class Both(NamedTuple):
    """The optimum and the allocation that is compared with it, (pairs,), and the users, (users,), and pairs, (pairs,), that count."""

    best: FloatArray
    x: FloatArray
    able: BoolArray
    kept: BoolArray

    def utilities(self, program: Program) -> list[FloatArray]:
        """Return the utilities of both, of the users who count."""
        return [program.per_user(program.utilities * each)[self.able] for each in (self.best, self.x)]


@singledispatch
def lost(goal: Any, program: Program, both: Both) -> dict[str, Any]:
    """Return by how much an allocation falls short of the optimum of a goal, as arguments of `Regret`; nothing without a measure."""
    return {}


@lost.register
def _(goal: Equilibrium, program: Program, both: Both) -> dict[str, Any]:
    return {"condition": bottleneck_violation(program, goal, both.x)}


@lost.register
def _(goal: Total, program: Program, both: Both) -> dict[str, Any]:
    return {"goal": shortfall(*(_power_mean(values, goal.weights[both.able], 1.0) for values in both.utilities(program)))}


@lost.register
def _(goal: AlphaFair, program: Program, both: Both) -> dict[str, Any]:
    weights, power = goal.weights[both.able], 1.0 - goal.alpha
    return {"goal": shortfall(*(_power_mean(values, weights, power) for values in both.utilities(program)))}


@lost.register
def _(goal: Tradeoff, program: Program, both: Both) -> dict[str, Any]:
    reached = both.utilities(program)
    fair = [_power_mean(values, goal.weights[both.able], 1.0 - goal.beta) for values in reached]
    means = [a ** (1 - goal.efficiency) * values.sum() ** goal.efficiency for a, values in zip(fair, reached, strict=True)]
    return {"goal": shortfall(*means)}


@lost.register
def _(goal: TreeFilling | Nested, program: Program, both: Both) -> dict[str, Any]:
    reached = both.utilities(program)
    largest = max((shortfall(*pair) for pair in zip(*(each.tolist() for each in reached), strict=True)), default=0.0)
    level = shortfall(*(float(each.min(initial=np.inf)) for each in reached)) if both.able.any() else 0.0
    return {"level": level, "largest": max(largest, 0.0)}


@lost.register
def _(goal: Leximin | Equalize, program: Program, both: Both) -> dict[str, Any]:
    per_level = program.worth
    levels = [program.per_user(each * per_level)[both.able].tolist() for each in (both.best, both.x)]
    return _of_lists([of_sorted(*levels)] if both.able.any() else [])


@lost.register
def _(goal: FinishTimes, program: Program, both: Both) -> dict[str, Any]:
    reached = (goal.levels(program.per_user(program.utilities * each))[both.able].tolist() for each in (both.best, both.x))
    return _of_lists([of_sorted(*reached)] if both.able.any() else [])


@lost.register
def _(goal: Separate, program: Program, both: Both) -> dict[str, Any]:
    per_level, servers = program.utilities / goal.goal.weights[program.pair_users], program.pair_servers
    groups = [np.flatnonzero((servers == i) & (program.largest() > 0) & both.kept) for i in np.unique(servers)]
    return _of_lists(
        [of_sorted((both.best[own] * per_level[own]).tolist(), (both.x[own] * per_level[own]).tolist()) for own in groups if own.size]
    )


def _of_lists(compared: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the numbers of the sorted list with the largest regret; of several servers the largest of each number."""
    level, leximin, position, largest = max(compared, key=lambda numbers: numbers[1], default=(0.0, 0.0, None, 0.0))
    if len(compared) > 1:
        level, largest = max(numbers[0] for numbers in compared), max(numbers[3] for numbers in compared)
    return {"level": level, "leximin": leximin, "position": position, "largest": largest}


def _power_mean(values: FloatArray, weights: FloatArray, order: float) -> float:
    """Return (sum weights values^order / sum weights)^(1/order), the geometric mean for order 0; logarithms avoid overflow."""
    if not values.size:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    if order <= 0 and not (values > 0).all():
        return 0.0
    if order == 0:
        return float(np.exp((weights @ logs) / weights.sum()))
    return float(np.exp((scipy.special.logsumexp(order * logs, b=weights) - np.log(weights.sum())) / order))
