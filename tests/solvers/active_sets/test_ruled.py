"""Alpha-fair answers under rules made exact, on an instance worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Solution
from fairopt.solvers.active_sets.ruled import polish_ruled

LAB = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s"])


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_a_floor(alpha: float) -> None:
    """a has 6 by rule, and the others share the rest, from a start that breaks the rule."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "proportional", alpha=alpha)
    found = polish_ruled(program, Solution(np.array([4.0, 5.0, 2.0])))
    assert found is not None
    np.testing.assert_allclose(found.x, [6, 3, 3], rtol=1e-9)
    assert certify(program, found).worst <= 1e-9


def test_no_goal_of_this_kind() -> None:
    """A leximin has no such equations."""
    assert polish_ruled(fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "drfh"), Solution(np.ones(3))) is None
