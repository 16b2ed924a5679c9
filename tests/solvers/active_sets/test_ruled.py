"""Alpha-fair answers under rules made exact, on an instance worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Solution
from fairopt.solvers.active_sets.ruled import polish_along_powers, polish_ruled
from fairopt.solvers.backend import Deadline

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


TASKS = [[4.0, 5.0, 2.0], [3.0, 3.0, 6.0]]


@pytest.mark.parametrize("start", TASKS)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
@pytest.mark.parametrize(
    "rules", [["x[a] == x[b]"], ["x[a] == x[b]", "x[b] >= x[a]", "2 * x[a] == 2 * x[b]"], ["x[a] == x[b]", "x[b] == x[c]", "x[a] == x[c]"]]
)
def test_equations(rules: list[str], alpha: float, start: list[float]) -> None:
    """Equal users share equally whatever alpha; an equation leaves no slack, and several may depend on one another."""
    program = fo.formulate(LAB.replace(rules=rules), "proportional", alpha=alpha)
    found = polish_ruled(program, Solution(np.array(start)))
    assert found is not None
    np.testing.assert_allclose(found.x, [4, 4, 4], rtol=1e-12)
    assert certify(program, found).worst <= 1e-12


def test_an_equation_that_moves_others() -> None:
    """log a + 3 log b + log c with a = b and 12 tasks: a and b have 4 / 5 of them."""
    program = fo.formulate(LAB.replace(rules=["x[a] == x[b]"], weights=[1, 3, 1]), "proportional")
    found = polish_ruled(program, Solution(np.array([4.0, 5.0, 2.0])))
    assert found is not None
    np.testing.assert_allclose(found.x, [4.8, 4.8, 2.4], rtol=1e-12)
    assert certify(program, found).worst <= 1e-12


def test_a_poor_user() -> None:
    """At alpha = 4 the money of c, 10^-12 of that of the others, is as exact as theirs: c + 2 d <= 1 and a + b <= 11."""
    pool = fo.Instance([[11], [1]], [[1], [1], [1], [2]], eligibility=[[1, 0], [1, 0], [0, 1], [0, 1]], weights=[1, 1, 1e-12, 1e-12])
    program = fo.formulate(pool.replace(rules=["x['user-1'] == x['user-2']"]), "proportional", alpha=4)
    found = polish_ruled(program, Solution(np.array([5.0, 6.0, 0.4, 0.3])))
    assert found is not None
    d = 1 / (2 + 2**0.25)  # c^-4 = d^-4 / 2
    np.testing.assert_allclose(program.per_user(found.x), [5.5, 5.5, 2**0.25 * d, d], rtol=1e-9)
    assert certify(program, found).worst <= 1e-9


@pytest.mark.parametrize("alpha", [2.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_by_way_of_smaller_powers(alpha: float, seed: int) -> None:
    """One resource, of which u0 has three times the tasks of u1, whose weights differ by up to five orders, far from the optimum.

    With x0 = 3 s and x1 = s, each of s and the other x has (worth of one more, without the power) / (what it takes) as x^alpha.
    """
    rng = np.random.default_rng(seed)
    weights, takes = 10 ** rng.uniform(-2.5, 2.5, 5).round(2), rng.uniform(0.1, 2, 5).round(2)
    instance = fo.Instance([[10]], takes[:, None], weights=weights, users=[f"u{n}" for n in range(5)], rules=["x[u0] == 3 * x[u1]"])
    worth = np.concatenate([[weights[0] * 3 ** (1 - alpha) + weights[1]], weights[2:]])
    cost = np.concatenate([[3 * takes[0] + takes[1]], takes[2:]])
    x = (worth / cost) ** (1 / alpha)
    s, *others = x * 10 / (x @ cost)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    found = polish_along_powers(program, Solution(rng.uniform(1e-3, 5, 5)))
    assert found is not None
    np.testing.assert_allclose(found.x, [3 * s, s, *others], rtol=1e-9)
    assert certify(program, found).worst <= 1e-9


def test_small_powers_need_no_way() -> None:
    """At alpha = 1 the steps are those of `polish_ruled`; a leximin has none."""
    ruled = LAB.replace(rules=["x[a] >= 6"])
    for program in (fo.formulate(ruled, "proportional", alpha=1.0), fo.formulate(ruled, "drfh")):
        assert polish_along_powers(program, Solution(np.ones(3))) is None


class Looks(Deadline):
    """A deadline that passes after it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__(None)
        self.looks = looks

    @property
    def left(self) -> float:
        """inf, and then 0."""
        self.looks -= 1
        return float("inf") if self.looks >= 0 else 0.0


def test_at_the_deadline_the_steps_end_where_they_are() -> None:
    """A step before the last one the answer is near, and after the first step it is not."""
    program, start = fo.formulate(LAB.replace(rules=["x[a] >= 6"]), "proportional", alpha=2), Solution(np.array([4.0, 5.0, 2.0]))
    exact = polish_ruled(program, start)
    assert exact is not None
    near = polish_ruled(program, start, Looks(exact.iterations - 2))
    assert near is not None
    assert near.iterations == exact.iterations - 1
    np.testing.assert_allclose(near.x, [6, 3, 3], rtol=1e-6)
    assert polish_ruled(program, start, Looks(0)) is None
    assert polish_along_powers(program, start, Looks(exact.iterations)) is None
    assert polish_along_powers(program, start, Looks(1000)) is not None


@pytest.mark.parametrize("users", [40, 104])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_users_of_few_columns_have_all_digits_under_rules(users: int, alpha: float) -> None:
    """One resource, floors and equations that depend on one another: user by user, a step near the end would miss its equations by 1e-5."""
    rng = np.random.default_rng(3)
    eligibility = rng.random((users, 12)) < 0.5
    eligibility[np.arange(users), rng.integers(12, size=users)] = True
    rules = ["x['user-8'] >= 1.5", "x['user-9'] >= 3", "x['user-1'] == 2 * x['user-2']", "x['user-2'] == 3 * x['user-3']"]
    rules.append("x['user-1'] == 6 * x['user-3']")
    instance = fo.Instance(rng.uniform(1, 10, (12, 1)), rng.uniform(0.01, 0.1, (users, 1)), eligibility=eligibility, rules=rules)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    found = polish_ruled(program, Solution(np.full(program.n_pairs, 5.0 / 12)))
    assert found is not None
    assert certify(program, found).worst <= 1e-11
