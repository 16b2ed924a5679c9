"""A PBS cluster (PBS Professional, OpenPBS), from its answers in JSON.

**Vnodes** (``pbsnodes -a -F json``). The vnodes of a host are one server: ``ncpus`` is ``cpu``, ``mem`` is ``memory`` in GiB, ``ngpus`` is
``gpu``; every other amount keeps its name. A vnode that is offline, down, stale or in maintenance offers nothing.

**Jobs** (``qstat -f -t -F json``). A chunk of ``select`` is a task; a job whose chunks must lie on one host (``place=pack``) is one. Chunks
of a job need not start together here: a relaxation. What runs holds what ``exec_vnode`` says, and what waits demands what running jobs
with the same chunks were given; else what it asks for, with what the queue gives a chunk by default. An array counts once for each of its
subjobs, listed or not, as far as its limit (``max_run_subjobs``) lets them run at once. A suspended job gave back what it held, and waits.
A job that takes whole hosts (``place=exclhost``, or ``sharing`` of its vnodes) demands as much as the smallest host on which it fits; one
that takes whole vnodes (``place=excl``) as much as those vnodes, which are alike on a host.

**Where.** What a chunk asks its host to have (``host``, ``vnode``, ``arch``, custom words and truths), the queue and the partition of
vnodes. The jobs of a reservation are in a queue of its name, ``R12``, and run on its vnodes; those of a reservation that runs and has
vnodes for itself (``resv-exclusive``) are open to these jobs alone.

**Shares** are those of the fairshare tree: :mod:`fairopt.clusters.pbs.shares`.

**Limits** of queues and of the server are named limits: :mod:`fairopt.clusters.pbs.queues`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.fields import Seen
from fairopt.clusters.imported import Import
from fairopt.clusters.kind_limits import KindLimits, broken
from fairopt.clusters.pbs.fields import JOB, NODE, QUEUE, SERVER
from fairopt.clusters.pbs.jobs import OWNERS, Job, Task, read_job, tasks_of
from fairopt.clusters.pbs.nodes import Host, hosts_of, note_reservations, read_vnode, sizes_in
from fairopt.clusters.pbs.places import Places
from fairopt.clusters.pbs.queues import Holder, attributes_of, holders, limits_of
from fairopt.clusters.pbs.reading import read_listing
from fairopt.clusters.pbs.shares import forest_of_shares
from fairopt.clusters.pbs.syntax import chunks
from fairopt.clusters.running import Name
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.wording import joined, named, plural

__all__ = ["import_pbs"]

_FIRST = ("cpu", "memory", "gpu")
_UNITS = {"cpu": "CPUs", "gpu": "GPUs"}


@keeps_question
def import_pbs(
    nodes: str | os.PathLike[str],
    jobs: str | os.PathLike[str],
    queues: str | os.PathLike[str] | None = None,
    server: str | os.PathLike[str] | None = None,
    shares: str | os.PathLike[str] | None = None,
    *,
    users: str = "user",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a PBS cluster.

    Parameters
    ----------
    nodes : path
        ``pbsnodes -a -F json``.
    jobs : path
        ``qstat -f -t -F json``; without ``-t``, subjobs of arrays that run are on no known host.
    queues : path, optional
        ``qstat -Q -f -F json``: limits of queues, what a chunk has by default, and which queues are stopped.
    server : path, optional
        ``qstat -B -f -F json``: limits of the whole cluster, and its licences (``resources_available``).
    shares : path, optional
        ``sched_priv/resource_group``: the fairshare tree, whose shares are weights (:mod:`fairopt.clusters.pbs.shares`).
    users : {"user", "group", "project", "account", "queue"}
        The owner of a job.
    weights : mapping, optional
        Weight by owner, instead of shares; default: 1.
    demand : {"shapes", "mean"}
        A user for each owner and shape (exact), or one for each owner with the mean of its tasks (approximate).
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> node = {"state": "free", "resources_available": {"host": "n1", "ncpus": 8, "mem": "33554432kb", "ngpus": 2}}
    >>> job = {"job_state": "Q", "Job_Owner": "ann@login", "queue": "workq", "Resource_List": {"select": "2:ncpus=2:mem=4gb:ngpus=1"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, data in (("nodes", {"nodes": {"n1": node}}), ("jobs", {"Jobs": {"7.head": job}})):
    ...         _ = Path(folder, name).write_text(json.dumps(data))
    ...     imported = import_pbs(Path(folder, "nodes"), Path(folder, "jobs"))
    >>> imported.instance.resources, imported.instance.capacities, imported.instance.demands, imported.instance.tasks
    (('cpu', 'memory', 'gpu'), array([[ 8., 32.,  2.]]), array([[2., 4., 1.]]), array([2.]))
    """
    if users not in OWNERS:
        raise InvalidInstance(f'users is "{users}"; give {", ".join(named(each) for each in OWNERS[:-1])} or {named(OWNERS[-1])}')
    account, seen, limits = Account(lenient), Seen(), KindLimits()
    listed = read_listing(nodes, "nodes")
    for part in listed.values():
        seen.see(NODE, part.value)
    vnodes = account.read(listed.values(), read_vnode, "node")
    hosts = hosts_of(vnodes, account)
    note_reservations(vnodes, account)
    of_queue = {} if queues is None else holders(queues, "Queue")
    of_server = {} if server is None else holders(server, "Server")
    for path, kind, fields in ((queues, "Queue", QUEUE), (server, "Server", SERVER)):
        for part in read_listing(path, kind).values() if path is not None else ():
            seen.see(fields, attributes_of(part))

    records = read_listing(jobs, "Jobs")
    for part in records.values():
        seen.see(JOB, part.value)
    every = account.read(records.values(), read_job, "job")
    account.summary |= {"nodes": len(vnodes), "jobs": len(every)}
    known = {vnode.name for vnode in vnodes}
    able = [job for job in _able(every, of_queue, account) if _is_known(job, known, nodes, account)]

    resources = _resources(hosts, able)
    places = Places(hosts, of_queue, resources)
    groups = _Groups(places, users)
    defaults = dict(next(iter(of_server.values())).defaults) if of_server else {}
    learned = _given(able)
    wide: Counter[str] = Counter()
    startable: list[Job] = []
    for job in able:
        queue = job.whose["queue"]
        own = defaults | (of_queue[queue].defaults if queue in of_queue else {})
        found = tasks_of(job, own, learned.get((queue, job.select), ()))
        total = sum(task.number for task in found)
        demanded = {name: each for task in found for name, each in task.amounts.items()}
        counts = [
            each
            for holder in (of_queue.get(queue), *of_server.values())
            if holder is not None
            for each in limits_of(job, holder, total, demanded)
        ]
        whole = {name: sum(task.amounts.get(name, 0.0) * task.number for task in found) for name in demanded}
        never = broken(counts, whole, total) if job.waiting and not job.running else ""
        if never:
            account.leave_out("job", job.where, f"asks for more than all that {never} allows, so it can never start", job.waiting)
            continue
        startable.append(job)
        word = " ".join(dict.fromkeys([*(job.whose[each] for each in ("queue", "user") if each != users), *job.wide]))
        kind = limits.kind(f"{word} in {plural(total, 'task')}" if total > 1 else word, counts)
        counted = {each.name.rpartition(" ")[2] for each in counts}
        wide.update(name for name in job.wide if server is None and name not in counted | set(resources))
        for task in found:
            groups.add(job, task, kind, Name(job.name, job.name if total > 1 else ""))
    _note(startable, wide, set(places.host_of), account)
    places.note(account)
    sizes = sizes_in(listed)
    imported = assemble(
        "pbs",
        Nodes([host.name for host in hosts], places.capacities),
        groups.tasks(),
        account,
        units={name: _UNITS.get(name, "GiB" if name in sizes else "") for name in resources},
        forest=None if shares is None else forest_of_shares(shares, (job.whose[users] for job in able), account),
        own_weights=weights,
        demand=demand,
        what="job",
        limits=limits.over,
    )
    return replace(imported, notes=(*imported.notes, *seen.notes()))


