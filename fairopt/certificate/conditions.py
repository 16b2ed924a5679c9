"""Violations of the conditions of an alpha-fair optimum, of an equilibrium of servers, and of a union of polytopes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.instance.tolerances import NOTHING, TINY
from fairopt.program import AlphaFair, Disjunctive, Equilibrium, LimitKind, Limits, Program, Tradeoff

__all__ = ["bottleneck_violation", "clause_violation", "kkt_violation", "room_left", "ruled_violation"]


def bottleneck_violation(program: Program, goal: Equilibrium, x: FloatArray) -> float:
    """Return the largest relative violation of the bottleneck condition of an equilibrium, over all pairs.

    Let s[p] = u[p] x[n] / weights[n] for the pair p = (n, i). x is an equilibrium if and only if for every pair p user n runs all its
    tasks, or p has a *bottleneck*: a full limit of server i that p uses, with s[p] >= s[q] for every pair q with x[q] > 0 that uses it.
    (Theorems 1 and 2 of Khamse-Ashari et al. 2017; under time division the only limit is time.) The violation of a pair at a limit is the
    larger of the free fraction of the limit and (max s[q] - s[p]) / max s[q]. The violation of a pair is the smallest over its limits.
    """
    limits = program.limits
    share = program.utilities * program.per_user(x)[program.pair_users] / goal.weights[program.pair_users]
    of_server = limits.of_servers
    matrix, rows = limits.once("of servers", lambda: _of_servers(limits))
    columns = matrix.indices
    bounds = limits.bounds[of_server]
    used = matrix @ x
    free = np.divide(bounds - used, bounds, out=np.zeros_like(bounds), where=bounds > 0)
    held = np.where(x > NOTHING * program.largest(), share, 0.0)
    highest = np.maximum.reduceat(held[columns], matrix.indptr[:-1]) if bounds.size else np.zeros(0)  # no row is without entries
    inverse = np.divide(1.0, highest, out=np.zeros_like(highest), where=highest > 0)
    behind = share[columns]
    np.subtract(highest[rows], behind, out=behind)
    behind *= inverse[rows]
    np.maximum(behind, np.maximum(free, 0.0)[rows], out=behind)
    violation = np.full(program.n_pairs, np.inf)
    np.minimum.at(violation, columns, behind)
    violation[program.largest() == 0] = 0.0
    tasks = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    users = limits.keys[tasks, 0]
    missing = np.full(len(program.users), np.inf)
    missing[users] = safe_ratio(np.maximum(limits.bounds[tasks] - program.per_user(x)[users], 0.0), limits.bounds[tasks])
    return float(np.minimum(violation, missing[program.pair_users]).max(initial=0.0))


def _of_servers(limits: Limits) -> tuple[sp.csr_array, IntArray]:
    """Return the rows of limits of servers, and the row of each entry."""
    rows = np.flatnonzero(limits.of_servers)
    matrix = limits.matrix if rows.size == len(limits) else sp.csr_array(limits.matrix[rows])
    return matrix, np.repeat(np.arange(rows.size), np.diff(matrix.indptr))


def kkt_violation(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray, prices: FloatArray) -> float:
    """Return the largest violation of the KKT conditions by a user, relative to what this user spends.

    At the prices p >= 0, a pair costs c = A'p. Its worth w is u times the derivative of the goal in U[n], which is phi[n] U[n]^-alpha (for
    `Tradeoff`, plus kappa). x is optimal if and only if

    * w <= c for every pair (dual feasibility);
    * w = c where x > 0, and p = 0 for limits that are not full (complementary slackness).

    The violation is the largest of 1 - c/w over the pairs and, over the users, of the fraction of their spending c x on pairs with c > w or
    on limits that are not full. Worths can differ by any number of orders of magnitude, so they are compared as logarithms.
    """
    limits, users = program.limits, program.pair_users
    open_to = program.largest() > 0
    level = program.per_user(program.utilities * x)
    if (level[users[open_to]] <= 0).any():
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        log_worth = goal.log_worth(level)[users] + np.log(program.utilities)
        scale = float(np.log(np.maximum(prices, 0.0).max(initial=0.0)))
        if not np.isfinite(scale):
            return 0.0 if not open_to.any() else float("inf")
        prices = np.exp(np.log(np.maximum(prices, 0.0)) - scale)
        cost = np.asarray(limits.transposed @ prices)
        free = np.maximum(limits.bounds - limits.used(x), 0.0)
        idle = np.asarray(limits.transposed @ (prices * np.divide(free, limits.bounds, out=np.zeros_like(free), where=limits.bounds > 0)))
        # The engine chooses the unit of the prices. Scale them such that all users together spend what their tasks are worth.
        spent = float(np.log(cost @ x))
        earned = log_worth[open_to & (x > 0)] + np.log(x[open_to & (x > 0)])
        most = float(earned.max(initial=-np.inf))  # faster than logaddexp.reduce(earned)
        bang = np.exp(np.log(cost) - log_worth - spent + most + float(np.log(np.exp(earned - most).sum())))
    bill = program.per_user(cost * x)
    bad = program.per_user(x * (cost * np.divide(np.maximum(bang - 1, 0.0), bang, out=np.zeros_like(bang), where=bang > 0) + idle))
    own = max(float((1 - bang[open_to]).max(initial=0.0)), float(safe_ratio(bad, bill).max(initial=0.0)))
    return max(own, _wasted_spending(program, x, prices))


def ruled_violation(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray, prices: FloatArray) -> tuple[float, float]:
    """Return how far an alpha-fair answer under rules is from optimal: the gap of the total of worths, the largest violation of a user.

    With worths w and costs c = A'p of the pairs, in the unit in which all users spend what their tasks are worth, every feasible x' has

        w.x' <= p.b + sum of max(0, w - c) largest,      p.b - w.x = p.(b - Ax) + sum of (c - w) x.

    The gap is the sum of these terms >= 0, relative to the worth of all. A user violates the conditions by 1 - c/w of a pair, and by
    what it has on pairs that cost more than they are worth, relative to its worth.

    A rule that asks for least tasks of one user lowers their cost by its price q. With it, the user violates the conditions as it would
    without the rule if they were worth w + q, and by what q is of tasks beyond the least: x is optimal for w if and only if it is for any
    larger w up to w + q, with a smaller price of the rule. w alone may be a part of the cost that rounding hides.
    """
    limits, users, largest = program.limits, program.pair_users, program.largest()
    level, open_to = program.per_user(program.utilities * x), largest > 0
    if (level[users[open_to]] <= 0).any():
        return float("inf"), float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        log_worth = goal.log_worth(level)[users] + np.log(program.utilities)
    worth = np.where(open_to, np.exp(log_worth - log_worth[open_to].max(initial=-np.inf)), 0.0)
    prices = np.maximum(prices, 0.0)
    cost = np.asarray(limits.transposed @ prices)
    earned, spent = float(worth @ x), float(cost @ x)
    if not spent > 0:
        return float("inf"), float("inf")
    cost, prices = cost * (earned / spent), prices * (earned / spent)
    short, dear = np.where(open_to, np.maximum(worth - cost, 0.0), 0.0), np.maximum(cost - worth, 0.0) * x
    idle = float(prices @ np.maximum(limits.bounds - limits.used(x), 0.0))
    gap = (idle + float(dear.sum()) + float(short @ np.where(open_to, largest, 0.0))) / earned
    added, beyond = _by_own_floors(program, x, prices)
    own = float(safe_ratio(program.per_user(dear) + beyond, program.per_user((worth + added) * x)).max(initial=0.0))
    return gap, max(own, float(safe_ratio(short, worth + added).max(initial=0.0)))


def _by_own_floors(program: Program, x: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what rules that ask for least tasks of one user take off the cost of a pair, (pairs,), and of what it has beyond, (users,)."""
    limits, added, beyond = program.limits, np.zeros(program.n_pairs), np.zeros(len(program.users))
    rules = np.flatnonzero((limits.kinds == LimitKind.RULE) & (limits.bounds < 0) & (prices > 0))
    free = np.maximum(limits.bounds - limits.used(x), 0.0)
    for row in rules.tolist():
        entries = slice(limits.matrix.indptr[row], limits.matrix.indptr[row + 1])
        pairs, values = limits.matrix.indices[entries], limits.matrix.data[entries]
        user = program.pair_users[pairs[:1]]
        if (values < 0).all() and (program.pair_users[pairs] == user).all():
            added[pairs] -= values * prices[row]
            beyond[user] += free[row] * prices[row]
    return added, beyond


