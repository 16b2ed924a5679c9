"""Fairness with a memory: Karma's trade and dynamic DRF in five rounds, and parallel jobs under FCFS and EASY backfill.

The five rounds: three users share three slices; A and B always want all of them, C from the third round on. Max-min fairness at each
instant forgets that C had nothing for two rounds. The parallel jobs are of the kind of the Parallel Workloads Archive: powers of two
processors, run times over three orders of magnitude, estimates up to ten times too long.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.reproduction.trials import Row, Run, compared
from fairopt.simulation.simulating import simulate
from fairopt.trace import Trace

__all__ = ["memory_rows", "parallel_jobs", "received"]

_ROUNDS = 5
_BOUND = 10.0  # seconds, of bounded slowdowns
_ENTRIES = (
    (
        "instant",
        "max-min at each instant",
        "drfh",
        [6.0, 6.0, 3.0],
        "without a memory, by hand: 1.5, 1.5, 0 twice, then 1, 1, 1",
    ),
    ("karma", "Karma, alpha = 0.5", "karma:alpha=0.5:period=1", [5.0, 5.0, 5.0], "Vuppalapati et al. (2023), algorithm 1, by hand"),
    (
        "dynamic",
        "dynamic DRF",
        "drfh:half_life=inf:period=1",
        [5.0, 5.0, 5.0],
        "Fikioris et al. (2021): the leximin of sums, by hand",
    ),
)
_BOUNDED = {  # mean bounded slowdowns, from elsewhere
    "fifo": (37.3624, "first in, first out of AccaSim 1.1.3, which starts every job at the same second"),
    "backfill": (9.7492, "a loop over tasks and servers that shares no code with the scheduler (tests/reference/baselines.py)"),
}


def received(scheduler: str) -> FloatArray:
    """Return what A, B and C have had after five rounds, in slices.

    >>> received("karma:alpha=0.5:period=1").round(6).tolist()
    [5.0, 5.0, 5.0]
    """
    cluster = Instance([[3.0]], np.ones((3, 1)), users=["A", "B", "C"], resources=["slices"])
    trace = Trace(cluster.users, [0, 0, 2], [3, 3, 3], np.ones((3, 1)), np.full(3, np.inf), resources=["slices"])
    found = simulate(trace, cluster, scheduler, until=float(_ROUNDS), step=1.0)
    return np.asarray(found.series.running[:_ROUNDS].sum(axis=0))


def parallel_jobs(number: int = 300, processors: int = 64) -> tuple[Trace, Instance]:
    """Return parallel jobs of ten users, and a machine whose processors they ask for to nine tenths."""
    rng = np.random.default_rng(7)
    size = 2 ** rng.integers(0, 6, number)
    run = np.exp(rng.normal(5.5, 1.5, number)).round() + 1
    length = float((size * run).sum()) / processors / 0.9
    trace = Trace(
        [f"user {n}" for n in rng.integers(1, 11, number)],
        np.sort(rng.uniform(0, length, number)).round(),
        size,
        np.ones((number, 1)),
        run,
        gangs=np.ones(number, bool),
        estimates=(run * rng.choice([1.0, 2.0, 5.0, 10.0], number)).round(),
        resources=["cpu"],
    )
    return trace, Instance([[processors]], [[1]], users=["anybody"], resources=["cpu"])


def memory_rows(run: Run) -> Iterator[Row]:
    """Five rounds under three rules; the bounded slowdown of parallel jobs under two."""
    for name, what, scheduler, expected, citation in _ENTRIES:
        ours = received(scheduler)
        yield compared(
            id=f"memory-{name}",
            what=f"{what}: slices of A, B, C in five rounds",
            citation=citation,
            published=expected,
            ours=ours.round(9).tolist(),
            tolerance=1e-6,
            holds=bool(np.allclose(ours, expected, atol=1e-6)),
            kind="memory" if "karma" in scheduler or "half_life" in scheduler else "exact",
        )
    trace, cluster = parallel_jobs()
    for name, (known, source) in _BOUNDED.items():
        took = simulate(trace, cluster, name).completion
        slowdown = float(np.maximum(took / np.maximum(trace.durations, _BOUND), 1.0).mean())
        yield compared(
            id=f"memory-{name}",
            what=f"{name}: bounded slowdown of {trace.n_jobs} parallel jobs",
            citation=f"a workload of the kind of the Parallel Workloads Archive; {source}",
            published=[known],
            ours=[slowdown],
            tolerance=5e-5,
            holds=bool(abs(slowdown - known) <= 5e-5),
            kind="cluster",
        )
