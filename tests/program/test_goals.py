"""What a task counts in a goal, and what the cheapest unit of it costs."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo


@pytest.mark.parametrize(
    ("notion", "worth"),
    [
        ("drfh", [1 / 4, 2 / 4 / 2]),  # a level is a dominant share, d / c, over the weight
        ("max-min", [1, 1 / 2]),  # tasks over the weight
        ("efficiency", [1, 2]),  # tasks times the weight
        ("proportional", [1, 1]),  # U[n] is a number of tasks, the weight a factor of its logarithm
    ],
)
def test_what_a_task_counts(notion: str, worth: list[float]) -> None:
    """Of a server with 4 cores, and users of weights 1 and 2 whose tasks take 1 core and 2."""
    program = fo.formulate(fo.Instance([[4.0]], [[1.0], [2.0]], weights=[1, 2]), notion)
    np.testing.assert_allclose(program.worth, worth, rtol=1e-15)


def test_the_cheapest_unit_of_each_user() -> None:
    """Two users on two servers; the second user is eligible on the second server alone, and the third on none."""
    instance = fo.Instance([[4.0], [4.0]], [[1.0], [1.0], [1.0]], eligibility=[[True, True], [False, True], [False, False]])
    program = fo.formulate(instance, "drfh")
    assert program.pair_users.tolist() == [0, 0, 1]
    assert program.cheapest(np.array([3.0, 2.0, 5.0])).tolist() == [2, 5, 0]
    assert program.cheapest(np.array([3.0, np.inf]), np.array([0, 2])).tolist() == [3, 0, 0]
