"""The queues of YARN, from the ResourceManager's answer to ``/ws/v1/cluster/scheduler``.

**Capacity Scheduler.** The capacity of a queue is its guarantee (a part of the nodes of a partition, or absolute amounts) and its weight,
so that what is left goes to queues in proportion to their guarantees. ``maxCapacity`` is a limit. A leaf queue whose ``orderingPolicyInfo``
is that of FIFO, the default of YARN, has the order "listed"; a queue that does not say it, and one of the policy "fair", the order "fair".

**Fair Scheduler.** ``minResources`` is a guarantee, in the meaning "clamp": a queue with more than its share waits until the others have
caught up. ``maxResources`` is a limit. A queue of the ``schedulingPolicy`` "fifo" has the order "listed". The answer of
Hadoop has no weights: they are those of the steady fair shares.

Queues are named by their path without the root: ``eng.prod``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part, read_json
from fairopt.clusters.queue_tree import Forest
from fairopt.clusters.yarn_resources import add, amounts_of
from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Order, Queue, Quota
from fairopt.instance.tolerances import WRITTEN
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.wording import joined

__all__ = ["Offer", "finder", "queues_of"]

_COMMAND = "curl http://RESOURCEMANAGER:8088/ws/v1/cluster/scheduler > scheduler.json"
_LEAST = 1e-3  # of the least weight beside it: the weight of a queue without capacity, which still gets what the others leave
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class Offer:
    """A node that accepts work: its labels, and what it offers."""

    name: str
    labels: tuple[str, ...]
    amounts: Mapping[str, float]


def queues_of(path: str | os.PathLike[str], offers: Sequence[Offer], account: Account) -> Forest:
    """Return the queues of the scheduler.

    Raises
    ------
    InvalidInstance
        With the file, the place in it and the queue: what is wrong, and what to do.
    """
    info = read_json(path, _COMMAND).get("scheduler").get("schedulerInfo")
    kind = info.get("type").text("")
    if kind == "capacityScheduler":
        return Forest(tuple(_capacity(info, None, offers, account)), system="YARN's Capacity Scheduler")
    if kind == "fairScheduler":
        queues = _fair(info["rootQueue"], None, offers, account)
        return Forest(tuple(queues), "clamp", "YARN's Fair Scheduler", within=True)
    if kind:
        info["type"].refuse(f'there are no queues of a scheduler "{kind}"; capacityScheduler and fairScheduler have queues')
    raise InvalidInstance(f"{path}: there is no scheduler.schedulerInfo in this answer; export it again: {_COMMAND}")


def finder(forest: Forest) -> Callable[[str], str | None]:
    """Return the function that finds the queue which an application names by its path, or by its last word if one queue has it."""
    paths = {queue.name for queue in forest.queues}
    of_word: dict[str, list[str]] = {}
    for path in (queue.name for queue in forest.queues):
        of_word.setdefault(path.rpartition(".")[2], []).append(path)

    def found(name: str) -> str | None:
        path = name.removeprefix(f"{_ROOT}.")
        same = of_word.get(path, [])
        return path if path in paths else same[0] if len(same) == 1 else None

    return found


def _children(part: Part, key: str) -> list[Part]:
    listed = part.get(key)
    if isinstance(listed.value, dict):
        listed = listed.get("queue")
    return [listed] if isinstance(listed.value, dict) else listed.items()  # a list of one may be written without the list


def _below(part: Part, key: str, parent: str | None, level: int) -> list[tuple[Part, str]]:
    """Return the queues in a queue, and their paths; ``level`` is how far they are below the root."""
    children = [_named(child, parent) for child in _children(part, key)]
    if children and level > MOST_LEVELS:
        children[0][0].refuse(too_deep(children[0][1], level))
    return children


def _named(part: Part, parent: str | None) -> tuple[Part, str]:
    """Return a queue whose place names it, and its path without the root."""
    name = part["queueName"].text()
    path = part.get("queuePath").text("") or (name if name.startswith(f"{_ROOT}.") else f"{parent}.{name}" if parent else name)
    path = path.removeprefix(f"{_ROOT}.")
    return Part(part.value, f'{part.place} (queue "{path}")'), path


def _total(offers: Sequence[Offer]) -> dict[str, float]:
    return {"cpu": 0.0, "memory": 0.0} | add(*(dict(offer.amounts) for offer in offers))


def _dominant(amounts: Mapping[str, float], total: Mapping[str, float]) -> float:
    return max((amount / total[resource] for resource, amount in amounts.items() if total.get(resource)), default=0.0)


def _fitted(path: str, guarantee: Mapping[str, float], limit: Mapping[str, float], account: Account) -> dict[str, float]:
    """Return a guarantee that is within its limit, and nothing where nothing is guaranteed."""
    within = {resource: min(amount, limit.get(resource, amount)) for resource, amount in guarantee.items()}
    if any(guarantee[resource] > amount * (1 + WRITTEN) for resource, amount in within.items()):
        account.note(f'"{path}" is guaranteed more than its limit: here its guarantee is its limit')
    return within if any(within.values()) else {}


def _stated(limit: Mapping[str, float], total: Mapping[str, float], path: str, account: Account) -> dict[str, float]:
    """Return what is limited of the resources of the cluster; 0 of a type such as a GPU is what the answer has if none is stated."""
    unstated = [resource for resource, amount in limit.items() if total.get(resource) and not amount and resource not in ("cpu", "memory")]
    if unstated:
        account.note(f'"{path}" has a limit of 0 for {joined(unstated, 3)}, which an answer also has if none is stated: here it has none')
    return {resource: amount for resource, amount in limit.items() if resource in total and resource not in unstated}


def _positive(weights: Mapping[str, float], account: Account) -> dict[str, float]:
    """Return weights among siblings; a weight of 0 becomes a small one."""
    least = min((weight for weight in weights.values() if weight), default=1.0)
    for path, weight in weights.items():
        if not weight and len(weights) > 1:
            account.note(f'"{path}" has no capacity of its own: its weight is {_LEAST:g} of the least beside it')
    return {path: weight or (least * _LEAST if len(weights) > 1 else 1.0) for path, weight in weights.items()}


def _order(part: Part, key: str, children: str) -> Order:
    """Return the order of a leaf queue by the name of its policy, such as "fifo" or "FifoOrderingPolicy"; of other queues "fair"."""
    return "listed" if "fifo" in part.get(key).text("").casefold() and not _children(part, children) else "fair"


# Capacity Scheduler --------------------------------------------------------------------------------------------------------------


def _capacity(part: Part, parent: str | None, offers: Sequence[Offer], account: Account, level: int = 1) -> list[Queue]:
    """Return the queues in a queue, with those in them."""
    children = _below(part, "queues", parent, level)
    total = _total(offers)
    amounts = {path: [_partition(each, path, offers, account) for each in _partitions(child)] for child, path in children}
    shares = {
        path: 100 * _dominant({r: sum(guarantee.get(r, 0.0) for _, guarantee, _ in each) for r in total}, total)
        for path, each in amounts.items()
    }
    given = {path: child.get("weight").value for child, path in children}
    if all(isinstance(weight, int | float) and weight > 0 for weight in given.values()):
        shares = {path: float(weight) for path, weight in given.items()}
    weights = _positive(shares, account)
    result = []
    for child, path in children:
        if child.get("userLimitFactor").number(1.0) != 1 or child.get("userLimit").number(100.0) != 100:
            account.note("limits of single users in a queue (userLimit, userLimitFactor) are left out")
        whole: tuple[dict[str, float], dict[str, float]] = ({}, {})
        quotas = []
        for label, guarantee, limit in amounts[path]:
            on = [offer.name for offer in offers if _has(offer, label)]
            if len(on) == len(offers):
                whole = guarantee, limit
            elif on and (guarantee or limit):
                quotas.append(Quota(on, guarantee, limit, name=f"partition {label or 'without label'}"))
        result.append(Queue(path, parent, weights[path], *whole, quotas=quotas, order=_order(child, "orderingPolicyInfo", "queues")))
        result += _capacity(child, path, offers, account, level + 1)
    return result


def _partitions(part: Part) -> list[Part]:
    """Return the capacities by partition (node label); an older answer has one, of the nodes without label."""
    listed = part.get("capacities").get("queueCapacitiesByPartition")
    return ([listed] if isinstance(listed.value, dict) else listed.items()) or [part]


def _has(offer: Offer, label: str) -> bool:
    return label in offer.labels if label else not offer.labels


def _partition(part: Part, path: str, offers: Sequence[Offer], account: Account) -> tuple[str, dict[str, float], dict[str, float]]:
    """Return the label of a partition, and what a queue is guaranteed and limited to on its nodes."""
    label = part.get("partitionName").text("")
    total = _total([offer for offer in offers if _has(offer, label)])
    guarantee = {r: amount for r, amount in amounts_of(part.get("effectiveMinResource")).items() if r in total}
    if not any(amounts_of(part.get("configuredMinResource")).values()):
        guarantee = {resource: part["absoluteCapacity"].number() / 100 * amount for resource, amount in total.items()}
    limit = {}
    if any(amounts_of(part.get("configuredMaxResource")).values()):
        limit = _stated(amounts_of(part.get("effectiveMaxResource")), total, path, account)
    elif part.get("maxCapacity").number(100.0) < 100:
        limit = {resource: part["absoluteMaxCapacity"].number() / 100 * amount for resource, amount in total.items()}
    return label, _fitted(path, guarantee, limit, account), limit


# Fair Scheduler ------------------------------------------------------------------------------------------------------------------


def _fair(part: Part, parent: str | None, offers: Sequence[Offer], account: Account, level: int = 1) -> list[Queue]:
    """Return the queues in a queue, with those in them."""
    children = _below(part, "childQueues", parent, level)
    total = _total(offers)
    if all("weight" in child for child, _ in children):
        shares = {path: child["weight"].number() for child, path in children}
    else:
        steady = {path: 100 * _dominant(amounts_of(child.get("steadyFairResources")), total) for child, path in children}
        shares = steady if all(steady.values()) else dict.fromkeys(steady, 1.0)
        if len(children) > 1:
            account.note(
                "the answer of the Fair Scheduler has no weights: here they are "
                + ("the steady fair shares, in percent, which minima and maxima change too" if all(steady.values()) else "1")
                + '; weights={"QUEUE": W} or --weight QUEUE=W gives others'
            )
    weights = _positive(shares, account)
    result = []
    for child, path in children:
        has = amounts_of(child.get("clusterResources"))
        most = _stated(amounts_of(child.get("maxResources")), total, path, account) if "maxResources" in child else {}
        limit = {r: amount for r, amount in most.items() if amount < min(total[r], has.get(r) or total[r])}
        least = {r: amount for r, amount in amounts_of(child.get("minResources")).items() if r in total}
        guarantee = _fitted(path, least, limit, account)
        result.append(Queue(path, parent, weights[path], guarantee, limit, order=_order(child, "schedulingPolicy", "childQueues")))
        result += _fair(child, path, offers, account, level + 1)
    return result
