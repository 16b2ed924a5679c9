"""Weights from the shares of associations: ``shares_raw``, divided down the tree of accounts."""

from __future__ import annotations

import os

from fairopt.errors import InvalidInstance
from fairopt.imports.account import Account
from fairopt.imports.slurm_records import Job, read_records
from fairopt.imports.slurm_syntax import finite, number
from fairopt.wording import plural

__all__ = ["weights_of"]

_LEAST = 0.001
_ROOT = "root"
_PARENT = 0x7FFFFFFF  # shares_raw of an association that uses those of its parent


def weights_of(path: str | os.PathLike[str], jobs: list[Job], users: str, account: Account) -> dict[str, float]:
    """Return the weight of each owner: its shares, divided down the tree among accounts and users that have jobs here."""
    clusters = {job.part.get("cluster").text("") for job in jobs} - {""}
    parent: dict[str, str] = {}
    raw: dict[tuple[str, str], float] = {}  # (account, user), or (account, "") of the account itself
    for part in read_records(path, "associations"):
        if part.get("partition").text("") or (clusters and part.get("cluster").text("") not in clusters):
            continue
        name, user = part["account"].text(), part.get("user").text("")
        shares = finite(part["shares_raw"]) if number(part["shares_raw"]) is not None else 1.0
        if shares == _PARENT:
            account.note("an association that uses its parent's shares counts as one share")
        elif shares == 0:
            account.note(f"an association with no shares counts as {_LEAST} of one: a weight is > 0")
        raw[name, user] = 1.0 if shares == _PARENT else max(shares, _LEAST)
        if not user:
            parent[name] = part.get("parent_account").text("")

    leaves = {(job.account, job.user) for job in jobs}
    for lacking, what in ((len({name for name, _ in leaves} - set(parent)), "account"), (len(leaves - set(raw)), "user")):
        if lacking:
            account.note(f"the associations lack {plural(lacking, what)} of jobs: one share each")
    children: dict[str, set[tuple[str, str]]] = {}  # what has jobs below an account: users of it, and accounts
    for leaf in leaves:
        above, below, seen = leaf[0], leaf, set[str]()
        while below not in children.setdefault(above, set()):
            children[above].add(below)
            if above == _ROOT or above in seen:
                break
            seen.add(above)
            below, above = (above, ""), parent.get(above) or _ROOT

    total = {above: sum(raw.get(each, 1.0) for each in below) for above, below in children.items()}

    def weight(leaf: tuple[str, str]) -> float:
        way = [leaf]  # up to the root
        above = leaf[0]
        seen = set[str]()
        while above != _ROOT:
            if above in seen:
                raise InvalidInstance(f'{path}: the account "{above}" is among its own parents; export it again')
            seen.add(above)
            way.append((above, ""))
            above = parent.get(above) or _ROOT
        value = raw.get(way[-1], 1.0)
        for entity in reversed(way[:-1]):
            name, user = entity
            value = value * raw.get(entity, 1.0) / total[name if user else parent.get(name) or _ROOT]
        return value

    result: dict[str, float] = {}
    for name, user in sorted(leaves):
        owner = user if users == "user" else name
        result[owner] = result.get(owner, 0.0) + weight((name, user))
    return result
