"""A Slurm cluster, from the JSON of ``scontrol``, ``squeue``, ``sinfo`` (21.08) and slurmrestd (up to 25.11).

**Nodes** (``scontrol show nodes --json``). CPUs as configured less those kept for the system, memory (``real_memory`` less
``specialized_memory``) in GiB, and a resource for each generic one (``gpu``). A node that is down, drained, failing or not responding
offers nothing; what runs there is demand, but held by nobody.

**Jobs** (``squeue --json``). Running, configuring and suspended jobs hold what they were allocated (``tres_alloc_str``); pending ones
ask for ``tres_req_str``, an array for as many tasks as it has left. A job that is held or waits for another is not demand. A job on one
node is one task. A job over several nodes (or one that waits and is too large for any) is as many tasks as it has Slurm tasks, if its
CPUs and GPUs divide evenly, else one for each node; an instance does not know that they must start together, so the optimum is a
relaxation for them.

**Where.** The partitions of the job (a node lists its own; ``partitions`` adds those that a newer answer lists), its features with ``&``,
``|`` and parentheses, the types of its GPUs, required and excluded nodes.

**Weights** are ``shares_raw`` of the associations. At every level of the tree of accounts below the first, the weight of an account is
divided among those of its users and accounts that have jobs here, in proportion to their shares. For accounts directly below the root
the weight is ``shares_raw`` itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.imports.assembly import SOMEWHERE, Account, Demand, Nodes, Tasks, assemble
from fairopt.imports.json_export import Part, read_json
from fairopt.imports.result import Import
from fairopt.imports.slurm_syntax import Features, array_size, features, finite, gres, hosts, number, tres, words
from fairopt.instance import BoolArray
from fairopt.wording import plural

__all__ = ["import_slurm"]

_COMMANDS = {
    "nodes": "scontrol show nodes --json > nodes.json",
    "jobs": "squeue --json > jobs.json",
    "partitions": "scontrol show partitions --json > partitions.json",
    "associations": "the answer of slurmrestd to /slurmdb/VERSION/associations",
}
_CLOSED = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILED", "FAILING", "FUTURE", "INVALID_REG", "MAINT", "NOT_RESPONDING"}
_CLOSED |= {"NO_RESPOND", "UNKNOWN"}
_HOLDS, _WAITS = ("RUNNING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"), ("PENDING",)
_ENDED: tuple[str, ...] = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "COMPLETING",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
)
_ENDED += ("TIMEOUT", "LAUNCH_FAILED", "SPECIAL_EXIT")
_NOT_READY = ("Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "BeginTime")
_ROOT = "root"
_LEAST = 0.001
_PARENT = 0x7FFFFFFF  # shares_raw of an association that uses those of its parent


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
        Their ``shares_raw`` are weights; without them all weights are 1.
    partitions : path, optional
        The nodes of each partition, where the nodes do not say.
    users : {"account", "user"}
        Who the owner of a job is.
    weights : mapping, optional
        Weight by owner, instead of shares.
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
    read = _records(nodes, "nodes")
    listed = account.unique(account.read(read, _node, "node"), "node")
    offered = []
    for node in listed:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.name})", f"{node.closed}: offers nothing")
        else:
            offered.append(node)
    member = _memberships(listed, _records(partitions, "partitions") if partitions is not None else [])
    index = {node.name: i for i, node in enumerate(offered)}
    known = {node.name for node in listed}

    found = account.unique(account.read(_records(jobs, "jobs"), lambda part: _job(part, users), "job"), "job")
    states = Counter(job.state for job in found)
    account.summary |= {"nodes": len(read), "jobs": len(found), **{f"jobs {state}": n for state, n in states.items()}}
    kept: list[_Job] = []
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
            account.bad("job", f"{job.part.place}.nodes", f'runs on node "{strange}", which {nodes} does not list; export both anew')
        else:
            job = _split(job, offered)
            if job.constraints not in allowed:
                allowed[job.constraints] = _allowed(job, offered, member)
            homeless += bool(job.on) and not any(host in index for host in job.on)
            kept.append(job)
    several = sum(job.spans for job in kept)
    if several:
        account.note(f"{plural(several, 'job')} on several nodes, cut into tasks that need not start together: a relaxation")
    if homeless:
        account.note(f"{plural(homeless, 'job')} on nodes that offer nothing: demand, but not held")

    generic = sorted({name for job in kept for name in job.request} - {"cpu", "memory"})
    resources = ["cpu", "memory", *generic]
    row = {constraints: j for j, constraints in enumerate(allowed)}
    running = []
    for j, job in enumerate(kept):
        running += [(j, index[host], part * job.tasks) for host, part in job.on.items() if host in index]
        if job.state in _HOLDS and not job.on:
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
        ),
        account,
        units={r: {"cpu": "CPUs", "memory": "GiB"}.get(r, "") for r in resources},
        weights=_shares(associations, kept, users, account) if associations is not None else None,
        own_weights=weights,
        demand=demand,
        what="job",
    )


# Records -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    part: Part
    name: str
    offers: dict[str, float]
    types: set[str]  # "gpu:a100"
    features: set[str]
    partitions: list[str]
    closed: str


@dataclass(frozen=True, slots=True)
class _Job:
    part: Part
    name: str
    owner: str
    account: str
    user: str
    state: str
    why: str  # it is no demand; else empty
    tasks: float
    request: dict[str, float]  # of one task
    partitions: tuple[str, ...]
    features: str
    types: tuple[str, ...]
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    on: dict[str, float]  # part of the job on each node
    spans: bool  # several nodes

    @property
    def constraints(self) -> tuple[Any, ...]:
        return self.partitions, self.features, self.types, self.required, self.excluded

    @property
    def where(self) -> str:
        return f"{self.part.place} (job {self.name})"


def _records(path: str | os.PathLike[str], kind: str) -> list[Part]:
    whole = read_json(path, _COMMANDS[kind])
    if isinstance(whole.value, dict) and kind not in whole.value:
        for error in whole.get("errors").value or []:
            whole.refuse(f"Slurm answered with an error, {error}; export it again: {_COMMANDS[kind]}")
        if "sinfo" in whole.value:
            whole.refuse(f"this is sinfo --json of 22.05 or later, which groups nodes; export them one by one: {_COMMANDS['nodes']}")
        has = ", ".join(list(whole.value)[:6]) or "nothing"
        whole.refuse(
            f'there are no "{kind}" in this answer (it has {has}): not an export of {kind}, or of an unknown version; {_COMMANDS[kind]}'
        )
    records = whole[kind].items()
    if not records and kind in ("nodes", "jobs"):
        whole.refuse(f"the list of {kind} is empty; export it again: {_COMMANDS[kind]}")
    return records


def _node(part: Part) -> _Node:
    states = {word.strip("*~#$@^!%-").upper() for text in words(part["state"]) for word in text.split("+")}
    states |= {word.upper() for word in words(part.get("state_flags"))}
    effective = finite(part.get("effective_cpus"))
    memory = finite(part["real_memory"]) - finite(part.get("specialized_memory"))
    offers = {"cpu": effective or finite(part["cpus"]), "memory": max(memory, 0.0) / 1024}
    types = set()
    for name, kind, amount in _parsed(part.get("gres"), gres):
        offers[name] = offers.get(name, 0.0) + amount
        if kind:
            types.add(f"{name}:{kind}")
    closed = sorted(states & _CLOSED)
    return _Node(
        part,
        part["name"].text(),
        offers,
        types,
        set(words(part.get("active_features")) or words(part.get("features"))),
        words(part.get("partitions")),
        closed[0].lower() if closed else "",
    )


def _job(part: Part, users: str) -> _Job:
    states = [word.upper() for word in words(part["job_state"])]
    state = next((state for state in states if state in (*_HOLDS, *_WAITS, *_ENDED)), None)
    if state is None:
        part["job_state"].refuse(f"the state {', '.join(states) or 'is empty and'} is not known; the version of this export may be newer")
    reason = part.get("state_reason").text("None")
    why = f"ended ({state.lower()}): holds nothing and asks for nothing" if state in _ENDED else ""
    if state in _WAITS and reason in _NOT_READY:
        why = f"not ready ({reason}): asks for nothing yet"
    name, owner = part.get("account").text("") or "(no account)", part.get("user_name").text("") or "(no user)"
    identity = str(part["job_id"].value)
    if why:
        return _Job(part, identity, "", name, owner, state, why, 0.0, {}, (), "", (), (), (), {}, False)
    on = _held(part) if state in _HOLDS else {}
    request, types = _request(part, state in _HOLDS)
    nodes = len(on) or max(finite(part.get("node_count")) or 1.0, 1.0)
    pieces = 1.0
    if nodes > 1:
        pieces = max(finite(part.get("tasks")) or 1.0, 1.0)
        if pieces < nodes or _uneven(request, pieces):
            pieces = float(nodes)
    copies = 1.0
    pending = part.get("array_task_string").text("")
    if pending and number(part.get("array_task_id")) is None:
        copies = float(_parsed(part["array_task_string"], array_size))
    _parsed(part.get("features"), lambda text: features(text) if text else None)
    return _Job(
        part,
        identity,
        owner if users == "user" else name,
        name,
        owner,
        state,
        "",
        pieces * copies,
        {resource: amount / pieces for resource, amount in request.items() if amount},
        tuple(words(part.get("partition"))),
        part.get("features").text(""),
        types,
        tuple(_parsed(part.get("required_nodes"), hosts)),
        tuple(_parsed(part.get("excluded_nodes"), hosts)),
        on,
        nodes > 1,
    )


def _split(job: _Job, nodes: list[_Node]) -> _Job:
    """Cut a job that waits, has several Slurm tasks and fits on no node alone into these, unless it must have one node."""
    pieces = finite(job.part.get("tasks")) or 1.0
    if job.state in _HOLDS or job.spans or pieces <= 1 or number(job.part.get("max_nodes")) == 1 or _uneven(job.request, pieces):
        return job
    if any(all(amount <= node.offers.get(name, 0.0) for name, amount in job.request.items()) for node in nodes):
        return job
    request = {name: amount / pieces for name, amount in job.request.items()}
    return replace(job, tasks=job.tasks * pieces, request=request, spans=True)


def _uneven(request: Mapping[str, float], pieces: float) -> bool:
    """Would a piece have a part of a CPU or of a generic resource? Memory divides."""
    return any(amount % pieces for name, amount in request.items() if name != "memory")


def _request(part: Part, holds: bool) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return what a job asks for (what it was given, if it runs) in all, and the types of generic resources that it asks for."""
    text = part.get("tres_alloc_str") if holds and part.get("tres_alloc_str").value else part.get("tres_req_str")
    amounts = _parsed(text, tres)
    cpus = amounts.get("cpu") or finite(part.get("cpus"))
    nodes = finite(part.get("node_count")) or 1.0
    memory = amounts.get("mem")
    if memory is None:
        memory = finite(part.get("memory_per_node")) * nodes or finite(part.get("memory_per_cpu")) * cpus
    if not cpus:
        part.get("tres_req_str").refuse("the job asks for no CPU, here or in cpus; export it whole")
    request, types = {"cpu": cpus, "memory": memory / 1024}, set()
    generic = {name.removeprefix("gres/"): amount for name, amount in amounts.items() if name.startswith("gres/")}
    for name, amount in generic.items():
        base, _, kind = name.partition(":")
        if kind:
            types.add(name)
        if not kind or base not in generic:
            request[base] = request.get(base, 0.0) + amount
    if not generic:  # gres are only in TRES strings where accounting tracks them
        for key, times in (("tres_per_job", 1.0), ("tres_per_node", nodes), ("tres_per_task", finite(part.get("tasks")) or 1.0)):
            for base, kind, amount in _parsed(part.get(key), gres):
                if base in ("cpu", "mem", "node", "billing"):
                    continue
                request[base] = request.get(base, 0.0) + amount * times
                if kind:
                    types.add(f"{base}:{kind}")
    return request, tuple(sorted(types))


