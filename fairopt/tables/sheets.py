"""The sheets of a spreadsheet as tables, whatever program has written it.

A sheet is found by its name in any case. A row is counted as the spreadsheet program counts it. The names of the columns are in the first
row that is not empty, or below titles, which are rows of one cell. A cell that is merged with others is refused: its value may count once,
or for each of them.

>>> from fairopt.tables.schema import Column
>>> rows = [(1, [("s", "Our lab")]), (2, [("s", "Name"), ("s", "cpu")]), (4, [("s", "alice"), ("n", 2.0)])]
>>> table = Book(Path("lab.xlsx"), ["Users"], lambda name: rows).table("users", Schema(Column("name")))
>>> table.raw("cpu"), table.place(0, "cpu")
(['2'], 'lab.xlsx, sheet Users, row 4, column "cpu"')
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_table
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.tables.values import Unreadable, is_blank
from fairopt.wording import brief, did_you_mean, joined

__all__ = ["Book", "Cell", "Sheet", "check_named", "width_of"]

Cell: TypeAlias = tuple[str, Any]
"""The kind of a cell and its value: "s" text, "n" a number or nothing, "b" a truth value, "d" a date, "e" an error, "f" a formula.

"m" is a cell that is merged with others, whatever it holds.
"""

Sheet: TypeAlias = Sequence[tuple[int, Sequence[Cell]]]
"""The rows that are not empty, with their numbers, each up to its last cell that is not empty."""

_WRONG = {
    "e": "the cell holds the error {value}; correct it",
    "f": "the formula has no value; open the file in a spreadsheet program and save it",
    "m": "the cell is merged with others, so its value may count once or for each; take them apart and write the value in every row",
}
_MOST_TITLES = 20  # rows above the names of the columns

log = logging.getLogger("fairopt.tables")


class Book:
    """The sheets of a file.

    Parameters
    ----------
    path : Path
    names : sequence of str
    rows_of : function
        Returns the rows of a sheet, by its name.

    Raises
    ------
    InvalidInstance
        There is no sheet.
    """

    def __init__(self, path: Path, names: Sequence[str], rows_of: Callable[[str], Sheet], hidden: Collection[str] = ()) -> None:
        self.path, self.names, self._rows_of, self._hidden = path, names, rows_of, hidden
        if not names:
            raise InvalidInstance(f"{path} has no sheet; it must have the sheets servers and users")

    def __contains__(self, name: str) -> bool:
        return self._found(name) is not None

    def first(self, schema: Schema, mistakes: Mistakes | None = None) -> Table:
        """Return the first sheet that is not hidden as a table."""
        return self.table(next((name for name in self.names if name not in self._hidden), self.names[0]), schema, mistakes)

    def table(self, name: str, schema: Schema, mistakes: Mistakes | None = None, others: Collection[str] = ()) -> Table:
        """Return a sheet as a table. Mistakes in cells are raised, or kept.

        Raises
        ------
        InvalidInstance
            With the sheet, the row and the column. If there is no such sheet, the message names one that may be meant, and none of
            ``others``.
        """
        sheet = self._found(name)
        if sheet is None:
            free = [each for each in self.names if _folded(each) not in others]
            hint = did_you_mean(name, free) or f"; the sheets are {joined(list(self.names), 8)}: rename the one that is meant, or add it"
            raise InvalidInstance(f"{self.path}: there is no sheet {name}{hint}")
        if sheet in self._hidden:
            log.warning("%s: the sheet %s is hidden, and is read; delete it if it is out of use", self.path, sheet)
        file, rows = f"{self.path}, sheet {sheet}", self._rows_of(sheet)
        check_table(file, len(rows), max((width_of(row) for _, row in rows), default=0))
        (_, header), *body = rows[_titles(rows, schema) :] or [(1, [])]
        named = {j: value for j, (_, value) in enumerate(header) if not is_blank(value)}
        has_gaps = max(named, default=-1) >= len(named)
        for number, row in body:
            if has_gaps or len(row) > len(named):
                check_named(file, named, number, row)
        empty = ("n", None)
        values = [[_value(*(row[j] if j < len(row) else empty)) for _, row in body] for j in named]
        return Table(file, schema, list(named.values()), values, [number for number, _ in body], "row", mistakes=mistakes)

    def _found(self, name: str) -> str | None:
        """Return the sheet of a name, spelled so or in another case."""
        return name if name in self.names else next((each for each in self.names if _folded(each) == _folded(name)), None)


def check_named(file: str, named: Collection[int], number: int, row: Sequence[Cell]) -> None:
    """Refuse a row with a value in a column that has no name; ``named`` are the columns that have one, from 0."""
    for j, (kind, value) in enumerate(row):
        if j not in named and kind != "f" and not is_blank(value):  # a formula may come to nothing
            raise InvalidInstance(
                f'{file}: column {j + 1} has no name, and holds "{brief(str(value), 40)}" in row {number}; name it (note, if it is for '
                "people only), or remove it"
            )


def _value(kind: str, value: Any) -> Any:
    """Return the value of a cell, or why there is none."""
    is_unknown = kind in _WRONG and (value is None if kind == "f" else not is_blank(value))
    return Unreadable(_WRONG[kind].format(value=value)) if is_unknown else value


def width_of(row: Sequence[Cell]) -> int:
    """Return how many cells there are up to the last that is not empty."""
    return next((j for j in range(len(row), 0, -1) if row[j - 1][1] not in (None, "")), 0)


def _titles(rows: Sheet, schema: Schema) -> int:
    """Return how many rows of one cell, or comments, are above the names of the columns; 0 if there are no such names."""
    for number, (_, row) in enumerate(rows[:_MOST_TITLES]):
        cells = ["" if is_blank(value) else str(value) for _, value in row]
        if cells and not schema.header_lacks([cell for cell in cells if cell] if schema.matrix else cells):
            return number
        if sum(map(bool, cells)) > 1 and next(filter(None, cells)).strip()[0] != "#":
            break
    return 0


def _folded(name: str) -> str:
    return name.strip().casefold()
