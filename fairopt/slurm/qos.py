"""The QOS of a Slurm cluster, from ``sacctmgr -P show qos`` or slurmrestd's answer: limits of what jobs hold at once.

==============================================  ========================================================================
``GrpTRES``, ``GrpJobs``                        of all jobs of the QOS together
``MaxTRESPU``, ``MaxJobsPU``                    of all jobs of the QOS of one user, whatever the account
``MaxTRESPA``, ``MaxJobsPA``                    of all jobs of the QOS of one account
``MaxTRES``, ``MaxTRESPerNode``, ``MinTRES``    of one job, which cannot start if it breaks them
``MaxWall``                                     of the time limit of one job, likewise
==============================================  ========================================================================

A partition may have a QOS, which limits all jobs in the partition, beside their own; of two limits of the same kind and resource that of
the partition counts, unless the QOS of the job has the flag ``OverPartQOS``. The priority of a QOS orders jobs that wait; it divides
nothing in the long run unless it preempts: then its jobs are in a queue of a higher tier, ``account/user/qos:NAME``. Else it is noted.
Budgets over time (``GrpTRESMins``, ``GrpWall``, ...) are noted, too.

With the flag ``Relative`` (24.05 and later) limits by TRES are percentages of what the cluster has, as it is configured.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Partition
from fairopt.slurm.reading import count_or_inf, minutes, read_records, tres_amounts
from fairopt.slurm.syntax import finite, number, seconds, words
from fairopt.slurm.text import Record
from fairopt.wording import joined, plural

__all__ = ["Qos", "QosLimits", "limits_of_job", "of_both", "read_qos", "tiers_of"]

_OVER_TIME = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall", "MaxTRESMins", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA", "UsageThres")
_FLAGS = {"denyonlimit", "denylimit", "enforceusagethreshold", "noreserve", "nodecay", "usagefactorsafe", "deleted", "notset"}
_FLAGS |= {"partitionmaxnodes", "partitionminnodes", "partitiontimelimit", "partitionmaximumnode", "partitionminimumnode", "relative"}
_FLAGS |= {"requiresreservation", "requiredreservation", "overpartqos", "overridepartitionqos"}  # of text, and of JSON
_OF_JSON = {  # where the answer of slurmrestd has each, below "limits"
    "GrpTRES": ("max", "tres", "total"),
    "MaxTRESPU": ("max", "tres", "per", "user"),
    "MaxTRESPA": ("max", "tres", "per", "account"),
    "MaxTRES": ("max", "tres", "per", "job"),
    "MaxTRESPerNode": ("max", "tres", "per", "node"),
    "MinTRES": ("min", "tres", "per", "job"),
    "GrpJobs": ("max", "active_jobs", "count"),
    "MaxJobsPU": ("max", "jobs", "active_jobs", "per", "user"),
    "MaxJobsPA": ("max", "jobs", "active_jobs", "per", "account"),
    "MaxWall": ("max", "wall_clock", "per", "job"),
    "GrpWall": ("max", "wall_clock", "per", "qos"),
    "GrpTRESMins": ("max", "tres", "minutes", "total"),
}


@dataclass(frozen=True, slots=True)
class QosLimits:
    """What some jobs of a QOS may hold at once: amounts by TRES, memory in MiB; and how many may run."""

    tres: Mapping[str, float] = field(default_factory=dict)
    jobs: float = math.inf

    def without(self, other: QosLimits) -> QosLimits:
        """Return those that the other does not set."""
        kept = {name: amount for name, amount in self.tres.items() if name not in other.tres}
        return QosLimits(kept, self.jobs if other.jobs == math.inf else math.inf)

    def __bool__(self) -> bool:
        return bool(self.tres) or self.jobs < math.inf


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS.

    Attributes
    ----------
    together, user, account : QosLimits
        Of all its jobs, of those of each user, of those of each account.
    job, node, least : mapping
        What one job may have in all, and on one node; what it must have.
    minutes : float
        The longest time limit.
    over_partition : bool
        Whether its limits come before those of the QOS of a partition.
    priority : float
    preempts : tuple of str
        The QOS whose jobs it preempts.
    over_time : tuple of str
        Budgets over time that it has.
    flags : tuple of str
    """

    part: Part
    name: str
    together: QosLimits
    user: QosLimits
    account: QosLimits
    job: Mapping[str, float]
    node: Mapping[str, float]
    least: Mapping[str, float]
    minutes: float
    over_partition: bool
    priority: float
    preempts: tuple[str, ...]
    over_time: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def relative(self) -> bool:
        """Whether its limits by TRES are percentages."""
        return "relative" in map(_plain, self.flags)

    def of(self, total: Mapping[str, float]) -> Qos:
        """Return it with amounts, if its limits are percentages of these totals by TRES."""
        if not self.relative:
            return self

        def amounts(percent: Mapping[str, float]) -> dict[str, float]:
            return {name: value / 100 * total[name] for name, value in percent.items() if name in total}

        together, user, account = (QosLimits(amounts(own.tres), own.jobs) for own in self.limits)
        job, node, least = map(amounts, (self.job, self.node, self.least))
        return replace(self, together=together, user=user, account=account, job=job, node=node, least=least)

    @property
    def tres(self) -> set[str]:
        """The TRES that it limits."""
        return {tres for own in (*(each.tres for each in self.limits), self.job, self.node, self.least) for tres in own}

    @property
    def limits(self) -> tuple[QosLimits, QosLimits, QosLimits]:
        """Its limits of several jobs: of all, of a user, of an account."""
        return self.together, self.user, self.account


