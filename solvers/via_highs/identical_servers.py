"""Whole tasks on identical servers: totals first, a packing afterwards.

Branch and cut over single servers meets the same allocation once for every order of identical servers. So the columns here are totals,
y[n,g]: the tasks of user n on all servers of group g. A total obeys what its servers obey together, which is necessary. Whether totals
fit the single servers is asked afterwards, group by group (`pack`):

1. greedy packings by several orders;
2. the LP over patterns, the whole numbers of tasks p that fit one server (Gilmore and Gomory 1961, 1965), in its dual form
   max pi @ y with pi @ p <= 1 for all p. Where it needs more servers than there are, pi @ y <= servers is a valid limit that y violates;
3. branch and cut over the patterns found, then over the single servers.

Where the totals do not fit, a limit that they violate is added (`Totals.cuts`, valid for every question about these servers), and the
question about totals is asked again. Where only step 3 tells, the limit says that somebody has fewer tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status, solved
from fairopt.solvers.via_highs.rows import Rows

__all__ = ["Fewer", "Group", "Linear", "Totals", "pack"]

_EXACT = 1e-9  # of a server: what may lack for a task to fit, by rounding
_VIOLATED = 1e-7  # relative: by how much whole totals violate a limit that is worth adding
_CLEARLY = 1e-3  # the same of divisible totals, which only help to find whole ones
_PATTERNS = 1_000_000  # are listed at most
_ORDERS = 8  # greedy packings in random orders, after those by size

Known = Mapping[str, object]  # what is known where time is up


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Identical servers.

    Attributes
    ----------
    columns : int array (servers, users)
        Columns of the program.
    sizes : array (limits of one server, users)
        Parts of each limit that a task takes.
    most : array (users,)
        The largest number of tasks on one server.
    """

    columns: IntArray
    sizes: FloatArray
    most: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A limit on the totals y of a group, (users,): ``prices @ y <= servers``."""

    prices: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Fewer:
    """A limit on the totals y of a group, (users,): somebody has fewer tasks than in ``totals``."""

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
        of_row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        least, largest = np.full(matrix.shape[0], servers.max(initial=0)), np.zeros(matrix.shape[0], np.int64)
        np.minimum.at(least, of_row, servers[matrix.indices])
        np.maximum.at(largest, of_row, servers[matrix.indices])
        own = least == largest  # limits of one server
        by_column = sp.csc_array(matrix)
        order = np.lexsort((users, servers))
        alike: dict[bytes, list[IntArray]] = {}
        of_server: dict[bytes, sp.csc_array] = {}
        for columns in np.split(order, np.flatnonzero(np.diff(servers[order])) + 1):
            if not columns.size:
                continue
            part = by_column[:, columns]
            mine = own & (np.bincount(part.indices, minlength=matrix.shape[0]) > 0)
            sizes, shared = sp.csc_array(part[mine]), sp.csc_array(part[~own])
            known = (
                users[columns],
                worth[columns],
                upper[columns],
                *(each for m in (sizes, shared) for each in (m.indptr, m.indices, m.data)),
            )
            signature = b"|".join(np.ascontiguousarray(each).tobytes() for each in known)
            alike.setdefault(signature, []).append(columns)
            of_server[signature] = sizes
        total = np.empty(users.size, np.int64)  # first column of the total of each column
        number = np.ones(users.size)  # servers that a total stands for
        for members in alike.values():
            for columns in members:
                total[columns] = members[0]
            number[members[0]] = len(members)
        first = np.unique(total)
        summed = _first_rows(sp.csr_array(by_column[:, first]), own)
        rows, kept = summed
        bounds = np.ones(rows.shape[0])
        is_own = own[kept]
        inside = np.flatnonzero(is_own)
        bounds[inside] = number[first[rows.indices[rows.indptr[inside]]]]
        groups, place = [], []
        for signature, members in alike.items():
            if len(members) > 1:
                columns = np.array(members)
                groups.append(Group(columns, of_server[signature].toarray(), upper[columns[0]]))
                place.append(np.searchsorted(first, columns[0]))
        patterns = [np.diag(group.most) for group in groups]
        return cls(first, upper[first] * number[first], rows, bounds, groups, place, users.size, patterns=patterns)

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
            prices = self._violated(number, group, y[place], deadline, known, _CLEARLY)
            if prices is not None:
                self.cuts.append((number, Linear(prices)))
        return len(self.cuts) > before

    def _violated(self, number: int, group: Group, y: FloatArray, deadline: Deadline, known: Known, by: float) -> FloatArray | None:
        prices, self.patterns[number] = by_patterns(group, y, self.patterns[number], deadline, known, by)
        return prices

    def spread(self, y: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
        """Return tasks x, (pairs,), with these whole totals; None where there are none, and then ``cuts`` has grown."""
        x = np.zeros(self.columns)
        x[self.first] = y
        fits = True
        for number, (group, place) in enumerate(zip(self.groups, self.place, strict=True)):
            total = y[place]
            found = next((_trimmed(each, total) for g, each in self.packings if g == number and (each.sum(axis=0) >= total).all()), None)
            if found is None:
                found = first_fit(group, total)
                prices = None if found is not None else self._violated(number, group, total, deadline, known, _VIOLATED)
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


def _first_rows(rows: sp.csr_array, own: np.ndarray) -> tuple[sp.csr_array, IntArray]:
    """Return the rows that have entries, and their numbers: of identical servers only the first one's are left."""
    kept = np.flatnonzero((np.diff(rows.indptr) > 0) | ~own)
    return sp.csr_array(rows[kept]), kept


