"""What queues keep of their guarantees by lending limits: which queues, how much, and how much it leaves to everybody.

A queue v with a lending limit *keeps* kept[v] = guarantee - lending limit of a resource on a group of servers. With

    z[v] = max(kept[v],  use of v's own users + sum of z[c] over the queues c below v)          kept[v] = 0 without a lending limit

the root's z is at most the capacity of the group. Where guarantees do not fit together there, queues keep less
(`fairopt.instance.kept_together`). If servers leave, kept parts that together exceed what is left are scaled down in proportion.

>>> from fairopt.instance.queues import Queue
>>> keep = {"guarantee": {"cpu": 20}, "lending_limit": {"cpu": 0}}
>>> queues = [Queue("A", **keep), Queue("B", **keep), Queue("C")]
>>> pool = Instance([[100]], [[1], [1], [1]], resources=["cpu"], queues=queues, queue_of=["A", "B", "C"])
>>> (keeping,) = keepings_of(pool)
>>> keeping.rooms([5.0, 5.0, 0.0])  # A and B use 5: each may have 15 more of its own and the 60 that are left, C may have 60
[75.0, 75.0, 60.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance.fractions import ExactArray
from fairopt.instance.instance import BoolArray, FloatArray, Instance
from fairopt.instance.kept_together import groups_of, kept_together
from fairopt.instance.tolerances import SAME
from fairopt.validation import IntArray

__all__ = ["Keeping", "keepings_of", "most_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Keeping:
    """The queues that keep a part of one resource on one group of servers. Numbers are floats, or Fractions.

    Amounts ``held`` of users are (L + 1,): what the users hold whose nearest queue above that keeps is each of the L queues, and last what
    all others hold.

    Attributes
    ----------
    resource : int
    group : str
        Name of the group of servers; "" for the whole cluster.
    servers : bool array (servers,)
    capacity : number
    nodes : tuple of int
        The nodes of the queues, parents before children.
    quotas : tuple of int
        Of each queue, which of `fairopt.Queue.everywhere_and_on_groups` names the lending limit.
    said, asked, kept : tuples of numbers
        What each queue keeps, as it says, where guarantees are met together, and scaled to the capacity.
    above : tuple of int
        Of each queue, the nearest one above it, as a position in ``nodes``; -1 if there is none.
    nearest : int array (users,)
        The same of each user.
    """

    resource: int
    group: str
    servers: BoolArray
    capacity: Any
    nodes: tuple[int, ...]
    quotas: tuple[int, ...]
    said: tuple[Any, ...]
    asked: tuple[Any, ...]
    kept: tuple[Any, ...]
    above: tuple[int, ...]
    nearest: IntArray

    def with_capacity(self, capacity: Any) -> Keeping:
        """Return the same queues on servers of this capacity: kept parts that together exceed it are scaled down in proportion."""
        asked = replace(self, capacity=capacity, kept=self.asked)
        together = asked.counted([0] * (len(self.nodes) + 1))[-1]
        return asked if together <= capacity else replace(asked, kept=tuple(amount * (capacity / together) for amount in self.asked))

    def held(self, of_users: FloatArray | ExactArray) -> list[Any]:
        """Return what users hold, (users,), as (L + 1,)."""
        sums = np.zeros(len(self.nodes) + 1, of_users.dtype)
        np.add.at(sums, self.nearest, of_users)
        return list(sums.tolist())

    def counted(self, held: Sequence[Any]) -> list[Any]:
        """Return what counts below each queue, (L + 1,): z of the queues below and its own users; last the root's z."""
        counted = list(held)
        for k in reversed(range(len(self.nodes))):
            counted[self.above[k]] += max(self.kept[k], counted[k])
        return counted

    def rooms(self, held: Sequence[Any]) -> list[Any]:
        """Return how much more the users right below each queue may hold, (L + 1,); last those below none."""
        counted = self.counted(held)
        room = [self.capacity - counted[-1]] * len(counted)
        for k, above in enumerate(self.above):
            room[k] = room[above] + max(self.kept[k] - counted[k], 0)
        return room

    def keepers(self, held: Sequence[Any], inside: int = -1) -> tuple[int, ...]:
        """Return the topmost queues that hold less than they keep: the set S of the row that leaves the least.

        With ``inside``, of the rows that count the users right below this queue.
        """
        counted = self.counted(held)
        on_the_way = set()
        while inside >= 0:
            on_the_way.add(inside)
            inside = self.above[inside]
        looked_at, found = {-1}, list[int]()
        for k, above in enumerate(self.above):
            if above in looked_at:
                if k in on_the_way or not self.kept[k] > counted[k]:
                    looked_at.add(k)
                else:
                    found.append(k)
        return tuple(found)

    def left(self, keepers: Sequence[int]) -> Any:
        """Return what these queues leave of the capacity."""
        left = self.capacity - sum(self.kept[k] for k in keepers)
        return left * 0 if left <= (SAME * self.capacity if isinstance(left, float) else 0) else left


