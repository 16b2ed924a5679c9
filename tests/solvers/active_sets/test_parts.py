"""A trade-off by one variable, by hand; lower weights of users whom a limit on tasks stops."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import AlphaFair, Solution, Tradeoff
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import solve_near
from fairopt.solvers.active_sets.stopped import with_full_weights, with_lower_weights
from fairopt.solvers.active_sets.tradeoff import find_total_worth
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.paths import follow_tradeoff

NEVER = Deadline(None)


@pytest.mark.parametrize(("beta", "lam"), [(0.5, 2.5), (2.0, -1.5)])
def test_a_trade_off_of_two_users_by_one_variable(beta: float, lam: float) -> None:
    """One server of 1, tasks that take 1 and 2: x1 + 2 x2 = 1; the best x1 by a fine search of the goal as it is published."""
    program = fo.formulate(fo.Instance([[1.0]], [[1.0], [2.0]]), "fds", beta=beta, lam=lam)
    goal = program.goal
    assert isinstance(goal, Tradeoff)
    assert 0 < goal.efficiency < 1
    problem = AlphaFairProblem.of(program, goal)
    found = program.utilities * problem.solution(follow_tradeoff(problem, goal, NEVER)).x

    def value(share: np.ndarray) -> np.ndarray:
        u = np.array([share * program.utilities[0], (1 - share) / 2 * program.utilities[1]])
        mean = (u ** (1 - beta)).sum(axis=0) ** (1 / (1 - beta))
        return np.asarray((1 - goal.efficiency) * np.log(mean) + goal.efficiency * np.log(u.sum(axis=0)))

    low, high = 0.0, 1.0
    for _ in range(8):  # ever finer grids
        grid = np.linspace(low, high, 103)[1:-1]
        best = int(np.argmax(value(grid)))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    assert found[0] / program.utilities[0] == pytest.approx((low + high) / 2, rel=1e-6)
    exact = find_total_worth(problem, goal, NEVER, solve_near, Point(np.array([0.5, 0.5]), np.ones(1)))
    assert exact is not None
    np.testing.assert_allclose(problem.solution(exact).x * program.utilities, found, rtol=1e-9)
    assert find_total_worth(problem, goal, NEVER, lambda *_: None, Point(np.array([0.5, 0.5]), np.ones(1))) is None


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_lower_weights_keep_the_answer(unit: float) -> None:
    """A user with all of its one task among users with many, at alpha = 10, its prices in any unit of money."""
    instance = fo.Instance([[40.0]], [[1.0], [1.0], [1.0]], tasks=[1.0, np.inf, np.inf])
    program = fo.formulate(instance, "proportional", alpha=10.0)
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    price = 19.5**-10.0
    exact = Solution(np.array([1.0, 19.5, 19.5]), prices=np.where(program.limits.kinds == 2, 1 - price, price))
    assert exact.prices is not None
    assert certify(program, exact).worst <= 1e-12
    found = with_lower_weights(program, goal, Solution(exact.x, prices=unit * exact.prices))
    assert found is not None
    lower, near = found
    np.testing.assert_array_equal(lower.weights[1:], goal.weights[1:])
    worth = lower.weights[0]  # of its one task: twice what it pays for it, and the money of another user
    assert worth == pytest.approx(2 * price + 19.5 * price, rel=1e-9)
    assert near.prices == pytest.approx(np.where(program.limits.kinds == 2, worth - price, price), rel=1e-6)
    back = with_full_weights(program, goal, lower, near)
    assert back.prices is not None
    np.testing.assert_allclose(back.prices, exact.prices, rtol=1e-12)
    assert with_lower_weights(program, goal, Solution(np.array([0.5, 19.5, 19.5]), prices=exact.prices)) is None
