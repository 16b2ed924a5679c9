"""Servers that act by themselves every T seconds: as on paper in fractions, what must hold at any time, where they settle."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.asynchronous import Reference
from strategies import instances, traces
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.cli import app
from fairopt.instance.aggregation import expand
from fairopt.program import Equilibrium
from fairopt.solvers import AsynchronousServers, Turns

FIGURE_2 = fo.Instance([[9, 12, 100], [12, 12, 0]], np.array([[1.5, 1, 10], [1, 2, 10], [0.5, 1, 0], [1, 0.5, 0]]))


def endless(cluster: fo.Instance, **more: Any) -> fo.Trace:
    """Everybody has more than enough to do, for ever."""
    n = cluster.n_users
    return fo.Trace(cluster.users, np.zeros(n), np.full(n, 10**6), cluster.demands, np.full(n, np.inf), resources=cluster.resources, **more)


# Action by action ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@settings(max_examples=25)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3), seed=st.integers(0, 9))
def test_action_by_action_as_in_fractions(sharing: str, data: st.DataObject, instance: fo.Instance, seed: int) -> None:
    """What each user runs at any time, and when each job ends: constraints, users and servers that come and go, tasks of all durations."""
    cluster = instance.replace(capacities=instance.capacities / 10, tasks=None)
    trace = data.draw(traces(cluster))
    reference = Reference(trace, cluster, 2.0, "random", seed, sharing)
    options = {"period": 2.0, "seed": seed, "sharing": sharing}
    found = fo.simulate(trace, cluster, ("psdsf", options), until=25.0, step=0.7310585)
    expected = reference.follow(Fraction(25), [Fraction(float(time)) for time in found.series.times])
    np.testing.assert_allclose(found.series.running, np.array(expected, float), rtol=1e-7, atol=1e-9)
    ends = np.array([np.nan if end is None else float(end) for end in reference.finished])
    np.testing.assert_allclose(found.finished, ends, rtol=1e-7)


@pytest.mark.parametrize("phases", ["sweep", "at-once"])
@settings(max_examples=20)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3))
def test_all_at_the_same_times_as_in_fractions(phases: str, data: st.DataObject, instance: fo.Instance) -> None:
    """One after the other, or none knowing of the others; tasks without an end, as no end then falls on an action."""
    cluster = instance.replace(capacities=instance.capacities / 10, tasks=None)
    drawn = data.draw(traces(cluster))
    trace = fo.Trace(
        [drawn.users[n] for n in drawn.user], drawn.submit, drawn.tasks, drawn.demands, np.full(drawn.n_jobs, np.inf),
        eligibility=drawn.eligibility, events=drawn.events, resources=drawn.resources,
    )  # fmt: skip
    reference = Reference(trace, cluster, 1.0, phases, 0, "rdm")
    found = fo.simulate(trace, cluster, f"psdsf:period=1:phases={phases}", until=20.0, step=0.7310585)
    expected = reference.follow(Fraction(20), [Fraction(float(time)) for time in found.series.times])
    np.testing.assert_allclose(found.series.running, np.array(expected, float), rtol=1e-7, atol=1e-9)


# What must hold at any time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phases", ["random", "sweep", "at-once"])
@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@settings(max_examples=15)
@given(instance=instances(), seed=st.integers(0, 2**16))
def test_no_server_gives_more_than_it_has(phases: Any, sharing: str, instance: fo.Instance, seed: int) -> None:
    """After each single action, on each single server; nobody holds more than its tasks, and nothing where it may not run."""
    single = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))
    rates = instance.rates / instance.counts
    rng = np.random.default_rng(seed)
    turns = Turns(1.5, phases, seed)
    servers = AsynchronousServers(single, rates, instance.demands, instance.capacities, sharing == "tdm", turns, 0.0, ())
    now = 0.0
    for _ in range(4):
        members = np.flatnonzero(instance.servable & (rng.random(instance.n_users) < 0.8))
        tasks = np.minimum(np.where(instance.tasks > 0, instance.tasks, 1.0), rng.uniform(1, 99, instance.n_users))[members]
        there = rng.random(single.size) < 0.9
        servers.change(there, members, instance.weights[members], tasks, np.zeros(members.size))
        jobs = np.arange(members.size), tasks, np.full(members.size, 1e9), np.full(members.size, np.nan)
        for _ in range(7):
            now = servers.follow(now, now + 0.3, *jobs)
            x = servers.users.x
            assert (x >= 0).all()
            assert (x[~there] == 0).all()
            assert (x[rates[members].T[single] == 0] == 0).all()
            assert (x.sum(axis=0) <= tasks * (1 + 1e-9)).all()
            assert (x @ instance.demands[members] <= instance.capacities[single] * (1 + 1e-9) + 1e-12).all()
            if sharing == "tdm":
                time = np.divide(x, rates[members].T[single], out=np.zeros_like(x), where=x > 0)
                assert (time.sum(axis=1) <= 1 + 1e-9).all()


@settings(max_examples=30)
@given(data=st.data(), instance=instances(max_users=3), seed=st.integers(0, 9))
def test_work_is_neither_lost_nor_made(data: st.DataObject, instance: fo.Instance, seed: int) -> None:
    """The tasks that run, over time, are the work that is done; no job ends before it could by itself."""
    cluster = instance.replace(tasks=None)
    trace = data.draw(traces(cluster, whole=False))
    found = fo.simulate(trace, cluster, f"psdsf:period=0.5:phases=sweep:seed={seed}", until=40.0)
    assert found.complete
    times, running = found.series.times, found.series.running
    length = np.diff(np.append(times, 40.0))
    work = trace.job_work
    finite = np.isfinite(work)
    of_user = np.array([found.users.index(trace.users[n]) for n in trace.user])
    done = np.multiply(work, found.ended / trace.tasks, out=np.zeros(work.size), where=finite)
    for n in range(len(found.users)):
        own = (of_user == n) & found.takes_part
        if finite[own].all():
            np.testing.assert_allclose(length @ running[:, n], done[own].sum(), rtol=1e-7, atol=1e-7)
    least = trace.submit + work / trace.tasks
    over = np.isfinite(found.finished)
    assert (found.finished[over] >= least[over] - 1e-7).all()
    assert (found.started[over] >= trace.submit[over]).all()
    assert (found.series.usage <= found.series.capacity * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@settings(max_examples=40)
@given(instance=instances(max_servers=3), seed=st.integers(0, 9), acted=st.integers(0, 9))
def test_the_condition_is_that_of_the_theorem(sharing: Literal["rdm", "tdm"], instance: fo.Instance, seed: int, acted: int) -> None:
    """At any time the number beside is what `fairopt.certificate.conditions` says of the same allocation of single servers."""
    single, row = expand(instance)
    members = np.flatnonzero(single.servable & (single.tasks > 0))
    servers = AsynchronousServers(
        row, instance.rates / instance.counts, instance.demands, instance.capacities, sharing == "tdm", Turns(1.0, seed=seed), 0.0, ()
    )
    tasks = single.tasks[members]
    servers.change(np.ones(row.size, bool), members, single.weights[members], tasks, np.zeros(members.size))
    servers.follow(0.0, acted / 4, np.arange(members.size), tasks, np.full(members.size, np.inf), np.full(members.size, np.nan))
    program = fo.formulate(single, "psdsf", sharing=sharing)
    x = np.zeros((single.n_users, single.n_servers))
    x[members] = servers.users.x.T
    assert isinstance(program.goal, Equilibrium)
    expected = bottleneck_violation(program, program.goal, x[program.pair_users, program.pair_servers])
    assert servers.violation == pytest.approx(expected, abs=1e-12)


# Where they settle ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phases", ["random", "sweep"])
@settings(max_examples=25)
@given(instance=instances(max_servers=4), seed=st.integers(0, 9))
def test_where_time_is_divided_each_action_comes_nearer(phases: str, instance: fo.Instance, seed: int) -> None:
    """An action maximises sum phi log x over what one server gives; the sum never falls, and x[n] of its maximum is unique."""
    cluster = instance.replace(tasks=None)
    found = fo.simulate(
        endless(cluster), cluster, ("psdsf", {"period": 1.0, "phases": phases, "seed": seed, "sharing": "tdm"}), until=30.0, step=0.25
    )
    x = found.series.running[found.series.times >= 1.0]
    assert (x[:, cluster.servable] > 0).all()
    value = np.log(x[:, cluster.servable]) @ cluster.weights[cluster.servable]
    assert (np.diff(value) >= -1e-9 * np.abs(value[1:]) - 1e-9).all()


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("phases", ["random", "sweep"])
def test_they_settle_on_the_exact_allocation(phases: str, sharing: Literal["rdm", "tdm"]) -> None:
    """Figure 2 of the paper, where all allocations that are PS-DSF give 3.6, 3.6, 8 and 8; and by time as `solve` does."""
    found = fo.simulate(endless(FIGURE_2), FIGURE_2, ("psdsf", {"period": 0.1, "phases": phases, "sharing": sharing}), until=100.0)
    expected = fo.solve(FIGURE_2, "psdsf", sharing=sharing).tasks_per_user
    np.testing.assert_allclose(found.series.running[-1], expected, rtol=1e-6)
    assert found.series.exact_shares is not None
    np.testing.assert_allclose(
        found.series.exact_shares, np.tile(found.series.dominant_shares[-1], (len(found.series.times), 1)), rtol=1e-6
    )
    assert found.regret is not None
    assert found.settling is not None
    assert found.regret["condition"].iloc[-1] < 1e-6
    assert found.settling["distance_1e-06"].iloc[0] >= found.settling["distance_0.001"].iloc[0] > 0


@pytest.mark.parametrize("seed", range(6))
def test_they_settle_on_an_allocation_that_is_psdsf(seed: int) -> None:
    """Random servers and users, resources divided: the theorem's condition is met in the end, of whichever allocation."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance(rng.uniform(1, 9, (5, 2)), rng.uniform(0.1, 1, (5, 2)), weights=rng.uniform(0.5, 2, 5), counts=[1, 2, 3, 1, 2])
    found = fo.simulate(endless(cluster), cluster, f"psdsf:period=1:seed={seed}", until=500.0)
    assert found.regret is not None
    assert found.regret["condition"].iloc[-1] < 1e-6


