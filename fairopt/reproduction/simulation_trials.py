"""Figures over time: users who join one after another (Wang, Li and Liang 2014), a user who is away (Khamse-Ashari et al. 2017).

The settings are data, in `fairopt.papers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.generators import google_servers
from fairopt.instance import FloatArray, Instance
from fairopt.papers import read
from fairopt.reproduction.trials import Row, Run, Z, compared, sample
from fairopt.simulation.simulating import simulate
from fairopt.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairopt.simulation import Simulation

__all__ = ["drfh_figure_4_over_time", "psdsf_figure_6", "user_away"]


def drfh_figure_4_over_time(run: Run) -> Iterator[Row]:
    """Smallest mean dominant share under best-fit DRFH while one, two and three users are present; tasks end, and no task is stopped."""
    figure = read("drfh").more["figure-4-over-time"]
    outcomes = sample(partial(_shares_over_time, figure), "drfh-figure-4-over-time", figure["quick" if run.quick else "repetitions"], run)
    for number, (published, values) in enumerate(zip(figure["published"], outcomes.transpose(1, 0, 2), strict=True), start=1):
        least = values[:, :number].min(axis=1)  # a user may get resources that fit no other: the smallest is the level
        width = 0.5 + Z * float(least.std(ddof=1))  # interval of one draw, not of the mean: the paper has one draw
        low, high = figure["between"][number - 1]
        yield compared(
            id=f"drfh-figure-4-over-time-{number}",
            what=f"users 1 to {number}, {low}-{high} s, %" if number > 1 else f"user 1 alone, {low}-{high} s, %",
            citation="section VI, figure 4: global dominant share over time under best-fit DRFH",
            published=[published],
            ours=[float(least.mean())],
            tolerance=width,
            mean=True,
            holds=bool(abs(least.mean() - published) <= width),
            kind="greedy",
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
    """Utilization of the CPU of classes C and D while user 4 is present, away, and back.

    The schedulers are three notions, exact at every moment, and PS-DSF by servers that each act alone every second.
    """
    figure = read("psdsf").more["figure-6"]
    used: dict[str, FloatArray] = {}
    for entry in figure["notion"]:
        used[entry["name"]] = _at_moments(figure, user_away(entry["name"]))
        ours, published = used[entry["name"]][0, figure["classes"], 0], entry.get("published")
        known = entry.get("ours")
        yield compared(
            id=f"psdsf-figure-6-{entry['name']}",
            what=f"{entry['title']}: CPU of C, D, %",
            citation="section V, figure 6, while user 4 is there" + (", by table IV" if published else ": no numbers"),
            published=published,
            ours=ours.tolist(),
            tolerance=0.05,
            holds=None if published is None else bool(np.allclose(ours, published, atol=0.05)),
            as_known=known is not None and bool(np.allclose(ours, known, atol=0.005)),
            kind="exact",
        )
    run.draw("psdsf-figure-6", _figure)
    yield from _claims(figure, used)
    yield from _servers(figure)


def user_away(scheduler: str) -> Simulation:
    """Simulate figure 6 of the PS-DSF paper under a scheduler: user 4 leaves and comes back.

    >>> user_away("psdsf:period=1:phases=sweep").settling["distance_0.001"].tolist()  # periods: start, user 4 leaves, user 4 is back
    [2.0, 1.0, 2.0]
    """
    paper = read("psdsf")
    figure = paper.more["figure-6"]
    cluster = paper.instances[figure["instance"]]
    users = cluster.users
    away, back = figure["away"]
    trace = Trace(
        users,
        np.zeros(len(users)),
        np.full(len(users), figure["tasks"]),
        cluster.demands,
        np.full(len(users), np.inf),
        events=[(away, "leave", users[figure["user"] - 1]), (back, "join", users[figure["user"] - 1])],
        resources=cluster.resources,
    )
    return simulate(trace, cluster, scheduler, until=figure["until"])


def _at_moments(figure: dict[str, Any], simulation: Simulation) -> FloatArray:
    """Return the utilization of each class of servers at the three moments, in per cent, (moments, classes, resources)."""
    series = simulation.series
    parts = series.row_utilization
    assert parts is not None
    used: FloatArray = 100 * parts[np.searchsorted(series.times, figure["moments"], side="right") - 1]
    return used


def _servers(figure: dict[str, Any]) -> Iterator[Row]:
    """Utilization at which servers that act every second settle, and the number of periods until then, for each order of actions."""
    setting = figure["asynchronous"]
    for entry in setting["phases"]:
        found = user_away(f"psdsf:period={setting['period']}:phases={entry['name']}")
        assert found.settling is not None
        title, reason = f"{setting['title']}, {entry['title']}", entry.get("differs", "")
        ours = _at_moments(figure, found)[0, figure["classes"], 0]
        periods = found.settling[f"distance_{setting['tolerance']:g}"].dropna().to_numpy()
        yield compared(
            id=f"psdsf-figure-6-{entry['name']}",
            what=f"{title}: CPU of C, D, %",
            citation="section V, figure 6: servers that act every second, while user 4 is there",
            published=setting["published"],
            ours=ours.tolist(),
            tolerance=0.05,
            holds=bool(np.allclose(ours, setting["published"], atol=0.05)),
            as_known=bool(reason) and not periods.size,
            differs=reason,
            kind="decentralised",
        )
        if "ours" in entry:
            known = periods.shape == np.shape(entry["ours"]) and bool(np.allclose(periods, entry["ours"], atol=5e-5))
            yield compared(
                id=f"psdsf-figure-6-{entry['name']}-periods",
                what=f"{title}: periods to settle",
                citation='section V: "promptly converges when changes occur", at the start, as user 4 leaves and as it is back: no numbers',
                published=None,
                ours=periods.tolist(),
                tolerance=5e-5,
                holds=None,
                as_known=known,
                kind="decentralised",
            )


def _figure() -> Figure:
    """Draw figure 6 of the PS-DSF paper: the CPU of classes C and D over time, with the statements of the paper as caption.

    >>> [axes.get_title(loc="left") for axes in _figure().axes]
    ['CPU of class C (33 servers)', 'CPU of class D (11 servers)']
    """
    from fairopt.plots import plot_row_utilization

    figure = read("psdsf").more["figure-6"]
    setting = figure["asynchronous"]
    found = {f"{entry['title']}, exact": user_away(entry["name"]) for entry in figure["notion"]}
    found |= {
        f"PS-DSF, {setting['title']}, {entry['title']}": user_away(f"psdsf:period={setting['period']}:phases={entry['name']}")
        for entry in setting["phases"]
        if "differs" not in entry
    }
    return plot_row_utilization(found, figure["classes"], 0, titles=figure["titles"], caption=figure["says"])


def _claims(figure: dict[str, Any], used: dict[str, FloatArray]) -> Iterator[Row]:
    """Statements of the text about the figure, at three moments: PS-DSF uses no less of C and D; all other resources are full under each.

    D is compared while user 4 is present. While user 4 is away, users 1 and 2 have tasks on A, B and D. The servers of these tasks are not
    unique in an exact allocation of TSF or C-DRFH, and the CPU of D may be anything from 75 % (as under PS-DSF) to 100 %.
    """
    first, *others = (used[entry["name"]] for entry in figure["notion"])
    classes = figure["classes"]
    counted = np.ones((len(first), len(classes)), bool)
    counted[1, 1] = False
    rest = np.setdiff1d(np.arange(first.shape[1]), classes)
    gain = float(min((first - other)[:, classes, 0][counted].min() for other in others))
    memory = float(min(parts[:, :, 1].min() for parts in used.values()))
    cpu = float(min(parts[0, rest, 0].min() for parts in used.values()))
    for id, what, ours, least, reason in (
        ("gain", "PS-DSF over the others: points, >= 0 (D: while user 4 is there)", round(gain, 9), 0.0, ""),
        ("memory", "least use of memory, %", memory, 100.0, ""),
        ("cpu", "least use of CPU of A, B, %", cpu, 100.0, figure["differs"]),
    ):
        yield compared(
            id=f"psdsf-figure-6-{id}",
            what=what,
            citation="section V: what the text says of figure 6",
            published=[least],
            ours=[ours],
            tolerance=1e-6,
            holds=ours >= least - 1e-6,
            as_known=bool(reason) and ours <= figure["bound"],
            differs=reason,
            kind="exact",
        )
