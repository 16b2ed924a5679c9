"""The tree of accounts and their users, from the associations of Slurm: shares are weights, ``GrpTRES`` limits.

Every account above a job is a queue, and so is every user of an account, ``account/user``. A user may have an association for one
partition, with shares and limits of its own; it stands beside the user's other associations, as ``account/user/partition``. A weight counts
among the accounts and users with the same parent, as in Slurm's Fair Tree; nothing is multiplied down the tree.

``FairShare=parent``, as Fair Tree has it: the children of such an *account* compare with its siblings, so the account is no queue, and its
``GrpTRES`` is a named limit of its children. Such a *user* comes before all others of its account, so its weight is 1,000 times that of all
of them together; where all users of an account are such, none has shares of its own, and they count alike.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import Forest
from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Queue, Quota
from fairopt.slurm.associations import ROOT, Key, key_of, limits_of, of_cluster, read_associations
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node
from fairopt.slurm.pieces import PIECES
from fairopt.slurm.reading import count_or_inf, tres_amounts
from fairopt.slurm.syntax import finite, number
from fairopt.slurm.text import OVER_TIME, PARENT, Record, tree
from fairopt.slurm.tiers import Tiers, whose
from fairopt.wording import joined, plural

__all__ = ["Associations", "SplitLimits", "split_limits", "tres_of"]

_LEAST = 0.001
_FIRST = 1000.0  # times the shares of all others: of a user who comes first
_UNITS = {"cpu": ("cpu", 1.0), "mem": ("memory", 1024.0)}  # MiB -> GiB
_OVER_TIME_JSON = {  # where the answer of slurmrestd has each, below "max"
    "GrpTRESMins": ("tres", "group", "minutes"),
    "GrpTRESRunMins": ("tres", "group", "active"),
    "MaxTRESMins": ("tres", "minutes", "per", "job"),
    "GrpWall": ("per", "account", "wall_clock"),
}
SplitLimits: TypeAlias = tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
"""Limits of the whole cluster by resource, and by type of generic resource ("gpu:a100")."""


class Associations:
    """The associations of a cluster.

    Parameters
    ----------
    path : path
        The answer of slurmrestd, ``sacctmgr -P show assoc tree``, or ``sshare -a -l -P``.
    jobs : jobs
        Of the same cluster.
    licenses : mapping
        The resources of licences, by name of the licence.
    account : Account
        Gets notes on what is left out.
    tiers : Tiers, optional
        Jobs in them are in queues of their own, within those of their users.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        jobs: Iterable[Job],
        licenses: Mapping[str, str],
        account: Account,
        tiers: Tiers | None = None,
    ) -> None:
        self.path, self.tiers = path, tiers or Tiers()
        self.parent: dict[str, str] = {}
        self.weight: dict[Key, float] = {}
        self.limits: dict[Key, SplitLimits] = {}
        self.group_jobs: dict[Key, float] = {}
        self.user_jobs: dict[Key, float] = {}
        self._account_of: dict[str, str] = {}  # of each queue of a user
        self.merged: set[str] = set()  # accounts whose children compare with their siblings
        first: list[Key] = []  # users who use the shares of their account
        left_out: set[str] = set()
        numbers: set[str] = set()
        records = of_cluster(path, read_associations(path, ("Account", "User", "Share")), jobs, account)
        as_text = [record for record in records if isinstance(record, Record)]
        if as_text and not tree(records):
            account.note("the associations do not say which account is in which: all are in the root (sacctmgr -P show assoc tree says it)")
        for part in records:
            key = key_of(part)
            limit = split_limits(limits_of(part), licenses, left_out)
            for of, most in zip((self.group_jobs, self.user_jobs), _jobs(part), strict=True):
                if most < math.inf:
                    of[key] = most
            numbers |= _over_time(part)
            shares = _shares(part.get("shares_raw") if isinstance(part, Record) else part["shares_raw"], account)
            if shares == PARENT:
                shares = 1.0
                if key[1]:
                    first.append(key)
                else:
                    self.merged.add(key[0])
            if key in self.weight and as_text:
                why = "has several associations, and no column Partition (sshare -m) tells them apart: the largest counts"
                account.note_of("user", f"{key[0]}/{key[1]}", why)
                shares = max(shares, self.weight[key])
            self.weight[key], self.limits[key] = shares, limit
            if not key[1]:
                self.parent[key[0]] = part.get("parent_account").text("")
        self._put_first(first, account)
        if left_out:
            account.note(f"GrpTRES of {joined(sorted(left_out), 5)} are left out: they limit no resource of the instance")
        if numbers:
            account.note(f"{joined(sorted(numbers))} of associations are budgets over time, which an instance does not have")

    def _put_first(self, first: Sequence[Key], account: Account) -> None:
        """Give users who use the shares of their account the weight of those who come first, where there are others."""
        others: dict[str, float] = {}
        own = set(first)
        for key, weight in self.weight.items():
            over = self._over(key[0] if key[1] else self.parent.get(key[0]))
            if key not in own and (key[1] or key[0] not in self.merged) and over is not None:
                others[over] = others.get(over, 0.0) + weight
        beside = [key for key in first if others.get(self._over(key[0]) or ROOT)]
        for key in beside:
            self.weight[key] = _FIRST * others[self._over(key[0]) or ROOT]
        if beside:
            account.note(
                f"{plural(len(beside), 'user')} with FairShare=parent, such as {beside[0][1]}, come before the other users of their "
                f"account: counted with {_FIRST:,.0f} times the shares of all of them"
            )
        if len(first) > len(beside):
            account.note(
                f"{plural(len(first) - len(beside), 'user')} of accounts in which every user has FairShare=parent: Slurm serves them "
                "in the order of submission; they count alike"
            )
        if self.merged:
            account.note(
                f"{plural(len(self.merged), 'account')} with FairShare=parent, such as {min(self.merged)}: those in it compare with the "
                "accounts and users beside it"
            )

    def _over(self, account: str | None) -> str | None:
        """Return an account, or the nearest above it that has shares of its own; None: the root."""
        seen = set[str]()
        while account in self.merged and account not in seen:
            seen.add(account)
            account = self.parent.get(account)
        return None if not account or account == ROOT else account

    @property
    def limited(self) -> set[str]:
        """The resources, and types of generic resources, that an association limits."""
        return {resource for split in self.limits.values() for part in split for resource, _ in part}

    def is_in(self, queue: str, account: str) -> bool:
        """Return whether a queue is below an account that has no queue of its own."""
        name: str | None = self._account_of.get(queue, queue)
        seen = set[str]()
        while name and name not in seen:
            if name == account:
                return True
            seen.add(name)
            name = self.parent.get(name)
        return False

    def limits_of_merged(self) -> dict[str, SplitLimits]:
        """Return the limits of accounts that have no queue of their own."""
        return {name: self.limits[name, "", ""] for name in sorted(self.merged) if any(self.limits[name, "", ""])}

    def jobs_of(self, job: Job) -> tuple[float, ...]:
        """Return the limits on numbers of jobs that a job counts in."""
        found, account, seen = [self.group_jobs.get(self.key(job)), self.user_jobs.get(self.key(job))], job.account, set[str]()
        while account and account not in seen:
            found.append(self.group_jobs.get((account, "", "")))
            seen.add(account)
            account = self.parent.get(account, "")
        return tuple(limit for limit in found if limit is not None)

    def limits_of_jobs(self) -> list[tuple[str, Callable[[str], bool], float]]:
        """Return the limits on numbers of jobs: a title, whether a queue counts in it, and how many may run."""
        found: list[tuple[str, Callable[[str], bool], float]] = []
        for of, word in ((self.group_jobs, "GrpJobs"), (self.user_jobs, "MaxJobs")):
            for key, jobs in of.items():
                name = "/".join(filter(None, key))
                if key[1]:
                    found.append((f"{word} of {name}", partial(_is_of, name=name), jobs))
                elif word == "GrpJobs":  # MaxJobs of an account is that of each user, which has it, too
                    found.append((f"{word} of {name}", partial(self._below, account=key[0]), jobs))
        return found

    def _below(self, queue: str, account: str) -> bool:
        return self.is_in(queue, account)

    def key(self, job: Job) -> Key:
        """Return the association of a job: of its user in its account, for its partition if there is one."""
        own = job.account, job.user, job.partition
        return own if job.partition and own in self.weight else (job.account, job.user, "")

    def queue_of(self, job: Job) -> str:
        """Return the name of the queue of a job; of one in a tier, that within the queue of its user."""
        name, _ = self._in_tier(job)
        self._account_of[name] = job.account
        return name

    def _in_tier(self, job: Job) -> tuple[str, int]:
        return self.tiers.queue_of("/".join(filter(None, self.key(job))), job)

    def forest(self, jobs: Sequence[Job], users: str, nodes: Sequence[Node], account: Account) -> Forest:
        """Return the accounts above the jobs, and their users."""
        leaves = sorted({self.key(job) for job in jobs})
        accounts = dict.fromkeys(name for name, _, _ in leaves)
        for lacking, what in ((len(set(accounts) - set(self.parent)), "account"), (len(set(leaves) - set(self.weight)), "user")):
            if lacking:
                account.note(f"the associations lack {plural(lacking, what)} of jobs: one share each")
        above = self._above(accounts)
        queues = [self._queue(name, self._over(over), (name, "", ""), nodes) for name, over in above.items() if name not in self.merged]
        queues += [self._queue("/".join(filter(None, key)), self._over(key[0]), key, nodes) for key in leaves]
        above_others = sorted({found for job in jobs if (found := self._in_tier(job))[1]})
        queues += [Queue(name, whose(name), tier=tier) for name, tier in above_others]
        of_owner = {name: (name,) for name in accounts if name not in (ROOT, *self.merged)} if users == "account" else None
        return Forest(tuple(queues), system="Slurm", of_owner=of_owner)

    def _above(self, accounts: Iterable[str]) -> dict[str, str | None]:
        """Return the parent of each account that is above a job; None: the root."""
        above: dict[str, str | None] = {}
        for start in accounts:
            name, way = start, set[str]()
            while name != ROOT and name not in above:
                if name in way:
                    raise InvalidInstance(f'{self.path}: the account "{start}" is among its own parents; export it again')
                way.add(name)
                name = self.parent.get(name) or ROOT
            for each in way:
                over = self.parent.get(each) or ROOT
                above[each] = None if over == ROOT else over
        return above

    def _queue(self, name: str, over: str | None, key: Key, nodes: Sequence[Node]) -> Queue:
        limit, by_type = self.limits.get(key, ((), ()))
        quotas = []
        for kind, amount in by_type:
            hosts = [node.name for node in nodes if kind in node.types]
            if hosts:
                quotas.append(Quota(hosts, limit={kind.partition(":")[0]: amount}, name=kind))
        return Queue(name, over, self.weight.get(key, 1.0), limit=dict(limit), quotas=quotas)


