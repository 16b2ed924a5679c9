"""CSV tables of other programs, as columns of numbers, with the line of each cell for messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairopt.clusters.account import Account
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance import BoolArray, FloatArray

if TYPE_CHECKING:
    from fairopt.formats.cells import Table

__all__ = ["Columns"]


class Columns:
    """The rows of a table; bad ones are refused, or left out if the account is lenient.

    Parameters
    ----------
    path : path
    first : str
        A column that the table must have.
    what : str
        What a row is.
    account : Account
    """

    def __init__(self, path: str | os.PathLike[str], first: str, what: str, account: Account) -> None:
        from fairopt.formats.cells import read_table  # which needs yaml: ``import fairopt`` stays light

        self._path, self._what, self._account = Path(path), what, account
        text = read_text(self._path)
        start = text.lstrip()[:1]
        if not start:
            raise InvalidInstance(f"{path}: the file is empty; download the table again")
        if start == "<":
            raise InvalidInstance(f"{path}: this is a web page (a login page, perhaps) or XML, not CSV; download the table again")
        self._table: Table = read_table(self._path, first, text)
        self.good: BoolArray = np.ones(len(self._table.rows), bool)

    def __len__(self) -> int:
        return len(self._table.rows)

    def __contains__(self, column: str) -> bool:
        return column in self._table.columns

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self._table.columns

    def place(self, row: int, column: str | None = None) -> str:
        """Return file, line and column."""
        return self._table.place(row, column)

    def require(self, *columns: str) -> None:
        """Refuse a table that lacks a column."""
        for column in columns:
            if column not in self:
                self._table.refuse(f'there is no column "{column}" (there are {", ".join(self.names)}); is this the right table?')

    def text(self, column: str) -> list[str]:
        """Return a column as it is."""
        self.require(column)
        return self._table.cells(column)

    def numbers(self, column: str, empty: float | None = None) -> FloatArray:
        """Return a column of finite numbers >= 0; an empty cell is bad unless ``empty`` is given."""
        cells = self.text(column)
        filled = [cell or "nan" for cell in cells]
        try:
            values = np.array(filled, float)
        except ValueError:
            values = np.array([self._number(cell, row, column) for row, cell in enumerate(filled)])
        blank = np.array([not cell for cell in cells], bool)
        if empty is None:
            self.check(~blank, "the cell is empty; write 0 if you mean 0", column)
        self.check(blank | np.isfinite(values), "expected a finite number", column)
        self.check(~(values < 0), "the number is negative; it must be >= 0", column)
        return np.where(blank, 0.0 if empty is None else empty, np.where(np.isfinite(values) & (values >= 0), values, 0.0))

    def check(self, good: BoolArray, message: str, column: str | None = None) -> None:
        """Refuse the first row that is not good, or leave all such rows out."""
        for row in np.flatnonzero(~good & self.good).tolist():
            self._account.bad(self._what, self.place(row, column), message)
        self.good &= good

    def _number(self, cell: str, row: int, column: str) -> float:
        try:
            return self._table.number(cell, row, column)
        except InvalidInstance as error:
            if self.good[row]:
                place = self.place(row, column)
                self._account.bad(self._what, place, str(error).removeprefix(f"{place}: "))
            self.good[row] = False
            return 0.0