def _held(part: Part) -> dict[str, float]:
    """Return which part of a running job is on each node: by its CPUs there, else the same on each."""
    names = _parsed(part.get("nodes"), hosts)
    resources = part.get("job_resources").get("nodes")
    if len(names) > 1 and isinstance(resources.value, dict):
        cpus = {each.get("name").text(""): _count(each.get("cpus")) for each in resources.get("allocation").items()}
        if set(cpus) == set(names) and sum(cpus.values()) > 0:
            return {name: cpus[name] / sum(cpus.values()) for name in names}
    return {name: 1.0 / len(names) for name in names}


def _count(part: Part) -> float:
    return finite(part.get("count") if isinstance(part.value, dict) else part)


def _parsed(part: Part, parse: Any) -> Any:
    try:
        return parse(part.text(""))
    except ValueError as error:
        if isinstance(error, InvalidInstance):
            raise
        part.refuse(str(error))


# Constraints ---------------------------------------------------------------------------------------------------------------------


def _memberships(nodes: list[_Node], partitions: list[Part]) -> dict[str, set[str]]:
    """Return the nodes of each partition."""
    member: dict[str, set[str]] = {}
    for node in nodes:
        for partition in node.partitions:
            member.setdefault(partition, set()).add(node.name)
    for part in partitions:
        listed = part.get("nodes")
        names = _parsed(listed.get("configured") if isinstance(listed.value, dict) else listed, hosts)
        member.setdefault(part["name"].text(), set()).update(names)
    return member


