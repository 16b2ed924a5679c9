"""Rows across servers: the limits of queues and named limits, and guarantees as the extra rows of the parts of a filling.

sum over users n below the queue, servers i in the group, of d[n,i,r] x[n,i] <= L          limit of resource r
sum over users n and servers i that it selects of a[n,i] x[n,i] <= bound                   named limit (`fairopt.Limit`)

The rows of what queues keep of their guarantees, by lending limits, are those of `fairopt.program.kept_parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.by_server import Kinds
from fairopt.instance.kept_together import groups_of
from fairopt.instance.selections import Selection
from fairopt.instance.tree import Tree
from fairopt.program.limits import LimitKind, Limits

__all__ = ["Row", "guarantee_rows", "guarantees_of", "limit_name", "limit_rows", "queue_limits", "stack_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row across servers: its users, its servers, its resource, its bound.

    ``of`` has the node of the queue, and which of `fairopt.Queue.everywhere_and_on_groups` names the limit. A row of what queues keep
    (`fairopt.program.kept_parts`) has these two numbers of each of its ``keepers``, and the amount that it keeps. A row of a named limit
    has its ``selection``, and is about the user ``only`` if that is >= 0. Where no demand counts, ``resource`` is -1: what counts are the
    amounts of the selection, or tasks.
    """

    name: str
    users: BoolArray
    servers: BoolArray
    resource: int
    bound: float
    of: tuple[int, int] = (0, 0)
    keepers: tuple[tuple[int, int, Any], ...] = ()
    selection: Selection | None = None
    only: int = -1

    @property
    def kind(self) -> LimitKind:
        """What limit it is in a program."""
        return LimitKind.QUEUE if self.selection is None else LimitKind.LIMIT

    def per_task(self, kinds: Kinds) -> FloatArray:
        """Return what a task of each user counts, (users,), or (users, servers) where that depends on the server; 0 outside of the row."""
        if self.selection is not None:
            each = self.selection.per_task(kinds)
        else:
            each = kinds.per_task(self.resource) if self.resource >= 0 else np.ones(self.users.size, kinds.demands.dtype)
        return np.where(self.users if each.ndim == 1 else self.users[:, None] & self.servers, each, 0)

    def used(self, kinds: Kinds, tasks: FloatArray) -> Any:
        """Return what tasks, (users, servers), count together."""
        if self.selection is not None and isinstance(self.selection.amounts, tuple):
            users, servers, amounts = self.selection.amounts
            mine = self.users[users] & self.servers[servers]
            return amounts[mine] @ tasks[users[mine], servers[mine]]
        members, each = np.flatnonzero(self.users), self.per_task(kinds)
        there = tasks[np.ix_(members, self.servers)]
        return each[members] @ there.sum(axis=1) if each.ndim == 1 else (each[np.ix_(members, self.servers)] * there).sum()

    def members(self, kinds: Kinds) -> IntArray:
        """Return the users whose tasks count on some server, ascending."""
        if self.only >= 0 and self.selection is not None:
            mine = np.array([self.only])
            demanded = (kinds.demands[mine, :, self.resource] > 0).any(axis=1) if self.resource >= 0 else self.selection.counted[mine]
            return np.asarray(mine[demanded])
        if self.resource >= 0:
            return np.flatnonzero(self.users & kinds.demand(self.resource))
        return np.flatnonzero(self.users if self.selection is None else self.users & self.selection.counted)

    def coefficients(self, kinds: Kinds, users: IntArray, servers: IntArray) -> FloatArray:
        """Return what a task counts on pairs whose users and servers are in the row, (pairs,)."""
        if self.resource >= 0:
            return kinds.of_pairs(users, servers, self.resource)
        if self.selection is None:
            return np.ones(users.size, kinds.demands.dtype)
        return np.asarray(self.selection.coefficients(users, servers, kinds.demands.dtype))


def limit_rows(instance: Instance) -> Iterator[Row]:
    """Yield the limits of all queues, then the named limits."""
    yield from _of_queues(instance)
    for selection in instance.selections:
        for row in selection.rows():
            yield Row(row.name, row.users, row.servers, selection.resource, row.bound, selection=selection, only=row.only)


