"""How many random moments are judged by default: until the averages are known to the error that is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.histories import sampling
from fairopt.histories.changes import Changes, choose_moments

POOL = fo.Instance([[8, 32]], [[1, 1]], resources=["cpu", "memory"])


def a_busy_day(jobs: int = 600, seed: int = 0) -> pd.DataFrame:
    """Return a log of four owners in which jobs start first come, first served on 8 CPUs, and work waits most of the time."""
    rng = np.random.default_rng(seed)
    submit, run, tasks = np.sort(rng.random(jobs) * 86_400), rng.exponential(500, jobs) + 1, rng.integers(1, 5, jobs)
    free, rows = np.zeros(8), list[tuple[Any, ...]]()
    for n in range(jobs):
        free.sort()
        start = max(submit[n], free[tasks[n] - 1], rows[-1][2] if rows else 0.0)
        free[: tasks[n]] = start + run[n]
        rows.append((f"u{rng.integers(4) ** 2 % 5}", submit[n], start, start + run[n], tasks[n], 1, 1))
    return pd.DataFrame(rows, columns=["user", "submit", "start", "end", "tasks", "cpu", "memory"])


def test_the_default_stops_at_the_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of many seeds is what is stated, and the exact sums of all changes lie within a few errors."""
    monkeypatch.setattr(sampling, "FEW", 0)
    monkeypatch.setattr(sampling, "ERROR", 0.01)
    frame = a_busy_day()
    exact = fo.history(frame, POOL, moments="all").to_dict()
    runs = [fo.history(frame, POOL, seed=seed) for seed in range(6)]
    for run in runs:
        data = run.to_dict()
        assert sampling.LEAST <= data["moments"] < exact["moments"]
        assert data["moments"] % sampling.LEAST == 0
        due = float(run.setting.shares(run.sums.due.sum(axis=1)).sum()) / 3600
        assert 0 < data["shortfall_error"] <= 0.01 * due
        assert abs(data["shortfall"] - exact["shortfall"]) < 5 * data["shortfall_error"]
        assert data["received"] == pytest.approx(exact["received"])
        assert run.notes[-1] == "moments were added until the standard errors of all shortfall and surplus were at most 1 % of what was due"
    assert len({run.moments for run in runs}) <= 3


def test_too_little_work_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rounds end before the error is reached, the note says so; every allocation of every round is counted once."""
    monkeypatch.setattr(sampling, "FEW", 0)
    monkeypatch.setattr(sampling, "ERROR", 1e-6)
    monkeypatch.setattr(sampling, "WORK", 1_000)
    run = fo.history(a_busy_day(), POOL)
    assert run.moments < 1_000
    assert f"after {run.moments} moments the standard error of all shortfall or surplus is still above" in run.notes[-1]
    assert run.to_dict()["solved"] <= run.moments


def test_a_short_log_is_judged_at_every_change() -> None:
    """Nothing is said of an error that there is not."""
    run = fo.history(a_busy_day(), POOL)
    assert run.is_exact
    assert run.moments > sampling.LEAST
    assert not any("standard error" in note for note in run.notes)


def test_rounds_that_were_stopped_go_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a folder the same call goes on in the round where it was stopped, and workers find the same."""
    monkeypatch.setattr(sampling, "FEW", 0)
    monkeypatch.setattr(sampling, "ERROR", 0.005)
    frame, calls = a_busy_day(), [0]
    whole = fo.history(frame, POOL)
    assert whole.moments > sampling.LEAST

    def stopped() -> bool:
        calls[0] += 1
        return calls[0] > sampling.LEAST + 20

    with pytest.raises(fo.NoSolution, match=r"stopped after 0 of 200 moments"):
        fo.history(frame, POOL, resume=tmp_path, stopped=stopped)
    again = fo.history(frame, POOL, resume=tmp_path)
    pd.testing.assert_frame_equal(again.to_frame(), whole.to_frame())
    crowd = fo.history(frame, POOL, workers=2, backend="threading")
    assert crowd.moments == whole.moments
    assert crowd.to_frame()["shortfall"].tolist() == pytest.approx(whole.to_frame()["shortfall"].tolist(), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.integers(0, 4), st.integers(0, 99))
def test_halved_parts_keep_their_moments(parts: int, halvings: int, seed: int) -> None:
    """Each part of the time has one moment, and the moments of the round before are among them."""
    times = np.arange(1001.0)
    waits = np.append(np.ones(1000, bool), False)
    none = np.empty(0, np.int64)
    changes = Changes(times, none, none, none, none, waits)
    found = [choose_moments(changes, [(0.0, 1000.0)], np.array([0.0, 1000.0]), parts, seed, k).time for k in (halvings, halvings + 1)]
    for k, moments in enumerate(found, halvings):
        assert np.floor(moments / 1000 * (parts << k)).tolist() == list(range(parts << k))
    assert np.isin(found[0], found[1]).all()


def test_moments_of_halved_parts_are_uniform() -> None:
    """Where in its part a moment lies is uniform after a halving as before: mean 1/2 and variance 1/12, over many draws."""
    times = np.arange(1001.0)
    none = np.empty(0, np.int64)
    changes = Changes(times, none, none, none, none, np.append(np.ones(1000, bool), False))
    draws = [choose_moments(changes, [(0.0, 1000.0)], np.array([0.0, 1000.0]), 5, seed, 3).time for seed in range(300)]
    inside = np.array(draws) / 1000 * 40 % 1
    assert np.abs(inside.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / 300)
    assert inside.var() == pytest.approx(1 / 12, rel=0.05)
