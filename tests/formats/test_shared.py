"""Resources of the whole cluster in files: YAML, JSON, tables, changes, and what is refused where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fairopt as fo
from fairopt import formats
from fairopt.errors import InvalidInstance
from fairopt.formats.changes import Changed
from fairopt.formats.document import instance_from
from fairopt.formats.syntax import Parsed

LAB = """
servers: [{name: rack, capacity: {cpu: 10}, count: 2}]
shared: {ansys: 10, uplink: 40}
users:
  - {name: L, demand: {cpu: 1, ansys: 1}}
  - {name: C, demand: {cpu: 1}}
"""


def read(text: str, *changes: str) -> fo.Instance:
    """Return the instance of a text, changed."""
    source = Parsed("lab.yaml", text)
    return instance_from(Changed(source, list(changes)) if changes else source)


def test_what_is_left_out_is_0() -> None:
    """Of a task; all shared resources come last, in their order."""
    lab = read(LAB)
    assert lab.resources == ("cpu", "ansys", "uplink")
    assert lab.demands.tolist() == [[1, 1, 0], [1, 0, 0]]
    assert lab.shared == {"ansys": 10, "uplink": 40}
    assert read(LAB + "resources: [uplink, cpu, ansys]\n") == lab


def test_without_servers() -> None:
    """Links of a network alone."""
    links = read("shared: {uplink: 4}\nusers: [{name: a, demand: {uplink: 1}}]")
    assert links.servers == ("cluster",)
    assert fo.solve(links).tasks_per_user.tolist() == [4]


@pytest.mark.parametrize("name", ["lab.yaml", "lab.json", "lab", "lab.xlsx", "lab.parquet"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    """Every format, with a unit, a fraction, queues, and without any server."""
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    units = LAB.replace("uplink: 40", "uplink: 40GiB").replace("ansys: 10", "ansys: 1/3")
    queued = units + "queues: [{name: q, guarantee: {ansys: 50%}, limit: {uplink: 1GiB}}]\n"
    for text in (units, queued, "shared: {uplink: 4}\nusers: [{name: a, demand: {uplink: 1}}]"):
        lab = read(text)
        fo.save(lab, tmp_path / name)
        assert fo.load(tmp_path / name) == lab
    assert read(queued).queues[0].guarantee["ansys"] == pytest.approx(1 / 6)


def test_tables(tmp_path: Path) -> None:
    """shared.csv; an empty column of servers is none, and names count in any case."""
    (tmp_path / "servers.csv").write_text("name,cpu,ansys\nrack,10,\nnode,5,0\n")
    (tmp_path / "users.csv").write_text("name,ANSYS,cpu\nL,1,1\nC,0,1\n")
    (tmp_path / "shared.csv").write_text("name;capacity\nansys;2,5\n")
    lab = fo.load(tmp_path)
    assert (lab.resources, lab.shared) == (("cpu", "ansys"), {"ansys": 2.5})
    assert not any(lab.attributes)
    assert lab.demands.tolist() == [[1, 1], [1, 0]]
    (tmp_path / "servers.csv").unlink()
    (tmp_path / "users.csv").write_text("name,ansys\nL,1\nC,2\n")
    assert fo.load(tmp_path).servers == ("cluster",)


def test_frames() -> None:
    """As the tables of a folder."""
    lab = read(LAB)
    assert lab.to_frame("shared")["capacity"].to_dict() == {"ansys": 10, "uplink": 40}
    assert fo.Instance.from_frame(*(lab.to_frame(name) for name in ("users", "servers")), shared=lab.to_frame("shared")) == lab


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("servers.csv", "name,cpu,ansys\nrack,10,3\n", r'servers.csv, line 2, column "ansys": ansys is shared by the whole cluster'),
        ("shared.csv", "name,capacity\nansys,10\nansys,1\n", 'shared.csv, line 3, column "name": "ansys" occurs twice'),
        ("shared.csv", "name,capacity\nuplink,10\n", "has no column for uplink"),
        ("shared.csv", "name,capacity\nansys,ten\n", r'shared.csv, line 2, column "capacity": .*ten'),
        ("shared.csv", "name,capacity\nansys,-1\n", r'shared.csv, line 2, column "capacity"'),
    ],
)
def test_tables_that_are_refused(file: str, content: str, message: str, tmp_path: Path) -> None:
    """With the file, the line and the column."""
    tables = {"servers.csv": "name,cpu\nrack,10\n", "users.csv": "name,cpu,ansys\nL,1,1\n", "shared.csv": "name,capacity\nansys,10\n"}
    for name, text in (tables | {file: content}).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInstance, match=message):
        fo.load(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("cpu: 10}", "cpu: 10, ansys: 3}", "ansys: ansys is shared by the whole cluster, so no server has any"),
        ("ansys: 1}", "ansis: 1}", r'there is no resource "ansis" \(did you mean "ansys"\?\)'),
        ("ansys: 10", "ansys: -1", "lab.yaml, line 3: shared, ansys: expected a number >= 0, found -1"),
        ("ansys: 10", "ansys: .nan", "shared, ansys"),
        ("ansys: 10", "ansys: [1]", "shared, ansys"),
        ("uplink: 40", "uplink: 40GiB", None),
    ],
)
def test_documents_that_are_refused(before: str, after: str, message: str | None) -> None:
    """With the line."""
    assert before in LAB
    text = LAB.replace(before, after)
    if message is None:
        assert read(text).units == {"uplink": "B"}
        return
    with pytest.raises(InvalidInstance, match=message):
        read(text)


def test_changes() -> None:
    """Another amount, more of it, a new one, none."""
    assert read(LAB, "shared.ansys=12").shared["ansys"] == 12
    assert read(LAB, "shared.ansys+=2", "shared.uplink*=2").shared == {"ansys": 12, "uplink": 80}
    assert read(LAB, "shared.ansys=").resources == ("cpu", "uplink")
    assert read(LAB, "resources.ansys=") == read(LAB, "shared.ansys=")
    assert read(LAB, "shared.power=5", "users.C.demand.power=1").demands.tolist() == [[1, 1, 0, 0], [1, 0, 0, 1]]
    for change, message in (
        ("shared.ansis+=1", r'no shared resource "ansis" \(did you mean "ansys"\?\)'),
        ("shared.ansis=4", r'nobody demands the new shared resource "ansis" \(did you mean "ansys"\?\); give a demand for it'),
        ("shared.ansys=-1", "shared.ansys=-1: shared, ansys: expected a number >= 0"),
    ):
        with pytest.raises(InvalidInstance, match=message):
            read(LAB, change)


def test_the_schema() -> None:
    """Servers may be left out where something is shared, and only there."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(formats.schema())
    good: list[Any] = [read(LAB).to_dict(), {"shared": {"a": 1}, "users": [{"name": "u", "demand": {"a": 1}}]}]
    for document in good:
        validator.validate(document)
    assert not validator.is_valid({"users": [{"name": "u", "demand": {"a": 1}}]})


def test_what_is_implausible() -> None:
    """A task that needs more than there is."""
    from fairopt.instance.doubts import doubts

    (sentence,) = doubts(read(LAB.replace("ansys: 1}", "ansys: 11}")))
    assert sentence.startswith("the cluster has too little for a whole task of L: ansys 11 of at most 10")
