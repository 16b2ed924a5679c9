r"""Users who hold all their tasks, with weights at which what they pay for servers is not lost in rounding.

At alpha = 10, a user with a thirtieth of the tasks of others has a marginal worth 10^15 times as large. If a limit on its tasks stops it
there, the price of that limit takes nearly all its money. What the user pays for servers is comparable with what others pay, but lost in
the rounding of its own money, and a path that measures residuals by that money leaves the user on servers that others need.

Its weight does not matter, as long as it holds all its tasks. Let x be optimal, and n a user whose limit on tasks is full, at a price y[n]
u - pi[n] > 0, with u the utility of a task, the same on all servers, and pi[n] the least cost of a task on servers. The KKT conditions
involve the sum of the two prices only, y[n] u. So x is optimal for any smaller weight as well, as long as y'[n] u > pi[n], with the price
of the limit lower by (y[n] - y'[n]) u. Conversely, an x that is optimal for smaller weights, with the limit full, is optimal for larger
ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.program import AlphaFair, LimitKind, Program, Solution
from fairopt.solvers.structure.scaling import SAME_WORTH

__all__ = ["reduced_weights", "with_full_weights"]

_FULL = 1e-6  # part of its tasks that a user may miss in an approximate answer


def reduced_weights(program: Program, goal: AlphaFair, found: Solution, *, least: bool = False) -> AlphaFair | None:
    """Return the goal with reduced weights of users who hold all their tasks at ``found``; None if no weight changes.

    Their money becomes their cost of servers plus the mean money of the other users; with ``least``, plus the least money of the others,
    so that users with next to no money still count.
    """
    limits, users, has_room = program.limits, program.pair_users, program.largest() > 0
    tasks = np.flatnonzero((limits.kinds == LimitKind.TASKS) & (limits.bounds > 0))
    if not tasks.size or found.prices is None:
        return None
    number = len(program.users)
    lowest, most = np.full(number, np.inf), np.zeros(number)
    np.minimum.at(lowest, users[has_room], program.utilities[has_room])
    np.maximum.at(most, users[has_room], program.utilities[has_room])
    complete = np.zeros(number, bool)
    complete[limits.keys[tasks, 0]] = (limits.matrix @ found.x)[tasks] >= limits.bounds[tasks] * (1 - _FULL)
    complete &= (most > 0) & (most <= lowest * (1 + SAME_WORTH))
    others = (most > 0) & ~complete
    if not complete.any() or not others.any():
        return None
    level = program.per_user(program.utilities * found.x)
    prices = np.where(limits.kinds == LimitKind.TASKS, 0.0, found.prices)
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[has_room], (limits.matrix.T @ prices)[has_room] / program.utilities[has_room])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_worth = goal.log_worth(level)
        of_others = np.exp(log_worth[others] + np.log(level[others]))
        money = float(of_others.min() if least else of_others.mean())
        log_part = np.log(cheapest + money / level) - log_worth
    reduced = complete & (log_part < 0)
    return replace(goal, weights=goal.weights * np.exp(np.where(reduced, log_part, 0.0))) if reduced.any() else None


def with_full_weights(program: Program, goal: AlphaFair, reduced: AlphaFair, found: Solution) -> Solution:
    """Return an answer for ``reduced`` weights as one for ``goal``: prices of limits on tasks rise by the difference in marginal worth."""
    assert found.prices is not None
    limits = program.limits
    level = program.per_user(program.utilities * found.x)
    utility = np.zeros(len(program.users))
    utility[program.pair_users] = program.utilities
    tasks = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    user = limits.keys[tasks, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        more = utility * np.exp(goal.log_worth(level)) * -np.expm1(np.log(reduced.weights) - np.log(goal.weights))
    prices = found.prices.copy()
    prices[tasks] += np.where(goal.weights[user] > reduced.weights[user], more[user], 0.0)
    return replace(found, prices=prices)