def test_several_allocations_are_psdsf() -> None:
    """Where the servers settle on another than `solve`, the condition vanishes and the distance says how far the two are apart."""
    cluster = fo.Instance([[1, 4], [4, 4]], [[3, 0], [0, 2], [3, 2]], eligibility=[[1, 1], [0, 1], [1, 1]])
    exact = fo.solve(cluster, "psdsf").tasks_per_user
    seen = set()
    trace = endless(cluster, events=[(5.0, "join", "user-1"), (10.0, "join", "user-2"), (15.0, "join", "user-3")])
    for seed in range(4):
        found = fo.simulate(trace, cluster, f"psdsf:period=1:seed={seed}", until=200.0)
        x = found.series.running[-1]
        assert found.regret is not None
        assert found.regret["condition"].iloc[-1] < 1e-6
        far = (np.abs(x - exact) / np.maximum(x, exact)).max()
        assert found.regret["distance"].iloc[-1] == pytest.approx(far, abs=1e-12)
        seen.add(round(float(far), 3))
    assert len(seen) > 1
    assert min(seen) > 0


def test_servers_that_act_at_once_may_never_settle() -> None:
    """A may run everywhere and B not on the third server: the first two, alike, take A back together, and then give too much together."""
    cluster = fo.Instance([[3]], [[1], [1]], counts=[2]), fo.Instance([[3]] * 3, [[1], [1]], eligibility=[[1, 1, 1], [1, 1, 0]])
    found = fo.simulate(endless(cluster[1]), cluster[1], "psdsf:period=1:phases=at-once", until=300.0)
    assert found.series.running[-4:].tolist() == [[3, 6], [6, 3], [3, 6], [6, 3]]
    assert found.settling is not None
    assert np.isnan(found.settling["distance_0.001"][0])
    for instance in cluster:
        found = fo.simulate(endless(instance), instance, "psdsf:period=1:phases=sweep", until=300.0)
        np.testing.assert_allclose(found.series.running[-1], instance.counts.sum() * 1.5)


