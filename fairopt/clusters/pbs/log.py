"""A history from PBS's accounting records: `fairopt.clusters.pbs.accounting` reads the runs, and here they become records of tasks.

* A chunk is a task, as in an import; with ``place=pack`` the job is one. A run holds what ``exec_vnode`` says, on these vnodes; without it
  (as Torque writes records), the CPUs of ``exec_host`` and an even part of the memory.
* A job waits from ``qtime``, or from ``etime`` where that is later: before, it was held, or waited for another job or for a time. A job
  that is suspended gives back what it holds, and waits until it is resumed.
* Where a job may run is not in the log: jobs of a queue that ask their hosts for the same words may run wherever one of them ran, unless
  the cluster says it.
* A job with ``place=excl`` or ``exclhost`` holds its hosts as a whole.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.clock import Clock
from fairopt.clusters.log_cluster import cluster_of_hosts
from fairopt.clusters.log_records import Records, Unjudged, distinct, nowhere, row_places, unknown_server
from fairopt.clusters.pbs.accounting import Run, read_runs
from fairopt.clusters.pbs.jobs import Task, chunks_of, one_chunk, owners_of, packed, wide_of
from fairopt.clusters.pbs.nodes import hosts_of, read_vnode
from fairopt.clusters.pbs.reading import read_listing
from fairopt.clusters.pbs.syntax import cpus_of_hosts, vnodes_of
from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.tables.mistakes import Mistakes
from fairopt.wording import plural

__all__ = ["cluster_of_log", "read_pbs_log"]

_UNREADY = "not ready: held, or waits for another job or for a time"
_EXCLUSIVE = {"excl", "exclhost"}
_FIELDS = {"user": "euser", "group": "egroup", "project": "project", "account": "Account_Name", "queue": "queue"}


def read_pbs_log(
    paths: Sequence[Path], cluster: Instance, *, users: str = "user", timezone: str | None = None, lenient: bool = False
) -> Records:
    """Read accounting records, or those compressed by gzip; several files in any order.

    Parameters
    ----------
    users : {"user", "group", "project", "account", "queue"}
        The owner of a job. Its queue is that of PBS.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.
    """
    found, bad_lines = read_runs(paths, timezone=timezone, lenient=lenient)
    runs, lost = ([run for run in found if run.lost is each] for each in (False, True))
    whose = [owners_of({name: run.fields[key] for key, name in _FIELDS.items() if key in run.fields}) for run in runs]
    nameless = [f"(no {users})" == own[users] and "user" not in run.fields for run, own in zip(runs, whose, strict=True)]
    parts = _Parts(cluster)
    mistakes, bad_runs = Mistakes(), []
    for n, run in enumerate(runs):
        try:
            if not nameless[n]:
                parts.add(n, run)
        except (ValueError, OverflowError) as error:
            mistakes.add(f"{run.place}: job {run.job}: its chunks cannot be read: {error}")
            bad_runs.append(run)
    if not lenient:
        mistakes.refuse(closing="lenient=True or --lenient leaves such records out")
    index = np.array(parts.run, np.int64)
    table, shape = distinct(np.array(parts.demand, float).reshape(-1, cluster.n_resources))
    key = [f"{whose[n]['queue']}\n{words}" for n, words in zip(parts.run, parts.words, strict=True)]
    places = {name: j for j, name in enumerate(dict.fromkeys(key))}
    times = np.array([(run.submit, run.ready, run.start, run.end) for run in runs], float).reshape(-1, 4)[index]
    submit, ready, start, end = times.T
    records = Records(
        job=np.array([runs[n].job for n in parts.run], object),
        user=np.array([whose[n][users] for n in parts.run], object),
        queue=np.array([whose[n]["queue"] for n in parts.run], object),
        submit=submit.copy(),
        start=start.copy(),
        end=end.copy(),
        tasks=np.array(parts.tasks, float),
        shape=shape,
        demands=table,
        row=np.array(parts.row, np.int64),
        place=np.array([places[each] for each in key], np.int64),
        allowed=np.zeros((len(places), cluster.n_servers), bool),
        why=np.full(len(index), "", object),
        where=lambda n: runs[parts.run[n]].place,
        clock=Clock.dates("UTC" if timezone is None else timezone),
        lenient=lenient,
        inferred=True,
    )
    _waits(records, ready)
    if bad_lines:
        records.unjudged.append(Unjudged("a line that is no record", bad_lines, 0.0, str(paths[0])))
    if lost:
        records.unjudged.append(Unjudged("it ended, and no record says when it started", len(lost), 0.0, lost[0].place))
    if bad_runs:
        records.unjudged.append(Unjudged("its chunks cannot be read", len(bad_runs), 0.0, bad_runs[0].place))
    without = [run for run, missing in zip(runs, nameless, strict=True) if missing]
    if without:
        why = "it was queued and never started, and its record does not say whose it is"
        records.unjudged.append(Unjudged(why, len(without), 0.0, without[0].place))
    ran = records.row >= 0
    records.allowed[records.place[ran], records.row[ran]] = True
    records.allowed[~records.allowed.any(axis=1)] = True
    parts.note(records)
    return records


def _waits(records: Records, ready: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    """Let a wait begin when the job is ready, and count the waiting times before."""
    until = np.fmin(np.fmin(records.start, records.end), np.inf)
    from_then = np.where(np.isnan(ready), records.submit, np.fmax(records.submit, np.fmin(ready, until)))
    late = np.nan_to_num(from_then - records.submit)
    if (late > 0).any():
        hours = float((late * records.tasks).sum() / 3600)
        jobs = len({records.job[n] for n in np.flatnonzero(late > 0)})
        records.unjudged.append(Unjudged(_UNREADY, jobs, hours, records.where(int(np.argmax(late > 0)))))
    records.submit = np.where(np.isnan(records.submit), records.submit, from_then)


class _Parts:
    """The tasks of runs, by what they demand and where they ran."""

    def __init__(self, cluster: Instance) -> None:
        self._cluster = cluster
        self.run: list[int] = []
        self.tasks: list[float] = []
        self.demand: list[list[float]] = []
        self.row: list[int] = []
        self.words: list[str] = []
        self._row_of: dict[str, int] = {}
        self._known: dict[tuple[str, ...], list[Task]] = {}
        self._unknown: dict[str, int] = {}
        self._several = 0

    def add(self, n: int, run: Run) -> None:
        """Add the tasks of a run."""
        tasks = self._tasks(run)
        total = sum(task.number for task in tasks)
        self._several += total > 1
        wide: dict[str, float] = {}
        if self._cluster.shared:
            asked = {key.partition(".")[2]: value for key, value in run.fields.items() if key.startswith("Resource_List.")}
            wide = {name: amount / total for name, amount in wide_of(asked).items() if name in self._cluster.shared}
        whole = bool(set(run.fields.get("Resource_List.place", "").split(":")) & _EXCLUSIVE)
        started = not np.isnan(run.start)
        for task in tasks:
            amounts = task.amounts | wide
            demand = [amounts.get(name, 0.0) for name in self._cluster.resources]
            rows = Counter(self._row(name) for name in task.on) if started and task.on else Counter({-1: task.number})
            for row, number in rows.items():
                own = demand
                if whole and row >= 0:
                    own = np.maximum(demand[: self._cluster.capacities.shape[1]], self._cluster.capacities[row]).tolist()
                    own += demand[len(own) :]
                if any(own):
                    self._group(n, own, number, row, " ".join(f"{key}={word}" for key, word in sorted(task.words.items())))

    def _group(self, n: int, demand: list[float], number: int, row: int, words: str) -> None:
        self.run.append(n)
        self.tasks.append(float(number))
        self.demand.append(demand)
        self.row.append(row)
        self.words.append(words)

    def _tasks(self, run: Run) -> list[Task]:
        """Return the tasks of a run.

        Raises
        ------
        ValueError
            Its chunks cannot be read.
        """
        fields = run.fields
        asked = {name: fields[f"Resource_List.{name}"] for name in ("ncpus", "mem", "ngpus") if f"Resource_List.{name}" in fields}
        place = fields.get("Resource_List.place", "")
        select = fields.get("Resource_List.select") or one_chunk(asked)
        key = (select, place, fields.get("exec_vnode", ""), fields.get("exec_host", ""), asked.get("mem", ""))
        if key not in self._known:
            given = vnodes_of(key[2]) if key[2] else cpus_of_hosts(key[3], key[4]) if key[3] else []
            self._known[key] = packed(chunks_of(key[0], given, {}), place)
        return self._known[key]

    def _row(self, vnode: str) -> int:
        """Return the row of servers with this vnode, or with its host; -1: unknown."""
        if vnode not in self._row_of:
            names = dict.fromkeys([vnode, vnode.partition("[")[0], vnode.partition(".")[0]])
            known, _ = row_places(self._cluster, list(names))
            self._row_of[vnode] = next((known[name] for name in names if name in known), -1)
        if self._row_of[vnode] < 0:
            self._unknown[vnode] = len(self.run)
        return self._row_of[vnode]

    def note(self, records: Records) -> None:
        """Say what is approximate; refuse runs on servers that the cluster does not have, while it has others."""
        if self._several:
            records.notes.append(f"{plural(self._several, 'run')} of several chunks, a task each: they need not start together")
        if not self._unknown:
            return
        name = next(iter(self._unknown))
        if all(row < 0 for row in self._row_of.values()):
            records.notes.append(nowhere(name, self._cluster, "jobs"))
            return
        bad = (records.row < 0) & ~np.isnan(records.start)
        records.keep(records.refuse(bad, f"{unknown_server(name, self._cluster)}, or give the vnodes instead of the cluster (--nodes)"))


def cluster_of_log(nodes: str | os.PathLike[str], *, lenient: bool = False) -> tuple[Instance, tuple[str, ...]]:
    """Return the cluster of a log from ``pbsnodes -a -F json``, and notes on it; owners are beside each other with weight 1.

    A history asks what was there, so that vnodes which are offline or down now count, with all that they have.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.
    """
    account = Account(lenient)
    vnodes = account.read(read_listing(nodes, "nodes").values(), read_vnode, "node")
    hosts = hosts_of(vnodes, account, closed=True)
    cluster = cluster_of_hosts((host.name, host.offers, (host.queue, tuple(sorted(host.words.get("arch", ()))))) for host in hosts)
    if cluster is None:
        raise InvalidInstance(f"{Path(nodes)}: no vnode has anything to share; export them again: pbsnodes -a -F json > nodes.json")
    return cluster, tuple(account.notes)
