"""Allocations that remember: against slow loops for one resource, and the examples that their papers give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference.memory import one_resource

import fairopt as fo
from fairopt.models.max_min import MaxMin
from fairopt.simulation.karma import round_of
from fairopt.simulation.memory import Memory, worth_everywhere


def pool(users: int, capacity: float, weights: list[float] | None = None) -> fo.Instance:
    """Return one server of one resource."""
    return fo.Instance([[capacity]], np.ones((users, 1)), users=[f"u{n}" for n in range(users)], resources=["cpu"], weights=weights)


@pytest.mark.parametrize(("half_life", "period"), [(math.inf, 1.0), (7.0, 0.5), (30.0, 2.0)])
@pytest.mark.parametrize(("seed", "notion"), [(0, "drfh"), (1, "drfh"), (2, "drfh"), (0, "max-min")])
def test_one_resource_as_in_a_slow_loop(half_life: float, period: float, seed: int, notion: str) -> None:
    """Numbers of tasks are shares here, times a constant. Weights, limits of tasks, users who come late: the ends of all jobs, and a
    proof of every moment.
    """
    rng = np.random.default_rng(seed)
    n = 5
    cluster = pool(n, 6.0, rng.choice([1.0, 2.0, 3.0], n).tolist())
    submit, tasks, run = np.sort(rng.integers(0, 15, n)), rng.integers(1, 9, n), rng.integers(3, 20, n)
    trace = fo.Trace(cluster.users, submit, tasks, np.ones((n, 1)), run, resources=["cpu"])
    found = fo.simulate(trace, cluster, f"{notion}:half_life={half_life}:period={period}")
    expected = one_resource(trace, cluster.weights, 6.0, half_life, period)
    np.testing.assert_allclose(found.finished, expected, rtol=1e-7)
    assert found.details["residual"] <= 1e-8


def test_a_short_memory_is_none() -> None:
    """With a half-life far below the period the past is forgotten before it counts."""
    cluster = pool(2, 1.0)
    trace = fo.Trace(cluster.users, [0, 100], [1, 1], [[1], [1]], [150, 100], resources=["cpu"])
    plain = fo.simulate(trace, cluster, "drfh")
    np.testing.assert_allclose(fo.simulate(trace, cluster, "drfh:half_life=0.01:period=10").finished, plain.finished, rtol=1e-9)


def test_a_long_memory_lets_the_late_catch_up() -> None:
    """A alone for 100 s, then B alone until it has had 100 s too: B ends at 200, A's last 50 s follow; without a memory they share."""
    cluster = pool(2, 1.0)
    trace = fo.Trace(cluster.users, [0, 100], [1, 1], [[1], [1]], [150, 100], resources=["cpu"])
    assert fo.simulate(trace, cluster, "drfh").finished.tolist() == pytest.approx([200, 250])
    assert fo.simulate(trace, cluster, "drfh:half_life=inf:period=1").finished.tolist() == pytest.approx([250, 200])


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("drfh", [6, 6, 3]),
        ("karma:alpha=0.5:period=1", [5, 5, 5]),
        ("drfh:half_life=inf:period=1", [5, 5, 5]),
        ("karma:alpha=1:period=1", [6, 6, 3]),  # everything is guaranteed: what C lends is not given back
    ],
)
def test_karma_in_five_rounds(scheduler: str, expected: list[float]) -> None:
    """Three slices; A and B always want them, C from the third round on. Instant by instant A and B get twice as much as C."""
    cluster = pool(3, 3.0)
    trace = fo.Trace(cluster.users, [0, 0, 2], [3, 3, 3], [[1]] * 3, [math.inf] * 3, resources=["cpu"])
    found = fo.simulate(trace, cluster, scheduler, until=5.0, step=1.0)
    had = found.series.running[:5].sum(axis=0)
    assert had.tolist() == pytest.approx(expected)


