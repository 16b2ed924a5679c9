"""The queues of an instance file: their tree, their guarantees and limits, and their quotas on groups of servers.

:mod:`fairopt.formats.document` has the schema.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.formats.as_written import AsWritten
from fairopt.formats.entries import Document, Queue, Quota
from fairopt.formats.messages import Path, Source, check_known, check_unique, refuse
from fairopt.instance import queues as asked
from fairopt.instance.queues import misfits
from fairopt.instance.requirements import Attributes
from fairopt.instance.tree import MOST_LEVELS, circle, circular, deepest, mixed, too_deep
from fairopt.wording import brief, did_you_mean, joined

__all__ = ["no_queue", "queues_of"]

_Kind = TypeVar("_Kind", asked.Queue, asked.Quota)


def queues_of(
    source: Source, document: Document, resources: dict[str, int], attributes: Attributes, numbers: AsWritten
) -> list[asked.Queue]:
    """Return the queues, whose parents make a tree."""
    names = dict.fromkeys(queue.name for queue in document.queues)
    servers = {server.name: i for i, server in enumerate(document.servers)}
    for q, queue in enumerate(document.queues):
        if queue.parent is not None and queue.parent not in names:
            refuse(source, ("queues", q, "parent"), no_queue(queue.parent, names))
    way = circle({queue.name: queue.parent for queue in document.queues})
    if way:
        refuse(source, ("queues", list(names).index(way[0]), "parent"), f"the parents of queues {circular(way)}")
    lowest, levels = deepest({queue.name: queue.parent for queue in document.queues})
    if levels > MOST_LEVELS:
        refuse(source, ("queues", list(names).index(lowest), "parent"), too_deep(lowest, levels))
    inside = {user.queue: user.name for user in reversed(document.users)}
    children = {queue.parent: queue.name for queue in reversed(document.queues)}
    for q, queue in enumerate(document.queues):
        if queue.order == "listed" and queue.name in inside and queue.name in children:
            refuse(source, ("queues", q, "order"), mixed(inside[queue.name], children[queue.name]))
    found = []
    for q, queue in enumerate(document.queues):
        path = ("queues", q)
        given = numbers.amounts(path, _amounts(source, path, queue, resources))
        quotas = []
        for j, quota in enumerate(queue.quotas):
            of_quota = (*path, "quotas", j)
            rows = _rows(source, of_quota, quota, servers, attributes)
            group = [document.servers[i].name for i in rows]
            name = quota.name or (quota.on or "").strip()
            quotas.append(
                _made(
                    source,
                    of_quota,
                    asked.Quota,
                    servers=group,
                    name=name,
                    **numbers.amounts(of_quota, _amounts(source, of_quota, quota, resources)),
                )
            )
        plain = {"name": queue.name, "parent": queue.parent, "weight": numbers.at(*path, "weight", given=queue.weight), "tier": queue.tier}
        plain["order"] = queue.order
        found.append(_made(source, path, asked.Queue, **plain, quotas=quotas, **given))
    return found


def _amounts(source: Source, path: Path, entry: Queue | Quota, resources: dict[str, int]) -> dict[str, dict[str, float]]:
    """Return the guarantee, the limit and the lending limit, which are about resources and fit together."""
    given = {"guarantee": entry.guarantee, "limit": entry.limit, "lending_limit": entry.lending_limit}
    for word, amounts in given.items():
        check_known(source, (*path, word), amounts, resources, "resource")
    for word, resource, message in misfits(**given):
        refuse(source, (*path, word, resource), message)
    return given


def _rows(source: Source, path: Path, quota: Quota, servers: dict[str, int], attributes: Attributes) -> list[int]:
    """Return the rows of servers that a quota is on."""
    if quota.on is None and quota.servers is None:
        refuse(source, path, "names no servers; add on: model = A100, or servers: [A], or give the queue itself a guarantee or a limit")
    chosen = np.ones(len(servers), bool)
    if quota.servers is not None:
        check_known(source, (*path, "servers"), quota.servers, servers, "server")
        check_unique(source, (*path, "servers"), quota.servers)
        chosen[:] = False
        chosen[[servers[name] for name in quota.servers]] = True
    if quota.on is not None:
        try:
            chosen &= attributes.where(quota.on)
        except InvalidInstance as error:
            refuse(source, (*path, "on"), str(error))
    if not chosen.any():
        where = (*path, "servers") if quota.on is None else (*path, "on")
        refuse(source, where, "no server is in this group; compare it with the attributes of the servers, or remove the quota")
    if quota.on is None and quota.servers is not None:
        return [servers[name] for name in quota.servers]  # in the order that is given
    return [int(i) for i in np.flatnonzero(chosen)]


def _made(source: Source, path: Path, kind: type[_Kind], **values: Any) -> _Kind:
    try:
        return kind(**values)
    except InvalidInstance as error:  # what nothing above has refused: numbers that are too large or too small
        refuse(source, path, str(error).removeprefix(f'queue "{values["name"]}": ').removeprefix(f"the quota on {values['name']}: "))


def no_queue(name: str, known: dict[str, None]) -> str:
    """Say that there is no queue of this name, and which queues there are."""
    there = (
        f"the queues are {joined([brief(each) for each in known], 8)}"
        if known
        else 'there are no queues; add it under "queues:", or in queues.csv'
    )
    return f'there is no queue "{brief(name)}"{did_you_mean(name, known) or f"; {there}"}; leave it out for the root'
