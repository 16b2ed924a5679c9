"""A leximin with a past: the pairs of the past, and what its optimum is, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program.past import PAST, WithPast
from fairopt.solvers import RememberedLevels
from fairopt.solving import formulate


def test_the_past_is_one_more_pair_for_each_user() -> None:
    """On a server of its own, with a limit of its own; tasks keep their limits, and the cap of a user counts both."""
    program = formulate(fo.Instance([[10.0]], [[1.0], [2.0]], tasks=[3, 4], users=["a", "b"]), "drfh")
    past = WithPast.of(program)
    now = past.at(program.limits.bounds, np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    assert now.servers == (*program.servers, PAST)
    assert now.pair_users.tolist() == [0, 0, 1, 1]
    assert now.utilities.tolist() == pytest.approx([0.1, 1.0, 0.2, 1.0])
    assert now.limits.bounds.tolist() == pytest.approx([10, 3, 4, 0.5, 0, 0.1 * 3 + 0.5, 0.2 * 4])


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ([0.0, 0.0], [5.0, 5.0]),
        ([0.4, 0.0], [3.0, 7.0]),  # 0.4 + 0.3 = 0.7
        ([1.5, 0.0], [1.0, 9.0]),  # b has all of its nine tasks, and a, who has had more, the rest
        ([9.0, 8.0], [1.0, 9.0]),
        ([7.0, 9.0], [10.0, 0.0]),
    ],
)
def test_who_has_had_less_comes_first(past: list[float], expected: list[float]) -> None:
    """Ten processors; a has 20 tasks, b has 9."""
    levels = RememberedLevels(formulate(fo.Instance([[10.0]], [[1.0], [1.0]], tasks=[1, 1]), "drfh"))
    program, solution = levels.solve_again(np.array([20.0, 9.0]), np.ones(2), np.array(past))
    tasks = np.bincount(program.pair_users, weights=solution.x * (program.pair_servers == 0))
    assert tasks.tolist() == pytest.approx(expected)
    assert certify(program, solution).worst <= 1e-8
