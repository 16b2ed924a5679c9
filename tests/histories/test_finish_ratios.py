"""Finish-time ratios of the jobs of a log: those of the simulation that wrote it, and what is worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.histories.finish_ratios import slices

COLUMNS = ["finish_ratio_largest", "finish_ratio_median", "finish_ratio_p90", "finish_ratio_above_1"]


def run(*words: str) -> str:
    """Run a command; return what it prints."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def log(*rows: tuple[object, ...], more: str = "cpu") -> pd.DataFrame:
    """Return a log of rows of job, user, submit, start, end (seconds), tasks and cpu."""
    return pd.DataFrame(list(rows), columns=["job", "user", "submit", "start", "end", "tasks", more])


def test_a_log_has_the_ratios_of_the_simulation_that_wrote_it() -> None:
    """Two shapes an owner, weights 3 to 1 to 1, a scheduler that serves in the order of submission."""
    pool = fo.Instance([[8, 32]], [[1, 1]] * 3, counts=[3], weights=[3, 1, 1], users=["ann", "bob", "cy"], resources=["cpu", "memory"])
    rng = np.random.default_rng(3)
    number = 60
    shapes = np.array([[1, 1], [2, 1], [1, 6]], float)[rng.integers(0, 3, number)]
    users = [pool.users[n] for n in rng.integers(0, 3, number)]
    # A task a job: all tasks of a run start together in a log.
    trace = fo.Trace(users, np.sort(rng.uniform(0, 60, number)), np.ones(number, int), shapes, rng.uniform(20, 90, number),
                     resources=pool.resources)  # fmt: skip
    ran = fo.simulate(trace, pool, "fifo")
    frame = pd.DataFrame(
        {
            "job": trace.jobs, "user": users, "submit": trace.submit, "start": ran.started, "end": ran.finished, "tasks": 1,
            "cpu": shapes[:, 0], "memory": shapes[:, 1],
        }
    )  # fmt: skip
    found = fo.history(frame, pool)
    of_jobs = found.finish_ratios.set_index("job")["ratio"]
    np.testing.assert_allclose(of_jobs[list(trace.jobs)], ran.finish_ratios, rtol=1e-7)
    np.testing.assert_allclose(found.to_frame()[COLUMNS].to_numpy(), ran.users_frame[COLUMNS].to_numpy(), rtol=1e-7)
    assert [found.to_dict()[name] for name in COLUMNS] == pytest.approx(ran.finish_ratios_frame("all").iloc[0, 1:].tolist(), rel=1e-7)


def test_parts_of_a_run_and_runs_that_did_not_end() -> None:
    """Ann's run is on both servers, 4 tasks for 10 s: with 2 of 4 cores it takes 20 s. What still runs has no ratio, nor what never ran."""
    pool = fo.Instance([[2], [2]], [[1], [1]], users=["ann", "bob"], resources=["cpu"], servers=["a", "b"])
    frame = log(
        ("1", "ann", 0, 0, 10, 2, 1), ("1", "ann", 0, 0, 10, 2, 1), ("2", "bob", 0, 10, np.nan, 1, 1), ("3", "bob", 5, np.nan, 12, 1, 1),
        ("4", "ann", 0, 10, 40, 1, 1),
    )  # fmt: skip
    frame["server"] = pd.Series(["a", "b", "a", None, "b"])
    found = fo.history(frame, pool)
    # Job 4: its 30 s of work begin when job 1 leaves the slice, at 20 s; it ends at 50 s alone, and at 40 s here.
    assert found.to_frame("job")[["job", "owner", "finish_ratio"]].to_numpy().tolist() == [["1", "ann", 0.5], ["4", "ann", 0.8]]
    table = found.to_frame()
    assert table[COLUMNS].to_numpy()[0].tolist() == pytest.approx([0.8, 0.65, 0.77, 0])
    assert table[COLUMNS[0]].isna().tolist() == [False, True]
    late = fo.history(frame, pool, windows=[(20, 45)])
    assert late.finish_ratios["job"].tolist() == ["4"]


def test_a_slice_in_a_tree_is_that_of_the_queue_around_it() -> None:
    """Queue x has weight 3 and y 1; in x two owners, of which one has two shapes and is a queue itself. Nobody of queue z is in the log."""
    queues = [fo.Queue("x", weight=3), fo.Queue("y"), fo.Queue("z", weight=96)]
    pool = fo.Instance(
        [[8]], [[1]] * 4, users=["ann", "bob", "cy", "di"], weights=[1, 2, 5, 1], resources=["cpu"], queues=queues,
        queue_of=["x", "x", "y", "z"],
    )  # fmt: skip
    frame = log(("1", "ann", 0, 0, 8, 1, 1), ("2", "ann", 0, 0, 8, 1, 2), ("3", "bob", 0, 0, 8, 1, 1), ("4", "cy", 0, 6, 12, 2, 1))
    found = fo.history(frame, pool)
    assert slices(found.setting) == pytest.approx([1 / 4, 1 / 2, 1 / 4])
    # Cy has 2 cores for its 2 tasks of 6 s. Ann has 2 for tasks of 1 and 2: the second gets 1 of 2 until 8 s, and then has 4 s left.
    assert found.finish_ratios.set_index("job")["ratio"].to_dict() == pytest.approx({"1": 1, "2": 8 / 12, "3": 1, "4": 2})


def test_the_command_shows_them(tmp_path: Path) -> None:
    """A row for each owner in the table, null in JSON where no run ended, and a row for each run with --by job."""
    pool, path = tmp_path / "pool.yaml", tmp_path / "log.csv"
    fo.save(fo.Instance([[4]], [[1], [1]], users=["ann", "bob"], resources=["cpu"]), pool)
    log(("1", "ann", 0, 20, 30, 3, 1), ("2", "bob", 0, 0, np.nan, 1, 1), ("3", "ann", 5, 30, 40, 1, 1)).to_csv(path, index=False)
    assert "finish-time ratio, by owner" in run("history", str(path), "--cluster", str(pool))
    data = json.loads(run("history", str(path), "--cluster", str(pool), "--json"))
    assert [owner["finish_ratio_largest"] for owner in data["owners"]] == [2.0, None]
    assert data["finish_ratio_above_1"] == 2
    rows = run("history", str(path), "--cluster", str(pool), "--by", "job", "--csv").splitlines()
    assert {"job", "owner", "end", "finish_ratio"} <= set(rows[0].split(","))
    assert len(rows) == 3
