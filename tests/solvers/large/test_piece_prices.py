"""Exact prices against the KKT conditions, and against prices that are known."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.solvers.large.piece_prices import Pieces, SplitUser, exact_prices

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_supply_is_demand_at_the_prices(alpha: float) -> None:
    """From prices that are off by a tenth, and with a user who is split between two pieces."""
    p = np.array([[1.0, 2.0], [3.0, 0.5]])
    split = np.array([1.0, 2.0 / 1.5])  # pays the same at both: p[0] - p[1] = (-2, 1.5)
    demands, phi, piece = RNG.uniform(1, 2, (50, 2)), RNG.uniform(1, 5, 50), np.arange(50) % 2
    t = (phi / (demands * p[piece]).sum(axis=1)) ** (1 / alpha)
    wanted = (7.0 / (p[0] @ split)) ** (1 / alpha)
    capacity = np.stack([t[piece == k] @ demands[piece == k] for k in range(2)])
    capacity += np.array([[0.25], [0.75]]) * wanted * split
    one = SplitUser(split, 7.0, np.array([0, 1]), np.array([0.5, 0.5]) * wanted)
    found = exact_prices(Pieces(p * RNG.uniform(0.9, 1.1, (2, 2)), capacity, [one]), demands, phi, piece, alpha)
    assert found is not None
    np.testing.assert_allclose(found, p, rtol=1e-11)


def test_who_would_have_less_than_nothing_at_a_piece_is_not_split() -> None:
    """What the others leave there is less than they want: the user buys at the other piece, and prices need not be the same for it."""
    p = np.array([[1.0], [2.0]])
    demands, phi, piece = np.ones((4, 1)), np.array([1.0, 1.0, 4.0, 4.0]), np.array([0, 0, 1, 1])
    capacity = np.array([[3.0], [4.0]])  # user 5 buys 1 at the first piece; at the second 8 / 4 = 2
    one = SplitUser(np.ones(1), 1.0, np.array([0, 1]), np.array([0.9, 0.1]))
    found = exact_prices(Pieces(p, capacity, [one]), demands, phi, piece, 1.0)
    assert found is not None
    np.testing.assert_allclose(found, [[1.0], [2.0]], rtol=1e-11)


def test_there_are_no_prices_where_nobody_buys() -> None:
    """A piece with a price, and without anybody."""
    assert exact_prices(Pieces(np.ones((2, 1)), np.ones((2, 1)), []), np.ones((3, 1)), np.ones(3), np.zeros(3, int), 1.0) is None
