"""The linear program of one level on a model that is changed and solved again, against plain linear programs of SciPy's."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from scipy.optimize import linprog

import fairopt as fo
from fairopt.program import Leximin, Program
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.settings import SETTINGS


def program(seed: int) -> Program:
    """Six users on four servers, some pairs missing."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((6, 4)) < 0.6
    eligibility[~eligibility.any(axis=1), 0] = True
    return fo.formulate(
        fo.Instance(rng.uniform(1, 9, (4, 2)), rng.uniform(0.1, 2, (6, 2)), weights=rng.uniform(1, 5, 6), eligibility=eligibility), "drfh"
    )


def highest(of: Program, course: Course) -> float:
    """The largest t with A x <= b, s >= start + rate t, by SciPy."""
    assert isinstance(of.goal, Leximin)
    per_level = of.utilities / of.goal.weights[of.pair_users]
    levels = np.where(of.pair_users == np.arange(len(of.users))[:, None], per_level, 0.0)
    rows = np.block([[of.limits.matrix.toarray(), np.zeros((len(of.limits), 1))], [-levels, course.rate[:, None]]])
    found = linprog(np.append(np.zeros(of.n_pairs), -1.0), A_ub=rows, b_ub=np.append(of.limits.bounds, -course.start), method="highs")
    assert found.fun is not None
    return float(-found.fun)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_a_changed_model_has_the_level_of_a_new_one(seed: int, unit: float) -> None:
    """All rise; two are settled below; the others rise from where they are, at other rates. In any unit of t."""
    of = program(seed)
    assert isinstance(of.goal, Leximin)
    problem = LevelProblem.of(of, of.goal)
    programs = LevelPrograms(problem, Deadline(None))
    course = Course.together(np.ones(6, bool))
    first = highest(of, course)
    for at in (
        course,
        course.settled(np.array([1, 4]), np.full(2, 0.7 * first)),
        Course(np.arange(6) != 3, np.full(6, 0.5 * first), np.where(np.arange(6) != 3, [1.0, 2, 3, 1, 2, 3], 0.0)),
    ):
        programs.prepare(at, unit)
        point = programs.solve(at, None, [])
        proof = programs.proof(at, point, np.full(6, np.inf))
        expected = highest(of, at)
        assert point.t == pytest.approx(expected, rel=1e-9)
        assert proof.bound == pytest.approx(expected, rel=1e-9)
        assert (of.limits.matrix @ point.x <= of.limits.bounds * (1 + 1e-14)).all()
        assert (point.levels >= at.at(point.t) * (1 - 1e-12)).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_level_goes_on_from_the_last_one(seed: int) -> None:
    """The last t is a bound of the next one, and has no part of its price: from the same course come the same level and prices."""
    of = program(seed)
    assert isinstance(of.goal, Leximin)
    programs = LevelPrograms(LevelProblem.of(of, of.goal), Deadline(None))
    course = Course.together(np.ones(6, bool))
    proofs = []
    for _ in range(2):
        programs.prepare(course, 1.0)
        point = programs.solve(course, None, [])
        proofs.append(programs.proof(course, point, np.full(6, np.inf)))
        assert point.t == pytest.approx(highest(of, course), rel=1e-12)
    assert proofs[1].prices == pytest.approx(proofs[0].prices, rel=1e-12)
    stopped = np.flatnonzero(proofs[0].stops(course, point.t))
    rest = course.settled(stopped, course.at(point.t)[stopped])
    if rest.rising.any():
        programs.prepare(rest, 1.0)
        assert programs.floor == pytest.approx(point.part)
        assert programs.solve(rest, None, []).t == pytest.approx(highest(of, rest), rel=1e-9)
    lower = Course(course.rising, np.zeros(6), np.where(np.arange(6) < 3, 3.0, 1.0))
    programs.prepare(lower, 1.0)
    assert programs.floor == 0  # the last point does not have this level
    assert programs.solve(lower, None, []).t == pytest.approx(highest(of, lower), rel=1e-9)


@pytest.mark.parametrize("above", [8e-15, 1e-12])
@pytest.mark.parametrize("seed", range(5))
def test_settled_levels_give_way_where_rounding_puts_them_out_of_reach(seed: int, above: float) -> None:
    """Who was stopped is to have a hair more than can be had: HiGHS finds no such point, and by that much less is asked."""
    of = program(seed)
    assert isinstance(of.goal, Leximin)
    programs = LevelPrograms(LevelProblem.of(of, of.goal), Deadline(None))
    course = Course.together(np.ones(6, bool))
    programs.prepare(course, 1.0)
    point = programs.solve(course, None, [])
    proof = programs.proof(course, point, None)
    stopped = np.flatnonzero(proof.stops(course, point.t))
    rest = course.settled(stopped, course.at(point.t)[stopped])
    if rest.rising.any():
        beyond = course.settled(stopped, course.at(point.t)[stopped] * (1 + above))
        programs.prepare(beyond, 1.0)
        assert programs.solve(beyond, None, []).t == pytest.approx(highest(of, rest), rel=1e-9)
        assert programs.slack <= 10 * above
        assert programs.slack > 0 or above < 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_what_is_wanted_may_have_caps(seed: int) -> None:
    """The largest theta with s >= theta min(guess, cap) for a guess of twice the level and caps of a half of it for some."""
    of = program(seed)
    assert isinstance(of.goal, Leximin)
    programs = LevelPrograms(LevelProblem.of(of, of.goal), Deadline(None))
    course = Course.together(np.ones(6, bool))
    level = highest(of, course)
    cap = np.where(np.arange(6) < 2, 0.5 * level, np.inf)
    programs.prepare(course, 2 * level, cap)
    point = programs.solve(course, cap, [])
    wanted = np.minimum(cap, 2 * level)
    assert point.part == pytest.approx(highest(of, Course(course.rising, course.start, wanted)), rel=1e-9)
    assert (point.levels >= point.part * wanted * (1 - 1e-12)).all()


@pytest.mark.parametrize("failures", range(1, len(SETTINGS.attempts) + 1))
def test_a_guess_is_the_same_however_often_the_solver_gives_up(failures: int) -> None:
    """With caps the unit of t is the guess: in another one, other users would be at their caps."""
    of = program(0)
    assert isinstance(of.goal, Leximin)
    programs = LevelPrograms(LevelProblem.of(of, of.goal), Deadline(None))
    course = Course.together(np.ones(6, bool))
    level = highest(of, course)
    cap = np.where(np.arange(6) < 2, 0.5 * level, np.inf)
    run, left = LevelPrograms._run, [failures]

    def gives_up(self: LevelPrograms) -> Outcome:
        outcome, left[0] = run(self), left[0] - 1
        return Outcome(Status.FAILED, np.empty(0), np.empty(0), 0.0, 0) if left[0] >= 0 else outcome

    programs.prepare(course, 2 * level, cap)
    with mock.patch.object(LevelPrograms, "_run", gives_up):
        point = programs.solve(course, cap, [])
    wanted = np.minimum(cap, 2 * level)
    assert point.t_unit == pytest.approx(2 * level)
    assert point.part == pytest.approx(highest(of, Course(course.rising, course.start, wanted)), rel=1e-8)
