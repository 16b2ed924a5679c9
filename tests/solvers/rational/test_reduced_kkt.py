"""The reduced conditions of an alpha-fair optimum against solutions by hand, and the numbers of what they are computed from."""

from __future__ import annotations

import pytest
from flint import arb, ctx, fmpq

from fairopt.solvers.rational.enclosing import Enclosing, in_worth, marginal_worth, rounded, small_fraction, utilities_of, within_limits
from fairopt.solvers.rational.reduced_kkt import newton, reduced_conditions, utilities_at, worth_and_prices

TWO_ON_ONE = Enclosing([0, 1], [fmpq(1)] * 2, [{0: fmpq(1), 1: fmpq(3)}], [fmpq(9)], [fmpq(2), fmpq(1)], fmpq(1), fmpq(0))


def test_one_price_for_two_users() -> None:
    """z0 = p, z1 = 3 p: one unknown, and 9 p = 3 with logarithms."""
    reduced = reduced_conditions(TWO_ON_ONE, frozenset({0, 1}), frozenset({0}), [arb("0.3")], [arb(6), arb(1)])
    assert reduced is not None
    assert len(reduced.users) == 1
    solved = newton(TWO_ON_ONE, reduced, [arb("5.9"), arb("1.1")])
    assert solved is not None
    z, prices = worth_and_prices(reduced, solved[0])
    assert float(prices[0]) == pytest.approx(1 / 3)
    assert [float(value) for value in utilities_at(TWO_ON_ONE, z, solved[1])] == pytest.approx([6, 1])


def test_a_pair_that_no_price_pays_for() -> None:
    """Somebody's worth would be 0: the sets are wrong."""
    assert reduced_conditions(TWO_ON_ONE, frozenset({0, 1}), frozenset(), [arb("0.3")], [arb(6), arb(1)]) is None


def test_prices_that_are_not_unique() -> None:
    """Of two limits that are the same only one has a price."""
    goal = Enclosing([0], [fmpq(1)], [{0: fmpq(1)}, {0: fmpq(2)}], [fmpq(3), fmpq(6)], [fmpq(1)], fmpq(2), fmpq(0))
    reduced = reduced_conditions(goal, frozenset({0}), frozenset({0, 1}), [arb("0.05"), arb("0.03")], [arb(3)])
    assert reduced is not None
    assert len(reduced.P) == 1


def test_prices_between_which_a_pair_is_worth_its_cost() -> None:
    """Two limits hold user 0, and the price of one alone keeps user 1 away: it falls to what user 1 is worth, not to 0.

    User 0 pays 1 = p0 + p1, user 1 pays p2 = 0.2 elsewhere, and would use limit 0 if p0 < 0.2.
    """
    limits = [{0: fmpq(1), 1: fmpq(1)}, {0: fmpq(1)}, {2: fmpq(1)}]
    goal = Enclosing([0, 1, 1], [fmpq(1)] * 3, limits, [fmpq(1), fmpq(1), fmpq(5)], [fmpq(1)] * 2, fmpq(1), fmpq(0))
    utility = [arb(1), arb(5)]
    reduced = reduced_conditions(goal, frozenset({0, 2}), frozenset({0, 1, 2}), [arb("0.3"), arb("0.7"), arb("0.2")], utility)
    assert reduced is not None
    assert reduced.tied == {0, 1, 2}
    solved = newton(goal, reduced, utility)
    assert solved is not None
    _, prices = worth_and_prices(reduced, solved[0])
    assert {j: float(price) for j, price in prices.items()} == pytest.approx({0: 0.2, 1: 0.8, 2: 0.2})


def test_worth_and_kappa() -> None:
    """phi U^-beta + kappa with kappa = e / (1 - e) sum phi U^(1 - beta) / sum U, by hand."""
    goal = Enclosing([0, 1], [fmpq(1)] * 2, [], [], [fmpq(1), fmpq(2)], fmpq(2), fmpq(1, 2))
    z, kappa = marginal_worth(goal, [arb(1), arb(4)])
    assert float(kappa) == pytest.approx((1 + 2 / 4) / 5)
    assert [float(value) for value in z] == pytest.approx([1 + 0.3, 2 / 16 + 0.3])
    assert [float(value) for value in utilities_of(goal, [arb(2), arb(3)])] == [2, 3]


def test_money() -> None:
    """Prices in the unit in which all worth is spent."""
    assert [float(price) for price in in_worth(TWO_ON_ONE, [6.0, 1.0], [17.0])] == pytest.approx([1 / 3])


def test_numbers() -> None:
    """Rounding by significant digits, fractions of few digits, and one factor for what is over a limit."""
    assert rounded(fmpq(2, 3), 3, down=True) == fmpq(666, 1000)
    assert rounded(fmpq(2, 3) / 10**7, 3, down=False) == fmpq(667, 10**10)
    with ctx.workprec(400):
        assert small_fraction(arb(1) / 3) == fmpq(1, 3)
        assert small_fraction(arb(2).sqrt()) is None
        assert small_fraction((arb(-1)).log()) is None  # not a number
        assert small_fraction(arb("inf")) is None
    assert within_limits(TWO_ON_ONE, [fmpq(6), fmpq(2)]) == [fmpq(9, 2), fmpq(3, 2)]
