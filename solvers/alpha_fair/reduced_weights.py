r"""Users who have all their tasks, in units in which what they pay for servers shows.

At alpha = 10 another task of who has a thirtieth of what others have is 10^15 times as worthy. If its tasks end there, the price of the
last one takes all that: what such a user pays for servers is like what others pay, and lost in the rounding of its own money, so that a
path by that money leaves it on servers where it is in the way of others.

But how worthy it is does not matter, as long as it has all its tasks. Let x be optimal, and n a user whose limit on tasks is full, at a
price y[n] u - pi[n] > 0, with u the worth of a task, the same everywhere, and pi[n] the cheapest cost of one on servers. The conditions of
optimality see only the sum of the two prices, y[n] u. So x is optimal for any smaller weight, too, at which y'[n] u > pi[n], with the price
of the limit smaller by (y[n] - y'[n]) u; and an x that is optimal for smaller weights, with the limit full, is optimal for larger ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.program import AlphaFair, LimitKind, Program, Solution

__all__ = ["reduced_weights", "with_full_weights"]

_SAME = 1e-9  # relative differences of what a task is worth
_FULL = 1e-6  # part of its tasks that a user may miss in an approximate answer


def reduced_weights(program: Program, goal: AlphaFair, found: Solution) -> AlphaFair | None:
    """Return the goal in which users with all their tasks at ``found`` weigh what servers cost them, and what others have on average.

    None where that changes nothing.
    """
    limits, users, open_to = program.limits, program.pair_users, program.largest() > 0
    tasks = np.flatnonzero((limits.kinds == LimitKind.TASKS) & (limits.bounds > 0))
    if not tasks.size or found.prices is None:
        return None
    number = len(program.users)
    least, most = np.full(number, np.inf), np.zeros(number)
    np.minimum.at(least, users[open_to], program.utilities[open_to])
    np.maximum.at(most, users[open_to], program.utilities[open_to])
    satisfied = np.zeros(number, bool)
    satisfied[limits.keys[tasks, 0]] = (limits.matrix @ found.x)[tasks] >= limits.bounds[tasks] * (1 - _FULL)
    satisfied &= (most > 0) & (most <= least * (1 + _SAME))
    others = (most > 0) & ~satisfied
    if not satisfied.any() or not others.any():
        return None
    level = program.per_user(program.utilities * found.x)
    prices = np.where(limits.kinds == LimitKind.TASKS, 0.0, found.prices)
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[open_to], (limits.matrix.T @ prices)[open_to] / program.utilities[open_to])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_worth = goal.log_worth(level)
        money = float(np.exp(log_worth[others] + np.log(level[others])).mean())
        log_part = np.log(cheapest + money / level) - log_worth
    lower = satisfied & (log_part < 0)
    return (
        replace(goal, weights=np.where(lower, goal.weights * np.exp(np.where(lower, log_part, 0.0)), goal.weights)) if lower.any() else None
    )


def with_full_weights(program: Program, goal: AlphaFair, easier: AlphaFair, found: Solution) -> Solution:
    """Return an answer for ``easier`` as one for ``goal``: the limits on tasks of those who weigh more there are as much dearer."""
    assert found.prices is not None
    limits = program.limits
    level = program.per_user(program.utilities * found.x)
    worth = np.zeros(len(program.users))
    worth[program.pair_users] = program.utilities
    tasks = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    user = limits.keys[tasks, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        dearer = worth * np.exp(goal.log_worth(level)) * -np.expm1(np.log(easier.weights) - np.log(goal.weights))
    prices = found.prices.copy()
    prices[tasks] += np.where(goal.weights[user] > easier.weights[user], dearer[user], 0.0)
    return replace(found, prices=prices)
