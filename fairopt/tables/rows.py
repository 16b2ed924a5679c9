"""Tables of records, of which bad ones are refused or left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
