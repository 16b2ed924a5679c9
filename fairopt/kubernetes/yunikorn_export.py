"""Queues of YuniKorn that carry an allocation: the partition ``default`` of its ``queues.yaml``.

``guaranteed`` is what the whole tasks of a queue ask for, and what it is guaranteed and does not use now (`fairopt.clusters.quotas`);
``max`` is its limit, or ``headroom`` times what it holds. What is idle goes to the queues with the smallest part of their guarantee.
A queue whose users are equal has the policy ``fair``, since YuniKorn's own is FIFO.

Source: YuniKorn's ``configvalidator.go``: names of letters, digits, ``-`` and ``_``, at most 64, compared in small letters; what is
guaranteed is within ``max``; the children of a queue are together guaranteed no more than the queue, and have a ``max`` within its.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairopt.allocation import Allocation
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holdings
from fairopt.clusters.names import YUNIKORN, changed
from fairopt.clusters.read_back import Said
from fairopt.kubernetes.objects import kubernetes_measures, quantity
from fairopt.wording import printable

__all__ = ["export_yunikorn"]

_ROOT = "root"


@keeps_question
def export_yunikorn(
    allocation: Allocation,
    *,
    headroom: float | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as queues of YuniKorn.

    Parameters
    ----------
    headroom : float, optional
        A queue may hold its guarantee times this factor; 1: no borrowing. Default: all that is idle, within its limits.
    resources : mapping, optional
        Names of resources; default: ``vcore``, ``memory``, ``nvidia.com/gpu`` for "gpu", and names that Kubernetes knows.
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
    >>> export_yunikorn(fo.solve(lab, "drfh"))
    Export(yunikorn: 17 whole tasks of 2 users, queues)
    """
    from fairopt.formats.yaml_core import dump  # imports yaml, which is slow

    vcores = {resource: "vcore" for resource in allocation.instance.resources if resource.lower() in ("cpu", "vcore", "vcores")}
    keys = {**vcores, **(resources or {})}
    holdings = Holdings.of(
        allocation, headroom, lambda instance: kubernetes_measures(instance, keys, units, "YuniKorn"), time_limit=placement_time_limit
    )
    holders, measures = holdings.holders, holdings.measures
    names = holdings.queue_names(YUNIKORN, _ROOT)
    ceilings = holdings.ceilings(headroom)
    queues: list[dict[str, Any]] = []
    top: list[dict[str, Any]] = []
    for h, holder in enumerate(holders):
        quota = {measures[r].key: quantity(amount, measures[r]) for r, amount in holdings.quota(h).items()}
        amounts = {"guaranteed": quota}
        if ceilings[h]:
            amounts["max"] = {measures[r].key: quantity(amount, measures[r]) for r, amount in ceilings[h].items()}
        queue: dict[str, Any] = {"name": names[holder.label], "resources": amounts}
        if holder.leaf:
            queue["properties"] = {"application.sort.policy": "fifo" if holder.ordered else "fair"}
        else:
            queue |= {"parent": True, "queues": []}
        queues.append(queue)
        (queues[holder.parent]["queues"] if holder.parent >= 0 else top).append(queue)
    config = {"partitions": [{"name": "default", "queues": [{"name": _ROOT, "queues": top}]}]}
    head = [
        f"fairopt: queues of YuniKorn for the allocation {allocation.notion}.",
        "Put it into the key queues.yaml of the ConfigMap yunikorn-configs.",
    ]
    comments = "".join(f"# {printable(line)}\n" for line in head)
    notes = [
        *changed(names, "names of queues"),
        *holdings.notes_of_groups("a queue of YuniKorn"),
        *holdings.notes_of_tree("YuniKorn", weights="in proportion to guarantees"),
    ]
    ordered = [holder.label for holder in holders if holder.ordered]
    text = comments + dump(config, blocks=True)
    return Export.of("yunikorn", {"queues": text}, holdings, names, notes, ordered=ordered, said=Said(ceilings, weights="promises"))
