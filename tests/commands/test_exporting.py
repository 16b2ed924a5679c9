"""``fairopt export``: files, what is printed, and what is refused before anything is solved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.clusters import rounding

LAB = EXAMPLES / "gpu-lab"


@pytest.fixture(autouse=True)
def without_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests read files and messages; how well tasks are packed, and the seconds of that search, are of test_packing.py."""
    monkeypatch.setattr(rounding, "_FEW", 0)


def test_slurm_writes_both_scripts(tmp_path: Path) -> None:
    """The notes and the placement are printed, with the names of the files."""
    limits, undo = tmp_path / "limits.sh", tmp_path / "undo.sh"
    printed = run("export", "slurm", LAB, "--level", "account", "--headroom", "1.1", "-o", limits, "--undo", undo).stdout
    assert limits.read_text().count("sacctmgr -i modify account where name=") == 8
    assert undo.read_text().count("gres/gpu=-1") == 8
    assert "Note: limits are hard" in printed
    assert "language" in printed
    assert f"Wrote {limits}" in printed
    assert f"Wrote {undo}" in printed


def test_without_a_file_the_text_is_printed_and_nothing_else() -> None:
    """Notes go to stderr."""
    result = run("export", "resourcequota", LAB)
    assert result.stdout.startswith("# fairopt: a ResourceQuota for each namespace")
    assert "note: " in result.stderr
    assert "note: " not in result.stdout


def test_with_the_other_script_alone_the_limits_are_printed(tmp_path: Path) -> None:
    """Nothing is lost, and notes go to stderr."""
    undo = tmp_path / "undo.sh"
    result = run("export", "slurm", LAB, "--undo", undo)
    assert result.stdout.startswith("#!/bin/sh\n# fairopt: limits of Slurm")
    assert "note: limits are hard" in flat(result.stderr)
    assert undo.read_text().startswith("#!/bin/sh\n# fairopt: takes back")


def test_json_has_the_files_the_placement_and_the_notes() -> None:
    """For other programs."""
    found = json.loads(run("export", "kueue", LAB, "--json", "--headroom", "1", "--flavor", "dgx=model=A100,net=ib").stdout)
    assert set(found) == {
        "schema",
        "version",
        "command",
        "question",
        "kind",
        "notion",
        "units",
        "users",
        "groups",
        "names",
        "notes",
        "less",
        "files",
    }
    assert "model: A100" in found["files"]["queues"]
    for user in found["users"]:
        assert sum(user["placed"].values()) == user["whole"]


def test_a_file_that_exists_is_not_replaced_without_force(tmp_path: Path) -> None:
    """And of two files none is written where one exists."""
    limits, undo = tmp_path / "limits.sh", tmp_path / "undo.sh"
    undo.write_text("mine")
    refused = run("export", "slurm", LAB, "-o", limits, "--undo", undo, status=2)
    assert "exists; give another name, or replace it with --force" in flat(refused.stderr)
    assert undo.read_text() == "mine"
    assert not limits.exists()
    run("export", "slurm", LAB, "-o", limits, "--undo", undo, "--force")
    assert undo.read_text().startswith("#!/bin/sh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["limits.sh", "undo.sh"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slurm", LAB, "-o", "nowhere/limits.sh"], "there is no folder nowhere"),
        (["slurm", LAB, "-o", "same.sh", "--undo", "same.sh"], "two outputs cannot go to one file"),
        (["slurm", LAB, "--headroom", "0.5"], "a factor >= 1"),
        (["slurm", LAB, "--level", "account-partition"], "--user-of language=USER"),
        (["slurm", LAB, "--resource-name", "gpu"], '"gpu" is not NAME=VALUE'),
        (["slurm", LAB, "--partition", "dgx=a", "--partition", "dgx=b"], '"dgx" is given twice'),
        (["kueue", LAB, "--flavor", "dgx=A100"], "is not ROW=KEY=VALUE"),
        (["resourcequota", LAB, "--unit", "memory=Gib"], 'did you mean "GiB"'),
    ],
)
def test_bad_input_has_status_2(arguments: list[object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do, and without a file."""
    monkeypatch.chdir(tmp_path)
    assert message in flat(run("export", *arguments, status=2).stderr)
    assert list(tmp_path.iterdir()) == []


def test_an_allocation_of_ones_own(tmp_path: Path) -> None:
    """It is exported as it is; one of another cluster is refused."""
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("resources: [cpu]\nservers: [{name: s, capacity: {cpu: 4}}]\nusers: [{name: a, demand: {cpu: 1}}]\n")
    held = tmp_path / "held.csv"
    held.write_text("user,server,tasks\na,s,3\n")
    text = run("export", "resourcequota", cluster, "--allocation", held).stdout
    assert "requests.cpu: '3'" in text
    assert "for the allocation held" in text
    held.write_text("user,server,tasks\na,s,5\n")
    assert "does not fit this instance" in flat(run("export", "resourcequota", cluster, "--allocation", held, status=2).stderr)
    held.write_text("user,server,tasks\nb,s,3\n")
    assert 'there is no user "b"' in flat(run("export", "resourcequota", cluster, "--allocation", held, status=2).stderr)


def test_an_export_that_gives_somebody_less_is_refused(tmp_path: Path) -> None:
    """A limit of u1 that no account has: with it gone, u2 gets 8 of its 12 tasks. A limit for each user says it."""
    cluster = fo.Instance(
        [[16]],
        [[1], [1]],
        users=["u1", "u2"],
        servers=["x"],
        resources=["gpu"],
        tasks=[99, 99],
        queues=[fo.Queue("a")],
        queue_of={"u1": "a", "u2": "a"},
        limits=[fo.Limit("long", 4, resource="gpu", users=["u1"])],
    )
    file, limits = tmp_path / "cluster.yaml", tmp_path / "limits.sh"
    fo.save(cluster, file)
    refused = run("export", "slurm", file, "-o", limits, status=2)
    assert "the export gives u2 8 of 12 tasks; long is not in it" in flat(refused.stderr)
    assert not limits.exists()
    forced = run("export", "slurm", file, "-o", limits, "--force")
    assert "the export gives u2 8 of 12 tasks" in flat(forced.stderr)
    assert limits.exists()
    run("export", "slurm", file, "--level", "account-user", "-o", tmp_path / "users.sh")
