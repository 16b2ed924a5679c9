"""What is wrong with a document, in words: the file and line, the user or server, what is there, and what should be.

>>> class Nowhere:
...     data = {"users": [{"name": "alice", "demand": {"cpu": -1}}]}
...     def place(self, path): return "cluster.yaml, line 7"
...     def literal(self, path): return None
>>> refuse(Nowhere(), ("users", 0, "demand", "cpu"), "expected a number >= 0, found -1")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: cluster.yaml, line 7: user "alice", demand, cpu: expected a number >= 0, found -1
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

from pydantic import BaseModel, ValidationError

from fairopt.errors import InvalidInstance
from fairopt.formats.entries import ENTRIES, each_of
from fairopt.instance import BoolArray
from fairopt.instance.quantities import advice
from fairopt.instance.requirements import Attributes
from fairopt.tables import Mistakes
from fairopt.tables.mistakes import MOST
from fairopt.wording import brief, did_you_mean, found, joined

__all__ = ["Path", "Source", "check_known", "check_unique", "in_words", "keep_invalid", "mistakes_of", "refuse", "servers_meeting"]

Path: TypeAlias = tuple[Any, ...]
"""Keys and positions that lead to a part of a document: ("users", 3, "demand", "cpu"); "[key]" at the end: the key itself."""

# Examples of values, for messages; in flow style, which YAML and JSON share except for quotes.
EXAMPLES = {
    "amounts": "{alice: 2, bob: 1}",
    "attributes": "{gpu_model: V100, cores: 4}",
    "bound": "8",
    "capacity": "{cpu: 9, memory: 12}",
    "demand": "{cpu: 1, memory: 2}",
    "guarantee": "{cpu: 4}",
    "lending_limit": "{cpu: 2}",
    "limit": "{cpu: 8}",
    "name": "A",
    "on": "[{servers: model = V100, demand: {gpu: 2}, speed: 0.9}]",
    "quotas": "[{on: model = A100, limit: {gpu: 8}}]",
    "rates": "{A: 3, B: 1.5}",
    "resources": "[cpu, memory]",
    "servers": "[A, B]",
}
_AMOUNTS = {key for model in ENTRIES.values() for key in each_of(model, "resource")} - {"weight"}  # of resources


class Source(Protocol):
    """Where a document came from."""

    data: object

    def place(self, path: Path) -> str:
        """Return the file and line of a part of the document."""

    def literal(self, path: Path) -> str | None:
        """Return a scalar as it was written, where that is known."""


def mistakes_of(source: Source) -> Mistakes:
    """Return the mistakes that were found when a document was read from its file; more may be added."""
    found = getattr(source, "mistakes", None)
    return found if isinstance(found, Mistakes) else Mistakes()


def refuse(source: Source, path: Path, message: str) -> NoReturn:
    """Raise InvalidInstance for this part of the document."""
    words = in_words(source.data, path)
    raise InvalidInstance(f"{source.place(path)}: {words}{': ' if words else ''}{message}") from None


def check_unique(source: Source, path: Path, names: Iterable[str], key: Path = (), mistakes: Mistakes | None = None) -> None:
    """Refuse a name that occurs twice among the entries at ``path`` (``key`` leads from an entry to its name), or keep each mistake."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in seen:
            first = source.place((*path, seen[name], *key)).rpartition(", line ")[2].partition(",")[0]
            elsewhere = f" (first on line {first})" if first.isdigit() else ""
            with Mistakes() if mistakes is None else mistakes as kept:
                remedy = "names must be unique: rename or remove one"
                refuse(source, (*path, position, *key), f'"{brief(name)}" occurs twice{elsewhere}; {remedy}')
            if mistakes is None:
                kept.refuse()
        else:
            seen[name] = position


