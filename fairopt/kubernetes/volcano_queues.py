"""The queues of Volcano (``scheduling.volcano.sh``): weight, capability, deserved, guarantee, and trees of them.

``capability`` is the limit; 0 CPUs or no memory are none. What ``guarantee.resource`` reserves is never lent. Of Volcano's two plugins,
*capacity* takes ``deserved`` as the guarantee, of which the reserved part is not lent, and the weight is the dominant share of what is
deserved; *proportion* has weights, and a reservation as the least that a queue gets (``clamp``). The configuration of the scheduler (the
ConfigMap ``volcano-scheduler-configmap``) says which of them divides the cluster; without it, it is *capacity* if a queue says what it
deserves. A ``priority`` is a tier. ``affinity`` says on which groups of nodes the pods of a queue run. In a queue that is not open nothing
starts. The tree is that of ``parent``, or that of the annotations ``volcano.sh/hierarchy`` and ``hierarchy-weights``.

Source: Volcano, pkg/scheduler/plugins/capacity and proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import fitted
from fairopt.instance.queues import Queue
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.kubernetes.placement import Expression
from fairopt.kubernetes.reading import VOLCANO, kind_of
from fairopt.kubernetes.records import Pod
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, by_name, check_parents, in_cluster_units, made, marked
from fairopt.wording import joined, named, plural

__all__ = ["Volcano"]

_MARKS = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
_CAPACITY, _PROPORTION = "capacity", "proportion"
_CLOSED = ("Closed", "Closing")
_DEFAULT, _SCHEDULER, _ROOT = "default", "volcano", "root"
_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_GROUP = "volcano.sh/nodegroup-name"  # a label of nodes
_KINDS = ("required", "preferred")
_LEAST = 1e-3  # of the least weight: the weight of a queue that deserves nothing


class Volcano(SchedulerQueues):
    """Queues of Volcano."""

    name = "Volcano"

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        plugin = _plugin([part for part in parts if kind_of(part) == VOLCANO])
        parts = [part for part in parts if kind_of(part) != VOLCANO]
        listed = {name: part for name, part in by_name(parts, account).items() if name != _ROOT}
        parents, weights, above = _hierarchy(listed, account)
        for name, part in listed.items():
            parent = part["spec"].get("parent").text("")
            if parent and parent != _ROOT:
                parents[name] = parent
        check_parents(parents | {queue.name: queue.parent for queue in above}, listed)
        reserved = {name: in_cluster_units(part["spec"].get("guarantee").get("resource")) for name, part in listed.items()}
        deserved = {name: in_cluster_units(part["spec"].get("deserved")) for name, part in listed.items()}
        capacity = any(deserved.values()) if plugin is None else plugin == _CAPACITY
        self.meaning = "surplus" if capacity else "clamp"
        self.name = f"Volcano's {_CAPACITY if capacity else _PROPORTION} plugin"
        if capacity:
            self.excess = f"{self.name} starts nothing in the whole cluster while that is so"
            weights = _deserved_weights(deserved, reserved, parents, cluster, account)
        else:
            deserved = {name: {} for name in deserved}
        _note_plugin(listed, plugin, capacity, account)
        self._closed = {name: state for name, part in listed.items() if (state := part.get("status").get("state").text("")) in _CLOSED}
        self.selectors = _node_groups(listed, parents, account)
        self.queues = list(above)
        for name, part in listed.items():
            spec = part["spec"]
            limit = in_cluster_units(spec.get("capability"))
            limit = {resource: most for resource, most in limit.items() if most or resource not in ("cpu", "memory")}
            stated = {r: max(deserved[name].get(r, 0.0), reserved[name].get(r, 0.0)) for r in (*deserved[name], *reserved[name])}
            guarantee = fitted(name, stated, limit, account)
            lending = {r: max(guarantee.get(r, 0.0) - amount, 0.0) for r, amount in reserved[name].items() if amount and r in guarantee}
            weight = weights[name] if name in weights else spec.get("weight").number(1.0)
            if not capacity and not weight:
                account.note_of("queue", name, "has the weight 0: it deserves nothing, and gets nothing")
            tier = int(spec.get("priority").number(0.0))
            self.queues.append(made(part, name, parents[name], weight, guarantee, limit, lending, tier))

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind belong to Volcano."""
        return (kind == "Queue" and group == "scheduling.volcano.sh") or (kind, group) == VOLCANO

    def see(self, pods: Sequence[Pod], above: Sequence[str | None]) -> list[str]:
        """Return a note on pods in queues that have queues in them: the capacity plugin starts none of them."""
        return self.note_inner(pods, above) if self.meaning == "surplus" else []

    def closed(self, pod: Part, namespace: str, running: bool) -> str:
        """Return why a pod that waits asks for nothing: its queue is not open."""
        state = "" if running else self._closed.get(self.queue_of(pod, namespace) or "", "")
        return state and f"its queue is not open (state {state}): nothing starts"

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the queue of the annotation of a pod, or the default queue of the scheduler."""
        names = {queue.name for queue in self.queues}
        name = marked(pod, _MARKS) or (_DEFAULT if pod.get("spec").get("schedulerName").text("") == _SCHEDULER else "")
        return name if name in names else None


def _plugin(parts: Sequence[Part]) -> str | None:
    """Return the plugin of a configuration that divides the cluster among queues; None: it is not known.

    A configuration without either divides nothing by queues; weights are then the nearest that there is.
    """
    if not parts:
        return None
    names = [plugin.get("name").text("") for part in parts for tier in part.get("tiers").items() for plugin in tier.get("plugins").items()]
    return _CAPACITY if _CAPACITY in names else _PROPORTION


def _note_plugin(listed: Mapping[str, Part], plugin: str | None, capacity: bool, account: Account) -> None:
    """Note what queues state and a plugin does not read, and how queues without a plugin were read."""
    deserving = [name for name, part in listed.items() if part["spec"].get("deserved").value]
    if capacity and plugin is None:
        account.note(
            f"{joined([named(name) for name in deserving], 3)}: stated what is deserved, so Volcano's capacity plugin is taken to divide "
            "the cluster; its proportion plugin, the default, ignores that and has weights: give volcano-scheduler-configmap with --queues"
        )
    for name in () if capacity else deserving:
        account.note_of("queue", name, "states what it deserves, which Volcano's proportion plugin ignores: weights count")
    weights = {part["spec"].get("weight").number(1.0) for part in listed.values()}
    if capacity and len(weights) > 1:
        account.note("queues have different weights, which Volcano's capacity plugin ignores: what they deserve counts")
    for name, part in listed.items():
        if part["spec"].get("reclaimable").value is False:
            account.note_of(
                "queue", name, "is not reclaimable: Volcano stops nothing there, even beyond its share, which is not in an instance"
            )


def _node_groups(listed: Mapping[str, Part], parents: Mapping[str, str | None], account: Account) -> dict[str, tuple[Expression, ...]]:
    """Return on which groups of nodes the pods of each queue run, by the affinity of the queue, else of the nearest queue above.

    These are the groups that it requires or prefers, less those that it must not use, and those that it would rather not use. Where some
    queue states an affinity, a queue without one runs nowhere (the nodegroup plugin is strict by default).
    """
    groups: dict[str, tuple[str, ...]] = {}
    wishes = 0
    for name, part in listed.items():
        affinity = part["spec"].get("affinity")
        if affinity.value is None:
            continue
        wanted, avoided = (
            {
                kind: [each.text() for each in affinity.get(side).get(f"{kind}DuringSchedulingIgnoredDuringExecution").items()]
                for kind in _KINDS
            }
            for side in ("nodeGroupAffinity", "nodeGroupAntiAffinity")
        )
        wishes += bool(wanted["preferred"] or avoided["preferred"])
        allowed = (set(wanted["required"]) | set(wanted["preferred"])) - set(avoided["required"]) | set(avoided["preferred"])
        groups[name] = tuple(sorted(allowed))
    if not groups:
        return {}
    if wishes:
        account.note(f"{plural(wishes, 'queue prefers', 'queues prefer')} some groups of nodes, which is ignored: all its groups are equal")
    bare = []
    selectors: dict[str, tuple[Expression, ...]] = {}
    for name in listed:
        above: str | None = name
        while above is not None and above not in groups:
            above = parents.get(above)
        if above is None:
            bare.append(name)
        selectors[name] = (Expression(_GROUP, "In", groups[above] if above is not None else ()),)
    if bare:
        account.note(
            f"{joined([named(name) for name in bare], 5)}: without a node group, while other queues have one: none of its pods can start "
            "(Volcano's nodegroup plugin is strict unless strict: false)"
        )
    return selectors


def _hierarchy(listed: Mapping[str, Part], account: Account) -> tuple[dict[str, str | None], dict[str, float], list[Queue]]:
    """Return parents and weights by the annotations, and the queues above that only the annotations name."""
    parents: dict[str, str | None] = dict.fromkeys(listed)
    weights: dict[str, float] = {}
    above: dict[str, Queue] = {}
    for name, part in listed.items():
        annotations = part["metadata"].get("annotations")
        way = annotations.get(_HIERARCHY).text("").split("/")[1:]
        if not way:
            continue
        if len(way) > MOST_LEVELS:
            annotations.get(_HIERARCHY).refuse(too_deep(name, len(way)))
        given = annotations.get(_WEIGHTS)
        try:
            of_way = [float(text) for text in given.text("").split("/")[1:]] or [1.0] * len(way)
        except ValueError:
            of_way = []
        if len(of_way) != len(way) or min(of_way) <= 0:
            given.refuse(f'expected a weight > 0 for each part of "{"/".join([_ROOT, *way])}", such as {"/".join("1" * (len(way) + 1))}')
        for depth in range(1, len(way)):
            each, parent = "/".join(way[:depth]), "/".join(way[: depth - 1]) or None
            if each in listed:
                part.refuse(f'its hierarchy goes through "{each}", which is the name of a queue itself; rename one')
            queue = made(part, each, parent, of_way[depth - 1])
            if above.setdefault(each, queue).weight != queue.weight:
                account.note(f'the annotations give "{each}" different weights: here it has {above[each].weight:g}')
        parents[name] = "/".join(way[:-1]) or None
        weights[name] = of_way[-1]
    return parents, weights, list(above.values())


def _deserved_weights(
    deserved: Mapping[str, Mapping[str, float]],
    reserved: Mapping[str, Mapping[str, float]],
    parents: Mapping[str, str | None],
    cluster: Cluster,
    account: Account,
) -> dict[str, float]:
    """Return the dominant share of what each queue deserves; a queue that does not say so deserves what those in it do."""

    def share(amounts: Mapping[str, float]) -> float:
        parts = [amount / cluster.total[resource] for resource, amount in amounts.items() if cluster.total.get(resource)]
        return max(parts, default=0.0)

    weights = {name: share(deserved[name]) or share(reserved[name]) for name in deserved}
    told = {name for name, weight in weights.items() if weight}
    for name in told:
        way, above = weights[name], parents[name]
        while above is not None and above not in told:
            weights[above] = weights.get(above, 0.0) + way
            above = parents.get(above)
    least = min((weight for weight in weights.values() if weight), default=1.0)
    for name, weight in weights.items():
        if not weight:
            account.note_of("queue", name, f"deserves nothing: its weight is {_LEAST:g} of the least of the others")
            weights[name] = least * _LEAST
    return weights
