"""Names of notions, placements and engines: of fairopt, of this program, of files, and of installed packages."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import MetadataPathFinder
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from support.command_line import EXAMPLES, flat, run
from support.registries import registries_restored

import fairopt as fo
from fairopt import registry
from fairopt.instance import FloatArray
from fairopt.registry import Carried, Registry, carried, words

MINE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import beside
import fairopt as fo


@dataclass(frozen=True)
class CpuShare(fo.ShareNotion):
    """The share of the first resource."""

    times: float = 1
    name: ClassVar[str] = "cpu-share"
    title: ClassVar[str] = "Share of the first resource alone"
    source: ClassVar[str] = "a test"

    def share_per_task(self, instance):
        return self.times * instance.demands[:, 0] / instance.total_capacity[0]


class Drf(fo.ShareNotion):
    name, title, source = "drf", "", ""

    def share_per_task(self, instance):
        return instance.demands[:, 0]


def emptiest(user, free, demand, fits):
    return beside.emptiest(free, fits)


def tenth(instance, part=0.1, seed=0):
    return np.floor(instance.rates * part / instance.n_users + seed % 2)


def fails(instance):
    raise ValueError("not today")


def too_much(instance):
    return 2 * instance.rates + 1
'''
BESIDE = "def emptiest(free, fits):\n    return fits[free[fits].sum(axis=1).argmax()]\n"
POOL = EXAMPLES / "drfh-figure-1.yaml"


def emptiest(user: int, free: np.ndarray, demand: np.ndarray, fits: np.ndarray) -> int:
    """Return the server with the most left."""
    return int(fits[free[fits].sum(axis=1).argmax()])


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a file; the registries are as before afterwards."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text(BESIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    with registries_restored():
        yield tmp_path
    sys.modules.pop("beside", None)


def install(folder: Path, *lines: str) -> None:
    """Make the folder a package of this Python's path, with these entry points."""
    info = folder / "lab_mine-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-mine\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(folder))


# Files


def test_a_notion_of_a_file(mine: Path) -> None:
    """The same as the class, with options, under its own name too."""
    pool = fo.load(POOL)
    by_file = fo.solve(pool, "mine.py:CpuShare")
    own = fo.NOTIONS["cpu-share"]
    assert fo.NOTIONS["mine.py:CpuShare"] is own
    np.testing.assert_array_equal(by_file.tasks, fo.solve(pool, own).tasks)
    assert by_file.notion == "cpu-share"
    assert fo.NOTIONS.source("cpu-share") == fo.NOTIONS.source("mine.py:CpuShare") == "mine.py"
    comparison = fo.compare(
        pool, notions=["mine.py:CpuShare:times=2"], schedules=["mine.py:CpuShare:mine.py:emptiest", "drfh:mine.py:emptiest"]
    )
    assert [(row.name, row.kind, row.message) for row in comparison] == [
        ("mine.py:CpuShare:times=2", "exact", ""),
        ("mine.py:CpuShare:mine.py:emptiest", "greedy", ""),
        ("drfh:mine.py:emptiest", "greedy", ""),
    ]
    regret = comparison["mine.py:CpuShare:mine.py:emptiest"].regret
    assert regret is not None
    assert regret.notion == "cpu-share"
    assert comparison["drfh:mine.py:emptiest"].tasks == fo.schedule(pool, placement=emptiest).tasks.sum()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine.py:CpuShar", 'mine.py defines no "CpuShar" (did you mean "CpuShare"?)'),
        ("mine.py:emptiest", '"mine.py:emptiest" is no notion: it must be a subclass of fairopt.Notion or fairopt.ShareNotion'),
        ("mine.py:Drf", '"mine.py:Drf" has the name "drf", as another notion has; give it a name of its own'),
        ("nine.py:CpuShare", "there is no file nine.py; give the path of a Python file, as in mine.py:PowerShare"),
        ("wrong.py:X", "wrong.py, line 2: ZeroDivisionError: division by zero"),
        ("broken.py:X", "broken.py, line 1: SyntaxError: "),
        (
            "thawed.py:X",
            "thawed.py, line 3: TypeError: cannot inherit non-frozen dataclass from a frozen one; write @dataclass(frozen=True)",
        ),
        ("mine.py", '"mine.py" names no notion; add its class, as in mine.py:PowerShare'),
    ],
)
def test_what_a_file_may_lack(mine: Path, reference: str, message: str) -> None:
    """The message has the file, the line, and what was meant."""
    (mine / "wrong.py").write_text("x = 0\n1 / x\n")
    (mine / "broken.py").write_text("def\n")
    (mine / "thawed.py").write_text(
        "import dataclasses, fairopt\n\n@dataclasses.dataclass\nclass X(fairopt.ShareNotion):\n    part: float = 1.0\n"
    )
    error = flat(run("solve", POOL, "--notion", reference, status=2).stderr)
    assert error.startswith(f"error: {message}")