def _allowed(job: _Job, nodes: list[_Node], member: Mapping[str, set[str]]) -> BoolArray:
    """Where a job may run, (nodes,)."""
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


# Weights -------------------------------------------------------------------------------------------------------------------------


def _shares(path: str | os.PathLike[str], jobs: list[_Job], users: str, account: Account) -> dict[str, float]:
    """Return the weight of each owner: its shares, divided down the tree among those who have jobs here."""
    clusters = {job.part.get("cluster").text("") for job in jobs} - {""}
    parent: dict[str, str] = {}
    raw: dict[tuple[str, str], float] = {}  # (account, user), or (account, "") of the account itself
    for part in _records(path, "associations"):
        if part.get("partition").text("") or (clusters and part.get("cluster").text("") not in clusters):
            continue
        name, user = part["account"].text(), part.get("user").text("")
        shares = finite(part["shares_raw"]) if number(part["shares_raw"]) is not None else 1.0
        if shares == _PARENT:
            account.note("an association that uses the shares of its parent counts as one share")
        elif shares == 0:
            account.note(f"an association with no shares counts as {_LEAST} of one: a weight is > 0")
        raw[name, user] = 1.0 if shares == _PARENT else max(shares, _LEAST)
        if not user:
            parent[name] = part.get("parent_account").text("")

    leaves = {(job.account, job.user) for job in jobs}
    for lacking, what in ((len({name for name, _ in leaves} - set(parent)), "account"), (len(leaves - set(raw)), "user")):
        if lacking:
            account.note(f"the associations lack {plural(lacking, what)} of jobs: one share each")
    children: dict[str, set[tuple[str, str]]] = {}  # what has jobs below an account: users of it, and accounts
    for leaf in leaves:
        above, below, seen = leaf[0], leaf, set[str]()
        while below not in children.setdefault(above, set()):
            children[above].add(below)
            if above == _ROOT or above in seen:
                break
            seen.add(above)
            below, above = (above, ""), parent.get(above) or _ROOT

    def weight(entity: tuple[str, str]) -> float:
        name, user = entity
        above = name if user else parent.get(name) or _ROOT
        own = raw.get(entity, 1.0)
        if above == _ROOT:
            return own
        return weight((above, "")) * own / sum(raw.get(each, 1.0) for each in children[above])

    result: dict[str, float] = {}
    for name, user in sorted(leaves):
        owner = user if users == "user" else name
        result[owner] = result.get(owner, 0.0) + weight((name, user))
    return result
