"""Any file that holds a table, by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import Schema
from fairopt.tables.sheets import Book
from fairopt.tables.table import Table

__all__ = ["BOOKS", "read", "read_book"]

BOOKS = (".xlsx", ".ods")
"""The endings of spreadsheets, which have several sheets."""


def read(path: Path, schema: Schema, *, lenient: bool = False, mistakes: Mistakes | None = None) -> Table:
    """Read a table: Parquet (``.parquet``), the first sheet of a spreadsheet (``.xlsx``, ``.ods``), or else CSV, also packed (``.csv.gz``).

    Parameters
    ----------
    path : Path
    schema : Schema
        Its columns.
    lenient : bool
        Leave a last line out that is cut, where a program may be writing the table.
    mistakes : Mistakes, optional
        Where mistakes in rows and cells are kept; by default, they are raised.

    Raises
    ------
    InvalidInstance
        With the file, and the line and column in it: what is wrong, and what to do.
    SolverUnavailable
        An .xlsx workbook needs openpyxl.
    """
    kind = path.suffix.lower()
    if kind == ".parquet":
        from fairopt.tables.parquet import read_parquet

        return read_parquet(path, schema, mistakes)
    if kind in BOOKS:
        return read_book(path).first(schema, mistakes)
    from fairopt.tables.csv_files import read_csv

    return read_csv(path, schema, lenient=lenient, mistakes=mistakes)


def read_book(path: Path) -> Book:
    """Read a spreadsheet, whose sheets are tables.

    Raises
    ------
    InvalidInstance, SolverUnavailable
    """
    if path.suffix.lower() == ".ods":
        from fairopt.tables.opendocument import read_sheets

        sheets, hidden = read_sheets(path)
        return Book(path, list(sheets), sheets.__getitem__, hidden)
    from fairopt.tables.workbooks import Workbook

    workbook = Workbook(path)
    return Book(path, workbook.names, workbook.sheet, workbook.hidden)
