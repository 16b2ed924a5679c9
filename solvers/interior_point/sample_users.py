r"""Users whose pairs use one limit each, and at most one limit of the user's own: what they buy at given prices.

Let q[p] be the part of its limit that a unit of utility takes at pair p = (n, i), y[i] the price of the whole limit i, and h[p] the part
that a unit takes of the user's own limit, a number of servers at once; h = 0 for users without one. User n solves

    maximise phi g(t) - sum_p q[p] y[i] t[p]   subject to   sum_p h[p] t[p] <= 1,   t = sum_p t[p],   t[p] >= 0        g'(t) = t^-alpha

With a price o of the own limit, a unit costs q[p] y[i] + h[p] o at p. The least of these costs, m(o), decides: the user wants
t(o) = (phi / m(o))^(1 / alpha). If that fits into its own limit at o = 0, it buys at the pair with the least cost. Else o rises, and the
user moves from pair to pair, each with a smaller h, until what it wants fits. It then has one pair alone, which fills its own limit, or
both of two pairs that cost the same.

`Bought` is that answer, exact to rounding. `Users.margins` says how far prices may be from those of the optimum without a change of the
pairs that a user has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import AlphaFair, LimitKind, Program
from fairopt.solvers.interior_point.settings import SAMPLES

__all__ = ["Bought", "Users", "fits"]

_OF_SERVERS = (LimitKind.CAPACITY, LimitKind.TIME)


def fits(program: Program) -> bool:
    """Are users many, and does each pair use one limit, of a server, and at most one of its user's own, on servers at once?

    A server takes the same part of its limit for each user: of a pair, what it takes of both limits is proportional.
    """
    limits, matrix, n = program.limits, program.limits.matrix, len(program.users)
    of_servers = limits.of_kinds(*_OF_SERVERS)
    if n < max(SAMPLES.users_of_samples, SAMPLES.users_per_limit * int(of_servers.sum())):
        return False
    if not (of_servers | (limits.kinds == LimitKind.PARALLELISM)).all():
        return False
    if not ((matrix.data > 0).all() and (limits.bounds > 0).all() and (program.utilities > 0).all()):
        return False
    shared = np.repeat(of_servers, np.diff(matrix.indptr))
    used, own = (np.bincount(matrix.indices[some], minlength=program.n_pairs) for some in (shared, ~shared))
    if not (used == 1).all():
        return False
    return not own.any() or _own_limits_fit(program, own)


def _own_limits_fit(program: Program, own: IntArray) -> bool:
    """Has each user one limit of its own at most, of all of its pairs, in proportion to those of servers?"""
    users, rows = program.pair_users, program.limits.keys[program.limits.kinds == LimitKind.PARALLELISM, 0]
    each = np.zeros(len(program.users), np.int64)
    np.add.at(each, rows, 1)
    if (each > 1).any() or (own != each[users]).any():
        return False
    limit, taken, of_own = _entries(program)
    some = np.flatnonzero(of_own)
    ratio, of_limit = of_own[some] / taken[some], np.ones(len(program.limits))
    of_limit[limit[some]] = ratio
    return bool((np.abs(ratio - of_limit[limit[some]]) <= SAMPLES.units_of_rounding * ROUNDING * ratio).all())


def _entries(program: Program) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the limit of each pair, what the pair takes of it, and of its user's own limit (0: of none), (pairs,) each."""
    matrix, n = program.limits.matrix, program.n_pairs
    row, of_servers = np.repeat(np.arange(len(program.limits)), np.diff(matrix.indptr)), program.limits.of_kinds(*_OF_SERVERS)
    limit, taken, columns = np.empty(n, np.int64), np.empty(n), matrix.indices
    if of_servers.all():
        limit[columns], taken[columns] = row, matrix.data
        return limit, taken, np.broadcast_to(0.0, n)
    shared, own = of_servers[row], np.zeros(n)
    limit[columns[shared]], taken[columns[shared]], own[columns[~shared]] = row[shared], matrix.data[shared], matrix.data[~shared]
    return limit, taken, own


