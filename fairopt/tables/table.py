"""CSV text to cells and back, with the line of every row.

It uses Python's csv module rather than pandas, for two reasons: messages name the line of a row that is too short or too long, and no
cell is converted by guess.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "users.csv").write_text("name,cpu\\nalice,two\\n")
...     table = read_table(Path(folder, "users.csv"), "name")
>>> table.cells("name"), table.lines
(['alice'], [2])
"""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.fractions import plain_numbers, written
from fairopt.instance.quantities import advice, plain, read
from fairopt.limits import check_table
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["Table", "check_columns", "read_table", "to_csv"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of one file, all text, and the line that each row starts on, or what else the rows of a typed table go by."""

    file: str
    columns: list[str]
    rows: list[list[str]]
    lines: list[Any]
    line: str = "line"
    _places: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def position(self, column: str) -> int | None:
        """Return the place of a column among the others; None if there is none of this name."""
        if not self._places:
            self._places.update((name, j) for j, name in reversed(list(enumerate(self.columns))))
        return self._places.get(column)

    def refuse(self, message: str, row: int | None = None, column: str | None = None) -> NoReturn:
        """Raise InvalidInstance for this place."""
        raise InvalidInstance(f"{self.place(row, column)}: {message}") from None

    def place(self, row: int | None = None, column: str | None = None) -> str:
        """Return the file and, if they are given, the line of the row and the column."""
        place = self.file if row is None else f"{self.file}, {self.line} {self.lines[row]}"
        return f'{place}, column "{column}"' if column in self.columns else place

    def cells(self, column: str) -> list[str]:
        """Return a column, without surrounding spaces; empty cells if there is no such column."""
        j = self.position(column)
        return [""] * len(self.rows) if j is None else [row[j].strip() for row in self.rows]

    def numbers(self, column: str, empty: float | None = None) -> list[float]:
        """Return a column as numbers; an empty cell is an error unless ``empty`` is given."""
        return [self.number(cell, row, column, empty) for row, cell in enumerate(self.cells(column))]

    def is_numeric(self, column: str) -> bool:
        """Does a column hold numbers and quantities alone, beside empty cells?"""
        cells = [cell for cell in self.cells(column) if cell]
        return bool(cells) and all(_is_number(cell) for cell in cells)

    def number(self, cell: str, row: int, column: str, empty: float | None = None, *, of_resource: bool = False) -> float:
        """Return the number that a cell holds, also as a fraction or with a unit."""
        if not cell.strip():
            if empty is None:
                self.refuse("the cell is empty; write 0 if you mean 0", row, column)
            return empty
        try:
            if "_" in cell:  # only Python allows it in numbers
                raise ValueError
            return written(cell)
        except ValueError:
            number = plain(cell, of_resource=False)
        if number is None:
            self.refuse(f'expected a number, found the text "{cell}"; {advice(cell, of_resource=of_resource)}', row, column)
        return number

    def amounts(self, column: str) -> list[float | str]:
        """Return a column of amounts of a resource: numbers, and quantities with a byte unit as they are written."""
        return [self.amount(cell, row, column) for row, cell in enumerate(self.cells(column))]

    def amount(self, cell: str, row: int, column: str) -> float | str:
        """Return the amount of a resource that a cell holds: a number, or a quantity with a byte unit as it is written."""
        if cell.strip()[-1:].isalpha():
            with contextlib.suppress(ValueError):
                if read(cell).in_bytes:
                    return cell
        return self.number(cell, row, column, of_resource=True)

    def aligned(self, users: Sequence[str], columns: Sequence[str]) -> Iterator[dict[str, float]]:
        """Yield the rows of a matrix as mappings, in the order of the users. Its labels must be exactly those users and columns."""
        given, wanted = dict.fromkeys(self.columns[1:]), dict.fromkeys(columns)
        for label in given:
            if label not in wanted:
                self.refuse(f'there is no "{label}"{did_you_mean(label, wanted)}; the columns must be those of the instance', None, label)
        for label in wanted:
            if label not in given:
                self.refuse(f'there is no column for "{label}"; add it')
        known, found = dict.fromkeys(users), dict[str, int]()
        for row, (user, *_) in enumerate(self.rows):
            if user in found:
                self.refuse(f'user "{user}" has a row already; remove one', row)
            if user not in known:
                self.refuse(f'there is no user "{user}"{did_you_mean(user, known)}', row)
            found[user] = row
        for user in known:
            if user not in found:
                self.refuse(f'there is no row for user "{user}"; add it')
        for user in users:
            cells = zip(self.columns[1:], self.rows[found[user]][1:], strict=True)
            yield {column: self.number(cell, found[user], column) for column, cell in cells}


def _is_number(cell: str) -> bool:
    """Is this a finite number, or a quantity with a unit?"""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        pass
    try:
        read(cell)
    except ValueError:
        return False
    return True


def read_table(path: Path, first: str, text: str | None = None) -> Table:
    """Read a file that must have the column ``first``. In a matrix that is ``user``, and it must come first.

    A caller that has read the file gives its text: what is read from a pipe is gone.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    table = Table(str(path), [], [], [])
    text = read_text(path) if text is None else text
    reader = csv.reader((line[0] for line in _LINE.finditer(text)), strict=True)  # io.StringIO would take four times the memory
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        table.refuse(f'a table is expected here, and this is no CSV file; give one whose first line names the columns, "{first}" first')
    line = 1
    try:
        for cells in reader:
            if cells and not table.columns:
                table.columns.extend(cells)
                check_table(str(path), max(text.count("\n"), text.count("\r")), len(cells))
            elif cells:
                table.rows.append(cells)
                table.lines.append(line)
                if len(cells) != len(table.columns):
                    number = plural(len(cells), "cell")
                    table.refuse(f"the row has {number} for {len(table.columns)} columns; put cells that hold commas in quotes", -1)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInstance(f"{path}, line {reader.line_num}: not valid CSV: {error}; correct it there or just before") from None
    if not table.columns:
        table.refuse(f'the file is empty; its first line must name the columns, "{first}" first')
    if len(table.columns) == 1 and first not in table.columns:
        table.refuse(f'{"the first column is not" if first == "user" else "there is no column"} "{first}"; separate columns by commas')
    check_columns(table, first)
    return table


def check_columns(table: Table, first: str) -> None:
    """Refuse a table without rows, without the column ``first``, or with columns that have no name or that of another.

    Raises
    ------
    InvalidInstance
    """
    if not table.columns:
        table.refuse(f'there are no columns; there must be "{first}" and others')
    labels_from = 1 if first == "user" else 0  # in a matrix, a server may be called "user"
    seen: set[str] = set()
    for position, column in enumerate(table.columns):
        if not column.strip():
            table.refuse(f"column {position + 1} has no name; name it or remove it")
        if column in seen:
            table.refuse(f'the column "{column}" occurs twice; rename or remove one')
        if position >= labels_from:
            seen.add(column)
    if first not in table.columns or (first == "user" and table.columns[0] != first):
        hint = f"{did_you_mean(first, table.columns)}; the columns are {joined(table.columns, 12)}"
        table.refuse(f'{"the first column is not" if first == "user" else "there is no column"} "{first}"{hint}')
    if not table.rows:
        table.refuse("there are no rows below the names of the columns; there must be at least one")


def to_csv(columns: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return CSV text; numbers are as short as they can be without loss.

    >>> to_csv(["name", "cpu"], [["A", 9.0], ["x, y", 0.1]])
    'name,cpu\\nA,9\\n"x, y",0.1\\n'
    """
    return "".join(",".join(_cell(plain_numbers(value)) for value in row) + "\n" for row in [columns, *rows])


def _cell(value: object) -> str:
    text = str(value)  # Python's csv.writer leaves a lone carriage return unquoted, which its reader then refuses
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') or text != text.strip() else text