FAULTY = """
import fairopt as fo

class Attribute(fo.ShareNotion):
    name, title, source = "attribute", "", ""
    def share_per_task(self, instance):
        return instance.nothing

class Shape(fo.ShareNotion):
    name, title, source = "shape", "", ""
    def share_per_task(self, instance):
        return [1.0] * 5

class Word(fo.ShareNotion):
    name, title, source = "word", "", ""
    def share_per_task(self, instance):
        return "much"

def past(user, free, demand, fits):
    return fits[99]

def fails(instance):
    raise ValueError("not today")
"""
RUNS = "; what this file defines must run on this instance"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ("solve", POOL, "--notion", "faulty.py:Attribute"),
            f"faulty.py, line 7, in share_per_task: AttributeError: 'Instance' object has no attribute 'nothing'{RUNS}",
        ),
        (
            ("explain", POOL, "--user", "user-1", "--notion", "faulty.py:Shape"),
            'share_per_task of "shape" returned an array of shape (5,); return numbers of shape (users,) = (2,), '
            "or (users, servers) = (2, 2)",
        ),
        (
            ("schedule", POOL, "--schedule", "faulty.py:Word:first-fit"),
            'share_per_task of "word" returned a str that is no array of numbers; return numbers of shape (users,) = (2,), '
            "or (users, servers) = (2, 2)",
        ),
        (
            ("schedule", POOL, "--schedule", "drfh:faulty.py:past"),
            f"faulty.py, line 20, in past: IndexError: index 99 is out of bounds for axis 0 with size 2{RUNS}",
        ),
        (
            ("worst-case", "faulty.py:fails", "--notion", "drfh", "--tries", "1"),
            f"faulty.py, line 23, in fails: ValueError: not today{RUNS}",
        ),
    ],
)
def test_what_a_file_defines_may_fail(mine: Path, command: tuple[Any, ...], message: str) -> None:
    """The message has the file, the line and the function, and no traceback."""
    (mine / "faulty.py").write_text(FAULTY)
    assert flat(run(*command, status=2).stderr) == f"error: {message}"


def test_a_row_that_fails_says_where(mine: Path) -> None:
    """The other rows of a comparison are computed."""
    (mine / "faulty.py").write_text(FAULTY)
    rows = fo.compare(fo.load(POOL), notions=["drfh", "faulty.py:Attribute"])
    assert rows["drfh"].message == ""
    assert rows["faulty.py:Attribute"].message == (
        "failed at faulty.py, line 7, in share_per_task with AttributeError: 'Instance' object has no attribute 'nothing'"
    )


def test_what_a_program_registers_is_of_its_kind() -> None:
    """It is refused at once, and what was there stays."""
    before = fo.NOTIONS["drfh"]
    with pytest.raises(fo.Unsupported, match=r'^"drfh" is no notion: it must be a subclass of fairopt.Notion or fairopt.ShareNotion$'):
        fo.NOTIONS["drfh"] = int  # type: ignore[assignment]
    with pytest.raises(fo.Unsupported, match=r'^"three" is no placement: '):
        fo.PLACEMENTS["three"] = 3  # type: ignore[assignment]
    assert fo.NOTIONS["drfh"] is before
    assert "three" not in fo.PLACEMENTS


def test_parts_of_a_specification() -> None:
    """A file and what is meant in it are one part."""
    assert words("a.py:F:b.py:g:metric=l2") == ["a.py:F", "b.py:g", "metric=l2"]
    assert words("drfh") == ["drfh"]
    assert words("pyomo:gurobi") == ["pyomo", "gurobi"]
    assert words("mine.py") == ["mine.py"]
    assert words("mine.py:alpha=2") == ["mine.py", "alpha=2"]


# A scheduler of one's own