def test_a_round_of_karma_slice_by_slice() -> None:
    """Small slices, one after the other as in the paper's algorithm, come to the same as pouring."""
    rng = np.random.default_rng(3)
    slice_ = 1e-3
    for _ in range(6):
        n, alpha = 4, float(rng.choice([0.0, 0.5, 0.8]))
        demand, fair, credits = rng.uniform(0, 3, n), np.ones(n), rng.uniform(0, 2, n)
        got, growth = round_of(demand, fair, credits, alpha, 1.0, np.ones(n))
        own = credits + (1 - alpha) * fair
        alloc = np.minimum(demand, alpha * fair)
        donated, shared = alpha * fair - alloc, (1 - alpha) * n
        while True:
            borrowers = np.flatnonzero(alloc + slice_ / 2 < demand)
            donors = np.flatnonzero(donated >= slice_ / 2)
            if not borrowers.size or (not donors.size and shared < slice_ / 2):
                break
            best = borrowers[own[borrowers].argmax()]
            if donors.size:
                lender = donors[own[donors].argmin()]
                own[lender] += slice_
                donated[lender] -= slice_
            else:
                shared -= slice_
            alloc[best] += slice_
            own[best] -= slice_
        np.testing.assert_allclose(got, alloc, atol=3 * slice_)
        np.testing.assert_allclose(credits + growth, own, atol=3 * slice_)


def test_what_is_refused() -> None:
    """Each in a sentence that says what to do."""
    cluster = pool(1, 1.0)
    trace = fo.Trace(["u0"], [0], [1], [[1]], [5], resources=["cpu"])
    tree = fo.Instance([[1.0]], [[1]], users=["u0"], resources=["cpu"], queues=[fo.Queue("q")], queue_of=["q"])
    two = fo.Instance([[1.0, 1.0]], [[1, 1]], users=["u0"], resources=["cpu", "memory"])
    both = fo.Trace(["u0"], [0], [1], [[1, 1]], [5], resources=["cpu", "memory"])
    for jobs, where, scheduler, words in [
        (trace, cluster, "proportional:half_life=7", "no leximin of shares"),
        (trace, cluster, "drfh:half_life=7:period=inf", "seconds of a round"),
        (trace, cluster, "drfh:half_life=soon", "give seconds > 0"),
        (trace, cluster, "karma:alpha=2", "a number from 0 to 1"),
        (trace, cluster, "karma:beta=2", "takes no option"),
        (trace, cluster, "drfh:halflife=7d", r'"drfh" takes no option "halflife" \(did you mean "half_life"\?\)'),
        (both, two, "karma", "one resource"),
        (trace, tree, "karma", "leave these out"),
        (trace, cluster.replace(limits=[fo.Limit("half", 0.5)]), "karma", '"karma" keeps no named limits'),
        (
            trace,
            cluster.replace(rules=["x[u0] <= 2"]),
            "karma",
            r'rule "x\[u0\] <= 2", and "karma" keeps none; leave the rules out',
        ),
    ]:
        with pytest.raises(fo.Unsupported, match=words):
            fo.simulate(jobs, where, scheduler)


def test_a_worth_that_depends_on_the_server_has_no_memory() -> None:
    """A utility that is the same on all servers where a user may run adds up over time; another one does not."""
    cluster = fo.Instance([[1.0], [1.0]], [[1.0]] * 2, users=["u0", "u1"], resources=["cpu"], eligibility=[[1, 1], [1, 0]])
    trace = fo.Trace(cluster.users, [0, 0], [2, 2], [[1], [1]], [10, 10], resources=["cpu"])
    memory = Memory.of(MaxMin(utility=[[2, 2], [3, 9]]), math.inf, 1.0)
    assert worth_everywhere(memory.notion, cluster).tolist() == [2, 3]
    assert fo.simulate(trace, cluster, "max-min:half_life=inf:period=1").finished.max() < math.inf
    with pytest.raises(fo.Unsupported, match="depends on the server"):
        worth_everywhere(MaxMin(utility=[[2, 1], [3, 9]]), cluster)
