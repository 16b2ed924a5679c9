"""Limits of Slurm that carry an allocation: a script of ``sacctmgr`` commands, and one that takes them back. Nothing is run here.

    sacctmgr -i modify account where name=physics set GrpTRES=cpu=612,gres/gpu=0,mem=2384G

``GrpTRES`` is what all running jobs of an association may hold together. Its levels:

* ``account``: every account, and the accounts above it (their sum).
* ``account-user``: also each user of an account.
* ``account-partition``: each user of an account in each partition, with one partition for each group of servers, so that the limits carry
  the *placement* too. Only an association of a user can have a partition.

Accounts and users are those that `fairopt.import_slurm` reads: a queue ``A/u`` in the queue A is user u of account A, ``A/u/p`` that user
in partition p, every other queue an account. A user of the instance that is in no queue is an account, or the part of its label before the
first slash is. A user of the instance in an account whose label does not start with ``A/`` is a user of Slurm.

With ``as_="billing"`` the limit is ``GrpTRES=billing=N``. Under ``PriorityFlags=MAX_TRES`` with ``TRESBillingWeights`` of 100,000 / C[r] a
job is billed 100,000 times its dominant share, rounded down, so that N limits the dominant share of an account, whatever its jobs ask for.
Where a task would be billed less than 100, all of it is 10 times as much, or 100 times, ...: what is billed nothing is not limited.

Where partitions do not carry the placement, weights of nodes come near it: Slurm fills nodes of low weight first. The weights here put a
group of servers before another where more of the tasks that could run on both are placed on it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from fairopt.allocation import Allocation
from fairopt.errors import InvalidInstance
from fairopt.exports.amounts import check_headroom, enlarged, kind_of, measures, whole_units
from fairopt.exports.names import SLURM, Names, changed
from fairopt.exports.result import Export
from fairopt.exports.rounding import Whole, whole_tasks
from fairopt.exports.slurm_accounts import ROOT, UNKNOWN, Accounts
from fairopt.exports.slurm_associations import Associations, read_associations
from fairopt.exports.tree import Holder, Holdings
from fairopt.instance import safe_ratio
from fairopt.wording import did_you_mean, exactly, figure, joined, named, plural, printable

__all__ = ["Level", "export_slurm"]

Level: TypeAlias = Literal["account", "account-user", "account-partition"]

_LEVELS = ("account", "account-user", "account-partition")
_AS = ("tres", "billing")
_KEYS = {"cpu": "cpu", "memory": "mem", "gpu": "gres/gpu"}
_SMALLEST: dict[str, Fraction | int] = {"cpu": 1, "memory": 2**20, "gpu": 1, "": 1}
_WHOLE_CLUSTER = 100_000  # what the dominant share of the whole cluster is billed, if a task is billed at least
_LEAST_BILLED = 100
_RESOURCE = re.compile(r"[^\s,=]+")  # characters that would end an amount
_STEP = 10  # between weights of nodes
_LEFT = "Limits are taken back. Associations with running jobs are still there: run this again when the jobs have ended."
_MOST = 5


def export_slurm(
    allocation: Allocation,
    *,
    level: Level = "account",
    headroom: float = 1.0,
    as_: Literal["tres", "billing"] = "tres",
    partitions: Mapping[str, str] | None = None,
    users: Mapping[str, str] | None = None,
    associations: str | os.PathLike[str] | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
) -> Export:
    """Write an allocation as limits of Slurm: the texts ``limits`` and ``undo`` are scripts of ``sacctmgr`` commands.

    Parameters
    ----------
    level : {"account", "account-user", "account-partition"}
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
    resources : mapping, optional
        TRES of resources; default: ``cpu``, ``mem``, and ``gres/NAME`` of all others.
    units : mapping, optional
        Units of cpu ("cores", "millicores") and of memory ("GiB", "MiB", "GB", ...).

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
    whole = whole_tasks(allocation, partitions)
    of_resource = measures(whole.instance.resources, _key, _SMALLEST, grammar=_RESOURCE, keys=resources, units=units, system="Slurm")
    tree = Accounts(whole.instance, dict(users or {}))
    holdings = Holdings(whole, of_resource, tree.holders)
    known = None if associations is None else read_associations(associations)
    return _Script(whole, holdings, tree, level, headroom, as_ == "billing", known).export()


