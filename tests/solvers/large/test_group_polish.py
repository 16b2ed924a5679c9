"""The last digits of an answer in groups, after they were spoilt."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.solvers.large.group_polish import pieces_of_groups, polished, tied

# Servers 0 and 1 have prices (1, 0), 2 and 3 have (0, 1). Group 1 is split between them and pays 1 at both.
TAKE = np.array([[1.0, 3.0], [1.0, 1.0], [3.0, 1.0]])
VERTICES = np.eye(2)
PIECE = np.array([0, 0, 1, 1])
Y = np.array([[1.0, 3.0, 0, 0], [1.0, 1.0, 1.0, 1.0], [0, 0, 2.0, 2.0]])
WEIGHT = np.array([1.0, 1.0, 1.0])
CAPACITY = np.array([[2.0, 12.0], [4.0, 12.0], [12.0, 3.0], [12.0, 3.0]])
PRICES = VERTICES[PIECE]


def test_limits_are_full_and_levels_equal_again() -> None:
    """The sum of all prices is 12, and all three pay 1 for a unit: the level is 4, and the first resource of servers 0 and 1 is full."""
    noise = np.random.default_rng(0).uniform(-1e-7, 1e-7, Y.shape)
    y = polished(np.maximum(Y * (1 + noise), 0), TAKE, WEIGHT, CAPACITY, PRICES)
    assert y is not None
    np.testing.assert_allclose(y.sum(axis=1), 4.0, rtol=1e-15)
    full = PRICES > 0
    np.testing.assert_allclose((y.T @ TAKE)[full], CAPACITY[full], rtol=1e-15)
    assert y.min() >= 0
    np.testing.assert_allclose(y, Y, atol=1e-6)


def test_pairs_that_are_not_the_cheapest_are_not_used() -> None:
    """Group 0 takes a little where it pays three times as much: it goes back."""
    spoilt = Y + 1e-6 * np.array([[-1, 0, 1, 0], [0] * 4, [0] * 4])
    y = polished(spoilt, TAKE, WEIGHT, CAPACITY, PRICES)
    assert y is not None
    assert (y[0, 2:] == 0).all()


def test_there_may_be_no_such_tasks() -> None:
    """A limit without a price that would be passed by far."""
    assert polished(Y, TAKE, WEIGHT, np.where(PRICES > 0, CAPACITY, 0.1), PRICES) is None


def test_split_groups_pay_the_same_everywhere() -> None:
    """Prices are spoilt by 1e-8, and one of them is 0."""
    spoilt = VERTICES * np.array([[1.0 + 1e-8], [1.0]])
    found = tied(spoilt, PIECE, Y, TAKE)
    paid = TAKE[1] @ found.T
    assert paid[0] == pytest.approx(paid[1], rel=1e-15)
    assert (found[VERTICES == 0] == 0).all()
    np.testing.assert_allclose(found, VERTICES, rtol=1e-7, atol=0)


def test_groups_that_only_look_split_do_not_count() -> None:
    """Groups 0 and 2 have a hundred-thousandth where they pay three times as much, as near the end of a path: only group 1 is split."""
    spoilt = VERTICES * np.array([[1.0 + 1e-8], [1.0]])
    near = Y + 1e-5 * np.array([[0, 0, 1, 0], [0] * 4, [0, 1, 0, 0]])
    found = tied(spoilt, PIECE, near, TAKE)
    paid = TAKE[1] @ found.T
    assert paid[0] == pytest.approx(paid[1], rel=1e-15)
    np.testing.assert_allclose(found, VERTICES, rtol=1e-7, atol=0)


def test_prices_that_are_far_from_equal_stay() -> None:
    """What is far away is not polished; and nothing is where no group is split."""
    far = VERTICES * np.array([[1.1], [1.0]])
    assert tied(far, PIECE, Y, TAKE) is far
    apart = np.where(np.arange(3)[:, None] == 1, 0, Y)
    assert tied(VERTICES, PIECE, apart, TAKE) is VERTICES


def test_the_surest_ties_are_kept() -> None:
    """Group 0 has a third where it costs the same, group 1 a thousandth where it costs a thousandth more, group 2 too little to count."""
    held = np.array([[2.0, 1.0], [1e-3, 1.0], [1.0, 1e-7]])
    cost = np.array([[1.0, 1.0], [1.001, 1.0], [2.0, 2.0]])
    assert pieces_of_groups(held, cost, 0).tolist() == [[True, False], [False, True], [True, False]]
    assert pieces_of_groups(held, cost, 1).tolist() == [[True, True], [False, True], [True, False]]
    assert pieces_of_groups(held, cost, 9).tolist() == [[True, True], [True, True], [True, False]]
