"""Leximins that start where the last one ended: the same tasks per user, and as good a certificate, as those that start anew."""

from __future__ import annotations

import numpy as np
import pytest
from instances import demands_with_zeros, few_servers_each

import fairopt as fo
from fairopt.certificate import certify
from fairopt.solvers.via_highs.warm_start import RepeatedLevels
from fairopt.solving import formulate


def cluster(rng: np.random.Generator, users: int, servers: int) -> fo.Instance:
    """Return users on one to three servers each, some demands 0: many levels."""
    demands = demands_with_zeros(rng, (users, 2), 0.01, 1)
    eligibility = few_servers_each(rng, users, servers)
    scale = 10.0 ** rng.uniform(-2, 2, (servers, 1))
    return fo.Instance(scale * rng.uniform(1, 10, (servers, 2)), demands, eligibility=eligibility, tasks=np.full(users, 10.0))


@pytest.mark.parametrize("notion", ["drfh", "tsf", "asset"])
@pytest.mark.parametrize("seed", range(4))
def test_each_is_the_leximin(notion: str, seed: int) -> None:
    """As users run out of tasks, come back with more, and change their weights, a few or all at once."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(2, 12))
    instance = cluster(rng, users, int(rng.integers(2, 5)))
    levels = RepeatedLevels(formulate(instance, notion))
    tasks, weights = np.array(instance.tasks), np.ones(users)
    for _ in range(12):
        some = rng.random(users) < rng.choice([0.2, 1.0])
        tasks[some] = np.floor(10.0 ** rng.uniform(-0.7, 3, users))[some]
        if rng.random() < 0.3:
            weights[some] = rng.uniform(0.5, 4, users)[some]
        if not tasks.any():
            continue
        program, solution = levels.solve_again(tasks, weights)
        expected = fo.solve(instance.replace(tasks=tasks, weights=weights), notion).tasks_per_user
        np.testing.assert_allclose(program.per_user(solution.x), expected, rtol=1e-7, atol=1e-12)
        assert certify(program, solution).worst <= 1e-8


def test_a_guess_that_leaves_no_allocation_is_taken_back() -> None:
    """Everybody had little; then each of two has far more than there is."""
    levels = RepeatedLevels(formulate(fo.Instance([[10.0]], [[1.0], [1.0]], tasks=[1, 1]), "drfh"))
    for tasks, expected in (([2.0, 1.0], [2, 1]), ([900.0, 900.0], [5, 5]), ([0.0, 3.0], [0, 3]), ([4.0, 70.0], [4, 6])):
        program, solution = levels.solve_again(np.array(tasks), np.ones(2))
        assert program.per_user(solution.x).tolist() == pytest.approx(expected)


def test_what_it_suits() -> None:
    """A leximin of users who all have limits on their tasks, worth the same everywhere."""
    instance = fo.Instance([[1.0], [2.0]], [[1.0], [1.0]], tasks=[3, 4])
    assert RepeatedLevels.suits(formulate(instance, "drfh"))
    assert not RepeatedLevels.suits(formulate(instance, "efficiency"))
    assert not RepeatedLevels.suits(formulate(instance.replace(tasks=None), "drfh"))
    assert not RepeatedLevels.suits(formulate(instance, "max-min", utility=[[1, 2], [1, 1]]))
