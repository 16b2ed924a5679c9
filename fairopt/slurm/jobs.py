"""Jobs of Slurm: whose they are, what they ask for, what they were given, and what restricts where they run.

What a job *asks for* (``tres_req_str``, ``tres_per_*``, ``memory_per_*``) and what it *was given* (``tres_alloc_str``) are two things.
``--gres=gpu:1`` may be given a v100, and then ``tres_alloc_str`` names that type, but the job could run on any other.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from fairopt.clusters.json_export import Part
from fairopt.instance.hosts import unfolded
from fairopt.slurm.pieces import card_type
from fairopt.slurm.reading import parsed
from fairopt.slurm.syntax import array_size, features, finite, gres, number, tres, words

__all__ = ["ENDED", "HOLDS", "NOT_READY", "WAITS", "Job", "Request", "amounts_of", "read_job"]

HOLDS, WAITS = ("RUNNING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"), ("PENDING",)
ENDED: tuple[str, ...] = (
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
ENDED += ("TIMEOUT", "LAUNCH_FAILED", "SPECIAL_EXIT")
NOT_READY: tuple[str, ...] = (
    "Dependency",
    "DependencyNeverSatisfied",
    "JobHeldUser",
    "JobHeldAdmin",
    "BeginTime",
    "Reservation",
    "Cleaning",
)
NOT_READY += ("BurstBufferStageIn", "BurstBufferOperation", "FedJobLock", "JobHoldMaxRequeue", "Prolog")
_NEVER = re.compile(  # reasons why a job cannot start, whatever ends: it breaks a limit on single jobs, or a budget is used up
    r"Partition(Down|Inactive|NodeLimit|TimeLimit)|BadConstraints|Invalid(Account|QOS)|(QOS|Account)NotAllowed|MaxMemPerLimit"
    r"|ReservationDeleted|DeadLine|TimeLimit|AssociationTimeLimit|QOSTimeLimit|QOSUsageThreshold|FrontEndDown|JobLaunchFailure"
    r"|SystemFailure|launch[ _]failed.*|job[ _]requeued[ _]in[ _]held[ _]state"
    r"|(Assoc|QOS)(Max|Min)\w*(PerJob\w*|PerNode\w*)|QOSMin\w*|(Assoc|QOS)Max(Node|Unknown)?\w*WallDuration\w*"
    r"|(Assoc|QOS)(Grp|Max)(?!\w*RunMin)\w*(Minutes|Mins|Wall)\w*"
)
_MEMORY_SET = {"JOB_MEM_SET", "EXACT_MEMORY_REQUESTED"}  # flags of a job whose user named its memory: until 22.05, later
_NO_GENERIC = ("cpu", "mem", "node", "billing", "energy", "vmem", "pages")


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for, in all.

    Attributes
    ----------
    amounts : mapping
        CPUs, memory in GiB and generic resources; no memory where ``whole_memory`` says why.
    whole_memory : str
        "--mem=0" (all memory of each node), "none" (no memory was named), or empty.
    nodes, tasks, tasks_per_node : float
        The fewest nodes it can have; its Slurm tasks; how many of these on a node, 0 if free.
    exclusive : bool
        ``--exclusive``: all CPUs and generic resources of its nodes.
    types : tuple
        Types of generic resources, such as "gpu:a100".
    threads : float
        CPUs that it uses of each core (``--hint=nomultithread``: 1); 0: all.
    """

    amounts: dict[str, float]
    whole_memory: str
    nodes: float
    tasks: float
    tasks_per_node: float
    exclusive: bool
    types: tuple[str, ...]
    threads: float = 0.0

    @property
    def key(self) -> tuple[Any, ...]:
        """The request as a key of a mapping."""
        how = self.whole_memory, self.nodes, self.tasks, self.tasks_per_node, self.exclusive, self.types, self.threads
        return tuple(sorted(self.amounts.items())), how


@dataclass(frozen=True, slots=True)
class Job:
    """A job: whose it is, what it asks for, where it runs and where it may run.

    Attributes
    ----------
    why : str
        Why it is not demand; else empty.
    copies : float
        How many such jobs the record stands for: tasks of an array that wait.
    array, at_once : str, float
        Number of its array ("" if it is in none), and how many tasks of the array may run at once.
    heterogeneous : str
        Number of the heterogeneous job that it is a component of; else empty.
    partition : str
        The first partition that it names; that it runs in.
    partitions, features, types, required, excluded
        What restricts where it may run.
    reservation, qos : str
        Names; empty if it has none.
    minutes : float
        Its time limit; inf if it has none, or if the export does not say.
    given : dict or None
        What it was allocated in all; None if it holds nothing, or if the export does not say.
    on : dict
        Part of the job on each node.
    """

    part: Part
    name: str
    owner: str
    account: str
    user: str
    state: str
    why: str
    copies: float
    array: str
    at_once: float
    heterogeneous: str
    partition: str
    partitions: tuple[str, ...]
    features: str
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    reservation: str
    qos: str
    minutes: float
    request: Request
    given: dict[str, float] | None
    on: dict[str, float]

    @property
    def types(self) -> tuple[str, ...]:
        """Types of generic resources that it asks for."""
        return self.request.types

    @property
    def holds(self) -> bool:
        """Whether it holds resources now."""
        return self.state in HOLDS

    @property
    def constraints(self) -> tuple[Any, ...]:
        """What restricts where it may run, to tell shapes apart."""
        return self.partitions, self.features, self.types, self.required, self.excluded, self.reservation

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.part.place} (job {self.name})"


