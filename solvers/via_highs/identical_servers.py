"""Whole tasks on identical servers: totals first, a packing afterwards.

Branch and cut over single servers meets the same allocation once for every order of identical servers. So the columns here are totals,
y[n,g]: the tasks of user n on all servers of group g. Totals satisfy the sum of the limits of their servers, a relaxation. Whether they
fit on the single servers is decided afterwards, group by group (`fairopt.solvers.via_highs.packing`).

If totals do not fit, a limit that they violate is added (`Totals.cuts`, valid for all programs over these servers), and the program over
totals is solved again. If only branch and cut shows that they do not fit, the limit says that some user has fewer tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.packing import Group, by_patterns, first_fit, pack, trimmed
from fairopt.solvers.via_highs.rows import Rows
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Fewer", "Linear", "Totals"]


Known = Mapping[str, object]  # the results so far, for the error at a time limit


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A limit on the totals y of a group, (users,): ``prices @ y <= servers``."""

    prices: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Fewer:
    """A limit on the totals y of a group, (users,): some user has fewer tasks than in ``totals``."""

    totals: FloatArray


@dataclass(slots=True, eq=False)
class Totals:
    """Totals y[n,g] of users on groups of identical servers, their limits, and what is known about packings.

    Attributes
    ----------
    first : int array (totals,)
        A column of the program for each total: that of the group's first server. Totals are sorted like columns.
    upper : array (totals,)
    matrix, bounds : sparse array (limits, totals), array (limits,)
    groups : list of Group
        Those of two servers or more.
    place : list of int arrays
        The totals of each group.
    columns : int
        Columns of the program.
    cuts : list of (group, limit)
        Grows whenever totals do not fit.
    packings : list of (group, array (servers, users))
        Grows whenever totals fit; smaller totals fit then, too.
    patterns : list of arrays (patterns, users)
        Patterns of each group that were of use.
    """

    first: IntArray
    upper: FloatArray
    matrix: sp.csr_array
    bounds: FloatArray
    groups: list[Group]
    place: list[IntArray]
    columns: int
    cuts: list[tuple[int, Linear | Fewer]] = field(default_factory=list)
    packings: list[tuple[int, FloatArray]] = field(default_factory=list)
    patterns: list[FloatArray] = field(default_factory=list)

    @property
    def load(self) -> FloatArray:
        """What a task takes of all limits of identical servers together, (totals,); 0 where no servers are identical."""
        if not self.groups:
            return np.zeros(self.first.size)
        load: FloatArray = self.matrix.T @ (1 / self.bounds)
        return load / load.max(initial=0.0) if load.any() else load

    @classmethod
    def of(cls, users: IntArray, servers: IntArray, worth: FloatArray, matrix: sp.csr_array, upper: FloatArray) -> Totals:
        """Group the servers of a program whose limits are ``matrix @ x <= 1``; ``worth`` and ``upper`` belong to columns, (pairs,)."""
        own = _of_one_server(matrix, servers)
        alike, sizes = _alike(users, servers, worth, matrix, upper, own)
        total = np.empty(users.size, np.int64)  # first column of the total of each column
        number = np.ones(users.size)  # servers that a total stands for
        for members in alike.values():
            for columns in members:
                total[columns] = members[0]
            number[members[0]] = len(members)
        first = np.unique(total)
        rows, kept = _first_rows(sp.csr_array(sp.csc_array(matrix)[:, first]), own)
        bounds = np.ones(rows.shape[0])
        inside = np.flatnonzero(own[kept])
        bounds[inside] = number[first[rows.indices[rows.indptr[inside]]]]
        groups, place = [], []
        for signature, members in alike.items():
            if len(members) > 1:
                columns = np.array(members)
                groups.append(Group(columns, sizes[signature].toarray(), upper[columns[0]]))
                place.append(np.searchsorted(first, columns[0]))
        patterns = [np.diag(group.most) for group in groups]
        return cls(first, upper[first] * number[first], rows, bounds, groups, place, users.size, patterns=patterns)

    def gathered(self, x: FloatArray) -> FloatArray:
        """Return the totals of tasks, (pairs,)."""
        y = x[self.first]
        for group, place in zip(self.groups, self.place, strict=True):
            y[place] = x[group.columns].sum(axis=0)
        return y

    def limit(self, rows: Rows, y: IntArray, kept: IntArray) -> None:
        """Add the limits and cuts of totals to a model; its columns ``y`` are the totals ``kept``, the others are 0."""
        rows.block(self.matrix if kept.size == self.first.size else self.matrix[:, kept], y, -np.inf, self.bounds)
        column = np.full(self.first.size, -1)
        column[kept] = y
        for number, cut in self.cuts:
            mine = column[self.place[number]]
            if isinstance(cut, Linear):
                here = mine >= 0
                rows.row(
                    dict(zip(mine[here].tolist(), cut.prices[here].tolist(), strict=True)),
                    upper=float(self.groups[number].columns.shape[0]),
                )
                continue
            had = np.flatnonzero(cut.totals > 0)
            if (mine[had] < 0).any():  # who has nothing has fewer
                continue
            fewer = rows.columns(np.ones(had.size))
            rows.row(dict.fromkeys(fewer.tolist(), 1.0), lower=1.0)
            most = self.upper[self.place[number]][had]
            for n, b, u, t in zip(mine[had], fewer, most, cut.totals[had], strict=True):
                rows.row({int(n): 1.0, int(b): float(u - t + 1)}, upper=float(u))

    def tighten(self, y: FloatArray, deadline: Deadline, known: Known) -> bool:
        """Add the limits that totals, whole or not, violate; return whether there are any."""
        before = len(self.cuts)
        for number, (group, place) in enumerate(zip(self.groups, self.place, strict=True)):
            prices = self._violated(number, group, y[place], deadline, known, SETTINGS.clearly_violated)
            if prices is not None:
                self.cuts.append((number, Linear(prices)))
        return len(self.cuts) > before

    def _violated(self, number: int, group: Group, y: FloatArray, deadline: Deadline, known: Known, by: float) -> FloatArray | None:
        prices, self.patterns[number] = by_patterns(group, y, self.patterns[number], deadline, known, by)
        return prices

    def everywhere(self, y: FloatArray) -> FloatArray:
        """Return the total that each column is part of, (columns,)."""
        x = np.zeros(self.columns)
        x[self.first] = y
        for group, place in zip(self.groups, self.place, strict=True):
            x[group.columns] = y[place]
        return x

    def spread(self, y: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
        """Return tasks x, (pairs,), with these whole totals; None where there are none, and then ``cuts`` has grown."""
        x = np.zeros(self.columns)
        x[self.first] = y
        fits = True
        for number, (group, place) in enumerate(zip(self.groups, self.place, strict=True)):
            total = y[place]
            found = next((trimmed(each, total) for g, each in self.packings if g == number and (each.sum(axis=0) >= total).all()), None)
            if found is None:
                found = first_fit(group, total)
                prices = None if found is not None else self._violated(number, group, total, deadline, known, SETTINGS.violated)
                if found is None and prices is None:
                    found = pack(group, total, self.patterns[number], deadline, known)
                if found is not None:
                    self.packings.append((number, found))
                else:
                    fits = False
                    self.cuts.append((number, Fewer(total.copy()) if prices is None else Linear(prices)))
            if found is not None:
                x[group.columns] = found
        return x if fits else None


def _of_one_server(matrix: sp.csr_array, servers: IntArray) -> BoolArray:
    """Return which limits are limits of one server, (limits,)."""
    of_row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    least, largest = np.full(matrix.shape[0], servers.max(initial=0)), np.zeros(matrix.shape[0], np.int64)
    np.minimum.at(least, of_row, servers[matrix.indices])
    np.maximum.at(largest, of_row, servers[matrix.indices])
    return np.asarray(least == largest)


def _alike(
    users: IntArray, servers: IntArray, worth: FloatArray, matrix: sp.csr_array, upper: FloatArray, own: BoolArray
) -> tuple[dict[bytes, list[IntArray]], dict[bytes, sp.csc_array]]:
    """Return the columns of each server of each kind, and the parts of its own limits that a server's tasks take, by kind.

    Servers are of one kind where the same users have columns there, of the same worth and upper bounds, with the same entries in limits of
    the server and in the very same shared limits.
    """
    by_column = sp.csc_array(matrix)
    order = np.lexsort((users, servers))
    alike: dict[bytes, list[IntArray]] = {}
    sizes: dict[bytes, sp.csc_array] = {}
    for columns in np.split(order, np.flatnonzero(np.diff(servers[order])) + 1):
        if not columns.size:
            continue
        part = by_column[:, columns]
        mine = own & (np.bincount(part.indices, minlength=matrix.shape[0]) > 0)
        inside, shared = sp.csc_array(part[mine]), sp.csc_array(part[~own])
        entries = (each for m in (inside, shared) for each in (m.indptr, m.indices, m.data))
        signature = b"|".join(np.ascontiguousarray(each).tobytes() for each in (users[columns], worth[columns], upper[columns], *entries))
        alike.setdefault(signature, []).append(columns)
        sizes[signature] = inside
    return alike, sizes


def _first_rows(rows: sp.csr_array, own: BoolArray) -> tuple[sp.csr_array, IntArray]:
    """Return the rows that have entries, and their numbers: of identical servers only the first one's are left."""
    kept = np.flatnonzero((np.diff(rows.indptr) > 0) | ~own)
    return sp.csr_array(rows[kept]), kept
