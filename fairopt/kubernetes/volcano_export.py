"""Queues of Volcano that carry an allocation, for its capacity plugin.

``deserved`` is what the whole tasks of a queue ask for, and what it is guaranteed and does not use now (`fairopt.clusters.quotas`);
``guarantee.resource`` is the part of it that the queue does not lend even when it is idle, and at least what the queues in it do not lend,
as Volcano demands; ``capability`` is its limit, or ``headroom`` times what it holds, and no more than the cluster has. So capability >=
deserved >= guarantee. ``parent`` makes the tree, ``priority`` is the tier. The plugin divides what is idle in proportion to what queues
deserve; ``weight`` counts for the proportion plugin alone, and is a whole number.

Source: Volcano's API v1beta1 of queues, and its capacity plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holdings
from fairopt.clusters.names import LABEL_VALUE, changed
from fairopt.clusters.read_back import Said
from fairopt.instance.tolerances import NOTHING
from fairopt.kubernetes.objects import documents, kubernetes_measures, quantity
from fairopt.wording import joined, named

__all__ = ["export_volcano"]

_VERSION = "scheduling.volcano.sh/v1beta1"
_BUILT_IN = ("root", "default")
_MOST_WEIGHT = 65_535
_MOST = 5


@keeps_question
def export_volcano(
    allocation: Allocation,
    *,
    headroom: float | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as queues of Volcano.

    Parameters
    ----------
    headroom : float, optional
        A queue may hold what it deserves times this factor; 1: no borrowing. Default: all that is idle, within its limits.
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
    >>> export_volcano(fo.solve(lab, "drfh"))
    Export(volcano: 17 whole tasks of 2 users, queues)
    """
    holdings = Holdings.of(
        allocation, headroom, lambda instance: kubernetes_measures(instance, resources, units, "Volcano"), time_limit=placement_time_limit
    )
    holders, measures = holdings.holders, holdings.measures
    names = holdings.queue_names(LABEL_VALUE, *_BUILT_IN)
    ceilings = holdings.ceilings(headroom)
    weights, exact = _weights([holder.weight for holder in holders])
    lowest = min((holder.tier for holder in holders), default=0)
    reserved = _reserved(holdings)
    objects: list[dict[str, Any]] = []
    for h, holder in enumerate(holders):
        deserved = holdings.quota(h)
        spec: dict[str, Any] = {
            "parent": names[holders[holder.parent].label] if holder.parent >= 0 else "root",
            "weight": weights[h],
            "reclaimable": True,
            "deserved": {measures[r].key: quantity(amount, measures[r]) for r, amount in deserved.items()},
        }
        if ceilings[h]:
            there = dict(zip(measures, holdings.capacity.sum(axis=0).tolist(), strict=True))
            most = {r: min(amount, max(there[r], deserved[r])) for r, amount in ceilings[h].items()}
            spec["capability"] = {measures[r].key: quantity(amount, measures[r]) for r, amount in most.items()}
        if reserved[h]:
            spec["guarantee"] = {"resource": {measures[r].key: quantity(amount, measures[r]) for r, amount in reserved[h].items()}}
        if holder.tier - min(lowest, 0):
            spec["priority"] = holder.tier - min(lowest, 0)
        objects.append({"apiVersion": _VERSION, "kind": "Queue", "metadata": {"name": names[holder.label]}, "spec": spec})
    notes = [
        *changed(names, "names of queues"),
        "the queues are for Volcano's capacity plugin, with a tree (enabledHierarchy: true)",
        *holdings.notes_of_groups("a queue of Volcano"),
        *holdings.notes_of_tree("the capacity plugin", lending=True, tiers=True, weights="in proportion to what queues deserve"),
    ]
    on_groups = [named(holders[h].label) for h in range(len(holders)) if any(kept and not on.all() for _, on, kept, _ in holdings.kept(h))]
    if on_groups:
        notes.append(
            f"a queue of Volcano has no lending limits on groups of servers: those of {joined(on_groups, _MOST)} are not in the export"
        )
    if not exact:
        notes.append(
            "weights of Volcano are whole numbers from 1 to 65535: those of the instance are rounded (the capacity plugin ignores them)"
        )
    head = [
        f"fairopt: queues of Volcano for the allocation {allocation.notion}.",
        "Apply: kubectl apply -f FILE. Pods name their queue: annotation scheduling.volcano.sh/queue-name.",
    ]
    return Export.of(
        "volcano", {"queues": documents(objects, head)}, holdings, names, notes, said=Said(ceilings, weights="promises", tiers=True)
    )


def _reserved(holdings: Holdings) -> list[dict[str, int]]:
    """Return what each queue does not lend, by resource, and at least what the queues in it do not lend together."""
    reserved: list[dict[str, int]] = [{} for _ in holdings.holders]
    below: list[dict[str, int]] = [{} for _ in holdings.holders]
    for h in reversed(range(len(holdings.holders))):  # a queue comes after the one that it is in
        reserved[h] = below[h]
        for r, groups, amount, _ in holdings.kept(h):
            if groups.all() and amount:
                resource = holdings.resources[r]
                reserved[h][resource] = max(min(amount, int(holdings.promised[h, :, r].sum())), reserved[h].get(resource, 0))
        above = holdings.holders[h].parent
        if above >= 0:
            for resource, amount in reserved[h].items():
                below[above][resource] = below[above].get(resource, 0) + amount
    return reserved


def _weights(weights: list[float]) -> tuple[list[int], bool]:
    """Return weights as whole numbers in the same proportions, and whether they are.

    >>> _weights([0.5, 1.0, 2.0]), _weights([1.0, 0.0])
    (([1, 2, 4], True), ([1, 1], False))
    """
    least = min((weight for weight in weights if weight > 0), default=1.0)
    scaled = np.array(weights) / least
    for factor in range(1, 101):
        whole = scaled * factor
        if (np.abs(whole - np.round(whole)) < NOTHING).all():
            break
    rounded = np.clip(np.round(whole), 1, _MOST_WEIGHT)
    return [int(weight) for weight in rounded], bool((np.abs(whole - rounded) < NOTHING).all())
