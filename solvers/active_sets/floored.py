r"""Least tasks of users as limits on tasks, in the polish of an alpha-fair goal.

A rule may ask for least tasks f of a user n. Let x be optimal, n have f tasks, w[n] be what a task is worth to it, and pi[n] > w[n] the
least cost of a task at the prices of servers and of n's parallelism: the difference is the price of the rule. The KKT conditions involve
only the sum of that price and w[n]. So x is optimal as well without the rule, where n has a larger weight, at which a task is worth more
than pi[n], and f as a limit on its tasks. That program has no rules, and the polish makes its answer exact.

Which users have f tasks and no more, the prices of an approximate answer show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.program import AlphaFair, LimitKind, Limits, Program, Solution
from fairopt.program.own_floors import OwnFloors
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.settings import SETTINGS

__all__ = ["polish_floored"]


def polish_floored(program: Program, solution: Solution) -> Solution | None:
    """Return the solution of the equations of a solution's active sets, where the rules are least tasks of users; None where there is none.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 6"])
    >>> near = Solution(np.array([5.999, 3.001]), prices=np.array([0.333, 0.167]))
    >>> polished = polish_floored(fo.formulate(pool, "proportional"), near)
    >>> polished.x, polished.prices.round(9)
    (array([6., 3.]), array([0.33333333, 0.16666667]))
    """
    goal, limits = program.goal, program.limits
    floors = OwnFloors.of(program) if isinstance(goal, AlphaFair) and solution.prices is not None else None
    if floors is None:
        return None
    assert isinstance(goal, AlphaFair)
    assert solution.prices is not None
    with np.errstate(all="ignore"):
        price = solution.prices * np.exp(_log_unit(program, goal, floors, solution.x, solution.prices))
        log_paid = np.log(_paid(program, price))
        log_worth = goal.log_worth(np.where(floors.row >= 0, floors.least, 1.0))  # of a unit, at the least
        held = np.flatnonzero((floors.row >= 0) & (log_worth < log_paid))
        row = floors.row[held]
        unit = floors.least[held] / -limits.bounds[row]  # utility per unit of the rule
        larger = goal.weights.copy()
        larger[held] *= SETTINGS.paid * np.exp((log_paid - log_worth)[held])
        if not np.isfinite(larger).all():
            return None
        own = np.full(len(program.users), -1)  # positions of limits on tasks
        tasks = np.flatnonzero(limits.kinds == LimitKind.TASKS)
        own[limits.keys[tasks, 0]] = tasks
        kept = limits.kinds != LimitKind.RULE
        kept[own[held][own[held] >= 0]] = False
        as_tasks = Limits.of(LimitKind.TASKS, sp.csr_array(-limits.matrix[row]), -limits.bounds[row], held)
        without_rules = replace(program, limits=Limits.stack([limits.select(kept), as_tasks]), goal=replace(goal, weights=larger))
        of_tasks = (SETTINGS.paid - 1) * np.exp(log_paid[held]) * unit
        exact = polish(without_rules, replace(solution, prices=np.concatenate([price[kept], of_tasks])))
        if exact is None or exact.prices is None:
            return None
        log_worth = goal.log_worth(program.per_user(program.utilities * exact.x))[held]
        more = np.exp(log_worth) * (larger[held] / goal.weights[held] - 1) * unit - exact.prices[exact.prices.size - held.size :]
        prices = np.zeros(len(limits))
        prices[kept] = exact.prices[: exact.prices.size - held.size]
        prices[row] = np.maximum(more, 0.0)
        stopped = own[held] >= 0  # by as many tasks as it has to have
        prices[own[held][stopped]] = np.maximum(-more, 0.0)[stopped] * (-limits.bounds[row] / limits.bounds[own[held]])[stopped]
    return replace(exact, prices=prices)


def _cost(program: Program, prices: FloatArray) -> FloatArray:
    """Return what a unit of utility of each pair costs, without what rules take off, (pairs,)."""
    return np.asarray((program.limits.transposed @ np.where(program.limits.kinds == LimitKind.RULE, 0.0, prices)) / program.utilities)


def _paid(program: Program, prices: FloatArray) -> FloatArray:
    """Return the least cost of a unit of utility of each user, without its own limit on tasks, (users,)."""
    open_to: BoolArray = program.largest() > 0
    cost = _cost(program, np.where(program.limits.kinds == LimitKind.TASKS, 0.0, prices))
    return program.cheapest(np.where(open_to, cost, np.inf))


def _log_unit(program: Program, goal: AlphaFair, floors: OwnFloors, x: FloatArray, prices: FloatArray) -> float:
    """Return the logarithm of the unit of the prices: who has more than its least tasks pays what they are worth.

    If nobody has more, any unit does in which nobody pays less than that. Large prices would hide in rounding what a task is worth.
    """
    level = program.per_user(program.utilities * x)
    more = level > floors.least * (1 + SETTINGS.full)
    if not more.any():
        return float(np.log(SETTINGS.paid) + (goal.log_worth(level) - np.log(_paid(program, prices)))[program.members].max())
    spent = program.per_user(_cost(program, prices) * program.utilities * x)
    return float(np.logaddexp.reduce((goal.log_worth(level) + np.log(level))[more]) - np.log(spent[more].sum()))
