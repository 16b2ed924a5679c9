"""Resources of the cluster: licences, the bandwidth of a file system, a power budget. No server has them, and all tasks share them.

A shared resource r has one amount S[r] for the whole cluster, wherever tasks run:

    sum over users n, servers i of d[n,r] x[n,i] <= S[r].

The columns of demands are the resources of servers, then the shared ones in their order. Capacities of servers have the former alone, so
that code which divides capacities by demands without looking fails.

>>> arranged([[20]], [[1, 1], [1, 0]], None, ["cpu", "licences"], {"licences": 10}).resources
['cpu', 'licences']
>>> arranged([[20]], [[1, 1], [1, 0]], None, ["cpu", "memory"], {"licences": 10})
Traceback (most recent call last):
fairopt.errors.InvalidInstance: there is no amount of the resource "memory": capacities have 1 column, and it is not shared
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.queues import Queue
from fairopt.validation import BoolArray, FloatArray, check, numbers
from fairopt.wording import did_you_mean, figure, found, joined, named, plural

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = [
    "CLUSTER",
    "Columns",
    "arranged",
    "as_given",
    "changed_shared",
    "check_quotas",
    "limit_name",
    "needs_no_server",
    "refuse_shared",
    "shared_of",
    "shared_prices",
    "too_scarce",
    "within_shared",
]

CLUSTER = "cluster"
"""Name of the only row of servers of an instance that has shared resources alone."""


class Columns(NamedTuple):
    """Arguments of an instance: ``capacities`` have the resources of servers, ``demands`` these and then the shared ones."""

    capacities: Any
    demands: Any
    servers: Sequence[str] | None
    resources: Sequence[str] | None
    shared: dict[str, Any]


def arranged(
    capacities: Any, demands: Any, servers: Sequence[str] | None, resources: Sequence[str] | None, shared: Mapping[str, Any] | None
) -> Columns:
    """Return the arguments with the columns where they belong; columns of frames go by their labels.

    Raises
    ------
    InvalidInstance
        A server has a shared resource; a column has no name among the resources; labels are in another order.
    """
    if shared is not None and not isinstance(shared, Mapping):
        raise InvalidInstance(f'shared: expected a mapping such as {{"licences": 10}}, found {found(shared)}')
    if not shared:
        if capacities is None:
            raise InvalidInstance("there are no capacities; give one row for each server, or shared resources of the cluster")
        return Columns(capacities, demands, servers, resources, {})
    names = [*shared]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f"shared: {name!r} is no name of a resource; names are strings")
    if _without_columns(capacities):
        rows = 1 if capacities is None or not np.ndim(capacities) > 1 else max(len(capacities), 1)
        servers = [CLUSTER] if servers is None and rows == 1 else servers
        capacities, of_servers = np.zeros((rows, 0)), list[str]()
    elif _is_frame(capacities):
        of_servers = [label for label in capacities.columns if label not in shared]
        _refuse_both(capacities, [*capacities.columns], shared, _row_names(servers, capacities))
        capacities = capacities[of_servers]
    else:
        labels = list(resources or ())
        if resources is None and _is_frame(demands):
            labels = [label for label in demands.columns if label not in shared]
        width = np.shape(capacities)[-1] if np.ndim(capacities) == 2 else 0
        if len(labels) == width and (both := [label for label in labels if label in shared]):
            _refuse_both(capacities, labels, shared, _row_names(servers, capacities))
            of_servers = [label for label in labels if label not in both]
            capacities = np.asarray(capacities)[:, [label not in both for label in labels]]
        else:
            own = [label for label in labels if label not in shared]
            for extra in own[width:] if labels and width else ():
                raise InvalidInstance(
                    f"there is no amount of the resource {_quoted(extra)}: capacities have {plural(width, 'column')}, and it is not shared"
                )
            of_servers = own if labels else [f"resource-{j + 1}" for j in range(width)]
    order = names
    if resources is not None:
        named_here = [label for label in resources if label in shared]
        if named_here and [*resources] != [*of_servers, *named_here]:
            raise InvalidInstance(
                f"the resources are {joined([*map(str, resources)], 8)}; name those of servers first, then those that are shared, "
                f"{joined(names, 8)}"
            )
        if named_here and set(named_here) != set(names):
            missing = next(name for name in names if name not in named_here)
            raise InvalidInstance(f"the resources name no {_quoted(missing)}, which is shared; name all shared resources, or none")
        order = named_here or names
    if _is_frame(demands):
        columns = [*demands.columns]
        for label in columns:
            if label not in shared and label not in of_servers:
                hint = did_you_mean(str(label), [*of_servers, *names])
                raise InvalidInstance(f"the column {_quoted(label)} of demands is no resource of servers, and not in shared{hint}")
        for label in (*of_servers, *order):
            if label not in columns:
                raise InvalidInstance(f"demands have no column {_quoted(label)}; give every resource a column, 0 for who needs none")
        if [label for label in columns if label not in shared] != of_servers:
            raise InvalidInstance(
                f"the columns of demands, {joined([*map(str, columns)], 8)}, have the resources of servers in another order than "
                f"capacities, {joined(of_servers, 8)}; make both equal: nothing is aligned by guess"
            )
        demands = demands[[*of_servers, *order]]
    elif np.ndim(demands) == 2 and np.shape(demands)[1] != len(of_servers) + len(order):
        raise InvalidInstance(
            f"demands have {plural(np.shape(demands)[1], 'column')}, expected {len(of_servers) + len(order)}: "
            f"{plural(len(of_servers), 'resource')} of servers, then {plural(len(order), 'shared one')}, {joined(order, 8)}"
        )
    return Columns(capacities, demands, servers, [*of_servers, *order], {name: shared[name] for name in order})


def shared_of(shared: Mapping[str, Any]) -> FloatArray:
    """Return the amounts of the shared resources, (shared,)."""
    names = tuple(shared)
    if not names:
        return np.zeros(0)
    amounts = numbers(as_given(shared), "amounts of shared resources", (len(names),), "one number for each")
    check(amounts, np.isfinite(amounts) & (amounts >= 0), "shared amount", "finite and >= 0", names)
    return amounts


def as_given(shared: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return the amounts as they were given, (shared,)."""
    values = np.empty(len(shared), dtype=object)
    values[:] = [*shared.values()]
    return values


