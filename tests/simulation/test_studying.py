"""A grid of simulations: the numbers of `compare_over_time`, whoever computes them, and what goes wrong in one cell."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import EXAMPLES, run

import fairopt as fo
from fairopt.simulation import side_by_side
from fairopt.simulation.simulating import simulate
from fairopt.simulation.studying import MEASURES

LAB = EXAMPLES / "gpu-lab"
SCHEDULERS = ["fifo", "backfill", "fairtree:half_life=1d"]


def drawn(seed: int) -> tuple[fo.Trace, fo.Instance]:
    """Two users on two servers, with jobs from the seed."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance([[4], [6]], [[1], [2]], users=["a", "b"], weights=[1, 2], resources=["cpu"])
    users = [cluster.users[n] for n in rng.integers(0, 2, 12)]
    submit, tasks = np.sort(rng.integers(0, 60, 12)), rng.integers(1, 5, 12)
    return fo.Trace(users, submit, tasks, rng.integers(1, 4, (12, 1)), rng.integers(5, 40, 12), resources=["cpu"]), cluster


def test_cells_are_those_of_schedulers_side_by_side() -> None:
    """Of a pair that is given and of one that is drawn, with each seed; the worst slowdown is that of a loop over the jobs."""
    found = fo.study_over_time({"given": drawn(9), "drawn": drawn}, SCHEDULERS, seeds=[2, 5], workers=1)
    assert list(found.columns) == ["simulation", "seed", "scheduler", *MEASURES, "message"]
    assert found[["simulation", "seed"]].drop_duplicates().to_numpy().tolist() == [["given", 2], ["given", 5], ["drawn", 2], ["drawn", 5]]
    for name, seed in (("given", 2), ("given", 5), ("drawn", 2), ("drawn", 5)):
        part = found[found["simulation"].eq(name) & found["seed"].eq(seed)].set_index("scheduler")
        trace, cluster = drawn(seed if name == "drawn" else 9)
        side = fo.compare_over_time(trace, cluster, SCHEDULERS)
        alone = side.to_frame().drop(columns="ended")
        pd.testing.assert_frame_equal(part[alone.columns], alone, check_exact=True)
        run_s = [max(trace.task_durations[trace.job_of == j]) for j in range(trace.n_jobs)]
        for course in side.courses:
            slow = [max(1, (end - at) / max(run, 10)) for end, at, run in zip(course.finished, trace.submit, run_s, strict=True)]
            assert part.loc[course.name, "bounded_slowdown_largest"] == pytest.approx(max(slow))


def test_any_number_of_workers_gives_the_same_table() -> None:
    """Processes and threads, to the bit."""
    asked: dict[str, Any] = {"lab": drawn(1), "drawn": drawn}
    tables = [
        fo.study_over_time(asked, [*SCHEDULERS, "drfh:random"], seeds=range(2), workers=workers, backend=backend)
        for workers, backend in ((1, "loky"), (2, "loky"), (2, "threading"))
    ]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0], check_exact=True)


def test_schedulers_without_a_seed_are_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pair that is given; a scheduler that takes a seed gets that of the cell."""
    asked: list[str] = []

    def counted(trace: fo.Trace, cluster: fo.Instance, scheduler: str, **options: Any) -> fo.Simulation:
        asked.append(scheduler)
        return simulate(trace, cluster, scheduler, **options)

    monkeypatch.setattr(side_by_side, "simulate", counted)
    found = fo.study_over_time({"lab": drawn(3)}, ["drfh", "fifo", "drfh:random", "drfh:random:seed=7"], seeds=[4, 6], workers=1)
    assert asked == ["drfh", "fifo", "drfh:random:seed=4", "drfh:random:seed=6", "drfh:random:seed=7"]
    trace, cluster = drawn(3)
    for seed in (4, 6):
        wait = fo.compare_over_time(trace, cluster, [f"drfh:random:seed={seed}"]).to_frame()["wait_s"].iloc[0]
        assert found[found["seed"].eq(seed) & found["scheduler"].eq("drfh:random")]["wait_s"].tolist() == [wait]


def test_a_study_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished is not simulated again, and more schedulers may be asked for; the table is that of a study in one go."""
    asked: list[str] = []

    def counted(trace: fo.Trace, cluster: fo.Instance, scheduler: str, **options: Any) -> fo.Simulation:
        asked.append(scheduler)
        return simulate(trace, cluster, scheduler, **options)

    monkeypatch.setattr(side_by_side, "simulate", counted)
    grid: dict[str, Any] = {"drawn": drawn, "same": drawn(0)}
    with pytest.raises(KeyboardInterrupt, match="run the same study again"):
        fo.study_over_time(grid, SCHEDULERS[:2], workers=1, resume=tmp_path, stop=lambda: len(asked) == 4)
    before = list(asked)
    found = fo.study_over_time(grid, SCHEDULERS, workers=1, resume=tmp_path)
    kept = ["drfh", "fifo", "backfill"]
    assert before == [*kept, "drfh"]
    assert asked[4:] in (["fairtree:half_life=1d", "drfh", *SCHEDULERS], ["fairtree:half_life=1d", *SCHEDULERS])
    pd.testing.assert_frame_equal(found, fo.study_over_time(grid, SCHEDULERS, workers=1), check_exact=True)
    with pytest.raises(KeyboardInterrupt, match="nothing is kept without a folder"):
        fo.study_over_time(grid, SCHEDULERS, workers=1, stop=lambda: True)


