"""What an LP of a level says, by hand: two users on one server of 8, a task of either takes 1 of it.

A task is 1/8 of a level. In units of a level of 1/2 the LP is: max t', (y[0] + y[1]) / 2 <= 1, y[n] >= t'; y = t' = 1 is its optimum, and a
price of 1, of which each user pays one half, proves it.
"""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Leximin
from fairopt.solvers.highs_model import Outcome, Status
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_model import LevelModel
from fairopt.solvers.via_highs.level_points import Point, paid_at, point_of, prices_at
from fairopt.solvers.via_highs.level_problem import LevelProblem

PROGRAM = fo.formulate(fo.Instance([[8]], [[1], [1]], users=["A", "B"]), "drfh")
COURSE = Course.together(np.ones(2, bool))


def lp() -> tuple[LevelModel, LevelProblem]:
    """The LP in units of 1/2."""
    assert isinstance(PROGRAM.goal, Leximin)
    problem = LevelProblem.of(PROGRAM, PROGRAM.goal)
    return LevelModel.of(problem, COURSE, 0.5, None, 0.0), problem


def answer(*x: float) -> tuple[Point, float]:
    """Of y[0], y[1] and t'."""
    return point_of(*lp(), COURSE, Outcome(Status.OPTIMAL, np.array(x), np.array([1.0, -0.5, -0.5]), 0.0, 0))


@pytest.mark.parametrize(
    ("x", "tasks", "t", "error"),
    [
        ((1.0, 1.0, 1.0), (4, 4), 0.5, 0.0),
        ((1.02, 1.02, 1.0), (4, 4), 0.5, 0.02),  # too much of the server: everybody is cut
        ((1.0, 0.98, 1.0), (4, 3.92), 0.49, 0.02),  # too little for B: both have the level of B at least
        ((1.0, -0.03, 0.0), (4, 0), 0.0, 0.03),
    ],
)
def test_a_point_is_scaled_until_it_violates_nothing(x: tuple[float, ...], tasks: tuple[float, ...], t: float, error: float) -> None:
    """Tasks, the level that both have, and by how much the LP was violated."""
    point, violation = answer(*x)
    np.testing.assert_allclose(point.x, tasks, rtol=1e-14)
    np.testing.assert_allclose(point.levels, np.array(tasks) / 8, rtol=1e-14)
    assert point.t == pytest.approx(t, rel=1e-14)
    assert violation == pytest.approx(error, abs=1e-14)


def test_prices_are_those_of_a_level() -> None:
    """A unit of the server raises both by 1/16; a unit of a level costs 1 of these prices, and each pays one half of t."""
    model, problem = lp()
    point, _ = answer(1.0, 1.0, 1.0)
    prices, cheapest, spent = prices_at(model, problem, point)
    assert prices.tolist() == [1 / 16]
    assert cheapest.tolist() == [1.0, 1.0]
    assert spent == 1.0
    assert paid_at(model, problem, point).tolist() == [0.5, 0.5]


def test_a_model_that_gives_settled_users_some_slack_owes_them_less() -> None:
    """A is settled at 1/2, and has a part of 1e-3 less; the model allows for that, or it does not."""
    problem = lp()[1]
    course = COURSE.settled(np.array([0]), np.array([0.5]))
    model = LevelModel.of(problem, course, 0.5, None, 1e-3)
    y = np.array([0.4995, 0.5]) * 8 / model.scale
    outcome = Outcome(Status.OPTIMAL, np.append(y, 1.0), np.zeros(3), 0.0, 0)
    assert point_of(model, problem, course, outcome, 1e-3)[1] == pytest.approx(0.0, abs=1e-14)
    assert point_of(model, problem, course, outcome)[1] == pytest.approx(1e-3)
