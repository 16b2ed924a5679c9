"""One instance in the dialects of many spreadsheets is one instance; and whoever follows a hint gets a file that is read."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects import dialects, to_book, write_one

import fairopt as fo
from fairopt.formats.allocations import read as read_allocation
from fairopt.histories.reading import read_log_file

SERVERS: list[list[Any]] = [["name", "gpu", "memory", "count", "clock"], ["dgx", 8.0, 1024.0, 4.0, 2.5], ["rack", 4.0, 256.5, 16.0, 3.25]]
USERS: list[list[Any]] = [["name", "gpu", "memory", "weight", "guarantee"], ["vision", 2.0, 64.0, 2.0, 4.0], ["nlp", 0.5, 12.25, 0.75, ""]]


def instance(servers: list[list[Any]], users: list[list[Any]]) -> fo.Instance:
    """The same without files."""
    return fo.Instance(
        [row[1:3] for row in servers[1:]],
        [row[1:3] for row in users[1:]],
        weights=[row[3] for row in users[1:]],
        counts=[row[3] for row in servers[1:]],
        guarantees=[row[4] or 0 for row in users[1:]],
        attributes=[{"clock": f"{row[4]:g}"} for row in servers[1:]],
        users=[row[0] for row in users[1:]],
        servers=[row[0] for row in servers[1:]],
        resources=["gpu", "memory"],
    )


KINDS = ("csv", "xlsx", "ods", "frames")
JOBS: list[list[Any]] = [["user", "submit_s", "run_s", "tasks", "cpu"], ["ada", 0.5, 1024.0, 2.0, 0.5], ["bob", 1200.25, 7.5, 1.0, 1.75]]
LOG: list[list[Any]] = [["user", "submit", "start", "end", "cpu"], ["ada", 0.5, 5.25, 1024.0, 0.5], ["bob", 1200.25, 1300.0, "", 1.75]]
POOL = fo.Instance([[8.0]], [[1.0]], resources=["cpu"])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_dialect_is_the_same_instance(kind: str, data: st.DataObject) -> None:
    """Separators, signs, quotes, blanks, comments, titles, encodings, percentages, hidden sheets, and the case of names."""
    tables = [data.draw(dialects(name, table, kind)) for name, table in (("servers", SERVERS), ("users", USERS))]
    with tempfile.TemporaryDirectory() as folder:
        if kind == "frames":
            read = fo.Instance.from_frame(tables[1].frame(), tables[0].frame())
        elif kind == "csv":
            for table in tables:
                Path(folder, f"{table.name}.csv").write_bytes(table.text())
            read = fo.load(folder)
        else:
            read = fo.load(to_book(Path(folder, f"lab.{kind}"), tables))
    expected = instance(SERVERS, USERS)
    assert [resource.lower() for resource in read.resources] == ["gpu", "memory"]
    assert read.capacities.tolist() == expected.capacities.tolist()
    assert read.demands.tolist() == expected.demands.tolist()
    assert (read.users, read.servers) == (expected.users, expected.servers)
    assert read.weights.tolist() == expected.weights.tolist()
    assert read.counts.tolist() == expected.counts.tolist()
    assert read.guarantees.tolist() == expected.guarantees.tolist()
    assert [dict(each) for each in read.attributes] == [dict(each) for each in expected.attributes]


@pytest.mark.parametrize("kind", ["csv", "xlsx", "ods"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_dialect_is_the_same_trace_and_log(kind: str, data: st.DataObject) -> None:
    """Jobs to simulate, and a log of a cluster; times, too, may have decimal commas."""
    jobs, log = data.draw(dialects("jobs", JOBS, kind)), data.draw(dialects("log", LOG, kind))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.{kind}") for name in ("jobs", "log")]
        for path, table in zip(paths, (jobs, log), strict=True):
            if kind == "csv":
                path.write_bytes(table.text())
            else:
                write_one(path, table)
        trace, records = fo.load_trace(paths[0], cluster=POOL), read_log_file(paths[1], POOL)
    assert (trace.users, trace.submit.tolist(), trace.durations.tolist()) == (("ada", "bob"), [0.5, 1200.25], [1024, 7.5])
    assert trace.resources == ("cpu",)
    assert (trace.tasks.tolist(), trace.demands.ravel().tolist()) == ([2, 1], [0.5, 1.75])
    assert (records.owners, records.submit.tolist(), records.start.tolist()) == (("ada", "bob"), [0.5, 1200.25], [5.25, 1300])
    assert (records.end.tolist(), records.demands[records.shape].ravel().tolist()) == ([1024, np.inf], [0.5, 1.75])


HELD = fo.Instance([[8.0]], [[1.0], [1.0]], resources=["cpu"], users=["user", "other"], servers=["server"])
MISTAKES: dict[str, tuple[list[list[Any]], Callable[[Path], object]]] = {  # a table, and how it is read
    "servers": (SERVERS, lambda path: fo.load(path.parent)),
    "users": (USERS, lambda path: fo.load(path.parent)),
    "jobs": (JOBS, lambda path: fo.load_trace(path, cluster=POOL)),
    "log": (LOG, lambda path: read_log_file(path, POOL)),
    "events": (
        [["time_s", "event", "name", "number"], [1.0, "remove", "server", 1.0], [2.5, "add", "server", 2.0]],
        lambda path: fo.load_trace(path.with_name("jobs.csv"), cluster=POOL.replace(servers=["server"]), events=path),
    ),
    "held": ([["user", "server"], ["user", 1.5], ["other", 2.0]], lambda path: read_allocation(path, HELD)),
    "nodes": (
        [["sn", "cpu_milli", "memory_mib", "gpu", "model"], ["a", 96000.0, 393216.0, 8.0, "G2"], ["b", 64000.0, 262144.0, 0.0, ""]],
        lambda path: fo.import_openb(path, path.with_name("pods.csv")),
    ),
    "tasks": (
        [["user", "cpu", "mem", "n_tasks"], ["U1", 0.5, 0.25, 40.0], ["U2", 0.1, 0.2, 2.0]],
        lambda path: fo.import_google2011(path.with_name("machines.csv"), path),
    ),
}
OTHERS = {
    "pods": [["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos"], ["p", 6000.0, 12288.0, 1.0, 500.0, "LS"]],
    "machines": [["platform", "cpu", "mem", "count"], ["P0", 0.5, 0.25, 3835.0]],
}


@pytest.mark.parametrize("name", MISTAKES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_each_cell_that_is_no_number_is_one_mistake(name: str, data: st.DataObject) -> None:
    """All of them in one message, each with its line and column, and nothing about others."""
    table, read = MISTAKES[name]
    numbers = [(row, j) for row in range(1, len(table)) for j, cell in enumerate(table[row]) if isinstance(cell, float)]
    numbers = [(row, j) for row, j in numbers if table[0][j] != "clock"]
    wrong = sorted(data.draw(st.sets(st.sampled_from(numbers), min_size=1)))
    rows = [["?!" if (row, j) in wrong else cell for j, cell in enumerate(cells)] for row, cells in enumerate(table)]
    whole = {key: value for key, (value, _) in MISTAKES.items()} | OTHERS | {name: rows}
    with tempfile.TemporaryDirectory() as folder:
        for each, cells in whole.items():
            with Path(folder, f"{each}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(cells)
        with pytest.raises(fo.InvalidInstance) as caught:
            read(Path(folder, f"{name}.csv"))
    lines = str(caught.value).split("\n")
    said = [re.findall(r'line (\d+), column "([^"]+)"', line) for line in lines if "mistakes" not in line]
    assert sorted(said) == sorted([(str(row + 1), table[0][j])] for row, j in wrong), str(caught.value)


def test_a_sentence_below_a_table_is_one_mistake(tmp_path: Path) -> None:
    """And so is a heading in it; the remedy is to delete it."""
    (tmp_path / "servers.csv").write_text("name,gpu,memory\ns,8,64\n")
    (tmp_path / "users.csv").write_text("name,gpu,memory,weight\na,1,2,1\nWaiting list:,,,\nb,1,2,\nPrices as of May; ask the office,,,\n")
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.load(tmp_path)
    assert str(caught.value).split("\n")[0] == "2 mistakes:"
    for line, name in ((3, "Waiting list:"), (5, "Prices as of May; ask the office")):
        assert f'line {line}, column "name": the row has only the name "{name}"; delete the row if it is a note, or fill in' in str(
            caught.value
        )


def test_all_bad_jobs_of_a_log_at_once(tmp_path: Path) -> None:
    """Cells, times that cannot be, servers that are not there; lenient, they are left out and counted."""
    log = tmp_path / "log.csv"
    rows = ["ada,0,1,2,1,s", "bob,x,1,2,1,s", "cem,5,1,9,1,s", "dan,0,1,2,1,elsewhere", ",0,1,2,1,s", "eve,0,1,2,0,s"]
    log.write_text("\n".join(["user,submit,start,end,cpu,server", *rows, ""]))
    with pytest.raises(fo.InvalidInstance, match=r"^5 mistakes \(lenient=True or --lenient leaves such records out\):") as caught:
        read_log_file(log, POOL.replace(servers=["s"]))
    lines = str(caught.value).split("\n")[1:]
    assert [re.findall(r"line (\d)", line)[0] for line in lines] == ["3", "4", "5", "6", "7"]
    for line, part in zip(
        lines, ["is not a number of seconds", "it starts before", 'ran on "elsewhere"', "owner is empty", "zero"], strict=True
    ):
        assert part in line
    assert read_log_file(log, POOL.replace(servers=["s"]), lenient=True).owners == ("ada",)


def test_all_labels_of_a_matrix_at_once(tmp_path: Path) -> None:
    """Unknown and missing ones, of users and of servers, and cells."""
    path = tmp_path / "held.csv"
    path.write_text("user,srever\nuser,1\nohter,2\nuser,3\n")
    with pytest.raises(fo.InvalidInstance, match="expected a column for each server"):
        read_allocation(path, HELD)
    path.write_text("user,server,extra\nuser,x,1\nohter,2,1\nuser,3,1\n")
    with pytest.raises(fo.InvalidInstance, match=r"^5 mistakes:") as caught:
        read_allocation(path, HELD)
    for part in (
        'no "extra"',
        'no user "ohter" (did you mean "other"?)',
        'user "user" has a row already',
        'no row for user "other"',
        '"x"',
    ):
        assert part in str(caught.value)


def test_merged_cells_and_hidden_sheets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A merged cell may count once or for each row; a hidden sheet is read, and said to be."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in (("servers", [["name", "gpu"], ["s", 8]]), ("users", [["name", "gpu", "weight"], ["a", 1, 2], ["b", 1, None]])):
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book["servers"].sheet_state = "hidden"
    book.save(tmp_path / "lab.xlsx")
    assert fo.load(tmp_path / "lab.xlsx").weights.tolist() == [2, 1]
    assert "the sheet servers is hidden, and is read" in caplog.text
    book["users"].merge_cells("C2:C3")
    book.save(tmp_path / "lab.xlsx")
    with pytest.raises(fo.InvalidInstance, match=r'sheet users, row \d, column "weight": the cell is merged with others') as caught:
        fo.load(tmp_path / "lab.xlsx")
    assert str(caught.value).count("merged") <= 2


def test_a_percent_format_is_a_share(tmp_path: Path) -> None:
    """Of a weight, the number; of a guarantee of a queue, that part of the cluster; in other columns a number like any."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    sheets = {
        "servers": [["name", "gpu"], ["s", 8]],
        "users": [["name", "gpu", "weight", "queue"], ["a", 0.5, 0.5, "q"]],
        "queues": [["name", "guarantee:gpu"], ["q", 0.25]],
    }
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in (cell for row in sheet.iter_rows(min_row=2) for cell in row if isinstance(cell.value, float)):
            cell.number_format = "0%"
    book.save(tmp_path / "lab.xlsx")
    read = fo.load(tmp_path / "lab.xlsx")
    assert (read.weights.tolist(), read.demands.tolist(), dict(read.queues[0].guarantee)) == ([0.5], [[0.5]], {"gpu": 2})


