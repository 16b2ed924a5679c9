"""Simulations: event by event as on paper in fractions, what must hold at any time, and the two ends that `schedule` and `solve` know."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.simulation import Reference, by_events
from scipy.optimize import linprog
from strategies import instances, traces
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.cli import app
from fairopt.commands.working import work
from fairopt.models import Sharing
from fairopt.models.drfh import DRFH
from fairopt.program import LimitKind, Limits, Program, Solution
from fairopt.solvers import RepeatedLevels
from fairopt.solvers.water_filling import WaterFilling

CRITERIA = ("drfh", "asset", "cdrf", "tsf", "psdsf", "rpsdsf")
PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "joint")
SERVER_FIRST = ("random-round-robin", "random-server")


def decimal(instance: fo.Instance) -> fo.Instance:
    """Tenths, which are no binary numbers; no limits on tasks, which the trace has."""
    return instance.replace(capacities=instance.capacities / 10, tasks=None)


# Whole tasks ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("placement", PLACEMENTS)
@settings(max_examples=25)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3))
def test_event_by_event_as_in_fractions(criterion: str, placement: str, data: st.DataObject, instance: fo.Instance) -> None:
    """Each task starts at the same time on the same server: several shapes, constraints, users and servers that come and go."""
    cluster = decimal(instance)
    _follow(data.draw(traces(cluster)), cluster, criterion, placement)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot", "tightest"])
@settings(max_examples=25)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3), criterion=st.sampled_from(CRITERIA))
def test_other_metrics_of_best_fit(metric: str, data: st.DataObject, instance: fo.Instance, criterion: str) -> None:
    """As above."""
    cluster = decimal(instance)
    _follow(data.draw(traces(cluster)), cluster, criterion, "best-fit", metric)


def _follow(trace: fo.Trace, cluster: fo.Instance, criterion: str, placement: str, metric: str = "l1") -> None:
    """Compare the time and the server of each task."""
    expected = Reference(trace, cluster, criterion, placement, metric).simulate()
    options = {"metric": metric} if placement == "best-fit" else {}
    found = fo.simulate(trace, cluster, {"criterion": criterion, "placement": placement} | options)
    assert found.task_start is not None
    assert found.task_server is not None
    started = np.flatnonzero(np.isfinite(found.task_start))
    actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in started}
    assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}


def test_event_by_event_where_there_is_more_of_everything() -> None:
    """Thirty servers, forty jobs, long queues: streams that come back to a server that another has filled by then."""
    rng = np.random.default_rng(5)
    cluster = fo.Instance(rng.integers(2, 9, (5, 2)) / 10, np.full((4, 2), 0.1), weights=[1, 1, 2, 4], counts=[6] * 5)
    user, tasks = rng.integers(0, 4, 40), rng.integers(1, 12, 40)
    demands = (rng.integers(0, 5, (6, 2)) / 10 + [0.1, 0])[rng.integers(0, 6, 40)]
    trace = fo.Trace([cluster.users[n] for n in user], np.sort(rng.integers(0, 30, 40)), tasks, demands, rng.integers(3, 30, 40))
    for scheduler in ("drfh:best-fit", "psdsf:joint"):
        expected = Reference(trace, cluster, *scheduler.split(":")).simulate()
        found = fo.simulate(trace, cluster, scheduler)
        assert found.task_start is not None
        assert found.task_server is not None
        assert (found.task_start - trace.submit[trace.job_of] > 0).sum() > 50
        actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in np.flatnonzero(np.isfinite(found.task_start))}
        assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}


@pytest.mark.parametrize(
    ("placement", "options"),
    [
        *((name, {}) for name in (*PLACEMENTS, *SERVER_FIRST, "random")),
        *(("best-fit", {"metric": metric}) for metric in ("l2", "cosine", "dot", "tightest")),
        ("slots", {"slots": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
@settings(max_examples=25)
@given(
    instance=instances(whole=True),
    criterion=st.sampled_from(CRITERIA),
    ties=st.sampled_from(("index", "largest-demand", "random")),
    seed=st.integers(0, 9),
)
def test_what_never_ends_is_a_schedule(
    placement: str, options: dict[str, Any], instance: fo.Instance, criterion: str, ties: str, seed: int
) -> None:
    """All jobs at once, and for ever: task by task the servers that `schedule` fills."""
    instance = decimal(instance).replace(tasks=np.minimum(instance.tasks, 40))
    part = np.flatnonzero(instance.tasks >= 1)
    if not part.size:
        return
    trace = fo.Trace(
        [instance.users[n] for n in part],
        np.zeros(part.size),
        instance.tasks[part],
        instance.demands[part],
        np.full(part.size, np.inf),
        resources=instance.resources,
    )
    plan: dict[str, Any] = {"criterion": criterion, "placement": placement, "ties": ties, "seed": seed} | options
    found = fo.simulate(trace, instance, plan)
    scheduled = fo.schedule(instance, record=True, **plan)
    assert found.task_server is not None
    expected = np.zeros((instance.n_users, int(instance.counts.sum())), int)
    np.add.at(expected, (scheduled.trace.users, scheduled.trace.servers), 1)
    actual = np.zeros_like(expected)
    runs = found.task_server >= 0
    np.add.at(actual, (part[trace.job_of[runs]], found.task_server[runs]), 1)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "tsf:random-round-robin", "rpsdsf:random-server", "drfh:slots", "psdsf:worst-fit"])
@settings(max_examples=25)
@given(data=st.data(), instance=instances(max_users=4), seed=st.integers(0, 9))
def test_nothing_is_lost_and_nothing_is_exceeded(scheduler: str, data: st.DataObject, instance: fo.Instance, seed: int) -> None:
    """At each event: every task waits, runs or is over, and no single server holds more than it has; nothing starts where it may not."""
    cluster = instance.replace(tasks=None)
    trace = data.draw(traces(cluster, whole=False))
    found = fo.simulate(trace, cluster, scheduler + f":seed={seed}")
    start, server, job = found.task_start, found.task_server, trace.job_of
    assert start is not None
    assert server is not None
    end = start + trace.task_durations
    runs = np.flatnonzero(np.isfinite(start))
    assert (start[runs] >= trace.submit[job[runs]]).all()
    most = np.array(cluster.counts)
    for i, name in enumerate(cluster.servers):
        steps = [k if kind == "add" else -k for _, kind, other, k in trace.events if other == name and kind in ("add", "remove")]
        most[i] += max(0, *np.cumsum(steps)) if steps else 0
    row = np.repeat(np.arange(cluster.n_servers), most.astype(int))
    for t in np.unique(np.concatenate([start[runs], end[runs][np.isfinite(end[runs])], trace.submit])):
        here = runs[(start[runs] <= t) & (t < end[runs])]
        for r in range(cluster.n_resources):
            used = np.bincount(server[here], weights=trace.demands[job[here], r], minlength=row.size)
            assert (used <= cluster.capacities[row, r] * (1 + 1e-8) + 1e-12).all()
        at = np.searchsorted(found.series.times, t)
        running = np.bincount(trace.user[job[here]], minlength=len(trace.users))
        over = np.bincount(trace.user[job[runs[end[runs] <= t]]], minlength=len(trace.users))
        come = found.takes_part & (trace.submit <= t)
        submitted = np.bincount(trace.user[come], weights=trace.tasks[come], minlength=len(trace.users))
        order = [found.users.index(name) for name in trace.users]
        assert found.series.times[at] == t
        np.testing.assert_allclose(found.series.running[at, order], running)
        np.testing.assert_allclose(found.series.waiting[at, order], submitted - running - over)
    for time, kind, name, _ in trace.events:  # an absent user starts nothing
        if kind == "leave":
            back = min([t for t, other, who, _ in trace.events if other == "join" and who == name and t >= time], default=np.inf)
            own = runs[np.array(trace.users, object)[trace.user[job[runs]]] == name]
            assert not ((start[own] > time) & (start[own] < back)).any()
    if cluster.placement is not None:
        owner = np.array([cluster.users.index(trace.users[n]) for n in trace.user])
        assert cluster.placement[owner[job[runs]], row[server[runs]]].all()


def test_a_seed_is_a_simulation() -> None:
    """And another seed another one."""
    rng = np.random.default_rng(0)
    cluster = fo.Instance(rng.uniform(1, 3, (6, 2)), np.ones((3, 2)), counts=[3] * 6)
    trace = fo.Trace(
        [cluster.users[n] for n in rng.integers(0, 3, 60)], np.sort(rng.uniform(0, 50, 60)), rng.integers(1, 9, 60),
        rng.uniform(0.1, 0.9, (60, 2)), rng.uniform(1, 20, 60),
    )  # fmt: skip
    one, same, other = (fo.simulate(trace, cluster, f"drfh:random:seed={seed}").task_server for seed in (1, 1, 2))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_what_runs_for_ever_does_not_end() -> None:
    """Not even where everything is known for ever."""
    trace = fo.Trace(["A", "B"], [0, 0], [2, 1], [[1], [1]], [np.inf, 5])
    for scheduler in ("drfh:best-fit", "drfh"):
        found = fo.simulate(trace, fo.Instance([[3]], [[1]]), scheduler)
        assert found.ended.tolist() == pytest.approx([0, 1])
        assert np.isnan(found.finished[0])
        assert found.to_dict()["jobs_finished"] == 1


# Users and servers that come and go ----------------------------------------------------------------------------------------------


def test_a_task_runs_to_its_end_on_a_server_that_is_removed() -> None:
    """The server takes no more; when it is back, its room is what it was."""
    trace = fo.Trace(["A"], [0], [5], [[1]], [10], events=[(5, "remove", "server-1"), (25, "add", "server-1")])
    found = fo.simulate(trace, fo.Instance([[2]], [[1]], users=["A"]), "drfh:first-fit")
    assert found.task_start is not None
    assert found.task_start.tolist() == [0, 0, 25, 25, 35]
    assert found.series.capacity[:, 0].tolist() == [2, 0, 0, 2, 2, 2]
    assert found.series.usage[:, 0].tolist() == [2, 2, 0, 2, 1, 0]


def test_a_user_is_away_and_comes_back() -> None:
    """Its tasks run to their ends, and others wait for it."""
    trace = fo.Trace(["A", "B"], [0, 0], [3, 1], [[1], [1]], [10, 3], events=[(1, "leave", "A"), (50, "join", "A"), (7, "join", "B")])
    found = fo.simulate(trace, fo.Instance([[1]], [[1], [1]], users=["A", "B"]), "drfh:first-fit")
    assert found.task_start is not None
    assert found.task_start.tolist() == [0, 50, 60, 10]


# The fluid optimum ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["drfh", "tsf", "cdrf"])
@settings(max_examples=10)
@given(instance=instances(max_users=3), seed=st.integers(0, 2**32 - 1))
def test_the_fluid_is_solved_at_each_event(notion: str, instance: fo.Instance, seed: int) -> None:
    """And what is not solved anew, because it is the same, is the same."""
    rng = np.random.default_rng(seed)
    cluster = instance.replace(tasks=None)
    user, tasks = rng.integers(0, cluster.n_users, 7), rng.integers(1, 30, 7)
    submit, durations = np.sort(rng.integers(0, 9, 7)).astype(float), rng.uniform(1, 9, 7)
    trace = fo.Trace([cluster.users[n] for n in user], submit, tasks, cluster.demands[user], durations, resources=cluster.resources)
    found = fo.simulate(trace, cluster, notion)
    servable = instance.servable[user]
    np.testing.assert_allclose(found.finished[servable], np.array(by_events(trace, cluster, notion))[servable], rtol=1e-6)
    assert np.isnan(found.finished[~servable]).all()
    assert found.details["residual"] <= 1e-8
    assert (found.series.usage <= found.series.capacity * (1 + 1e-8)).all()


@pytest.mark.parametrize("notion", ["drfh", "psdsf", "proportional", "per-server-drf", "efficiency", "uniform", "asset"])
def test_the_fluid_at_a_moment_is_the_exact_allocation(notion: str) -> None:
    """Before anything ends."""
    rng = np.random.default_rng(3)
    cluster = fo.Instance(rng.uniform(2, 9, (3, 2)), rng.uniform(0.1, 1, (4, 2)), weights=[1, 2, 3, 1], tasks=[3, 2, 99, 99])
    trace = fo.Trace(cluster.users, np.zeros(4), cluster.tasks, cluster.demands, np.full(4, 10.0), resources=cluster.resources)
    found = fo.simulate(trace, cluster, notion, until=1)
    np.testing.assert_allclose(found.series.running[0], fo.solve(cluster, notion).tasks_per_user, rtol=1e-6)
    np.testing.assert_allclose(found.ended, fo.solve(cluster, notion).tasks_per_user / 10, rtol=1e-6)


@pytest.mark.parametrize("alike", [False, True])
def test_what_starts_where_the_last_one_ended_is_what_starts_anew(alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users of several shapes, whose weights are divided anew as these come and go, servers that are away: the ends of all jobs.

    Where servers are alike, the leximin has a closed form, and two resources have a level each.
    """
    rng = np.random.default_rng(2)
    capacities = np.ones((4, 1)) * [3.0, 9.0] if alike else rng.uniform(1, 9, (4, 2))
    cluster = fo.Instance(capacities, np.ones((5, 2)), weights=[1, 1, 2, 3, 1], counts=[3, 1, 2, 5])
    user, shapes = rng.integers(0, 5, 60), rng.uniform(0.05, 1, (4, 2)) * [[1, 1], [1, 1], [0, 1], [1, 0]]
    trace = fo.Trace(
        [cluster.users[n] for n in user], np.sort(rng.integers(0, 30, 60)), rng.integers(1, 90, 60), shapes[rng.integers(0, 4, 60)],
        rng.uniform(1, 9, 60), eligibility=(rng.random((60, 4)) < 0.8) | alike,
        events=[(9, "remove", "server-1", 2), (20, "add", "server-1", 2)],
    )  # fmt: skip
    closed = []
    solve = WaterFilling.solve

    def counted(engine: WaterFilling, program: Program, **how: Any) -> Solution:
        closed.append(program)
        return solve(engine, program, **how)

    monkeypatch.setattr(WaterFilling, "solve", counted)
    found = fo.simulate(trace, cluster, "drfh")
    assert len({each.n_pairs for each in closed}) == alike  # one program for all moments
    monkeypatch.setattr("fairopt.simulation.repeated._MOST_PAIRS", -1)
    anew = fo.simulate(trace, cluster, "drfh")
    np.testing.assert_allclose(found.finished, anew.finished, rtol=1e-7)
    assert found.details["residual"] <= 1e-8


