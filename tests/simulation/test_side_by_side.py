"""Schedulers side by side: measures worked out by hand, against a loop, and a run that goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.simulation.records import study_of_simulations
from fairopt.simulation.simulating import simulate


def two_users() -> tuple[fo.Trace, fo.Instance]:
    """A takes the machine for 100 s; B, who comes at 50 with a job of 5 s, waits for it in every schedule of whole tasks."""
    trace = fo.Trace(["A", "B"], [0, 50], [4, 4], [[1], [1]], [100, 5], gangs=[1, 1], resources=["cpu"])
    return trace, fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])


def test_by_hand() -> None:
    """B waits 50 s, of which exact DRFH gives it half of the cluster for ten."""
    found = fo.compare_over_time(*two_users(), ["fifo", "drfh"], step=1.0, window=10.0)
    fifo, exact = found.to_frame().to_dict("records")
    assert fifo["wait_s"] == 25
    assert fifo["slowdown"] == pytest.approx((1 + 55 / 5) / 2)
    assert fifo["bounded_slowdown"] == pytest.approx((1 + 55 / 10) / 2)
    assert fifo["shortfall_h"] * 3600 == pytest.approx(0.5 * 10)
    assert fifo["envy_h"] * 3600 == pytest.approx(50)
    assert exact["shortfall_h"] == 0
    assert found.courses[1].finished.tolist() == pytest.approx([105, 60])
    begins, jain = found.jain(found.courses[0])
    assert begins.tolist() == [10.0 * k for k in range(11)]
    assert jain[:10].tolist() == pytest.approx([1] * 5 + [0.5] * 5)


def test_measures_over_time_as_in_a_loop() -> None:
    """Shortfall and envy, sample by sample and user by user."""
    rng = np.random.default_rng(3)
    cluster = fo.Instance([[4, 8]], np.ones((3, 2)), counts=[2], users=["a", "b", "c"], weights=[1, 2, 4], resources=["cpu", "memory"])
    trace = fo.Trace(
        [cluster.users[n] for n in rng.integers(0, 3, 30)], np.sort(rng.integers(0, 60, 30)), rng.integers(1, 5, 30),
        rng.integers(1, 4, (30, 2)), rng.integers(1, 20, 30), resources=["cpu", "memory"],
    )  # fmt: skip
    found = fo.compare_over_time(trace, cluster, ["drfh:best-fit"], step=1.0)
    course = found.courses[0]
    shortfall, envy = found.shortfall(course), found.envy(course)
    exact = dict(zip(found.exact.times.tolist(), found.exact.shares, strict=True))
    for k, time in enumerate(course.times.tolist()):
        for n in range(3):
            waits = course.waiting[k, n] > 1e-9
            due = exact[time][n] if time in exact else 0.0
            assert shortfall[k, n] == pytest.approx(max(due - course.shares[k, n], 0) if waits else 0)
            best = max(course.shares[k, v] / cluster.weights[v] for v in range(3)) * cluster.weights[n]
            assert envy[k, n] == pytest.approx(max(best - course.shares[k, n], 0) if waits else 0)


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has finished is not simulated again; what another trace left there is not taken."""
    from fairopt.simulation import side_by_side

    trace, cluster = two_users()
    asked: list[str] = []
    original = simulate

    def counted(trace: fo.Trace, cluster: fo.Instance, scheduler: str, **options: object) -> fo.Simulation:
        asked.append(scheduler)
        if scheduler == "backfill" and len(asked) == 3:
            raise KeyboardInterrupt
        return original(trace, cluster, scheduler, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(side_by_side, "simulate", counted)
    with pytest.raises(KeyboardInterrupt):
        fo.compare_over_time(trace, cluster, ["fifo", "backfill", "fairtree"], resume=tmp_path)
    again = fo.compare_over_time(trace, cluster, ["fifo", "backfill", "fairtree"], resume=tmp_path)
    assert asked == ["drfh", "fifo", "backfill", "backfill", "fairtree"]
    whole = fo.compare_over_time(trace, cluster, ["fifo", "backfill", "fairtree"])
    assert again.to_dict() == whole.to_dict() | {"time_s": again.seconds}
    asked.clear()
    other = fo.Trace(["A", "B"], [0, 51], [4, 4], [[1], [1]], [100, 5], gangs=[1, 1], resources=["cpu"])
    fo.compare_over_time(other, cluster, ["fifo"], resume=tmp_path)
    assert asked == ["drfh", "fifo"]
    damaged = next(tmp_path.glob("fifo-*.npz"))
    for file in tmp_path.glob("fifo-*.npz"):
        file.write_bytes(b"nothing")
    with pytest.raises(fo.InvalidInstance, match=f"{damaged.name[:5]}.*delete it"):
        fo.compare_over_time(trace, cluster, ["fifo"], resume=tmp_path)


def test_a_scheduler_that_was_stopped_is_named() -> None:
    """The table says which row is a part."""
    import io
    from dataclasses import replace

    from rich.console import Console

    from fairopt.reporting.tables.side_by_side import side_by_side_blocks
    from fairopt.show.terminal import print_blocks

    trace, cluster = two_users()
    found = fo.compare_over_time(trace, cluster, ["fifo", "backfill"])
    part = replace(found, courses=(found.courses[0], replace(found.courses[1], complete=False)))
    for shown, said in ((found, 0), (part, 1)):
        page = io.StringIO()
        print_blocks(Console(file=page, width=80), side_by_side_blocks(shown))
        assert page.getvalue().count("stopped early") == page.getvalue().count("\nbackfill: stopped early") == said


def test_schedulers_that_had_not_begun_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the first of three: the others are named, on the page of the terminal, in JSON and by the exit status."""
    from fairopt.simulation import side_by_side

    trace, cluster = two_users()
    over: list[str] = []

    def noted(trace: fo.Trace, cluster: fo.Instance, scheduler: str, **options: object) -> fo.Simulation:
        found = simulate(trace, cluster, scheduler, **options)  # type: ignore[arg-type]
        over.append(scheduler)
        return found

    monkeypatch.setattr(side_by_side, "simulate", noted)
    found = fo.compare_over_time(trace, cluster, ["fifo", "backfill", "priority"], stopped=lambda: "fifo" in over)
    assert found.not_begun == ("backfill", "priority")
    assert not found.complete
    assert fo.compare_over_time(trace, cluster, ["fifo"]).complete
    (tmp_path / "jobs.csv").write_text("user,submit_s,run_s,tasks,cpu,gang\nA,0,100,4,1,yes\nB,50,5,4,1,yes\n")
    fo.save(cluster, tmp_path / "cluster.yaml")
    monkeypatch.setattr(fo, "compare_over_time", lambda *_, **__: found)
    words = ["simulate", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml"), "--scheduler", "fifo", "--scheduler", "x"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 130
    assert "Not begun when the simulation was stopped: backfill and priority" in shown.output
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["not_begun"] == ["backfill", "priority"]


def test_a_wait_says_which_jobs_it_is_of() -> None:
    """Where the simulation ends before B starts, the mean wait is that of A."""
    import io

    from rich.console import Console

    from fairopt.reporting.tables.side_by_side import side_by_side_blocks
    from fairopt.show.terminal import print_blocks

    found = fo.compare_over_time(*two_users(), ["fifo", "drfh"], until=60)
    assert found.to_frame()[["jobs", "started", "wait_s"]].to_numpy().tolist() == [[2, 1, 0], [2, 2, 0]]
    page = io.StringIO()
    print_blocks(Console(file=page, width=200), side_by_side_blocks(found))
    assert "of the jobs that started; without 1 job under fifo that did not" in page.getvalue()


def test_regret_is_the_part_of_what_the_exact_simulation_gives() -> None:
    """5 share-seconds are lacked, of the 105 that the exact simulation gives: 50 alone, 10 shared, 45 alone."""
    found = fo.compare_over_time(*two_users(), ["fifo"], step=1.0)
    assert found.to_frame()["regret"].tolist() == pytest.approx([5 / 105])
    assert found.users_by_shortfall() == ["B", "A"]


def test_demands_in_other_units_are_suspected() -> None:
    """KiB on a cluster of GiB, say: the exact simulation runs a small part of a task at a time, and would go on for ages."""
    trace = fo.Trace(["A", "B"], [0, 50], [4, 4], [[2**14], [2**14]], [100, 5], resources=["memory"])
    cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["memory"])
    with pytest.raises(fo.Unsupported, match=r"under drfh, jobs end far beyond the 50 s .* have the units of the cluster"):
        fo.compare_over_time(trace, cluster, ["fifo"])
    with pytest.raises(fo.Unsupported, match=r"a sample every 0\.001 s"):
        fo.compare_over_time(trace, cluster, ["fifo"], step=0.001)


def test_a_default_half_life_is_shown() -> None:
    """In the frame, and below the table where the name does not say it."""
    import io

    from rich.console import Console

    from fairopt.reporting.tables.side_by_side import side_by_side_blocks
    from fairopt.show.terminal import print_blocks

    found = fo.compare_over_time(*two_users(), ["fairtree", "priority:half_life=2d", "fifo"])
    assert found.to_frame()["half_life_s"].tolist() == pytest.approx([7 * 86_400, 2 * 86_400, np.nan], nan_ok=True)
    page = io.StringIO()
    print_blocks(Console(file=page, width=100), side_by_side_blocks(found))
    assert page.getvalue().count("a half-life of") == page.getvalue().count("fairtree: a half-life of 7 days, the default") == 1


def test_an_endless_half_life_is_a_word_in_json() -> None:
    """A memory that never fades has one; null means that there is no memory."""
    trace, cluster = two_users()
    rounds = "drfh:half_life=inf:period=100"
    schedulers = fo.compare_over_time(trace, cluster, [rounds, "fairtree", "fifo"], until=500).to_dict()["schedulers"]
    assert [row["half_life_s"] for row in schedulers] == ["inf", 604_800.0, None]
    (alone,) = fo.simulate(trace, cluster, rounds, until=500).to_dict()["schedulers"]
    assert alone["half_life_s"] == "inf"
    cells = fo.study_over_time({"day": (trace, cluster)}, [rounds, "fifo"], until=500, workers=1)
    assert [row["half_life_s"] for row in study_of_simulations(cells, {})["rows"]] == ["inf", None]


def test_on_the_command_line(tmp_path: Path) -> None:
    """A table, JSON, a picture; what makes no sense is refused."""
    (tmp_path / "jobs.csv").write_text("user,submit_s,run_s,tasks,cpu,gang\nA,0,100,4,1,yes\nB,50,5,4,1,yes\n")
    (tmp_path / "cluster.yaml").write_text(
        "servers:\n- {name: s, capacity: {cpu: 4}}\nusers:\n- {name: A, demand: {cpu: 1}}\n- {name: B, demand: {cpu: 1}}\n"
    )
    base = ["simulate", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml")]
    both = [*base, "--scheduler", "fifo", "--scheduler", "fairtree:half_life=7d"]
    shown = CliRunner().invoke(app, [*both, "--plot", str(tmp_path / "x.png"), "--resume", str(tmp_path / "kept")])
    assert shown.exit_code == 0, shown.output
    assert CliRunner().invoke(app, [*both, "--report", str(tmp_path / "x.html")]).exit_code == 0
    assert "Jain" in (tmp_path / "x.html").read_text()
    assert "fairtree:half_life=7d" in shown.output
    assert (tmp_path / "x.png").stat().st_size > 1000
    assert len(list((tmp_path / "kept").glob("[!.]*"))) == 3
    data = json.loads(CliRunner().invoke(app, [*both, "--json"]).stdout)
    assert [row["scheduler"] for row in data["schedulers"]] == ["fifo", "fairtree:half_life=7d"]
    assert data["schedulers"][0]["wait_s"] == 25
    assert CliRunner().invoke(app, [*both, "--regret", "3"]).exit_code == 2
    assert CliRunner().invoke(app, [*both, "--report", str(tmp_path / "x.pdf")]).exit_code == 2
    assert CliRunner().invoke(app, [*base, "--report", str(tmp_path / "y.html")]).exit_code == 2
    assert CliRunner().invoke(app, [*base, "--resume", str(tmp_path / "kept")]).exit_code == 2


def test_a_scheduler_named_twice_is_refused() -> None:
    """Before anything is simulated."""
    cluster = fo.Instance([[2]], [[1]], resources=["cpu"], users=["a"])
    trace = fo.generate_trace(jobs=5, users=1, hours=1, seed=0)
    with pytest.raises(fo.Unsupported, match='"fifo" is there twice; name each once'):
        fo.compare_over_time(trace, cluster, ["fifo", "drfh:best-fit", "fifo"])


def test_workers_simulate_the_same(tmp_path: Path) -> None:
    """Each scheduler once, also the reference among them; what is finished is kept."""
    told: list[str] = []
    ask = ["fifo", "drfh", "backfill"]
    one = fo.compare_over_time(*two_users(), ask, step=1.0)
    two = fo.compare_over_time(*two_users(), ask, step=1.0, workers=2, resume=tmp_path, done=lambda name, now, tasks: told.append(name))
    assert sorted(told) == sorted(ask)
    assert one.to_frame().equals(two.to_frame())
    for mine, theirs in zip((one.exact, *one.courses), (two.exact, *two.courses), strict=True):
        np.testing.assert_array_equal(mine.shares, theirs.shares)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    stopped = fo.compare_over_time(*two_users(), [*ask, "drfh:best-fit"], step=1.0, workers=2, backend="threading", stopped=lambda: True)
    assert stopped.not_begun


def test_one_scheduler_takes_no_workers() -> None:
    """There is nothing to divide."""
    result = CliRunner().invoke(app, ["simulate", "jobs.csv", "--cluster", "lab.yaml", "--workers", "2"])
    assert result.exit_code == 2
    assert "a worker simulates one scheduler" in " ".join(result.output.replace("│", " ").split())


def test_a_rule_is_a_limit_of_every_scheduler(tmp_path: Path) -> None:
    """It has a use in the result, as a named limit has, and finished schedulers are read again from the folder; so does a study."""
    trace, cluster = two_users()
    ruled = fo.Instance(cluster.capacities, [[1], [1]], users=["A", "B"], resources=["cpu"], rules=["x[A] <= 4"])
    runs = [fo.compare_over_time(trace, ruled, ["fifo", "drfh"], resume=tmp_path / "kept").to_dict()["schedulers"] for _ in range(2)]
    assert runs[0] == runs[1]
    assert [scheduler["limit_most"] for scheduler in runs[0]] == [{"x['A'] <= 4": 1.0}] * 2
    grid = [fo.study_over_time({"one": (trace, ruled)}, ["fifo"], resume=tmp_path / "study", workers=1) for _ in range(2)]
    assert grid[0]["message"].tolist() == [""]
    assert grid[0].equals(grid[1])
    with pytest.raises(
        fo.Unsupported, match=r'"x\[A\] >= 1" asks for at least something, and a simulation keeps only rules .*; write such a rule'
    ):
        fo.compare_over_time(trace, ruled.replace(rules=["x[A] >= 1"]), ["fifo"])
