"""What the programs of all levels share: the pairs and limits that matter, what each user can reach, and a first unit of t."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Leximin
from fairopt.solvers.via_highs.level_problem import LevelProblem

SEEDS = range(8)


def problem(instance: fo.Instance) -> LevelProblem:
    """The leximin of DRFH."""
    of = fo.formulate(instance, "drfh")
    assert isinstance(of.goal, Leximin)
    return LevelProblem.of(of, of.goal)


def random_instance(seed: int) -> fo.Instance:
    """Five users on four servers, some pairs missing."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((5, 4)) < 0.6
    eligibility[~eligibility.any(axis=1), 0] = True
    return fo.Instance(rng.uniform(1, 9, (4, 2)), rng.uniform(0.1, 2, (5, 2)), weights=rng.uniform(1, 5, 5), eligibility=eligibility)


def dominant_shares(instance: fo.Instance) -> tuple[np.ndarray, np.ndarray]:
    """What a task adds to each user's level, and the tasks of each user alone on each server."""
    per_level = (instance.demands / instance.capacities.sum(axis=0)).max(axis=1) / instance.weights
    alone = np.where(instance.eligibility, (instance.capacities[None] / instance.demands[:, None]).min(axis=2), 0.0)
    return per_level, alone


@pytest.mark.parametrize("seed", SEEDS)
def test_a_user_reaches_what_it_runs_alone(seed: int) -> None:
    """Sum over servers of min over resources of c / d, in dominant shares."""
    instance = random_instance(seed)
    per_level, alone = dominant_shares(instance)
    assert problem(instance).reach == pytest.approx(per_level * alone.sum(axis=1), rel=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_unit_is_an_upper_bound_of_the_first_level(seed: int) -> None:
    """The smaller of what weak duality gives with equal prices for every resource of every server, and what some user reaches alone."""
    instance = random_instance(seed)
    per_level, alone = dominant_shares(instance)
    paid = 0.0
    for n in range(5):  # the cheapest unit of level, where every part of a resource of a server costs the same
        parts = [sum(instance.demands[n] / instance.capacities[i]) / per_level[n] for i in range(4) if instance.eligibility[n, i]]
        paid += min(parts)
    bound = min(instance.capacities.size / paid, float((per_level * alone.sum(axis=1)).min()))
    assert problem(instance).first_unit() == pytest.approx(bound, rel=1e-12)
    assert fo.solve(instance, "drfh").levels[0].value <= bound * (1 + 1e-12)


def test_a_user_without_room_is_no_member() -> None:
    """No tasks, or no server: level 0, and no columns."""
    eligibility = np.array([[True, True], [False, False], [True, False], [True, True]])
    found = problem(fo.Instance([[4, 4], [4, 4]], np.ones((4, 2)), eligibility=eligibility, tasks=[np.inf, np.inf, np.inf, 0]))
    assert found.members.tolist() == [True, False, True, False]
    assert np.unique(found.users).tolist() == [0, 2]
    assert found.reach[[1, 3]].tolist() == [0, 0]


def test_a_number_of_tasks_needs_no_row() -> None:
    """It is a cap on the level of its user; a limit of a server is a row."""
    without = problem(fo.Instance([[4, 4], [4, 4]], np.ones((3, 2))))
    finite = problem(fo.Instance([[4, 4], [4, 4]], np.ones((3, 2)), tasks=[1, 2, np.inf]))
    assert finite.rows.size == without.rows.size == finite.program.limits.of_servers.sum()
    assert len(finite.program.limits) > finite.rows.size
