"""The gap of prices of programs of agents."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.certificate.floors import _gap
from fairopt.program.agents import AgentProgram


def test_a_price_that_is_short_is_charged_or_raised() -> None:
    """Column 0 may carry 10 and costs 1 of the limit of 10; column 1 another limit of 1,000 alone.

    Short by 0.1, column 0 is charged for 10, that is 1; or the price of its own limit is raised by a tenth of it: by 1, too. Short where it
    costs nothing it is charged.
    """
    one = np.ones(1)
    program = AgentProgram([(np.array([0]), one), (np.array([1]), one)], np.array([10.0, 1000.0]), [], 2, False)
    prices = np.array([1.0, 1.0])
    assert _gap(program, prices, np.array([0.1, 0.0]), prices, 0.0) == pytest.approx(1.0)
    assert _gap(program, prices, np.array([0.1, 0.0]), prices, -0.5) == pytest.approx(0.5)
    assert _gap(program, np.array([0.0, 1.0]), np.array([0.1, 0.0]), np.array([0.0, 1.0]), 0.0) == pytest.approx(1.0)
