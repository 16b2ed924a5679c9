"""What counts of an allocation: parts of the cluster, weighed as the notion of the allocation was asked with.

m[n,r] is the weight of a resource: 1 where the notion has no resource weights, and for users who demand nothing that counts
(`fairopt.models.counting`).

>>> import fairopt as fo
>>> lab = fo.Instance([[8, 80]], [[1, 40], [1, 1]], users=["A", "B"], resources=["gpu", "cpu"])
>>> counted_holdings(fo.solve(lab, "drf", only=["gpu"])).max(axis=1).round(4)
array([0.2439, 0.2439])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray, safe_ratio

if TYPE_CHECKING:
    from fairopt.allocation.allocation import Allocation
    from fairopt.models.counting import Counting

__all__ = ["counted_holdings", "counting_of", "dominant_resources"]


def counting_of(allocation: Allocation) -> Counting | None:
    """Return what counts in dominant shares, as the notion was asked with; None if all resources count once."""
    asked = getattr(None if allocation.question is None else allocation.question.notion, "counting", None)
    counting: Counting | None = None if asked is None else asked(allocation.instance)
    return None if counting is None or counting.changes_nothing else counting


def counted_holdings(allocation: Allocation) -> FloatArray:
    """Return what each user holds of the cluster, as it counts: m[n,r] times the part, (users, resources)."""
    instance, counting = allocation.instance, allocation.counting
    if _is_one_demand_each(allocation) and counting is not None:
        return np.asarray(allocation.tasks_per_user[:, None] * counting.own_parts)
    parts = safe_ratio(instance.held_of(allocation.tasks), instance.total_capacity)
    return parts if counting is None else counting.weigh_own(parts)


def dominant_resources(allocation: Allocation) -> tuple[str, ...]:
    """Return the resource of the largest m[n,r] d[n,r] / C[r] of each user, (users,), with C the capacity of the cluster.

    Where demands differ by server, it is the resource of the largest of `counted_holdings`. Who has none, has "".
    """
    instance, counting = allocation.instance, allocation.counting
    if not _is_one_demand_each(allocation):
        parts = counted_holdings(allocation)
    else:
        parts = safe_ratio(instance.demands, instance.total_capacity) if counting is None else counting.own_parts
    return tuple(instance.resources[r] if parts[n, r] > 0 else "" for n, r in enumerate(parts.argmax(axis=1)))


def _is_one_demand_each(allocation: Allocation) -> bool:
    """Does every user demand the same on all servers?"""
    return bool(allocation.instance.demands_by_kind.shape[1] == 1)