def test_how_soon_is_counted_in_periods() -> None:
    """One server is right after its first action; the user who leaves is felt at the next one, at 11, as it acts at 0, 2, 4, ..."""
    cluster = fo.Instance([[12]], [[1], [1]], users=["A", "B"])
    trace = endless(cluster, events=[(11.0, "leave", "B"), (20.5, "join", "B")])
    found = fo.simulate(trace, cluster, "psdsf:period=2:phases=sweep", until=30.0)
    assert found.settling is not None
    assert found.settling["time_s"].tolist() == [0, 11, 20.5]
    assert found.settling["until_s"].tolist() == [11, 20.5, 30]
    assert found.settling["distance"].tolist() == [1, 0.5, 1]
    for column in found.settling.columns[3:]:
        assert found.settling[column].tolist() == [0, 0.5, 0.75]
    series = found.series
    assert series.running[np.searchsorted(series.times, 11)].tolist() == [6, 0]
    assert series.running[np.searchsorted(series.times, 12)].tolist() == [12, 0]
    assert series.exact_shares is not None
    assert series.exact_shares[np.searchsorted(series.times, 11)].tolist() == [1, 0]


def test_a_server_that_is_removed_takes_its_tasks_with_it() -> None:
    """And one that is added gives nothing until it acts."""
    cluster = fo.Instance([[4]], [[1]], users=["A"], counts=[2])
    trace = endless(cluster, events=[(5.0, "remove", "server-1"), (9.5, "add", "server-1")])
    found = fo.simulate(trace, cluster, "psdsf:period=2:phases=sweep", until=12.0, step=0.5)
    running = dict(zip(found.series.times.tolist(), found.series.running[:, 0].tolist(), strict=True))
    assert [running[time] for time in (0.0, 4.5, 5.0, 9.5, 10.0, 12.0)] == [8, 8, 4, 4, 8, 8]


