"""What queues keep of their guarantees, as one would write it down: every row of the family, by brute force. Nothing of fairopt but data.

For each resource and group of servers, and each set of queues that keep something, none of them below another:

    the sum of what these queues keep  +  the use of all users below none of them  <=  the capacity of the group.

What queues keep is scaled in proportion where it does not fit together: z of the root, with z[v] = max(kept[v], sum of z of v's children),
must be at most the capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import fairopt as fo

__all__ = ["Kept", "KeptLimit", "all_rows", "kept_of"]


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

        def together(q: int, amounts: dict[int, Any] = amounts) -> Any:
            children = [k for k, queue in enumerate(instance.queues) if queue.parent == names[q]]
            return max(amounts.get(q, number(0)), sum((together(k, amounts) for k in children), number(0)))

        of_cluster = [number(amount) for amount in instance.shared.values()]
        own = instance.capacities.shape[1]
        on_servers = (number(present[i]) * number(instance.capacities[i, r]) for i in group if r < own)
        capacity = of_cluster[r - own] if r >= own else sum(on_servers, number(0))
        everything = sum((together(q) for q, queue in enumerate(instance.queues) if queue.parent is None), number(0))
        factor = capacity / everything if everything > capacity else number(1)
        result.append(Kept(r, list(group), capacity, {q: amount * factor for q, amount in amounts.items()}))
    return result


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
