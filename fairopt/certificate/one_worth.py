r"""Proof of an alpha-fair optimum on a table of tasks, in blocks of users: no array of all pairs is formed.

Every user may run everywhere, demands some of every resource and has no task limit, and a task is worth the same on all servers. The
residuals are those of `fairopt.certificate.conditions` and of the total of marginal worths; the mathematics is there. The bound on the
total is the one at which no pair is worth more than it costs, which needs no sum over pairs.
"""

from __future__ import annotations

import numpy as np

from fairopt.certificate.certificate import Certificate, allocation_excess
from fairopt.certificate.distance import proved_distance
from fairopt.instance import FloatArray, Instance
from fairopt.program import AlphaFair

__all__ = ["certify_one_worth"]

_BLOCK = 250_000  # pairs of a block, which fits into a cache
_NOTHING = Certificate(float("inf"), float("inf"), float("inf"), distance=float("inf"))


def certify_one_worth(instance: Instance, goal: AlphaFair, share: FloatArray, tasks: FloatArray, prices: FloatArray) -> Certificate:
    """Recompute the residuals of an answer to max sum_n weight[n] g(share[n] x[n]), with g' = U^-alpha.

    Parameters
    ----------
    instance : Instance
        Every user may run everywhere and demands some of every resource; no limits on tasks, no parallelism, no queues.
    goal : AlphaFair
    share : array (users,)
        The worth of a task.
    tasks : array (users, servers)
    prices : array (servers, resources)
        In any unit.

    Returns
    -------
    Certificate
        Includes ``distance``. All residuals are infinite if a number is not finite, or the instance is of another kind.
    """
    one_kind = instance.eligibility.all() and not instance.is_tree and instance.weights.ndim == 1 and instance.rates_per_server is None
    endless = np.isinf(instance.tasks).all() and np.isinf(instance.parallelism).all() and (instance.demands > 0).all()
    numbers = bool(np.isfinite(prices).all() and np.isfinite(tasks.sum()) and prices.max(initial=0.0) > 0)
    if not (one_kind and endless and numbers):
        return _NOTHING
    bounds, demands, used = instance.row_capacity, instance.demands, tasks.T @ instance.demands
    held = share * tasks.sum(axis=1)
    if held.min() <= 0:
        return _NOTHING
    log_worth = goal.log_worth(held) + np.log(share)  # of a task
    worth = np.exp(log_worth - log_worth.max())
    earned = float(worth @ tasks.sum(axis=1))
    p = np.maximum(prices, 0.0) / float(prices.max())
    p *= earned / float((p * used).sum())  # all users together spend what their tasks are worth
    free = np.divide(np.maximum(bounds - used, 0.0), bounds, out=np.zeros_like(bounds), where=bounds > 0)
    cheap, wasted = 0.0, 0.0
    for start in range(0, instance.n_users, max(1, _BLOCK // max(1, instance.n_servers))):
        block = slice(start, start + max(1, _BLOCK // max(1, instance.n_servers)))
        x, w, cost = tasks[block], worth[block], demands[block] @ p.T
        cheap = max(cheap, float((w / cost.min(axis=1)).max(initial=0.0)))
        bill = np.einsum("ni,ni->n", cost, x)
        dear = np.einsum("ni,ni->n", np.maximum(cost - w[:, None], 0.0), x)
        idle = np.einsum("ni,ni->n", demands[block] @ (p * free).T, x)
        wasted = max(wasted, float(((dear + idle) / bill).max(initial=0.0)))
    beyond = 1 - 1 / cheap if cheap > 0 else float("inf")
    room = float(free.min(axis=1).max(initial=0.0))
    bound = cheap * float((p * bounds).sum())
    feasibility = max(allocation_excess(instance, tasks, "rdm"), 0.0)
    gap = max(bound - earned, 0.0) / bound
    distance = proved_distance(goal, goal.weights, held, gap / (1 - gap) + feasibility if gap < 1 else np.inf)
    return Certificate(feasibility, gap, max(beyond, wasted, room, 0.0), distance=distance)
