"""Rules by this engine, on an instance worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.contradictions import contradiction
from fairopt.solvers.via_highs.ruled import solve_ruled
from fairopt.solving.contradictions import with_contradiction

LAB = fo.Instance([[12]], [[1], [1]], users=["vision", "course"])


def test_twice_as_much() -> None:
    """8 and 4 of 12."""
    program = fo.formulate(LAB.replace(rules=["x[vision] == 2 * x[course]"]), "max-min")
    np.testing.assert_allclose(solve_ruled(program, Deadline(None)).x, [8, 4], rtol=1e-9)


def test_nothing_is_feasible() -> None:
    """13 of 12."""
    with pytest.raises(fo.NoSolution, match="nothing is feasible"):
        solve_ruled(fo.formulate(LAB.replace(rules=["x[vision] >= 13"]), "efficiency"), Deadline(None))


def test_what_contradicts_what() -> None:
    """13 of 12 GPUs; a rule that can be met is not named, and nothing is where all can."""
    rules = ["x[vision] >= 13", "x[course] >= 1"]
    assert contradiction(fo.formulate(LAB.replace(rules=rules), "efficiency"), Deadline(None)) == [
        "x[vision] >= 13",
        "resource-1 @ server-1",
    ]
    assert contradiction(fo.formulate(LAB.replace(rules=rules[1:]), "efficiency"), Deadline(None)) == []


def test_no_time_is_left_to_find_what_contradicts_what() -> None:
    """An error of its own, which a solve turns into one that still says that nothing is feasible."""
    program = fo.formulate(LAB.replace(rules=["x[vision] >= 13"]), "efficiency")
    late = Deadline(0.0)
    with pytest.raises(fo.NoSolution, match="time limit"):
        contradiction(program, late)
    error = with_contradiction(program, fo.NoSolution("nothing is feasible", {"infeasible": True}), late)
    assert str(error).startswith("no allocation obeys the rules")
    assert "contradiction" not in error.known
