"""PBS's answers in JSON (``-F json``): records by name, and values that may be numbers or text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fairopt.clusters.json_export import Part, parse_json
from fairopt.clusters.pbs.syntax import amount
from fairopt.errors import InvalidInstance
from fairopt.files import read_text

__all__ = ["COMMANDS", "is_true", "number_of", "parsed", "read_listing", "text_of"]

T = TypeVar("T")

COMMANDS = {
    "nodes": "pbsnodes -a -F json > nodes.json",
    "Jobs": "qstat -f -t -F json > jobs.json",
    "Queue": "qstat -Q -f -F json > queues.json",
    "Server": "qstat -B -f -F json > server.json",
}
_BARE = re.compile(r'((?<!\\)":\s*)([^\s"\[\]{},]{1,64})(?=\s*[,}\n])')  # a value without quotes
_JSON = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false|null")
_OF_TORQUE = re.compile(r"\s*(<\?xml[^>]*>\s*)?<(Data|Job|Node)>")
_TRUE = ("true", "t", "yes", "y", "1")


def read_listing(path: str | os.PathLike[str], kind: str) -> dict[str, Part]:
    """Return the records of an answer by name; ``kind`` is the key that they are under.

    Raises
    ------
    InvalidInstance
        The file is no such answer.
    """
    command = COMMANDS[kind]
    answer = _read(Path(path), command)
    if not isinstance(answer.value, dict) or (kind not in answer.value and not _is_empty(answer)):
        has = ", ".join(list(answer.value)[:6]) if isinstance(answer.value, dict) else "a list"
        answer.refuse(f'this is no answer of PBS with "{kind}" (it has {has or "nothing"}); export it again: {command}')
    return answer.get(kind).entries()


def _read(path: Path, command: str) -> Part:
    """Read an answer; PBS writes what strtod takes for a number without quotes, such as the name 007, which is no JSON."""
    text = read_text(path)
    if _OF_TORQUE.match(text):
        raise InvalidInstance(
            f"{path}: this is XML, as Torque writes it, and the answers of PBS Professional and OpenPBS are read, in JSON ({command}); for "
            'Torque, make tables as the how-to "LSF and Grid Engine" does'
        )
    try:
        return parse_json(text, path, command, mapping=_with_all_limits)
    except InvalidInstance:
        quoted = _BARE.sub(lambda match: match[0] if _JSON.fullmatch(match[2]) else f'{match[1]}"{match[2]}"', text)
        if quoted == text:
            raise
        return parse_json(quoted, path, command, mapping=_with_all_limits)


def _with_all_limits(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return entries by name; PBS writes each limit of an attribute under the name again, and older versions each record of a list.

    >>> _with_all_limits([("max_run", "[o:PBS_ALL=8]"), ("max_run", "[u:ann=2]"), ("started", "True")])
    {'max_run': '[o:PBS_ALL=8],[u:ann=2]', 'started': 'True'}
    >>> _with_all_limits([("Jobs", {"1.head": {"job_state": "Q"}}), ("Jobs", {"2.head": {"job_state": "R"}})])
    {'Jobs': {'1.head': {'job_state': 'Q'}, '2.head': {'job_state': 'R'}}}
    """
    found = dict(entries)
    if len(found) < len(entries):
        limits: dict[str, list[str]] = {}
        records: dict[str, dict[str, Any]] = {}
        for name, value in entries:
            if isinstance(value, str) and value.startswith("["):
                limits.setdefault(name, []).append(value)
            elif isinstance(value, dict):
                records.setdefault(name, {}).update(value)
        found |= records | {name: ",".join(values) for name, values in limits.items()}
    return found


def _is_empty(answer: Part) -> bool:
    """Return whether PBS answered that there is nothing: with its name and version, and no list."""
    return "pbs_version" in answer and not any(key in answer for key in COMMANDS)


def text_of(part: Part, default: str | None = None) -> str:
    """Return a text; PBS writes one without quotes if it looks like a number."""
    if isinstance(part.value, int | float) and not isinstance(part.value, bool):
        return f"{part.number():.15g}"
    if isinstance(part.value, bool):
        return str(part.value)
    return part.text(default)


def number_of(part: Part, default: float) -> float:
    """Return a number, which may be in quotes."""
    if not isinstance(part.value, str):
        return part.number(default)
    found = amount(part.value)
    if found is None:
        part.refuse(f'expected a number, found "{part.value[:40]}"')
    return found


def is_true(part: Part, default: bool) -> bool:
    """Return a truth, which PBS writes as text."""
    return default if part.value is None else text_of(part).lower() in _TRUE


def parsed(part: Part, parse: Callable[[str], T]) -> T:
    """Return what a text says; refuse it with its place if it says nothing."""
    try:
        return parse(text_of(part))
    except (ValueError, OverflowError) as error:
        part.refuse(f'"{text_of(part)[:60]}" cannot be read: {error}')
