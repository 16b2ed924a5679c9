"""Trials of schedules: random servers (Kesidis et al. 2018); placements on servers of a Google cluster (Wang, Li and Liang 2014).

Their settings are data, in `fairopt.papers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fairopt.generators import google, google_servers
from fairopt.instance import FloatArray, Instance
from fairopt.papers import read
from fairopt.reproduction.trials import Row, Run, Z, compared, deviation_interval, interval, sample
from fairopt.scheduling import schedule
from fairopt.solving import solve

__all__ = ["drfh_figure_4", "drfh_placements", "kesidis_tables", "number_of_trials"]


def number_of_trials(paper: str, table: str) -> Callable[[bool], int]:
    """Return a function that maps ``quick`` to the number of trials of all settings in a table of a paper."""
    settings = read(paper).more[table]
    return lambda quick: len(settings.get("setting", [settings])) * int(settings["quick" if quick else "repetitions"])


# Kesidis et al. ------------------------------------------------------------------------------------------------------------------


def kesidis_tables(run: Run) -> Iterator[Row]:
    """Means and deviations of tasks (tables II and III) and of free resources (tables IV and V) under random servers."""
    trials = read("kesidis").more["trials"]
    repetitions = trials["quick" if run.quick else "repetitions"]
    for setting in trials["setting"]:
        outcomes = sample(partial(_random_servers, setting), setting["id"], repetitions, run)
        for quantity, tables, values in (("placed", ("II", "III"), outcomes[:, :4]), ("unused", ("IV", "V"), outcomes[:, 4:])):
            if quantity in setting:
                yield from _mean_and_deviation(setting, quantity, tables, values, trials["repetitions"])


def _random_servers(setting: dict[str, Any], rng: np.random.Generator) -> FloatArray:
    instance = read("kesidis").instances["kesidis"]
    seed = int(rng.integers(2**62))
    allocation = schedule(instance, setting["criterion"], placement=setting["placement"], ties="random", seed=seed)
    return np.concatenate([allocation.tasks.ravel(), (instance.row_capacity - allocation.usage).ravel()])


def _mean_and_deviation(setting: dict[str, Any], quantity: str, tables: tuple[str, str], values: FloatArray, trials: int) -> Iterator[Row]:
    published, known = setting[quantity], setting.get("ours", {}).get(quantity, {})
    found = {"mean": values.mean(axis=0), "deviation": values.std(axis=0, ddof=1)}
    # The pooled variance of two means uses the printed deviation, or the deviation of our trials if it is larger.
    widths = {
        "mean": [interval(x, max(s, float(x.std(ddof=1))), trials) for x, s in zip(values.T, published["deviation"], strict=True)],
        "deviation": [deviation_interval(x, trials) for x in values.T],
    }
    for table, (which, ours) in zip(tables, found.items(), strict=True):
        width = np.array(widths[which]) + 0.005 + 1e-9  # half a unit of the last digit printed
        as_known = which in known and bool((np.abs(ours - known[which]) <= width).all())
        yield compared(
            id=f"{setting['id']}-{quantity}-{which}",
            what=f"table {table}, {setting['what']}",
            citation=f"table {table}: {which} over {trials} trials",
            published=published[which],
            ours=ours.tolist(),
            tolerance=float(width.max()),
            mean=True,
            holds=bool((np.abs(ours - published[which]) <= width).all()),
            as_known=as_known,
            differs=setting.get("differs", ""),
            kind="greedy",
        )


# Wang, Li and Liang --------------------------------------------------------------------------------------------------------------


def drfh_figure_4(run: Run) -> Iterator[Row]:
    """Smallest dominant share under best-fit as users join one after another."""
    figure = read("drfh").more["figure-4"]
    outcomes = sample(partial(_one_after_another, figure), "drfh-figure-4", figure["quick" if run.quick else "repetitions"], run)
    for number, (published, values) in enumerate(zip(figure["published"], outcomes.T, strict=True), start=1):
        width = 0.5 + Z * float(values.std(ddof=1))  # interval of one draw, not of the mean: the paper has one draw
        yield compared(
            id=f"drfh-figure-4-{number}",
            what=f"users 1 to {number}, %" if number > 1 else "user 1 alone, %",
            citation="section VI, figure 4: dominant share under best-fit DRFH",
            published=[published],
            ours=[float(values.mean())],
            tolerance=width,
            mean=True,
            holds=bool(abs(values.mean() - published) <= width),
            kind="greedy",
        )


def _one_after_another(figure: dict[str, Any], rng: np.random.Generator) -> FloatArray:
    servers, demands = google_servers(figure["drawn"], rng), np.array(figure["demands"])
    come = (schedule(Instance(servers, demands[:n]), "drfh", placement="best-fit") for n in range(1, len(demands) + 1))
    return np.array([100 * allocation.shares.min() for allocation in come])


def drfh_placements(run: Run) -> Iterator[Row]:
    """Utilization and smallest share of best-fit, first-fit and slots, compared with the exact optimum of divisible tasks."""
    study = read("drfh").more["placements"]
    outcomes = sample(partial(_placements, study), "drfh-placements", study["quick" if run.quick else "repetitions"], run, batch_size=1)
    outcomes[:, :, 2] *= 100 / outcomes[:, :1, 2]
    trials = study["repetitions"]
    for scheduler, values in zip(study["scheduler"], outcomes.transpose(1, 0, 2), strict=True):
        name, known, published = scheduler["name"], scheduler["ours"], scheduler.get("published")
        reason, kind = study["differs"] if published else "", "greedy" if scheduler.get("options") else "exact"
        yield _study_row(f"{name}: CPU, memory, %", values[:, :2], known[:2], published, reason, trials, kind)
        if scheduler.get("options"):
            yield _study_row(f"{name}: least share, %", values[:, 2:], known[2:], None, "", trials, kind)
    used = {s["name"]: outcomes[:, j, :2].mean(axis=1) for j, s in enumerate(study["scheduler"])}
    finest = max((name for name in used if name.startswith("slots")), key=lambda name: used[name].mean())
    for better, worse in (("best-fit", "first-fit"), ("first-fit", finest)):
        gain = used[better] - used[worse]
        width = Z * float(gain.std(ddof=1) / np.sqrt(gain.size))
        yield compared(
            id=f"drfh-placements-{better}-over-{worse.replace(', ', '-')}",
            what=f"{better} over {worse}: points, > 0",
            citation="section VI, figure 5: higher at all times",
            published=None,
            ours=[float(gain.mean())],
            tolerance=width,
            mean=True,
            holds=float(gain.mean()) > width,  # the paper states only the order
            kind="greedy",
        )


def _study_row(
    what: str, values: FloatArray, known: list[float], published: list[float] | None, differs: str, trials: int, kind: str
) -> Row:
    """Compare means with stored results of fairopt. The published numbers are for other users and only printed."""
    deviation = values.std(axis=0, ddof=1)
    width = np.array([interval(x, s, trials) for x, s in zip(values.T, deviation, strict=True)]) + 0.005
    as_known = bool((np.abs(values.mean(axis=0) - known) <= width).all())
    return compared(
        id="drfh-placements-" + what.partition(", %")[0].replace(", ", "-").replace(": ", "-").replace(" ", "-").lower(),
        what=what,
        citation="section VI, table II" if published else "section VI: the paper prints no numbers",
        published=published,
        ours=values.mean(axis=0).tolist(),
        tolerance=float(width.max()),
        mean=True,
        holds=None if published is None else False,
        as_known=as_known,
        differs=differs,
        kind=kind,
    )


def _placements(study: dict[str, Any], rng: np.random.Generator) -> FloatArray:
    """Return CPU and memory in use, in per cent, and the smallest share of each scheduler; the exact optimum comes first."""
    instance = google(study["users"], study["drawn"], seed=rng)
    options = [scheduler.get("options") for scheduler in study["scheduler"]]
    allocations = [schedule(instance, "drfh", **chosen) if chosen else solve(instance, "drfh") for chosen in options]
    share = (instance.demands / instance.total_capacity).max(axis=1)  # shares of the cluster, not of slots
    return np.array(
        [(*(100 * a.usage.sum(axis=0) / instance.total_capacity), float((share * a.tasks_per_user).min())) for a in allocations]
    )
