"""Tables of other programs, as columns of numbers; bad rows are refused, all at once, or left out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray
from fairopt.tables import Rows, Schema, Table, read

__all__ = ["TableRows"]


class TableRows(Rows):
    """The rows of a table; bad ones are refused, or left out if the account is lenient.

    Parameters
    ----------
    table : path or Table
    schema : Schema
    what : str
        What a row is.
    account : Account
    """

    def __init__(self, table: str | os.PathLike[str] | Table, schema: Schema, what: str, account: Account) -> None:
        super().__init__(table if isinstance(table, Table) else read(Path(table), schema))
        self._what, self._account = what, account
        self._reasons: dict[int, tuple[str, str]] = {}
        self._counted: set[int] = set()

    def place(self, row: int) -> str:
        """Return file and line."""
        return self.table.place(row)

    def require(self, *columns: str) -> None:
        """Refuse a table that lacks a column, which other columns make necessary."""
        for column in columns:
            if column not in self:
                raise self.table.schema.missing(self.table.file, column, self.table.columns)

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
