"""Workbooks (.xlsx): sheets to cells and back, by openpyxl, an extra.

Text is stored as text, never as a formula, and comes back as it was; numbers have all of their digits. Characters that a workbook cannot
hold are written as it provides, ``_x0007_``. Of a formula, the value is read that the spreadsheet program has calculated.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance, SolverUnavailable
from fairopt.files import read_bytes
from fairopt.files.limits import check_bytes, check_table, check_values
from fairopt.instance.fractions import plain_numbers
from fairopt.processes.streams import unwarned
from fairopt.tables.sheets import Sheet, check_named, width_of
from fairopt.tables.values import Percentage

__all__ = ["LONGEST_TEXT", "Workbook", "require_openpyxl", "to_xlsx"]

LONGEST_TEXT = 32_767  # characters of a cell
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_PART = 1 << 20  # bytes
_END_OF_ROW = re.compile(rb"</(?:\w+:)?row\s*>")
_MOST_IN_ROW = 16 * _MOST_COLUMNS  # tags: a cell has four, or some more where its text is in it
_LONGEST_TAG = 200  # characters: of sheetData, and of a merged range
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3})(\d{1,7}):[^"]*"')
_COST = 5  # of a character of a formula that is written out once more, in values
_COST_OF_TEXT = 50  # of a shared text, in values
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
        raise SolverUnavailable(f"{what} needs the package openpyxl, which is not installed; install it with: pip install openpyxl")


class Workbook:
    """The cells of a workbook, by sheet.

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
        self._merged: dict[str, set[tuple[int, str]]] = {}  # the first cells of merged ranges, by part of the archive
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                check_bytes(str(path), sum(each.file_size for each in archive.infolist()))
                self._check_tags(archive)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError) as error:
            if isinstance(error, InvalidInstance):
                raise
            raise self._damaged(error) from None
        self._books = {False: self._open(values=False)}
        self.names = [sheet.title for sheet in self._books[False].worksheets]
        """The names of the sheets."""
        self.hidden = [sheet.title for sheet in self._books[False].worksheets if sheet.sheet_state != "visible"]
        """The names of those that are hidden."""

    def _check_tags(self, archive: zipfile.ZipFile) -> None:
        """Refuse a workbook with too many tags, in all or in one row, with too many texts, and with formulas too long for all their cells.

        Each tag of a row becomes an object, and openpyxl writes out a shared formula for each of its cells.
        """
        tags = texts = 0
        for each in archive.infolist():
            shared = longest = run = in_row = 0
            is_sheet, before = False, b""
            with archive.open(each) as part:
                while text := part.read(_PART):
                    is_sheet |= b"sheetData" in before + text
                    for match in _MERGED.finditer(before + text) if b"mergeCell" in text else ():
                        self._merged.setdefault(each.filename, set()).add((int(match[2]), match[1].decode()))
                    shared += text.count(b'"shared"') + text.count(b"'shared'")
                    first, *others = map(len, text.split(b"<"))
                    tags += len(others)
                    texts += text.count(b"<si")  # openpyxl reads all of them, whether or not a cell refers to them
                    check_values(str(self.path), max(tags, _COST_OF_TEXT * texts))
                    longest = max(longest, run + first, *others)
                    run = others[-1] if others else run + first
                    for number, row in enumerate(_END_OF_ROW.split(text)):
                        in_row = row.count(b"<") + (in_row if not number else 0)
                        if is_sheet and in_row > _MOST_IN_ROW:
                            raise InvalidInstance(f"{self.path} has a row of more than {_MOST_COLUMNS:,} cells; save it again as .xlsx")
                    before = text[-_LONGEST_TAG:]
            check_values(f"{self.path} with its formulas", _COST * shared * longest)

    def sheet(self, name: str) -> Sheet:
        """Return the rows of a sheet; of a formula, the value that was calculated."""
        rows = self._read(name, values=False)
        if any(kind == "f" for _, row in rows for kind, _ in row):
            calculated = dict(self._read(name, values=True))
            rows = [
                (
                    number,
                    [(kind, _value_at(calculated.get(number, ()), j) if kind == "f" else value) for j, (kind, value) in enumerate(row)],
                )
                for number, row in rows
            ]
        at = dict(rows)
        for number, letters in self._merged.get(self._part_of(name), ()):
            column = sum(26**power * (ord(letter) - 64) for power, letter in enumerate(reversed(letters))) - 1
            if column < len(at.get(number, ())):
                at[number][column] = ("m", at[number][column][1])
        return [(number, row) for number, row in rows if any(kind == "f" for kind, _ in row) or width_of(row)]

    def _part_of(self, name: str) -> str:
        """Return the part of the archive that holds a sheet."""
        return next(str(getattr(sheet, "_worksheet_path", "")) for sheet in self._books[False].worksheets if sheet.title == name).lstrip(
            "/"
        )

    def _open(self, *, values: bool) -> Any:
        """Open the workbook, for the text of its formulas or for their values."""
        import openpyxl

        try:
            with unwarned():  # about pictures and the like, which are not read
                return openpyxl.load_workbook(io.BytesIO(self._data), read_only=True, data_only=values)
        except Exception as error:  # openpyxl raises errors of many kinds for damaged files
            raise self._damaged(error) from None

    def _read(self, name: str, *, values: bool) -> list[tuple[int, list[tuple[str, Any]]]]:
        """Return the rows of a sheet that are not empty, with their numbers: the kind and the value of each cell up to the last.

        openpyxl fills rows and cells that are missing; they are counted, and not kept.
        """
        from openpyxl.cell.read_only import EMPTY_CELL  # the one object that openpyxl fills with

        rows, cells = list[tuple[int, list[tuple[str, Any]]]](), 0
        named = set[int]()  # columns
        if values not in self._books:
            self._books[values] = self._open(values=values)
        try:
            with unwarned():
                sheet = next(sheet for sheet in self._books[values].worksheets if sheet.title == name)
                sheet.reset_dimensions()  # some programs write wrong ones
                for number, row in enumerate(sheet.iter_rows(), 1):
                    cells += len(row)
                    check_table(f"{self.path}, sheet {name}", number, max(len(row), 1))
                    check_values(f"{self.path}, sheet {name}", cells)
                    if number > _MOST_ROWS:
                        break
                    there = {j: (cell.data_type, _meant(cell)) for j, cell in enumerate(row) if cell is not EMPTY_CELL}
                    filled = [j for j, cell in there.items() if width_of([cell])]
                    if not filled:
                        continue
                    if named:
                        for j in filled:
                            if j not in named:
                                check_named(f"{self.path}, sheet {name}", named, number, [there.get(k, ("n", None)) for k in range(j + 1)])
                    elif len(filled) > 1 and str(there[filled[0]][1]).strip()[:1] != "#":  # no title, and no comment
                        named = set(filled)
                    rows.append((number, [there.get(j, ("n", None)) for j in range(filled[-1] + 1)]))
                else:
                    return rows
        except InvalidInstance:
            raise
        except Exception as error:
            raise self._damaged(error) from None
        raise InvalidInstance(
            f"{self.path}, sheet {name}: there is a row below row {_MOST_ROWS:,}, the last that a sheet can have; save the workbook again"
        )

    def _damaged(self, error: Exception) -> InvalidInstance:
        reason = str(error).partition("\n")[0] or type(error).__name__
        return InvalidInstance(f"{self.path} is not an .xlsx workbook, or is damaged: {reason}; save it again as .xlsx")


def _meant(cell: Any) -> Any:
    """Return the value of a cell as openpyxl has it: text without escapes, and a number that is shown as a percentage as one."""
    if cell.data_type == "n" and cell.value is not None and "%" in str(cell.number_format):
        return Percentage(cell.value)
    return _unescaped(cell.value)


def _value_at(row: Sequence[tuple[str, Any]], column: int) -> Any:
    """Return the value of a cell; None where the row is shorter."""
    return row[column][1] if column < len(row) else None


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
    r"""Return text without the escapes of a workbook.

    >>> _unescaped("a_x0007_"), _unescaped("_xD83D__xDE00_") == chr(0x1F600)
    ('a\x07', True)
    """
    if not isinstance(value, str) or "_x" not in value:
        return value
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")  # two halves of a character are one; one is an error
