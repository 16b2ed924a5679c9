"""The users of an alpha-fair goal on its path, and the end of the path: optima and errors worked out by hand, on one server."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Solution, Tradeoff
from fairopt.solvers.interior_point.alpha_fair_end import best_end, error_of
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

WEIGHTS = np.array([1.0, 3.0])


def two_users(alpha: float = 1.0, tasks: list[float] | None = None) -> Worths:
    """A server of one unit, of which a task of either user takes all: scaled values are tasks, or parts of the most that one may have."""
    instance = fo.Instance([[1]], [[1], [1]], weights=WEIGHTS, tasks=tasks)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    assert isinstance(program.goal, AlphaFair)
    return Worths(lay_out(ScaledProgram.of(program), NUMPY), alpha, program.goal.weights)


def price_of(cost: float, worths: Worths) -> FloatArray:
    """The server's one price."""
    return np.full_like(worths.pairs.use(np.zeros(2)), cost)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_a_user_demands_what_is_worth_the_price(alpha: float) -> None:
    """phi v^-alpha, and back."""
    worths, v = two_users(alpha), np.array([0.2, 0.7])
    np.testing.assert_allclose(worths.worth(v), WEIGHTS * v**-alpha, rtol=1e-14)
    np.testing.assert_allclose(np.exp(worths.demand(worths.worth(v))[0]), v, rtol=1e-14)
    off, elasticity = worths.off(v, worths.worth(v) * 1.1)
    np.testing.assert_allclose(off, -np.log(1.1) / alpha, rtol=1e-12)
    np.testing.assert_allclose(elasticity, 1 / alpha, rtol=1e-14)


def test_money_in_another_unit() -> None:
    """Marginal utilities are counted in it; prices of the program are in the unit of before."""
    worths, x = two_users(), np.array([0.25, 0.75])
    before = worths.prices(price_of(4.0, worths), x)
    worths.count_in(np.log(8.0))
    np.testing.assert_allclose(worths.worth(x), 4.0 / 8.0, rtol=1e-14)
    np.testing.assert_allclose(worths.prices(price_of(0.5, worths), x), before, rtol=1e-14)
    np.testing.assert_allclose(before[before > 0], [4.0], rtol=1e-14)


def test_a_stopped_user_pays_the_least_cost() -> None:
    """User 1 may have half of the server, which is worth 6 to it; user 0 has the rest, worth 2, the price. The limit costs the other 4."""
    worths, x = two_users(tasks=[np.inf, 0.5]), np.array([0.5, 1.0])
    paid, missing, stopped = worths.paid(x, price_of(2.0, worths))
    assert stopped is not None
    assert stopped.tolist() == [False, True]
    np.testing.assert_allclose(paid, [2.0, 1.0], rtol=1e-14)  # of half a task
    np.testing.assert_allclose(missing, 0.0, atol=1e-15)
    np.testing.assert_allclose(worths.paid(np.array([0.5, 0.8]), price_of(2.0, worths))[1], [0.0, 0.2], rtol=1e-14)
    prices = worths.prices(price_of(2.0, worths), x)
    np.testing.assert_allclose(np.sort(prices[prices > 0]), [2.0, 4.0], rtol=1e-12)
    assert error_of(worths, x, price_of(2.0, worths)).error < 1e-15


