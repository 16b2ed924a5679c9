"""Parquet files, workbooks and pandas frames as instances: what types mean, and what is said about cells that mean nothing."""

from __future__ import annotations

import datetime
import importlib.util
import tracemalloc
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest

from fairopt import formats
from fairopt.errors import InvalidInstance, SolverUnavailable
from fairopt.instance import Instance
from fairopt.instance.queues import Queue
from fairopt.tables import Column, Schema
from fairopt.tables.frames import from_frame

SERVERS = pd.DataFrame(
    {"name": ["A", "B"], "cpu": [9, 4.5], "memory": [12, 0], "count": [8, np.nan], "gpu": ["V100", None], "ssd": [True, False]}
)
USERS = pd.DataFrame(
    {
        "name": ["alice", "bob"],
        "cpu": [1, 0.1],
        "memory": [2, 0],
        "weight": pd.array([2, None], dtype="Int64"),
        "tasks": [100, np.inf],
        "requires": pd.array(["gpu in V100|T4; ssd = true", None], dtype="string"),
        "queue": pd.Categorical([None, "q"]),
    }
)
QUEUES = pd.DataFrame({"name": ["q"], "guarantee:cpu": [1.0], "limit:cpu": [np.nan]})
SAME = Instance(
    [[9.0, 12.0], [4.5, 0.0]],
    [[1.0, 2.0], [0.1, 0.0]],
    weights=[2, 1],
    eligibility=[[1, 0], [1, 1]],
    counts=[8, 1],
    tasks=[100, np.inf],
    queues=[Queue("q", guarantee={"cpu": 1})],
    queue_of=[None, "q"],
    attributes=[{"gpu": "V100", "ssd": True}, {"ssd": False}],
    users=["alice", "bob"],
    servers=["A", "B"],
    resources=["cpu", "memory"],
)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_frames_of_every_type() -> None:
    """Whole numbers, missing ones, categories, truth values; names in a column or in the index."""
    assert Instance.from_frame(USERS, SERVERS, QUEUES) == SAME
    assert Instance.from_frame(USERS.set_index("name"), SERVERS.set_index("name"), QUEUES.set_index("name")) == SAME


def test_frames_written_by_pandas(tmp_path: Path) -> None:
    """To Parquet, with and without an index, and to a workbook."""
    folder = tmp_path / "lab"
    folder.mkdir()
    SERVERS.to_parquet(folder / "servers.parquet")
    USERS.set_index("name").to_parquet(folder / "users.parquet")
    QUEUES.to_parquet(folder / "queues.parquet", index=False)
    assert formats.load(folder) == SAME
    USERS.set_axis(["x", "y"]).drop(columns="name").rename({"x": "alice", "y": "bob"}).to_parquet(folder / "users.parquet")
    assert formats.load(folder) == SAME
    with pd.ExcelWriter(tmp_path / "lab.xlsx") as book:
        for name, frame in {"servers": SERVERS, "users": USERS, "queues": QUEUES, "notes": pd.DataFrame({"a": [1]})}.items():
            frame.to_excel(book, sheet_name=name, index=False)
    assert formats.load(tmp_path / "lab.xlsx") == SAME


def test_numbers_are_exact() -> None:
    """The nearest float of exact types; of float32 what it is, not what it shows."""
    third, tenth = Fraction(1, 3), np.float32(0.1)
    users = pd.DataFrame({"x": [third, Decimal("0.1"), 2**60 + 1]}, index=["a", "b", "c"])
    demands = Instance.from_frame(users, pd.DataFrame({"x": np.array([tenth])}, index=["S"])).demands[:, 0]
    assert demands.tolist() == [1 / 3, 0.1, float(2**60 + 1)]
    assert Instance.from_frame(users, pd.DataFrame({"x": np.array([tenth])}, index=["S"])).capacities[0, 0] == float(tenth)


def test_units_in_frames() -> None:
    """As in files."""
    users = pd.DataFrame({"memory": ["1GiB", "512MiB"], "weight": ["1/3", 1]}, index=["a", "b"])
    instance = Instance.from_frame(users, pd.DataFrame({"memory": ["4GiB"]}, index=["S"]))
    assert instance.demands[:, 0].tolist() == [2**30, 2**29]
    assert instance.weights.tolist() == [1 / 3, 1]


