"""Nodes and jobs in Slurm's format: what a node offers, and what a job asks for or holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.imports.json_export import Part, read_json
from fairopt.imports.slurm_syntax import array_size, features, finite, gres, hosts, number, tres, words

__all__ = ["HOLDS", "Job", "Node", "parsed", "read_job", "read_node", "read_records", "split_job"]

_COMMANDS = {
    "nodes": "scontrol show nodes --json > nodes.json",
    "jobs": "squeue --json > jobs.json",
    "partitions": "scontrol show partitions --json > partitions.json",
    "associations": "the answer of slurmrestd to /slurmdb/VERSION/associations",
}
_CLOSED = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILED", "FAILING", "FUTURE", "INVALID_REG", "MAINT", "NOT_RESPONDING"}
_CLOSED |= {"NO_RESPOND", "UNKNOWN"}
HOLDS, _WAITS = ("RUNNING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"), ("PENDING",)
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


@dataclass(frozen=True, slots=True)
class Node:
    """The fields of a node that an instance needs."""

    part: Part
    name: str
    offers: dict[str, float]
    types: set[str]  # "gpu:a100"
    features: set[str]
    partitions: list[str]
    closed: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job: whose it is, what it asks for, where it runs and where it may run."""

    part: Part
    name: str
    owner: str
    account: str
    user: str
    state: str
    why: str  # why it is not demand; else empty
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
        """What restricts where it may run, to tell shapes apart."""
        return self.partitions, self.features, self.types, self.required, self.excluded

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.part.place} (job {self.name})"


def read_records(path: str | os.PathLike[str], kind: str) -> list[Part]:
    """Return the records of a kind, of any version of the answer."""
    export = read_json(path, _COMMANDS[kind])
    if isinstance(export.value, dict) and kind not in export.value:
        for error in export.get("errors").value or []:
            export.refuse(f"Slurm answered with an error, {error}; export it again: {_COMMANDS[kind]}")
        if "sinfo" in export.value:
            export.refuse(f"this is sinfo --json of 22.05 or later, which groups nodes; export them one by one: {_COMMANDS['nodes']}")
        has = ", ".join(list(export.value)[:6]) or "nothing"
        export.refuse(
            f'there are no "{kind}" in this answer (it has {has}): not an export of {kind}, or of an unknown version; {_COMMANDS[kind]}'
        )
    records = export[kind].items()
    if not records and kind in ("nodes", "jobs"):
        export.refuse(f"the list of {kind} is empty; export it again: {_COMMANDS[kind]}")
    return records


def read_node(part: Part) -> Node:
    """Read a node: what it offers, and why it offers nothing."""
    states = {word.strip("*~#$@^!%-").upper() for text in words(part["state"]) for word in text.split("+")}
    states |= {word.upper() for word in words(part.get("state_flags"))}
    effective = finite(part.get("effective_cpus"))
    memory = finite(part["real_memory"]) - finite(part.get("specialized_memory"))
    offers = {"cpu": effective or finite(part["cpus"]), "memory": max(memory, 0.0) / 1024}
    types = set()
    for name, kind, amount in parsed(part.get("gres"), gres):
        offers[name] = offers.get(name, 0.0) + amount
        if kind:
            types.add(f"{name}:{kind}")
    closed = sorted(states & _CLOSED)
    return Node(
        part,
        part["name"].text(),
        offers,
        types,
        set(words(part.get("active_features")) or words(part.get("features"))),
        words(part.get("partitions")),
        closed[0].lower() if closed else "",
    )


