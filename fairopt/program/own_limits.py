"""What the limits of a user's own (its tasks, its parallelism) let its level be.

A limit of user n alone, sum_i a[n,i] x[n,i] <= b with a > 0, bounds the level s[n] = sum_i u[n,i] x[n,i] / phi[n] whatever the others do:

    s[n] <= b max_i u[n,i] / (phi[n] a[n,i])

and while only some pairs are free of charge, a level above the same bound, taken over these pairs alone, has to be paid for elsewhere.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Program

__all__ = ["OwnLimits"]

_SAME = 1e-15


class OwnLimits:
    """The limits of single users, and the caps on levels that follow from them.

    Parameters
    ----------
    program : Program
    per_level : array (pairs,)
        Level of the user per task on the pair.

    Attributes
    ----------
    rows : int array (own,)
        Positions of the limits that belong to one user.
    users : int array (own,)
        That user.
    """

    def __init__(self, program: Program, per_level: FloatArray) -> None:
        limits = program.limits
        own = ~limits.of_servers
        self.rows: IntArray = np.flatnonzero(own)
        self.users: IntArray = limits.keys[self.rows, 0]
        self.number = len(program.users)
        self.bounds = limits.bounds[self.rows]
        entries = np.diff(limits.matrix.indptr)
        here = np.repeat(own, entries)  # by hand: slicing would cost more than all the rest, at each of the events of a simulation
        self.row: IntArray = np.repeat(np.arange(self.rows.size), entries[self.rows])
        self.pair, self.use = limits.matrix.indices[here], limits.matrix.data[here]
        self.worth = per_level[self.pair] / self.use  # level per unit of the limit
        self.per_level = per_level
        self.pair_users = program.pair_users
        self.n_pairs = program.n_pairs

    @cached_property
    def even(self) -> BoolArray:
        """Which limits are nothing but a cap on the level, (own,): all pairs of the user take the same of them for the same level."""
        low, high = self._extremes(np.ones(self.row.size, bool))
        return self._covers(np.ones(self.n_pairs, bool)) & (high <= low * (1 + _SAME))

    def _extremes(self, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.full(self.rows.size, np.inf), np.zeros(self.rows.size)
        np.minimum.at(low, self.row[kept], self.worth[kept])
        np.maximum.at(high, self.row[kept], self.worth[kept])
        return low, high

    def _covers(self, free: BoolArray) -> BoolArray:
        """Does each limit bound all the free pairs of its user?"""
        pairs = np.bincount(self.pair_users[free], minlength=self.number)
        return np.asarray(np.bincount(self.row[free[self.pair]], minlength=self.rows.size) == pairs[self.users])

    def caps(self, free: BoolArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return the level that each user cannot pass on its free pairs (default: all), and which of ``rows`` says so.

        Both have shape (users,); inf and -1 where no limit does, or where the user has no free pair: what stops it then are prices.
        """
        free = np.ones(self.n_pairs, bool) if free is None else free
        _, high = self._extremes(free[self.pair])
        bound = np.where(self._covers(free) & (high > 0), self.bounds * high, np.inf)  # who has no free pair buys all, and has no cap
        cap, which = np.full(self.number, np.inf), np.full(self.number, -1)
        order = np.flatnonzero(np.isfinite(bound))
        order = order[np.argsort(-bound[order], kind="stable")]  # of several of a user the smallest comes last, and stays
        cap[self.users[order]], which[self.users[order]] = bound[order], order
        return cap, which

    def price_beyond(self, k: int, cost: FloatArray, free: BoolArray) -> float:
        """Return the largest price of limit ``rows[k]`` at which its user's cheapest level is still that of its free pairs.

        ``cost`` (pairs,) is what the shared limits cost; beyond its cap the user has to buy at that price. inf: nothing is left to buy.
        """
        span = slice(*np.searchsorted(self.row, [k, k + 1]))
        pairs, use = self.pair[span], self.use[span]
        worth = self.per_level[pairs]
        saved = float((worth / use)[free[pairs]].max()) ** -1 * worth - use  # of the limit, per task there instead of on the free pairs
        dearer = saved > _SAME * use
        return float((cost[pairs][dearer] / saved[dearer]).min(initial=np.inf))
