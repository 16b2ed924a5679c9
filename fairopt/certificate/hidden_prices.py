r"""What rounding hides in the prices of an alpha-fair answer: the part by which what a user has may be wrong.

At a large alpha users pay amounts that lie many orders of magnitude apart. A user who pays much and may choose among servers decides by
prices that it knows to 15 digits, or to what it wastes. The price of a limit that matters to a user who pays little may be smaller than
that. Then what the other one leaves of this limit is arbitrary: all conditions of optimality hold to rounding, and the user who pays little
may have much too little.

*Doubt.* Let c[p] = A'p be the cost of pair p, and e[p] what it costs its user beyond the cheapest way to be worth as much, plus one unit of
rounding of c[p] if the user has another pair that is about as cheap. For a full limit j,

    doubt of its price            e[p] / A[j,p]              by the pair p,
    matter of its price           s[j] = max A[j,q] / c[q]   over the used pairs q,
    part of the limit in doubt    h[j,p] = A[j,p] x[p] / b[j].

The price of some user is wrong by at most a part t of it, or else pairs with a doubt above t / s[j] decide about it. The figure is the
least t, of a few, for which the parts of no limit in doubt by more than t sum up to more than t. It takes one look at every number of A.

*Response.* A limit in doubt may be divided by other conditions: of two users who share a full server, one has what the other leaves. So if
that figure is large, the linear equations of the answer tell how far what users have would move with all of these doubts
(`fairopt.certificate.price_response`), and the smaller figure counts.

Prices of a user's own limit on tasks do not help it choose, where its tasks are worth the same on all servers: they are left out of e.
"""

from __future__ import annotations

import numpy as np

from fairopt.certificate.price_response import UNIT, Doubts, response
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import CERTIFIED, EXACT, NOTHING
from fairopt.program import AlphaFair, LimitKind, Program, Tradeoff

__all__ = ["hidden_part"]

_NEAR = 1e-6  # part of its cost by which a pair may be dearer, or of what its user has, from which on it counts as a choice
_ENOUGH = ((100, EXACT), (1_000, NOTHING))  # pairs, and a figure with which the equations, which take time, are left out
_LEVELS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def hidden_part(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray, prices: FloatArray) -> float:
    """Return the part by which what a user has may be wrong; 1 if nothing is known.

    Parameters
    ----------
    program : Program
    goal : AlphaFair or Tradeoff
        Its goal.
    x, prices : arrays (pairs,) and (limits,)
        Prices in any unit.
    """
    prices = np.maximum(prices, 0.0)
    top = float(prices.max(initial=0.0))
    if not 0 < top < np.inf or not x.any():
        return 0.0
    doubts = _doubts(program, x, prices / top)
    figure = _in_doubt(program, x, doubts)
    enough = next((level for pairs, level in _ENOUGH if program.n_pairs <= pairs), CERTIFIED)
    return figure if figure <= enough else min(figure, response(program, goal, x, doubts))


def _doubts(program: Program, x: FloatArray, prices: FloatArray) -> Doubts:
    """Return what pairs cost, and the doubt of that."""
    limits, users, number, worth = program.limits, program.pair_users, len(program.users), program.utilities
    there = program.largest() > 0
    tasks = limits.kinds == LimitKind.TASKS
    cost = np.asarray(limits.transposed @ prices)
    chosen_by, own = cost, np.zeros(len(limits), bool)
    if (tasks & (prices > 0)).any():
        least, most = program.range_of_utilities(there)
        alike = most <= least * (1 + UNIT)
        own[tasks] = alike[limits.keys[tasks, 0]]
        chosen_by = np.asarray(limits.transposed @ np.where(own, 0.0, prices))
    price = np.divide(chosen_by, worth, out=np.full(cost.size, np.inf), where=there & (worth > 0))
    cheapest = np.full(number, np.inf)
    np.minimum.at(cheapest, users[there], price[there])
    beyond = np.where(there, np.maximum(chosen_by - cheapest[users] * worth, 0.0), 0.0)
    level = program.per_user(worth * x)
    near = there & ((beyond <= _NEAR * chosen_by) | (worth * x > _NEAR * level[users]))
    choice = (np.bincount(users[near], minlength=number) > 1)[users]
    doubt = np.where(there & (x > 0), beyond + np.where(choice & near, UNIT * chosen_by, 0.0), 0.0)
    full = (limits.bounds > 0) & (limits.used(x) >= limits.bounds * (1 - _NEAR)) & ~own
    return Doubts(prices, cost, chosen_by, beyond, doubt, near & (x > 0), full, own & (prices > 0))


def _in_doubt(program: Program, x: FloatArray, doubts: Doubts) -> float:
    """Return the least t for which the parts of no limit that are in doubt by more than t sum up to more than t."""
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
