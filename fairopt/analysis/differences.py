"""What differs between two instances, in the words of ``--set``, and instances that have some of these differences.

>>> lab = Instance([[8]], [[1], [2]], users=["vision", "language"], servers=["new"], resources=["gpu"])
>>> found = Differences(lab, lab.replace(counts={"new": 3}, weights={"vision": 2}))
>>> for difference in found.all:
...     print(difference)
servers.new.count: 1 -> 3
users.vision.weight: 1 -> 2
>>> found.only(found.all[:1]) == lab.replace(counts={"new": 3})
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.formats import document
from fairopt.formats.entries import ENTRIES, each_of, single_values
from fairopt.instance import Instance
from fairopt.instance.attributes import meaning, text_of
from fairopt.instance.fractions import plain_numbers
from fairopt.instance.units import BYTES, bare_amount
from fairopt.wording import brief, figure, joined, named, plural

__all__ = ["Difference", "Differences"]

_LISTS = ("servers", "queues", "users", "limits")  # in the order in which they are told
_PLAIN: dict[str, dict[str, Any]] = {  # keys of one value, and what is meant where they are left out; placement is compared by itself
    kind: {
        key: None if default == "" else plain_numbers(default)
        for key, default in single_values(model).items()
        if key not in ("servers", "requires")
    }
    for kind, model in ENTRIES.items()
}
_PLAIN["limits"] = {key: None for key in ENTRIES["limits"].model_fields if key != "name"}  # each is a value of its own
_AMOUNTS: dict[str, dict[str, Any]] = {  # keys of a value for each resource, and what is meant by one that is left out; None: nothing is
    kind: {
        key: plain_numbers(mark.missing) if mark.missing or model.model_fields[key].is_required() else None
        for key, mark in each_of(model, "resource").items()
        if key != "weight"
    }
    for kind, model in ENTRIES.items()
}
_AMOUNTS["shared"] = {"capacity": None}
_FEW = 6  # differences that are told one by one


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: ``before`` and ``after`` are plain data; None where there is no such entry or value.

    Attributes
    ----------
    kind : str
        "servers", "queues", "users", "limits", "rules" or "shared", a resource of the whole cluster.
    name, key, resource : str
        What it is about; an empty key means the whole entry.
    unit : str
        Of both amounts of a resource; "" where it is unknown.
    """

    kind: str
    name: str
    key: str
    resource: str
    before: Any
    after: Any
    unit: str = ""

    @property
    def shown(self) -> tuple[str, str]:
        """Both values as a table shows them, amounts with their unit."""
        before, after = (
            bare_amount(value, self.resource, self.unit, 6)
            if self.unit and isinstance(value, int | float) and value < math.inf
            else shown(value)
            for value in (self.before, self.after)
        )
        return before, after

    @property
    def path(self) -> str:
        """How ``--set`` names it: servers.new.count; of a rule, its text."""
        if self.kind == "rules":
            return f'rule "{brief(self.name)}"'
        parts = (self.kind, self.name) if self.kind == "shared" else (self.kind, self.name, self.key, self.resource)
        return ".".join(part for part in parts if part)

    @property
    def what(self) -> str:
        """What is different, without its values: servers.new.count, or "servers.big is new"."""
        return self.path if self.key else f"{self.path} {'is new' if self.before is None else 'is gone'}"

    @property
    def group(self) -> str:
        """What it has in common with others: "count of servers", "new users"."""
        if not self.key:
            return f"{'new' if self.before is None else 'removed'} {self.kind}"
        return "amount of resources" if self.kind == "shared" else f"{self.key} of {self.kind}"

    def __str__(self) -> str:
        return f"{self.path}: {' -> '.join(self.shown)}" if self.key else self.what


def shown(value: Any) -> str:
    """Return a value as a table shows it.

    >>> shown(4.0), shown(None), shown(["a", "b"]), shown({"gpu": 2.0}), shown(math.inf)
    ('4', 'none', 'a and b', 'gpu 2', 'no limit')
    """
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {shown(part)}" for key, part in value.items())
    if isinstance(value, list):
        return joined([_entry(part) if isinstance(part, Mapping) else str(part) for part in value], 4) or "none"
    if isinstance(value, str | bool):
        return text_of(value)
    return "no limit" if value == math.inf else figure(float(value), 6)


