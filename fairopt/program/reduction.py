r"""A program with rows and columns that are alike taken together, and the way back.

A partition of users, servers, columns and rows is *equitable* if all rows of a class have the same bound and meet each class of columns
with the same coefficients, all columns of a class have the same utility, user class and server class and meet each class of rows with the
same coefficients, and all users of a class have the same weight and as many columns of each class. Averaging a feasible x over the classes
then keeps every row and every sum of utilities, and makes the utilities of a class equal. That lowers no leximin and no symmetric concave
goal, so some optimum is constant on the classes, and it is found by a program with one column X[C] = sum of x[p] over each class C,

    coefficient of X[C] in the class R of rows   =   sum over the rows j in R of A[j,p],  p any column in C
    bound of R                                   =   |R| b

On the way back x[p] = X[C] / |C|, and each row has the price of its class. The coarsest such partition is found by *colour refinement*:
begin with colours for bounds, utilities and weights, and split classes by the colours that they meet until nothing is split.

A notion that may tell users or servers apart, such as by their names, is formulated on the whole instance, and this reduces its program.
It looks at numbers only, so no name and no position can be missed.

>>> import fairopt as fo
>>> three = fo.Instance([[4], [4], [8]], [[1], [1], [2]])
>>> reduction = Reduction.of(fo.formulate(three, "drfh"))
>>> reduction.classes.users, reduction.classes.servers
(array([0, 0, 1]), array([0, 0, 1]))
>>> print(reduction.program.to_text().split("subject to")[1])
<BLANKLINE>
  resource-1 @ server-1 : x[user-1, server-1] + 2 x[user-3, server-1] <= 8
  resource-1 @ server-3 : x[user-1, server-3] + 2 x[user-3, server-3] <= 8
  x >= 0 for 4 eligible pairs of 2 users and 2 servers
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.tree import Tree
from fairopt.program.all_pairs import AllPairs
from fairopt.program.goals import AlphaFair, Equalize, Leximin, Total, Tradeoff
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.nested import Nested
from fairopt.program.program import Program
from fairopt.program.solution import Solution, Stage
from fairopt.program.tree_filling import Part, TreeFilling

__all__ = ["Classes", "Reduction"]

_REDUCES = (Leximin, Equalize, Total, AlphaFair, Tradeoff, TreeFilling, Nested)
_LARGEST = 1e60  # weight of a class of users: where it would be larger, users stay apart

Hashes = npt.NDArray[np.uint64]


# The partition -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """An equitable partition: the class of each user, server, column and row, numbered in order of their first members.

    Attributes
    ----------
    users, servers, pairs, limits : int arrays (users,), (servers,), (pairs,), (limits,)
    extra : tuple of int arrays
        Of the extra limits of each part of a tree that is filled.
    """

    users: IntArray
    servers: IntArray
    pairs: IntArray
    limits: IntArray
    extra: tuple[IntArray, ...] = ()

    @classmethod
    def of(cls, program: Program, *, users_apart: bool = False) -> Classes:
        """Return the coarsest equitable partition; with ``users_apart``, each user is a class of its own."""
        n_users, n_servers = len(program.users), len(program.servers)
        apart: list[Any] = [np.arange(n_users)[:, None]] if users_apart else []
        if isinstance(program, AllPairs):
            users = number_distinct([program.demands, program.worths[:, None], program.goal.weights[:, None], *apart])
            servers = number_distinct([program.capacities])
            pairs = users[:, None] * (int(servers.max()) + 1) + servers
            rows = servers[:, None] * program.capacities.shape[1] + np.arange(program.capacities.shape[1])
            return cls(users, servers, pairs.ravel(), rows.ravel())
        blocks = [program.limits, *_extra(program)]
        matrix = sp.csr_array(sp.vstack([block.matrix for block in blocks])) if len(blocks) > 1 else program.limits.matrix
        by_column = matrix.tocsc()
        number = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        bounds, kinds, keys = (np.concatenate([getattr(block, each) for block in blocks]) for each in ("bounds", "kinds", "keys"))
        resource = np.where(kinds == LimitKind.CAPACITY, keys[:, 1], np.where(kinds == LimitKind.SHARED, keys[:, 0], -1))
        limits = number_distinct([np.column_stack([number, kinds, resource, bounds])]) if bounds.size else number
        users = number_distinct([*_of_users(program), *apart]) if n_users else np.zeros(0, np.int64)
        servers, pairs = np.zeros(n_servers, np.int64), np.zeros(program.n_pairs, np.int64)
        if program.n_pairs:
            pairs = number_distinct([program.utilities[:, None]])
        at_server = np.argsort(program.pair_servers, kind="stable")
        ends_of_users = np.searchsorted(program.pair_users, np.arange(n_users + 1))
        ends_of_servers = np.searchsorted(program.pair_servers[at_server], np.arange(n_servers + 1))
        values, values_by_column = _hashed(matrix.data), _hashed(by_column.data)
        size = -1
        while size < (size := sum(int(each.max(initial=-1)) + 1 for each in (users, servers, pairs, limits))):
            met = _sums(_mixed(_colours(limits)[by_column.indices] ^ values_by_column), by_column.indptr)
            pairs = _split(pairs, users[program.pair_users], servers[program.pair_servers], met)
            of_pairs = _colours(pairs)
            limits = _split(limits, _sums(_mixed(of_pairs[matrix.indices] ^ values), matrix.indptr))
            users = _split(users, _sums(of_pairs, ends_of_users))
            servers = _split(servers, _sums(of_pairs[at_server], ends_of_servers))
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        own, *others = np.split(limits, ends)
        return cls(users, servers, pairs, own, tuple(_split(each) for each in others))

    @property
    def together(self) -> bool:
        """Has some class more than one column?"""
        return bool(self.pairs.size) and int(self.pairs.max()) + 1 < self.pairs.size


def _extra(program: Program) -> list[Limits]:
    """Return the extra limits of each part of a tree that is filled, [] of other goals."""
    parts = program.goal.parts if isinstance(program.goal, TreeFilling) else ()
    return [Limits.none(program.n_pairs) if part.extra is None else part.extra for part in parts]


def _of_users(program: Program) -> list[Any]:
    """Return what the goal says of each user, arrays of (users, ...)."""
    goal: Any = program.goal
    found = [goal.weights[:, None]]
    if isinstance(goal, TreeFilling | Nested):
        found += [goal.tree.user_node[:, None], goal.tree.places[:, None]]
    if isinstance(goal, TreeFilling):
        found += [] if goal.takes is None else [goal.takes]
        for part in goal.parts:
            found += [part.users[:, None], *([] if part.user_rates is None else [part.user_rates[:, None]])]
    return found


def _hashed(values: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each number; -0.0 is 0.0."""
    return _mixed((np.asarray(values) + 0.0).view(np.uint64))


