"""Tables of other programs, as columns of numbers; bad rows are refused or left out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.instance import BoolArray, FloatArray
from fairopt.tables import Rows, Schema, read

__all__ = ["TableRows"]


class TableRows(Rows):
    """The rows of a table; bad ones are refused, or left out if the account is lenient.

    Parameters
    ----------
    path : path
    schema : Schema
    what : str
        What a row is.
    account : Account
    """

    def __init__(self, path: str | os.PathLike[str], schema: Schema, what: str, account: Account) -> None:
        super().__init__(read(Path(path), schema))
        self._what, self._account = what, account
        self.good: BoolArray = np.ones(len(self.table), bool)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, column: str) -> bool:
        return column in self.table

    def place(self, row: int) -> str:
        """Return file and line."""
        return self.table.place(row)

    def require(self, *columns: str) -> None:
        """Refuse a table that lacks a column, which other columns make necessary."""
        for column in columns:
            if column not in self:
                raise self.table.schema.missing(self.table.file, column, self.table.columns)

    def text(self, column: str) -> list[str]:
        """Return a column as text."""
        return self.table.cells(column)

    def numbers(self, column: str) -> FloatArray:
        """Return a column of finite numbers >= 0."""
        values, empty = self.floats(column), self.table.schema.columns[column].empty
        if column not in self:
            return values
        blank = np.array([not cell for cell in self.text(column)], bool)
        if empty is None:
            self.check(~blank, "the cell is empty; write 0 if you mean 0", column)
        self.check(blank | np.isfinite(values), "expected a finite number", column)
        self.check(~(values < 0), "the number is negative; it must be >= 0", column)
        return np.where(blank, 0.0 if empty is None else empty, np.where(np.isfinite(values) & (values >= 0), values, 0.0))

    def check(self, good: BoolArray, message: str, column: str | None = None) -> None:
        """Refuse the first row that is not good, or leave all such rows out."""
        self.mark(~good, message, column)

    def filled(self, column: str, who: str) -> list[str]:
        """Return a column of texts, none of which may be empty."""
        cells = self.text(column)
        self.check(np.array([bool(cell) for cell in cells], bool), f"the cell is empty; every {who}", column)
        return cells

    def wrong(self, row: int, message: str, column: str | None = None) -> None:
        """Refuse a row, or leave it out."""
        if self.good[row]:
            self._account.bad(self._what, self.table.place(row, column), message)
        self.good[row] = False
