"""Violations of the conditions of an alpha-fair optimum, of an equilibrium of servers, and of a union of polytopes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.instance.tolerances import NOTHING, TINY
from fairopt.program import AlphaFair, Disjunctive, Equilibrium, LimitKind, Limits, Program, Tradeoff
from fairopt.program.own_floors import of_one_user, open_pairs_of

__all__ = ["bottleneck_violation", "clause_violation", "kkt_violation", "room_left", "ruled_violation"]

_PAYS = 1e-6  # part of its worth that a user pays for a limit, such that its conditions, to `CERTIFIED`, bound the price to 1%


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

    The gap is the sum of these terms >= 0, relative to the worth of all. Let i be the part of c that pays for parts of limits that are not
    full (`_idle_cost`). A pair violates the conditions by (w - (c - i)) / w, a user by the sum of max(0, c - w) x + i x over its pairs,
    relative to its worth w x.

    Let rules ask for the least utility f of a user, at the price q >= 0 of a unit (`fairopt.program.own_floors`), and let s be the cost of
    a unit at the prices of all other limits: c = s - q.

    * Where the utility is f, (w, q) and (w', w + q - w') satisfy the same conditions for w <= w' <= w + q. w may be a part of s that
      rounding hides, so the violations of the user are relative to `_worth_with_floor` instead of w.
    * Where the utility is U > f, the violation is q (U - f): it is a part of the sum of i x.
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
    idle_cost = _idle_cost(limits, x, prices)
    counted = _worth_with_floor(program, x, prices, worth)
    own = float(safe_ratio(program.per_user(dear + idle_cost * x), counted * level).max(initial=0.0))
    short = np.where(open_to, np.maximum(worth - cost + idle_cost, 0.0), 0.0)
    own = max(own, float(safe_ratio(short, counted[users] * program.utilities).max(initial=0.0)))
    return gap, max(own, _wasted_spending(program, x, prices))


def _idle_cost(limits: Limits, x: FloatArray, prices: FloatArray) -> FloatArray:
    """Return i, the part of the cost of each pair that pays for parts of limits that are not full, (pairs,).

    i[p] = sum_j |A[j,p]| price[j] (b[j] - A[j] x) / max(|b[j]|, |A[j]| x). What a rule takes off the cost of a pair counts as well.
    """
    entries = abs(limits.matrix)
    size = np.maximum(np.abs(limits.bounds), np.asarray(entries @ x))
    part = np.divide(np.maximum(limits.bounds - limits.used(x), 0.0), size, out=np.zeros_like(size), where=size > 0)
    return np.asarray(entries.T @ (prices * part))


def _worth_with_floor(program: Program, x: FloatArray, prices: FloatArray, worth: FloatArray) -> FloatArray:
    """Return max(w, min(w + q, m)) of each user, (users,), to which its violations are relative.

    w is the worth of a unit of utility, q the price of the rules that ask for a least utility, and m the least cost of a unit on a server,
    at the prices of two kinds of limits. In any solution of the conditions, w + q = m if these are the only other limits of the user.

    * Limits for which some user pays a part of its worth, where rules do not take more than its worth off its cost. The conditions of this
      user bound the price.
    * Limits of one pair. If the price is high, the limit is full, and x of the pair is given.

    A limit on the tasks of the user, and a rule for several users who all have floors, may have any price if q is as much larger. The
    prices of such limits are not a part of m.
    """
    limits, users, open_to = program.limits, program.pair_users, program.largest() > 0
    number, matrix, open_pairs = len(program.users), limits.matrix, open_pairs_of(program)
    q, others = np.zeros(number), prices.copy()
    for row in np.flatnonzero((limits.kinds == LimitKind.RULE) & (limits.bounds < 0) & (prices > 0)).tolist():
        user, unit = of_one_user(program, row, open_pairs)
        if user >= 0:
            q[user] += prices[row] / unit
            others[row] = 0.0
    of_entries = np.repeat(np.arange(len(limits)), np.diff(matrix.indptr))
    spent = matrix.data * prices[of_entries] * x[matrix.indices]
    payer = users[matrix.indices]
    earned = program.per_user(worth * x)
    lowered = np.bincount(payer, np.maximum(-spent, 0.0), minlength=number)
    pays = (lowered <= earned)[payer] & (spent >= _PAYS * earned[payer])
    counts = np.diff(matrix.indptr) == 1
    counts[of_entries[pays]] = True
    cost = np.asarray(limits.transposed @ np.where(counts, others, 0.0))
    least = program.cheapest(np.where(open_to, cost / program.utilities, np.inf))
    of_unit = program.cheapest(np.where(open_to, worth / program.utilities, np.inf))
    return np.maximum(of_unit, np.minimum(of_unit + q, least))


def _wasted_spending(program: Program, x: FloatArray, prices: FloatArray) -> float:
    """Return what users that run all their tasks spend on servers beyond the cheapest way to run them, relative to the others' spending.

    The price of a limit on tasks, or of a rule that says the same, may be many orders of magnitude above what the user pays for servers.
    The violations of its own conditions do not show then on which servers it runs its tasks. Only users whose tasks have the same worth on
    all servers are checked.
    """
    limits, users, open_to = program.limits, program.pair_users, program.largest() > 0
    tasks, owner = limits.kinds == LimitKind.TASKS, limits.keys[:, 0].copy()
    rules = np.flatnonzero(limits.kinds == LimitKind.RULE).tolist()
    open_pairs = open_pairs_of(program) if rules else np.zeros(0, int)
    for row in rules:
        owner[row] = of_one_user(program, row, open_pairs)[0]
        tasks[row] = owner[row] >= 0
    if not tasks.any():
        return 0.0
    number = len(program.users)
    satisfied = np.zeros(number, bool)
    satisfied[owner[tasks & (prices > 0) & (limits.bounds > 0)]] = True
    least, most = program.range_of_utilities(open_to)
    satisfied &= most <= least * (1 + NOTHING)
    of_others = np.where(tasks, 0.0, prices)
    cost = np.asarray(limits.transposed @ of_others)
    least = cost if program.down_closed else cost - _idle_cost(limits, x, of_others)  # under rules, `room_left` shows no room
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[open_to], least[open_to])
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
