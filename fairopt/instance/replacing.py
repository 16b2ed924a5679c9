"""The arguments of an instance, some of them changed: as a whole, or by label.

>>> from fairopt.instance import Instance
>>> changed_arguments(Instance([[4]], [[1], [2]], users=["a", "b"]), {"weights": {"b": 3}})["weights"]
array([1., 3.])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.facts import OF_SERVERS, OF_USERS, changed_by_label, changed_facts, places_after
from fairopt.instance.labelled import changed_limits, changed_places, changed_queues, changed_rows
from fairopt.instance.limit_merging import moved, with_somebody
from fairopt.instance.shared import changed_shared
from fairopt.wording import did_you_mean

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance
    from fairopt.instance.limits import Limit

__all__ = ["changed_arguments"]

_OF_USERS = ("demands", "weights", "eligibility", "tasks", "rates", "speeds", "parallelism", "guarantees", "queue_of", "owners", "users")
_NO_ARGUMENTS = frozenset(  # what an instance makes of its arguments
    {"rates_per_server", "demands_by_kind", "kind_of", "speeds_given", "placement", "shared_capacity", "selections", "_units", "_written"}
)


def changed_arguments(instance: Instance, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of the constructor for the changed instance (`Instance.replace`).

    Raises
    ------
    InvalidInstance
        A label is not there.
    TypeError
        The constructor has no such argument.
    """
    arguments = {name: instance.given(name) for name in instance.__slots__ if name not in _NO_ARGUMENTS}
    arguments |= {"demands": instance.demands_on(), "speeds": instance.speeds_on()}
    arguments |= {"rates": instance.given("rates_per_server"), "eligibility": instance.placement, "units": instance.units}
    arguments["shared"] = dict(zip(instance.shared, instance.given("shared_capacity").tolist(), strict=True))
    if "resources" in changes:  # others than before may have no unit
        arguments["units"] = {resource: unit for resource, unit in instance.units.items() if resource in changes["resources"]}
    if not instance.guarantees.any():
        arguments["guarantees"] = None  # as many zeros as there are users, whom the changes may add or remove
    if not any(instance.queue_of):
        arguments["queue_of"] = None
    if instance.limits:
        arguments["limits"] = _limits_after(instance, changes)
    unknown = set(changes) - set(arguments)
    if unknown:
        word = min(unknown)
        raise TypeError(f'an instance has no "{word}"{did_you_mean(word, arguments)}')
    by_label = {
        name: _by_label(instance, name, value) for name, value in changes.items() if isinstance(value, Mapping) and name != "shared"
    }
    changed = {**arguments, **changed_facts(instance, changes), **changes, **by_label}
    if arguments["shared"] or "shared" in changes:
        changed = changed_shared(instance, changes, changed)
    given = changes.get("queues")
    removed = {name for name, change in given.items() if change is None} if isinstance(given, Mapping) else set()
    return _without_queues(instance, changed, removed) if removed else changed


def _without_queues(instance: Instance, arguments: dict[str, Any], removed: set[str]) -> dict[str, Any]:
    """Return the arguments without the queues and users below queues that are removed; those who were moved elsewhere stay."""
    more = removed
    while more:
        more = {queue.name for queue in arguments["queues"] if queue.parent in removed and queue.name not in removed}
        removed = removed | more
    users = instance.n_users
    queue_of = arguments["queue_of"] or [None] * users
    stay = [n for n, queue in enumerate(queue_of) if queue not in removed]
    of_users = {name: arguments[name] for name in _OF_USERS if arguments[name] is not None and len(arguments[name]) == users}
    kept = {
        name: values[stay] if isinstance(values, np.ndarray) else type(values)(values[n] for n in stay) for name, values in of_users.items()
    }
    queues = [queue for queue in arguments["queues"] if queue.name not in removed]
    names = {user: [user] for user in kept["users"]}
    limits = moved(arguments["limits"], names, None, {queue.name: [queue.name] for queue in queues}) if arguments["limits"] else ()
    return {**arguments, "queues": queues, **kept, "limits": with_somebody(limits, instance, np.isin(instance.users, kept["users"]))}


def _limits_after(instance: Instance, changes: Mapping[str, Any]) -> list[Limit]:
    """Return the named limits with the labels of the changed instance; what selects nothing there is left out."""
    after: dict[str, dict[str, list[str]] | None] = {}
    for word, numbers in (("users", "demands"), ("servers", "capacities")):
        after[word] = None
        if word in changes:
            places = places_after(instance, changes, word, numbers)
            labels = [f"{word[:-1]}-{j + 1}" for j in range(len(places))] if changes[word] is None else changes[word]
            present = getattr(instance, word)
            moved_to: dict[str, list[str]] = {name: [] for name in present}
            for place, label in zip(places, labels, strict=True):
                if place is not None:
                    moved_to[present[place]].append(label)
            after[word] = moved_to
    queues = None
    if "queues" in changes and not isinstance(changes["queues"], Mapping):
        queues = {queue.name: [queue.name] for queue in changes["queues"] or ()}
    renamed = None
    if "resources" in changes and len(labels := list(changes["resources"] or ())) == instance.n_resources:
        renamed = dict(zip(instance.resources, labels, strict=True))
    limits = moved(instance.limits, after["users"], after["servers"], queues)
    if (users := after["users"]) is not None:
        limits = with_somebody(limits, instance, np.array([bool(users[name]) for name in instance.users]))
    return [limit.replace(resource=renamed[limit.resource]) if renamed and limit.resource in renamed else limit for limit in limits]


def _by_label(instance: Instance, name: str, given: Mapping[str, Any]) -> Any:
    """Return the argument of that name with the values of some labels changed."""
    if name == "queues":
        return changed_queues(given, instance.queues)
    if name == "limits":
        return changed_limits(given, instance.limits)
    if name == "units":
        return instance.units | dict(given)
    if name == "queue_of":
        return changed_places(given, instance.queue_of, instance.users)
    if name in (*OF_SERVERS, *OF_USERS):
        return changed_by_label(name, given, instance)
    if name in ("users", "servers", "resources"):
        raise InvalidInstance(f"{name} cannot be a mapping; give all labels as a list")
    if name == "speeds":
        present = instance.speeds if instance.speeds_given is None else instance.speeds_on()
        return changed_rows(name, given, present, instance.users, "user", instance.servers, "server")
    present = instance.given({"rates": "rates_per_server", "eligibility": "placement"}.get(name, name))
    if present is None and name == "rates":
        raise InvalidInstance("the instance has no rates, so that they cannot be changed by label; give an array (users, servers)")
    if present is None:
        present = np.ones((instance.n_users, instance.n_servers), bool)
    rows = (instance.servers, "server") if name in ("capacities", "counts") else (instance.users, "user")
    resources = instance.server_resources if name == "capacities" else instance.resources
    columns = (instance.servers, "server") if name in ("rates", "eligibility") else (resources, "resource")
    return changed_rows(name, given, present, *rows, *columns)