class _Groups:
    """Tasks of jobs, as the assembly takes them."""

    def __init__(self, places: Places, users: str) -> None:
        self._places, self._users = places, users
        self._owner: list[str] = []
        self._demands: list[FloatArray] = []
        self._number: list[float] = []
        self._place: list[int] = []
        self._where: list[str] = []
        self._kind: list[str] = []
        self._running: list[tuple[int, int, float]] = []
        self._names: list[Name] = []

    def add(self, job: Job, task: Task, kind: str, name: Name) -> None:
        """Add tasks of a job that are alike; all tasks of a job stop together."""
        before = len(self._running)
        places = self._places
        row, demand = places.of(task, job), places.demand(task)
        on = places.on(task)
        if not places.takes_whole(job, row):
            held = [(i, float(number)) for i, number in on.items()]
            if job.running and not job.exec:
                held = [(SOMEWHERE, task.number * job.running)]
            self._group(job, demand, task.number * (job.waiting + job.running), row, kind, held)
        elif on:
            for i in on:
                self._group(job, places.on_whole_host(demand, i, task, job), 1.0, row, kind, [(i, 1.0)])
        else:
            whole, number = places.whole_hosts(demand, task.number, row, job)
            held = [(SOMEWHERE, number * job.running)] if job.running and not job.exec else []
            self._group(job, whole, number * (job.waiting + job.running), row, kind, held)
        self._names += [name] * (len(self._running) - before)

    def _group(self, job: Job, demand: FloatArray, number: float, row: int, kind: str, held: list[tuple[int, float]]) -> None:
        self._running += [(len(self._owner), host, amount) for host, amount in held]
        self._owner.append(job.whose[self._users])
        self._demands.append(demand)
        self._number.append(number)
        self._place.append(row)
        self._where.append(job.where)
        self._kind.append(kind)

    def tasks(self) -> Tasks:
        """Return all of them."""
        places = self._places
        return Tasks(
            owner=self._owner,
            demands=np.array(self._demands).reshape(-1, places.capacities.shape[1]),
            number=np.array(self._number, float),
            allowed=np.array(places.allowed, bool).reshape(len(places.allowed), len(places.capacities)),
            place=np.array(self._place, int),
            where=self._where,
            running=self._running,
            names=self._names,
            kind=self._kind,
        )


