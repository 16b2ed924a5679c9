"""How many tasks a job of Slurm is, and what one task demands.

A job on one node is one task. A job on several nodes is one task for each of its Slurm tasks, if CPUs and generic resources divide evenly,
else one for each node. It is one for each node, too, if it asks for tasks per node, or for whole nodes. An instance cannot express that
tasks must start together, so the optimum is a relaxation.

**What runs** demands what it was given. **What waits** demands what running jobs with the same request were given; without such jobs, what
it asks for, and:

* its CPUs are rounded up to whole cores, where running jobs have whole cores, and more CPUs than they asked for; a job that uses fewer
  threads of a core than there are (``--threads-per-core``, ``--hint=nomultithread``) has all CPUs of its cores;
* ``--cpus-per-gpu`` and ``--mem-per-gpu`` count for each generic resource;
* a job that names no memory gets ``DefMemPerCPU`` or ``DefMemPerNode`` of its partition;
* without these, and with ``--mem=0``, it gets all memory of its nodes: it demands as much as the smallest node that it may run on has;
* ``--exclusive`` demands as many CPUs and generic resources as every node that it may run on has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.instance import BoolArray
from fairopt.slurm.jobs import Job, Request
from fairopt.slurm.nodes import Node, Partition
from fairopt.slurm.syntax import number
from fairopt.wording import plural

__all__ = ["Size", "Sizes"]

_Amounts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Size:
    """A job as tasks: how many, and the demand of one; whether they are on several nodes."""

    tasks: float
    demand: dict[str, float]
    several: bool


def _divided(total: Mapping[str, float], request: Request, nodes: float) -> Size:
    """Return a job on so many nodes as tasks."""
    by_node = request.exclusive or request.whole_memory or request.tasks_per_node * nodes == request.tasks
    pieces = nodes if by_node or request.tasks < nodes or _uneven(total, request.tasks) else request.tasks
    pieces = max(pieces, 1.0) if nodes > 1 else 1.0
    return Size(pieces, {name: amount / pieces for name, amount in total.items()}, nodes > 1)


def _fits(amounts: Mapping[str, float], node: Node) -> bool:
    return all(amount <= node.offers.get(name, 0.0) for name, amount in amounts.items())


def _uneven(amounts: Mapping[str, float], pieces: float) -> bool:
    """Return whether a piece would have a fraction of a CPU or of a generic resource; memory may be divided."""
    return any(amount % pieces for name, amount in amounts.items() if name != "memory")


class Sizes:
    """The sizes of the jobs of an export.

    Parameters
    ----------
    jobs : jobs that hold something or wait
    nodes : nodes that accept work
    partitions : mapping
    account : Account
        Gets notes on jobs that take whole nodes, or all memory of one.
    """

    def __init__(self, jobs: Iterable[Job], nodes: Sequence[Node], partitions: Mapping[str, Partition], account: Account) -> None:
        self._partitions, self._account = partitions, account
        kinds = dict.fromkeys((*sorted(node.offers.items()), node.threads) for node in nodes)
        number_of = {kind: k for k, kind in enumerate(kinds)}
        self._kind = np.array([number_of[*sorted(node.offers.items()), node.threads] for node in nodes], int)
        self._of_kind = {int(k): node for k, node in zip(self._kind, nodes, strict=True)}
        self._whole: dict[str, float] = {}  # number of jobs by why they take all of a node
        self._computed: dict[tuple[Any, ...], Size] = {}
        jobs = list(jobs)
        self._memory_is_shared = _shares_memory(jobs)
        self._whole_cores = _gives_whole_cores(jobs, {node.name: node.threads for node in nodes})
        found: dict[tuple[Any, ...], Counter[tuple[float, _Amounts, bool]]] = {}
        for job in jobs:
            if job.given is not None:
                size = self._held(job)
                sizes = found.setdefault((job.request.key, job.partition), Counter())
                sizes[size.tasks, tuple(sorted(size.demand.items())), size.several] += 1
        self._learned = {key: _most_common(sizes) for key, sizes in found.items()}

    def of(self, job: Job, allowed: BoolArray) -> Size:
        """Return the size of a job that may run on these nodes."""
        if job.holds:
            return self._held(job)
        request = job.request
        for partition in job.partitions or (job.partition,):
            learned = self._learned.get((request.key, partition))
            if learned is not None and not (request.exclusive or request.whole_memory):
                return learned
        key = request.key, job.constraints, job.partition, number(job.part.get("max_nodes"))
        if key not in self._computed:
            self._computed[key] = self._waiting(job, [self._of_kind[k] for k in np.unique(self._kind[allowed]).tolist()])
        if request.exclusive:
            self._count("--exclusive", job)
        if request.whole_memory == "--mem=0" or (request.whole_memory and not self._default(job)):
            self._count(request.whole_memory, job)
        return self._computed[key]

    def _held(self, job: Job) -> Size:
        request = job.request
        total = dict(request.amounts if job.given is None else job.given)
        if not set(total) - {"cpu", "memory"}:  # generic resources are only in TRES strings where accounting tracks them
            total |= {name: amount for name, amount in request.amounts.items() if name not in ("cpu", "memory")}
        return _divided(total, request, float(len(job.on)) or request.nodes)

    def _waiting(self, job: Job, nodes: list[Node]) -> Size:
        """Return the size of a job that waits, of which nodes it may run on only one of each kind."""
        request = job.request
        each = {name: amount / request.nodes for name, amount in request.amounts.items()}
        if request.whole_memory == "none" and (default := self._default(job)):
            each["memory"] = default / 1024

        def cpus(node: Node) -> float:
            """Return the CPUs of the cores that the job needs on a node: it may use fewer threads of a core than there are."""
            asked, used = each.get("cpu", 0.0), min(request.threads or node.threads, node.threads)
            return math.ceil(asked / used) * node.threads if self._whole_cores or used < node.threads else asked

        fitting = [node for node in nodes if _fits(each | {"cpu": each.get("cpu", 0.0) if not request.threads else cpus(node)}, node)]
        if fitting:
            each["cpu"] = cpus(min(fitting, key=lambda node: node.threads))
        elif nodes and request.threads:
            each["cpu"] = min(map(cpus, nodes))
        if fitting and request.whole_memory and "memory" not in each and self._memory_is_shared:
            each["memory"] = min(node.offers["memory"] for node in fitting)
        if fitting and request.exclusive:
            for name in {name for node in fitting for name in node.offers} - {"memory"}:
                each[name] = min(node.offers.get(name, 0.0) for node in fitting)
        each = {name: amount for name, amount in each.items() if amount}
        size = _divided({name: amount * request.nodes for name, amount in each.items()}, request, request.nodes)
        return size if fitting else self._split(job, size, nodes)

    def _split(self, job: Job, size: Size, nodes: list[Node]) -> Size:
        """Divide a job that fits on no single node into its Slurm tasks, unless it must run on one node."""
        pieces = job.request.tasks
        if size.several or pieces <= 1 or number(job.part.get("max_nodes")) == 1 or _uneven(size.demand, pieces):
            return size
        return Size(pieces, {name: amount / pieces for name, amount in size.demand.items()}, True)

    def _default(self, job: Job) -> float:
        """Return the memory in MiB on each node of a job that names none, 0 if its partitions have no default."""
        cpus = job.request.amounts.get("cpu", 0.0) / job.request.nodes
        found = (self._partitions[name] for name in job.partitions or (job.partition,) if name in self._partitions)
        return next((memory for each in found if (memory := each.per_node or each.per_cpu * cpus)), 0.0)

    def _count(self, why: str, job: Job) -> None:
        self._whole[why] = self._whole.get(why, 0.0) + job.copies

    def note(self) -> None:
        """Say how many waiting jobs take all of a node."""
        memory = "counted with none, as no running job holds memory"
        if self._memory_is_shared:
            memory = "counted with that of the smallest node that could run it"
        words = {
            "--mem=0": ("asks", "ask", f"for all memory of a node (--mem=0): {memory}"),
            "none": ("names", "name", f"no memory, and DefMemPerCPU or DefMemPerNode of the partition is not known: {memory}"),
            "--exclusive": (
                "asks",
                "ask",
                "for whole nodes (--exclusive): counted with the CPUs that every node has that could run it",
            ),
        }
        for why, (one, many, rest) in words.items():
            if why in self._whole:
                self._account.note(f"{plural(self._whole[why], f'waiting job {one}', f'waiting jobs {many}')} {rest}")


def _shares_memory(jobs: Sequence[Job]) -> bool:
    """Return whether Slurm shares out memory, which it does only if it is told to: if not, running jobs hold none, and nobody names any."""
    named = (job.request.amounts if job.given is None else job.given for job in jobs)
    return any("memory" in amounts for amounts in named) or all(job.given is None for job in jobs)


def _gives_whole_cores(jobs: Sequence[Job], threads: Mapping[str, float]) -> bool:
    """Return whether jobs on one node have whole cores, and one of them more CPUs than it asked for."""
    rounded = False
    for job in jobs:
        if job.given is None or len(job.on) != 1:
            continue
        of_core = threads.get(next(iter(job.on)), 1.0)
        if job.given.get("cpu", 0.0) % of_core:
            return False
        rounded |= job.request.amounts.get("cpu", 0.0) % of_core > 0
    return rounded


def _most_common(sizes: Counter[tuple[float, _Amounts, bool]]) -> Size:
    tasks, demand, several = min(sizes, key=lambda size: (-sizes[size], size[1]))
    return Size(tasks, dict(demand), several)