def _entry(part: Mapping[str, Any]) -> str:
    """Return an entry of a list: a quota by its name; what a task takes and does on some servers.

    >>> _entry({"servers": ["v100"], "demand": {"gpu": 2.0}, "speed": 0.9})
    'gpu 2 and speed 0.9 on v100'
    """
    if "demand" not in part and "speed" not in part:
        return str(part.get("name") or "a quota")
    facts = [*([shown(part["demand"])] if part.get("demand") else []), *([f"speed {shown(part['speed'])}"] if "speed" in part else [])]
    return f"{joined(facts)} on {shown(part['servers'])}"


class Differences:
    """The differences of two instances.

    Parameters
    ----------
    before, after : Instance
        Entries of one name are the same; their order does not matter.

    Attributes
    ----------
    all : tuple of Difference

    Raises
    ------
    InvalidInstance
        If a resource has another unit in each: its amounts cannot be compared.
    """

    def __init__(self, before: Instance, after: Instance) -> None:
        self._instances = before, after
        self._units = before.units
        for resource, unit in after.units.items():
            known = self._units.setdefault(resource, unit)
            if BYTES.get(known, known) != BYTES.get(unit, unit):
                raise InvalidInstance(
                    f"{named(resource)} is in {known} in the one instance and in {unit} in the other, so that its amounts cannot be "
                    "compared; give both the same unit"
                )
        self._resources = [*before.resources, *(name for name in after.resources if name not in before.resources)]
        attributes = dict.fromkeys(name for instance in (before, after) for each in instance.attributes for name in each)
        self._entries = [_entries(instance, self._resources, attributes) for instance in (before, after)]
        self.all = tuple(self._found())

    def groups(self) -> list[tuple[str, tuple[Difference, ...]]]:
        """Return the differences in groups that are told as one: each by itself where there are few, else those of one kind."""
        told = self.told()
        if len(told) <= _FEW:
            return told
        groups: dict[str, list[tuple[str, tuple[Difference, ...]]]] = {}
        for what, own in told:
            groups.setdefault(what if what.startswith(("resources.", "shared.")) and own[0].what != what else own[0].group, []).append(
                (what, own)
            )
        return [
            several[0]
            if len(several) == 1
            else (_title(group, [own[0] for _, own in several]), tuple(chain.from_iterable(own for _, own in several)))
            for group, several in groups.items()
        ]

    def told(self) -> list[tuple[str, tuple[Difference, ...]]]:
        """Return the differences one by one; those that cannot be without each other, as a queue and its users, are one."""
        parts = [*self._queues(), *self._of_resources()]
        first = {id(own[0]): (what, own) for what, own in parts}
        inside = {id(each) for _, own in parts for each in own[1:]}
        return [first.get(id(each), (each.what, (each,))) for each in self.all if id(each) not in inside]

    def _queues(self) -> Iterator[tuple[str, tuple[Difference, ...]]]:
        """Yield queues that come or go, each with the queues and users in it that come or go too: these cannot be without the queue."""
        found: dict[tuple[str, bool], list[Difference]] = {}
        for each in self.all:
            if each.key or each.kind not in ("queues", "users"):
                continue
            new = each.before is None
            instance = self._instances[new]
            parent = {queue.name: queue.parent for queue in instance.queues}
            changed = {other.name for other in self.all if other.kind == "queues" and not other.key and (other.before is None) == new}
            top = each.name if each.kind == "queues" else instance.queue_of[instance.index(each.name)]
            while top in changed and parent[top] in changed:
                top = parent[top]
            if top in changed:
                found.setdefault((str(top), new), []).append(each)
        for (top, _), own in found.items():
            own.sort(key=lambda each: (each.kind == "users", each.name != top))
            parts = [plural(number, kind[:-1]) for kind in ("queues", "users") if (number := sum(each.kind == kind for each in own[1:]))]
            yield f"{own[0].what}{f', with {joined(parts)} in it' if parts else ''}", tuple(own)

    def _of_resources(self) -> Iterator[tuple[str, tuple[Difference, ...]]]:
        """Yield resources that come or go: the amounts of servers, users and queues mean nothing without each other."""
        before, after = (set(instance.resources) for instance in self._instances)
        for resource in self._resources:
            own = tuple(each for each in self.all if each.resource == resource and each.key in _AMOUNTS[each.kind])
            if own and resource not in before & after:
                kind = "shared" if any(each.kind == "shared" for each in own) else "resources"
                yield f"{kind}.{resource} is {'gone' if resource in before else 'new'}", own

    def only(self, chosen: Sequence[Difference]) -> Instance:
        """Return the first instance with some of the differences.

        Raises
        ------
        InvalidInstance
            If some cannot be without others, such as a queue without its parent.
        """
        taken: set[tuple[str, ...]] = {(each.kind, each.name, each.key, each.resource) for each in chosen}
        before, after = self._entries
        data: dict[str, Any] = {"resources": self._resources}
        if self._units:
            data["units"] = dict(self._units)
        for kind in _LISTS:
            names = [*before[kind], *(name for name in after[kind] if name not in before[kind])]
            data[kind] = []
            for name in names:
                first, second = before[kind].get(name), after[kind].get(name)
                if first is None or second is None:
                    own = second if (kind, name, "", "") in taken else first
                else:
                    own = {key: second[key] if (kind, name, *key) in taken else value for key, value in first.items()}
                    if (kind, name, "count", "") in taken:
                        own["hosts", ""] = second["hosts", ""]
                if own is not None:
                    data[kind].append(_document(name, own))
        amounts = {name: both[("shared", name, "capacity", name) in taken] for name, *both in self._shared()}
        if any(amount is not None for amount in amounts.values()):
            data["shared"] = {name: amount for name, amount in amounts.items() if amount is not None}
        data = {key: value for key, value in data.items() if value or key not in ("queues", "limits")}
        rules = [text for text, *both in self._rules() if both[("rules", text, "", "") in taken]]
        data |= {"rules": rules} if rules else {}
        self._place(data, taken)
        return document.instance_from(_Made(data))

    # How they are found -----------------------------------------------------------------------------------------------------------

    def _found(self) -> Iterator[Difference]:
        before, after = self._entries
        for name, now, then in self._shared():
            if now != then:
                yield Difference("shared", name, "capacity", name, now, then, self._units.get(name, ""))
        for kind in _LISTS:
            for name in [*before[kind], *(name for name in after[kind] if name not in before[kind])]:
                first, second = before[kind].get(name), after[kind].get(name)
                if first is None or second is None:
                    yield Difference(kind, name, "", "", None if first is None else {}, None if second is None else {})
                    continue
                for (key, resource), value in first.items():
                    if key == "hosts" and first["count", ""] != second["count", ""]:
                        continue  # which come and go with the count
                    if _means(key, value) != _means(key, second[key, resource]):
                        unit = self._units.get(resource, "") if key in _AMOUNTS[kind] else ""  # an attribute is no amount
                        yield Difference(kind, name, key, resource, value, second[key, resource], unit)
                if kind == "users":
                    yield from self._servers(name)
        for text, now, then in self._rules():
            if now != then:
                yield Difference("rules", text, "", "", {} if now else None, {} if then else None)

    def _rules(self) -> Iterator[tuple[str, bool, bool]]:
        """Yield the texts of the rules, and whether each instance has them."""
        before, after = ([rule.text for rule in instance.rules] for instance in self._instances)
        yield from ((text, text in before, text in after) for text in dict.fromkeys([*before, *after]))

    def _shared(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield the resources of the whole cluster with their amounts in both instances, None where it is not one there."""
        before, after = (plain_numbers(instance.to_dict().get("shared", {})) for instance in self._instances)
        yield from ((name, before.get(name), after.get(name)) for name in self._resources if name in before or name in after)

    def _servers(self, user: str) -> Iterator[Difference]:
        """Yield the difference of the servers and the rates of a user, on servers that both instances have."""
        both = [name for name in self._instances[0].servers if name in self._instances[1].servers]
        allowed, rates = (
            [dict(zip(each.servers, _row(getattr(each, name), each.index(user), each.n_servers), strict=True)) for each in self._instances]
            for name in ("placement", "rates_per_server")
        )
        first, second = ([name for name in both if own[name] is not False] for own in allowed)
        if first != second:
            yield Difference("users", user, "servers", "", first, second)
        if any(rates[0][name] != rates[1][name] for name in both):
            given = [{name: own[name] for name in both if own[name] is not None} or None for own in rates]
            yield Difference("users", user, "rates", "", given[0], given[1])

    def _place(self, data: dict[str, Any], taken: set[tuple[str, ...]]) -> None:
        """Write the servers and the rates of each user into a document."""
        for entry in data["users"]:
            servers, rates = [], {}
            for server in (each["name"] for each in data["servers"]):
                for key in ("servers", "rates"):
                    changed = ("users", entry["name"], key, "") in taken or ("users", entry["name"], "", "") in taken
                    order = [*reversed(self._instances)] if changed else self._instances
                    found = next((i for i in order if entry["name"] in i.users and server in i.servers), None)
                    if found is None:  # a new user on a server that is no more, or the like
                        if key == "servers":
                            servers.append(server)
                        continue
                    n, i = found.index(entry["name"]), found.servers.index(server)
                    if key == "servers" and (found.placement is None or found.placement[n, i]):
                        servers.append(server)
                    if key == "rates" and found.rates_per_server is not None:
                        rates[server] = float(found.rates_per_server[n, i])
            if len(servers) < len(data["servers"]):
                entry["servers"] = servers
            if rates:
                entry["rates"] = rates


class _Made:
    """A document that was made here, not read."""

    def __init__(self, data: object) -> None:
        self.data = data

    def place(self, path: tuple[Any, ...]) -> str:
        return "this change is not valid on its own"

    def literal(self, path: tuple[Any, ...]) -> str | None:
        return None


def _means(key: str, value: Any) -> Any:
    """Return what is compared of a value: 4 and "4" are the same attribute."""
    return meaning(value) if key == "attributes" and value is not None else value


def _entries(instance: Instance, resources: Sequence[str], attributes: Iterable[str]) -> dict[str, dict[str, dict[tuple[str, str], Any]]]:
    """Return the values of every entry: by list, by name, by key and resource."""
    data = plain_numbers(instance.to_dict())
    found: dict[str, dict[str, dict[tuple[str, str], Any]]] = {}
    for kind in _LISTS:
        found[kind] = {}
        for entry in data.get(kind, ()):
            values = {(key, ""): entry.get(key, default) for key, default in _PLAIN[kind].items()}
            for key, default in _AMOUNTS[kind].items():
                given = entry.get(key, {})
                values |= {(key, resource): given.get(resource, default) for resource in resources}
            if kind == "servers":
                own = entry.get("attributes", {})
                values |= {("attributes", name): own.get(name) for name in attributes}
            found[kind][entry["name"]] = values
    return found


def _document(name: str, values: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Return values as an entry of a document."""
    entry: dict[str, Any] = {"name": name}
    for (key, resource), value in values.items():
        if resource:
            amounts = entry.setdefault(key, {})
            if value is not None and value != math.inf:
                amounts[resource] = value
        elif value is not None and value != math.inf:
            entry[key] = value
    return entry


def _row(values: Any, row: int, length: int) -> list[Any]:
    """Return a row of a matrix; None where there is no matrix."""
    return [None] * length if values is None else np.asarray(values)[row].tolist()


def _title(group: str, own: Sequence[Difference]) -> str:
    """Return the name of a group with its number: "count of 12 servers".

    >>> _title("new users", [None] * 3), _title("count of servers", [None] * 12)
    ('3 new users', 'count of 12 servers')
    """
    word, _, kind = group.rpartition(" ")
    names = {getattr(each, "name", j) for j, each in enumerate(own)}
    return f"{len(names)} {group}" if word in ("new", "removed") else f"{word} {plural(len(names), kind[:-1])}"
