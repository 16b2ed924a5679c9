"""Finish-time fairness over time: the exact scheduler, and the ratio of each job."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from support.command_line import flat, run

import fairopt as fo
from fairopt.simulation.finish_times import ended_alone
from fairopt.simulation.streams import streams_of


def pool(speeds: list[list[float]] | None = None) -> fo.Instance:
    """Return two rows of servers and three users."""
    users, resources = ["ann", "bob", "cy"], ["cpu", "memory"]
    demands = [[1, 1], [1, 2], [2, 1]]
    return fo.Instance([[8.0, 16.0], [6.0, 4.0]], demands, weights=[1, 2, 1], speeds=speeds, users=users, resources=resources)


def jobs(seed: int, number: int = 12) -> fo.Trace:
    """Return random jobs, those of a user of one shape; a server of the first row comes back later."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 3, number)
    return fo.Trace(
        *([("ann", "bob", "cy")[n] for n in user], np.sort(rng.uniform(0, 40, number)), rng.integers(1, 9, number)),
        *(pool().demands[user], rng.uniform(5, 30, number)),
        resources=["cpu", "memory"],
    )


@pytest.mark.parametrize("speeds", [None, [[1.0, 1.0], [0.5, 0.5], [2.0, 2.0]]])
def test_alone_is_a_simulation_of_one_owner_on_its_slice(speeds: list[list[float]] | None) -> None:
    """Jobs of one shape: the exact simulation of each owner on its part of every server ends them at the same times."""
    cluster = pool(speeds)
    trace = jobs(1)
    found = ended_alone(streams_of(trace, cluster))
    for n, user in enumerate(cluster.users):
        own = np.flatnonzero(np.array(trace.users)[trace.user] == user)
        part = cluster.weights[n] / cluster.weights.sum()
        single = fo.Trace(
            *([user] * own.size, trace.submit[own], trace.tasks[own], trace.demands[own], trace.durations[own]), resources=trace.resources
        )
        alone = cluster.replace(capacities=cluster.capacities * part)
        np.testing.assert_allclose(fo.simulate(single, alone, "max-min").finished, found[own], rtol=1e-7)


def test_ratios_are_ends_against_ends_alone() -> None:
    """By job, by user and of all; a scheduler that serves in the order of submission lets somebody wait."""
    trace = jobs(2)
    found = fo.simulate(trace, pool(), "fifo")
    alone = ended_alone(streams_of(trace, pool()))
    np.testing.assert_allclose(found.finish_ratios, (found.finished - trace.submit) / (alone - trace.submit))
    table = found.finish_ratios_frame()
    assert list(table.index) == ["ann", "bob", "cy"]
    assert table["largest"].max() == found.finish_ratios.max()
    every = found.finish_ratios_frame("all").iloc[0]
    assert every["above_1"] == (found.finish_ratios > 1 + 1e-8).sum() == table["above_1"].sum()
    assert every["jobs"] == trace.n_jobs
    both = fo.compare_over_time(trace, pool(), ["fifo", "drfh"]).finish_ratios_frame()["largest"].to_dict()
    assert both["fifo"] == pytest.approx(every["largest"])
    assert both["drfh"] < both["fifo"]
    with pytest.raises(fo.Unsupported, match='not by "queue"'):
        found.finish_ratios_frame("queue")  # type: ignore[arg-type]


