"""The bound of a whole period: by hand, and above what every scheduler gives."""

from __future__ import annotations

import numpy as np
import pytest
from reference.rows import Rows, leximin

import fairopt as fo


def test_by_hand() -> None:
    """One processor for 300 s. A has 250 s of work from the beginning, B 40 s from 100 s on, C any amount from 200 s on."""
    cluster = fo.Instance([[1.0]], [[1]], users=["nobody"], resources=["cpu"])
    trace = fo.Trace(["A", "B", "C"], [0, 100, 200], [1, 1, 1], [[1]] * 3, [250, 40, 1e6], resources=["cpu"])
    found = fo.period_bound(trace, cluster, until=300)
    assert found.received.tolist() == pytest.approx([160, 40, 100])
    assert found.certificate.worst <= 1e-8
    assert found.intervals == 3


def test_across_servers_by_hand() -> None:
    """Three processors for 300 s. A, from the beginning, and B, from 100 s on, need the only licence; C has what they leave.

    A and B have 150 s each, C 600 s, of a third of the processors. With at most two tasks at a time, and one of C, C has 300 s. With a
    quarter of a task on each server, all have 225 s, three fifths of which are C's.
    """
    cluster = fo.Instance(
        *([[1.0]], [[1, 1], [1, 0], [1, 1]]), counts=[3], users=["A", "C", "B"], resources=["cpu"], shared={"licences": 1}
    )
    trace = fo.Trace(["A", "C", "B"], [0, 0, 100], [2, 3, 2], [[1, 1], [1, 0], [1, 1]], [1e6] * 3, resources=["cpu", "licences"])
    received = fo.period_bound(trace, cluster, until=300).received
    assert received.tolist() == pytest.approx([150, 600 / 3, 150])
    two = cluster.replace(limits=[fo.Limit("two", 2), fo.Limit("one of C", 1, users=["C"])])
    assert fo.period_bound(trace, two, until=300).received.tolist() == pytest.approx([150, 300 / 3, 150])
    quarters = cluster.replace(limits=[fo.Limit("a quarter", 0.25, each="server")])
    assert fo.period_bound(trace, quarters, until=300).received.tolist() == pytest.approx([45, 45, 45])


@pytest.mark.parametrize("seed", range(3))
def test_no_scheduler_does_better(seed: int) -> None:
    """In the leximin order of what users received in all, by weight."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance([[4, 8], [2, 9]], np.ones((4, 2)), weights=[1, 1, 2, 3], users=list("abcd"), resources=["cpu", "memory"])
    demands = rng.integers(1, 4, (4, 2))
    user = rng.integers(0, 4, 16)
    trace = fo.Trace(
        [cluster.users[n] for n in user], np.sort(rng.integers(0, 60, 16)), rng.integers(1, 5, 16), demands[user],
        rng.integers(5, 40, 16), resources=["cpu", "memory"],
    )  # fmt: skip
    bound = fo.period_bound(trace, cluster, until=80.0)
    best = np.sort(bound.received / bound.weights)
    for scheduler in ("drfh", "drfh:half_life=inf:period=1", "drfh:best-fit", "fifo", "fairtree"):
        found = fo.simulate(trace, cluster, scheduler, until=80.0, step=0.05)
        series = found.series
        inside = series.times < 80.0
        had = np.sort((series.dominant_shares[inside] * 0.05).sum(axis=0) / found.weights)
        first = np.flatnonzero(np.abs(had - best) > 0.05 * 4 + 1e-3 * best)
        assert not first.size or had[first[0]] < best[first[0]]


def test_fewer_intervals_give_a_larger_bound() -> None:
    """Jobs count from the beginning of the interval in which they are submitted."""
    rng = np.random.default_rng(5)
    cluster = fo.Instance([[4.0]], [[1]], users=["nobody"], resources=["cpu"])
    trace = fo.Trace(
        [f"u{n}" for n in rng.integers(0, 3, 12)], np.sort(rng.integers(0, 50, 12)), rng.integers(1, 4, 12), np.ones((12, 1)),
        rng.integers(5, 20, 12), resources=["cpu"],
    )  # fmt: skip
    least = [np.sort(fo.period_bound(trace, cluster, until=50.0, intervals=k).received)[0] for k in (1, 3, 100)]
    assert least[0] >= least[1] - 1e-9 >= least[2] - 2e-9


def test_what_is_refused() -> None:
    """In a sentence."""
    cluster = fo.Instance([[4.0]], [[1]], users=["nobody"], resources=["cpu"])
    trace = fo.Trace(["A"], [5], [1], [[1]], [5], resources=["cpu"])
    with pytest.raises(fo.Unsupported, match="before the first job"):
        fo.period_bound(trace, cluster, until=5.0)
    with pytest.raises(fo.Unsupported, match="no leximin of shares"):
        fo.period_bound(trace, cluster, "proportional", until=50.0)


@pytest.mark.parametrize("notion", ["drfh", "tsf", "cdrf"])
def test_by_server_it_is_that_of_an_oracle_of_rows(notion: str) -> None:
    """All rows of every interval written down one by one, with amounts and speeds by server; weights."""
    for seed in range(4):
        rng = np.random.default_rng([seed, 7])
        users, rows, jobs, until = 3, 3, 7, 60.0
        demands, speeds = rng.uniform(0.5, 3, (users, rows, 2)), rng.choice([0.5, 1.0, 2.0], (users, rows))
        speeds[:, 0] = 1.0  # the base row of all
        lab = fo.Instance(
            rng.uniform(4, 9, (rows, 2)), demands, speeds=speeds, weights=rng.choice([1.0, 2.0], users), counts=[2, 1, 3]
        ).replace(users=list("abc"), resources=["cpu", "gpu"])
        user = np.append(np.arange(users), rng.integers(0, users, jobs - users))
        submit, tasks = np.sort(rng.integers(0, 40, jobs)).astype(float), rng.integers(1, 5, jobs)
        durations = rng.integers(5, 60, jobs)
        trace = fo.Trace([lab.users[n] for n in user], submit, tasks, demands[user, 0], durations, resources=lab.resources)
        times = np.unique([*submit, until])
        columns = [(n, k * rows + i) for n in range(users) for k in range(times.size - 1) for i in range(rows)]
        model = Rows(columns)
        for k, length in enumerate(np.diff(times)):
            for i, r in np.ndindex(rows, 2):
                use = [demands[n, i, r] if column == k * rows + i else 0.0 for n, column in columns]
                model.add(use, lab.counts[i] * lab.capacities[i, r] * length)
            for n in range(users):
                here = float(tasks[(user == n) & (submit <= times[k])].sum())
                model.add([float(m == n and column // rows == k) for m, column in columns], here * length)
        for n in range(users):
            work = float((tasks * durations)[user == n].sum())
            model.add([speeds[n, column % rows] if m == n else 0.0 for m, column in columns], work)
        one = fo.solve(lab, notion)
        unit = one.shares * lab.weights / one.work  # of the cluster, whoever else is there
        worth = [float(speeds[n, column % rows] * unit[n] / lab.weights[n]) for n, column in columns]
        expected = leximin(model, worth, users) * lab.weights
        found = fo.period_bound(trace, lab, notion, until=until)
        assert found.certificate.worst <= 1e-8
        np.testing.assert_allclose(found.received, expected, rtol=1e-6, err_msg=f"{notion} {seed}")