def test_matrices_are_frames() -> None:
    """By index or by a first column."""
    servers, users = pd.DataFrame({"x": [1.0, 2]}, index=["A", "B"]), pd.DataFrame({"x": [1.0, 1]}, index=["a", "b"])
    rates = pd.DataFrame({"B": [4, 2], "A": [3, 1]}, index=["b", "a"])
    allowed = pd.DataFrame({"user": ["a", "b"], "A": [True, False], "B": [1, 1]})
    instance = Instance.from_frame(users, servers, rates=rates, eligibility=allowed.astype({"A": int}), weights=users + 1)
    assert instance.rates_per_server is not None
    assert instance.rates_per_server.tolist() == [[1, 2], [3, 4]]
    assert instance.eligibility.tolist() == [[True, True], [False, True]]
    assert instance.weights.tolist() == [[2], [2]]


def test_lists_of_servers() -> None:
    """As Parquet holds them."""
    servers = pd.DataFrame({"x": [1.0, 2]}, index=["A", "B"])
    users = pd.DataFrame({"x": [1.0, 1], "servers": [["B"], ["A", "B"]]}, index=["a", "b"])
    assert Instance.from_frame(users, servers).eligibility.tolist() == [[False, True], [True, True]]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cpu": [1, -1]}, 'the frame users, row 1, column "cpu": user "bob", demand, cpu: expected a number >= 0, found -1.0'),
    ({"cpu": [1, np.nan]}, 'the frame users, row 1, column "cpu": the cell is empty; write 0 if you mean 0'),
    (
        {"cpu": [1, "two"]},
        'the frame users, row 1, column "cpu": expected a number, found the text "two"; write digits, or a quantity such as',
    ),
    ({"cpu": [True, 1]}, 'the frame users, row 0, column "cpu": expected a number, found the text "true"'),
    ({"cpu": [1, {}]}, 'the frame users, row 1, column "cpu": expected text or a number, found a mapping'),
    (
        {"weight": [1, datetime.date(2026, 1, 2)]},
        'the frame users, row 1, column "weight": expected text or a number, found the date or time 2',
    ),
    ({"wieght": [1, 2]}, 'the frame users, column "wieght": there is no resource "wieght"; a resource must'),
    ({"disk": [1, 2]}, 'the frame users, column "disk": there is no resource "disk"; a resource must be a column of the frame servers too'),
    ({"name": ["alice", "alice"]}, 'the frame users, row 1, column "name": user "alice", name: "alice" occurs twice; names must be unique'),
    ({"servers": ["A", ["A|B"]]}, 'the frame users, row 1, column "servers": names in a list must not hold "|" or spaces around them'),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_refused_frames(change: dict[str, Any], message: str) -> None:
    """With the frame, the label of the row and the column."""
    with pytest.raises(InvalidInstance) as caught:
        Instance.from_frame(USERS.assign(**{name: pd.Series(values, dtype=object) for name, values in change.items()}), SERVERS, QUEUES)
    assert str(caught.value).startswith(message)


def test_labels_of_rows_are_in_messages() -> None:
    """Whatever the index holds."""
    with pytest.raises(
        InvalidInstance, match=r'^the frame users, row "bob", column "cpu": user "bob", demand, cpu: expected a number >= 0'
    ):
        Instance.from_frame(USERS.assign(cpu=[1, -1]).set_index("name"), SERVERS, QUEUES)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        (None, "users is nothing, not a frame; give a pandas.DataFrame"),
        ([1], "users is list, not a frame"),
        (pd.DataFrame(), "the frame users: there are no columns"),
        (pd.DataFrame({"cpu": [1]}), 'the frame users: there is no column "name"; the columns are cpu'),
        (pd.DataFrame({"cpu": []}, index=pd.Index([], dtype=object)), "the frame users: there"),
        (pd.DataFrame({"name": ["a"], True: [1]}), "the frame users: the name of column 2 is true; names are text"),
        (pd.DataFrame({("a", "b"): [1]}), "the frame users has labels of 2 levels"),
    ],
)
def test_what_is_no_frame(users: Any, message: str) -> None:
    """Before a cell is looked at."""
    with pytest.raises(InvalidInstance) as caught:
        Instance.from_frame(users, SERVERS)
    assert str(caught.value).startswith(message)


def test_whatever_pandas_can_be_made_of() -> None:
    """Arrow tables, for example."""

    class Other:
        def to_pandas(self) -> pd.DataFrame:
            return USERS

    assert from_frame("the frame users", Other(), Schema(Column("name"))).raw("name")[0] == "alice"


# Folders of Parquet ---------------------------------------------------------------------------------------------------------------