def _check(level: str, as_: str, headroom: float) -> None:
    if level not in _LEVELS:
        raise InvalidInstance(f'there is no level "{level}"{did_you_mean(str(level), _LEVELS)}; there are {", ".join(_LEVELS)}')
    if as_ not in _AS:
        raise InvalidInstance(f'limits can be given as tres or as billing, not as "{as_}"')
    check_headroom(headroom)


def _key(resource: str) -> str:
    kind = kind_of(resource)
    return _KEYS[kind] if kind in _KEYS and ":" not in resource else f"gres/{resource}"


# The scripts ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of an association: of an account, of a user in it, of that user in a partition."""

    account: str
    user: str
    partition: str
    amounts: dict[str, int]  # by TRES
    before: dict[str, int]  # what is known of the limits that there are
    new: bool = False  # whether the association must be added

    cluster: str = ""  # the only one that is meant, where it is known

    @property
    def where(self) -> list[str]:
        cluster = [f"cluster={self.cluster}"] if self.cluster else []
        if not self.user:
            return ["account", "where", f"name={self.account}", *cluster]
        return ["user", "where", *self.association]

    @property
    def association(self) -> list[str]:
        """The words that single out an association of a user.

        Without ``partition=`` they would be all of this user in the account, those for single partitions too.
        """
        cluster = [f"cluster={self.cluster}"] if self.cluster else []
        return [f"name={self.user}", f"account={self.account}", f"partition={self.partition}", *cluster]


