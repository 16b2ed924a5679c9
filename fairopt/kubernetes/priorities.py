"""Priorities of pods: tiers, where the scheduler of Kubernetes itself shares out the cluster.

``kube-scheduler`` takes the pods that wait in the order of their priority, and stops pods of a lower one for those of a higher one: any
other division is undone. So the pods of an owner that have another priority than pods without a class are in a queue of another tier
within that of the owner, ``shop/priority:high``. A class with ``preemptionPolicy: Never`` goes first without stopping anybody: it is a
tier, too, and its pods that wait are counted in a note. The classes ``system-...`` of the cluster's own pods make no tiers by themselves.
Where owners are priority classes, their own queues are in these tiers.

The priority of a pod is in its ``spec``; of one that does not say it, that of its class, in a PriorityClass of the manifests. Queues of
Kueue, Volcano, KAI and YuniKorn order the work inside a queue by its priority: that, and priorities that are not known, is noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import Forest
from fairopt.instance.queues import Queue
from fairopt.kubernetes.reading import kind_of
from fairopt.kubernetes.records import Pod, whole_number
from fairopt.wording import figure, joined, plural

__all__ = ["is_class", "with_tiers"]

_OF_SYSTEM = {"system-cluster-critical": 2_000_000_000.0, "system-node-critical": 2_000_001_000.0}
_NEVER = "Never"  # a preemptionPolicy
_MOST = 4  # names in a note


def is_class(part: Part) -> bool:
    """Return whether an object is a PriorityClass."""
    return kind_of(part) == ("PriorityClass", "scheduling.k8s.io")


def with_tiers(
    pods: Sequence[Pod],
    classes: Sequence[Part],
    users: str,
    forest: Forest | None,
    places: Sequence[str] | None,
    of_system: bool,
    account: Account,
) -> tuple[Forest | None, list[str] | None]:
    """Return the queues, and the queue of each pod by name, with those of higher tiers.

    Parameters
    ----------
    classes : sequence of Part
        PriorityClasses.
    forest, places : Forest and sequence, or None
        The queues that there are, and the queue of each pod; None: each owner is one.
    of_system : bool
        Whether the queues are those of a scheduler that orders pods by itself.
    """
    unchanged = forest, None if places is None else list(places)
    ranked: dict[str, float] = {}
    for pod in pods:
        if not _is_of_system(pod):
            ranked[pod.priority or "no class"] = ranked.get(pod.priority or "no class", 0.0) + pod.number
    values = _values(classes)
    priorities = [_priority(pod, values) for pod in pods]
    different = {rank for pod, rank in zip(pods, priorities, strict=True) if not _is_of_system(pod)}
    if len(ranked) < 2 and len(different) < 2:
        return unchanged
    known = None not in different and not of_system
    if not known:
        if len(ranked) > 1:
            some = joined([f"{name} {figure(number)}" for name, number in sorted(ranked.items(), key=lambda each: -each[1])], _MOST)
            known_by = "kubectl get pods -o json has them, and PriorityClasses in --queues"
            why = "inside a queue; an instance" if of_system else f"but their priorities are not known ({known_by}); the instance"
            account.note(
                f"pods have different priority classes ({some}): those of a higher priority start first, and may stop others, {why} "
                "treats them alike"
            )
        return unchanged
    if len(different) < 2:
        return unchanged
    ranks = sorted({rank for rank in priorities if rank is not None})
    usual = ranks.index(values[""]) if values[""] in ranks else 0  # the tier of pods without a class is 0
    names = dict(zip(reversed(priorities), (pod.priority for pod in reversed(pods)), strict=True))
    found: list[str] = []
    queues, new = [] if forest is None else list(forest.queues), dict[str, Queue]()
    there = {queue.name for queue in queues}
    tiers = [0 if rank is None else ranks.index(rank) - usual for rank in priorities]
    lowest = dict[str, int]()  # of the pods of each owner, where owners are classes
    if users == "priority" and places is None:
        for pod, tier in zip(pods, tiers, strict=True):
            lowest[pod.owner] = min(tier, lowest.get(pod.owner, tier))
    for j, pod in enumerate(pods):
        own = pod.owner if places is None else places[j]
        if own not in there:
            queues.append(Queue(own, tier=lowest.get(own, 0)))
            there.add(own)
        rank, tier = priorities[j], tiers[j] - lowest.get(own, 0)
        name = f"{own}/priority:{(not lowest and names[rank]) or figure(rank or 0.0)}" if tier else own
        if tier and name not in new:
            new[name] = Queue(name, own, tier=tier)
        found.append(name)
    some = joined([f"{names[rank] or 'no class'} {figure(rank)}" for rank in reversed(ranks)], _MOST)
    account.note(f"pods differ in priority ({some}): those of a higher one are in a higher tier, as they start first, and may stop others")
    patient = _of_patient(pods, classes)
    if patient:
        account.note(
            f"{plural(patient, 'waiting pod has', 'waiting pods have')} preemptionPolicy Never: Kubernetes stops no other pod for them, "
            "so they may get less than their tier says until others end, or are stopped as fairopt plan says"
        )
    return replace(forest or Forest(system="Kubernetes"), queues=(*queues, *new.values())), found


def _is_of_system(pod: Pod) -> bool:
    return pod.priority in _OF_SYSTEM


def _of_patient(pods: Sequence[Pod], classes: Sequence[Part]) -> int:
    """Return the number of pods that wait, and for which nothing is stopped: they say so, or their class does."""
    never = {part["metadata"]["name"].text() for part in classes if part.get("preemptionPolicy").text("") == _NEVER}
    usual = {part["metadata"]["name"].text() for part in classes if part.get("globalDefault").value is True}
    waiting = [pod for pod in pods if not (pod.node or pod.started)]
    stated = [pod.part.get("spec").get("preemptionPolicy").text("") for pod in waiting]
    by_class = [not own and bool(({pod.priority} if pod.priority else usual) & never) for pod, own in zip(waiting, stated, strict=True)]
    return int(sum(pod.number for pod, own, of_class in zip(waiting, stated, by_class, strict=True) if own == _NEVER or of_class))


def _values(classes: Sequence[Part]) -> dict[str, float]:
    """Return the priority of each class; that of pods without a class under no name."""
    found = {"": 0.0, **_OF_SYSTEM}
    for part in classes:
        value = found[part["metadata"]["name"].text()] = whole_number(part["value"])
        if part.get("globalDefault").value is True:
            found[""] = value
    return found


def _priority(pod: Pod, values: Mapping[str, float]) -> float | None:
    """Return the priority of a pod; None: not known."""
    return pod.rank if pod.rank is not None else values.get(pod.priority)