def too_scarce(demands: FloatArray, amounts: FloatArray) -> BoolArray:
    """Return which users demand a shared resource of which there is nothing, (users,); ``demands`` are those of the shared resources."""
    return np.asarray((demands[:, amounts == 0] > 0).any(axis=1))


def check_quotas(queues: Sequence[Queue], shared: Mapping[str, Any]) -> None:
    """Refuse guarantees of shared resources on groups of servers: no group has any of them. Limits on what its tasks take are allowed."""
    for queue in queues:
        for quota in queue.quotas:
            for what, given in (("guarantee", quota.guarantee), ("lending limit", quota.lending_limit)):
                for resource in given:
                    if resource in shared:
                        raise InvalidInstance(
                            f'queue "{queue.name}", quota on {quota.name}: {named(resource)} is a resource of the whole cluster, so no '
                            f"group of servers has a {what} of it; give it to the queue"
                        )


def changed_shared(instance: Instance, changes: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a changed instance with its shared resources: other amounts, fewer of them, more.

    One that is left out (None) is no limit to anybody, so its column of demands goes, too. Of one that is added nobody demands anything.

    Parameters
    ----------
    instance : Instance
        Before the changes.
    changes, arguments : mappings
        What `fairopt.Instance.replace` was given, and the arguments that it makes of them.

    >>> from fairopt.instance.instance import Instance
    >>> pool = Instance([[20]], [[1, 1, 0], [1, 0, 2]], shared={"ansys": 10, "uplink": 40})
    >>> pool.replace(shared={"ansys": 12, "uplink": None}).shared, pool.replace(shared={"uplink": None}).demands.tolist()
    ({'ansys': 12.0}, [[1.0, 1.0], [1.0, 0.0]])
    """
    labels = list(instance.resources)
    if changes.get("resources") is not None:
        after = list(changes["resources"])
        labels = after if len(after) == len(labels) else [label for label in labels if label in after]
    amounts = instance.given("shared_capacity").tolist()
    present = dict(zip(labels[len(labels) - len(amounts) :], amounts, strict=False))
    given = changes.get("shared", {})
    if given is not None and not isinstance(given, Mapping):
        return arguments  # which an instance refuses
    shared = {} if given is None else {name: amount for name, amount in {**present, **given}.items() if amount is not None}
    if [*shared] == [*present] or changes.get("resources") is not None:
        return {**arguments, "shared": shared}
    kept = [j for j, label in enumerate(labels) if label not in present or label in shared]
    added = [name for name in shared if name not in present]
    changed = {**arguments, "shared": shared, "resources": [*(labels[j] for j in kept), *added]}
    if isinstance(changed["units"], Mapping):
        changed["units"] = {name: unit for name, unit in changed["units"].items() if name in changed["resources"]}
    for name, blank in (("demands", 0), ("weights", 1)):
        whole = name in changes and not isinstance(changes[name], Mapping)
        values = changed[name]
        if not whole and np.ndim(values) >= 2:
            more = np.full((*values.shape[:-1], len(added)), blank, values.dtype)
            changed[name] = np.concatenate([values[..., kept], more], axis=-1)
    return changed


def needs_no_server(instance: Instance) -> BoolArray:
    """Return which users demand nothing of servers, (users,): their tasks run anywhere."""
    if instance.rates_per_server is not None:
        return np.zeros(instance.n_users, bool)
    return np.asarray((instance.demands_by_kind[:, :, : instance.n_server_resources] == 0).all(axis=(1, 2)))


def within_shared(instance: Instance, tasks: FloatArray, part: Any = 1) -> FloatArray:
    """Return how many of these tasks, (users,), each user could run alone within the resources of the cluster, min over r of S[r] / d[n,r].

    ``part`` of each resource is there for it: a number, or an array (users,) or (users, resources).

    >>> from fairopt.instance.instance import Instance
    >>> within_shared(Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10}), np.array([20.0, 20.0]))
    array([10., 20.])
    """
    for r in range(instance.n_server_resources, instance.n_resources):
        asks, amount = np.flatnonzero(instance.demands[:, r] > 0), instance.total_capacity[r]
        own = part if np.ndim(part) == 0 else part[asks] if np.ndim(part) == 1 else part[asks, r]
        tasks = tasks.copy()
        tasks[asks] = np.minimum(tasks[asks], own * amount / instance.demands[asks, r])
    return tasks


def limit_name(resource: str) -> str:
    """Return what the limit of a resource of the cluster is called, in programs, among prices and in messages."""
    return f"{resource} of the cluster"


def shared_prices(instance: Instance, by_name: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return prices of limits, by their names, of the resources of the cluster, (shared,); 0 of those that have none."""
    prices = np.zeros(len(instance.shared), instance.demands_by_kind.dtype)
    prices[:] = [by_name.get(limit_name(name), 0) for name in instance.shared]
    return prices