_NO_REQUEST = Request({}, "", 1.0, 1.0, 0.0, False, ())


def read_job(part: Part, users: str) -> Job:
    """Read a job."""
    states = [word.upper() for word in words(part["job_state"])]
    state = next((state for state in states if state in (*HOLDS, *WAITS, *ENDED)), None)
    if state is None:
        part["job_state"].refuse(f"the state {', '.join(states) or 'is empty and'} is not known; the version of this export may be newer")
    reason = part.get("state_reason").text("None").partition(",")[0]
    why = f"ended ({state.lower()}): holds nothing and asks for nothing" if state in ENDED else ""
    if state in WAITS and reason in NOT_READY:
        why = f"not ready ({reason}): requests no resources yet"
    elif state in WAITS and _NEVER.fullmatch(reason):
        why = f"cannot start ({reason}), so it requests no resources"
    name, owner = part.get("account").text("") or "(no account)", part.get("user_name").text("") or "(no user)"
    holds = state in HOLDS
    partitions = tuple(words(part.get("partition")))
    array, at_once, copies = ("", 0.0, 1.0) if why else _array(part)
    if not why:
        parsed(part.get("features"), lambda text: features(text) if text else None)
    return Job(
        part=part,
        name=str(part["job_id"].value),
        owner=owner if users == "user" else name,
        account=name,
        user=owner,
        state=state,
        why=why,
        copies=copies,
        array=array,
        at_once=at_once,
        heterogeneous="" if why else _identity(part.get("het_job_id")),
        partition=partitions[0] if partitions else "",
        partitions=partitions,
        features=part.get("features").text(""),
        required=() if why else tuple(parsed(part.get("required_nodes"), unfolded)),
        excluded=() if why else tuple(parsed(part.get("excluded_nodes"), unfolded)),
        reservation=part.get("resv_name").text(""),
        qos=part.get("qos").text(""),
        minutes=math.inf if (limit := number(part.get("time_limit"))) is None or limit <= 0 else limit,
        request=_NO_REQUEST if why else _request(part),
        given=_given(part) if holds else None,
        on=_held(part) if holds else {},
    )


def _array(part: Part) -> tuple[str, float, float]:
    """Return the number of the array, how many of its tasks may run at once (0: all), and how many tasks the record stands for."""
    text, copies = part.get("array_task_string").text(""), 1.0
    limit = finite(part.get("array_max_tasks"))
    if text and number(part.get("array_task_id")) is None:
        copies = float(parsed(part["array_task_string"], array_size))
        after = text.partition("%")[2].strip("[] ")
        limit = limit or (float(after) if after.isdigit() and after.isascii() and len(after) < 10 else 0.0)
    return _identity(part.get("array_job_id")), limit, copies


def _identity(part: Part) -> str:
    """Return the number of a job, empty for 0 or none."""
    value = number(part)
    return f"{value:.0f}" if value else ""


def amounts_of(part: Part) -> dict[str, float]:
    """Return the amounts of a TRES string: CPUs, memory in GiB, nodes ("node") and generic resources, whatever their type."""
    listed = parsed(part, tres)
    found = {"cpu": listed.get("cpu", 0.0), "node": listed.get("node", 0.0)}
    if "mem" in listed:
        found["memory"] = listed["mem"] / 1024
    generic = {name.removeprefix("gres/"): amount for name, amount in listed.items() if name.startswith("gres/")}
    for name, amount in generic.items():
        base, _, kind = name.partition(":")
        if not kind or base not in generic:  # a typed amount is also in the amount without a type, where that is listed
            found[base] = found.get(base, 0.0) + amount
    return found


def _types(part: Part) -> set[str]:
    names = (name.removeprefix("gres/") for name in parsed(part, tres) if name.startswith("gres/"))
    return {card_type(name) for name in names if ":" in name}


