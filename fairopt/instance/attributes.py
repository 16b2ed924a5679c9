"""The attributes of a row of servers, which ``requires`` of users and jobs asks for: names, and text, numbers, true or false.

Nobody can tell 4 from "4", or true from "True": in a table, everything is text. They are equal if no requirement tells them apart.

>>> RowAttributes({"cores": 4, "ssd": True}) == RowAttributes({"cores": "4.0", "ssd": "true"})
True
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.labelled import rows_of
from fairopt.wording import brief, written

__all__ = ["NUMBER", "RowAttributes", "Value", "attributes_of", "common", "is_attribute", "meaning", "text_of"]

Value: TypeAlias = str | int | float | bool

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def is_attribute(value: object) -> bool:
    """Return whether a value can be that of an attribute: text, a finite number, true or false."""
    if isinstance(value, str):
        return True
    return isinstance(value, int | float) and abs(value) <= 1.7e308  # also a long int, which no float holds


def text_of(value: Value) -> str:
    """Return a value as text.

    >>> text_of(True), text_of("FALSE"), text_of(4), text_of("A100")
    ('true', 'false', '4', 'A100')
    """
    text = str(value)
    return text.lower() if text.lower() in ("true", "false") else text


def meaning(value: Value) -> str | float:
    """Return what requirements see of a value: a number, or text.

    >>> meaning("4.0"), meaning(True), meaning("A100")
    (4.0, 'true', 'A100')
    """
    text = text_of(value)
    return float(text) if NUMBER.fullmatch(text) else text


class RowAttributes(Mapping[str, Value]):
    """The attributes of a row of servers, read-only."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._values.keys() == other.keys() and all(meaning(value) == meaning(other[name]) for name, value in self.items())

    __hash__ = None  # type: ignore[assignment]  # 4 equals "4"

    def __repr__(self) -> str:
        return repr(self._values)


NONE = RowAttributes({})


def attributes_of(given: Any, servers: Sequence[str]) -> tuple[RowAttributes, ...]:
    """Return the attributes of each row of servers, checked: of a sequence with a mapping for each row, or of a mapping by label.

    Raises
    ------
    InvalidInstance
    """
    if given is None:
        return (NONE,) * len(servers)
    rows = rows_of("attributes", given, servers, "server")
    return tuple(_checked(row, server) for row, server in zip(rows, servers, strict=True))


def _checked(row: Any, server: str) -> RowAttributes:
    if isinstance(row, RowAttributes):
        return row
    if row is None or (isinstance(row, float) and row != row):
        return NONE
    if not isinstance(row, Mapping):
        raise InvalidInstance(f'server "{server}": its attributes are {written(row)}; give a mapping such as {{"model": "A100"}}')
    values: dict[str, Value] = {}
    for name, value in row.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f'server "{server}": the name of an attribute is {written(name)}; it must be text that is not blank')
        plain = value.item() if isinstance(value, np.generic) else value
        if not is_attribute(plain):
            raise InvalidInstance(
                f'server "{server}": its attribute "{brief(name)}" is {written(value)}; give text, a finite number, true or false'
            )
        values[name] = plain
    return RowAttributes(values) if values else NONE


def common(rows: Sequence[RowAttributes]) -> RowAttributes:
    """Return the attributes that all rows have, with one value.

    >>> common([RowAttributes({"model": "A100", "zone": "a"}), RowAttributes({"model": "A100", "zone": "b"})])
    {'model': 'A100'}
    """
    first, *others = rows
    if all(other is first for other in others):
        return first
    kept = {name: value for name, value in first.items() if all(name in each and meaning(each[name]) == meaning(value) for each in others)}
    return RowAttributes(kept) if kept else NONE
