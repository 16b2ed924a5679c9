"""Users who differ only in weights and limits of their own as one user of the linear programs of levels."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.errors import NoSolution
from fairopt.program import Leximin, Program, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs import levels
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.user_classes import ClassPrograms, UserClasses, classes_of


def program(seed: int, *, capped: bool = True) -> Program:
    """Forty users of four kinds on three servers, with weights and numbers of tasks of their own; the third kind is on one server."""
    rng = np.random.default_rng(seed)
    kind = rng.permutation(np.arange(40) % 4)
    eligibility = np.array([[True, True, True], [True, True, False], [False, False, True], [False, True, True]])
    tasks = np.where(rng.random(40) < 0.6, rng.uniform(0.01, 1.5, 40), np.inf) if capped else None
    demands = rng.uniform(0.1, 2, (4, 2))
    return fo.formulate(
        fo.Instance(rng.uniform(1, 9, (3, 2)), demands[kind], weights=rng.uniform(1, 5, 40), eligibility=eligibility[kind], tasks=tasks),
        "drfh",
    )


def of_leximin(of: Program) -> tuple[LevelProblem, UserClasses]:
    """The problem of a leximin, and the classes of its users."""
    assert isinstance(of.goal, Leximin)
    problem = LevelProblem.of(of, of.goal)
    classes = UserClasses.of(problem, of.goal.weights)
    assert classes is not None
    return problem, classes


def test_users_of_a_class_differ_in_weights_and_tasks_only() -> None:
    """Users 0 and 1 are alike; the others differ in demand, in eligibility, in the order of magnitude of weight, or take no part."""
    instance = fo.Instance(
        [[9, 9], [4, 4]],
        [[1, 1], [1, 1], [1, 2], [1, 1], [1, 1], [1, 1]],
        weights=[1, 1.5, 1, 1, 1e6, 1],
        eligibility=[[True, True], [True, True], [True, True], [True, False], [True, True], [False, False]],
        tasks=[1, 2, 1, 1, 1, 1],
    )
    of = fo.formulate(instance, "drfh")
    assert isinstance(of.goal, Leximin)
    assert classes_of(of, of.limits.matrix[:4], of.goal.weights).tolist() == [0, 0, 1, 2, 3]
    classes = of_leximin(of)[1]
    assert classes.program.users == tuple(instance.users[n] for n in (0, 2, 3, 4))
    assert classes.part.tolist() == [0.4, 0.6, 1, 1, 1, 0]


def test_worth_tells_users_apart() -> None:
    """With a utility of their own, users of equal demands are in different classes."""
    of = fo.formulate(fo.Instance([[9]], [[1], [1], [1]]), "max-min", utility=[1, 2, 1])
    assert isinstance(of.goal, Leximin)
    assert classes_of(of, of.limits.matrix, of.goal.weights).tolist() == [0, 1, 0]


def test_limits_of_users_that_are_rows_leave_no_classes() -> None:
    """A limit on servers at once, of which tasks take different parts on different servers, is no cap on a level."""
    of = fo.formulate(fo.Instance([[9], [4]], [[1], [1]], parallelism=[1, 1], counts=[2, 2]), "drfh")
    assert isinstance(of.goal, Leximin)
    assert UserClasses.of(LevelProblem.of(of, of.goal), of.goal.weights) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_level_of_classes_is_that_of_all_users(seed: int) -> None:
    """Max t with s >= start + rate t: all rise; or some are settled, in all classes, and the others rise on. The point is one of users."""
    of = program(seed, capped=False)
    problem, classes = of_leximin(of)
    assert classes.number == 4
    of_classes, of_users = ClassPrograms(problem, classes, Deadline(None)), LevelPrograms(problem, Deadline(None))
    course, none = Course.together(np.ones(40, bool)), np.full(40, np.inf)
    of_users.prepare(course, 1.0)
    first = of_users.solve(course, None, []).t
    for at in (course, course.settled(np.arange(0, 40, 3), np.full(14, 0.7 * first))):
        points = []
        for programs in (of_classes, of_users):
            programs.prepare(at, first)
            points.append(programs.solve(at, None, []))
            assert programs.proof(at, points[-1], none).bound == pytest.approx(points[-1].t, rel=1e-9)
        assert points[0].t == pytest.approx(points[1].t, rel=1e-9)
        x, reached = points[0].x, points[0].levels
        assert (of.limits.matrix @ x <= of.limits.bounds * (1 + 1e-14)).all()
        np.testing.assert_allclose(of.per_user(x * problem.per_level), reached, rtol=1e-12)
        assert (reached >= at.at(points[0].t) * (1 - 1e-12)).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_leximin_by_classes_is_that_of_all_users(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tasks of each user, and a certificate of single users. Caps lie below and above the levels."""
    of, found = program(seed), []
    assert isinstance(of.goal, Leximin)
    for users in (0, 1_000):
        monkeypatch.setattr(levels, "_MANY_USERS", users)
        found.append(levels.solve_levels(of, of.goal, 1e-9, Deadline(None)))
        assert certify(of, found[-1]).worst <= 1e-11
    np.testing.assert_allclose(of.per_user(found[0].x), of.per_user(found[1].x), rtol=1e-10)
    assert [stage.value for stage in found[0].stages] == pytest.approx([stage.value for stage in found[1].stages], rel=1e-10)


def test_at_the_deadline_an_error_names_users() -> None:
    """And not the classes."""
    of = program(0)
    problem, classes = of_leximin(of)
    programs = ClassPrograms(problem, classes, Deadline(0.0))
    course = Course.together(np.ones(40, bool))
    programs.prepare(course, 1.0)
    with pytest.raises(NoSolution) as raised:
        programs.solve(course, None, [Stage(0.5, np.array([39]), None)])
    assert raised.value.known == {"levels": [0.5], "users": [of.users[39]]}
