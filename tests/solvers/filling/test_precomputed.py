"""Cycles of precomputed DRF in fractions, and task by task from what is held."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.instance import IntArray
from fairopt.solvers.filling.precomputed import fill_lowest_first, precompute


def exact_cycle(left: list[Fraction], demands: IntArray, share: list[Fraction], part: list[int]) -> tuple[Fraction, list[int]]:
    """Turns k = min_r R[r] / sum_n (w*/w[n]) d[n,r], and floor(k w*/w[n]) for each user who takes part."""
    top = max(share[n] for n in part)
    for_a_turn = [sum((top / share[n] * Fraction(int(demands[n, r])) for n in part), Fraction(0)) for r in range(len(left))]
    turns = min(R / need for R, need in zip(left, for_a_turn, strict=True) if need)
    return turns, [int(turns * top / share[n]) if n in part else 0 for n in range(len(share))]


@pytest.mark.parametrize("seed", range(30))
def test_the_first_cycle_is_that_of_fractions(seed: int) -> None:
    """Turns, tasks rounded down, and what is left, also where a quotient is whole in fractions and not in binary numbers."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    capacity, demands = rng.integers(20, 100, m), rng.integers(0, 6, (n, m))
    demands[demands.sum(axis=1) == 0, 0] = 1
    share = [max(Fraction(int(demands[u, r]), int(capacity[r])) for r in range(m)) for u in range(n)]
    (cycle,) = precompute(capacity.astype(float), demands.astype(float), np.array([float(w) for w in share]), np.full(n, np.inf))
    turns, tasks = exact_cycle([Fraction(int(c)) for c in capacity], demands, share, list(range(n)))
    assert cycle.turns == pytest.approx(float(turns), rel=1e-12)
    assert cycle.tasks.tolist() == tasks
    np.testing.assert_allclose(cycle.left, capacity - np.array(tasks) @ demands, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_later_cycles_are_of_those_with_smaller_tasks(seed: int) -> None:
    """Each fits into what the last one left, makes a whole turn, and leaves out the users of the largest share."""
    rng = np.random.default_rng(seed)
    capacity, demands = rng.integers(50, 100, 2).astype(float), rng.integers(1, 20, (5, 2)).astype(float)
    share, wanted = (demands / capacity).max(axis=1), rng.integers(1, 30, 5).astype(float)
    cycles = precompute(capacity, demands, share, wanted, None)
    given, left = np.zeros(5), capacity
    largest = np.inf
    for k, cycle in enumerate(cycles):
        assert k == 0 or cycle.turns >= 1 - 1e-12
        served = cycle.tasks > 0
        assert share[served].max(initial=0.0) < largest
        largest = share[served].max(initial=largest)
        np.testing.assert_allclose(cycle.left, left - cycle.tasks @ demands, atol=1e-9)
        given, left = given + cycle.tasks, cycle.left
    assert (left >= 0).all()
    assert (given <= wanted).all()


def test_task_by_task_goes_on_from_what_is_held() -> None:
    """Of 30 units 18 are held, by (4, 1): two to user 1, then it is user 2's turn, whose task needs 10 of 8; user 1 goes on with four."""
    share, tasks, demands = np.array([2 / 30, 10 / 30]), np.full(2, np.inf), np.array([[2.0], [10.0]])
    held = np.array([4.0, 1.0])
    assert fill_lowest_first(np.array([30.0]), demands, share, tasks, held).tolist() == [10, 1]
    assert fill_lowest_first(np.array([30.0]), demands, share, tasks, held, go_on=False).tolist() == [6, 1]


def test_of_equal_shares_the_largest_demand_may_go_first() -> None:
    """Both at 0, and room for one task: user 1 by its number, user 2 by its size."""
    capacity, demands, tasks = np.array([3.0]), np.array([[2.0], [3.0]]), np.full(2, 1.0)
    assert fill_lowest_first(capacity, demands, np.array([2 / 3, 1.0]), tasks).tolist() == [1, 0]
    assert fill_lowest_first(capacity, demands, np.array([2 / 3, 1.0]), tasks, ties="largest-demand").tolist() == [0, 1]
