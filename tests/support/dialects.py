"""Tables as different programs and people write them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import strategies as st
from support.opendocument import write as write_ods


def number(value: object, decimal: str, thousands: str) -> str:
    """A number as a program of some country writes it."""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


@dataclass(frozen=True)
class Dialect:
    """A table as some program and person write it: text for CSV, else typed cells or text, and which rows and columns mean nothing."""

    kind: str
    name: str
    rows: list[list[Any]]
    title: str = ""
    separator: str = ","
    quoting: Any = csv.QUOTE_MINIMAL
    end: str = "\n"
    encoding: str = "utf-8"
    percent: bool = False
    hidden: bool = False

    def text(self) -> bytes:
        """As CSV."""
        page = io.StringIO()
        csv.writer(page, delimiter=self.separator, quoting=self.quoting, lineterminator=self.end).writerows(self.rows)
        return (self.title + page.getvalue()).encode(self.encoding)

    def grid(self) -> list[list[Any]]:
        """As rows of a sheet."""
        return [*([[self.title.strip()], []] if self.title else []), *self.rows]

    def frame(self) -> pd.DataFrame:
        """As a frame."""
        return pd.DataFrame(self.rows[1:], columns=self.rows[0])


def to_book(path: Path, tables: Sequence[Dialect]) -> Path:
    """Write tables as sheets of one file."""
    if path.suffix == ".ods":
        return write_ods(path, {table.name: table.grid() for table in tables})
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    book.create_sheet("About us")["A1"] = "not read"
    for table in tables:
        sheet = book.create_sheet(table.name)
        sheet.sheet_state = "hidden" if table.hidden else "visible"
        for row in table.grid():
            sheet.append(row)
        if table.percent:
            for cell in (cell for row in sheet.iter_rows() for cell in row if cell.value in (0.75, 0.5)):
                cell.number_format = "0.00%"
    book.save(path)
    return path


@st.composite
def dialects(draw: st.DrawFn, name: str, table: list[list[Any]], kind: str) -> Dialect:
    """A table. Its numbers show their decimal sign."""
    decimal, separator = draw(st.sampled_from([".", ","])), draw(st.sampled_from([",", ";", "\t"]))
    thousands = draw(st.sampled_from(["", " ", "\u00a0", "'", "_", "." if decimal == "," else ","]))
    typed = kind != "csv" and draw(st.booleans())
    rows = [[value if typed else number(value, decimal, thousands) for value in row] for row in table]
    if draw(st.booleans()):
        rows[0] = [draw(st.sampled_from([word, word.upper(), f" {word} "])) if word != "clock" else word for word in rows[0]]
        rows[0][0] = draw(st.sampled_from([table[0][0], table[0][0].capitalize(), f"{table[0][0]} "]))
    if draw(st.booleans()):
        head = draw(st.sampled_from(["Notes", "# why", "contact"]))
        rows = [[*row, note] for row, note in zip(rows, [head, "a, b", "1,5"], strict=True)]
    if draw(st.booleans()):
        rows = [[*row, ""] for row in rows]
    if draw(st.booleans()):
        rows.append([" "] * len(rows[0]))
    if draw(st.booleans()):
        rows[1:] = [[f"{row[0]} ", *row[1:]] for row in rows[1:]]
    titles = ["", "Our lab\n", "# of May, 2026\n"]
    if kind == "csv":
        titles += ["Our lab, 2026\n" if separator != "," else "Our lab\n", f"sep={separator}\n"]
    return Dialect(
        kind,
        draw(st.sampled_from([name, name.capitalize()])),
        rows,
        draw(st.sampled_from(titles)),
        separator,
        draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        draw(st.sampled_from(["\n", "\r\n"])),
        draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])),
        draw(st.booleans()),
        draw(st.booleans()) and name != "jobs",
    )


def write_one(path: Path, table: Dialect) -> None:
    """Write a table as the first sheet of a file."""
    if path.suffix == ".ods":
        write_ods(path, {"any": table.grid()})
        return
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in table.grid():
        book.active.append(row)
    book.save(path)