def read_qos(path: str | os.PathLike[str] | None, account: Account, total: Mapping[str, float] | None = None) -> dict[str, Qos]:
    """Return each QOS by its name, and note what an instance cannot have; ``total`` is what the cluster has, by TRES.

    Raises
    ------
    InvalidInstance
        With the file, and the line or the field.
    """
    if path is None:
        return {}
    found = {each.name: each for each in account.unique(account.read(read_records(path, "qos", ("Name",)), _read, "QOS"), "QOS")}
    account.summary["QOS"] = len(found)
    relative = [name for name, each in found.items() if each.relative]
    if relative and total is not None:
        lost = sorted({tres for name in relative for tres in found[name].tres if tres not in total})
        found = {name: each.of(total) for name, each in found.items()}
        account.note(f"limits of the QOS {joined(sorted(relative), 5)} are percentages (Relative): counted of what all nodes here have")
        if lost:
            account.note(f"no node here has {joined(lost, 5)}: percentages of it in the QOS {joined(sorted(relative), 5)} do not count")
    strange = sorted({flag for each in found.values() for flag in each.flags if _plain(flag) not in _FLAGS})
    if strange:
        account.note(f"QOS have the flags {joined(strange, 5)}, which this import does not know: they do not count")
    over_time = [each for each in found.values() if each.over_time]
    if over_time:
        names = joined(sorted({name for each in over_time for name in each.over_time}), 7)
        account.note(f"{plural(len(over_time), 'QOS has', 'QOS have')} budgets over time ({names}), which an instance does not have")
    preempting = [each.name for each in found.values() if each.preempts]
    if preempting:
        account.note(
            f"QOS that preempt others, where PreemptType is preempt/qos: {joined(sorted(preempting), 5)}; their jobs are in higher tiers"
        )
    elif len({each.priority for each in found.values()}) > 1:
        account.note("QOS differ in priority, which orders jobs that wait and preempts nothing: it does not count")
    return found


