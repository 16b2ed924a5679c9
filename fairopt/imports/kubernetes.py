"""A Kubernetes cluster, from ``kubectl get nodes -o json`` and ``kubectl get pods -A -o json``.

**Nodes.** A node offers its *allocatable*, not its capacity, less the requests of the DaemonSet pods and of the static pods that run on
it: those belong to the node, and no scheduler could put them elsewhere (``daemonsets="tasks"`` makes them tasks of their namespace). A
node that is cordoned or not ready offers nothing; what runs there is demand, but held by nobody. CPU is in cores, memory and storage in
GiB; ``pods`` is a resource, and so is every extended one (``nvidia.com/gpu``) that some pod asks for.

**Pods.** A task is a pod, and asks for its *requests*: where a container names none of a resource, for its limit, else for nothing. With
the sum over containers c (and over sidecars s, init containers with ``restartPolicy: Always``) and the largest init container,

    request[r] = max(sum_c c[r] + sum_s s[r], max over init containers of itself[r] + the sidecars before it[r]) + overhead[r].

Pending pods are demand; Succeeded and Failed ones hold nothing and ask for nothing.

**Where.** Taints of effect NoSchedule and NoExecute that the pod does not tolerate, ``nodeSelector`` and the *required* node affinity (In,
NotIn, Exists, DoesNotExist, Gt, Lt on labels, ``metadata.name`` on fields) exclude nodes. Required affinity between pods and topology
spread are not constraints of an `Instance`: pods that have them are counted in a note, and the optimum is a relaxation for them.

Without pods there are no users: one, "example", stands for them and asks for one core and its part of the memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.imports.assembly import Account, Demand, Nodes, Tasks, assemble
from fairopt.imports.json_export import Part, read_json
from fairopt.imports.quantities import NANO, nano
from fairopt.imports.result import Import
from fairopt.instance import BoolArray
from fairopt.wording import plural

__all__ = ["import_kubernetes"]

_NODES, _PODS = "kubectl get nodes -o json > nodes.json", "kubectl get pods -A -o json > pods.json"
_GIB = NANO << 30
_ALWAYS = ("cpu", "memory", "pods")
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_PINNED = {"DaemonSet": "DaemonSet pod", "Node": "static pod"}

_Amounts = dict[str, int]  # resource -> units of 1e-9


def import_kubernetes(
    nodes: str | os.PathLike[str],
    pods: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
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
        ``kubectl get nodes -o json``.
    pods : path or paths
        ``kubectl get pods -A -o json``, or one file for each namespace.
    users : str
        Who the owner of a pod is: "namespace", "label:KEY" (pods without the label: "(no KEY)") or "priority" (its priority class).
    weights : mapping, optional
        Weight by owner; default 1.
    demand : {"shapes", "mean"}
        A user for each owner and shape (exact), or one for each owner with the mean of its pods (approximate).
    daemonsets : {"reserve", "tasks"}
        What DaemonSet and static pods ask for is taken off their node, or they are tasks like others.
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
    owner = _owner(users)
    if daemonsets not in ("reserve", "tasks"):
        raise InvalidInstance(f'daemonsets is "{daemonsets}"; give "reserve" or "tasks"')
    account = Account(lenient)
    read = _objects(nodes, "Node", _NODES)
    offered = account.unique(account.read(read, _node, "node"), "node")
    open_nodes = []
    for node in offered:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.name})", node.closed)
        else:
            open_nodes.append(node)
    paths = [pods] if isinstance(pods, str | os.PathLike) else list(pods)
    if paths:
        found = [part for path in paths for part in _objects(path, "Pod", _PODS)]
        if not found:
            raise InvalidInstance(f"{', '.join(map(str, paths))}: there is no pod; export those of all namespaces: {_PODS}")
        listed = account.read(found, lambda part: _pod(part, owner), "pod")
    else:
        listed = [_example(open_nodes)]
        account.note('no pods were given: one user, "example", stands for them; give --pods, or put your users in its place')
    listed = account.unique(listed, "pod")
    account.summary |= {"nodes": len(read), "pods": len(listed) if paths else 0, **_phases(listed)}

    known = {node.name: node for node in offered}
    index = {node.name: i for i, node in enumerate(open_nodes)}
    kept: list[_Pod] = []
    homeless = 0
    for pod in listed:
        if pod.finished:
            account.leave_out("pod", pod.where, f"finished ({pod.phase}): holds nothing and asks for nothing")
        elif pod.node and pod.node not in known:
            account.bad(
                "pod", f"{pod.part.place}.spec.nodeName", f'runs on node "{pod.node}", which {nodes} does not list; export both anew'
            )
        elif pod.pinned and daemonsets == "reserve":
            if pod.node in index:
                node = known[pod.node]
                for resource, amount in pod.request.items():
                    node.reserved[resource] = node.reserved.get(resource, 0) + amount
            account.leave_out("pod", pod.where, f"{pod.pinned}: {'taken off its node' if pod.node in index else 'its node offers nothing'}")
        else:
            homeless += bool(pod.node) and pod.node not in index
            kept.append(pod)
    reserved = _sum([node.reserved for node in open_nodes])
    if reserved:
        account.summary["taken off nodes"] = {resource: _amount(resource, amount) for resource, amount in reserved.items() if amount}
    if homeless:
        account.note(f"{plural(homeless, 'pod')} on nodes that offer nothing: demand, but not held")
    related = sum(pod.related for pod in kept)
    if related:
        account.note(f"{plural(related, 'pod')} with required pod affinity or topology spread, which is ignored: a relaxation")
    classes = Counter(pod.priority for pod in kept if pod.priority)
    if classes:
        account.summary["priority classes"] = dict(classes.most_common())

    amounts = [pod.request for pod in kept] if paths else [node.allocatable for node in open_nodes]
    asked = {resource for each in amounts for resource, amount in each.items() if amount}
    resources = [*_ALWAYS, *sorted(asked - set(_ALWAYS))]
    places = list(dict.fromkeys(pod.constraints for pod in kept))
    row = {place: j for j, place in enumerate(places)}
    labels = _Labels(open_nodes)
    return assemble(
        "kubernetes",
        Nodes(
            [node.name for node in open_nodes],
            np.array([_offer(node, resources, account) for node in open_nodes]).reshape(-1, len(resources)),
        ),
        Tasks(
            owner=[pod.owner for pod in kept],
            demands=np.array([[_amount(r, pod.request.get(r, 0)) for r in resources] for pod in kept]).reshape(-1, len(resources)),
            number=np.array([pod.number for pod in kept], float),
            allowed=np.array([labels.allowed(place) for place in places], bool).reshape(len(places), len(open_nodes)),
            place=np.array([row[pod.constraints] for pod in kept], int),
            where=[pod.where for pod in kept],
            running=[(j, index[pod.node], 1.0) for j, pod in enumerate(kept) if pod.node in index],
            placed=bool(paths),
        ),
        account,
        units={resource: _unit(resource) for resource in resources},
        own_weights=weights,
        demand=demand,
        what="pod",
    )


# Records -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    part: Part
    name: str
    allocatable: _Amounts
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]  # key, value, effect
    closed: str  # why it accepts no work; else empty
    reserved: _Amounts


@dataclass(frozen=True, slots=True)
class _Expression:
    key: str
    operator: str
    values: tuple[str, ...]


_Term = tuple[tuple[_Expression, ...], tuple[_Expression, ...]]  # on labels, on fields: all must hold


@dataclass(frozen=True, slots=True)
class _Constraints:
    selector: tuple[_Expression, ...]
    affinity: tuple[_Term, ...] | None  # one must hold
    tolerations: tuple[tuple[str, str, str, str], ...]  # key, operator, value, effect


@dataclass(frozen=True, slots=True)
class _Pod:
    part: Part
    name: str
    owner: str
    phase: str
    node: str
    pinned: str
    priority: str
    request: _Amounts
    constraints: _Constraints
    related: bool
    number: float = 1.0

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def where(self) -> str:
        return f"{self.part.place} ({self.name})"


def _objects(path: str | os.PathLike[str], kind: str, command: str) -> list[Part]:
    """Return the items of a list, or the one object, of a file."""
    whole = read_json(path, command)
    if not isinstance(whole.value, dict) or not ("items" in whole.value or "metadata" in whole.value):
        whole.refuse(f"this is not what kubectl writes: there are no items; export it again: {command}")
    items = whole.get("items").items() if "items" in whole.value else [whole]
    for item in items:
        found = item.get("kind").text(kind)
        if found != kind:
            item.refuse(f"this is a {found}, and a {kind} is expected; export it again: {command}")
    if "items" in whole.value and not items and kind == "Node":
        whole.refuse(f"the list is empty; export it again: {command}")
    return items


def _node(part: Part) -> _Node:
    status, spec = part["status"], part.get("spec")
    ready = [each["status"].text() for each in status.get("conditions").items() if each.get("type").value == "Ready"]
    closed = "cordoned" if spec.get("unschedulable").value else "not ready" if ready and ready[-1] != "True" else ""
    return _Node(
        part,
        part["metadata"]["name"].text(),
        _amounts(status["allocatable"]),
        {key: value.text() for key, value in part["metadata"].get("labels").entries().items()},
        tuple(
            (each["key"].text(), each.get("value").text(""), each["effect"].text())
            for each in spec.get("taints").items()
            if each["effect"].text() != "PreferNoSchedule"
        ),
        f"{closed}: offers nothing" if closed else "",
        {},
    )


def _pod(part: Part, owner: Callable[[Part], str]) -> _Pod:
    metadata, spec = part["metadata"], part["spec"]
    phase = part.get("status").get("phase").text("Pending")
    if phase not in _PHASES:
        part.get("status").get("phase").refuse(f'there is no phase "{phase}"; the phases are {", ".join(_PHASES)}')
    owners = [each["kind"].text() for each in metadata.get("ownerReferences").items()]
    affinity = spec.get("affinity")
    spread = [each.get("whenUnsatisfiable").text("DoNotSchedule") for each in spec.get("topologySpreadConstraints").items()]
    return _Pod(
        part,
        f"{metadata.get('namespace').text('') or 'default'}/{metadata['name'].text()}",
        owner(part),
        phase,
        spec.get("nodeName").text(""),
        next((_PINNED[kind] for kind in owners if kind in _PINNED), ""),
        spec.get("priorityClassName").text(""),
        _request(spec),
        _Constraints(
            tuple(_Expression(key, "In", (value.text(),)) for key, value in sorted(spec.get("nodeSelector").entries().items())),
            _affinity(affinity.get("nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")),
            tuple(sorted({_toleration(each) for each in spec.get("tolerations").items()})),
        ),
        "DoNotSchedule" in spread
        or any(
            affinity.get(kind).get("requiredDuringSchedulingIgnoredDuringExecution").value for kind in ("podAffinity", "podAntiAffinity")
        ),
    )


def _example(nodes: list[_Node]) -> _Pod:
    """Return what stands for the pods that were not given: one core, and of memory what the nodes have for each."""
    total = {r: sum(node.allocatable.get(r, 0) for node in nodes) for r in _ALWAYS}
    request = {"cpu": NANO, "memory": total["memory"] * NANO // max(total["cpu"], 1), "pods": NANO}
    return _Pod(Part(None, "no pods"), "example", "example", "Pending", "", "", "", request, _Constraints((), None, ()), False, np.inf)


def _owner(users: str) -> Callable[[Part], str]:
    kind, _, key = users.partition(":")
    if users == "namespace":
        return lambda pod: pod["metadata"].get("namespace").text("") or "default"
    if users == "priority":
        return lambda pod: pod["spec"].get("priorityClassName").text("") or "(no class)"
    if kind == "label" and key:
        return lambda pod: pod["metadata"].get("labels").get(key).text("") or f"(no {key})"
    raise InvalidInstance(f'users is "{users}"; give "namespace", "priority" or "label:KEY", such as label:team')


def _phases(pods: list[_Pod]) -> dict[str, int]:
    return {f"pods {phase}": number for phase, number in Counter(pod.phase for pod in pods if pod.number == 1).items()}


# Amounts -------------------------------------------------------------------------------------------------------------------------


def _amounts(part: Part) -> _Amounts:
    amounts = {}
    for resource, quantity in part.entries().items():
        if isinstance(quantity.value, bool) or not isinstance(quantity.value, str | int | float):
            quantity.refuse("expected a quantity such as 500m, 2 or 1.5Gi")
        try:
            amounts[resource] = nano(quantity.value)
        except ValueError as error:
            quantity.refuse(str(error))
    return amounts


def _container(part: Part) -> _Amounts:
    """Return what a container asks for: requests, else limits."""
    resources = part.get("resources")
    return _amounts(resources.get("limits")) | _amounts(resources.get("requests"))


def _request(spec: Part) -> _Amounts:
    """Return what a pod asks for."""
    running = _sum([_container(each) for each in spec["containers"].items()])
    starting: _Amounts = {}
    sidecars: _Amounts = {}
    for each in spec.get("initContainers").items():
        own = _container(each)
        if each.get("restartPolicy").value == "Always":
            sidecars = _sum([sidecars, own])
            own = {}
        starting = _largest(starting, _sum([sidecars, own]))
    total = _largest(_sum([running, sidecars]), starting)
    total |= _container(spec)  # of the pod as a whole, where it gives that
    return _sum([total, _amounts(spec.get("overhead")), {"pods": NANO}])


def _sum(amounts: Sequence[_Amounts]) -> _Amounts:
    total: _Amounts = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _largest(one: _Amounts, other: _Amounts) -> _Amounts:
    return {resource: max(one.get(resource, 0), other.get(resource, 0)) for resource in one | other}


def _offer(node: _Node, resources: list[str], account: Account) -> list[float]:
    """Return what a node offers: what is allocatable less what is reserved."""
    for resource, amount in node.reserved.items():
        if amount > node.allocatable.get(resource, 0):
            account.note(
                f"the DaemonSet and static pods of some nodes ask for more than is allocatable ({resource} of {node.name}, for one)"
            )
    return [_amount(r, max(node.allocatable.get(r, 0) - node.reserved.get(r, 0), 0)) for r in resources]


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    return "GiB" if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-") else ""


def _amount(resource: str, amount: int) -> float:
    return amount / (_GIB if _unit(resource) == "GiB" else NANO)


# Constraints ---------------------------------------------------------------------------------------------------------------------


def _toleration(part: Part) -> tuple[str, str, str, str]:
    operator = part.get("operator").text("") or "Equal"
    if operator not in ("Equal", "Exists"):
        part["operator"].refuse(f'there is no operator "{operator}" here; the operators are Equal and Exists')
    return part.get("key").text(""), operator, part.get("value").text(""), part.get("effect").text("")


def _affinity(required: Part) -> tuple[_Term, ...] | None:
    if required.value is None:
        return None
    return tuple(
        (
            tuple(_expression(each) for each in term.get("matchExpressions").items()),
            tuple(_expression(each) for each in term.get("matchFields").items()),
        )
        for term in required["nodeSelectorTerms"].items()
    )


def _expression(part: Part) -> _Expression:
    operator, values = part["operator"].text(), tuple(each.text() for each in part.get("values").items())
    if operator not in _OPERATORS:
        part["operator"].refuse(f'there is no operator "{operator}"; the operators are {", ".join(_OPERATORS)}')
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _integer(values[0]) is not None):
        part.get("values").refuse(f"{operator} compares with one whole number, written as text; found {list(values)}")
    return _Expression(part["key"].text(), operator, values)


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


class _Labels:
    """The labels and taints of the nodes, ready to be asked."""

    def __init__(self, nodes: list[_Node]) -> None:
        self._nodes = nodes
        self._answers: dict[tuple[_Expression, bool], BoolArray] = {}  # many pods share a few expressions
        kinds = dict.fromkeys(node.taints for node in nodes)
        number = {taints: j for j, taints in enumerate(kinds)}
        self._taints, self._taints_of = list(kinds), np.array([number[node.taints] for node in nodes], int)

    def allowed(self, constraints: _Constraints) -> BoolArray:
        """Where pods with these constraints may run, (nodes,)."""
        tolerated = [all(any(_tolerates(t, taint) for t in constraints.tolerations) for taint in taints) for taints in self._taints]
        allowed: BoolArray = np.array(tolerated, bool)[self._taints_of]
        for expression in constraints.selector:
            allowed = allowed & self._holds(expression, False)
        if constraints.affinity is not None:
            some = np.zeros(len(self._nodes), bool)
            for on_labels, on_fields in constraints.affinity:
                if on_labels or on_fields:  # an empty term matches nothing
                    term = np.ones(len(self._nodes), bool)
                    for expressions, fields in ((on_labels, False), (on_fields, True)):
                        for expression in expressions:
                            term = term & self._holds(expression, fields)
                    some = some | term
            allowed = allowed & some
        return allowed

    def _holds(self, expression: _Expression, field: bool) -> BoolArray:
        if (expression, field) not in self._answers:
            values = [
                {"metadata.name": node.name}.get(expression.key) if field else node.labels.get(expression.key) for node in self._nodes
            ]
            self._answers[expression, field] = np.array([_matches(expression, value) for value in values], bool)
        return self._answers[expression, field]


def _matches(expression: _Expression, value: str | None) -> bool:
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number = None if value is None else _integer(value)
    bound = int(expression.values[0])
    return number is not None and (number > bound if expression.operator == "Gt" else number < bound)


def _tolerates(toleration: tuple[str, str, str, str], taint: tuple[str, str, str]) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if not key:
        return operator == "Exists"
    return key == taint[0] and (operator == "Exists" or value == taint[1])
