"""Steps of the path in logarithms: on one server with one user, whose point at given targets is found by bisection."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import fairopt as fo
from fairopt.program import AlphaFair
from fairopt.solvers.active_sets.problem import AlphaFairProblem
from fairopt.solvers.interior_point.logarithmic_steps import Iterate, start, take_step
from fairopt.solvers.interior_point.settings import LOGARITHMS


def alone(alpha: float) -> AlphaFairProblem:
    """One user of one server. In its units x + s = 1, t = x, y + z = p and y = x^-alpha."""
    program = fo.formulate(fo.Instance([[10]], [[2]]), "proportional", alpha=alpha)
    assert isinstance(program.goal, AlphaFair)
    return AlphaFairProblem.of(program, program.goal)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("x_z", "p_s"), [(1.0, 1.0), (1e-3, 1e-6), (1e-6, 10.0)])
def test_steps_lead_to_the_point_with_the_wanted_products(alpha: float, x_z: float, p_s: float) -> None:
    """It solves x^-alpha + x_z / x = p_s / (1 - x), whose left side falls and whose right side rises."""
    problem = alone(alpha)
    iterate, longest = Iterate.of(problem, start(problem)), LOGARITHMS.first_change
    for _ in range(60):
        logs = iterate.logs
        products = np.concatenate([logs.x + logs.z, logs.p + logs.s])
        wanted = np.log([x_z, p_s]) - products
        off = problem.worth_residual(logs.y, logs.t)
        iterate, longest = take_step(problem, iterate, products, wanted, off, longest, settling=False, halt=False)
    x = brentq(lambda x: x**-alpha + x_z / x - p_s / (1 - x), 1e-15, 1 - 1e-15, xtol=1e-15, rtol=1e-14)
    at = iterate.at
    found = [each[0] for each in (at.x, at.s, at.p, at.z, at.t, at.y)]
    assert found == pytest.approx([x, 1 - x, p_s / (1 - x), x_z / x, x, x**-alpha], rel=1e-7)


def test_a_halt_removes_residuals_alone() -> None:
    """From a point where A x + s is 1.5: the products stay, and the residual falls to a fraction."""
    problem = alone(1.0)
    logs = start(problem)
    before = Iterate.of(problem, type(logs)(*(part + np.log(1.5) * (part is logs.s or part is logs.x) for part in logs.each())))
    now = before.logs
    products = np.concatenate([now.x + now.z, now.p + now.s])
    off = problem.worth_residual(now.y, now.t)
    after, _ = take_step(problem, before, products, np.full(2, -5.0), off, 1.0, settling=False, halt=True)
    assert after.residual < 0.5 * before.residual
    np.testing.assert_allclose(np.concatenate([after.logs.x + after.logs.z, after.logs.p + after.logs.s]), products, atol=1e-12)
