r"""Proof of a leximin, level by level, recomputed from the answer and the prices of its levels.

Let the users be settled level by level, t[1] < t[2] < ..., and look at level k: F are the users settled before, at levels L[n], R the
others. Take any prices p >= 0 of the limits and let

    q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair],        sigma = sum of q over R,

the cheapest price at which user n can be lifted by one unit of level. For every feasible x with levels s[n], s >= L on F,

    p.b >= p.Ax >= sum_n q[n] s[n] >= sum_F q[n] L[n] + sum_R q[n] s[n].

So min over R of s is at most  bound = (p.b - sum_F q L) / sigma,  and where s >= t[k] on R, user n of R has
s[n] <= t[k] + sigma (bound - t[k]) / q[n]. Hence two residuals, both relative to t[k]:

    optimality   (bound - t[k]) / t[k]                           no allocation has a higher k-th level
    fairness     sigma (bound - t[k]) / (q[n] t[k])              no allocation lifts n above level k without hurting somebody at or below it

for every n settled at level k.

What a level lacks, however little, those above it have: who lives on a millionth of what others pay has a millionth too much where these
lack 1e-12. User n of a level may have d[n] = sigma (bound - t) / q[n] too little or too much of it. With the prices of level k,

    fairness     sum over the levels below of the largest q[n] d[n] of it / (sigma t[k])         level k is no higher at their expense

where q[n] is here the price of the dearest pair that is open to n. And what the answer takes beyond the limits, p.(Ax - b) where it is
positive, is added to sigma (bound - t): 1e-8 of a server is 1 % of what a user with a millionth of it has.

A user who has the most that a limit of its own (its tasks, its parallelism; ``fairopt.program.own_limits``) lets it have needs no proof;
by how
much it misses this limit counts as what it may lack or have too much. If every user is settled, once, or at such a limit, and all residuals
are 0, the allocation is the leximin, by induction over k.
The bound holds for any prices, so the prices may come from anywhere, and t[k] is what the answer reaches, not what the solver says it
does (their difference counts as optimality).

Digits. Capacities are taken to be known to 14 digits: 1e-14 p.b is subtracted from the bound, or the level of a user who takes a
billionth of a server would be judged by the rounding of the others. So that nothing else hides in these digits (the price of another
server can be as large as it likes), the gap is at least the sum of the terms of

    g = sigma (bound - t[k]) = p.(b - Ax) + sum over pairs of x (A'p - q u / phi) + sum_R q (s - t[k]) + sum_F q (s - L),

all of which are >= 0, each known to 14 digits of its own. A user whose part q[n] s[n] of the spending is below 1e-13 proves nothing: that
may be a solver's noise.

What the levels below leave. The same sum holds for every feasible x that has these levels, s >= L on F and s >= t[k] on R, and so it bounds
each of its terms. No such x has more of a pair than g / (A'p - q u / phi), leaves more of a limit than g / p, or gives a settled user more
above its level than g / q. Where that is next to nothing, the levels above may do without what it would cost: their q is the cheapest price
of the other pairs, and limits that are full and users who are settled may have prices below 0. What that adds to the bound is charged to
it: by as much as a pair is worth more than it costs, or as a price is below 0, times the most that there can be. All that one level k
bounds shares one g, so that of these charges the largest counts. (The sum of the prices of levels, each with a large factor, proves the
same by itself; but these factors grow with every level, and soon nothing could be read from the sum.) A pair that is not
closed and costs less than nothing is charged for all that it could ever be used. What is charged to a level is part of its own g for the
levels above, and so on.

What is not proved. Residuals that are not 0 are bounds to first order, where shares of very different size meet:
- that every g is at least its rounding, 2.2e-16 p.b, is charged to the levels above only once: the worst case doubles with every level;
- what those of F may have of a level is not passed on to the levels above;
- it is weighed against the level as a whole, though one user of it, of a small price, might gain all of it;
- who lacks something may need it of others of F, who then need dearer pairs: only its own pairs are looked at.
A leximin of n levels in which each lives on a millionth of the one below is not determined by 14 digits of its data.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits

__all__ = ["level_gaps"]

_NOISE = 1e-13  # a smaller part of all spending proves nothing
_DIGITS = 1e-14  # relative precision to which limits are taken to be known
_ROUNDING = 2.2e-16  # of a sum, at least
_TINY = 1e-300  # smaller prices are none
_FULL = 1e-9  # a user with this relative part missing still has the most that a limit of its own allows
_CLOSED = 0.01  # part of a level, or of a limit, below which what the levels below leave is next to nothing
_CLEAR = 1e-9  # part of a pair's cost that is more than rounding


def level_gaps(program: Program, goal: Leximin | Equalize, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels."""
    per_level = program.utilities / goal.weights[program.pair_users]
    levels = program.per_user(solution.x * per_level)
    open_to = program.per_user(program.largest()) > 0  # who can receive anything at all

    value = np.where(open_to, np.inf, 0.0)  # level at which each user was settled
    cap = OwnLimits(program, per_level).caps()[0]
    complete = ~open_to | (levels >= cap * (1 - _FULL))
    value[complete] = levels[complete]
    for stage in solution.stages:
        value[stage.users] = stage.value
    times = np.bincount(np.concatenate([np.zeros(0, np.int64), *(stage.users for stage in solution.stages)]), minlength=levels.size)
    if np.isinf(value).any() or times.max(initial=0) > 1 or not all(stage.users.size for stage in solution.stages):
        return 0.0, float("inf")
    if isinstance(goal, Equalize):
        spread = levels[open_to]
        unequal = float(np.ptp(spread) / spread.max()) if spread.size else 0.0
    else:
        unequal = 0.0

    optimality, fairness = unequal, 0.0
    doubt = np.where(complete, np.maximum(np.abs(np.where(open_to, cap, 0.0) - levels) - _DIGITS * levels, 0.0), 0.0)
    proof = _Proof(program, per_level, solution.x, levels, value, doubt)
    for stage in sorted(solution.stages, key=lambda stage: stage.value):
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows proves nothing
            missing, rise = proof.of(stage)
        if np.isnan(missing) or np.isnan(rise):
            missing = rise = float("inf")
        optimality = max(optimality, missing)
        if isinstance(goal, Leximin):
            fairness = max(fairness, rise)
        if np.isinf(missing):
            break
    return optimality, fairness


