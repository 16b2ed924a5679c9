"""The end of the central path in many digits shows sets that floats hide."""

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from fairopt.solvers.rational.central_end import ends_of_path
from fairopt.solvers.rational.enclosing import Enclosing


def program(alpha: int, rules: frozenset[int] = frozenset()) -> Enclosing:
    """User 0 takes a CPU and memory on server 0 or 1, user 1 a CPU there, users 2 and 3 memory of servers 0 and 1.

    User 0 is on server 1 alone (`tests/certificate/test_hidden_prices.py`): the pairs are (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 1).
    """
    one = fmpq(1)
    limits = [{0: one, 2: one}, {0: one, 4: one}, {1: one, 3: one}, {1: one, 5: one}]
    bounds = [fmpq(value) for value in (3, 100, 5, 200)]
    return Enclosing([0, 0, 1, 1, 2, 3], [one] * 6, limits, bounds, [one] * 4, fmpq(alpha), fmpq(0), rules)


@pytest.mark.parametrize("alpha", [5, 10, 20])
def test_the_pair_that_holds_nothing(alpha: int) -> None:
    """From floats in which user 0 has as much on either server, and prices that are right for those."""
    x = [1.5, 2.5, 1.5, 2.5, 98.5, 197.5]
    ctx.prec = 400
    prices = [arb(4) ** -alpha, arb("98.5") ** -alpha, arb(4) ** -alpha, arb("197.5") ** -alpha]
    *_, (sets, tasks, _, utility) = ends_of_path(program(alpha), x, prices, lambda: True)
    assert sets == (frozenset({1, 2, 3, 4, 5}), frozenset({0, 1, 2, 3}))
    np.testing.assert_allclose(tasks, [0, 4, 3, 1, 100, 196], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose([float(value) for value in utility], [4, 4, 100, 196], rtol=1e-6)


def test_no_path_under_rules_or_without_time() -> None:
    """Both end at once."""
    prices = [arb(1)] * 4
    x = [1.5, 2.5, 1.5, 2.5, 98.5, 197.5]
    assert not list(ends_of_path(program(5, frozenset({0})), x, prices, lambda: True))
    assert not list(ends_of_path(program(5), x, prices, lambda: False))
