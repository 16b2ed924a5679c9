"""The polish of alpha-fair answers under least tasks of users, by hand and against another solver."""

from __future__ import annotations

import numpy as np
import pytest
from instances import spread_instance

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Solution
from fairopt.solvers import candidates
from fairopt.solvers.active_sets.floored import polish_floored
from fairopt.solvers.backend import Deadline

LAB = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s"])


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0, 30.0])
def test_a_floor(alpha: float, unit: float) -> None:
    """a has 6 by rule, and the others share the rest, from a point that breaks the rule; prices may be in any unit of money."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "proportional", alpha=alpha)
    near = Solution(np.array([5.99, 3.02, 2.99]), prices=unit * np.array([3**-alpha, 3**-alpha - 6**-alpha]))
    found = polish_floored(program, near)
    assert found is not None
    assert found.prices is not None
    np.testing.assert_allclose(found.x, [6, 3, 3], rtol=1e-14)
    np.testing.assert_allclose(found.prices, [3**-alpha, 3**-alpha - 6**-alpha], rtol=1e-12)
    assert certify(program, found).worst <= 1e-13


def test_a_floor_that_nobody_feels() -> None:
    """Everybody has more anyway: the price of the rule is 0."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 3"]), "proportional")
    found = polish_floored(program, Solution(np.array([3.9, 4.0, 4.1]), prices=np.array([0.25, 0.0])))
    assert found is not None
    assert found.prices is not None
    np.testing.assert_allclose(found.x, [4, 4, 4], rtol=1e-14)
    np.testing.assert_allclose(found.prices, [0.25, 0.0], atol=1e-15)


def test_everybody_has_the_least() -> None:
    """The rules leave no choice. The prices prove it in a unit in which nobody's tasks are worth more than they cost."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 6", "x[b] >= 4", "x[c] >= 2"]), "proportional", alpha=2)
    found = polish_floored(program, Solution(np.array([6.0, 4.0, 2.0]), prices=1e9 * np.array([1.0, 0.9, 0.9, 0.9])))
    assert found is not None
    np.testing.assert_allclose(found.x, [6, 4, 2], rtol=1e-14)
    assert certify(program, found).worst <= 1e-13


@pytest.mark.parametrize(("rules", "tasks"), [(["x[a] >= 2"], [2, 5, 5]), (["x[a] >= 2", "x[b] >= 7"], [2, 7, 3])])
def test_a_floor_that_is_the_limit(rules: list[str], tasks: list[float]) -> None:
    """a has to have 2, and may have no more: the difference of worth and cost is the price of the limit, or of the rule."""
    program = fo.formulate(LAB.replace(tasks=[2, np.inf, np.inf], rules=rules), "proportional")
    prices = np.array([1 / tasks[-1], *[0.01] * (len(program.limits) - 1)])
    found = polish_floored(program, Solution(np.array(tasks, float), prices=prices))
    assert found is not None
    np.testing.assert_allclose(found.x, tasks, rtol=1e-13)
    assert certify(program, found).worst <= 1e-13


@pytest.mark.parametrize("rules", [["x[a] >= 2 * x[b]"], ["x[a] <= 3"]])
def test_other_rules(rules: list[str]) -> None:
    """They are no least tasks."""
    program = fo.formulate(LAB.replace(rules=rules), "proportional")
    assert polish_floored(program, Solution(np.array([4.0, 4.0, 4.0]), prices=np.array([0.25, 0.1]))) is None


def test_no_goal_of_this_kind() -> None:
    """A leximin has no such equations, and without prices nothing shows."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "drfh")
    assert polish_floored(program, Solution(np.ones(3), prices=np.ones(2))) is None
    assert polish_floored(fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "proportional"), Solution(np.array([6.0, 3.0, 3.0]))) is None


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_an_answer_of_another_solver(alpha: float) -> None:
    """From an answer of few digits to one of all, with least tasks of half of the users."""
    instance = spread_instance(20, 8, 3, 1, part=0.5)
    has = fo.solve(instance, "proportional").tasks_per_user
    ruled = instance.replace(rules=[f"x['{user}'] >= {0.6 * least}" for user, least in zip(instance.users[::2], has[1::2], strict=True)])
    program = fo.formulate(ruled, "proportional", alpha=alpha)
    rough = candidates(program, "cvxpy")[0].solve(program, tolerance=1e-8, deadline=Deadline(None))
    found = polish_floored(program, rough)
    assert found is not None
    assert certify(program, found).worst <= 1e-12
    np.testing.assert_allclose(program.per_user(found.x), program.per_user(rough.x), rtol=1e-4)
