"""Limits that are limits on shares alone."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program.share_limits import ShareLimits


def test_limits_of_tasks_and_of_queues_are_limits_on_shares() -> None:
    """Of a queue's two limits, that on one server depends on where its tasks run."""
    queue = fo.Queue("q", limit={"gpu": 6}, quotas=[fo.Quota(["y"], limit={"gpu": 2})])
    instance = fo.Instance(
        [[4], [20]], [[1], [2]], tasks=[3, np.inf], queues=[queue], queue_of=["q", "q"], resources=["gpu"], servers=["x", "y"]
    )
    program = fo.formulate(instance, "drfh")
    limits = ShareLimits.of(program)
    assert [program.limit_name(int(row)) for row in np.flatnonzero(limits.rows)] == ["tasks of user-1", "gpu of q"]
    # A unit of the share of either is 24 GPUs.
    assert limits.uses.toarray() == pytest.approx(np.array([[24, 0], [24, 24]]))
    assert limits.left(np.array([2 / 24, 4 / 24])) == pytest.approx([1, 0])
    assert limits.users_of(np.array([False, True])).tolist() == [True, True]
    assert limits.others.bounds.tolist() == program.limits.bounds[~limits.rows].tolist()
    assert limits.others.matrix.toarray().tolist() == program.limits.matrix.toarray()[~limits.rows].tolist()


def test_a_share_that_depends_on_the_server_leaves_limits_as_rows() -> None:
    """Under a utility of one's own, three tasks are no one share."""
    instance = fo.Instance([[4], [20]], [[1]], tasks=[3])
    program = fo.formulate(instance, "max-min", utility=[[1, 2]])
    assert not ShareLimits.of(program).rows.any()
