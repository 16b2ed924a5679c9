"""Queues of YARN that carry an allocation: ``capacity-scheduler.xml``, or the allocation file of the Fair Scheduler.

**Capacity Scheduler.** Absolute amounts, ``[memory=10240,vcores=12,yarn.io/gpu=2]``: the capacity of a queue is what its whole tasks ask
for, and of a queue above others their sum. ``maximum-capacity`` is its limit, or ``headroom`` times its capacity. With node labels the
amounts are those on the nodes of each label, and the placement is in them. A limit on the nodes of several labels is divided among them by
capacity, so that their sum is never above it. A maximum without any resource is none in YARN; 1 MiB of memory stands for it.
A queue whose users are equal has the policy ``fair``, since YARN's own is FIFO.

**Fair Scheduler.** ``minResources`` is what the whole tasks of a queue ask for, ``maxResources`` its limit or ``headroom`` times that, and
``weight`` its weight. A queue below its minimum comes first.

Memory is in MiB, cores are vcores, both whole numbers. Names of queues have letters, digits, ``-`` and ``_``.

Source: Apache Hadoop, YARN: Capacity Scheduler (absolute resources, node labels) and Fair Scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import Measures, enlarged, kind_of, measures, whole_units
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holdings
from fairopt.clusters.names import YARN, Names, changed
from fairopt.clusters.read_back import Said
from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.wording import exactly, joined, named, printable

__all__ = ["export_yarn"]

_KINDS = ("capacity", "fair")
_KEYS = {"cpu": "vcores", "memory": "memory", "gpu": "yarn.io/gpu"}
_SMALLEST: dict[str, Fraction | int] = {"cpu": 1, "memory": 2**20, "gpu": 1, "": 1}
_PREFIX = "yarn.scheduler.capacity"
_RESOURCE = re.compile(r"[^\s,=\[\]]+")  # characters that would end an amount
_MOST = 5


@keeps_question
def export_yarn(
    allocation: Allocation,
    *,
    scheduler: Literal["capacity", "fair"] = "capacity",
    headroom: float | None = None,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as queues of YARN.

    Parameters
    ----------
    scheduler : {"capacity", "fair"}
        Whose file.
    headroom : float, optional
        A queue may hold its capacity times this factor; 1: no borrowing. Default: all that is idle, within its limits.
    labels : mapping, optional
        Node label of server rows, for the Capacity Scheduler; rows without one are in the default partition.
    resources : mapping, optional
        Names of resources; default: ``memory``, ``vcores``, ``yarn.io/gpu`` for "gpu", and those of the instance.
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
    >>> print(*[line for line in export_yarn(fo.solve(lab, "drfh")).text.splitlines() if "[" in line], sep="\\n")
        <value>[memory=163840,vcores=80]</value>
        <value>[memory=344064,vcores=28]</value>
    """
    if scheduler not in _KINDS:
        raise InvalidInstance(f'there is no scheduler "{scheduler}" of YARN; there are {" and ".join(_KINDS)}')
    if scheduler == "fair" and labels:
        raise InvalidInstance("the Fair Scheduler has no node labels; leave them out, or export for the Capacity Scheduler")

    def counted(instance: Instance) -> Measures:
        return measures(instance, _key, _SMALLEST, grammar=_RESOURCE, keys=resources, units=units, system="YARN")

    return _File(Holdings.of(allocation, headroom, counted, labels, time_limit=placement_time_limit), headroom, dict(labels or {})).export(
        scheduler
    )


def _key(resource: str) -> str | None:
    if "/" in resource and kind_of(resource) != "gpu":
        return resource
    return None if resource == "pods" else _KEYS.get(kind_of(resource), resource)