class _Proof:
    """The proofs of levels from below, and what they leave: the most that there can be of each pair, limit and surplus of a user."""

    def __init__(
        self, program: Program, per_level: FloatArray, x: FloatArray, levels: FloatArray, value: FloatArray, doubt: FloatArray
    ) -> None:
        self.users, self.limits = program.pair_users, program.limits
        self.per_level, self.x, self.levels, self.value = per_level, x, levels, value
        self.largest = program.largest()
        self.left = self.limits.bounds - self.limits.matrix @ x
        # Of pairs, of limits, of users; and which level says so.
        self.most = [np.full(size, np.inf) for size in (x.size, self.left.size, levels.size)]
        self.by = [np.full(most.size, -1) for most in self.most]
        self.totals: list[float] = []  # what everything with a price at a level costs at most
        self.real: list[float] = []  # of that, what is more than rounding
        self.doubt = doubt  # by how much the level at which each user was settled may be too low or too high
        self.settled_at = np.full(levels.size, -1)  # and at which level

    def of(self, stage: Stage) -> tuple[float, float]:
        """Return by how much the level, and some user of it, could be higher, relative to it."""
        if stage.prices is None:
            return float("inf"), float("inf")
        bounds, per_level, levels, users = self.limits.bounds, self.per_level, self.levels, self.users
        most_of_pairs, most_left, most_above = self.most
        prices = stage.prices / max(float(np.abs(stage.prices).max(initial=0.0)), _TINY)  # any unit will do
        prices = np.where(most_left > _CLOSED * bounds, np.maximum(prices, 0.0), prices)
        cost = np.asarray(self.limits.matrix.T @ prices)
        closed = most_of_pairs * per_level <= _CLOSED * levels[users]
        q = np.full(levels.size, np.inf)
        np.minimum.at(q, users[~closed], (cost / per_level)[~closed])
        q[np.isinf(q)] = 0.0
        # R: settled here or later. Who is at a limit of its own at a level below this one counts as settled before.
        rising = self.value >= stage.value
        rising[stage.users] = True
        q = np.where(rising | (most_above > _CLOSED * levels), np.maximum(q, 0.0), q)
        reached = float(levels[rising].min())
        sigma = float(q[rising].sum())
        if not 0 < sigma < np.inf or reached <= 0:  # no proof, or a user with room left at level 0
            return float("inf"), float("inf")
        worth = q[users] * per_level
        spent = float(np.abs(prices) @ bounds)
        bound = (float(prices @ bounds) - spent * _DIGITS - float(q[~rising] @ levels[~rising])) / sigma
        # The same difference is a sum of terms >= 0: what is left free, what is bought too dear, who is above the level. Small ones, which
        # the digits of the whole would hide, count by themselves.
        free = np.maximum(self.left - bounds * _DIGITS, 0.0)
        paid = np.asarray(self.limits.matrix.T @ np.abs(prices))
        dear = np.maximum(cost - paid * _DIGITS - worth, 0.0)
        above = np.maximum(levels[rising] - reached * (1 + _DIGITS), 0.0)
        small = float(np.maximum(prices, 0.0) @ free + dear @ np.maximum(self.x, 0.0) + q[rising] @ above)
        below_price = [np.maximum(worth - cost, 0.0) * closed, np.maximum(-prices, 0.0), np.maximum(-q, 0.0)]
        own_gap = max(bound - reached, small / sigma, 0.0)
        dearest = np.abs(q)  # who lacks something may find it only on a pair that costs more
        np.maximum.at(dearest, users[~closed], (cost / per_level)[~closed])
        dearest[rising] = 0.0
        alone = self.settled_at < 0
        surplus = self._charges([np.zeros(self.x.size), np.zeros(bounds.size), dearest])  # a level above may know better
        taken = min(self._taken(dearest), float(surplus @ self.real + dearest[alone] @ self.doubt[alone]))
        # What the answer takes beyond the limits, and what it has of pairs below 0.
        excess = float(np.maximum(prices, 0.0) @ np.maximum(-self.left - bounds * _DIGITS, 0.0) + dear @ np.maximum(-self.x, 0.0))
        charges = self._charges(below_price)
        # Nor does the level of a user bound what a pair that costs less than nothing earns.
        unbounded = float((np.maximum(-cost, 0.0) * (~closed & (q[users] >= 0))) @ self.largest)
        gap = own_gap + (float(charges @ self.totals) + unbounded) / sigma
        rounding = _ROUNDING * spent
        real = (sigma * own_gap if sigma * own_gap > rounding else 0.0) + float(charges @ self.real) + unbounded + excess
        least = float(q[stage.users].min())
        self.doubt[stage.users] = real / np.maximum(q[stage.users], _TINY)
        self.settled_at[stage.users] = len(self.totals)
        settled = ~rising
        settled[stage.users] = True
        dear[dear <= _CLEAR * paid] = 0.0
        self._learn(real, rounding, [dear, np.maximum(prices, 0.0), np.maximum(q, 0.0) * settled])

        own = levels[stage.users]
        told = float(np.abs(stage.value / own - 1).max(initial=0.0)) if (own > 0).all() else float("inf")
        proves = bool((q[stage.users] * own > _NOISE * spent).all())
        rise = (sigma * gap + excess) / (least * reached) if proves else float("inf")
        return max(gap / reached, told), max(rise, taken / (sigma * reached))

    def _taken(self, price: FloatArray) -> float:
        """Return what the doubt about users settled before is worth at these prices: of those of one level, the largest."""
        worth = np.where(price > 0, price, 0.0) * np.where(price > 0, self.doubt, 0.0)
        alone = self.settled_at < 0
        of_level = np.zeros(len(self.totals))
        np.maximum.at(of_level, self.settled_at[~alone], worth[~alone])
        return float(worth[alone].sum() + of_level.sum())

    def _charges(self, below_price: list[FloatArray]) -> FloatArray:
        """Return how often what each level bounds is charged for pairs, limits and users that cost less than they should, by so much."""
        times = np.zeros(len(self.totals))
        for by, most, amount in zip(self.by, self.most, below_price, strict=True):
            some = np.flatnonzero((amount > 0) & (by >= 0))
            np.maximum.at(times, by[some], amount[some] * most[some] / np.array(self.totals)[by[some]])
        return times

    def _learn(self, real: float, rounding: float, prices: list[FloatArray]) -> None:
        """Bound everything that has a price: all of it together costs no more than this total."""
        total = max(real, rounding)
        for by, most, price in zip(self.by, self.most, prices, strict=True):
            with np.errstate(divide="ignore"):
                now = total / price
            better = now < most
            most[better], by[better] = now[better], len(self.totals)
        self.totals.append(total)
        self.real.append(real)
