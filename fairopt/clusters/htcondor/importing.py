"""An HTCondor pool, from the ads of its slots and jobs.

**Slots** (``condor_status -json``). A partitionable slot is a server with all that it has; its dynamic slots are parts of it. A static slot
is a server that runs one job at a time, which is a named limit. A slot that is offline, drained, or used by its owner offers nothing.

**Jobs** (``condor_q -allusers -json``). Idle jobs wait; running and suspended ones, and those that transfer their output, hold what they
ask for: ``RequestCpus``, ``RequestMemory`` (MiB, here GiB), ``RequestGPUs``, and other resources of machines; simple expressions are
evaluated. Held jobs, and jobs of the universes scheduler, local and grid, are no demand; nor are those of late materialization that are
not in the queue yet, which a note counts. A node of a parallel job is a task, and they need not start together: a relaxation.

**Where.** ``Requirements``, as far as they can be evaluated (:mod:`fairopt.clusters.htcondor.requirements`).

**Groups and priorities** are a tree of queues: :mod:`fairopt.clusters.htcondor.groups`. **Concurrency limits** of the configuration are
named limits.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.fields import Seen
from fairopt.clusters.htcondor.ads import read_ads
from fairopt.clusters.htcondor.fields import JOB, SLOT, see
from fairopt.clusters.htcondor.groups import (
    Groups,
    bound_of,
    groups_of_config,
    groups_of_priorities,
    is_oversubscribed,
    limits_of_config,
    read_config,
)
from fairopt.clusters.htcondor.jobs import OWNERS, Job, not_queued_yet, read_job, undefined_requests
from fairopt.clusters.htcondor.priorities import read_priorities
from fairopt.clusters.htcondor.requirements import Requirements
from fairopt.clusters.htcondor.slots import Slot, read_slot, servers_of
from fairopt.clusters.imported import Import
from fairopt.clusters.kind_limits import Counts, KindLimits, broken
from fairopt.clusters.running import Name
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.instance.limits import Limit
from fairopt.wording import figure, plural

__all__ = ["import_htcondor"]

_FIRST = ("cpu", "memory", "gpu")
_UNITS = {"cpu": "cores", "memory": "GiB", "gpu": "GPUs"}


@keeps_question
def import_htcondor(
    nodes: str | os.PathLike[str],
    jobs: str | os.PathLike[str],
    priorities: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    *,
    users: str = "submitter",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of an HTCondor pool.

    Parameters
    ----------
    nodes : path
        ``condor_status -json``.
    jobs : path
        ``condor_q -allusers -json``, of all access points: ``-global``.
    priorities : path, optional
        ``condor_userprio -allusers``, as a table, with ``-long``, or as JSON: weights are 1 / factor. JSON and groups: their quotas, too.
    config : path, optional
        ``condor_config_val -dump``, or the file of the configuration that has the groups: ``GROUP_NAMES``, ``GROUP_QUOTA_x``,
        ``GROUP_QUOTA_DYNAMIC_x``, ``GROUP_ACCEPT_SURPLUS``, and concurrency limits (``MATLAB_LIMIT = 5``).
    users : {"submitter", "user", "group"}
        The owner of a job: its submitter (``group_physics.ada``, as priorities name it), its user, or its accounting group.
    weights : mapping, optional
        Weight by owner, instead of 1 / factor.
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
    >>> slot = {"Name": "slot1@w1", "Machine": "w1", "SlotType": "Partitionable", "State": "Unclaimed", "TotalSlotCpus": 16, "Cpus": 14,
    ...         "TotalSlotMemory": 65536, "Memory": 61440, "TotalSlotGPUs": 2}
    >>> job = {"ClusterId": 7, "ProcId": 0, "JobStatus": 1, "Owner": "ada", "RequestCpus": 2, "RequestMemory": 4096, "RequestGPUs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, ad in (("slots", slot), ("jobs", job)):
    ...         _ = Path(folder, name).write_text(json.dumps([ad]))
    ...     imported = import_htcondor(Path(folder, "slots"), Path(folder, "jobs"))
    >>> imported.instance.resources, imported.instance.capacities, imported.instance.demands
    (('cpu', 'memory', 'gpu'), array([[16., 64.,  2.]]), array([[2., 4., 1.]]))
    """
    if users not in OWNERS:
        raise InvalidInstance(f'users is "{users}"; give submitter, user or group')
    account, seen, limits = Account(lenient), Seen(), KindLimits()
    macros = {} if config is None else read_config(config)
    known = [] if priorities is None else read_priorities(priorities)
    if priorities is not None and not known:
        raise InvalidInstance(
            f"{priorities}: there is no user priority in this file (empty, or a page?); export them again: condor_userprio -allusers"
        )
    groups = groups_of_config(macros, config, account) if config is not None else []
    groups = groups or ([] if priorities is None else groups_of_priorities(known, priorities))
    most = {} if config is None else limits_of_config(macros, config)

    listed = account.unique(account.read(see(seen, SLOT, read_ads(nodes, "slots")), read_slot, "slot"), "slot")
    servers, part_of = servers_of(listed, account)
    names = _names(servers)
    index = {slot.name: i for i, slot in enumerate(servers)}
    found = account.unique(account.read(see(seen, JOB, read_ads(jobs, "jobs")), lambda ad: read_job(ad, users), "job"), "job")
    account.summary |= {"slots": len(servers), "jobs": len(found)}
    able = []
    for job in found:
        if job.why:
            account.leave_out("job", job.where, job.why)
        else:
            able.append(job)
    extra = sorted({name for job in able for name in job.demand} - set(_FIRST))
    resources = [*_FIRST, *extra]
    where = Requirements(servers)
    place, kinds, unlimited, startable = [], [], Counter[str](), []
    for job in able:
        bounds = {name: bound_of(name, most) for name in job.limits}
        counts = [Counts(f"concurrency/{name}", bound, amount=job.limits[name]) for name, bound in bounds.items() if bound is not None]
        never = "" if job.holds else broken(counts, job.demand, job.number)
        if never:
            account.leave_out("job", job.where, f"counts more than all of the limit {never}, so it can never start")
            continue
        startable.append(job)
        place.append(where.row(job.ad.values))
        unlimited.update(name for name, bound in bounds.items() if bound is None)
        kinds.append(limits.kind(" ".join(f"{amount:g} {name}" for name, amount in job.limits.items()), counts))
    able = startable
    where.note(account)
    _note(able, unlimited, account)
    _note_still_to_come(found, account)
    mixed = sum(len(slot.cards) > 1 for slot in servers) if any("requiregpus" in job.ad.values for job in able) else 0
    if mixed:
        account.note(
            f"{plural(mixed, 'slot has', 'slots have')} GPUs of several kinds, which count together: jobs that require one kind may seem "
            "to fit where there is less of it"
        )
    running: list[tuple[int, int, float]] = []
    strange = 0
    for j, job in enumerate(able):
        on = [_server(name, part_of, index) for name in job.slots]
        running += [(j, each, job.number / len(on)) for each in on if each is not None]
        running += [(j, SOMEWHERE, job.number)] if job.holds and not job.slots else []
        strange += None in on
    if strange:
        account.note(
            f"{plural(strange, 'job runs', 'jobs run')} on slots that are not listed, or offer nothing: asked for there, but not held"
        )
    queue, forest = None, None
    if groups or known:
        whose = {_queue(job, users): (job.group, job.submitter) for job in able}
        queue = [_queue(job, users) for job in able]
        cores = sum(slot.offers.get("cpu", 0.0) for slot in servers)
        by_name = {each.submitter: each for each in known if not each.is_group}
        oversubscribed = config is None or is_oversubscribed(macros, config)
        forest = Groups(groups, by_name, cores, oversubscribed).forest(whose, account)
    imported = assemble(
        "htcondor",
        Nodes(names, np.array([[slot.offers.get(r, 0.0) for r in resources] for slot in servers]).reshape(len(servers), len(resources))),
        Tasks(
            owner=[job.owner for job in able],
            demands=np.array([[job.demand.get(r, 0.0) for r in resources] for job in able]).reshape(-1, len(resources)),
            number=np.array([job.number for job in able], float),
            allowed=np.array(where.allowed, bool).reshape(len(where.allowed), len(servers)),
            place=np.array(place, int),
            where=[job.where for job in able],
            running=running,
            names=[Name(able[j].name, able[j].name if able[j].number > 1 else "") for j, _, _ in running],
            queue=queue,
            kind=kinds,
        ),
        account,
        units={name: _UNITS.get(name, "") for name in resources},
        forest=forest,
        own_weights=weights,
        demand=demand,
        what="job",
        limits=lambda instance, kinds: [*limits.over(instance, kinds), *_one_job_each(instance, servers, names, account)],
    )
    return replace(imported, notes=(*imported.notes, *seen.notes()))


