"""Limits of Slurm that carry an allocation: a script of ``sacctmgr`` commands, and one that takes them back. Nothing is run here.

    sacctmgr -i modify account where name=physics set GrpTRES=cpu=612,gres/gpu=0,mem=2384G

``GrpTRES`` is what all running jobs of an association may hold together. Its levels:

* ``account``: every account, and the accounts above it (their sum).
* ``account-user``: also each user of an account.
* ``account-partition``: each user of an account in each partition, with one partition for each group of servers, so that the limits carry
  the *placement* too. Only an association of a user can have a partition.
* ``qos``: accounts as above, and the QOS whose limits an import has (:mod:`fairopt.slurm.qos_limits`).

Accounts and users are those that `fairopt.import_slurm` reads: a queue ``A/u`` in the queue A is user u of account A, ``A/u/p`` that user
in partition p, every other queue an account. The owner of a user of the instance that is in no queue is an account; in an account, it is a
user of Slurm, unless it is that account. A user without an owner is its own.

Resources of the cluster, and named limits ``license/NAME``, are licences: ``GrpTRES=license/NAME``, of accounts and users, not in single
partitions.

With ``as_="billing"`` the limit is ``GrpTRES=billing=N``. Under ``PriorityFlags=MAX_TRES`` with ``TRESBillingWeights`` of 100,000 / C[r] a
job is billed 100,000 times its dominant share, rounded down, so that N limits the dominant share of an account, whatever its jobs ask for.
Where a task would be billed less than 100, all of it is 10 times as much, or 100 times, ...: what is billed nothing is not limited.

Where partitions do not carry the placement, weights of nodes come near it: Slurm fills nodes of low weight first. The weights here put a
group of servers before another where more of the tasks that could run on both are placed on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import check_headroom, kind_of, measures
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holder, Holdings
from fairopt.clusters.names import changed
from fairopt.clusters.rounding import whole_tasks
from fairopt.errors import InvalidInstance
from fairopt.slurm.accounts import ROOT, Accounts
from fairopt.slurm.associations import current_limits
from fairopt.slurm.license_limits import licenses_of
from fairopt.slurm.limits import MOST, SlurmLimits
from fairopt.slurm.qos_limits import QosExport, held_by_qos
from fairopt.slurm.scripts import SlurmScripts
from fairopt.wording import did_you_mean, joined, named

__all__ = ["Level", "export_slurm"]

Level: TypeAlias = Literal["account", "account-user", "account-partition", "qos"]

_LEVELS = get_args(Level)
_AS = ("tres", "billing")
_KEYS = {"cpu": "cpu", "memory": "mem", "gpu": "gres/gpu"}
_OWN = ("qos/", "MaxJobs of ", "GrpJobs of ")  # how imports call limits of QOS and of numbers of jobs, which an export does not change
_SMALLEST: dict[str, Fraction | int] = {"cpu": 1, "memory": 2**20, "gpu": 1, "": 1}
_RESOURCE = re.compile(r"[^\s,=]+")  # characters that would end an amount


@keeps_question
def export_slurm(
    allocation: Allocation,
    *,
    level: Level = "account",
    headroom: float = 1.0,
    as_: Literal["tres", "billing"] = "tres",
    partitions: Mapping[str, str] | None = None,
    users: Mapping[str, str] | None = None,
    associations: str | os.PathLike[str] | None = None,
    qos: str | os.PathLike[str] | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as limits of Slurm: the texts ``limits`` and ``undo`` are scripts of ``sacctmgr`` commands.

    Parameters
    ----------
    level : {"account", "account-user", "account-partition", "qos"}
        What is limited.
    headroom : float
        The limits are the exact amounts times this factor, rounded up, but never above a limit of the queue or what the servers have.
    as_ : {"tres", "billing"}
        Limit every resource, or the dominant share of jobs alone.
    partitions : mapping, optional
        Partition of server rows, for the level "account-partition". Default: a partition for each group of identical servers.
    users : mapping, optional
        The user of Slurm of accounts of which the instance does not say who their users are.
    associations : path, optional
        The table of ``sacctmgr -P show assoc``, or slurmrestd's answer: accounts and users are checked against it, associations with a
        partition that exist already are not added, and ``undo`` restores the limits that they have now.
    qos : path, optional
        For the level "qos": ``sacctmgr -P show qos``. Names are checked against it, QOS that it lacks are added, and ``undo`` restores the
        limits that they have now. Without it, they have those of the instance.
    resources : mapping, optional
        TRES of resources; default: ``cpu``, ``mem``, ``license/NAME`` of resources of the cluster, and ``gres/NAME`` of all others.
    units : mapping, optional
        Units of cpu ("cores", "millicores") and of memory ("GiB", "MiB", "GB", ...); default: those of the instance or in the names of
        the resources, else cores and GiB. Memory under another name, without a unit, is refused.
    placement_time_limit : float, optional
        Seconds of the search for whole tasks and for their placement on few rows and servers; what it finds then depends on the machine.
        By default it ends after a number of steps, at the same answer everywhere.

    Raises
    ------
    InvalidInstance
        The allocation exceeds a limit of its instance, or an argument is not allowed: an unknown resource or unit, a name that the
        scheduler's grammar forbids, a headroom below 1.
    Unsupported
        The allocation divides the time of servers.

    Examples
    --------
    >>> import fairopt as fo
    >>> lab = fo.Instance([[64, 256]], [[8, 16], [4, 48]], users=["chem", "gen"], resources=["cpu", "memory"], counts=[2])
    >>> print(export_slurm(fo.solve(lab, "drfh")).text.splitlines()[-1])
    sacctmgr -i modify account where name=gen set GrpTRES=cpu=28,mem=336G
    """
    _check(level, as_, headroom)
    if level == "qos" and as_ == "billing":
        raise InvalidInstance("limits of QOS are given as tres: leave billing out, or choose another level")
    if qos is not None and level != "qos":
        raise InvalidInstance(f'QOS are given, and the level "{level}" does not limit them; choose the level "qos", or leave them out')
    whole = whole_tasks(allocation, partitions, placement_time_limit)
    of_resource = measures(whole.instance, _key, _SMALLEST, grammar=_RESOURCE, keys=resources, units=units, system="Slurm")
    tree = Accounts(whole.instance, dict(users or {}))
    holdings = Holdings(whole, of_resource, tree.holders)
    known = None if associations is None else current_limits(associations)
    licenses = () if as_ == "billing" else licenses_of(whole.instance, resources or {})
    of_qos = QosExport.of(whole, of_resource, headroom, qos) if level == "qos" else None
    of_accounts = "account" if level == "qos" else level
    return _export(SlurmLimits.of(whole, holdings, tree, of_accounts, headroom, licenses, as_ == "billing", known, of_qos))