def check_known(source: Source, path: Path, names: Iterable[str], known: Collection[str], kind: str) -> None:
    """Refuse a name, a key of the mapping at ``path`` or an item of the list there, that is not known."""
    names = list(names)
    for position, name in enumerate(names):
        if name not in known:
            step = position if isinstance(_at(source.data, path), list) else name
            hint = _apart(name, known) or did_you_mean(name, [each for each in known if each not in names]) or did_you_mean(name, known)
            hint = hint or f"; the {kind}s are {joined([brief(each) for each in known], 8)}"
            refuse(source, (*path, step), f'there is no {kind} "{brief(name)}"{hint}')


def servers_meeting(source: Source, path: Path, conditions: str, attributes: Attributes, known: Collection[str]) -> BoolArray:
    """Return which servers meet conditions, (servers,); refuse what cannot be read: a word alone is taken for the name of a server."""
    try:
        return attributes.where(conditions)
    except InvalidInstance as error:
        if not re.fullmatch(r"[^\s;|=<>!]+", conditions):
            refuse(source, path, str(error))
        hint = did_you_mean(conditions, known) or f"; the servers are {joined([brief(each) for each in known], 8)}"
        refuse(source, path, f'there is no server "{brief(conditions)}"{hint}; conditions on attributes are written attribute = value')


def _apart(name: str, known: Collection[str]) -> str:
    """Return how to write several names that stand in the place of one."""
    parts = [part.strip() for part in re.split(r"[;,/+]|\s+and\s+|\s+or\s+|\s+", name) if part.strip()]
    return f"; write {'|'.join(parts)} in a table, or a list" if len(parts) > 1 and all(part in known for part in parts) else ""


def keep_invalid(
    source: Source, error: ValidationError, models: Mapping[str, type[BaseModel]], mistakes: Mistakes, left_out: int = 0
) -> None:
    """Keep a mistake for each of pydantic's errors; a missing key that an unknown one was meant to be is none.

    ``models`` are those of the entries of the lists "servers", "users", "queues", "quotas" and "on", and of "" for the whole;
    ``left_out`` is the number of errors that pydantic was not shown.
    """
    errors = error.errors(include_url=False)
    # An unknown key explains a missing one: with "demnd" there is no "demand".
    errors.sort(key=lambda each: each["type"] != "extra_forbidden")
    mistakes.more += left_out + max(0, len(errors) - MOST)
    meant = set()
    for each in errors[:MOST]:
        path = tuple(each["loc"])
        if each["type"] == "missing" and path in meant:
            continue
        if path[:1] == ("users",) and path[2:3] == ("weight",):
            path = (*path[:3], *path[4:])  # pydantic names the branch of the union: "number" or "mapping"
        with mistakes:
            if each["type"] in ("extra_forbidden", "invalid_key"):
                entries = str(path[2]) if path[2:3] in (("quotas",), ("on",)) and len(path) > 4 else str(path[0]) if len(path) > 1 else ""
                known = models[entries].model_fields
                there = _at(source.data, path[:-1])
                free = [key for key in known if not isinstance(there, dict) or key not in there]
                close = did_you_mean(str(path[-1]), free)
                meant |= {(*path[:-1], key) for key in free if f'"{key}"' in close}
                hint = close or f"; the keys here are {', '.join(known)}"
                refuse(source, path, f'unknown key "{brief(str(path[-1]))}"{hint}')
            _refuse_one(source, path, each)


def _refuse_one(source: Source, path: Path, error: Any) -> NoReturn:
    """Raise InvalidInstance for an error of pydantic that is about a value."""
    kind = error["type"]
    if kind == "missing":
        key, path = str(path[-1]), path[:-1]
        refuse(source, path, f'"{key}" is missing; ' + (f"add {key}: {EXAMPLES[key]}" if path else f'list the {key} under "{key}:"'))
    if kind == "too_short":
        refuse(source, path, f"the list is empty; there must be at least one of the {path[-1]}")
    need, instead = _need(kind, error.get("ctx", {}), path, error["input"])
    if kind == "string_type" and isinstance(error["input"], (bool, int, float)):
        instead = f'write it in quotes: "{source.literal(path) or error["input"]}"'
    refuse(source, path, f"expected {need}, found {found(error['input'])}" + (f"; {instead}" if instead else ""))


