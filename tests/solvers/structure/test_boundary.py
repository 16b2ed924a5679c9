"""How far a step may go, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.solvers.structure.boundary import length


@pytest.mark.parametrize(
    ("change", "part", "expected"),
    [
        ([-4.0, 1.0], 1.0, 0.25),
        ([-4.0, -10.0], 1.0, 0.2),
        ([-4.0, 1.0], 0.9, 0.225),
        ([-0.5, 3.0], 0.9, 1.0),
        ([-0.95, 0.0], 0.9, 0.9 / 0.95),
    ],
)
def test_the_first_value_that_becomes_0(change: list[float], part: float, expected: float) -> None:
    """Of 1 and 2; never beyond the step itself."""
    assert length(np, np.array([1.0, 2.0]), np.array(change), part) == pytest.approx(expected, rel=1e-15)