def _queue(job: Job, users: str) -> str:
    """Return the queue of a job: its submitter; with other owners, the owner of the submitter, too."""
    return job.submitter if users == "submitter" or job.owner == job.submitter else f"{job.submitter} ({job.owner})"


def _names(servers: Sequence[Slot]) -> list[str]:
    """Return the names of servers: that of the machine, if it has one slot."""
    of_machine = Counter(slot.machine for slot in servers)
    taken = {slot.name for slot in servers}
    return [slot.machine if of_machine[slot.machine] == 1 and slot.machine not in taken else slot.name for slot in servers]


def _server(slot: str, part_of: Mapping[str, str], index: Mapping[str, int]) -> int | None:
    """Return the server that a slot is, or is a part of."""
    first, sign, rest = slot.strip().partition("@")
    names = (part_of.get(slot.strip(), slot.strip()), f"{first.rpartition('_')[0]}{sign}{rest}")
    return next((index[name] for name in names if name in index), None)


def _one_job_each(instance: Instance, servers: Sequence[Slot], names: Sequence[str], account: Account) -> list[Limit]:
    """Return the limit of static slots, each of which runs one job at a time."""
    static = {name for name, slot in zip(names, servers, strict=True) if slot.kind != "partitionable"}
    if not static:
        return []
    rows, mixed = [], 0
    for label, hosts in zip(instance.servers, instance.hosts, strict=True):
        own = set(hosts or (label.partition(" +")[0],))
        if own <= static:
            rows.append(label)
        mixed += bool(own & static) and not own <= static
    if mixed:
        account.note("some static slots have as much as a partitionable one, and count as if several jobs could run in them")
    return [Limit("one job in a static slot", 1, each="server", servers=rows)] if rows else []


