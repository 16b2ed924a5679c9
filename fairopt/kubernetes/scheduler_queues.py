"""What the queues of a scheduler of Kubernetes have in common: the queues, the queue of a pod, and what a guarantee means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Order, Queue
from fairopt.instance.tree import MOST_LEVELS, circle, circular, deepest, too_deep
from fairopt.kubernetes.amounts import amounts_of, in_units
from fairopt.kubernetes.placement import Expression, Toleration
from fairopt.kubernetes.records import Node, Pod
from fairopt.wording import did_you_mean, joined, named, plural

__all__ = ["Cluster", "Extra", "SchedulerQueues", "by_name", "check_parents", "in_cluster_units", "limited_resources", "made", "marked"]

Extra: TypeAlias = tuple[tuple[frozenset[str], tuple[Toleration, ...]], ...]
"""Nodes, and the tolerations that pods get there."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes that offer something: their labels, the nodes that offer each resource, what they offer together, and what each offers."""

    labels: Mapping[str, Mapping[str, str]]
    having: Mapping[str, frozenset[str]]
    total: Mapping[str, float]
    offered: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Cluster:
        """Return what queues need to know of nodes."""
        total: dict[str, float] = {}
        offered: dict[str, dict[str, float]] = {}
        for node in nodes:
            own = offered.setdefault(node.name, {})
            for resource, amount in node.allocatable.items():
                own[resource] = in_units(resource, max(amount - node.reserved.get(resource, 0), 0))
                total[resource] = total.get(resource, 0.0) + own[resource]
        having = {r: frozenset(node.name for node in nodes if node.allocatable.get(r)) for r in total}
        return cls({node.name: node.labels for node in nodes}, having, total, offered)


class SchedulerQueues(ABC):
    """The queues of one scheduler.

    Attributes
    ----------
    name : str
        Of the scheduler, in messages.
    meaning : str
        What a guarantee means: "surplus" or "clamp".
    excess : str
        What the scheduler does where the guarantees in a queue add up to more than its own; empty: it grants them.
    queues : list of Queue
        The servers of their quotas are nodes.
    counted : tuple of str
        The resources that alone count in shares, where quotas of others are unlimited; empty: all count.
    kinds : mapping
        The nodes of each kind that the scheduler knows.
    tolerations : mapping
        Of each queue, the tolerations that its pods get on some nodes: pairs of the nodes and the tolerations.
    selectors : mapping
        Of each queue, what its pods ask of the labels of nodes, beside what they ask themselves.
    """

    name: str
    meaning: str = "surplus"
    excess: str = ""
    queues: list[Queue]
    counted: tuple[str, ...] = ()
    kinds: Mapping[str, frozenset[str]] = MappingProxyType({})
    tolerations: Mapping[str, Extra] = MappingProxyType({})
    selectors: Mapping[str, tuple[Expression, ...]] = MappingProxyType({})

    @abstractmethod
    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        """Read the objects."""

    @staticmethod
    @abstractmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind belong to this scheduler."""

    @abstractmethod
    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the queue that a pod is in; None if it is in none."""

    def owner_of(self, pod: Part, namespace: str) -> str:
        """Return who owns a pod within its queue of the scheduler: its namespace, or a part of it that has a queue of its own."""
        return namespace

    def weight_of(self, owner: str, queue: str) -> float:
        """Return the weight of an owner among those in a queue."""
        return 1.0

    def in_turn(self, pods: Sequence[Pod]) -> list[Pod]:
        """Return pods in the order in which they are served where a queue serves one after the other."""
        return list(pods)

    def see(self, pods: Sequence[Pod], above: Sequence[str | None]) -> list[str]:
        """Look at the pods, and return notes on those that the scheduler would not start; ``above`` is the queue of each pod."""
        return []

    def note_inner(self, pods: Sequence[Pod], above: Sequence[str | None]) -> list[str]:
        """Return a note on pods that wait in queues which have queues in them, where the scheduler starts none there."""
        parents = {queue.parent for queue in self.queues}
        inner = [queue for pod, queue in zip(pods, above, strict=True) if queue in parents and queue is not None and not pod.node]
        where = joined([named(name) for name in dict.fromkeys(inner)], 3)
        waiting = plural(len(inner), "pod waits", "pods wait")
        return [f"{waiting} in {where}, with queues in it: {self.name} starts pods only in queues without any"] if inner else []

    def order_in(self, queue: str) -> Order:
        """Return the order of the owners in a queue, and of the shapes of an owner."""
        return "fair"

    def limits_of(self, pods: Sequence[Pod], above: Sequence[str | None]) -> Mapping[tuple[str, str | None], Mapping[str, float]]:
        """Return what an owner may hold in a queue; ``above`` is the queue of each pod."""
        return {}

    def closed(self, pod: Part, namespace: str, running: bool) -> str:
        """Return why a pod that runs or waits asks for nothing: its queue is stopped; else empty."""
        return ""


def limited_resources(queues: Sequence[Queue], cluster: Cluster) -> tuple[str, ...]:
    """Return the resources of quotas that are no larger than the cluster, where those of other resources are; empty: all of them.

    A queue that is guaranteed more than there is never borrows, so that resource does not count in what queues have beyond quotas.
    """
    known: dict[str, bool] = {}
    for queue in queues:
        whole = [(amount, cluster.total.get(resource, 0.0), resource) for resource, amount in queue.guarantee.items()]
        parts = [
            (amount, sum(cluster.offered.get(node, {}).get(resource, 0.0) for node in quota.servers), resource)
            for quota in queue.quotas
            for resource, amount in quota.guarantee.items()
        ]
        for amount, there, resource in (*whole, *parts):
            known[resource] = known.get(resource, True) and amount > there
    limited = tuple(resource for resource, unlimited in known.items() if not unlimited)
    return limited if len(limited) < len(known) else ()


def marked(pod: Part, keys: Sequence[str]) -> str:
    """Return the first of these labels and annotations that a pod has; empty if it has none."""
    metadata = pod.get("metadata")
    return next((text for key in keys for at in ("labels", "annotations") if (text := metadata.get(at).get(key).text(""))), "")


def in_cluster_units(part: Part) -> dict[str, float]:
    """Read quantities by resource, in the units of the instance."""
    return {resource: in_units(resource, amount) for resource, amount in amounts_of(part).items()}


def made(part: Part, *values: Any, **more: Any) -> Queue:
    """Make a queue; an error names the place of its object."""
    try:
        return Queue(*values, **more)
    except InvalidInstance as error:
        part.refuse(str(error))


def by_name(parts: Sequence[Part], account: Account) -> dict[str, Part]:
    """Return objects of one kind by name; another one of a name is bad."""
    listed: dict[str, Part] = {}
    for part in parts:
        name = part["metadata"]["name"].text()
        if name in listed:
            account.bad("queue", part.place, f'"{name}" is listed twice, first at {listed[name].place}; list it once')
        else:
            listed[name] = part
    return listed


def check_parents(parents: Mapping[str, str | None], parts: Mapping[str, Part]) -> None:
    """Refuse a parent that is not there, parents that go round in a circle, and a tree with too many levels."""
    for name, parent in parents.items():
        if parent is not None and parent not in parents:
            there = f"there are {joined(sorted(parents), 5)}"
            parts[name].refuse(f'its parent "{parent}" is not there{did_you_mean(parent, parents)}; {there}; export all queues')
    way = circle(parents)
    if way:
        parts[way[0]].refuse(f"the parents of queues {circular(way)}")
    lowest, levels = deepest(parents)
    if levels > MOST_LEVELS:
        next(iter(parts.values())).refuse(too_deep(lowest, levels))
