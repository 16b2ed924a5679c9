"""A Slurm cluster, from the JSON of ``scontrol``, ``squeue``, ``sinfo`` (21.08) and slurmrestd (up to 25.11).

**Nodes** (``scontrol show nodes --json``). CPUs as configured less those kept for the system, memory (``real_memory`` less
``specialized_memory``) in GiB, and a resource for each generic one (``gpu``). A node that is down, drained, failing or not responding
offers nothing; jobs on it count as demand, but not as running.

**Jobs** (``squeue --json``). Running, configuring and suspended jobs hold what they were allocated (``tres_alloc_str``); pending ones
ask for ``tres_req_str``, and an array counts once for each of its remaining tasks. A job that is held or waits for another job is not
demand. A job on one node is one task. A job on several nodes (or one that waits and is too large for every node) has as many tasks as
Slurm tasks, if its CPUs and GPUs divide evenly, else one per node. An instance cannot express that they must start together, so the
optimum is a relaxation for them.

**Where.** The partitions of the job (a node lists its own; ``partitions`` adds those that a newer answer lists), its features with ``&``,
``|`` and parentheses, the types of its GPUs, required and excluded nodes.

**Queues.** With the associations, every account is a queue in the account above it, every user of an account is a queue in it
(``account/user``), and the shapes of its jobs are users of the instance. ``shares_raw`` is the weight of a queue among the queues beside
it, ``GrpTRES`` its limit. Slurm knows no guarantees. Without the associations, every owner is a queue of weight 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.imports.account import Account
from fairopt.imports.assembly import Demand, Nodes, assemble
from fairopt.imports.json_export import Part
from fairopt.imports.result import Import
from fairopt.imports.shapes import SOMEWHERE, Tasks
from fairopt.imports.slurm_queues import queue_of, queues_of
from fairopt.imports.slurm_records import HOLDS, Job, Node, parsed, read_job, read_node, read_records, split_job
from fairopt.imports.slurm_syntax import Features, features, hosts
from fairopt.instance import BoolArray
from fairopt.wording import plural

__all__ = ["import_slurm"]


def import_slurm(
    nodes: str | os.PathLike[str],
    jobs: str | os.PathLike[str],
    associations: str | os.PathLike[str] | None = None,
    partitions: str | os.PathLike[str] | None = None,
    *,
    users: str = "account",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a Slurm cluster.

    Parameters
    ----------
    nodes, jobs : path
        ``scontrol show nodes --json`` and ``squeue --json``, or what slurmrestd answers.
    associations : path, optional
        The tree of accounts and users, their ``shares_raw`` (weights) and ``GrpTRES`` (limits); without them all weights are 1.
    partitions : path, optional
        The nodes of each partition, where the nodes do not say.
    users : {"account", "user"}
        The owner of a job. The tree of the associations is the same for both.
    weights : mapping, optional
        Weight by owner, instead of shares.
    demand : {"shapes", "mean"}
        A user for each queue and shape (exact), or one for each queue with the mean of its tasks (approximate).
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
    >>> node = {"name": "cn1", "cpus": 64, "real_memory": 131072, "state": ["IDLE"], "partitions": ["batch"], "gres": "gpu:a100:4(S:0-3)"}
    >>> job = {"job_id": 7, "account": "physics", "user_name": "ada", "partition": "batch", "job_state": ["PENDING"],
    ...        "tres_req_str": "cpu=8,mem=16G,node=1,gres/gpu=1"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, data in (("nodes", [node]), ("jobs", [job])):
    ...         _ = Path(folder, name + ".json").write_text(json.dumps({name: data}))
    ...     imported = import_slurm(Path(folder, "nodes.json"), Path(folder, "jobs.json"))
    >>> imported.instance.resources, imported.instance.capacities, imported.instance.demands
    (('cpu', 'memory', 'gpu'), array([[ 64., 128.,   4.]]), array([[ 8., 16.,  1.]]))
    """
    if users not in ("account", "user"):
        raise InvalidInstance(f'users is "{users}"; give "account" or "user"')
    account = Account(lenient)
    read = read_records(nodes, "nodes")
    listed = account.unique(account.read(read, read_node, "node"), "node")
    offered = []
    for node in listed:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.name})", f"{node.closed}: offers nothing")
        else:
            offered.append(node)
    member = _memberships(listed, read_records(partitions, "partitions") if partitions is not None else [])
    index = {node.name: i for i, node in enumerate(offered)}
    known = {node.name for node in listed}

    found = account.unique(account.read(read_records(jobs, "jobs"), lambda part: read_job(part, users), "job"), "job")
    states = Counter(job.state for job in found)
    account.summary |= {"nodes": len(read), "jobs": len(found), **{f"jobs {state}": n for state, n in states.items()}}
    kept: list[Job] = []
    allowed: dict[tuple[Any, ...], BoolArray] = {}
    homeless = 0
    for job in found:
        if not job.tasks:
            account.leave_out("job", job.where, job.why)
            continue
        unknown = next((partition for partition in job.partitions if partition not in member), None)
        strange = next((host for host in job.on if host not in known), None)
        if unknown is not None and len(member) > 0:
            account.bad(
                "job", f"{job.part.place}.partition", f'no node is in the partition "{unknown}"; export nodes and jobs of the same cluster'
            )
        elif strange is not None:
            account.bad("job", f"{job.part.place}.nodes", f'runs on node "{strange}", which {nodes} does not list; export both again')
        else:
            job = split_job(job, offered)
            if job.constraints not in allowed:
                allowed[job.constraints] = _allowed(job, offered, member)
            homeless += bool(job.on) and not any(host in index for host in job.on)
            kept.append(job)
    several = sum(job.spans for job in kept)
    if several:
        account.note(f"{plural(several, 'job')} on several nodes, divided into tasks that need not start together: a relaxation")
    if homeless:
        account.note(f"{plural(homeless, 'job')} on nodes that offer nothing: asked for, but not held")

    generic = sorted({name for job in kept for name in job.request} - {"cpu", "memory"})
    resources = ["cpu", "memory", *generic]
    row = {constraints: j for j, constraints in enumerate(allowed)}
    running = []
    for j, job in enumerate(kept):
        running += [(j, index[host], part * job.tasks) for host, part in job.on.items() if host in index]
        if job.state in HOLDS and not job.on:
            running.append((j, SOMEWHERE, job.tasks))
    return assemble(
        "slurm",
        Nodes([node.name for node in offered], np.array([[node.offers.get(r, 0.0) for r in resources] for node in offered])),
        Tasks(
            owner=[job.owner for job in kept],
            demands=np.array([[job.request.get(r, 0.0) for r in resources] for job in kept]).reshape(-1, len(resources)),
            number=np.array([job.tasks for job in kept], float),
            allowed=np.array(list(allowed.values()), bool).reshape(len(allowed), len(offered)),
            place=np.array([row[job.constraints] for job in kept], int),
            where=[job.where for job in kept],
            running=running,
            queue=[queue_of(job) for job in kept] if associations is not None else None,
        ),
        account,
        units={r: {"cpu": "CPUs", "memory": "GiB"}.get(r, "") for r in resources},
        forest=queues_of(associations, kept, users, offered, account) if associations is not None else None,
        own_weights=weights,
        demand=demand,
        what="job",
    )


# Constraints ---------------------------------------------------------------------------------------------------------------------


def _memberships(nodes: list[Node], partitions: list[Part]) -> dict[str, set[str]]:
    """Return the nodes of each partition."""
    member: dict[str, set[str]] = {}
    for node in nodes:
        for partition in node.partitions:
            member.setdefault(partition, set()).add(node.name)
    for part in partitions:
        listed = part.get("nodes")
        names = parsed(listed.get("configured") if isinstance(listed.value, dict) else listed, hosts)
        member.setdefault(part["name"].text(), set()).update(names)
    return member


def _allowed(job: Job, nodes: list[Node], member: Mapping[str, set[str]]) -> BoolArray:
    """Return where a job may run, (nodes,)."""
    inside = set().union(*(member.get(partition, set()) for partition in job.partitions))
    met: Features = features(job.features) if job.features else lambda has: True
    return np.array(
        [
            (not member or not job.partitions or node.name in inside)
            and met(node.features)
            and set(job.types) <= node.types
            and (not job.required or node.name in job.required)
            and node.name not in job.excluded
            for node in nodes
        ],
        bool,
    )
