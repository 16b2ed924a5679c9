"""The numbers of an instance that sliders change: weights, counts and capacities of servers, demands, speeds, guarantees, limits.

A knob knows its ``--set`` path, its value in the file and its range. Amounts of a resource that has byte units in the file have the first
of these units here.

>>> from fairopt.formats.document import instance_from
>>> from fairopt.formats.syntax import Parsed
>>> lab = Parsed("lab.yaml", "servers: [{name: new, capacity: {gpu: 8}, count: 4}]\\nusers: [{name: vision, demand: {gpu: 1}, weight: 3}]")
>>> for knob in knobs_of(lab, instance_from(lab)):
...     print(knob.kind, knob.name, knob.word(5), (knob.low, knob.high, knob.step))
weights vision users.vision.weight=5 (0.0, 15.0, 0.1)
counts new servers.new.count=5 (0.0, 12.0, 1.0)
capacities new, gpu servers.new.capacity.gpu=5 (0.0, 24.0, 0.1)
demands vision, gpu users.vision.demand.gpu=5 (0.0, 3.0, 0.01)
guarantees vision users.vision.guarantee=5 (0.0, 10.0, 0.1)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from fairopt.formats.entries import ENTRIES, each_of
from fairopt.formats.messages import Source
from fairopt.formats.overrides import servers_of
from fairopt.instance import Instance
from fairopt.instance.quantities import Quantity, read

__all__ = ["KINDS", "Kind", "Knob", "knobs_of"]

Kind: TypeAlias = Literal["weights", "counts", "capacities", "demands", "speeds", "guarantees", "limits"]
KINDS: tuple[Kind, ...] = ("weights", "counts", "capacities", "demands", "speeds", "guarantees", "limits")

_STEPS = 50  # of a slider, about: its step is the power of ten below this part of its range
_ROOM = 5  # the sliders of weights end at this multiple of the largest, those of a guarantee at this multiple of its value
_AMOUNTS = 3  # the sliders of the amounts of a resource end at this multiple of the largest, those of a limit of its bound
_DIGITS = 12  # of a value in a word
_PLACES = 9  # of a value, beyond those of its step: a slider adds its steps with rounding


@dataclass(frozen=True, slots=True)
class Knob:
    """A number of an instance, and the range in which a slider moves it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        What it is called on the page.
    path : str
        How ``--set`` names it.
    value : float
        As the file has it.
    high, step : float
        The slider runs from 0 to ``high``. Larger numbers can be typed.
    unit : str
        "GiB" and the like, for amounts of a resource that has byte units in the file.
    likely : bool
        It is shown at once where there are too many to show all.
    """

    kind: Kind
    name: str
    path: str
    value: float
    high: float
    step: float
    unit: str = ""
    likely: bool = True

    @property
    def low(self) -> float:
        """The lower end of the slider."""
        return 0.0

    def word(self, value: float) -> str:
        """Return the change for ``--set``."""
        rounded = round(value, _PLACES - math.floor(math.log10(self.step)))
        return f"{self.path}={rounded + 0.0:.{_DIGITS}g}{self.unit}"

    def is_changed(self, value: float) -> bool:
        """Return whether a value is another one than in the file."""
        return self.word(value) != self.word(self.value)


def knobs_of(source: Source, instance: Instance) -> tuple[Knob, ...]:
    """Return the knobs of a document and of the instance that it is."""
    data: Any = source.data
    entries = {kind: {str(each["name"]): each for each in data.get(kind) or ()} for kind in ("servers", "users")}
    units = _units(data)
    told = _told(entries["users"], data.get("servers") or (), instance)
    return (
        *_weights(entries["users"], instance),
        *_counts(instance),
        *_capacities(units, instance),
        *_shared(units, instance),
        *_demands(told, units, instance),
        *_speeds(told, instance),
        *_guarantees(units, instance),
        *_limits(units, instance),
    )


def _knob(kind: Kind, name: str, path: str, value: float, high: float, least: float = 0.0, **options: Any) -> Knob:
    """Return a knob whose range ends at a whole number of steps; ``least`` is the smallest step."""
    step = max(10.0 ** math.floor(math.log10(high / _STEPS) + 1e-9), least)
    return Knob(kind, name, path, value, math.ceil(round(high / step, 6)) * step, step, **options)


def _weights(entries: Mapping[str, Any], instance: Instance) -> Iterator[Knob]:
    """Yield weights on one scale, so that sliders side by side can be compared."""
    found = [(f"queue {queue.name}", f"queues.{queue.name}.weight", queue.weight) for queue in instance.queues]
    for name, weight in zip(instance.users, instance.weights, strict=True):
        path = f"users.{name}.weight"
        if isinstance(entries[name].get("weight"), Mapping):
            found += [(f"{name}, {r}", f"{path}.{r}", each) for r, each in zip(instance.resources, weight.tolist(), strict=True)]
        else:
            found.append((name, path, float(np.ravel(weight)[0])))
    most = max((value for _, _, value in found), default=0.0)
    for name, path, value in found:
        yield _knob("weights", name, path, value, _ROOM * (most or 1.0))


def _counts(instance: Instance) -> Iterator[Knob]:
    for name, count in zip(instance.servers, instance.counts.tolist(), strict=True):
        yield _knob("counts", name, f"servers.{name}.count", count, max(10.0, 3 * count), least=1.0)


def _capacities(units: Mapping[str, Quantity], instance: Instance) -> Iterator[Knob]:
    """Yield the amounts of each resource that a row of servers has, all of a resource on one scale."""
    resources = instance.resources[: instance.n_server_resources]
    sizes = [float(units[resource].value) if resource in units else 1.0 for resource in resources]
    most = instance.capacities.max(axis=0, initial=0.0)
    for name, own in zip(instance.servers, instance.capacities.tolist(), strict=True):
        for r, resource in enumerate(resources):
            if own[r] > 0:
                unit, path = units[resource].unit if resource in units else "", f"servers.{name}.capacity.{resource}"
                yield _knob("capacities", f"{name}, {resource}", path, own[r] / sizes[r], _AMOUNTS * float(most[r]) / sizes[r], unit=unit)


_Told: TypeAlias = list[list[frozenset[str] | None]]
"""What the entries of ``on`` of each user name on each row of servers: resources; None where there is no entry."""


def _told(users: Mapping[str, Any], servers: Sequence[Mapping[str, Any]], instance: Instance) -> _Told:
    found: _Told = []
    for name in instance.users:
        own: dict[str, frozenset[str]] = {}
        for entry in users[name].get("on") or ():
            own |= dict.fromkeys(servers_of(entry.get("servers"), servers), frozenset(map(str, entry.get("demand") or ())))
        found.append([own.get(server) for server in instance.servers])
    return found


def _demands(told: _Told, units: Mapping[str, Quantity], instance: Instance) -> Iterator[Knob]:
    """Yield what a task demands wherever nothing else is said, and what it demands on the rows of which something else is said."""
    sizes = [float(units[resource].value) if resource in units else 1.0 for resource in instance.resources]
    most = instance.demands_by_kind.max(axis=(0, 1), initial=0.0)
    of_rows = instance.demands_by_kind[:, instance.kind_of]
    for n, user in enumerate(instance.users):
        by_row = of_rows[n]
        for r, resource in enumerate(instance.resources):
            unit = units[resource].unit if resource in units else ""
            elsewhere = [i for i, names in enumerate(told[n]) if names is None or resource not in names]
            places = [(f"{user}, {resource}", f"users.{user}.demand.{resource}", i) for i in elsewhere[:1]]
            places += [
                (f"{user} on {server}, {resource}", f"users.{user}.on.{server}.demand.{resource}", i)
                for i, (server, names) in enumerate(zip(instance.servers, told[n], strict=True))
                if names is not None and resource in names
            ]
            for name, path, i in places:
                if by_row[i, r] > 0:
                    own = float(by_row[i, r]) / sizes[r]
                    yield _knob("demands", name, path, own, _AMOUNTS * float(most[r]) / sizes[r], unit=unit)


def _speeds(told: _Told, instance: Instance) -> Iterator[Knob]:
    """Yield the speed of each user on each row, where the file says anything by server; first of those of which it does."""
    if not any(names is not None for own in told for names in own):
        return
    high = _AMOUNTS * max(1.0, float(instance.speeds.max()))
    for user, own, speeds in zip(instance.users, told, instance.speeds.tolist(), strict=True):
        for server, names, speed in zip(instance.servers, own, speeds, strict=True):
            path = f"users.{user}.on.{server}.speed"
            yield _knob("speeds", f"{user} on {server}", path, speed, high, likely=names is not None)


def _shared(units: Mapping[str, Quantity], instance: Instance) -> Iterator[Knob]:
    """Yield the amounts of the resources of the whole cluster."""
    for resource, amount in instance.shared.items():
        unit, size = (units[resource].unit, float(units[resource].value)) if resource in units else ("", 1.0)
        if amount > 0:
            own = amount / size
            yield _knob("capacities", f"{resource} of the cluster", f"shared.{resource}", own, _AMOUNTS * own, unit=unit)


def _guarantees(units: Mapping[str, Quantity], instance: Instance) -> Iterator[Knob]:
    for queue in instance.queues:
        for resource, total in zip(instance.resources, instance.total_capacity.tolist(), strict=True):
            unit = units.get(resource)
            size = 1.0 if unit is None else float(unit.value)
            value = queue.guarantee.get(resource, 0.0)
            if total > 0 or value > 0:
                yield _knob(
                    "guarantees",
                    f"queue {queue.name}, {resource}",
                    f"queues.{queue.name}.guarantee.{resource}",
                    value / size,
                    max(total, value) / size,
                    unit="" if unit is None else unit.unit,
                    likely=value > 0,
                )
    for name, value in zip(instance.users, instance.guarantees.tolist(), strict=True):
        yield _knob("guarantees", name, f"users.{name}.guarantee", value, max(10.0, _ROOM * value), likely=value > 0)


def _limits(units: Mapping[str, Quantity], instance: Instance) -> Iterator[Knob]:
    """Yield the bounds of named limits, and the limits that queues have, each on a scale of its own."""
    found = [(limit.name, f"limits.{limit.name}.bound", limit.resource or "", float(limit.bound)) for limit in instance.limits]
    for queue in instance.queues:
        for resource, bound in queue.limit.items():
            found.append((f"queue {queue.name}, {resource}", f"queues.{queue.name}.limit.{resource}", resource, float(bound)))
    for name, path, resource, bound in found:
        unit, size = (units[resource].unit, float(units[resource].value)) if resource in units else ("", 1.0)
        yield _knob("limits", name, path, bound / size, _AMOUNTS * bound / size or 10.0, unit=unit)


def _units(data: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return one of each byte unit that the amounts of a resource have, by resource."""
    found: dict[str, Quantity] = {}
    amounts = [(kind, key) for kind, model in ENTRIES.items() for key in each_of(model, "resource") if key != "weight"]
    for kind, key in amounts:
        for entry in data.get(kind) or ():
            for resource, amount in (entry.get(key) or {}).items():
                if resource not in found and isinstance(amount, str):
                    with contextlib.suppress(ValueError):
                        quantity = read(amount)
                        if quantity.in_bytes:
                            found[resource] = read(f"1{quantity.unit}")
    return found
