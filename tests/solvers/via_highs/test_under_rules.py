"""Who can have something under rules, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.under_rules import able_users
from fairopt.solving import notion_of
from fairopt.solving.posing import pose

LAB = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s"])


@pytest.mark.parametrize(
    ("rules", "able"),
    [
        (["x[a] >= 2 * x[b]"], [True, True, True]),
        (["x[a] == 0"], [False, True, True]),
        (["x[a] <= x[b] / 1000", "x[b] <= x[c] / 1000"], [True, True, True]),
        (["x[a] <= x[b] / 10000000"], [True, True, True]),  # at first nobody is asked for more than a part of an even share
        (["x[a] + x[b] <= 0.5 * x[a]"], [False, False, True]),
        (["x[a] >= 13"], [True, True, True]),
    ],
)
def test_by_hand(rules: list[str], able: list[bool]) -> None:
    """A millionth of what c has is something; where nothing is feasible, nobody is left out."""
    np.testing.assert_array_equal(able_users(fo.formulate(LAB.replace(rules=rules), "max-min")), able)


def test_a_time_limit_holds_before_the_goal_is_known() -> None:
    """Who can have something is asked while a program is posed."""
    ruled = LAB.replace(rules=["x[a] <= 0.5 * x[b]"])
    with pytest.raises(fo.NoSolution):
        pose(ruled, Optimum(notion_of("proportional")), "rdm", Deadline(0.0))


@pytest.mark.parametrize("integral", [False, True])
def test_a_rule_that_asks_for_what_nobody_can_run_is_named(integral: bool) -> None:
    """No user has an eligible server: there is no pair, and nothing is feasible."""
    nowhere = fo.Instance([[4]], [[1]], eligibility=[[0]], users=["a"], rules=["x[a] >= 1"])
    with pytest.raises(fo.NoSolution, match=r'the rule "x\[a\] >= 1" cannot be met'):
        fo.solve(nowhere, "drfh", integral=integral)