@pytest.mark.parametrize(("tasks", "solved"), [((2, 2), 0), ((4, 4), 1), ((6, 4), 1), ((2, 3), 0)])
def test_tasks_that_fit_where_they_last_ran_need_no_solve(tasks: tuple[int, int], solved: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers of 4. The tasks of a are divided equally at first, b is on the first server only.

    2 and 2: 1 + 2 and 1 fit. 4 and 4 fit, but not so: a has to move to the second server. 6 and 4: a has 4, as has b. 2 and 3: just so.
    """
    asked = []
    solve_again = RepeatedLevels.solve_again

    def counted(levels: RepeatedLevels, *of: Any) -> Any:
        asked.append(of)
        return solve_again(levels, *of)

    monkeypatch.setattr(RepeatedLevels, "solve_again", counted)
    cluster = fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], eligibility=[[True, True], [True, False]])
    trace = fo.Trace(["a", "b"], [0, 0], tasks, [[1], [1]], [10.0, 20.0], resources=cluster.resources, eligibility=cluster.eligibility)
    found = fo.simulate(trace, cluster, "drfh", until=1)
    assert len(asked) == solved
    np.testing.assert_allclose(found.series.running[0], np.minimum(tasks, 4), rtol=1e-12)
    assert found.details["residual"] <= 1e-15
    assert (found.series.usage <= found.series.capacity).all()


class Halved(DRFH):
    """DRFH in which each user has half of each server at most."""

    name, title = "halved", "DRFH of halves"

    def formulate(self, instance: fo.Instance, *, sharing: Sharing, integral: bool) -> Program:
        """With a slice of each server for each user."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        keys = np.stack([program.pair_users, program.pair_servers], axis=1)
        most = instance.rates[program.pair_users, program.pair_servers] / 2
        slices = Limits.of(LimitKind.SLICE, sp.eye_array(program.n_pairs, format="csr"), most, keys)
        return replace(program, limits=Limits.stack([program.limits, slices]))


def test_limits_of_a_notion_count_where_all_tasks_fit() -> None:
    """All of 12 + 1 tasks fit on two servers of 10, but nobody may have more than 5 + 5."""
    cluster = fo.Instance([[10], [10]], [[1], [1]], users=["a", "b"])
    trace = fo.Trace(["a", "b"], [0, 0], [12, 1], [[1], [1]], [10.0, 20.0], resources=cluster.resources)
    assert fo.simulate(trace, cluster, Halved(), until=1).series.running[0].tolist() == pytest.approx([10, 1])


def test_the_smallest_share_of_the_fluid_by_another_program() -> None:
    """scipy's linear program for the largest smallest dominant share of three users of whom the fluid knows only their jobs."""
    rng = np.random.default_rng(8)
    c, d = rng.uniform(2, 9, (3, 2)), rng.uniform(0.2, 1, (3, 2))
    trace = fo.Trace(["A", "B", "C"], [0, 0, 0], [500, 500, 500], d, [10, 10, 10])
    share = (d / c.sum(axis=0)).max(axis=1)
    limits = [[float(d[n, r]) * (i == j) for n in range(3) for j in range(3)] + [0] for i in range(3) for r in range(2)]
    levels = [[-share[n] * (n == m) for m in range(3) for _ in range(3)] + [1] for n in range(3)]
    best = linprog([0] * 9 + [-1], A_ub=limits + levels, b_ub=[*c.ravel(), 0, 0, 0])
    found = fo.simulate(trace, fo.Instance(c, [[1, 1]]), "drfh", until=1)
    assert best.fun is not None
    assert found.series.dominant_shares[0].min() == pytest.approx(-best.fun)


def test_an_owner_divides_its_weight_among_its_streams() -> None:
    """Two shapes of A have each half of what B has, until one is done."""
    trace = fo.Trace(["A", "A", "B"], [0, 0, 0], [10, 90, 90], [[1.0, 0.0], [1.0, 0.01], [1.0, 0.0]], [3, 100, 100])
    found = fo.simulate(trace, fo.Instance([[12, 1]], [[1, 1]]), "drfh", until=20)
    np.testing.assert_allclose(found.series.running[:2], [[6, 6], [6, 6]])
    assert found.finished[0] == pytest.approx(10)  # 30 seconds of work at the rate 3


def test_a_job_after_the_other() -> None:
    """The fluid: 12 seconds of work at the rate 4 until 3, then three tasks, no faster than by themselves. Whole tasks: four at a time."""
    cluster = fo.Instance([[4]], [[1]])
    trace = fo.Trace(["A", "A"], [0, 1], [6, 3], [[1], [1]], [2, 2])
    assert fo.simulate(trace, cluster, "drfh").makespan == pytest.approx(5)
    assert fo.simulate(trace, cluster, "drfh:first-fit").makespan == 6


# What came of it -----------------------------------------------------------------------------------------------------------------


def small() -> tuple[fo.Trace, fo.Instance]:
    """One server, two users, three jobs; one task is too large."""
    trace = fo.Trace(
        ["A", "B", "B"],
        [0, 50, 60],
        [8, 2, 1],
        [[1, 4], [3, 1], [99, 1]],
        [100, 100, 1],
        jobs=["a", "b", "huge"],
        resources=["cpu", "memory"],
    )
    return trace, fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])