def refuse_shared(instance: Instance, what: str, instead: str) -> None:
    """Refuse shared resources where they are not counted; ``what`` says where that is, ``instead`` what to do.

    Raises
    ------
    Unsupported
    """
    if instance.shared_capacity.size:
        names = [named(name) for name in instance.shared]
        is_shared = "is a resource" if len(names) == 1 else "are resources"
        raise Unsupported(f"{joined(names, 3)} {is_shared} of the whole cluster, on no server, and {what}; {instead}")


def _refuse_both(capacities: Any, labels: Sequence[str], shared: Mapping[str, Any], rows: Sequence[str]) -> None:
    """Refuse a server that has some of a shared resource; 0 and blank are nothing."""
    for j, label in enumerate(labels):
        if label not in shared:
            continue
        column = capacities.iloc[:, j].tolist() if _is_frame(capacities) else np.asarray(capacities)[:, j].tolist()
        for row, value in enumerate(column):
            if value is not None and value == value and value != 0:
                amount = figure(value, 6) if isinstance(value, int | float) else str(value)
                raise InvalidInstance(
                    f'{named(label)} is shared by the whole cluster, but server "{rows[row]}" has {amount} of it; leave it out of '
                    "capacities, or out of shared"
                )


def _row_names(servers: Sequence[str] | None, capacities: Any) -> list[str]:
    if servers is not None:
        return [*map(str, servers)]
    if _is_frame(capacities) and [*capacities.index] != [*range(len(capacities))]:
        return [*map(str, capacities.index)]
    return [f"server-{i + 1}" for i in range(len(capacities))]


def _without_columns(capacities: Any) -> bool:
    return capacities is None or (not _is_frame(capacities) and np.size(capacities) == 0)


def _is_frame(values: object) -> bool:
    return hasattr(values, "columns") and hasattr(values, "index")


def _quoted(label: object) -> str:
    return f'"{label}"'
