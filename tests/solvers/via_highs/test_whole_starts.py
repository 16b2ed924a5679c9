"""Whole tasks by first fit: as many for each user as are asked for, within all limits."""

from __future__ import annotations

import numpy as np
import pytest
from instances import few_servers_each

import fairopt as fo
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.whole_starts import WholeStarts
from fairopt.solvers.via_highs.whole_tasks import LevelsOfTotals


def starts(instance: fo.Instance) -> WholeStarts:
    """Return those of exact DRFH in whole tasks."""
    return WholeStarts.of(fo.formulate(instance, "drfh", integral=True))


def test_large_tasks_come_first() -> None:
    """Two servers of four: one task of size 4 fits beside four of size 1 only while these share a server."""
    found = starts(fo.Instance([[4.0], [4.0]], [[1.0], [4.0]])).packed(np.array([4.0, 1.0]))
    assert found is not None
    assert sorted(found.reshape(2, 2).T.tolist()) == [[0, 1], [4, 0]]


def test_servers_that_others_need_come_last() -> None:
    """The second user may run on the first server alone, so that the first user leaves it free."""
    eligibility = np.array([[True, True], [True, False]])
    found = starts(fo.Instance([[4.0], [4.0]], [[2.0], [2.0]], eligibility=eligibility)).packed(np.array([2.0, 2.0]))
    assert found is not None
    assert found.tolist() == [0, 2, 2]


@pytest.mark.parametrize("need", [[5.0, 1.0], [9.0, 0.0], [0.0, 3.0]])
def test_more_than_there_is(need: list[float]) -> None:
    """Of the servers, or of tasks that the second user has."""
    assert starts(fo.Instance([[4.0], [4.0]], [[1.0], [4.0]], tasks=[np.inf, 2])).packed(np.array(need)) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_start_is_near_the_bound(seed: int) -> None:
    """Large and small tasks, of 60 users on 40 servers of four kinds: progressive filling leaves users with large ones far behind."""
    rng = np.random.default_rng(seed)
    capacities = np.array([[8.0, 128], [8, 80], [4, 48], [2, 32]])
    shapes = np.array([[8.0, 60], [4, 24], [2, 12], [1, 4]])[rng.integers(4, size=60)]
    instance = fo.Instance(capacities, shapes, counts=[10, 10, 10, 10], weights=rng.integers(1, 4, 60))
    program = fo.formulate(instance.replace(eligibility=few_servers_each(rng, 60, 4) | (shapes[:, :1] > 2)), "drfh", integral=True)
    search = LevelsOfTotals(program, Deadline(None))
    before, search.bound = search.reached()[0], search.divisible_bound()
    divisible = search.bound
    search._narrow()
    assert before <= search.reached()[0] <= search.bound * (1 + 1e-9) <= divisible * (1 + 2e-9)
    assert search.reached()[0] >= 0.95 * search.bound
    assert (program.limits.matrix @ search.best <= program.limits.bounds * (1 + 1e-9)).all()
    assert (search.best == np.round(search.best)).all()


@pytest.mark.parametrize("tasks", [0, np.inf])
def test_a_large_program_in_which_nobody_can_have_a_task(tasks: float) -> None:
    """2,000 servers, from which on a start is looked for; the first user has no tasks, or none that fits, and the second no server."""
    size = 1.0 if tasks == 0 else 5.0
    instance = fo.Instance(np.full((2000, 1), 4.0), [[size], [1.0]], tasks=[tasks, np.inf], eligibility=[[True] * 2000, [False] * 2000])
    assert not fo.solve(instance, "drfh", integral=True).tasks.any()


def test_a_user_without_a_server_needs_nothing() -> None:
    """The other user's tasks are packed as if it were not there."""
    found = starts(fo.Instance([[4.0]], [[1.0], [1.0]], eligibility=[[True], [False]])).packed(np.array([3.0, 0.0]))
    assert found is not None
    assert found.tolist() == [3]
