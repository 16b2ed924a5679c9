"""A CSV text that is split as a whole and one that is read row by row are the same table."""

from __future__ import annotations

import csv
import random

import numpy as np
import pytest

from fairopt.errors import InvalidInstance
from fairopt.files.limits import reading_limit
from fairopt.tables import Column, Schema
from fairopt.tables.csv_files import parse
from fairopt.tables.table import Table

JOBS = Schema(Column("a"), grows=True, loose=True)
EXACT = Schema(Column("a"))
CELLS = ("", "1", "x", " 2", "y|z", "ä", '"q"', '"a,b"', '"a""b"', '"a\nb"', 'a"b', '"a', '"a"b', "u\u2028v", "w\x0bx")


def table_of(text: str, schema: Schema, *, lenient: bool = False) -> object:
    """Return all that a table says, or the message."""
    try:
        table = parse("t.csv", text, schema, lenient=lenient)
    except InvalidInstance as error:
        return str(error)
    return table.columns, [table.raw(column) for column in table.columns], list(table.lines), table.cut


def by_rows(text: str) -> object:
    """Return the same of a text as Python's csv module says it, where all rows are as wide as the first; None of any other.

    Rows without content are left out.
    """
    rows: list[list[str]] = []
    reader, first, lines = csv.reader(text.splitlines(keepends=True), strict=True), 1, []
    try:
        for row in reader:
            if row and (not rows or any(cell.strip() for cell in row)):
                rows.append(row)
                lines.append(first)
            first = reader.line_num + 1
    except csv.Error:
        return None
    if len(rows) < 2 or len(set(map(len, rows))) > 1:
        return None
    return rows[0], [list(cells) for cells in zip(*rows[1:], strict=True)], lines[1:], ""


@pytest.mark.parametrize("quotes", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_texts_are_what_the_csv_module_says(quotes: bool, end: str) -> None:
    """With and without quotes, blank lines and a last line end."""
    draw, compared = random.Random(1), 0
    cells = CELLS[: len(CELLS) - 2] if quotes else CELLS[:6]
    for _ in range(1500):
        width = draw.randint(2, 4)
        rows = [["a", "b", "c", "d"][:width], *([draw.choice(cells) for _ in range(width)] for _ in range(draw.randint(1, 4)))]
        if draw.random() < 0.1:
            rows.insert(draw.randint(0, len(rows)), [])
        text = end.join(",".join(row) for row in rows) + end * draw.randint(0, 2)
        told = by_rows(text)
        if told is not None:
            compared += 1
            assert table_of(text, EXACT) == told, text
    assert compared > 500


def test_other_ends_of_lines_are_text() -> None:
    """Only carriage returns and line feeds end a line."""
    assert table_of("a,b\nu\u2028v,w\x0bx\n\n1,2\n", EXACT) == (["a", "b"], [["u\u2028v", "1"], ["w\x0bx", "2"]], [2, 4], "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n4,5,6\n", "2 mistakes:\nt.csv, line 3: the row has 1 cell for 2 columns"),
        ("a,b\n1,2,3\n4\n", "2 mistakes:\nt.csv, line 2: the row has 3 cells for 2 columns"),
        ('a,b\n"x\ny",2\n3\n', "t.csv, line 4: the row has 1 cell for 2 columns"),
        ('a,b\n1,2\n3,"4\n', "t.csv, line 3: not valid CSV: unexpected end of data"),
        ("a,b\n1,2\n" + "x" * 140_000 + ",2\n", "t.csv, line 3: not valid CSV: field larger than field limit"),
    ],
)
def test_a_bad_line_is_named(text: str, message: str) -> None:
    """The first one, however the lines before it were read."""
    assert str(table_of(text, EXACT)).startswith(message)


def test_the_last_line_of_a_log_is_cut() -> None:
    """It is named, or left out."""
    text = "a,b,c\n1,2,3\n4,5"
    assert str(table_of(text, JOBS)).startswith("t.csv, line 3: the line is cut: it has 2 of 3 cells")
    assert table_of(text, JOBS, lenient=True) == (["a", "b", "c"], [["1"], ["2"], ["3"]], [2], "t.csv, line 3")
    assert table_of(text + ",6", JOBS) == (["a", "b", "c"], [["1", "4"], ["2", "5"], ["3", "6"]], [2, 3], "")


def test_lines_before_the_header_may_be_blank() -> None:
    """They count as lines."""
    assert table_of("\n\na,b\n1,2\n", EXACT) == (["a", "b"], [["1"], ["2"]], [4], "")


def test_a_table_that_is_too_large_is_refused_before_it_is_split() -> None:
    """By rows and by cells."""
    with reading_limit(max_bytes=1000):
        assert "more than 1,000" in str(table_of("a\n" + "1\n" * 1001, EXACT))
        assert "more than 1,000 values" in str(table_of("a,b,c\n" + "1,2,3\n" * 400, EXACT))


def test_long_columns_of_decimals_are_the_same_numbers() -> None:
    """Bit for bit, whether pandas or Python converts them."""
    draw, number = random.Random(2), 12_000
    cells = [f"{draw.randrange(10**15)}" if draw.random() < 0.3 else f"{draw.random() * 1e6:.{draw.randint(0, 8)}f}" for _ in range(number)]
    cells[0] = cells[-1] = cells[7] = ""
    cells[9] = " 5 "
    for last in ("1.5", "1e3", "1/2", "500m"):
        cells[5] = last
        table = Table("t.csv", EXACT, ["a", "b"], [cells, ["x"] * number], range(2, number + 2), texts=True)
        assert (table.decimals("a") is not None) == (last == "1.5")
        means = {"1.5": 1.5, "1e3": 1000.0, "1/2": 0.5, "500m": 0.5}
        told = [np.nan if not cell else means.get(cell) or float(cell) for cell in cells]
        assert np.array_equal(table.floats("a"), told, equal_nan=True)
    for bad in ("1.2.3", ".", "1 2", "\n", "1_0", "1" * 16):
        cells[5] = bad
        assert Table("t.csv", EXACT, ["a", "b"], [cells, ["x"] * number], range(2, number + 2), texts=True).decimals("a") is None


def test_bytes_in_a_long_column_are_read_once_each() -> None:
    """And mistakes are told row by row: first what is no number, then what has no unit."""
    cells = ["1GiB", "2GiB", "", "0"] * 3000
    table = Table("t.csv", EXACT, ["a", "b"], [cells, ["x"] * len(cells)], range(2, len(cells) + 2), texts=True)
    assert table.floats("a", of_resource=True)[:4].tolist() == [2**30, 2**31, 0, 0]
    cells[5], cells[6], seen = "3", "two", []
    table = Table("t.csv", EXACT, ["a", "b"], [cells, ["x"] * len(cells)], range(2, len(cells) + 2), texts=True)
    table.floats("a", lambda row, message, column: seen.append((row, message[:30])), of_resource=True)
    assert seen == [(6, "expected a number, found the t"), (5, "3 has no byte unit, but 1GiB i")]
