"""The tree of accounts and their users, from the associations of Slurm: shares are weights, ``GrpTRES`` limits.

Every account above a job is a queue, and so is every user of an account, ``account/user``. A user may have an association for one
partition, with shares and limits of its own; it stands beside the user's other associations, as ``account/user/partition``. A weight counts
among the accounts and users with the same parent, as in Slurm's Fair Tree; nothing is multiplied down the tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import Forest
from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Queue, Quota
from fairopt.slurm.associations import Key, key_of, limits_of, read_associations
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node
from fairopt.slurm.syntax import finite, number
from fairopt.slurm.text import PARENT, Record, tree
from fairopt.wording import joined, plural

__all__ = ["Associations"]

_LEAST = 0.001
_ROOT = "root"
_UNITS = {"cpu": ("cpu", 1.0), "mem": ("memory", 1024.0)}  # MiB -> GiB
_Limits: TypeAlias = tuple[
    dict[str, float], dict[str, float]
]  # of the whole cluster by resource, and by type of generic resource ("gpu:a100")


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
    """

    def __init__(self, path: str | os.PathLike[str], jobs: Iterable[Job], licenses: Mapping[str, str], account: Account) -> None:
        self.path = path
        self.parent: dict[str, str] = {}
        self.weight: dict[Key, float] = {}
        self.limits: dict[Key, _Limits] = {}
        left_out: set[str] = set()
        numbers: set[str] = set()
        records = _of_cluster(
            path, read_associations(path, ("Account", "User", "Share")), {job.part.get("cluster").text("") for job in jobs} - {""}
        )
        as_text = [record for record in records if isinstance(record, Record)]
        if as_text and not tree(records):
            account.note("the associations do not say which account is in which: all are in the root (sacctmgr -P show assoc tree says it)")
        for part in records:
            key = key_of(part)
            limit = _limits(part, licenses, left_out)
            numbers |= _numbers(part)
            shares = _shares(part.get("shares_raw") if isinstance(part, Record) else part["shares_raw"], account)
            if key in self.weight and as_text:
                name = f"{key[0]}/{key[1]}"
                account.note(f"{name} has several associations, and no column Partition (sshare -m) tells them apart: the largest counts")
                shares = max(shares, self.weight[key])
            self.weight[key], self.limits[key] = shares, limit
            if not key[1]:
                self.parent[key[0]] = part.get("parent_account").text("")
        if left_out:
            account.note(f"GrpTRES of {joined(sorted(left_out), 5)} are left out: they limit no resource of the instance")
        if numbers:
            account.note(f"{joined(sorted(numbers))} of associations are left out: an instance limits resources, not numbers of jobs")

    def key(self, job: Job) -> Key:
        """Return the association of a job: of its user in its account, for its partition if there is one."""
        own = job.account, job.user, job.partition
        return own if job.partition and own in self.weight else (job.account, job.user, "")

    def queue_of(self, job: Job) -> str:
        """Return the name of the queue of a job."""
        return "/".join(filter(None, self.key(job)))

    def forest(self, jobs: Sequence[Job], users: str, nodes: Sequence[Node], account: Account) -> Forest:
        """Return the accounts above the jobs, and their users."""
        leaves = sorted({self.key(job) for job in jobs})
        accounts = dict.fromkeys(name for name, _, _ in leaves)
        for lacking, what in ((len(set(accounts) - set(self.parent)), "account"), (len(set(leaves) - set(self.weight)), "user")):
            if lacking:
                account.note(f"the associations lack {plural(lacking, what)} of jobs: one share each")
        queues = [self._queue(name, over, (name, "", ""), nodes) for name, over in self._above(accounts).items()]
        queues += [self._queue("/".join(filter(None, key)), None if key[0] == _ROOT else key[0], key, nodes) for key in leaves]
        of_owner = {name: (name,) for name in accounts if name != _ROOT} if users == "account" else None
        return Forest(tuple(queues), system="Slurm", of_owner=of_owner)

    def _above(self, accounts: Iterable[str]) -> dict[str, str | None]:
        """Return the parent of each account that is above a job; None: the root."""
        above: dict[str, str | None] = {}
        for start in accounts:
            name, way = start, set[str]()
            while name != _ROOT and name not in above:
                if name in way:
                    raise InvalidInstance(f'{self.path}: the account "{start}" is among its own parents; export it again')
                way.add(name)
                name = self.parent.get(name) or _ROOT
            for each in way:
                over = self.parent.get(each) or _ROOT
                above[each] = None if over == _ROOT else over
        return above

    def _queue(self, name: str, over: str | None, key: Key, nodes: Sequence[Node]) -> Queue:
        limit, by_type = self.limits.get(key, ({}, {}))
        quotas = []
        for kind, amount in by_type.items():
            hosts = [node.name for node in nodes if kind in node.types]
            if hosts:
                quotas.append(Quota(hosts, limit={kind.partition(":")[0]: amount}, name=kind))
        return Queue(name, over, self.weight.get(key, 1.0), limit=limit, quotas=quotas)


def _of_cluster(path: str | os.PathLike[str], records: list[Part], clusters: set[str]) -> list[Part]:
    """Return the associations of the cluster of the jobs, as far as both name one."""
    named = [(record, record.get("cluster").text("")) for record in records]
    others = {name for _, name in named if name}
    if clusters and others and not clusters & others:
        raise InvalidInstance(
            f"{path}: the associations are of the cluster {joined(sorted(others), 3)}, and the jobs of {joined(sorted(clusters), 3)}; "
            "export both of one cluster"
        )
    return [record for record, name in named if not clusters or not name or name in clusters]


def _shares(part: Part, account: Account) -> float:
    shares = finite(part) if number(part) is not None else 1.0
    if shares == PARENT:
        account.note("an association that uses its parent's shares counts as one share")
        return 1.0
    if shares == 0:
        account.note(f"an association with no shares counts as {_LEAST} of one: Slurm lets it run where nobody else can")
        return _LEAST
    return shares


def _limits(part: Part, licenses: Mapping[str, str], left_out: set[str]) -> _Limits:
    """Return the limits of an association, and remember those that an instance cannot represent."""
    limit: dict[str, float] = {}
    by_type: dict[str, float] = {}
    for name, amount in limits_of(part).items():
        if name in _UNITS:
            resource, unit = _UNITS[name]
            limit[resource] = amount / unit
        elif name.startswith("gres/"):
            (by_type if ":" in name else limit)[name.removeprefix("gres/")] = amount
        elif (resource := licenses.get(name.removeprefix("license/"), "")) and name.startswith("license/"):
            limit[resource] = amount
        else:
            left_out.add(name)
    return limit, by_type


def _numbers(part: Part) -> set[str]:
    """Return the limits on numbers of jobs that an association has."""
    jobs = part.get("max").get("jobs") if not isinstance(part, Record) else part
    listed = {"GrpJobs": jobs.get("grp_jobs"), "MaxJobs": jobs.get("max_jobs")}
    if not isinstance(part, Record):
        listed = {"GrpJobs": jobs.get("per").get("count"), "MaxJobs": jobs.get("active")}
    return {name for name, limit in listed.items() if _is_set(limit)}


def _is_set(limit: Part) -> bool:
    if isinstance(limit.value, str):
        return bool(limit.value)
    return limit.value != -1 and number(limit) not in (None, float("inf"))
