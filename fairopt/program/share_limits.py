"""Limits that are limits on shares alone, wherever tasks run: those on tasks, most on parallelism, those of queues for the whole cluster.

A limit sum of a[p] x[p] <= b is one on shares, where a[p] / u[p] is the same k[n] on all pairs of each user n in it:

    sum over users of k[n] U[n] <= b.

Whoever follows the shares knows when such a limit is full, without a program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.program.limits import LimitKind
from fairopt.program.program import Program

__all__ = ["ShareLimits"]

_SAME = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class ShareLimits:
    """The limits of a program that are limits on shares.

    Attributes
    ----------
    rows : bool array (limits,)
        Which they are.
    uses : sparse array (share limits, users)
        k, what a unit of the share of a user takes.
    bounds : array (share limits,)
    """

    rows: BoolArray
    uses: sp.csr_array
    bounds: FloatArray

    @classmethod
    def of(cls, program: Program) -> ShareLimits:
        """Return those of a program."""
        limits, users = program.limits, len(program.users)
        rows = np.isin(limits.kinds, (LimitKind.TASKS, LimitKind.PARALLELISM, LimitKind.QUEUE)) & (limits.bounds > 0)
        where = np.flatnonzero(rows)
        entries = sp.coo_array(limits.matrix[where])
        row, pair = entries.coords
        per_share = entries.data / program.utilities[pair]
        key = row.astype(np.int64) * users + program.pair_users[pair]
        groups, place = np.unique(key, return_inverse=True)
        low, high = np.full(groups.size, np.inf), np.zeros(groups.size)
        np.minimum.at(low, place, per_share)
        np.maximum.at(high, place, per_share)
        pairs = np.bincount(program.pair_users, minlength=users)
        even = (high <= low * (1 + _SAME)) & (np.bincount(place, minlength=groups.size) == pairs[groups % users])
        kept = np.bincount(groups // users, weights=~even, minlength=where.size) == 0
        rows[where[~kept]] = False
        uses = sp.csr_array((high, (groups // users, groups % users)), shape=(where.size, users))
        return cls(rows, sp.csr_array(uses[kept]), limits.bounds[where[kept]])

    def left(self, shares: FloatArray) -> FloatArray:
        """Return what is left of each limit, (share limits,)."""
        return np.asarray(self.bounds - self.uses @ shares)

    def users_of(self, limits: BoolArray) -> BoolArray:
        """Return which users take something of some of these limits, (users,)."""
        return np.asarray(self.uses.T @ limits.astype(np.float64) > 0)
