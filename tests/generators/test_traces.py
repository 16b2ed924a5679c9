"""Synthetic traces: every distribution that the docstring promises, by statistics of a large draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

import fairopt as fo

JOBS, USERS, HOURS = 100_000, 400, 24.0
TRACE = fo.generate_trace(jobs=JOBS, users=USERS, hours=HOURS, diurnal=0.5, seed=11)
HERE = TRACE.submit == 0
NEVER = np.isinf(TRACE.durations)
RARE = 1e-3  # the draw is one, so a test passes or fails for ever


def test_the_same_from_the_same_seed() -> None:
    """And another from another."""
    one, same, other = (fo.generate_trace(jobs=300, users=20, seed=seed).to_frame() for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_most_jobs_are_one_task_and_most_tasks_are_of_the_largest() -> None:
    """The first 19.65 hours of the public trace: 75 % of the jobs; 83 % of the tasks are of the 2.5 % of jobs that have more than 150."""
    assert abs(float((TRACE.tasks[HERE] == 1).mean()) - 0.59) < 0.012
    assert abs(float((TRACE.tasks[~HERE] == 1).mean()) - 0.79) < 0.005
    large = np.sort(TRACE.tasks)[-JOBS // 40 :]
    assert 0.6 < large.sum() / TRACE.n_tasks < 0.95
    assert TRACE.tasks.max() == 10_000


@pytest.mark.parametrize(("here", "median", "deviation"), [(True, 5, 2.4), (False, 24, 2.0)])
def test_sizes_are_lognormal(here: bool, median: float, deviation: float) -> None:
    """Of jobs of several tasks: how many have more than x, which rounding up does not change."""
    sizes = TRACE.tasks[(here == HERE) & (TRACE.tasks > 1)]
    for x in (2, 5, 10, 30, 100, 300, 1000, 3000):
        part = norm.sf(np.log(x / median) / deviation)
        assert abs((sizes > x).mean() - part) < 4 * np.sqrt(part * (1 - part) / sizes.size)


def test_a_part_is_there_at_the_beginning() -> None:
    """22 % of the jobs, of which small ones tend to stay: 0.75 min(1, 8 / N)."""
    assert HERE.sum() == round(0.22 * JOBS)
    assert not NEVER[~HERE].any()
    for low, high in ((1, 8), (9, 40), (41, 400)):
        own = HERE & (TRACE.tasks >= low) & (TRACE.tasks <= high)
        expected = 0.75 * np.minimum(1, 8 / TRACE.tasks[own])
        assert abs(NEVER[own].sum() - expected.sum()) < 4 * np.sqrt((expected * (1 - expected)).sum())


def test_durations() -> None:
    """Lognormal about 125 N^0.2 s of those that come; uniform of those that are there and end."""
    normal = np.log(TRACE.durations[~HERE] / (125 * TRACE.tasks[~HERE] ** 0.2)) / 1.7
    assert kstest(normal, "norm").pvalue > RARE
    assert kstest(TRACE.durations[HERE & ~NEVER] / (3600 * HOURS), "uniform").pvalue > RARE


def test_arrivals_follow_the_hour() -> None:
    """Numbers by hour, against the integral of 1 + diurnal sin(2 pi t / 24 h)."""
    edges = np.arange(25.0)
    seen = np.histogram(TRACE.submit[~HERE] / 3600, edges)[0]
    integral = np.diff(edges) - 0.5 * 24 / (2 * np.pi) * np.diff(np.cos(2 * np.pi * edges / 24))
    assert chisquare(seen, integral / integral.sum() * seen.sum()).pvalue > RARE
    assert seen[:12].sum() > 1.5 * seen[12:].sum()


@pytest.mark.parametrize(("here", "users"), [(True, USERS), (False, round(0.27 * USERS))])
def test_users_are_as_zipf_says(here: bool, users: int) -> None:
    """The k-th of them has a part of the jobs in proportion to 1 / k."""
    seen = np.sort(np.bincount(TRACE.user[here == HERE]))[::-1]
    assert (seen > 0).sum() <= users
    part = 1 / np.arange(1, users + 1) / (1 / np.arange(1, users + 1)).sum()
    expected = part[:10] * (here == HERE).sum()
    assert (np.abs(seen[:10] - expected) < 4 * np.sqrt(expected) + 0.05 * expected).all()  # neighbours may have changed places


@pytest.mark.parametrize(
    ("here", "cpu", "memory"), [(True, (0.026, 1.3), (0.016, 1.3)), (False, (0.015, 1.0), (0.008, 1.6))], ids=["here", "comes"]
)
def test_demands_are_shapes_of_users(here: bool, cpu: tuple[float, float], memory: tuple[float, float]) -> None:
    """As many as promised; lognormal, correlated by 0.5, and cut."""
    own = here == HERE
    table = np.unique(np.column_stack([TRACE.user[own], TRACE.demands[own]]), axis=0)
    promised = (1 + np.bincount(TRACE.user[own]) // 5)[np.unique(TRACE.user[own])].sum()
    assert 0.9 * promised < len(table) <= promised  # of five jobs on average, some shapes have none
    assert TRACE.demands.min() >= 1e-4
    assert TRACE.demands.max() <= 0.5
    inside = (table[:, 1:] > 1e-4).all(axis=1) & (table[:, 1:] < 0.5).all(axis=1)
    assert inside.mean() > 0.95
    logs = np.log(table[:, 1:])
    for column, (median, deviation) in enumerate((cpu, memory)):
        assert abs(np.median(logs[:, column]) - np.log(median)) < 0.06
        spread = np.subtract(*np.quantile(logs[:, column], [0.75, 0.25])) / 1.349
        assert abs(spread - deviation) < 0.06
    assert abs(np.corrcoef(logs[inside].T)[0, 1] - 0.5) < 0.06


def test_the_load_is_that_of_the_public_trace() -> None:
    """On 2,000 servers with 1,060 CPU and 940 memory it asks for several times what there is; the public one for 5,570 and 4,770."""
    until = 3600 * 19.65
    for seed in range(3):
        trace = fo.generate_trace(seed=seed)
        held = trace.tasks * np.minimum(trace.durations, until - trace.submit)
        cpu, memory = held @ trace.demands / until
        assert 3_000 < cpu < 7_000
        assert 2_000 < memory < 6_000
        assert 450 < len(trace.users) <= 565
        assert 500_000 < trace.n_tasks < 800_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs is 0; give a whole number >= 1"),
        ({"users": 2.5}, "users is 2.5; give a whole number >= 1"),
        ({"users": True}, "users is True"),
        ({"hours": 0}, "hours is 0; give a number > 0"),
        ({"hours": float("inf")}, "hours is inf"),
        ({"diurnal": 1.2}, "diurnal is 1.2; give a number from 0 to 1"),
        ({"diurnal": "much"}, "diurnal is 'much'"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    """With what to give."""
    with pytest.raises(fo.Unsupported, match=message):
        fo.generate_trace(**options)


@pytest.mark.parametrize("options", [{"jobs": 1}, {"users": 1}, {"diurnal": 0}, {"diurnal": 1, "hours": 0.1}])
def test_the_smallest_are_drawn(options: dict[str, Any]) -> None:
    """And can be simulated."""
    trace = fo.generate_trace(**({"jobs": 40, "users": 3} | options))
    cluster = fo.Instance([[1, 1]], [[1, 1]], users=["x"], resources=["cpu", "memory"])
    assert fo.simulate(trace, cluster, "drfh:best-fit", until=1e6).ended.sum() > 0