def test_the_error_of_a_point() -> None:
    """The optimum is 1/4 and 3/4 at a price of 4."""
    worths, x = two_users(), np.array([0.25, 0.75])
    assert error_of(worths, x, price_of(4.0, worths)).error < 1e-15
    assert error_of(worths, x / 2, price_of(4.0, worths)).error < 1e-15  # the fullest limit is filled first
    assert error_of(worths, x, price_of(5.0, worths)).error == pytest.approx(0.25)  # each pair costs 5 and is worth 4
    assert error_of(worths, x, price_of(3.0, worths)).error == pytest.approx(0.25)  # each is worth 4 and costs 3
    even = error_of(worths, np.array([0.5, 0.5]), price_of(4.0, worths))  # worth 2 and 6
    assert even.error == pytest.approx(1.0)  # user 0 pays 4 for what is worth 2
    np.testing.assert_array_equal(even.x, [0.5, 0.5])


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_active_sets_give_the_optimum(alpha: float) -> None:
    """From a point that is 1e-8 off: both pairs are used and the limit is full, and x is w^(1/alpha) over its sum."""
    worths = two_users(alpha)
    pairs = worths.pairs
    optimum = WEIGHTS ** (1 / alpha) / np.sum(WEIGHTS ** (1 / alpha))
    price = float(WEIGHTS[0] * optimum[0] ** -alpha)
    x = optimum * [1 - 2e-8, 1 - 1e-8]
    p = price_of(price * (1 + 1e-8), worths)
    tiny = np.full(2, 1e-9)
    point = Point(pairs.point(x, np.full_like(p, 1e-9), x), pairs.point(tiny, p, worths.worth(x)), 0.0)
    assert error_of(worths, x, p).error > 1e-9
    end = best_end(worths, point, np.full_like(p, 1.0), 1e-14)
    assert end.error < 1e-13
    np.testing.assert_allclose(end.x, optimum, rtol=1e-13)
    np.testing.assert_allclose(end.p, price, rtol=1e-13)


def test_the_worth_of_the_total_follows() -> None:
    """kappa = e / (1 - e) T / S is that of the goal, and its derivatives are those of differences."""
    program = fo.formulate(fo.Instance([[1]], [[1], [2]], weights=WEIGHTS), "gfj", beta=3, lam=-1)
    goal = program.goal
    assert isinstance(goal, Tradeoff)
    e = goal.efficiency
    worths = Worths(lay_out(ScaledProgram.of(program), NUMPY), goal.beta, goal.weights, log_odds=float(np.log(e / (1 - e))))
    v = np.array([0.2, 0.7])
    at = worths.following(v)
    assert at.log_kappa == pytest.approx(goal.log_total_worth(v * worths.pairs.scaled.reach), abs=1e-14)
    np.testing.assert_allclose(at.worth(v) / worths.pairs.scaled.reach, np.exp(goal.log_worth(v * worths.pairs.scaled.reach)), rtol=1e-14)
    push, pull = at.of_total(v)
    h = 1e-6
    for n in range(2):
        beyond, before = v.copy(), v.copy()
        beyond[n] += h
        before[n] -= h
        assert pull[n] == pytest.approx((worths.following(beyond).log_kappa - worths.following(before).log_kappa) / (2 * h), rel=1e-8)
    m, higher, lower = at.worth(v), at.following(v), at.following(v)
    higher.log_kappa += h
    lower.log_kappa -= h
    np.testing.assert_allclose(push, (higher.off(v, m)[0] - lower.off(v, m)[0]) / (2 * h), rtol=1e-6)


def test_a_user_stopped_by_a_second_row_wastes_nothing() -> None:
    """User 1 may be on half of a server at once, for which it pays 4 besides the server's price of 2; without it, the end has an error."""
    instance = fo.Instance([[1]], [[1], [1]], weights=WEIGHTS, parallelism=[np.inf, 0.5])
    program = fo.formulate(instance, "proportional")
    assert isinstance(program.goal, AlphaFair)
    worths = Worths(lay_out(ScaledProgram.of(program, at_once=True), NUMPY), 1.0, program.goal.weights)
    x = 0.5 / worths.pairs.scaled.scale
    prices = worths.prices(price_of(2.0, worths), x, np.array([2.0]))
    assert error_of(worths, x, price_of(2.0, worths), np.array([2.0])).error < 1e-14
    assert certify(program, Solution(np.array([0.5, 0.5]), prices=prices)).worst < 1e-14
    assert error_of(worths, x, price_of(2.0, worths), np.array([1.0])).error > 0.1
    idle = error_of(worths, x / 2, price_of(2.0, worths), np.array([2.0]))
    assert idle.error > 0.1
