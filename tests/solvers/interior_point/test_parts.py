"""Parts of the alpha-fair methods: demands with caps, trade-offs, markets; by bisection, by hand, and by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Equilibrium, Solution
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import logarithmic_path
from fairopt.solvers.interior_point.capped_demand import rounded_demand
from fairopt.solvers.interior_point.logarithmic_path import follow
from fairopt.solvers.interior_point.market import as_market, is_large
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


def test_the_kinks_of_a_cap_and_a_floor() -> None:
    """With width 0 the demand is cut off on both sides, and its slope is 0 there; 1 / t of a floor is t of a cap."""
    log_demand, log_cap, log_floor = np.array([-2.0, 0.5, 3.0, -2.0]), np.array([1.0, 1.0, 1.0, np.inf]), np.array([0.0, 0.0, 0.0, -np.inf])
    log_t, slope = rounded_demand(NUMPY, log_demand, log_cap, 0.0, log_floor)
    np.testing.assert_array_equal(log_t, [0.0, 0.5, 1.0, -2.0])
    np.testing.assert_array_equal(slope, [0.0, 1.0, 0.0, 1.0])
    above, up = rounded_demand(NUMPY, log_demand, None, 0.3, log_floor)
    below, down = rounded_demand(NUMPY, -log_demand, -log_floor, 0.3)
    np.testing.assert_array_equal(above, -below)
    np.testing.assert_array_equal(up, down)


def test_no_demand_is_at_a_kink_without_a_number() -> None:
    """Demand, cap and floor are one number, and the kinks are sharp."""
    log_t, slope = rounded_demand(NUMPY, np.zeros(1), np.zeros(1), 0.0, np.zeros(1))
    assert log_t == 0.0
    assert np.isfinite(slope)


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


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, 10.0])
def test_the_path_in_logarithms_by_hand(alpha: float) -> None:
    """Two users of one resource, weights 1 and 16, one with a limit: x[n] in proportion to phi[n]^(1/alpha), or what a limit leaves."""

    def tasks(instance: fo.Instance) -> FloatArray:
        program = fo.formulate(instance, "proportional", alpha=alpha)
        assert isinstance(program.goal, AlphaFair)
        problem = AlphaFairProblem.of(program, program.goal)
        return problem.solution(follow(problem, Deadline(None))).x

    pool = fo.Instance([[10]], [[1], [1]], weights=[1, 16])
    part = 16 ** (1 / alpha)
    assert tasks(pool) == pytest.approx([10 / (1 + part), 10 * part / (1 + part)], rel=1e-8)
    assert tasks(pool.replace(tasks=[np.inf, 3])) == pytest.approx(
        [10 - min(3, 10 * part / (1 + part)), min(3, 10 * part / (1 + part))], rel=1e-8
    )


@pytest.mark.parametrize(("products", "attempts"), [((1e-3, 1e-5), 2), ((1e-3, 1e-11), 6), ((1e-11, 1e-3), 6)])
def test_two_attempts_that_get_stuck_are_all(products: tuple[float, float], attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came near its end gives hope to the others. No attempt here finds an answer: nobody has what its prices say."""
    program = fo.formulate(fo.Instance([[10]], [[1], [1]], tasks=[2, 3]), "proportional")
    assert isinstance(program.goal, AlphaFair)
    problem = AlphaFairProblem.of(program, program.goal)
    made = []

    def stuck(path: logarithmic_path._Path, deadline: Deadline) -> logarithmic_path._Outcome:
        given = path.problem
        made.append(given)
        point = Point(np.full(given.v.size, 0.1), np.full(given.n_rows, np.inf), 1)
        return logarithmic_path._Outcome(given, point, np.inf, products[min(len(made), 2) - 1])

    monkeypatch.setattr(logarithmic_path._Path, "followed", stuck)
    monkeypatch.setattr(logarithmic_path, "solve_on_sets", lambda *_: None)
    follow(problem, NEVER)
    assert len(made) == attempts
