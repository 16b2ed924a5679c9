"""The queues of Kueue: Cohorts, the ClusterQueues in them, and the namespaces whose LocalQueues point at those.

A quota is for a ResourceFlavor f and a resource r, and holds on the nodes that have the labels of f. With N[v,f,r] the nominal quota of v,

    G[v] = N[v] + sum of G[c]                     what is guaranteed in v, over its children c
    U[v] = N[v] + sum of min(U[c], lending[c])    what v may hold or lend: a child keeps the rest to itself
    P[v] = U[v] - min(U[v], lending[v]) + P[parent], at most U[v] + borrowing[v];   P[root] = U[root]

v is guaranteed G[v] and limited to P[v] + G[v] - U[v]: a ClusterQueue without a cohort to its nominal quotas, all of a cohort together to
theirs. Flavors that share nodes are added up where they do. On nodes of no flavor of a resource a ClusterQueue holds nothing of it; a
resource that it does not cover at all is not limited (Kueue admits no pod that asks for it, unless it is configured to ignore it).
A pod may take any flavor of its ClusterQueue, and gets the tolerations of that flavor: it may run on nodes of each with these.

What Kueue shares beyond the quotas goes by ``fairSharing.weight``; weight 0 borrows last, which is a tier below. LocalQueues of one
namespace in one ClusterQueue are owners of their own, with their weights. A queue that is stopped (``stopPolicy``) starts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.instance.quantities import NANO
from fairopt.instance.queues import Queue, Quota
from fairopt.kubernetes.amounts import in_units, quantity
from fairopt.kubernetes.kueue_checks import levels_of, sending_away
from fairopt.kubernetes.placement import Toleration, read_toleration
from fairopt.kubernetes.records import Pod
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, by_name, check_parents, made, marked
from fairopt.wording import joined, plural

__all__ = ["Kueue"]

_KINDS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "AdmissionCheck", "Topology")
_MARKS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name")
_DEFAULT = "default"  # the LocalQueue of pods that name none
_Amounts = dict[tuple[str, str], float]  # by flavor and resource


@dataclass(slots=True)
class _Node:
    """A cohort or a ClusterQueue."""

    part: Part
    parent: str | None
    weight: float
    cohort: bool
    nominal: _Amounts = field(default_factory=dict)
    borrowing: _Amounts = field(default_factory=dict)
    lending: _Amounts = field(default_factory=dict)
    guaranteed: _Amounts = field(default_factory=dict)  # G
    usable: _Amounts = field(default_factory=dict)  # U
    possible: _Amounts = field(default_factory=dict)  # P


_GroupsOf: TypeAlias = Callable[[_Node, str], dict[frozenset[str], tuple[str, ...]]]
"""Groups of nodes, and the flavors whose amounts add up on each."""


class Kueue(SchedulerQueues):
    """Queues of Kueue."""

    name = "Kueue"

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        kinds = {kind: [part for part in parts if part["kind"].value == kind] for kind in _KINDS}
        self._account = account
        listed = by_name(kinds["ClusterQueue"], account)
        self._nodes, self._away = _nodes(listed, by_name(kinds["Cohort"], account)), sending_away(listed, kinds["AdmissionCheck"], account)
        _flow(self._nodes)
        self.kinds = flavors = _flavors(
            by_name(kinds["ResourceFlavor"], account), levels_of(kinds["Topology"]), cluster, self._nodes, account
        )
        groups_of, everywhere = _grouping(flavors, cluster, account), frozenset(cluster.labels)
        self.queues = _last(self._nodes, [_queue(name, self._nodes, groups_of, everywhere) for name in self._nodes], account)
        strange = {r for node in self._nodes.values() for _, r in node.nominal if not cluster.having.get(r)}
        if strange:
            account.note(f"quotas of {joined(sorted(strange), 5)} are left out: no node has it")
        preferring = sorted(name for name, node in self._nodes.items() if not node.cohort and _several_flavors(node.part))
        if preferring:
            account.note(
                f"{joined(preferring, 3)}: Kueue tries the flavors of a resource in the order of the ClusterQueue; an allocation takes "
                "any of them, and speeds (--speeds) say which are worth more"
            )
        relaxed = _with_room_of_their_own(self._nodes, flavors, cluster)
        if relaxed:
            account.note(
                f"what queues of {joined(relaxed, 5)} keep by lending limits counts in the capacity of the nodes, and not in what "
                "the cohort may hold, which is less: its other queues may borrow some of it together, a relaxation"
            )
        extra = {part["metadata"]["name"].text(): _tolerations(part) for part in kinds["ResourceFlavor"]}
        self.tolerations = {
            name: tuple((flavors[each], extra[each]) for each in dict.fromkeys(f for f, _ in node.nominal) if extra.get(each))
            for name, node in self._nodes.items()
        }
        self._stopped = {name: policy for name, node in self._nodes.items() if not node.cohort and (policy := _stop_policy(node.part))}
        self._local: dict[str, dict[str, str]] = {}
        self._weights: dict[str, dict[str, float]] = {}
        for part in kinds["LocalQueue"]:
            self._read_local(part)

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind belong to Kueue."""
        return kind in _KINDS and group == "kueue.x-k8s.io"

    def _read_local(self, part: Part) -> None:
        namespace = part["metadata"].get("namespace").text("") or "default"
        queue = part["spec"]["clusterQueue"].text()
        if queue not in self._nodes or self._nodes[queue].cohort:
            self._account.bad("LocalQueue", part.place, f'there is no ClusterQueue "{queue}"; export the ClusterQueues too')
            return
        self._local.setdefault(namespace, {})[part["metadata"]["name"].text()] = queue
        name, weight = part["metadata"]["name"].text(), part["spec"].get("fairSharing").get("weight")
        self._weights.setdefault(namespace, {})[name] = 1.0 if weight.value is None else quantity(weight) / NANO
        if policy := _stop_policy(part):
            self._stopped[f"{namespace}/{name}"] = policy

    def _local_of(self, pod: Part, namespace: str) -> str | None:
        """Return the LocalQueue of a pod: the one that it names, else the default of its namespace, else the only one."""
        local = self._local.get(namespace, {})
        name = marked(pod, _MARKS)
        if name:
            return name if name in local else None
        if len(set(local.values())) > 1 and _DEFAULT not in local:
            self._account.note_of("namespace", namespace, "has pods that name none of its LocalQueues: they are in no ClusterQueue")
            return None
        return _DEFAULT if _DEFAULT in local else next(iter(local), None)

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the ClusterQueue of the LocalQueue that a pod names, or that of its namespace."""
        name = self._local_of(pod, namespace)
        return None if name is None else self._local[namespace][name]

    def owner_of(self, pod: Part, namespace: str) -> str:
        """Return the namespace, or the LocalQueue if several of the namespace point to one ClusterQueue: these share it by weights."""
        local, name = self._local.get(namespace, {}), self._local_of(pod, namespace)
        if name is None or list(local.values()).count(local[name]) == 1:
            return namespace
        taken = name in self._local or any(name in other for space, other in self._local.items() if space != namespace)
        owner = f"{namespace}/{name}" if taken else name
        self._weights[owner] = {name: self._weights[namespace][name]}
        return owner

    def weight_of(self, owner: str, queue: str) -> float:
        """Return the weight of an owner among those in a ClusterQueue: that of its one LocalQueue there."""
        local = self._local.get(owner, {})
        weights = self._weights.get(owner, {})
        return next((weight for name, weight in weights.items() if local.get(name, queue) == queue), 1.0)

    def see(self, pods: Sequence[Pod], above: Sequence[str | None]) -> list[str]:
        """Return notes on pods that wait and ask for a resource that their ClusterQueue does not cover."""
        covered = {name: {resource for _, resource in node.nominal} | {"pods"} for name, node in self._nodes.items()}
        lacking: dict[str, dict[str, float]] = {}  # by resource and queue
        for pod, queue in zip(pods, above, strict=True):
            if queue is not None and not pod.node:
                for resource in (r for r, amount in pod.request.items() if amount and r not in covered[queue]):
                    inside = lacking.setdefault(resource, {})
                    inside[queue] = inside.get(queue, 0.0) + pod.number
        return [
            f"{plural(sum(inside.values()), 'pod waits', 'pods wait')} in {joined(list(inside), 3)} and "
            f"{'asks' if sum(inside.values()) == 1 else 'ask'} for {resource}, of which there is no quota: Kueue admits none of them "
            "unless its configuration excludes it; here it is not limited"
            for resource, inside in lacking.items()
        ]

    def closed(self, pod: Part, namespace: str, running: bool) -> str:
        """Return why a pod asks for nothing: a stopPolicy of its LocalQueue or of its ClusterQueue, or that it runs elsewhere."""
        name = self._local_of(pod, namespace)
        if name is not None and not running and self._local[namespace][name] in self._away:
            return f"its queue {self._local[namespace][name]} sends work to other clusters (MultiKueue): asks for nothing here"
        for queue in () if name is None else (f"{namespace}/{name}", self._local[namespace][name]):
            policy = self._stopped.get(queue)
            if policy == "HoldAndDrain" or (policy and not running):
                return f"its queue is stopped (stopPolicy {policy}): {'what runs is stopped' if running else 'nothing starts'}"
        return ""


def _stop_policy(part: Part) -> str:
    """Return the policy of a queue that is stopped; else empty."""
    given = part["spec"].get("stopPolicy")
    policy = given.text("") or "None"
    if policy not in ("None", "Hold", "HoldAndDrain"):
        given.refuse(f'there is no policy "{policy}"; the policies are None, Hold and HoldAndDrain')
    return "" if policy == "None" else policy


def _last(nodes: Mapping[str, _Node], queues: Sequence[Queue], account: Account) -> list[Queue]:
    """Return the queues; those of weight 0 get what the others in their cohort leave over: a tier below, and weight 1 among themselves."""
    last = {name for name, node in nodes.items() if node.weight == 0}
    borrowing = sorted(name for name in last if nodes[name].parent is not None)
    if borrowing:
        account.note(f"weight 0 of {joined(borrowing, 5)}: it borrows last, which is a tier below the other queues of its cohort")
    nested = [name for name in borrowing if nodes[name].cohort or nodes[nodes[name].parent or ""].parent is not None]
    if nested:
        account.note(f"the cohort of {joined(nested, 5)} is nested: that a weight of 0 is a tier below the others is approximate there")
    parents = {nodes[name].parent for name in borrowing}
    result = []
    for queue in queues:
        if queue.name in last:
            queue = replace(queue, weight=1.0)
        elif nodes[queue.name].parent in parents:
            queue = replace(queue, tier=1)
        result.append(queue)
    return result


# Quotas in the tree of cohorts ---------------------------------------------------------------------------------------------------


def _nodes(queues: Mapping[str, Part], cohorts: Mapping[str, Part]) -> dict[str, _Node]:
    """Return cohorts and ClusterQueues; a cohort that is only named exists without quotas of its own, as in Kueue."""

    def of_cohort(name: str) -> str | None:
        return (f"{name} (cohort)" if name in queues else name) if name else None

    nodes: dict[str, _Node] = {}
    for name, part in cohorts.items():
        parent = part.get("spec").get("parentName").text("") or part.get("spec").get("parent").text("")
        nodes[of_cohort(name) or ""] = _read(part, of_cohort(parent), True)
    for name, part in queues.items():
        spec = part["spec"]
        nodes[name] = _read(part, of_cohort(spec.get("cohortName").text("") or spec.get("cohort").text("")), False)
    for node in list(nodes.values()):
        if node.parent is not None and node.parent not in nodes:
            nodes[node.parent] = _Node(node.part, None, 1.0, True)
    check_parents({name: node.parent for name, node in nodes.items()}, {name: node.part for name, node in nodes.items()})
    return nodes


def _read(part: Part, parent: str | None, cohort: bool) -> _Node:
    spec = part.get("spec")
    weight = spec.get("fairSharing").get("weight")
    node = _Node(part, parent, 1.0 if weight.value is None else quantity(weight) / NANO, cohort)
    for group in spec.get("resourceGroups").items():
        for flavor in group["flavors"].items():
            for resource in flavor["resources"].items():
                key = flavor["name"].text(), resource["name"].text()
                for kind, amounts in (("nominalQuota", node.nominal), ("borrowingLimit", node.borrowing), ("lendingLimit", node.lending)):
                    given = resource.get(kind)
                    if given.value is not None:
                        amounts[key] = in_units(key[1], quantity(given))
                node.nominal.setdefault(key, 0.0)
    return node


def _several_flavors(part: Part) -> bool:
    """Return whether a ClusterQueue lists more than one flavor for some resource."""
    return any(len(list(group["flavors"].items())) > 1 for group in part.get("spec").get("resourceGroups").items())


def _flow(nodes: Mapping[str, _Node]) -> None:
    """Set G and U from the ClusterQueues up, and P from the roots down."""
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        children.setdefault(node.parent, []).append(name)
    downwards = list(children.get(None, ()))
    for name in downwards:
        downwards += children.get(name, ())
    for name in reversed(downwards):
        node = nodes[name]
        node.guaranteed, node.usable = dict(node.nominal), dict(node.nominal)
        for child in (nodes[each] for each in children.get(name, ())):
            for key in child.guaranteed:
                node.guaranteed[key] = node.guaranteed.get(key, 0.0) + child.guaranteed[key]
                node.usable[key] = node.usable.get(key, 0.0) + min(child.usable[key], child.lending.get(key, math.inf))
    for name in downwards:
        node = nodes[name]
        node.possible = dict(node.usable)
        if node.parent is not None:
            above = nodes[node.parent]
            for key, usable in node.usable.items():
                kept = usable - min(usable, node.lending.get(key, math.inf))
                node.possible[key] = min(kept + above.possible[key], usable + node.borrowing.get(key, math.inf))


def _with_room_of_their_own(nodes: Mapping[str, _Node], flavors: Mapping[str, frozenset[str]], cluster: Cluster) -> list[str]:
    """Return the cohorts with a queue that keeps something, in which less may be held than the nodes of the flavor have.

    In these, what is kept limits the other queues of the cohort before it limits anybody by the capacity of the nodes.
    """
    found: dict[str, None] = {}
    for node in nodes.values():
        for flavor, resource in (key for key, lent in node.lending.items() if lent < node.usable.get(key, 0.0)):
            there = sum(cluster.offered[name].get(resource, 0.0) for name in flavors[flavor])
            above = node.parent
            while above is not None:
                cohort = nodes[above]
                own = (flavor, resource) in cohort.borrowing
                if own or (cohort.parent is None and cohort.guaranteed[flavor, resource] < there):
                    found[above] = None
                above = cohort.parent
    return list(found)


# Flavors -------------------------------------------------------------------------------------------------------------------------


def _flavors(
    parts: Mapping[str, Part], levels: Mapping[str, Sequence[str]], cluster: Cluster, nodes: Mapping[str, _Node], account: Account
) -> dict[str, frozenset[str]]:
    """Return the nodes of each flavor: those with its labels, and with a label of each level of its topology."""
    flavors = {}
    for name, part in parts.items():
        wanted = {key: value.text() for key, value in part.get("spec").get("nodeLabels").entries().items()}
        needed = set(levels.get(part.get("spec").get("topologyName").text(""), ()))
        flavors[name] = frozenset(
            node for node, labels in cluster.labels.items() if wanted.items() <= labels.items() and needed <= labels.keys()
        )
    for queue, node in nodes.items():
        for flavor, _ in node.nominal:
            if flavor not in flavors:
                account.bad(
                    "flavor",
                    node.part.place,
                    f'the queue "{queue}" has quotas of the ResourceFlavor "{flavor}", which is not there; export the ResourceFlavors too',
                )
                flavors[flavor] = frozenset()
    named = {flavor for node in nodes.values() for flavor, _ in node.nominal}
    empty = sorted(flavor for flavor in named if not flavors[flavor])
    if empty:
        account.note(f"no node that accepts work has the labels of the flavors {joined(empty, 5)}: their quotas are left out")
    return flavors


def _tolerations(flavor: Part) -> tuple[Toleration, ...]:
    return tuple(sorted({read_toleration(each) for each in flavor.get("spec").get("tolerations").items()}))


def _groups(flavors: Mapping[str, frozenset[str]], having: frozenset[str], account: Account) -> dict[frozenset[str], tuple[str, ...]]:
    """Return groups of nodes, and the flavors whose amounts add up on each; no flavors: on the nodes that have none.

    What is held on the nodes that have none but the flavors F counts against the amounts of F, for the flavors F of each node. Where no
    two flavors share a node, these are the flavors one by one.
    """
    own: dict[str, list[str]] = {node: [] for node in having}
    for flavor, nodes in flavors.items():
        for node in nodes & having:
            own[node].append(flavor)
    of_kind: dict[frozenset[str], list[str]] = {}
    for node, has in own.items():
        of_kind.setdefault(frozenset(has), []).append(node)
    kinds = set(of_kind) - {frozenset()}
    if any(len(kind) > 1 for kind in kinds):
        kinds.add(frozenset(flavors))
    if any(one & other and not (one <= other or other <= one) for one in kinds for other in kinds):
        account.note(f"the flavors {joined(sorted(flavors), 5)} share some nodes and not others: what they allow together is a relaxation")
    groups = {
        frozenset(chain.from_iterable(nodes for has, nodes in of_kind.items() if has and has <= kind)): tuple(sorted(kind))
        for kind in sorted(kinds, key=sorted)
    }
    bare = frozenset(of_kind.get(frozenset(), ()))
    return groups | ({bare: ()} if bare and flavors else {})


def _grouping(flavors: Mapping[str, frozenset[str]], cluster: Cluster, account: Account) -> _GroupsOf:
    """Return a function that gives the groups of nodes of a queue and a resource; they are made once for queues with the same flavors."""
    everywhere = frozenset(cluster.labels)

    @cache
    def of_flavors(names: tuple[str, ...], resource: str) -> dict[frozenset[str], tuple[str, ...]]:
        having = cluster.having.get(resource, frozenset())
        used = {flavor: flavors[flavor] & having for flavor in names}
        groups = _groups({flavor: each for flavor, each in used.items() if each}, having, account)
        return {everywhere if group == having else group: names for group, names in groups.items()}

    return lambda node, resource: of_flavors(tuple(flavor for flavor, each in node.guaranteed if each == resource), resource)


def _limits(node: _Node, groups: Mapping[frozenset[str], tuple[str, ...]], resource: str) -> dict[frozenset[str], float]:
    """Return what a node may hold of a resource on each group."""
    limits = {}
    for group, names in groups.items():
        keys = [(flavor, resource) for flavor in names]
        if names or not node.cohort:
            limits[group] = sum(node.possible[key] + node.guaranteed[key] - node.usable[key] for key in keys)
    return limits


def _queue(name: str, nodes: Mapping[str, _Node], groups_of: _GroupsOf, everywhere: frozenset[str]) -> Queue:
    """Make the queue: amounts by flavor become amounts on groups of nodes. A limit that the parent has too is left out."""
    node = nodes[name]

    def lent(key: tuple[str, str]) -> float:
        return min(node.usable[key], node.lending[key]) if node.parent is not None and key in node.lending else node.guaranteed[key]

    guarantee: dict[frozenset[str], dict[str, float]] = {}
    limit: dict[frozenset[str], dict[str, float]] = {}
    lending: dict[frozenset[str], dict[str, float]] = {}
    words: dict[frozenset[str], str] = {}
    for resource in dict.fromkeys(resource for _, resource in node.guaranteed):
        groups = groups_of(node, resource)
        parent = None if node.parent is None else nodes[node.parent]
        above = {} if parent is None else _limits(parent, groups_of(parent, resource), resource)
        for group, most in _limits(node, groups, resource).items():
            if most < above.get(group, math.inf):
                limit.setdefault(group, {})[resource] = most
        for group, names in groups.items():
            words.setdefault(group, " + ".join(names) or f"nodes without a flavor of {resource}")
            if names:
                keys = [(flavor, resource) for flavor in names]
                own, given = sum(node.guaranteed[key] for key in keys), sum(lent(key) for key in keys)
                guarantee.setdefault(group, {})[resource] = own
                if given < own:
                    lending.setdefault(group, {})[resource] = given
    if not any(any(amounts.values()) for amounts in guarantee.values()):
        guarantee = {}
    whole = [each.pop(everywhere, {}) for each in (guarantee, limit, lending)]
    used = [group for group in words if group in guarantee or group in limit]
    quotas = [Quota(sorted(group), guarantee.get(group, {}), limit.get(group, {}), lending.get(group, {}), words[group]) for group in used]
    return made(node.part, name, node.parent, node.weight, *whole, quotas=quotas)
