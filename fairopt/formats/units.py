"""Quantities in a document become numbers: ``demand: {cpu: 500m, memory: 64GiB}`` means cpu 0.5 and memory 68719476736.

Amounts of resources may have any unit of :mod:`fairopt.instance.quantities`; numbers of anything else (weights, tasks, rates) may be
fractions and have units from n to k. A byte unit means bytes. If one amount of a resource has a byte unit, then all of its amounts
must have one, but for 0: 64 beside 256GiB could mean either 64 bytes or 64 GiB, and nothing is guessed. Where the document says in which
byte unit the amounts of a resource are (``units: {memory: GiB}``), amounts with a byte unit are converted to it. So they are where the
name of the resource says it, ``RAM (GB)``, if both count in thousands or both in 1024: 0.5 TB is 500, and 512 GiB is refused, because
GB may mean either there.

A weight may be a percentage: ``50 %`` is 0.5. So may what a queue in the root is guaranteed, or limited to: ``50 %`` of what the cluster
has of the resource. Below another queue, or on a group of servers, it could be a part of something else, and is refused.

>>> class Lab:
...     data = {"servers": [{"name": "A", "capacity": {"cpu": 64, "memory": "256GiB"}}], "users": [{"name": "a", "demand": {"cpu": "1/2"}}]}
>>> with_plain_numbers(Lab())["servers"], with_plain_numbers(Lab())["users"]
([{'name': 'A', 'capacity': {'cpu': 64, 'memory': 274877906944.0}}], [{'name': 'a', 'demand': {'cpu': 0.5}}])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from fairopt.formats.entries import ENTRIES, each_of, single_values
from fairopt.formats.messages import Path, Source, in_words, refuse
from fairopt.instance.fractions import Written, fraction_of, written
from fairopt.instance.quantities import Quantity, percentage, plain, read
from fairopt.instance.units import BYTES, unit_in_name
from fairopt.tables import Mistakes, StandIn
from fairopt.wording import exactly, found, named

__all__ = ["OPERATORS", "calculated", "with_plain_numbers"]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ENTRIES = {kind: ENTRIES[kind] for kind in ("servers", "queues", "users")}  # as they are told
_OF_RESOURCES = {kind: tuple(key for key in each_of(model, "resource") if key != "weight") for kind, model in _ENTRIES.items()}
"""The keys of entries that hold amounts of resources."""
_NUMBERS = {
    kind: tuple(key for key, value in single_values(model).items() if isinstance(value, float)) + tuple(each_of(model, "server"))
    for kind, model in _ENTRIES.items()
}
"""Those that hold other numbers, or mappings to them."""


def with_plain_numbers(source: Source, mistakes: Mistakes | None = None) -> object:
    """Return the data of a document with numbers in the place of quantities; what is no quantity stays as it is.

    Raises
    ------
    InvalidInstance
        Some amounts of a resource have a byte unit, and one has not. With ``mistakes``, these are kept instead.
    """
    data = source.data
    if not isinstance(data, dict):
        return data
    changed: dict[str, Any] = {}
    units = data.get("units")
    declared = units if isinstance(units, dict) else {}
    kept = Mistakes() if mistakes is None else mistakes
    in_bytes = _InBytes(source, declared, kept)
    for kind in _OF_RESOURCES:
        entries = data.get(kind)
        if isinstance(entries, list):
            new = [_entry(kind, each, (kind, j), in_bytes) for j, each in enumerate(entries)]
            if any(a is not b for a, b in zip(new, entries, strict=True)):
                changed[kind] = new
    if isinstance(limits := data.get("limits"), list):
        plain_limits = [_limit(each, ("limits", k), in_bytes) for k, each in enumerate(limits)]
        if any(a is not b for a, b in zip(plain_limits, limits, strict=True)):
            changed["limits"] = plain_limits
    if isinstance(shared := data.get("shared"), dict):
        changed["shared"] = {name: _amount(each, name, ("shared", name), in_bytes) for name, each in shared.items()}
    totals = _Totals(changed.get("servers", data.get("servers")), changed.get("shared"))
    if isinstance(queues := changed.get("queues", data.get("queues")), list):
        whole = [_of_cluster(source, each, ("queues", q), totals, kept) for q, each in enumerate(queues)]
        if any(a is not b for a, b in zip(whole, queues, strict=True)):
            changed["queues"] = whole
    if in_bytes.first:
        _check(source, in_bytes.first, kept)
        if units is None or isinstance(units, dict):
            changed["units"] = declared | {resource: "B" for resource in in_bytes.first if isinstance(resource, str) and resource.strip()}
    if mistakes is None:
        kept.refuse()
    return {**data, **changed} if changed else data


def calculated(sign: str, present: object, value: object) -> object:
    """Return ``present + value`` and the like of numbers and quantities, in bytes where these are; None where one is neither.

    Raises
    ------
    ValueError
        One has a byte unit, and the other has not.

    >>> calculated("+", "1GiB", "512MiB"), calculated("*", "500m", 3), calculated("-", 2, "1/2"), calculated("+", 2, "two")
    ('1610612736B', 1.5, 1.5, None)
    """
    numbers: list[Any] = []
    in_bytes = []
    for each in (present, value):
        if isinstance(each, str):
            try:
                quantity = read(each)
            except ValueError:
                return None
            numbers.append(quantity.value)
            in_bytes.append(quantity.in_bytes)
        elif isinstance(each, int | float) and not isinstance(each, bool):
            numbers.append(fraction_of(each) if isinstance(each, float) and math.isfinite(each) else each)
            in_bytes.append(False)
        else:
            return None
    if sign == "*" and in_bytes[1]:
        raise ValueError(f"{value} has a byte unit; give a plain number of times")
    if sign != "*" and in_bytes[0] != in_bytes[1] and all(numbers):
        with_unit, without = (present, value) if in_bytes[0] else (value, present)
        raise ValueError(f"{with_unit} has a byte unit, and {without} has none; give both one")
    result = OPERATORS[sign](*numbers)
    number = written(result) if isinstance(result, Fraction) else result
    if not any(in_bytes) or result < 0:
        return number
    return f"{result}B" if isinstance(number, Written) else f"{exactly(number)}B"


class _InBytes:
    """Which resources have amounts with a byte unit, and in which unit their numbers are then.

    Attributes
    ----------
    first : dict
        Path and text of the first amount with a byte unit, of each resource whose numbers are bytes.
    """

    def __init__(self, source: Source, declared: dict[Any, Any], mistakes: Mistakes) -> None:
        self.source, self.declared, self.mistakes = source, declared, mistakes
        self.first: dict[object, tuple[Path, str]] = {}

    def number(self, quantity: Quantity, resource: object, path: Path, text: str) -> float:
        """Return the number that an amount with a byte unit is."""
        unit = self.declared.get(resource)
        if unit is None and isinstance(resource, str) and (inside := unit_in_name(resource)):
            if ("i" in inside) == ("i" in quantity.unit) or "B" in (inside, quantity.unit):
                return written(quantity.value / BYTES[inside])
            refuse(
                self.source,
                path,
                f"{text.strip()} has a byte unit, and the name of {named(resource)} says {inside}; write a plain number of {inside}",
            )
        if unit is None:
            self.first.setdefault(resource, (path, text))
        elif not isinstance(unit, str) or unit not in BYTES:
            refuse(
                self.source,
                path,
                f"{text.strip()} has a byte unit, but the unit of {named(str(resource))} is {found(unit)}; write a plain number",
            )
        return written(quantity.value if unit is None else quantity.value / BYTES[unit])


def _entry(kind: str, entry: object, path: Path, in_bytes: _InBytes) -> object:
    """Return a server, a queue, a quota or a user with plain numbers: the same object if nothing changes."""
    if not isinstance(entry, dict):
        return entry
    new: dict[object, object] = {}
    for key in _OF_RESOURCES[kind]:
        amounts = entry.get(key)
        if isinstance(amounts, dict) and str in map(type, amounts.values()):
            new[key] = {name: _amount(each, name, (*path, key, name), in_bytes) for name, each in amounts.items()}
    for key in _NUMBERS[kind]:
        value = entry.get(key)
        if isinstance(value, str):
            new[key] = _number(value, share=key == "weight")
        elif isinstance(value, dict) and str in map(type, value.values()):
            new[key] = {name: _number(each, share=key == "weight") for name, each in value.items()}
    if kind == "users" and isinstance(overrides := entry.get("on"), list):
        plain_overrides = [_override(each, (*path, "on", j), in_bytes) for j, each in enumerate(overrides)]
        if any(a is not b for a, b in zip(plain_overrides, overrides, strict=True)):
            new["on"] = plain_overrides
    quotas = entry.get("quotas") if kind == "queues" else None
    if isinstance(quotas, list):
        plain_quotas = [_entry(kind, each, (*path, "quotas", j), in_bytes) for j, each in enumerate(quotas)]
        if any(a is not b for a, b in zip(plain_quotas, quotas, strict=True)):
            new["quotas"] = plain_quotas
    return {**entry, **new} if new else entry


def _override(entry: object, path: Path, in_bytes: _InBytes) -> object:
    """Return what a task takes on some servers with plain numbers: the same object if nothing changes."""
    if not isinstance(entry, dict):
        return entry
    new: dict[object, object] = {}
    if isinstance(amounts := entry.get("demand"), dict) and str in map(type, amounts.values()):
        new["demand"] = {name: _amount(each, name, (*path, "demand", name), in_bytes) for name, each in amounts.items()}
    if isinstance(entry.get("speed"), str):
        new["speed"] = _number(entry["speed"], share=False)
    return {**entry, **new} if new else entry


def _limit(entry: object, path: Path, in_bytes: _InBytes) -> object:
    """Return a named limit with plain numbers: the same object if nothing changes. Its bound is an amount of its resource."""
    if not isinstance(entry, dict):
        return entry
    new: dict[object, object] = {}
    bound, resource, amounts = entry.get("bound"), entry.get("resource"), entry.get("amounts")
    if isinstance(bound, str):
        new["bound"] = _number(bound, share=False) if resource is None else _amount(bound, resource, (*path, "bound"), in_bytes)
    if isinstance(amounts, dict):
        new["amounts"] = {
            user: {server: _number(each, share=False) for server, each in own.items()}
            if isinstance(own, dict)
            else _number(own, share=False)
            for user, own in amounts.items()
        }
    return {**entry, **new} if new else entry


def _number(value: object, *, share: bool) -> object:
    if share and isinstance(value, str) and (part := percentage(value)) is not None:
        return written(part)
    number = plain(value, of_resource=False) if isinstance(value, str) else None
    return value if number is None else number


def _amount(value: object, resource: object, path: Path, in_bytes: _InBytes) -> object:
    try:
        quantity = read(value) if isinstance(value, str) else None
    except ValueError:
        quantity = None  # reading the document says what is wrong with it
    if quantity is None:
        return value
    if not quantity.in_bytes:
        return written(quantity.value)
    with in_bytes.mistakes:
        return in_bytes.number(quantity, resource, path, str(value))
    return 1.0  # in the place of what is refused


class _Totals:
    """What the servers have of each resource together, and what there is of shared ones."""

    def __init__(self, servers: object, shared: object) -> None:
        self._servers, self._known = servers, dict[object, Fraction | None]()
        for resource, amount in shared.items() if isinstance(shared, dict) else ():
            if isinstance(amount, int | float) and not isinstance(amount, bool) and math.isfinite(amount):
                self._known[resource] = fraction_of(amount)

    def of(self, resource: object) -> Fraction | None:
        """Return the total of a resource; None where the servers do not say it."""
        if resource not in self._known:
            total: Fraction | None = Fraction(0)
            for server in _list(self._servers):
                try:
                    total += fraction_of(server["capacity"].get(resource, 0)) * fraction_of(server.get("count", 1))
                except (AttributeError, LookupError, TypeError, ValueError):  # reading the document says what is wrong with it
                    total = None
                    break
            self._known[resource] = total
        return self._known[resource]


def _of_cluster(source: Source, queue: object, path: Path, totals: _Totals, mistakes: Mistakes) -> object:
    """Return a queue in the root with amounts in the place of percentages of the cluster: the same object if nothing changes."""
    if not isinstance(queue, dict):
        return queue
    new: dict[object, object] = {}
    for key in _OF_RESOURCES["queues"]:
        amounts = queue.get(key)
        if not isinstance(amounts, dict) or str not in map(type, amounts.values()):
            continue
        new[key] = whole = dict(amounts)
        for resource, text in amounts.items():
            part, total = percentage(text) if isinstance(text, str) else None, totals.of(resource)
            if part is None or total is None:
                continue
            if key != "lending_limit" and queue.get("parent") is None:
                whole[resource] = written(part * total)
                continue
            other = "its guarantee" if key == "lending_limit" else f"what {named(str(queue['parent']))} has"
            remedy = f"write {exactly(float(part * total))} if it is of the cluster"
            with mistakes:
                refuse(source, (*path, key, resource), f"{text} may be of the cluster or of {other}; {remedy}")
            del whole[resource]
    return {**queue, **new} if new else queue


def _check(source: Source, in_bytes: dict[object, tuple[Path, str]], mistakes: Mistakes) -> None:
    """Keep a mistake for each amount without a byte unit of a resource that has one elsewhere."""
    for path, resource, value in _amounts(source.data):
        first = in_bytes.get(resource)
        if first is None or isinstance(value, StandIn):
            continue
        if isinstance(value, str):
            try:
                quantity = read(value)
            except ValueError:
                continue
            if quantity.in_bytes or not quantity.value:
                continue
            shown = value.strip()
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0 and math.isfinite(value):
            shown = exactly(float(value))
        else:
            continue
        where, text = first
        unit = read(text).unit
        instead = f"give it one, such as {unit}" if shown[-1] in "numk" else f"write {shown}{unit}, or {shown}B if it is bytes"
        with mistakes:
            refuse(source, path, f"{shown} has no byte unit, but {in_words(source.data, where)} has: {text.strip()}; {instead}")


def _amounts(data: Any) -> Iterator[tuple[Path, object, object]]:
    """Yield every amount of a resource, with its path and the resource."""
    if isinstance(shared := data.get("shared"), dict):
        yield from ((("shared", name), name, value) for name, value in shared.items())
    for k, limit in enumerate(_list(data.get("limits"))):
        if isinstance(limit, dict) and isinstance(limit.get("resource"), str):
            yield ("limits", k, "bound"), limit["resource"], limit.get("bound")
    for kind, keys in _OF_RESOURCES.items():
        for j, entry in enumerate(_list(data.get(kind))):
            parts: list[tuple[Path, Any]] = [((kind, j), entry)]
            if kind == "queues" and isinstance(entry, dict):
                parts += [((kind, j, "quotas", q), quota) for q, quota in enumerate(_list(entry.get("quotas")))]
            if kind == "users" and isinstance(entry, dict):
                parts += [((kind, j, "on", o), each) for o, each in enumerate(_list(entry.get("on")))]
            for path, part in parts:
                for key in keys:
                    amounts = part.get(key) if isinstance(part, dict) else None
                    if isinstance(amounts, dict):
                        yield from (((*path, key, name), name, value) for name, value in amounts.items())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