def test_a_folder_of_parquet_tables() -> None:
    """Numbers are numbers there; the folder stays one of Parquet whatever its name; nothing is deleted that is another table."""
    formats.save(SAME, "lab.parquet")
    assert sorted(path.name for path in Path("lab.parquet").iterdir()) == ["queues.parquet", "servers.parquet", "users.parquet"]
    table = pq.read_table("lab.parquet/users.parquet")
    assert [str(kind) for kind in table.schema.types] == ["string", "double", "double", "double", "string", "double", "string"]
    assert table.column("servers").to_pylist() == ["A", None]
    Path("lab.parquet").rename("lab")
    formats.save(SAME.replace(queues=None, queue_of=None), "lab")
    assert sorted(path.name for path in Path("lab").iterdir()) == ["servers.parquet", "users.parquet"]
    Path("lab/servers.csv").write_text("name,cpu\nA,1\n")
    with pytest.raises(InvalidInstance, match=r"^the folder lab holds servers.csv and servers.parquet; remove one of them$"):
        formats.load("lab")
    with pytest.raises(InvalidInstance, match=r"^lab holds servers.csv, which would stand beside servers.parquet; remove it"):
        formats.save(SAME, "lab")


def test_tables_of_both_kinds() -> None:
    """A folder may hold some as CSV and some as Parquet."""
    formats.save(SAME, "a")
    formats.save(SAME, "b.parquet")
    Path("a/users.csv").unlink()
    Path("b.parquet/users.parquet").rename("a/users.parquet")
    assert formats.load("a") == SAME


def test_refused_parquet() -> None:
    """With the row, counted from 1."""
    formats.save(SAME, "lab.parquet")
    USERS.assign(cpu=[1, -1]).to_parquet("lab.parquet/users.parquet")
    with pytest.raises(InvalidInstance, match=r'^lab.parquet/users.parquet, row 2, column "cpu": user "bob", demand, cpu: expected'):
        formats.load("lab.parquet")
    Path("lab.parquet/users.parquet").write_bytes(b"no")
    with pytest.raises(InvalidInstance, match=r"^lab.parquet/users.parquet is not a Parquet file, or is damaged: .*; write it again$"):
        formats.load("lab.parquet")
    Path("lab.parquet/users.parquet").unlink()
    with pytest.raises(InvalidInstance, match=r"^the folder lab.parquet holds no users.parquet"):
        formats.load("lab.parquet")


# Workbooks ------------------------------------------------------------------------------------------------------------------------


