"""Jobs of HTCondor: whose they are, what they do, and what they ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fairopt.clusters.htcondor.ads import Ad
from fairopt.clusters.htcondor.expressions import UNDEFINED, is_expression
from fairopt.clusters.htcondor.slots import renamed
from fairopt.clusters.json_export import Part

__all__ = ["OWNERS", "Job", "name_of", "not_queued_yet", "owner_of", "read_job", "request_of", "runs_outside", "undefined_requests"]

OWNERS = ("submitter", "user", "group")
_HOLDS, _WAITS = (2, 6, 7), (1,)  # running, transferring its output, suspended: it keeps its slot; idle
_WHY = {
    3: "removed: holds nothing and asks for nothing",
    4: "completed: holds nothing and asks for nothing",
    5: "held: it could not start",
    8: "failed: holds nothing and asks for nothing",
}
_ELSEWHERE = {7: "a job of the scheduler universe", 9: "a job of the grid universe", 12: "a job of the local universe"}
_NO_RESOURCES = ("requestdisk",)
_FEW = ("JobMaterializeNextProcId", "JobMaterializeLimit", "JobMaterializeMaxIdle")


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes
    ----------
    name, group, submitter : str
        Its number, and the access point that it is of (`name_of`); its accounting group, empty if it has none; group and user, as
        priorities name them, without the domain.
    owner : str
    holds : bool
    suspended : bool
    why : str
        Why it is not demand; else empty.
    demand : dict
        Memory in GiB.
    number : float
        Nodes of a job of the parallel universe; else 1.
    slots : tuple of str
        Where it runs.
    limits : dict
        How much it counts in which concurrency limit.
    """

    ad: Ad
    name: str
    group: str
    submitter: str
    owner: str
    holds: bool
    suspended: bool
    why: str
    demand: dict[str, float]
    number: float
    slots: tuple[str, ...]
    limits: dict[str, float]

    @property
    def part(self) -> Part:
        """Its record."""
        return self.ad.part

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.ad.place} (job {self.name})"


def name_of(ad: Ad) -> str:
    """Return the number of a job, and its access point, as each of them counts for itself: ``12.0`` or ``12.0 of ap1``."""
    number = f"{ad.number('ClusterId', 0):.0f}.{ad.number('ProcId', 0):.0f}"
    access_point, sign, _ = ad.text("GlobalJobId", "").partition("#")
    return f"{number} of {access_point}" if sign and access_point else number


def not_queued_yet(jobs: Iterable[Job]) -> dict[str, float]:
    """Return how many jobs are still to come, of each cluster that is queued a few jobs at a time; NaN: the ads do not say.

    Of such a cluster (``max_materialize``, ``max_idle``: late materialization) the jobs from ``JobMaterializeNextProcId`` on are not in
    the queue yet. A cluster of which no job is in the queue at the moment is not in an export of jobs.
    """
    found: dict[str, float] = {}
    for job in jobs:
        if any(job.ad.get(name).value is not None for name in _FEW):
            total, made = (job.ad.number(name, math.nan) for name in ("TotalSubmitProcs", "JobMaterializeNextProcId"))
            access_point = job.name.partition(" of ")[2]
            found[f"{job.ad.number('ClusterId', 0):.0f} {access_point}"] = total - made
    return {name: left for name, left in found.items() if not left <= 0}


def owner_of(ad: Ad, users: str) -> tuple[str, str, str]:
    """Return the owner of a job, its accounting group, and its submitter."""
    user = ad.text("Owner", "") or ad.text("User", "").partition("@")[0] or "(no user)"
    accounting = ad.text("AccountingGroup", "").partition("@")[0]
    group, own = ad.text("AcctGroup", ""), ad.text("AcctGroupUser", user)
    if not group and accounting and accounting != own:
        group = accounting.rpartition(".")[0] if accounting.rpartition(".")[2] == own or "." in accounting else ""
    submitter = accounting or (f"{group}.{own}" if group else user)
    return {"submitter": submitter, "user": user, "group": group or "(no group)"}[users], group, submitter


def runs_outside(ad: Ad) -> str:
    """Return why a job needs no slot; else empty."""
    universe = int(ad.number("JobUniverse", 5))
    return f"{_ELSEWHERE[universe]}, which runs outside of the slots" if universe in _ELSEWHERE else ""


def request_of(ad: Ad) -> dict[str, float]:
    """Return what a job asks for: a CPU by default, memory in GiB."""
    demand = {}
    for name in ad.values:
        if name.startswith("request") and name not in _NO_RESOURCES and name not in ("requestcpus", "requestmemory", "requestgpus"):
            value = ad.values[name]
            if is_expression(value) or (isinstance(value, int | float) and not isinstance(value, bool)):
                demand[renamed(name.removeprefix("request"))] = ad.number(name, 0.0)
    demand |= {"cpu": ad.number("RequestCpus", 1.0), "gpu": ad.number("RequestGPUs", 0.0)}
    demand["memory"] = ad.number("RequestMemory", 0.0) / 1024
    return {name: amount for name, amount in demand.items() if amount}


def undefined_requests(ad: Ad) -> list[str]:
    """Return the requests whose expressions need what the ad does not have, such as an attribute of the machine."""
    names = [name for name in ad.values if name.startswith("request") and name not in _NO_RESOURCES and is_expression(ad.values[name])]
    return [ad.spelled(name) for name in names if ad.evaluated(name) is UNDEFINED]


def read_job(ad: Ad, users: str) -> Job:
    """Read a job."""
    status = int(ad.get("JobStatus").number(-1.0)) if ad.get("JobStatus").value is not None else -1
    if status not in (*_HOLDS, *_WAITS, *_WHY):
        ad.get("JobStatus").refuse(
            f"{ad.get('JobStatus').value} is no status of a job (1 to 7); export all attributes, without -attributes"
        )
    universe = int(ad.number("JobUniverse", 5))
    why = _WHY.get(status, "") or runs_outside(ad)
    owner, group, submitter = owner_of(ad, users)
    parallel = universe == 11
    holds = status in _HOLDS and not why
    hosts = ad.text("RemoteHosts", "") if parallel else ""
    return Job(
        ad=ad,
        name=name_of(ad),
        group=group,
        submitter=submitter,
        owner=owner,
        holds=holds,
        suspended=status == 7,
        why=why,
        demand={} if why else request_of(ad),
        number=max(ad.number("MaxHosts", 1.0), 1.0) if parallel else 1.0,
        slots=tuple(filter(None, (hosts or ad.text("RemoteHost", "")).split(","))) if holds else (),
        limits=_limits(ad),
    )


def _limits(ad: Ad) -> dict[str, float]:
    """Return how much a job counts in its concurrency limits: ``matlab:2, ansys``."""
    part = ad.get("ConcurrencyLimits")
    found: dict[str, float] = {}
    text = ad.evaluated("ConcurrencyLimits") if is_expression(part.value) else part.text("")
    if not isinstance(text, str):
        part.refuse(f'the expression "{str(part.value)[6:-2][:60]}" is {str(text)[:20]}, and no list of limits')
    for each in text.replace(" ", ",").split(","):
        if each:
            name, sign, number = each.partition(":")
            try:
                amount = float(number) if sign else 1.0
            except ValueError:
                amount = -1.0
            if not (name and 0 <= amount < 1e9):
                part.refuse(f'"{each[:40]}" is not NAME or NAME:NUMBER')
            found[name.lower()] = amount
    return found
