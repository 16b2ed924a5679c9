"""Exact allocations that remember, in trees of queues: against a slow loop node by node, and against what is the same without either."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference.memory import one_resource_in_a_tree

import fairopt as fo


@pytest.mark.parametrize(("half_life", "period", "seed"), [(math.inf, 4.0, 0), (7.0, 2.0, 1), (30.0, 3.0, 2)])
def test_one_resource_as_in_a_slow_loop(half_life: float, period: float, seed: int) -> None:
    """Queues inside queues, weights, users who come and go: what absent users have had counts for their queue."""
    rng = np.random.default_rng(seed)
    weight, of_queue = rng.choice([1.0, 2.0, 3.0], 5), rng.choice([1.0, 2.0, 3.0], 3)
    queues = [fo.Queue("x", weight=of_queue[0]), fo.Queue("y", weight=of_queue[1]), fo.Queue("z", parent="y", weight=of_queue[2])]
    names = [f"u{k}" for k in range(5)]
    cluster = fo.Instance(
        [[6.0]], np.ones((5, 1)), users=names, weights=weight, resources=["cpu"], queues=queues, queue_of=["x", "x", "y", "z", "z"]
    )
    user = np.append(np.arange(5), rng.integers(0, 5, 4))
    trace = fo.Trace(
        [names[k] for k in user], np.sort(rng.integers(0, 25, 9)), rng.integers(1, 9, 9), np.ones((9, 1)), rng.integers(3, 12, 9),
        resources=["cpu"],
    )  # fmt: skip
    assert trace.users == tuple(names)
    leaf = [(float(weight[k]), k) for k in range(5)]
    root = (1.0, [(of_queue[0], leaf[:2]), (of_queue[1], [leaf[2], (of_queue[2], leaf[3:])])])
    found = fo.simulate(trace, cluster, f"drfh:half_life={half_life}:period={period}")
    np.testing.assert_allclose(found.finished, one_resource_in_a_tree(trace, root, 6.0, half_life, period), rtol=1e-9)
    assert found.details["residual"] <= 1e-8


def several(queues: str) -> tuple[fo.Trace, fo.Instance]:
    """Return users of two resources on three kinds of servers, not all of which they may use; one in a queue of ``queues``."""
    rng = np.random.default_rng(0)
    places: dict[str, list[str]] = {"none": [], "one": ["all"] * 4, "two": ["x", "x", "y", "z"], "guarantees": ["x", "x", "y", "z"]}
    promised = {"memory": 3.0} if queues == "guarantees" else {}
    tree = [fo.Queue("x", weight=2, limit={"cpu": 7}, guarantee=promised), fo.Queue("y"), fo.Queue("z", parent="y", weight=3)]
    demands = np.array([[1, 2], [2, 1], [1, 1], [0.5, 2]])
    cluster = fo.Instance(
        [[4, 8], [6, 4], [3, 3]], np.ones((4, 2)), counts=[2, 1, 1], users=["a", "b", "c", "d"], weights=[1, 2, 1, 3],
        resources=["cpu", "memory"], servers=["r", "s", "t"], eligibility=[[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]],
        queues=[] if queues == "none" else [fo.Queue("all")] if queues == "one" else tree, queue_of=places[queues] or None,
        guarantees=[0, 1, 0, 0] if queues == "guarantees" else None,
    )  # fmt: skip
    user = np.append(np.arange(4), rng.integers(0, 4, 4))
    trace = fo.Trace(
        [cluster.users[k] for k in user], np.sort(rng.integers(0, 20, 8)), rng.integers(1, 9, 8), demands[user], rng.integers(3, 12, 8),
        resources=["cpu", "memory"],
        events=[(10.0, "remove", "r", 1), (12.0, "leave", "b"), (16.0, "join", "b"), (18.0, "add", "r", 1)],
    )  # fmt: skip
    return trace, cluster


def test_one_queue_of_everybody_is_none() -> None:
    """The levels of one node are a leximin of users, whatever the servers."""
    (trace, flat), (_, one) = several("none"), several("one")
    for scheduler in ("drfh:half_life=7:period=3", "tsf:half_life=inf:period=3"):
        inside, outside = (fo.simulate(trace, cluster, scheduler) for cluster in (one, flat))
        np.testing.assert_allclose(inside.finished, outside.finished, rtol=1e-9)
        assert max(inside.details["residual"], outside.details["residual"]) <= 1e-8


@pytest.mark.parametrize(("queues", "plain"), [("two", "drfh"), ("guarantees", "drfh:guarantees=clamp")])
def test_a_short_memory_is_none(queues: str, plain: str) -> None:
    """With a half-life far below the period, it is the tree without a memory; a queue has caught up by its guarantee, too."""
    trace, cluster = several(queues)
    found = fo.simulate(trace, cluster, "drfh:half_life=0.01:period=20")
    np.testing.assert_allclose(found.finished, fo.simulate(trace, cluster, plain).finished, rtol=1e-9)


def test_a_guarantee_holds_whatever_was_before() -> None:
    """A's queue had the cluster alone for 20 s; from then on B's queue has all but the guarantee of the other, until it has caught up."""
    queues = [fo.Queue("x", guarantee={"cpu": 1}), fo.Queue("y")]
    cluster = fo.Instance([[4.0]], np.ones((2, 1)), users=["A", "B"], resources=["cpu"], queues=queues, queue_of=["x", "y"])
    trace = fo.Trace(["A", "B"], [0, 20], [4, 4], [[1], [1]], [100, 100], resources=["cpu"])
    found = fo.simulate(trace, cluster, "drfh:half_life=inf:period=5", until=80.0, step=5.0).series
    running = dict(zip(found.times.tolist(), found.running.round(6).tolist(), strict=True))
    assert running[10.0] == [4, 0]
    assert running[30.0] == [1, 3]  # B lacks 80, and catches up by 2 a second
    assert running[50.0] == [1, 3]
    assert running[70.0] == [2, 2]


def test_what_is_refused() -> None:
    """The nested reading has no offsets."""
    trace, cluster = several("two")
    with pytest.raises(fo.Unsupported, match="leave tree out"):
        fo.simulate(trace, cluster, "drfh:half_life=7:tree=nested:queue_share=sum")