def _note_still_to_come(jobs: Sequence[Job], account: Account) -> None:
    left = not_queued_yet(jobs)
    if left:
        known = [number for number in left.values() if not math.isnan(number)]
        unknown = len(left) - len(known)
        account.note(
            f"{plural(len(left), 'cluster of jobs is', 'clusters of jobs are')} queued a few jobs at a time (max_materialize, max_idle): "
            "jobs that are not in the queue yet do not count as demand"
            + (f"; {figure(sum(known))} are still to come" if known else "")
            + (f"; of {plural(unknown, 'cluster')} the number is not known" if unknown else "")
        )


def _note(jobs: Sequence[Job], unlimited: Mapping[str, int], account: Account) -> None:
    suspended = sum(job.suspended for job in jobs)
    if suspended:
        account.note(f"{plural(suspended, 'suspended job keeps its slot', 'suspended jobs keep their slots')}: counted as running")
    several = sum(job.number > 1 for job in jobs)
    if several:
        account.note(f"{plural(several, 'parallel job')}, whose nodes need not start together here: a relaxation")
    for name, number in Counter(name for job in jobs for name in undefined_requests(job.ad)).items():
        least = "1" if name.lower() == "requestcpus" else "0"
        account.note(
            f"{plural(number, 'job states', 'jobs state')} {name} by what the ad does not have, such as an attribute of the machine: "
            f"counted as {least}"
        )
    for name, number in unlimited.items():
        account.note(
            f"{plural(number, 'job counts', 'jobs count')} in the concurrency limit {name}, which is in condor_config_val -dump "
            "(--config): without it, it does not count"
        )