@pytest.mark.parametrize(("cell", "grouped", "decimal"), [('"1,024"', 1024, 1.024), ('"512,000"', 512000, 512)])
def test_a_number_with_two_readings(tmp_path: Path, cell: str, grouped: float, decimal: float) -> None:
    """It is refused with both; another number of the table that shows the decimal sign decides."""
    (tmp_path / "users.csv").write_text("name,m\na,1\n")
    for other, expected in (("1", None), ("0.5", grouped), ('"0,5"', decimal)):
        (tmp_path / "servers.csv").write_text(f"name,m\ns,{cell}\nt,{other}\n")
        if expected is not None:
            assert fo.load(tmp_path).capacities[0, 0] == expected
        else:
            with pytest.raises(fo.InvalidInstance, match=rf'line 2, column "m": {cell[1:-1]} may be {grouped} or '):
                fo.load(tmp_path)


def test_percentages(tmp_path: Path) -> None:
    """Of weights, and of the cluster for a queue in the root."""
    (tmp_path / "servers.csv").write_text("name,gpu,count\ns,8,2\n")
    (tmp_path / "users.csv").write_text("name,gpu,weight,queue\na,1,50 %,q\n")
    (tmp_path / "queues.csv").write_text("name,parent,guarantee:GPU,limit:gpu\nq,,25%,\nr,q,,3\n")
    read = fo.load(tmp_path)
    assert (read.weights.tolist(), dict(read.queues[0].guarantee)) == ([0.5], {"gpu": 4})
    (tmp_path / "queues.csv").write_text("name,parent,guarantee:gpu,limit:gpu\nq,,25%,\nr,q,,50 %\n")
    with pytest.raises(fo.InvalidInstance, match="50 % may be of the cluster or of what q has; write 8 if it is of the cluster"):
        fo.load(tmp_path)


