"""Named limits as rows, read from what `fairopt.Limit` says, and random ones; nothing of how fairopt selects.

A row is what a task of each user counts on each server, (users, servers), and a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import fairopt as fo

__all__ = ["NamedRow", "counted", "rows_of_limits", "with_limits"]

Number = Any


class NamedRow(NamedTuple):
    """The sum of use[n, i] x[n, i] is at most the bound."""

    name: str
    use: Any
    bound: Number


def rows_of_limits(instance: fo.Instance, number: Callable[[Any], Number] = float) -> list[NamedRow]:
    """Return the rows of all named limits of an instance. Requirements are of the form ``attribute = value`` only."""
    rows = []
    above = {queue.name: queue.parent for queue in instance.queues}

    def way(queue: str | None) -> list[str | None]:
        return [] if queue is None else [queue, *way(above[queue])]

    for limit in instance.limits:
        kind = object if number is not float else float
        use = np.full((instance.n_users, instance.n_servers), number(0), kind)
        for n, user in enumerate(instance.users):
            for i, server in enumerate(instance.servers):
                if limit.users is not None and user not in limit.users:
                    continue
                if limit.queues is not None and not set(limit.queues) & set(way(instance.queue_of[n])):
                    continue
                if isinstance(limit.servers, str):
                    attribute, value = (part.strip() for part in limit.servers.split("="))
                    if str(dict(instance.attributes[i]).get(attribute)) != value:
                        continue
                elif limit.servers is not None and server not in limit.servers:
                    continue
                if limit.resource is not None:
                    use[n, i] = number(instance.demands_by_kind[n, instance.kind_of[i], instance.resources.index(limit.resource)])
                elif limit.amounts is not None:
                    own: Any = limit.amounts.get(user, 0)
                    use[n, i] = number(own.get(server, 0) if isinstance(own, Mapping) else own)
                else:
                    use[n, i] = number(1)
        bound = number(limit.bound)
        if limit.each is None:
            rows.append(NamedRow(limit.name, use, bound))
        elif limit.each == "user":
            for n, user in enumerate(instance.users):
                own = np.where((np.arange(instance.n_users) == n)[:, None], use, number(0))
                rows.append(NamedRow(f"{limit.name} of {user}", own, bound))
        elif limit.each == "server":
            for i, server in enumerate(instance.servers):
                own = np.where(np.arange(instance.n_servers) == i, use, number(0))
                rows.append(NamedRow(f"{limit.name} on {server}", own, bound * number(instance.counts[i])))
        else:
            for queue in limit.queues or above:
                inside = np.array([queue in way(place) for place in instance.queue_of])
                rows.append(NamedRow(f"{limit.name} of {queue}", np.where(inside[:, None], use, number(0)), bound))
    return [row for row in rows if (row.use != 0).any()]


def counted(
    instance: fo.Instance, user: str, queue: str | None, row: int, single: int, demand: list[Number], number: Callable[[Any], Number]
) -> list[tuple[tuple[Any, ...], Number, Number]]:
    """Return what a task with this demand on a single server counts, and the bound, for each row of each limit that counts it.

    The row has a key: the limit, and the user, queue or single server that it is of. Resources of the cluster are limits, too.
    """
    above, way = {each.name: each.parent for each in instance.queues}, [queue]
    found: list[tuple[tuple[Any, ...], Number, Number]] = []
    while way[-1] is not None:
        way.append(above[way[-1]])
    server = instance.servers[row]
    for k, limit in enumerate(instance.limits):
        if limit.users is not None and user not in limit.users:
            continue
        if limit.queues is not None and not set(limit.queues) & set(way):
            continue
        if isinstance(limit.servers, str):
            attribute, value = (part.strip() for part in limit.servers.split("="))
            if str(dict(instance.attributes[row]).get(attribute)) != value:
                continue
        elif limit.servers is not None and server not in limit.servers:
            continue
        amount = number(1)
        if limit.resource is not None:
            amount = demand[instance.resources.index(limit.resource)]
        elif limit.amounts is not None:
            own: Any = limit.amounts.get(user, 0)
            amount = number(own.get(server, 0) if isinstance(own, Mapping) else own)
        groups: list[Any] = [None]
        if limit.each == "user":
            groups = [user]
        elif limit.each == "server":
            groups = [single]
        elif limit.each == "queue":
            groups = [each for each in way if each is not None and (limit.queues is None or each in limit.queues)]
        found += [((k, group), amount, number(limit.bound)) for group in groups if amount]
    for name, amount in instance.shared.items():
        if demand[instance.resources.index(name)]:
            found.append((("shared", name), demand[instance.resources.index(name)], number(amount)))
    return found


def with_limits(instance: fo.Instance, seed: int, *, number: int = 3, round_to: int | None = None) -> fo.Instance:
    """Return the instance with random named limits of all selections; ``round_to`` makes the bounds multiples of its inverse."""
    rng = np.random.default_rng(seed)
    zones = [{"zone": "ab"[int(rng.integers(2))]} for _ in instance.servers]
    instance = instance.replace(attributes=zones, limits=[])
    queues = [queue.name for queue in instance.queues]
    limits: list[fo.Limit] = []

    def some(names: tuple[str, ...] | list[str]) -> list[str]:
        return [str(name) for name in rng.choice(names, size=int(rng.integers(1, len(names) + 1)), replace=False)]

    def rounded(value: float) -> float:
        return float(value) if round_to is None else max(1, round(float(value) * round_to)) / round_to

    for k in range(number):
        arguments: dict[str, Any] = {}
        kind = rng.integers(4)
        if kind == 0:
            arguments["resource"] = str(rng.choice(instance.resources))
        elif kind == 1:
            arguments["amounts"] = {user: rounded(rng.uniform(0.2, 2)) for user in some(instance.users)}
        elif kind == 2:
            arguments["amounts"] = {
                user: {server: rounded(rng.uniform(0.2, 2)) for server in some(instance.servers)} for user in some(instance.users)
            }
        if rng.random() < 0.5:
            arguments["users"] = some(instance.users)
        elif queues and rng.random() < 0.6:
            arguments["queues"] = some(queues)
        if rng.random() < 0.25:
            arguments["servers"] = f"zone = {zones[int(rng.integers(len(zones)))]['zone']}"
        elif rng.random() < 0.3:
            arguments["servers"] = some(instance.servers)
        if rng.random() < 0.4:
            arguments["each"] = str(rng.choice(["user", "server", "queue"] if queues else ["user", "server"]))
        try:
            row = rows_of_limits(instance.replace(limits=[fo.Limit("drawn", 1, **arguments)]))
        except fo.InvalidInstance:  # it selects nobody
            continue
        alone = np.minimum(np.where(np.isfinite(instance.rates), instance.rates, 1.0), instance.tasks[:, None])
        reach = max((float((each.use * alone).max()) for each in row), default=0.0)
        if reach > 0:
            try:
                drawn = fo.Limit(f"limit {k}", rounded(reach * rng.uniform(0.05, 0.9)), **arguments)
                instance.replace(limits=[*limits, drawn])
            except fo.InvalidInstance:  # below a guarantee
                continue
            limits.append(drawn)
    return instance.replace(limits=limits)
