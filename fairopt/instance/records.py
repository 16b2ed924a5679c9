"""An instance as plain data in the schema of its files, as arrays with labels, and in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance.fractions import ExactArray, plain
from fairopt.instance.hosts import folded
from fairopt.instance.ratios import lacks
from fairopt.instance.units import bare_amount, unit_in_name
from fairopt.validation import BoolArray, FloatArray
from fairopt.wording import plural

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["confined", "holds_the_same", "labelled_arrays", "plain_data", "summary"]


def plain_data(instance: Instance) -> dict[str, Any]:
    """Return an instance in the schema of its files; defaults are left out."""
    given = {name: instance.given(name) for name in ("capacities", "weights", "tasks", "parallelism", "guarantees")}
    given["demands"] = instance.given("demands_by_kind")[:, 0]
    rates = instance.given("rates_per_server")
    servers = [_server(instance, i, given["capacities"][i]) for i in range(instance.n_servers)]
    users = [
        _user(instance, n, {name: values[n] for name, values in given.items() if name != "capacities"}) for n in range(instance.n_users)
    ]
    if rates is not None:
        for user, row in zip(users, rates, strict=True):
            user["rates"] = dict(zip(instance.servers, map(plain, row.tolist()), strict=True))
    if instance.differs_by_server:
        for n, user in enumerate(users):
            if overrides := _overrides(instance, n):
                user["on"] = overrides
    queues = {"queues": [queue.to_dict() for queue in instance.queues]} if instance.queues else {}
    limits = {"limits": [limit.to_dict() for limit in instance.limits]} if instance.limits else {}
    units = {resource: unit for resource, unit in instance.units.items() if unit != unit_in_name(resource)}
    document = {"resources": list(instance.resources), **({"units": units} if units else {})}
    amounts = map(plain, instance.given("shared_capacity").tolist())
    shared = {"shared": dict(zip(instance.shared, amounts, strict=True))} if instance.shared else {}
    rules = {"rules": [rule.text for rule in instance.rules]} if instance.rules else {}
    return {**document, "servers": servers, **shared, **queues, **limits, **rules, "users": users}


def _overrides(instance: Instance, n: int) -> list[dict[str, Any]]:
    """Return where the demand of a user differs from that on the first kind of servers, or its speed from 1."""
    by_kind, speeds = instance.given("demands_by_kind")[n], instance.speeds_on()
    found: dict[Any, tuple[list[str], dict[str, Any]]] = {}
    for i, server in enumerate(instance.servers):
        there, usual = by_kind[instance.kind_of[i]].tolist(), by_kind[0].tolist()
        demand = {r: plain(a) for r, a, b in zip(instance.resources, there, usual, strict=True) if a != b}
        speed = {} if speeds is None or speeds[n, i] == 1 else {"speed": plain(speeds[n].tolist()[i])}
        entry = {**({"demand": demand} if demand else {}), **speed}
        if entry:
            found.setdefault(repr(entry), ([], entry))[0].append(server)
    return [{"servers": servers, **entry} for servers, entry in found.values()]


def _server(instance: Instance, i: int, capacity: FloatArray | ExactArray) -> dict[str, Any]:
    amounts = dict(zip(instance.server_resources, map(plain, capacity.tolist()), strict=True))
    entry: dict[str, Any] = {"name": instance.servers[i], "capacity": amounts}
    if instance.counts[i] != 1:
        entry["count"] = int(instance.counts[i])
    if instance.hosts[i]:
        entry["hosts"] = folded(instance.hosts[i])
    if instance.attributes[i]:
        entry["attributes"] = dict(instance.attributes[i])
    return entry


def _user(instance: Instance, n: int, given: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": instance.users[n], "demand": _by_resource(instance, given["demands"])}
    if np.ndim(given["weights"]):
        entry["weight"] = _by_resource(instance, given["weights"])
    elif given["weights"] != 1:
        entry["weight"] = plain(given["weights"])
    if np.isfinite(instance.tasks[n]):
        entry["tasks"] = plain(given["tasks"])
    if np.isfinite(instance.parallelism[n]):
        entry["parallelism"] = plain(given["parallelism"])
    if instance.placement is not None and not instance.placement[n].all():
        entry["servers"] = [instance.servers[i] for i in np.flatnonzero(instance.placement[n])]
    if instance.queue_of[n] is not None:
        entry["queue"] = instance.queue_of[n]
    if instance.owners[n] is not None:
        entry["owner"] = instance.owners[n]
    if instance.guarantees[n]:
        entry["guarantee"] = plain(given["guarantees"])
    return entry


def _by_resource(instance: Instance, values: FloatArray | ExactArray) -> dict[str, float | str]:
    return dict(zip(instance.resources, map(plain, values.tolist()), strict=True))


def labelled_arrays(instance: Instance) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the arrays of an instance by name, each with the names of its dimensions."""
    per_resource = ("resource",) * (instance.weights.ndim - 1)
    of_servers = "server_resource" if instance.shared else "resource"
    return {
        "capacities": (("server", of_servers), instance.capacities),
        **({"shared_capacity": (("shared",), instance.shared_capacity)} if instance.shared else {}),
        "counts": (("server",), instance.counts),
        **_labelled_demands(instance),
        "weights": (("user", *per_resource), instance.weights),
        "eligibility": (("user", "server"), instance.eligibility),
        "tasks": (("user",), instance.tasks),
    }


