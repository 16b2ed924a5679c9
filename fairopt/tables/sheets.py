"""The sheets of a spreadsheet as tables, whatever program has written it.

A row is counted as the spreadsheet program counts it. The first row that is not empty has the names of the columns.

>>> from fairopt.tables.schema import Column
>>> rows = [(2, [("s", "name"), ("s", "cpu")]), (4, [("s", "alice"), ("n", 2.0)])]
>>> table = Book(Path("lab.xlsx"), ["users"], lambda name: rows).table("users", Schema(Column("name")))
>>> table.raw("cpu"), table.place(0, "cpu")
(['2'], 'lab.xlsx, sheet users, row 4, column "cpu"')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.limits import check_table
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.wording import did_you_mean, joined

__all__ = ["Book", "Cell", "Sheet", "check_named", "width_of"]

Cell: TypeAlias = tuple[str, Any]
"""The kind of a cell and its value: "s" text, "n" a number or nothing, "b" a truth value, "d" a date, "e" an error, "f" a formula."""

Sheet: TypeAlias = Sequence[tuple[int, Sequence[Cell]]]
"""The rows that are not empty, with their numbers, each up to its last cell that is not empty."""


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

    def __init__(self, path: Path, names: Sequence[str], rows_of: Callable[[str], Sheet]) -> None:
        self.path, self.names, self._rows_of = path, names, rows_of
        if not names:
            raise InvalidInstance(f"{path} has no sheet; it must have the sheets servers and users")

    def first(self, schema: Schema) -> Table:
        """Return the first sheet as a table."""
        return self.table(self.names[0], schema)

    def table(self, sheet: str, schema: Schema) -> Table:
        """Return a sheet as a table.

        Raises
        ------
        InvalidInstance
            With the sheet, the row and the column.
        """
        if sheet not in self.names:
            hint = did_you_mean(sheet, self.names) or f"; the sheets are {joined(list(self.names), 8)}"
            raise InvalidInstance(f"{self.path}: there is no sheet {sheet}{hint}")
        file, rows = f"{self.path}, sheet {sheet}", self._rows_of(sheet)
        width = max((width_of(row) for _, row in rows), default=0)
        check_table(file, len(rows), width)
        (_, header), *body = rows or [(1, [])]
        check_named(file, header, width)
        columns = [value for _, value in _filled(header, width)]
        cells = [_filled(row, width) for _, row in body]
        table = Table(file, schema, columns, [[row[j][1] for row in cells] for j in range(width)], [number for number, _ in body], "row")
        for row, each in enumerate(cells):
            for j, (kind, value) in enumerate(each):
                if kind == "e":
                    table.refuse(f"the cell holds the error {value}; correct it", row, table.columns[j])
                if kind == "f" and value is None:
                    table.refuse("the formula has no value; open the file in a spreadsheet program and save it", row, table.columns[j])
        return table


def check_named(file: str, header: Sequence[Cell], width: int) -> None:
    """Refuse a table with a column that has no name, before millions of empty cells are filled in."""
    nameless = next((j for j, cell in enumerate(header[:width]) if not width_of([cell])), len(header))
    if nameless < width:
        raise InvalidInstance(f"{file}: column {nameless + 1} has no name; name it or remove it")


def width_of(row: Sequence[Cell]) -> int:
    """Return how many cells there are up to the last that is not empty."""
    return next((j for j in range(len(row), 0, -1) if row[j - 1][1] not in (None, "")), 0)


def _filled(row: Sequence[Cell], width: int) -> list[Cell]:
    return [*row, *[("n", None)] * (width - len(row))][:width]