def _able(jobs: Sequence[Job], queues: Mapping[str, Holder], account: Account) -> list[Job]:
    """Return the jobs that hold something or could, and leave out the others; an array stands for subjobs that are not listed."""
    subjobs = [job for job in jobs if job.array and not job.is_array]
    waiting, running = Counter(job.array for job in subjobs if job.waiting), Counter(job.array for job in subjobs if job.running)
    room: dict[str, float] = {}
    for job in jobs:
        if job.is_array and job.at_once:
            room[job.name] = max(job.at_once - max(job.running, running[job.name]), 0.0)
    able = []
    for job in jobs:
        if job.is_array:
            job = replace(job, waiting=max(job.waiting - waiting[job.name], 0.0), running=max(job.running - running[job.name], 0.0))
        holder = queues.get(job.whose["queue"])
        why = job.why or ("" if holder is None else holder.why)
        if job.waiting and why:
            account.leave_out("job", job.where, why, job.waiting)
            job = replace(job, waiting=0.0)
        if job.waiting and job.array in room:
            copies = min(job.waiting, room[job.array])
            room[job.array] -= copies
            if copies < job.waiting:
                why = "beyond the limit of its array (max_run_subjobs): waits for other subjobs"
                account.leave_out("job", job.where, why, job.waiting - copies)
            job = replace(job, waiting=copies)
        if job.waiting or job.running:
            able.append(job)
    return able


def _is_known(job: Job, known: set[str], nodes: str | os.PathLike[str], account: Account) -> bool:
    """Return whether the vnodes on which a job runs are those of this cluster."""
    strange = next((name for each in job.exec for name, _ in each if name not in known), None)
    if strange is not None:
        account.bad("job", job.part.get("exec_vnode").place, f'runs on vnode "{strange}", which {nodes} does not list; export both again')
    return strange is None


def _given(jobs: Sequence[Job]) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Return what each chunk was given of jobs that run, by queue and chunks; of the first such job."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for job in jobs:
        key = (job.whose["queue"], job.select)
        if job.exec and key not in found:
            tasks = tasks_of(replace(job, place="free"), {})
            found[key] = [task.amounts for task in tasks for _ in range(task.number)]
    return found


def _resources(hosts: Sequence[Host], jobs: Sequence[Job]) -> list[str]:
    """Return the resources of hosts, and what chunks ask for or hold; amounts that no job takes and that are words elsewhere are none."""
    worded = {name for host in hosts for name in host.words}
    asked = {name for job in jobs for chunk in chunks(job.select) for name in chunk.amounts}
    asked |= {name for job in jobs for each in job.exec for _, amounts in each for name in amounts}
    offered = {name for host in hosts for name in host.offers}
    rest = sorted((asked & (offered | {"gpu"})) | (asked - worded))
    return [*_FIRST[:2], *(name for name in ("gpu",) if name in offered | asked), *(name for name in rest if name not in _FIRST)]


def _note(jobs: Sequence[Job], wide: Mapping[str, int], open_vnodes: set[str], account: Account) -> None:
    several = sum(len(job.exec) > 1 or sum(chunk.number for chunk in chunks(job.select)) > 1 for job in jobs if "pack" not in job.place)
    if several:
        account.note(
            f"{plural(several, 'job')} of several chunks, which need not start together here, nor on different hosts: a relaxation"
        )
    mixed = sum(len({str(chunk.amounts) for chunk in chunks(job.select)}) > 1 for job in jobs)
    if mixed:
        account.note(
            f"{plural(mixed, 'job has', 'jobs have')} chunks of different shapes, each a user of its own in the queue of the owner"
        )
    suspended = sum(job.suspended for job in jobs)
    if suspended:
        account.note(
            f"{plural(suspended, 'suspended job')} gave back what they held: counted as waiting"
            if suspended > 1
            else "1 suspended job gave back what it held: counted as waiting"
        )
    homeless = sum(bool(job.exec) and not any(name in open_vnodes for each in job.exec for name, _ in each) for job in jobs)
    if homeless:
        account.note(f"{plural(homeless, 'job')} on vnodes that offer nothing: asked for, but not held")
    grouped = sum("group=" in job.place for job in jobs)
    if grouped:
        account.note(f"{plural(grouped, 'job wants', 'jobs want')} chunks on hosts that are alike (place=group), which does not count")
    if wide:
        account.note(
            f"jobs ask for {joined(sorted(wide), 5)} beside their chunks ({plural(max(wide.values()), 'job')}): if there is a limited "
            "amount of it, as of licences, it is in qstat -B -f -F json (--server), and does not count without it"
        )
