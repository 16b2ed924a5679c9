r"""Alpha-fair goals of many users whose pairs use one limit each: a path for the few users who are split among limits.

Let q[p] be the part of its limit that a unit of utility takes at pair p = (n, i), and y[i] the price of the whole limit i. A unit costs
q[p] y[i] there. User n buys where that is least, and its utility is t[n] = (phi[n] / least cost)^(1 / alpha). So the prices determine
everything, except how much a user buys where several pairs cost it the same, and near the right prices nearly every user has one pair whose
cost is near the least. All users with the same limit who buy at one pair alone are, together, one user:

    sum_n q[n] t[n] = y[i]^(-1 / alpha) sum_n w[n],        w[n] = (phi[n] q[n]^(alpha - 1))^(1 / alpha).

This user takes the whole limit for a unit of utility and has the weight (sum_n w[n])^alpha. Its users share what it gets in the proportions
w[n], at any prices. So we

    solve for a sample of the users;  keep the pairs whose cost is near the least of their user;  solve for the kept pairs, in which users
    with one pair are one user a limit;  at its prices, keep the pairs besides that cost no more than those that are kept

until there are none. At the same prices, each user of a sample demands as much as the users that it stands for if its weight is multiplied
by (their number)^alpha.

How near the least a cost has to be follows from the spending that prices misplace: if every user bought at its cheapest pair, some limits
would sell too much and some too little. In proportion to this part, at the limit where it is largest, pairs besides the cheapest are kept:
with too few of them, that limit would have to find its users by its price alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import AlphaFair, LimitKind, Limits, Program, Solution
from fairopt.solvers.active_sets.problem import LARGEST_LOG
from fairopt.solvers.interior_point.settings import SAMPLES

__all__ = ["Start", "fits", "solve_by_sample"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a path begins: parts of its limit for each pair of a program, (pairs,), and prices, (limits,), in any unit of money."""

    slices: FloatArray
    prices: FloatArray


Follow = Callable[[Program, AlphaFair, Start | None, float], Solution | None]


def fits(program: Program) -> bool:
    """Are users many, and does each pair use one limit, of a server?"""
    limits, matrix, n = program.limits, program.limits.matrix, len(program.users)
    if n < max(SAMPLES.users_of_samples, SAMPLES.users_per_limit * len(limits)) or matrix.nnz != program.n_pairs:
        return False
    if not limits.of_kinds(LimitKind.CAPACITY, LimitKind.TIME).all():
        return False
    positive = (matrix.data > 0).all() and (limits.bounds > 0).all()
    return bool(positive and (np.bincount(matrix.indices, minlength=program.n_pairs) == 1).all())


