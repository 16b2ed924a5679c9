"""Rules by this engine, on an instance worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_pyomo.ruled import solve_with_rules
from fairopt.solvers.via_pyomo.running import solver

LAB = fo.Instance([[12]], [[1], [1]], users=["vision", "course"])


def test_twice_as_much() -> None:
    """8 and 4 of 12."""
    program = fo.formulate(LAB.replace(rules=["x[vision] == 2 * x[course]"]), "max-min")
    np.testing.assert_allclose(solve_with_rules(program, solver(None), Deadline(None)).x, [8, 4], rtol=1e-8)


def test_nothing_is_feasible() -> None:
    """13 of 12."""
    with pytest.raises(fo.NoSolution, match="nothing is feasible"):
        solve_with_rules(fo.formulate(LAB.replace(rules=["x[vision] >= 13"]), "efficiency"), solver(None), Deadline(None))


def test_a_model_has_the_rule() -> None:
    """Under its text."""
    model = fo.to_pyomo(LAB.replace(rules=["x[vision] >= 2 * x[course]"]), "max-min")
    assert [str(label) for label in model.rules] == ["x[vision] >= 2 * x[course]"]
