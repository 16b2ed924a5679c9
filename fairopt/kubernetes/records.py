"""Nodes and pods in the format of ``kubectl``: what a node offers, and what a pod asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.instance.quantities import NANO
from fairopt.kubernetes.amounts import Amounts, add, amounts_of, largest_of
from fairopt.kubernetes.cards import GPU, CardRequest, Deck, of_annotations, of_container, read_deck
from fairopt.kubernetes.device_claims import PodClaim, read_pod_claims
from fairopt.kubernetes.placement import Constraints, Expression, read_affinity, read_toleration

__all__ = [
    "ALWAYS",
    "Node",
    "Pod",
    "owner_of",
    "read_node",
    "read_pod",
    "whole_number",
]

ALWAYS = ("cpu", "memory", "pods")
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_PINNED = {"DaemonSet": "DaemonSet pod", "Node": "static pod"}


@dataclass(frozen=True, slots=True)
class Node:
    """The fields of a node that an instance needs."""

    part: Part
    name: str
    allocatable: Amounts
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]  # key, value, effect
    closed: str  # why it accepts no work; else empty
    reserved: Amounts
    deck: Deck


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: its owner, its requests, its node, and where it may run."""

    part: Part
    name: str
    owner: str
    phase: str
    node: str
    pinned: str
    priority: str  # the name of its class
    request: Amounts
    constraints: Constraints
    related: bool
    number: float = 1.0
    started: bool = False  # it runs, on a node that is not known
    cards: tuple[CardRequest, ...] = ()  # parts of GPUs, which are not in its requests
    twice: bool = False  # its containers and its annotations ask for parts of GPUs
    claims: tuple[PodClaim, ...] = ()  # of devices
    rank: float | None = None  # its priority, where the pod says it
    gang: str = ""  # what starts all its pods together, or none
    least: float = 0.0  # how many of these pods must start with their gang
    only: frozenset[str] | None = None  # the nodes that have what it claims of devices, where not all that have some do

    @property
    def space(self) -> str:
        """Its namespace."""
        return self.name.partition("/")[0]

    @property
    def finished(self) -> bool:
        """Return whether the pod has ended and holds nothing."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.part.place} ({self.name})"


def read_node(part: Part) -> Node:
    """Read a node: what it offers, and why it offers nothing."""
    status, spec = part["status"], part.get("spec")
    ready = [each["status"].text() for each in status.get("conditions").items() if each.get("type").value == "Ready"]
    closed = "cordoned" if spec.get("unschedulable").value else "not ready" if ready and ready[-1] != "True" else ""
    allocatable = amounts_of(status["allocatable"])
    deck = read_deck(part["metadata"], allocatable)
    if GPU in allocatable:  # HAMi counts a card once for each pod that may share it
        allocatable[GPU] = deck.cards * NANO
    return Node(
        part,
        part["metadata"]["name"].text(),
        allocatable,
        {key: value.text() for key, value in part["metadata"].get("labels").entries().items()},
        tuple(
            (each["key"].text(), each.get("value").text(""), each["effect"].text())
            for each in spec.get("taints").items()
            if each["effect"].text() != "PreferNoSchedule"
        ),
        f"{closed}: offers nothing" if closed else "",
        {},
        deck,
    )


def read_pod(part: Part, owner: Callable[[Part], str]) -> Pod:
    """Read a pod."""
    metadata, spec = part["metadata"], part["spec"]
    phase = part.get("status").get("phase").text("Pending")
    if phase not in _PHASES:
        part.get("status").get("phase").refuse(f'there is no phase "{phase}"; the phases are {", ".join(_PHASES)}')
    owners = [each["kind"].text() for each in metadata.get("ownerReferences").items()]
    affinity = spec.get("affinity")
    request, cards = _request(spec)
    annotated = of_annotations(metadata)
    spread = [each.get("whenUnsatisfiable").text("DoNotSchedule") for each in spec.get("topologySpreadConstraints").items()]
    return Pod(
        part,
        f"{metadata.get('namespace').text('') or 'default'}/{metadata['name'].text()}",
        owner(part),
        phase,
        spec.get("nodeName").text(""),
        next((_PINNED[kind] for kind in owners if kind in _PINNED), ""),
        spec.get("priorityClassName").text(""),
        request,
        Constraints(
            tuple(Expression(key, "In", (value.text(),)) for key, value in sorted(spec.get("nodeSelector").entries().items())),
            read_affinity(affinity.get("nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")),
            tuple(sorted({read_toleration(each) for each in spec.get("tolerations").items()})),
        ),
        "DoNotSchedule" in spread
        or any(
            affinity.get(kind).get("requiredDuringSchedulingIgnoredDuringExecution").value for kind in ("podAffinity", "podAntiAffinity")
        ),
        cards=cards or annotated,
        twice=bool(cards and annotated),
        claims=read_pod_claims(part),
        rank=None if spec.get("priority").value is None else whole_number(spec["priority"]),
    )


def whole_number(part: Part) -> float:
    """Return a whole number, which may be below 0."""
    if isinstance(part.value, bool) or not isinstance(part.value, int):
        part.refuse(f'expected a whole number, found "{str(part.value)[:40]}"')
    return float(part.value)


def owner_of(users: str) -> Callable[[Part], str]:
    """Return a function that gives the owner of a pod: its namespace, a label or its priority class."""
    kind, _, key = users.partition(":")
    if users == "namespace":
        return lambda pod: pod["metadata"].get("namespace").text("") or "default"
    if users == "priority":
        return lambda pod: pod["spec"].get("priorityClassName").text("") or "(no class)"
    if kind == "label" and key:
        return lambda pod: pod["metadata"].get("labels").get(key).text("") or f"(no {key})"
    raise InvalidInstance(f'users is "{users}"; give "namespace", "priority" or "label:KEY", such as label:team')


def _container(part: Part) -> Amounts:
    """Return what a container asks for: requests, else limits."""
    resources = part.get("resources")
    return amounts_of(resources.get("limits")) | amounts_of(resources.get("requests"))


def _request(spec: Part) -> tuple[Amounts, tuple[CardRequest, ...]]:
    """Return what a pod asks for, and the parts of GPUs beside it: those of its containers, or of init containers where they have none."""
    running: list[Amounts] = []
    cards: list[CardRequest] = []
    before: list[CardRequest] = []
    starting: Amounts = {}
    for each in spec["containers"].items():
        own, parts = of_container(_container(each))
        running.append(own)
        cards += parts
    sidecars: Amounts = {}
    for each in spec.get("initContainers").items():
        own, parts = of_container(_container(each))
        if each.get("restartPolicy").value == "Always":
            sidecars = add([sidecars, own])
            own = {}
            cards += parts
        else:
            before += parts
        starting = largest_of(starting, add([sidecars, own]))
    total = largest_of(add([*running, sidecars]), starting)
    total |= _container(spec)  # of the pod as a whole, where it gives that
    largest = sorted(before, key=lambda part: (part.cards, part.part, part.memory, part.cores))[-1:]
    return add([total, amounts_of(spec.get("overhead")), {"pods": NANO}]), tuple(cards or largest)
