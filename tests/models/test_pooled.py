"""One server with everything."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo


def test_pooled_adds_servers_and_keeps_users() -> None:
    """Counts are counted; eligibility goes; weights, tasks and labels stay."""
    instance = fo.Instance(
        [[9, 12], [12, 0]],
        [[1, 0], [1, 2]],
        weights=[1, 2],
        eligibility=[[True, False], [True, True]],
        counts=[1, 3],
        tasks=[4, np.inf],
        users=["a", "b"],
        resources=["cpu", "memory"],
    )
    pool = instance.pooled()
    assert pool == fo.Instance(
        [[45, 12]],
        [[1, 0], [1, 2]],
        weights=[1, 2],
        tasks=[4, np.inf],
        users=["a", "b"],
        servers=["pool"],
        resources=["cpu", "memory"],
    )
    assert pool.pooled() == pool


def test_rates_cannot_be_pooled() -> None:
    """A speed on each server is no capacity."""
    with pytest.raises(fo.InvalidInstance, match="do not add up to the capacity of one pool"):
        fo.Instance([[1], [1]], [[1]], rates=[[1, 2]]).pooled()