def _trimmed(packed: FloatArray, y: FloatArray) -> FloatArray:
    """Return as many tasks as wanted, (servers, users), of a packing of as many or more."""
    too_many = np.maximum(np.cumsum(packed, axis=0) - y, 0.0)
    return np.asarray(np.clip(packed - too_many, 0.0, packed))


# Packing -------------------------------------------------------------------------------------------------------------------------


def first_fit(group: Group, y: FloatArray) -> FloatArray | None:
    """Pack totals by first fit in one of several orders, (servers, users); None where none of them does it."""
    servers, users = group.columns.shape
    rng = np.random.default_rng(0)
    orders = [np.argsort(-group.sizes.max(axis=0), kind="stable"), np.argsort(-group.sizes.sum(axis=0), kind="stable")]
    orders += [rng.permutation(users) for _ in range(_ORDERS)]
    for order in orders:
        left, free = y.copy(), np.ones((servers, group.sizes.shape[0]))
        packed = np.zeros((servers, users))
        for n in order[y[order] > 0]:
            size = group.sizes[:, n]
            with np.errstate(divide="ignore"):
                room = np.where(size > 0, (free + _EXACT) / size, np.inf).min(axis=1)
            take = np.minimum(np.floor(room), group.most[n])
            take = np.clip(left[n] - np.cumsum(take) + take, 0.0, take)
            packed[:, n], left[n] = take, left[n] - take.sum()
            free -= take[:, None] * size
        if not left.any():
            return packed
    return None


def by_patterns(
    group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known, by: float
) -> tuple[FloatArray | None, FloatArray]:
    """Return the prices of a limit that totals, whole or not, violate, (users,), or None where patterns tell of none; and more patterns."""
    servers, users = group.columns.shape
    while True:
        rows = sp.csc_array(patterns)
        model = HighsModel(y, np.zeros(users), np.full(users, np.inf), rows, np.full(len(patterns), -np.inf), np.ones(len(patterns)))
        prices = np.maximum(_run(model, deadline, known).x, 0.0)
        if prices @ y <= servers * (1 + by):
            return None, patterns
        best = _best_pattern(group, prices, deadline, known)
        worth = max(float(prices @ best), 1.0) * (1 + _EXACT)
        if prices @ y > servers * worth * (1 + by):
            return np.asarray(prices / worth), patterns
        if worth <= 1 + 1e-8 or (patterns == best).all(axis=1).any():
            return None, patterns
        patterns = np.vstack([patterns, best])


