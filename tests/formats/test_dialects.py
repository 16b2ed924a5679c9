"""One instance in the dialects of many spreadsheets is one instance; and whoever follows a hint gets a file that is read."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo

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


def number(value: object, decimal: str, thousands: str) -> str:
    """A number as a program of some country writes it."""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


@st.composite
def dialects(draw: st.DrawFn) -> dict[str, bytes]:
    """Both tables as files. Each has a number that shows its decimal sign."""
    files = {}
    for name, table in (("servers", SERVERS), ("users", USERS)):
        separator = draw(st.sampled_from([",", ";", "\t"]))
        decimal = draw(st.sampled_from([".", ","]))
        thousands = draw(st.sampled_from(["", " ", "\u00a0", "'", "_", "." if decimal == "," else ","]))
        rows = [[number(value, decimal, thousands) for value in row] for row in table]
        if draw(st.booleans()):
            rows[0] = [draw(st.sampled_from([word, word.upper(), f" {word} "])) if word != "clock" else word for word in rows[0]]
            rows[0][0] = draw(st.sampled_from(["name", "Name", "name "]))
        if draw(st.booleans()):
            rows = [
                [*row, note] for row, note in zip(rows, [draw(st.sampled_from(["Notes", "# why", "contact"])), "a, b", "1,5"], strict=True)
            ]
        if draw(st.booleans()):
            rows = [[*row, ""] for row in rows]
        if draw(st.booleans()):
            rows.append([" "] * len(rows[0]))
        if draw(st.booleans()):
            rows[1:] = [[f"{row[0]} ", *row[1:]] for row in rows[1:]]
        page = io.StringIO()
        quoting: Any = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        csv.writer(page, delimiter=separator, quoting=quoting, lineterminator=draw(st.sampled_from(["\n", "\r\n"]))).writerows(rows)
        title = draw(
            st.sampled_from(
                ["", "Our lab\n", "Our lab, 2026\n" if separator != "," else "Our lab\n", "# of May, 2026\n", f"sep={separator}\n"]
            )
        )
        files[f"{draw(st.sampled_from([name, name.capitalize()]))}.csv"] = (title + page.getvalue()).encode(
            draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
        )
    return files


@settings(max_examples=60, deadline=None)
@given(files=dialects())
def test_every_dialect_is_the_same_instance(files: dict[str, bytes]) -> None:
    """Separators, signs, quotes, blanks, comments, titles, encodings, and the case of names."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        read = fo.load(folder)
        expected = instance(SERVERS, USERS)
        upper = {resource: resource for resource in read.resources}
        assert [resource.lower() for resource in upper] == ["gpu", "memory"]
        assert read.capacities.tolist() == expected.capacities.tolist()
        assert read.demands.tolist() == expected.demands.tolist()
        assert (read.users, read.servers) == (expected.users, expected.servers)
        assert read.weights.tolist() == expected.weights.tolist()
        assert read.counts.tolist() == expected.counts.tolist()
        assert read.guarantees.tolist() == expected.guarantees.tolist()
        assert [dict(each) for each in read.attributes] == [dict(each) for each in expected.attributes]


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
