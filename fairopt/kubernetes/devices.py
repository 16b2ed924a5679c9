"""Devices of dynamic resource allocation (DRA, ``resource.k8s.io``): what nodes have, and what pods claim.

A pod claims devices of a **DeviceClass** (:mod:`fairopt.kubernetes.device_claims`), or a container requests them as an extended resource.
**ResourceSlices** say which devices a node has; those of the newest generation of a pool count.

A resource of the instance is the one that Kueue's ``Configuration`` maps a class to (``deviceClassMappings``), or GPUs for the classes that
KAI counts as such; else the extended resource of the class, else the class itself. Selectors (:mod:`fairopt.kubernetes.device_selectors`)
choose among its devices: with a selector, or with one of several classes of a resource, a pod may run where enough of the chosen devices
are. Where a node has chosen devices and others of the same resource, the chosen ones are a resource of their own, which such a pod takes
beside it. That is exact where sets of chosen devices contain each other or have nothing in common (Hall's theorem), else a relaxation.
Of a device that several claims may share (consumable capacity), a claim takes 1 / n where n such claims fit.

What is not read is named with its number: claims and classes that are not given, devices of no single node, alternatives after the first
that some node can offer, constraints between devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.instance.quantities import NANO
from fairopt.kubernetes.amounts import quantity
from fairopt.kubernetes.cards import gpu_of
from fairopt.kubernetes.device_claims import OF_CLASS, Claims, Kind, Request, either, selectors_of
from fairopt.kubernetes.device_selectors import Device, Selector
from fairopt.kubernetes.reading import kind_of
from fairopt.kubernetes.records import Node, Pod
from fairopt.wording import joined, named, plural

__all__ = ["CONFIGURATION", "is_device", "with_devices"]

GROUP = "resource.k8s.io"
CONFIGURATION = ("Configuration", "config.kueue.x-k8s.io")
_KINDS = ("DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate")
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class _Class:
    """A DeviceClass: its selectors, and the extended resource that containers may request instead."""

    selectors: tuple[str, ...]
    extended: str


def is_device(part: Part) -> bool:
    """Return whether an object says something of devices: those of DRA, and Kueue's configuration."""
    kind, group = kind_of(part)
    return (group == GROUP and kind in _KINDS) or (kind, group) == CONFIGURATION


def with_devices(parts: Sequence[Part], pods: Sequence[Pod], nodes: Sequence[Node], account: Account, *, gpus: bool = False) -> list[Pod]:
    """Return the pods with the devices that they claim in their requests, and add those that nodes have to what these offer.

    Where ``gpus``, as in the queues of KAI, devices of a class with "gpu" in its name are GPUs.
    """
    if not parts and not any(pod.claims for pod in pods):
        return list(pods)
    of = {kind: [part for part in parts if kind_of(part) == (kind, GROUP)] for kind in _KINDS}
    listed = account.read([part for part in parts if kind_of(part) == CONFIGURATION], _mapping, "Configuration")
    mapping = {name: resource for each in listed for name, resource in each.items()}
    classes = dict(account.read(of["DeviceClass"], _class, "DeviceClass"))
    if gpus:
        gpu = gpu_of(resource for node in nodes for resource in node.allocatable)
        mapping = {name: gpu for name in classes if "gpu" in name.lower()}
    extended = {f"{OF_CLASS}{name}": name for name in classes} | {each.extended: name for name, each in classes.items() if each.extended}
    claims = Claims(of["ResourceClaim"], of["ResourceClaimTemplate"], classes, extended, pods, account)
    supply = _Supply(classes, mapping, _devices(of["ResourceSlice"], nodes, account), nodes, account)
    asked = [claims.of(pod, supply.can) for pod in pods]
    claims.say()
    kinds = {request.kind for requests in asked for request, _ in requests}
    supply.offer(kinds)
    unmapped = sorted({name for name, _ in kinds} - set(mapping)) if listed else []
    if unmapped:
        account.note(f"Kueue's configuration maps no resource to the DeviceClass {joined(unmapped, 5)}: no quota counts its devices")
    return [supply.taken(pod, requests) for pod, requests in zip(pods, asked, strict=True)]


# Classes, and what Kueue calls them ----------------------------------------------------------------------------------------------


def _mapping(part: Part) -> dict[str, str]:
    """Return the resource of each class that Kueue's configuration maps."""
    listed = part.get("resources").get("deviceClassMappings").items()
    return {name.text(): each["name"].text() for each in listed for name in each.get("deviceClassNames").items()}


def _class(part: Part) -> tuple[str, _Class]:
    spec = part.get("spec")
    return part["metadata"]["name"].text(), _Class(selectors_of(spec), spec.get("extendedResourceName").text(""))


# Devices -------------------------------------------------------------------------------------------------------------------------


