"""Programs with rules in fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import fmpq

import fairopt as fo
from fairopt.certificate.exact import prove
from fairopt.instance.fractions import from_rationals
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.ruled import solve_ruled, total_ruled

RULED = fo.Instance([[12, 9]], [[1, 1], [1, 0], [2, 1]], users=["a", "b", "c"], rules=["x[a] >= 2 * x[b]", "x[c] >= 1/3"])


def exact(instance: fo.Instance, notion: str) -> ExactProgram:
    """The program in fractions."""
    return fo.NOTIONS[notion]().in_fractions(instance.exact, fo.formulate(instance, notion))


def test_levels_are_proved() -> None:
    """b = t, c = t, a = 2 t, 5 t = 12: the floor of c is no limit."""
    program = exact(RULED, "max-min")
    solution = solve_ruled(program, Deadline(None))
    prove(program, solution)
    assert from_rationals(solution.x).tolist() == [Fraction(24, 5), Fraction(12, 5), Fraction(12, 5)]


def test_totals_are_proved() -> None:
    """Of 12 and 9, c takes 2/3 and 1/3."""
    program = exact(RULED, "efficiency")
    solution = total_ruled(program, Deadline(None))
    prove(program, solution)
    assert solution.x.tolist() == [fmpq(26, 3), fmpq(8, 3), fmpq(1, 3)]


def test_nothing_is_feasible() -> None:
    """13 of 12."""
    with pytest.raises(fo.NoSolution, match="nothing is feasible"):
        solve_ruled(exact(RULED.replace(rules=["x[b] >= 13"]), "max-min"), Deadline(None))


def test_nobody_rises() -> None:
    """All weights are 0: there is no part to fill, and a has what the rule demands or more."""
    resting = fo.Instance([[12]], [[1], [1]], users=["a", "b"], queues=[fo.Queue("q", weight=0)], queue_of=["q", "q"], rules=["x[a] >= 2"])
    found = fo.solve(resting, "drfh", exact=True)
    assert found.exact is not None
    assert found.exact.tasks_per_user[0] >= 2
