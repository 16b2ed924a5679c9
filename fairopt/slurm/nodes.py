"""Nodes and partitions of Slurm: what a node offers, which nodes a partition has, and where a job may run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.clusters.json_export import Part
from fairopt.instance import BoolArray
from fairopt.instance.hosts import unfolded
from fairopt.slurm.jobs import Job
from fairopt.slurm.pieces import pieces_of
from fairopt.slurm.reading import parsed, read_records
from fairopt.slurm.syntax import Features, features, finite, gres, number, words

__all__ = ["Node", "Partition", "allowed_nodes", "read_node", "read_partitions", "total_tres"]

_NO_CPUS = 2**32 - 2  # what stands for no limit, or more
_CLOSED = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILED", "FAILING", "FUTURE", "INVALID_REG", "NOT_RESPONDING"}
_CLOSED |= {"NO_RESPOND", "NO_RESP", "UNKNOWN", "INVAL"}
_MAINTENANCE = {"MAINT", "MAINTENANCE"}
_RESERVED = {"RESERVED", "RESV"} | _MAINTENANCE
_OPEN = {"ALLOC", "ALLOCATED", "COMP", "COMPLETING", "IDLE", "MIX", "MIXED", "PLND", "PLANNED", "BLOCK", "BLOCKED", "UNDRAIN", "RESUME"}
_OPEN |= {"CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "EXTERNAL", "PERFCTRS", "NPC", "RES", "NET", "POW_DN", "POW_UP", "POWER_DRAIN"}
_OPEN |= {"POWER_DOWN", "POWERED_DOWN", "POWERING_DOWN", "POWER_UP", "POWERING_UP", "PWR_DOWN"}  # nodes that Slurm wakes for a job
_OPEN |= {"BOOT", "REBOOT", "REBOOT_CANCEL", "REBOOT_CANCELED", "REBOOT_ISSUED", "REBOOT_REQUESTED", "REBOOT^", "PERSISTENT"}
_MARKS = {"*": "NOT_RESPONDING", "$": "MAINT"}  # behind a state in short forms; others say nothing of what a node offers


@dataclass(frozen=True, slots=True)
class Node:
    """The fields of a node that an instance needs."""

    part: Part
    name: str
    offers: dict[str, float]
    threads: float  # CPUs of a core
    types: set[str]  # "gpu:a100"
    pieces: dict[str, int]  # how many pieces a card has: "shard", "shard:a100"
    features: set[str]
    partitions: list[str]
    closed: str
    reserved: bool  # it is in an active reservation, or in maintenance
    maintenance: bool
    reservation: str  # the name of it, as far as the node says
    strange: tuple[str, ...] = ()  # states that are not known; "": it says none


@dataclass(slots=True)
class Partition:
    """The nodes of a partition, and what it does to jobs.

    Attributes
    ----------
    nodes : set of str
    per_cpu, per_node : float
        The memory in MiB of a job that asks for none.
    qos : str
        The QOS that limits its jobs.
    exclusive : bool
        Whether each job has its nodes alone (``OverSubscribe=EXCLUSIVE``).
    shared_by : float
        How many jobs may have a CPU at once (``OverSubscribe=FORCE:4``).
    cpus_of_node : float
        How many CPUs of a node its jobs may have (``MaxCPUsPerNode``).
    tier : float
        ``PriorityTier``.
    preempts : bool
        Whether its jobs may be preempted.
    """

    nodes: set[str]
    per_cpu: float = 0.0
    per_node: float = 0.0
    qos: str = ""
    exclusive: bool = False
    shared_by: float = 1.0
    cpus_of_node: float = math.inf
    tier: float = 1.0
    preempts: bool = False


def read_node(part: Part) -> Node:
    """Read a node: what it offers, and why it offers nothing."""
    listed = [word.upper() for text in (*words(part["state"]), *words(part.get("state_flags"))) for word in text.split("+")]
    states = {word.strip("*~#$@^!%-") for word in listed} | {_MARKS[word[-1]] for word in listed if word[-1:] in _MARKS}
    effective = finite(part.get("effective_cpus"))
    memory = finite(part["real_memory"]) - finite(part.get("specialized_memory"))
    offers = {"cpu": effective or finite(part["cpus"]), "memory": max(memory, 0.0) / 1024}
    types = set()
    generic = parsed(part.get("gres"), gres)
    pieces = pieces_of(generic)
    for name, kind, amount in generic:
        offers[name] = offers.get(name, 0.0) + amount
        if kind and name not in pieces:  # pieces are of the type of their cards
            types.add(f"{name}:{kind}")
    closed = sorted(states & _CLOSED)
    strange = tuple(sorted(states - _CLOSED - _RESERVED - _OPEN)) or (() if states else ("",))
    return Node(
        part,
        part["name"].text(),
        offers,
        finite(part.get("threads")) or 1.0,
        types,
        pieces,
        set(words(part.get("active_features")) or words(part.get("features"))),
        words(part.get("partitions")),
        closed[0].lower() if closed else "",
        bool(states & _RESERVED),
        bool(states & _MAINTENANCE),
        part.get("reservation").text("") or part.get("reservation_name").text(""),
        strange,
    )


def total_tres(nodes: Iterable[Node]) -> dict[str, float]:
    """Return what nodes have together, by TRES; memory in MiB."""
    total: dict[str, float] = {}
    for node in nodes:
        for name, amount in (*node.offers.items(), ("node", 1.0)):
            tres = {"cpu": "cpu", "node": "node", "memory": "mem"}.get(name, f"gres/{name}")
            total[tres] = total.get(tres, 0.0) + amount * (1024 if name == "memory" else 1)
    return total


def read_partitions(nodes: Iterable[Node], path: str | os.PathLike[str] | None) -> dict[str, Partition]:
    """Return the partitions: those that the nodes list, and those of an export of their own."""
    partitions: dict[str, Partition] = {}
    for node in nodes:
        for name in node.partitions:
            partitions.setdefault(name, Partition(set())).nodes.add(node.name)
    if path is None:
        return partitions
    known = {node.name for node in nodes}
    listed: set[str] = set()
    for part in read_records(path, "partitions"):
        of = part.get("nodes")
        names = parsed(of.get("configured") if isinstance(of.value, dict) else of, unfolded)
        listed.update(names)
        partition = partitions.setdefault(part["name"].text(), Partition(set()))
        partition.nodes.update(names)
        own = part.get("qos")
        partition.qos = own.get("assigned").text("") if isinstance(own.value, dict) else own.text("")
        defaults = part.get("defaults")
        partition.per_cpu = _memory(part.get("default_memory_per_cpu"), defaults.get("partition_memory_per_cpu"))
        partition.per_node = _memory(part.get("default_memory_per_node"), defaults.get("partition_memory_per_node"))
        _read_policy(part, partition)
    if listed and not listed & known:
        Part(None, str(path)).refuse("the nodes do not have a single node of these partitions; export both of the same cluster")
    return partitions


def _read_policy(part: Part, partition: Partition) -> None:
    """Read what a partition does to its jobs, in the words of ``scontrol show partitions`` or of its JSON."""
    text, most = part.get("oversubscribe").text(""), part.get("maximums")
    shared = most.get("oversubscribe") if isinstance(most.value, dict) else Part(None, "")
    jobs = _stated(shared.get("jobs")) if isinstance(shared.value, dict) else None
    kind, _, times = text.upper().partition(":")
    partition.exclusive = kind == "EXCLUSIVE" or jobs == 0
    partition.shared_by = float(times) if kind == "FORCE" and times.isdigit() else 1.0
    if isinstance(shared.value, dict) and "force" in {word.lower() for word in words(shared.get("flags"))} and jobs:
        partition.shared_by = jobs
    cpus = _stated(most.get("cpus_per_node")) if isinstance(most.value, dict) else None
    cpus = cpus or _stated(part.get("maximum_cpus_per_node"))
    partition.cpus_of_node = cpus if cpus and np.isfinite(cpus) and cpus < _NO_CPUS else math.inf
    tier = part.get("priority")
    given = _stated(tier.get("tier")) if isinstance(tier.value, dict) else _stated(part.get("priority_tier"))
    partition.tier = 1.0 if given is None else given
    modes = words(part.get("preemption_mode"))
    partition.preempts = bool(modes) and not {mode.upper() for mode in modes} & {"OFF", "DISABLED"}


def _stated(part: Part) -> float | None:
    """Return a number, as `number`; None where it is negative, as older versions write what is not set."""
    return None if isinstance(part.value, int | float) and part.value < 0 else number(part)


def _memory(*parts: Part) -> float:
    """Return the first amount that is set; an infinite one says nothing, as UNLIMITED does in text."""
    return next((value for part in parts if (value := number(part)) and np.isfinite(value)), 0.0)


def allowed_nodes(
    job: Job, nodes: Sequence[Node], partitions: Mapping[str, Partition], opens: Callable[[Node, Job], bool] = lambda node, job: True
) -> BoolArray:
    """Return where a job may run, (nodes,); ``opens`` says whether reservations open a node to it.

    A job that asks for several types of a generic resource, which no node has together, may run on nodes that have one of them.
    """
    types = set(job.types)
    apart = len(types) > 1 and not any(types <= node.types for node in nodes)
    inside = set().union(*(partitions[name].nodes for name in job.partitions if name in partitions))
    met: Features = features(job.features) if job.features else lambda has: True
    return np.array(
        [
            (not partitions or not job.partitions or node.name in inside)
            and met(node.features)
            and (bool(types & node.types) if apart else types <= node.types)
            and (not job.required or node.name in job.required)
            and node.name not in job.excluded
            and opens(node, job)
            for node in nodes
        ],
        bool,
    )
