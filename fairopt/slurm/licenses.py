"""Licences of Slurm: how many there are, and how many a job takes.

``scontrol show licenses`` lists what a cluster has; what is reserved, or used outside of Slurm (``LastDeficit``), is not there to share. A
job holds its licences once, however many nodes it has.

A licence is a named limit ``license/ansys``: it stops those who need it, and does not count in shares. So a group that needs one of two
licences does not count as one that holds half of the cluster. It can be a resource of the cluster instead, which counts as all others do.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairopt.clusters.account import Account
from fairopt.clusters.imported import Import
from fairopt.clusters.json_export import Part
from fairopt.instance.limits import Limit
from fairopt.slurm.jobs import Job
from fairopt.slurm.reading import parsed, read_records
from fairopt.slurm.sizes import Size
from fairopt.slurm.syntax import finite, licenses, tres
from fairopt.wording import joined, named, plural

__all__ = ["PREFIX", "License", "Licenses", "asked_sets", "licenses_in", "read_licenses"]

PREFIX = "license/"
_MOST = 3


@dataclass(frozen=True, slots=True)
class License:
    """A licence and how many of it jobs may have."""

    part: Part
    name: str
    number: float


def _read_license(part: Part) -> License:
    taken = sum(finite(part.get(key)) for key in ("Reserved", "LastDeficit"))
    return License(part, part["LicenseName"].text(), max(finite(part["Total"]) - taken, 0.0))


def read_licenses(path: str | os.PathLike[str] | None, account: Account) -> list[License]:
    """Return the licences of an export; none without one.

    Raises
    ------
    InvalidInstance
        With the file, and the line or the field.
    """
    if path is None:
        return []
    listed = account.unique(account.read(read_records(path, "licenses"), _read_license, "licence"), "licence")
    account.summary["licences"] = len(listed)
    return listed


def licenses_in(part: Part) -> dict[str, float]:
    """Return the licences in a TRES string, which has those that accounting tracks."""
    return {name.removeprefix(PREFIX): amount for name, amount in parsed(part, tres).items() if name.startswith(PREFIX)}


def asked_sets(job: Job) -> list[dict[str, float]]:
    """Return what a job takes: one set of licences, or several of which any will do."""
    part = job.part
    for key in ("licenses_allocated", "licenses") if job.holds else ("licenses",):
        if part.get(key).value:
            return list(parsed(part.get(key), licenses))
    return [licenses_in(part.get("tres_alloc_str" if job.holds else "tres_req_str"))]


class Licenses:
    """The licences of a cluster as resources of an instance.

    Parameters
    ----------
    listed : sequence of License
    path : path or None
        The export that lists them; None: there is none, and no licence counts.
    taken : collection of str
        Names of resources of servers. A licence with such a name is called ``license/NAME``.
    account : Account
        Gets notes on licences that are not known.
    """

    def __init__(self, listed: Sequence[License], path: str | os.PathLike[str] | None, taken: Collection[str], account: Account) -> None:
        self.path, self.account = path, account
        self.resource = {each.name: f"{PREFIX}{each.name}" if each.name in taken else each.name for each in listed}
        self.amounts = {self.resource[each.name]: each.number for each in listed}

    def sizes(self, jobs: Iterable[Job], sizes: Iterable[Size]) -> list[Size]:
        """Return the sizes of jobs with the licences of a task."""
        found, unknown, open_choice, asking = list[Size](), dict[str, None](), 0, 0
        for job, size in zip(jobs, sizes, strict=True):
            sets = asked_sets(job)
            asking += bool(sets[0])
            open_choice += len(sets) > 1 and self.path is not None
            own: Mapping[str, float] = sets[0] if len(sets) == 1 else {}
            unknown |= dict.fromkeys(name for name in own if name not in self.resource)
            more = {self.resource[name]: amount / size.tasks for name, amount in own.items() if name in self.resource}
            found.append(replace(size, demand=size.demand | more) if more else size)
        if self.path is None and asking:
            self.account.note(
                f"{plural(asking, 'job asks', 'jobs ask')} for licences, which do not count: how many there are is in "
                "scontrol show licenses (--licenses)"
            )
        elif unknown:
            several = joined([named(name) for name in unknown], _MOST)
            self.account.note(f"jobs ask for the licences {several}, which {self.path} does not list: they do not count")
        if open_choice:
            self.account.note(
                f"{plural(open_choice, 'job takes', 'jobs take')} one of several licences, whichever is free: counted with none of them, a "
                "relaxation"
            )
        return found

    def as_limits(self, found: Import) -> Import:
        """Return an import whose licences are named limits, of all users, and of queues that have a limit of them."""
        instance = found.instance
        columns = {
            resource: dict(zip(instance.users, instance.demands[:, instance.resources.index(resource)].tolist(), strict=True))
            for resource in self.resource.values()
        }
        limits: list[Limit] = []
        for limit in instance.limits:
            column = columns.get(limit.resource or "")
            whose = [user for user in limit.users or instance.users if column is not None and column[user]]
            limits.append(limit if column is None else Limit(limit.name, limit.bound, amounts={user: column[user] for user in whose}))
        for name, resource in self.resource.items():
            asked = dict(zip(instance.users, instance.demands[:, instance.resources.index(resource)].tolist(), strict=True))
            amounts = {user: amount for user, amount in asked.items() if amount}
            title = f"{PREFIX}{name}".replace(".", "_")  # no dots in the name of a limit
            limits += [Limit(title, self.amounts[resource], amounts=amounts)] if amounts else []
            for queue in instance.queues:
                if resource in queue.limit:
                    below = instance.tree.below[instance.tree.index(queue.name)]
                    mine = {user: amounts[user] for user, inside in zip(instance.users, below, strict=True) if inside and user in amounts}
                    title_here = f"{title} of {queue.name}".replace(".", "_")
                    limits += [Limit(title_here, queue.limit[resource], amounts=mine)] if mine else []
        queues = [
            replace(queue, limit={r: bound for r, bound in queue.limit.items() if r not in self.amounts}) for queue in instance.queues
        ]
        without = instance.replace(shared=dict.fromkeys(self.amounts), limits=limits, queues=queues)
        return found.with_instance(without, units={name: unit for name, unit in found.units.items() if name not in self.amounts})
