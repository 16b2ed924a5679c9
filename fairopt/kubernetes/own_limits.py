"""Pods that are larger than all that their queue may hold, and gangs that are: none of them ever starts, and none has a part of the queue.

Kueue admits all pods of a Workload together, or with ``minCount`` (partial admission) at least so many; Volcano and KAI start
``minMember`` pods of a PodGroup together. A limit of 0 closes its queue, whose pods stay, with nothing. Where quotas are of flavors, a pod
takes one flavor, and a gang what all have together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.queue_tree import Forest
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import FITS
from fairopt.kubernetes.amounts import in_units
from fairopt.kubernetes.records import Node, Pod
from fairopt.wording import named

__all__ = ["startable"]


def startable(pods: Sequence[Pod], places: Sequence[str], forest: Forest, nodes: Sequence[Node], account: Account) -> list[bool]:
    """Return which pods run or may start in their queues, and leave out the others.

    Parameters
    ----------
    places : sequence of str (pods,)
        The queue of each pod, by name.
    """
    bounds = _Bounds(forest.queues, nodes)
    together: dict[str, dict[str, float]] = {}
    for pod in pods:
        if pod.gang:
            whole = together.setdefault(pod.gang, {})
            for resource, amount in pod.request.items():
                whole[resource] = whole.get(resource, 0.0) + pod.least * in_units(resource, amount)
    kept = []
    for pod, place in zip(pods, places, strict=True):
        why = ""
        if not (pod.node or pod.started):
            one = {resource: in_units(resource, amount) for resource, amount in pod.request.items()}
            lacking = bounds.exceeded(one, place, several=False)
            why = f"asks for more {lacking}" if lacking else ""
            if not why and (lacking := bounds.exceeded(together.get(pod.gang, {}), place, several=True)):
                why = f"its pods together ask for more {lacking}"
        if why:
            account.leave_out("pod", pod.where, f"{why} may hold, so it can never start", pod.number)
        kept.append(not why)
    return kept


class _Bounds:
    """The most that queues may hold of each resource: on all nodes, or on those of a kind, where only such nodes have it."""

    def __init__(self, queues: Sequence[Queue], nodes: Sequence[Node]) -> None:
        self._parents = {queue.name: queue.parent for queue in queues}
        having: dict[str, set[str]] = {}
        for node in nodes:
            for resource, amount in node.allocatable.items():
                if amount:
                    having.setdefault(resource, set()).add(node.name)
        self._of: dict[str, dict[str, list[float]]] = {}
        for queue in queues:
            own = self._of.setdefault(queue.name, {resource: [bound] for resource, bound in queue.limit.items()})
            for resource in {resource for quota in queue.quotas for resource in quota.limit} - {*queue.limit}:
                quotas = [quota for quota in queue.quotas if resource in quota.limit]
                if having.get(resource, set()) <= {node for quota in quotas for node in quota.servers}:
                    own[resource] = [quota.limit[resource] for quota in quotas]

    def exceeded(self, asked: Mapping[str, float], place: str, several: bool) -> str:
        """Return the resource and the queue, that of a pod or one above, of which an amount is more than all; empty: none is.

        ``several``: of pods on nodes of all kinds; one pod is on a node of one.
        """
        name: str | None = place
        while name is not None and name in self._of:
            for resource, parts in self._of[name].items():
                bound = sum(parts) if several else max(parts)
                if asked.get(resource, 0.0) > bound * (1 + FITS) > 0:
                    return f"{resource} than all that the queue {named(name)}"
            name = self._parents[name]
        return ""
