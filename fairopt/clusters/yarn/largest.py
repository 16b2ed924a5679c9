"""The largest container that a queue of YARN takes: requests for larger ones never start, and have no part of the queue.

YARN refuses a request for more than the ``maximum-allocation`` of its queue, and one for more than the maximum of its queue, or of a queue
above it, waits without end. Where a maximum is 0, it closes the queue, and its requests stay, with nothing. What one user may hold stops
no container by itself (:mod:`fairopt.clusters.yarn.users`).

>>> from fairopt.clusters.json_export import Part
>>> parts = {"a": Part({"maximumAllocation": {"memory": 8192, "vCores": 4}}, "queues.json"), "b": Part({}, "queues.json")}
>>> largest_containers(parts, "maximumAllocation")
{'a': {'cpu': 4.0, 'memory': 8.0}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairopt.clusters.json_export import Part
from fairopt.clusters.yarn.resources import Offer, amounts_of, stated
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import FITS
from fairopt.wording import named

__all__ = ["largest_containers", "too_large"]


def largest_containers(parts: Mapping[str, Part], key: str) -> dict[str, dict[str, float]]:
    """Return the largest container of each queue that says it in this field; 0 of an answer means that it says nothing."""
    found: dict[str, dict[str, float]] = {}
    for path, part in parts.items():
        names = stated(part.get(key))
        most = {r: amount for r, amount in amounts_of(part.get(key)).items() if (amount if names is None else r in names)}
        found |= {path: most} if most else {}
    return found


def too_large(
    amounts: Mapping[str, float],
    label: str,
    queue: str,
    queues: Mapping[str, Queue],
    largest: Mapping[str, Mapping[str, float]],
    offers: Sequence[Offer],
) -> str:
    """Return why a container never starts in a queue; empty: it may.

    Parameters
    ----------
    amounts : mapping
        What the container is, by resource.
    label : str
        Of the nodes on which it may run.
    queue : str
        In which it waits.
    queues, largest : mappings
        All queues, and the largest container of those that say it, by their paths.
    """
    on = {offer.name for offer in offers if offer.has(label)}
    if _exceeds(amounts, largest.get(queue, {})):
        return f"is larger than the largest container of the queue {named(queue)} (maximum-allocation), which YARN refuses"
    above = queues.get(queue)
    while above is not None:
        bounds = [above.limit, *(quota.limit for quota in above.quotas if on and on <= set(quota.servers))]
        if any(_exceeds(amounts, bound) for bound in bounds):
            return f"is larger than all that the queue {named(above.name)} may hold, so it can never start"
        above = queues.get(above.parent or "")
    return ""


def _exceeds(amounts: Mapping[str, float], bounds: Mapping[str, float]) -> bool:
    return any(amounts.get(resource, 0.0) > bound * (1 + FITS) > 0 for resource, bound in bounds.items())
