"""The cells of a table and their places, whatever kind of file it is from.

A cell is text, or the value of a typed file: a Parquet file, a workbook, a frame. A value becomes the text that a CSV file would hold: a
number the shortest that means it exactly, without a decimal point if it is whole; a missing value (None, NaN, NA) an empty cell; true and
false are words; a list of names is joined by ``|``.

>>> table = Table("users.csv", USERS, ["name", "cpu"], [["alice", "bob"], ["two", "1/2"]], [2, 3])
>>> table.cells("name"), table.number("1/2", 1, "cpu")
(['alice', 'bob'], 0.5)
>>> table.numbers("cpu")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: users.csv, line 2, column "cpu": expected a number, found the text "two"; write digits, or a quantity ...
"""

from __future__ import annotations

import contextlib
import datetime
import io
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import plain_numbers, written
from fairopt.instance.quantities import advice, plain, read
from fairopt.tables.schema import Column, Schema
from fairopt.validation import BoolArray, FloatArray
from fairopt.wording import did_you_mean, found

__all__ = ["Rows", "Table"]

USERS = Schema(Column("name"))
_MANY = 10_000  # rows: pandas converts them five times faster than Python, but must be loaded
_DIGITS = 15  # so many are the same number to Python and pandas, whatever pandas' precision
Values: TypeAlias = Sequence[Any] | np.ndarray[Any, Any]