def solve_by_sample(program: Program, goal: AlphaFair, follow: Follow) -> Solution | None:
    """Return the optimum of a program that `fits`; None if a path does not converge.

    Parameters
    ----------
    follow : callable
        The path: it takes a program, its goal, where to begin, and the gap at which to end (0: the end of the path).
    """
    users = _Users.of(program, goal)
    asked, start, gap = users.sampled(), None, SAMPLES.rough
    reduced, steps, kept = None, 0, np.zeros(users.q.size, bool)
    for number in range(SAMPLES.rounds_of_samples):
        found = follow(*asked, start, gap)
        if found is None or found.prices is None or not (found.prices > 0).all():
            return None
        steps += found.iterations
        excess = users.excess(found.prices)
        if reduced is not None and not reduced.is_rough:
            more = ~kept & (excess < SAMPLES.clear)
            if not more.any():
                return reduced.answer(found, steps)
            kept, is_rough = kept | more, False
        else:
            besides = users.to_keep(excess, found.prices)
            kept, is_rough = excess <= users.threshold(excess, besides), number == 0 and besides > SAMPLES.few
        reduced = _Reduced.of(users, kept, is_rough)
        log.info("%d of %d users have several pairs, %d of all pairs are kept", int(reduced.stays.sum()), users.n, int(kept.sum()))
        asked, start, gap = reduced.program(), Start(reduced.slices(), found.prices), SAMPLES.rough if is_rough else 0.0
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Users:
    """The users who have pairs.

    Attributes
    ----------
    program : Program
    alpha : float
    log_phi : array (users,)
    user, limit : int arrays (pairs,)
    first : int array (users,)
        First pair of each.
    q : array (pairs,)
        Part of the limit that a unit of utility takes.
    """

    program: Program
    alpha: float
    log_phi: FloatArray
    user: IntArray
    limit: IntArray
    first: IntArray
    q: FloatArray

    @classmethod
    def of(cls, program: Program, goal: AlphaFair) -> _Users:
        """Read a program that `fits`."""
        matrix = program.limits.matrix
        limit, q = np.empty(program.n_pairs, np.int64), np.empty(program.n_pairs)
        row = np.repeat(np.arange(len(program.limits)), np.diff(matrix.indptr))
        limit[matrix.indices] = row
        q[matrix.indices] = matrix.data / program.limits.bounds[row]
        new = np.diff(program.pair_users, prepend=-1) > 0
        first = np.flatnonzero(new)
        log_phi = np.log(goal.weights[program.pair_users[first]])
        return cls(program, goal.alpha, log_phi, np.cumsum(new) - 1, limit, first, q / program.utilities)

    @property
    def n(self) -> int:
        """Number of users."""
        return int(self.first.size)

    def excess(self, prices: FloatArray) -> FloatArray:
        """Return the relative cost of each pair beyond the least of its user at prices of whole limits, (pairs,)."""
        cost = self.q * prices[self.limit]
        return np.asarray(cost / np.minimum.reduceat(cost, self.first)[self.user] - 1)

    def to_keep(self, excess: FloatArray, prices: FloatArray) -> int:
        """Return how many pairs besides the cheapest to keep, in proportion to the spending that prices misplace."""
        pair = np.flatnonzero(excess <= 0)
        user, limit = self.user[pair], self.limit[pair]
        # t cost = phi^(1 / alpha) cost^(1 - 1 / alpha)
        log_spent = (self.log_phi[user] + (self.alpha - 1) * np.log(self.q[pair] * prices[limit])) / self.alpha
        spent = np.bincount(limit, weights=np.exp(log_spent - log_spent.max()), minlength=prices.size)
        misplaced = float(np.abs(spent / spent.sum() * (prices.sum() / prices) - 1).max())
        return int(max(SAMPLES.more * misplaced * self.n, SAMPLES.fewest))

    def threshold(self, excess: FloatArray, besides: int) -> float:
        """Return the excess up to which so many pairs besides the cheapest are kept."""
        last = self.n - 1 + besides
        return float(np.partition(excess, last)[last]) if last < excess.size else np.inf

    def sampled(self) -> tuple[Program, AlphaFair]:
        """Return the program of a sample of the users, who stand for all; the unit of money is free."""
        every = max(1, self.n // min(max(SAMPLES.sample, self.n // SAMPLES.one_in), SAMPLES.largest_sample))
        chosen = np.zeros(self.n, bool)
        chosen[every // 2 :: every] = True
        goal = AlphaFair(self.alpha, np.exp(self.log_phi[chosen] - self.log_phi[chosen].max()))
        pairs = np.flatnonzero(chosen[self.user])
        return self.part(pairs, np.cumsum(chosen)[self.user[pairs]] - 1, goal), goal

    def part(self, pairs: IntArray, number: IntArray, goal: AlphaFair, alone: IntArray | None = None) -> Program:
        """Return the program of some pairs and the numbers of their users, and of one user for each of some limits.

        Columns count parts of their limits.
        """
        more = np.zeros(0, np.int64) if alone is None else alone
        before, keys, n = self.program, self.program.limits.keys, goal.weights.size
        limit = np.append(self.limit[pairs], more)
        matrix = sp.csr_array((np.ones(limit.size), (limit, np.arange(limit.size))), shape=(len(before.limits), limit.size))
        return replace(
            before,
            users=tuple(str(each) for each in range(n)),
            pair_users=np.append(number, np.arange(n - more.size, n)),
            pair_servers=np.append(before.pair_servers[pairs], keys[more, 0]),
            utilities=np.append(1 / self.q[pairs], np.ones(more.size)),
            limits=Limits(matrix, np.ones(len(before.limits)), before.limits.kinds, keys),
            goal=goal,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Reduced:
    """The kept pairs, in which users with one pair are one user a limit.

    Attributes
    ----------
    users : _Users
    stays : bool array (users,)
        Which users have several pairs.
    pairs : int array
        Theirs.
    own : int array
        The pairs of the others.
    part : array
        What each of the others gets of what all of its limit get.
    alone : int array
        The limits of the others.
    log_weight : array
        Of the one user of each of these limits.
    is_rough : bool
        Do the prices only tell which pairs to keep?
    """

    users: _Users
    stays: BoolArray
    pairs: IntArray
    own: IntArray
    part: FloatArray
    alone: IntArray
    log_weight: FloatArray
    is_rough: bool

    @classmethod
    def of(cls, users: _Users, kept: BoolArray, is_rough: bool) -> _Reduced:
        """Put users with one pair together."""
        stays = np.add.reduceat(kept, users.first, dtype=np.int64) > 1
        pairs, own = np.flatnonzero(kept & stays[users.user]), np.flatnonzero(kept & ~stays[users.user])
        alpha, limit, n = users.alpha, users.limit[own], len(users.program.limits)
        log_w = (users.log_phi[users.user[own]] + (alpha - 1) * np.log(users.q[own])) / alpha
        highest = np.full(n, -np.inf)
        np.maximum.at(highest, limit, log_w)
        w = np.exp(log_w - highest[limit])
        total = np.bincount(limit, weights=w, minlength=n)
        alone = np.flatnonzero(total)
        log_weight = alpha * (np.log(total[alone]) + highest[alone])
        return cls(users, stays, pairs, own, w / total[limit], alone, log_weight, is_rough)

    @property
    def _log_weights(self) -> FloatArray:
        return np.append(self.users.log_phi[self.stays], self.log_weight)

    def program(self) -> tuple[Program, AlphaFair]:
        """Return the program, and its goal in a unit of money in which the largest weight is 1."""
        log_weights = self._log_weights
        goal = AlphaFair(self.users.alpha, np.exp(log_weights - log_weights.max()))
        return self.users.part(self.pairs, np.cumsum(self.stays)[self.users.user[self.pairs]] - 1, goal, self.alone), goal

    def slices(self) -> FloatArray:
        """Return parts of half of every limit, divided by the numbers of users, (columns,)."""
        users, n = self.users, len(self.users.program.limits)
        user = users.user[self.pairs]
        limit = np.append(users.limit[self.pairs], self.alone)
        number = np.append(1 / np.bincount(user)[user], np.bincount(users.limit[self.own], minlength=n)[self.alone])
        return np.asarray(0.5 * number / np.bincount(limit, weights=number)[limit])

    def answer(self, found: Solution, steps: int) -> Solution:
        """Return the answer of all users."""
        assert found.prices is not None
        users, program = self.users, self.users.program
        together = np.zeros(len(program.limits))
        together[self.alone] = found.x[self.pairs.size :]
        x = np.zeros(users.q.size)
        x[self.pairs] = found.x[: self.pairs.size]
        x[self.own] = together[users.limit[self.own]] * self.part
        log_price = np.log(found.prices) + self._log_weights.max() - np.log(program.limits.bounds)
        prices = np.exp(log_price - max(0.0, float(log_price.max()) - LARGEST_LOG))  # in parts of the largest where floating point ends
        return replace(found, x=x / (users.q * program.utilities), prices=prices, iterations=steps)