# Hints -------------------------------------------------------------------------------------------------------------------------

WRONG = [
    ("users", "name,gpu,cpu,weigth\na,1,2,3\n"),
    ("users", "name,gpus,cpu\na,1,2\n"),
    ("users", "nmae,gpu,cpu\na,1,2\n"),
    ("users", "name,gpu,cpu,garantee\na,1,2,3\n"),
    ("users", 'name,gpu,cpu\na,"1,024",2\n'),
    ("users", "name,gpu,cpu\na,8 GPUs,2\n"),
    ("users", "name,gpu,memory\na,1,64gb\n"),
    ("users", "name,gpu,servers\na,1,dxg\n"),
    ("users", "name,gpu,requires\na,1,modell = A100\n"),
    ("users", "name,gpu,queue\na,1,visoin\n"),
    ("queues", "name,wieght\nvision,1\n"),
    ("queues", "name,limit:gpus\nvision,1\n"),
    ("queues", "name,guarantee\nvision,1\n"),
]


@pytest.mark.parametrize(("table", "text"), WRONG)
def test_whoever_follows_a_hint_gets_a_file_that_is_read(tmp_path: Path, table: str, text: str) -> None:
    """The word that may be meant, or what is to be written, in the place of what is there."""
    files = {
        "servers": "name,gpu,cpu,memory,model\ndgx,8,64,4GiB,A100\n",
        "users": "name,gpu,cpu\na,1,2\n",
        "queues": "name,weight\nvision,1\n",
        table: text,
    }
    for name, content in files.items():
        (tmp_path / f"{name}.csv").write_text(content)
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.load(tmp_path)
    message = str(caught.value)
    meant, write = re.search(r'"([^"]+)"[^"]*\(did you mean "([^"]+)"\?\)', message), re.search(r"; write ([^\s,;]+)", message)
    if meant is not None:
        bad, good = re.search(r'there is no column "name" \(did you mean "([^"]+)"', message), meant[2]
        text = text.replace(bad[1], "name") if bad is not None else text.replace(meant[1], good)
    elif write is not None:
        cell = re.search(r'the text "([^"]+)"|: ([\d,]+) may be', message)
        assert cell is not None
        shown = next(filter(None, cell.groups()))
        text = text.replace(f'"{shown}"', write[1]) if f'"{shown}"' in text else text.replace(shown, write[1])
    else:
        raise AssertionError(message)
    (tmp_path / f"{table}.csv").write_text(text)
    fo.load(tmp_path)


