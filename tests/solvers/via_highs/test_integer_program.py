"""The point of a search that was stopped: none that breaks a row, and never a bound below the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.backend import Status
from fairopt.solvers.via_highs.integer_program import IntegerProgram

MATRIX: sp.csr_array = sp.csr_array(np.ones((1, 2)))


def program(cost: list[float], upper: list[float]) -> IntegerProgram:
    """maximise cost @ x, 1 <= x[0] + x[1] <= 5, x <= upper, x[0] whole."""
    return IntegerProgram(np.array(cost), np.zeros(2), np.array(upper), MATRIX, np.array([1.0]), np.array([5.0]), np.array([0]))


BOUNDS = program([2.0, 1.0], [3.0, 4.0])  # the optimum is 8, and 10 without the row


@pytest.mark.parametrize(("bound", "expected"), [(9.0, 9.0), (None, 10.0), (6.0, 7.0)])
def test_the_gap_is_that_between_value_and_bound(bound: float | None, expected: float) -> None:
    """x = 2, y = 3 is worth 7; without a bound of the solver, each column is at its end; a bound below the point is wrong by rounding."""
    found = BOUNDS.outcome(Status.TIME_LIMIT, np.array([2.0, 3.0]), bound)
    assert (found.status, found.bound, found.gap) == (Status.TIME_LIMIT, expected, (expected - 7) / 7)


@pytest.mark.parametrize("x", [[3.0, 3.0], [0.0, 0.5], [1.5, 1.0], [4.0, 0.0], [-1.0, 3.0], [np.nan, 1.0], [1.0]])
def test_what_is_no_point_is_left_out(x: list[float]) -> None:
    """A row above or below, a part of a whole column, beyond a bound, no number, too few."""
    found = BOUNDS.outcome(Status.TIME_LIMIT, np.array(x), 9.0)
    assert (found.x.size, found.gap, found.bound) == (0, np.inf, 9.0)


def test_columns_without_an_end_give_no_bound() -> None:
    """Unless the goal leaves them out."""
    assert program([1.0, 0.0], [np.inf, np.inf]).largest() == np.inf
    assert program([0.0, -1.0], [np.inf, np.inf]).largest() == 0
