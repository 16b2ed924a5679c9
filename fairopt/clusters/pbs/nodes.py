"""Vnodes of PBS as hosts: what a host offers, what a chunk may ask it to have, and which jobs it takes.

A chunk lies on one host, and may use several of its vnodes. So the vnodes of a host are one server, with what they offer together. A
resource that a vnode shares with another (``@n1[0]``) counts there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.pbs.reading import text_of
from fairopt.clusters.pbs.syntax import amount, is_amount, is_size, renamed
from fairopt.wording import plural

__all__ = ["RESERVATION", "Host", "Vnode", "hosts_of", "note_reservations", "read_vnode", "sizes_in", "truth"]

RESERVATION = re.compile(r"[RSM]\d+")
"""The queue of an advance, a standing or a maintenance reservation."""
_CLOSED = {"offline", "down", "state-unknown", "unknown", "stale", "unresolvable", "provisioning", "wait-provisioning", "initializing"}
_CLOSED |= {"maintenance", "sleep"}
_OPEN = {"free", "job-busy", "job-exclusive", "resv-exclusive", "busy", "job-sharing"}
_TRUTHS = {"true": "true", "t": "true", "yes": "true", "y": "true", "false": "false", "f": "false", "no": "false", "n": "false"}


@dataclass(frozen=True, slots=True)
class Vnode:
    """A vnode: what it offers (memory in GiB), the words that it has by resource, and why it offers nothing.

    ``reservations`` are the queues of the reservations that have it, or a part of it; where one of these runs and has it for itself,
    it is ``exclusive``.
    """

    part: Part
    name: str
    host: str
    offers: dict[str, float]
    words: dict[str, frozenset[str]]
    sharing: str
    queue: str
    partition: str
    reservations: frozenset[str]
    exclusive: bool
    closed: str


@dataclass(frozen=True, slots=True)
class Host:
    """The vnodes of a host that accept work, as one server.

    Attributes
    ----------
    name : str
        That of its vnode, if it has one only.
    vnodes : tuple of str
    offers : dict
    words : dict
        By resource.
    queue, partition : str
        The only queue whose jobs it takes, and the partition of queues; empty: any.
    sharing : str
        Whether jobs have it for themselves, in the words of PBS.
    reservations : frozenset of str
        The queues of reservations that have it, or a part of it.
    exclusive : bool
        Whether it is open to the jobs of these alone.
    parts : int
        How many of its vnodes have CPUs, each of which a job may have for itself; 1 if none has.
    """

    name: str
    vnodes: tuple[str, ...]
    offers: dict[str, float]
    words: dict[str, frozenset[str]]
    queue: str
    partition: str
    sharing: str
    parts: int = 1
    reservations: frozenset[str] = frozenset()
    exclusive: bool = False

    def has(self, resource: str, word: str) -> bool:
        """Return whether a chunk that asks for this word may lie here; a truth that is not set is false."""
        if resource == "vnode":
            return word in {name.lower() for name in self.vnodes}
        return truth(word) in self.words.get(resource, frozenset({"false"}))


def truth(word: str) -> str:
    """Return a word of a resource; a truth in one form.

    >>> truth("T"), truth("y"), truth("haswell")
    ('true', 'true', 'haswell')
    """
    return _TRUTHS.get(word.lower(), word.lower())


def read_vnode(part: Part) -> Vnode:
    """Read a vnode."""
    offers: dict[str, float] = {}
    words: dict[str, frozenset[str]] = {}
    for resource, each in part.get("resources_available").entries().items():
        if each.value is None:
            continue
        text = text_of(each)
        found = amount(text, resource) if not isinstance(each.value, bool) and resource not in ("host", "vnode") else None
        if text.startswith("@"):
            continue
        if found is None:
            if is_amount(resource):
                each.refuse(f'"{text[:40]}" is no amount, such as 8 or 16gb')
            words[resource] = frozenset(truth(word.strip()) for word in text.split(","))
        else:
            offers[renamed(resource)] = found
    states = [state.strip() for state in part["state"].text().lower().split(",")]
    strange = [state for state in states if state not in _CLOSED | _OPEN]
    if strange:
        part["state"].refuse(f'there is no state "{strange[0][:40]}" of a vnode; the version of this export may be newer')
    closed = sorted(set(states) & _CLOSED)
    name = str(part.key)
    host = text_of(part.get("resources_available").get("host"), "") or text_of(part.get("Mom"), "").partition(",")[0].partition(".")[0]
    return Vnode(
        part,
        name,
        host or name,
        offers,
        words,
        text_of(part.get("sharing"), ""),
        text_of(part.get("queue"), ""),
        text_of(part.get("partition"), ""),
        frozenset(each.strip().partition(".")[0] for each in _reservations(part) if each.strip()),
        "resv-exclusive" in states,
        closed[0] if closed else "",
    )


def _reservations(part: Part) -> list[str]:
    """Return the reservations that a vnode lists: a text, or a list, of ``R12.server``."""
    given = part.get("resv")
    return [each.text() for each in given.items()] if isinstance(given.value, list) else text_of(given, "").split(",")


def hosts_of(vnodes: Iterable[Vnode], account: Account, *, closed: bool = False) -> list[Host]:
    """Return the hosts with vnodes that accept work, and leave the other vnodes out, unless ``closed`` ones count, too."""
    together: dict[str, list[Vnode]] = {}
    for vnode in vnodes:
        if vnode.closed and not closed:
            account.leave_out("node", f"{vnode.part.place} ({vnode.name})", f"{vnode.closed}: offers nothing")
        else:
            together.setdefault(vnode.host, []).append(vnode)
    single = {own[0].name for own in together.values() if len(own) == 1}
    hosts = []
    for name, own in together.items():
        offers: dict[str, float] = {}
        words: dict[str, frozenset[str]] = {}
        for vnode in own:
            for resource, number in vnode.offers.items():
                offers[resource] = offers.get(resource, 0.0) + number
            for resource, some in vnode.words.items():
                words[resource] = words.get(resource, frozenset()) | some
        label = own[0].name if len(own) == 1 else name if name not in single else f"host {name}"
        shown = {each: next((getattr(v, each) for v in own if getattr(v, each)), "") for each in ("queue", "partition", "sharing")}
        words.setdefault("host", frozenset({name.lower()}))
        parts = max(sum(v.offers.get("cpu", 0.0) > 0 for v in own), 1)
        inside = frozenset[str]().union(*(v.reservations for v in own))
        exclusive = all(v.exclusive for v in own)
        hosts.append(Host(label, tuple(v.name for v in own), offers, words, parts=parts, reservations=inside, exclusive=exclusive, **shown))
    return hosts


def note_reservations(vnodes: Sequence[Vnode], account: Account) -> None:
    """Note the reservations of parts of vnodes, and vnodes that do not say for which jobs they are."""
    unnamed = sum(vnode.exclusive and not vnode.reservations for vnode in vnodes)
    if unnamed:
        vnodes_of = plural(unnamed, "reserved vnode does", "reserved vnodes do")
        account.note(f"{vnodes_of} not say for which reservation: open to jobs of those that no vnode names")
    shared = sum(bool(vnode.reservations) and not vnode.exclusive for vnode in vnodes)
    if shared:
        account.note(
            f"{plural(shared, 'vnode is', 'vnodes are')} in a reservation that is later, or has a part of it (pbs_rstat says which): open "
            "to all jobs"
        )


def sizes_in(vnodes: Mapping[str, Part]) -> set[str]:
    """Return the resources of vnodes that are sizes, under the names of the instance."""
    found = {"memory"}
    for part in vnodes.values():
        available = part.value.get("resources_available") if isinstance(part.value, dict) else None
        if isinstance(available, dict):
            found |= {renamed(name) for name, value in available.items() if is_size(value)}
    return found