def book(**sheets: list[list[Any]]) -> None:
    """Write a workbook as somebody else would."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in ({"servers": [["name", "cpu"], ["A", 4]], "users": [["name", "cpu"], ["a", 1]]} | sheets).items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save("lab.xlsx")


def test_labels_are_never_formulas() -> None:
    """Of a workbook, every cell with text is text."""
    odd = ["=1+1", '=HYPERLINK("http://example.com")', "+1", "-1", "@SUM(1)", "'a", "#N/A", "123", "TRUE"]
    formats.save(Instance([[1]] * 9, [[1]] * 9, users=odd, servers=odd, resources=["=cpu"]), "lab.xlsx")
    with zipfile.ZipFile("lab.xlsx") as archive:
        pages = [archive.read(name).decode() for name in archive.namelist() if name.startswith("xl/worksheets/")]
    assert all("<f>" not in page for page in pages)
    assert all(page.count('t="inlineStr"') == 9 + 2 for page in pages)
    assert formats.load("lab.xlsx").users == tuple(odd)


def test_what_people_leave_in_workbooks() -> None:
    """Empty rows and columns, numbers as names, other sheets."""
    book(servers=[[], ["name", "cpu", None], [101, 4, None], [None, None], ["B", 8]], users=[["name", "cpu"], [7.0, 1]], Notes=[["hello"]])
    instance = formats.load("lab.xlsx")
    assert (instance.servers, instance.users, instance.capacities[:, 0].tolist()) == (("101", "B"), ("7",), [4, 8])


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        (
            {"users": [["name", "cpu"], [], ["a", -1]]},
            'lab.xlsx, sheet users, row 3, column "cpu": user "a", demand, cpu: expected a number >= 0',
        ),
        (
            {"users": [["name", "cpu"], ["a", "=1+1"]]},
            'lab.xlsx, sheet users, row 2, column "cpu": the formula has no value; open the file in',
        ),
        (
            {"users": [["name", "cpu"], ["a", "#REF!"]]},
            'lab.xlsx, sheet users, row 2, column "cpu": the cell holds the error #REF!; correct it',
        ),
        (
            {"users": [["name", "cpu"], [datetime.date(2026, 1, 2), 1]]},
            'lab.xlsx, sheet users, row 2, column "name": expected text or a number, ',
        ),
        (
            {"users": [["name", "cpu", None], ["a", 1, 2]]},
            'lab.xlsx, sheet users: column 3 has no name, and holds "2" in row 2; name it (note, if it is for',
        ),
        ({"users": []}, "lab.xlsx, sheet users: there are no columns"),
        ({"users": [["name", "cpu"]]}, "lab.xlsx, sheet users: there are no rows below the names of the columns"),
    ],
)
def test_refused_workbooks(sheets: dict[str, list[list[Any]]], message: str) -> None:
    """With the sheet, the row as the program counts it, and the column."""
    book(**sheets)
    with pytest.raises(InvalidInstance) as caught:
        formats.load("lab.xlsx")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("filled", ["header", "rows"])
def test_a_sheet_as_wide_as_can_be_takes_no_memory(filled: str) -> None:
    """A value in column XFD, of the header or of every one of 1,000 rows: 16 million cells are not looked at one by one."""
    workbook = openpyxl.Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "servers"
    sheet.append(["name", "cpu"])
    for row in range(2, 1002):
        sheet.cell(row, 1, f"s{row}")
        sheet.cell(row, 2, 4)
    for row in range(2, 1002) if filled == "rows" else (1,):
        sheet.cell(row, 16_384, "x")
    workbook.create_sheet("users").append(["name", "cpu"])
    workbook["users"].append(["a", 1])
    workbook.save("lab.xlsx")
    tracemalloc.start()
    try:
        if filled == "header":  # a column without a cell is one nevertheless
            assert formats.load("lab.xlsx").n_servers == 1000
        else:
            with pytest.raises(
                InvalidInstance, match=r'^lab.xlsx, sheet servers: column 16384 has no name, and holds "x" in row 2; name it'
            ):
                formats.load("lab.xlsx")
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_a_missing_sheet() -> None:
    """The names of the others are a hint."""
    workbook = openpyxl.Workbook()
    workbook.worksheets[0].title = "Machines"
    workbook.save("lab.xlsx")
    with pytest.raises(
        InvalidInstance, match=r"lab.xlsx: there is no sheet servers; the sheets are Machines: rename the one that is meant, or add it"
    ):
        formats.load("lab.xlsx")


@pytest.mark.parametrize("content", [b"", b"no", b"PK\x03\x04"])
def test_what_is_no_workbook(content: bytes) -> None:
    """Said so, whatever openpyxl makes of it."""
    Path("lab.xlsx").write_bytes(content)
    with pytest.raises(InvalidInstance, match=r"^lab.xlsx is not an .xlsx workbook, or is damaged"):
        formats.load("lab.xlsx")
    with zipfile.ZipFile("lab.xlsx", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(InvalidInstance, match=r"^lab.xlsx is not an .xlsx workbook, or is damaged: .*; save it again as .xlsx$"):
        formats.load("lab.xlsx")


def test_formulas_have_the_values_that_were_calculated() -> None:
    """A spreadsheet program stores them beside the formulas."""
    book(users=[["name", "cpu"], ["a", "=1+1"]])
    with zipfile.ZipFile("lab.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/worksheets/sheet2.xml"] = parts["xl/worksheets/sheet2.xml"].replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
    assert b"<v>2</v>" in parts["xl/worksheets/sheet2.xml"]
    with zipfile.ZipFile("lab.xlsx", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    assert formats.load("lab.xlsx").demands.tolist() == [[2]]


def test_what_a_workbook_cannot_hold() -> None:
    """It is said, and nothing is cut off."""
    with pytest.raises(InvalidInstance, match=r"^lab.xlsx: a cell has 32,767 characters at most, and x+... has more; save as .yaml$"):
        formats.save(Instance([[1]], [[1]], users=["x" * 32_768]), "lab.xlsx")
    with pytest.raises(InvalidInstance, match=r'^lab.xlsx: a resource cannot be called "count" in a workbook, where that is a column'):
        formats.save(Instance([[1]], [[1]], resources=["count"]), "lab.xlsx")
    assert not Path("lab.xlsx").exists()


@pytest.mark.parametrize("name", ["lab.xls", "lab.xlsb"])
def test_other_workbooks(name: str) -> None:
    """They can be saved as what is read."""
    Path(name).write_text("")
    with pytest.raises(InvalidInstance, match=r"; save it as .xlsx$"):
        formats.load(name)


def test_without_openpyxl(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says what to install."""
    book()
    found = importlib.util.find_spec
    monkeypatch.setattr("fairopt.tables.workbooks.find_spec", lambda name: None if name == "openpyxl" else found(name))
    message = "lab.xlsx needs the package openpyxl, which is not installed; install it with: pip install openpyxl$"
    with pytest.raises(SolverUnavailable, match=f"^reading {message}"):
        formats.load("lab.xlsx")
    with pytest.raises(SolverUnavailable, match=f"^writing {message}"):
        formats.save(SAME, "lab.xlsx")