class _Script:
    def __init__(
        self, whole: Whole, holdings: Holdings, tree: Accounts, level: str, headroom: float, billing: bool, known: Associations | None
    ) -> None:
        self.whole, self.holdings, self.tree, self.level = whole, holdings, tree, level
        self.headroom, self.billing, self.known = headroom, billing, known
        places = [place for place in tree.places if place.user != UNKNOWN]
        self.account = Names(SLURM, "account", (ROOT,)).of(place.account for place in tree.places if place.account != ROOT) | {ROOT: ROOT}
        self.user = Names(SLURM, "user").of(place.user for place in places if place.user)
        listed = [*(group.name for group in whole.groups), *(place.partition for place in tree.places if place.partition)]
        self.partition = Names(SLURM, "partition").of(dict.fromkeys(listed))
        self.notes = list(whole.notes)

    def export(self) -> Export:
        limits = list(self._limits())
        self.notes += changed({a: n for a, n in self.account.items() if a != ROOT}, "names of accounts")
        self.notes += changed(self.user, "names of users")
        if self.level == "account-partition":
            self.notes += changed(self.partition, "names of partitions")
        self.notes += self._said()
        names = (self.partition if self.level == "account-partition" else {}) | self.user | self.account  # an account before the others
        names.pop(ROOT, None)
        return Export("slurm", {"limits": self._do(limits), "undo": self._undo(limits)}, self.whole, names, tuple(self.notes))

    # What is limited

    def _limits(self) -> Iterator[_Limit]:
        for h, (holder, place) in enumerate(zip(self.tree.holders, self.tree.places, strict=True)):
            if place.user and (self.level == "account" or place.user == UNKNOWN):
                continue
            if place.account == ROOT and not place.user:
                continue
            account, user = self.account[place.account], self.user.get(place.user, "")
            if not (user and self.level == "account-partition"):
                before = self._before(holder, h)
                yield self._limit(account, user, self.partition.get(place.partition, ""), self._of([h], None), before)
        if self.level == "account-partition":
            yield from self._by_partition()

    def _limit(self, account: str, user: str, partition: str, amounts: dict[str, int], before: dict[str, int] | None) -> _Limit:
        """Return the limit of an association; ``before`` is None where the instance has no such association."""
        if self.known is not None:
            self.known.require(account, user, partition)
            there = self.known.has(account, user, partition)
            return _Limit(account, user, partition, amounts, self.known.limits(account, user, partition), not there, self.known.cluster)
        return _Limit(account, user, partition, amounts, before or {}, before is None)

    def _by_partition(self) -> Iterator[_Limit]:
        if self.tree.unknown:
            raise InvalidInstance(
                f"the instance does not say who the users of {joined([named(name) for name in self.tree.unknown], _MOST)} are, and only an "
                "association of a user can have a partition; import the associations too, or name a user: "
                f"--user {shlex.quote(self.tree.unknown[0])}=USER"
            )
        members: dict[str, list[int]] = {}
        for g, group in enumerate(self.whole.groups):
            members.setdefault(group.name, []).append(g)
        of_user: dict[tuple[str, str], list[int]] = {}
        before: dict[tuple[str, str, str], dict[str, int]] = {}
        for h, place in enumerate(self.tree.places):
            if place.user:
                account, user = self.account[place.account], self.user[place.user]
                of_user.setdefault((account, user), []).append(h)
                if place.partition:
                    before[account, user, self.partition[place.partition]] = self._before(self.tree.holders[h], h)
        cells: list[tuple[str, str, str, list[int], list[int]]] = []
        for (account, user), holders in of_user.items():
            eligible = np.any([self.holdings.eligible(h) for h in holders], axis=0)
            for name, groups in members.items():
                if eligible[groups].any():
                    cells.append((account, user, self.partition[name], holders, groups))
        amounts = [self._of(holders, groups) for *_, holders, groups in cells]
        if not self.billing:
            self._keep_limits([(holders, groups) for *_, holders, groups in cells], amounts)
        for (account, user, partition, _, _), amount in zip(cells, amounts, strict=True):
            yield self._limit(account, user, partition, amount, before.get((account, user, partition)))

    def _keep_limits(self, cells: list[tuple[list[int], list[int]]], amounts: list[dict[str, int]]) -> None:
        """Take from the headroom of users in partitions what would exceed a limit that Slurm does not hold.

        An association for a partition is not under the association of the same user for all partitions; and a limit on a group of servers
        is the sum of those of the users in the partitions of the group. What is too much is taken in proportion to the headroom.
        """
        parents = [holder.parent for holder in self.tree.holders]
        left_out: list[str] = []
        for h in reversed(range(len(parents))):  # users first, then the accounts above them
            holder, place = self.tree.holders[h], self.tree.places[h]
            below = {h}
            for other in range(h + 1, len(parents)):  # a queue comes after the one that it is in
                if parents[other] in below:
                    below.add(other)
            for r, on, amount, _ in self.holdings.limits(h):
                if on.all() and not place.user:
                    continue  # the limit of the account holds it
                key = self.holdings.measures[self.holdings.resources[r]].key
                inside = [c for c, (holders, groups) in enumerate(cells) if below & {*holders} and on[groups].all()]
                if any(below & {*holders} and on[groups].any() and not on[groups].all() for holders, groups in cells):
                    left_out.append(holder.label)
                held = [int(self.holdings.held[np.ix_(cells[c][0], cells[c][1], [r])].sum()) for c in inside]
                extra = [amounts[c][key] - own for c, own in zip(inside, held, strict=True)]
                spare = max(amount - sum(held), 0)
                if sum(extra) > spare:
                    shares = whole_units([spare * each / sum(extra) for each in extra], spare)
                    for c, own, share in zip(inside, held, shares, strict=True):
                        amounts[c][key] = own + share
        if left_out and self.headroom > 1:
            several = joined([named(label) for label in dict.fromkeys(left_out)], _MOST)
            self.notes.append(
                f"Slurm has no limits on a part of the nodes of a partition: with headroom, those of {several} "
                "can be exceeded; give these servers a partition of their own (--partition ROW=NAME)"
            )

    def _of(self, holders: list[int], groups: list[int] | None) -> dict[str, int]:
        """Return the limits of holders together: of one on all servers, or on some groups of them."""
        if self.billing:
            return {"billing": self._billed(holders, groups)}
        chosen = list(range(len(self.whole.groups))) if groups is None else groups
        held, there = self.holdings.held[np.ix_(holders, chosen)].sum(axis=(0, 1)), self.holdings.capacity[chosen].sum(axis=0)
        own = self.holdings.at_most(holders[0]) if groups is None else {}
        amounts: dict[str, int] = {}
        for r, (resource, measure) in enumerate(self.holdings.measures.items()):
            most = min(own.get(resource, int(there[r])), max(int(there[r]), int(held[r])))
            amounts[measure.key] = min(enlarged(int(held[r]), self.headroom), most)
        return amounts

    def _before(self, holder: Holder, h: int) -> dict[str, int]:
        if holder.queue is None:
            return {}
        limits = self.holdings.at_most(h)
        return {self.holdings.measures[resource].key: amount for resource, amount in limits.items()}

    # Billing

    def _weights(self) -> dict[str, tuple[str, float]]:
        """Return the billing weight of each resource: its text, and what one unit of the instance is billed."""
        weights = {}
        instance = self.whole.instance
        shares = safe_ratio(instance.demands, instance.total_capacity)
        largest = np.where(np.isfinite(shares), shares, 0.0).max(axis=1, initial=0.0)
        whole_cluster = _WHOLE_CLUSTER
        while whole_cluster * largest.min(initial=1.0, where=largest > 0) < _LEAST_BILLED:
            whole_cluster *= 10
        for r, (resource, measure) in enumerate(self.holdings.measures.items()):
            there = int(self.holdings.capacity[:, r].sum())
            if there:
                per = 1024 if measure.kind == "memory" else 1
                value = float(f"{whole_cluster * per / there:.9g}")
                key = {"cpu": "CPU", "mem": "Mem"}.get(measure.key, measure.key.replace("gres/", "GRES/", 1))
                weights[resource] = f"{key}={exactly(value)}{'G' if measure.kind == 'memory' else ''}", value * measure.steps / per
        return weights

    def _billed(self, holders: list[int], groups: list[int] | None) -> int:
        """Return what the tasks of holders are billed together: each task its largest weighted amount, rounded down."""
        instance, weights = self.whole.instance, self._weights()
        column = [instance.resources.index(resource) for resource in weights]
        per_task = np.floor((instance.demands[:, column] * [value for _, value in weights.values()]).max(axis=1, initial=0.0) + 1e-9)
        users = np.any([self.tree.holders[h].users for h in holders], axis=0)
        tasks = self.whole.tasks if groups is None else self.whole.tasks[:, groups]
        return enlarged(int(per_task[users] @ tasks[users].sum(axis=1)), self.headroom)

    # Notes

    def _said(self) -> Iterator[str]:
        yield (
            "limits are hard: what an account does not use stays idle. Write them again when demand changes, from a timer, and keep the "
            "weights of accounts as they are, so that the target does not move"
        )
        if self.level == "account-partition":
            partitions = ",".join(dict.fromkeys(self.partition[group.name] for group in self.whole.groups))
            yield f"jobs must be submitted to these partitions (or to several: -p {partitions}); others are limited by their account alone"
        elif len(self.whole.groups) > 1:
            yield (
                "limits of totals do not say on which servers tasks run: the level account-partition does, with a partition for each group "
                "of servers; weights of nodes come near it, and are in the script"
            )
        if self.tree.unknown and self.level == "account-user":
            several = joined([named(name) for name in self.tree.unknown], _MOST)
            yield f"the instance does not say who the users of {several} are: only these accounts are limited"
        if self.billing:
            yield (
                "a limit of billing holds the dominant share of an account whatever its jobs ask for; it needs PriorityFlags=MAX_TRES and "
                "the TRESBillingWeights of the script on every partition, and counts a job on several nodes by its largest part on each"
            )
        lending = [named(holder.label) for holder in self.tree.holders if holder.queue and _lends(holder)]
        if lending:
            yield f"Slurm has no guarantees that are kept idle: the lending limits of {joined(lending, _MOST)} are not in the export"
        if self.level != "account-partition":
            yield from (note for note in self.holdings.notes_of_groups("Slurm") if "groups of servers:" in note)
        if self.known is None:
            deleted = ""
            if self.level == "account-partition":
                deleted = ", and deletes the associations for partitions, those too that were there before"
            yield (
                f"undo.sh puts back the limits that the instance knows, and removes the others{deleted}; --associations restores them "
                "exactly, and names the cluster where slurmdbd has several"
            )

    # The texts

    def _do(self, limits: list[_Limit]) -> str:
        allocation = self.whole.allocation
        head = [
            f"fairopt: limits of Slurm for the allocation {allocation.notion}, level {self.level}, headroom {figure(self.headroom, 6)}.",
            "GrpTRES is enforced where AccountingStorageEnforce has limits; gres/NAME must be in AccountingStorageTRES.",
            "Before: sacctmgr dump CLUSTER file=before.cfg. Afterwards: undo.sh takes the limits back.",
        ]
        if self.billing:
            weights = ",".join(text for text, _ in self._weights().values())
            head += ["slurm.conf: PriorityFlags=MAX_TRES, and of every partition", f'  TRESBillingWeights="{weights}"']
        if self.level == "account-partition":
            head += ["Partitions, one for each group of servers:"]
            for group in self.whole.groups:
                head.append(f"  PartitionName={self.partition[group.name]}  {self._servers(group.name)}")
        elif len(self.whole.groups) > 1:
            head += ["Weights of nodes in slurm.conf that come near the placement (nodes of low weight are filled first):"]
            for g, weight in self._node_weights():
                head.append(f"  Weight={weight}  {self._servers(self.whole.groups[g].name)}")
        new = [limit for limit in limits if limit.new]
        if new:
            head.append("An association that is there already cannot be added, which is no error: the script can be run again.")
        lines = [f"{_command(['add', 'user', *limit.association])} || true" for limit in new]
        lines += [_command(["modify", *limit.where, "set", f"GrpTRES={self._tres(limit.amounts)}"]) for limit in limits]
        return _script(head, lines)

    def _undo(self, limits: list[_Limit]) -> str:
        head = ["fairopt: takes back what limits.sh sets. A limit of -1 is none."]
        new = [limit for limit in limits if limit.new]
        lines = [self._back(limit) for limit in limits if not limit.new]
        if new:
            head.append("sacctmgr does not delete an association while its jobs run: let them end, and run this again.")
            lines.append("left=")
        for limit in new:  # what an earlier run has deleted cannot be modified, which is no error
            lines += [
                f"if {self._back(limit)}",
                "then",
                f"  {_command(['delete', 'user', 'where', *limit.association])} || left=yes",
                "fi",
            ]
        if new:
            lines.append(f'[ -z "$left" ] || {{ echo {shlex.quote(_LEFT)} >&2; exit 1; }}')
        return _script(head, lines)

    def _back(self, limit: _Limit) -> str:
        """Return the command that puts back the limits of an association."""
        old = {key: limit.before.get(key, -1) for key in limit.amounts}
        return _command(["modify", *limit.where, "set", f"GrpTRES={self._tres(old)}"])

    def _tres(self, amounts: Mapping[str, int]) -> str:
        memory = {measure.key for measure in self.holdings.measures.values() if measure.kind == "memory"}
        return ",".join(f"{key}={_megabytes(value) if key in memory else value}" for key, value in sorted(amounts.items()))

    def _servers(self, name: str) -> str:
        rows = [self.whole.instance.servers[i] for group in self.whole.groups if group.name == name for i in group.rows]
        count = sum(group.count for group in self.whole.groups if group.name == name)
        return f"# {plural(count, 'node')}: {printable(joined(rows, _MOST))}"

    def _node_weights(self) -> list[tuple[int, int]]:
        """Return the groups in the order in which to fill them, with their weights."""
        eligible = np.array([self.whole.instance.eligibility[:, group.rows].any(axis=1) for group in self.whole.groups], float)
        tasks = self.whole.tasks.T  # (groups, users)
        share = np.asarray(safe_ratio(tasks, self.whole.tasks_per_user[None, :]))
        here = np.where(self.whole.tasks_per_user > 0, share, 0.0) @ eligible.T  # parts of users placed on g who may run on the other
        order = np.argsort(-(here - here.T).sum(axis=1), kind="stable")
        return [(int(g), _STEP * number) for number, g in enumerate(order, 1)]


def _lends(holder: Holder) -> bool:
    assert holder.queue is not None
    return bool(holder.queue.lending_limit) or any(quota.lending_limit for quota in holder.queue.quotas)


def _megabytes(amount: int) -> str:
    """Return an amount of MiB in Slurm's letters, which are powers of 1024."""
    if amount < 0:
        return str(amount)
    return f"{amount // 1024}G" if amount % 1024 == 0 and amount else f"{amount}M"


def _command(words: list[str]) -> str:
    return " ".join(["sacctmgr", "-i", *(shlex.quote(word) for word in words)])


def _script(head: list[str], lines: list[str]) -> str:
    """Return a script that stops at the first command that fails. Comments never hold a line end."""
    return "\n".join(["#!/bin/sh", *(f"# {printable(line)}" for line in head), "set -e", *lines, ""])
