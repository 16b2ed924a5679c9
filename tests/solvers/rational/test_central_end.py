"""The end of the central path in many digits shows sets that floats hide."""

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from fairopt.solvers.rational.central_end import _Path, _solved, ends_of_path
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
    *_, (sets, tasks, _, utility) = ends_of_path(program(alpha), x, prices, lambda _: True)
    assert sets == (frozenset({1, 2, 3, 4, 5}), frozenset({0, 1, 2, 3}))
    np.testing.assert_allclose(tasks, [0, 4, 3, 1, 100, 196], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose([float(value) for value in utility], [4, 4, 100, 196], rtol=1e-6)


def test_no_path_under_rules_or_without_time() -> None:
    """Both end at once."""
    prices = [arb(1)] * 4
    x = [1.5, 2.5, 1.5, 2.5, 98.5, 197.5]
    assert not list(ends_of_path(program(5, frozenset({0})), x, prices, lambda _: True))
    assert not list(ends_of_path(program(5), x, prices, lambda _: False))


def test_unknowns_that_are_eliminated_first() -> None:
    """The solution is that of the dense system; a system that is not positive definite has none."""
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(8, 8)) * (rng.random((8, 8)) < 0.4) + np.diag(rng.uniform(1, 1000, 8))
    full, right = factor @ factor.T, rng.normal(size=8)
    rows = [{i: arb(value) for i, value in enumerate(row) if value} for row in full.tolist()]
    ctx.prec = 200
    for first in ([], [5, 1, 6], list(range(8))):
        found = _solved([dict(row) for row in rows], [arb(value) for value in right], first)
        assert found is not None
        np.testing.assert_allclose([float(value) for value in found], np.linalg.solve(full, right), rtol=1e-9)
    assert _solved([{0: arb(1), 1: arb(2)}, {0: arb(2), 1: arb(1)}], [arb(1), arb(1)], [0, 1]) is None


def test_work_is_counted_for_each_step() -> None:
    """Longer numbers take more of it; a limit of one user takes less than one that users share, with as many pairs."""
    spent: list[float] = []
    ctx.prec = 400
    prices = [arb(4) ** -5, arb("98.5") ** -5, arb(4) ** -5, arb("197.5") ** -5]

    def go_on(work: float) -> bool:
        spent.append(work)
        return True

    list(ends_of_path(program(5), [1.5, 2.5, 1.5, 2.5, 98.5, 197.5], prices, go_on))
    assert len(spent) > 3
    assert spent[0] > 0
    assert spent[-1] > spent[0]
    own, shared = (_Path(_many(limits), [0.4] * 40, [arb(1)] * 20) for limits in (_of_users(), _of_pairs()))
    assert own.work < shared.work


def _many(limits: list[dict[int, fmpq]]) -> Enclosing:
    """Twenty users with two pairs each, under twenty limits."""
    one = fmpq(1)
    return Enclosing([k // 2 for k in range(40)], [one] * 40, limits, [one] * 20, [one] * 20, fmpq(5), fmpq(0), frozenset())


def _of_users() -> list[dict[int, fmpq]]:
    return [{2 * n: fmpq(1), 2 * n + 1: fmpq(1)} for n in range(20)]


def _of_pairs() -> list[dict[int, fmpq]]:
    return [{2 * n: fmpq(1), (2 * n + 3) % 40: fmpq(1)} for n in range(20)]