def _devices(slices: Sequence[Part], nodes: Sequence[Node], account: Account) -> list[Device]:
    """Return the devices of nodes, by the slices of the newest generation of each pool."""
    read = account.read(slices, _slice, "ResourceSlice")
    newest: dict[tuple[str, str], float] = {}
    for pool, generation, _, _ in read:
        newest[pool] = max(newest.get(pool, 0.0), generation)
    old = sum(generation < newest[pool] for pool, generation, _, _ in read)
    if old:
        account.note(f"{plural(old, 'ResourceSlice')} left out: of an older generation of its pool")
    known = {node.name for node in nodes}
    found: list[Device] = []
    counts: Counter[str] = Counter()
    for pool, generation, devices, tainted in read:
        if generation == newest[pool]:
            found += [device for device in devices if device.node in known]
            counts["with a taint"] += tainted
            counts["of no single node"] += sum(not device.node for device in devices)
            counts["of a node that is not listed"] += sum(bool(device.node) and device.node not in known for device in devices)
    for what, number in counts.items():
        if number:
            account.note(f"{plural(number, 'device')} left out: {what}")
    return found


def _slice(part: Part) -> tuple[tuple[str, str], float, list[Device], int]:
    """Return driver and pool of a slice, its generation, its devices, and how many more have a taint."""
    spec = part["spec"]
    driver, node = spec["driver"].text(), spec.get("nodeName").text("")
    devices, tainted = [], 0
    for each in spec.get("devices").items():
        inner = either(each, "basic")
        effects = [taint.get("effect").value for taint in inner.get("taints").items()]
        if any(effect in _BLOCKING for effect in effects):
            tainted += 1
            continue
        attributes = {_domain(key, driver): _attribute(value) for key, value in inner.get("attributes").entries().items()}
        capacity = {
            _domain(key, driver): Fraction(quantity(value["value"] if isinstance(value.value, dict) else value), NANO)
            for key, value in inner.get("capacity").entries().items()
        }
        shared = inner.get("allowMultipleAllocations").value is True
        devices.append(Device(each["name"].text(), driver, inner.get("nodeName").text("") or node, attributes, capacity, shared))
    pool = spec.get("pool")
    return (driver, pool.get("name").text("") or node), pool.get("generation").number(0.0), devices, tainted


def _domain(key: str, driver: str) -> tuple[str, str]:
    """Return the domain of an attribute, which is that of the driver unless it is said, and its name."""
    domain, slash, name = key.rpartition("/")
    return (domain, name) if slash else (driver, key)


def _attribute(part: Part) -> str | int | bool:
    value = next((each.value for each in part.entries().values()), None)
    if not isinstance(value, str | int | bool):
        part.refuse("expected a string, an int, a bool or a version")
    return value


