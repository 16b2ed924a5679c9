"""What stops the users of each level: their own tasks, a guarantee that is met or kept, or limits with a price; without one, full limits.

>>> import fairopt as fo
>>> instance = fo.Instance([[8]], [[1], [1]], tasks=[2, 9], users=["ann", "ben"], servers=["pool"], resources=["gpu"])
>>> stops(fo.solve(instance, "drf"))
({'ann': ('tasks of ann',)}, {'ben': ('gpu @ pool',)})
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import BoolArray
from fairopt.instance.rule_sides import sides
from fairopt.instance.shared import limit_name as shared_name
from fairopt.instance.tolerances import FITS, NOTHING
from fairopt.program.parallelism import servers_at_once
from fairopt.program.queue_limits import guarantees_of, limit_rows

if TYPE_CHECKING:
    from fairopt.allocation.allocation import Allocation
    from fairopt.allocation.level import Level

__all__ = ["stops"]


def stops(allocation: Allocation) -> tuple[dict[str, tuple[str, ...]], ...]:
    """Return for each level what stops each of its users, by the names of limits."""
    found = _Stops(allocation)
    place = {name: n for n, name in enumerate(allocation.instance.users)}
    return tuple({name: tuple(found.of(level, place[name])) for name in level.users} for level in allocation.levels)


class _Stops:
    """What is the same for all levels."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation, instance = allocation, allocation.instance
        self.instance = instance
        self.tasks = allocation.tasks_per_user
        self.at_once = servers_at_once(instance, allocation.tasks)
        self.rows = list(limit_rows(instance))
        self.across = {row.name: row.users for row in self.rows}  # who is in limits that belong to no server
        for k, name in enumerate(instance.shared):
            self.across[shared_name(name)] = instance.kinds.demand(instance.n_server_resources + k)
        for side in sides(instance, allocation.tasks):
            self.across[side.rule.text] = side.stops

    def of(self, level: Level, n: int) -> Iterator[str]:
        """Yield what stops a user at a level."""
        instance, user = self.instance, self.instance.users[n]
        if self.tasks[n] >= instance.tasks[n] * (1 - FITS):
            yield f"tasks of {user}"
            return
        if at_once := instance.limited[n] and self.at_once[n] >= instance.parallelism[n] * (1 - FITS):
            yield f"servers of {user}"
        if level.part and not level.part.startswith("the surplus"):
            yield from self._guarantees(n)
        yield from (name for name in level.floors if name not in set(self._guarantees(n)))
        if level.prices is not None and level.prices.size:
            priced = level.prices > NOTHING * level.prices.max()
            if self.allocation.sharing == "tdm":
                yield from (f"time of {instance.servers[i]}" for i in np.flatnonzero(priced[:, 0] & instance.eligibility[n]))
            else:
                priced &= self._needs(n)
                yield from (f"{instance.resources[r]} @ {instance.servers[i]}" for i, r in np.argwhere(priced))
        yield from (name for name in level.queue_prices if name not in self.across or self.across[name][n])
        if level.prices is None and not level.queue_prices and not at_once:
            yield from self._full(n)

    def _full(self, n: int) -> Iterator[str]:
        """Yield what is full of all that a user needs: nothing else proves a level of users who never rose."""
        instance, allocation = self.instance, self.allocation
        own = instance.eligibility[n]
        if allocation.sharing == "tdm":
            yield from (f"time of {instance.servers[i]}" for i in np.flatnonzero(own & (allocation.time_utilization >= 1 - FITS)))
        else:
            full = allocation.usage >= instance.row_capacity * (1 - FITS)
            yield from (f"{instance.server_resources[r]} @ {instance.servers[i]}" for i, r in np.argwhere(self._needs(n) & full))
        for k, name in enumerate(instance.shared):
            if self.across[shared_name(name)][n] and allocation.shared_usage[k] >= instance.shared_capacity[k] * (1 - FITS):
                yield shared_name(name)
        for row in self.rows:
            counts = row.users[n] and bool((row.servers & own & (row.per_task(instance.kinds)[n] > 0)).any())
            if counts and row.used(instance.kinds, allocation.tasks) >= row.bound * (1 - FITS):
                yield row.name

    def _needs(self, n: int) -> BoolArray:
        """Return what a task of a user needs on each server where it may run, (servers, M)."""
        instance = self.instance
        demanded = instance.demands_by_kind[n, :, : instance.n_server_resources] > 0
        return np.asarray(instance.eligibility[n][:, None] & demanded[instance.kind_of])

    def _guarantees(self, n: int) -> Iterator[str]:
        """Yield the guarantees of a user, and of the queues above it, that are met."""
        instance, tasks = self.instance, self.allocation.tasks
        if 0 < instance.guarantees[n] <= self.tasks[n] * (1 + FITS):
            yield f"guarantee of {instance.users[n]}"
        tree = instance.tree
        for node in np.flatnonzero(tree.below[:, n])[1:] if instance.queues else ():
            for row in guarantees_of(instance, tree, int(node)):
                if instance.kinds.demand(row.resource)[n] and row.used(instance.kinds, tasks) >= row.bound * (1 - FITS):
                    yield row.name
