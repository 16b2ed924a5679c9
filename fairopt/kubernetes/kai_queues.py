"""The queues of KAI (``scheduling.run.ai``): quota, limit and weight over quota of GPU, CPU (thousandths) and memory (10^6 bytes).

A quota is a guarantee; -1 guarantees the whole cluster. A limit of -1 means no limit; if the limit is unset or 0, the queue is limited to
its quota. ``overQuotaWeight`` is the weight: an instance has one for all resources, so that of GPUs counts if the cluster has GPUs. A
priority above or below 100 becomes a tier, counted from the tier of the queue above, if siblings have different priorities. KAI compares
siblings only. So if all siblings in a queue have different priorities, the queue has the order "listed", and they stand in it by priority.
Tiers are compared in the whole cluster: where some siblings below the root have the same priority and others do not, a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, by_name, check_parents, made, marked
from fairopt.wording import joined

__all__ = ["KAI"]

_MARKS = ("kai.scheduler/queue", "runai/queue")
_DEFAULT, _SCHEDULER = "default-queue", "kai-scheduler"
_PRIORITY = 100  # where none is given
_SCALES = {"gpu": 1.0, "cpu": 1e-3, "memory": 1e6 / 2**30}


class KAI(SchedulerQueues):
    """Queues of KAI."""

    name = "KAI"
    within = True

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        listed = by_name(parts, account)
        parents = {name: part["spec"].get("parentQueue").text("") or None for name, part in listed.items()}
        check_parents(parents, listed)
        accelerators = sorted(resource for resource in cluster.total if resource.endswith("/gpu"))
        gpu = "nvidia.com/gpu" if "nvidia.com/gpu" in accelerators or not accelerators else accelerators[0]
        resources = {"gpu": gpu, "cpu": "cpu", "memory": "memory"}
        self.queues = []
        priorities = {name: _whole(part["spec"].get("priority")) for name, part in listed.items()}
        among: dict[str | None, set[int]] = {}
        for name, priority in priorities.items():
            among.setdefault(parents[name], set()).add(priority)
        siblings = Counter(parents.values())
        ordered = {above for above, each in among.items() if above is not None and len(each) == siblings[above] > 1}  # all differ
        tiers = _tiers({name: _PRIORITY if parents[name] in ordered else each for name, each in priorities.items()}, parents, among)
        for name, part in listed.items():
            guarantee, limit, weights = {}, {}, {}
            for kind, resource in resources.items():
                given = part["spec"].get("resources").get(kind)
                quota, most = _amount(given.get("quota")), _amount(given.get("limit"))
                total = cluster.total.get(resource, 0.0)
                own = total if quota < 0 else quota * _SCALES[kind]
                if most >= 0 and (quota >= 0 or most > 0):
                    limit[resource] = most * _SCALES[kind] if most > 0 else own
                    if own > limit[resource]:
                        account.note(f'the limit of "{name}" is less than its quota of {resource}, and is its guarantee')
                guarantee[resource] = min(own, limit.get(resource, own))
                weights[kind] = given.get("overQuotaWeight").number(0.0)
            weight = weights["gpu" if cluster.total.get(gpu) else "cpu"]
            if len(set(weights.values())) > 1:
                account.note(
                    f'"{name}" has different weights over quota for its resources: here it has one, {weight:g}, that of '
                    f"{'GPUs' if cluster.total.get(gpu) else 'CPUs'}"
                )
            self.queues.append(
                made(
                    part,
                    name,
                    parents[name],
                    weight,
                    guarantee if any(guarantee.values()) else {},
                    limit,
                    tier=tiers[name],
                    order="listed" if name in ordered else "fair",
                )
            )
        self.queues.sort(key=lambda queue: -priorities[queue.name] if parents[queue.name] in ordered else 0)
        unlike = sorted(above for above, each in among.items() if above is not None and above not in ordered and len(each) > 1)
        if unlike:
            account.note(
                "KAI compares the priority of a queue with its siblings alone; here priorities are tiers of the whole cluster, so the "
                f"children of {joined(unlike, 3)} also come before or after queues elsewhere"
            )

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind belong to KAI."""
        return kind == "Queue" and group == "scheduling.run.ai"

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the queue of the label of a pod, or the default queue of the scheduler."""
        names = {queue.name for queue in self.queues}
        name = marked(pod, _MARKS) or (_DEFAULT if pod.get("spec").get("schedulerName").text("") == _SCHEDULER else "")
        return name if name in names else None


def _tiers(priorities: Mapping[str, int], parents: Mapping[str, str | None], among: Mapping[str | None, set[int]]) -> dict[str, int]:
    """Return the tier of each queue: 0, that of the queue above, where its siblings have the same priority."""
    tiers: dict[str, int] = {}

    def effective(name: str | None) -> int:
        return 0 if name is None else tier_of(name) or effective(parents[name])

    def tier_of(name: str) -> int:
        if name not in tiers:
            above, own = effective(parents[name]), priorities[name] - _PRIORITY
            tier = above + own if len(among[parents[name]]) > 1 and own else 0
            tiers[name] = tier if tier or not own or len(among[parents[name]]) < 2 else (1 if above < 0 else -1)  # 0 is that of the parent
        return tiers[name]

    for name in priorities:
        tier_of(name)
    return tiers


def _amount(part: Part) -> float:
    """Return an amount; -1 stands for no limit."""
    return -1.0 if part.value == -1 else part.number(0.0)


def _whole(part: Part) -> int:
    if part.value is None:
        return _PRIORITY
    if isinstance(part.value, bool) or not isinstance(part.value, int):
        part.refuse("expected a whole number")
    return part.value
