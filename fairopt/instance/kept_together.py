r"""What queues keep where guarantees do not fit together: no more than how far each guarantee is met.

An idle queue with a lending limit asks for what it keeps as others ask for their guarantees. For one resource on one group of servers,
taken as one pool of the capacity C, each guaranteed node v, a queue or a user, has a guarantee g[v] and

    ask[v] = min(g[v], max(kept[v], what the users below it can use by their tasks and limits)).

The *parts* p[v] <= ask[v] / g[v] are the leximin under

    z of the root <= C,         z[v] = max(p[v] g[v], sum of z[c] over the nodes c right below v):

first of the nodes in no other guaranteed node, then, with their parts kept, of those in one, and so on. A queue keeps
min(kept[v], p[v] g[v]), and what all queues keep fits. `fairopt.program.guarantees` says how far guarantees are met beside that.

>>> from fairopt.instance.queues import Queue
>>> queues = [Queue("A", guarantee={"gpu": 8}, lending_limit={"gpu": 0}), Queue("B", guarantee={"gpu": 8})]
>>> pool = Instance([[8]], [[1], [1]], resources=["gpu"], queues=queues, queue_of=["A", "B"])
>>> kept_together(pool, 0, np.array([True]), 8.0, {1: 8.0})
{1: 4.0}
>>> kept_together(pool.replace(tasks=[8, 2]), 0, np.array([True]), 8.0, {1: 8.0})
{1: 6.0}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fairopt.instance.instance import BoolArray, Instance
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.tolerances import SAME

__all__ = ["groups_of", "kept_together"]


def groups_of(instance: Instance, queue: Queue) -> Iterator[tuple[Queue | Quota, BoolArray, str]]:
    """Yield a queue for the whole cluster and its quotas, each with its servers and their name."""
    yield queue, np.ones(instance.n_servers, bool), ""
    for quota in queue.quotas:
        yield quota, np.isin(instance.servers, quota.servers), quota.name


def kept_together(instance: Instance, r: int, servers: BoolArray, capacity: Any, kept: Mapping[int, Any]) -> dict[int, Any]:
    """Return what nodes keep of a resource on a group of servers, where they say ``kept``, by node."""
    resource, needs = instance.resources[r], instance.demands_by_kind[:, :, r].max(axis=1)
    promised = sum(quota.guarantee.get(resource, 0) for queue in instance.queues for quota in queue.everywhere_and_on_groups)
    if promised + (instance.guarantees * needs).sum() <= capacity:
        return dict(kept)
    claims = _Claims(instance, r, servers, kept)
    most = claims.counted()
    if most <= capacity * (1 + SAME if isinstance(most, float) else 1):
        return dict(kept)
    met = claims.met(capacity)
    return {node: min(amount, met[node]) for node, amount in kept.items()}


class _Claims:
    """Guarantees and asks by node; those of users are behind those of queues."""

    def __init__(self, instance: Instance, r: int, servers: BoolArray, kept: Mapping[int, Any]) -> None:
        tree = instance.tree
        self.above = [int(v) for v in tree.parent] + [int(v) for v in tree.user_node]
        self.upwards = [*range(tree.n_nodes, tree.n_nodes + instance.n_users), *(int(v) for v in tree.upwards() if v)]
        self.guarantees: dict[int, Any] = {}
        self.asks: dict[int, Any] = {}
        self.outer: dict[int, int] = {}  # how many guaranteed nodes each is in
        resource = instance.resources[r]
        inside = set(np.flatnonzero(servers).tolist())
        groups = [[(quota, set(np.flatnonzero(there).tolist())) for quota, there, _ in groups_of(instance, queue)] for queue in tree.queues]
        work: list[Any] = [0] * len(self.above)  # what those below can use
        needs, promises, tasks = _needs(instance, r, servers), instance.guarantees.tolist(), instance.tasks.tolist()
        for v in self.upwards:
            n = v - tree.n_nodes
            if n >= 0:
                promised, weight = promises[n] * needs[n][0], instance.weights[n]
                work[v] = needs[n][1] * tasks[n] if needs[n][1] else 0
            else:
                queue = tree.queues[v - 1]
                promised, weight = sum(quota.guarantee.get(resource, 0) for quota, there in groups[v - 1] if there <= inside), queue.weight
                limits = [quota.limit[resource] for quota, there in groups[v - 1] if there >= inside and resource in quota.limit]
                work[v] = max(min([work[v], *limits]), kept.get(v, 0))
            ask = min(promised, work[v])
            if ask > 0:
                self.guarantees[v], self.asks[v] = promised, ask
            work[self.above[v]] += work[v] if weight else ask
        for v in reversed(self.upwards):
            above = self.above[v]
            self.outer[v] = self.outer.get(above, 0) + (above in self.asks)

    def counted(self) -> Any:
        """Return z of the root where all get what they ask for."""
        z: list[Any] = [0] * len(self.above)
        for v in self.upwards:
            z[self.above[v]] += max(z[v], self.asks.get(v, 0))
        return z[0]

    def _rise(self, met: Mapping[int, Any], rising: Mapping[int, Any], passed: set[int]) -> tuple[Any, Any, dict[int, Any]]:
        """Return z of the root, how fast it rises, and of each node that counts itself the time until what is below it counts instead."""
        z: list[Any] = [0] * len(self.above)
        speed: list[Any] = [0] * len(self.above)
        times: dict[int, Any] = {}
        for v in self.upwards:
            if v in met and v not in passed:
                if speed[v] and v not in rising:
                    times[v] = max(met[v] - z[v], 0) / speed[v]
                z[v], speed[v] = met[v], rising.get(v, 0)
            z[self.above[v]] += z[v]
            speed[self.above[v]] += speed[v]
        return z[0], speed[0], times

    def met(self, capacity: Any) -> dict[int, Any]:
        """Return the part of its guarantee that each node gets, as an amount."""
        met: dict[int, Any] = dict.fromkeys(self.asks, capacity * 0)
        passed = set[int]()  # nodes that count with what is below them
        for outer in range(max(self.outer.values()) + 1):
            rising = {v: self.guarantees[v] for v in self.asks if self.outer[v] == outer}
            while rising:
                z, speed, times = self._rise(met, rising, passed)
                asked = {v: (self.asks[v] - met[v]) / rate for v, rate in rising.items()}
                full = max(capacity - z, capacity * 0) / speed if speed else None
                step = min([*asked.values(), *times.values(), *([] if full is None else [full])])
                for v, rate in rising.items():
                    met[v] = self.asks[v] if asked[v] <= step else met[v] + rate * step
                passed |= {v for v, time in times.items() if time <= step}
                done = {v for v, time in asked.items() if time <= step}
                if full is not None and full <= step:
                    done |= {v for v in rising if self._counts(v, met, passed)}
                rising = {v: rate for v, rate in rising.items() if v not in done}
        return met

    def _counts(self, v: int, met: Mapping[int, Any], passed: set[int]) -> bool:
        """Does a node that rises raise z of the root?"""
        v = self.above[v]
        while v:
            if v in met and v not in passed:
                return False
            v = self.above[v]
        return True


def _needs(instance: Instance, r: int, servers: BoolArray) -> list[tuple[Any, Any]]:
    """Return the least that a task of each user takes there, 0 if it may run elsewhere, and the most."""
    found, demands = list[tuple[Any, Any]](), instance.demands_by_kind[:, :, r].tolist()
    for demand, own in zip(demands, instance.eligibility, strict=True):
        amounts = [demand[kind] for kind in set(instance.kind_of[own & servers].tolist())]
        found.append((0 if (own & ~servers).any() else min(amounts, default=0), max(amounts, default=0)))
    return found
