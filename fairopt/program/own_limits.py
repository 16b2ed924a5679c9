"""Upper bounds ("caps") on the level of a user that follow from its own limits, on tasks and on parallelism.

A limit of user n alone, sum_i a[n,i] x[n,i] <= b with a > 0, bounds the level s[n] = sum_i u[n,i] x[n,i] / phi[n], whatever other users do:

    s[n] <= b max_i u[n,i] / (phi[n] a[n,i]).

If only some pairs have price 0 ("free" pairs), the same bound over these pairs is the level up to which the user pays nothing.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import Limits, Program

__all__ = ["OwnLimits"]


class OwnLimits:
    """The limits of single users, and the caps that follow from them.

    Parameters
    ----------
    program : Program
    per_level : array (pairs,)
        u[n,i] / phi[n]: the level of the user per task on the pair.

    Attributes
    ----------
    rows : int array (own,)
        Positions of the limits of single users among those of the program.
    users : int array (own,)
        The user of each.
    """

    def __init__(self, program: Program, per_level: FloatArray) -> None:
        limits = self._limits = program.limits
        self.rows, self.row, self.pair, self.use = limits.once("own", lambda: _own_rows(limits))
        self.users: IntArray = limits.keys[self.rows, 0]
        self.number = len(program.users)
        self.bounds = limits.bounds[self.rows]
        self.worth = per_level[self.pair] / self.use  # level per unit of the limit
        self.per_level = per_level
        self.pair_users = program.pair_users
        self.n_pairs = program.n_pairs

    @cached_property
    def even(self) -> BoolArray:
        """Which limits are equivalent to a cap, (own,): a unit of level uses the same amount of them on every pair of the user."""
        low = np.full(self.rows.size, np.inf)
        np.minimum.at(low, self.row, self.worth)
        return self._covers_all & (self._most(self.row, self.worth) <= low * (1 + ROUNDING))

    def _most(self, row: IntArray, worth: FloatArray) -> FloatArray:
        high = np.zeros(self.rows.size)
        np.maximum.at(high, row, worth)
        return high

    @property
    def _covers_all(self) -> BoolArray:
        """Which limits have an entry for every pair of their user, (own,)?"""
        covers: BoolArray = self._limits.once("own limits of all pairs", lambda: self._covers(np.ones(self.n_pairs, bool)))
        return covers

    def _covers(self, free: BoolArray) -> BoolArray:
        """Which limits have an entry for every free pair of their user, (own,)?"""
        pairs = np.bincount(self.pair_users[free], minlength=self.number)
        return np.asarray(np.bincount(self.row[free[self.pair]], minlength=self.rows.size) == pairs[self.users])

    def caps(self, free: BoolArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return the cap of each user over its free pairs (default: all pairs), and which of ``rows`` it comes from.

        Both have shape (users,). They are inf and -1 for a user whose own limits give no cap, or that has no free pair.
        """
        if free is None:
            covers, high = self._covers_all, self._most(self.row, self.worth)
        else:
            kept = free[self.pair]
            covers, high = self._covers(free), self._most(self.row[kept], self.worth[kept])
        bound = np.where(covers & (high > 0), self.bounds * high, np.inf)  # no free pair: no cap
        cap, which = np.full(self.number, np.inf), np.full(self.number, -1)
        order = np.flatnonzero(np.isfinite(bound))
        order = order[np.argsort(-bound[order], kind="stable")]  # the smallest cap of a user comes last, and overwrites the others
        cap[self.users[order]], which[self.users[order]] = bound[order], order
        return cap, which

    def price_beyond(self, k: int, cost: FloatArray, free: BoolArray) -> float:
        """Return the largest price of limit ``rows[k]`` at which its user's free pairs are still its cheapest; inf if there is none.

        ``cost`` (pairs,) is the cost of a task at the prices of the other limits. Beyond its cap the user has to use other pairs, which use
        less of this limit: it pays this price for the difference.
        """
        span = slice(*np.searchsorted(self.row, [k, k + 1]))
        pairs, use = self.pair[span], self.use[span]
        worth = self.per_level[pairs]
        # Use of the limit per task: on the free pairs for the same level, minus that on the pair.
        saved = float((worth / use)[free[pairs]].max()) ** -1 * worth - use
        dearer = saved > ROUNDING * use
        return float((cost[pairs][dearer] / saved[dearer]).min(initial=np.inf))


def _own_rows(limits: Limits) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the positions of the limits of single users, and of each of their entries the limit among these, the pair and the value."""
    own = ~limits.of_servers
    rows: IntArray = np.flatnonzero(own)
    entries = np.diff(limits.matrix.indptr)
    here = np.repeat(own, entries)  # not by slicing the matrix, which takes longer
    row: IntArray = np.repeat(np.arange(rows.size), entries[rows])
    return rows, row, np.asarray(limits.matrix.indices[here]), np.asarray(limits.matrix.data[here], float)
