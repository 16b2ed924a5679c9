"""The limits of an export to Slurm: of each association the amounts of its TRES, or what its tasks are billed.

`fairopt.slurm.exporting` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairopt.clusters.amounts import enlarged, whole_units
from fairopt.clusters.holdings import Holder, Holdings
from fairopt.clusters.names import SLURM, Names
from fairopt.clusters.read_back import Said
from fairopt.clusters.rounding import Whole
from fairopt.errors import InvalidInstance
from fairopt.instance import safe_ratio
from fairopt.instance.tolerances import FITS
from fairopt.slurm.accounts import ROOT, UNKNOWN, Accounts
from fairopt.slurm.associations import CurrentLimits
from fairopt.slurm.license_limits import LicenseUse
from fairopt.slurm.qos_limits import QosExport, held_by_qos
from fairopt.wording import exactly, in_shell, joined, named

__all__ = ["MOST", "Limit", "SlurmLimits"]

MOST = 5  # names in a note
_WHOLE_CLUSTER = 100_000  # what the dominant share of the whole cluster is billed, if a task is billed at least
_LEAST_BILLED = 100


@dataclass(frozen=True, slots=True)
class Limit:
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
        """The words after which its settings stand."""
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


@dataclass(frozen=True, slots=True, eq=False)
class SlurmLimits:
    """The limits of an allocation at a level, with the names that accounts, users and partitions have in Slurm.

    Attributes
    ----------
    whole : Whole
    holdings : Holdings
    tree : Accounts
    level : {"account", "account-user", "account-partition"}
    headroom : float
    licenses : tuple of LicenseUse
        Those that are limited: of accounts and users on all servers together.
    billing : bool
        Whether the dominant share is limited, and not every resource.
    known : CurrentLimits or None
        The associations of Slurm, if they are known.
    qos : QosExport or None
        The limits of QOS that are set.
    account, user, partition : dict
        Name in Slurm of each label.
    """

    whole: Whole
    holdings: Holdings
    tree: Accounts
    level: str
    headroom: float
    licenses: tuple[LicenseUse, ...]
    billing: bool
    known: CurrentLimits | None
    qos: QosExport | None
    account: dict[str, str]
    user: dict[str, str]
    partition: dict[str, str]

    @classmethod
    def of(
        cls,
        whole: Whole,
        holdings: Holdings,
        tree: Accounts,
        level: str,
        headroom: float,
        licenses: tuple[LicenseUse, ...],
        billing: bool,
        known: CurrentLimits | None,
        qos: QosExport | None = None,
    ) -> SlurmLimits:
        """Return them with names that Slurm's grammar allows."""
        places = [place for place in tree.places if place.user != UNKNOWN]
        account = Names(SLURM, "account", (ROOT,)).of(place.account for place in tree.places if place.account != ROOT) | {ROOT: ROOT}
        user = Names(SLURM, "user").of(place.user for place in places if place.user)
        listed = [*(group.name for group in whole.groups), *(place.partition for place in tree.places if place.partition)]
        partition = Names(SLURM, "partition").of(dict.fromkeys(listed))
        return cls(whole, holdings, tree, level, headroom, licenses, billing, known, qos, account, user, partition)

    def limits(self) -> tuple[list[Limit], list[str]]:
        """Return the limits of all associations, and notes on them."""
        limits = list(self._of_all_servers())
        if self.level != "account-partition":
            return limits, []
        by_partition, notes = self._by_partition()
        return limits + by_partition, notes

    def said(self) -> Said | None:
        """Return what the limits say of each holder, on all servers together; None of what is billed."""
        if self.billing:
            return None
        resource_of = {measure.key: resource for resource, measure in self.holdings.measures.items()}
        of_qos = held_by_qos(self.whole.instance)
        most: list[dict[str, int]] = []
        for h, place in enumerate(self.tree.places):
            limited = not (place.user and (self.level == "account" or place.user == UNKNOWN)) and (place.account != ROOT or place.user)
            amounts = self._of([h], None) if limited else {}
            inside = self.tree.holders[h].users
            free = {resource for resource, users in of_qos.items() if users[inside].all()}  # no limit of an account holds their jobs
            most.append({r: amount for key, amount in amounts.items() if (r := resource_of.get(key)) is not None and r not in free})
        bounds = {} if self.qos is None else self.qos.bounds
        return Said(most, promised=False, tiers=True, bounds=bounds)  # the script changes neither weights nor what preempts

    def _of_all_servers(self) -> Iterator[Limit]:
        for h, (holder, place) in enumerate(zip(self.tree.holders, self.tree.places, strict=True)):
            if place.user and (self.level == "account" or place.user == UNKNOWN):
                continue
            if place.account == ROOT and not place.user:
                continue
            account, user = self.account[place.account], self.user.get(place.user, "")
            if not (user and self.level == "account-partition"):
                before = self._before(holder, h)
                yield self._limit(account, user, self.partition.get(place.partition, ""), self._of([h], None), before)

    def _limit(self, account: str, user: str, partition: str, amounts: dict[str, int], before: dict[str, int] | None) -> Limit:
        """Return the limit of an association; ``before`` is None where the instance has no such association."""
        if self.known is not None:
            self.known.require(account, user, partition)
            there = self.known.has(account, user, partition)
            return Limit(account, user, partition, amounts, self.known.limits(account, user, partition), not there, self.known.cluster)
        return Limit(account, user, partition, amounts, before or {}, before is None)

    def _by_partition(self) -> tuple[list[Limit], list[str]]:
        if self.tree.unknown:
            raise InvalidInstance(
                f"the instance does not say who the users of {joined([named(name) for name in self.tree.unknown], MOST)} are, and only an "
                "association of a user can have a partition; import the associations too, or name a user: "
                f"--user-of {in_shell(self.tree.unknown[0])}=USER"
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
        notes: list[str] = []
        if not self.billing:
            amounts, notes = self._within_limits([(holders, groups) for *_, holders, groups in cells], amounts)
        limits = [
            self._limit(account, user, partition, amount, before.get((account, user, partition)))
            for (account, user, partition, _, _), amount in zip(cells, amounts, strict=True)
        ]
        return limits, notes

    def _within_limits(
        self, cells: list[tuple[list[int], list[int]]], amounts: list[dict[str, int]]
    ) -> tuple[list[dict[str, int]], list[str]]:
        """Return the limits of users in partitions without the headroom that would exceed a limit that Slurm does not hold.

        An association for a partition is not under the association of the same user for all partitions; and a limit on a group of servers
        is the sum of those of the users in the partitions of the group. What is too much is taken in proportion to the headroom.
        The second value is a list of notes on limits that can be exceeded nevertheless.
        """
        amounts = [dict(of_cell) for of_cell in amounts]
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
        if not left_out or self.headroom == 1:
            return amounts, []
        several = joined([named(label) for label in dict.fromkeys(left_out)], MOST)
        return amounts, [
            f"Slurm has no limits on a part of the nodes of a partition: with headroom, those of {several} "
            "can be exceeded; give these servers a partition of their own (--partition ROW=NAME)"
        ]

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
        if groups is None:
            holder = self.tree.holders[holders[0]]
            amounts |= {each.key: each.held(holder, self.whole.tasks_per_user, self.headroom) for each in self.licenses}
        return amounts

    def _before(self, holder: Holder, h: int) -> dict[str, int]:
        if holder.queue is None:
            return {}
        limits = self.holdings.at_most(h)
        of_licenses = {each.key: int(each.bounds[holder.queue.name]) for each in self.licenses if holder.queue.name in each.bounds}
        return {self.holdings.measures[resource].key: amount for resource, amount in limits.items()} | of_licenses

    def weights(self) -> dict[str, tuple[str, float]]:
        """Return the billing weight of each resource: its text, and what one unit of the instance is billed."""
        weights = {}
        instance = self.whole.instance
        shares = safe_ratio(instance.demands_by_kind, instance.total_capacity)
        largest = np.where(np.isfinite(shares), shares, 0.0).max(axis=-1, initial=0.0)
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
        instance, weights = self.whole.instance, self.weights()
        column = [instance.resources.index(resource) for resource in weights]
        users = np.any([self.tree.holders[h].users for h in holders], axis=0)
        billed = 0
        for g in range(len(self.whole.groups)) if groups is None else groups:
            amounts = self.whole.demands(g)[:, column] * [value for _, value in weights.values()]
            per_task = np.floor(amounts.max(axis=1, initial=0.0) + FITS)
            billed += int(per_task[users] @ self.whole.tasks[users, g])
        return enlarged(billed, self.headroom)