@pytest.mark.parametrize("column", ["guarantee:gpu", "limit", "limit:gpu"])
def test_what_belongs_to_queues_has_no_hint_to_tasks(tmp_path: Path, column: str) -> None:
    """16 GPUs are not 16 tasks."""
    (tmp_path / "servers.csv").write_text("name,gpu\ns,8\n")
    (tmp_path / "users.csv").write_text(f"name,gpu,{column}\na,2,16\n")
    with pytest.raises(fo.InvalidInstance, match=r"of resources belongs to a queue: put .*:gpu. into the table queues") as caught:
        fo.load(tmp_path)
    assert "did you mean" not in str(caught.value)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """Of cells, of ranges and of names; ten of them, in the order of lines."""
    (tmp_path / "servers.csv").write_text("name,gpu,model\ns,8,T4\n")
    rows = ["a,x,1,", "b,-1,1,", "c,1,0;5,", "d,1,1,modl = T4"]
    (tmp_path / "users.csv").write_text("\n".join(["name,gpu,weight,requires", *rows, ""]))
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.load(tmp_path)
    head, *lines = str(caught.value).split("\n")
    assert head == "4 mistakes:"
    assert [re.findall(r"line (\d+)", line)[0] for line in lines] == ["2", "3", "4", "5"]
    (tmp_path / "users.csv").write_text("\n".join(["name,gpu", *(f"u{j},x" for j in range(17)), ""]))
    with pytest.raises(fo.InvalidInstance, match=r"^17 mistakes:\n(.*\n){10}and 7 more$"):
        fo.load(tmp_path)


