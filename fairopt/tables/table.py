"""The cells of a table and their places, whatever kind of file it is from.

A cell is text, or the value of a typed file: a Parquet file, a workbook, a frame. A value becomes the text that a CSV file would hold: a
number the shortest that means it exactly, without a decimal point if it is whole; a missing value (None, NaN, NA) an empty cell; true and
false are words; a list of names is joined by ``|``. Text in a column of numbers is read as people write numbers
(:mod:`fairopt.instance.numerals`): all numbers of a table have the same decimal sign.

Rows and columns without content are left out, and so are columns of comments. Spaces around a cell mean nothing.

>>> table = Table("users.csv", USERS, ["name", "cpu"], [["alice", "bob"], ["two", "1/2"]], [2, 3])
>>> table.cells("name"), table.number("1/2", 1, "cpu")
(['alice', 'bob'], 0.5)
>>> Table("users.csv", USERS, ["Name ", "cpu", "notes", ""], [["alice", ""], ["0,5", ""], ["", ""], ["", ""]], [2, 3]).numbers("cpu")
[0.5]
>>> table.numbers("cpu")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: users.csv, line 2, column "cpu": expected a number, found the text "two"; write digits, or a quantity ...
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import written
from fairopt.instance.numerals import Numeral, numeral
from fairopt.instance.quantities import percentage, plain, read
from fairopt.instance.units import BYTES
from fairopt.tables.cells import float_of, is_number, no_number
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import NEEDED, NUMBERS, Column, Schema
from fairopt.tables.values import STAND_IN, Percentage, Values, is_blank, name_of, part, rows_with_content, stripped, text_of
from fairopt.validation import FloatArray
from fairopt.wording import brief

__all__ = ["Table"]

USERS = Schema(Column("name"))
_MANY = 10_000  # rows: pandas converts them five times faster than Python, but must be loaded
_DIGITS = 15  # so many are the same number to Python and pandas, whatever pandas' precision


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
    point : bool
        The decimal sign is a point where the numbers do not show another.
    mistakes : Mistakes, optional
        Where mistakes in cells are kept; by default, the first is raised.

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
        point: bool = True,
        mistakes: Mistakes | None = None,
    ) -> None:
        self.file, self.schema, self.line, self.mistakes = file, schema, line, mistakes
        given = [name_of(file, column, j) for j, column in enumerate(columns)]
        kept = [j for j, name in enumerate(given) if name.strip() or not all(map(is_blank, values[j]))]
        rows = rows_with_content([values[j] for j in kept], texts=texts)
        if rows is not None:
            values, lines = [part(each, rows) for each in values], [lines[row] for row in rows]
        self.lines, self._point = lines, point
        self._positions: dict[str, int] = {}
        for j in kept:
            if not given[j].strip():
                row = next(row for row, value in enumerate(values[j]) if not is_blank(value))
                what = f'column {j + 1} has no name, and holds "{brief(str(values[j][row]), 40)}"'
                self.refuse(f"{what} in {self.line} {self.lines[row]}; name it (note, if it is for people only), or remove it")
        self.comments = [given[j].strip() for j in kept if schema.leaves_out(given[j], j)]
        """The names of the columns that are left out."""
        kept = [j for j in kept if not schema.leaves_out(given[j], j)]
        self.columns = schema.header(file, [given[j] for j in kept])
        self._values = [values[j] for j in kept]
        self._positions = {name: j for j, name in reversed(list(enumerate(self.columns)))}
        if not len(lines):
            if mistakes is not None:
                mistakes.refuse()
            self.refuse("there are no rows below the names of the columns; there must be at least one")
        self._all_texts = texts
        self._texts: dict[int, list[str]] = {j: list(cells) for j, cells in enumerate(self._values)} if texts else {}
        self._plain: dict[int, list[str]] = {}
        self._unclear: dict[str, Numeral] = {}
        self._resources: Sequence[str] | None = None
        self._unknown: set[tuple[int, str]] = set()
        self.wrong_rows: set[int] = set()
        """The rows with mistakes that are kept."""
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

    def wrong(self, row: int | None, message: str, column: str | None = None) -> None:
        """Keep a mistake if mistakes are kept, else raise InvalidInstance."""
        if self.mistakes is None:
            self.refuse(message, row, column)
        self.mistakes.add(f"{self.place(row, column)}: {message}")
        if row is not None:
            self.wrong_rows.add(row)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Leave the rest of a ``with`` statement out at a mistake, which is kept if mistakes are kept, else raised."""
        mistakes, self.mistakes = self.mistakes, None
        try:
            yield
        except InvalidInstance as error:
            if mistakes is None:
                raise
            mistakes.add(str(error))
        finally:
            self.mistakes = mistakes

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
        return stripped(self.raw(column))

    def matrix(self) -> list[list[str]]:
        """Return the cells of all columns but the first, numbers as `plain` has them, by column."""
        return [self.plain_at(j) for j in range(1, len(self.columns))]

    def names(self, column: str) -> list[list[str]]:
        """Return a column of names separated by ``|``; no names where the cell is empty."""
        return [[part.strip() for part in cell.split("|")] if cell else [] for cell in self.cells(column)]

    def numbers(self, column: str) -> list[float]:
        """Return a column as numbers, exactly. Of a cell that is none, a mistake is kept or raised."""
        if column not in self:
            return [self.schema.columns[column].default] * len(self)
        empty = self._empty(column)
        return [self.number(cell, row, column, empty) for row, cell in enumerate(self.plain(column))]

    def amounts(self, column: str, unit: str = "") -> list[float | str]:
        """Return a column of amounts of a resource: numbers, and quantities with a byte unit as they are written.

        ``unit`` is that of the resource: a number with it is the number.
        """
        return [self.amount(cell, row, column, unit) for row, cell in enumerate(self.plain(column))]

    def leave_out(self, left_out: Collection[int]) -> None:
        """Leave out some rows."""
        rows = [row for row in range(len(self)) if row not in left_out]
        self._values, self.lines = [part(each, rows) for each in self._values], [self.lines[row] for row in rows]
        self._texts = {j: list(cells) for j, cells in enumerate(self._values)} if self._all_texts else {}
        self._plain.clear()

    # Numbers as people write them ------------------------------------------------------------------------------------------------

    @property
    def resources(self) -> Sequence[str]:
        """The columns without a meaning of their own that hold numbers; by default, all of them."""
        return [each for each in self.columns if each not in self.schema] if self._resources is None else self._resources

    @resources.setter
    def resources(self, columns: Sequence[str]) -> None:
        self._resources = columns

    @cached_property
    def decimal(self) -> str:
        """The decimal sign of the numbers in this table: "." or ","; "" if they show none, and "both" if they show both."""
        own = [each.name for each in self.schema.columns.values() if each.kind in (*NUMBERS, "time") and each.name in self]
        positions = range(1, len(self.columns)) if self.schema.matrix else [self._positions[each] for each in (*own, *self.resources)]
        cells = [self._texts_at(j) for j in positions]
        there = {"," for column in cells if "," in "".join(column)}
        if self._point and not there:
            return "."
        there |= {"." for column in cells if "." in "".join(column)}
        if not there:
            return "."
        found: set[str] = set()
        for cell in dict.fromkeys(chain.from_iterable(cells)):
            read = numeral(cell)
            if read is not None and not read.grouped and read.decimal:
                found.add(read.decimal)
                if found == there:
                    break
        return "both" if len(found) > 1 else "".join(found)

    def plain(self, column: str) -> list[str]:
        """Return a column of numbers as texts with a decimal point and nothing between digits; other texts as they are."""
        return self.plain_at(self._positions[column])

    def shares(self, column: str) -> list[str]:
        """Return the same, with a percentage where a spreadsheet shows one."""
        values = self._values[self._positions[column]]
        if self._all_texts or isinstance(values, np.ndarray):
            return self.plain(column)
        return [value.text if isinstance(value, Percentage) else cell for value, cell in zip(values, self.plain(column), strict=True)]

    def plain_at(self, j: int) -> list[str]:
        """Return the same of the column at a position: in a matrix, a server may have the name of the first column."""
        if j not in self._plain:
            values = self._values[j]
            if self._all_texts:
                cells = stripped(self._texts[j])
                meant = {cell: self._meant(cell) for cell in dict.fromkeys(cells)}
                self._plain[j] = [meant[cell] for cell in cells]
            elif isinstance(values, np.ndarray):
                self._plain[j] = self._text(j)
            else:
                name, dates = self.columns[j], self._is_time(j)
                self._plain[j] = [
                    self._meant(each.strip()) if isinstance(each, str) else self._text_of(each, row, name, dates=dates)
                    for row, each in enumerate(values)
                ]
        return self._plain[j]

    def _meant(self, cell: str) -> str:
        """Return a number as text with a decimal point; of one with two readings, both: they are refused as no number."""
        read = None if cell.isdigit() else numeral(cell)
        if read is None or not read.grouped:
            return cell if read is None else read.plain
        sign = self.decimal or ("." if self._point and read.decimal == "." else "both")
        if sign == "both":
            both = f"{read.grouped} or {read.plain}"
            self._unclear[both] = read
            return both
        return read.plain if read.decimal == sign else read.grouped

    def _texts_at(self, j: int) -> list[str]:
        """Return the cells of a column that are text."""
        if self._all_texts:
            return self._texts[j]
        values = self._values[j]
        return [] if isinstance(values, np.ndarray) else [each for each in values if isinstance(each, str)]

    def decimals(self, column: str) -> FloatArray | None:
        """Return a long column of plain decimals, such as 12.5, as an array, nan where a cell is empty; None of any other column."""
        cells = self.raw(column)
        if len(cells) < _MANY or max(map(len, cells)) > _DIGITS or self.decimal != ".":
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

        Of the latter, ``bad`` is called with the row, what is wrong, and the column; by default it is a mistake. Amounts of a resource
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
        with contextlib.suppress(ValueError):  # whatever Python reads as a number is that number
            return np.fromiter((float(cell or blank) for cell in self._pointed(column)), float, len(self))
        cells = [cell or blank for cell in self.plain(column)]
        refuse = bad or self.wrong
        meant = {cell: float_of(cell, of_resource=of_resource) for cell in dict.fromkeys(cells)}
        found = np.array([meant[cell][0] for cell in cells])
        in_bytes = np.array([meant[cell][1] for cell in cells])
        unit = cells[int(np.argmax(in_bytes))] if in_bytes.any() else ""
        for row in np.flatnonzero(np.isnan(found)).tolist():
            if not meant[cells[row]][2]:
                refuse(row, self._no_number(cells[row], row, column, of_resource=of_resource), column)
        for row in np.flatnonzero(~in_bytes & (found > 0)).tolist() if unit else ():
            refuse(row, f"{cells[row]} has no byte unit, but {unit} in another row has; give all of them one", column)
        return found

    def _pointed(self, column: str) -> list[str]:
        """Return a column with a decimal point in the place of the decimal sign of the table.

        Raises
        ------
        ValueError
            Some signs may be others.
        """
        cells = self.cells(column)
        if self.decimal == ",":
            text = "\n".join(cells)
            cells = text.replace(",", ".").split("\n") if "." not in text else []
        if self.decimal not in (".", ",") or len(cells) != len(self):
            raise ValueError
        return cells

    # Cells ---------------------------------------------------------------------------------------------------------------------

    def is_numeric(self, column: str) -> bool:
        """Does a column hold numbers and quantities alone, beside empty cells?"""
        cells = [cell for cell in self.cells(column) if cell]
        return bool(cells) and all(is_number(cell) for cell in cells)

    def number(
        self, cell: str, row: int, column: str, empty: float | None = None, *, of_resource: bool = False, shares: bool = False
    ) -> float:
        """Return the number that a cell holds, also as a fraction or with a unit; of an empty cell ``empty``, a mistake if that is None.

        Where a mistake is kept, the number is that of an empty cell, or `STAND_IN`. With ``shares``, or in a column of shares, a percentage
        is a number.
        """
        declared = self.schema.columns.get(column)
        instead = STAND_IN if empty is None else empty
        if not cell.strip():
            if empty is None:
                self.wrong(row, "the cell is empty; write 0 if you mean 0", column)
            return instead
        try:
            if "_" in cell:  # only Python allows it in numbers
                raise ValueError
            return written(cell)
        except ValueError:
            shares = shares or (declared is not None and declared.kind == "share")
            number = plain(cell, of_resource=False) if not shares or (part := percentage(cell)) is None else written(part)
        if number is None:
            self.wrong(row, self._no_number(cell, row, column, of_resource=of_resource), column)
            return instead
        return number

    def amount(self, cell: str, row: int, column: str, unit: str = "", *, shares: bool = False) -> float | str:
        """Return the amount of a resource that a cell holds: a number, or a quantity with a byte unit as it is written.

        With ``shares``, so is a percentage.
        """
        cell = cell.strip()
        if (row, column) in self._unknown:
            return STAND_IN
        if shares and percentage(cell) is not None:
            return cell
        if cell[-1:].isalpha():
            with contextlib.suppress(ValueError):
                if read(cell).in_bytes:
                    return cell
            if unit and cell.endswith(unit) and unit not in BYTES:
                cell = cell.removesuffix(unit).strip()
        return self.number(cell, row, column, of_resource=True)

    def _no_number(self, cell: str, row: int, column: str, *, of_resource: bool) -> str:
        """Return why a cell is no number, and what to write."""
        declared = self.schema.columns.get(column)
        counts = declared.counts if declared is not None else ""
        shown, both = self.raw(column)[row].strip(), self._unclear.get(cell)
        return no_number(shown, cell, both, "" if counts else column, counts, of_resource=of_resource)

    def _empty(self, column: str) -> float | None:
        declared = self.schema.columns.get(column)
        return None if declared is None else declared.empty

    def _is_time(self, j: int) -> bool:
        declared = self.schema.columns.get(self.columns[j])
        return declared is not None and declared.kind == "time"

    def _text(self, j: int) -> list[str]:
        if j not in self._texts:
            values, name, dates = self._values[j], self.columns[j], self._is_time(j)
            values = values.tolist() if isinstance(values, np.ndarray) else values
            self._texts[j] = (
                list(values)
                if set(map(type, values)) == {str}
                else [each if type(each) is str else self._text_of(each, row, name, dates=dates) for row, each in enumerate(values)]
            )
        return self._texts[j]

    def _text_of(self, value: Any, row: int, column: str, *, dates: bool = False) -> str:
        """Return a value as text; of one that has none, keep a mistake."""
        try:
            return text_of(value, dates=dates)
        except ValueError as error:
            self.wrong(row, str(error), column)
            declared = self.schema.columns.get(column)
            self._unknown.add((row, column))
            return "1" if declared is None or declared.default is NEEDED else ""
