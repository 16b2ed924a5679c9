"""An instance: its servers and its users, its named limits and its rules, amounts in the units of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.limits import Limit
from fairopt.instance.units import shown_unit
from fairopt.reporting.tables.phrases import servers_in_rows
from fairopt.show.table import Column, Table, names, numbers, words
from fairopt.wording import figure, joined, named, plural

__all__ = ["limit_table", "rule_table", "server_table", "shared_table", "user_table"]

_MOST = 6  # names of a selection; the others are counted


def server_table(instance: Instance) -> Table:
    """Return the rows of servers: number of servers, and capacity of one."""
    return Table.of(
        names("server", instance.servers),
        numbers("number", instance.counts, 4),
        *_amounts(instance, instance.server_resources, instance.capacities, "of one"),
        title=servers_in_rows(instance),
    )


def shared_table(instance: Instance) -> Table | None:
    """Return the resources of the whole cluster, and how much there is of each; None if there are none."""
    if not instance.shared:
        return None
    amounts = (instance.amount(amount, name, 6) for name, amount in instance.shared.items())
    return Table.of(names("resource", instance.shared), words("in the cluster", amounts), title="Resources of the whole cluster")


def limit_table(instance: Instance) -> Table | None:
    """Return the named limits: what at most, of whom, where, and whether each of them by itself; None if there are none."""
    if not instance.limits:
        return None

    def bound(limit: Limit) -> str:
        if limit.resource is not None:
            return instance.amount(limit.bound, limit.resource, 6)
        return plural(limit.bound, "task", digits=6) if limit.counts_tasks else f"{figure(limit.bound, 6)} (amounts by task)"

    def of(limit: Limit) -> str:
        users = joined([named(name) for name in limit.users], _MOST) if limit.users is not None else ""
        queues = f"in {joined([named(name) for name in limit.queues], _MOST)}" if limit.queues is not None else ""
        return " ".join(filter(None, [users, queues])) or "all users"

    def there(limit: Limit) -> str:
        if limit.servers is None:
            return "all servers"
        return limit.servers if isinstance(limit.servers, str) else joined([named(name) for name in limit.servers], _MOST)

    return Table.of(
        names("limit", (limit.name for limit in instance.limits)),
        words("at most", map(bound, instance.limits)),
        words("of", map(of, instance.limits)),
        words("on", map(there, instance.limits)),
        words("for each", (limit.each or "-" for limit in instance.limits)),
        title=plural(len(instance.limits), "limit"),
    )


def rule_table(instance: Instance) -> Table | None:
    """Return the rules, one a row; None if there are none."""
    if not instance.rules:
        return None
    return Table.of(words("rule", (rule.text for rule in instance.rules)), title=plural(len(instance.rules), "rule"))


def user_table(instance: Instance) -> Table:
    """Return the users: queue, weight, demand of a task, tasks, servers where they may run, and how many at once if that is limited."""
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    columns = [names("user", instance.users)]
    if instance.queues:
        columns.append(words("queue", (queue or "-" for queue in instance.queue_of)))
    columns += [
        numbers("weight", (", ".join(figure(weight, 4) for weight in own) for own in weights)),
        *_of_a_task(instance),
        numbers("tasks", instance.tasks, 4),
        numbers("servers", instance.eligibility @ instance.counts, 4),
    ]
    if np.isfinite(instance.parallelism).any():
        columns.append(numbers("at once", instance.parallelism, 4))
    return Table.of(*columns, title=plural(instance.n_users, "user"))


def _of_a_task(instance: Instance) -> list[Column]:
    """Return a column for each resource that a task takes, and one for its speed; ranges, where these differ by server."""
    if not instance.differs_by_server:
        return _amounts(instance, instance.resources, instance.demands, "of a task")
    columns = []
    for r, name in enumerate(instance.resources):
        each = instance.demands_by_kind[:, :, r]
        size, unit = shown_unit(float(each.max(initial=0.0)), name, instance.units.get(name, ""))
        columns.append(numbers(f"{name} of a task{f' ({unit})' if unit else ''}", map(_range, each / size)))
    return columns if instance.speeds_given is None else [*columns, numbers("speed", map(_range, instance.speeds))]


def _range(values: FloatArray) -> str:
    """Return the smallest and the largest number as text, or the one number that there is."""
    low, high = figure(float(values.min()), 4), figure(float(values.max()), 4)
    return low if low == high else f"{low} to {high}"


def _amounts(instance: Instance, resources: Sequence[str], amounts: FloatArray, of: str) -> list[Column]:
    """Return a column for each resource, with its unit in brackets where it is known; amounts are (rows, resources)."""
    most, columns = amounts.max(axis=0, initial=0.0), []
    for r, name in enumerate(resources):
        size, unit = shown_unit(float(most[r]), name, instance.units.get(name, ""))
        columns.append(numbers(f"{name} {of}{f' ({unit})' if unit else ''}", amounts[:, r] / size, 4))
    return columns
