r"""Proof of a leximin of one level on a table of tasks, in blocks of users: no array of all pairs is formed.

All users may run everywhere without a task limit, and a task is worth the same on all servers. Then all users stop at one level, and the
proof of `fairopt.certificate.levels` needs only the tasks, the level and one price for each resource of each server. It is the same proof
with the same residuals: that module has the mathematics, the digits of limits and the noise of prices.
"""

from __future__ import annotations

import numpy as np

from fairopt.certificate.table_excess import table_excess
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import DIGITS, NOISE, TINY
from fairopt.program import AllPairs

__all__ = ["one_level_gaps"]

_BLOCK = 250_000  # pairs of a block, which fits into a cache
_TERMS = 256  # of a sum from left to right: its rounding stays far below `DIGITS`


def one_level_gaps(program: AllPairs, tasks: FloatArray, value: float, prices: FloatArray) -> tuple[float, float, float]:
    """Return the residuals of an answer to max t, share[n] x[n] / weight[n] >= t for all users: feasibility, optimality, fairness.

    Parameters
    ----------
    program : AllPairs
        Its goal is a leximin.
    tasks : array (users, servers)
        All numbers are finite.
    value : float
        The level that is told.
    prices : array (servers, resources)
        In any unit.
    """
    bounds, demands, per_level = program.capacities, program.demands, program.worths / program.goal.weights
    n, k = tasks.shape
    p = np.maximum(prices, 0.0) / max(float(prices.max(initial=0.0)), TINY)
    used = np.zeros_like(bounds)
    q, levels, dear, excess = np.empty(n), np.empty(n), 0.0, 0.0
    for start in range(0, n, max(1, _BLOCK // max(1, k))):
        block = slice(start, start + max(1, _BLOCK // max(1, k)))
        x, cost = tasks[block], demands[block] @ p.T  # a task of each user on each server
        levels[block] = x.sum(axis=1) * per_level[block]
        cheapest = cost.min(axis=1)
        q[block] = cheapest / per_level[block]
        used += _taken(x, demands[block])
        cost *= 1 - DIGITS
        cost -= cheapest[:, None]
        np.maximum(cost, 0.0, out=cost)
        cost *= x
        if x.min(initial=0.0) < 0:
            excess -= float(np.minimum(cost, 0.0).sum())
            np.maximum(cost, 0.0, out=cost)
        dear += float(cost.sum())
    return (table_excess(program, tasks), *_gaps(p, bounds, used, q, levels, dear, excess, value))


def _taken(x: FloatArray, demands: FloatArray) -> FloatArray:
    """Return x'd, (servers, resources), as a sum of short sums: one user among a million is as small as the rounding of a long one."""
    (n, k), m = x.shape, demands.shape[1]
    short = n - n % _TERMS
    sums = np.matmul(x[:short].reshape(-1, _TERMS, k).transpose(0, 2, 1), demands[:short].reshape(-1, _TERMS, m))
    return np.asarray(sums.sum(axis=0) + x[short:].T @ demands[short:])


def _gaps(
    p: FloatArray, bounds: FloatArray, used: FloatArray, q: FloatArray, levels: FloatArray, dear: float, excess: float, value: float
) -> tuple[float, float]:
    """Return the residuals of optimality and fairness; ``dear`` is what users pay beyond their cheapest servers, in all."""
    reached, sigma, spent = float(levels.min()), float(q.sum()), float((p * bounds).sum())
    if reached <= 0 or not 0 < sigma < np.inf:
        return float("inf"), float("inf")
    held = sigma * reached
    beyond = spent * (1 - DIGITS) - held
    free, above = np.maximum(bounds * (1 - DIGITS) - used, 0.0), np.maximum(levels - reached * (1 + DIGITS), 0.0)
    gap = max(beyond, float((p * free).sum()) + dear + float(q @ above), 0.0)
    excess += float((p * np.maximum(used - bounds * (1 + DIGITS), 0.0)).sum())
    paid = q * reached
    rise = (gap + excess) / float(paid.min()) if (paid > NOISE * spent).all() else float("inf")
    return max(gap / held, float(np.abs(value / levels - 1).max())), rise
