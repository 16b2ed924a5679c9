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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.wording import did_you_mean, joined

__all__ = ["NEEDED", "Column", "Kind", "Schema"]

NEEDED: Any = object()
"""The default of a column that a table must have."""

Kind: TypeAlias = Literal["text", "name", "names", "number", "amount", "time"]
"""Text without the spaces around it; a name as it is; names separated by ``|``; a number; the amount of a resource; a time or a date."""


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
    """

    name: str
    kind: Kind = "text"
    default: Any = NEEDED
    empty: float | None = None
    aliases: tuple[str, ...] = ()


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
        Spaces around the name of a column mean nothing, and a short row has empty cells at its end.
    """

    def __init__(self, *columns: Column, matrix: bool = False, grows: bool = False, loose: bool = False) -> None:
        self.columns = {column.name: column for column in columns}
        self.first = columns[0].name
        self.matrix, self.grows, self.loose = matrix, grows, loose

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def header_lacks(self, names: Sequence[str]) -> bool:
        """Return whether the first column of the schema is not there."""
        return self.first not in self._own_names(names)

    def header(self, file: str, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of a table, those of the schema as they are called here.

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
            if not name.strip():
                raise InvalidInstance(f"{file}: column {position + 1} has no name; name it or remove it")
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
        own = {alias: name for name, column in self.columns.items() if name not in names for alias in (name, *column.aliases)}
        return [own.get(name.strip() if self.loose else name, name) for name in names] if own else list(names)

    def _hint(self, name: str, names: Sequence[str]) -> str:
        return f"{did_you_mean(name, names)}; the columns are {joined(list(names), 12)}"