def _labelled_demands(instance: Instance) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    speeds = {} if instance.speeds_given is None else {"speeds": (("user", "server"), instance.speeds_given)}
    if instance.demands_by_kind.shape[1] == 1:
        return {"demands": (("user", "resource"), instance.demands), **speeds}
    return {"demands": (("user", "server", "resource"), instance.demands_by_kind[:, instance.kind_of]), **speeds}


def holds_the_same(instance: Instance, other: Instance) -> bool:
    """Do two instances hold the same; of placement constraints, is the effective eligibility the same?"""
    for name in instance.__slots__:
        if name in ("placement", "selections", "_written"):
            continue
        mine, theirs = instance.given(name), other.given(name)
        if mine is None or theirs is None:
            same = mine is theirs
        elif isinstance(mine, np.ndarray) and mine.dtype != theirs.dtype:
            same = False  # one is in fractions that are not the floats of the other
        else:
            same = mine == theirs if isinstance(mine, tuple) else np.array_equal(mine, theirs)
        if not same:
            return False
    return True


def summary(instance: Instance) -> str:
    """Return an instance in one line: its sizes, its totals, and what is special about some users."""
    servers = plural(instance.counts.sum(), "server")
    if (instance.counts != 1).any():
        servers += f" in {plural(instance.n_servers, 'row')}"
    units = instance.units
    totals = [
        f"{bare_amount(total, name, units.get(name, ''), 6)} {name}"
        for total, name in zip(instance.total_capacity, instance.resources, strict=True)
    ]
    if len(totals) > 6:
        totals = [*totals[:5], f"{len(totals) - 5} more"]
    resources = plural(instance.n_resources, "resource")
    if instance.shared:
        resources += f", of which {plural(len(instance.shared), 'is', 'are')} shared"
    notes = [f"{plural(instance.n_users, 'user')}, {servers}, {resources}: {', '.join(totals)}"]
    for number, what in (
        (int(confined(instance).sum()), "cannot run on every server"),
        (int(np.isfinite(instance.tasks).sum()), "with finitely many tasks"),
        (int(np.isfinite(instance.parallelism).sum()), "with limited parallelism"),
        (len(instance.unservable), "cannot run anywhere"),
        (int((instance.guarantees > 0).sum()), "with a guarantee"),
    ):
        if number:
            notes.append(f"{plural(number, 'user')} {what}")
    if instance.queues:
        notes.append(f"{plural(len(instance.queues), 'queue')} of {plural(int(instance.tree.depth.max()), 'level')}")
    if instance.rules:
        notes.append(plural(len(instance.rules), "rule"))
    if instance.limits:
        notes.append(plural(len(instance.limits), "named limit"))
    if instance.rates_per_server is not None:
        notes.append("rates given")
    kinds = instance.demands_by_kind.shape[1]
    if kinds > 1:
        notes.append(f"demands differ between {kinds} kinds of servers")
    if instance.speeds_given is not None:
        notes.append("speeds given")
    return f"Instance({'; '.join(notes)})"


def confined(instance: Instance) -> BoolArray:
    """Return which users may not run on every server that has the resources of their tasks, (users,).

    A server without a GPU confines nobody: there, a task that needs one cannot run in any case.

    >>> from fairopt.instance import Instance
    >>> pool = Instance([[8, 1], [8, 0]], [[1, 1], [1, 0]], eligibility=[[True, False], [True, False]])
    >>> confined(pool)
    array([False,  True])
    >>> confined(Instance([[8], [8]], [[1, 1]], eligibility=[[True, False]], shared={"licences": 2}))
    array([ True])
    """
    found: BoolArray = np.zeros(instance.n_users, bool)
    some = np.flatnonzero(~instance.eligibility.all(axis=1))
    if instance.demands_by_kind.shape[1] > 1:
        able_to = ~lacks(instance.capacities, instance.demands_by_kind[some], instance.kind_of) & (instance.counts > 0)
        found[some] = (able_to & ~instance.eligibility[some]).any(axis=1)
        return found
    patterns, which = np.unique(instance.server_demands[some] > 0, axis=0, return_inverse=True)
    for number, asked in enumerate(patterns):
        able = (instance.counts > 0) & ((instance.capacities > 0) | ~asked).all(axis=1)
        mine = some[which.ravel() == number]
        found[mine] = ~instance.eligibility[np.ix_(mine, able)].all(axis=1)
    return found