def pack(group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Pack totals by branch and cut, (servers, users); None where they do not fit."""
    wanted = np.flatnonzero(y > 0)
    part = Group(group.columns[:, wanted], group.sizes[:, wanted], group.most[wanted])
    fits = (patterns @ group.sizes.T <= 1 + _EXACT).all(axis=1)
    packed = _of_patterns(part, y[wanted], np.unique(patterns[np.ix_(fits, wanted)], axis=0), deadline, known)
    if packed is None:
        full = _full_patterns(part, y[wanted])
        packed = _by_servers(part, y[wanted], deadline, known) if full is None else _of_patterns(part, y[wanted], full, deadline, known)
    if packed is None:
        return None
    whole = np.zeros(group.columns.shape)
    whole[:, wanted] = packed
    return whole


def _of_patterns(group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Return a packing in which every server's tasks are at most one of these patterns, (servers, users), or None if there is none."""
    servers, users = group.columns.shape
    number = len(patterns)
    rows = sp.csc_array(np.vstack([patterns.T, np.ones((1, number))]))
    lower, upper = np.r_[y, -np.inf], np.r_[np.full(users, np.inf), float(servers)]
    most = np.full(number, float(servers))
    outcome = _run(HighsModel(np.zeros(number), np.zeros(number), most, rows, lower, upper, np.arange(number)), deadline, known)
    if outcome.status is Status.INFEASIBLE:
        return None
    used = np.repeat(patterns, np.round(outcome.x).astype(int), axis=0)
    packed = np.zeros((servers, users))
    packed[: len(used)] = used
    return _trimmed(packed, y)


def _full_patterns(group: Group, y: FloatArray) -> FloatArray | None:
    """Return all patterns that leave no more free than all servers do together, (patterns, users); None if there are too many.

    Every packing consists of such patterns: what the totals leave free of a limit is the sum of what the servers leave free.
    """
    order = np.argsort(-group.sizes.max(axis=0), kind="stable")
    most = np.minimum(group.most, y)
    spare = group.columns.shape[0] - group.sizes @ y + _EXACT
    rest = group.sizes @ most  # what those still to come can take
    patterns, free = np.zeros((1, y.size)), np.ones((1, spare.size))
    for n in order:
        size = group.sizes[:, n]
        rest = rest - most[n] * size
        with np.errstate(divide="ignore"):
            room = np.where(size > 0, (free + _EXACT) / size, np.inf).min(axis=1)
        options = np.minimum(np.floor(room), most[n]).astype(int) + 1
        if options.sum() > _PATTERNS:
            return None
        of = np.repeat(np.arange(len(patterns)), options)
        taken = np.arange(of.size) - np.repeat(np.cumsum(options) - options, options)
        free = free[of] - taken[:, None] * size
        patterns = patterns[of]
        patterns[:, n] = taken
        enough = (free - rest <= spare).all(axis=1)
        patterns, free = patterns[enough], free[enough]
    return patterns


def _best_pattern(group: Group, prices: FloatArray, deadline: Deadline, known: Known) -> FloatArray:
    """Return the tasks of one server that are worth most, (users,)."""
    limits, users = group.sizes.shape
    upper = np.full(limits, 1 + _EXACT)
    model = HighsModel(prices, np.zeros(users), group.most, sp.csc_array(group.sizes), np.full(limits, -np.inf), upper, np.arange(users))
    return np.asarray(np.round(_run(model, deadline, known).x))


def _by_servers(group: Group, y: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Return a packing by branch and cut over single servers, (servers, users), or None if there is none."""
    servers, users = group.columns.shape
    rows = sp.vstack(
        [sp.kron(sp.eye_array(servers), sp.csr_array(group.sizes)), sp.kron(np.ones((1, servers)), sp.eye_array(users))], format="csc"
    )
    limits = servers * group.sizes.shape[0]
    lower, upper = np.r_[np.full(limits, -np.inf), y], np.r_[np.ones(limits), y]
    number = servers * users
    model = HighsModel(
        np.zeros(number), np.zeros(number), np.tile(group.most, servers), sp.csc_array(rows), lower, upper, np.arange(number)
    )
    outcome = _run(model, deadline, known)
    return None if outcome.status is Status.INFEASIBLE else np.asarray(np.round(outcome.x).reshape(servers, users))


def _run(model: HighsModel, deadline: Deadline, known: Known) -> Outcome:
    """Solve; raise NoSolution where time is up."""
    if deadline.left == 0.0:
        raise deadline.passed(known)
    outcome = model.run(deadline.left)
    return outcome if outcome.status is Status.INFEASIBLE else solved(outcome, deadline, known)