def keepings_of(instance: Instance) -> tuple[Keeping, ...]:
    """Return what the queues of an instance keep, by resource and group of servers; in fractions for an instance in fractions."""
    if not any(each.lending_limit for queue in instance.queues for each in queue.everywhere_and_on_groups):
        return ()
    found: dict[tuple[bytes, int], dict[int, tuple[int, Any]]] = {}
    names: dict[bytes, tuple[BoolArray, str]] = {}
    for node, queue in enumerate(instance.tree.queues, 1):
        for k, (quota, servers, group) in enumerate(groups_of(instance, queue)):
            for resource, lent in quota.lending_limit.items():
                kept = quota.guarantee[resource] - lent
                if kept > 0:
                    names.setdefault(servers.tobytes(), (servers, "" if servers.all() else group))
                    own = found.setdefault((servers.tobytes(), instance.resources.index(resource)), {})
                    if node not in own or own[node][1] < kept:
                        own[node] = k, kept
    keepings = (_keeping(instance, r, *names[servers], own) for (servers, r), own in found.items())
    return tuple(keeping for keeping in keepings if keeping.capacity > 0)


def _keeping(instance: Instance, r: int, servers: BoolArray, group: str, own: dict[int, tuple[int, Any]]) -> Keeping:
    tree = instance.tree
    nodes = [node for node in tree.downwards() if node in own]
    place = {node: k for k, node in enumerate(nodes)}
    nearest_of = np.full(tree.n_nodes, -1)
    above = dict[int, int]()
    for node in tree.downwards():
        if node:
            above[node] = int(nearest_of[tree.parent[node]])
            nearest_of[node] = place.get(node, above[node])
    said = {node: own[node][1] for node in nodes}
    shared = r - instance.n_server_resources
    capacity = instance.shared_capacity[shared] if shared >= 0 else instance.row_capacity[servers, r].sum()
    capacity = capacity if instance.row_capacity.dtype == object else float(capacity)
    asked = tuple(kept_together(instance, r, servers, capacity, said).values())
    keeping = Keeping(
        resource=r,
        group=group,
        servers=servers,
        capacity=capacity,
        nodes=tuple(nodes),
        quotas=tuple(own[node][0] for node in nodes),
        said=tuple(said.values()),
        asked=asked,
        kept=asked,
        above=tuple(above[node] for node in nodes),
        nearest=nearest_of[tree.user_node],
    )
    return keeping.with_capacity(keeping.capacity)


def most_of(instance: Instance, keeping: Keeping) -> list[Any]:
    """Return the most that users may hold by their numbers of tasks and the limits of queues, as amounts of `Keeping`."""
    tree, r = instance.tree, keeping.resource
    largest = instance.demands_by_kind[:, np.unique(instance.kind_of[keeping.servers]), r].max(axis=1)
    runs = instance.eligibility[:, keeping.servers].any(axis=1) & (largest > 0)
    most: list[Any] = [0] * tree.n_nodes
    for n in np.flatnonzero(runs):
        most[tree.user_node[n]] += largest[n] * instance.tasks[n]
    held: list[Any] = [0] * (len(keeping.nodes) + 1)
    place = {node: k for k, node in enumerate(keeping.nodes)}
    for node in tree.upwards():
        if node == 0:
            held[-1] += most[0]
            continue
        for quota, servers, _ in groups_of(instance, tree.queues[node - 1]):
            if servers[keeping.servers].all() and instance.resources[r] in quota.limit:
                most[node] = min(most[node], quota.limit[instance.resources[r]])
        if node in place:
            held[place[node]] += most[node]
        else:
            most[tree.parent[node]] += most[node]
    return held