def _colours(classes: IntArray) -> Hashes:
    """Return a hash of each class, which is not that of its number: sums and differences of the two mean something."""
    return _mixed(_hashed(classes))


def _mixed(bits: Hashes) -> Hashes:
    """Return bits that depend on all bits of a number (SplitMix64), so that sums of them tell multisets apart."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _sums(hashes: Hashes, ends: npt.NDArray[np.integer[Any]]) -> Hashes:
    """Return the sums of hashes between these ends, modulo 2^64."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.asarray(total[ends[1:]] - total[ends[:-1]])


def _split(classes: IntArray, *met: npt.NDArray[Any]) -> IntArray:
    """Return classes split by what their members meet, numbered in order of their first members."""
    if not classes.size:
        return classes
    key = _colours(classes)
    for each in met:
        key = _mixed(key + (each if each.dtype == np.uint64 else _hashed(each)))
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.empty(first.size, np.int64)
    order[np.argsort(first)] = np.arange(first.size)
    return order[inverse]


# The program over classes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A program over classes, and the way back to the whole program.

    Attributes
    ----------
    whole, program : Program
    classes : Classes
    place : int array (classes of columns,)
        The column of ``program`` of each class: columns of a program are sorted by user, then by server.
    """

    whole: Program
    program: Program
    classes: Classes
    place: IntArray

    @classmethod
    def of(cls, program: Program) -> Reduction | None:
        """Reduce a program; None if no columns are alike, if its goal is not symmetric, or if its x are whole numbers.

        What queues keep of their guarantees (`fairopt.program.kept_parts`) is not carried over: the caller compares the answer with it.
        """
        if program.integral or not isinstance(program.goal, _REDUCES):
            return None
        classes = Classes.of(program)
        weights = _weights(program, classes)
        if not (weights <= _LARGEST).all():
            classes = Classes.of(program, users_apart=True)
            weights = _weights(program, classes)
        if not classes.together:
            return None
        if isinstance(program, AllPairs):
            return cls._of_tables(program, classes, weights)
        return cls.over(program, classes, weights)

    @classmethod
    def _of_tables(cls, program: AllPairs, classes: Classes, weights: FloatArray) -> Reduction:
        users, servers = _first(classes.users), _first(classes.servers)
        capacities = sp.csr_array((np.ones(classes.servers.size), (classes.servers, np.arange(classes.servers.size)))) @ program.capacities
        reduced = AllPairs.of_tables(
            tuple(program.users[n] for n in users),
            tuple(program.servers[i] for i in servers),
            program.resources,
            np.asarray(capacities),
            program.demands[users],
            program.worths[users],
            replace(program.goal, weights=weights),
            program.name,
            program.title,
        )
        place = np.arange(users.size * servers.size)
        return cls(program, reduced if reduced.is_large else replace(reduced), classes, place)

    @classmethod
    def over(cls, program: Program, classes: Classes, weights: FloatArray) -> Reduction:
        """Return the program over classes, as columns and rows; ``weights`` are those of the classes of users."""
        users, servers, pairs = _first(classes.users), _first(classes.servers), _first(classes.pairs)
        user, server = classes.users[program.pair_users[pairs]], classes.servers[program.pair_servers[pairs]]
        # Two classes of columns may have the same classes of users and of servers: the second has a server of its own.
        order = np.lexsort((pairs, server, user))
        again = np.zeros(order.size, np.int64)
        same = (np.diff(user[order], prepend=-1) == 0) & (np.diff(server[order], prepend=-1) == 0)
        start = np.flatnonzero(~same)
        again[order] = np.arange(order.size) - np.repeat(start, np.diff(np.append(start, order.size)))
        slots = np.unique(np.column_stack([again, server]), axis=0) if order.size else np.zeros((0, 2), np.int64)
        more = slots[slots[:, 0] > 0]
        slot = {(int(a), int(i)): servers.size + k for k, (a, i) in enumerate(more)}
        at = np.array([slot.get((a, i), i) for a, i in zip(again.tolist(), server.tolist(), strict=True)], np.int64)
        shared = np.isin(np.arange(servers.size), more[:, 1])  # servers of which there are several now: their rows belong to no server
        order = np.lexsort((at, user))
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        names = [program.servers[i] for i in servers]
        names += [f"{names[i]} ({a + 1})" for a, i in more.tolist()]
        limits, own_names = _rows(program, program.limits, classes.limits, classes, pairs[order], shared, ())
        parts = []
        goal: Any = program.goal
        for k, part in enumerate(goal.parts if isinstance(goal, TreeFilling) else ()):
            parts.append(_part(program, part, classes, k, pairs[order]))
        members = np.zeros(users.size, bool)
        members[user] = True
        reduced = replace(
            program,
            users=tuple(program.users[n] for n in users),
            servers=tuple(names),
            pair_users=user[order],
            pair_servers=at[order],
            utilities=program.utilities[pairs[order]],
            limits=limits,
            goal=_goal(goal, weights, users, members, tuple(parts)),
            queue_limits=own_names,
            kept=None,
            kept_rows=(),
        )
        return cls(program, reduced, classes, place)

    def spread(self, solution: Solution) -> Solution:
        """Return a solution of the whole program."""
        classes, own = self.classes, len(self.program.limits)
        column, part = self.place[classes.pairs], 1.0 / np.bincount(classes.pairs)[classes.pairs]
        agents = self._agents()

        def all_pairs(x: FloatArray) -> FloatArray:
            return np.asarray(x[column] * part)

        def all_limits(prices: FloatArray | None, more: IntArray | None) -> FloatArray | None:
            if prices is None:
                return None
            rest = prices[own:] if more is None or prices.size == own else prices[own:][more]
            return np.concatenate([prices[classes.limits], rest]) if rest.size else prices[classes.limits]

        def spread_stage(stage: Stage) -> Stage:
            more = agents if agents is not None else classes.extra[stage.part] if classes.extra else None
            return replace(
                stage,
                users=np.flatnonzero(np.isin(classes.users, stage.users)),
                prices=all_limits(stage.prices, more),
                agents=None if agents is None or stage.agents is None else np.flatnonzero(np.isin(agents, stage.agents)),
            )

        return replace(
            solution,
            x=all_pairs(solution.x),
            stages=tuple(map(spread_stage, solution.stages)),
            prices=all_limits(solution.prices, None),
            parts=tuple(map(all_pairs, solution.parts)),
            extra_bounds=tuple(
                None if bounds is None else (bounds / np.bincount(rows))[rows]
                for bounds, rows in zip(solution.extra_bounds, classes.extra, strict=False)
            ),
        )

    def _agents(self) -> IntArray | None:
        """Return the agent of the reduced program for each agent of the whole one, where the goal has agents (`Nested`): queues, users."""
        if not isinstance(self.whole.goal, Nested):
            return None
        inside = self.program.goal_as(Nested)
        queues = inside.depth.size - inside.users.size
        place = np.full(len(self.program.users), -1)
        place[inside.users] = np.arange(inside.users.size)
        return np.concatenate([np.arange(queues), queues + place[self.classes.users[self.whole.goal.users]]])

    def members(self, users: Sequence[str]) -> list[str]:
        """Return the names of all users of the classes with these names, class by class."""
        position = {name: n for n, name in enumerate(self.program.users)}
        return [self.whole.users[n] for name in users for n in np.flatnonzero(self.classes.users == position[name]).tolist()]


def _weights(program: Program, classes: Classes) -> FloatArray:
    """Return the weight of each class of users: phi k^a for k users, where a is that of the goal, g(U) ~ U^(1 - a)."""
    goal: Any = program.goal
    power = (
        goal.alpha if isinstance(goal, AlphaFair) else goal.beta if isinstance(goal, Tradeoff) else 0.0 if isinstance(goal, Total) else 1.0
    )
    with np.errstate(over="ignore"):
        return np.asarray(goal.weights[_first(classes.users)] * np.bincount(classes.users).astype(np.float64) ** power)


def _goal(goal: Any, weights: FloatArray, users: IntArray, members: npt.NDArray[np.bool_], parts: tuple[Part, ...]) -> Any:
    """Return the goal over classes of users; ``users`` has the first of each."""
    if not isinstance(goal, TreeFilling | Nested):
        return replace(goal, weights=weights)
    tree = Tree(goal.tree.queues, goal.tree.parent, goal.tree.depth, goal.tree.user_node[users])
    if isinstance(goal, Nested):
        return Nested.of(tree, weights, members)
    return TreeFilling(weights, tree, None if goal.takes is None else goal.takes[users], goal.clamp, parts)


def _part(program: Program, part: Part, classes: Classes, number: int, pairs: IntArray) -> Part:
    """Return a part of a tree that is filled, over classes."""
    users = _first(classes.users)
    rates = None if part.user_rates is None else part.user_rates[users] * np.bincount(classes.users)
    if part.extra is None:
        return replace(part, users=part.users[users], user_rates=rates)
    apart = np.zeros(int(classes.servers.max()) + 1, bool)
    extra, _ = _rows(program, part.extra, classes.extra[number], classes, pairs, apart, part.names)
    first = _first(classes.extra[number])
    names = tuple(part.names[row] for row in first)
    extra = Limits(extra.matrix, extra.bounds, extra.kinds, np.column_stack([np.arange(first.size), np.full(first.size, -1)]))
    rows, owners = tuple(part.rows[row] for row in first) if part.rows else (), part.owners
    if owners is not None:
        nodes, owners = program.goal_as(TreeFilling).tree.n_nodes, owners[first]
        owners = np.where(owners < nodes, owners, nodes + classes.users[np.maximum(owners - nodes, 0)])
    return replace(part, users=part.users[users], user_rates=rates, extra=extra, names=names, rows=rows, owners=owners)


def _rows(
    program: Program,
    limits: Limits,
    row_class: IntArray,
    classes: Classes,
    pairs: IntArray,
    apart: npt.NDArray[np.bool_],
    names: tuple[str, ...],
) -> tuple[Limits, tuple[str, ...]]:
    """Return rows over classes, and the names of those that have one of their own.

    Parameters
    ----------
    pairs : int array
        A column of each class, in the order of the reduced program.
    apart : bool array
        Classes of servers whose rows are rows by name.
    """
    first = _first(row_class)
    size = np.bincount(row_class, minlength=first.size)
    sums = sp.csr_array((np.ones(row_class.size), (row_class, np.arange(row_class.size))), shape=(first.size, row_class.size))
    matrix = sp.csr_array(sums @ limits.matrix[:, pairs])
    matrix.sort_indices()
    kinds, keys = limits.kinds[first].copy(), limits.keys[first].copy()
    of_server = np.isin(kinds, (LimitKind.CAPACITY, LimitKind.TIME))
    of_user = np.isin(kinds, (LimitKind.TASKS, LimitKind.PARALLELISM, LimitKind.PAST, LimitKind.WITH_PAST, LimitKind.SLICE))
    named: list[str] = []
    for row in np.flatnonzero(~(of_server | of_user | (kinds == LimitKind.SHARED))) if not names else ():
        named.append(program.limit_name(int(first[row])))
        same = kinds[row] in (LimitKind.QUEUE, LimitKind.LIMIT)
        kinds[row], keys[row] = kinds[row] if same else LimitKind.NAMED, (len(named) - 1, -1)
    keys[of_user, 0] = classes.users[keys[of_user, 0]]
    beyond = keys[:, 1] - classes.servers.size  # >= 0: a slice of a resource of the cluster
    slices = kinds == LimitKind.SLICE
    keys[slices & (beyond >= 0), 1] = int(classes.servers.max()) + 1 + beyond[slices & (beyond >= 0)]
    slices &= beyond < 0
    keys[slices, 1] = classes.servers[keys[slices, 1]]
    keys[of_server, 0] = classes.servers[keys[of_server, 0]]
    for row in np.flatnonzero(of_server):
        if apart[keys[row, 0]]:
            named.append(program.limit_name(int(first[row])))
            kinds[row], keys[row] = LimitKind.NAMED, (len(named) - 1, -1)
    return Limits(matrix, limits.bounds[first] * size, kinds, keys), tuple(named)


def _first(classes: IntArray) -> IntArray:
    """Return the first member of each class."""
    return np.unique(classes, return_index=True)[1]
