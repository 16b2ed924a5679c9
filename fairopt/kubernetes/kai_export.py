"""Queues of KAI that carry an allocation: quota, limit and weight over quota of GPU, CPU and memory.

The quota of a queue is what its whole tasks ask for, and what it is guaranteed and does not use now (`fairopt.clusters.quotas`). A limit
of -1 means no limit, and is always written: without it KAI would start nothing in the queue. CPU is in thousandths of a core, memory in
10^6 bytes. All queues are in the queue ``cluster``, whose quota is the whole cluster, since KAI runs pods only in queues that have a
parent. A priority above or below 100 is a tier; in a queue that serves its queues one after the other, priorities of these say which comes
first.

Source: KAI's API v2 of queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import Measures, kind_of, measures
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.exported import Export
from fairopt.clusters.holdings import Holder, Holdings
from fairopt.clusters.names import LABEL_VALUE, changed
from fairopt.clusters.read_back import Said
from fairopt.instance import Instance
from fairopt.kubernetes.objects import QUALIFIED_NAME, documents
from fairopt.wording import joined, named

__all__ = ["export_kai"]

_VERSION = "scheduling.run.ai/v2"
_ROOT = "cluster"
_PRIORITY = 100
_NO_LIMIT = -1
_SMALLEST: dict[str, Fraction | int] = {"cpu": Fraction(1, 1000), "memory": 1, "gpu": 1, "": 1}
_UNITS = {"cpu": 1, "memory": 10**6, "gpu": 1}  # smallest units in one of KAI's
_KEYS = ("gpu", "cpu", "memory")
_OTHERS = ("ephemeral-storage", "storage")
_MOST = 5


@keeps_question
def export_kai(
    allocation: Allocation,
    *,
    headroom: float | None = None,
    resources: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    placement_time_limit: float | None = None,
) -> Export:
    """Write an allocation as queues of KAI.

    Parameters
    ----------
    headroom : float, optional
        A queue may hold its quota times this factor; 1: no borrowing. Default: all that is idle, within its limits.
    resources : mapping, optional
        Which resources are KAI's "gpu", "cpu" and "memory", where their names do not say so. It has no others; the name that Kubernetes
        has for one of them, such as "nvidia.com/gpu", is taken as well.
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
    >>> export_kai(fo.solve(lab, "drfh"))
    Export(kai: 17 whole tasks of 2 users, queues)
    """

    def counted(instance: Instance) -> Measures:
        keys = {resource: _key(name) or name for resource, name in (resources or {}).items()}
        known = measures(instance, _key, _SMALLEST, grammar=QUALIFIED_NAME, keys=keys, units=units, system="KAI")
        return {resource: measure for resource, measure in known.items() if measure.key in _KEYS}

    holdings = Holdings.of(allocation, headroom, counted, time_limit=placement_time_limit)
    holders, known = holdings.holders, holdings.measures
    root = holdings.root_name(_ROOT)
    names = holdings.queue_names(LABEL_VALUE, root)
    ceilings = holdings.ceilings(headroom)
    everything = {"quota": _NO_LIMIT, "limit": _NO_LIMIT, "overQuotaWeight": 1}
    objects = [_queue(root, None, _PRIORITY, {measure.key: dict(everything) for measure in known.values()})]
    for h, holder in enumerate(holders):
        amounts: dict[str, dict[str, float]] = {}
        quota = holdings.quota(h)
        for resource, measure in known.items():
            most = ceilings[h].get(resource)
            amounts[measure.key] = {
                "quota": _in_units(quota[resource], measure.key),
                "limit": _NO_LIMIT if most is None else _in_units(most, measure.key) or _in_units(quota[resource], measure.key),
                "overQuotaWeight": _number(holder.weight),
            }
        parent = names[holders[holder.parent].label] if holder.parent >= 0 else root
        objects.append(_queue(names[holder.label], parent, _PRIORITY + holder.tier + _rank(holders, h), amounts))
    left_out = [named(resource) for resource in allocation.instance.resources if resource not in known]
    notes = changed(names, "names of queues")
    if left_out:
        notes.append(f"KAI's queues know GPU, CPU and memory only: {joined(left_out, _MOST)} are not in the export")
    if any(holder.tier for holder in holders):
        notes.append("KAI compares the priority of a queue with its siblings only")
    notes += holdings.notes_of_groups("a queue of KAI") + holdings.notes_of_tree("KAI", tiers=True)
    head = [
        f"fairopt: queues of KAI for the allocation {allocation.notion}.",
        "Apply: kubectl apply -f FILE. Pods name their queue: label kai.scheduler/queue.",
    ]
    ordered = [holders[holder.parent].label for h, holder in enumerate(holders) if _rank(holders, h)]
    return Export.of("kai", {"queues": documents(objects, head)}, holdings, names, notes, ordered, said=Said(ceilings, tiers=True))


def _rank(holders: Sequence[Holder], h: int) -> int:
    """Return how many siblings a queue comes before, in a queue that serves one after the other; 0 where their tiers differ."""
    above = holders[h].parent
    queue = holders[above].queue if above >= 0 else None
    if queue is None or queue.order != "listed":
        return 0
    siblings = [k for k, holder in enumerate(holders) if holder.parent == above]
    return len(siblings) - 1 - siblings.index(h) if len({holders[k].tier for k in siblings}) == 1 else 0


def _key(resource: str) -> str | None:
    return None if resource in _OTHERS or resource.startswith("hugepages-") else kind_of(resource) or None


def _queue(name: str, parent: str | None, priority: int, resources: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {} if parent is None else {"parentQueue": parent}
    spec |= {"priority": priority, "resources": dict(resources)}
    return {"apiVersion": _VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _in_units(amount: int, key: str) -> float:
    return _number(amount / _UNITS[key])


def _number(value: float) -> float:
    """Return a whole number without a point."""
    return int(value) if value == int(value) else value
