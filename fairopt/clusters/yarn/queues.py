"""The queues of YARN, from the ResourceManager's answer to ``/ws/v1/cluster/scheduler``, or from the file in which they are written.

**Capacity Scheduler.** The capacity of a queue is its guarantee (a part of the nodes of a partition, or absolute amounts) and its weight,
so that what is left goes to queues in proportion to their guarantees. ``maxCapacity`` is a limit. A leaf queue whose ``orderingPolicyInfo``
is that of FIFO, the default of YARN, has the order "listed"; a queue that does not say it, and one of the policy "fair", the order "fair".
Where a queue has the policy "priority-utilization", its queues of a higher ``queuePriority`` come first beyond the guarantees: below the
root as tiers, deeper as the order "listed" where all priorities differ.

One user holds at most ``userLimitFactor`` times the capacity of a queue, measured by dominant shares: -1, or an answer that does not say
it, means no such limit (:mod:`fairopt.clusters.yarn.users`).

**Fair Scheduler.** ``minResources`` is a guarantee, in the meaning "clamp": a queue with more than its share waits until the others have
caught up. ``maxResources`` is a limit. A queue of the ``schedulingPolicy`` "fifo" has the order "listed". The answer of
Hadoop has no weights: they are those of the steady fair shares. The allocation file has them.

Queues are named by their path without the root: ``eng.prod``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.clusters.account import Account
from fairopt.clusters.fields import Seen
from fairopt.clusters.json_export import Part, parse_json
from fairopt.clusters.nested_guarantees import scaled
from fairopt.clusters.queue_tree import Forest, fitted
from fairopt.clusters.yarn.files import is_xml, read_queue_file
from fairopt.clusters.yarn.largest import largest_containers
from fairopt.clusters.yarn.queue_fields import CAPACITY_QUEUE, FAIR_ANSWER
from fairopt.clusters.yarn.resources import Offer, amounts_of, dominant, stated, total_of
from fairopt.clusters.yarn.users import OfOneUser
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.queues import Order, Queue, Quota
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.wording import joined, named, plural

__all__ = ["Queues", "finder", "queues_of"]

_COMMAND = "curl http://RESOURCEMANAGER:8088/ws/v1/cluster/scheduler > scheduler.json"
_LEAST = 1e-3  # of the least weight beside it: the weight of a queue without capacity, which still gets what the others leave
_ROOT = "root"
_NO_LIMIT = 2**31 - 1  # how Java writes that there is none


class Queues(NamedTuple):
    """The queues of a scheduler; what one user may hold in each that says it, and its largest container."""

    forest: Forest
    users: Mapping[str, OfOneUser]
    largest: Mapping[str, Mapping[str, float]]


def queues_of(path: str | os.PathLike[str], offers: Sequence[Offer], account: Account) -> Queues:
    """Return the queues of the scheduler.

    Raises
    ------
    InvalidInstance
        With the file, the place in it and the queue: what is wrong, and what to do.
    """
    text = read_text(Path(path))
    from_file = is_xml(text)
    if from_file:
        info = read_queue_file(text, str(path), offers, account)
    else:
        info = parse_json(text, Path(path), _COMMAND).get("scheduler").get("schedulerInfo")
    kind = info.get("type").text("")
    users: dict[str, OfOneUser] = {}
    if kind == "capacityScheduler":
        queues = _capacity(info, None, offers, account, users)
        _note_states(info, account)
        found = Forest(tuple(_first_by_priority(info, queues, account)), system="YARN's Capacity Scheduler")
    elif kind == "fairScheduler":
        root = info["rootQueue"]
        system = "YARN's Fair Scheduler"
        queues = scaled(_fair(root, None, offers, account), total_of(offers), "clamp", system, account)
        found = Forest(tuple(queues), "clamp", system)
    elif kind:
        info["type"].refuse(f'there are no queues of a scheduler "{kind}"; capacityScheduler and fairScheduler have queues')
    else:
        raise InvalidInstance(
            f"{path}: there is no scheduler.schedulerInfo in this answer; export it again: {_COMMAND}; or give capacity-scheduler.xml or "
            "fair-scheduler.xml"
        )
    if not from_file:
        _note_fields(info, account)
    if kind == "capacityScheduler":
        largest = largest_containers(dict(_all_of(info)), "maximumAllocation")
    else:
        largest = largest_containers(dict(_all_of(info["rootQueue"], key="childQueues")), "maxContainerAllocation")
    if "comparesMemoryAlone" in info:
        found = replace(found, counted=("memory",), counted_why=info["comparesMemoryAlone"].text())
    return Queues(found, users, largest)


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


def _stated(part: Part, total: Mapping[str, float], path: str, account: Account) -> dict[str, float]:
    """Return what is limited of the resources of the cluster.

    0 of a type such as a GPU is what an answer also has if none is stated; a file says what it states.
    """
    limit, names = amounts_of(part), stated(part)
    if names is not None:
        return {resource: limit[resource] for resource in names if resource in total}
    unstated = [resource for resource, amount in limit.items() if total.get(resource) and not amount and resource not in ("cpu", "memory")]
    if unstated:
        why = "which an answer also has if none is stated: here it has none"
        account.note_of("queue", path, f"has a limit of 0 for {joined(unstated, 3)}, {why}")
    return {resource: amount for resource, amount in limit.items() if resource in total and resource not in unstated}


def _positive(weights: Mapping[str, float], account: Account) -> dict[str, float]:
    """Return weights among siblings; a weight of 0 becomes a small one."""
    least = min((weight for weight in weights.values() if weight), default=1.0)
    for path, weight in weights.items():
        if not weight and len(weights) > 1:
            account.note_of("queue", path, f"has no capacity of its own: its weight is {_LEAST:g} of the least beside it")
    return {path: weight or (least * _LEAST if len(weights) > 1 else 1.0) for path, weight in weights.items()}


def _order(part: Part, key: str, children: str) -> Order:
    """Return the order of a leaf queue by the name of its policy, such as "fifo" or "FifoOrderingPolicy"; of other queues "fair"."""
    return "listed" if "fifo" in part.get(key).text("").casefold() and not _children(part, children) else "fair"


# Capacity Scheduler --------------------------------------------------------------------------------------------------------------


def _capacity(
    part: Part, parent: str | None, offers: Sequence[Offer], account: Account, users: dict[str, OfOneUser], level: int = 1
) -> list[Queue]:
    """Return the queues in a queue, with those in them; add what one user may hold in each to ``users``."""
    children = _below(part, "queues", parent, level)
    total = total_of(offers)
    amounts = {path: [_partition(each, path, offers, account) for each in _partitions(child)] for child, path in children}
    shares = {
        path: 100 * dominant({r: sum(guarantee.get(r, 0.0) for _, guarantee, _ in each) for r in total}, total)
        for path, each in amounts.items()
    }
    given = {path: child.get("weight").value for child, path in children}
    if all(isinstance(weight, int | float) and weight > 0 for weight in given.values()):
        shares = {path: float(weight) for path, weight in given.items()}
    weights = _positive(shares, account)
    result = []
    for child, path in children:
        whole: tuple[dict[str, float], dict[str, float]] = ({}, {})
        quotas = []
        for label, guarantee, limit in amounts[path]:
            on = [offer.name for offer in offers if offer.has(label)]
            if len(on) == len(offers):
                whole = guarantee, limit
            elif on and (guarantee or limit):
                quotas.append(Quota(on, guarantee, limit, name=f"partition {label or 'without label'}"))
        result.append(Queue(path, parent, weights[path], *whole, quotas=quotas, order=_order(child, "orderingPolicyInfo", "queues")))
        if not _children(child, "queues"):
            users |= _of_one_user(child, path, {label: guarantee for label, guarantee, _ in amounts[path]}, offers)
        result += _capacity(child, path, offers, account, users, level + 1)
    return result


def _of_one_user(part: Part, path: str, capacity: Mapping[str, Mapping[str, float]], offers: Sequence[Offer]) -> dict[str, OfOneUser]:
    """Return what one user may hold in a leaf queue; nothing of a queue that does not limit it."""
    factor, least = part.get("userLimitFactor"), part.get("userLimit").number(100.0)
    limited = factor.value not in (None, -1, -1.0) and factor.number() >= 0
    limits: dict[str, dict[str, float]] = {}
    for label, guarantee in capacity.items() if limited else ():
        total = total_of([offer for offer in offers if offer.has(label)])
        part_of_nodes = factor.number() * dominant(guarantee, total)
        limits[label] = {resource: amount * part_of_nodes for resource, amount in total.items()} if part_of_nodes < 1 else {}
    return {path: OfOneUser(limits, min(least, 100.0), offers)} if limited or least < 100 else {}


def _first_by_priority(info: Part, queues: list[Queue], account: Account) -> list[Queue]:
    """Return the queues in which those of a higher priority come first, where a queue compares priorities."""
    parts = dict(_all_of(info))
    placed = {queue.name: queue for queue in queues}
    order = list(placed)
    children: dict[str, list[tuple[str, Any]]] = {}
    for queue in queues:
        children.setdefault(queue.parent or "", []).append((queue.name, parts[queue.name].get("queuePriority").value or 0))
    for path, part in {"": info, **parts}.items():
        below = children.get(path, [])
        if "priority" not in part.get("orderingPolicyInfo").text("") or len({priority for _, priority in below}) < 2:
            continue
        if not path:
            for name, priority in below:
                placed[name] = replace(placed[name], tier=_whole(parts[name].get("queuePriority"), priority))
        elif len({priority for _, priority in below}) == len(below):
            first = [name for name, _ in sorted(below, key=lambda each: -each[1])]
            where = sorted(order.index(name) for name in first)
            for position, name in zip(where, first, strict=True):
                order[position] = name
            placed[path] = replace(placed[path], order="listed")
        else:
            account.note(f"some queues in {named(path)} have the same priority, and others do not: their priorities do not count")
    return [placed[name] for name in order]


def _whole(part: Part, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        part.refuse("expected a whole number")
    return int(value)


def _all_of(part: Part, parent: str | None = None, key: str = "queues", level: int = 1) -> list[tuple[str, Part]]:
    """Return all queues in a queue by their paths."""
    return [each for child, path in _below(part, key, parent, level) for each in ((path, child), *_all_of(child, path, key, level + 1))]


def _note_states(info: Part, account: Account) -> None:
    stopped = [path for path, part in _all_of(info) if part.get("state").text("RUNNING").upper() in ("STOPPED", "DRAINING")]
    if stopped:
        some = joined([named(path) for path in stopped], 3)
        account.note(f"{plural(len(stopped), 'queue')} stopped: {some}; they take no new applications, and those that they have run on")


def _note_fields(info: Part, account: Account) -> None:
    """Name the fields of an answer that an instance does not have."""
    seen = Seen()
    capacity = info.get("type").value == "capacityScheduler"
    for _, part in _all_of(info) if capacity else _all_of(info["rootQueue"], key="childQueues"):
        seen.see(
            CAPACITY_QUEUE if capacity else FAIR_ANSWER,
            {name: value for name, value in part.value.items() if isinstance(value, str | list | dict) or value != _NO_LIMIT},
        )
    for note in seen.notes():
        account.note(note)


def _partitions(part: Part) -> list[Part]:
    """Return the capacities by partition (node label); an older answer has one, of the nodes without label."""
    listed = part.get("capacities").get("queueCapacitiesByPartition")
    return ([listed] if isinstance(listed.value, dict) else listed.items()) or [part]


def _partition(part: Part, path: str, offers: Sequence[Offer], account: Account) -> tuple[str, dict[str, float], dict[str, float]]:
    """Return the label of a partition, and what a queue is guaranteed and limited to on its nodes."""
    label = part.get("partitionName").text("")
    total = total_of([offer for offer in offers if offer.has(label)])
    guarantee = {r: amount for r, amount in amounts_of(part.get("effectiveMinResource")).items() if r in total}
    if not any(amounts_of(part.get("configuredMinResource")).values()):
        guarantee = {resource: part["absoluteCapacity"].number() / 100 * amount for resource, amount in total.items()}
    limit = {}
    most = part.get("configuredMaxResource")
    if stated(most) or any(amounts_of(most).values()):
        limit = _stated(part.get("effectiveMaxResource"), total, path, account)
    elif part.get("maxCapacity").number(100.0) < 100:
        limit = {resource: part["absoluteMaxCapacity"].number() / 100 * amount for resource, amount in total.items()}
    return label, fitted(path, guarantee, limit, account), limit


# Fair Scheduler ------------------------------------------------------------------------------------------------------------------


def _fair(part: Part, parent: str | None, offers: Sequence[Offer], account: Account, level: int = 1) -> list[Queue]:
    """Return the queues in a queue, with those in them."""
    children = _below(part, "childQueues", parent, level)
    total = total_of(offers)
    if all("weight" in child for child, _ in children):
        shares = {path: child["weight"].number() for child, path in children}
    else:
        steady = {path: 100 * dominant(amounts_of(child.get("steadyFairResources")), total) for child, path in children}
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
        most = _stated(child.get("maxResources"), total, path, account) if "maxResources" in child else {}
        limit = {r: amount for r, amount in most.items() if amount < min(total[r], has.get(r) or total[r])}
        least = {r: amount for r, amount in amounts_of(child.get("minResources")).items() if r in total}
        guarantee = fitted(path, least, limit, account)
        result.append(Queue(path, parent, weights[path], guarantee, limit, order=_order(child, "schedulingPolicy", "childQueues")))
        result += _fair(child, path, offers, account, level + 1)
    return result