def _request(part: Part) -> Request:
    """Return what a job asks for."""
    amounts, types = amounts_of(part.get("tres_req_str")), _types(part.get("tres_req_str"))
    tasks = max(finite(part.get("tasks")) or 1.0, 1.0)
    per_node = finite(part.get("tasks_per_node"))
    nodes = amounts.pop("node") or finite(part.get("node_count")) or 1.0
    nodes = max(nodes, math.ceil(tasks / per_node) if per_node else 1.0)
    cpus = amounts["cpu"] = amounts["cpu"] or finite(part.get("cpus"))
    if not cpus and not part.get("tres_alloc_str").value:
        part.get("tres_req_str").refuse("the job asks for no CPU, here or in cpus; export all fields")
    generic: dict[str, float] = {}
    for key, times in (("tres_per_job", 1.0), ("tres_per_node", nodes), ("tres_per_task", tasks)):
        for base, kind, amount in parsed(part.get(key), gres):
            if base not in _NO_GENERIC and "/" not in base:
                generic[base] = generic.get(base, 0.0) + amount * times
                types |= {card_type(f"{base}:{kind}")} if kind else set()
    if not set(amounts) - {"cpu", "memory"}:  # generic resources are only in TRES strings where accounting tracks them
        amounts |= generic
    by_generic = sum(amount * amounts.get(base, 0.0) for base, _, amount in parsed(part.get("cpus_per_tres"), gres))
    amounts["cpu"] = max(cpus, by_generic)
    whole = _memory(part, amounts, nodes)
    exclusive = "none" in words(part.get("shared")) or "true" in words(part.get("exclusive"))
    return Request(
        {name: amount for name, amount in amounts.items() if amount},
        whole,
        nodes,
        tasks,
        per_node,
        exclusive,
        tuple(sorted(types)),
        _threads(part.get("threads_per_core")),
    )


def _threads(part: Part) -> float:
    """Return how many CPUs of each core a job uses; 0: all (65,535 and 65,534 stand for that)."""
    value = number(part) or 0.0
    return value if value < 65_534 else 0.0


def _memory(part: Part, amounts: dict[str, float], nodes: float) -> str:
    """Set the memory that the job names, per node, CPU or generic resource; if it names none, return which way it does so.

    ``tres_req_str`` counts ``--mem`` once where the number of nodes is still open, and without ``--mem`` it has the memory of the largest
    node: it counts only where the export does not say what the job names.
    """
    per_node, per_cpu = finite(part.get("memory_per_node")), finite(part.get("memory_per_cpu"))
    per_generic = [(base, amount) for base, _, amount in parsed(part.get("memory_per_tres"), gres) if base in amounts]
    if per_generic:
        amounts["memory"] = sum(amount * amounts[base] for base, amount in per_generic) / 1024
    elif per_node or per_cpu:
        amounts["memory"] = (per_node * nodes or per_cpu * amounts["cpu"]) / 1024
    elif "memory_per_node" in (part.value or ()) or "memory_per_cpu" in (part.value or ()):
        amounts.pop("memory", None)
        return "--mem=0" if {flag.strip() for flag in words(part.get("flags"))} & _MEMORY_SET else "none"
    return ""


def _given(part: Part) -> dict[str, float] | None:
    """Return what a job was allocated in all."""
    if not part.get("tres_alloc_str").value:
        return None
    amounts = amounts_of(part["tres_alloc_str"])
    del amounts["node"]
    return {name: amount for name, amount in amounts.items() if amount}


def _held(part: Part) -> dict[str, float]:
    """Return the part of a running job on each node: by its CPUs there, else equal parts."""
    names = parsed(part.get("nodes"), unfolded)
    if len(names) > 1:
        cpus = _cpus_on(part.get("job_resources"))
        if set(cpus) == set(names) and sum(cpus.values()) > 0:
            return {name: cpus[name] / sum(cpus.values()) for name in names}
    return {name: 1.0 / len(names) for name in names}


def _cpus_on(resources: Part) -> dict[str, float]:
    """Return the CPUs, or the cores, that a job has on each node, as far as the export says."""
    if not isinstance(resources.value, dict):
        return {}
    of_nodes, listed = resources.get("nodes"), resources.get("allocated_nodes")
    if isinstance(of_nodes.value, dict):
        return {each.get("name").text(""): _count(each.get("cpus")) for each in of_nodes.get("allocation").items()}
    if not isinstance(listed.value, list):
        return {}
    cores: dict[str, float] = {}
    for node in listed.items():  # 22.05: the state of each core of each socket
        states = [core.value for socket in node.get("sockets").entries().values() for core in socket.get("cores").entries().values()]
        cores[node.get("nodename").text("")] = float(states.count("allocated"))
    return cores


def _count(part: Part) -> float:
    return finite(part.get("count") if isinstance(part.value, dict) else part)
