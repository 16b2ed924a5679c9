r"""What rounding hides in the prices of an alpha-fair answer: an estimate of the part by which what a user has may be wrong.

At a large alpha users pay amounts that lie many orders of magnitude apart. Take a user who pays much and may run on several servers. It
compares their costs, which are known to 15 digits, or only up to what this user wastes. The price of a limit that matters to a user who
pays little may be smaller than that error. Then the conditions of optimality hold to rounding however much the first user leaves of this
limit, and the second user may have much too little.

*Doubt.* Let c = A'p be the costs of pairs, and e[p] what pair p costs its user beyond the cheapest way to be worth as much, plus one unit
of rounding of c[p] if the user has another pair that is about as cheap. For a full limit j and a pair p that takes from it,

    e[p] / A[j,p]                            is the error of the price of j that p does not notice,
    s[j] = max A[j,q] / c[q]                 over the used pairs q: by which part of a cost an error of that price changes it at most,
    h[j,p] = A[j,p] x[p] / b[j]              is the part of the limit that p takes.

A pair is in doubt by s[j] e[p] / A[j,p]. The figure is the least t, of a few, such that the pairs that are in doubt by more than t take at
most the part t of each limit.

*Response.* Other conditions may divide a limit that is in doubt: if two users share a full server, one has what the other leaves. So if the
figure is large, linear equations near the answer estimate how far what users have would move with all of these doubts
(`fairopt.certificate.price_response`), and the smaller figure counts.

*Trade-offs.* To a user who has much, nearly all that a task is worth may be the worth kappa of the total, next to which phi U^-beta is
rounding. All conditions then hold for any division of a server among such users. Where the elasticity of a utility at a given kappa, which
is 1 / (beta (1 - kappa / worth)), says that rounding may change it, the equations estimate how far, and the larger figure counts.

The price of a user's own limit on tasks does not help it to choose if its tasks are worth the same on all servers. It is left out of e.

*Rules.* Where the rules only ask for least tasks of users (`fairopt.program.own_floors`), prices of servers are those of a program without
these rules, in which who has no more than the least cannot have more either. Under other rules nothing is estimated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.price_parts import EPSILON
from fairopt.certificate.price_response import FREE, Doubts, elasticity, response
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import EXACT, NOTHING
from fairopt.program import AlphaFair, LimitKind, Limits, Program, Tradeoff
from fairopt.program.own_floors import OwnFloors

__all__ = ["hidden_part"]

_NEAR = 1e-6  # a pair is a choice of its user if it costs at most this part more, or has at least this part of what the user has; and a
# limit with less than this part left is full
_FEW = 100  # pairs: with at most so many, only a figure up to ``EXACT`` counts without the equations, else one up to ``NOTHING``
_LEVELS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def hidden_part(program: Program, x: FloatArray, prices: FloatArray | None) -> float:
    """Return an estimate of the largest part by which what a user has may be wrong; 1 if nothing is known.

    It is 0 under rules of several users, where nothing is estimated.

    Parameters
    ----------
    program : Program
        Its goal is alpha-fair or a trade-off.
    x : array (pairs,)
    prices : array (limits,)
        In any unit; None: there are none.
    """
    goal = program.goal
    if prices is None or not isinstance(goal, AlphaFair | Tradeoff):
        return 0.0
    prices = np.maximum(prices, 0.0)
    top = float(prices.max(initial=0.0))
    if not 0 < top < np.inf or not x.any():
        return 0.0
    if not program.down_closed:
        floors = OwnFloors.of(program)
        if floors is None:
            return 0.0
        program, prices = _without_rules(program, floors, x, prices)
    doubts = _doubts(program, x, prices / top)
    figure = _in_doubt(program, x, doubts)
    enough = EXACT if program.n_pairs <= _FEW else NOTHING
    if figure > enough:
        figure = min(figure, response(program, goal, x, doubts))
    most = float(elasticity(goal, program.per_user(program.utilities * x)).max())
    return figure if most <= FREE else max(figure, response(program, goal, x, doubts, most))


def _without_rules(program: Program, floors: OwnFloors, x: FloatArray, prices: FloatArray) -> tuple[Program, FloatArray]:
    """Return a program without rules, and its prices.

    Where a rule has a price, and its user has no more than the least tasks, these are a limit on its tasks, at the price of the rule.
    """
    limits, level = program.limits, program.per_user(program.utilities * x)
    least = (floors.row >= 0) & (prices[floors.row] > 0) & (level <= floors.least * (1 + _NEAR))
    at_least, row = np.flatnonzero(least), floors.row[least]
    as_tasks = Limits.of(LimitKind.TASKS, sp.csr_array(-limits.matrix[row]), -limits.bounds[row], at_least)
    kept = limits.kinds != LimitKind.RULE
    without = replace(program, limits=Limits.stack([limits.select(kept), as_tasks]))
    return without, np.concatenate([prices[kept], prices[row]])


def _doubts(program: Program, x: FloatArray, prices: FloatArray) -> Doubts:
    """Return what pairs cost, and how far that is in doubt."""
    limits, users, number, worth = program.limits, program.pair_users, len(program.users), program.utilities
    there = program.largest() > 0
    tasks = limits.kinds == LimitKind.TASKS
    cost = np.asarray(limits.transposed @ prices)
    chosen_by, own = cost, np.zeros(len(limits), bool)
    if (tasks & (prices > 0)).any():
        least, most = program.range_of_utilities(there)
        alike = most <= least * (1 + EPSILON)
        own[tasks] = alike[limits.keys[tasks, 0]]
        chosen_by = np.asarray(limits.transposed @ np.where(own, 0.0, prices))
    price = np.divide(chosen_by, worth, out=np.full(cost.size, np.inf), where=there & (worth > 0))
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[there], price[there])
    beyond = np.where(there, np.maximum(chosen_by - cheapest[users] * worth, 0.0), 0.0)
    level = program.per_user(worth * x)
    near = there & ((beyond <= _NEAR * chosen_by) | (worth * x > _NEAR * level[users]))
    choice = (np.bincount(users[near], minlength=number) > 1)[users]
    doubt = np.where(there & (x > 0), beyond + np.where(choice & near, EPSILON * chosen_by, 0.0), 0.0)
    full = (limits.bounds > 0) & (limits.used(x) >= limits.bounds * (1 - _NEAR)) & ~own
    return Doubts(prices, cost, chosen_by, beyond, doubt, near & (x > 0), full, own & (prices > 0))


def _in_doubt(program: Program, x: FloatArray, doubts: Doubts) -> float:
    """Return the least t such that pairs that are in doubt by more than t take at most the part t of each limit."""
    limits, matrix = program.limits, program.limits.matrix
    rows = np.repeat(np.arange(len(limits)), np.diff(matrix.indptr))
    entries = np.flatnonzero(doubts.full[rows] & (x > 0)[matrix.indices])
    rows, pairs, amounts = rows[entries], matrix.indices[entries], matrix.data[entries]
    matter = np.zeros(len(limits))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        np.maximum.at(matter, rows, np.where(doubts.near[pairs], amounts / doubts.cost[pairs], 0.0))
        parts = doubts.doubt[pairs] / amounts * matter[rows]
    held = amounts * x[pairs] / limits.bounds[rows]
    for level in _LEVELS:
        beyond = ~(parts <= level)
        in_doubt = float(np.bincount(rows, weights=np.where(beyond, held, 0.0), minlength=len(limits)).max(initial=0.0))
        if in_doubt <= level:
            return max(in_doubt, float(parts.max(initial=0.0, where=~beyond)))
    return 1.0
