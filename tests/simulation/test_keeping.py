"""Simulations that are stopped go on from there, with the same results bit for bit; the state of something else is refused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.registries import registries_restored
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.simulation import courses, flow_state, fluid, keeping, memory
from fairopt.simulation.baselines import events
from fairopt.solvers import compiled
from fairopt.solvers.filling import event_loop
from fairopt.solvers.filling.settings import SETTINGS

SCHEDULERS = [
    *("drfh", "drfh:half_life=9:period=3", "karma:period=5", "psdsf:period=10"),
    *("drfh:best-fit", "drfh:random", "drfh:random-round-robin", "psdsf:joint"),
    *("fifo", "backfill", "fairtree:half_life=7", "priority:half_life=9"),
]
POINTING = ("head", "arrived", "next_task", "server", "best", "ending", "line_at", "pool_at", "progress")
IN_A_TREE = ["drfh", "drfh:half_life=9:period=5", "drfh:random", "fairtree:half_life=7"]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look after every moment whether to stop, and begin linear programs afresh after a few solves."""
    for module in (flow_state, fluid, memory):
        monkeypatch.setattr(module, "SECTION", 4)
    monkeypatch.setattr(events, "_BATCH", 1)
    monkeypatch.setattr(event_loop, "SETTINGS", SETTINGS._replace(moments_at_once=1, moments_of_functions=1))


def some(seed: int, tree: bool = False, gangs: bool = False, each: bool = False, resources: int = 2) -> tuple[fo.Trace, fo.Instance]:
    """Return jobs of two shapes a user, of users who come and go, on servers that come and go."""
    rng = np.random.default_rng(seed)
    queues = [fo.Queue("lab", weight=2, limit={"cpu": 6}), fo.Queue("club")]
    cluster = fo.Instance(
        np.array([[4, 8], [6, 4]])[:, :resources], np.ones((3, resources)), counts=[2, 1], users=["a", "b", "c"], weights=[1, 2, 1],
        servers=["s", "t"], resources=["cpu", "memory"][:resources],
        queues=queues if tree else None, queue_of=["lab", "lab", "club"] if tree else None,
    )  # fmt: skip
    n = 14
    tasks = rng.integers(1, 5, n)
    durations = rng.integers(1, 20, int(tasks.sum()) if each else n).astype(float)
    trace = fo.Trace(
        [cluster.users[u] for u in rng.integers(0, 3, n)], np.sort(rng.integers(0, 60, n)), tasks,
        np.array([[1, 2], [2, 1]])[rng.integers(0, 2, n), :resources], durations, resources=cluster.resources,
        gangs=rng.random(n) < 0.4 if gangs else None,
        events=[(20.0, "remove", "s", 1), (30.0, "leave", "b"), (35.0, "add", "s", 1), (40.0, "join", "b")],
    )  # fmt: skip
    return trace, cluster


