"""Programs with rules in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

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


SUMS = fo.Instance([[10]], [[1], [1], [2]], users=["a", "b", "c"], servers=["s"])


@pytest.mark.parametrize(("alpha", "tasks"), [(1, [Fraction(40, 9), Fraction(20, 9), Fraction(5, 3)]), (2, [4, 2, 2])])
def test_proportional_fairness_under_rules_in_fractions(alpha: int, tasks: list[Fraction]) -> None:
    """10 = 3 b + 2 c: 2 log b + log c is largest at b = 20 / 9, and -3 / (2 b) - 1 / c at b = c."""
    found = fo.solve(SUMS.replace(rules=["x[a] == 2 * x[b]"]), "proportional", alpha=alpha, exact=True).exact
    assert found is not None
    assert found.tasks_per_user.tolist() == tasks


@pytest.mark.parametrize(
    ("notion", "options"), [("proportional", {"alpha": 0.5}), ("fds", {"beta": 2, "lam": -1}), ("gfj", {"beta": 0.5, "lam": 1})]
)
def test_sums_of_worths_are_enclosed_under_rules(notion: str, options: dict[str, Any]) -> None:
    """The rules hold exactly, though the optimum is irrational: c = 1 / 3, a = b + 2 or more, and a + b = 10 - 2 / 3."""
    ruled = SUMS.replace(rules=["x[c] == 1/3", "x[a] >= x[b] + 2"])
    found = fo.solve(ruled, notion, exact=True, **options).exact
    assert found is not None
    a, b, c = found.tasks_per_user
    assert c == Fraction(1, 3)
    assert a - b >= 2
    assert a + b + 2 * c <= 10
    assert fo.solve(ruled, notion, **options).tasks_per_user.tolist() == pytest.approx([float(a), float(b), 1 / 3], rel=1e-7)


def test_a_rule_that_holds_with_equality_and_costs_nothing() -> None:
    """b and d have the same without the rule, and no rounding may break it."""
    demands = [[3, 0], [2, 1], [2, 1], [2, 1]]
    pool = fo.Instance([[9, 10], [6, 5], [3, 9]], demands, weights=[5, 1, 1, 1], users=["a", "b", "c", "d"], servers=["s", "t", "u"])
    plain = fo.solve(pool, "proportional", alpha=2, exact=True).exact
    ruled = fo.solve(pool.replace(rules=["x[b] >= x[d]"]), "proportional", alpha=2, exact=True).exact
    assert plain is not None
    assert ruled is not None
    assert ruled.tasks_per_user[1] >= ruled.tasks_per_user[3]
    assert ruled.tasks_per_user.astype(float).tolist() == pytest.approx(plain.tasks_per_user.astype(float).tolist(), rel=1e-15)
