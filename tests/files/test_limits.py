"""What a small file may cost: every reader counts what it unpacks, and refuses a file at one limit, in a sentence that names the option."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from support.command_line import PAPER, flat, run

import fairopt as fo
from fairopt.cli import app
from fairopt.files.limits import MAX_BYTES, limits, reading_limit
from fairopt.histories.reading import read_log_file

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
NODES, PODS = EXPORTS / "kubernetes_nodes.json", EXPORTS / "kubernetes_pods.json"
CLUSTER = fo.Instance([[4.0]], [[1.0]], users=["u"], resources=["cpu"])
READERS: dict[str, Callable[[Path], object]] = {
    "cluster.json": fo.load,
    "cluster.yaml": fo.load,
    "trace.csv": fo.load_trace,
    "trace.csv.gz": fo.load_trace,
    "log.csv": lambda path: read_log_file(path, CLUSTER),
    "log.csv.gz": lambda path: read_log_file(path, CLUSTER),
    "jobs.gz": lambda path: read_log_file(path, CLUSTER),
    "jobs.swf.gz": lambda path: read_log_file(path, CLUSTER),
    "nodes.json.gz": lambda path: fo.import_kubernetes(path, path),
    "nodes.txt.gz": lambda path: fo.import_slurm(path, path),
    "machines.csv.gz": lambda path: fo.import_openb(path, path),
    "log.swf.gz": fo.import_swf,
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_unpacked_has_a_limit(tmp_path: Path, name: str) -> None:
    """20,000 bytes are more than 10,000, packed into 50 or not; with room for them, the file is refused for what it says."""
    content = b"jobid|\n" + b" " * 20_000
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with (
        reading_limit(max_bytes=10_000),
        pytest.raises(fo.InvalidInstance, match="holds more than 10,000 bytes") as caught,
    ):
        READERS[name](tmp_path / name)
    assert "--max-bytes" in str(caught.value)
    with reading_limit(max_bytes=30_000), pytest.raises(fo.InvalidInstance) as other:
        READERS[name](tmp_path / name)
    assert "--max-bytes" not in str(other.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
@pytest.mark.parametrize("name", [name for name in READERS if not name.endswith(".gz")])
def test_what_never_ends_is_refused(tmp_path: Path, name: str) -> None:
    """A device that is read for ever."""
    (tmp_path / name).symlink_to("/dev/zero")
    with reading_limit(max_bytes=5_000_000), pytest.raises(fo.InvalidInstance, match="holds more than 5 MB"):
        READERS[name](tmp_path / name)


def test_a_pipe_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """And one that holds an instance is read once, as a whole."""
    path = tmp_path / "cluster.json"
    os.mkfifo(path)

    def write(text: str) -> None:
        with path.open("w") as file:
            file.write(text)

    text = json.dumps(CLUSTER.to_dict())
    for content in (text, text + " " * 20_000):
        writer = threading.Thread(target=lambda content=content: write(content), daemon=True)
        writer.start()
        with reading_limit(max_bytes=10_000):
            if content == text:
                assert fo.load(path) == CLUSTER
            else:
                with pytest.raises(fo.InvalidInstance, match="10,000 bytes"):
                    fo.load(path)
        writer.join(10)


@pytest.mark.parametrize(("character", "width"), [("a", 1), ("\u00e9", 1), ("\u0416", 2), ("\U0001f600", 4)])
def test_one_wide_character_makes_all_of_them_wide(tmp_path: Path, character: str, width: int) -> None:
    """As Python keeps text: a gigabyte of ASCII with one emoji would be four."""
    path = tmp_path / "cluster.json"
    path.write_text(f'{{"{character}": 1}}'.ljust(5_000), encoding="utf-8")
    size = path.stat().st_size
    with reading_limit(max_bytes=width * size), pytest.raises(fo.InvalidInstance, match="unknown key"):
        fo.load(path)
    with reading_limit(max_bytes=width * size - 1), pytest.raises(fo.InvalidInstance, match="holds more than"):
        fo.load(path)


@pytest.mark.parametrize("end", ["\n", "\r", "\f", "\u2028"])
def test_lines_are_counted_before_they_are_made(tmp_path: Path, end: str) -> None:
    """20,000 lines of nothing; a line takes eight bytes at least."""
    for name in ("nodes.txt", "jobs.txt", "log.swf", "queues.yaml"):
        (tmp_path / name).write_text("a" + end * 20_000, newline="")
    reads: list[Callable[[], object]] = [
        lambda: fo.import_slurm(tmp_path / "nodes.txt", tmp_path / "jobs.txt"),
        lambda: fo.import_swf(tmp_path / "log.swf"),
        lambda: fo.import_kubernetes(NODES, PODS, queues=tmp_path / "queues.yaml"),
    ]
    for read in reads:
        with reading_limit(max_bytes=400_000), pytest.raises(fo.InvalidInstance, match="holds more than 10,000 values"):
            read()


# Tables --------------------------------------------------------------------------------------------------------------------------


def folder(path: Path, users: str) -> Path:
    """Tables of one server."""
    (path / "servers.csv").write_text("name,cpu\ns,4\n")
    (path / "users.csv").write_text(users)
    return path


def test_rows_columns_and_cells_have_limits(tmp_path: Path) -> None:
    """Limits on bytes leave room for at least 1,000 of each, and a file that has more says how many it has."""
    with reading_limit(max_bytes=100_000):
        assert (limits().rows, limits().columns, limits().values) == (1000, 1000, 2500)
        with pytest.raises(fo.InvalidInstance, match=r"users.csv has 1,001 rows, more than 1,000"):
            fo.load(folder(tmp_path, "name,cpu\n" + "u,1\n" * 1000))
        with pytest.raises(fo.InvalidInstance, match=r"users.csv has 1,002 columns, more than 1,000"):
            fo.load(folder(tmp_path, "name" + ",c" * 1001 + "\n"))
        with pytest.raises(fo.InvalidInstance, match=r"users.csv holds more than 2,500 values"):
            fo.load(folder(tmp_path, "name,a,b,c\n" + "u,1,1,1\n" * 700))


def test_rows_of_parquet_are_counted_before_they_are_read(tmp_path: Path) -> None:
    """300,000 rows of one name and one number are a few kilobytes."""
    path = tmp_path / "users.parquet"
    pq.write_table(pa.table({"name": ["u"] * 300_000, "cpu": [1.0] * 300_000}), path)
    pq.write_table(pa.table({"name": ["s"], "cpu": [4.0]}), tmp_path / "servers.parquet")
    assert path.stat().st_size < 10_000
    with reading_limit(max_bytes=50_000_000), pytest.raises(fo.InvalidInstance, match=r"users.parquet has 300,000 rows, more than 200,000"):
        fo.load(tmp_path)


@pytest.mark.parametrize("column", [["x" * 100_000] * 1000, [["x" * 100_000]] * 1000], ids=["texts", "lists of texts"])
def test_texts_of_parquet_are_counted_as_they_would_be_written(tmp_path: Path, column: list[Any]) -> None:
    """One text of 100,000 characters a thousand times: the file holds it once, and Python would a thousand times."""
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table({"user": ["u"] * 1000, "why": column}), path)
    assert path.stat().st_size < 50_000
    with reading_limit(max_bytes=50_000_000), pytest.raises(fo.InvalidInstance, match="holds more than 50 MB"):
        fo.load_trace(path)


def test_parquet_comes_back_as_it_was(tmp_path: Path) -> None:
    """Texts, of which most are read as dictionaries, missing values, numbers, dates and lists."""
    from fairopt.tables.parquet import arrow_table

    frame = pd.DataFrame(
        {
            "text": ["a", None, "b", "a"],
            "kind": pd.Categorical(["x", "y", "x", None]),
            "number": [1, 2, 3, 4],
            "part": [0.1, None, 0.3, 4e300],
            "day": pd.to_datetime(["2026-11-22", "NaT", "2026-11-23", "2026-11-24"]),
            "names": [["a", "b"], None, [], ["c"]],
            "bytes": [b"a", b"\xff", None, b""],
        },
        index=pd.Index(["p", "q", "r", "s"], name="user"),
    )
    frame.to_parquet(tmp_path / "a.parquet")
    assert arrow_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "a.parquet"))
    pd.testing.assert_frame_equal(arrow_table(tmp_path / "a.parquet").to_pandas(), frame)


def workbook(path: Path, row: str) -> Path:
    """A workbook of one server, with another row in its users as XML."""
    page = io.BytesIO()
    with pd.ExcelWriter(page, engine="openpyxl") as writer:
        for name in ("servers", "users"):
            pd.DataFrame({"name": ["u"], "cpu": [1]}).to_excel(writer, sheet_name=name, index=False)
    with zipfile.ZipFile(page) as before, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            text = before.read(name)
            after.writestr(name, text.replace(b"</sheetData>", row.encode() + b"</sheetData>") if name.endswith("sheet2.xml") else text)
    return path


def test_rows_of_a_workbook_are_not_filled(tmp_path: Path) -> None:
    """A sheet with a row two billion rows below the others, rows that reach far to the right, and one that is as it should be."""
    cell = '<row r="{0}"><c r="{1}{0}" t="inlineStr"><is><t>v</t></is></c></row>'
    with pytest.raises(fo.InvalidInstance, match="there is a row below row 1,048,576"):
        fo.load(workbook(tmp_path / "a.xlsx", cell.format(2_000_000_000, "A")))
    wide = "".join(cell.format(row, "XFD") for row in range(3, 300))
    with (
        reading_limit(max_bytes=100_000_000),
        pytest.raises(fo.InvalidInstance, match=r"has 16,384 columns|holds more than 2,500,000 values"),
    ):
        fo.load(workbook(tmp_path / "b.xlsx", wide))
    good = cell.format(9, "A").replace("</row>", '<c r="B9"><v>2</v></c></row>')
    assert fo.load(workbook(tmp_path / "c.xlsx", good)).users == ("u", "v")


def test_what_a_workbook_unpacks_to_has_a_limit(tmp_path: Path) -> None:
    """A megabyte of spaces in one part of it."""
    path = workbook(tmp_path / "a.xlsx", " " * 1_000_000)
    assert path.stat().st_size < 20_000
    with reading_limit(max_bytes=500_000), pytest.raises(fo.InvalidInstance, match="holds more than 500,000 bytes"):
        fo.load(path)


def test_a_row_and_a_shared_formula_of_a_workbook_have_limits(tmp_path: Path) -> None:
    """A row of 300,000 empty cells; and a formula of 4,500 characters that 3,000 cells share: openpyxl writes it out for each of them."""
    with pytest.raises(fo.InvalidInstance, match="has a row of more than 16,384 cells"):
        fo.load(workbook(tmp_path / "a.xlsx", f'<row r="3">{"<c/>" * 300_000}</row>'))
    formula = f'<row r="3"><c r="A3"><f t="shared" si="0" ref="A3:A9">{"+B1" * 1_500}</f><v>1</v></c></row>'
    cells = "".join(f'<row r="{row}"><c r="A{row}"><f t="shared" si="0"/><v>1</v></c></row>' for row in range(4, 3_004))
    with pytest.raises(fo.InvalidInstance, match="with its formulas holds more than 50,000,000 values"):
        fo.load(workbook(tmp_path / "b.xlsx", formula + cells))


# Documents -----------------------------------------------------------------------------------------------------------------------


def test_values_of_json_are_counted_before_they_are_made(tmp_path: Path) -> None:
    """Each empty list is three characters, and twenty times as much in memory."""
    path = tmp_path / "a.json"
    path.write_text('{"a": [' + "[]," * 5000 + "[]]}")
    with reading_limit(max_bytes=100_000):
        for read in (fo.load, lambda path: fo.import_kubernetes(path, path)):
            with pytest.raises(fo.InvalidInstance, match="holds more than 2,500 values"):
                read(path)


def test_aliases_stand_for_a_limited_number_of_values() -> None:
    """A demand of 100 resources that 100 users share is 20,000 values: 201 nodes, a mapping with its keys and values, 99 times more."""
    from fairopt.formats.syntax import Parsed

    demand = ", ".join(f"r{r}: 1" for r in range(100))
    shared = f"d: &d {{{demand}}}\nusers: [{', '.join(['*d'] * 99)}]\n"
    with reading_limit(max_bytes=2_000 * 99 * 201):
        assert len(Parsed("a.yaml", shared).data["users"]) == 99  # type: ignore[index]
    with (
        reading_limit(max_bytes=2_000 * (99 * 201 - 1)),
        pytest.raises(fo.InvalidInstance, match="the aliases stand for more than 19,898 values"),
    ):
        Parsed("a.yaml", shared)


def test_an_array_that_a_file_needs_has_a_limit(tmp_path: Path) -> None:
    """1,000 users with 1,000 resources are a million numbers, in two lists of a thousand names."""
    path = tmp_path / "a.json"
    document = {"servers": [{"name": "s", "capacity": {f"r{r}": 1 for r in range(1000)}}]}
    document["users"] = [{"name": f"u{n}", "demand": {"r0": 1}} for n in range(1000)]
    path.write_text(json.dumps(document))
    with (
        reading_limit(max_bytes=7_000_000),
        pytest.raises(fo.InvalidInstance, match="1,000 x 1,000 users and resources need 8 MB, the limit is 7 MB"),
    ):
        fo.load(path)


# The limit itself ----------------------------------------------------------------------------------------------------------------


def test_the_limit_holds_inside_of_the_statement_only() -> None:
    """Also after an error, and not in another thread."""
    seen = []

    def look() -> None:
        with fo.reading_limit(max_bytes=5):
            thread = threading.Thread(target=lambda: seen.append(limits().max_bytes))
            thread.start()
            thread.join()
            seen.append(limits().max_bytes)
            raise KeyError

    with pytest.raises(KeyError):
        look()
    assert [*seen, limits().max_bytes] == [MAX_BYTES, 5, MAX_BYTES]


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2GB", None])
def test_a_limit_that_is_none(number: Any) -> None:
    """It is a whole number of bytes."""
    with pytest.raises(fo.InvalidInstance, match="give a whole number of bytes >= 1"), fo.reading_limit(max_bytes=number):
        pass


def test_every_command_that_reads_files_has_the_option() -> None:
    """Those without are known by name."""
    group: Any = typer.main.get_command(app)
    without = set()
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        for own in getattr(command, "commands", {name: command}).values():
            if not any("--max-bytes" in parameter.opts for parameter in own.params):
                without.add(name)
    assert without == {"schema", "notions", "solvers", "placements", "schedulers", "generate", "reproduce"}


@pytest.mark.parametrize(
    ("given", "status"), [("1GB", 0), ("1MiB", 0), ("1000000", 0), ("10", 2), ("lots", 2), ("0", 2), ("-1", 2), ("1m", 2)]
)
def test_the_option_limits_the_command(given: str, status: int) -> None:
    """It is read with its unit, and reaches the thread that reads."""
    result = run("solve", PAPER, "--max-bytes", given, status=status)
    words = flat(result.stderr)
    assert status == 0 or re.search("holds more than 10 bytes|is no number of bytes", words)
    assert limits().max_bytes == MAX_BYTES
