"""Units of resources in files: given, from amounts with byte units, from names; they survive every format, and reach exports."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app

LAB = """
servers:
- {name: s, capacity: {gpu: 4, memory: MEMORY}, count: 3}
users:
- {name: a, demand: {gpu: 1, memory: TASK}}
"""


def lab(folder: Path, memory: str, task: str, units: str = "") -> Path:
    """Write an instance."""
    path = folder / "lab.yaml"
    path.write_text((f"units: {units}\n" if units else "") + LAB.replace("MEMORY", memory).replace("TASK", task))
    return path


@pytest.mark.parametrize(
    ("memory", "task", "units", "numbers", "unit"),
    [
        ("1024", "64", "", (1024, 64), None),
        ("1024", "64", "{memory: GiB}", (1024, 64), "GiB"),
        ("1TiB", "64GiB", "", (2**40, 2**36), "B"),
        ("1TiB", "64GiB", "{memory: GiB}", (1024, 64), "GiB"),
        ("1TiB", "64", "{memory: GiB}", (1024, 64), "GiB"),
        ("1TB", "64GB", "{memory: GB}", (1000, 64), "GB"),
        ("1GiB", "64", "{memory: B}", (2**30, 64), "B"),
    ],
)
def test_the_unit_of_a_file_and_its_numbers(
    memory: str, task: str, units: str, numbers: tuple[float, float], unit: str | None, tmp_path: Path
) -> None:
    """Byte units alone mean bytes; with a byte unit for the resource they are converted to it."""
    instance = fo.load(lab(tmp_path, memory, task, units))
    assert (instance.capacities[0, 1], instance.demands[0, 1]) == numbers
    assert instance.units.get("memory") == unit
    for name in ("copy.yaml", "copy.json", "copy", "copy.parquet"):
        fo.save(instance, tmp_path / name)
        copy = fo.load(tmp_path / name)
        assert copy == instance
        assert copy.units == instance.units


def test_units_in_a_workbook_and_in_frames(tmp_path: Path) -> None:
    """A table of their own, where there are some; a change of the file keeps them, and can change them."""
    pytest.importorskip("openpyxl")
    instance = fo.load(lab(tmp_path, "1TiB", "64GiB"))
    fo.save(instance, tmp_path / "copy.xlsx")
    assert fo.load(tmp_path / "copy.xlsx") == instance
    frames = {name: instance.to_frame(name) for name in ("servers", "users", "units")}
    assert fo.Instance.from_frame(**frames) == instance
    assert frames["units"].to_dict() == {"unit": {"memory": "B"}}
    assert fo.load(lab(tmp_path, "1TiB", "64GiB"), changes=["users.a.weight=2"]).units == {"memory": "B"}
    assert fo.load(lab(tmp_path, "1024", "64"), changes=["units={memory: GiB}"]).units == {"memory": "GiB"}


def test_a_folder_without_units_loses_the_table_of_another(tmp_path: Path) -> None:
    """As with the other tables that an instance does not need."""
    fo.save(fo.load(lab(tmp_path, "1024", "64", "{memory: GiB}")), tmp_path / "copy")
    assert (tmp_path / "copy" / "units.csv").read_text() == "name,unit\nmemory,GiB\n"
    fo.save(fo.load(lab(tmp_path, "1024", "64")), tmp_path / "copy")
    assert not (tmp_path / "copy" / "units.csv").exists()


@pytest.mark.parametrize(
    ("memory", "units", "message"),
    [
        ("64", "{memroy: GiB}", 'line 1: units, memroy: there is no resource "memroy" (did you mean "memory"?)'),
        ("64", "{memory: 5}", "units, memory: expected"),
        ("64", "GiB", "units: expected a mapping"),
        ("64GiB", "GiB", "units: expected a mapping"),
        ("64GiB", "{memory: pages}", '64GiB has a byte unit, but the unit of memory is the text "pages"; write a plain number'),
    ],
)
def test_bad_units_are_refused_with_the_place(memory: str, units: str, message: str, tmp_path: Path) -> None:
    """And nothing is guessed."""
    with pytest.raises(fo.InvalidInstance) as refused:
        fo.load(lab(tmp_path, memory, memory, units))
    assert message in str(refused.value)


def test_a_byte_unit_beside_one_in_the_name_is_refused(tmp_path: Path) -> None:
    """64GiB of "RAM (GB)" could be 64 or 68.7."""
    path = lab(tmp_path, "1TiB", "64GiB")
    path.write_text(path.read_text().replace("memory", "RAM (GB)"))
    message = r'server "s", capacity, RAM \(GB\): 1TiB has a byte unit, and the name of "RAM \(GB\)" says GB; write a plain number of GB'
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.load(path)
    path.write_text(path.read_text().replace("1TiB", "1024").replace("64GiB", "64"))
    assert fo.load(path).units == {"RAM (GB)": "GB"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("name,unit\nmemroy,GiB\n", 'units.csv, line 2, column "unit": units, memroy: there is no resource "memroy"'),
        ("name,unit\nmemory,GiB\nmemory,MiB\n", 'units.csv, line 3, column "name": "memory" occurs twice'),
        ("name\nmemory\n", 'units.csv: there is no column "unit"'),
        ("name,unit\nmemory,\n", 'units.csv, line 2, column "unit": units, memory: expected a name'),
    ],
)
def test_a_bad_table_of_units_is_refused(rows: str, message: str, tmp_path: Path) -> None:
    """With the line."""
    fo.save(fo.load(lab(tmp_path, "1024", "64")), tmp_path / "copy")
    (tmp_path / "copy" / "units.csv").write_text(rows)
    with pytest.raises(fo.InvalidInstance) as refused:
        fo.load(tmp_path / "copy")
    assert message in str(refused.value)


@pytest.mark.parametrize(("memory", "task", "units"), [("1TiB", "64GiB", ""), ("1024", "64", "{memory: GiB}"), ("1024", "64", "")])
def test_exports_need_no_unit_of_a_file_that_has_one(memory: str, task: str, units: str, tmp_path: Path) -> None:
    """4 tasks on each of 3 servers, and 64 GiB each."""
    result = CliRunner().invoke(app, ["export", "slurm", str(lab(tmp_path, memory, task, units))])
    assert "GrpTRES=gres/gpu=12,mem=768G" in result.stdout, result.stderr


def test_what_commands_print_has_units(tmp_path: Path) -> None:
    """The queue table; JSON has the mapping."""
    path = lab(tmp_path, "1TiB", "64GiB")
    queue = "{name: q, guarantee: {memory: 512GiB}, limit: {memory: 640GiB}}"
    path.write_text(path.read_text().replace("{name: a,", "{name: a, queue: q,") + f"queues:\n- {queue}\n")
    page = CliRunner().invoke(app, ["solve", str(path)], env={"COLUMNS": "160"}).stdout
    assert "512 GiB memory, met" in page
    assert "640 GiB memory, reached" in page
    assert "128 GiB memory" in page  # borrowed
    of_audit, of_compare = ["audit", "--properties", "pareto"], ["compare", "--notions", "drfh"]
    for command in (["solve"], ["schedule"], of_audit, ["explain", "--user", "a"], of_compare, ["export", "slurm"]):
        told = json.loads(CliRunner().invoke(app, [*command, str(path), "--json"]).stdout)
        assert told["units"] == {"memory": "B"}, command


def test_a_report_has_units(tmp_path: Path) -> None:
    """In its first sentence, in its tables and in its data."""
    pytest.importorskip("altair")
    result = CliRunner().invoke(
        app, ["report", str(lab(tmp_path, "3TiB", "64GiB")), "--notions", "drfh", "-o", str(tmp_path / "page.html")]
    )
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "page.html").read_text()
    assert "12 gpu and 9,216 GiB memory in all" in page
    assert "memory of one (GiB)" in page
    assert '"units": {"columns": ["resource", "unit"], "rows": [["memory", "B"]]}' in page or '["memory","B"]' in page


def test_frames_with_units_of_no_resource_are_refused() -> None:
    """The frame is named."""
    frame = pd.DataFrame({"gpu": [1]}, index=["a"])
    with pytest.raises(fo.InvalidInstance, match=r'units.*there is no resource "memory"'):
        fo.Instance.from_frame(frame, frame, units=pd.DataFrame({"unit": ["GiB"]}, index=["memory"]))