@dataclass(frozen=True, slots=True, eq=False)
class Bought:
    """What users buy at prices.

    Attributes
    ----------
    log_unit : float
        Logarithm of the unit of money of all prices here.
    excess : array (pairs,)
        Cost of a unit of utility beyond the least of its user, in parts of that; the own limit is paid for.
    first, second : int arrays (users,)
        The pairs that a user has; second: -1 for users with one pair. If there are two, the second has the smaller h.
    own : array (users,)
        Price of the own limit, 0 if it is not full.
    log_least, log_t : arrays (users,)
        Logarithms of the least cost of a unit, and of the utility.
    """

    log_unit: float
    excess: FloatArray
    first: IntArray
    second: IntArray
    own: FloatArray
    log_least: FloatArray
    log_t: FloatArray

    def same_as(self, other: Bought) -> BoolArray:
        """Return which users have the same pairs, and fill their own limits, in both answers, (users,)."""
        same: BoolArray = (self.first == other.first) & (self.second == other.second) & ((self.own > 0) == (other.own > 0))
        return same

    def pairs_of(self, users: BoolArray) -> IntArray:
        """Return the pairs that some users have."""
        second = self.second[users]
        return np.append(self.first[users], second[second >= 0])


@dataclass(frozen=True, slots=True, eq=False)
class Users:
    """The users who have pairs.

    Attributes
    ----------
    program : Program
    alpha : float
    log_phi : array (users,)
    user, limit : int arrays (pairs,)
        ``limit`` counts the limits of servers alone.
    first : int array (users,)
        First pair of each.
    q, h : arrays (pairs,)
        Parts of the limit, and of the user's own limit, that a unit of utility takes.
    shared : int array (limits,)
        The limits of servers, in the program.
    own_row : int array (users,)
        Position of the own limit in the program, -1 for users without one.
    kappa : array (limits,)
        What users take of their own limits if they have a whole limit; 1 for limits that nobody with an own limit uses.
    have_own : bool
        Have some users limits of their own? If not, each buys at the pair with the least cost.
    """

    program: Program
    alpha: float
    log_phi: FloatArray
    user: IntArray
    limit: IntArray
    first: IntArray
    q: FloatArray
    h: FloatArray
    shared: IntArray
    own_row: IntArray
    kappa: FloatArray
    have_own: bool

    @classmethod
    def of(cls, program: Program, goal: AlphaFair) -> Users:
        """Read a program that `fits`."""
        limits, (row, taken, own), of_pairs = program.limits, _entries(program), program.pair_users
        shared = np.flatnonzero(limits.of_kinds(*_OF_SERVERS))
        first = np.flatnonzero(np.diff(of_pairs, prepend=-1))
        members = of_pairs[first]
        log_phi, kappa, q = np.log(goal.weights[members]), np.ones(shared.size), taken / limits.bounds[row]
        user = of_pairs if first.size == len(program.users) else np.repeat(np.arange(first.size), np.diff(first, append=of_pairs.size))
        if shared.size == len(limits):
            without = np.broadcast_to(-1, first.size)
            return cls(program, goal.alpha, log_phi, user, row, first, q / program.utilities, own, shared, without, kappa, False)
        of_user, place = np.full(len(program.users), -1), np.zeros(len(limits), np.int64)
        place[shared] = np.arange(shared.size)
        limit, some = place[row], own > 0
        rows = np.flatnonzero(limits.kinds == LimitKind.PARALLELISM)
        of_user[limits.keys[rows, 0]] = rows
        kappa[limit[some]] = own[some] / q[some]
        h = own / limits.bounds[of_user[of_pairs]] / program.utilities
        own_row = of_user[members]
        have_own = bool((own_row >= 0).any())
        return cls(program, goal.alpha, log_phi, user, limit, first, q / program.utilities, h, shared, own_row, kappa, have_own)

    @property
    def n(self) -> int:
        """Number of users."""
        return int(self.first.size)

    @property
    def bounds(self) -> FloatArray:
        """The own limits, (users,); 1 for users without one."""
        return np.where(self.own_row >= 0, self.program.limits.bounds[self.own_row], 1.0)

    def bought(self, prices: FloatArray, log_unit: float) -> Bought:
        """Return what users buy at prices of whole limits, (limits,), in a unit of money."""
        log_phi, cost = self.log_phi - log_unit, self.q * prices[self.limit]
        if not self.have_own:
            return self._bought_at_least_cost(cost, log_phi, log_unit)
        at = _least(cost, self.h, self.first, self.user)
        second, own = np.full(self.n, -1), np.zeros(self.n)
        log_least = np.log(cost[at])
        log_t = (log_phi - log_least) / self.alpha
        moving = np.flatnonzero(log_t + np.log(self.h[at]) > 0)
        while moving.size:  # their own limits are exceeded at the price that they have by now
            of_these = np.zeros(self.n, bool)
            of_these[moving] = True
            pair = np.flatnonzero(of_these[self.user])
            number = (np.cumsum(of_these) - 1)[self.user[pair]]
            a = at[moving]
            less = self.h[a][number] - self.h[pair]
            meet = np.where(less > 0, (cost[pair] - cost[a][number]) / np.where(less > 0, less, 1.0), np.inf)
            following = _least(meet, self.h[pair], np.flatnonzero(np.diff(number, prepend=-1)), number)
            price, b = np.maximum(meet[following], own[moving]), pair[following]
            log_worth = log_phi[moving] + self.alpha * np.log(self.h[a])  # of a unit, where the pair alone fills the own limit
            alone = (np.exp(log_worth) - cost[a]) / self.h[a]
            ends = ~(alone > price)
            own[moving] = np.where(ends, alone, price)
            log_least[moving] = np.where(ends, log_worth, np.log(cost[b] + self.h[b] * np.where(ends, 0.0, price)))
            log_t[moving] = np.where(ends, -np.log(self.h[a]), (log_phi[moving] - log_least[moving]) / self.alpha)
            exceeds = ~ends & (log_t[moving] + np.log(self.h[b]) > 0)
            second[moving] = np.where(ends | exceeds, -1, b)
            at[moving] = np.where(exceeds, b, a)
            moving = moving[exceeds]
        excess = np.maximum((cost + self.h * own[self.user]) / np.exp(log_least)[self.user] - 1, 0.0)
        return Bought(log_unit, excess, at, second, own, log_least, log_t)

    def _bought_at_least_cost(self, cost: FloatArray, log_phi: FloatArray, log_unit: float) -> Bought:
        """Return what users without own limits buy, at the first pair of least cost; the costs, (pairs,), become what exceeds that."""
        least = np.minimum.reduceat(cost, self.first)
        of_pairs, log_least = least[self.user], np.log(least)
        at = np.flatnonzero(cost <= of_pairs)
        if at.size > self.n:
            at = at[np.diff(self.user[at], prepend=-1) > 0]
        excess = np.divide(cost, of_pairs, out=cost)
        excess -= 1.0
        none, free = np.broadcast_to(-1, self.n), np.broadcast_to(0.0, self.n)
        return Bought(log_unit, excess, at, none, free, log_least, (log_phi - log_least) / self.alpha)

    def parts(self, bought: Bought) -> tuple[FloatArray, FloatArray]:
        """Return the parts of its utility that each user has at its first and at its second pair, (users,) each."""
        if not self.have_own:
            return np.broadcast_to(1.0, self.n), np.broadcast_to(0.0, self.n)
        second = np.maximum(bought.second, 0)
        split, a, b, t = bought.second >= 0, self.h[bought.first], self.h[second], np.exp(bought.log_t)
        part = np.where(split, (a - 1 / t) / np.where(split, a - b, 1.0), 0.0)
        return 1 - part, part

    def misplaced(self, bought: Bought, prices: FloatArray) -> float:
        """Return the largest part of a limit by which what users buy differs from all of it; limits that are nearly free may have room.

        If nobody has an own limit, the unit of money is free.
        """
        shift = 0.0 if self.have_own else float(bought.log_t.max())
        t, (first, second) = np.exp(bought.log_t - shift), self.parts(bought)
        use = np.bincount(self.limit[bought.first], weights=first * t * self.q[bought.first], minlength=prices.size)
        if self.have_own:
            use += np.bincount(self.limit[bought.second], weights=second * t * self.q[bought.second], minlength=prices.size)
        else:
            use *= prices.sum() / float(use @ prices)
        return float(np.where(prices > SAMPLES.free * prices.max(), np.abs(use - 1), np.maximum(use - 1, 0.0)).max())

    def jumps(self, bought: Bought) -> FloatArray:
        """Return how near each user is to prices at which it moves from pair to pair at once, in parts of the cost of a unit, (users,).

        Those are prices at which one more pair costs the same, or at which the own limit of a user with two pairs costs nothing. A user
        with one pair that fills its own limit has none: another pair replaces it little by little.
        """
        jumps = self._nearest_other(bought)
        if not self.have_own:
            return jumps
        split = bought.second >= 0
        full, a, b = bought.own > 0, self.h[bought.first], self.h[np.maximum(bought.second, 0)]
        of_money = bought.own / np.exp(bought.log_least + bought.log_t)  # what of its money a user pays for its own limit
        jumps = np.where(full, np.where(split, np.minimum(jumps, of_money), np.inf), jumps)
        return np.where(split & (a - b < SAMPLES.alike * a), 0.0, jumps)

    def _nearest_other(self, bought: Bought) -> FloatArray:
        """Return the least excess of the pairs that a user does not have, inf if it has all of them, (users,)."""
        others = bought.excess.copy()
        others[bought.first] = np.inf
        if self.have_own:
            others[bought.second[bought.second >= 0]] = np.inf
        return np.minimum.reduceat(others, self.first)

    def margins(self, bought: Bought) -> FloatArray:
        """Return how near each user is to another choice of pairs or to a change of its own limit, in the same parts, (users,)."""
        if not self.have_own:
            return self.jumps(bought)
        split, full = bought.second >= 0, bought.own > 0
        a, b = self.h[bought.first], self.h[np.maximum(bought.second, 0)]
        to_first = self.alpha * (bought.log_t + np.log(a))  # logarithm of what a unit is worth where the first pair alone fills the limit
        to_second = -self.alpha * (bought.log_t + np.log(b))
        margins = np.minimum(self.jumps(bought), self._nearest_other(bought))
        margins = np.minimum(margins, np.where(full, bought.own / np.exp(bought.log_least + bought.log_t), np.expm1(-to_first)))
        return np.minimum(margins, np.where(split, np.expm1(np.minimum(to_first, to_second)), np.inf))

    def threshold(self, bought: Bought, margins: FloatArray, besides: int) -> float:
        """Return the margin up to which so many users are set apart; without own limits, with so many pairs besides the cheapest."""
        if besides >= self.n:
            return np.inf
        threshold = float(np.partition(margins, besides)[besides])
        if self.have_own or threshold == np.inf:
            return threshold
        near = np.flatnonzero(bought.excess <= threshold)
        others = near[near != bought.first[self.user[near]]]
        return float(np.partition(bought.excess[others], besides - 1)[besides - 1])

    def apart(self, bought: Bought, margins: FloatArray, threshold: float) -> tuple[BoolArray, BoolArray]:
        """Return the users with a margin up to a threshold, and the pairs of these that are as near, (users,) and (pairs,)."""
        apart = (margins <= threshold) & (margins < np.inf)
        kept = apart[self.user] & (bought.excess <= threshold)
        kept[bought.pairs_of(apart)] = True
        return apart, kept


def _least(values: FloatArray, ties: FloatArray, first: IntArray, user: IntArray) -> IntArray:
    """Return where the least value of each user is; of several where the second array is least, and of these the first."""
    among = np.where(values <= np.minimum.reduceat(values, first)[user], ties, np.inf)
    here = np.flatnonzero(among <= np.minimum.reduceat(among, first)[user])
    return np.asarray(here[np.diff(user[here], prepend=-1) > 0])
