r"""Proof of a leximin of one level on a table of tasks, in blocks of users: no array of all pairs is formed.

All users may run everywhere without a task limit, and a task is worth the same on all servers. Then all users stop at one level, and the
proof of `fairopt.certificate.levels` needs only the tasks, the level and one price for each resource of each server. It is the same proof
with the same residuals: that module has the mathematics, the digits of limits and the noise of prices.
"""

from __future__ import annotations

import numpy as np

from fairopt.certificate.certificate import Certificate, allocation_excess
from fairopt.instance import FloatArray, Instance

__all__ = ["certify_one_level"]

_NOISE = 1e-13  # a smaller fraction of all spending proves nothing
_DIGITS = 1e-14  # relative precision to which limits are taken to be known
_BLOCK = 250_000  # pairs of a block, which fits into a cache
_NOTHING = Certificate(float("inf"), float("inf"), float("inf"))


def certify_one_level(instance: Instance, share: FloatArray, tasks: FloatArray, value: float, prices: FloatArray) -> Certificate:
    """Recompute the residuals of an answer to max t, share[n] x[n] / weight[n] >= t for all users.

    Parameters
    ----------
    instance : Instance
        All users may run everywhere, without limits on tasks or parallelism and without queues.
    share : array (users,)
        Of a task, not divided by the weight.
    tasks : array (users, servers)
    value : float
        The level that is told.
    prices : array (servers, resources)
        In any unit.

    Returns
    -------
    Certificate
        All residuals are infinite if a number is not finite, or the instance is of another kind.
    """
    one_kind = instance.eligibility.all() and not instance.is_tree and instance.weights.ndim == 1 and instance.rates_per_server is None
    endless = np.isinf(instance.tasks).all() and np.isinf(instance.parallelism).all()
    numbers = bool(np.isfinite(prices).all() and np.isfinite(value) and np.isfinite(tasks.sum()))
    if not (one_kind and endless and numbers):
        return _NOTHING
    bounds, demands, per_level = instance.row_capacity, instance.demands, share / instance.weights
    p = np.maximum(prices, 0.0) / max(float(prices.max(initial=0.0)), 1e-300)
    n, used = instance.n_users, np.zeros_like(bounds)
    q, levels, dear, excess = np.empty(n), np.empty(n), 0.0, 0.0
    for start in range(0, n, max(1, _BLOCK // max(1, instance.n_servers))):
        block = slice(start, start + max(1, _BLOCK // max(1, instance.n_servers)))
        x, cost = tasks[block], demands[block] @ p.T  # a task of each user on each server
        levels[block] = x.sum(axis=1) * per_level[block]
        cheapest = cost.min(axis=1)
        q[block] = cheapest / per_level[block]
        used += x.T @ demands[block]
        cost *= 1 - _DIGITS
        cost -= cheapest[:, None]
        np.maximum(cost, 0.0, out=cost)
        cost *= x
        if x.min(initial=0.0) < 0:
            excess -= float(np.minimum(cost, 0.0).sum())
            np.maximum(cost, 0.0, out=cost)
        dear += float(cost.sum())
    return Certificate(allocation_excess(instance, tasks, "rdm"), *_gaps(p, bounds, used, q, levels, dear, excess, value))


def _gaps(
    p: FloatArray, bounds: FloatArray, used: FloatArray, q: FloatArray, levels: FloatArray, dear: float, excess: float, value: float
) -> tuple[float, float]:
    """Return the residuals of optimality and fairness; ``dear`` is what users pay beyond their cheapest servers, in all."""
    reached, sigma, spent = float(levels.min()), float(q.sum()), float((p * bounds).sum())
    if reached <= 0 or not 0 < sigma < np.inf:
        return float("inf"), float("inf")
    held = sigma * reached
    beyond = spent * (1 - _DIGITS) - held
    free, above = np.maximum(bounds * (1 - _DIGITS) - used, 0.0), np.maximum(levels - reached * (1 + _DIGITS), 0.0)
    gap = max(beyond, float((p * free).sum()) + dear + float(q @ above), 0.0)
    excess += float((p * np.maximum(used - bounds * (1 + _DIGITS), 0.0)).sum())
    paid = q * reached
    rise = (gap + excess) / float(paid.min()) if (paid > _NOISE * spent).all() else float("inf")
    return max(gap / held, float(np.abs(value / levels - 1).max())), rise
