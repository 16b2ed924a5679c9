"""The queues of a Kubernetes cluster, from what Kueue, Volcano, KAI or YuniKorn has, and from ResourceQuotas, as YAML or JSON.

The pods of an owner (a namespace) that sit in one queue of the scheduler are a queue in it, named like the owner. Where the owner's pods
sit in several, or where a queue has the owner's name already, the name is ``queue/owner``. Owners whose pods are in no queue of the
scheduler are in the root, beside its queues. A ResourceQuota limits the queue of its namespace: ``requests.cpu``, ``requests.memory``,
``requests.nvidia.com/gpu``, ``pods``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import Forest
from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Queue
from fairopt.kubernetes.amounts import amounts_of, in_units
from fairopt.kubernetes.elastic_quotas import ElasticQuotas
from fairopt.kubernetes.kai_queues import KAI
from fairopt.kubernetes.kueue_queues import Kueue
from fairopt.kubernetes.reading import kind_of
from fairopt.kubernetes.records import Node, Pod
from fairopt.kubernetes.scheduler_queues import Cluster, Extra, SchedulerQueues, limited_resources
from fairopt.kubernetes.volcano_queues import Volcano
from fairopt.kubernetes.yunikorn_queues import YuniKorn
from fairopt.wording import joined, plural

__all__ = ["SYSTEMS", "is_queue", "queues_of"]

SYSTEMS: tuple[type[SchedulerQueues], ...] = (Kueue, Volcano, KAI, ElasticQuotas, YuniKorn)
_PREFIX = "requests."


def is_queue(part: Part) -> bool:
    """Return whether an object is a queue of a scheduler, or a ResourceQuota."""
    return kind_of(part) == ("ResourceQuota", "") or any(system.reads(*kind_of(part)) for system in SYSTEMS)


def queues_of(
    objects: Sequence[Part], pods: Sequence[Pod], nodes: Sequence[Node], users: str, account: Account
) -> tuple[Forest, list[Pod], list[str], list[Extra]]:
    """Return the queues, the pods that ask for something in them, the queue of each by name, and the tolerations that it gets there.

    A queue may say on which nodes its pods run, and who in a namespace owns them.
    """
    quotas = [part for part in objects if kind_of(part) == ("ResourceQuota", "")]
    of_system = {system: [part for part in objects if system.reads(*kind_of(part))] for system in SYSTEMS}
    given = [system for system, parts in of_system.items() if parts]
    if len(given) > 1:
        first = of_system[given[1]][0]
        raise InvalidInstance(
            f"{first.place}: this is a queue of {given[1].name}, and there are queues of {given[0].name}; "
            "an instance has one tree, so give the queues of one scheduler"
        )
    system = given[0](of_system[given[0]], Cluster.of(nodes), account) if given else None
    pods = system.in_turn(_in_system(pods, system, users, account)) if system else list(pods)
    above = [system.queue_of(pod.part, pod.space) if system else None for pod in pods]
    for note in system.see(pods, above) if system else ():
        account.note(note)
    names = {queue.name for queue in system.queues} if system else set[str]()
    homeless = sum(queue is None for queue in above)
    if system and homeless:
        account.note(f"{plural(homeless, 'pod')} in no queue of {system.name}: in the root, beside its queues")
    several: dict[str, set[str | None]] = {}
    for pod, queue in zip(pods, above, strict=True):
        several.setdefault(pod.owner, set()).add(queue)

    def name(owner: str, queue: str | None) -> str:
        if len(several[owner]) == 1 and owner not in names:
            return owner
        result = f"{queue}/{owner}" if queue is not None else f"{owner} (in no queue)"
        while result in names or result in several:
            result += "'"
        return result

    limits = _limits(quotas, account)
    if limits and users != "namespace":
        account.note(f'ResourceQuotas limit namespaces, and are left out: owners are by "{users}"')
        limits = {}
    spaces: dict[str, set[str]] = {}
    for pod in pods:
        spaces.setdefault(pod.space, set()).add(pod.owner)
    for namespace in [namespace for namespace in limits if spaces.get(namespace, {namespace}) != {namespace}]:
        limits |= dict.fromkeys(spaces[namespace], limits[namespace])
        account.note_of("namespace", namespace, "has a ResourceQuota, which limits each of its LocalQueues, not their sum: a relaxation")
        if namespace not in spaces[namespace]:
            del limits[namespace]
    lacking = sorted(set(limits) - set(several))
    for namespace in lacking:
        account.leave_out("ResourceQuota", namespace, "its namespace has no pod here")
    lowest = dict.fromkeys((pod.owner, queue) for pod, queue in zip(pods, above, strict=True))
    queues = list(system.queues) if system else []
    own_limits = system.limits_of(pods, above) if system else {}
    for owner, queue in lowest:
        weight = system.weight_of(owner, queue) if system and queue is not None and users == "namespace" else 1.0
        order = system.order_in(queue) if system and queue is not None else "fair"
        limit = _least(limits.get(owner, {}), own_limits.get((owner, queue), {}))
        queues.append(Queue(name(owner, queue), queue, weight, limit=limit, order=order))
        if owner in limits and len(several[owner]) > 1:
            account.note_of("namespace", owner, "has a ResourceQuota, which limits each of its queues, not their sum: a relaxation")
    forest = Forest(tuple(queues))
    if system:
        counted = system.counted or limited_resources(system.queues, Cluster.of(nodes))
        forest = Forest(tuple(queues), system.meaning, system.name, excess=system.excess, counted=counted, kinds=system.kinds)
    strange = forest.resources - {resource for node in nodes for resource in node.allocatable}
    if strange:
        account.note(f"amounts of {joined(sorted(strange), 5)} are left out: no node has it")
    extra = [system.tolerations.get(queue, ()) if system and queue is not None else () for queue in above]
    return forest, list(pods), [name(pod.owner, queue) for pod, queue in zip(pods, above, strict=True)], extra


def _in_system(pods: Sequence[Pod], system: SchedulerQueues, users: str, account: Account) -> list[Pod]:
    """Return the pods that a scheduler serves, with their owners, and with what their queues ask of nodes."""
    kept = []
    for pod in pods:
        closed = system.closed(pod.part, pod.space, bool(pod.node))
        if closed:
            account.leave_out("pod", pod.where, closed, pod.number)
            continue
        queue = system.queue_of(pod.part, pod.space)
        more = system.selectors.get(queue, ()) if queue is not None else ()
        constraints = replace(pod.constraints, selector=(*pod.constraints.selector, *more)) if more else pod.constraints
        owner = system.owner_of(pod.part, pod.space) if users == "namespace" else pod.owner
        same = owner == pod.owner and not more
        kept.append(pod if same else replace(pod, owner=owner, constraints=constraints))
    return kept


def _least(*limits: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for resource, amount in (each for limit in limits for each in limit.items()):
        found[resource] = min(found.get(resource, amount), amount)
    return found


def _limits(quotas: Sequence[Part], account: Account) -> dict[str, dict[str, float]]:
    """Return the limits of each namespace: the least of its ResourceQuotas."""
    limits: dict[str, dict[str, float]] = {}
    for part in quotas:
        spec = part["spec"]
        if spec.get("scopes").value or spec.get("scopeSelector").value:
            account.leave_out("ResourceQuota", part.place, "it counts some pods only (scopes)")
            continue
        namespace = part["metadata"].get("namespace").text("") or "default"
        other = []
        limit = limits.setdefault(namespace, {})
        for key, amount in amounts_of(spec.get("hard")).items():
            resource = _resource(key)
            if resource is None:
                other.append(key)
            else:
                limit[resource] = min(limit.get(resource, float("inf")), in_units(resource, amount))
        if other:
            account.note(f"what ResourceQuotas say of {joined(sorted(other), 5)} is left out: an instance has requests only")
    return {namespace: limit for namespace, limit in limits.items() if limit}


def _resource(key: str) -> str | None:
    """Return the resource whose requests a key of a ResourceQuota limits; None if it limits something else.

    >>> [_resource(key) for key in ("requests.nvidia.com/gpu", "requests.cpu", "memory", "limits.cpu", "count/jobs.batch", "pods")]
    ['nvidia.com/gpu', 'cpu', 'memory', None, None, 'pods']
    """
    if key.startswith(_PREFIX):
        resource = key.removeprefix(_PREFIX)
        return None if resource == "storage" else resource
    return key if key in ("cpu", "memory", "ephemeral-storage", "pods") or key.startswith("hugepages-") else None