class _File:
    def __init__(self, holdings: Holdings, headroom: float | None, labels: Mapping[str, str]) -> None:
        self.whole = whole = holdings.whole
        self.holdings, self.headroom = holdings, headroom
        self.holders, self.measures = holdings.holders, holdings.measures
        self.names = holdings.queue_names(YARN, "root")
        servers = whole.instance.servers
        of_group = [labels.get(servers[group.rows[0]], "") for group in whole.groups]
        self.labels = {label: np.array([each == label for each in of_group]) for label in dict.fromkeys(of_group)}
        self.label_names = Names(YARN, "label").of(label for label in self.labels if label) | {"": ""}
        self.divided: list[str] = []  # queues with a limit on the nodes of several labels
        self.left_out: list[str] = []  # queues with a limit on a part of the nodes of a label
        self.bounds = [self._bounds(h) for h in range(len(self.holders))]
        self.notes: list[str] = []

    def export(self, scheduler: str) -> Export:
        self.notes += changed(self.names, "names of queues") + changed({k: v for k, v in self.label_names.items() if k}, "node labels")
        left_out = [named(resource) for resource in self.whole.instance.resources if resource not in self.measures]
        if left_out:
            self.notes.append(f"YARN has no resource {joined(left_out, _MOST)}: not in the export")
        if len(self.labels) == 1:
            self.notes += self.holdings.notes_of_groups("a queue of YARN")
            if scheduler == "capacity" and len(self.whole.groups) > 1:
                self.notes.append("node labels say where queues run: --node-label ROW=LABEL for each row of servers")
        if scheduler == "fair":
            self.notes += self.holdings.notes_of_tree("the Fair Scheduler")
            self.notes.append("the Fair Scheduler counts what a queue is guaranteed: below it a queue comes first, beyond it by weights")
            text = self._fair()
        else:
            self.notes += self.holdings.notes_of_tree("the Capacity Scheduler", weights="in proportion to capacities")
            self.notes.append("a queue takes up to its maximum only if user-limit-factor lets its users; the file sets it to -1, no limit")
            if len(self.labels) > 1:
                self.notes += self._notes_of_limits()
            text = self._capacity()
        said = Said(self.holdings.ceilings(self.headroom), weights="own" if scheduler == "fair" else "promises")
        names = {k: v for k, v in self.label_names.items() if k} | self.names
        ordered = [holder.label for holder in self.holders if holder.ordered]
        return Export.of("yarn", {"queues": text}, self.holdings, names, self.notes, ordered, said=said)

    def _path(self, h: int) -> str:
        holder = self.holders[h]
        above = self._path(holder.parent) if holder.parent >= 0 else "root"
        return f"{above}.{self.names[holder.label]}"

    # Capacity Scheduler

    def _capacity(self) -> str:
        pairs = [
            ("resource-calculator", "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"),
            ("root.queues", ",".join(self.names[holder.label] for holder in self.holders if holder.parent < 0)),
        ]
        named_labels = [label for label in self.labels if label]
        if named_labels:
            pairs.append(("root.accessible-node-labels", "*"))
        for label in named_labels:
            pairs.append((f"root.accessible-node-labels.{self.label_names[label]}.capacity", "100"))
        for h in range(len(self.holders)):
            path = self._path(h)
            children = [self.names[other.label] for other in self.holders if other.parent == h]
            if children:
                pairs.append((f"{path}.queues", ",".join(children)))
            else:
                pairs.append((f"{path}.user-limit-factor", "-1"))
                pairs.append((f"{path}.ordering-policy", "fifo" if self.holders[h].ordered else "fair"))
            pairs += self._amounts(h, path, "")
            if named_labels:
                pairs.append((f"{path}.accessible-node-labels", ",".join(self.label_names[label] for label in named_labels)))
            for label in named_labels:
                pairs += self._amounts(h, f"{path}.accessible-node-labels.{self.label_names[label]}", label)
        body = [
            f"  <property>\n    <name>{_PREFIX}.{escape(name)}</name>\n    <value>{escape(value)}</value>\n  </property>"
            for name, value in pairs
        ]
        return "\n".join([*self._head("capacity-scheduler.xml"), "<configuration>", *body, "</configuration>", ""])

    def _amounts(self, h: int, path: str, label: str) -> list[tuple[str, str]]:
        """Return the capacity of a queue on the nodes of a label, and its maximum."""
        groups = self.labels.get(label, np.zeros(len(self.whole.groups), bool))
        held = {resource: int(self.holdings.promised[h, groups, r].sum()) for r, resource in enumerate(self.measures)}
        most = self._most(h, label, held)
        pairs = [(f"{path}.capacity", self._text(held))]
        return [*pairs, (f"{path}.maximum-capacity", self._text(most))] if most else pairs

    def _bounds(self, h: int) -> dict[tuple[str, str], int]:
        """Return what the limits of a queue allow it on the nodes of each label, by label and resource.

        A limit on several labels is divided: each label gets what the queue holds there, and a part of the rest by capacity.
        """
        bounds: dict[tuple[str, str], int] = {}
        for r, on, amount, _ in self.holdings.limits(h):
            inside = [label for label, groups in self.labels.items() if (on & groups).any() and not (groups & ~on).any()]
            if any((on & groups).any() and (groups & ~on).any() for groups in self.labels.values()):
                self.left_out.append(self.holders[h].label)
            if len(inside) > 1:
                self.divided.append(self.holders[h].label)
            held = [int(self.holdings.promised[h, self.labels[label], r].sum()) for label in inside]
            there = [int(self.holdings.capacity[self.labels[label], r].sum()) for label in inside]
            spare = max(amount - int(self.holdings.promised[h, on, r].sum()), 0)
            shares = whole_units([spare * each / max(sum(there), 1) for each in there], spare)
            for label, own, share in zip(inside, held, shares, strict=True):
                key = label, self.holdings.resources[r]
                bounds[key] = min(bounds.get(key, own + share), own + share)
        return bounds

    def _notes_of_limits(self) -> list[str]:
        """Say which limits are divided among labels, and which are not in the file."""
        notes = []
        if self.divided:
            several = joined([named(label) for label in dict.fromkeys(self.divided)], _MOST)
            notes.append(
                f"YARN limits a queue on the nodes of each label by itself: limits of {several} on several labels together are divided "
                "among them by capacity"
            )
        if self.left_out:
            several = joined([named(label) for label in dict.fromkeys(self.left_out)], _MOST)
            notes.append(
                f"YARN has no limits on a part of the nodes of a label: such limits of {several} are not in the export; give those "
                "servers a label of their own (--node-label ROW=LABEL)"
            )
        return notes

    def _most(self, h: int, label: str, held: Mapping[str, int]) -> dict[str, int]:
        """Return the largest amounts on the nodes of a label, of all resources, where any of them has a limit."""
        groups = self.labels.get(label, np.zeros(len(self.whole.groups), bool))
        there = {resource: int(self.holdings.capacity[groups, r].sum()) for r, resource in enumerate(self.measures)}
        most = {resource: max(there[resource], held[resource]) for resource in held}
        limited = self.headroom is not None and self.holders[h].leaf
        if self.headroom is not None and self.holders[h].leaf:
            most = {resource: min(enlarged(held[resource], self.headroom), amount) for resource, amount in most.items()}
        at = h
        while at >= 0:
            for resource in held:
                if (label, resource) in self.bounds[at]:
                    most[resource] = max(min(most[resource], self.bounds[at][label, resource]), held[resource])
                    limited = True
            at = self.holders[at].parent
        if limited and not any(most.values()):
            most |= {resource: 1 for resource, measure in self.measures.items() if measure.kind == "memory"}
        return most if limited else {}

    def _text(self, amounts: Mapping[str, int]) -> str:
        order = sorted(amounts, key=lambda resource: (self.measures[resource].kind != "memory", self.measures[resource].kind != "cpu"))
        return f"[{','.join(f'{self.measures[resource].key}={amounts[resource]}' for resource in order)}]"

    # Fair Scheduler

    def _fair(self) -> str:
        lines = [*self._head("the allocation file of the Fair Scheduler"), "<allocations>"]
        ceilings = self.holdings.ceilings(self.headroom)

        def write(h: int, depth: int) -> None:
            holder, indent = self.holders[h], "  " * depth
            children = [other for other in range(len(self.holders)) if self.holders[other].parent == h]
            kind = ' type="parent"' if children else ""
            lines.append(f"{indent}<queue name={quoteattr(self.names[holder.label])}{kind}>")
            held = self.holdings.quota(h)
            lines.append(f"{indent}  <minResources>{self._fair_text(held)}</minResources>")
            if ceilings[h]:
                there = self.holdings.capacity.sum(axis=0)
                most = {resource: ceilings[h].get(resource, int(there[r])) for r, resource in enumerate(self.measures)}
                lines.append(f"{indent}  <maxResources>{self._fair_text(most)}</maxResources>")
            lines.append(f"{indent}  <weight>{exactly(holder.weight)}</weight>")
            lines.extend([f"{indent}  <schedulingPolicy>fifo</schedulingPolicy>"] * holder.ordered)
            for child in children:
                write(child, depth + 1)
            lines.append(f"{indent}</queue>")

        for h, holder in enumerate(self.holders):
            if holder.parent < 0:
                write(h, 1)
        lines += ["  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>", "</allocations>", ""]
        return "\n".join(lines)

    def _fair_text(self, amounts: Mapping[str, int]) -> str:
        keys = {"memory": "memory-mb"}
        order = sorted(amounts, key=lambda resource: (self.measures[resource].kind != "memory", self.measures[resource].kind != "cpu"))
        return escape(", ".join(f"{keys.get(key := self.measures[resource].key, key)}={amounts[resource]}" for resource in order))

    def _head(self, what: str) -> list[str]:
        said = printable(f"fairopt: {what} for the allocation {self.whole.allocation.notion}.").replace("--", "- -")
        return ['<?xml version="1.0" encoding="UTF-8"?>', f"<!-- {escape(said)} -->"]