def tiers_of(qos: Mapping[str, Qos]) -> dict[str, int]:
    """Return the tier of each QOS that preempts others: one more than that of the highest that it preempts.

    QOS that preempt each other, directly or by way of others, are in one tier.
    """
    preempts = {name: [other for other in each.preempts if other in qos and other != name] for name, each in qos.items()}
    reached = {name: _reached(name, preempts) for name in qos}
    below: dict[str, set[str]] = {}
    for name in qos:
        alike = {name, *(other for other in reached[name] if name in reached[other])}
        below[name] = {other for each in alike for other in preempts[each]} - alike
    tiers: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():  # what is preempted comes first
        tiers[name] = 1 + max((tiers[other] for other in below[name]), default=-1)
    return {name: tiers[name] for name in qos if tiers[name]}


def _reached(name: str, preempts: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the QOS that one preempts, directly or by way of others."""
    found: set[str] = set()
    left = [name]
    while left:
        more = [other for other in preempts[left.pop()] if other not in found]
        found.update(more)
        left += more
    return found


def _read(part: Part) -> Qos:
    amounts = {
        name: tres_amounts(_of(part, name)) for name in ("GrpTRES", "MaxTRESPU", "MaxTRESPA", "MaxTRES", "MaxTRESPerNode", "MinTRES")
    }
    jobs = {name: count_or_inf(_of(part, name)) for name in ("GrpJobs", "MaxJobsPU", "MaxJobsPA")}
    preempt = part.get("preempt")
    return Qos(
        part=part,
        name=part["name"].text(),
        together=QosLimits(amounts["GrpTRES"], jobs["GrpJobs"]),
        user=QosLimits(amounts["MaxTRESPU"], jobs["MaxJobsPU"]),
        account=QosLimits(amounts["MaxTRESPA"], jobs["MaxJobsPA"]),
        job=amounts["MaxTRES"],
        node=amounts["MaxTRESPerNode"],
        least=amounts["MinTRES"],
        minutes=minutes(_of(part, "MaxWall")),
        over_partition=any(_plain(word) in ("overpartqos", "overridepartitionqos") for word in words(part.get("flags"))),
        priority=finite(part.get("priority")),
        preempts=tuple(words(preempt.get("list") if isinstance(preempt.value, dict) else preempt)),
        over_time=tuple(name for name in _OVER_TIME if _is_set(_of(part, name))),
        flags=tuple(words(part.get("flags"))),
    )


def _plain(flag: str) -> str:
    """Return the name of a flag as text and JSON have it alike."""
    return flag.replace("_", "").lower()


def _of(part: Part, name: str) -> Part:
    """Return a limit, of a table or of slurmrestd's answer."""
    if isinstance(part, Record):
        return part.get(name)
    found = part.get("limits")
    for key in _OF_JSON.get(name, (name,)):
        found = found.get(key)
    return found


def _is_set(part: Part) -> bool:
    if isinstance(part.value, list):
        return any(number(each["count"]) not in (None, -1, math.inf) for each in part.items())
    if isinstance(part.value, str):
        return bool(part.value) and seconds(part.value) != 0
    value = number(part)
    return value not in (None, -1, math.inf) and not (value == 0 and "UsageThres" in part.place)


def of_both(job: Job, qos: Mapping[str, Qos], partitions: Mapping[str, Partition]) -> list[Qos]:
    """Return the QOS that limit a job, that of its partition and its own, the first of which comes before the second."""
    own = qos.get(job.qos)
    of_partition = qos.get(partitions[job.partition].qos) if job.partition in partitions else None
    order = [each for each in (of_partition, own) if each is not None]
    if own is not None and own.over_partition:
        order.reverse()
    if len(order) == 2 and order[0].name == order[1].name:
        order.pop()
    return order


def limits_of_job(job: Job, qos: Mapping[str, Qos], partitions: Mapping[str, Partition]) -> list[tuple[Qos, tuple[QosLimits, ...]]]:
    """Return the QOS that limit a job, the first of which comes before the second, and their limits that count."""
    order = of_both(job, qos, partitions)
    found: list[tuple[Qos, tuple[QosLimits, ...]]] = []
    for each in order:
        limits = (
            each.limits if not found else tuple(mine.without(first) for mine, first in zip(each.limits, found[0][0].limits, strict=True))
        )
        found.append((each, limits))
    return found