def test_ratios_stand_in_every_table(tmp_path: Path) -> None:
    """Alone, ann's 8 tasks of 5 s take its 4 cpus for 10 s; bob's 2 cpus run the first task in 5 s, and all three in 7.5 s."""
    cluster = fo.Instance([[8]], [[1], [1], [1]], weights=[2, 1, 1], users=["ann", "bob", "cy"], resources=["cpu"])
    trace = fo.Trace(["ann", "bob", "bob"], [0, 0, 0], [8, 1, 2], [[1]] * 3, [5, 5, 5], resources=["cpu"])
    found = fo.simulate(trace, cluster, "fifo")  # the job of ann first, then both of bob
    assert found.finished.tolist() == [5, 10, 10]
    assert found.jobs["finish_ratio"].tolist() == [0.5, 2, 10 / 7.5]
    data, both = found.to_dict(), fo.compare_over_time(trace, cluster, ["fifo", "drfh"]).to_dict()
    names = [f"finish_ratio_{word}" for word in ("largest", "median", "p90", "above_1")]
    of_all, of_bob = [2, 10 / 7.5, 10 / 7.5 + 0.8 * (2 - 10 / 7.5), 2], [2, 5 / 3, 10 / 7.5 + 0.9 * (2 - 10 / 7.5), 2]
    for each in (data, both):
        row, bob = each["schedulers"][0], next(user for user in each["users"] if user["name"] == "bob")
        np.testing.assert_allclose([row[name] for name in names], of_all)
        np.testing.assert_allclose([bob[name] for name in names], of_bob)
    assert [data["users"][2][name] for name in names] == [None, None, None, 0]
    files = {"cluster": tmp_path / "cluster.yaml", "jobs": tmp_path / "jobs.csv"}
    fo.save(cluster, files["cluster"])
    files["jobs"].write_text("user,submit_s,tasks,run_s,cpu\nann,0,8,5,1\nbob,0,1,5,1\nbob,0,2,5,1\n", encoding="utf-8")
    command = ["simulate", str(files["jobs"]), "--cluster", str(files["cluster"]), "--scheduler", "fifo"]
    shown = flat(run(*command).output)
    assert "finish-time ratio median 1.33, p90 1.87, largest 2; above 1: 2 of 3" in shown
    assert "bob 1.67 1.93 2 2" in shown
    assert "fifo 1.33 1.87 2 2" in flat(run(*command, "--scheduler", "drfh").output)
    rows = list(csv.DictReader(run(*command, "--csv").stdout.splitlines()))
    assert [float(row["finish_ratio"]) for row in rows] == [0.5, 2, 10 / 7.5]


def test_a_task_that_never_ends_ends_nowhere() -> None:
    """Alone it holds a core for good, also while servers come and go; what follows has the other."""
    cluster = fo.Instance([[2]], [[1], [1]], counts=[2], users=["ann", "bob"], resources=["cpu"], servers=["node"])
    trace = fo.Trace(
        ["ann", "ann"],
        [0, 0],
        [1, 2],
        [[1], [1]],
        [np.inf, 10],
        resources=["cpu"],
        events=[(5, "remove", "node", 1), (5, "add", "node", 1), (7, "remove", "node", 1), (8, "add", "node", 1)],
    )
    np.testing.assert_allclose(ended_alone(streams_of(trace, cluster)), [np.nan, 21])


def test_a_slice_is_of_the_servers_that_are_there() -> None:
    """Half of the servers come back after 60 s: alone, ann has done 60 s of its work by then, and runs twice as fast after it."""
    cluster = fo.Instance([[4]], [[1], [1]], counts=[2], users=["ann", "bob"], resources=["cpu"], servers=["node"])
    events = [(0, "remove", "node", 1), (60, "add", "node", 1)]
    trace = fo.Trace(["ann"], [0], [4], [[1]], [60], resources=["cpu"], events=events)
    assert ended_alone(streams_of(trace, cluster)).tolist() == [90]


def test_the_scheduler_is_the_notion_at_each_moment(tmp_path: Path) -> None:
    """Until the second job comes it is alone; then the answer is that of the notion with the work and times of that moment."""
    cluster = fo.Instance([[8]], [[1], [1]], users=["late", "new"], resources=["cpu"])
    trace = fo.Trace(["late", "new"], [0, 10], [8, 8], [[1], [1]], [60, 60], resources=["cpu"])
    found = fo.simulate(trace, cluster, "finish-time", step=1.0, until=15)
    at = int(np.searchsorted(found.series.times, 10))
    expected = fo.solve(cluster, "finish-time", left=[480 - 80, 480], elapsed=[10, 0], alone=[10, 0]).tasks_per_user
    np.testing.assert_allclose(found.series.running[at], expected, rtol=1e-6)
    assert found.details["residual"] < 1e-8
    calls = iter([False] * 6 + [True])
    fo.simulate(trace, cluster, "finish-time", step=1.0, until=15, resume=tmp_path / "kept", stopped=lambda: next(calls))
    went_on = fo.simulate(trace, cluster, "finish-time", step=1.0, until=15, resume=tmp_path / "kept")
    assert (went_on.series.running == found.series.running).all()


def test_what_has_no_finish_time_is_refused() -> None:
    """A task that never ends; times that are given although the trace has them."""
    trace = fo.Trace(["ann"], [0], [1], [[1, 1]], [np.inf], resources=["cpu", "memory"])
    with pytest.raises(fo.Unsupported, match="never end"):
        fo.simulate(trace, pool(), "finish-time", until=5)
    with pytest.raises(fo.Unsupported, match="follow from the trace"):
        fo.simulate(jobs(0), pool(), ("finish-time", {"left": 3}))
