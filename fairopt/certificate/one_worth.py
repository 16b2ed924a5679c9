r"""Proof of an alpha-fair optimum on a table of tasks, in blocks of users: no array of all pairs is formed.

Every user may run everywhere, demands some of every resource and has no task limit, and a task is worth the same on all servers. The
residuals are those of `fairopt.certificate.conditions` and of the total of marginal worths; the mathematics is there. The bound on the
total is the one at which no pair is worth more than it costs, which needs no sum over pairs.
"""

from __future__ import annotations

import numpy as np

from fairopt.certificate.distance import proved_distance
from fairopt.certificate.price_parts import EPSILON
from fairopt.certificate.table_excess import table_excess
from fairopt.instance import FloatArray
from fairopt.program import AllPairs, AlphaFair

__all__ = ["alpha_fair_gaps"]

_BLOCK = 250_000  # pairs of a block, which fits into a cache
_NO_PROOF = (float("inf"), float("inf"), float("inf"), float("inf"), 0.0)


def alpha_fair_gaps(program: AllPairs, goal: AlphaFair, tasks: FloatArray, prices: FloatArray) -> tuple[float, float, float, float, float]:
    """Return the residuals of an answer to max sum_n weight[n] g(share[n] x[n]), g' = U^-alpha.

    Parameters
    ----------
    program : AllPairs
    goal : AlphaFair
        Its goal.
    tasks : array (users, servers)
        All numbers are finite.
    prices : array (servers, resources)
        In any unit.

    Returns
    -------
    floats
        Feasibility, optimality, fairness, the proved distance, and the doubt; all others are infinite if a user has nothing or no price is
        positive.
    """
    if not prices.max(initial=0.0) > 0:
        return _NO_PROOF
    bounds, demands, used, share = program.capacities, program.demands, tasks.T @ program.demands, program.worths
    n, k = tasks.shape
    held = share * tasks.sum(axis=1)
    if held.min() <= 0:
        return _NO_PROOF
    log_worth = goal.log_worth(held) + np.log(share)  # of a task
    worth = np.exp(log_worth - log_worth.max())
    earned = float(worth @ tasks.sum(axis=1))
    p = np.maximum(prices, 0.0) / float(prices.max())
    p *= earned / float((p * used).sum())  # all users together spend what their tasks are worth
    free = np.divide(np.maximum(bounds - used, 0.0), bounds, out=np.zeros_like(bounds), where=bounds > 0)
    cheap, wasted = 0.0, 0.0
    for start in range(0, n, max(1, _BLOCK // max(1, k))):
        block = slice(start, start + max(1, _BLOCK // max(1, k)))
        x, w, cost = tasks[block], worth[block], demands[block] @ p.T
        cheap = max(cheap, float((w / cost.min(axis=1)).max(initial=0.0)))
        bill = np.einsum("ni,ni->n", cost, x)
        dear = np.einsum("ni,ni->n", np.maximum(cost - w[:, None], 0.0), x)
        idle = np.einsum("ni,ni->n", demands[block] @ (p * free).T, x)
        wasted = max(wasted, float(((dear + idle) / bill).max(initial=0.0)))
    beyond = 1 - 1 / cheap if cheap > 0 else float("inf")
    room = float(free.min(axis=1).max(initial=0.0))
    bound = cheap * float((p * bounds).sum())
    feasibility = table_excess(program, tasks)
    gap = max(bound - earned, 0.0) / bound
    distance = proved_distance(goal, goal.weights, held, gap / (1 - gap) + feasibility if gap < 1 else np.inf)
    return feasibility, gap, max(beyond, wasted, room, 0.0), distance, _hidden_part(demands)


def _hidden_part(demands: FloatArray) -> float:
    """Return the largest part of what a user pays for a task that rounding of another user's cost may hide (`hidden_prices`); 1: all of it.

    The cost of a task with the demands d is known up to a unit of rounding. By the resources r and s, this is at most the part
    d[s] p[s] / (d[r] p[r]) d'[r] p[r] / (d'[s] p[s]) of the cost of a task with the demands d', times the unit.
    """
    logs = np.log(demands)
    furthest = max(float(np.ptp(logs[:, r] - logs[:, s])) for r in range(demands.shape[1]) for s in range(demands.shape[1]))
    return min(float(EPSILON * np.exp(furthest)), 1.0)