@pytest.mark.parametrize("cell", ["64 GB (per job)", "", "1,024 GB"])
def test_a_cell_that_cannot_be_read_is_one_mistake(tmp_path: Path, cell: str) -> None:
    """The number that stands in for it has no unit, which nobody wrote."""
    (tmp_path / "servers.csv").write_text("name,gpu,memory\ns,8,512 GB\nt,4,128 GB\n")
    (tmp_path / "users.csv").write_text(f'name,gpu,memory\na,1,64 GB\nb,1,"{cell}"\n')
    with pytest.raises(fo.InvalidInstance, match=r'^[^\n]*line 3, column "memory": [^\n]*$') as caught:
        fo.load(tmp_path)
    assert "byte unit" not in str(caught.value)


def test_a_formula_without_a_value_is_one_mistake(tmp_path: Path) -> None:
    """In memory, too."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = {"servers": [["name", "memory"], ["s", "512 GB"], ["t", "=1+1"]], "users": [["name", "memory"], ["a", "64 GB"]]}
    for name, sheet in zip(rows, (book.active, book.create_sheet()), strict=True):
        sheet.title = name
        for row in rows[name]:
            sheet.append(row)
    book.save(tmp_path / "lab.xlsx")
    with pytest.raises(fo.InvalidInstance, match=r"^[^\n]*row 3[^\n]*the formula has no value[^\n]*$"):
        fo.load(tmp_path / "lab.xlsx")


@pytest.mark.parametrize("column", ["Notiz", "Bemerkungen", "Kommentar", "ANMERKUNG", "Email", "E-Mail", "Description"])
def test_columns_for_people(tmp_path: Path, column: str) -> None:
    """In German too; a resource of that name is not written into a table."""
    (tmp_path / "servers.csv").write_text("name,gpu\ns,8\n")
    (tmp_path / "users.csv").write_text(f"name,gpu,{column}\na,1,ask\nb,1,\n")
    assert fo.load(tmp_path).resources == ("gpu",)


def test_a_column_of_text_is_one_mistake(tmp_path: Path) -> None:
    """In both tables, or in that of users alone."""
    (tmp_path / "servers.csv").write_text("name,gpu,room\ns,8,R1\nt,4,R2\n")
    users = tmp_path / "users.csv"
    users.write_text("name,gpu,Room\na,1,K1\nb,1,K2\nc,1,\n")
    with pytest.raises(
        fo.InvalidInstance, match=r'^[^\n]*column "Room": [^\n]* text, such as "K1", here and in [^\n]*; rename both note[^\n]*$'
    ):
        fo.load(tmp_path)
    users.write_text("name,gpu,desk\na,1,K1\nb,1,K2\n")
    with pytest.raises(fo.InvalidInstance, match=r'^[^\n]*there is no resource "desk";[^\n]*; rename it note if it is for people$'):
        fo.load(tmp_path)
