"""Limits that are limits on shares alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances import instance_in_queues

import fairopt as fo
from fairopt.program import TreeFilling
from fairopt.program.share_limits import ShareLimits, during


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


@pytest.mark.parametrize("seed", range(20))
def test_limits_of_a_part_are_put_together(seed: int) -> None:
    """Those of the program and of the guarantees, once; with bounds that are raised, too."""
    program = fo.formulate(instance_in_queues(seed), "drfh")
    if not isinstance(program.goal, TreeFilling):
        pytest.skip("a tree that needs no filling")
    for part in program.goal.parts:
        for raised in (None, 0.5):
            bounds = None if raised is None or part.extra is None else part.extra.bounds + raised
            of_part = during(program, part, bounds)
            found, anew = ShareLimits.of(of_part), ShareLimits.of(replace(of_part, name="anew"))
            assert found.rows.tolist() == anew.rows.tolist()
            assert found.bounds.tolist() == anew.bounds.tolist()
            assert found.uses.toarray().tolist() == anew.uses.toarray().tolist()
            assert found.by_user.toarray().tolist() == anew.uses.toarray().T.tolist()
            assert len(of_part.limits) == len(program.limits) + (0 if part.extra is None else len(part.extra))