def after(number: int) -> Callable[[], bool]:
    """Return what says to stop when it is asked for the time after so many."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= number


def same(one: object, other: object) -> bool:
    """Are two results the same, bit for bit?"""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    return repr(one) == repr(other)


def agree(one: fo.Simulation, other: fo.Simulation) -> None:
    """Compare everything but the seconds that it took."""
    for field in fields(one):
        if field.name == "series":
            for sample in fields(one.series):
                assert same(getattr(one.series, sample.name), getattr(other.series, sample.name)), sample.name
        elif field.name not in ("seconds", "trace", "cluster"):
            assert same(getattr(one, field.name), getattr(other, field.name)), field.name


def follow(trace: fo.Trace, cluster: fo.Instance, scheduler: str, folder: Path, number: int, step: float | None = None) -> None:
    """Stop after so many moments, again and again; compare with one simulation in one go."""
    parts, complete = 0, False
    while not complete:
        found = fo.simulate(trace, cluster, scheduler, step=step, resume=folder, stopped=after(number))
        parts, complete = parts + 1, found.complete
        assert parts < 100
    agree(found, fo.simulate(trace, cluster, scheduler, step=step))
    assert parts > 1


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_it_goes_on_bit_for_bit(scheduler: str, tmp_path: Path) -> None:
    """Users and servers that come and go, samples at events."""
    greedy = scheduler in SCHEDULERS[4:8]
    own = scheduler.startswith(("fifo", "backfill", "fairtree", "priority"))
    resources = 1 if scheduler.startswith("karma") else 2
    follow(*some(1, gangs=own, each=greedy, resources=resources), scheduler, tmp_path, 15 if scheduler.startswith("psdsf:period") else 12)


@pytest.mark.parametrize("scheduler", IN_A_TREE)
def test_in_a_tree(scheduler: str, tmp_path: Path) -> None:
    """Queues with a limit, samples every two seconds."""
    follow(*some(2, tree=True), scheduler, tmp_path, 12, step=2.0)


@pytest.mark.parametrize("scheduler", ["drfh:first-fit", "drfh:random", "priority:half_life=9"])
def test_with_lending_limits(scheduler: str, tmp_path: Path) -> None:
    """The club keeps 9 of 14 cores and 13 of 20 memory; while a server is away 9 of 10 cores and all 12 memory that is left."""
    trace, cluster = some(2, tree=True)
    lender = fo.Queue("club", guarantee={"cpu": 9, "memory": 13}, lending_limit={"cpu": 0, "memory": 0})
    follow(trace, cluster.replace(queues=[cluster.queues[0], lender]), scheduler, tmp_path, 2, step=2.0)


@pytest.mark.parametrize("scheduler", ["drfh", "drfh:half_life=9:period=5", "drfh:random", "backfill"])
def test_within_limits(scheduler: str, tmp_path: Path) -> None:
    """Licences, a limit of each server, one by server and one of each user; another amount is another cluster."""
    trace, cluster = some(2)
    cluster = fo.Instance(
        *(cluster.capacities, np.ones((3, 3))), counts=cluster.counts, users=cluster.users, servers=cluster.servers,
        resources=cluster.resources, shared={"licences": 5},
        limits=[
            fo.Limit("each", 3, each="server"),
            fo.Limit("by server", 6, amounts={"a": {"s": 1, "t": 2}, "b": 1}),
            fo.Limit("own", 5, resource="cpu", each="user"),
        ],
    )  # fmt: skip
    trace = fo.Trace(
        *([trace.users[n] for n in trace.user], trace.submit, trace.tasks, np.hstack([trace.demands, trace.demands[:, :1] - 1])),
        *(trace.durations,), resources=cluster.resources, events=trace.events,
    )  # fmt: skip
    follow(trace, cluster, scheduler, tmp_path, 2 if scheduler in ("backfill", "drfh:random") else 12, step=2.0)
    other = cluster.replace(
        limits=[cluster.limits[0], fo.Limit("by server", 6, amounts={"a": {"s": 1, "t": 3}, "b": 1}), cluster.limits[2]]
    )
    with pytest.raises(fo.InvalidInstance, match="of another cluster"):
        fo.simulate(trace, other, scheduler, step=2.0, resume=next(tmp_path.rglob("*.state")).parent)


def test_a_choice_of_ones_own(tmp_path: Path) -> None:
    """A placement in a file; a scheduler without a name, or whose file has changed, is not taken for the same."""
    file = tmp_path / "mine.py"
    file.write_text("def last(user, free, demand, fits):\n    return fits[-1]\n")
    trace, cluster = some(3)
    with registries_restored():
        follow(trace, cluster, f"drfh:{file}:last", tmp_path / "kept", 12)
        file.write_text("def last(user, free, demand, fits):\n    return fits[0]\n")
        with pytest.raises(fo.InvalidInstance, match="of another scheduler"):
            fo.simulate(trace, cluster, f"drfh:{file}:last", resume=tmp_path / "kept")
    with pytest.raises(fo.Unsupported, match="named by a string"):
        fo.simulate(trace, cluster, ("drfh", "best-fit"), resume=tmp_path / "kept")


def test_often_and_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed leaves the last state that was written: here after every moment."""
    monkeypatch.setattr(keeping, "_SECONDS", 0.0)
    monkeypatch.setattr(keeping, "_PART", 0.0)
    trace, cluster = some(4)

    def killed() -> bool:
        if next(asked) > 9:
            raise KeyboardInterrupt
        return False

    def note(times: list[float], now: float, number: int) -> None:
        times.append(now)

    for scheduler in ("drfh", "backfill", "drfh:best-fit"):
        asked = iter(range(99))
        with pytest.raises(KeyboardInterrupt):
            fo.simulate(trace, cluster, scheduler, resume=tmp_path, stopped=killed)
        seen: list[float] = []
        found = fo.simulate(trace, cluster, scheduler, resume=tmp_path, done=partial(note, seen))
        whole: list[float] = []
        agree(found, fo.simulate(trace, cluster, scheduler, done=partial(note, whole)))
        assert scheduler == "drfh" or len(seen) < len(whole)
        agree(fo.simulate(trace, cluster, scheduler, resume=tmp_path), found)  # its state at the end


