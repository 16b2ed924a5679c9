"""Objects of Kueue that carry an allocation: ResourceFlavors, Cohorts, ClusterQueues and LocalQueues.

* A **ResourceFlavor** is a group of identical servers, found by labels of nodes.
* Every leaf of the tree of queues is a **ClusterQueue**, every queue above it a **Cohort**, all in the cohort ``cluster``. The nominal
  quota of a ClusterQueue on a flavor is what its whole tasks there ask for, so the placement is in the quotas; and what it is guaranteed
  and does not use now (`fairopt.clusters.quotas`), of a Cohort beyond the quotas in it. What is left over is a nominal quota of the cohort
  ``cluster``, which everybody may borrow.
* ``borrowingLimit`` keeps a queue within its limit, or within ``headroom`` times its quota; ``lendingLimit`` keeps what a queue does not
  lend of its guarantee. Where a limit is for several flavors together, it is divided among them by capacity: Kueue limits each by itself,
  and so their sum is never above it.
* ``fairSharing.weight`` is the weight; what is idle is borrowed by weights, and reclaimed by its owner (``reclaimWithinCohort: Any``).
* A **LocalQueue** ``default`` in the namespace of every owner points to its ClusterQueue.

Source: Kueue's API v1beta2. Every flavor of a resource group lists all covered resources in one order; limits are only for queues in a
cohort.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import enlarged, whole_units
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holdings
from fairopt.clusters.names import DNS_LABEL, DNS_SUBDOMAIN, Names, changed
from fairopt.clusters.read_back import Said
from fairopt.errors import InvalidInstance
from fairopt.kubernetes.objects import QUALIFIED_NAME, documents, kubernetes_measures, quantity
from fairopt.kubernetes.quota_export import namespace_of
from fairopt.wording import figure, in_shell, joined, named

__all__ = ["export_kueue"]

_VERSION = "kueue.x-k8s.io/v1beta2"
_LABEL = "fairopt/servers"  # of nodes, where the caller names no labels
_ROOT = "cluster"
_LOCAL = "default"
_MOST_FLAVORS = 64
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)  # of a label
_MOST = 5
_Amounts = dict[tuple[str, str], int]  # by flavor and resource


@keeps_question
def export_kueue(
    allocation: Allocation,
    *,
    headroom: float | None = None,
    flavors: Mapping[str, Mapping[str, str]] | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as objects of Kueue.

    Parameters
    ----------
    headroom : float, optional
        A queue may borrow until it holds its quota times this factor; 1: no borrowing. Default: all that is idle, within its limits.
    flavors : mapping, optional
        The labels of the nodes of server rows, ``{"gpu-1 +3": {"model": "A100"}}``: rows with the same labels are one flavor. Default: each
        group of identical servers is a flavor, and its nodes must be given a label.
    resources : mapping, optional
        Names of resources; default: ``cpu``, ``memory``, ``nvidia.com/gpu`` for "gpu", and names that Kubernetes knows.
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
    >>> export_kueue(fo.solve(lab, "drfh"))
    Export(kueue: 17 whole tasks of 2 users, queues)
    """
    given = {row: dict(labels) for row, labels in (flavors or {}).items()}
    for row, labels in given.items():
        if not labels:
            raise InvalidInstance(f"the flavor of {named(row)} has no label; give the labels of its nodes, such as model=A100")
        for key, value in labels.items():
            if not (QUALIFIED_NAME.fullmatch(key) and _VALUE.fullmatch(value)):
                raise InvalidInstance(
                    f"the flavor of {named(row)}: {named(f'{key}={value}')} is no label of a node; give KEY=VALUE of letters, digits, "
                    '"-", "_" and ".", such as model=A100'
                )
    groups = {row: ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) for row, labels in given.items()}
    holdings = Holdings.of(
        allocation,
        headroom,
        lambda instance: kubernetes_measures(instance, resources, units, "Kueue"),
        groups,
        time_limit=placement_time_limit,
    )
    return _Objects(holdings, headroom, given).export()


