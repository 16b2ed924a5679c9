"""Limits that are limits on shares alone, wherever tasks run: on tasks, most on parallelism, of queues, of the cluster.

A limit sum of a[p] x[p] <= b is one on shares if a[p] / u[p] has the same value k[n] on all pairs of each user n in it:

    sum over users of k[n] U[n] <= b.

So the shares alone show when such a limit is full, and no program is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import SAME
from fairopt.program.limits import ACROSS_SERVERS, LimitKind, Limits
from fairopt.program.program import Program
from fairopt.program.sparse_rows import by_rows, entries_of

__all__ = ["ShareLimits"]


@dataclass(frozen=True, eq=False)
class ShareLimits:
    """The limits of a program that are limits on shares.

    Attributes
    ----------
    limits : Limits
        All limits of the program.
    rows : bool array (limits,)
        Which they are.
    uses : sparse array (share limits, users)
        k, what a unit of the share of a user takes.
    by_user : sparse array (users, share limits)
        The same, transposed: it is asked for at every change of rates.
    bounds : array (share limits,)
    """

    limits: Limits
    rows: BoolArray
    uses: sp.csr_array
    by_user: sp.csr_array
    bounds: FloatArray

    @cached_property
    def others(self) -> Limits:
        """The other limits, of which a program must say whether they are full."""
        return self.limits.select(~self.rows)

    @classmethod
    def of(cls, program: Program) -> ShareLimits:
        """Return those of a program, found once: whether an engine wins, its methods and its paths all ask."""
        if program._share_limits is None:
            object.__setattr__(program, "_share_limits", cls._of(program))
        found: ShareLimits = program._share_limits
        return found

    @classmethod
    def _of(cls, program: Program) -> ShareLimits:
        limits, users = program.limits, len(program.users)
        kinds = (LimitKind.TASKS, LimitKind.WITH_PAST, LimitKind.PARALLELISM, LimitKind.NAMED, *ACROSS_SERVERS)
        rows = limits.of_kinds(*kinds) & (limits.bounds > 0)
        where = np.flatnonzero(rows)
        entries, sizes = entries_of(limits.matrix, where)
        pair = limits.matrix.indices[entries]
        per_share = limits.matrix.data[entries] / program.utilities[pair]
        key = np.repeat(np.arange(where.size) * users, sizes) + program.pair_users[pair]
        if (np.diff(key) < 0).any():  # rows whose pairs are not in order
            order = np.argsort(key, kind="stable")
            key, per_share = key[order], per_share[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        groups = key[first]
        low, high = (np.minimum.reduceat(per_share, first), np.maximum.reduceat(per_share, first)) if first.size else (per_share, per_share)
        pairs = np.bincount(program.pair_users, minlength=users)
        even = (high <= low * (1 + SAME)) & (np.diff(first, append=key.size) == pairs[groups % users])
        kept = np.bincount(groups // users, weights=~even, minlength=where.size) == 0
        rows[where[~kept]] = False
        mine = kept[groups // users]
        row, user, use, number = (np.cumsum(kept) - 1)[groups[mine] // users], groups[mine] % users, high[mine], int(kept.sum())
        uses, by_user = by_rows(use, row, user, (number, users)), by_rows(use, user, row, (users, number))
        return cls(limits, rows, uses, by_user, limits.bounds[where[kept]])

    def left(self, shares: FloatArray) -> FloatArray:
        """Return what is left of each limit, (share limits,)."""
        return np.asarray(self.bounds - self.uses @ shares)

    def users_of(self, limits: BoolArray) -> BoolArray:
        """Return which users take something of some of these limits, (users,)."""
        return np.asarray(self.by_user @ limits.astype(np.float64) > 0)
