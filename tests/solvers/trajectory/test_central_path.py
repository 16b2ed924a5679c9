"""The central path: its derivatives by differences, its points by their definition, and its end by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair
from fairopt.solvers.backend import Deadline
from fairopt.solvers.trajectory.central_path import CentralPath, Point, falling, solve_rows

# User 1 on both servers, user 2 on the second one; two resources.
TWO = fo.Instance([[4, 6], [5, 2]], [[1, 2], [1, 1]], weights=[1, 3], eligibility=[[True, True], [False, True]])
NEVER = Deadline(None)


def path_of(instance: fo.Instance) -> CentralPath:
    """Return the path of proportional fairness."""
    program = fo.formulate(instance, "proportional")
    assert isinstance(program.goal, AlphaFair)
    return CentralPath.of(program, program.goal)


def equations(path: CentralPath, at: Point, mu: float) -> FloatArray:
    """Return what the equations of the module lack, as they are written there; stationarity with the sign of the Jacobian."""
    own = path.several
    return np.concatenate(
        [
            -(path.phi * path.u / path.utility(at.y) - path.a.T @ at.p + at.z),
            at.s * at.p - mu,
            (at.y * at.z - mu)[own],
        ]
    )


def test_units() -> None:
    """Limits are 1, columns reach 1, weights sum to 1."""
    path = path_of(TWO)
    np.testing.assert_array_equal(path.a.max(axis=0), 1.0)
    np.testing.assert_array_equal(path.phi, [0.25, 0.25, 0.75])
    np.testing.assert_array_equal(path.several, [True, True, False])
    assert path.total == 4.0


def test_the_jacobian_by_differences() -> None:
    """With s = 1 - A y, of which the limits are functions."""
    path = path_of(TWO)
    rng = np.random.default_rng(0)
    y = 0.2 * rng.random(3)
    p, z, own = rng.random(len(path.a)), np.where(path.several, rng.random(3), 0.0), np.flatnonzero(path.several)

    def at(values: FloatArray) -> FloatArray:
        z = np.zeros(3)
        z[own] = values[3 + p.size :]
        return equations(path, Point(values[:3], 1 - path.a @ values[:3], values[3 : 3 + p.size], z), 0.1)

    now, step = np.concatenate([y, p, z[own]]), 1e-6
    differences = np.array([(at(now + step * unit) - at(now - step * unit)) / (2 * step) for unit in np.eye(now.size)]).T
    np.testing.assert_allclose(path.jacobian(Point(y, 1 - path.a @ y, p, z)), differences, atol=1e-8)


@pytest.mark.parametrize("mu", [1.0, 1e-3])
def test_a_point_of_the_path(mu: float) -> None:
    """It solves the equations, maximises c sum phi log U + sum log s + sum log y, and knows its own c = 1 / mu."""
    path = path_of(TWO)
    y = np.full(3, 0.1)
    start = path.at(y, 1 - path.a @ y, 1.0)
    point, steps = path.follow(start, (mu for _ in range(100)), NEVER)
    assert 2 < steps < 100
    assert path.residual(point, mu) <= 1e-12
    assert np.abs(equations(path, point, mu)).max() <= 1e-10
    assert path.c(point.y, point.s) == pytest.approx(1 / mu, rel=1e-6)

    def goal(y: FloatArray) -> float:
        utility = path.utility(y)
        barrier = np.log(1 - path.a @ y).sum() + np.log(y[path.several]).sum()
        return float((path.phi * np.log(utility) / np.where(path.several, 2, 1)).sum() / mu + barrier)

    rng = np.random.default_rng(1)
    best = goal(point.y)
    for _ in range(20):
        assert goal(point.y * (1 + 1e-3 * rng.uniform(-1, 1, 3))) < best


def test_the_end_by_hand() -> None:
    """One limit: each user gets its part of it by weight, at a price of 1 for the whole limit."""
    path = path_of(fo.Instance([[10.0]], [[1.0], [2.0]], weights=[1, 4]))
    y = np.full(2, 0.1)
    end, _ = path.follow(path.at(y, 1 - path.a @ y, 1.0), falling(1.0), NEVER)
    np.testing.assert_allclose(end.y, [0.2, 0.8], rtol=1e-13)
    np.testing.assert_allclose(end.p, [1.0], rtol=1e-13)


def test_targets_fall_and_stay() -> None:
    """By a factor of ten, to 1e-16."""
    targets = list(falling(1e-3))
    np.testing.assert_allclose(targets[:13], 10.0 ** -np.arange(4.0, 17.0), rtol=1e-12)
    assert set(targets[13:]) == {1e-16}


def test_rows_of_any_size_are_solved() -> None:
    """Thirty orders of magnitude apart; a singular system is an error."""
    matrix, solution = np.array([[1e-20, 2e-20], [3e10, -1e10]]), np.array([3.0, 7.0])
    np.testing.assert_allclose(solve_rows(matrix, matrix @ solution), solution, rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        solve_rows(np.array([[1.0, 1.0], [0.0, 0.0]]), np.ones(2))