def _check(level: str, as_: str, headroom: float) -> None:
    if level not in _LEVELS:
        raise InvalidInstance(f'there is no level "{level}"{did_you_mean(str(level), _LEVELS)}; there are {", ".join(_LEVELS)}')
    if as_ not in _AS:
        raise InvalidInstance(f'limits can be given as tres or as billing, not as "{as_}"')
    check_headroom(headroom)


def _key(resource: str) -> str:
    kind = kind_of(resource)
    return _KEYS[kind] if kind in _KEYS and ":" not in resource else f"gres/{resource}"


# The export ----------------------------------------------------------------------------------------------------------------------


def _export(asked: SlurmLimits) -> Export:
    limits, notes = asked.limits()
    scripts = SlurmScripts(asked, limits)
    by_partition = asked.level == "account-partition"
    notes = [
        *notes,
        *changed({a: n for a, n in asked.account.items() if a != ROOT}, "names of accounts"),
    ]
    notes += changed(asked.user, "names of users")
    if by_partition:
        notes += changed(asked.partition, "names of partitions")
    names = (asked.partition if by_partition else {}) | asked.user | asked.account  # an account before the others
    names.pop(ROOT, None)
    texts = {"limits": scripts.set_limits(), "undo": scripts.take_back()}
    written = {name for each in asked.licenses for name in each.written}
    written |= set(asked.qos.bounds) if asked.qos is not None else set()
    there = [each.name for each in asked.whole.instance.limits if each.name.startswith(_OWN) and each.name not in written]
    if there:
        notes.append(f"the script leaves limits as they are that Slurm has beside those of accounts: {joined(there, MOST)}")
    return Export.of("slurm", texts, asked.holdings, names, (*notes, *_said(asked)), written=written | {*there}, said=asked.said())


def _said(asked: SlurmLimits) -> Iterator[str]:
    if asked.qos is not None:
        yield from asked.qos.notes
    elif not asked.billing and (of_qos := [resource for resource, users in held_by_qos(asked.whole.instance).items() if users.any()]):
        yield (
            f"limits of accounts do not hold the jobs of a QOS with a GrpTRES of its own ({joined(of_qos, MOST)}): the level qos limits "
            "these, too"
        )
    yield (
        "limits are hard: what an account does not use stays idle. Regenerate them regularly (cron). Do not change account weights "
        "between runs"
    )
    if asked.level == "account-partition":
        partitions = ",".join(dict.fromkeys(asked.partition[group.name] for group in asked.whole.groups))
        yield f"jobs must be submitted to these partitions (or to several: -p {partitions}); others are limited by their account alone"
    elif len(asked.whole.groups) > 1:
        yield (
            "limits of totals do not say on which servers tasks run: the level account-partition does, with a partition for each row "
            "of servers; weights of nodes come near it, and are in the script"
        )
    if asked.tree.unknown and asked.level == "account-user":
        several = joined([named(name) for name in asked.tree.unknown], MOST)
        yield f"the instance does not say who the users of {several} are: only these accounts are limited"
    if asked.billing:
        yield (
            "a limit of billing holds the dominant share of an account whatever its jobs ask for; it needs PriorityFlags=MAX_TRES and "
            "the TRESBillingWeights of the script on every partition, and counts a job on several nodes by its largest part on each"
        )
    lending = [named(holder.label) for holder in asked.tree.holders if holder.queue and _lends(holder)]
    if lending:
        yield f"Slurm has no guarantees that are kept idle: the lending limits of {joined(lending, MOST)} are not in the export"
    if asked.level != "account-partition":
        yield from (note for note in asked.holdings.notes_of_groups("Slurm") if "groups of servers:" in note)
    if asked.known is None:
        deleted = ""
        if asked.level == "account-partition":
            deleted = ", and deletes the associations for partitions, those too that were there before"
        yield (
            f"the script of --undo puts back the limits that the instance knows, and removes the others{deleted}; --associations restores "
            "them exactly, and names the cluster where slurmdbd has several"
        )


def _lends(holder: Holder) -> bool:
    assert holder.queue is not None
    return bool(holder.queue.lending_limit) or any(quota.lending_limit for quota in holder.queue.quotas)
