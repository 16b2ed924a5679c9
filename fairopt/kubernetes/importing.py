"""A Kubernetes cluster, from ``kubectl get nodes -o json`` and ``kubectl get pods -A -o json``.

**Nodes.** A node offers its *allocatable*, not its capacity, less the requests of the DaemonSet pods and of the static pods that run on
it: those belong to the node, and no scheduler could put them elsewhere (``daemonsets="tasks"`` makes them tasks of their namespace). A
node that is cordoned or not ready offers nothing; pods on it count as demand, but not as running. CPU is in cores, memory and storage in
GiB; ``pods`` is a resource, and so is every extended one (``nvidia.com/gpu``) that some pod asks for.

**Pods.** A task is a pod and asks for its *requests*. If a container has no request for a resource, its limit counts, else 0. With
the sum over containers c (and over sidecars s, init containers with ``restartPolicy: Always``) and the largest init container,

    request[r] = max(sum_c c[r] + sum_s s[r], max over init containers of itself[r] + the sidecars before it[r]) + overhead[r].

Parts of GPUs (KAI, HAMi) are in :mod:`fairopt.kubernetes.cards`, devices that pods claim (DRA) in :mod:`fairopt.kubernetes.devices`.
Pending pods are demand; Succeeded and Failed ones hold nothing and ask for nothing.

**Where.** Taints of effect NoSchedule and NoExecute that the pod does not tolerate, ``nodeSelector`` and the *required* node affinity (In,
NotIn, Exists, DoesNotExist, Gt, Lt on labels, ``metadata.name`` on fields) exclude nodes. Required affinity between pods and topology
spread are not constraints of an `Instance`: pods that have them are counted in a note, and the optimum is a relaxation for them.

**Work without pods.** Workloads of Kueue, PodGroups and Jobs of Volcano, suspended Jobs and JobSets ask for pods that do not exist yet
(:mod:`fairopt.kubernetes.workloads`).

**Queues.** A namespace is a queue, and its shapes of pods are users in it. ``queues`` are objects of Kueue, Volcano or KAI,
``queues.yaml`` of YuniKorn, and ResourceQuotas (:mod:`fairopt.kubernetes.queues`): then the queues of the namespaces are in those of the
scheduler. Where these are no scheduler's, priorities of pods are tiers (:mod:`fairopt.kubernetes.priorities`).

Without pods there are no users. Then one user, "example", takes their place: it asks for one core and its part of the memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Literal

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.imported import Import
from fairopt.clusters.json_export import Part
from fairopt.clusters.queue_tree import Forest
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.clusters.speeds import Speeds, read_speeds
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.instance.quantities import NANO
from fairopt.kubernetes.amounts import add, in_units, unit_of
from fairopt.kubernetes.cards import CardRequest, Cards, gpu_of, holds_shared_card, note_slices, taken_on
from fairopt.kubernetes.devices import is_device, with_devices
from fairopt.kubernetes.fields import note_fields
from fairopt.kubernetes.kai_queues import KAI
from fairopt.kubernetes.own_limits import startable
from fairopt.kubernetes.placement import Constraints, Labels
from fairopt.kubernetes.priorities import is_class, with_tiers
from fairopt.kubernetes.queues import SYSTEMS, is_queue, queues_of
from fairopt.kubernetes.reading import kind_of, named_objects, read_any
from fairopt.kubernetes.records import ALWAYS, Node, Pod, owner_of, read_node, read_pod
from fairopt.kubernetes.scheduler_queues import Extra
from fairopt.kubernetes.stops import names_of
from fairopt.kubernetes.workloads import is_work, with_work
from fairopt.wording import joined, plural

__all__ = ["import_kubernetes"]

_NODES, _PODS = "kubectl get nodes -o json > nodes.json", "kubectl get pods -A -o json > pods.json"
_QUEUES = "kubectl get clusterqueues,cohorts,localqueues,resourceflavors,resourcequotas -A -o yaml > queues.yaml (Kueue), or kubectl get "
_QUEUES += (
    "queues,resourcequotas -A -o yaml > queues.yaml (Volcano, KAI), or kubectl get elasticquotas -A -o yaml > queues.yaml, or kubectl get "
)
_QUEUES += "configmap yunikorn-configs -n yunikorn -o yaml > queues.yaml"
_Path = str | os.PathLike[str]


@keeps_question
def import_kubernetes(
    nodes: str | os.PathLike[str],
    pods: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    queues: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    speeds: str | os.PathLike[str] | None = None,
    users: str = "namespace",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    daemonsets: Literal["reserve", "tasks"] = "reserve",
    lenient: bool = False,
) -> Import:
    """Make an instance of a Kubernetes cluster.

    Parameters
    ----------
    nodes : path
        ``kubectl get nodes -o json``, or ``-o yaml``; "-" is the standard input. A list of objects of all kinds is enough by itself:
        ``kubectl get nodes,pods,workloads,clusterqueues,localqueues,resourceflavors -A -o json``.
    pods : path or paths
        ``kubectl get pods -A -o json``, or one file for each namespace.
    queues : path or paths
        YAML or JSON of ``kubectl get``: ClusterQueues, Cohorts, LocalQueues and ResourceFlavors of Kueue, or Queues of Volcano or KAI, or
        ElasticQuotas, or ``queues.yaml`` of YuniKorn or its ConfigMap, and ResourceQuotas; and what asks for pods that do not exist yet
        (:mod:`fairopt.kubernetes.workloads`). The result says what a guarantee means in that scheduler (`Import.options`).
    speeds : path, optional
        A table of how much work a task does on nodes of a flavor, or with a label (:mod:`fairopt.clusters.speeds`); default: 1.
    users : str
        The owner of a pod: "namespace", "label:KEY" (pods without the label: "(no KEY)") or "priority" (its priority class).
    weights : mapping, optional
        Weight by owner; default 1.
    demand : {"shapes", "mean"}
        A user for each queue and shape (exact), or one for each queue with the mean of its pods (approximate).
    daemonsets : {"reserve", "tasks"}
        Subtract the requests of DaemonSet and static pods from their node, or treat these pods as tasks.
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> node = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "3500m", "memory": "8Gi", "pods": "110"}}}
    >>> pod = {"metadata": {"name": "web", "namespace": "shop"}, "status": {"phase": "Running"},
    ...        "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, items in (("nodes.json", [node]), ("pods.json", [pod])):
    ...         _ = Path(folder, name).write_text(json.dumps({"items": items}))
    ...     imported = import_kubernetes(Path(folder, "nodes.json"), Path(folder, "pods.json"))
    >>> imported
    Import(kubernetes: 1 owner, 1 user, 1 task, 1 task running, 1 server in 1 row)
    >>> imported.instance.resources, imported.instance.capacities, imported.instance.demands
    (('cpu', 'memory', 'pods'), array([[  3.5,   8. , 110. ]]), array([[0.25, 1.  , 1.  ]]))
    """
    owner = owner_of(users)
    if daemonsets not in ("reserve", "tasks"):
        raise InvalidInstance(f'daemonsets is "{daemonsets}"; give "reserve" or "tasks"')
    account = Account(lenient)
    paths = [pods] if isinstance(pods, str | os.PathLike) else list(pods)
    files = [queues] if isinstance(queues, str | os.PathLike) else list(queues)
    read, found, objects = _given(nodes, paths, files)
    offered = account.unique(account.read(read, read_node, "node"), "node")
    open_nodes = []
    for node in offered:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.name})", node.closed)
        else:
            open_nodes.append(node)
    work = [part for part in objects if is_work(part)]
    some = bool(found or work)
    if some:
        listed = account.read(found, lambda part: read_pod(part, owner), "pod")
    elif paths:
        raise InvalidInstance(f"{', '.join(map(str, paths))}: there is no pod; export the pods of all namespaces: {_PODS}")
    else:
        listed = [_example(open_nodes)]
        account.note("no pods were given, so there is one example user; give --pods, or replace it by your users")
    listed = account.unique(listed, "pod")
    account.summary |= {"nodes": len(read), "pods": len(listed) if some else 0, **_phases(listed)}
    listed = with_work(work, listed, owner, account)
    note_fields(read, [pod.part for pod in listed] if some else (), objects, account)

    known = {node.name: node for node in offered}
    index = {node.name: i for i, node in enumerate(open_nodes)}
    kept: list[Pod] = []
    of_kai = any(KAI.reads(*kind_of(part)) for part in objects)
    listed = _whole_or_in_parts(listed, account)
    listed = with_devices([part for part in objects if is_device(part)], listed, offered, account, gpus=of_kai)
    homeless = 0
    for pod in listed:
        if pod.finished:
            account.leave_out("pod", pod.where, f"finished ({pod.phase}): holds nothing and asks for nothing")
        elif pod.node and pod.node not in known:
            account.bad(
                "pod", f"{pod.part.place}.spec.nodeName", f'runs on node "{pod.node}", which {nodes} does not list; export both again'
            )
        elif holds_shared_card(pod):
            if pod.node in index:
                gpu = gpu_of(known[pod.node].allocatable)
                _reserve(known[pod.node], {resource: amount for resource, amount in pod.request.items() if resource != gpu})
            account.leave_out("pod", pod.where, "KAI's own, for a GPU that pods share: their parts count, not this pod", pod.number)
        elif pod.pinned and daemonsets == "reserve":
            if pod.node in index:
                _reserve(known[pod.node], pod.request)
            account.leave_out("pod", pod.where, f"{pod.pinned}: {'taken off its node' if pod.node in index else 'its node offers nothing'}")
        else:
            homeless += bool(pod.node) and pod.node not in index
            kept.append(pod)
    reserved = add([node.reserved for node in open_nodes])
    if reserved:
        account.summary["taken off nodes"] = {resource: in_units(resource, amount) for resource, amount in reserved.items() if amount}
    if homeless:
        account.note(f"{plural(homeless, 'pod')} on nodes that offer nothing: asked for, but not held")
    related = sum(pod.related for pod in kept)
    if related:
        account.note(f"{plural(related, 'pod')} with required pod affinity or topology spread, which is ignored: a relaxation")
    classes = Counter[str]()
    for pod in kept:
        if pod.priority:
            classes[pod.priority] += int(pod.number)
    if classes:
        account.summary["priority classes"] = dict(classes.most_common())

    rest = [part for part in objects if is_queue(part)]
    for part in objects:
        if not (is_queue(part) or is_work(part) or is_device(part) or is_class(part)):
            account.leave_out("object", part.place, f"a {kind_of(part)[0]} is not a queue of {joined([s.name for s in SYSTEMS], 4)}")
    nothing: tuple[None, list[Pod], None, list[Extra]] = None, kept, None, [()] * len(kept)
    forest, kept, places_in, extra = queues_of(rest, kept, open_nodes, users, account) if rest else nothing
    if forest is not None and places_in is not None:
        able = startable(kept, places_in, forest, open_nodes, account)
        kept, places_in, extra = list(compress(kept, able)), list(compress(places_in, able)), list(compress(extra, able))
    kept = _within_nodes(kept, known, account)
    ordered = any(system.reads(*kind_of(part)) for part in rest for system in SYSTEMS)
    classes_given = [part for part in objects if is_class(part)]
    forest, places_in = with_tiers(kept, classes_given, users, forest, places_in, ordered, account)
    cards = Cards(open_nodes, kept, account)
    note_slices(kept, of_kai, account)
    amounts = [pod.request for pod in kept] if some else [node.allocatable for node in open_nodes]
    asked = {resource for each in amounts for resource, amount in each.items() if amount}
    if any(pod.cards for pod in kept):
        asked.add(cards.gpu)
    if forest:
        asked |= forest.resources & {resource for node in open_nodes for resource in node.allocatable}
    resources = [*ALWAYS, *sorted(asked - set(ALWAYS))]
    place_of = [(pod.constraints, more, pod.cards, pod.only) for pod, more in zip(kept, extra, strict=True)]
    places = list(dict.fromkeys(place_of))
    row = {place: j for j, place in enumerate(places)}
    labels = Labels(open_nodes)
    running = [(j, index.get(pod.node, SOMEWHERE), pod.number) for j, pod in enumerate(kept) if pod.node in index or pod.started]
    return assemble(
        "kubernetes",
        Nodes(
            [node.name for node in open_nodes],
            np.array([_offer(node, resources, account) for node in open_nodes]).reshape(-1, len(resources)),
            kind=cards.kind if cards.kinds > 1 else None,
        ),
        Tasks(
            owner=[pod.owner for pod in kept],
            demands=_demands(kept, resources, cards),
            number=np.array([pod.number for pod in kept], float),
            allowed=np.array(
                [labels.allowed(where, more) & cards.allowed(parts) & labels.among(only) for where, more, parts, only in places],
                bool,
            ).reshape(len(places), len(open_nodes)),
            place=np.array([row[place] for place in place_of], int),
            where=[pod.where for pod in kept],
            running=running,
            names=names_of([kept[j] for j, _, _ in running], objects),
            placed=some,
            queue=places_in,
        ),
        account,
        units={resource: unit_of(resource) for resource in resources},
        forest=forest,
        own_weights=weights,
        demand=demand,
        what="pod",
        speeds=None if speeds is None else _speeds(speeds, open_nodes, forest, {pod.owner for pod in kept}, account, resources),
    )


def _reserve(node: Node, amounts: Mapping[str, int]) -> None:
    """Take amounts off what a node offers."""
    for resource, amount in amounts.items():
        node.reserved[resource] = node.reserved.get(resource, 0) + amount


def _demands(pods: Sequence[Pod], resources: list[str], cards: Cards) -> FloatArray:
    """Return the demands of pods, (pods, kinds of node, resources)."""
    demands = np.array([[in_units(r, pod.request.get(r, 0)) for r in resources] for pod in pods]).reshape(len(pods), 1, len(resources))
    demands = np.repeat(demands, cards.kinds, axis=1)
    parts: dict[tuple[CardRequest, ...], list[float]] = {}
    for j, pod in enumerate(pods):
        if pod.cards:
            if pod.cards not in parts:
                parts[pod.cards] = [float(amount) for amount in cards.taken(pod.cards)]
            demands[j, :, resources.index(cards.gpu)] += parts[pod.cards]
    return demands


def _whole_or_in_parts(pods: Sequence[Pod], account: Account) -> list[Pod]:
    """Return the pods; of one that asks for whole GPUs and for parts, in an annotation, the whole ones count."""
    both = {pod.name for pod in pods if pod.cards and any(amount and r.endswith("/gpu") for r, amount in pod.request.items())}
    if both:
        account.note(f"{plural(len(both), 'pod asks', 'pods ask')} for whole GPUs and for a part in an annotation: the whole ones count")
    twice = sum(pod.twice and pod.name not in both for pod in pods)
    if twice:
        account.note(
            f"{plural(twice, 'pod asks', 'pods ask')} for parts of GPUs by requests, which HAMi and Volcano read, and by annotations, "
            "which KAI reads: the requests count"
        )
    return [replace(pod, cards=()) if pod.name in both else pod for pod in pods]


def _speeds(
    path: str | os.PathLike[str],
    nodes: Sequence[Node],
    forest: Forest | None,
    owners: set[str],
    account: Account,
    resources: Sequence[str],
) -> Speeds:
    """Read a table of speeds: a kind is a flavor, and the attributes of a node are its labels."""
    kinds = forest.kinds if forest else {}
    return read_speeds(path, [node.name for node in nodes], kinds, [node.labels for node in nodes], owners, account, resources)


def _example(nodes: list[Node]) -> Pod:
    """Return the example pod that takes the place of missing pods: one core, and the memory that the nodes have per core."""
    total = {r: sum(node.allocatable.get(r, 0) for node in nodes) for r in ALWAYS}
    request = {"cpu": NANO, "memory": total["memory"] * NANO // max(total["cpu"], 1), "pods": NANO}
    return Pod(Part(None, "no pods"), "example", "example", "Pending", "", "", "", request, Constraints((), None, ()), False, np.inf)


def _given(nodes: _Path, pods: Sequence[_Path], queues: Sequence[_Path]) -> tuple[list[Part], list[Part], list[Part]]:
    """Return nodes, pods and all other objects. A list of nodes or of pods may have objects of other kinds, too; no file is read twice."""
    of_nodes = read_any(nodes, "Node", _NODES)
    listed_nodes: list[Part] = []
    found: list[Part] = []
    objects: list[Part] = []
    if not any(kind_of(part)[0] == "Node" for part in of_nodes):
        of_nodes[0].refuse(f"expected a Node, found a {kind_of(of_nodes[0])[0]}; export it again: {_NODES}")
    read = {str(nodes): of_nodes}
    for path in pods:
        if str(path) not in read:
            read[str(path)] = parts = read_any(path, "Pod", _PODS)
            if parts and all(kind_of(part)[0] == "Node" for part in parts):
                parts[0].refuse(f"expected a Pod, found a Node; export it again: {_PODS}")
    for path in queues:
        if str(path) not in read:
            read[str(path)] = named_objects(path, _QUEUES)
    of_queues = [part for path in queues for part in read[str(path)]]
    if queues and not any(is_queue(part) or is_work(part) or is_device(part) or is_class(part) for part in of_queues):
        kinds, names = joined(sorted({kind_of(part)[0] for part in of_queues}), 5) or "nothing", ", ".join(map(str, queues))
        raise InvalidInstance(f"{names}: there is no queue and no ResourceQuota, but {kinds}; export them: {_QUEUES}")
    for part in (part for parts in read.values() for part in parts):
        kind = kind_of(part)
        {("Node", ""): listed_nodes, ("Pod", ""): found}.get(kind, objects).append(part)
    return listed_nodes, found, objects


def _within_nodes(pods: list[Pod], nodes: Mapping[str, Node], account: Account) -> list[Pod]:
    """Return the pods; one that runs stays, and holds at most what its node lists (a device plugin that failed lists nothing)."""
    kept, cut = [], Counter[str]()
    for pod in pods:
        if pod.node and not nodes[pod.node].closed:
            offer = nodes[pod.node].allocatable
            gpu, parts = gpu_of(offer), taken_on(nodes[pod.node].deck, pod.cards)
            if parts > offer.get(gpu, 0) / NANO:
                pod = replace(pod, request=pod.request | {gpu: -(-parts.numerator * NANO // parts.denominator)}, cards=())
            over = {resource: offer.get(resource, 0) for resource, amount in pod.request.items() if amount > offer.get(resource, 0)}
            if over:
                cut.update(list(over))
                pod = replace(pod, request=pod.request | over)
        kept.append(pod)
    for resource, number in cut.items():
        runs = "runs on a node" if number == 1 else "run on nodes"
        account.note(f"{plural(number, 'pod')} {runs} with less {resource} than requested: it stays, and holds what its node lists")
    return kept


def _phases(pods: list[Pod]) -> dict[str, int]:
    return {f"pods {phase}": number for phase, number in Counter(pod.phase for pod in pods if pod.number == 1).items()}


def _offer(node: Node, resources: list[str], account: Account) -> list[float]:
    """Return what a node offers: allocatable minus reserved."""
    for resource, amount in node.reserved.items():
        if amount > node.allocatable.get(resource, 0):
            account.note_of("node", node.name, f"has DaemonSet and static pods that ask for more {resource} than is allocatable")
    return [in_units(r, max(node.allocatable.get(r, 0) - node.reserved.get(r, 0), 0)) for r in resources]
