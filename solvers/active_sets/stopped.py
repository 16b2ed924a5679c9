r"""Users whom a limit on tasks stops, with weights at which what they pay for servers is not lost in rounding.

At alpha = 10, a user with a thirtieth of the tasks of others has a marginal worth 10^15 times as large. If a limit on its tasks stops it
there, the price of that limit takes nearly all its money. What the user pays for servers is comparable with what others pay, but lost in
the rounding of its own money: equations in parts of that money leave the user on servers that others need.

Its weight does not matter as long as the limit stops it. Let x be optimal, and n a user whose limit on tasks is full at the price
y[n] u - pi[n] > 0, with u the utility of a task, the same on all servers, and pi[n] the least cost of a task on servers. The KKT conditions
involve only the sum of the two prices, y[n] u. So x is optimal for any smaller weight as well, as long as y'[n] u > pi[n], with the price
of the limit lower by (y[n] - y'[n]) u. Conversely, an x that is optimal for smaller weights, with the limit full, is optimal for larger
ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance.tolerances import ROUNDING
from fairopt.program import AlphaFair, LimitKind, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.settings import SETTINGS

__all__ = ["with_full_weights", "with_lower_weights"]


def with_lower_weights(program: Program, goal: AlphaFair | Tradeoff, found: Solution) -> tuple[AlphaFair, Solution] | None:
    """Return the goal with lower weights of users who are stopped at an approximate answer, and the answer with lower prices of limits.

    None if no weight changes, and for trade-offs. The prices may be in any unit of money.

    A lower weight is such that a user's tasks are worth twice what it pays servers for them, and the least money of the users who are not
    stopped besides.
    """
    limits, users = program.limits, program.pair_users
    row = np.flatnonzero((limits.kinds == LimitKind.TASKS) & (limits.bounds > 0))
    if not isinstance(goal, AlphaFair) or not row.size or found.prices is None:
        return None
    has_room, n = program.largest() > 0, len(program.users)
    low, high = program.range_of_utilities(has_room)
    stopped = np.zeros(n, bool)
    stopped[limits.keys[row, 0]] = (limits.matrix @ found.x)[row] >= limits.bounds[row] * (1 - SETTINGS.full)
    stopped &= (high > 0) & (high <= low * (1 + ROUNDING))
    others = (high > 0) & ~stopped
    if not stopped.any() or not others.any():
        return None
    level = program.per_user(program.utilities * found.x)
    log_worth = goal.log_worth(level)
    log_money = (log_worth + np.log(level))[high > 0]
    found = replace(found, prices=found.prices * np.exp(np.logaddexp.reduce(log_money) - np.log(found.prices @ limits.bounds)))
    assert found.prices is not None
    prices = np.where(limits.kinds == LimitKind.TASKS, 0.0, found.prices)
    paid = np.full(n, np.inf)
    np.minimum.at(paid, users[has_room], (limits.transposed @ prices)[has_room] / program.utilities[has_room])
    log_least = float((log_worth[others] + np.log(level[others])).min())
    log_part = np.logaddexp(np.log(SETTINGS.paid * paid), log_least - np.log(level)) - log_worth
    lower = replace(goal, weights=goal.weights * np.exp(np.where(stopped & (log_part < 0), log_part, 0.0)))
    if not (lower.weights < goal.weights).any():
        return None
    return lower, _with_prices(program, goal, lower, found, -1.0)


def with_full_weights(program: Program, goal: AlphaFair | Tradeoff, lower: AlphaFair, found: Solution) -> Solution:
    """Return an answer for lower weights as one for the goal."""
    return _with_prices(program, goal, lower, found, 1.0)


def _with_prices(program: Program, goal: AlphaFair | Tradeoff, lower: AlphaFair, found: Solution, sign: float) -> Solution:
    """Return an answer in which prices of limits on tasks rise or fall by the difference in marginal worth."""
    assert found.prices is not None
    limits = program.limits
    utility = np.zeros(len(program.users))
    utility[program.pair_users] = program.utilities
    log_worth = goal.log_worth(program.per_user(program.utilities * found.x))
    row = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    user = limits.keys[row, 0]
    fewer = lower.weights[user] < goal.weights[user]
    more = utility[user] * np.exp(log_worth[user]) * -np.expm1(np.log(lower.weights[user]) - np.log(goal.weights[user]))
    prices = found.prices.copy()
    prices[row] = np.where(fewer, np.maximum(prices[row] + sign * more, 0.0), prices[row])
    return replace(found, prices=prices)
