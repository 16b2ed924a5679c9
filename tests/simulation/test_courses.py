"""Measures of courses whose samples are unequally far apart, against loops over intervals, users and windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

import fairopt as fo
from fairopt.simulation.courses import Course, SideBySide

USERS = ("a", "b", "c")


def course(name: str, times: list[float], shares: list[list[float]], running: list[list[float]], waiting: list[list[float]]) -> Course:
    """Return a course of two jobs of each user, of which only those of a and b end."""
    used = np.array(shares).sum(axis=1)
    return Course(
        name=name,
        kind="exact",
        times=np.array(times, float),
        shares=np.array(shares, float),
        running=np.array(running, float),
        waiting=np.array(waiting, float),
        utilization=np.column_stack([used, used / 2]),
        limit_use=np.zeros((len(times), 0)),
        started=np.array([0.0, 2.0, 4.0]),
        finished=np.array([8.0, 30.0, np.nan]),
        until=times[-1],
        complete=True,
    )


def side_by_side(own: Course, exact: Course, weights: Sequence[float], window: float) -> SideBySide:
    """Return one scheduler beside the exact course; jobs of 4, 20 and 50 s come at 0, 1 and 2 s."""
    trace = fo.Trace(list(USERS), [0, 1, 2], [1, 1, 1], [[1], [1], [1]], [4, 20, 50], resources=["cpu"])
    cluster = fo.Instance([[4]], [[1]] * 3, users=list(USERS), resources=["cpu"])
    return SideBySide(trace, cluster, USERS, np.array(weights, float), (own,), exact, window)


def drawn(seed: int) -> tuple[Course, Course]:
    """Return two courses with times that are unequally far apart, users without tasks, and times when nobody has anything."""
    rng = np.random.default_rng(seed)
    found = []
    for name in ("own", "exact"):
        times = [0.0, *np.cumsum(rng.choice([0.5, 1.0, 3.0, 7.0, 13.0], 12)).tolist()]
        running = rng.integers(0, 3, (len(times), 3)) * (rng.random((len(times), 3)) < 0.6)
        found.append(course(name, times, (running / 8).tolist(), running.tolist(), rng.integers(0, 2, running.shape).tolist()))
    return found[0], found[1]


def jain_by_loops(found: SideBySide, of: Course) -> list[float]:
    """(sum x)^2 / (n sum x^2) of x[u] = what u had in a window by weight, over the n users who had tasks in it."""
    windows: dict[int, tuple[list[float], set[int]]] = {}
    last = int((of.times[-1] - of.times[0]) // found.window)
    for k in range(last + 1):
        windows[k] = ([0.0] * 3, set())
    for k, time in enumerate(of.times):
        length = of.times[k + 1] - time if k + 1 < of.times.size else 0.0
        had, there = windows[int((time - of.times[0]) // found.window)]
        for u in range(3):
            had[u] += of.shares[k, u] * length
            if of.running[k, u] + of.waiting[k, u] > 0 and found.weights[u] > 0:
                there.add(u)
    indices = []
    for had, there in windows.values():
        x = [had[u] / found.weights[u] for u in there]
        indices.append(sum(x) ** 2 / (len(x) * sum(each**2 for each in x)) if any(x) else math.nan)
    return indices


def test_jain_by_hand() -> None:
    """In one window of 10 s a has half of the cluster for 1 s, and b for 9 s: (1/2 + 9/2)^2 / (2 (1/4 + 81/4)) = 25/41.

    With nine times the weight, b has as much as a for each unit of it.
    """
    own = course(
        "own", [0, 1, 10], [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    )
    for weights, expected in (([1, 1, 1], 25 / 41), ([1, 9, 1], 1.0)):
        starts, jain = side_by_side(own, own, weights, 10.0).jain(own)
        assert starts.tolist() == [0, 10]
        assert jain[0] == pytest.approx(expected)
        assert np.isnan(jain[1])


@pytest.mark.parametrize("seed", range(8))
def test_measures_are_integrals(seed: int) -> None:
    """Jain's index, means by window, shortfall, envy and utilization count how long each sample holds."""
    own, exact = drawn(seed)
    weights = [1.0, 2.0, 0.0 if seed % 2 else 3.0]
    found = side_by_side(own, exact, weights, 10.0)
    np.testing.assert_allclose(found.jain(own)[1], jain_by_loops(found, own))
    lengths = [*np.diff(own.times), 0.0]
    shortfall = envy = 0.0
    values = own.shares.sum(axis=1)
    mean: dict[int, list[float]] = {}
    for k, (time, length) in enumerate(zip(own.times, lengths, strict=True)):
        before = np.flatnonzero(exact.times <= time)
        due = exact.shares[before[-1]] if before.size and time <= exact.times[-1] else np.zeros(3)
        by_weight = max(own.shares[k, v] / weights[v] for v in range(3) if weights[v])
        part = mean.setdefault(int(time // 10), [0.0, 0.0])
        part[0] += length * values[k]
        part[1] += length
        for u in range(3):
            if own.waiting[k, u]:
                shortfall += length * max(due[u] - own.shares[k, u], 0)
                envy += length * max(by_weight * weights[u] - own.shares[k, u], 0)
    row = found.to_frame().iloc[0]
    assert row["envy_h"] == pytest.approx(envy / 3600)
    assert row["shortfall_h"] == pytest.approx(shortfall / 3600)
    assert row["regret"] == pytest.approx(shortfall / (np.array([*np.diff(exact.times), 0.0]) @ exact.shares.sum(axis=1)))
    assert row["utilization"] == pytest.approx(np.dot(lengths, values) / sum(lengths))
    assert row["jain"] == pytest.approx(np.nanmean(jain_by_loops(found, own)))
    starts, means = found.mean_by_window(own, values)
    assert starts.tolist() == [10.0 * k for k in range(len(starts))]
    for k, value in enumerate(means):
        total, seconds = mean.get(k, [0.0, 0.0])
        assert value == pytest.approx(total / seconds) if seconds else np.isnan(value)
    users = found.users_frame().set_index("user")
    assert users["share_h"].tolist() == pytest.approx(np.dot(lengths, own.shares) / 3600)
    assert users["envy_h"].sum() == pytest.approx(envy / 3600)


def test_slowdowns_by_hand() -> None:
    """8 s for a job of 4 s is 2, but bounded as 8/10 at least 1; 29 s for 20 s is 1.45; the third has not ended."""
    own = drawn(0)[0]
    found = side_by_side(own, own, [1, 1, 1], 10.0)
    slow, bounded = found.slowdowns(own)
    assert slow[:2].tolist() == pytest.approx([2, 1.45])
    assert bounded[:2].tolist() == pytest.approx([1, 1.45])
    assert np.isnan(slow[2])
    assert np.isnan(bounded[2])
    row = found.to_frame().iloc[0]
    assert (row["ended"], row["started"], row["makespan_s"]) == (2, 3, 30)
    assert row["wait_s"] == pytest.approx((0 + 1 + 2) / 3)
