"""The fields of a scheduler's records: which an import reads, which it notes, which it ignores, and why; declared as data.

Nothing that divides a cluster is dropped in silence: a record that has a field which is *noted* (an instance cannot have what it says), or
one that is not declared at all, is counted, and the import says so once for each field. Tables of the documentation show the declarations.

>>> job = declared("job", '''
...     read | job_id, JobId | its number
...     noted | contiguous | its nodes are side by side
...     ignored | comment | remarks
... ''')
>>> seen = Seen()
>>> seen.see(job, {"job_id": 7, "contiguous": True, "color": "red", "comment": "x", "size": None})
>>> for note in seen.notes():
...     print(note)
1 job has contiguous (its nodes are side by side), which an instance does not have: it does not count
1 job has the field color, which this import does not know: it does not count
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from fairopt.wording import plural

__all__ = ["Field", "Fields", "Seen", "Use", "declared", "says_something"]

Use: TypeAlias = Literal["read", "noted", "ignored"]
_NOTHING = ("", "0", "(null)", "n/a", "none", "no", "unlimited", "unknown", "-1", "false", "off", "disabled")


@dataclass(frozen=True, slots=True)
class Field:
    """Fields of one use: their names, in each form of the export, and what they say, or why they are ignored."""

    use: Use
    names: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one kind of record, such as "job"; ``maximums.nodes`` is the field nodes of the field maximums."""

    record: str
    fields: tuple[Field, ...]

    def of(self, use: Use) -> dict[str, str]:
        """Return what the fields of a use say, by their names."""
        return {name: field.why for field in self.fields if field.use == use for name in field.names}


def declared(record: str, text: str) -> Fields:
    """Return the fields that a text declares: ``use | names | why`` in each line, names with commas between them."""
    fields = []
    for line in filter(None, map(str.strip, text.splitlines())):
        use, names, why = (part.strip() for part in line.split("|"))
        if use not in get_args(Use):
            raise ValueError(f'"{use}" is no use of a field: {line}')
        fields.append(Field(use, tuple(name.strip() for name in names.split(",")), why))  # type: ignore[arg-type]
    return Fields(record, tuple(fields))


def says_something(value: Any) -> bool:
    """Return whether a value is not null, empty, zero, unset or infinite.

    >>> [says_something(value) for value in ({"set": False, "number": 5}, [], 0, "N/A", ["x"], {"set": True, "number": 2})]
    [False, False, False, False, True, True]
    """
    if isinstance(value, str):
        return value.strip().lower() not in _NOTHING
    if isinstance(value, Mapping):
        if "set" in value and "number" in value:
            return bool(value["set"]) and not value.get("infinite") and says_something(value["number"])
        return any(map(says_something, value.values()))
    if isinstance(value, list):
        return any(map(says_something, value))
    return bool(value) and value != -1


class Seen:
    """How many records have each field that an instance does not have."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[Fields, frozenset[str], Counter[str]]] = {}
        self._nested: dict[str, list[tuple[str, str, str]]] = {}

    def see(self, fields: Fields, record: object) -> None:
        """Count the fields of a record that say something, and are neither read nor ignored."""
        if not isinstance(record, Mapping):
            return  # damaged: the reader refuses it, or leaves it out
        _, quiet, counts = self._of(fields)
        counts.update(name for name in record if name not in quiet and says_something(record[name]))
        for name, outer, inner in self._nested[fields.record]:
            value = record.get(outer)
            counts.update([name] if isinstance(value, Mapping) and says_something(value.get(inner)) else [])

    def _of(self, fields: Fields) -> tuple[Fields, frozenset[str], Counter[str]]:
        if fields.record not in self._counts:
            self._counts[fields.record] = fields, frozenset(fields.of("read") | fields.of("ignored")), Counter()
            self._nested[fields.record] = [(name, *name.split(".", 1)) for name in fields.of("noted") if "." in name]  # type: ignore[misc]
        return self._counts[fields.record]

    def counts(self, fields: Fields, name: str) -> bool:
        """Return whether a field is neither read nor ignored."""
        return name not in self._of(fields)[1]

    def add(self, fields: Fields, name: str, number: int) -> None:
        """Count a field that so many records have, of a table of columns."""
        if number and self.counts(fields, name):
            self._of(fields)[2][name] += number

    def notes(self) -> list[str]:
        """Return a sentence for each such field."""
        found = []
        for fields, _, counts in self._counts.values():
            noted = fields.of("noted")
            for name, number in counts.items():
                have = plural(number, f"{fields.record} has", f"{fields.record}s have")
                if name in noted:
                    found.append(f"{have} {name} ({noted[name]}), which an instance does not have: it does not count")
                else:
                    found.append(f"{have} the field {name}, which this import does not know: it does not count")
        return found
