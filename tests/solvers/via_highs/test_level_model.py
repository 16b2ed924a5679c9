"""The model of one level: its units change what the solver sees, and not what it finds."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Leximin
from fairopt.solvers.backend import Status
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_model import LevelModel
from fairopt.solvers.via_highs.level_problem import LevelProblem

# Dominant shares are x / 8 and y / 6. The second user fills the small memory of the second server (2 tasks, 4 of 6 CPUs); on the first,
# 8 t + 2 (6 t - 2) = 6 CPUs at the largest equal share, t = 1/2.
EVEN = fo.Instance([[6, 6], [6, 2]], [[1, 1], [2, 1]])


def problem(instance: fo.Instance) -> LevelProblem:
    """The leximin of DRFH."""
    of = fo.formulate(instance, "drfh")
    assert isinstance(of.goal, Leximin)
    return LevelProblem.of(of, of.goal)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_the_level_is_the_same_in_any_unit(unit: float) -> None:
    """t = t' t_unit."""
    model = LevelModel.of(problem(EVEN), Course.together(np.ones(2, bool)), unit, None, 0.0)
    outcome = model.highs.run(np.inf)
    assert outcome.status is Status.OPTIMAL
    assert outcome.x[-1] * model.t_unit == pytest.approx(0.5, rel=1e-9)


def test_no_coefficient_exceeds_one() -> None:
    """Demands of 1e-6 to 1e6 beside each other: a unit of a column takes at most a whole limit and gives at most one unit of its level."""
    rng = np.random.default_rng(3)
    instance = fo.Instance(10.0 ** rng.uniform(-3, 3, (4, 2)), 10.0 ** rng.uniform(-6, 6, (5, 2)))
    of = problem(instance)
    model = LevelModel.of(of, Course.together(np.ones(5, bool)), 1e-3, None, 0.0)
    assert model.use.matrix.max() <= 1 + 1e-12
    assert model.worth.max() <= 1 + 1e-12
    assert (model.scale <= of.largest * (1 + 1e-12)).all()


def test_a_settled_user_keeps_its_level_and_slack_relaxes_it() -> None:
    """The second user stays at 0.3: 1.8 tasks on the second server, which leaves 6 + 0.2 tasks to the first user."""
    of = problem(EVEN)
    course = Course.together(np.ones(2, bool)).settled(np.array([1]), np.array([0.3]))
    exact, relaxed = (LevelModel.of(of, course, 1.0, None, slack) for slack in (0.0, 0.5))
    assert exact.highs.run(np.inf).x[-1] == pytest.approx(6.2 / 8, rel=1e-9)
    assert relaxed.highs.run(np.inf).x[-1] == pytest.approx(7.1 / 8, rel=1e-9)  # y = 0.9


def test_a_cap_is_part_of_what_is_wanted() -> None:
    """A guess of 1.2 with a cap of 0.3 for the second: 8 (1.2 theta) + 6 (0.3 theta) = 8 GiB at theta = 8 / 11.4."""
    model = LevelModel.of(problem(EVEN), Course.together(np.ones(2, bool)), 1.2, np.array([np.inf, 0.3]), 0.0)
    assert model.capped
    assert model.wanted.tolist() == [1.2, 0.3]
    assert model.highs.run(np.inf).x[-1] == pytest.approx(8 / 11.4, rel=1e-9)
