"""A day of a Google trace on 2,000 servers: table II and figures 5 to 8 of Wang, Li and Liang (2014).

The trace is the public trace if its folder is given, and a synthetic trace (`fairopt.generators.traces`) otherwise. It is simulated once
under each scheduler, and once on *dedicated clouds*: each user gets an equal number of servers of its own and may run only there. Some
tasks have no end in the public trace. They hold their resources to the end of the day and are counted neither as completed nor as tasks.

The settings, the published numbers and the known results of fairopt are data, in ``fairopt/papers/drfh.toml``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.clusters.google2011 import trace_google2011
from fairopt.errors import InvalidInstance
from fairopt.generators import google_servers
from fairopt.generators.traces import generate_trace
from fairopt.instance import FloatArray, Instance
from fairopt.papers import read
from fairopt.plots import plot_completion_ratios, plot_completion_times, plot_utilization_over_time
from fairopt.reproduction.trials import Row, Run, compared
from fairopt.simulation import Simulation
from fairopt.simulation.completion import completion_ratios, reduction_by_size
from fairopt.simulation.simulating import simulate
from fairopt.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Day", "dedicated_clouds", "drfh_trace", "every_tenth_user", "number_of_simulations"]

BEST_FIT, FIRST_FIT, DEDICATED = "best-fit", "first-fit", "dedicated clouds"
_NAME = "drfh-trace"


@dataclass(frozen=True, slots=True)
class Day:
    """The simulations of a trace by scheduler: "best-fit", "first-fit", "14 slots", ..., "dedicated clouds"."""

    trace: Trace
    until: float
    found: dict[str, Simulation]

    def utilization(self, name: str) -> FloatArray:
        """Return the mean utilization of CPU and memory, in per cent."""
        means = self.found[name].mean_utilization
        return 100 * np.array([means["cpu"], means["memory"]])

    def ratios(self, name: str) -> FloatArray:
        """Return the fraction of each user's tasks that ended, (users,); nan: no task can end."""
        return completion_ratios(self.trace, self.found[name].ended, self.until)


def number_of_simulations(quick: bool) -> int:
    """Return the number of simulations: best-fit, first-fit, each number of slots, dedicated clouds."""
    return 3 + len(read("drfh").more["day"]["slots"])


def drfh_trace(run: Run) -> Iterator[Row]:
    """Compare the statements of the paper about its day with the simulations, and draw figures 5 to 8."""
    settings = read("drfh").more["day"]
    trace = _trace(settings, run)
    day = _simulated(trace, settings, run)
    best = f"{settings['best']} slots"
    kind = ("synthetic" if run.data is None else "public") + ("-quick" if run.quick else "")
    captions = {number: f"{settings[f'caption-{number}']} {settings['caption'][kind]}" for number in (5, 6, 7, 8)}
    run.draw("drfh-figure-5", lambda: _figure_5(day, best, captions[5]))
    run.draw("drfh-figure-6", lambda: _figure_6(day, best, settings["sizes"], captions[6]))
    run.draw("drfh-figure-7", lambda: _ratios(day, {best: best, BEST_FIT: BEST_FIT}, captions[7]))
    run.draw("drfh-figure-8", lambda: _ratios(day, {"dedicated clouds": DEDICATED, "best-fit, shared": BEST_FIT}, captions[8]))
    compare = _Comparison(settings, kind)
    yield from _table_2(day, settings, compare)
    yield from _figure_5_rows(day, best, compare)
    yield from _figure_6_rows(day, best, settings, compare)
    yield from _figure_7_rows(day, best, settings, compare)
    yield from _figure_8_rows(day, settings, compare)


# The day -------------------------------------------------------------------------------------------------------------------------


def _trace(settings: dict[str, Any], run: Run) -> Trace:
    if run.data is None:
        trace = generate_trace(hours=settings["seconds"] / 3600, seed=settings["seed"])
    else:
        path = run.data / settings["file"]
        if not path.is_file():
            raise InvalidInstance(f"{run.data} has no {settings['file']}; give the folder that has it, or none for a synthetic trace")
        trace = trace_google2011(path)
    return every_tenth_user(trace) if run.quick else trace


