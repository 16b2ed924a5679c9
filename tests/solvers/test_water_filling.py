"""Water-filling of one server: levels, prices and what they prove, against fractions and plain linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from reference import exact
from reference.linear import largest
from strategies import instances

import fairopt as fo
from fairopt.program import Leximin, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.water_filling import WaterFilling


def filled(program: Program) -> Solution:
    """Solve by the closed form."""
    return WaterFilling().solve(program, tolerance=1e-9, deadline=Deadline(None))


def test_levels_and_prices_by_hand() -> None:
    """Shares of 2/9 and 1/3 a task: cpu is full at (3, 2), both at the level 2/3; a level takes 4.5 + 9 cpus, so a cpu is worth 2/27."""
    solution = filled(fo.formulate(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf"))
    (stage,) = solution.stages
    np.testing.assert_allclose(solution.x, [3, 2])
    assert stage.value == pytest.approx(2 / 3)
    assert stage.users.tolist() == [0, 1]
    assert stage.prices is not None
    np.testing.assert_allclose(stage.prices, [2 / 27, 0])
    assert solution.programs_solved == 0


def test_who_has_all_tasks_leaves_the_rest_to_the_others() -> None:
    """4 of 12 units go to the two users with limits; the third has what is left."""
    solution = filled(fo.formulate(fo.Instance([[12]], [[1], [1], [2]], tasks=[1, 3, np.inf]), "drf"))
    np.testing.assert_allclose(solution.x, [1, 3, 4])
    assert [stage.users.tolist() for stage in solution.stages] == [[2]]


@given(instance=instances(max_users=5, one_server=True, whole=True))
@settings(max_examples=40)
def test_tasks_are_those_of_fractions(instance: fo.Instance) -> None:
    """Raise all, settle who could not rise: the same x[n] by a rational simplex."""
    program = fo.formulate(instance, "drfh")
    if program.n_pairs:
        np.testing.assert_allclose(program.per_user(filled(program).x), [float(x) for x in exact.leximin(instance, "drfh")], rtol=1e-12)


@given(instance=instances(max_users=6, one_server=True))
@settings(max_examples=40)
def test_every_stage_is_full_and_priced(instance: fo.Instance) -> None:
    """x fits; the limit with a price is full, its users have the level; and no larger smallest level can be had."""
    program = fo.formulate(instance, "drfh")
    if not program.n_pairs:
        return
    solution, limits, goal = filled(program), program.limits, program.goal
    assert isinstance(goal, Leximin)
    use = limits.matrix @ solution.x
    assert (use <= limits.bounds * (1 + 1e-12)).all()
    level = program.per_user(program.utilities * solution.x) / goal.weights
    for stage in solution.stages:
        assert stage.prices is not None
        (row,) = np.flatnonzero(stage.prices)
        assert use[row] == pytest.approx(limits.bounds[row], rel=1e-12)
        np.testing.assert_allclose(level[stage.users], stage.value, rtol=1e-12)
    rising = np.flatnonzero(program.per_user(program.largest()) > 0)
    if rising.size:
        per_level = program.utilities / goal.weights[program.pair_users]
        rows = np.hstack([-np.diag(per_level)[np.isin(program.pair_users, rising)], np.ones((rising.size, 1))])
        shared = np.hstack([limits.matrix.toarray(), np.zeros((len(limits), 1))])
        goal_of_level = np.append(np.zeros(program.n_pairs), 1.0)
        best = largest(goal_of_level, np.vstack([shared, rows]), np.append(limits.bounds, np.zeros(rising.size)))
        assert level[rising].min() == pytest.approx(best, rel=1e-7, abs=1e-12)


def test_time_is_up_before_the_first_level() -> None:
    """What is final by then is said."""
    program = fo.formulate(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf")
    with pytest.raises(fo.NoSolution) as caught:
        WaterFilling().solve(program, tolerance=1e-9, deadline=Deadline(0.0))
    assert caught.value.known["levels"] == []
