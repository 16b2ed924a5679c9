"""A day of a trace: slots over time, dedicated clouds, completion ratios and times, against a few lines of plain Python; and the rows."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from reference.simulation import Reference, in_slots
from strategies import instances, traces
from support.real_data import DATA, needs
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.generators import google_servers
from fairopt.papers import read
from fairopt.plots import plot_completion_ratios, plot_completion_times, plot_utilization_over_time
from fairopt.plots.style import percent_labels
from fairopt.reproduction import trace_trials
from fairopt.reproduction.reproducing import reproduce
from fairopt.reproduction.trace_trials import dedicated_clouds, every_tenth_user
from fairopt.reproduction.trials import Row, Run, Verdict
from fairopt.simulation.completion import completion_ratios, reduction_by_size, tasks_that_can_end

FIGURES = [f"drfh-figure-{number}" for number in (5, 6, 7, 8)]
SMALL = fo.generate_trace(jobs=150, users=12, hours=2.0, seed=3)


# Slots over time -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3), slots=st.integers(1, 6))
def test_slots_are_first_fit_of_one_resource(data: st.DataObject, instance: fo.Instance, slots: int) -> None:
    """Each task starts when and where it does on servers that are cut by hand; streams that need as many slots are one."""
    cluster = instance.replace(tasks=None)
    if (cluster.capacities.max(axis=0) == 0).any():
        return
    trace = data.draw(traces(cluster))
    cut, servers = in_slots(trace, cluster, slots)
    if not servers.capacities.any():
        return
    expected = Reference(cut, servers, "drfh", "first-fit").simulate()
    found = fo.simulate(trace, cluster, f"drfh:slots:slots={slots}")
    assert found.task_start is not None
    assert found.task_server is not None
    actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in np.flatnonzero(np.isfinite(found.task_start))}
    assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}


def test_slots_of_a_queue_that_is_long() -> None:
    """Many demands that need as many slots, of few users, on servers that are never empty."""
    rng = np.random.default_rng(2)
    cluster = fo.Instance(np.array([[8, 8], [4, 8], [6, 2]]) / 8, np.full((3, 2), 0.1), counts=[2, 3, 2])
    user, tasks = rng.integers(0, 3, 60), rng.integers(1, 9, 60)
    demands = rng.integers(1, 40, (60, 2)) / 64
    trace = fo.Trace([cluster.users[n] for n in user], np.sort(rng.integers(0, 40, 60)), tasks, demands, rng.integers(3, 30, 60))
    assert len(np.unique(np.column_stack([user, demands]), axis=0)) > 55
    expected = Reference(*in_slots(trace, cluster, 8), "drfh", "first-fit").simulate()
    found = fo.simulate(trace, cluster, "drfh:slots:slots=8")
    assert found.task_start is not None
    assert (found.task_start > trace.submit[trace.job_of]).sum() > 100
    started = {int(t): float(found.task_start[t]) for t in np.flatnonzero(np.isfinite(found.task_start))}
    assert started == {task: float(when) for task, (when, _) in expected.items()}


# Dedicated clouds ----------------------------------------------------------------------------------------------------------------


def test_servers_are_dealt_out() -> None:
    """Every server to one user, as many to each, up to one; in a simulation nobody leaves its own."""
    servers = google_servers(40, np.random.default_rng(1))
    clouds = dedicated_clouds(servers, SMALL, np.random.default_rng(2))
    assert (clouds.eligibility.sum(axis=0) == 1).all()
    assert np.ptp(clouds.eligibility.sum(axis=1)) <= 1
    found = fo.simulate(SMALL, clouds, "drfh:best-fit", until=7200.0)
    assert found.task_server is not None
    runs = found.task_server >= 0
    assert runs.sum() > 100
    assert clouds.eligibility[SMALL.user[SMALL.job_of[runs]], found.task_server[runs]].all()


def test_dedicated_clouds_are_a_simulation_for_each_user() -> None:
    """One simulation with placement constraints is that of each user alone on its servers."""
    servers = google_servers(40, np.random.default_rng(1))
    clouds = dedicated_clouds(servers, SMALL, np.random.default_rng(2))
    together = fo.simulate(SMALL, clouds, "drfh:first-fit", until=7200.0).ended
    for n, name in enumerate(SMALL.users):
        own = SMALL.user == n
        trace = fo.Trace([name] * int(own.sum()), SMALL.submit[own], SMALL.tasks[own], SMALL.demands[own], SMALL.durations[own],
                         resources=SMALL.resources)  # fmt: skip
        alone = fo.Instance(servers[clouds.eligibility[n]], [[1.0, 1.0]], users=[name], resources=SMALL.resources)
        np.testing.assert_array_equal(fo.simulate(trace, alone, "drfh:first-fit", until=7200.0).ended, together[own])


def test_every_tenth_user_by_tasks() -> None:
    """The third, the thirteenth, ... of the users by the number of their tasks, with all of their jobs."""
    trace = fo.generate_trace(jobs=900, users=60, seed=4)
    tasks = dict.fromkeys(trace.users, 0)
    for job, n in enumerate(trace.user):
        tasks[trace.users[n]] += int(trace.tasks[job])
    ranked = sorted(trace.users, key=lambda name: -tasks[name])
    part = every_tenth_user(trace)
    assert sorted(tasks[name] for name in part.users) == sorted(tasks[name] for name in ranked[2::10])
    assert part.n_tasks == sum(tasks[name] for name in part.users)
    assert part.jobs == tuple(trace.jobs[j] for j, n in enumerate(trace.user) if trace.users[n] in part.users)


# Completion ----------------------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(data=st.data(), instance=instances(max_users=3, max_servers=3), until=st.integers(1, 30))
def test_ratios_are_counted(data: st.DataObject, instance: fo.Instance, until: int) -> None:
    """Tasks that ended over those that could have, task by task."""
    trace = data.draw(traces(instance.replace(tasks=None)))
    found = fo.simulate(trace, instance.replace(tasks=None), "drfh:first-fit", until=float(until))
    assert found.task_start is not None
    can = dict.fromkeys(trace.users, 0)
    did = dict(can)
    for task, job in enumerate(trace.job_of):
        name = trace.users[trace.user[job]]
        can[name] += trace.submit[job] + trace.task_durations[task] <= until
        did[name] += found.task_start[task] + trace.task_durations[task] <= until
    expected = [did[name] / can[name] if can[name] else math.nan for name in trace.users]
    np.testing.assert_allclose(completion_ratios(trace, found.ended, until), expected)
    assert tasks_that_can_end(trace, until).sum() == sum(can.values())


@given(
    st.lists(st.tuples(st.integers(1, 40), st.one_of(st.none(), st.integers(1, 99)), st.one_of(st.none(), st.integers(1, 99))), min_size=1),
    st.lists(st.integers(1, 39), min_size=1, max_size=4, unique=True),
)
def test_reductions_are_counted(jobs: list[tuple[int, int | None, int | None]], bounds: list[int]) -> None:
    """Class by class, the means of jobs that ended both times, in fractions."""
    bounds = sorted(bounds)
    before, after = ([float("nan" if job[k] is None else job[k]) for job in jobs] for k in (1, 2))  # type: ignore[arg-type]
    reduction, number = reduction_by_size(before, after, [tasks for tasks, _, _ in jobs], bounds)
    for k, (low, high) in enumerate(zip([0, *bounds], [*bounds, 10**9], strict=True)):
        own = [(was, now) for tasks, was, now in jobs if low < tasks <= high and was is not None and now is not None]
        assert number[k] == len(own)
        if own:
            assert reduction[k] == pytest.approx(float(1 - Fraction(sum(now for _, now in own), sum(was for was, _ in own))))
        else:
            assert math.isnan(reduction[k])


# Pictures ------------------------------------------------------------------------------------------------------------------------


def test_lines_are_the_utilization() -> None:
    """A line for each scheduler, on an axis for each resource."""
    cluster = fo.Instance(google_servers(10, np.random.default_rng(0)), [[1, 1]], users=["x"], resources=["cpu", "memory"])
    found = {name: fo.simulate(SMALL, cluster, f"drfh:{name}", until=7200.0) for name in ("best-fit", "slots")}
    figure = plot_utilization_over_time(found, "a caption")
    for r, axes in enumerate(figure.axes):
        for line, simulation in zip(axes.lines, found.values(), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), simulation.series.utilization[:, r])
    assert figure._supxlabel.get_text() == "a caption"  # type: ignore[attr-defined]


def test_bars_are_the_reductions() -> None:
    """And jobs that did not end twice are in neither half."""
    left, right = plot_completion_times({"a": [10, 30, 100, math.nan], "b": [10, 10, 40, 1]}, [1, 5, 60, 7], [4, 50]).axes
    assert [patch.get_height() for patch in right.patches] == pytest.approx([0, 2 / 3, 0.6])  # type: ignore[attr-defined]
    assert [len(line.get_xdata()) for line in left.lines] == [3, 3]  # type: ignore[arg-type]


def test_names_of_sizes_do_not_touch() -> None:
    """Those of the paper: five classes, "501 to 1,000" the longest."""
    figure = plot_completion_times({"a": [10, 30, 100], "b": [10, 10, 40]}, [1, 600, 5000], [50, 100, 500, 1000])
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[1].get_xticklabels()]
    assert all(left.x1 + 2 < right.x0 for left, right in itertools.pairwise(boxes))


def test_marks_in_per_cent() -> None:
    """With as many digits as they need, and a minus sign."""
    axis = Figure().subplots().yaxis
    percent_labels(axis)
    assert axis.get_major_formatter().format_ticks([-0.1, 0.0, 0.3, 0.025]) == ["\N{MINUS SIGN}10 %", "0", "30 %", "2.5 %"]


@pytest.mark.parametrize("ratios", [[0.5, 1.0, 0.2], [0.5, 0.5, math.nan], [math.nan] * 3])
def test_bubbles_are_users(ratios: list[float]) -> None:
    """One for each who has something to compare; drawn without a warning."""
    figure = plot_completion_ratios({"a": ratios, "b": [0.5, 0.9, 0.9]}, [1, 10, 1000])
    points = np.vstack([np.asarray(group.get_offsets()) for group in figure.axes[0].collections])
    expected = [(x, y) for x, y in zip(ratios, [0.5, 0.9, 0.9], strict=True) if x == x]
    assert sorted(map(tuple, points.tolist())) == sorted(expected)
    figure.draw_without_rendering()


# Rows ----------------------------------------------------------------------------------------------------------------------------


Simulated = Callable[[fo.Trace, dict[str, object], Run], trace_trials.Day]


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    """The simulation of a day, once for each trace and settings."""
    days: dict[tuple[int, str], trace_trials.Day] = {}
    simulate = trace_trials._simulated

    def once(trace: fo.Trace, settings: dict[str, object], run: Run) -> trace_trials.Day:
        key = (trace.n_tasks, repr(settings))
        if key not in days:
            days[key] = simulate(trace, settings, run)
        return days[key]

    return once


@pytest.fixture(scope="module")
def quick(simulated: Simulated) -> tuple[dict[str, Row], dict[str, Callable[[], Figure]]]:
    """The rows of the slice, and its pictures."""
    pictures: dict[str, Callable[[], Figure]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_trials, "_simulated", simulated)
        ((_, rows),) = reproduce(["drfh-trace"], quick=True, workers=2, draw=pictures.__setitem__)
    return {row.id.removeprefix("drfh-trace-"): row for row in rows}, pictures


def test_a_slice_of_the_day(quick: tuple[dict[str, Row], dict[str, Callable[[], Figure]]]) -> None:
    """What the paper says of the order of the schedulers holds; what differs is known, and the reason says that the trace is synthetic."""
    rows, pictures = quick
    assert not [row.id for row in rows.values() if row.verdict is Verdict.DIFFERS]
    for name in ("over-slots", "over-first-fit", "large", "no-less", "higher"):
        assert rows[name].verdict is Verdict.AGREES, name
    assert (np.array(rows["best-fit"].ours) > rows["first-fit"].ours).all()
    assert all("synthetic" in row.note for row in rows.values() if row.verdict is Verdict.KNOWN)
    assert list(pictures) == FIGURES
    for draw in pictures.values():
        draw().draw_without_rendering()
    json.dumps([row.ours for row in rows.values()], allow_nan=False)


def test_larger_jobs_save_more_only_where_each_class_does(quick: tuple[dict[str, Row], dict[str, Callable[[], Figure]]]) -> None:
    """Both statements about figure 6 b follow from what each class saves, not from a mean that hides a class that loses."""
    rows, _ = quick
    saved = rows["reduction"].ours
    rises = [later > earlier for earlier, later in itertools.pairwise(saved)]
    assert rows["larger"].ours == [round(100 * sum(rises) / len(rises), 1)]
    assert rows["large"].ours == [round(100 * sum(value > 0 for value in saved[1:]) / len(saved[1:]), 1)]
    assert (rows["larger"].verdict is Verdict.AGREES) == all(rises)


def test_the_table_is_that_of_the_paper(quick: tuple[dict[str, Row], dict[str, Callable[[], Figure]]]) -> None:
    """As printed: table II of Wang, Li and Liang."""
    rows, _ = quick
    printed = {10: (35.1, 23.4), 12: (42.2, 27.4), 14: (43.9, 28.0), 16: (45.4, 24.2), 20: (40.6, 20.0)}
    assert {number: tuple(rows[f"slots-{number}"].published or ()) for number in printed} == printed


def test_another_number_than_the_known_one_is_unexpected(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """If best-fit were first-fit, its row would differ, and so would that of their order."""

    def swapped(trace: fo.Trace, settings: dict[str, object], run: Run) -> trace_trials.Day:
        day = simulated(trace, settings, run)
        return trace_trials.Day(day.trace, day.until, day.found | {"best-fit": day.found["14 slots"]})

    monkeypatch.setattr(trace_trials, "_simulated", swapped)
    ((_, rows),) = reproduce(["drfh-trace"], quick=True, workers=2)
    verdicts = {row.id.removeprefix("drfh-trace-"): row.verdict for row in rows}
    assert verdicts["best-fit"] is verdicts["over-first-fit"] is verdicts["larger"] is Verdict.DIFFERS
    assert verdicts["over-slots"] is Verdict.AGREES


@needs("google2011")
def test_a_slice_of_the_public_trace() -> None:
    """The same statements; the slots with the highest utilization are neither the largest nor the smallest."""
    ((_, found),) = reproduce(["drfh-trace"], quick=True, workers=2, data=DATA)
    rows = {row.id.removeprefix("drfh-trace-"): row for row in found}
    assert not [row.id for row in found if row.verdict is Verdict.DIFFERS]
    for name in ("over-slots", "over-first-fit", "no-less", "higher"):
        assert rows[name].verdict is Verdict.AGREES, name
    for name in ("large", "larger"):  # the largest jobs end later than with slots
        assert rows["reduction"].ours[-1] < 0
        assert rows[name].verdict is Verdict.KNOWN, name
    assert 10 < rows["best-slots"].ours[0] < 20


def test_settings_name_every_kind_of_run() -> None:
    """Captions for the public trace and the synthetic one, whole and in part, and what is known of each."""
    settings_of = read("drfh").more["day"]
    kinds = {f"{kind}{part}" for kind in ("public", "synthetic") for part in ("", "-quick")}
    assert set(settings_of["ours"]) == set(settings_of["caption"]) == kinds
    assert set(settings_of["differs"]) == {"public", "synthetic"}


# The command ---------------------------------------------------------------------------------------------------------------------


def test_the_command_draws(simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture for each figure, in the folder that is given."""
    monkeypatch.setattr(trace_trials, "_simulated", simulated)
    result = CliRunner().invoke(app, ["reproduce", "drfh-trace", "--quick", "--plot", str(tmp_path)], env={"FAIROPT_DATA": ""})
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.png" for name in FIGURES]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "nowhere"], 'there is no folder "nowhere"; make it first'),
        (["--data", "nowhere"], "nowhere is no folder; give the one that has the public traces, or none for synthetic ones"),
        (["--data", "."], "has no google2011/google2011_task_groups_0-19.6h.csv.gz; give the folder that has it"),
    ],
)
def test_bad_folders_are_refused(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 2 and one message."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", "drfh-trace", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())