def _of_queues(instance: Instance) -> Iterator[Row]:
    if not instance.queues:
        return
    tree = instance.tree
    for node, queue in enumerate(tree.queues, 1):
        if not queue.limit and not queue.quotas:
            continue
        users = tree.below[node]
        for k, (quota, servers, group) in enumerate(groups_of(instance, queue)):
            for r, limit in _by_resource(instance, quota.limit):
                yield Row(limit_name(instance.resources[r], queue.name, group), users, servers, r, limit, (node, k))


def limit_name(resource: str, queue: str, group: str = "") -> str:
    """Return the name of a limit of a queue, on a group of servers if it is not on all."""
    return f"{resource} of {queue}{f' on {group}' if group else ''}"


def guarantee_rows(instance: Instance, tree: Tree, node: int) -> Iterator[Row]:
    """Yield the guarantees of a queue as limits, and 0 for servers outside the groups that have a guarantee of a resource."""
    queue, users = tree.queues[node - 1], tree.below[node]
    elsewhere: dict[int, BoolArray] = {}
    for row in guarantees_of(instance, tree, node):
        yield row
        elsewhere[row.resource] = elsewhere.get(row.resource, np.ones(instance.n_servers, bool)) & ~row.servers
    for r, servers in elsewhere.items():
        if servers.any():
            yield Row(f"{instance.resources[r]} of {queue.name} beyond its guaranteed servers", users, servers, r, 0.0)


def guarantees_of(instance: Instance, tree: Tree, node: int) -> Iterator[Row]:
    """Yield the guarantees of a queue, of the whole cluster and of groups of servers."""
    queue = tree.queues[node - 1]
    for quota, servers, group in groups_of(instance, queue):
        where = f" on {group}" if group else ""
        for r, amount in _by_resource(instance, quota.guarantee):
            yield Row(f"guaranteed {instance.resources[r]} of {queue.name}{where}", tree.below[node], servers, r, amount)


def queue_limits(instance: Instance, users: IntArray, servers: IntArray) -> tuple[Limits, tuple[str, ...]]:
    """Return the limits of queues and the named limits over these pairs, and the names that their keys number."""
    rows = list(limit_rows(instance))
    if not rows:
        return Limits.none(users.size), ()
    return stack_rows(instance.kinds, rows, users, servers), tuple(row.name for row in rows)


def stack_rows(kinds: Kinds, rows: Sequence[Row], users: IntArray, servers: IntArray) -> Limits:
    """Return rows as limits over these pairs; the key of each is its position.

    A pair may be on a server beyond those of the instance, such as those of `fairopt.program.past`. No row counts it.
    """
    if not rows:
        return Limits.none(users.size)
    entries: list[tuple[FloatArray, IntArray]] = []
    first = np.searchsorted(users, np.arange(len(kinds.demands) + 1))
    largest = int(servers.max(initial=-1))
    for row in rows:
        mine = row.members(kinds)
        lengths = first[mine + 1] - first[mine]
        pairs = np.arange(lengths.sum()) + np.repeat(first[mine] - np.cumsum(lengths) + lengths, lengths)
        if largest >= row.servers.size or not row.servers.all():
            pairs = pairs[np.append(row.servers, False)[np.minimum(servers[pairs], row.servers.size)]]
        values = row.coefficients(kinds, users[pairs], servers[pairs])
        if kinds.demands.shape[1] > 1 or (row.selection is not None and isinstance(row.selection.amounts, tuple)):
            pairs, values = pairs[values > 0], values[values > 0]
        entries.append((values.astype(np.float64), pairs))
    sizes = [pairs.size for _, pairs in entries]
    matrix = sp.csr_array(
        (
            np.concatenate([values for values, _ in entries]),
            np.concatenate([pairs for _, pairs in entries]),
            np.concatenate([[0], np.cumsum(sizes)]),
        ),
        shape=(len(rows), users.size),
    )
    sorts = np.array([int(row.kind) for row in rows])
    found = Limits.of(LimitKind.QUEUE, matrix, np.array([float(row.bound) for row in rows]), np.arange(len(rows)))
    return found if (sorts == LimitKind.QUEUE).all() else Limits(found.matrix, found.bounds, sorts[found.keys[:, 0]], found.keys)


def _by_resource(instance: Instance, given: Mapping[str, float]) -> Iterator[tuple[int, float]]:
    for name, amount in given.items():
        yield instance.resources.index(name), amount
