"""Workbooks (.xlsx): sheets to tables of values and back, by openpyxl, an extra.

Text is stored as text, never as a formula, and comes back as it was; numbers have all of their digits. Characters that a workbook cannot
hold are written as it provides, ``_x0007_``. Of a formula, the value is read that the spreadsheet program has calculated.
"""

from __future__ import annotations

import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance, SolverUnavailable
from fairopt.files import read_bytes
from fairopt.formats.cells import Table
from fairopt.formats.syntax import plain_numbers
from fairopt.formats.typed_cells import table_of
from fairopt.wording import did_you_mean, installing, joined

__all__ = ["LONGEST_TEXT", "Workbook", "require_openpyxl", "to_xlsx"]

LONGEST_TEXT = 32_767  # characters of a cell
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_MOST_BYTES = 2_000_000_000  # unpacked
_FORMULA = ("=", "+", "-", "@", "'")
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


def require_openpyxl(what: str) -> None:
    """Check that openpyxl is installed.

    Raises
    ------
    SolverUnavailable
    """
    if find_spec("openpyxl") is None:
        raise SolverUnavailable(f"{what} needs the package openpyxl, which is not installed; install it with: {installing('tables')}")


class Workbook:
    """The sheets of a workbook as tables; a row is counted as the spreadsheet program counts it.

    Parameters
    ----------
    path : Path

    Raises
    ------
    SolverUnavailable, InvalidInstance
        openpyxl is not installed. The file is not a workbook.
    """

    def __init__(self, path: Path) -> None:
        require_openpyxl(f"reading {path}")
        self.path = path
        self._data = read_bytes(path)
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                size = sum(each.file_size for each in archive.infolist())
        except zipfile.BadZipFile:
            raise InvalidInstance(f"{path} is not an .xlsx workbook, or is damaged; save it again as .xlsx") from None
        if size > _MOST_BYTES:
            raise InvalidInstance(f"{path} would be {size / 1e9:,.0f} GB if it were unpacked; save the tables as Parquet or CSV")
        self._cells = self._read(values=False)
        if any(kind == "f" for rows in self._cells.values() for _, row in rows for kind, _ in row):
            values = self._read(values=True)
            for name, rows in self._cells.items():
                self._cells[name] = [
                    (number, [(*cell[:1], of[1]) if cell[0] == "f" else cell for cell, of in zip(row, calculated, strict=True)])
                    for (number, row), (_, calculated) in zip(rows, values[name], strict=True)
                ]

    @property
    def sheets(self) -> list[str]:
        """The names of the sheets."""
        return list(self._cells)

    def table(self, sheet: str, first: str) -> Table:
        """Return a sheet as a table: the names of the columns in its first row that is not empty.

        Raises
        ------
        InvalidInstance
            With the sheet, the row and the column.
        """
        file = f"{self.path}, sheet {sheet}"
        if sheet not in self._cells:
            hint = did_you_mean(sheet, self._cells) or f"; the sheets are {joined(self.sheets, 8)}"
            raise InvalidInstance(f"{self.path}: there is no sheet {sheet}{hint}")
        rows = [(number, row) for number, row in self._cells[sheet] if any(value not in (None, "") for _, value in row)]
        width = max((j + 1 for _, row in rows for j, (_, value) in enumerate(row) if value not in (None, "")), default=0)
        (_, header), *body = rows or [(1, [])]
        columns = [value for _, value in (*header, *[("n", None)] * width)][:width]
        lines = [number for number, _ in body]
        table = Table(file, [str(each) for each in columns], [], lines, "row")
        values = []
        for row, (_, cells) in enumerate(body):
            for j, (kind, value) in enumerate(cells[:width]):
                if kind == "e":
                    table.refuse(f"the cell holds the error {value}; correct it", row, table.columns[j])
                if kind == "f" and value is None:
                    table.refuse("the formula has no value; open the file in a spreadsheet program and save it", row, table.columns[j])
            values.append([value for _, value in (*cells, *[("n", None)] * width)][:width])
        return table_of(file, first, columns, values, lines)

    def _read(self, *, values: bool) -> dict[str, list[tuple[int, list[tuple[str, Any]]]]]:
        """Return the cells of each sheet, row by row: the kind and the value; of formulas their text or their values."""
        import openpyxl

        found: dict[str, list[tuple[int, list[tuple[str, Any]]]]] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about pictures and the like, which are not read
                book: Any = openpyxl.load_workbook(io.BytesIO(self._data), read_only=True, data_only=values)
                for sheet in book.worksheets:
                    sheet.reset_dimensions()  # some programs write wrong ones
                    found[sheet.title] = [
                        (number, [(cell.data_type, _unescaped(cell.value)) for cell in row])
                        for number, row in enumerate(sheet.iter_rows(), 1)
                    ]
        except Exception as error:  # openpyxl raises errors of many kinds for damaged files
            reason = str(error).partition("\n")[0]
            raise InvalidInstance(f"{self.path} is not an .xlsx workbook, or is damaged: {reason}; save it again as .xlsx") from None
        return found


def to_xlsx(sheets: Mapping[str, tuple[Sequence[str], Iterable[Iterable[Any]]]], file: str) -> bytes:
    """Return sheets, each with the names of its columns and its rows, as a workbook. Numbers lose nothing; text stays text.

    Raises
    ------
    SolverUnavailable, InvalidInstance
        openpyxl is not installed. A sheet cannot hold so much.
    """
    require_openpyxl(f"writing {file}")
    import openpyxl
    from openpyxl.styles import Font

    pages = {}
    for name, (columns, rows) in sheets.items():  # all is looked at before openpyxl begins to write
        if len(columns) > _MOST_COLUMNS:
            raise InvalidInstance(f"{file}: a sheet has {_MOST_COLUMNS:,} columns at most, and {name} needs {len(columns):,}")
        cells = [[_typed(value, file) for value in row] for row in (columns, *rows)]
        if len(cells) > _MOST_ROWS:
            raise InvalidInstance(f"{file}: a sheet has {_MOST_ROWS:,} rows at most, and {name} needs {len(cells):,}")
        pages[name] = cells
    book = openpyxl.Workbook(write_only=True)
    for name, (header, *body) in pages.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        names = [_cell(sheet, *each) for each in header]
        for cell in names:
            cell.font = Font(bold=True)
        sheet.append(names)
        for row in body:
            sheet.append([_cell(sheet, *each) for each in row])
    page = io.BytesIO()
    book.save(page)
    return page.getvalue()


def _typed(value: Any, file: str) -> tuple[str, Any]:
    """Return the type of a cell and its value: "n" a number or nothing, "b" a truth value, "s" text."""
    if hasattr(value, "item"):  # of numpy
        value = value.item()
    if value is None or value == "" or value != value:
        return "n", None
    if isinstance(value, bool):
        return "b", value
    if isinstance(value, int | float) and math.isfinite(value):
        return "n", str(plain_numbers(value))  # all its digits: openpyxl itself writes 16
    text = str(value)
    escaped = _ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    if len(escaped) > LONGEST_TEXT:
        raise InvalidInstance(f"{file}: a cell has {LONGEST_TEXT:,} characters at most, and {text[:20]}... has more; save as .yaml")
    return "s", escaped


def _cell(sheet: Any, kind: str, value: Any) -> Any:
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value)
    cell.data_type = kind  # text is text, whatever it begins with
    if kind == "s" and value.startswith(_FORMULA):
        cell.quotePrefix = True  # also when it is edited
    return cell


def _unescaped(value: Any) -> Any:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value) if isinstance(value, str) else value