def test_the_tables(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """By hand: A has 4 of 8 tasks until 100, then 3, as B has the rest of the CPU."""
    found = fo.simulate(*small(), "drf:first-fit")
    assert [record.getMessage() for record in caplog.records] == [
        "drf:first-fit: a task of job huge fits on no server where it may run: 1 task never started"
    ]
    assert found.fits_nowhere == ("huge",)
    assert found.jobs["finished_s"].tolist()[:2] == [250, 200]
    assert np.isnan(found.completion[2])
    users = found.users_frame
    assert users["completion_ratio"].tolist() == [1, pytest.approx(2 / 3)]
    assert users["mean_completion_s"].tolist() == [250, 150]
    assert found.makespan == 250
    frame = found.to_frame()
    assert frame.query("quantity == 'running' and of == 'A'")["value"].tolist() == [4, 4, 4, 3, 4, 1, 0]
    assert frame.query("quantity == 'waiting'").groupby("time_s")["value"].sum().tolist() == [4, 5, 5, 1, 0, 0, 0]
    assert found.mean_utilization["memory"] == pytest.approx((100 * 16 + 50 * 1 + 50 * 14 + 50 * 17 + 50 * 4) / 18 / 250)
    assert repr(found).startswith(
        "Simulation(drf:first-fit, greedy: 2 users on 1 server; 2 of 3 jobs ended; mean use cpu 62.2 %, memory 75.6 %"
    )
    json.dumps(found.to_dict(), allow_nan=False)
    for table in ("series", "jobs", "users"):
        found.save(tmp_path / f"{table}.parquet", table)
        found.save(tmp_path / f"{table}.csv", table)
        assert len(pd.read_parquet(tmp_path / f"{table}.parquet")) == len(pd.read_csv(tmp_path / f"{table}.csv"))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "series.parquet"), frame)
    for path, kind in (("x.xls", "series"), ("x.csv", "regret")):
        with pytest.raises(fo.Unsupported, match=r"end its name in \.parquet or \.csv|there is no table"):
            found.save(tmp_path / path, kind)  # type: ignore[arg-type]