# What came of it -----------------------------------------------------------------------------------------------------------------


def some() -> tuple[fo.Trace, fo.Instance]:
    """Jobs of two users on four servers."""
    rng = np.random.default_rng(1)
    cluster = fo.Instance(rng.uniform(2, 5, (4, 2)), [[1, 1]] * 2, users=["A", "B"], weights=[1, 2])
    submit, tasks, durations = np.sort(rng.uniform(0, 20, 20)), rng.integers(1, 9, 20), rng.uniform(1, 9, 20)
    return fo.Trace(["A", "B"] * 10, submit, tasks, [[1, 0.5], [0.3, 0.9]] * 10, durations), cluster


def test_a_seed_is_a_simulation() -> None:
    """And another seed another one."""
    one, same, other = (fo.simulate(*some(), f"psdsf:period=1:seed={seed}") for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.finished, same.finished)
    np.testing.assert_array_equal(one.series.running, same.series.running)
    assert not np.array_equal(one.finished, other.finished)


def test_a_short_period_comes_near_to_the_exact_fluid() -> None:
    """A thousandth of a second: jobs end when they do under the allocation that is exact at each event."""
    _, cluster = some()
    own = fo.Trace(["A", "B"], [0, 0.1], [40, 30], [[1, 0.5], [0.5, 1]], [1, 1])
    exact, near = (fo.simulate(own, cluster, scheduler).finished for scheduler in ("psdsf", ("psdsf", {"period": 0.001})))
    np.testing.assert_allclose(near, exact, rtol=1e-3)
    assert (near > exact - 1e-9).all()


def test_stopped_early_it_keeps_what_it_has() -> None:
    """The beginning of what would have come; until then it tells how far it is."""
    told: list[tuple[float, int]] = []
    whole = fo.simulate(*some(), "psdsf:period=0.5", done=lambda now, tasks: told.append((now, tasks)))
    assert whole.complete
    assert np.isfinite(whole.finished).all()
    assert told == sorted(told)
    part = fo.simulate(*some(), "psdsf:period=0.5", stopped=lambda: len(told) > 0)
    assert not part.complete
    part = fo.simulate(*some(), "psdsf:period=0.5", done=lambda now, tasks: told.append((now, 0)), stopped=lambda: told[-1] >= (10, 0))
    assert 10 <= part.until < 11
    assert json.loads(json.dumps(part.to_dict()))["complete"] is False
    known = whole.finished <= part.until
    np.testing.assert_array_equal(part.finished[known], whole.finished[known])
    assert known.any()
    assert not np.isfinite(part.finished[~known]).any()


