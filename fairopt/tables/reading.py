"""Tables with labels, read by the ending of their name: CSV, Parquet (``.parquet``), or the first sheet of a workbook (``.xlsx``)."""

from __future__ import annotations

from pathlib import Path

from fairopt.tables.table import Table, read_table

__all__ = ["read_any"]


def read_any(path: Path, first: str) -> Table:
    """Read a table that must have the column ``first``. In a matrix that is ``user``, and it must come first.

    Raises
    ------
    InvalidInstance
        With the file and the row.
    SolverUnavailable
        A workbook needs openpyxl.
    """
    kind = path.suffix.lower()
    if kind == ".parquet":
        from fairopt.tables.typed import read_parquet

        return read_parquet(path, first)
    if kind == ".xlsx":
        from fairopt.tables.workbooks import Workbook

        book = Workbook(path)
        return book.table(book.sheets[0], first)
    return read_table(path, first)
