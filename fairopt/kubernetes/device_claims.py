"""What pods claim of devices: by a ResourceClaimTemplate, by a ResourceClaim that they share, or by an extended resource.

A template of the namespace of a pod gives the pod a claim of its own. A ResourceClaim may be shared: each of its N pods takes a part 1/N.
A request may name parts of the capacity of a device that several claims may share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.instance.quantities import NANO
from fairopt.kubernetes.amounts import quantity
from fairopt.wording import named, plural

if TYPE_CHECKING:
    from fairopt.kubernetes.records import Pod

__all__ = ["OF_CLASS", "Claims", "Kind", "PodClaim", "Request", "either", "read_pod_claims", "selectors_of"]

OF_CLASS = "deviceclass.resource.kubernetes.io/"
"""With the name of a class behind it, the extended resource that every class has."""
Kind: TypeAlias = tuple[str, tuple[str, ...]]
"""The class and the selectors of a request: which devices it chooses from."""


@dataclass(frozen=True, slots=True)
class Request:
    """So many devices of a kind; all that a node has, where ``every``; of each the amounts ``parts`` by the name of a capacity."""

    kind: Kind
    count: int
    every: bool = False
    parts: tuple[tuple[str, int], ...] = ()  # in units of 1e-9


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that a pod names: the ResourceClaim, or the template and the ResourceClaim that was made from it."""

    claim: str
    template: str
    made: str


def read_pod_claims(part: Part) -> tuple[PodClaim, ...]:
    """Read what a pod claims; Kubernetes before 1.31 wrote it under "source"."""
    made = {
        each.get("name").text(""): each.get("resourceClaimName").text("")
        for each in part.get("status").get("resourceClaimStatuses").items()
    }
    return tuple(
        PodClaim(
            _source(each, "resourceClaimName"),
            _source(each, "resourceClaimTemplateName"),
            made.get(each.get("name").text(""), ""),
        )
        for each in part["spec"].get("resourceClaims").items()
    )


def _source(entry: Part, key: str) -> str:
    return entry.get(key).text("") or entry.get("source").get(key).text("")


class Claims:
    """The claims of pods, and what is said of those that an instance cannot have."""

    def __init__(
        self,
        claims: Sequence[Part],
        templates: Sequence[Part],
        classes: Collection[str],
        extended: Mapping[str, str],
        pods: Sequence[Pod],
        account: Account,
    ) -> None:
        self._account, self._classes, self._extended = account, classes, extended
        self._claims = dict(account.read(claims, _spec_of_claim, "ResourceClaim"))
        self._templates = dict(account.read(templates, _spec_of_template, "ResourceClaimTemplate"))
        self._users: dict[tuple[str, str], Fraction] = {}
        for pod in pods:
            if not pod.finished:
                for name in {each.claim for each in pod.claims if each.claim}:
                    self._users[pod.space, name] = self._users.get((pod.space, name), Fraction(0)) + Fraction(pod.number)
        self._resolved: dict[int, tuple[list[Request], list[str]]] = {}
        self._said: dict[str, float] = {}

    def of(self, pod: Pod, can: Callable[[Request], bool]) -> list[tuple[Request, Fraction]]:
        """Return what a pod asks for, and the part of each request that is its own."""
        found = [
            (Request((self._extended[resource], ()), amount // NANO), Fraction(1))
            for resource, amount in pod.request.items()
            if resource in self._extended and amount
        ]
        for each in () if pod.finished else pod.claims:
            share, spec = Fraction(1), self._templates.get((pod.space, each.template)) or self._claims.get((pod.space, each.made))
            if each.claim:
                share, spec = min(Fraction(1), 1 / self._users[pod.space, each.claim]), self._claims.get((pod.space, each.claim))
                if share < 1:
                    self._say("share a ResourceClaim: each takes its part of the devices, and they need not lie on one node", pod)
            if spec is None:
                kind = "ResourceClaim" if each.claim else "ResourceClaimTemplate"
                self._say(f"of a {kind} that is not given, {named(each.claim or each.template)}, which do not count: export it, too", pod)
                continue
            if id(spec) not in self._resolved:
                self._resolved[id(spec)] = self._requests(spec, can)
            requests, said = self._resolved[id(spec)]
            for what in said:
                self._say(what, pod)
            found += [(request, share) for request in requests]
        return found

    def _requests(self, spec: Part, can: Callable[[Request], bool]) -> tuple[list[Request], list[str]]:
        """Return what a claim asks for, and what is said of the pods that have one."""
        devices = spec.get("devices")
        said = ["with constraints between their devices, which do not count: a relaxation"] * bool(devices.get("constraints").items())
        found = []
        for each in devices.get("requests").items():
            alternatives = [_request(one) for one in each.get("firstAvailable").items()]
            if alternatives:
                known = [one for one in alternatives if one is not None and one.kind[0] in self._classes]
                request = next((one for one in known if can(one)), [*known, *alternatives][0])
                said.append("with alternatives, of which the first counts that some node can offer")
            else:
                request = _request(either(each, "exactly"))
            if request is None:
                said.append("with administrative access, which takes no device")
            elif request.kind[0] not in self._classes:
                said.append(f"of the DeviceClass {named(request.kind[0])}, which is not given, and do not count: export it, too")
            else:
                found.append(request)
        return found, list(dict.fromkeys(said))

    def _say(self, what: str, pod: Pod) -> None:
        self._said[what] = self._said.get(what, 0.0) + pod.number

    def say(self) -> None:
        """Note what was found."""
        for what, number in self._said.items():
            verb = "" if what.startswith("share") else "claims devices " if number == 1 else "claim devices "
            self._account.note(f"{plural(number, 'pod')} {verb}{what}")


def _spec_of_claim(part: Part) -> tuple[tuple[str, str], Part]:
    return (part["metadata"].get("namespace").text("") or "default", part["metadata"]["name"].text()), _checked(part["spec"])


def _spec_of_template(part: Part) -> tuple[tuple[str, str], Part]:
    return (part["metadata"].get("namespace").text("") or "default", part["metadata"]["name"].text()), _checked(part["spec"]["spec"])


def _checked(spec: Part) -> Part:
    """Return the spec of a claim whose requests can be read."""
    for each in spec.get("devices").get("requests").items():
        for one in each.get("firstAvailable").items() or [either(each, "exactly")]:
            _request(one)
    spec.get("devices").get("constraints").items()
    return spec


def either(part: Part, key: str) -> Part:
    """Return what is under a key, which some versions of the API leave out: there the fields are those of the part itself."""
    inner = part.get(key)
    return part if inner.value is None else inner


def _request(part: Part) -> Request | None:
    """Read a request for exactly some devices; None where it asks for administrative access, which takes none."""
    mode = part.get("allocationMode").text("") or "ExactCount"
    if mode not in ("ExactCount", "All"):
        part["allocationMode"].refuse(f'there is no mode "{mode}"; the modes are ExactCount and All')
    count = part.get("count").number(1.0)
    if count % 1:
        part["count"].refuse("expected a whole number of devices")
    if part.get("adminAccess").value is True:
        return None
    parts = tuple(sorted((name, quantity(each)) for name, each in part.get("capacity").get("requests").entries().items()))
    return Request((part["deviceClassName"].text(), selectors_of(part)), int(count), mode == "All", parts)


def selectors_of(part: Part) -> tuple[str, ...]:
    """Return the expressions that choose among devices."""
    return tuple(each["cel"]["expression"].text() for each in part.get("selectors").items())