def test_of_many_periods_some_are_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the last, about as many as there should be."""
    monkeypatch.setattr("fairopt.simulation.asynchronous.MOST_SAMPLES", 100)
    found = fo.simulate(*some(), "psdsf:period=0.01")
    assert 60 <= found.series.times.size <= 201
    assert found.series.times[-1] >= found.trace.submit[-1]


def test_tables_and_the_picture(tmp_path: Path) -> None:
    """Samples with what is exact beside, regret, how soon they settle; told as data; drawn."""
    found = fo.simulate(*some(), "psdsf:period=0.5:sharing=tdm")
    assert found.kind == "asynchronous, fluid"
    frame = found.to_frame()
    assert set(frame["quantity"]) == {"utilization", "share", "running", "waiting", "exact share", "distance", "condition"}
    for table in ("series", "jobs", "users", "regret", "settling"):
        found.save(tmp_path / f"{table}.parquet", table)
    assert found.settling is not None
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "settling.parquet"), found.settling)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["period"], data["phases"], data["sharing"]) == (0.5, "random", "tdm")
    assert len(data["settling"]) == len(found.settling)
    figure = found.plot()
    figure.draw_without_rendering()
    assert [axes.get_title(loc="left") for axes in figure.axes][-2] == "How far from the exact allocation"


# Refused, and the command --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ("psdsf:period=0", "the period of the servers is 0; give a number of seconds > 0"),
        ("psdsf:period=-1.5", "the period of the servers is -1.5"),
        ("psdsf:period=nan", "the period of the servers is nan"),
        ("psdsf:period=inf", "the period of the servers is inf"),
        ("psdsf:period=soon", "the period of the servers is 'soon'"),
        (("psdsf", {"period": True}), "the period of the servers is True"),
        ("psdsf:period=1:phases=sweeep", r'the phases of the servers are "sweeep" \(did you mean "sweep"\?\)'),
        ("psdsf:period=1:seed=-1", "the seed of the servers is -1"),
        ("psdsf:period=1:sharing=both", 'sharing is "both"'),
        ("psdsf:period=1:phase=sweep", r'take no option "phase" \(did you mean "phases"\?\); they take period, phases, seed, sharing'),
        ("psdsf:phases=sweep", 'need a period; give it in seconds, "psdsf:period=1"'),
        ("drfh:period=1", 'only the allocation of "psdsf" is found by servers that act by themselves; leave the period of "drfh" out'),
    ],
)
def test_what_servers_cannot_do_is_refused(scheduler: Any, message: str) -> None:
    """With what to do."""
    with pytest.raises(fo.Unsupported, match=message):
        fo.simulate(*some(), scheduler)


def test_an_end_must_be_given_where_there_is_none() -> None:
    """Tasks that never end, servers that act for ever; and what has no meaning here."""
    with pytest.raises(fo.Unsupported, match='the tasks of job "1" never end'):
        fo.simulate(endless(FIGURE_2), FIGURE_2, "psdsf:period=1")
    with pytest.raises(fo.Unsupported, match="compared with the exact allocation at every sample; leave regret out"):
        fo.simulate(*some(), "psdsf:period=1", regret=3)
    with pytest.raises(fo.Unsupported, match=r"that act every 1e-12 s would act more than 1,000,000,000 times"):
        fo.simulate(*some(), "psdsf:period=1e-12")


def test_nothing_to_do() -> None:
    """No server where the task fits; no server at all from 5 s on; a user who never comes back."""
    never = fo.simulate(fo.Trace(["A"], [0], [1], [[0, 1]], [1]), fo.Instance([[1, 0]], [[1, 1]]), "psdsf:period=1")
    assert never.fits_nowhere == ("1",)
    assert never.complete
    trace = fo.Trace(["A", "B"], [0, 1], [9, 9], [[1], [1]], [9, 1], events=[(5, "remove", "server-1"), (2, "leave", "A")])
    for scheduler in ("psdsf:period=1", "psdsf"):
        found = fo.simulate(trace, fo.Instance([[3]], [[1]]), scheduler)
        assert found.complete
        assert np.isnan(found.finished[0])


def run(*arguments: str, status: int = 0) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["simulate", *arguments], env={"COLUMNS": "100"})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def test_the_command(tmp_path: Path) -> None:
    """Text, JSON, samples, a picture; a period that is none is status 2."""
    (tmp_path / "cluster.yaml").write_text("servers: [{name: node, capacity: {cpu: 4}, count: 3}]\nusers: [{name: A, demand: {cpu: 1}}]\n")
    (tmp_path / "jobs.csv").write_text("user,submit_s,tasks,run_s,cpu\nA,0,9,10,1\nA,3,9,10,2\n")
    base = [str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml"), "--scheduler"]
    text = run(*base, "psdsf:period=0.5", "--plot", str(tmp_path / "a.png")).stdout
    assert "psdsf:period=0.5, asynchronous, fluid" in text
    assert "2 of 2" in text
    assert "within 0.001" in text
    assert (tmp_path / "a.png").stat().st_size > 10_000
    data = json.loads(run(*base, "psdsf:period=0.5:phases=sweep", "--json").stdout)
    assert data["settling"][0]["distance_0.001"] == 0
    run(*base, "psdsf:period=0.5", "--by", "time", "-o", str(tmp_path / "samples.parquet"))
    assert "exact share" in set(pd.read_parquet(tmp_path / "samples.parquet")["quantity"])
    assert "the period of the servers is 0" in " ".join(run(*base, "psdsf:period=0", status=2).stderr.split())
