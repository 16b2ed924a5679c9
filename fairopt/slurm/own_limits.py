"""Limits that a job of Slurm breaks by itself, so that it can never start: of its QOS, of associations, of licences.

Slurm holds a job to ``MaxTRES``, ``MaxTRESPerNode`` and ``MaxWall`` of its association, which has those of the account above it where it
has none of its own, and to ``GrpTRES`` of its association and of every account above. A limit that the QOS of the job or of its partition
has of the same kind and TRES comes before them. A limit of several jobs is broken, too, by a job that asks for more than all of them may
hold together. Where that limit is 0, its jobs are closed out by it, and stay in the instance. A job in several partitions is left out if
it breaks a limit in each of them; else it stays in those in which it breaks none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.instance.tolerances import FITS
from fairopt.slurm.associations import ROOT, Key, key_of, limits_of, of_cluster, read_associations
from fairopt.slurm.jobs import Job
from fairopt.slurm.licenses import PREFIX, License, asked_sets
from fairopt.slurm.nodes import Partition
from fairopt.slurm.qos import Qos, limits_of_job, of_both
from fairopt.slurm.reading import minutes, tres_amounts
from fairopt.slurm.text import Record
from fairopt.wording import plural

__all__ = ["OwnLimits"]


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits of an association by TRES: of all jobs below it, of one job, of one job on a node; and the longest time limit of a job."""

    together: Mapping[str, float]
    job: Mapping[str, float]
    node: Mapping[str, float]
    minutes: float


class OwnLimits:
    """What one job may have.

    Parameters
    ----------
    qos, partitions : mappings
        By name.
    licenses : sequence of License
    associations : path or None
    jobs : jobs
        Of the same cluster.
    account : Account
    """

    def __init__(
        self,
        qos: Mapping[str, Qos],
        partitions: Mapping[str, Partition],
        licenses: Sequence[License],
        associations: str | os.PathLike[str] | None,
        jobs: Iterable[Job],
        account: Account,
    ) -> None:
        self._qos, self._partitions = qos, partitions
        self._licenses = {each.name: each.number for each in licenses}
        self._of: dict[Key, _Limits] = {}
        self._parent: dict[str, str] = {}
        if associations is not None:
            for part in of_cluster(associations, read_associations(associations, ("Account", "User")), jobs, account):
                key = key_of(part)
                self._of[key] = _limits(part)
                if not key[1]:
                    self._parent[key[0]] = part.get("parent_account").text("")

    def able(self, jobs: Iterable[Job], account: Account) -> list[Job]:
        """Return the jobs that run or may start, whatever else runs, each in the partitions in which it may; the others are left out."""
        kept, several = [], 0.0
        for job in jobs:
            if job.holds:
                kept.append(job)
                continue
            inside = job.partitions if len(job.partitions) > 1 else (job.partition,)
            broken = {name: self._broken(job if name == job.partition else replace(job, partition=name)) for name in inside}
            possible = tuple(name for name, why in broken.items() if not why)
            if not possible:
                account.leave_out("job", job.where, f"breaks {next(iter(broken.values()))}, so it can never start", job.copies)
                continue
            kept.append(job if len(possible) == len(broken) else replace(job, partition=possible[0], partitions=possible))
            several += job.copies * (len({self._qos_of(name) for name in possible}) > 1)
        if several:
            account.note(
                f"{plural(several, 'job')} in several partitions of different QOS: the limits of the first partition count for them"
            )
        return kept

    def _qos_of(self, partition: str) -> str:
        name = self._partitions[partition].qos if partition in self._partitions else ""
        return name if name in self._qos else ""

    def _broken(self, job: Job) -> str:
        asked = _as_tres(job)
        return self._of_qos(job, asked) or self._of_associations(job, asked) or self._of_licenses(job)

    def _of_qos(self, job: Job, asked: Mapping[str, float]) -> str:
        before: list[Qos] = []
        for each, limits in limits_of_job(job, self._qos, self._partitions):
            for name, amounts, times in (("MaxTRES", each.job, 1.0), ("MaxTRESPerNode", each.node, job.request.nodes)):
                first = {tres for other in before for tres in (other.job if name == "MaxTRES" else other.node)}
                if _more(asked, amounts, times, first):
                    return f"{name} of the QOS {each.name}"
            first = {tres for other in before for tres in other.least}
            if any(asked.get(tres, 0.0) < bound for tres, bound in each.least.items() if tres not in first):
                return f"MinTRES of the QOS {each.name}"
            for name, own in zip(("GrpTRES", "MaxTRESPU", "MaxTRESPA"), limits, strict=True):
                if _more(asked, own.tres, closed=True):
                    return f"{name} of the QOS {each.name}"
            if job.minutes < math.inf and job.minutes > each.minutes and all(other.minutes == math.inf for other in before):
                return f"MaxWall of the QOS {each.name}"
            before.append(each)
        return ""

    def _of_associations(self, job: Job, asked: Mapping[str, float]) -> str:
        above = self._above(job)
        if not above:
            return ""
        first = of_both(job, self._qos, self._partitions)
        together = {tres for each in first for tres in each.together.tres}
        of_job, of_node = {tres for each in first for tres in each.job}, {tres for each in first for tres in each.node}
        longest = any(each.minutes < math.inf for each in first)
        for key in above:
            name, own = "/".join(filter(None, key)), self._of[key]
            if _more(asked, own.together, without=together, closed=True):
                return f"GrpTRES of {name}"
            if _more(asked, own.job, without=of_job):
                return f"MaxTRES of {name}"
            if _more(asked, own.node, job.request.nodes, of_node):
                return f"MaxTRESPerNode of {name}"
            if not longest and job.minutes < math.inf and job.minutes > own.minutes:
                return f"MaxWall of {name}"
            of_job, of_node, longest = of_job | {*own.job}, of_node | {*own.node}, longest or own.minutes < math.inf
        return ""

    def _of_licenses(self, job: Job) -> str:
        """Return the licence of which a job needs more than there are, in each of the sets of which any will do."""
        lacking = [
            next((name for name, amount in own.items() if amount > self._licenses.get(name, math.inf) > 0), "") for own in asked_sets(job)
        ]
        return f"the number of licences {lacking[0]}" if lacking and all(lacking) else ""

    def _above(self, job: Job) -> list[Key]:
        """Return the associations that hold a job, its own first, then those of the accounts above."""
        user: Key = (job.account, job.user, job.partition)
        found = [key for key in (user, (job.account, job.user, "")) if key in self._of][:1]
        account, seen = job.account, set[str]()
        while account and account not in seen:
            seen.add(account)
            found += [(account, "", "")] if (account, "", "") in self._of else []
            account = self._parent.get(account, "") or (ROOT if account != ROOT else "")
        return found


