"""What a level leaves: pairs that leave are used by no allocation that keeps the level, by linear programs of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.faces import Faces
from fairopt.solvers.interior_point.path import LevelPath, LevelResult, scaled_course, solve_level
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram


def first_level(instance: fo.Instance) -> tuple[ScaledProgram, Faces, LevelResult, Course]:
    """LevelResult to the first level of DRFH, settle whom it stops, and return the course of the others in parts of their reach."""
    scaled = ScaledProgram.of(fo.formulate(instance, "drfh"))
    unit = float(scaled.reach.min())
    faces = Faces(scaled, NUMPY)
    end = solve_level(LevelPath.first(lay_out(scaled, NUMPY), unit), 1e-9, Deadline(None))
    path, reached = end.path, end.path.ended(end.reached)
    stopped = path.stopped(reached, 1e-8)
    level = reached.level * unit
    course = Course.together(np.ones(instance.n_users, bool)).settled(scaled.member[stopped], np.full(int(stopped.sum()), level))
    in_parts = scaled_course(scaled, course, unit)
    faces.settle(path, reached, stopped, in_parts)
    return scaled, faces, end, in_parts


def most(scaled: ScaledProgram, least: FloatArray, column: int) -> float:
    """Return the most that a pair can have where every user has at least its level, in parts of its reach."""
    limits = [np.where(scaled.server == i, row, 0.0) for row in scaled.A for i in range(scaled.n_servers)]
    levels = [np.where(scaled.user == n, -scaled.W, 0.0) for n in range(scaled.n_users)]
    gain = -(np.arange(scaled.n_pairs) == column).astype(float)
    found = linprog(gain, A_ub=np.array(limits + levels), b_ub=np.append(np.ones(len(limits)), -least * (1 - 1e-9)))
    assert found.status == 0
    assert found.fun is not None
    return float(-found.fun)


def test_a_server_that_is_full_is_left_by_who_has_another() -> None:
    """Ann may use the small server alone and fills it, a task each of 1; ben goes on on the large one, which he shares with cem: 1.5."""
    eligibility = [[True, False], [True, True], [False, True]]
    instance = fo.Instance([[1], [3]], [[1], [1], [1]], users=["ann", "ben", "cem"], eligibility=eligibility)
    scaled, faces, _, course = first_level(instance)
    assert list(zip(scaled.user.tolist(), scaled.server.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert course.rising.tolist() == [False, True, True]
    assert faces.tight.tolist() == [True, False, False]
    assert faces.full.tolist() == [[True, False]]
    assert faces.open.tolist() == [False, False, True, True]  # ann's only pair is known, and ben's there is not to be had
    assert scaled.tasks(faces.x)[:2] == pytest.approx([1.0, 0.0])
    assert faces.near(course).tolist() == [False, False, True, True]
    assert not faces.leave_out_some(course)
    pairs, face = faces.next(course, 1.0)
    assert (pairs.n_users, pairs.n_servers) == (2, 1)
    assert face.bounds.tolist() == [[1.0]]
    assert not face.full.any()
    assert not face.tight.any()
    second = solve_level(LevelPath.on(face, pairs), 1e-9, Deadline(None))
    assert scaled.tasks(faces.point(second.path, second.reached)) == pytest.approx([1.0, 0.0, 1.5, 1.5], rel=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_who_leaves_could_have_nothing_there(seed: int) -> None:
    """Every pair that is closed at 0, against the most that it can have without a loss for any level; open ones keep the level reached."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((7, 4)) < 0.5
    eligibility[np.arange(7), rng.integers(0, 4, 7)] = True
    instance = fo.Instance(rng.uniform(1, 9, (4, 2)), rng.uniform(0.5, 2, (7, 2)), eligibility=eligibility)
    scaled, faces, end, course = first_level(instance)
    assert (~course.rising).any()
    least = course.at(float(end.reached.level))
    for column in np.flatnonzero(~faces.open):
        possible = most(scaled, least, int(column))
        assert possible >= faces.x[column] - 1e-7
        if faces.x[column] == 0.0:
            assert possible < 1e-6
        else:  # the only pair of a settled user
            assert scaled.W[column] * faces.x[column] == pytest.approx(course.start[scaled.user[column]])
    reached = np.bincount(scaled.user, weights=scaled.W * faces.x, minlength=scaled.n_users)
    assert (reached >= least * (1 - 1e-8)).all()


def test_a_part_of_the_users_and_what_it_has() -> None:
    """Ben alone: what cem has on their server is not decided, and is not taken from it; what ann has on hers, for good, is."""
    eligibility = [[True, False], [True, True], [False, True]]
    instance = fo.Instance([[1], [3]], [[1], [1], [1]], users=["ann", "ben", "cem"], eligibility=eligibility)
    _, faces, _, course = first_level(instance)
    faces.x[:] = [0.5, 0.0, 0.25, 0.75]  # of ann, of ben on both servers, of cem
    ben = np.array([False, True, False])
    near = faces.near(course, ben)
    assert near.tolist() == [False, False, True, False]
    pairs, face = faces.next(course, 1.0, near)
    assert (pairs.n_users, pairs.n_servers) == (1, 1)
    assert face.bounds.tolist() == [[1.0]]
    assert faces.user.tolist() == [1]
    assert face.x.tolist() == [0.25]
    faces.open[:] = [False, True, True, True]
    _, face = faces.next(course, 1.0, np.array([False, True, True, False]))
    assert face.bounds.tolist() == [[0.5, 1.0]]
