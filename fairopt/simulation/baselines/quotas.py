"""The guarantees of queues as HTCondor's group quotas.

A queue with a guarantee is a group, and its guarantee is the group's quota. Groups are served one after the other, in the order of
starvation: the group whose use is the smallest fraction of its quota comes first, and of equal ones the first queue. What the group's users
divide of the free cores (the pie) is at most what is left of the quota, and none of their tasks may exceed it. Then all users divide what
is left, with and without a group, each by its own priority, as with GROUP_AUTOREGROUP; a limit of a queue holds there, too.

    fraction of a group = max over the guaranteed resources r of  what the users below hold of r / quota of r

HTCondor's quotas are numbers of cores, and its fraction is GroupResourcesInUse / GroupQuota. Here a quota may be of any resources; the part
of the cluster that is left of it bounds the pie. Quotas that together exceed the servers that are there are scaled down in proportion: 20
and 10 of 15 cores are 10 and 5.

Source: HTCondor manual, Accounting Groups with Hierarchical Group Quotas; GROUP_SORT_EXPR, GROUP_AUTOREGROUP in the configuration macros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import FITS
from fairopt.simulation.baselines.usage import same_digits
from fairopt.simulation.streams import Streams

__all__ = ["Group", "Quotas", "check_guarantees"]


def check_guarantees(cluster: Instance, name: str) -> None:
    """Refuse guarantees that a scheduler of jobs does not know.

    Raises
    ------
    Unsupported
    """
    other = 'use a schedule that follows them, such as "drfh:best-fit"'
    guaranteed = [queue for queue in cluster.queues if any(each.guarantee for each in queue.everywhere_and_on_groups)]
    if name != "priority":
        if guaranteed or (cluster.guarantees > 0).any():
            raise Unsupported(
                f'"{name}" has shares and limits and no guarantees, and the cluster guarantees something; leave the guarantees out, use '
                f'"priority", which takes those of queues as group quotas, or {other}'
            )
        return
    if (cluster.guarantees > 0).any():
        user = cluster.users[int(np.argmax(cluster.guarantees > 0))]
        raise Unsupported(f'"priority" takes guarantees of queues, and user "{user}" has one of its own; put it in a queue, or {other}')
    if guaranteed:
        refuse_by_server(cluster, "group quotas count tasks that are the same everywhere", f"leave the guarantees out, or {other}")
    names = {queue.name: queue for queue in cluster.queues}
    for queue in guaranteed:
        if any(quota.guarantee for quota in queue.quotas):
            raise Unsupported(
                f'"priority" takes guarantees for the whole cluster, and queue "{queue.name}" has one on some servers; {other}'
            )
        above = names.get(queue.parent or "")
        while above is not None:
            if above in guaranteed:
                raise Unsupported(
                    f'"priority" takes guarantees of queues that are not inside each other, and queue "{queue.name}" is in "{above.name}"; '
                    f"leave one of the guarantees out, or {other}"
                )
            above = names.get(above.parent or "")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The users of a queue with a guarantee, and what is left of it.

    Attributes
    ----------
    users : bool array (users,)
    left : array (resources,)
        inf for resources that are not guaranteed.
    part : float
        The largest part of the cluster that is left of the quota.
    """

    users: BoolArray
    left: FloatArray
    part: float

    def most(self, demand: FloatArray) -> int:
        """Return how many tasks of this demand the quota allows."""
        return int(min(safe_ratio(self.left, demand)[demand > 0].min(initial=np.inf), 2**62))


class Quotas:
    """The groups of a cluster."""

    def __init__(self, streams: Streams) -> None:
        tree = streams.tree
        self._streams, self._demands = streams, streams.instance.demands_by_kind[:, 0]  # guarantees come with one kind of server
        self._nodes: list[BoolArray] = []
        quotas: list[FloatArray] = []
        for node, queue in enumerate(() if tree is None else tree.queues, 1):
            amounts = _amounts(queue, streams.instance)
            if (amounts > 0).any():
                assert tree is not None
                self._nodes.append(tree.tree.below[node])
                quotas.append(amounts)
        self._quotas = np.array(quotas, float).reshape(len(quotas), self._demands.shape[1])

    def by_starvation(self, running: IntArray, capacity: FloatArray) -> list[int]:
        """Return the groups in the order in which they are served; ``running`` tasks (streams,), ``capacity`` (resources,) of now."""
        quotas = self._scaled(capacity)
        fractions = [safe_ratio(self._held(k, running), quotas[k])[self._quotas[k] > 0].max() for k in range(len(self._nodes))]
        return [int(k) for k in np.argsort(same_digits(np.array(fractions, float)), kind="stable")]

    def group(self, k: int, running: IntArray, capacity: FloatArray) -> Group:
        """Return a group as it is now."""
        named = self._quotas[k] > 0
        quota = self._scaled(capacity)[k]
        left = np.where(named, quota - self._held(k, running), np.inf)
        left[named & (left <= FITS * quota)] = 0.0
        part = safe_ratio(left, capacity)[named & (capacity > 0)].min(initial=np.inf)
        return Group(self._nodes[k], np.where(named, left + FITS * quota, np.inf), float(part))

    def _scaled(self, capacity: FloatArray) -> FloatArray:
        total = self._quotas.sum(axis=0)
        return np.asarray(self._quotas * np.divide(capacity, total, out=np.ones(total.size), where=total > capacity))

    def _held(self, k: int, running: IntArray) -> FloatArray:
        own = self._nodes[k][self._streams.owner]
        return np.asarray(running[own] @ self._demands[own])


def _amounts(queue: Queue, instance: Instance) -> FloatArray:
    return np.array([float(queue.guarantee.get(name, 0.0)) for name in instance.resources])
