"""Parts of the alpha-fair methods: demands with caps, trade-offs, markets; by bisection, by hand, and by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import AlphaFair, Equilibrium, Solution, Tradeoff
from fairopt.solvers.active_sets.active_sets import solve_near
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.tradeoff import find_total_worth
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.capped_demand import rounded_demand
from fairopt.solvers.interior_point.market import as_market, is_large
from fairopt.solvers.interior_point.paths import follow_tradeoff
from fairopt.solvers.structure.arrays import NUMPY

NEVER = Deadline(None)


@pytest.mark.parametrize("width", [1e-3, 0.3, 1.0])
def test_the_rounded_kink(width: float) -> None:
    """log t solves (log cap - log t) (log d - log t) = width^2 below both, by bisection; its slope by differences."""
    log_demand, log_cap = np.array([-3.0, -0.1, 0.0, 0.2, 5.0]), np.array([0.0, 0.0, 0.0, 0.0, 0.0])
    log_t, slope = rounded_demand(NUMPY, log_demand, log_cap, width)
    for n, (demand, cap) in enumerate(zip(log_demand, log_cap, strict=True)):
        low = min(demand, cap)
        root = brentq(lambda u, d=demand, c=cap: (c - u) * (d - u) - width**2, low - 10 * width - 10, low, xtol=1e-14)
        assert log_t[n] == pytest.approx(root, abs=1e-12)
    step = 1e-6
    ahead, behind = (rounded_demand(NUMPY, log_demand + d, log_cap, width)[0] for d in (step, -step))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), atol=1e-6)


def test_demands_without_caps_are_as_they_are() -> None:
    """An infinite cap, and none at all."""
    log_demand = np.array([-1.0, 2.0])
    np.testing.assert_allclose(rounded_demand(NUMPY, log_demand, np.full(2, np.inf), 1.0)[0], log_demand, rtol=1e-15)
    np.testing.assert_array_equal(rounded_demand(NUMPY, log_demand, None, 1.0)[0], log_demand)


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


def test_an_equilibrium_as_a_market() -> None:
    """The program of Eisenberg and Gale has the same tasks; only large ones are solved as markets, and only without limits on tasks."""
    instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]], weights=[1, 3])
    program = fo.formulate(instance, "psdsf", sharing="tdm")
    assert isinstance(program.goal, Equilibrium)
    assert not is_large(program)
    market = as_market(program)
    assert isinstance(market.goal, AlphaFair)
    assert market.goal.alpha == 1.0
    np.testing.assert_array_equal(market.goal.weights, program.goal.weights)
    problem = AlphaFairProblem.of(market, market.goal)
    x = fo.solve(instance, "psdsf", sharing="tdm", solver="best-response").tasks[program.pair_users, program.pair_servers]
    money = instance.weights[market.pair_users] / program.per_user(x)[market.pair_users]
    prices = np.linalg.lstsq(market.limits.matrix.toarray()[:, x > 1e-9].T, money[x > 1e-9], rcond=None)[0]
    assert certify(market, Solution(x, prices=prices)).worst <= 1e-9
    assert problem.n_rows == 2
    large = fo.Instance(np.ones((2, 1)), np.linspace(1, 2, 6000)[:, None])
    assert is_large(fo.formulate(large, "psdsf", sharing="tdm"))
    assert not is_large(fo.formulate(large.replace(tasks=np.ones(6000)), "psdsf", sharing="tdm"))