def read_job(part: Part, users: str) -> Job:
    """Read a job."""
    states = [word.upper() for word in words(part["job_state"])]
    state = next((state for state in states if state in (*HOLDS, *_WAITS, *_ENDED)), None)
    if state is None:
        part["job_state"].refuse(f"the state {', '.join(states) or 'is empty and'} is not known; the version of this export may be newer")
    reason = part.get("state_reason").text("None")
    why = f"ended ({state.lower()}): holds nothing and asks for nothing" if state in _ENDED else ""
    if state in _WAITS and reason in _NOT_READY:
        why = f"not ready ({reason}): asks for nothing yet"
    name, owner = part.get("account").text("") or "(no account)", part.get("user_name").text("") or "(no user)"
    identity = str(part["job_id"].value)
    if why:
        return Job(part, identity, "", name, owner, state, why, 0.0, {}, (), "", (), (), (), {}, False)
    on = _held(part) if state in HOLDS else {}
    request, types = _request(part, state in HOLDS)
    nodes = len(on) or max(finite(part.get("node_count")) or 1.0, 1.0)
    pieces = 1.0
    if nodes > 1:
        pieces = max(finite(part.get("tasks")) or 1.0, 1.0)
        if pieces < nodes or _uneven(request, pieces):
            pieces = float(nodes)
    copies = 1.0
    pending = part.get("array_task_string").text("")
    if pending and number(part.get("array_task_id")) is None:
        copies = float(parsed(part["array_task_string"], array_size))
    parsed(part.get("features"), lambda text: features(text) if text else None)
    return Job(
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
        tuple(parsed(part.get("required_nodes"), hosts)),
        tuple(parsed(part.get("excluded_nodes"), hosts)),
        on,
        nodes > 1,
    )


def split_job(job: Job, nodes: list[Node]) -> Job:
    """Divide a waiting job that fits on no single node into its Slurm tasks, unless it must run on one node."""
    pieces = finite(job.part.get("tasks")) or 1.0
    if job.state in HOLDS or job.spans or pieces <= 1 or number(job.part.get("max_nodes")) == 1 or _uneven(job.request, pieces):
        return job
    if any(all(amount <= node.offers.get(name, 0.0) for name, amount in job.request.items()) for node in nodes):
        return job
    request = {name: amount / pieces for name, amount in job.request.items()}
    return replace(job, tasks=job.tasks * pieces, request=request, spans=True)


def _uneven(request: Mapping[str, float], pieces: float) -> bool:
    """Return whether a piece would have a fraction of a CPU or of a generic resource; memory may be divided."""
    return any(amount % pieces for name, amount in request.items() if name != "memory")


def _request(part: Part, holds: bool) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return what a job asks for (what it was given, if it runs) in all, and the types of generic resources that it asks for."""
    text = part.get("tres_alloc_str") if holds and part.get("tres_alloc_str").value else part.get("tres_req_str")
    amounts = parsed(text, tres)
    cpus = amounts.get("cpu") or finite(part.get("cpus"))
    nodes = finite(part.get("node_count")) or 1.0
    memory = amounts.get("mem")
    if memory is None:
        memory = finite(part.get("memory_per_node")) * nodes or finite(part.get("memory_per_cpu")) * cpus
    if not cpus:
        part.get("tres_req_str").refuse("the job asks for no CPU, here or in cpus; export all fields")
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
            for base, kind, amount in parsed(part.get(key), gres):
                if base in ("cpu", "mem", "node", "billing"):
                    continue
                request[base] = request.get(base, 0.0) + amount * times
                if kind:
                    types.add(f"{base}:{kind}")
    return request, tuple(sorted(types))


def _held(part: Part) -> dict[str, float]:
    """Return the part of a running job on each node: by its CPUs there, else equal parts."""
    names = parsed(part.get("nodes"), hosts)
    resources = part.get("job_resources").get("nodes")
    if len(names) > 1 and isinstance(resources.value, dict):
        cpus = {each.get("name").text(""): _count(each.get("cpus")) for each in resources.get("allocation").items()}
        if set(cpus) == set(names) and sum(cpus.values()) > 0:
            return {name: cpus[name] / sum(cpus.values()) for name in names}
    return {name: 1.0 / len(names) for name in names}


def _count(part: Part) -> float:
    return finite(part.get("count") if isinstance(part.value, dict) else part)


def parsed(part: Part, parse: Any) -> Any:
    """Read a text of Slurm's own syntax; refuse it with its place."""
    try:
        return parse(part.text(""))
    except ValueError as error:
        if isinstance(error, InvalidInstance):
            raise
        part.refuse(str(error))
