"""Tables of results in every kind of file: what each holds, and that no label is more than text in any."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import InvalidInstance, SolverUnavailable
from fairopt.formats.results import KINDS, rendered, require

ODD = [
    "=1+1",
    "@a",
    "a|b",
    "50% of $x_1^2",
    "*b* `c` [d](http://e)",
    "<script>&",
    "\\end{tabular}",
    "#1 {x} ~",
    "two\nlines",
    "-x--y",
    "'q''",
]
NUMBERS = [1 / 3, 0.1, -1.5, 1e-17, 12345678.25, np.nan, np.inf, 0.0, 2.0, 1e300, -0.0]
FRAME = pd.DataFrame(
    {"tasks": NUMBERS, "kind": ["a"] * 10 + [None], "empty": [None] * 11, "ok": [True] * 11}, index=pd.Index(ODD, name="user")
)


def test_parquet_is_data() -> None:
    """Every label and every bit."""
    back = pd.read_parquet(io.BytesIO(rendered(FRAME, "parquet")))  # type: ignore[arg-type]
    assert back["user"].tolist() == ODD
    assert back["tasks"].to_numpy().tobytes() == np.array(NUMBERS).tobytes()
    with pytest.raises(InvalidInstance, match=r"^x.parquet cannot be Parquet: .*; end its name in .csv$"):
        rendered(FRAME.set_axis(["a", "a", "b", "c"], axis=1), "parquet", "x.parquet")


def test_a_workbook_has_types() -> None:
    """Text is text, a number has all its digits, and nothing is a formula."""
    content = rendered(FRAME, "xlsx")
    assert isinstance(content, bytes)
    sheet = openpyxl.load_workbook(io.BytesIO(content)).active
    assert sheet is not None
    rows: list[Any] = list(sheet.iter_rows())
    assert [cell.value for cell in rows[0]] == ["user", "tasks", "kind", "empty", "ok"]
    assert [row[0].value for row in rows[1:]] == ODD
    assert {row[0].data_type for row in rows[1:]} == {"s"}
    assert [row[0].quotePrefix for row in rows[1:]] == [text[0] in "=@-'" for text in ODD]
    assert [row[1].value for row in rows[1:]] == [None if value != value else "inf" if value == np.inf else value for value in NUMBERS]
    assert rows[1][4].value is True


def test_markdown_has_a_cell_for_a_cell() -> None:
    """Whatever the labels hold: CommonMark reads a backslash before punctuation as the punctuation."""
    text = rendered(FRAME, "md")
    assert isinstance(text, str)
    head, line, *rows = text.splitlines()
    assert (head, line) == ("| user | tasks | kind | ok |", "| --- | ---: | --- | --- |")  # nothing in a column: no column
    assert len(rows) == len(ODD)
    for row, label in zip(rows, ODD, strict=True):
        cells = re.split(r"(?<!\\)(?:\\\\)*\|", row)
        assert len(cells) == 6
        assert re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", cells[1].strip()) == label.replace("\n", r"\n")
        assert not re.search(r"(?<!\\)[*`\[\]<>&$_]", cells[1].replace("\\\\", ""))
    assert [row.split(" | ")[1] for row in rows][:5] == ["0.333333", "0.1", "-1.5", "1e-17", "12345678"]


def test_latex_has_a_cell_for_a_cell() -> None:
    """No character of a label has a meaning."""
    text = rendered(FRAME, "tex")
    assert isinstance(text, str)
    lines = text.splitlines()
    assert lines[:2] == ["\\begin{tabular}{lrll}", "\\toprule"]
    assert lines[-2:] == ["\\bottomrule", "\\end{tabular}"]
    rows = lines[4:-2]
    assert len(rows) == len(ODD)
    for row in rows:
        assert len(re.split(r"(?<!\\) & ", row)) == 4
        assert row.endswith(" \\\\")
        label = re.split(r"(?<!\\) & ", row)[0]
        plain = re.sub(r"\\text\w+\{\}|\\[&%$#_{}]|^\{[\[*]\}|-\{\}-|'\{\}'|\{''\}", "", label)
        assert not set(plain) & set('&%$#_{}\\~^<>|`"'), row
    assert rows[2].split(" & ")[1] == "$-1.5$"
    assert rows[6].startswith(r"\textbackslash{}end\{tabular\} & ")


def test_an_index_that_counts_is_no_column() -> None:
    """One with a name, or with labels, is."""
    frame = pd.DataFrame({"a": [1.5, 2]})
    for kind in KINDS:
        if kind not in ("parquet", "xlsx"):
            assert "user" not in str(rendered(frame, kind))
            assert "user" in str(rendered(frame.rename_axis("user"), kind))
    assert list(csv.reader(io.StringIO(str(rendered(frame, "csv"))))) == [["a"], ["1.5"], ["2.0"]]


def test_several_indices_are_columns() -> None:
    """As in the table of a study."""
    frame = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", "y")], names=["instance", "entry"]))
    assert str(rendered(frame, "md")).splitlines()[0] == "| instance | entry | a |"


def test_without_openpyxl(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is computed."""
    monkeypatch.setattr("fairopt.tables.workbooks.find_spec", lambda name: None)
    with pytest.raises(
        SolverUnavailable, match=r"^writing a.xlsx needs the package openpyxl, which is not installed; install it with: pip"
    ):
        require("xlsx", "a.xlsx")
    for kind in ("csv", "parquet", "md", "tex", "json", "page"):
        require(kind, "a")


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_an_allocation_comes_back(kind: str, tmp_path: Path) -> None:
    """From every kind that is data, with any labels."""
    labels = [label for label in ODD if label != "two\nlines"]
    instance = fo.Instance(np.eye(10) * 3, np.eye(10), users=labels, servers=labels)
    allocation = fo.solve(instance, "drfh")
    path = tmp_path / f"mine.{kind}"
    content = rendered(allocation.to_frame(), kind)  # type: ignore[arg-type]
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (row,) = fo.compare(instance, notions=[], allocations={"mine": path})
    assert row.allocation is not None
    assert np.array_equal(row.allocation.tasks, allocation.tasks)
