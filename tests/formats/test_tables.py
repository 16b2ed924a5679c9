"""Folders of CSV tables: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairopt import formats
from fairopt.errors import InvalidInstance
from fairopt.formats import tables
from fairopt.instance import Instance
from fairopt.tables import read

SERVERS = 'name,cpu,memory,count,hosts,gpu,zone\nA,9,12,8,"n[1-3,5,7-10]",V100,a\nB,4.5,0,,,,b\n'
USERS = "name,cpu,memory,weight,owner,tasks,requires,servers\nalice,1,2,2,lab/vision,100,gpu in V100|T4,\nbob,0.5,0,,,inf,,A|B\n"
GOOD = {"servers.csv": SERVERS, "users.csv": USERS}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(tables: dict[str, str]) -> Instance:
    """Write the tables into a folder and load it."""
    Path("lab").mkdir(exist_ok=True)
    for name, text in tables.items():
        Path("lab", name).write_text(text, encoding="utf-8", newline="")
    return formats.load("lab")


def test_every_column() -> None:
    """The same instance by the constructor."""
    assert load(GOOD) == Instance(
        [[9.0, 12], [4.5, 0]],
        [[1.0, 2], [0.5, 0]],
        weights=[2, 1],
        eligibility=[[1, 0], [1, 1]],
        counts=[8, 1],
        tasks=[100, np.inf],
        hosts={"A": ["n1", "n2", "n3", "n5", "n7", "n8", "n9", "n10"]},
        attributes=[{"gpu": "V100", "zone": "a"}, {"zone": "b"}],
        owners={"alice": "lab/vision"},
        users=["alice", "bob"],
        servers=["A", "B"],
        resources=["cpu", "memory"],
    )


def test_hosts_may_be_separated_as_servers_are() -> None:
    """``a|b``, which is also how a list in a cell of a frame or of a Parquet file is read."""
    tables = {"servers.csv": "name,x,count,hosts\nA,1,3,a|b[1-2]\n", "users.csv": "name,x\nu,1\n"}
    assert load(tables).hosts == (("a", "b1", "b2"),)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"owners": [" lab"]}, 'cluster: the owner of "user-1" is the text " lab", which a cell cannot hold; save as .yaml'),
        (
            {"attributes": [{"zone": ""}]},
            'cluster: the attribute "zone" of server "server-1" is the text "", which a cell cannot hold; save as .yaml',
        ),
        (
            {"attributes": [{"hosts": "a"}]},
            'cluster: an attribute cannot be called "hosts" in CSV tables, where that is another column; save as .yaml',
        ),
        (
            {"attributes": [{"x": 1}]},
            'cluster: an attribute cannot be called "x" in CSV tables, where that is another column; save as .yaml',
        ),
        (
            {"counts": [9_000], "hosts": [[f"gke-pool-{j:04x}-x{j % 7}a{j}" for j in range(9_000)]]},
            'cluster: the hosts of server "server-1" are the text "gke-pool-0000-x0a0,',
        ),
    ],
)
def test_facts_that_no_cell_can_hold_need_yaml(facts: dict[str, Any], message: str) -> None:
    """Nothing is cut or lost: YAML holds them."""
    instance = Instance([[1]], [[1]], resources=["x"], **facts)
    with pytest.raises(InvalidInstance) as caught:
        formats.save(instance, "cluster")
    assert str(caught.value).startswith(message)
    formats.save(instance, "cluster.yaml")
    assert formats.load("cluster.yaml") == instance


def test_every_matrix_in_any_order() -> None:
    """Rows and columns are found by their labels, never by position; eligibility narrows what the columns leave."""
    instance = load(
        {
            "servers.csv": "name,x,y\nA,1,1\nB,2,2\n",
            "users.csv": "name,x,y,servers\nalice,1,0,A|B\nbob,1,1,A\n",
            "eligibility.csv": "user,B,A\nbob,1,1\nalice,1,0\n",
            "rates.csv": "user,B,A\nbob,4,3\nalice,2,1\n",
            "weights.csv": "user,y,x\nbob,4,3\nalice,2,1\n",
        }
    )
    assert instance == Instance(
        [[1, 1], [2, 2]],
        [[1, 0], [1, 1]],
        weights=[[1, 2], [3, 4]],
        eligibility=[[0, 1], [1, 0]],
        rates=[[1, 2], [3, 4]],
        users=["alice", "bob"],
        servers=["A", "B"],
        resources=["x", "y"],
    )


def test_blank_lines_and_windows_line_ends_mean_nothing() -> None:
    """As spreadsheets write them, byte order mark included."""
    plain = load(GOOD)
    assert load({name: "\ufeff" + text.replace("\n", "\r\n\r\n") for name, text in GOOD.items()}) == plain


def test_attributes_are_text_that_may_be_a_number() -> None:
    """An empty cell is no attribute."""
    instance = load({"servers.csv": "name,x,cores\nA,1,4\nB,1,16\nC,1,\n", "users.csv": "name,x,requires\nu,1,cores >= 8\n"})
    assert instance.eligibility.tolist() == [[False, True, False]]


@pytest.mark.parametrize("missing", ["servers.csv", "users.csv"])
def test_missing_tables(missing: str) -> None:
    """Both tables are needed."""
    with pytest.raises(InvalidInstance) as caught:
        load({name: text for name, text in GOOD.items() if name != missing})
    assert str(caught.value).startswith(f"the folder lab holds no {missing}")


def test_a_table_of_nearly_the_right_name() -> None:
    """The message names the file that may have been meant."""
    with pytest.raises(InvalidInstance) as caught:
        load({"servers.csv": SERVERS, "user.csv": USERS})
    assert str(caught.value) == 'the folder lab holds no users.csv (did you mean "user.csv"?)'


USER = "name,cpu,memory,weight,tasks,requires,servers\n"

REFUSED = [
    # What is no table
    ({"users.csv": ""}, 'lab/users.csv: the file is empty; its first line must name the columns, "name" first'),
    ({"users.csv": "\n\n"}, 'lab/users.csv: the file is empty; its first line must name the columns, "name" first'),
    ({"users.csv": USER}, "lab/users.csv: there are no rows below the names of the columns; there must be at least one"),
    (
        {"users.csv": "name:cpu:memory\nalice:1:2\n"},
        'lab/users.csv: there is no column "name"; separate columns by commas, semicolons or tabs',
    ),
    ({"users.csv": "nmae,cpu\nalice,1\n"}, 'lab/users.csv: there is no column "name" (did you mean "nmae"?); the columns are nmae and cpu'),
    ({"users.csv": "name,cpu,cpu\nalice,1,2\n"}, 'lab/users.csv: the column "cpu" occurs twice; rename or remove one'),
    (
        {"users.csv": "name,cpu,\nalice,1,2\n"},
        'lab/users.csv: column 3 has no name, and holds "2" in line 2; name it (note, if it is for people only), or remove it',
    ),
    (
        {"users.csv": "name,cpu\nalice,1\n\nbob,1,2\n"},
        "lab/users.csv, line 4: the row has 3 cells for 2 columns; put cells that hold commas in quotes",
    ),
    (
        {"users.csv": "name,cpu\nalice\n"},
        "lab/users.csv, line 2: the row has 1 cell for 2 columns; delete the line if it is a note, or put commas where cells are empty, "
        "or correct the line",
    ),
    (
        {"users.csv": 'name,cpu\n"ali"ce,1\n'},
        "lab/users.csv, line 2: not valid CSV: ',' expected after '\"'; correct it there or just before",
    ),
    (
        {"users.csv": 'name,cpu\n"alice,1\n'},
        "lab/users.csv, line 2: not valid CSV: unexpected end of data; correct it there or just before",
    ),
    # Columns
    (
        {"users.csv": "name,weight\nalice,1\n"},
        "lab/users.csv: there is no column for a resource; add one for each, named as in servers.csv",
    ),
    (
        {"users.csv": "name,cpu,wieght\nalice,1,2\n"},
        'lab/users.csv, column "wieght": there is no resource "wieght" (did you mean "weight"?)',
    ),
    ({"users.csv": "name,cpus\nalice,1\n"}, 'lab/users.csv, column "cpus": there is no resource "cpus" (did you mean "cpu"?)'),
    (
        {"users.csv": "name,disk\nalice,1\n"},
        'lab/users.csv, column "disk": there is no resource "disk"; a resource must be a column of lab/servers.csv too',
    ),
    # Cells; the header is line 1, and a cell of two lines counts as two
    (
        {"users.csv": USER + "alice,1,two,,,,\n"},
        'lab/users.csv, line 2, column "memory": ' + 'expected a number, found the text "two"; '
        "write digits, or a quantity such as 500m, 1/3 or 256GiB",
    ),
    (
        {"users.csv": USER + '"a\nb",1,2,,,,\nbob,1_0,2,,,,\n'},
        'lab/users.csv, line 4, column "cpu": expected a number, found the text "1_0"; '
        "write digits, or a quantity such as 500m, 1/3 or 256GiB",
    ),
    ({"users.csv": USER + "alice,1,,,,,\n"}, 'lab/users.csv, line 2, column "memory": the cell is empty; write 0 if you mean 0'),
    (
        {"users.csv": USER + "alice,-1,0,,,,\n"},
        'lab/users.csv, line 2, column "cpu": user "alice", demand, cpu: expected a number >= 0, found -1.0',
    ),
    (
        {"users.csv": USER + "alice,nan,0,,,,\n"},
        'lab/users.csv, line 2, column "cpu": user "alice", demand, cpu: expected a finite number, found nan',
    ),
    (
        {"users.csv": USER + "alice,1,0,-1,,,\n"},
        'lab/users.csv, line 2, column "weight": user "alice", weight: expected a number >= 0, found -1.0',
    ),
    (
        {"users.csv": USER + "alice,1,0,,-1,,\n"},
        'lab/users.csv, line 2, column "tasks": user "alice", tasks: expected a number >= 0, found -1.0',
    ),
    (
        {"users.csv": USER + "alice,1,0,,,zone\n".replace("zone", "zone,")},
        'lab/users.csv, line 2, column "requires": user "alice", requires: "zone" has no operator; '
        "write attribute = value, or one of != in, not in, < <= > >=",
    ),
    (
        {"users.csv": USER + "alice,1,0,,,,A|C\n"},
        'lab/users.csv, line 2, column "servers": user "alice", servers, item 2: there is no server "C"; the servers are A and B',
    ),
    (
        {"users.csv": USER + "alice,1,0,,,,\nalice,1,0,,,,\n"},
        'lab/users.csv, line 3, column "name": user "alice", name: "alice" occurs twice (first on line 2); '
        "names must be unique: rename or remove one",
    ),
    (
        {"users.csv": USER + " ,1,0,,,,\n"},
        'lab/users.csv, line 2, column "name": user " ", name: expected a name, found the text " "; give one that is not blank',
    ),
    (
        {"users.csv": USER + "alice,0,0,,,,\n"},
        'lab/users.csv, line 2: user "alice": demands nothing and has no task limit, so it could run any number of tasks; '
        "give it a demand > 0 or a number of tasks",
    ),
    (
        {"servers.csv": SERVERS.replace("4.5", "-4")},
        'lab/servers.csv, line 3, column "cpu": server "B", capacity, cpu: expected a number >= 0, found -4.0',
    ),
    (
        {"servers.csv": SERVERS.replace("12,8", "12,1.5")},
        'lab/servers.csv, line 2, column "count": server "A", count: expected a whole number >= 0, found 1.5',
    ),
    # Matrices
    (
        {"eligibility.csv": "name,A,B\nalice,1,1\nbob,1,1\n"},
        'lab/eligibility.csv: the first column is not "user"; the columns are name, A and B',
    ),
    (
        {"eligibility.csv": "user,A,B\nalice,1,1\nbob,0.99999999,1\n"},
        'lab/eligibility.csv, line 3, column "A": expected 1 (may run) or 0 (may not), found 0.99999999',
    ),
    ({"eligibility.csv": "user,A,B\nalice,1,1\n"}, 'lab/eligibility.csv: there is no row for user "bob"; add it'),
    (
        {"eligibility.csv": "user,A,B\nalice,1,1\nbob,1,1\nbo,1,1\n"},
        'lab/eligibility.csv, line 4: there is no user "bo"; remove the row, or add the user',
    ),
    (
        {"eligibility.csv": "user,A,B\nalice,1,1\nalice,1,1\nbob,1,1\n"},
        'lab/eligibility.csv, line 3: user "alice" has a row already; remove one',
    ),
    ({"eligibility.csv": "user,A\nalice,1\nbob,1\n"}, 'lab/eligibility.csv: there is no column for "B"; add it'),
    (
        {"eligibility.csv": "user,A,B,C\nalice,1,1,1\nbob,1,1,1\n"},
        'lab/eligibility.csv, column "C": there is no "C"; the columns must be those of the instance',
    ),
    (
        {"eligibility.csv": "user,A,B\nalice,1,1\nbob,1,0.5\n"},
        'lab/eligibility.csv, line 3, column "B": expected 1 (may run) or 0 (may not), found 0.5',
    ),
    (
        {"eligibility.csv": "user,A,B\nalice,1,1\nbob,yes,0\n"},
        'lab/eligibility.csv, line 3, column "A": expected a number, found the text "yes"; write 1 or 0, or another number',
    ),
    ({"rates.csv": "user,A,B\nalice,1,\nbob,1,1\n"}, 'lab/rates.csv, line 2, column "B": the cell is empty; write 0 if you mean 0'),
    (
        {"rates.csv": "user,A,B\nbob,1,-1\nalice,1,1\n"},
        'lab/rates.csv, line 2, column "B": user "bob", rates, B: expected a number >= 0, found -1.0',
    ),
    (
        {"weights.csv": "user,cpu,memory\nalice,1,1\nbob,1,1\n"},
        'lab/users.csv, column "weight": there are weights here and in lab/weights.csv; remove one of them',
    ),
    (
        {"users.csv": "name,cpu\nbob,1\n", "weights.csv": "user,cpu\nbob,0\n"},
        'lab/weights.csv, line 2, column "cpu": user "bob", weight, cpu: expected a number > 0, found 0.0',
    ),
]


@pytest.mark.parametrize(("tables", "message"), REFUSED)
def test_refused_tables(tables: dict[str, str], message: str) -> None:
    """One table of a good folder is replaced by a bad one."""
    with pytest.raises(InvalidInstance) as caught:
        load({**GOOD, **tables})
    assert str(caught.value) == message


def test_text_that_is_not_utf_8(caplog: pytest.LogCaptureFixture) -> None:
    """UTF-16 with its mark, and Windows-1252, which is said; what is neither is refused with its line."""
    load(GOOD)
    text = "name,cpu\nJos\u00e9 \u2013,1\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        Path("lab/users.csv").write_bytes(text.encode(encoding))
        assert formats.load("lab").users == ("Jos\u00e9 \u2013",)
    assert not [each for each in caplog.messages if "UTF-8" in each]
    Path("lab/users.csv").write_bytes(text.encode("cp1252"))
    assert formats.load("lab").users == ("Jos\u00e9 \u2013",)
    said = 'lab/users.csv is not UTF-8; it is read as Windows-1252, "Jos\u00e9 \u2013,1"; save it as UTF-8 if that is wrong'
    assert said in caplog.messages
    for bad in (b"name,cpu\nJos\xe9,1\nM\xc3\xbcller,2\n", b"name,cpu\nJos\xe9,1\n\x81,2\n"):
        Path("lab/users.csv").write_bytes(bad)
        with pytest.raises(InvalidInstance) as caught:
            formats.load("lab")
        assert str(caught.value) == "lab/users.csv, line 2: byte 0xe9 is not UTF-8 text; save the file as UTF-8"


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.YML", "cluster.json"])
def test_an_instance_file_is_no_table(tmp_path: Path, name: str) -> None:
    """Where a table is meant, the message names the kind of file, not the commas of its lines."""
    path = tmp_path / name
    path.write_text("resources: [cpu, memory]\nservers:\n")
    with pytest.raises(InvalidInstance) as refused:
        read(path, tables.MATRIX)
    said = 'a table is expected here, and this is no CSV file; give one whose first line names the columns, "user" first'
    assert str(refused.value) == f"{path}: {said}"


def test_rules_are_a_table() -> None:
    """In a folder, in any case of its name, and as a sheet; a mistake in one is in its line."""
    plain = load(GOOD)
    Path("lab/Rules.csv").write_text("rule\nx[alice] >= 2 * x[bob]\n\"amount['cpu', bob] <= 1/3\"\n")
    ruled = formats.load("lab")
    assert ruled == plain.replace(rules=["x[alice] >= 2 * x[bob]", "amount['cpu', bob] <= 1/3"])
    formats.save(ruled, "lab.xlsx")
    assert formats.load("lab.xlsx") == ruled
    Path("lab/Rules.csv").write_text("rule\nx[alice] >= 2 * x[bob]\nx[alice] > 1\n")
    with pytest.raises(InvalidInstance, match=r'Rules\.csv, line 3, column "rule": .*compares by something else'):
        formats.load("lab")
