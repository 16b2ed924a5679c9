"""The kernels of jobs find what the loop over arrays finds, which knows limits and speeds, too."""

from __future__ import annotations

import numpy as np
import pytest
from reference.baselines import RULES

import fairopt as fo
from fairopt.simulation.baselines.pool import Pool


def crowded(seed: int) -> tuple[fo.Trace, fo.Instance]:
    """Return a cluster that is too small for its jobs: shapes that are no whole parts of a server, gangs, wrong estimates, changes."""
    rng = np.random.default_rng(seed)
    size, resources, jobs = int(rng.integers(2, 6)), int(rng.integers(1, 4)), 150
    names = [f"s{k}" for k in range(size)]
    cluster = fo.Instance(
        rng.uniform(1, 4, (size, resources)), np.full((4, resources), 0.1), counts=rng.integers(1, 5, size), users=list("abcd"),
        eligibility=(rng.random((4, size)) < 0.7) | (np.arange(size) == 0), weights=[1, 2, 1, 3], servers=names,
        resources=["cpu", "memory", "gpu"][:resources],
    )  # fmt: skip
    shapes = rng.uniform(0.05, 1, (6, resources)) * (rng.random((6, resources)) < 0.8) + (np.arange(resources) == 0) * 0.07
    tasks, durations = rng.integers(1, 12, jobs), rng.exponential(20, jobs).round(int(rng.integers(0, 3))) + 1
    estimates = np.maximum(durations + rng.normal(0, 6, jobs).round(), 1)
    durations[-9:-5] = np.inf
    if seed % 2:  # each task has its own
        durations = np.repeat(durations, tasks) + rng.integers(0, 4, tasks.sum())
    trace = fo.Trace(
        [cluster.users[n] for n in rng.integers(0, 4, jobs)], np.sort(rng.exponential(80, jobs).round()), tasks,
        shapes[rng.integers(0, 6, jobs)], durations, resources=cluster.resources,
        gangs=rng.random(jobs) < 0.4, estimates=estimates,
        events=[(30.0, "remove", "s0", 1), (50.0, "leave", "b", 1), (70.0, "add", "s0", 1), (90.0, "join", "b", 1)],
    )  # fmt: skip
    return trace, cluster


@pytest.mark.parametrize("scheduler", ["fifo", *(name for name, (_, _, backfill) in RULES.items() if backfill)])
@pytest.mark.parametrize("seed", range(12))
def test_as_the_loop_over_arrays(scheduler: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit."""
    trace, cluster = crowded(seed)
    found = fo.simulate(trace, cluster, scheduler)
    monkeypatch.setattr(Pool, "only_servers_limit", False)
    expected = fo.simulate(trace, cluster, scheduler)
    assert expected.task_start is not None
    assert (expected.task_start > trace.submit[trace.job_of]).sum() > 100  # tasks wait
    np.testing.assert_array_equal(found.task_start, expected.task_start)
    np.testing.assert_array_equal(found.task_server, expected.task_server)
