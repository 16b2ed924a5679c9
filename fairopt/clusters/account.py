"""The account of an import: what was read, which records were left out and why, and notes on the instance as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from fairopt.clusters.imported import LeftOut
from fairopt.errors import InvalidInstance
from fairopt.wording import joined, named, plural

__all__ = ["Account"]

T = TypeVar("T")
_MOST = 5  # names in a note


class _Placed(Protocol):
    @property
    def place(self) -> str:
        """Its place in the export."""


P = TypeVar("P", bound=_Placed)


class _Record(Protocol):
    @property
    def part(self) -> _Placed:
        """Its place in the export."""

    @property
    def name(self) -> str:
        """Its name, which must be unique."""


R = TypeVar("R", bound=_Record)


class Account:
    """What was read and what was left out; it grows while exports are read.

    Parameters
    ----------
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.
    """

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.left_out: list[LeftOut] = []
        self.notes: list[str] = []
        self.summary: dict[str, object] = {}
        self._named: dict[tuple[str, str], tuple[int, list[str]]] = {}  # place of the note, and of whom it is

    def leave_out(self, what: str, where: str, why: str, number: float = 1.0) -> None:
        """Remember a record that is left out of the instance."""
        self.left_out.append(LeftOut(what, where, why, number))

    def bad(self, what: str, where: str, message: str) -> None:
        """Refuse a bad record, or leave it out if ``lenient``."""
        if not self.lenient:
            raise InvalidInstance(f"{where}: {message} (lenient=True or --lenient skips such records)")
        self.leave_out(what, where, message)

    def read(self, records: Iterable[P], reader: Callable[[P], T], what: str) -> list[T]:
        """Read every record; refuse a bad one, or leave it out if ``lenient``."""
        results = []
        for record in records:
            try:
                results.append(reader(record))
            except InvalidInstance as error:
                if not self.lenient:
                    raise InvalidInstance(f"{error} (lenient=True or --lenient skips such records)") from None
                message = str(error)
                inner = message.removeprefix(record.place).lstrip(".: ")
                self.leave_out(what, record.place, re.sub(r"\[\d+\]", "[...]", inner))
        return results

    def unique(self, records: Iterable[R], what: str) -> list[R]:
        """Return the first record of each name; another one is bad."""
        seen: dict[str, R] = {}
        for record in records:
            if record.name in seen:
                first = seen[record.name].part.place
                self.bad(what, record.part.place, f'{what} "{record.name}" is listed twice, first at {first}; list each {what} once')
            else:
                seen[record.name] = record
        return list(seen.values())

    def note(self, text: str) -> None:
        """Add a note on the instance as a whole, once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_of(self, what: str, name: str, text: str) -> None:
        """Add a note on one queue, node or namespace; where the same holds of several, one note says so of all of them.

        >>> account = Account(False)
        >>> for name in "ab":
        ...     account.note_of("queue", name, "deserves nothing")
        >>> account.notes
        ['each of 2 queues (a and b) deserves nothing']
        """
        place, names = self._named.setdefault((what, text), (len(self.notes), []))
        if name in names:
            return
        names.append(name)
        listed = f"each of {plural(len(names), what)} ({joined([named(each) for each in names], _MOST)})" if len(names) > 1 else f'"{name}"'
        self.notes[place : place + (len(names) > 1)] = [f"{listed} {text}"]

    def reasons(self) -> str:
        """Return why records were left out, for the message of an export of which nothing is left."""
        groups = dict.fromkeys((each.what, each.why) for each in self.left_out)
        listed = [f"{plural(sum(e.number for e in self.left_out if (e.what, e.why) == key), key[0])}: {key[1]}" for key in groups]
        return f"left out: {'; '.join(listed[:5])}" if listed else "the export lists none"
