"""The queues of KAI (``scheduling.run.ai``): quota, limit and weight over quota of GPU, CPU (thousandths) and memory (10^6 bytes).

**Limit.** -1 means no limit. Unset is 0, and of what is limited to 0 KAI starts nothing, whatever the quota.

**Quota.** A guarantee, of which ``lendingLimit`` may be lent. KAI grants a queue its quota within what the queue above gets. Here a
guarantee is real whatever is above, so it is cut:

    g[q,r] = w[q,r] min(1, g[p,r] / sum of w[c,r] over the children c of p),   w[q,r] = min(quota[q,r], limit[q,r], g[p,r]),   p the parent.

-1 is as much as there is above. Where all queues in a queue, and it itself, have -1 of a resource, nobody
comes before the others, and the quota is no guarantee. A resource of which all queues have -1 does not count in shares.

**Weight.** ``overQuotaWeight``: KAI divides each resource by itself, and a queue here has one weight for all. It is that of GPUs if the
cluster has some, but for a queue whose pods ask for no GPU, which has that of CPUs. A queue of weight 0
has no share beyond its quota, but KAI starts its pods after those of the queues beside it: its priority is below theirs, and its weight 1.
Where nobody beside it has a weight, or its priority, it has the weight 1.

**Priority.** A priority above or below 100 becomes a tier, counted from the tier of the queue above, if siblings have different priorities.
KAI compares siblings only. So if all siblings in a queue have different priorities, the queue has the order "listed", and they stand in it
by priority. Tiers are compared in the whole cluster: where some siblings below the root have the same priority and others do not, a note
says so.

Sources: KAI's documentation of queues, and its plugin "proportion" (division of resources, capacity policy).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.kubernetes.records import Pod
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, by_name, check_parents, made, marked
from fairopt.wording import figure, joined, named, plural

__all__ = ["KAI"]

_MARKS = ("kai.scheduler/queue", "runai/queue")
_DEFAULT, _SCHEDULER = "default-queue", "kai-scheduler"
_PRIORITY = 100  # where none is given
_SCALES = {"gpu": 1.0, "cpu": 1e-3, "memory": 1e6 / 2**30}
_MOST = 5  # names in a note
_Amounts = dict[str, dict[str, float]]
"""By queue and resource; infinite: -1."""


class KAI(SchedulerQueues):
    """Queues of KAI."""

    name = "KAI"

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        listed = by_name(parts, account)
        parents = {name: part["spec"].get("parentQueue").text("") or None for name, part in listed.items()}
        check_parents(parents, listed)
        accelerators = sorted(resource for resource in cluster.total if resource.endswith("/gpu"))
        gpu = "nvidia.com/gpu" if "nvidia.com/gpu" in accelerators or not accelerators else accelerators[0]
        resources = {"gpu": gpu, "cpu": "cpu", "memory": "memory"}
        which = "gpu" if cluster.total.get(gpu) else "cpu"
        weights = {name: _weight(part, which) for name, part in listed.items()}
        priorities = _last({name: _whole(part["spec"].get("priority")) for name, part in listed.items()}, weights, parents, account)
        among: dict[str | None, set[int]] = {}
        for name, priority in priorities.items():
            among.setdefault(parents[name], set()).add(priority)
        siblings = Counter(parents.values())
        ordered = {above for above, each in among.items() if above is not None and len(each) == siblings[above] > 1}  # all differ
        tiers = _tiers({name: _PRIORITY if parents[name] in ordered else each for name, each in priorities.items()}, parents, among)
        quotas, limits = (_amounts(listed, resources, key) for key in ("quota", "limit"))
        free = [resource for resource in resources.values() if all(math.isinf(quota[resource]) for quota in quotas.values())]
        self.counted = tuple(resource for resource in resources.values() if resource not in free) if free else ()
        guarantees = _guarantees(quotas, limits, parents, cluster, account)
        _note_closed(limits, cluster, account)
        self.queues = []
        for name, part in listed.items():
            limit = {resource: most for resource, most in limits[name].items() if math.isfinite(most)}
            for resource, own in quotas[name].items():
                if math.inf > own > limit.get(resource, own) > 0:
                    account.note_of("queue", name, f"has a limit that is less than its quota of {resource}, and is its guarantee")
            guarantee = guarantees[name]
            lent = {resources[kind]: part["spec"].get("resources").get(kind).get("lendingLimit") for kind in resources}
            self.queues.append(
                made(
                    part,
                    name,
                    parents[name],
                    weights[name] or 1.0,
                    guarantee if any(guarantee.values()) else {},
                    limit,
                    lending_limit={
                        resource: min(given.number(0.0) * _SCALES[kind], guarantee[resource])
                        for kind, resource in resources.items()
                        if (given := lent[resource]).value is not None and guarantee.get(resource)
                    },
                    tier=tiers[name],
                    order="listed" if name in ordered else "fair",
                )
            )
        kinds = [kind for kind, resource in resources.items() if resource not in free]
        self._weights = {name: {kind: _weight(part, kind) for kind in kinds} for name, part in listed.items()}
        self._of, self._gpu, self._account = which, gpu, account
        self.queues.sort(key=lambda queue: -priorities[queue.name] if parents[queue.name] in ordered else 0)
        unlike = sorted(above for above, each in among.items() if above is not None and above not in ordered and len(each) > 1)
        if unlike:
            account.note(
                "KAI compares the priority of a queue with its siblings alone; here priorities are tiers of the whole cluster, so the "
                f"children of {joined(unlike, 3)} also come before or after queues elsewhere"
            )

    def see(self, pods: Sequence[Pod], above: Sequence[str | None]) -> list[str]:
        """Give queues whose pods ask for no GPU the weight of CPUs; note other queues with several weights, and pods above other queues."""
        parents = {queue.name: queue.parent for queue in self.queues}
        asked: dict[str, bool] = {}  # whether pods below a queue ask for a GPU
        for pod, within in zip(pods, above, strict=True):
            gpus, name = bool(pod.cards) or bool(pod.request.get(self._gpu)), within
            while name is not None:
                asked[name] = asked.get(name, False) or gpus
                name = parents[name]
        settled = []
        for queue in self.queues:
            weights = self._weights[queue.name]
            kind = "cpu" if asked.get(queue.name) is False and "cpu" in weights else self._of
            own = weights.get(kind, 0.0)
            settled.append(replace(queue, weight=own) if own and weights.get(self._of) else queue)
            if len(set(weights.values())) > 1:
                of = "GPUs" if kind == "gpu" else "CPUs"
                self._account.note_of("queue", queue.name, f"has different weights over quota for its resources: here it has that of {of}")
        self.queues = settled
        return self.note_inner(pods, above)

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind belong to KAI."""
        return kind == "Queue" and group == "scheduling.run.ai"

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the queue of the label of a pod, or the default queue of the scheduler."""
        names = {queue.name for queue in self.queues}
        name = marked(pod, _MARKS) or (_DEFAULT if pod.get("spec").get("schedulerName").text("") == _SCHEDULER else "")
        return name if name in names else None


def _weight(part: Part, kind: str) -> float:
    return part["spec"].get("resources").get(kind).get("overQuotaWeight").number(0.0)


def _last(
    priorities: Mapping[str, int], weights: Mapping[str, float], parents: Mapping[str, str | None], account: Account
) -> dict[str, int]:
    """Return the priority of each queue; one of weight 0 beside others that have a weight comes after all of them."""
    beside: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        beside.setdefault(parent, []).append(name)
    result = dict(priorities)
    for names in beside.values():
        alike = Counter(priorities[name] for name in names)
        for name in names:
            if weights[name] == 0 and alike[priorities[name]] > 1 and any(weights[other] for other in names):
                result[name] = min(priorities[other] for other in names) - 1
                account.note_of("queue", name, "has the weight 0 over quota: it gets what the queues beside it leave")
    return result


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


def _amounts(listed: Mapping[str, Part], resources: Mapping[str, str], key: str) -> _Amounts:
    """Return the quota or the limit of each queue by resource; -1 is infinite, and unset is 0."""
    result: _Amounts = {}
    for name, part in listed.items():
        given = part["spec"].get("resources")
        result[name] = {resource: _amount(given.get(kind).get(key)) * _SCALES[kind] for kind, resource in resources.items()}
    return result


def _amount(part: Part) -> float:
    return math.inf if part.value == -1 else part.number(0.0)


def _guarantees(quotas: _Amounts, limits: _Amounts, parents: Mapping[str, str | None], cluster: Cluster, account: Account) -> _Amounts:
    """Return the guarantee of each queue by resource, as the docstring of the module says; a resource without one is left out."""
    result: _Amounts = {name: {} for name in quotas}
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)
    cut: dict[str, dict[str, str]] = {}

    def divide(parent: str | None, resource: str, most: float) -> None:
        """Give the queues in a queue their guarantees, ``most`` together; infinite: those of the queue are free."""
        names = children.get(parent, [])
        own = {name: quotas[name][resource] for name in names}
        if math.isinf(most) and all(map(math.isinf, own.values())):
            for name in names:
                divide(name, resource, math.inf)
            return
        there = cluster.total.get(resource, 0.0)
        within = {name: min(there if math.isinf(amount) else amount, limits[name][resource], most) for name, amount in own.items()}
        together = sum(within.values())
        part = most / together if together > most else 1.0
        for name, amount in within.items():
            result[name][resource] = amount * part
            if math.isfinite(own[name]) and result[name][resource] < min(own[name], limits[name][resource]):
                cut.setdefault(resource, {})[name] = f"{named(name)} {figure(own[name])} to {figure(result[name][resource])}"
            divide(name, resource, result[name][resource])

    for resource in {resource: None for quota in quotas.values() for resource in quota}:
        divide(None, resource, math.inf)
    for resource, texts in cut.items():
        account.note(
            f"KAI grants a quota only within what the queue above gets, so guarantees of {resource} are cut: "
            f"{joined(list(texts.values()), _MOST)}"
        )
    return result


def _note_closed(limits: _Amounts, cluster: Cluster, account: Account) -> None:
    """Note the queues that may start nothing, by resource."""
    for resource in {resource: None for limit in limits.values() for resource in limit}:
        closed = [named(name) for name, limit in limits.items() if limit[resource] == 0]
        if closed and cluster.total.get(resource):
            account.note(
                f"the limit of {resource} is 0 or unset in {plural(len(closed), 'queue')} ({joined(closed, _MOST)}): KAI starts nothing "
                "there that asks for it; -1 is no limit"
            )


def _whole(part: Part) -> int:
    if part.value is None:
        return _PRIORITY
    if isinstance(part.value, bool) or not isinstance(part.value, int):
        part.refuse("expected a whole number")
    return part.value
