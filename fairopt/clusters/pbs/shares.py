"""The fairshare tree of PBS (``sched_priv/resource_group``) as queues.

A line is ``NAME ID PARENT SHARES``: an entity, a number of its own, the entity that it is in (``root``: none), and its shares among those
beside it. An entity with others in it is a queue; one without is an owner (a user, unless ``fairshare_entity`` says otherwise). Owners that
the file does not list are beside each other in the queue ``unknown``. Its shares are those of the line of that name, else 10, which PBS
takes as ``unknown_shares`` unless a site has changed it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from fairopt.clusters.account import Account
from fairopt.clusters.queue_tree import Forest
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.queues import Queue
from fairopt.wording import joined, named

__all__ = ["forest_of_shares"]

_LINE = re.compile(r"(\S+)\s+(\d{1,18})\s+(\S+)\s+(\d{1,9})", re.ASCII)
_ROOT, _UNKNOWN = ("root", "treeroot"), "unknown"
_UNKNOWN_SHARES = 10.0


def forest_of_shares(path: str | os.PathLike[str], owners: Iterable[str], account: Account) -> Forest:
    """Return the queues of the entities that have owners below them, and those of the owners.

    Raises
    ------
    InvalidInstance
        With the file and line: it is no such line, an entity is listed twice, or its parent is not listed before it.
    """
    shares: dict[str, float] = {}
    parent: dict[str, str | None] = {}
    for number, line in enumerate(read_text(Path(path)).splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where, match = f"{path}, line {number}", _LINE.fullmatch(text)
        if match is None:
            raise InvalidInstance(f'{where}: "{text[:60]}" is not NAME ID PARENT SHARES, such as: ann 60 physics 20')
        name, _, above, amount = match.groups()
        if name in shares:
            raise InvalidInstance(f'{where}: "{name}" is listed twice; list each entity once')
        if above not in (*_ROOT, *shares):
            raise InvalidInstance(f'{where}: "{name}" is in "{above}", which is not listed before it')
        shares[name], parent[name] = float(amount), None if above in _ROOT else above
    known = list(dict.fromkeys(owners))
    inner = {above for above in parent.values() if above is not None}
    both = [owner for owner in known if owner in inner]
    if both:
        raise InvalidInstance(
            f"{path}: {joined([named(name) for name in both], 3)} has entities in it, and is an owner of jobs; choose others (--owners)"
        )
    unlisted = [owner for owner in known if owner not in shares]
    if unlisted:
        shares.setdefault(_UNKNOWN, _UNKNOWN_SHARES)
        parent.setdefault(_UNKNOWN, None)
        account.note(
            f"{joined([named(name) for name in unlisted], 3)}: not in the fairshare tree, and so beside each other in the queue {_UNKNOWN}"
        )
    needed: dict[str, None] = {}
    for owner in known:
        entity: str | None = owner if owner in shares else _UNKNOWN
        while entity is not None and entity not in needed:
            needed[entity] = None
            entity = parent[entity]
    queues = [Queue(each, above, weight=shares[each]) for each, above in parent.items() if each in needed]
    return Forest((*queues, *(Queue(owner, _UNKNOWN) for owner in unlisted)), system="PBS")
