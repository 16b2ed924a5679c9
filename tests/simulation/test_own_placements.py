"""Placements of one's own over time: functions, in the same event loop as the rules of fairopt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import decimal_tree, instance_in_queues, trace_in_queues
from strategies import instances, traces

import fairopt as fo


def first(user: int, free: np.ndarray, demand: np.ndarray, fits: np.ndarray) -> int:
    """Return what first-fit returns, and see that the task does fit."""
    assert (free[fits] >= demand - 1e-6).all()
    return int(fits[0])


def starts(trace: fo.Trace, cluster: fo.Instance, placement: Any, criterion: str, **options: Any) -> tuple[list[float], list[int]]:
    """Return when and where each task starts."""
    found = fo.simulate(trace, cluster, {"criterion": criterion, "placement": placement, **options})
    assert found.task_start is not None
    assert found.task_server is not None
    return found.task_start.tolist(), found.task_server.tolist()


@settings(max_examples=40)
@given(data=st.data(), instance=instances(max_servers=3, max_users=3), criterion=st.sampled_from(["drfh", "tsf", "psdsf"]))
def test_a_function_that_does_what_a_rule_does(data: st.DataObject, instance: fo.Instance, criterion: str) -> None:
    """The first server: the same tasks start at the same times, whatever users, servers and jobs come and go."""
    cluster = instance.replace(tasks=None)
    trace = data.draw(traces(cluster))
    for options in ({}, {"ties": "largest-demand"}):
        mine, rule = (starts(trace, cluster, placement, criterion, **options) for placement in (first, "first-fit"))
        assert np.array_equal(mine, rule, equal_nan=True)


@pytest.mark.parametrize("seed", range(6))
def test_in_a_tree_of_queues(seed: int) -> None:
    """With guarantees, limits and tiers, too."""
    cluster = decimal_tree(instance_in_queues(seed)).replace(tasks=None)
    trace = trace_in_queues(cluster, seed)
    mine, rule = (starts(trace, cluster, placement, "drfh") for placement in (first, "first-fit"))
    assert np.array_equal(mine, rule, equal_nan=True)
    assert np.isfinite(rule[0]).any()


def test_what_the_function_sees() -> None:
    """The user's position, the free amounts in the units of the instance, closed servers as full."""
    cluster = fo.Instance([[4, 8]], [[1, 2], [2, 2]], counts=[2], users=["a", "b"], servers=["s"], resources=["cpu", "memory"])
    trace = fo.Trace(
        ["b", "a"], submit=[0, 1], tasks=[1, 1], demands=[[2, 2], [1, 2]], durations=[9, 9], resources=["cpu", "memory"],
        events=[(0.5, "remove", "s")],
    )  # fmt: skip
    seen: list[Any] = []

    def record(user: int, free: np.ndarray, demand: np.ndarray, fits: np.ndarray) -> int:
        seen.append((user, free.round(9).tolist(), demand.tolist(), fits.tolist()))
        return int(fits[-1])

    found = fo.simulate(trace, cluster, {"criterion": "drfh", "placement": record})
    assert [found.users[user] for user, *_ in seen] == ["b", "a"]
    assert seen[0][1:] == ([[4, 8], [4, 8]], [2, 2], [0, 1])
    assert seen[1][1:] == ([[4, 8], [0, 0]], [1, 2], [0])  # the last server of the row is removed; its task runs on
    assert found.jobs["finished_s"].tolist() == [9, 10]


def test_a_time_limit_and_a_stop() -> None:
    """The results so far."""
    cluster = fo.Instance([[1]], [[1]], users=["a"], servers=["s"], resources=["cpu"])
    trace = fo.Trace(["a"], submit=[0], tasks=[1000], demands=[[1]], durations=[1], resources=["cpu"])
    until = fo.simulate(trace, cluster, {"criterion": "drfh", "placement": first}, until=10.5)
    stopped = fo.simulate(trace, cluster, {"criterion": "drfh", "placement": first}, stopped=lambda: True)
    assert until.task_start is not None
    assert np.isfinite(until.task_start).sum() == 11
    assert stopped.task_start is not None
    assert 0 < np.isfinite(stopped.task_start).sum() < 1000
