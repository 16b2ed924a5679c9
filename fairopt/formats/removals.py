"""What goes with an entry that a change removes: a queue with the queues and users in it, a server or a resource wherever it is named.

>>> data = {"queues": [{"name": "lab"}, {"name": "team", "parent": "lab"}, {"name": "guests"}], "servers": [{"name": "old"}],
...     "users": [{"name": "ann", "queue": "team"}, {"name": "bob", "queue": "guests", "servers": ["old", "new"]}]}
>>> leave_out(data, {kind: [0] * len(entries) for kind, entries in data.items()}, {"queues": {"lab"}, "servers": {"new"}})
>>> [each["name"] for each in data["queues"]], data["users"]
(['guests'], [{'name': 'bob', 'queue': 'guests', 'servers': ['old']}])
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fairopt.formats.entries import ENTRIES, On, Quota, each_of

__all__ = ["leave_out", "without_resource"]


def leave_out(data: dict[str, Any], origin: Mapping[str, list[Any]], removed: Mapping[str, Collection[str]]) -> None:
    """Leave out of a document what belongs to removed queues, and the names of removed servers.

    ``origin`` has an item for each entry; both lists shrink together. Users and queues that were moved elsewhere stay.
    """
    gone = set(removed.get("queues", ()))
    more = gone
    while more:
        more = {each["name"] for each in data.get("queues", ()) if each.get("parent") in gone and each["name"] not in gone}
        gone |= more
    _leave_out_of_limits(data, origin, {**removed, "queues": gone})
    if gone:
        _keep(data, origin, "queues", lambda each: each["name"] not in gone)
        _keep(data, origin, "users", lambda each: each.get("queue") not in gone)
    if servers := removed.get("servers"):
        data["users"] = [_without_servers(each, servers) for each in data["users"]]
        for j, queue in enumerate(data.get("queues", ())):
            if "quotas" in queue:
                data["queues"][j] = {**queue, "quotas": list(_quotas(queue["quotas"], servers))}


def without_resource(data: dict[str, Any], origin: Mapping[str, list[Any]], resource: str) -> None:
    """Leave a resource out of a document: of its list, the units, what is shared, every amount, and with it the limits of it."""
    for key, kind in (("resources", list), ("units", dict), ("shared", dict)):
        if isinstance(data.get(key), kind):
            data[key] = _without(data[key], resource)
    if data.get("limits"):
        _keep(data, origin, "limits", lambda limit: limit.get("resource") != resource)
    for name, model in ENTRIES.items():
        for j, entry in enumerate(data.get(name, ())):
            data[name][j] = _amounts(entry, model, resource)
            if entry.get("quotas"):
                data[name][j]["quotas"] = [_amounts(quota, Quota, resource) for quota in entry["quotas"]]
            if entry.get("on"):
                data[name][j]["on"] = [_amounts(each, On, resource) for each in entry["on"]]


def _leave_out_of_limits(data: dict[str, Any], origin: Mapping[str, list[Any]], removed: Mapping[str, Collection[str]]) -> None:
    """Leave removed names out of what named limits select; a limit that then selects nothing goes with them."""
    if not data.get("limits"):
        return
    users = {*removed.get("users", ()), *(each["name"] for each in data.get("users", ()) if each.get("queue") in removed["queues"])}
    gone = {"users": users, "queues": removed["queues"], "servers": removed.get("servers", ())}
    for k, limit in enumerate(data.get("limits", ())):
        lists = {word: _without(limit[word], *names) for word, names in gone.items() if isinstance(limit.get(word), list)}
        if isinstance(amounts := limit.get("amounts"), Mapping):
            lists["amounts"] = {
                user: _without(own, *gone["servers"]) if isinstance(own, Mapping) else own
                for user, own in _without(amounts, *users).items()
            }
        if any(left != limit[word] for word, left in lists.items()):
            data["limits"][k] = {**limit, **lists}
    _keep(data, origin, "limits", lambda limit: all(limit.get(word) != [] for word in gone) and limit.get("amounts") != {})
    if users or removed["queues"]:  # of queues that stay, all users may be gone
        parents = {each["name"]: each.get("parent") for each in data.get("queues", ())}
        left = {each["name"]: list(_way_up(each.get("queue"), parents)) for each in data.get("users", ()) if each["name"] not in users}
        _keep(data, origin, "limits", lambda limit: not isinstance(limit.get("queues"), list) or _selects_somebody(limit, left))


def _way_up(queue: Any, parents: Mapping[str, Any]) -> Iterator[str]:
    """Yield a queue and those above it; a circle, which is refused later, once."""
    seen: set[Any] = set()
    while queue in parents and queue not in seen:
        yield queue
        seen.add(queue)
        queue = parents[queue]


def _selects_somebody(limit: Mapping[str, Any], queues: Mapping[str, Collection[str]]) -> bool:
    """Is one of a limit's users below one of its queues; ``queues`` has those of each user."""
    chosen = limit["users"] if isinstance(limit.get("users"), list) else queues
    return any(not set(limit["queues"]).isdisjoint(queues.get(user, ())) for user in chosen)


def _keep(data: dict[str, Any], origin: Mapping[str, list[Any]], kind: str, stays: Any) -> None:
    kept = [j for j, each in enumerate(data.get(kind, ())) if stays(each)]
    data[kind] = [data[kind][j] for j in kept]
    origin[kind][:] = [origin[kind][j] for j in kept]


def _without(values: Any, *names: str) -> Any:
    """Return a list without some names, or a mapping without some keys."""
    if isinstance(values, Mapping):
        return {key: value for key, value in values.items() if key not in names}
    return [each for each in values if each not in names]


def _without_servers(entry: dict[str, Any], servers: Collection[str]) -> dict[str, Any]:
    left = {**entry, **{key: _without(entry[key], *servers) for key in ("servers", "rates") if isinstance(entry.get(key), list | dict)}}
    return {**left, "on": list(_quotas(left["on"], servers))} if isinstance(left.get("on"), list) else left


def _quotas(quotas: Any, servers: Collection[str]) -> Any:
    """Yield quotas without these servers; a quota that is on no other goes with them."""
    for quota in quotas:
        left = _without_servers(quota, servers)
        if left.get("servers") != [] or quota.get("servers") == []:
            yield left


def _amounts(entry: dict[str, Any], model: Any, resource: str) -> dict[str, Any]:
    keys = [key for key in each_of(model, "resource") if isinstance(entry.get(key), dict)]
    return {**entry, **{key: _without(entry[key], resource) for key in keys}}
