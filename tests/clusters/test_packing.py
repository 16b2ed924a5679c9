"""Whole tasks on identical single servers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.clusters.packing import Packed, pack


def held_by(packed: Packed) -> float:
    """Return the number of servers that are accounted for."""
    return sum(kind.count for kind in packed.kinds)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_no_server_is_ever_full_beyond_its_capacity(seed: int, count: int, users: int, resources: int) -> None:
    """Every server is counted, none has less than nothing left, and what is used is what the tasks that were placed ask for."""
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, 20, resources).astype(float)
    demands = rng.integers(0, 8, (users, resources)).astype(float)
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    tasks = rng.integers(0, 12, users).astype(float)
    packed = pack(capacity, count, demands, tasks)
    assert (packed.placed <= tasks).all()
    assert held_by(packed) == count
    assert all((kind.left >= 0).all() for kind in packed.kinds)
    left = sum(kind.count * kind.left for kind in packed.kinds)
    assert np.asarray(count * capacity - left) == pytest.approx(packed.placed @ demands)


def test_an_even_mix_is_found() -> None:
    """Ten servers of (10, 10), tasks (3, 1) and (1, 3): two and two on each use 8 of both; first fit would strand the second resource."""
    packed = pack(np.array([10.0, 10.0]), 10, np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([20.0, 20.0]))
    assert packed.placed.tolist() == [20, 20]


def test_patterns_mix_tasks_of_many_users() -> None:
    """A hundred users with three tasks each, of either kind: too few for an even number on each of 75 servers."""
    demands = np.tile([[3.0, 1.0], [1.0, 3.0]], (50, 1))
    packed = pack(np.array([8.0, 8.0]), 75, demands, np.full(100, 3.0))
    assert packed.placed.sum() == 300


def test_the_largest_task_decides() -> None:
    """Two servers of 3 hold one task of 2 each, not three together."""
    assert pack(np.array([3.0]), 2, np.array([[2.0]]), np.array([3.0])).placed.tolist() == [2]
