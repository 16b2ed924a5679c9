"""What queues keep of their guarantees, as one would write it down: every row of the family, by brute force. Nothing of fairopt but data.

For each resource and group of servers, and each set of queues that keep something, none of them below another:

    the sum of what these queues keep  +  the use of all users below none of them  <=  the capacity of the group.

A queue keeps no more than how far its guarantee is met on one pool of the resource: `together`, by linear programs, level by level. If
servers are missing, what is kept is scaled in proportion: z of the root, with z[v] = max(kept[v], sum of z of v's children), is at most
the capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from reference.simplex import maximise

import fairopt as fo

__all__ = ["Kept", "KeptLimit", "all_rows", "kept_of", "together"]


@dataclass
class Kept:
    """What queues, by position from 0, keep of a resource on some servers with this capacity."""

    resource: int
    servers: list[int]
    capacity: Any
    amounts: dict[int, Any]


@dataclass
class KeptLimit:
    """The use of a resource by these users on these servers is at most the bound."""

    users: list[int]
    servers: list[int]
    resource: int
    bound: Any


def kept_of(instance: fo.Instance, number: Callable[[Any], Any] = Fraction, there: Sequence[int] | None = None) -> list[Kept]:
    """Return what the queues keep, scaled; numbers are made by ``number``. Of each row of servers so many are there, by default all."""
    present = instance.counts if there is None else there
    names = [queue.name for queue in instance.queues]
    found: dict[tuple[int, tuple[int, ...]], dict[int, Any]] = {}
    for q, queue in enumerate(instance.queues):
        everywhere: list[tuple[Any, tuple[str, ...]]] = [(queue, instance.servers), *((quota, quota.servers) for quota in queue.quotas)]
        for quota, servers in everywhere:
            group = tuple(sorted(instance.servers.index(name) for name in servers))
            for name, lent in quota.lending_limit.items():
                own = found.setdefault((instance.resources.index(name), group), {})
                own[q] = max(own.get(q, number(0)), number(quota.guarantee[name]) - number(lent))
    result = []
    for (r, group), amounts in found.items():
        of_cluster = [number(amount) for amount in instance.shared.values()]
        own = instance.capacities.shape[1]

        def size(counts: Any, r: int = r, group: tuple[int, ...] = group, shared: Any = of_cluster, own: int = own) -> Any:
            on_servers = (number(counts[i]) * number(instance.capacities[i, r]) for i in group if r < own)
            return shared[r - own] if r >= own else sum(on_servers, number(0))

        capacity, met = size(present), together(instance, r, group, size(instance.counts), amounts, number)

        def of(q: int, met: dict[int, Any] = met) -> Any:
            children = [k for k, queue in enumerate(instance.queues) if queue.parent == names[q]]
            return max(met.get(q, number(0)), sum((of(k, met) for k in children), number(0)))

        everything = sum((of(q) for q, queue in enumerate(instance.queues) if queue.parent is None), number(0))
        factor = capacity / everything if everything > capacity else number(1)
        result.append(Kept(r, list(group), capacity, {q: amount * factor for q, amount in met.items()}))
    return result


def together(
    instance: fo.Instance, r: int, group: Sequence[int], capacity: Any, kept: dict[int, Any], number: Callable[[Any], Any]
) -> dict[int, Any]:
    """Return what queues keep, min(kept, p guarantee), where p is the leximin of the parts of guarantees on one pool, the outer ones first.

    Linear programs have the columns p of the nodes, z of the nodes, and t; they are in fractions. Nodes are the queues, then the users.
    """
    if number is float:
        exact = together(instance, r, group, Fraction(capacity), {q: Fraction(amount) for q, amount in kept.items()}, Fraction)
        return {q: float(amount) for q, amount in exact.items()}
    names = [queue.name for queue in instance.queues]
    there, resource = {instance.servers[i] for i in group}, instance.resources[r]
    above = [names.index(name) if name is not None else -1 for name in (*(q.parent for q in instance.queues), *instance.queue_of)]
    nodes, zero = range(len(above)), number(0)
    below = {v: [c for c in nodes if above[c] == v] for v in (-1, *nodes)}

    def amounts(q: int, word: str, counts: Callable[[set[str]], bool]) -> list[Any]:
        queue = instance.queues[q]
        groups = [(queue, set(instance.servers)), *((quota, set(quota.servers)) for quota in queue.quotas)]
        return [number(getattr(quota, word)[resource]) for quota, on in groups if resource in getattr(quota, word) and counts(on)]

    guarantees: dict[int, Any] = {}
    for v in nodes:
        if v < len(names):
            guarantees[v] = sum(amounts(v, "guarantee", lambda on: on <= there), zero)
        else:
            n = v - len(names)
            on = [i for i in range(instance.n_servers) if instance.eligibility[n, i]]
            need = [number(instance.demands_by_kind[n, instance.kind_of[i], r]) for i in on]
            guarantees[v] = number(instance.guarantees[n]) * min(need) if need and set(on) <= set(group) else zero

    def work(v: int) -> Any:
        """What users below can use; None without end."""
        if v >= len(names):
            n = v - len(names)
            need = [number(instance.demands_by_kind[n, instance.kind_of[i], r]) for i in group if instance.eligibility[n, i]]
            most = max(need, default=zero)
            return zero if not most else None if instance.tasks[n] == float("inf") else most * number(instance.tasks[n])
        parts = [work(c) if weight(c) else ask(c) for c in below[v]]
        limits = amounts(v, "limit", lambda on: there <= on)
        most = min([*limits, *([] if None in parts else [sum(parts, zero)])], default=None)
        return None if most is None else max(most, kept.get(v, zero))

    def weight(v: int) -> float:
        return float(instance.queues[v].weight if v < len(names) else instance.weights[v - len(names)])

    def ask(v: int) -> Any:
        most = work(v)
        return guarantees[v] if most is None else min(guarantees[v], most)

    def outer(v: int) -> int:
        return 0 if above[v] < 0 else outer(above[v]) + (ask(above[v]) > 0)

    asks, count = {v: ask(v) for v in nodes if ask(v) > 0}, len(above)
    at_least: list[tuple[list[Any], Any]] = []  # rows <= of z: of what is below, of the root, of parts that have stopped
    for v in (-1, *nodes):
        row = [zero] * (2 * count + 1)
        for c in below[v]:
            row[count + c] = number(1)
        if v >= 0:
            row[count + v] = number(-1)
        at_least.append((row, capacity if v < 0 else zero))
    for v in asks:
        row = [zero] * (2 * count + 1)
        row[v], row[count + v] = guarantees[v], number(-1)
        at_least.append((row, zero))

    def unit(v: int, value: int) -> list[Any]:
        return [number(value) if k == v else zero for k in range(2 * count + 1)]

    met: dict[int, Any] = {}
    for depth in range(max(map(outer, asks), default=-1) + 1):
        rising = [v for v in asks if outer(v) == depth]
        while rising:
            rows = [*at_least, *((unit(v, -1), -part) for v, part in met.items())]
            rows += [(unit(v, 1), asks[v] / guarantees[v]) for v in rising]
            level = [([*unit(v, -1)[:-1], number(1)], zero) for v in rising]
            t, _ = maximise(unit(2 * count, 1), *map(list, zip(*rows, *level, strict=True)))
            stopped = []
            for v in rising:
                others = [(unit(c, -1), -t) for c in rising if c != v]
                if maximise(unit(v, 1), *map(list, zip(*rows, *others, strict=True)))[0] <= t:
                    stopped.append(v)
            met |= dict.fromkeys(stopped, t)
            rising = [v for v in rising if v not in stopped]
    return {q: min(amount, met.get(q, zero) * guarantees[q]) for q, amount in kept.items()}


def all_rows(
    instance: fo.Instance, number: Callable[[Any], Any] = Fraction, there: Sequence[int] | None = None, smallest: int = 1
) -> Iterator[KeptLimit]:
    """Yield every row of the family; with ``smallest`` 0 the capacity, too."""
    parents = {queue.name: queue.parent for queue in instance.queues}

    def is_below(name: str | None, queue: int) -> bool:
        while name is not None and name != instance.queues[queue].name:
            name = parents[name]
        return name is not None

    for kept in kept_of(instance, number, there):
        for size in range(smallest, len(kept.amounts) + 1):
            for chosen in combinations(kept.amounts, size):
                if not any(is_below(instance.queues[q].name, other) for q in chosen for other in chosen if q != other):
                    others = [n for n, name in enumerate(instance.queue_of) if not any(is_below(name, q) for q in chosen)]
                    left = kept.capacity - sum((kept.amounts[q] for q in chosen), number(0))
                    yield KeptLimit(others, kept.servers, kept.resource, max(left, left * 0))
