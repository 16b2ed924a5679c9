"""ResourceQuotas of Kubernetes that carry an allocation: what the pods of a namespace may request together.

    apiVersion: v1
    kind: ResourceQuota
    metadata: {name: fairopt, namespace: team-a}
    spec: {hard: {requests.cpu: "12", requests.memory: 48Gi, requests.nvidia.com/gpu: "4"}}

Every owner is a namespace: a leaf of the tree of queues is that of its owner, if its users have one, else it is a namespace of its own
name; so is an owner in the root. A namespace that sits in several queues gets the sum.

Source: Kubernetes documentation, Resource Quotas. A quota of an extended resource (one with a slash) exists for its requests only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import enlarged
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holder, Holdings
from fairopt.clusters.names import DNS_LABEL, Names, changed
from fairopt.clusters.read_back import Said
from fairopt.instance import Instance
from fairopt.kubernetes.objects import documents, kubernetes_measures, quantity
from fairopt.wording import figure

__all__ = ["export_resourcequota", "namespace_of"]

_NAME = "fairopt"
_REQUESTS = "requests."


def namespace_of(instance: Instance, holder: Holder) -> str:
    """Return the namespace of a leaf of the tree: the owner of its users, if they have one, else its label."""
    owners = {instance.owners[n] for n in np.flatnonzero(holder.users)}
    return (owners.pop() if len(owners) == 1 else None) or holder.label


@keeps_question
def export_resourcequota(
    allocation: Allocation,
    *,
    headroom: float = 1.0,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as a ResourceQuota for each namespace.

    Parameters
    ----------
    headroom : float
        The quotas are the exact amounts times this factor, rounded up, but never above a limit of the queue or what the servers have.
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
    >>> print(export_resourcequota(fo.solve(lab, "drfh")).text.split("---")[2].strip())
    apiVersion: v1
    kind: ResourceQuota
    metadata:
      name: fairopt
      namespace: gen
    spec:
      hard:
        requests.cpu: '28'
        requests.memory: 336Gi
    """
    holdings = Holdings.of(
        allocation,
        headroom,
        lambda instance: kubernetes_measures(instance, resources, units, "Kubernetes"),
        time_limit=placement_time_limit,
    )
    holders, measures, there = holdings.holders, holdings.measures, holdings.capacity.sum(axis=0)
    hard: dict[str, dict[str, int]] = {}
    most: list[dict[str, int]] = [{} for _ in holders]
    for h, holder in enumerate(holders):
        if not holder.leaf:
            continue
        namespace = namespace_of(holdings.whole.instance, holder)
        own, sums = holdings.at_most(h), hard.setdefault(namespace, dict.fromkeys(measures, 0))
        for r, resource in enumerate(measures):
            held = int(holdings.total[h, r])
            most[h][resource] = min(enlarged(held, headroom), own.get(resource, max(int(there[r]), held)))
            sums[resource] += most[h][resource]
    names = Names(DNS_LABEL, "namespace").of(hard)
    objects: list[dict[str, Any]] = []
    for namespace, amounts in hard.items():
        quantities = {
            (key if (key := measures[resource].key) == "pods" else f"{_REQUESTS}{key}"): quantity(amount, measures[resource])
            for resource, amount in amounts.items()
        }
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": _NAME, "namespace": names[namespace]},
                "spec": {"hard": quantities},
            }
        )
    notes = [
        *changed(names, "names of namespaces"),
        "quotas are hard: what a namespace does not use stays idle. Regenerate them regularly (cron)",
        "a namespace with a quota of requests refuses pods without requests of these resources; a LimitRange gives them a default",
        *holdings.notes_of_groups("a ResourceQuota"),
    ]
    inner = [holder for holder in holders if not holder.leaf]
    if inner:
        notes.append("ResourceQuotas know no queues above namespaces: weights, guarantees and limits of these are in the amounts alone")
    head = [
        f"fairopt: a ResourceQuota for each namespace, for the allocation {allocation.notion}, headroom {figure(headroom, 6)}.",
        "Apply: kubectl apply -f FILE. Take back: kubectl delete -f FILE.",
    ]
    return Export.of("resourcequota", {"queues": documents(objects, head)}, holdings, names, notes, said=Said(most, promised=False))
