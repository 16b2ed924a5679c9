"""Limits that are limits on shares alone, wherever tasks run: on tasks, most on parallelism, of queues, of the cluster.

A limit sum of a[p] x[p] <= b is one on shares if a[p] / u[p] has the same value k[n] on all pairs of each user n in it:

    sum over users of k[n] U[n] <= b.

So the shares alone show when such a limit is full, and no program is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import SAME
from fairopt.program.limits import ACROSS_SERVERS, LimitKind, Limits
from fairopt.program.program import Program
from fairopt.program.sparse_rows import by_rows, entries_of, stacked
from fairopt.program.tree_filling import Part

__all__ = ["ShareLimits", "during"]


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
    bounds : array (share limits,)
    """

    limits: Limits
    rows: BoolArray
    uses: sp.csr_array
    bounds: FloatArray

    @cached_property
    def by_user(self) -> sp.csr_array:
        """k by users, (users, share limits): it is asked for at every change of rates."""
        return sp.csr_array(self.uses.T)

    @cached_property
    def others(self) -> Limits:
        """The other limits, of which a program must say whether they are full."""
        return self.limits.select(~self.rows)

    @classmethod
    def of(cls, program: Program, part: Part | None = None) -> ShareLimits:
        """Return those of a program, or of the guarantees of a ``part`` of its goal alone.

        They are found once: whether an engine wins, its methods, its paths, and the proof all ask.
        """
        if program._share_limits is None:
            object.__setattr__(program, "_share_limits", {})
        known: dict[Part | None, ShareLimits] = program._share_limits
        if part not in known:
            limits = program.limits if part is None else part.extra
            assert limits is not None  # a part without extra limits has none
            known[part] = cls._of(program if part is None else replace(program, limits=limits))
        return known[part]

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
        return cls(limits, rows, by_rows(use, row, user, (number, users)), limits.bounds[where[kept]])

    def above(self, others: ShareLimits, limits: Limits) -> ShareLimits:
        """Return those of all ``limits``, of which these are the first and others the last, maybe with other bounds."""
        rows = np.append(self.rows, others.rows)
        return ShareLimits(limits, rows, stacked([self.uses, others.uses]), limits.bounds[rows])

    def left(self, shares: FloatArray) -> FloatArray:
        """Return what is left of each limit, (share limits,)."""
        return np.asarray(self.bounds - self.uses @ shares)

    def users_of(self, limits: BoolArray) -> BoolArray:
        """Return which users take something of some of these limits, (users,)."""
        return np.asarray(self.by_user @ limits.astype(np.float64) > 0)


def during(program: Program, part: Part, bounds: FloatArray | None) -> Program:
    """Return the program of a part of its goal: behind its limits those of the part, with these bounds; None: with their own."""
    extra = part.limits(bounds)
    if extra is None:
        return program
    keys = extra.keys.copy()
    keys[:, 0] += len(program.queue_limits)
    limits = Limits.stack([program.limits, replace(extra, keys=keys)])
    of_part = replace(program, limits=limits, queue_limits=program.queue_limits + part.names)
    if part.extra is not None and ((extra.bounds > 0) == (part.extra.bounds > 0)).all():  # the same rows count as limits on shares
        found = ShareLimits.of(program).above(ShareLimits.of(program, part), limits)
        object.__setattr__(of_part, "_share_limits", {None: found})
    return of_part
