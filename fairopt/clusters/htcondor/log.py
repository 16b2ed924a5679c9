"""A history from ``condor_history -json`` (or ``-jsonl``), with ``condor_q -json`` for the jobs that have not ended; several files.

* A job waits from ``QDate`` to its first start (``JobStartDate``), and its last run is from ``JobCurrentStartDate`` to ``CompletionDate``,
  else to ``EnteredCurrentStatus``. If it ran before, ``RemoteWallClockTime`` says for how long in all: its earlier runs count as one, from
  the first start on. A job that never started waits until it left the queue.
* It holds what it was given (``CpusProvisioned``, ``MemoryProvisioned``, ``GPUsProvisioned``), else what it asked for, on the slot of
  ``LastRemoteHost``, suspended or not: a suspended job keeps its slot.
* The log does not say when a job was held. So the waiting time of a job that was held (``NumHolds``) is excluded.
* Where a job may run is not in the log: jobs with the same ``Requirements`` may run wherever one of them ran, unless the cluster says it.
* Jobs of the universes scheduler, local and grid run outside of the slots, and are left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.clock import Clock
from fairopt.clusters.htcondor.ads import Ad, read_ads
from fairopt.clusters.htcondor.jobs import name_of, owner_of, request_of, runs_outside
from fairopt.clusters.htcondor.slots import read_slot, servers_of
from fairopt.clusters.log_cluster import cluster_of_hosts
from fairopt.clusters.log_records import Records, Unjudged, distinct, nowhere, row_places, unknown_server
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, Instance
from fairopt.tables.mistakes import Mistakes
from fairopt.wording import plural

__all__ = ["cluster_of_log", "is_history", "read_htcondor_log"]

_MARKS = (
    b'"QDate"',
    b'"JobStatus"',
    b'"GlobalJobId"',
    b'"CompletionDate"',
    b'"RequestCpus"',
    b'"EnteredCurrentStatus"',
    b'"CommittedTime"',
)
_HELD = "was held for a time, and the log does not say when"
_RUNNING = (2, 6, 7)
_LAST = 95_617_584_000.0  # the year 5000, in seconds since 1970
_PROVISIONED = {"CpusProvisioned": ("cpu", 1.0), "MemoryProvisioned": ("memory", 1024.0), "GPUsProvisioned": ("gpu", 1.0)}

_Times = tuple[float, float, float]
"""Submission, start and end of a run."""


@dataclass(frozen=True, slots=True)
class _Stay:
    """A job that waits and runs once: whose it is, where, what it demands, and why its wait is excluded."""

    job: str
    owner: str
    group: str
    times: _Times
    number: float
    demand: list[float]
    host: str
    row: int
    kind: str
    why: str
    place: str


def is_history(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of ads of jobs.

    >>> is_history(b'[{"ClusterId": 7, "JobStatus": 4}]')
    True
    """
    return head.lstrip()[:1] in (b"[", b"{") and any(mark in head for mark in _MARKS)


def read_htcondor_log(
    paths: Sequence[Path], cluster: Instance, *, users: str = "submitter", timezone: str | None = None, lenient: bool = False
) -> Records:
    """Read ads of jobs, or those compressed by gzip.

    Parameters
    ----------
    users : {"submitter", "user", "group"}
        The owner of a job. Its queue is its accounting group.

    Raises
    ------
    InvalidInstance
        With the file and the ad: what is wrong, and what to do.
    """
    mistakes, bad, outside = Mistakes(), list[Ad](), list[Ad]()
    stays: list[_Stay] = []
    known: dict[str, int] = {}
    again = 0
    for ad in (ad for path in paths for ad in read_ads(path, "history")):
        try:
            found = [] if runs_outside(ad) else _stays(ad, cluster, users, known)
        except InvalidInstance as error:
            mistakes.add(str(error))
            bad.append(ad)
            continue
        outside += [] if found else [ad]
        again += len(found) > 1
        stays += found
    if not lenient:
        mistakes.refuse(closing="lenient=True or --lenient leaves such records out")
    if not stays:
        raise InvalidInstance(f"{paths[0]}: there is no job of a slot in this log")
    table, shape = distinct(np.array([stay.demand for stay in stays], float).reshape(-1, cluster.n_resources))
    submit, start, end = np.array([stay.times for stay in stays], float).T
    kinds = {name: j for j, name in enumerate(dict.fromkeys(stay.kind for stay in stays))}
    records = Records(
        job=np.array([stay.job for stay in stays], object),
        user=np.array([stay.owner for stay in stays], object),
        queue=np.array([stay.group for stay in stays], object),
        submit=submit.copy(),
        start=start.copy(),
        end=end.copy(),
        tasks=np.array([stay.number for stay in stays], float),
        shape=shape,
        demands=table,
        row=np.array([stay.row for stay in stays], np.int64),
        place=np.array([kinds[stay.kind] for stay in stays], np.int64),
        allowed=np.zeros((len(kinds), cluster.n_servers), bool),
        why=np.array([stay.why for stay in stays], object),
        where=lambda n: stays[n].place,
        clock=Clock.dates("UTC" if timezone is None else timezone),
        lenient=lenient,
        inferred=True,
    )
    ran = records.row >= 0
    records.allowed[records.place[ran], records.row[ran]] = True
    records.allowed[~records.allowed.any(axis=1)] = True
    for reason, left in (("it ran outside of the slots", outside), ("its ad cannot be read", bad)):
        if left:
            records.unjudged.append(Unjudged(reason, len(left), 0.0, left[0].place))
    if again:
        records.notes.append(f"{plural(again, 'job')} ran several times: the runs before the last count as one, from the first start on")
    _servers(records, np.array([bool(stay.host) and stay.row < 0 for stay in stays], bool), [stay.host for stay in stays], cluster)
    return records