def test_regret_at_moments() -> None:
    """When A has four tasks of 4.5, and when nothing better can be done."""
    found = fo.simulate(*small(), "drf:first-fit", regret=5)
    assert found.regret is not None
    assert found.regret["time_s"].tolist() == [25, 75, 125, 175, 225]
    assert found.regret["level"][0] == pytest.approx(0.5 / 4.5)
    assert found.regret["level"][4] == pytest.approx(0)
    with pytest.raises(fo.Unsupported, match="no regret against itself"):
        fo.simulate(*small(), "drf", regret=5)


def test_samples_at_a_step_are_what_is_there() -> None:
    """The same numbers as at the events before; a fluid keeps them on its way."""
    for scheduler in ("drf:first-fit", "drf"):
        at_events, at_steps = (fo.simulate(*small(), scheduler, step=step, until=300).series for step in (None, 7))
        before = np.searchsorted(at_events.times, at_steps.times, side="right") - 1
        assert at_steps.times.tolist() == [7 * k for k in range(43)]
        np.testing.assert_allclose(at_steps.usage, at_events.usage[before])
        np.testing.assert_allclose(at_steps.waiting, at_events.waiting[before], atol=1e-9)


def busy(jobs: int) -> tuple[fo.Trace, fo.Instance]:
    """Return two users on one server, one short job after the other."""
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 2 * jobs, jobs))
    trace = fo.Trace(["A", "B"] * (jobs // 2), submit, np.ones(jobs), np.full((jobs, 1), 0.3), rng.uniform(1, 9, jobs))
    return trace, fo.Instance([[1]], [[1]])


@pytest.mark.parametrize("scheduler", ["drfh:first-fit", "drfh"])
def test_of_many_events_some_are_samples(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the last, about as many as there should be."""
    monkeypatch.setattr("fairopt.simulation.series.MOST_SAMPLES", 100)
    monkeypatch.setattr("fairopt.simulation.flow_samples.MOST_SAMPLES", 100)
    trace, cluster = busy(300)
    series = fo.simulate(trace, cluster, scheduler).series
    assert 90 <= series.times.size <= 201
    assert series.times[-1] >= trace.submit[-1]
    assert (series.utilization <= 1 + 1e-9).all()


@pytest.mark.parametrize(("scheduler", "jobs"), [("drfh:first-fit", 4000), ("drfh", 100)])
def test_stopped_early_it_keeps_what_it_has(scheduler: str, jobs: int) -> None:
    """The beginning of what would have come; until then it tells how far it is."""
    told: list[tuple[float, int]] = []
    trace, cluster = busy(jobs)
    whole = fo.simulate(trace, cluster, scheduler, done=lambda now, tasks: told.append((now, tasks)))
    assert told == sorted(told)
    assert told
    assert whole.complete
    part = fo.simulate(trace, cluster, scheduler, stopped=lambda: len(told) != 0)
    assert not part.complete
    assert part.until < trace.submit[-1]
    known = whole.finished <= part.until
    np.testing.assert_allclose(part.finished[known], whole.finished[known])
    assert not np.isfinite(part.finished[~known]).any()
    assert "stopped early" in repr(part)
    assert json.loads(json.dumps(part.to_dict()))["complete"] is False


def test_a_picture_of_many_users_shows_those_that_hold_most() -> None:
    """And the mean of the others; without a warning, also of nothing."""
    trace = fo.Trace([f"$u{n}$" for n in range(30)], np.arange(30), np.arange(1, 31), np.full((30, 1), 0.1), np.full(30, 9.0))
    figure = fo.simulate(trace, fo.Instance([[1]], [[1]]), "drfh:best-fit").plot()
    figure.draw_without_rendering()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == 1 + 8 + 1
    assert titles[-2] == "the other 23, mean"
    fo.simulate(fo.Trace(["A"], [0], [1], [[9]], [1]), fo.Instance([[1]], [[1]])).plot().draw_without_rendering()


# Refused -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"submit": [3, 1]}, 'job "2": it is submitted before the job above it'),
        ({"durations": [1, -1]}, 'the duration of "2" is -1; it must be >= 0'),
        ({"durations": [1, np.nan]}, 'the duration of "2" is nan'),
        ({"tasks": [1, 1.5]}, 'job "2": its number of tasks is not a whole number >= 1'),
        ({"tasks": [1, 1e300]}, 'job "2": it has 2,147,483,648 tasks or more'),
        ({"submit": [0, 1.7e12]}, 'job "2": it is submitted after 1e\\+12 s'),
        ({"demands": [[1], [0]]}, 'job "2": all its demands are zero'),
        ({"demands": [[1], [np.inf]]}, 'job "2": a demand is not a finite number'),
        ({"jobs": ["a", "a"]}, 'the job label "a" occurs twice'),
        ({"user": ["A", ""]}, 'the user of job "2" is'),
        ({"user": ["A"]}, "there are 1 users for 2 jobs"),
        ({"events": [(1, "join", "C")]}, 'event 1: user "C" submits no job'),
        ({"events": [(1, "jion", "A")]}, r'there is no "jion" \(did you mean "join"\?\)'),
        ({"events": [(-1, "join", "A")]}, "its time is -1"),
        ({"events": [(1, "add", "x", 0)]}, "the number of servers is 0"),
        ({"durations": [1, 2, 3]}, r"the shape of durations is \(3,\)"),
    ],
)
def test_a_bad_trace_is_refused(arguments: dict[str, Any], message: str) -> None:
    """With the job, and what is wrong."""
    good: dict[str, Any] = {"user": ["A", "B"], "submit": [0, 1], "tasks": [1, 1], "demands": [[1], [1]], "durations": [1, 1]}
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.Trace(**(good | arguments))


@pytest.mark.parametrize(
    ("changes", "cluster", "options", "message"),
    [
        ({}, {"users": ["A", "C"], "demands": [[1], [1]]}, {}, "the cluster knows some users of the trace, but not B"),
        ({"resources": ["gpu"]}, {}, {}, 'the trace demands "gpu", which the cluster does not have'),
        ({}, {"capacities": [[1, 1]], "demands": [[1, 1]]}, {}, 'the trace has no column for the resource "resource-2"'),
        ({"events": [(1, "remove", "server-1", 2)]}, {}, {}, 'remove more servers of "server-1" than there are'),
        ({"events": [(1, "remove", "server-9")]}, {}, {}, 'servers "server-9", which the cluster lacks'),
        ({"eligibility": [[True, True], [True, True]]}, {}, {}, "has 2 columns, and the cluster 1 row"),
        ({}, {"rates": [[1]]}, {}, "shared by time"),
        ({}, {}, {"scheduler": "drfh:bestfit"}, r'no placement "bestfit" \(did you mean "best-fit"\?\)'),
        ({}, {}, {"scheduler": "drhf"}, 'there is no scheduler "drhf"'),
        ({}, {}, {"scheduler": "drfh:first-fit:stop=first-block"}, "stop has no meaning over time"),
        ({}, {}, {"scheduler": {"criterion": "drfh", "placement": lambda user, free, demand, fits: -1}}, "which is no server that its"),
        ({}, {}, {"until": 0}, "until is 0; give a number of seconds > 0"),
        ({}, {}, {"step": float("nan")}, "step is nan"),
        ({}, {}, {"regret": -1}, "regret is -1"),
        ({}, {}, {"regret": 1, "scheduler": "rpsdsf:best-fit"}, 'there is no notion "rpsdsf"'),
        ({}, {}, {"step": 1e-9}, "a sample every 1e-09 s would make more than 1,000,000 of 1 s"),
        ({"submit": [1, 1]}, {}, {"step": 1e-9}, "a sample every 1e-09 s"),
        ({"submit": [1, 1]}, {}, {"step": 1e-9, "scheduler": "drfh"}, "a sample every 1e-09 s"),
        ({"tasks": [1, 2**27]}, {}, {}, "134,217,729 tasks, and at most 100,000,000 can be followed one by one"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    changes: dict[str, Any], cluster: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    """With what to do."""
    good: dict[str, Any] = {"user": ["A", "B"], "submit": [0, 1], "tasks": [1, 1], "demands": [[1], [1]], "durations": [1, 1]}
    trace = fo.Trace(**(good | changes))
    instance = fo.Instance(**({"capacities": [[1]], "demands": [[1]], "users": ["X"] if "demands" not in cluster else None} | cluster))
    with pytest.raises(fo.FairoptError, match=message):
        fo.simulate(trace, instance, **options)


# Files and the command -----------------------------------------------------------------------------------------------------------

CLUSTER = """
servers:
- {name: old, capacity: {cpu: 4}, count: 2, attributes: {model: V100}}
- {name: new, capacity: {cpu: 8}, attributes: {model: A100}}
users:
- {name: alice, demand: {cpu: 1}}
- {name: bob, demand: {cpu: 1}, weight: 2}
"""
JOBS = """job,user,submit_s,tasks,run_s,cpu,requires,servers
a,alice,0,9,60,2,,
b,bob,5,3,60,4,model = A100,
c,bob,5,1,1,1,,old
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cluster and its jobs."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "events.csv").write_text("time_s,event,name,number\n10,remove,old,1\n20,leave,alice,\n30,join,alice,\n90,add,old,\n")
    return tmp_path


def test_a_table_is_a_trace(folder: Path) -> None:
    """CSV and Parquet; attributes and names say where a job may run; events come from a table of their own."""
    trace = fo.load_trace(folder / "jobs.csv", cluster=folder / "cluster.yaml", events=folder / "events.csv")
    assert trace.eligibility is not None
    assert trace.eligibility.tolist() == [[True, True], [False, True], [True, False]]
    assert trace.events == ((10, "remove", "old", 1), (20, "leave", "alice", 1), (30, "join", "alice", 1), (90, "add", "old", 1))
    pd.read_csv(folder / "jobs.csv").to_parquet(folder / "jobs.parquet")
    again = fo.load_trace(folder / "jobs.parquet", cluster=folder / "cluster.yaml")
    pd.testing.assert_frame_equal(again.to_frame(), trace.to_frame())
    pd.testing.assert_frame_equal(fo.Trace.from_frame(trace.to_frame()).to_frame(), trace.to_frame())
    with pytest.raises(fo.InvalidInstance, match="the servers are needed to read this table; give cluster"):
        fo.load_trace(folder / "jobs.csv")


BAD = [
    ("a,alice,0,9,-60,2,,", "line 2: run_s is not a number >= 0"),
    ("a,alice,zero,9,60,2,,", 'line 2, column "submit_s": expected a number, found the text "zero"'),
    ("a,alice,9,9,60,2,,", "line 3: it is submitted before the job above it"),
    ("c,alice,0,9,60,2,,", r'line 4: there is a job "c" already \(line 2\)'),
    ("a,alice,0,0,60,2,,", "line 2: its number of tasks is not a whole number"),
    ("a,alice,0,9,60,,,", "line 2: all its demands are zero"),
    ("a,,0,9,60,2,,", "line 2: the user is empty"),
    ("a,alice,0,9,60,2,modell = A100,", 'line 2, column "requires": no server has the attribute "modell"'),
    ("a,alice,0,9,60,2,,nwe", r'line 2, column "servers": there is no server "nwe" \(did you mean "new"\?\)'),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_row_is_refused_or_counted(folder: Path, row: str, message: str) -> None:
    """With file and line; a lenient reader leaves it out."""
    (folder / "jobs.csv").write_text(JOBS.replace("a,alice,0,9,60,2,,", row))
    with pytest.raises(fo.InvalidInstance, match=rf"jobs\.csv, {message}"):
        fo.load_trace(folder / "jobs.csv", cluster=folder / "cluster.yaml")
    trace = fo.load_trace(folder / "jobs.csv", cluster=folder / "cluster.yaml", lenient=True)
    assert trace.n_jobs + len(trace.left_out) == 3
    assert trace.left_out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("jobs.csv", "", "the file is empty"),
        ("jobs.csv", "user,submit_s,cpu\nA,0,1\n", 'there is no column "run_s"'),
        ("jobs.csv", "user,submit_s,run_s\nA,0,1\n", "no column for a resource"),
        ("jobs.csv", "user,submit_s,run_s,cpu\nA,0,-1,1\n", "run_s is not a number >= 0"),
        ("events.csv", "time_s,event,name\n-1,join,alice\n", "events.csv, line 2: time_s is not a finite number >= 0"),
        ("events.csv", "time_s,event,name\n9,leave,alice\n1,join,alice\n", "events.csv, line 3: it is earlier than the event above it"),
        ("events.csv", "time_s,event,name\n1,jump,alice\n", "events.csv, line 2: the event must be join, leave, add or remove"),
        ("events.csv", "time_s,event,name\n1,join,alcie\n", 'events.csv, line 2: user "alcie" submits no job (did you mean "alice"?)'),
        ("events.csv", "time_s,event,name\n1,add,olb\n", 'events.csv, line 2: there are no servers "olb" (did you mean "old"?)'),
        ("events.csv", "time_s,event,name,number\n1,add,old,1e300\n", "events.csv, line 2: number is not a whole number of servers >= 1"),
        ("events.csv", "time_s,event,name,number\n1,add,old,99999999\n", "and a schedule fills at most 20,000,000, one by one"),
        ("jobs.parquet", "no table", "is not a Parquet file, or is damaged"),
    ],
)
def test_a_bad_file_is_status_2(folder: Path, name: str, text: str, message: str) -> None:
    """One message, no traceback."""
    (folder / name).write_text(text)
    jobs = name if name.startswith("jobs") else "jobs.csv"
    result = run(str(folder / jobs), "--cluster", str(folder / "cluster.yaml"), "--events", str(folder / "events.csv"), status=2)
    assert message in " ".join(result.stderr.split())


def run(*arguments: str, status: int = 0) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["simulate", *arguments], env={"COLUMNS": "100"})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def test_the_command(folder: Path) -> None:
    """Text, JSON, CSV, samples, a picture; a lenient run says what it left out."""
    base = [str(folder / "jobs.csv"), "--cluster", str(folder / "cluster.yaml")]
    text = run(*base, "--regret", "4", "--plot", str(folder / "a.png")).stdout
    assert "3 jobs of 2 users, 3 servers: drfh:best-fit, greedy" in text
    assert "3 of 3" in text
    assert "over 4 moments" in text
    assert (folder / "a.png").stat().st_size > 10_000
    data = json.loads(run(*base, "--json", "--scheduler", "drfh", "--events", str(folder / "events.csv")).stdout)
    assert (data["kind"], data["jobs_finished"]) == ("exact, fluid", 3)
    run(*base, "--by", "time", "-o", str(folder / "samples.parquet"))
    assert set(pd.read_parquet(folder / "samples.parquet")["quantity"]) == {"utilization", "share", "running", "waiting"}
    header = "job,user,submit_s,tasks,tasks_ended,ended,started_s,finished_s,completion_s,finish_ratio,name"
    assert run(*base, "--csv").stdout.splitlines()[0] == header
    assert "ends in .parquet; leave --json out" in " ".join(
        run(*base, "--json", "-o", str(folder / "a.parquet"), status=2).stderr.replace("│", " ").split()
    )
    (folder / "jobs.csv").write_text(JOBS.replace("c,bob", ",bob"))
    assert "1 row left out; the first:" in " ".join(run(*base, "--lenient").stderr.split())
    assert 'there is no placement "bestfit"' in " ".join(run(*base, "--scheduler", "drfh:bestfit", "--lenient", status=2).stderr.split())


def test_a_batch_system_says_that_time_is_up() -> None:
    """SIGTERM ends a simulation as Ctrl-C does, with what there is; afterwards it means what it did."""
    ended = threading.Event()
    before = signal.getsignal(signal.SIGTERM)

    def task() -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return ended.wait(60)

    assert work("simulating", task, None, ended)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_log_is_a_trace(tmp_path: Path) -> None:
    """A log in the Standard Workload Format on the command line: two processors, so the second job waits for the first."""
    lines = [
        "1 0 0 90 2 -1 -1 2 90 -1 1 7 1 -1 1 -1 -1 -1",
        "2 10 80 9 1 -1 -1 1 90 -1 1 8 1 -1 1 -1 -1 -1",
        "3 11 0 -1 1 -1 -1 1 9 -1 0 8 1 -1 1 -1 -1 -1",
    ]
    (tmp_path / "log.swf").write_text("\n".join(["; MaxNodes: 1", *lines]))
    (tmp_path / "cluster.yaml").write_text("servers: [{name: node, capacity: {cpu: 2}}]\nusers: [{name: any, demand: {cpu: 1}}]\n")
    result = run(str(tmp_path / "log.swf"), "--cluster", str(tmp_path / "cluster.yaml"), "--csv")
    assert "1 row left out" in result.stderr
    assert [line.split(",")[:1] + line.split(",")[-4:-2] for line in result.stdout.splitlines()[1:]] == [
        ["1", "90.0", "90.0"],
        ["2", "99.0", "89.0"],
    ]
    with pytest.raises(fo.InvalidInstance, match=r'users is "owner"'):
        fo.trace_swf(tmp_path / "log.swf", users="owner")


def test_groups_of_tasks_are_a_trace(tmp_path: Path) -> None:
    """Of a job with two shapes the second has a name of its own; what still ran goes on until the end; in order of time."""
    text = "job,user,cpu,mem,n_tasks,first_submit_s,median_run_s\n7,U1,.5,.1,3,50,10\n7,U1,.2,.1,1,50,20\n5,U2,.1,.1,2,0,\n6,U2,,0,2,0,1\n"
    (tmp_path / "tasks.csv").write_text(text)
    trace = fo.trace_google2011(tmp_path / "tasks.csv", until=100)
    assert (trace.jobs, trace.durations.tolist(), trace.tasks.tolist()) == (("5", "7", "7 (2)"), [100, 10, 20], [2, 3, 1])
    assert trace.left_out == (f"{tmp_path / 'tasks.csv'}, line 5: it asks for nothing",)
    (tmp_path / "tasks.csv").write_text(text.replace("50,20", "-50,20"))
    with pytest.raises(fo.InvalidInstance, match=r"line 3, column \"first_submit_s\": the number is negative"):
        fo.trace_google2011(tmp_path / "tasks.csv")