def every_tenth_user(trace: Trace) -> Trace:
    """Return the jobs of every tenth user, from the third on, with users sorted by descending number of tasks."""
    tasks = np.bincount(trace.user, weights=trace.tasks)
    chosen = np.isin(trace.user, np.argsort(-tasks, kind="stable")[2::10])
    return Trace(
        [trace.users[n] for n in trace.user[chosen]],
        trace.submit[chosen],
        trace.tasks[chosen],
        trace.demands[chosen],
        trace.durations[chosen],
        jobs=[trace.jobs[j] for j in np.flatnonzero(chosen)],
        resources=trace.resources,
    )


def dedicated_clouds(servers: FloatArray, trace: Trace, rng: np.random.Generator) -> Instance:
    """Return a cluster whose servers are dealt at random, in turn, to the users of a trace; a user may run only on its own servers."""
    owner = np.empty(len(servers), np.int64)
    owner[rng.permutation(len(servers))] = np.arange(len(servers)) % len(trace.users)
    own = owner == np.arange(len(trace.users))[:, None]
    return Instance(servers, np.ones((len(trace.users), 2)), eligibility=own, users=trace.users, resources=["cpu", "memory"])


def _simulated(trace: Trace, settings: dict[str, Any], run: Run) -> Day:
    from joblib import Parallel, delayed

    rng = np.random.default_rng(zlib.crc32(_NAME.encode()))
    servers = google_servers(settings["servers"] // (10 if run.quick else 1), rng)
    shared = Instance(servers, np.ones((len(trace.users), 2)), users=trace.users, resources=["cpu", "memory"])
    plans = {BEST_FIT: (shared, "drfh:best-fit"), FIRST_FIT: (shared, "drfh:first-fit")}
    plans |= {f"{number} slots": (shared, f"drfh:slots:slots={number}") for number in settings["slots"]}
    plans |= {DEDICATED: (dedicated_clouds(servers, trace, rng), "drfh:best-fit")}
    until = float(settings["seconds"])

    def one(cluster: Instance, scheduler: str) -> Simulation:
        found = simulate(trace, cluster, scheduler, until=until, step=float(settings["step"]))
        run.done(1)
        return found

    found = Parallel(n_jobs=run.workers, prefer="threads")(delayed(one)(*plan) for plan in plans.values())
    return Day(trace, until, dict(zip(plans, found, strict=True)))


# Rows ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Rows for one kind of trace: published numbers, known results of fairopt, and the reason of the difference."""

    settings: dict[str, Any]
    kind: str

    def row(self, id: str, what: str, citation: str, ours: Any, published: list[Any] | None = None, holds: bool | None = None) -> Row:
        """Return a row. ``holds`` is whether the statement of the paper is true; default: whether the numbers equal the printed ones."""
        values = [round(float(value), 1) for value in np.atleast_1d(ours)]
        if published is not None and holds is None:
            holds = bool(np.allclose(np.atleast_1d(ours), published, rtol=0, atol=0.05))
        known = self.settings["ours"][self.kind].get(id, [])
        as_known = len(known) == len(values) and bool(np.allclose(values, known, rtol=0, atol=self.settings["tolerance"]))
        return compared(
            id=f"{_NAME}-{id}",
            what=what,
            citation=citation,
            published=published,
            ours=values,
            tolerance=0.05,
            holds=holds,
            as_known=as_known,
            differs=self.settings["differs"][self.kind.partition("-")[0]],
            kind="greedy",
        )


def _table_2(day: Day, settings: dict[str, Any], compare: _Comparison) -> Iterator[Row]:
    used = {number: day.utilization(f"{number} slots") for number in settings["slots"]}
    for (number, ours), published in zip(used.items(), settings["table-2"], strict=True):
        yield compare.row(f"slots-{number}", f"{number} slots: CPU, memory, %", "section VI, table II", ours, published)
    best = max(used, key=lambda number: used[number].mean())
    yield compare.row(
        "best-slots",
        "number of slots with the highest utilization",
        "section VI: 14 slots",
        best,
        [settings["best"]],
        best == settings["best"],
    )


def _figure_5_rows(day: Day, best: str, compare: _Comparison) -> Iterator[Row]:
    place = "section VI, figure 5"
    for name in (BEST_FIT, FIRST_FIT):
        yield compare.row(name, f"{name}: CPU, memory, %", f"{place}: the paper prints no numbers", day.utilization(name))
    gain = day.utilization(FIRST_FIT) - day.utilization(best)
    yield compare.row(
        "over-slots", f"first-fit over {best}: points, > 0", f"{place}: significantly higher", gain, holds=bool((gain > 0).all())
    )
    first, second = (day.found[name].series.utilization for name in (BEST_FIT, FIRST_FIT))
    gain = 100 * (first - second).mean(axis=0)
    yield compare.row("over-first-fit", "best-fit over first-fit: points, > 0", f"{place}: higher", gain, holds=bool((gain > 0).all()))
    always = 100 * (first >= second - 1e-9).mean(axis=0)
    yield compare.row("always", "best-fit no less than first-fit: CPU, memory, % of the time", f"{place}: at all times", always, [100, 100])


def _figure_6_rows(day: Day, best: str, settings: dict[str, Any], compare: _Comparison) -> Iterator[Row]:
    place = "section VI, figure 6"
    reduction, _ = reduction_by_size(day.found[best].completion, day.found[BEST_FIT].completion, day.trace.tasks, settings["sizes"])
    by_size = 100 * reduction
    there = by_size[np.isfinite(by_size)]
    yield compare.row("reduction", "completion time saved, from small jobs to large, %", f"{place}: the text prints no numbers", there)
    small = float(by_size[0])
    yield compare.row("small", f"up to {settings['sizes'][0]} tasks: % saved", f"{place}: no improvement for small jobs", small, [0])
    saves = 100 * float((there[1:] > 0).mean())
    yield compare.row("large", "classes of more tasks that save some, %", f"{place}: significant for more tasks", saves, [100])
    rises = 100 * float((np.diff(there) > 0).mean())
    yield compare.row("larger", "classes that save more than the one before, %", f"{place}: larger, in general more", rises, [100])


def _figure_7_rows(day: Day, best: str, settings: dict[str, Any], compare: _Comparison) -> Iterator[Row]:
    place = "section VI, figure 7"
    slots, fit = day.ratios(best), day.ratios(BEST_FIT)
    known = np.isfinite(slots) & np.isfinite(fit)
    no_less = 100 * float((fit[known] >= slots[known]).mean())
    yield compare.row(
        "no-less",
        f"users with no smaller ratio, % (>= {settings['almost']})",
        f"{place}: higher for almost all users",
        no_less,
        holds=no_less >= settings["almost"],
    )
    behind = known & (slots < 1)  # all tasks of the other users are completed
    if behind.any():
        higher = 100 * float((fit[behind] > slots[behind]).mean())
        yield compare.row(
            "higher",
            f"of those whom slots leave with tasks, users with a larger ratio, % (>= {settings['almost']})",
            f"{place}: higher for almost all users",
            higher,
            holds=higher >= settings["almost"],
        )
    only = 100 * float(((fit[known] == 1) & (slots[known] < 1)).mean())
    yield compare.row(
        "all-tasks",
        f"users with all tasks done only by best-fit, % (20 within {settings['around']})",
        f"{place}: around 20 %",
        only,
        [20],
        abs(only - 20) <= settings["around"],
    )


def _figure_8_rows(day: Day, settings: dict[str, Any], compare: _Comparison) -> Iterator[Row]:
    place = "section VI, figure 8"
    alone, shared = day.ratios(DEDICATED), day.ratios(BEST_FIT)
    known = np.isfinite(alone) & np.isfinite(shared)
    lost = 100 * (alone[known] - shared[known])
    fewer = 100 * float((lost > 0).mean())
    yield compare.row(
        "fewer", "users with fewer tasks done in the shared cloud, %", f"{place}: only 2 %", fewer, [2], abs(fewer - 2) <= 0.5
    )
    most = float(lost.max(initial=0.0))
    yield compare.row("most-lost", "most that one of them loses, points", f"{place}: only slightly", most)


# Pictures ------------------------------------------------------------------------------------------------------------------------


def _figure_5(day: Day, best: str, caption: str) -> Figure:
    return plot_utilization_over_time({name: day.found[name] for name in (BEST_FIT, FIRST_FIT, best)}, caption)


def _figure_6(day: Day, best: str, sizes: list[int], caption: str) -> Figure:
    return plot_completion_times({name: day.found[name].completion for name in (best, BEST_FIT)}, day.trace.tasks, sizes, caption)


def _ratios(day: Day, schedulers: dict[str, str], caption: str) -> Figure:
    tasks = np.bincount(day.trace.user, weights=day.trace.tasks)
    return plot_completion_ratios({name: day.ratios(scheduler) for name, scheduler in schedulers.items()}, tasks, caption)