def _limits(part: Part) -> _Limits:
    if isinstance(part, Record):
        of_job, of_node, longest = part.get("max_tres"), part.get("max_tres_per_node"), part.get("max_wall")
    else:
        most = part.get("max")
        of_job, of_node = (most.get("tres").get("per").get(key) for key in ("job", "node"))
        longest = most.get("jobs").get("per").get("wall_clock")
    return _Limits(limits_of(part), tres_amounts(of_job), tres_amounts(of_node), minutes(longest))


def _more(
    asked: Mapping[str, float], bounds: Mapping[str, float], times: float = 1.0, without: Iterable[str] = (), closed: bool = False
) -> bool:
    """Return whether a job asks for more than one of the bounds; ``closed``: those that are 0 do not count."""
    return any(
        asked.get(tres, 0.0) > bound * times * (1 + FITS) and not (closed and bound == 0)
        for tres, bound in bounds.items()
        if tres not in without
    )


def _as_tres(job: Job) -> dict[str, float]:
    """Return what a job asks for, by TRES."""
    amounts = job.request.amounts
    known = {"cpu": amounts.get("cpu", 0.0), "node": job.request.nodes, "mem": amounts.get("memory", 0.0) * 1024}
    generic = {f"gres/{name}": amount for name, amount in amounts.items() if name not in ("cpu", "memory")}
    typed = {f"gres/{kind}": amounts.get(kind.partition(":")[0], 0.0) for kind in job.types}
    sets = asked_sets(job)
    licensed = {f"{PREFIX}{name}": amount for name, amount in sets[0].items()} if len(sets) == 1 else {}
    return known | generic | typed | licensed
