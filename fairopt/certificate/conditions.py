"""The conditions that define an equilibrium of servers and a union of polytopes, and by how much an answer violates them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, safe_ratio
from fairopt.program import AlphaFair, Disjunctive, Equilibrium, LimitKind, Program, Tradeoff

__all__ = ["bottleneck_violation", "clause_violation", "kkt_violation", "room_left"]

_NOTHING = 1e-9  # a column below this part of its largest value holds nothing


def bottleneck_violation(program: Program, goal: Equilibrium, x: FloatArray) -> float:
    """Return the largest relative violation of the bottleneck condition of an equilibrium, over all pairs.

    Let s[p] = u[p] x[n] / weights[n] for the pair p = (n, i). x is an equilibrium if and only if every pair has a *bottleneck*: a
    limit of server i that p uses, that is full, and where s[p] >= s[q] for every pair q that uses it and holds something; or if
    user n has all its tasks. (Theorems 1 and 2 of Khamse-Ashari et al. 2017; time division has the one limit, time.) For a pair
    and a limit the violation is the larger of the limit's free part and of (max s[q] - s[p]) / max s[q]; of the limits that a
    pair uses the best counts.
    """
    limits = program.limits
    share = program.utilities * program.per_user(x)[program.pair_users] / goal.weights[program.pair_users]
    of_server = limits.of_servers
    matrix = sp.csr_array(limits.matrix[np.flatnonzero(of_server)]).tocoo()
    rows, columns = matrix.row, matrix.col
    bounds = limits.bounds[of_server]
    used = np.bincount(rows, weights=matrix.data * x[columns], minlength=bounds.size)
    free = np.divide(bounds - used, bounds, out=np.zeros_like(bounds), where=bounds > 0)
    holds = x > _NOTHING * program.largest()
    highest = np.zeros(bounds.size)
    np.maximum.at(highest, rows, np.where(holds[columns], share[columns], 0.0))
    behind = safe_ratio(np.maximum(highest[rows] - share[columns], 0.0), highest[rows])
    violation = np.full(program.n_pairs, np.inf)
    np.minimum.at(violation, columns, np.maximum(np.maximum(free[rows], 0.0), behind))
    violation[program.largest() == 0] = 0.0
    tasks = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    users = limits.keys[tasks, 0]
    missing = np.full(len(program.users), np.inf)
    missing[users] = safe_ratio(np.maximum(limits.bounds[tasks] - program.per_user(x)[users], 0.0), limits.bounds[tasks])
    return float(np.minimum(violation, missing[program.pair_users]).max(initial=0.0))


def kkt_violation(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray, prices: FloatArray) -> float:
    """Return the largest violation of the conditions of optimality by a user, relative to that user's own money.

    At the prices p, a pair costs c = A'p and is worth w = u times the goal's slope in U[n],
    phi[n] U[n]^-alpha (+ kappa, of `Tradeoff`). x is optimal if and only if no pair is worth more than it
    costs, none that holds something costs more than it is worth, and nothing is paid for what is left free. Returned is the largest of
    1 - c/w over the pairs and, over the users, of the part of what they spend that goes to pairs that cost more than they are worth,
    or to limits that are not full. Marginal worths may lie any number of orders of magnitude apart: they are compared in logarithms.
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
        cost = np.asarray(limits.matrix.T @ prices)
        free = np.maximum(limits.bounds - np.asarray(limits.matrix @ x), 0.0)
        idle = np.asarray(limits.matrix.T @ (prices * np.divide(free, limits.bounds, out=np.zeros_like(free), where=limits.bounds > 0)))
        # The unit of the prices is the engine's: what all users spend together is what their tasks are worth.
        spent = float(np.log(cost @ x))
        earned = log_worth[open_to & (x > 0)] + np.log(x[open_to & (x > 0)])
        most = float(earned.max(initial=-np.inf))  # logaddexp.reduce(earned) would take half as long again
        bang = np.exp(np.log(cost) - log_worth - spent + most + float(np.log(np.exp(earned - most).sum())))
    bill = program.per_user(cost * x)
    bad = program.per_user(x * (cost * np.divide(np.maximum(bang - 1, 0.0), bang, out=np.zeros_like(bang), where=bang > 0) + idle))
    own = max(float((1 - bang[open_to]).max(initial=0.0)), float(safe_ratio(bad, bill).max(initial=0.0)))
    return max(own, _wasted_spending(program, x, prices))


def _wasted_spending(program: Program, x: FloatArray, prices: FloatArray) -> float:
    """Return what users with all their tasks spend on servers beyond the cheapest way to have them, in parts of what the others spend.

    The price of its last task may be many orders of magnitude above all that such a user pays for servers, and hide where it runs them.
    Of users whose tasks are worth the same everywhere; the others are not looked at.
    """
    limits, users, open_to = program.limits, program.pair_users, program.largest() > 0
    tasks = limits.kinds == LimitKind.TASKS
    if not tasks.any():
        return 0.0
    number = len(program.users)
    satisfied = np.zeros(number, bool)
    satisfied[limits.keys[tasks & (prices > 0), 0]] = True
    least, most = np.full(number, np.inf), np.zeros(number)
    np.minimum.at(least, users[open_to], program.utilities[open_to])
    np.maximum.at(most, users[open_to], program.utilities[open_to])
    satisfied &= most <= least * (1 + _NOTHING)
    cost = np.asarray(limits.matrix.T @ np.where(tasks, 0.0, prices))
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[open_to], cost[open_to])
    extra = np.where(satisfied[users] & open_to, x * np.maximum(cost - cheapest[users], 0.0), 0.0)
    others = float((x * cost)[~satisfied[users]].sum())
    return float(extra.sum()) / others if others > 0 else 0.0


def room_left(program: Program, x: FloatArray) -> float:
    """Return the largest room that a pair has left: of the limits that it uses (tasks of its user too), the smallest free part.

    0 where x is Pareto optimal: nobody's task can be added without taking something away. It has no scale: users of next to no worth
    in a sum count like all others.
    """
    limits = program.limits
    free = np.divide(limits.bounds - limits.matrix @ x, limits.bounds, out=np.zeros(len(limits)), where=limits.bounds > 0)
    uses = limits.matrix.tocoo()
    room = np.full(program.n_pairs, np.inf)
    np.minimum.at(room, uses.col, np.maximum(free[uses.row], 0.0))
    return float(room.max(initial=0.0))


def clause_violation(goal: Disjunctive, x: FloatArray, auxiliary: FloatArray | None) -> float:
    """Return the largest violation over the clauses, of each its best alternative; rows are scaled by their own size."""
    point = np.concatenate([x, np.zeros(goal.auxiliary_upper.size) if auxiliary is None else auxiliary])
    worst = 0.0
    for clause in goal.clauses:
        best = np.inf
        for alternative in clause:
            value = np.asarray(alternative.matrix @ point)
            size = np.maximum(np.asarray(abs(alternative.matrix) @ np.abs(point)), 1e-300)
            for bound in (alternative.lower, alternative.upper):
                size = np.maximum(size, np.where(np.isfinite(bound), np.abs(bound), 0.0))
            excess = np.maximum(np.maximum(alternative.lower - value, value - alternative.upper), 0.0) / size
            best = min(best, float(excess.max(initial=0.0)))
        worst = max(worst, best)
    return worst
