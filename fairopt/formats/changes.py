"""Changes to an instance file, by the names in it: two more servers of a kind, or another weight.

==============================================  ==========================================================================
``users.vision.weight=3``                       a value; it is written as in a YAML file
``servers.new.count+=2``                        adds a number; ``-=`` subtracts it, ``*=`` multiplies by it
``servers.new.capacity.memory+=64GiB``          also with a unit, where the file has units
``queues.research.guarantee.gpu=8``             an entry of a mapping
``queues.lab.quotas.model = A100.limit.gpu=8``  names a quota by its name, by its ``on``, or by its number: 1, 2, ...
``users.vision.on.old.speed=0.8``               names an entry of ``on``, or one server, which gets its own
``users.vision.tasks=``                         removes the key, so that its default holds
``servers.big={capacity: {gpu: 8}}``            adds an entry, or replaces the present one
``limits.licences.bound+=5``                    so too named limits
``users.vision=``                               removes the entry
``queues.lab=``                                 removes the queue, the queues in it, and their users
``servers.old=``                                removes the servers, also where users, quotas and limits name them
``shared.ansys=12``                             another amount of a resource of the whole cluster; a new name that is demanded adds one
``resources.gpu=``                              removes the resource everywhere, and so does ``shared.ansys=`` of a shared one
==============================================  ==========================================================================

Names may hold dots and signs: the longest matching name of the file counts. A row of servers whose count changes has no ``hosts`` any more,
unless a change gives them: nobody knows which of them are there. The result is read through the schema of files, with the same
checks, and each message names the change.

>>> from fairopt.formats.document import instance_from
>>> from fairopt.formats.syntax import Parsed
>>> lab = Parsed("lab.yaml", "servers: [{name: new, capacity: {gpu: 8}}]\\nusers: [{name: vision, demand: {gpu: 1}}]")
>>> instance_from(Changed(lab, ["servers.new.count+=2", "users.vision.weight=3"]))
Instance(1 user, 3 servers in 1 row, 1 resource: 24 gpu)
>>> instance_from(Changed(lab, ["servers.new.count=-1"]))
Traceback (most recent call last):
fairopt.errors.InvalidInstance: lab.yaml with servers.new.count=-1: server "new", count: expected a number >= 0, found -1
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from pydantic import BaseModel

from fairopt.errors import InvalidInstance
from fairopt.formats.entries import ENTRIES, Document, On, Quota, each_of
from fairopt.formats.messages import Path, Source, mistakes_of
from fairopt.formats.misspelt import undemanded
from fairopt.formats.overrides import set_apart
from fairopt.formats.removals import leave_out, without_resource
from fairopt.formats.syntax import read_value
from fairopt.formats.units import OPERATORS, calculated
from fairopt.instance import Instance
from fairopt.instance.rivals import weight_without_effect
from fairopt.wording import brief, did_you_mean, found, joined

__all__ = ["Changed", "Changes", "weights_without_effect"]

_PARTS: dict[str, type[BaseModel]] = {"quotas": Quota, "on": On}  # lists of entries inside of entries

Changes: TypeAlias = Mapping[str, Any] | Sequence[str]
"""``{"users.vision.weight": 3}``, or ``["users.vision.weight=3", "servers.new.count+=2"]``."""

_SIGNED = re.compile(r"\s*\+\s*[\d.]")


@dataclass(frozen=True, slots=True)
class _Change:
    """A change as it is written, and what it says."""

    text: str
    path: tuple[str, ...]  # by names: ("users", "vision", "weight")
    sign: str  # "", "+", "-" or "*"
    value: object  # None: nothing


class Changed:
    """A document with changes, made in their order.

    Parameters
    ----------
    source : Source
    changes : mapping of paths to values, or sequence of str

    Raises
    ------
    InvalidInstance
        If a path leads to nothing. What the values may be, the schema says when the document is read.
    """

    def __init__(self, source: Source, changes: Changes) -> None:
        mistakes_of(source).refuse()
        self._source = source
        self.data: Any = dict(source.data) if isinstance(source.data, dict) else {}
        self._origin: dict[str, list[int | None]] = {}
        self._changes: list[_Change] = []
        for kind in ENTRIES:
            entries = self.data.get(kind, [])
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                return  # reading the document says what is wrong with it
            if entries or kind in self.data:
                self.data[kind] = [*entries]
            self._origin[kind] = [*range(len(entries))]
        listed = [changes] if isinstance(changes, str) else changes
        for text, value in listed.items() if isinstance(listed, Mapping) else ((text, ...) for text in listed):
            change = self._parsed(text, value)
            self._changes.append(change)
            self._apply(change)
        for text, hint in undemanded(source.data, self.data, [(each.text, each.path) for each in self._changes]):
            _Refusal(f"{source.place(())} with {brief(text)}")(hint)
        leave_out(self.data, self._origin, self._removed())
        self._forget_hosts()

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is implausible in the tables that are changed."""
        return tuple(getattr(self._source, "doubts", ()))

    def place(self, path: Path) -> str:
        """Return the file and the change that a part of the document is from, else its line."""
        kind = path[0] if path else ""
        names = _names(self.data, path)
        for change in reversed(self._changes):
            length = min(len(names), len(change.path))
            if length and names[:length] == change.path[:length]:
                return f"{self._source.place(())} with {brief(change.text)}"
        if len(path) > 1 and kind in self._origin:
            origin = self._origin[kind][path[1]]
            path = path[:1] if origin is None else (kind, origin, *path[2:])
        changed = f" with {joined([brief(change.text) for change in self._changes], 3)}" if self._changes else ""
        return f"{self._source.place(path)}{changed}"

    def literal(self, path: Path) -> str | None:
        """Return a scalar as it was written, where it is not changed."""
        return None

    def weights(self) -> Iterator[tuple[str, str, str]]:
        """Yield the changes of a weight that was and is not 0: the kind and the name of its entry, and the change as it is written."""
        for change in self._changes:
            if len(change.path) == 3 and change.path[2] == "weight" and change.path[0] in ("users", "queues"):
                kind, name = change.path[:2]
                given: Any = self._source.data
                each: Any = next((entry for entry in given.get(kind) or [] if str(entry.get("name")) == name), {})
                if each.get("weight", 1) not in (0, None):
                    yield kind, name, change.text

    def _removed(self) -> dict[str, set[str]]:
        """Return the names of entries that are removed and do not come back, by kind."""
        removed: dict[str, set[str]] = {kind: set() for kind in ENTRIES}
        for change in self._changes:
            if len(change.path) == 2 and change.path[0] in ENTRIES:
                (removed[change.path[0]].add if change.value is None else removed[change.path[0]].discard)(change.path[1])
        return removed

    # Reading a change -------------------------------------------------------------------------------------------------------------

    def _parsed(self, text: str, value: object) -> _Change:
        """Return what a change says; the value, where it is not given (...), is read from the text."""
        shown = text if value is ... else f"{text}={value}"
        refuse = _Refusal(f"{self._source.place(())} with {brief(shown)}")
        rest = text if value is ... else f"{text}="
        if "=" not in rest:
            refuse("a change is PATH=VALUE, such as users.vision.weight=3, servers.new.count+=2 or users.vision.tasks= (nothing)")
        kind, rest = _first(rest, Document.model_fields)
        if kind not in Document.model_fields:
            refuse.unknown("key", kind, Document.model_fields)
        path = [kind]
        if kind in ENTRIES:
            if not rest.startswith("."):
                refuse(f"name the {kind[:-1]} and what to change, such as {kind}.{_example(self.data, kind)}")
            rest = self._in_list(refuse, rest[1:], path)
        if kind == "resources" and rest.startswith("."):
            return self._of_resource(refuse, shown, rest[1:], value)
        if kind == "shared" and rest.startswith("."):
            present = self.data.get("shared")
            name, rest = _first(rest[1:], present if isinstance(present, dict) else (), dots=True)
            path.append(name)
        sign = rest[0] if rest[:1] in OPERATORS else ""
        if not _ends(rest):
            if path == ["units"]:
                refuse("units are set together; write units={memory: MiB}, with all resources that have one")
            refuse(f"{path[-1]} is a single value; write {'.'.join(path)}=VALUE")
        written = rest[len(sign) + 1 :]
        if not sign and _SIGNED.match(written):
            dotted, number = ".".join(path), written.strip().removeprefix("+").strip()
            refuse(f"={written.strip()} would set {number}; write {dotted}+={number} to add, or {dotted}={number} to set")
        plain = value if value is not ... else _value(refuse, written)
        if sign and calculated("+", plain, plain) is None:
            refuse(f"{sign}= needs a number, found {found(plain)}")
        return _Change(shown, tuple(path), sign, plain)

    def _of_resource(self, refuse: _Refusal, shown: str, rest: str, value: object) -> _Change:
        """Return a change that removes a resource: there is no other."""
        known = self._resources()
        name, rest = _first(rest, known, dots=True)
        if name not in known:
            refuse.unknown("resource", name, known)
        if rest[0] != "=" or (value is ... and rest[1:].strip()) or (value is not ... and value is not None):
            refuse(
                f"a resource has no value; nothing after = removes it, and servers and users name its amounts: servers.NAME.capacity.{name}"
            )
        return _Change(shown, ("resources", name), "", None)

    def _in_list(self, refuse: _Refusal, rest: str, path: list[str]) -> str:
        """Add a name and the keys of its entry to the path, and return the rest of the text."""
        kind = path[0]
        entries = {str(each.get("name")): each for each in self.data.get(kind) or []}
        name, rest = _first(rest, entries)
        if name not in entries and not _ends(rest):
            refuse.unknown(kind[:-1], name, entries)
        path.append(name)
        return self._in_entry(refuse, rest[1:], path, entries[name], ENTRIES[kind]) if rest.startswith(".") else rest

    def _in_entry(self, refuse: _Refusal, rest: str, path: list[str], entry: object, model: type[BaseModel]) -> str:
        """Add the keys of an entry to the path, and return the rest of the text."""
        known = [key for key in model.model_fields if key != "name"]
        key, rest = _first(rest, known)
        if key == "name":
            refuse("a change cannot rename; rename it in the file")
        if key not in known:
            refuse.unknown("key", key, known)
        path.append(key)
        present = entry.get(key) if isinstance(entry, dict) else None
        if not rest.startswith("."):
            return rest
        if key in _PARTS:
            parts = present if isinstance(present, list) else []
            labels = _labels(parts)
            servers = [str(each.get("name")) for each in self.data.get("servers", [])] if key == "on" else []
            label, rest = _first(rest[1:], [*labels, *servers, *(str(j + 1) for j in range(len(labels)))])
            if label not in labels and label.isdecimal() and 0 < int(label) <= len(labels):
                label = labels[int(label) - 1]
            if label not in labels and label not in servers:
                refuse.unknown("quota" if key == "quotas" else "server", label, [*servers, *labels])
            if label not in labels and not rest.startswith("."):
                refuse(f"name what to change on {label}, such as speed=0.8 or demand.gpu=2")
            path.append(label)
            part = parts[labels.index(label)] if label in labels else {}
            return self._in_entry(refuse, rest[1:], path, part, _PARTS[key]) if rest.startswith(".") else rest
        mark = each_of(model).get(key)
        if mark is None or isinstance(present, int | float):
            return rest
        labels = []
        if mark.of == "resource":
            labels = self._resources()
        elif mark.of == "server":
            labels = [str(each.get("name")) for each in self.data.get("servers", [])]
        label, rest = _first(rest[1:], [*labels, *(present or {})], dots=True)
        path.append(label)
        return rest

    def _resources(self) -> list[str]:
        listed, shared = self.data.get("resources"), self.data.get("shared")
        if not isinstance(listed, list):
            listed = [r for each in self.data.get("servers", []) for r in each.get("capacity", ())]
        return [*dict.fromkeys([*listed, *(shared if isinstance(shared, dict) else ())])]

    # Making it --------------------------------------------------------------------------------------------------------------------

    def _apply(self, change: _Change) -> None:
        """Make a change in a copy of what it touches."""
        refuse = _Refusal(f"{self._source.place(())} with {brief(change.text)}")
        kind, *rest = change.path
        if kind == "resources" and rest:
            without_resource(self.data, self._origin, rest[0])
            return
        if kind == "shared" and rest:
            self._put_shared(refuse, rest[0], change)
            return
        if kind not in ENTRIES:
            _put(refuse, self.data, kind, Document, change)
            return
        entries: list[Any] = self.data.setdefault(kind, [])
        place = next((j for j, each in enumerate(entries) if each.get("name") == rest[0]), None)
        if len(rest) == 1:
            self._put_entry(refuse, kind, place, change)
            return
        assert place is not None  # _parsed has refused the others
        entry = entries[place] = dict(entries[place])
        model = ENTRIES[kind]
        if (parts := rest[1]) in _PARTS and len(rest) > 2:
            labels = _labels(entry.get(parts) or [])
            entry[parts] = [*(entry.get(parts) or [])]
            if rest[2] not in labels:  # a server without an entry of its own
                entry[parts] = set_apart(entry[parts], rest[2], self.data["servers"])
            j = labels.index(rest[2]) if rest[2] in labels else len(entry[parts]) - 1
            if len(rest) == 3:
                if change.sign or change.value is not None:
                    what, example = ("quota", "limit.gpu=8") if parts == "quotas" else ("entry", "speed=0.8")
                    refuse(f"name what to change of the {what}, such as {example}; nothing after = removes the {what}")
                del entry[parts][j]
                return
            entry[parts][j] = entry = dict(entry[parts][j])
            model, rest = _PARTS[parts], rest[2:]
        key = rest[1]
        if len(rest) == 2:
            _put(refuse, entry, key, model, change)
        else:
            inner = entry[key] = dict(entry.get(key) or {})
            _put(refuse, inner, rest[2], None, change, each_of(model)[key].missing)

    def _put_shared(self, refuse: _Refusal, name: str, change: _Change) -> None:
        """Change the amount of a resource of the cluster; without an amount it goes, wherever it is named."""
        present = self.data.get("shared")
        amounts = dict(present) if isinstance(present, dict) else {}
        if name not in amounts and (change.sign or change.value is None):
            refuse.unknown("shared resource", name, amounts)
        if change.value is None:
            without_resource(self.data, self._origin, name)
            return
        _put(refuse, amounts, name, None, change)
        self.data["shared"] = amounts
        if isinstance(listed := self.data.get("resources"), list) and name not in listed:
            self.data["resources"] = [*listed, name]

    def _forget_hosts(self) -> None:
        """Leave out the hosts of rows whose count alone is changed: nobody knows which of them are there."""
        own = {change.path[1] for change in self._changes if change.path[0] == "servers" and change.path[2:] in ((), ("hosts",))}
        for place, origin in enumerate(self._origin["servers"]):
            entry = self.data["servers"][place]
            if origin is None or "hosts" not in entry or entry.get("name") in own:
                continue
            before: Any = self._source.data
            if before["servers"][origin].get("count", 1) != entry.get("count", 1):
                self.data["servers"][place] = {key: value for key, value in entry.items() if key != "hosts"}

    def _put_entry(self, refuse: _Refusal, kind: str, place: int | None, change: _Change) -> None:
        """Add, replace or leave out an entry."""
        entries, origin, name = self.data[kind], self._origin[kind], change.path[1]
        if change.value is None:
            if place is None:
                refuse.unknown(kind[:-1], name, [str(each.get("name")) for each in entries])
            del entries[place], origin[place]
        elif not isinstance(change.value, Mapping) or change.sign:
            refuse(f"name what to change of the {kind[:-1]}, such as {kind}.{_example(self.data, kind)}, or give the whole entry: {{...}}")
        elif (other := brief(str(change.value.get("name", name)))) != brief(name):
            refuse(f'the {kind[:-1]} is called "{name}" in front of the = and "{other}" behind it; leave the name behind it out')
        elif place is None:
            entries.append({**change.value, "name": name})
            origin.append(None)
        else:
            entries[place] = {**change.value, "name": name}