def test_a_cell_that_fails_is_a_message(caplog: pytest.LogCaptureFixture) -> None:
    """A function that raises, a pair that is none, a scheduler that cannot run there: others go on."""

    def breaks(seed: int) -> tuple[fo.Trace, fo.Instance]:
        if seed == 1:
            raise ValueError("no jobs of this seed")
        return drawn(seed)

    found = fo.study_over_time({"breaks": breaks, "none": lambda seed: drawn(seed)[0]}, ["fifo"], seeds=[0, 1], workers=1)  # type: ignore[dict-item, return-value]
    assert found["message"].tolist()[:2] == ["", "ValueError: no jobs of this seed"]
    assert all(message == 'simulation "none" is Trace; give a pair (fairopt.Trace, fairopt.Instance)' for message in found["message"][2:])
    assert np.isfinite(found["wait_s"]).tolist() == [True, False, False, False]
    assert "3 of 4 cells failed; the first: breaks, seed 1, fifo: ValueError: no jobs of this seed" in caplog.text
    two = fo.Instance([[4, 4]], [[1, 1]], users=["a"], resources=["cpu", "memory"])
    trace = fo.Trace(["a"], [0], [1], [[1, 1]], [9], resources=["cpu", "memory"])
    one, other = fo.study_over_time({"two": (trace, two)}, ["karma", "fifo"], workers=1).to_dict("records")
    assert "resource" in one["message"]
    assert other["message"] == ""
    failed = fo.study_over_time({"two": (trace, two)}, ["fifo"], reference="karma", workers=1)["message"].iloc[0]
    assert failed.startswith("the exact simulation, which it is measured against: ")


def test_a_cell_that_ends_its_worker_is_a_message() -> None:
    """Tried once more, alone; the others have their numbers."""
    here = os.getpid()

    def deadly(seed: int) -> tuple[fo.Trace, fo.Instance]:
        if seed == 1 and os.getpid() != here:
            os._exit(3)
        return drawn(seed)

    found = fo.study_over_time({"deadly": deadly}, ["fifo"], seeds=range(3), workers=2)
    assert [bool(message) for message in found["message"]] == [False, True, False]
    assert 'simulating "deadly" with seed 1 under fifo ended its worker twice' in found["message"].iloc[1]
    pd.testing.assert_frame_equal(
        found.iloc[[0, 2]][["wait_s", "regret"]],
        fo.study_over_time({"deadly": deadly}, ["fifo"], seeds=range(3), workers=1).iloc[[0, 2]][["wait_s", "regret"]],
        check_exact=True,
    )


@pytest.mark.parametrize(
    ("simulations", "schedulers", "message"),
    [
        ({}, ["fifo"], "there is nothing to simulate"),
        ({"lab": "jobs.csv"}, ["fifo"], 'simulation "lab" is str; give a pair'),
        ({"lab": drawn}, [], "no scheduler is given"),
        ({"lab": drawn}, ["fiffo"], 'there is no scheduler "fiffo"'),
        ({"lab": drawn}, ["fifo", "drfh", "fifo"], 'the scheduler "fifo" is there twice'),
        ({"lab": drawn}, [("drfh", "best-fit")], "is no name; give names"),
    ],
)
def test_bad_grids_are_refused_at_once(simulations: Any, schedulers: Any, message: str) -> None:
    """Before anything is simulated."""
    with pytest.raises(fo.FairoptError, match=message):
        fo.study_over_time(simulations, schedulers, workers=1)


def test_the_command_prints_what_python_returns(tmp_path: Path) -> None:
    """As JSON, as CSV and in a file; two clusters have two names."""
    small = tmp_path / "small.yaml"
    fo.save(fo.load(LAB, changes=["servers.dgx.count=1"]), small)
    words = ["study", "--simulate", LAB / "jobs.csv", "--cluster", LAB, "--cluster", small, "--schedulers", "fifo,drfh:best-fit"]
    found = json.loads(run(*words, "--workers", 1, "--json", "--table", tmp_path / "rows.csv", "--resume", tmp_path / "kept").stdout)
    trace = fo.load_trace(LAB / "jobs.csv", cluster=fo.load(LAB))
    pairs: dict[str, Any] = {f"jobs on {path.stem}": (trace, fo.load(path)) for path in (LAB, small)}
    frame = fo.study_over_time(pairs, ["fifo", "drfh:best-fit"], workers=1)
    assert [(row["simulation"], row["name"], row["wait_s"]) for row in found["rows"]] == list(
        zip(frame["simulation"], frame["scheduler"], frame["wait_s"], strict=True)
    )
    assert pd.read_csv(tmp_path / "rows.csv")["regret"].tolist() == pytest.approx(frame["regret"].tolist())
    shown = run(*words, "--workers", 1, "--resume", tmp_path / "kept").stdout
    assert "jobs on small, 74 jobs; regret against exact drfh" in shown
    assert "4 cells, kept in" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--schedulers", "fifo", "--part", "1/2"], "--part: nothing would be kept to join; give --resume and a folder for this part"),
        (["--schedulers", "fifo", "--notions", "drfh"], "--notions: it is not for simulations; leave it out, or leave --simulate out"),
        (["--schedulers", "fifo", LAB], "FILE: it is not for simulations"),
        ([], "--schedulers: with --simulate it is needed"),
        (["--schedulers", "fifo", "--seeds", 0], "--seeds: give a number of seeds >= 1"),
    ],
)
def test_options_of_other_studies_are_refused(more: list[Any], message: str) -> None:
    """With what to do."""
    assert message in run("study", "--simulate", LAB / "jobs.csv", "--cluster", LAB, *more, status=2).stderr


def test_options_of_simulations_need_a_log() -> None:
    """They would have no effect without one."""
    assert (
        "--schedulers: it is for simulations; give a log with --simulate, too" in run("study", LAB, "--schedulers", "fifo", status=2).stderr
    )