def test_a_scheduler_of_a_file_works_everywhere(mine: Path) -> None:
    """In compare, study, simulate, worst_case, audit, explain and frontier."""
    held = json.loads(run("compare", POOL, "--schedules", "mine.py:tenth:part=0.5,mine.py:fails", "--json").stdout)["rows"]
    pool = fo.load(POOL)
    assert [user["tasks"] for user in held[1]["users"]] == np.floor(pool.rates * 0.25).sum(axis=1).tolist()
    assert held[1]["kind"] == "given"
    assert held[2]["message"] == "the scheduler mine.py:fails failed with ValueError: not today"
    for command in (
        ("audit", POOL, "--schedule", "mine.py:tenth", "--properties", "pareto"),
        ("explain", POOL, "--user", "user-1", "--schedule", "mine.py:tenth"),
        ("frontier", POOL, "--notions", "drfh", "--alphas", "1", "--schedules", "mine.py:tenth"),
        ("worst-case", "mine.py:tenth", "--notion", "drfh", "--tries", "5", "--users", "2", "--servers", "1"),
    ):
        run(*command)
    refused = flat(run("explain", POOL, "--user", "user-1", "--schedule", "mine.py:fails", status=2).stderr)
    assert refused == "error: the scheduler mine.py:fails failed with ValueError: not today"


def test_a_scheduler_is_simulated_from_event_to_event(mine: Path) -> None:
    """Half of the pool for each of two users, and all of it for one."""
    cluster = fo.Instance([[8]], [[1], [1]], users=["a", "b"], servers=["pool"], resources=["cpu"])
    trace = fo.Trace(["a", "b"], submit=[0, 0], tasks=[8, 4], demands=[[1], [1]], durations=[10, 10], resources=["cpu"])

    def halves(instance: fo.Instance) -> np.ndarray:
        return np.minimum(instance.rates / instance.n_users, instance.tasks[:, None])

    found = fo.simulate(trace, cluster, halves)
    assert found.kind == "own, fluid"
    assert found.jobs["finished_s"].tolist() == pytest.approx([15, 10])  # a: 4 tasks at once for 10 s, then 8: 80 = 4 * 10 + 8 * 5
    assert fo.simulate(trace, cluster, "mine.py:tenth:part=1").kind == "own, fluid"
    for function, message in (("too_much", "exceeds a limit of the instance"), ("fails", "failed with ValueError: not today")):
        with pytest.raises(fo.FairoptError, match=message):
            fo.simulate(trace, cluster, f"mine.py:{function}")
    with pytest.raises(fo.Unsupported, match="leave regret out"):
        fo.simulate(trace, cluster, halves, regret=2)


# Workers


def test_what_is_registered_goes_to_worker_processes(mine: Path) -> None:
    """A placement and a notion of this program, of a file, and a scheduler; with the seed of the cell, if it takes one."""

    class Last(fo.ShareNotion):
        name, title, source = "last", "Share of the last resource", "a test"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            share: FloatArray = instance.demands[:, -1] / instance.total_capacity[-1]
            return share

    fo.study({"small": "google:users=2:servers=2"}, workers=2, seeds=range(2))  # workers that know nothing of what comes
    fo.PLACEMENTS["last-fit"] = lambda user, free, demand, fits: fits[-1]
    fo.NOTIONS["last"] = Last
    pool = fo.load(POOL)
    asked: dict[str, Any] = {
        "notions": ["last", "mine.py:CpuShare"],
        "schedules": ["last:last-fit", "drfh:mine.py:emptiest", "mine.py:tenth"],
        "seeds": range(2),
    }
    one, two = (fo.study({"pool": pool}, workers=jobs, **asked).drop(columns="seconds") for jobs in (1, 2))
    assert one["message"].tolist() == [""] * 10
    assert one.equals(two)
    tenth = one[one["entry"] == "mine.py:tenth"]["tasks"].tolist()
    assert tenth[1] - tenth[0] == 4  # one for each user on each server


def test_a_failing_cell_is_told_at_the_end(mine: Path, caplog: pytest.LogCaptureFixture) -> None:
    """How many rows, the first reason, and an exit status that a script sees."""
    rows = fo.study({"pool": fo.load(POOL)}, notions=["drfh"], schedules=["mine.py:fails"], workers=1)
    reason = "the scheduler mine.py:fails failed with ValueError: not today"
    assert rows["message"].tolist() == ["", reason]
    assert f"1 of 2 rows without an allocation; the first: pool, seed 0, mine.py:fails: {reason}" in caplog.text
    result = run("study", POOL, "--schedules", "mine.py:fails", "--workers", "1", "--csv", status=1)
    assert f"1 of 2 rows without an allocation; the first: drfh-figure-1, seed 0, mine.py:fails: {reason}" in flat(result.stderr)
    run("study", POOL, "--notions", "", "--schedules", "mine.py:fails", "--workers", "1", status=3)
    caplog.clear()
    fo.study({"pool": fo.load(POOL)}, workers=1)
    assert "without an allocation" not in caplog.text


