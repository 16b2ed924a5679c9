"""Tables of records, of which bad ones are refused or left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.tables.mistakes import together
from fairopt.tables.table import Table
from fairopt.validation import BoolArray, FloatArray

__all__ = ["Rows"]


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
        self._cells: dict[tuple[int, str], str] = {}

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, column: str) -> bool:
        return column in self.table

    def text(self, column: str) -> list[str]:
        """Return a column as text."""
        return self.table.cells(column)

    def numbers(self, column: str) -> FloatArray:
        """Return a column of finite numbers >= 0."""
        values, empty = self.floats(column), self.table.schema.columns[column].empty
        if column not in self:
            return values
        blank = np.array([not cell for cell in self.text(column)], bool)
        refused = [(~np.isfinite(values) & ~blank, "expected a finite number"), (values < 0, "the number is negative; it must be >= 0")]
        if empty is None:
            refused.append((blank, "the cell is empty; write 0 if you mean 0"))
        for bad, message in refused:
            for row in np.flatnonzero(bad).tolist():
                self.unreadable(row, message, column)
        return np.where(blank, 0.0 if empty is None else empty, np.where(np.isfinite(values) & (values >= 0), values, 0.0))

    def check(self, good: BoolArray, message: str, column: str | None = None) -> None:
        """Remember what is wrong with the rows that are not good."""
        self.mark(~good, message, column)

    def filled(self, column: str, who: str) -> list[str]:
        """Return a column of texts, none of which may be empty."""
        cells = self.text(column)
        self.check(np.array([bool(cell) for cell in cells], bool), f"the cell is empty; every {who}", column)
        return cells

    def good(self) -> BoolArray:
        """Return which rows are good, (rows,), when all is checked: all of them.

        Raises
        ------
        InvalidInstance
            Some are not: with all mistakes.
        """
        if self.bad:
            raise InvalidInstance(self.told())
        return np.ones(len(self), bool)

    def wrong(self, row: int, message: str, column: str | None = None) -> None:
        """Remember what is wrong with a row, if nothing else is: a cell that cannot be read makes others seem wrong."""
        if row not in self.bad:
            self.bad[row] = f"{self.table.place(row, column)}: {message}"

    def unreadable(self, row: int, message: str, column: str) -> None:
        """Remember that a cell cannot be read, beside other cells of its row."""
        if (row, column) not in self._cells:
            self._cells[row, column] = f"{self.table.place(row, column)}: {message}"
            self.wrong(row, message, column)

    def mark(self, rows: BoolArray | Sequence[bool], message: str, column: str | None = None) -> None:
        """Remember what is wrong with some rows."""
        for row in np.flatnonzero(rows).tolist():
            self.wrong(row, message, column)

    def floats(self, column: str, *, of_resource: bool = False) -> FloatArray:
        """Return a column as numbers; a cell that is no number makes its row bad."""
        return self.table.floats(column, self.unreadable, of_resource=of_resource)

    @property
    def first(self) -> str:
        """What is wrong with the first bad row."""
        return self.bad[min(self.bad)]

    def told(self, closing: str = "") -> str:
        """Return what is wrong with the bad rows and their cells, as one message, and what to do about all of them."""
        return together(list(dict.fromkeys([*self.bad.values(), *self._cells.values()])), closing=closing)