def weights_without_effect(changed: Changed, instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield each user or queue whose changed weight has no effect in the tree, by name, and why: which weight decides."""
    names = [queue.name for queue in instance.queues]
    for kind, name, text in changed.weights() if names else ():
        if kind == "users":
            reason = weight_without_effect(instance, user=instance.users.index(name)) if name in instance.users else ""
        else:
            reason = weight_without_effect(instance, node=names.index(name) + 1) if name in names else ""
        if reason:
            yield name, f"{brief(text)}: {reason}"


class _Refusal:
    """Raises what is wrong with a change."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __call__(self, message: str) -> NoReturn:
        raise InvalidInstance(f"{self.where}: {message}")

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> NoReturn:
        """Refuse a name that is not there."""
        known = [brief(each) for each in known]
        there = f"; the {kind}s are {joined(known, 12)}" if known else f"; there are no {kind}s"
        self(f'there is no {kind} "{brief(name)}"{did_you_mean(name, known) or there}')


def _first(text: str, known: Collection[str], *, dots: bool = False) -> tuple[str, str]:
    """Return the first name of a path and the rest: the longest known name that fits, or else as far as the next dot or sign.

    >>> _first("gpu-1 +3.count=4", ["gpu-1", "gpu-1 +3"])
    ('gpu-1 +3', '.count=4')
    >>> _first("nwe.count+=4", ["new"]), _first("count+=4", [])
    (('nwe', '.count+=4'), ('count', '+=4'))
    """
    fitting = [name for name in known if text.startswith(name) and (text[len(name) :].startswith(".") or _ends(text[len(name) :]))]
    if fitting:
        name = max(fitting, key=len)
        return name, text[len(name) :]
    end = text.index("=")
    end -= text[end - 1 : end] in OPERATORS
    dot = text.find(".", 0, end)
    end = end if dot < 0 or dots else dot
    return text[:end], text[end:]


def _ends(rest: str) -> bool:
    """Return whether a path is at its end: what follows is = or += and the like."""
    return rest[:1] == "=" or (rest[:1] in OPERATORS and rest[1:2] == "=")


def _value(refuse: _Refusal, text: str) -> object:
    """Return what the text of a value means in a YAML file; nothing where it is blank."""
    if not text.strip():
        return None
    try:
        return read_value(text)
    except InvalidInstance as error:
        refuse(str(error))


def _put(refuse: _Refusal, mapping: dict[str, Any], key: str, model: type[BaseModel] | None, change: _Change, missing: float = 0.0) -> None:
    """Write a value, or none; with a sign, calculate it from the present one or its default."""
    if change.sign:
        default = missing if model is None else model.model_fields[key].default
        present = mapping.get(key, default)
        try:
            mapping[key] = calculated(change.sign, present, change.value)
        except ValueError as error:
            refuse(str(error))
        if mapping[key] is None:
            refuse(f"{change.sign}= needs a number to begin with, and {key} is {found(present)}")
    elif change.value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = change.value


def _labels(parts: Sequence[Any]) -> list[str]:
    """Return what quotas, and entries of ``on``, are called: by their names, or by the servers that they are on."""
    on = [(each.get("name") or each.get("on"), each.get("servers") or []) for each in parts]
    return [str(name or (servers if isinstance(servers, str) else "|".join(map(str, servers)))).strip() for name, servers in on]


def _names(data: Any, path: Path) -> tuple[str, ...]:
    """Return a path by names: ("users", 3, "weight") as ("users", "vision", "weight")."""
    names: list[str] = []
    for step in path:
        try:
            labels = _labels(data) if names[-1:] in (["quotas"], ["on"]) and isinstance(data, list) else None
            data = data[step]
        except (LookupError, TypeError):
            data = labels = None
        if isinstance(step, int):
            step = labels[step] if labels else data["name"] if isinstance(data, dict) and "name" in data else step
        names.append(str(step))
    return tuple(names)


def _example(data: Any, kind: str) -> str:
    """Return an example of a change to an entry of this kind."""
    name = next((each["name"] for each in data.get(kind) or [] if "name" in each), "NAME")
    key = {"servers": "count=4", "limits": "bound=8"}.get(kind, "weight=3")
    return f"{brief(str(name))}.{key}"