def _need(kind: str, context: Mapping[str, Any], path: Path, value: object) -> tuple[str, str]:
    """Return what is needed instead of ``value``, and what to do."""
    key = str(path[-1])
    if kind in ("dict_type", "model_type"):
        return "a mapping" + (f" such as {EXAMPLES[key]}" if key in EXAMPLES else " of keys to values"), ""
    if kind == "list_type":
        return "a list" + (f" such as {EXAMPLES[key]}" if key in EXAMPLES else ""), ""
    if kind == "string_type":
        return "text", "give it a value or leave the key out" if value is None else ""
    if kind == "string_pattern_mismatch":
        return "a name", "give one that is not blank"
    if kind == "not_an_attribute":
        return "text, a finite number, true or false", "give it such a value or leave the key out"
    if kind == "not_hosts":
        return "names of hosts such as cn[1,3,5], or a list of names", "give it such a value or leave the key out"
    if kind == "not_places":
        return 'names of servers such as [A, B], or conditions such as "model = A100"', "give it such a value or leave the key out"
    if kind == "not_amounts":
        wrong = context.get("wrong")
        return f"numbers >= 0 by user, or by user and server, such as {EXAMPLES['amounts']}", f"that of {wrong[0]}" if wrong else ""
    if kind == "literal_error":
        return str(context["expected"]), "give it such a value or leave the key out"
    if kind == "not_whole":
        return "a whole number >= 0", ""
    if kind in ("not_an_integer", "int_type"):
        return "a whole number", ""
    if kind == "greater_than":
        return f"a number > {context['gt']:g}", ""
    if kind == "greater_than_equal":
        return f"a number >= {context['ge']:g}", ""
    if kind == "finite_number":
        return "a finite number", ""
    if key == "count" and isinstance(value, str):
        return "a whole number", "write digits without quotes" if value.strip().isdigit() else ""
    if isinstance(value, str):
        instead = _advice(value, of_resource=path[-2] in _AMOUNTS)
        no_limit = key in ("tasks", "parallelism") and instead.startswith(("write digits", "leave it"))
        return "a number", "leave it out for no limit" if no_limit else instead
    if isinstance(value, int) and not isinstance(value, bool):
        return "a number that floating point can hold", "give a smaller one"
    return "a number", "give it a value or leave the key out" if value is None else ""


def _advice(text: str, *, of_resource: bool) -> str:
    """Return what to write instead of a text that should be a number."""
    try:
        float(text)
    except ValueError:
        return advice(text, of_resource=of_resource)
    return "write digits without quotes or unit"


def in_words(data: object, path: Path) -> str:
    """Return the path in words: user "alice", demand, cpu."""
    words = []
    for depth, step in enumerate(path):
        above = path[depth - 1] if depth else None
        if depth == 1 and above in ("users", "servers", "queues", "limits") and isinstance(step, int):
            name = _at(data, (above, step, "name"))
            kind = str(above)[:-1]
            words = [f'{kind} "{brief(name)}"' if isinstance(name, str) else f"{kind} {step + 1}"]
        elif isinstance(step, int) and isinstance(_at(data, path[:depth]), list):
            words.append(f"item {step + 1}")
        elif step == "[key]":
            words[-1] = f"key {words[-1]}"
        else:
            words.append(brief(str(step)))
    return ", ".join(words)


def _at(data: object, path: Path) -> object:
    """Return what stands at the path, or None."""
    for step in path:
        try:
            data = data[step]  # type: ignore[index]  # whatever it is, an error says that it is not there
        except (LookupError, TypeError):
            return None
    return data