class _Supply:
    """The devices of nodes, as resources."""

    def __init__(
        self,
        classes: Mapping[str, _Class],
        mapping: Mapping[str, str],
        devices: Sequence[Device],
        nodes: Sequence[Node],
        account: Account,
    ) -> None:
        self._classes, self._mapping, self._devices, self._nodes, self._account = classes, mapping, devices, nodes, account
        self._chosen: dict[Kind, frozenset[int]] = {}
        self._own: dict[Kind, str] = {}
        self._on: dict[Kind, Counter[str]] = {}
        self._all: dict[str, frozenset[int]] = {}
        self._takes: dict[Kind, list[str]] = {}
        self._where: dict[tuple[Kind, int], frozenset[str] | None] = {}
        self._extended = {f"{OF_CLASS}{name}" for name in classes} | {each.extended for each in classes.values()}

    def can(self, request: Request) -> bool:
        """Return whether some node has the devices of a request."""
        return max(self._count(request.kind).values(), default=0) >= max(request.count, 1)

    def _resource(self, kind: Kind) -> str:
        """Return the resource that the devices of a class are."""
        return self._mapping.get(kind[0]) or self._classes[kind[0]].extended or kind[0]

    def _choose(self, kind: Kind) -> frozenset[int]:
        """Return which devices a request of a kind may take."""
        if kind not in self._chosen:
            name, more = kind
            chosen = range(len(self._devices))
            for text in (*self._classes[name].selectors, *more):
                selector = Selector.of(text)
                for term in selector.unknown:
                    self._account.note(f"{named(term)} in a selector of the DeviceClass {named(name)} is not read: a relaxation")
                chosen = [j for j in chosen if selector.matches(self._devices[j])]  # type: ignore[assignment]
            self._chosen[kind] = frozenset(chosen)
        return self._chosen[kind]

    def _count(self, kind: Kind) -> Counter[str]:
        """Return how many devices of a kind each node has."""
        if kind not in self._on:
            self._on[kind] = Counter(self._devices[j].node for j in self._choose(kind))
        return self._on[kind]

    def offer(self, kinds: Iterable[Kind]) -> None:
        """Add the devices of the resources that are asked for to what nodes offer."""
        kinds = sorted(kinds)
        resources = {self._resource(kind) for kind in kinds}
        without = sorted({name for name, more in kinds if not self._count((name, more))})
        if without:
            shown = joined([named(name) for name in without], 5)
            self._account.note(f"no ResourceSlice of a node lists a device that claims of the DeviceClass {shown} ask for")
        for resource in sorted(resources):
            of_classes = [(name, ()) for name in self._classes if self._resource((name, ())) == resource]
            self._all[resource] = frozenset[int]().union(*(self._choose(kind) for kind in of_classes))
            self._add(resource, Counter(self._devices[j].node for j in self._all[resource]))
        twice = len(set().union(*self._all.values())) < sum(map(len, self._all.values()))
        if twice:
            self._account.note(f"some devices count as several of {joined(sorted(resources), 5)}: a relaxation")
        for kind in kinds:
            resource, own = self._resource(kind), self._count(kind)
            whole = Counter(self._devices[j].node for j in self._all[resource])
            if any(number < whole[node] for node, number in own.items()) and self._choose(kind) not in map(self._choose, self._own):
                label = kind[0] if not kind[1] and kind[0] != resource else f"{kind[0]} [{len(self._own) + 1}]"
                self._own[kind] = label
                self._add(label, own)
                chosen = f" with {joined([named(text) for text in kind[1]], 3)}" if kind[1] else ""
                self._account.note(
                    f"devices of {named(kind[0])}{chosen} are a resource of their own, {named(label)}, beside {named(resource)}"
                )
        sets = [self._choose(kind) for kind in self._own]
        if any(one & other and not (one <= other or other <= one) for n, one in enumerate(sets) for other in sets[:n]):
            self._account.note("selectors choose devices that overlap in part: what they may take together is a relaxation")

    def _add(self, resource: str, devices: Mapping[str, int]) -> None:
        for node in self._nodes:
            if devices.get(node.name):
                node.allocatable[resource] = node.allocatable.get(resource, 0) + devices[node.name] * NANO

    def taken(self, pod: Pod, requests: Sequence[tuple[Request, Fraction]]) -> Pod:
        """Return a pod with what it takes of devices, and where it may run for their sake."""
        if not requests:
            return pod
        amounts = {resource: amount for resource, amount in pod.request.items() if resource not in self._extended}
        needed: Counter[Kind] = Counter()
        for request, share in requests:
            count = self._every(request) if request.every else request.count
            needed[request.kind] += count
            mine = int(count * share * self._part(request) * NANO)
            for resource in self._resources(request.kind):
                amounts[resource] = amounts.get(resource, 0) + mine
        only = pod.only
        for kind, count in needed.items():
            enough = self._enough(kind, count)
            only = only if enough is None else enough if only is None else only & enough
        return replace(pod, request=amounts, only=only)

    def _part(self, request: Request) -> Fraction:
        """Return what a request takes of a device: of one that claims share, 1 / n where n such parts fit, as a part lies on one device."""
        chosen = [self._devices[j] for j in self._choose(request.kind)]
        sized = bool(request.parts) and all(amount for _, amount in request.parts)
        room = [
            min(int(device.capacity.get(_domain(name, device.driver), Fraction(0)) * NANO // amount) for name, amount in request.parts)
            for device in chosen
            if sized
        ]
        if 0 in room:
            self._account.note(
                f"{plural(room.count(0), 'device', 'devices')} of {named(request.kind[0])} with less capacity than one claim asks for: "
                "counted as if there were enough, a relaxation"
            )
        if not request.parts or not any(device.shared for device in chosen):
            if request.parts or any(device.shared for device in chosen):
                what = "that no other claim may share" if request.parts else "that claims share, without saying how much they need"
                self._account.note(f"claims of the DeviceClass {named(request.kind[0])} ask for devices {what}: each takes a whole one")
            return Fraction(1)
        numbers = {number for number, device in zip(room, chosen, strict=sized) if device.shared} - {0}
        if len(numbers) > 1:
            self._account.note(
                f"devices of {named(request.kind[0])} have room for {min(numbers)} to {max(numbers)} claims of one size: counted as for "
                f"{min(numbers)}"
            )
        return Fraction(1, min(numbers, default=1))

    def _resources(self, kind: Kind) -> list[str]:
        """Return the resources that a device of a kind takes: that of its class, and those of chosen devices which it is among."""
        if kind not in self._takes:
            chosen = self._choose(kind)
            self._takes[kind] = [self._resource(kind), *(label for other, label in self._own.items() if chosen <= self._choose(other))]
        return self._takes[kind]

    def _enough(self, kind: Kind, count: int) -> frozenset[str] | None:
        """Return the nodes that have so many devices of a kind; None where all that have some of the resource do."""
        if (kind, count) not in self._where:
            own, enough = self._choose(kind), None
            if own != self._all[self._resource(kind)]:
                enough = frozenset(node for node, number in self._count(kind).items() if number >= count)
            self._where[kind, count] = enough
        return self._where[kind, count]

    def _every(self, request: Request) -> int:
        """Return how many devices a pod takes that asks for all of a node."""
        numbers = set(self._count(request.kind).values())
        if len(numbers) > 1:
            self._account.note(
                f"nodes have {min(numbers)} to {max(numbers)} devices of {named(request.kind[0])}: pods that ask for all of a node take "
                f"{min(numbers)}, a relaxation"
            )
        return min(numbers, default=1)
