"""Spreadsheets of LibreOffice (.ods): what cells mean, and what is refused before it is written out."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.opendocument import write

import fairopt as fo
from fairopt.errors import InvalidInstance
from fairopt.files.limits import reading_limit
from fairopt.tables import Column, Schema, read, read_book

SCHEMA = Schema(Column("name"), Column("at", "time", default=None))
SERVERS: list[list[Any]] = [["name", "cpu", "ssd"], ["A", 9, True], ["B", 0.1, False]]
USERS: list[list[Any]] = [["name", "cpu", "weight"], ["alice", 1, None], ["bob", 0.5, 2]]
BLANK = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'


def test_an_instance(tmp_path: Path) -> None:
    """Sheets by name; numbers have all of their digits, not those that are shown; the blank rest of a sheet is nothing."""
    path = write(tmp_path / "lab.ods", {"servers": [*SERVERS, BLANK], "users": USERS, "notes": [["anything"]]})
    instance = fo.load(path)
    assert instance == fo.Instance(
        [[9.0], [0.1]],
        [[1.0], [0.5]],
        weights=[1, 2],
        attributes=[{"ssd": True}, {"ssd": False}],
        users=["alice", "bob"],
        servers=["A", "B"],
        resources=["cpu"],
    )


def test_cells(tmp_path: Path) -> None:
    """Spaces, line breaks and parts of a text; repeated cells and rows; comments are no text."""
    text = "<text:p>a<text:s text:c='2'/>b<text:span>c</text:span></text:p><text:p>d<text:tab/></text:p>"
    note = "<office:annotation><text:p>a note</text:p></office:annotation>"
    rows: list[Any] = [
        ["name", "x", "y", "at"],
        [f"<table:table-cell office:value-type='string'>{note}{text}</table:table-cell>", 1, 12345678901234567890, None],
        "<table:table-row table:number-rows-repeated='3'/>",
        "<table:table-row table:number-rows-repeated='2'>"
        "<table:table-cell office:value-type='string' table:number-columns-repeated='2'><text:p>v</text:p></table:table-cell>"
        "<table:table-cell/><table:table-cell office:value-type='date' office:date-value='2026-11-22T15:02:00'/></table:table-row>",
    ]
    table = read(write(tmp_path / "a.ods", {"s": rows}), SCHEMA)
    assert table.raw("name") == ["a  bc\nd\t", "v", "v"]
    assert (table.raw("x"), table.raw("y")) == (["1", "v", "v"], ["12345678901234567890", "", ""])
    assert table.raw("at") == ["", "2026-11-22T15:02:00", "2026-11-22T15:02:00"]
    assert [table.place(row) for row in range(3)] == [f"{tmp_path}/a.ods, sheet s, row {number}" for number in (2, 6, 7)]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "<table:table-cell table:formula='of:=1/0'><text:p>#REF!</text:p></table:table-cell>",
            "the cell holds the error #REF!",
        ),
        ("<table:table-cell table:formula='of:=1/2'/>", 'row 2, column "x": the formula has no value'),
        ("<table:table-cell office:value-type='float' office:value='one'/>", "is not an .ods spreadsheet, or is damaged"),
        ("<table:table-cell table:number-columns-repeated='-'/>", "is not an .ods spreadsheet, or is damaged"),
    ],
)
def test_bad_cells(tmp_path: Path, cell: str, message: str) -> None:
    """With their place."""
    path = write(tmp_path / "a.ods", {"s": [["name", "x", "y"], ["a", cell, 1]]})
    with pytest.raises(InvalidInstance) as caught:
        read(path, SCHEMA).cells("x")
    assert message in str(caught.value)


def test_dates_are_no_numbers(tmp_path: Path) -> None:
    """As in a workbook: a spreadsheet program makes a date of 1-4."""
    day = "<table:table-cell office:value-type='date' office:date-value='2026-04-01'/>"
    path = write(tmp_path / "a.ods", {"s": [["name", "x"], ["a", day]]})
    with pytest.raises(InvalidInstance, match='row 2, column "x": expected text or a number, found the date or time 2026-04-01'):
        read(path, SCHEMA).numbers("x")


def test_what_is_repeated_is_counted(tmp_path: Path) -> None:
    """A row that stands for a million, a cell that stands for as many, and spaces without end."""
    row = "<table:table-row table:number-rows-repeated='99999999'><table:table-cell><text:p>v</text:p></table:table-cell></table:table-row>"
    with pytest.raises(InvalidInstance, match="100,000,000 rows, more than 8,000,000, the limit"):
        read(write(tmp_path / "a.ods", {"s": [["name"], row]}), SCHEMA)
    cell = "<table:table-cell table:number-columns-repeated='99999999'><text:p>v</text:p></table:table-cell>"
    with pytest.raises(InvalidInstance, match="columns, more than 100,000, the limit"):
        read(write(tmp_path / "b.ods", {"s": [["name"], [cell]]}), SCHEMA)
    with reading_limit(max_bytes=100_000), pytest.raises(InvalidInstance, match="more than 2,500 values"):
        read(write(tmp_path / "c.ods", {"s": [["name"], *[[""] * 60] * 50]}), SCHEMA)


def test_entities_are_refused(tmp_path: Path) -> None:
    """A few of them stand for gigabytes."""
    head = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
    with pytest.raises(InvalidInstance, match="it declares entities"):
        read_book(write(tmp_path / "a.ods", {"s": [["name"], ["a"]]}, head))


@pytest.mark.parametrize("content", [b"", b"PK", b"name,x\na,1\n"])
def test_no_spreadsheet(tmp_path: Path, content: bytes) -> None:
    """One sentence."""
    (tmp_path / "a.ods").write_bytes(content)
    with pytest.raises(InvalidInstance, match=r"is not an \.ods spreadsheet, or is damaged: .*; save it again as \.ods"):
        fo.load(tmp_path / "a.ods")
    with zipfile.ZipFile(tmp_path / "b.ods", "w") as archive:
        archive.writestr("other.xml", "")
    with pytest.raises(InvalidInstance, match=r"is not an \.ods spreadsheet"):
        fo.load(tmp_path / "b.ods")


def test_it_is_not_written(tmp_path: Path) -> None:
    """The message names what is."""
    taken = r"it takes \.yaml, \.yml, \.json, \.xlsx, or a folder of servers.csv and users.csv; save it as \.xlsx"
    with pytest.raises(InvalidInstance, match=taken):
        fo.save(fo.Instance([[1]], [[1]]), tmp_path / "a.ods")