def _stays(ad: Ad, cluster: Instance, users: str, known: dict[str, int]) -> list[_Stay]:
    """Return the stays of a job in the pool."""
    owner, group, _ = owner_of(ad, users)
    host = ad.text("LastRemoteHost", "") or ad.text("RemoteHost", "")
    times = _times(ad)
    stays = []
    for k, each in enumerate(times):
        here = host if k == len(times) - 1 and not np.isnan(each[1]) else ""
        stays.append(
            _Stay(
                job=name_of(ad),
                owner=owner,
                group=group,
                times=each,
                number=max(ad.number("MaxHosts", 1.0), 1.0) if ad.number("JobUniverse", 5) == 11 else 1.0,
                demand=_demand(ad, cluster),
                host=here,
                row=_row(cluster, here, known) if here else -1,
                kind=repr(ad.values.get("requirements")),
                why=_HELD if ad.number("NumHolds", 0.0) or ad.number("JobStatus", 0.0) == 5 else "",
                place=ad.place,
            )
        )
    return stays


def _servers(records: Records, unknown: BoolArray, hosts: Sequence[str], cluster: Instance) -> None:
    """Say that servers of the log are not in the cluster; where it has others of the log, refuse these runs."""
    if not unknown.any():
        return
    name = hosts[int(np.argmax(unknown))]
    if (records.row >= 0).any():
        message = f"{unknown_server(name, cluster)}, or give the slots instead of the cluster (--nodes)"
        records.keep(records.refuse(unknown, message))
    else:
        records.notes.append(nowhere(name, cluster, "jobs"))


def _demand(ad: Ad, cluster: Instance) -> list[float]:
    """Return what a job held, or asked for, in the order of the resources of the cluster."""
    amounts = request_of(ad)
    for name, (resource, unit) in _PROVISIONED.items():
        if ad.number(name, 0.0):
            amounts[resource] = ad.number(name, 0.0) / unit
    return [amounts.get(resource, 0.0) for resource in cluster.resources]


def _times(ad: Ad) -> list[_Times]:
    """Return the runs of a job; one that never started has no start."""
    status = ad.number("JobStatus", 4.0)
    submit = _seconds(ad, "QDate", np.nan)
    first = _seconds(ad, "JobStartDate", np.nan) or np.nan
    start = _seconds(ad, "JobCurrentStartDate", np.nan) or first
    changed = _seconds(ad, "EnteredCurrentStatus", np.nan) or np.nan
    runs, waits = status in _RUNNING, status in (1, 5)
    end = np.nan if runs or waits else _seconds(ad, "CompletionDate", 0.0) or changed
    wall = _seconds(ad, "RemoteWallClockTime", 0.0)
    if np.isnan(start):
        return [(submit, np.nan, end)]
    if waits:  # it ran, and waits again: all its runs are over
        return [(submit, first, min(first + wall, changed) if changed > first else first + wall), (changed, np.nan, np.nan)]
    if np.isnan(end) and not runs:
        end = start + wall
    before = wall - (0.0 if runs else end - start)
    if first < start and before > 0:
        return [(submit, first, min(first + before, start)), (first + before if first + before < start else start, start, end)]
    return [(submit, start, end)]


def _seconds(ad: Ad, name: str, default: float) -> float:
    """Return a time in seconds since 1970, or a length of time."""
    found = ad.number(name, default)
    if found > _LAST:
        ad.get(name).refuse(f"expected seconds up to the year 5000, found {found:g}")
    return found


def _row(cluster: Instance, host: str, known: dict[str, int]) -> int:
    """Return the row of servers of a slot such as slot1_3@w1, of the slot that it is a part of, or of its machine; -1: unknown."""
    if host not in known:
        slot, sign, machine = host.partition("@")
        names = [host, f"{slot.rpartition('_')[0]}{sign}{machine}", machine, machine.rpartition("@")[2], machine.partition(".")[0]]
        rows, _ = row_places(cluster, [name for name in dict.fromkeys(names) if name])
        known[host] = next((rows[name] for name in names if name in rows), -1)
    return known[host]


def cluster_of_log(slots: str | os.PathLike[str], *, lenient: bool = False) -> tuple[Instance, tuple[str, ...]]:
    """Return the cluster of a log from ``condor_status -json``, and notes on it; owners are beside each other with weight 1.

    A history asks what was there, so that slots which are offline or used by their owner now count, with all that they have. The slots of
    a machine are together.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.
    """
    account = Account(lenient)
    listed = account.unique(account.read(read_ads(slots, "slots"), read_slot, "slot"), "slot")
    servers, _ = servers_of(listed, account, closed=True)
    machines: dict[str, dict[str, float]] = {}
    for slot in servers:
        own = machines.setdefault(slot.machine, {})
        for name, amount in slot.offers.items():
            own[name] = own.get(name, 0.0) + amount
    cluster = cluster_of_hosts((machine, own, "") for machine, own in machines.items())
    if cluster is None:
        raise InvalidInstance(f"{Path(slots)}: no slot has anything to share; export them again: condor_status -json > slots.json")
    return cluster, tuple(account.notes)
