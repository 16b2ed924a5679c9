"""Ads of HTCondor, as its tools write them with ``-json`` or ``-jsonl``; names of attributes are compared without case."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairopt.clusters.htcondor.expressions import UNDEFINED, Unreadable, evaluated, is_expression
from fairopt.clusters.json_export import Part, parse_json
from fairopt.errors import InvalidInstance
from fairopt.files import read_text

__all__ = ["COMMANDS", "Ad", "read_ads"]

COMMANDS = {
    "slots": "condor_status -json > slots.json",
    "jobs": "condor_q -allusers -json > jobs.json",
    "history": "condor_history -json > history.json",
    "priorities": "condor_userprio -allusers -json > priorities.json",
}
_LARGEST = 1e60
_NEXT = re.compile(r"\]([ \t\r]*\n)(?=\s*\[)")  # a list ends with its line, and another begins; within a list, a comma is between


class Ad:
    """An ad: its attributes by name, and its place for messages."""

    __slots__ = ("_names", "part", "values")

    def __init__(self, part: Part) -> None:
        self.part = part
        self._names = {name.lower(): name for name in part.entries()}
        self.values: dict[str, Any] = {name.lower(): value for name, value in part.value.items()} if self._names else {}

    @property
    def place(self) -> str:
        """The file, and the position of the ad."""
        return self.part.place

    def get(self, name: str) -> Part:
        """Return an attribute; its value is None if it is missing."""
        return self.part.get(self.spelled(name))

    def spelled(self, name: str) -> str:
        """Return the name of an attribute as the ad spells it."""
        return self._names.get(name.lower(), name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        part = self.get(name)
        if part.value is None and default is None:
            part.refuse("this attribute is missing; export all of them, without -attributes")
        return part.text(default)

    def number(self, name: str, default: float) -> float:
        """Return a number >= 0; an expression is evaluated, and the default if it is undefined.

        Raises
        ------
        InvalidInstance
            It is none, or an expression that is not understood.
        """
        part = self.get(name)
        if not is_expression(part.value):
            return part.number(default)
        value = self.evaluated(name)
        if value is UNDEFINED:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
            part.refuse(f'the expression "{str(part.value)[6:-2][:60]}" is {str(value)[:20]}, and no number >= 0')
        return float(value)

    def evaluated(self, name: str) -> Any:
        """Return the value of an attribute that may be an expression of others of this ad; `UNDEFINED` if it needs others.

        Raises
        ------
        InvalidInstance
            It is an expression that is not understood.
        """
        part = self.get(name)
        try:
            return evaluated(part.value, self.values, {})
        except Unreadable as error:
            part.refuse(f'the expression "{str(part.value)[6:-2][:60]}" cannot be evaluated: {error}')

    def is_true(self, name: str) -> bool:
        """Return whether an attribute is true."""
        return self.get(name).value is True


def read_ads(path: str | os.PathLike[str], kind: str) -> list[Ad]:
    """Return the ads of a file: a list, or one in each line.

    Raises
    ------
    InvalidInstance
        The file is no such list.
    """
    file, command = Path(path), COMMANDS[kind]
    text = read_text(file)
    if not text.strip() and kind == "jobs":
        raise InvalidInstance(f"{file}: the file is empty: there is no job in the queue, or the export failed; export it again: {command}")
    if text.lstrip().startswith("{"):
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) > 1 and all(line.rstrip().endswith("}") for _, line in lines):
            return [Ad(Part(parse_json(line, file, command).value, f"{file}, line {number}")) for number, line in lines]
    found: list[Ad] = []
    for place, piece in _lists(text, file):
        parts = parse_json(piece, Path(place), command)
        if isinstance(parts.value, dict):
            parts.refuse(f"expected a list of ads, found one ad; export them all: {command}")
        found += [Ad(part) for part in parts.items()]
    return found


def _lists(text: str, file: Path) -> list[tuple[str, str]]:
    """Return the lists of a file, each with its place: before 8.7.10, ``condor_q -global`` writes one for each access point.

    >>> len(_lists('[{"a": "] ["},\\n {"b": [[1], [2]]}]\\n[\\n]\\n', Path("jobs.json")))
    2
    """
    cuts = [0, *(match.end(1) for match in _NEXT.finditer(text)), len(text)]
    if len(cuts) == 2:
        return [(str(file), text)]
    return [(f"{file}, list {n} of {len(cuts) - 1}", text[a:b]) for n, (a, b) in enumerate(pairwise(cuts), 1)]
