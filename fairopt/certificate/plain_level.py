r"""The plain proof of a level of a leximin: what its own prices prove, without anything that lower levels imply.

The levels t[1] < t[2] < ... settle the users one after the other. At level k, let F be the users settled at lower levels, at L[n] each, and
R the other users. For any prices p >= 0 of the limits let

    q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair],        sigma = sum of q over R.

q[n] is the lowest cost of one unit of level for user n. For every feasible x with levels s[n], and s >= L on F,

    p.b >= p.Ax >= sum_n q[n] s[n] >= sum_F q[n] L[n] + sum_R q[n] s[n].

So the minimum of s over R is at most  bound = (p.b - sum_F q L) / sigma,  and if s >= t[k] on R, a user n of R has
s[n] <= t[k] + sigma (bound - t[k]) / q[n]. This gives two residuals, both relative to t[k], the second for every user n settled at level k:

    optimality   (bound - t[k]) / t[k]                           no allocation has a higher k-th level
    fairness     sigma (bound - t[k]) / (q[n] t[k])              no allocation raises n above level k without harming a user at or below it

If every user is settled exactly once and all residuals are 0, the allocation is the leximin, by induction over k. The bound holds for any
prices p, so it does not matter where they come from. t[k] is computed from the answer; its difference from the value that the solver
reports counts as optimality.

*Rounding.* Capacities are taken to be known to 14 digits: 1e-14 p.b is subtracted from the bound. Otherwise the level of a user with a
billionth of a server would be judged by the rounding of the other users. So that nothing else is lost in these digits (the price of another
server may be arbitrarily large), the gap is at least the sum of the terms of

    g = sigma (bound - t[k]) = p.(b - Ax) + sum over pairs of x (A'p - q u / phi) + sum_R q (s - t[k]) + sum_F q (s - L).

All terms are >= 0, and each is known to 14 digits of its own. A user whose part q[n] s[n] of the spending is below 1e-13 proves nothing: it
may be a solver's noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import DIGITS

__all__ = ["PlainGap", "plain_gap"]


class PlainGap(NamedTuple):
    """g of a level, and its parts, in units of the prices.

    Attributes
    ----------
    spent : float
        Price of all limits.
    dear : array (pairs,)
        By how much a pair costs more than it is worth.
    beside_dear : float
        What g has beside dear pairs, summed directly: free limits, and users above the level.
    own : float
        g.
    """

    spent: float
    dear: FloatArray
    beside_dear: float
    own: float


def plain_gap(
    bounds: FloatArray,
    prices: FloatArray,
    positive: FloatArray,
    cost: FloatArray,
    paid: FloatArray,
    worth: FloatArray,
    q: FloatArray,
    levels: FloatArray,
    target: FloatArray,
    rising: BoolArray,
    *,
    free: FloatArray,
    used: FloatArray,
) -> PlainGap:
    """Return g of a level.

    Parameters
    ----------
    bounds, prices, positive : arrays (limits,)
        b; p; and the part of p above 0.
    cost, paid, worth : arrays (pairs,)
        A'p; the same with all prices above 0; and q u / phi.
    q, levels, target : arrays (users,)
        The cheapest price of a unit of level, what users have, and what they have at this level.
    rising : bool array (users,)
        R.
    free : array (limits,)
        What the answer leaves of each limit, beyond rounding.
    used : array (pairs,)
        The answer.
    """
    spent = float(np.abs(prices) @ bounds)
    held = (q * np.where(rising, target, levels)).sum()  # in pairs, unlike a product of arrays: one user of a million counts
    beyond = float(prices @ bounds - held) - spent * DIGITS
    # The same difference is a sum of terms >= 0: free limits, pairs that cost more than they are worth, users above the level. Summed
    # directly, small terms are not lost in the rounding of the bound.
    dear = np.maximum(cost - paid * DIGITS - worth, 0.0)
    above = np.maximum(levels[rising] - target[rising] * (1 + DIGITS), 0.0)
    beside_dear = float(positive @ free + q[rising] @ above)
    return PlainGap(spent, dear, beside_dear, max(beyond, beside_dear + float(dear @ used), 0.0))