def _is_of(queue: str, name: str) -> bool:
    return whose(queue) == name


def _shares(part: Part, account: Account) -> float:
    shares = finite(part) if number(part) is not None else 1.0
    if shares == 0:
        account.note(f"an association with no shares counts as {_LEAST} of one: Slurm lets it run where nobody else can")
        return _LEAST
    return shares


def split_limits(amounts: Mapping[str, float], licenses: Mapping[str, str], left_out: set[str]) -> SplitLimits:
    """Return limits by TRES as limits of resources, and remember those that an instance cannot represent."""
    limit: dict[str, float] = {}
    by_type: dict[str, float] = {}
    for name, amount in amounts.items():
        if name in _UNITS:
            resource, unit = _UNITS[name]
            limit[resource] = amount / unit
        elif name.startswith("gres/") and name.removeprefix("gres/").partition(":")[0] not in PIECES:
            (by_type if ":" in name else limit)[name.removeprefix("gres/")] = amount
        elif (resource := licenses.get(name.removeprefix("license/"), "")) and name.startswith("license/"):
            limit[resource] = amount
        else:
            left_out.add(name)
    return tuple(limit.items()), tuple(by_type.items())


def tres_of(resource: str, licenses: Mapping[str, str]) -> set[str]:
    """Return the TRES that a resource of an instance may be: the other way round.

    >>> sorted(tres_of("memory", {})), sorted(tres_of("ansys", {"ansys": "ansys"}))
    (['mem'], ['gres/ansys', 'license/ansys'])
    """
    known = {tres for tres, (name, _) in _UNITS.items() if name == resource}
    return known or {f"gres/{resource}", *(f"license/{name}" for name, own in licenses.items() if own == resource)}


def _jobs(part: Part) -> tuple[float, float]:
    """Return how many jobs may run: of all below the association, and of each user; inf: any number."""
    if isinstance(part, Record):
        listed = (part.get("grp_jobs"), part.get("max_jobs"))
    else:
        jobs = part.get("max").get("jobs")
        listed = (jobs.get("per").get("count"), jobs.get("active"))
    values = [number(each) for each in listed]
    return tuple(math.inf if value is None or value < 0 else value for value in values)  # type: ignore[return-value]


def _over_time(part: Part) -> set[str]:
    """Return the budgets over time that an association has."""
    if isinstance(part, Record):
        return {name for name in OVER_TIME if part.get(name).value}
    found = set()
    for name, keys in _OVER_TIME_JSON.items():
        place = part.get("max")
        for key in keys:
            place = place.get(key)
        if tres_amounts(place) if isinstance(place.value, list) else count_or_inf(place) < math.inf:
            found.add(name)
    return found
