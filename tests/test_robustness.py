"""A fixed sample of tests/robustness.py: two instances of every kind through every way."""

from __future__ import annotations

import pytest
from robustness import KINDS, TOLERANCE, compare


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_degenerate_instances_are_solved_and_certified(seed: int) -> None:
    """No failure; residuals below 1e-8; levels, totals and gradients as HiGHS has them."""
    table = compare([seed, seed + len(KINDS)])
    assert sum(worst.solved for worst in table.values()) >= 12
    for key, worst in table.items():
        assert not worst.failures, (key, worst.failures)
        assert worst.residual <= TOLERANCE, key
        assert worst.difference <= 10 * TOLERANCE, key
