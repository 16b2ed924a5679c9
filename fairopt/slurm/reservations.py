"""Reservations of Slurm: which nodes are open to which jobs.

A node in an active reservation, maintenance included, is open to the jobs of that reservation (``--reservation=NAME``) alone, and these run
nowhere else, unless the reservation has the flag FLEX. With the flag MAGNETIC jobs of its users in its accounts may run in it. What holds
a part of the CPUs of its nodes (``CoreCnt``) leaves the rest to everybody. A node names one of its reservations; ``scontrol show
reservations`` lists all, with their flags and users. In text it says which are active; in JSON one is active if a node in it has the state
RESERVED or MAINT.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.instance.hosts import unfolded
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node
from fairopt.slurm.reading import parsed, read_records
from fairopt.slurm.syntax import tres, words
from fairopt.slurm.text import Record
from fairopt.wording import joined, plural

__all__ = ["Reservation", "Reservations"]

_FLAGS = {"FLEX", "MAGNETIC", "MAINT", "OVERLAP", "IGNORE_JOBS", "ANY_NODES", "ALL_NODES", "SPEC_NODES", "PART_NODES", "STATIC_ALLOC"}
_FLAGS |= {"STATIC", "REPLACE", "REPLACE_DOWN", "NO_HOLD_JOBS", "NO_HOLD_JOBS_AFTER_END", "PURGE_COMP", "TIME_FLOAT", "FIRST_CORES"}
_FLAGS |= {"HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "USER_DELETE", "USER_DEL", "LICENSE_ONLY", "LIC_ONLY", "FORCE_START", "SKIP"}
_UNNAMED, _MAINTENANCE = "", "maintenance"  # of a node that does not say which reservation it is in


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation: its nodes, its CPUs (0: all of its nodes), who may use it, and whether it is active."""

    part: Part
    name: str
    nodes: frozenset[str]
    cpus: float
    flags: frozenset[str]
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    active: bool | None  # None: the export does not say

    def attracts(self, job: Job) -> bool:
        """Return whether a job that names no reservation may run in it: one of its users, in one of its accounts."""
        return "MAGNETIC" in self.flags and _among(job.user, self.users) and _among(job.account, self.accounts)


def _read(part: Part) -> Reservation:
    text = isinstance(part, Record)
    nodes = part.get("nodes") if text else part.get("node_list")
    return Reservation(
        part,
        (part["reservation"] if text else part["name"]).text(),
        frozenset(parsed(nodes, unfolded)),
        parsed(part.get("tres"), tres).get("cpu", 0.0),
        frozenset(word.strip().upper() for word in words(part.get("flags"))),
        tuple(words(part.get("users"))),
        tuple(words(part.get("accounts"))),
        part.get("state").text("ACTIVE").upper() == "ACTIVE" if text else None,
    )


def _among(name: str, listed: Sequence[str]) -> bool:
    """Return whether a list has a name; of names to leave out, ``-ann``, all others; an empty list has all.

    >>> _among("ann", ["ann", "ben"]), _among("ann", ["-ann"]), _among("cat", ["-ann"]), _among("cat", [])
    (True, False, True, True)
    """
    denied = {each.removeprefix("-") for each in listed if each.startswith("-")}
    return name not in denied if denied else not listed or name in listed


def _admits(of: Collection[str], reservation: str) -> bool:
    """Return whether nodes of these reservations are for the jobs of one."""
    return bool(reservation) and (reservation in of or _UNNAMED in of)


class Reservations:
    """The reservations of a cluster.

    Parameters
    ----------
    path : path or None
        The export of reservations; None: nodes say which they are in.
    nodes : sequence of Node
    account : Account
        Gets notes on reservations that are not active, and on parts of nodes.
    """

    def __init__(self, path: str | os.PathLike[str] | None, nodes: Sequence[Node], account: Account) -> None:
        held = {node.name for node in nodes if node.reserved}
        listed = (
            [] if path is None else account.unique(account.read(read_records(path, "reservations"), _read, "reservation"), "reservation")
        )
        active = [each for each in listed if (bool(each.nodes & held) if each.active is None else each.active)]
        if path is not None:
            account.summary["reservations"] = len(listed)
        if len(listed) > len(active):
            later = len(listed) - len(active)
            account.note(
                f"{plural(later, 'reservation is', 'reservations are')} not active now: {'it does' if later == 1 else 'they do'} not count"
            )
        strange = sorted({flag.partition("=")[0] for each in active for flag in each.flags} - _FLAGS)
        if strange:
            account.note(f"reservations have the flags {joined(strange, 5)}, which this import does not know: they do not count")
        self._known = {each.name: each for each in active}
        cpus = {node.name: node.offers["cpu"] for node in nodes}
        self._of: dict[str, set[str]] = {}  # the reservations that have a node for themselves
        self._taken: dict[str, float] = {}  # CPUs of a node that reservations of a part have
        in_part: list[str] = []
        for each in active:
            whole = sum(cpus.get(name, 0.0) for name in each.nodes)
            if 0 < each.cpus < whole:
                in_part.append(each.name)
                for name in each.nodes & set(cpus):
                    self._taken[name] = self._taken.get(name, 0.0) + each.cpus * cpus[name] / whole
            else:
                for name in each.nodes:
                    self._of.setdefault(name, set()).add(each.name)
        listed_nodes = set().union(*(each.nodes for each in active))
        for node in nodes:
            if node.reserved and node.name not in listed_nodes:
                name = node.reservation or (_MAINTENANCE if node.maintenance else _UNNAMED)
                self._of.setdefault(node.name, set()).add(name)
        if in_part:
            account.note(
                f"{plural(len(in_part), 'reservation has', 'reservations have')} a part of the CPUs of nodes ({joined(sorted(in_part), 3)}"
                "): these nodes offer the rest, and their memory"
            )

    def offered(self, nodes: Iterable[Node], jobs: Sequence[Job], account: Account) -> list[Node]:
        """Return the nodes that are open to some of the jobs, and leave out the others."""
        wanted = {job.reservation for job in jobs}
        found = []
        for node in nodes:
            of = self._of.get(node.name, set())
            magnetic = any(name in self._known and any(map(self._known[name].attracts, jobs)) for name in of)
            if of and not any(_admits(of, name) for name in wanted) and not magnetic:
                name = joined(sorted(of - {_UNNAMED}), 3)
                why = f"reserved{f' ({name})' if name else ''}: offers nothing to these jobs"
                account.leave_out("node", f"{node.part.place} ({node.name})", why)
                continue
            if _UNNAMED in of:
                account.note(
                    "some nodes are reserved and do not say for what: jobs of any reservation may run there (scontrol show reservations, "
                    "--reservations, says it)"
                )
            taken = self._taken.get(node.name, 0.0)
            found.append(replace(node, offers={**node.offers, "cpu": max(node.offers["cpu"] - taken, 0.0)}) if taken else node)
        return found

    def opens(self, node: Node, job: Job) -> bool:
        """Return whether a node is open to a job, as far as reservations go."""
        of = self._of.get(node.name, set())
        own = self._known.get(job.reservation)
        if of:
            if job.reservation:
                return _admits(of, job.reservation)
            return any(self._known[name].attracts(job) for name in of if name in self._known)
        if not job.reservation:
            return True
        if own is None:
            return False  # it waits for a reservation that is not active
        return "FLEX" in own.flags or (node.name in own.nodes)

    def key(self, job: Job) -> tuple[str, ...]:
        """Return what tells apart jobs that reservations treat differently."""
        attracting = [name for name, each in self._known.items() if not job.reservation and each.attracts(job)]
        return (job.reservation, *sorted(attracting))