def test_a_changed_file_is_another_question(mine: Path) -> None:
    """A study in a file does not mix rows of two versions of it."""
    command = ("study", POOL, "--schedules", "mine.py:tenth", "--workers", "1", "--resume", "rows.parquet")
    run(*command)
    run(*command)
    (mine / "mine.py").write_text(MINE.replace("part=0.1", "part=0.2"))
    assert "holds the results of another study" in flat(run(*command, status=2).stderr)


def test_nothing_is_carried_where_nothing_is_added() -> None:
    """The function itself goes to the workers."""
    with patch.object(registry, "_FOLDERS", []):
        assert carried(abs) is abs
    with patch.dict(fo.PLACEMENTS):
        fo.PLACEMENTS["mine"] = emptiest
        there = carried(abs)
        assert isinstance(there, Carried)
        assert there(-2) == 2
        assert there._added == {"placement": {"mine": emptiest}}


# Installed packages


def test_entry_points(mine: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are imported when they are used, listed with their package, and cannot hide what fairopt has."""
    install(mine, "[test.notions]", "cpu-share = mine:CpuShare", "own = mine:missing", "old = mine:Drf")
    sys.modules.pop("mine", None)
    found: Registry[type[fo.Notion]] = Registry("notion of a test", "test.notions", {"old": fo.NOTIONS["tsf"]}, lambda entry: "")
    try:
        assert "old" in found
        assert "mine" not in sys.modules
        assert "cpu-share" in found
        assert "mine" not in sys.modules
        assert found["cpu-share"].name == "cpu-share"
        assert found.source("cpu-share") == "lab-mine 1.2"
        assert found.source("old") == "fairopt"
        assert found["old"] is fo.NOTIONS["tsf"]
        assert 'the notion of a test "old" of lab-mine 1.2 is left out: there is one of that name' in caplog.text
        with pytest.raises(fo.Unsupported, match=r'"own" of lab-mine 1\.2 cannot be imported: AttributeError'):
            found["own"]
        assert list(found) == ["old", "cpu-share"]
        assert len(found) == len(found.keys()) == len(found.values()) == len(found.items()) == 2
        assert found.get("nothing") is None
        assert found._added() == {}  # a worker finds it by itself
        with pytest.raises(KeyError):
            found["nothing"]
    finally:
        sys.modules.pop("mine", None)
        del registry._REGISTRIES["notion of a test"]


@pytest.mark.parametrize("group", ["test.notions", "test.other"])
def test_entry_points_of_an_archive(mine: Path, group: str) -> None:
    """A package in an archive on the path has those of its groups, and no others."""
    archive = mine / "lab.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("lab_mine-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: lab-mine\nVersion: 1.2\n")
        packed.writestr("lab_mine-1.2.dist-info/entry_points.txt", "[test.notions]\ncpu-share = mine:CpuShare\n")
    sys.path.insert(0, str(archive))
    found = [point.name for point in registry._installed_points(group, tuple(sys.path))]
    assert found == (["cpu-share"] if group == "test.notions" else [])


@pytest.mark.parametrize("group", ["test.notions", "test.other"])
def test_entry_points_that_a_finder_of_its_own_knows(mine: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """No file on the path says so; the finder is asked."""
    install(mine, "[test.notions]", "cpu-share = mine:CpuShare")
    sys.path.remove(str(mine))

    class Finder:
        """Knows the packages of one folder."""

        def find_spec(self, *_: object) -> None:
            """Imports nothing."""

        def find_distributions(self, context: Any) -> Any:
            """The packages of the folder."""
            return MetadataPathFinder.find_distributions(type(context)(name=context.name, path=[str(mine)]))

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    found = [point.name for point in registry._installed_points(group, tuple(sys.path))]
    assert found == (["cpu-share"] if group == "test.notions" else [])


def test_listings_say_where_entries_come_from(mine: Path) -> None:
    """In the table and in JSON."""
    fo.NOTIONS["mine.py:CpuShare"]
    fo.PLACEMENTS["emptiest"] = emptiest
    listed = {entry["name"]: entry["from"] for entry in json.loads(run("notions", "--json").stdout)["notions"]}
    assert listed["drfh"] == "fairopt"
    assert listed["cpu-share"] == listed["mine.py:CpuShare"] == "mine.py"
    placements = {entry["name"]: entry["from"] for entry in json.loads(run("placements", "--json").stdout)["placements"]}
    assert placements["emptiest"] == "this program"
    text = flat(run("notions").stdout)
    assert "from mine.py" in text
    assert "from fairopt" not in text
    assert all(entry["from"] == "fairopt" for entry in json.loads(run("solvers", "--json").stdout)["solvers"])
