"""The tree of accounts and their users, from the associations of Slurm: ``shares_raw`` are weights, ``GrpTRES`` limits.

Every account above a job is a queue, and so is every user of an account, ``account/user``. A weight counts among the accounts and users
with the same parent, as in Slurm's Fair Tree; nothing is multiplied down the tree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fairopt.errors import InvalidInstance
from fairopt.imports.account import Account
from fairopt.imports.json_export import Part
from fairopt.imports.queue_tree import Forest
from fairopt.imports.slurm_records import Job, Node, read_records
from fairopt.imports.slurm_syntax import finite, number
from fairopt.queues import Queue, Quota
from fairopt.wording import joined, plural

__all__ = ["queue_of", "queues_of"]

_LEAST = 0.001
_ROOT = "root"
_PARENT = 0x7FFFFFFF  # shares_raw of an association that uses those of its parent
_UNITS = {"cpu": ("cpu", 1.0), "mem": ("memory", 1024.0)}  # MiB -> GiB
_Limits = tuple[dict[str, float], dict[str, float]]  # of the whole cluster by resource, and by type of generic resource ("gpu:a100")


def queue_of(job: Job) -> str:
    """Return the queue of a job: its user in its account."""
    return f"{job.account}/{job.user}"


def queues_of(path: str | os.PathLike[str], jobs: Sequence[Job], users: str, nodes: Sequence[Node], account: Account) -> Forest:
    """Return the accounts above the jobs, and their users."""
    clusters = {job.part.get("cluster").text("") for job in jobs} - {""}
    parent: dict[str, str] = {}
    weight: dict[tuple[str, str], float] = {}  # (account, user), or (account, "") of the account itself
    limits: dict[tuple[str, str], _Limits] = {}
    left_out: set[str] = set()
    for part in read_records(path, "associations"):
        if clusters and part.get("cluster").text("") not in clusters:
            continue
        limit = _limits(part.get("max").get("tres").get("total"), left_out)
        if part.get("partition").text(""):
            if any(limit):
                account.note("limits of associations with a partition are left out: they count the jobs of one partition only")
            continue
        name, user = part["account"].text(), part.get("user").text("")
        weight[name, user] = _shares(part["shares_raw"], account)
        limits[name, user] = limit
        if not user:
            parent[name] = part.get("parent_account").text("")
    if left_out:
        account.note(f"GrpTRES of {joined(sorted(left_out), 5)} are left out: they do not limit a resource of the nodes")

    leaves = sorted({(job.account, job.user) for job in jobs})
    for lacking, what in ((len({name for name, _ in leaves} - set(parent)), "account"), (len(set(leaves) - set(weight)), "user")):
        if lacking:
            account.note(f"the associations lack {plural(lacking, what)} of jobs: one share each")
    above: dict[str, str | None] = {}  # parent of each account that is above a job; None: the root
    for start, _ in leaves:
        name, way = start, set[str]()
        while name != _ROOT and name not in above:
            if name in way:
                raise InvalidInstance(f'{path}: the account "{start}" is among its own parents; export it again')
            way.add(name)
            name = parent.get(name) or _ROOT
        for each in way:
            over = parent.get(each) or _ROOT
            above[each] = None if over == _ROOT else over

    def queue(name: str, over: str | None, key: tuple[str, str]) -> Queue:
        limit, by_type = limits.get(key, ({}, {}))
        quotas = []
        for kind, amount in by_type.items():
            hosts = [node.name for node in nodes if kind in node.types]
            if hosts:
                quotas.append(Quota(hosts, limit={kind.partition(":")[0]: amount}, name=kind))
        return Queue(name, over, weight.get(key, 1.0), limit=limit, quotas=quotas)

    queues = [queue(name, over, (name, "")) for name, over in above.items()]
    queues += [queue(f"{name}/{user}", None if name == _ROOT else name, (name, user)) for name, user in leaves]
    of_owner = {name: (name,) for name, _ in leaves if name != _ROOT} if users == "account" else None
    return Forest(tuple(queues), system="Slurm", of_owner=of_owner)


def _shares(part: Part, account: Account) -> float:
    shares = finite(part) if number(part) is not None else 1.0
    if shares == _PARENT:
        account.note("an association that uses its parent's shares counts as one share")
        return 1.0
    if shares == 0:
        account.note(f"an association with no shares counts as {_LEAST} of one: Slurm lets it run where nobody else can")
        return _LEAST
    return shares


def _limits(listed: Part, left_out: set[str]) -> _Limits:
    """Return the limits of an association, and remember those that an instance cannot hold."""
    limit: dict[str, float] = {}
    by_type: dict[str, float] = {}
    for part in listed.items():
        kind, name = part["type"].text(), part.get("name").text("")
        if part["count"].value == -1:  # no limit
            continue
        amount = finite(part["count"])
        if kind in _UNITS:
            resource, unit = _UNITS[kind]
            limit[resource] = amount / unit
        elif kind == "gres" and name:
            (by_type if ":" in name else limit)[name] = amount
        else:
            left_out.add(f"{kind}/{name}" if name else kind)
    return limit, by_type
