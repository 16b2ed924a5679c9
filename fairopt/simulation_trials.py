"""Figures over time: users who come one after another (Wang, Li and Liang 2014), a user who is away (Khamse-Ashari et al. 2017).

Their settings are data, in `fairopt.papers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from fairopt.generators import google_servers
from fairopt.instance import FloatArray, Instance
from fairopt.papers import read
from fairopt.simulate import simulate
from fairopt.trace import Trace
from fairopt.trials import Row, Run, Z, note_of, sample, verdict_of

__all__ = ["drfh_figure_4_over_time", "psdsf_figure_6"]


def drfh_figure_4_over_time(run: Run) -> Iterator[Row]:
    """Smallest mean dominant share under best-fit DRFH while one, two and three users are there; tasks end, and none is taken back."""
    figure = read("drfh").more["figure-4-over-time"]
    outcomes = sample(partial(_shares_over_time, figure), "drfh-figure-4-over-time", figure["quick" if run.quick else "repetitions"], run)
    for number, (published, values) in enumerate(zip(figure["published"], outcomes.transpose(1, 0, 2), strict=True), start=1):
        least = values[:, :number].min(axis=1)  # what is left when the others are blocked goes to somebody: the least is the level
        width = 0.5 + Z * float(least.std(ddof=1))  # of a draw, not of the mean: the paper has one
        verdict = verdict_of(bool(abs(least.mean() - published) <= width), False)
        low, high = figure["between"][number - 1]
        yield Row(
            id=f"drfh-figure-4-over-time-{number}",
            what=f"users 1 to {number}, {low}-{high} s, %" if number > 1 else f"user 1 alone, {low}-{high} s, %",
            citation="section VI, figure 4: global dominant share over time under best-fit DRFH",
            published=[published],
            ours=[float(least.mean())],
            tolerance=width,
            mean=True,
            verdict=verdict,
            note=note_of(verdict, ""),
        )


def _shares_over_time(figure: dict[str, Any], rng: np.random.Generator) -> FloatArray:
    """Return the mean share of each user in per cent, (periods, users)."""
    servers, demands = google_servers(figure["drawn"], rng), np.array(figure["demands"])
    users = [f"user {n + 1}" for n in range(len(demands))]
    cluster = Instance(servers, demands, users=users)
    tasks = np.full(len(users), figure["tasks"])
    low, high = figure["duration"]
    durations = rng.uniform(low, high, int(tasks.sum()))
    trace = Trace(users, figure["join"], tasks, demands, durations, resources=cluster.resources)
    found = simulate(trace, cluster, "drfh:best-fit", until=figure["between"][-1][1], step=1.0).series
    periods = [(found.times >= low) & (found.times < high) for low, high in figure["between"]]
    return np.array([100 * found.dominant_shares[period].mean(axis=0) for period in periods])


def psdsf_figure_6(run: Run) -> Iterator[Row]:
    """Utilization of the CPU of classes C and D while user 4 is there, away, and back, under three notions, exact at every moment."""
    paper = read("psdsf")
    figure = paper.more["figure-6"]
    cluster = paper.instances[figure["instance"]]
    everybody = np.full(cluster.n_users, np.inf)
    away, back = figure["away"]
    users = cluster.users
    trace = Trace(
        users,
        np.zeros(len(users)),
        np.full(len(users), figure["tasks"]),
        cluster.demands,
        everybody,
        events=[(away, "leave", users[figure["user"] - 1]), (back, "join", users[figure["user"] - 1])],
        resources=cluster.resources,
    )
    used: dict[str, FloatArray] = {}
    for entry in figure["notion"]:
        series = simulate(trace, cluster, entry["name"], until=figure["until"]).series
        parts = series.row_utilization
        assert parts is not None
        at = np.searchsorted(series.times, figure["moments"], side="right") - 1
        used[entry["name"]] = 100 * parts[at]
        ours, published = used[entry["name"]][0, figure["classes"], 0], entry.get("published")
        known = entry.get("ours")
        verdict = verdict_of(
            None if published is None else bool(np.allclose(ours, published, atol=0.05)),
            known is not None and bool(np.allclose(ours, known, atol=0.005)),
        )
        yield Row(
            id=f"psdsf-figure-6-{entry['name']}",
            what=f"{entry['title']}: CPU of C, D, %",
            citation="section V, figure 6, while user 4 is there" + (", by table IV" if published else ": no numbers"),
            published=published,
            ours=ours.tolist(),
            tolerance=0.05,
            mean=False,
            verdict=verdict,
            note=note_of(verdict, ""),
        )
    yield from _claims(figure, used)


def _claims(figure: dict[str, Any], used: dict[str, FloatArray]) -> Iterator[Row]:
    """What the text says of the figure, at each of the three moments: PS-DSF uses no less of C and D; all else is full under each."""
    first, *others = (used[entry["name"]] for entry in figure["notion"])
    classes = figure["classes"]
    rest = np.setdiff1d(np.arange(first.shape[1]), classes)
    gain = float(min((first - other)[:, classes, 0].min() for other in others))
    memory = float(min(parts[:, :, 1].min() for parts in used.values()))
    cpu = float(min(parts[0, rest, 0].min() for parts in used.values()))
    for id, what, ours, least, reason in (
        ("gain", "PS-DSF over the others: points, >= 0", gain, 0.0, ""),
        ("memory", "least use of memory, %", memory, 100.0, ""),
        ("cpu", "least use of CPU of A, B, %", cpu, 100.0, figure["differs"]),
    ):
        verdict = verdict_of(ours >= least - 1e-6, bool(reason) and ours <= figure["bound"])
        yield Row(
            id=f"psdsf-figure-6-{id}",
            what=what,
            citation="section V: what the text says of figure 6",
            published=[least],
            ours=[ours],
            tolerance=1e-6,
            mean=False,
            verdict=verdict,
            note=note_of(verdict, reason),
        )
