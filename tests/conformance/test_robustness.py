"""A fixed sample of tests/robustness.py: two instances of every kind through every way."""

from __future__ import annotations

import pytest
from instances import KINDS
from robustness import TOLERANCE, compare


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_degenerate_instances_are_solved_and_certified(seed: int) -> None:
    """No failure; residuals below 1e-8; levels, totals and gradients as HiGHS has them."""
    table = compare([seed, seed + len(KINDS)])
    assert sum(worst.solved for worst in table.values()) >= 12
    for key, worst in table.items():
        assert not worst.failures, (key, worst.failures)
        assert not worst.refused or key[0] == "one huge user", (key, worst.refused)
        assert worst.residual <= TOLERANCE, key
        assert worst.difference <= 10 * TOLERANCE, key


@pytest.mark.parametrize("seed", [1159, 1339])
def test_tasks_worth_thirty_orders_of_magnitude(seed: int) -> None:
    """At alpha = 5 another task of who has a millionth of one, and all its tasks, has more worth than there are digits for the others'."""
    table = compare([seed])
    for key, worst in table.items():
        assert not worst.failures, (key, worst.failures)
        assert worst.difference <= TOLERANCE, key
    assert {worst.by_another for (_, goal, _), worst in table.items() if goal == "alpha-fair"} == {0}


@pytest.mark.parametrize("seed", [77, 937, 1597])
def test_levels_of_users_who_pay_a_millionth(seed: int) -> None:
    """What one user lacks of a level, 1e-11 of it, the others have: 4e-6 too much, were it not seen."""
    for key, worst in compare([seed]).items():
        assert not worst.failures, (key, worst.failures)
        assert worst.difference <= TOLERANCE, key