def _wasted_spending(program: Program, x: FloatArray, prices: FloatArray) -> float:
    """Return what users that run all their tasks spend on servers beyond the cheapest way to run them, relative to the others' spending.

    The price of its limit on tasks may be many orders of magnitude above what such a user pays for servers, so `kkt_violation` does not
    show on which servers it runs them. Only users whose tasks have the same worth on all servers are checked.
    """
    limits, users, open_to = program.limits, program.pair_users, program.largest() > 0
    tasks = limits.kinds == LimitKind.TASKS
    if not tasks.any():
        return 0.0
    number = len(program.users)
    satisfied = np.zeros(number, bool)
    satisfied[limits.keys[tasks & (prices > 0), 0]] = True
    least, most = program.range_of_utilities(open_to)
    satisfied &= most <= least * (1 + NOTHING)
    cost = np.asarray(limits.transposed @ np.where(tasks, 0.0, prices))
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[open_to], cost[open_to])
    extra = np.where(satisfied[users] & open_to, x * np.maximum(cost - cheapest[users], 0.0), 0.0)
    others = float((x * cost)[~satisfied[users]].sum())
    return float(extra.sum()) / others if others > 0 else 0.0


def room_left(program: Program, x: FloatArray) -> float:
    """Return the largest room left of a pair: the smallest free fraction over the limits that it uses (the user's own included).

    It is 0 if no task can be added without taking another away, as in every Pareto optimal x. Users with a tiny weight in the goal count
    like all others.
    """
    limits = program.limits
    free = np.divide(limits.bounds - limits.used(x), limits.bounds, out=np.zeros(len(limits)), where=limits.bounds > 0)
    room = np.full(program.n_pairs, np.inf)
    np.minimum.at(room, limits.matrix.indices, np.repeat(np.maximum(free, 0.0), np.diff(limits.matrix.indptr)))
    return float(room.max(initial=0.0))


def clause_violation(goal: Disjunctive, x: FloatArray, auxiliary: FloatArray | None) -> float:
    """Return the largest violation over the clauses, and over the bounds of auxiliary columns, relative to them.

    That of a clause is the smallest of its alternatives; rows are scaled to size 1.
    """
    upper = goal.auxiliary_upper
    auxiliary = np.zeros(upper.size) if auxiliary is None else auxiliary
    point = np.concatenate([x, auxiliary])
    beyond = np.maximum(-auxiliary, auxiliary - upper)
    worst = max(0.0, float(np.divide(beyond, upper, out=beyond, where=upper > 0).max(initial=0.0)))
    for clause in goal.clauses:
        best = np.inf
        for alternative in clause:
            value = np.asarray(alternative.matrix @ point)
            size = np.maximum(np.asarray(abs(alternative.matrix) @ np.abs(point)), TINY)
            for bound in (alternative.lower, alternative.upper):
                size = np.maximum(size, np.where(np.isfinite(bound), np.abs(bound), 0.0))
            excess = np.maximum(np.maximum(alternative.lower - value, value - alternative.upper), 0.0) / size
            best = min(best, float(excess.max(initial=0.0)))
        worst = max(worst, best)
    return worst