def test_what_is_kept_of_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another trace, cluster, option or version; a file that is damaged."""
    trace, cluster = some(1)
    fo.simulate(trace, cluster, "backfill", resume=tmp_path, stopped=after(9))
    with pytest.raises(fo.InvalidInstance, match="of another trace; give another folder, or delete the file"):
        fo.simulate(some(2)[0], cluster, "backfill", resume=tmp_path)
    with pytest.raises(fo.InvalidInstance, match="of another cluster"):
        fo.simulate(trace, cluster.replace(counts=[3, 1]), "backfill", resume=tmp_path)
    with pytest.raises(fo.InvalidInstance, match="with other options"):
        fo.simulate(trace, cluster, "backfill", until=70.0, resume=tmp_path)
    monkeypatch.setattr(fo, "__version__", "9.9")
    with pytest.raises(fo.InvalidInstance, match=r"that fairopt \d\S+ began, and this is fairopt 9\.9; delete it"):
        fo.simulate(trace, cluster, "backfill", resume=tmp_path)
    state = next(tmp_path.glob("backfill-*.state"))
    for damaged in (state.read_bytes()[:-99], b"nothing", b""):
        state.write_bytes(damaged)
        with pytest.raises(fo.InvalidInstance, match=r"holds no state of a simulation: .*delete it"):
            fo.simulate(trace, cluster, "backfill", resume=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(fo.InvalidInstance, match="cannot be made"):
        fo.simulate(trace, cluster, "backfill", resume=tmp_path / "file")


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "backfill", "fairtree:half_life=20", "drfh", "psdsf:period=1"])
def test_a_state_of_somebody_else_is_refused_or_does_no_harm(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its arrays left out, of another shape, of texts, or of numbers that point nowhere: a sentence, or a result."""
    monkeypatch.setattr(compiled, "PATIENCE", np.inf)  # plain Python: for arrays of every other kind a step would be compiled anew
    monkeypatch.setattr(compiled, "PATIENCE_IF_KEPT", np.inf)
    monkeypatch.setattr(compiled, "_loaded", set())
    trace, cluster = some(1)
    until = 42.0  # after the last of the events
    fo.simulate(trace, cluster, scheduler, until=until, resume=tmp_path, stopped=after(9))
    (state,) = tmp_path.glob("*.state")
    with np.load(state) as held:
        arrays = {name: held[name] for name in held.files}
    assert len(arrays) > 5

    def outcome(changed: dict[str, object]) -> str:
        np.savez(tmp_path / "changed.npz", **changed)  # type: ignore[arg-type]
        state.write_bytes((tmp_path / "changed.npz").read_bytes())
        try:
            fo.simulate(trace, cluster, scheduler, until=until, resume=tmp_path)
        except fo.InvalidInstance as error:
            return "refused" if str(error).startswith(f"{state} ") and "delete it, and the simulation begins anew" in str(error) else "?"
        return "done"

    for name, value in arrays.items():
        assert outcome({each: kept for each, kept in arrays.items() if each != name}) == "refused", name
        assert outcome({**arrays, name: np.zeros((*value.shape, 2, 3))}) != "?", name
        assert outcome({**arrays, name: np.full(value.shape, "a")}) != "?", name
        assert value.dtype.kind != "i" or outcome({**arrays, name: np.full_like(value, 10**9)}) != "?", name
    for name in POINTING:  # a compiled step does not notice
        for value in (-2, 10**9):
            assert f"Run.{name}" not in arrays or outcome({**arrays, f"Run.{name}": arrays[f"Run.{name}"] * 0 + value}) == "refused", name
    assert outcome({**arrays, "request": np.array("[" * 100_000)}) == "refused"
    assert outcome({**arrays, "request": np.array("[1]")}) == "refused"
    assert outcome(arrays) == "done"


