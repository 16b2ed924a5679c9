"""The conditions of alpha-fair answers under least tasks of users, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate.conditions import ruled_violation
from fairopt.program import AlphaFair

# a has to have 6 tasks, and with so small a weight it wants no more; b has what is left, 3 tasks on each server.
TWO = fo.Instance([[12], [6]], [[1], [2]], weights=[1e-20, 1], users=["a", "b"], servers=["s", "t"], rules=["x[a] >= 6"])
TASKS = np.array([6.0, 0.0, 3.0, 3.0])


def violation(tasks: np.ndarray, prices: list[float], alpha: float = 1.0) -> float:
    """Return the violation of a user, at prices of the servers and of the rule in parts of what a task is worth to b."""
    program = fo.formulate(TWO, "proportional", alpha=alpha)
    assert isinstance(program.goal, AlphaFair)
    return ruled_violation(program, program.goal, tasks, 6.0**-alpha * np.array(prices))[1]


@pytest.mark.parametrize("alpha", [1.0, 8.0, 30.0, 100.0])
def test_worth_that_rounding_hides(alpha: float) -> None:
    """Two units of a server are a task of b; the rule pays for what a's costs. Other prices are seen, however little a's is worth."""
    assert violation(TASKS, [0.5, 0.5, 0.5], alpha) <= 1e-15
    for wrong in ([0.5, 0.5, 0.4999], [0.5, 0.5, 0.5001], [0.5, 0.4999, 0.5], [0.5001, 0.5, 0.5]):
        assert 1e-5 <= violation(TASKS, wrong, alpha) <= 1e-2
    assert violation(TASKS, [0.5, 0.5, 0.0], alpha) >= 1e15  # a pays for what it does not want


def test_tasks_on_the_dearer_server() -> None:
    """What a has on t is a waste if t costs more than s."""
    assert violation(np.array([5.0, 1.0, 3.5, 2.5]), [0.5, 0.5, 0.5]) <= 1e-15
    assert violation(np.array([5.0, 1.0, 3.5, 2.5]), [0.5, 0.501, 0.5]) >= 1e-4


@pytest.mark.parametrize("more", [1e-3, 1.0])
def test_more_than_the_least(more: float) -> None:
    """A rule has no price where its user has more than it asks for."""
    assert violation(TASKS + np.array([more, 0.0, -more / 2, 0.0]), [0.5, 0.5, 0.5]) >= more / 12
