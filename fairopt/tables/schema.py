"""What a table has: its columns, the kind of their cells, and what is meant where a column or a cell is missing.

Every reader of a table declares a `Schema`; `fairopt.tables.read` reads a file by it, and refuses a header that it does not allow.

>>> jobs = Schema(Column("user"), Column("submit", "time", aliases=("submit_s",)), Column("tasks", "number", default=1.0))
>>> jobs.header("jobs.csv", ["user", "submit_s", "cpu"])
['user', 'submit', 'cpu']
>>> jobs.header("jobs.csv", ["usr", "submit_s", "cpu"])
Traceback (most recent call last):
fairopt.errors.InvalidInstance: jobs.csv: there is no column "user" (did you mean "usr"?); the columns are usr, submit_s and cpu
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.wording import did_you_mean, joined

__all__ = ["NEEDED", "Column", "Kind", "Schema", "is_comment", "spelled"]

NEEDED: Any = object()
"""The default of a column that a table must have."""

Kind: TypeAlias = Literal["text", "name", "names", "number", "share", "time"]
"""Text, a name, names separated by ``|``; a number; a number that may be a percentage; a time or a date."""

NUMBERS = ("number", "share")
"""The kinds of numbers."""

_COMMENTS = {
    *("note", "notes", "comment", "comments", "contact", "contacts", "remark", "remarks", "description", "email", "e-mail"),
    *("notiz", "notizen", "kommentar", "kommentare", "bemerkung", "bemerkungen", "anmerkung", "anmerkungen", "kontakt", "beschreibung"),
}


def is_comment(name: str) -> bool:
    """Return whether a column of this name is for people only: it is called note, comment, contact, remark, description
    or email (also in German), or begins with ``#``.

    >>> is_comment("# asked on Monday"), is_comment("Contact"), is_comment("gpu")
    (True, True, False)
    """
    return name.strip()[:1] == "#" or name.strip().casefold() in _COMMENTS


def spelled(name: str, names: Collection[str]) -> str:
    """Return the one of some names that is spelled as this one but for case and the spaces around it; else this one.

    >>> spelled("GPU", ["gpu", "cpu"]), spelled("GPU", ["gpu", "Gpu"]), spelled("gpus", ["gpu"])
    ('gpu', 'GPU', 'gpus')
    """
    name = name.strip()
    alike = [each for each in names if each.casefold() == name.casefold()] if name not in names else []
    return alike[0] if len(alike) == 1 else name


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    kind : str
        Of its cells, one of `Kind`.
    default : object
        What is meant by a table without the column; `NEEDED`: there must be one.
    empty : float or None
        The number that an empty cell stands for; None: none, so that a number must be given.
    aliases : tuple of str
        Other names of the column, which count where its own is not there.
    counts : str
        What its numbers count, for messages.
    """

    name: str
    kind: Kind = "text"
    default: Any = NEEDED
    empty: float | None = None
    aliases: tuple[str, ...] = ()
    counts: str = ""


class Schema:
    """The columns of a table. Other columns are resources, attributes or servers, as the reader knows.

    Parameters
    ----------
    *columns : Column
    matrix : bool
        The first column names the rows, and the others are labels, which may have any name.
    grows : bool
        A program may be writing the table: its last line may be cut.
    loose : bool
        A short row has empty cells at its end.
    """

    def __init__(self, *columns: Column, matrix: bool = False, grows: bool = False, loose: bool = False) -> None:
        self.columns = {column.name: column for column in columns}
        self.first = columns[0].name
        self._spellings = {word: each.name for each in columns for word in (*reversed(each.aliases), each.name)}
        self.matrix, self.grows, self.loose = matrix, grows, loose

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def header_lacks(self, names: Sequence[str]) -> bool:
        """Return whether the first column of the schema is not there."""
        own = self._own_names(names)
        return self.first not in (own[:1] if self.matrix else own)

    def leaves_out(self, name: str, position: int) -> bool:
        """Return whether a column is a comment. In a matrix, where columns are labels, none is."""
        if self.matrix or not is_comment(name) or name.strip().casefold() in self._spellings:
            return False
        return position > 0 or _folded(name) != self.first

    def header(self, file: str, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of a table, without spaces around them, and those of the schema as they are called here.

        Raises
        ------
        InvalidInstance
            A column has no name or that of another, or one that is needed is not there.
        """
        if not names:
            raise InvalidInstance(f'{file}: there are no columns; there must be "{self.first}" and others')
        given, names = names, self._own_names(names)
        seen: set[str] = set()
        for position, name in enumerate(names):
            if name in seen:
                raise InvalidInstance(f'{file}: the column "{name}" occurs twice; rename or remove one')
            if position or not self.matrix:  # in a matrix, a server may be called "user"
                seen.add(name)
        if self.matrix and names[0] != self.first:
            raise InvalidInstance(f'{file}: the first column is not "{self.first}"{self._hint(self.first, given)}')
        for name, column in self.columns.items():
            if column.default is NEEDED and name not in names:
                raise self.missing(file, name, given)
        return names

    def missing(self, file: str, name: str, names: Sequence[str]) -> InvalidInstance:
        """Return the error about a column that is not there."""
        return InvalidInstance(f'{file}: there is no column "{name}"{self._hint(name, names)}')

    def _own_names(self, names: Sequence[str]) -> list[str]:
        """Return the names without spaces around them. A name of the schema is found in any case, where none is spelled exactly so."""
        names = [name.strip() for name in names]
        if self.matrix:
            return [self.first if not position and _folded(name) == self.first else name for position, name in enumerate(names)]
        taken = set(names)
        return [name if name in self.columns or (own := self._spellings.get(_folded(name), name)) in taken else own for name in names]

    def _hint(self, name: str, names: Sequence[str]) -> str:
        unknown = [each.strip() for each, own in zip(names, self._own_names(names), strict=True) if own not in self.columns]
        return f"{did_you_mean(name, unknown)}; the columns are {joined([each.strip() for each in names], 12)}"


def _folded(name: str) -> str:
    """Return a name without case, spaces around it, or a ``#`` before it, which makes the first line of a table a comment elsewhere."""
    return name.strip().lstrip("#").strip().casefold()
