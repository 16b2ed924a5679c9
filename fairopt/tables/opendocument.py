"""Sheets of an OpenDocument spreadsheet (.ods), by the standard library: of a package, no limit would hold before repeats are written out.

A file of a few bytes may say that a row or a cell is repeated a million times. What is repeated and empty is counted and not kept; what is
repeated and not empty counts as so many values.
"""

from __future__ import annotations

import datetime
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fairopt.errors import InvalidInstance
from fairopt.files import read_bytes
from fairopt.files.limits import check_bytes, check_table, check_values
from fairopt.tables.sheets import Cell, Sheet, width_of
from fairopt.tables.values import Percentage

__all__ = ["read_sheets"]

_PART = 1 << 20  # bytes
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_ERRORS = ("#", "Err:")  # what the text of a cell begins with whose formula failed


def read_sheets(path: Path) -> tuple[Mapping[str, Sheet], set[str]]:
    """Return the sheets of a file by name, and the names of those that are hidden.

    Raises
    ------
    InvalidInstance
        The file is no OpenDocument spreadsheet, or holds too much.
    """
    file = str(path)
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            check_bytes(file, sum(each.file_size for each in archive.infolist()))
            with archive.open("content.xml") as part:
                return _sheets(part, file)
    except InvalidInstance:
        raise
    except (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError, KeyError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidInstance(f"{path} is not an .ods spreadsheet, or is damaged: {reason}; save it again as .ods") from None


def _sheets(part: Any, file: str) -> tuple[Mapping[str, Sheet], set[str]]:
    """Return the sheets of the content of a file, whose elements are forgotten as soon as a row is read, and which are hidden."""
    parser: Any = ElementTree.XMLPullParser(["start", "end"])
    sheets: dict[str, list[tuple[int, Sequence[Cell]]]] = {}
    styles, hidden = set[str](), set[str]()
    name, number, values, tags = "", 0, 0, 0
    while data := part.read(_PART):
        tags += data.count(b"<")
        check_values(file, tags)
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:  # entities may stand for texts without end
            raise ValueError("it declares entities")
        parser.feed(data)
        for event, element in parser.read_events():
            if event == "start":
                if element.tag == f"{_TABLE}table":
                    name, number = element.get(f"{_TABLE}name", ""), 0
                    sheets[name] = []
                    if element.get(f"{_TABLE}style-name") in styles:
                        hidden.add(name)
            elif element.tag == f"{_STYLE}style":
                if any(each.get(f"{_TABLE}display") == "false" for each in element):
                    styles.add(element.get(f"{_STYLE}name", ""))
            elif element.tag == f"{_TABLE}table-row":
                repeated = _repeated(element, "rows")
                cells = _cells(element, file)
                if name and cells:
                    check_table(f"{file}, sheet {name}", number + repeated, len(cells))
                    values += repeated * len(cells)
                    check_values(f"{file}, sheet {name}", values)
                    sheets[name] += [(number + 1 + j, cells) for j in range(repeated)]
                number += repeated
                element.clear()
    parser.close()
    return sheets, hidden


def _cells(row: ElementTree.Element, file: str) -> list[Cell]:
    """Return the cells of a row up to the last that is not empty."""
    cells: list[Cell] = []
    empty = 0
    for element in row:
        if element.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            continue
        repeated = _repeated(element, "columns")
        cell = _cell(element)
        if any(element.get(f"{_TABLE}number-{what}-spanned", "1") != "1" for what in ("rows", "columns")):
            cell = "m", cell[1]
        if not width_of([cell]) and cell[0] != "f":
            empty += repeated
            continue
        check_table(file, 1, len(cells) + empty + repeated)
        cells += [("n", None)] * empty + [cell] * repeated
        empty = 0
    return cells


def _cell(element: ElementTree.Element) -> Cell:
    """Return the kind of a cell and its value."""
    kind = element.get(f"{_OFFICE}value-type", "")
    if kind in ("float", "percentage", "currency"):
        text = element.get(f"{_OFFICE}value", "")
        number = float(text) if "." in text or "e" in text.lower() else int(text)
        return "n", Percentage(number) if kind == "percentage" else number
    if kind == "boolean":
        return "b", element.get(f"{_OFFICE}boolean-value") == "true"
    text = "\n".join(_text(paragraph) for paragraph in element.findall(f"{_TEXT}p"))
    if kind == "date":
        return "d", datetime.datetime.fromisoformat(element.get(f"{_OFFICE}date-value", ""))
    is_formula = element.get(f"{_TABLE}formula") is not None
    if is_formula and text.startswith(_ERRORS):
        return "e", text
    return ("f", None) if is_formula and not text and not kind else ("s", text)


def _text(paragraph: ElementTree.Element) -> str:
    """Return the text of a paragraph, its spaces, tabulators and line breaks too."""
    parts = [paragraph.text or ""]
    for each in paragraph:
        if each.tag == f"{_TEXT}s":
            parts.append(" " * min(int(each.get(f"{_TEXT}c", "1")), _PART))
        elif each.tag in (f"{_TEXT}tab", f"{_TEXT}line-break"):
            parts.append("\t" if each.tag.endswith("tab") else "\n")
        elif each.tag != f"{_OFFICE}annotation":
            parts.append(_text(each))
        parts.append(each.tail or "")
    return "".join(parts)


def _repeated(element: ElementTree.Element, what: str) -> int:
    return int(element.get(f"{_TABLE}number-{what}-repeated", "1"))
