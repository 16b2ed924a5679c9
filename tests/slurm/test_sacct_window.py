"""Slurm over time: what jobs held on average over a window, from ``sacct``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import flat, run
from support.slurm_records import by_user, import_records, job, node

import fairopt as fo

HEAD = "JobID|Account|User|Partition|Start|End|AllocTRES|ReqTRES|NodeList|Constraints"
ONE = "billing=4,cpu=4,mem=8G,node=1"
NOON = ("2026-11-22T12:00:00", "2026-11-22T13:00:00")
NODES = [node("n1"), node("n2", 32, features="ib")]
JOBS = [job(1, account="a"), job(2, account="b", features="ib")]


def row(number: str, start: str, end: str, on: str = "n1", **more: str) -> str:
    """Make a row of sacct, of a job on the day of the window."""
    cells = {"account": "a", "alloc": ONE, "asked": ONE, "features": "", "partition": "batch"} | more
    times = [each if each == "Unknown" else f"2026-11-22T{each}" for each in (start, end)]
    return "|".join(
        [number, cells["account"], "u", cells["partition"], *times, cells["alloc"], cells["asked"], on, cells["features"]],
    )


def averaged(folder: Path, rows: list[str], window: tuple[str, str] = NOON, jobs: list[dict[str, Any]] = JOBS, **options: Any) -> fo.Import:
    """Write the table, and import it with two nodes and the jobs."""
    (folder / "sacct.txt").write_text("\n".join([HEAD, *rows]) + "\n")
    return import_records(folder, NODES, jobs, sacct=folder / "sacct.txt", window=window, **options)


def test_jobs_count_for_the_part_of_the_window_in_which_they_ran(tmp_path: Path) -> None:
    """All of it, half of it, the last quarter, until now; before it, after it, never started and steps count for nothing."""
    rows = [
        row("1", "11:00:00", "14:00:00"),
        row("2", "12:10:00", "12:40:00"),
        row("3", "12:45:00", "15:00:00", "n2"),
        row("4", "12:00:00", "Unknown"),
        row("5", "10:00:00", "12:00:00"),
        row("6", "13:00:00", "14:00:00"),
        row("7", "Unknown", "Unknown", "None assigned", alloc=""),
        row("1.batch", "11:00:00", "14:00:00"),
        row("8", "12:00:00", "12:15:00", "n2", account="b", features="ib"),
    ]
    result = averaged(tmp_path, rows)
    assert {name: user["held"] for name, user in by_user(result).items()} == {"a": 1 + 0.5 + 0.25 + 1, "b": 0.25}
    assert result.current is not None
    assert result.current.tasks.tolist() == [[2.5, 0.25], [0, 0.25]]
    assert result.summary["jobs in the window"] == 5
    assert any("the average from 2026-11-22T12:00:00 to 2026-11-22T13:00:00" in note for note in result.notes)


def test_what_is_asked_for_is_at_least_what_ran(tmp_path: Path) -> None:
    """squeue lists one job of each account now; three of a ran all the time."""
    rows = [row(f"9_{n}", "11:00:00", "14:00:00") for n in range(3)]
    assert {name: user["tasks"] for name, user in by_user(averaged(tmp_path, rows)).items()} == {"a": 3, "b": 1}


def test_a_job_is_of_the_shape_that_squeue_knows(tmp_path: Path) -> None:
    """sacct says neither on which nodes a job must not run, nor which type of GPU it asks for where only GPUs are tracked."""
    waits = job(1, account="a", array_job_id=1, array_task_string="3-9", excluded_nodes="n2", partition="batch")
    result = averaged(tmp_path, [row("1_2", "12:00:00", "13:00:00")], jobs=[waits, job(2, account="b")])
    assert by_user(result)["a"] == {"demand": {"cpu": 4, "memory": 8}, "tasks": 7, "held": 1, "on": {"n1"}}
    other = averaged(tmp_path, [row("5_2", "12:00:00", "13:00:00")], jobs=[waits, job(2, account="b")])
    assert len(by_user(other)) == 3


def test_components_of_a_heterogeneous_job_are_told_apart(tmp_path: Path) -> None:
    """sacct names them 5+0 and 5+1, squeue 5 and 6."""
    waits = [job(5 + n, account="a", het_job_id=5, het_job_offset=n, excluded_nodes=f"n{2 - n}") for n in range(2)]
    rows = [row(f"5+{n}", "12:00:00", "13:00:00", f"n{n + 1}") for n in range(2)]
    users = by_user(averaged(tmp_path, rows, jobs=waits))
    assert sorted((sorted(user["on"]), user["held"]) for user in users.values()) == [(["n1"], 1), (["n2"], 1)]


def test_the_type_of_gpu_is_the_one_asked_for(tmp_path: Path) -> None:
    """AllocTRES names what it got."""
    nodes = [node(f"g{n}", gres=f"gpu:{kind}:4") for n, kind in ((1, "a100"), (2, "v100"))]
    asked = f"{ONE},gres/gpu=1"
    rows = [
        row(str(n), "12:00:00", "13:00:00", f"g{n}", alloc=f"{asked},gres/gpu:{kind}=1", asked=asked)
        for n, kind in ((1, "a100"), (2, "v100"))
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([HEAD, *rows]))
    result = import_records(tmp_path, nodes, [job(7, "cpu=4,mem=8G,node=1,gres/gpu=1")], sacct=tmp_path / "sacct.txt", window=NOON)
    assert by_user(result) == {"a": {"demand": {"cpu": 4, "memory": 8, "gpu": 1}, "tasks": 2, "held": 2, "on": {"g1 +1"}}}


def test_several_nodes(tmp_path: Path) -> None:
    """A node each, as sacct does not say where the CPUs are."""
    wide = row("1", "12:00:00", "12:30:00", "n[1-2]", alloc="cpu=8,mem=16G,node=2")
    result = averaged(tmp_path, [wide], jobs=[job(3, account="b")])
    assert result.current is not None
    assert result.current.tasks.tolist() == [[0.5, 0.5], [0, 0]]


REFUSED: list[tuple[list[str], tuple[str, str], str]] = [
    ([row("1", "11:00:00", "14:00:00", "cn77")], NOON, r'sacct\.txt, line 2: NodeList: runs on node "cn77"'),
    ([row("9", "11:00:00", "14:00:00", partition="long")], NOON, r'line 2: Partition: no node is in the partition "long"'),
    ([row("1", "11:00:00", "later")], NOON, r'line 2: End: "2026-11-22Tlater" is not a time such as'),
    ([row("1", "11:00:00", "14:00:00", alloc="cpu=4,mem=8Q")], NOON, r'line 2: AllocTRES: "8Q" is not an amount such as'),
    (
        [row("1", "11:00:00", "14:00:00") + "|x"],
        NOON,
        r"line 2: a cell has the separator .* in it: 11 cells for 10 columns; export it again: sacct",
    ),
    ([row("1", "11:00:00", "11:30:00")], NOON, "none of the 1 row is a job that ran from 2026-11-22T12:00:00 to 2026-11-22T13:00:00"),
    ([], NOON[::-1], "the window ends at 2026-11-22T12:00:00, which is not after its start"),
    ([], ("noon", NOON[1]), 'the window: "noon" is not a time such as 2026-11-22T15:00:00'),
    ([], ("2026-11-22T12:00:00Z", NOON[1]), "has a time zone"),
]


@pytest.mark.parametrize(("rows", "window", "message"), REFUSED)
def test_bad_tables_and_windows(tmp_path: Path, rows: list[str], window: tuple[str, str], message: str) -> None:
    """What is wrong, and where."""
    with pytest.raises(fo.InvalidInstance, match=message):
        averaged(tmp_path, rows, window)


def test_a_table_of_another_cluster_or_of_something_else(tmp_path: Path) -> None:
    """The column Cluster; columns that are missing; nothing at all."""
    table = tmp_path / "sacct.txt"
    for text, message in (
        (f"{HEAD}|Cluster\n{row('1', '11:00:00', '14:00:00')}|other\n", r'line 2: Cluster: the job is of the cluster "other", and squeue'),
        ("JobID|State\n1|RUNNING\n", r'line 1: there is no column "Account"; export it again: sacct -a -X -P'),
        ("", "the file is empty; export it again: sacct"),
    ):
        table.write_text(text)
        with pytest.raises(fo.InvalidInstance, match=message):
            import_records(tmp_path, NODES, [job(1, cluster="emu")], sacct=table, window=NOON)


def test_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    """And are counted."""
    result = averaged(
        tmp_path, [row("1", "11:00:00", "14:00:00", "cn77"), row("2", "11:00:00", "x"), row("3", "12:00:00", "13:00:00")], lenient=True
    )
    assert by_user(result)["a"]["held"] == 1
    assert len(result.left_out) == 2


def test_an_average_needs_a_table_and_a_window(tmp_path: Path) -> None:
    """One without the other says nothing."""
    for options in ({"window": NOON}, {"sacct": tmp_path / "sacct.txt"}):
        with pytest.raises(fo.InvalidInstance, match="an average needs the export of sacct and a window"):
            import_records(tmp_path, NODES, JOBS, **options)


def test_on_the_command_line(tmp_path: Path) -> None:
    """The average is what ``--current`` writes; a time without a window is an error of the caller."""
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": NODES}))
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": JOBS}))
    (tmp_path / "sacct.txt").write_text("\n".join([HEAD, row("1", "12:15:00", "12:45:00")]))
    command = ["import", "slurm", "--nodes", tmp_path / "nodes.json", "--jobs", tmp_path / "jobs.json", "--sacct", tmp_path / "sacct.txt"]
    run(*command, "--window", "/".join(NOON), "--ignore-partitions", "--current", tmp_path / "held.csv")
    assert list(csv.DictReader(io.StringIO((tmp_path / "held.csv").read_text()))) == [{"user": "a", "server": "n1", "tasks": "0.5"}]
    refused = run(*command, status=2)
    assert "an average needs" in flat(refused.stderr)
