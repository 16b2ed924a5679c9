"""Tables of other programs, as columns of numbers; bad rows are refused, all at once, or left out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.errors import InvalidInstance
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
        self._reasons: dict[int, tuple[str, str]] = {}
        self._counted: set[int] = set()

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

    def wrong(self, row: int, message: str, column: str | None = None) -> None:
        """Remember what is wrong with a row."""
        self._reasons.setdefault(row, (self.table.place(row, column), message))
        super().wrong(row, message, column)

    def good(self) -> BoolArray:
        """Return which rows are good, (rows,), when all is checked; the others are refused, or left out if the account is lenient.

        Raises
        ------
        InvalidInstance
            With all mistakes.
        """
        if self.bad and not self._account.lenient:
            raise InvalidInstance(self.told("lenient=True or --lenient skips such records"))
        for row in sorted(set(self.bad) - self._counted):
            self._account.leave_out(self._what, *self._reasons[row])
        self._counted |= set(self.bad)
        return ~np.isin(np.arange(len(self.table)), list(self.bad))
