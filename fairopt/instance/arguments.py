"""What an instance makes of its arguments: arrays, labels, values by label, places in the tree of queues, each checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance.attributes import attributes_of
from fairopt.instance.by_server import Kinds, is_by_server, kinds_of_arguments, speeds_of
from fairopt.instance.facts import owners_of
from fairopt.instance.fractions import ExactArray, fractions_of, kept
from fairopt.instance.hosts import hosts_of
from fairopt.instance.labelled import changed_places, changed_rows
from fairopt.instance.named import Named
from fairopt.instance.queues import Queue, Quota, amounts
from fairopt.instance.ratios import lacks
from fairopt.instance.rule_rows import rows_of
from fairopt.instance.rules import rules_of
from fairopt.instance.selections import bounded, check_row_names, selections_of
from fairopt.instance.shared import arranged, as_given, check_quotas, shared_of, too_scarce
from fairopt.instance.tree import Tree
from fairopt.instance.units import units_of
from fairopt.validation import (
    BoolArray,
    FloatArray,
    booleans,
    check,
    frame_labels,
    matrix,
    numbers,
    require_labels,
    unique_labels,
)
from fairopt.wording import brief, contrast, did_you_mean, joined, plural

__all__ = ["check_queues", "fields_of", "given_by_label", "places_of"]


def fields_of(
    capacities: Any,
    demands: Any,
    weights: Any,
    eligibility: Any,
    counts: Any,
    tasks: Any,
    rates: Any,
    parallelism: Any,
    guarantees: Any,
    queues: Any,
    queue_of: Any,
    shared: Any,
    limits: Any,
    hosts: Any,
    attributes: Any,
    owners: Any,
    units: Any,
    users: Any,
    servers: Any,
    resources: Any,
    rules: Any,
    speeds: Any,
) -> dict[str, Any]:
    """Return the fields of an instance from the arguments of its constructor, checked.

    Raises
    ------
    InvalidInstance
    """
    by_server = demands if is_by_server(demands) else None
    if by_server is not None:
        demands = [of_user[0] for of_user in by_server] if np.size(by_server) else np.zeros((0, 0))  # on the first row of servers
    capacities, demands, servers, resources, of_cluster = arranged(capacities, demands, servers, resources, shared)
    of_servers = [*resources][: -len(of_cluster)] if of_cluster and resources is not None else resources
    servers, of_servers = frame_labels(capacities, "capacities", servers, "servers", of_servers, "resources")
    resources = resources if of_cluster else of_servers
    users, resources = frame_labels(demands, "demands", users, "users", resources, "resources")
    c = matrix(capacities, "capacities", "(servers, resources)", may_be_narrow=bool(of_cluster))
    d = matrix(demands, "demands", "(users, resources)")
    if c.shape[1] + len(of_cluster) != d.shape[1]:
        raise InvalidInstance(
            f"capacities have {c.shape[1]} resources (columns) but demands have {d.shape[1]}; "
            "give both one column per resource, in the same order"
        )
    (k, m), (n, width) = c.shape, d.shape
    kinds, exact_demands = kinds_of_arguments(demands, d, by_server, k)
    user_labels = unique_labels(users, n, "user")
    server_labels = unique_labels(servers, k, "server")
    resource_labels = unique_labels(resources, width, "resource")
    per_resource = isinstance(weights, Mapping) and any(isinstance(each, Mapping) for each in weights.values())
    all_weights = np.ones((n, width) if per_resource else n)
    weights = given_by_label("weights", weights, all_weights, user_labels, "user", resource_labels, "resource")
    speeds = given_by_label("speeds", speeds, np.ones((n, k)), user_labels, "user", server_labels, "server")
    eligibility = given_by_label("eligibility", eligibility, np.ones((n, k), bool), user_labels, "user", server_labels, "server")
    counts = given_by_label("counts", counts, np.ones(k), server_labels, "server")
    tasks = given_by_label("tasks", tasks, np.full(n, np.inf), user_labels, "user")
    parallelism = given_by_label("parallelism", parallelism, np.full(n, np.inf), user_labels, "user")
    guarantees = given_by_label("guarantees", guarantees, np.zeros(n), user_labels, "user")
    if isinstance(queue_of, Mapping):
        queue_of = changed_places(queue_of, [None] * n, user_labels)
    for values, what, columns in (
        *((weights, "weights", resource_labels), (tasks, "tasks", ()), (parallelism, "parallelism", ())),
        *((guarantees, "guarantees", ()), (queue_of, "queue_of", ())),
        *((eligibility, "eligibility", server_labels), (rates, "rates", server_labels), (speeds, "speeds", server_labels)),
    ):
        require_labels(values, what, user_labels, columns)
    for of_servers_alone, what in ((counts, "counts"), (hosts, "hosts"), (attributes, "attributes")):
        require_labels(of_servers_alone, what, server_labels)
    require_labels(owners, "owners", user_labels)
    check(c, np.isfinite(c) & (c >= 0), "capacity", "finite and >= 0", server_labels, resource_labels[:m])
    for of_kind in np.moveaxis(kinds.demands, 1, 0):
        check(of_kind, np.isfinite(of_kind) & (of_kind >= 0), "demand", "finite and >= 0", user_labels, resource_labels)
    phi = weights_of(weights, user_labels, resource_labels)
    number = counts_of(counts, server_labels)
    work = tasks_of(tasks, user_labels)
    at_once = parallelism_of(parallelism, user_labels)
    promised = guarantees_of(guarantees, work, user_labels)
    tree, places = tuple(queues or ()), places_of(queue_of, user_labels)
    check_queues(tree, places, user_labels, server_labels, resource_labels)
    check_quotas(tree, of_cluster)
    conditions = rules_of(rules)
    amounts_of_cluster = shared_of(of_cluster)

    given = None if rates is None else rates_of(rates, user_labels, server_labels)
    speed = speeds_of(speeds, user_labels, server_labels)
    allowed = ~lacks(c, kinds.demands, kinds.kind_of) & (number > 0)
    if of_cluster:
        scarce = np.column_stack([too_scarce(of_kind[:, m:], amounts_of_cluster) for of_kind in np.moveaxis(kinds.demands, 1, 0)])
        allowed &= ~scarce[:, kinds.kind_of]
    if speed is not None:
        allowed &= speed > 0
    if given is not None:
        allowed &= given > 0
    placement = None if eligibility is None else booleans(eligibility, (n, k))
    if placement is not None:
        allowed &= placement

    of_rows = attributes_of(attributes, server_labels)
    named = Named(user_labels, server_labels, resource_labels, tree, places, of_rows)
    selected = selections_of(limits, number, promised, named)
    check_row_names(selected, tree, of_cluster, user_labels, server_labels, resource_labels, np.isfinite(work), np.isfinite(at_once))
    of_rules = rows_of(conditions, named)
    if given is None:
        bounds = np.any([bounded(selected, allowed), *(row.bounded for row in of_rules)], axis=0)
        refuse_endless(kinds.demands.reshape(n, -1), work, user_labels, bounds)
        if kinds.demands.shape[1] > 1:
            refuse_endless_somewhere(kinds, allowed, work, user_labels, server_labels, bounds)
    arguments = {
        **{"capacities": (capacities, c), "speeds_given": (speeds, speed), "weights": (weights, phi), "counts": (counts, number)},
        **{"tasks": (tasks, work), "parallelism": (parallelism, at_once), "guarantees": (guarantees, promised)},
        **{"rates_per_server": (rates, given), "shared_capacity": (as_given(of_cluster) if of_cluster else None, amounts_of_cluster)},
    }
    as_written = {name: kept(value, floats) for name, (value, floats) in arguments.items() if floats is not None}
    not_floats = {name: exact for name, exact in {**as_written, "demands_by_kind": exact_demands}.items() if exact is not None}
    if not {"guarantees", "tasks"}.isdisjoint(not_floats):  # for floats this is checked already
        guarantees_within(not_floats.get("guarantees", promised), not_floats.get("tasks", work), user_labels)
    return {
        **{name: floats for name, (_, floats) in arguments.items()},
        "demands_by_kind": kinds.demands,
        "kind_of": kinds.kind_of,
        "eligibility": allowed,
        "placement": placement,
        "queues": tree,
        "queue_of": places,
        "limits": tuple(each.limit for each in selected),
        "selections": selected,
        "hosts": hosts_of(hosts, number, server_labels),
        "attributes": of_rows,
        "owners": owners_of(owners, user_labels),
        "rules": conditions,
        "users": user_labels,
        "servers": server_labels,
        "resources": resource_labels,
        "_units": tuple(units_of(resource_labels, units).items()),
        "_written": not_floats or None,
    }


def given_by_label(what: str, values: Any, default: FloatArray | BoolArray, rows: tuple[str, ...], *more: Any) -> npt.ArrayLike | None:
    """Return an argument; of a mapping by label the array that it stands for."""
    if isinstance(values, Mapping):
        return changed_rows(what, values, default, rows, *more)
    given: npt.ArrayLike | None = values
    return given


def weights_of(weights: npt.ArrayLike | None, users: tuple[str, ...], resources: tuple[str, ...]) -> FloatArray:
    """Return the weights, (users,) or (users, resources); default 1."""
    n, m = len(users), len(resources)
    phi = np.ones(n) if weights is None else numbers(weights, "weights")
    if phi.shape not in ((n,), (n, m)):
        raise InvalidInstance(
            f"the shape of weights is {phi.shape}, expected ({n},), one per user, or ({n}, {m}), one per user and resource"
        )
    positive, rule = (phi >= 0, "finite and >= 0") if phi.ndim == 1 else (phi > 0, "finite and > 0")
    check(phi, np.isfinite(phi) & positive, "weight", rule, users, resources)
    return phi


def counts_of(counts: npt.ArrayLike | None, servers: tuple[str, ...]) -> FloatArray:
    """Return the number of identical servers of each row, (servers,); default 1."""
    k = len(servers)
    number = np.ones(k) if counts is None else numbers(counts, "counts", (k,), "one per server row")
    whole = np.isfinite(number) & (number >= 0) & (number == np.round(number))
    check(number, whole, "count", "a whole number >= 0", servers)
    exact = None if counts is None else kept(counts, number)  # 1 + 10^-30 is whole as a float
    if exact is not None:
        for server, count in zip(servers, exact.tolist(), strict=True):
            if count.denominator != 1:
                raise InvalidInstance(f'the count of "{server}" is {brief(str(count))}; it must be a whole number >= 0')
    return number


def tasks_of(tasks: npt.ArrayLike | None, users: tuple[str, ...]) -> FloatArray:
    """Return the number of tasks of each user, (users,); default inf."""
    n = len(users)
    work = np.full(n, np.inf) if tasks is None else numbers(tasks, "tasks", (n,), "one per user")
    check(work, work >= 0, "number of tasks", ">= 0, or inf for no limit", users)
    return work


def parallelism_of(parallelism: npt.ArrayLike | None, users: tuple[str, ...]) -> FloatArray:
    """Return the largest number of servers that each user is on at once, (users,); default inf."""
    n = len(users)
    at_once = np.full(n, np.inf) if parallelism is None else numbers(parallelism, "parallelism", (n,), "one per user, in servers")
    check(at_once, at_once > 0, "parallelism", "> 0 servers, or inf for no limit", users)
    return at_once


def guarantees_of(guarantees: npt.ArrayLike | None, work: FloatArray, users: tuple[str, ...]) -> FloatArray:
    """Return the tasks that are guaranteed to each user, (users,), at most those that the user has; default 0."""
    n = len(users)
    promised = np.zeros(n) if guarantees is None else numbers(guarantees, "guarantees", (n,), "one per user, in tasks")
    check(promised, np.isfinite(promised) & (promised >= 0), "guarantee", "finite and >= 0", users)
    check(promised, promised <= work, "guarantee", "at most the user's number of tasks", users)
    return promised


def guarantees_within(promised: ExactArray, work: ExactArray, users: tuple[str, ...]) -> None:
    """Refuse a guarantee of more tasks than the user has also where the nearest floats are equal."""
    for user, more, most in zip(users, fractions_of(promised), fractions_of(work), strict=True):
        if more > most:
            value, limit = contrast(more, most)
            raise InvalidInstance(f'guarantee of user "{user}" is {value}, but must be at most the user\'s number of tasks, {limit}')


def rates_of(rates: npt.ArrayLike, users: tuple[str, ...], servers: tuple[str, ...]) -> FloatArray:
    """Return the tasks that a user runs alone on one server of the row, (users, servers)."""
    given = numbers(rates, "rates", (len(users), len(servers)), "(users, servers)")
    check(given, np.isfinite(given) & (given >= 0), "rate", "finite and >= 0", users, servers)
    return given


def refuse_endless(demands: FloatArray, work: FloatArray, users: tuple[str, ...], bounded: BoolArray) -> None:
    """Refuse a user who demands nothing and has no task limit, unless limits or a rule bound it there (``bounded``, (users,))."""
    endless = np.flatnonzero((demands == 0).all(axis=1) & np.isinf(work) & ~bounded)
    if endless.size:
        raise InvalidInstance(
            f'user "{users[endless[0]]}" demands nothing and has no task limit, so it could run any number of tasks; '
            "give it a demand > 0 for some resource, or a finite number of tasks"
        )


def refuse_endless_somewhere(
    kinds: Kinds, allowed: BoolArray, work: FloatArray, users: tuple[str, ...], servers: tuple[str, ...], bounded: BoolArray
) -> None:
    """Refuse a user with demands who demands nothing on a server where it may run, and has no task limit."""
    nothing = (kinds.demands == 0).all(axis=2)
    endless = nothing[:, kinds.kind_of] & allowed & ~nothing.all(axis=1)[:, None] & np.isinf(work)[:, None] & ~bounded[:, None]
    if endless.any():
        n, i = (int(each[0]) for each in np.nonzero(endless))
        raise InvalidInstance(
            f'user "{users[n]}" demands nothing on "{servers[i]}" and has no task limit, so it could run any number of tasks there; give '
            "it a demand > 0 for some resource there, a speed of 0 (it cannot run there), or a finite number of tasks"
        )


def places_of(queue_of: Sequence[str | None] | None, users: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return the queue that each user is in; None is the root."""
    if queue_of is None:
        return (None,) * len(users)
    if isinstance(queue_of, str) or len(queue_of) != len(users):
        raise InvalidInstance(
            f"queue_of must have one name of a queue, or None, for each of {plural(len(users), 'user')}, got {queue_of!r}"
        )
    return tuple(None if name is None or name != name else name for name in queue_of)


def check_queues(
    queues: tuple[Queue, ...],
    queue_of: tuple[str | None, ...],
    users: tuple[str, ...],
    servers: tuple[str, ...],
    resources: tuple[str, ...],
) -> None:
    """Refuse queues that do not make a tree, and amounts of resources and servers that do not exist."""
    Tree.of(queues, queue_of, users)
    known = set(servers)
    for queue in queues:
        for quota in queue.everywhere_and_on_groups:
            where = f'queue "{queue.name}"' + (f", quota on {quota.name}" if isinstance(quota, Quota) else "")
            for given in (quota.guarantee, quota.limit, quota.lending_limit):
                amounts(given, resources, where, 0.0)
            if isinstance(quota, Quota):
                for server in quota.servers:
                    if server not in known:
                        raise InvalidInstance(
                            f'{where}: there is no server "{server}"{did_you_mean(server, servers)}; there are {joined(servers, 5)}'
                        )