class _Objects:
    def __init__(self, holdings: Holdings, headroom: float | None, labels: Mapping[str, Mapping[str, str]]) -> None:
        self.whole = whole = holdings.whole
        self.holdings, self.headroom = holdings, headroom
        self.holders, self.measures = holdings.holders, holdings.measures
        self.members: dict[str, list[int]] = {}
        for g, group in enumerate(whole.groups):
            self.members.setdefault(group.name, []).append(g)
        if len(self.members) > _MOST_FLAVORS:
            raise InvalidInstance(
                f"there are {len(self.members)} groups of servers, and Kueue takes {_MOST_FLAVORS} flavors; name labels that several rows "
                "share (--flavor ROW=KEY=VALUE)"
            )
        self.flavor = Names(DNS_LABEL, "flavor").of(self.members)
        servers = whole.instance.servers
        self.labels = {
            name: dict(labels.get(servers[whole.groups[groups[0]].rows[0]]) or {_LABEL: self.flavor[name]})
            for name, groups in self.members.items()
        }
        self.root = holdings.root_name(_ROOT)
        self.names = holdings.queue_names(DNS_SUBDOMAIN, self.root)
        leaves = [h for h, holder in enumerate(self.holders) if holder.leaf]
        self.namespace = {h: namespace_of(whole.instance, self.holders[h]) for h in leaves}
        self.namespaces = Names(DNS_LABEL, "namespace").of(self.namespace.values())
        self.notes: list[str] = []

    def _parent(self, h: int) -> str | None:
        return self.holders[self.holders[h].parent].label if self.holders[h].parent >= 0 else None

    def export(self) -> Export:
        objects = [*self._flavors(), self._cohort_of_all()]
        objects += [self._queue(h) for h in range(len(self.holders))]
        seen: dict[str, int] = {}
        for h, namespace in self.namespace.items():
            seen[namespace] = seen.get(namespace, 0) + 1
            objects.append(self._local(h, _LOCAL if seen[namespace] == 1 else f"{_LOCAL}-{seen[namespace]}"))
        twice = [named(namespace) for namespace, number in seen.items() if number > 1]
        if twice:
            self.notes.append(
                f"namespaces in several queues ({joined(twice, _MOST)}): pods of the first queue name the LocalQueue {_LOCAL}, "
                f"those of the others name {_LOCAL}-2, ..."
            )
        self._say()
        head = [
            f"fairopt: objects of Kueue for the allocation {self.whole.allocation.notion}.",
            "Apply: kubectl apply -f FILE. Nodes need the labels of the ResourceFlavors:",
            *(f"  {self._nodes(name)}" for name in self.members),
        ]
        names = self.flavor | self.names  # of a label that both have, that of the queue
        return Export.of(
            "kueue",
            {"queues": documents(objects, head)},
            self.holdings,
            names,
            self.notes,
            said=Said(self.holdings.ceilings(self.headroom)),
        )

    def _nodes(self, name: str) -> str:
        rows = [self.whole.instance.servers[i] for g in self.members[name] for i in self.whole.groups[g].rows]
        number = sum(self.whole.groups[g].count for g in self.members[name])
        labels = " ".join(f"{key}={value}" for key, value in self.labels[name].items())
        return f"kubectl label nodes NODE... {labels}  # {number} nodes: {joined([in_shell(row) for row in rows], _MOST)}"

    # Objects

    def _flavors(self) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": _VERSION,
                "kind": "ResourceFlavor",
                "metadata": {"name": self.flavor[name]},
                "spec": {"nodeLabels": self.labels[name]},
            }
            for name in self.members
        ]

    def _cohort_of_all(self) -> dict[str, Any]:
        """Return the cohort of all queues, which has what the tasks leave over."""
        roots = [h for h, holder in enumerate(self.holders) if holder.parent < 0]
        rest = {}
        for name, groups in self.members.items():
            for r, resource in enumerate(self.measures):
                there = int(self.holdings.capacity[groups, r].sum())
                rest[name, resource] = max(there - int(self.holdings.promised[roots][:, groups, r].sum()), 0)
        return {
            "apiVersion": _VERSION,
            "kind": "Cohort",
            "metadata": {"name": self.root},
            "spec": {"resourceGroups": self._groups(list(self.members), rest, {}, {})},
        }

    def _queue(self, h: int) -> dict[str, Any]:
        """Return a ClusterQueue, or the Cohort of a queue with queues in it."""
        holder = self.holders[h]
        eligible = self.holdings.eligible(h)
        names = [name for name, groups in self.members.items() if eligible[groups].any()]
        held: _Amounts = {
            (name, resource): int(self.holdings.promised[h, groups, r].sum())
            for name, groups in self.members.items()
            for r, resource in enumerate(self.measures)
        }
        uses = {
            (name, resource): int(self.holdings.held[h, groups, r].sum())
            for name, groups in self.members.items()
            for r, resource in enumerate(self.measures)
        }
        order = sorted(names, key=lambda name: -max(self._part(name, r, held[name, x]) for r, x in enumerate(self.measures)))
        borrowing, lending = self._borrowing(h, names, held, uses), self._lending(h, names, held)
        parent = self._parent(h)
        above = self.root if parent is None else self.names[parent]
        spec: dict[str, Any] = {"parentName": above} if not holder.leaf else {"cohortName": above}
        if holder.leaf:
            spec["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self.namespaces[self.namespace[h]]}}
            spec["resourceGroups"] = self._groups(order, held, borrowing, lending)
            spec["preemption"] = {"reclaimWithinCohort": "Any"}
        else:
            below = [child for child, other in enumerate(self.holders) if other.parent == h]
            inside = self.holdings.promised[below].sum(axis=0)
            own = {
                (name, resource): held[name, resource] - int(inside[self.members[name], r].sum())
                for name in self.members
                for r, resource in enumerate(self.measures)
            }
            if borrowing or lending or any(own.values()):
                spec["resourceGroups"] = self._groups(order, own, borrowing, lending)
        spec["fairSharing"] = {"weight": _weight(holder.weight)}
        if not spec.get("resourceGroups", True):
            del spec["resourceGroups"]
        kind = "ClusterQueue" if holder.leaf else "Cohort"
        return {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": self.names[holder.label]}, "spec": spec}

    def _part(self, name: str, r: int, amount: int) -> float:
        there = int(self.holdings.capacity[self.members[name], r].sum())
        return amount / there if there else 0.0

    def _groups(self, names: list[str], nominal: _Amounts, borrowing: _Amounts, lending: _Amounts) -> list[dict[str, Any]]:
        """Return the one resource group: every flavor with every resource."""
        if not names or not self.measures:
            return []

        def quota(name: str, resource: str) -> dict[str, str]:
            measure, key = self.measures[resource], (name, resource)
            quotas = {"name": measure.key, "nominalQuota": quantity(nominal[key], measure)}
            for word, amounts in (("borrowingLimit", borrowing), ("lendingLimit", lending)):
                if key in amounts:
                    quotas[word] = quantity(amounts[key], measure)
            return quotas

        flavors = [{"name": self.flavor[name], "resources": [quota(name, resource) for resource in self.measures]} for name in names]
        return [{"coveredResources": [measure.key for measure in self.measures.values()], "flavors": flavors}]

    def _local(self, h: int, name: str) -> dict[str, Any]:
        return {
            "apiVersion": _VERSION,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": self.namespaces[self.namespace[h]]},
            "spec": {"clusterQueue": self.names[self.holders[h].label]},
        }

    # Limits

    def _inside(self, names: list[str], groups: Any, r: int) -> list[str]:
        """Return the flavors that a limit on groups of servers is for, of those that have the resource."""
        return [name for name in names if groups[self.members[name]].any() and self.holdings.capacity[self.members[name], r].any()]

    def _borrowing(self, h: int, names: list[str], quota: _Amounts, uses: _Amounts) -> _Amounts:
        """Return what a queue may have beyond its quotas: at least what it uses beyond them."""
        most: _Amounts = {}
        keys = list(self.measures)
        if self.headroom is not None and self.holders[h].leaf:
            most = {(name, x): max(enlarged(uses[name, x], self.headroom) - quota[name, x], 0) for name in names for x in keys}
        for r, groups, amount, _ in self.holdings.limits(h):
            inside = self._inside(names, groups, r)
            there = [int(self.holdings.capacity[self.members[name], r].sum()) for name in inside]
            beyond = {name: max(uses[name, keys[r]] - quota[name, keys[r]], 0) for name in inside}
            spare = max(amount - sum(quota[name, keys[r]] + beyond[name] for name in inside), 0)
            shares = whole_units([spare * each / sum(there) for each in there], spare) if inside else []
            for name, share in zip(inside, shares, strict=True):
                most[name, keys[r]] = min(most.get((name, keys[r]), beyond[name] + share), beyond[name] + share)
        return most

    def _lending(self, h: int, names: list[str], held: _Amounts) -> _Amounts:
        """Return how much of its quotas a queue lends while it does not use them."""
        lent: _Amounts = {}
        keys = list(self.measures)
        for r, groups, kept, _ in self.holdings.kept(h):
            inside = self._inside(names, groups, r)
            own = [held[name, keys[r]] for name in inside]
            kept = min(kept, sum(own))
            shares = whole_units([kept * each / sum(own) for each in own], kept) if sum(own) else [0] * len(inside)
            for name, each, share in zip(inside, own, shares, strict=True):
                lent[name, keys[r]] = min(lent.get((name, keys[r]), each), each - share)
        return lent

    # Notes

    def _say(self) -> None:
        self.notes += changed(self.names, "names of queues") + changed(self.namespaces, "names of namespaces")
        self.notes += changed(self.flavor, "names of flavors")
        if any(_LABEL in labels for labels in self.labels.values()):
            self.notes.append(
                f"nodes need the label {_LABEL} of their flavor (the commands are in the file), or name the labels that they have: "
                "--flavor ROW=KEY=VALUE"
            )
        self.notes += [*self.holdings.notes_of_weights(), *self.holdings.notes_of_promises()]
        several = [
            named(holder.label)
            for h, holder in enumerate(self.holders)
            if any(len(self._inside(list(self.members), groups, r)) > 1 for r, groups, _, _ in self.holdings.limits(h))
        ]
        if several:
            self.notes.append(
                f"Kueue limits each flavor by itself: limits of {joined(several, _MOST)} on several flavors together are divided among "
                "them by capacity"
            )
        if any(holder.tier for holder in self.holders):
            self.notes.append("Kueue's queues have no tiers: give their workloads priority classes instead")
        if self.headroom is None:
            self.notes.append("quotas are guarantees: what a queue does not use is lent, by weights (fairSharing must be enabled in Kueue)")
        else:
            self.notes.append(
                f"a queue borrows until it has {figure(self.headroom, 6)} times its quotas: what is not used may stay idle. "
                "Regenerate the objects regularly (cron)"
            )
        inner = [named(holder.label) for h, holder in enumerate(self.holders) if holder.leaf and self._several_users(h)]
        if inner:
            self.notes.append(f"inside {joined(inner, _MOST)} Kueue admits tasks in their order, and not by the shares of single users")

    def _several_users(self, h: int) -> bool:
        return int(self.holders[h].users.sum()) > 1


def _weight(weight: float) -> str:
    """Return a weight as a quantity, which has nine decimals.

    >>> _weight(2.0), _weight(1 / 3), _weight(1e-12), _weight(0.0)
    ('2', '0.333333333', '0.000000001', '0')
    """
    text = f"{max(weight, 1e-9) if weight else 0.0:.9f}"
    return text.rstrip("0").rstrip(".")
