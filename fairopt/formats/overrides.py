"""Changes to what a user says of one server, where an entry of ``on`` is about several.

``users.train.on.v100.speed=0.8`` changes v100 alone: an entry that is about v100 and other servers keeps these, and v100 has an entry of
its own with all that the other one said. A server of which nothing is said has an empty one.

>>> on = [{"servers": "model = V100", "demand": {"gpu": 2}}]
>>> servers = [{"name": name, "attributes": {"model": "V100"}} for name in ("old", "older")]
>>> set_apart(on, "old", servers)
[{'servers': ['older'], 'demand': {'gpu': 2}}, {'servers': ['old'], 'demand': {'gpu': 2}}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.instance.requirements import Attributes

__all__ = ["servers_of", "set_apart"]


def set_apart(on: Sequence[Mapping[str, Any]], server: str, servers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a user with one of a server alone, which is the last one; ``servers`` are the entries of servers."""
    found: list[dict[str, Any]] = []
    own: dict[str, Any] = {}
    for entry in on:
        there = servers_of(entry.get("servers"), servers)
        if server not in there:
            found.append(dict(entry))
            continue
        own = dict(entry)
        if others := [name for name in there if name != server]:
            found.append({**entry, "servers": others})
    return [*found, {**own, "servers": [server]}]


def servers_of(said: object, servers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the servers that an entry is about; none of an entry that the reader of files refuses."""
    names = [str(each.get("name")) for each in servers]
    if isinstance(said, list):
        return [str(each) for each in said]
    if not isinstance(said, str) or said in names:
        return [] if not isinstance(said, str) else [said]
    try:
        meets = Attributes([each.get("attributes") or {} for each in servers]).where(said)
    except InvalidInstance:
        return []
    return [name for name, ok in zip(names, meets.tolist(), strict=True) if ok]
