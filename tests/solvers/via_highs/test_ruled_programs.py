"""Rules by this engine, on an instance worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.contradictions import contradiction
from fairopt.solvers.via_highs.ruled import solve_ruled
from fairopt.solvers.via_highs.settings import SETTINGS
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
    assert isinstance(error, fo.NoSolution)
    assert "contradiction" not in error.known


def test_a_contradiction_is_proved_by_more_than_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """12.0000001 of 12 GPUs; what would be rounding, were sums that inexact, proves nothing, and neither does a rule that can be met."""
    program, late = fo.formulate(LAB.replace(rules=["x[vision] >= 12.0000001"]), "efficiency"), Deadline(None)
    named = ["x[vision] >= 12.0000001", "resource-1 @ server-1"]
    assert contradiction(program, late, proved=True) == named
    assert contradiction(fo.formulate(LAB.replace(rules=["x[vision] >= 12"]), "efficiency"), late, proved=True) == []
    monkeypatch.setattr("fairopt.solvers.via_highs.contradictions.SETTINGS", SETTINGS._replace(rounding_of_proof=1e-7))
    assert contradiction(program, late, proved=True) == []
    assert contradiction(program, late) == named


def test_an_error_that_says_nothing_of_the_rules_names_them_where_they_contradict() -> None:
    """An answer that fails its check; where all rules can be met, where there are none, or no time is left, the error stays."""
    failed = fo.CertificateError("fails its check")
    for rules, limit, kept in (
        (["x[vision] >= 13"], None, False),
        (["x[vision] >= 1"], None, True),
        ([], None, True),
        (["x[vision] >= 13"], 0.0, True),
    ):
        program = fo.formulate(LAB.replace(rules=rules), "efficiency")
        assert (with_contradiction(program, failed, Deadline(limit)) is failed) == kept
