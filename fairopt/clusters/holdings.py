"""The queues of an instance as the tree of a scheduler, and the amounts that each queue holds on each group of servers.

A queue without queues in it is a leaf. So is an owner in the root: its users are one leaf, and a user without an owner is one of its own.
Users in a queue that has queues too share a leaf beside these, ``QUEUE-own``: most schedulers run tasks in leaves only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import Measures, check_headroom, check_memory, enlarged, whole_part, whole_units
from fairopt.clusters.names import Grammar, Names
from fairopt.clusters.quotas import promised
from fairopt.clusters.rounding import Whole, whole_tasks
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.queues import Queue, Quota
from fairopt.wording import joined, named

__all__ = ["Holder", "Holdings", "holders_of", "owners_in_root"]

_MOST = 5


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """A node of the tree.

    Attributes
    ----------
    label : str
    parent : int
        Position of the parent; -1 for the root.
    users : bool array (users,)
        Those below.
    leaf : bool
    weight : float
    queue : Queue or None
        None for an owner in the root, and for the users beside the queues of a queue.
    """

    label: str
    parent: int
    users: BoolArray
    leaf: bool
    weight: float
    queue: Queue | None

    @property
    def tier(self) -> int:
        """The tier of the queue."""
        return self.queue.tier if self.queue else 0

    @property
    def ordered(self) -> bool:
        """Is it a leaf that serves its users one after the other?"""
        return self.leaf and self.queue is not None and self.queue.order == "listed"


def holders_of(instance: Instance) -> tuple[Holder, ...]:
    """Return the nodes, parents before children."""
    tree = instance.tree
    weights = instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users)
    place = {0: -1}
    holders: list[Holder] = []
    labels = {queue.name for queue in instance.queues} | set(instance.users)
    for node in tree.downwards():
        if not node:
            continue
        queue = tree.queues[node - 1]
        inner = bool(len(tree.children(node)))
        place[node] = len(holders)
        holders.append(Holder(queue.name, place[int(tree.parent[node])], tree.below[node], not inner, queue.weight, queue))
    for node in tree.downwards():
        own = tree.users_of(node)
        if not node:
            for label, users in owners_in_root(instance).items():
                mask = np.zeros(instance.n_users, bool)
                mask[users] = True
                holders.append(Holder(label, -1, mask, True, float(weights[users].sum()), None))
        elif len(own) and len(tree.children(node)):
            mask = np.zeros(instance.n_users, bool)
            mask[own] = True
            label = f"{tree.name(node)}-own"
            while label in labels:
                label += "'"
            labels.add(label)
            holders.append(Holder(label, place[node], mask, True, float(weights[own].sum()), None))
    return tuple(holders)


def owners_in_root(instance: Instance) -> dict[str, list[int]]:
    """Return the users in the root by owner; a user without an owner, and one whose owner has the name of a queue, by its own label."""
    owners: dict[str, list[int]] = {}
    taken = {queue.name for queue in instance.queues}
    for n in instance.tree.users_of(0):
        owner = instance.owners[n]
        owners.setdefault(instance.users[n] if owner is None or owner in taken else owner, []).append(int(n))
    return owners


class Holdings:
    """What each holder has, in whole numbers of the scheduler's smallest units.

    Attributes
    ----------
    holders : tuple of Holder
    resources : tuple of str
        Those that the scheduler knows.
    held : int array (holders, groups, resources)
    capacity : int array (groups, resources)
        What the groups of servers have.
    promised : int array (holders, groups, resources)
        What each holder is promised, for a scheduler that lends what is not used (`fairopt.clusters.quotas`): what it holds, unless
        somebody is guaranteed more than it uses.
    unused : tuple of int
        The holders that do not use all that they are guaranteed.
    """

    def __init__(self, whole: Whole, measures: Measures, holders: tuple[Holder, ...] | None = None) -> None:
        instance = whole.instance
        self.whole, self.measures = whole, measures
        self.holders = holders_of(instance) if holders is None else holders
        self.resources = tuple(measures)
        column = [instance.resources.index(resource) for resource in self.resources]
        for r, (resource, measure) in zip(column, measures.items(), strict=True):
            largest = int(np.argmax(instance.capacities[:, r]))
            check_memory(resource, measure, instance.servers[largest], float(instance.capacities[largest, r]))
        self.steps = np.array([measure.steps for measure in measures.values()])
        there = whole.capacity[:, column] * self.steps
        shape = len(self.holders), len(whole.groups), len(self.resources)
        self.held = np.zeros(shape, dtype=np.int64)
        self.capacity = np.array([[whole_part(amount) for amount in row] for row in there.tolist()], dtype=np.int64).reshape(there.shape)
        leaves = [h for h, holder in enumerate(self.holders) if holder.leaf]
        for g in range(shape[1]):
            demands: FloatArray = whole.demands(g)[:, column] * self.steps
            for r in range(shape[2]):
                amounts = [float(demands[self.holders[h].users, r] @ whole.tasks[self.holders[h].users, g]) for h in leaves]
                self.held[leaves, g, r] = whole_units(amounts, float(there[g, r]))
        for h in reversed(range(len(self.holders))):  # a user of a queue comes after it, and so do the queues in it
            if self.holders[h].parent >= 0:
                self.held[self.holders[h].parent] += self.held[h]
        guarantees = [(h, r, on, amount) for h in range(shape[0]) for r, on, amount, _ in self.guarantees(h)]
        self.promised, unused = promised([holder.parent for holder in self.holders], self.held, self.capacity, guarantees)
        self.unused = tuple(unused)

    @classmethod
    def of(
        cls,
        allocation: Allocation,
        headroom: float | None,
        counted: Callable[[Instance], Measures],
        groups: Mapping[str, str] | None = None,
        time_limit: float | None = None,
    ) -> Holdings:
        """Return what the whole tasks near an allocation hold.

        Parameters
        ----------
        headroom : float or None
            Is checked.
        counted : function
            How the scheduler counts the resources of an instance.
        groups : mapping, optional
            The names of groups of server rows, by row.
        time_limit : float, optional
            Seconds of the search for a placement on fewer rows and servers.

        Raises
        ------
        InvalidInstance, Unsupported
        """
        check_headroom(headroom)
        whole = whole_tasks(allocation, groups, time_limit)
        return cls(whole, counted(whole.instance))

    def root_name(self, name: str) -> str:
        """Return a name for the queue above all others, which no holder has."""
        while name in {holder.label for holder in self.holders}:
            name += "-all"
        return name

    def queue_names(self, grammar: Grammar, *taken: str) -> dict[str, str]:
        """Return a name that the scheduler allows for each holder, and that is not taken."""
        return Names(grammar, "queue", taken).of(holder.label for holder in self.holders)

    @property
    def total(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """What each holder has in the cluster, (holders, resources)."""
        summed: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = self.held.sum(axis=1)
        return summed

    def quota(self, h: int) -> dict[str, int]:
        """Return what a holder is promised in the cluster, by resource."""
        return dict(zip(self.resources, self.promised[h].sum(axis=0).tolist(), strict=True))

    def eligible(self, h: int) -> BoolArray:
        """Return the groups on which some user below may run, (groups,)."""
        instance = self.whole.instance
        rows = np.asarray(instance.eligibility[self.holders[h].users].any(axis=0))
        return np.array([bool(rows[group.rows].any()) for group in self.whole.groups])

    def in_steps(self, resource: str, amount: float) -> int:
        """Return an amount of a queue, in the smallest units, rounded down."""
        return whole_part(amount * self.measures[resource].steps)

    def limits(self, h: int) -> Iterator[tuple[int, BoolArray, int, str]]:
        """Yield the limits of a queue: the position of the resource, the groups that it is for, the amount, and where."""
        yield from self._amounts(h, "limit")

    def guarantees(self, h: int) -> Iterator[tuple[int, BoolArray, int, str]]:
        """Yield the guarantees of a queue in the same form."""
        yield from self._amounts(h, "guarantee")

    def kept(self, h: int) -> Iterator[tuple[int, BoolArray, int, str]]:
        """Yield what a queue keeps of its guarantees even when it is idle: the guarantee less its lending limit."""
        for quota, groups, where in self._quotas(h):
            for resource, lent in quota.lending_limit.items():
                if resource in self.measures:
                    kept = max(quota.guarantee[resource] - lent, 0.0)
                    yield self.resources.index(resource), groups, self.in_steps(resource, kept), where

    def _amounts(self, h: int, what: str) -> Iterator[tuple[int, BoolArray, int, str]]:
        for quota, groups, where in self._quotas(h):
            for resource, amount in getattr(quota, what).items():
                if resource in self.measures:
                    yield self.resources.index(resource), groups, self.in_steps(resource, amount), where

    def _quotas(self, h: int) -> Iterator[tuple[Queue | Quota, BoolArray, str]]:
        queue = self.holders[h].queue
        if queue is None:
            return
        yield queue, np.ones(len(self.whole.groups), bool), ""
        servers = self.whole.instance.servers
        for quota in queue.quotas:
            yield quota, np.array([servers[group.rows[0]] in quota.servers for group in self.whole.groups]), quota.name

    def at_most(self, h: int, factor: float | None = None) -> dict[str, int]:
        """Return what a holder may have in the cluster: what it has times the factor, or no limit of its own; never above its limit.

        Without a factor, only its limits for the whole cluster.
        """
        most: dict[str, int] = {}
        total, there = self.total[h], self.capacity.sum(axis=0)
        for r, resource in enumerate(self.resources):
            if factor is not None:
                most[resource] = min(enlarged(int(total[r]), factor), max(int(there[r]), int(total[r])))
        for r, groups, amount, _ in self.limits(h):
            if groups.all():
                resource = self.resources[r]
                most[resource] = min(most.get(resource, amount), amount)
        return most

    def ceilings(self, factor: float | None) -> list[dict[str, int]]:
        """Return the ceiling of each holder by resource: of a leaf, ``factor`` times what it has; never above the ceiling of its parent.

        A resource that is not named has no ceiling. No ceiling is below what a holder has or is promised.
        """
        found: list[dict[str, int]] = []
        for h, holder in enumerate(self.holders):
            most = self.at_most(h, factor if holder.leaf else None)
            above = found[holder.parent] if holder.parent >= 0 else {}
            for r, resource in enumerate(self.resources):
                if resource in most:
                    least = max(int(self.total[h, r]), int(self.promised[h, :, r].sum()))
                    most[resource] = max(min(most[resource], above.get(resource, most[resource])), least)
            found.append(most)
        return found

    def notes_of_tree(self, system: str, *, lending: bool = False, tiers: bool = False, weights: str = "") -> list[str]:
        """Return notes on what a scheduler cannot express: lending limits, tiers, weights (``weights``: how it divides idle resources)."""
        notes = [*self.notes_of_weights(), *self.notes_of_promises()]
        lends = [named(holder.label) for h, holder in enumerate(self.holders) if any(kept for _, _, kept, _ in self.kept(h))]
        if lends and not lending:
            notes.append(f"{system} lends all that is idle: the lending limits of {joined(lends, _MOST)} are not in the export")
        if not tiers and any(holder.tier for holder in self.holders):
            notes.append(f"{system} has no tiers of queues: those of the instance are not in the export")
        if weights and len({holder.weight for holder in self.holders}) > 1:
            notes.append(f"{system} divides what is idle {weights}, and not by weights")
        idle = [named(holder.label) for holder in self.holders if holder.weight == 0]
        if weights and idle:
            notes.append(f"{system} has no weight of 0: {joined(idle, _MOST)} may take what is idle; give it a maximum to prevent that")
        return notes

    def notes_of_promises(self) -> list[str]:
        """Return a note on guarantees that are not used now, if there are any."""
        if not self.unused:
            return []
        some = joined([named(self.holders[h].label) for h in self.unused], _MOST)
        verbs = "is guaranteed and does" if len(self.unused) == 1 else "are guaranteed and do"
        return [f"what {some} {verbs} not use now is in the export; others borrow it"]

    def notes_of_weights(self) -> list[str]:
        """Return a note that weights per resource are not exported, if there are any."""
        one = self.whole.instance.weights.ndim == 1
        return [] if one else ["queues have one weight for all resources: weights per resource are not in the export"]

    def notes_of_groups(self, system: str) -> list[str]:
        """Return notes that a scheduler without groups of servers can express neither limits on them nor the placement."""
        notes = []
        on_groups = [
            named(holder.label) for h, holder in enumerate(self.holders) if any(not groups.all() for _, groups, _, _ in self.limits(h))
        ]
        if on_groups:
            notes.append(f"{system} has no limits on groups of servers: those of {joined(on_groups, _MOST)} are not in the export")
        if len(self.whole.groups) > 1:
            notes.append(
                f"{system} does not say on which servers a queue runs: the totals of the allocation are in the export, its placement is "
                "not; tasks that could run elsewhere may take the servers that others need"
            )
        return notes
