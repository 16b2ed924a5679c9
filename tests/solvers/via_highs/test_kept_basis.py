"""One level from the basis of the last moment: the optimum of each moment, and HiGHS is asked for a few of them only."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Leximin
from fairopt.solvers.via_highs.kept_basis import KeptBasis, LevelSystem
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.warm_start import RepeatedLevels
from fairopt.solving import formulate


@pytest.mark.parametrize("seed", range(3))
def test_pivots_lead_to_the_optimum_of_each_moment(seed: int) -> None:
    """As tasks come and go and weights change, with more tasks than fit and with fewer."""
    rng = np.random.default_rng(seed)
    users = 12
    instance = fo.generate("uniform", users=users, servers=4, resources=2, weights=5, seed=seed).replace(tasks=np.full(users, 9.0))
    levels = RepeatedLevels(formulate(instance, "drfh"))
    tasks, weights = np.full(users, 9.0), np.array(instance.weights)
    programs = []
    for moment in range(60):
        tasks[rng.integers(users)] = np.floor(10.0 ** rng.uniform(-0.5, 3 if moment % 20 < 14 else 0.5))
        if moment % 10 == 9:
            weights[rng.integers(users)] = rng.uniform(0.5, 4)
        if moment % 20 == 15:
            tasks = np.minimum(tasks, 1.0)
        program, solution = levels.solve_again(tasks, weights)
        programs.append(solution.programs_solved)
        assert certify(program, solution).worst <= 1e-11
        if moment % 6 == 0:
            expected = fo.solve(instance.replace(tasks=tasks, weights=weights), "drfh").tasks_per_user
            np.testing.assert_allclose(program.per_user(solution.x), expected, rtol=1e-9, atol=1e-12)
    assert len(set(programs)) < 20


def system() -> LevelSystem:
    """Return two users with two tasks each on one server of two units: both have at most one task."""
    program = formulate(fo.Instance([[2.0]], [[1.0], [1.0]], tasks=[2, 2]), "drfh")
    assert isinstance(program.goal, Leximin)
    return LevelSystem.of(LevelProblem.of(program, program.goal), program.goal.weights)


def test_one_basis_serves_other_caps() -> None:
    """Basic are both pairs and t, so that the server is full. Who has half a task leaves 1.5 tasks to the other."""
    kept = KeptBasis.of(system(), np.array([0, 1]), np.ones(2))
    assert kept is not None
    for tasks, expected in (([2.0, 2.0], [1, 1]), ([0.5, 2.0], [0.5, 1.5])):
        cap = np.array(tasks) / 2  # a dominant share of 1/2 a task
        found = kept.solve(cap, np.ones(2), kept.level(cap, np.ones(2)))
        assert found is not None
        assert found.x.tolist() == pytest.approx(expected)
    assert kept.level(np.array([0.5, 0.5]) / 2, np.ones(2)) == np.inf


def test_a_basis_that_is_none() -> None:
    """Twice the same pair; and prices that would pay users for what they have."""
    assert KeptBasis.of(system(), np.array([0, 0]), np.ones(2)) is None
    assert KeptBasis.of(system(), np.array([0, 1]), -np.ones(2)) is None