@pytest.mark.parametrize("raised", [ZeroDivisionError, MemoryError])
@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "backfill", "drfh"])
def test_an_error_of_the_caller_is_no_fault_of_the_state(scheduler: str, raised: type[Exception], tmp_path: Path) -> None:
    """It is raised as it is: nobody is told to delete what took hours."""
    trace, cluster = some(1)
    fo.simulate(trace, cluster, scheduler, resume=tmp_path, stopped=after(9))

    def fails(*_: object) -> bool:
        raise raised

    for calls in ({"done": fails}, {"stopped": fails}):
        with pytest.raises(raised):
            fo.simulate(trace, cluster, scheduler, resume=tmp_path, **calls)  # type: ignore[arg-type]


def test_a_course_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Each of its arrays left out, of another shape or kind, or not finite."""
    trace, cluster = some(1)
    fo.compare_over_time(trace, cluster, ["backfill"], reference="drfh", resume=tmp_path)
    path = next(tmp_path.glob("backfill-*.npz"))
    whole = path.read_bytes()
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}

    def refused(changed: dict[str, object]) -> None:
        np.savez(path, **changed)  # type: ignore[arg-type]
        with pytest.raises(fo.InvalidInstance, match=r"holds no finished scheduler: .*; delete it, and it is simulated again"):
            fo.compare_over_time(trace, cluster, ["backfill"], reference="drfh", resume=tmp_path)

    for name, value in arrays.items():
        refused({each: kept for each, kept in arrays.items() if each != name})
        refused({**arrays, name: np.zeros((*value.shape, 2))})
        refused({**arrays, name: np.full(value.shape, b"a")})
    for name in ("times", "shares", "running", "waiting", "utilization"):
        refused({**arrays, name: np.full_like(arrays[name], np.inf)})
    refused({**arrays, "times": arrays["times"][::-1]})
    path.write_bytes(whole)
    fo.compare_over_time(trace, cluster, ["backfill"], reference="drfh", resume=tmp_path)


def test_side_by_side(tmp_path: Path) -> None:
    """The scheduler that was being simulated goes on, and its state is gone once it has finished."""
    trace, cluster = some(1)
    schedulers = ["backfill", "drfh:best-fit"]
    part = fo.compare_over_time(trace, cluster, schedulers, reference="drfh", resume=tmp_path, stopped=after(60))
    assert not part.courses[-1].complete
    assert len(list(tmp_path.glob("*.state"))) == 1
    found = fo.compare_over_time(trace, cluster, schedulers, reference="drfh", resume=tmp_path)
    assert not list(tmp_path.glob("*.state"))
    for course, whole in zip(found.courses, fo.compare_over_time(trace, cluster, schedulers).courses, strict=True):
        for field in fields(courses.Course):
            assert same(getattr(course, field.name), getattr(whole, field.name)), field.name


def test_the_command_goes_on_after_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real signal; the results so far are printed, and the same command gives those of a simulation in one go."""
    trace, cluster = some(1)
    fo.save(cluster, tmp_path / "cluster.yaml")
    frame = trace.to_frame()
    frame.to_csv(tmp_path / "jobs.csv", index=False)
    goes, followed = events.JobRun.follow, 0

    def follow(run: events.JobRun, until: float, backfill: bool) -> float:
        nonlocal followed
        followed += 1
        if followed == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        if followed >= 5:
            time.sleep(0.02)  # until the main thread has heard it
        return goes(run, until, backfill)

    command = ["simulate", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml"), "--scheduler", "backfill", "--csv"]
    monkeypatch.setattr(events, "_BATCH", 1)
    monkeypatch.setattr(events.JobRun, "follow", follow)
    stopped = CliRunner().invoke(app, [*command, "--resume", str(tmp_path / "kept")])
    assert stopped.exit_code == 0, stopped.output
    assert "the same command continues from there" in stopped.output
    monkeypatch.setattr(events.JobRun, "follow", goes)
    again = CliRunner().invoke(app, [*command, "--resume", str(tmp_path / "kept")])
    assert again.stdout == CliRunner().invoke(app, command).stdout != stopped.stdout