class Table:
    """The cells of one table, by column.

    Parameters
    ----------
    file : str
        What messages call it.
    schema : Schema
    columns : sequence of str
        Their names in the table.
    values : sequence of sequences
        The cells of each column: texts, values, or an array of numbers.
    lines : sequence
        What the rows go by in messages: numbers of lines or rows, or labels.
    line : str
        What that is: "line" or "row".
    texts : bool
        All cells are lists of texts already.

    Raises
    ------
    InvalidInstance
        The schema does not allow these columns, or there are no rows.
    """

    def __init__(
        self,
        file: str,
        schema: Schema,
        columns: Sequence[object],
        values: Sequence[Values],
        lines: Sequence[Any],
        line: str = "line",
        *,
        texts: bool = False,
    ) -> None:
        self.file, self.schema, self.lines, self.line = file, schema, lines, line
        self.columns = schema.header(file, [_name(file, column, j) for j, column in enumerate(columns)])
        self._values = values
        self._positions = {name: j for j, name in reversed(list(enumerate(self.columns)))}
        if not len(lines):
            self.refuse("there are no rows below the names of the columns; there must be at least one")
        self._texts: dict[int, list[str]] = {j: list(cells) for j, cells in enumerate(values)} if texts else {}
        self.cut = ""
        """Which line is cut and left out."""

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, column: str) -> bool:
        return column in self._positions

    # Places --------------------------------------------------------------------------------------------------------------------

    def place(self, row: int | None = None, column: str | None = None) -> str:
        """Return the file and, if they are given, the line of the row and the column."""
        place = self.file if row is None else f"{self.file}, {self.line} {self.lines[row]}"
        return f'{place}, column "{column}"' if column in self._positions else place

    def refuse(self, message: str, row: int | None = None, column: str | None = None) -> NoReturn:
        """Raise InvalidInstance for this place."""
        raise InvalidInstance(f"{self.place(row, column)}: {message}") from None

    # Columns -------------------------------------------------------------------------------------------------------------------

    def values(self, column: str) -> Values:
        """Return a column as the file has it; empty cells if there is no such column."""
        j = self._positions.get(column)
        return [""] * len(self) if j is None else self._values[j]

    def raw(self, column: str) -> list[str]:
        """Return a column as text, with the spaces around it; empty cells if there is no such column."""
        j = self._positions.get(column)
        return [""] * len(self) if j is None else self._text(j)

    def cells(self, column: str) -> list[str]:
        """Return a column as text, without the spaces around it; empty cells if there is no such column."""
        cells = self.raw(column)
        text = "".join(cells)  # looked at as a whole, which is faster: nearly no table has spaces there
        return cells if text.split(maxsplit=1) in ([], [text]) else [cell.strip() for cell in cells]

    def matrix(self) -> list[list[str]]:
        """Return the cells of all columns but the first, as they are, by column."""
        return [self._text(j) for j in range(1, len(self.columns))]

    def names(self, column: str) -> list[list[str]]:
        """Return a column of names separated by ``|``; no names where the cell is empty."""
        return [[part.strip() for part in cell.split("|")] if cell else [] for cell in self.cells(column)]

    def numbers(self, column: str) -> list[float]:
        """Return a column as numbers, exactly."""
        if column not in self:
            return [self.schema.columns[column].default] * len(self)
        empty = self._empty(column)
        return [self.number(cell, row, column, empty) for row, cell in enumerate(self.cells(column))]

    def amounts(self, column: str) -> list[float | str]:
        """Return a column of amounts of a resource: numbers, and quantities with a byte unit as they are written."""
        return [self.amount(cell, row, column) for row, cell in enumerate(self.cells(column))]

    def decimals(self, column: str) -> FloatArray | None:
        """Return a long column of plain decimals, such as 12.5, as an array, nan where a cell is empty; None of any other column."""
        cells = self.raw(column)
        if len(cells) < _MANY or max(map(len, cells)) > _DIGITS:
            return None
        text = "\n".join([*cells, ""]).encode(errors="replace")
        if text.translate(None, b" .0123456789\n"):
            return None
        import pandas as pd

        with contextlib.suppress(ValueError):
            numbers = pd.read_csv(io.BytesIO(text), names=[column], dtype=float, skip_blank_lines=False).to_numpy().ravel()
            return numbers if len(numbers) == len(cells) else None
        return None

    def floats(self, column: str, bad: Callable[[int, str, str], object] | None = None, *, of_resource: bool = False) -> FloatArray:
        """Return a column as an array; nan where a cell is empty and stands for nothing, and where it is no number.

        Of the latter, ``bad`` is called with the row, what is wrong, and the column; by default it is refused. Amounts of a resource
        (an empty cell is 0) must all have a byte unit if one has, but for 0.
        """
        if column not in self:
            return np.full(len(self), float(self.schema.columns[column].default))
        values, empty = self.values(column), 0.0 if of_resource else self._empty(column)
        if isinstance(values, np.ndarray):
            numbers = values.astype(float)
            return numbers if empty is None else np.where(np.isnan(numbers), empty, numbers)
        decimals = self.decimals(column)
        if decimals is not None:
            return decimals if empty is None else np.where(np.isnan(decimals), empty, decimals)
        blank = "nan" if empty is None else str(empty)
        cells = [cell or blank for cell in self.cells(column)]
        with contextlib.suppress(ValueError):
            return np.fromiter(map(float, cells), float, len(self))
        refuse = bad or (lambda row, message, column: self.refuse(message, row, column))
        meant = {cell: _meant(cell, of_resource) for cell in dict.fromkeys(cells)}
        found = np.array([meant[cell][0] for cell in cells])
        in_bytes = np.array([meant[cell][1] for cell in cells])
        unit = cells[int(np.argmax(in_bytes))] if in_bytes.any() else ""
        for row in np.flatnonzero(np.isnan(found)).tolist():
            if not meant[cells[row]][2]:
                refuse(row, _no_number(cells[row], of_resource), column)
        for row in np.flatnonzero(~in_bytes & (found > 0)).tolist() if unit else ():
            refuse(row, f"{cells[row]} has no byte unit, but {unit} in another row has; give all of them one", column)
        return found

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
        for row, user in enumerate(self._text(0)):
            if user in found:
                self.refuse(f'user "{user}" has a row already; remove one', row)
            if user not in known:
                self.refuse(f'there is no user "{user}"{did_you_mean(user, known)}', row)
            found[user] = row
        for user in known:
            if user not in found:
                self.refuse(f'there is no row for user "{user}"; add it')
        cells = list(zip(*self.matrix(), strict=True))
        for user in users:
            row = found[user]
            yield {column: self.number(cell, row, column) for column, cell in zip(self.columns[1:], cells[row], strict=True)}

    # Cells ---------------------------------------------------------------------------------------------------------------------

    def is_numeric(self, column: str) -> bool:
        """Does a column hold numbers and quantities alone, beside empty cells?"""
        cells = [cell for cell in self.cells(column) if cell]
        return bool(cells) and all(_is_number(cell) for cell in cells)

    def number(self, cell: str, row: int, column: str, empty: float | None = None, *, of_resource: bool = False) -> float:
        """Return the number that a cell holds, also as a fraction or with a unit; of an empty cell ``empty``, an error if that is None."""
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
            self.refuse(_no_number(cell, of_resource), row, column)
        return number

    def amount(self, cell: str, row: int, column: str) -> float | str:
        """Return the amount of a resource that a cell holds: a number, or a quantity with a byte unit as it is written."""
        if cell.strip()[-1:].isalpha():
            with contextlib.suppress(ValueError):
                if read(cell).in_bytes:
                    return cell
        return self.number(cell, row, column, of_resource=True)

    def _empty(self, column: str) -> float | None:
        declared = self.schema.columns.get(column)
        return None if declared is None else declared.empty

    def _text(self, j: int) -> list[str]:
        if j not in self._texts:
            values, name = self._values[j], self.columns[j]
            declared = self.schema.columns.get(name)
            dates = declared is not None and declared.kind == "time"
            values = values.tolist() if isinstance(values, np.ndarray) else values
            self._texts[j] = (
                list(values)
                if set(map(type, values)) == {str}
                else [each if type(each) is str else self._text_of(each, row, name, dates) for row, each in enumerate(values)]
            )
        return self._texts[j]

    def _text_of(self, value: Any, row: int, column: str, dates: bool) -> str:
        """Return a value as the text that means it exactly."""
        if value is None or value != value:
            return ""
        if hasattr(value, "tolist"):  # of numpy
            value = value.tolist()
        if isinstance(value, str):
            return str(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(plain_numbers(value))
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            if any("|" in each or each != each.strip() for each in value) or not value:
                self.refuse('names in a list must not hold "|" or spaces around them; use the table eligibility', row, column)
            return "|".join(value)
        if type(value).__name__ in ("Decimal", "Fraction"):
            return str(value)
        if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
            if dates and isinstance(value, datetime.date):
                return value.isoformat()
            self.refuse(f"expected text or a number, found the date or time {value}; write it as text", row, column)
        self.refuse(f"expected text or a number, found {found(value)[:60]}", row, column)


class Rows:
    """A table of records; bad ones are remembered, to be refused or left out.

    Attributes
    ----------
    table : Table
    bad : dict of int to str
        The place of each bad row, and what is wrong with it: the first mistake that was found.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.bad: dict[int, str] = {}

    def wrong(self, row: int, message: str, column: str | None = None) -> None:
        """Remember what is wrong with a row."""
        self.bad.setdefault(row, f"{self.table.place(row, column)}: {message}")

    def mark(self, rows: BoolArray | Sequence[bool], message: str, column: str | None = None) -> None:
        """Remember what is wrong with some rows."""
        for row in np.flatnonzero(rows).tolist():
            self.wrong(row, message, column)

    def floats(self, column: str, *, of_resource: bool = False) -> FloatArray:
        """Return a column as numbers; a cell that is no number makes its row bad."""
        return self.table.floats(column, self.wrong, of_resource=of_resource)

    @property
    def first(self) -> str:
        """What is wrong with the first bad row."""
        return self.bad[min(self.bad)]


def _meant(cell: str, of_resource: bool) -> tuple[float, bool, bool]:
    """Return the number that a cell means, nan if it is none; whether it has a byte unit; and whether it is a number."""
    try:
        return float(cell), False, True
    except ValueError:
        number = plain(cell, of_resource=of_resource)
    return (np.nan, False, False) if number is None else (float(number), plain(cell, of_resource=False) is None, True)


def _no_number(cell: str, of_resource: bool) -> str:
    return f'expected a number, found the text "{cell}"; {advice(cell, of_resource=of_resource)}'


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


def _name(file: str, column: object, position: int) -> str:
    if column is None or isinstance(column, str):
        return column or ""
    if isinstance(column, int | float) and not isinstance(column, bool):
        return str(plain_numbers(column))
    raise InvalidInstance(f"{file}: the name of column {position + 1} is {found(column)}; names are text")
