"""Groups of users with many servers: their path takes of every limit what their members take, and what it proves holds of all users."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import instance_in_zones

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import BoolArray
from fairopt.program import Leximin, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.path import Face, LevelPath, LevelResult, solve_level
from fairopt.solvers.large import level_groups, regions
from fairopt.solvers.large.level_groups import LevelGroups
from fairopt.solvers.large.regions import solve_in_regions
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.leximin.levels import Course, settle_below
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of small programs, too."""
    few = SETTINGS._replace(pairs_of_level_groups=0, level_groups=8, users_of_level_group=2.0)
    monkeypatch.setattr(level_groups, "SETTINGS", few)


def one_level(demands: list[list[float]], capacities: list[list[float]], tight: BoolArray | None = None) -> tuple[ScaledProgram, Face]:
    """Users who may all run everywhere, and the face of a first level at which x is even."""
    scaled = ScaledProgram.of(fo.formulate(fo.Instance(capacities, demands), "drfh"))
    n = scaled.n_users
    course = Course(np.ones(n, bool), np.zeros(n), 1 / scaled.reach)
    full = np.zeros((scaled.n_slots, scaled.n_places), bool)
    x = np.full(scaled.n_pairs, 0.5 / n)
    return scaled, Face(course, np.ones(full.shape), np.zeros(n, bool) if tight is None else tight, full, x, 0.0)


def by_highs(program: Program) -> Solution:
    """All servers at once, by another engine."""
    return fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)


def test_a_group_takes_what_its_members_take() -> None:
    """Six users of two kinds, by the resources that they use: at any x of the groups, limits and levels are those of all users."""
    rng = np.random.default_rng(3)
    demands = rng.uniform(0.1, 1, (6, 2))
    demands[3:, 1] = 0.0
    scaled, face = one_level(demands.tolist(), rng.uniform(2, 9, (4, 2)).tolist())
    groups = LevelGroups.of(scaled, face, np.full(6, -1))
    assert groups is None  # of eight groups of two users each there are not as many users
    groups = LevelGroups._of_labels(scaled, face, np.array([0, 0, 0, 1, 1, 1]))
    assert groups.program.n_users == 2
    assert groups.group.tolist() == [0, 0, 0, 1, 1, 1]
    of_groups = rng.uniform(0, 1, groups.program.n_pairs)
    x = groups.parts * of_groups[groups.pair]
    np.testing.assert_allclose(groups.program.use(of_groups), scaled.use(x), rtol=1e-12)
    risen = scaled.sum_by_user(scaled.W * x) / face.course.rate
    np.testing.assert_allclose(
        risen, (groups.program.sum_by_user(groups.program.W * of_groups) / groups.face_of_groups.course.rate)[groups.group], rtol=1e-12
    )


def test_one_scarce_resource_is_proved_by_its_groups() -> None:
    """24 users of CPU on servers with plenty of memory: t = all CPU / the sum of CPU that a unit of level takes, by hand."""
    rng = np.random.default_rng(5)
    demands = np.column_stack([rng.uniform(0.5, 2, 24), rng.uniform(0.01, 0.02, 24)])
    capacities = np.column_stack([rng.uniform(5, 9, 10), np.full(10, 100.0)])
    scaled, face = one_level(demands.tolist(), capacities.tolist())
    groups = LevelGroups.of(scaled, face, np.full(24, -1))
    assert groups is not None
    assert groups.program.n_users == 8
    few = LevelPath.first(lay_out(groups.program, NUMPY), 1.0)
    with np.errstate(all="ignore"):
        end = groups.spread(few, solve_level(few, settle_below(1e-8), NEVER), LevelPath.on(face, lay_out(scaled, NUMPY)))
    assert end.path.proves_all(end.reached, settle_below(1e-8))
    share = demands[:, 0] / capacities[:, 0].sum()  # the dominant share of a task: all use the more of CPU
    assert end.reached.level == pytest.approx(capacities[:, 0].sum() / (demands[:, 0] / share).sum(), rel=1e-9)
    assert end.reached.saturated.all()


def test_settled_users_stay_in_their_proportions() -> None:
    """Two users whose levels are equations have their tasks in other proportions than the third: they are not of its group."""
    demands = [[1.0, 0.5]] * 8
    tight = np.arange(8) < 3
    scaled, face = one_level(demands, [[9.0, 9.0], [9.0, 9.0]], tight)
    x = face.x.reshape(8, 2).copy()
    x[:2] = [0.01, 0.03]
    course = Course(~tight, np.where(tight, scaled.sum_by_user(scaled.W * x.ravel()), 0.0), np.where(tight, 0.0, face.course.rate))
    face = replace(face, course=course, x=x.ravel())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_groups, "SETTINGS", SETTINGS._replace(pairs_of_level_groups=0, level_groups=1, users_of_level_group=1.0))
        groups = LevelGroups.of(scaled, face, np.full(8, -1))
        assert groups is not None
        assert not groups.is_together[:3].any()
        assert len(set(groups.group[3:].tolist())) == 1
        before = np.array([0, 0, 1, 2, 2, 2, 2, 2])
        groups = LevelGroups.of(scaled, face, before)  # an earlier path has had the two together
        assert groups is not None
        assert groups.group.tolist() == [0, 0, 1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("seed", range(6))
def test_levels_by_groups_are_the_leximin(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """The last regions of these are of users who may run everywhere; whatever groups do not prove is solved for all users."""
    program = fo.formulate(instance_in_zones(160, 20, 5, seed, anywhere=0.6), "drfh")
    exact = by_highs(program)
    assert isinstance(program.goal, Leximin)
    with caplog.at_level(logging.INFO, logger=regions.__name__), np.errstate(all="ignore"):
        found = solve_in_regions(program, program.goal, exact, 1e-8, NEVER)
    assert "groups of" in caplog.text
    assert found is not None
    assert certify(program, found).worst < 1e-8
    np.testing.assert_allclose(program.per_user(found.x), program.per_user(exact.x), rtol=1e-6)


@pytest.mark.parametrize("part", [0.6, 0.94])
def test_users_whose_caps_are_expected_to_be_low_are_in_groups(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third of 24 users who may run everywhere has a limit on its tasks, at this part of the level without limits.

    CPU alone is short. Four users of two small servers stop first. With C the CPU of the others, t times the sum of the CPU that a unit of
    level takes is C, by hand, where limited users count at their caps.
    """
    rng = np.random.default_rng(7)
    demands = np.column_stack([rng.uniform(0.5, 2, 28), rng.uniform(0.01, 0.02, 28)])
    capacities = np.column_stack([np.append([1.0, 1.0], rng.uniform(5, 9, 10)), np.full(12, 100.0)])
    eligibility = np.ones((28, 12), bool)
    eligibility[24:, 2:] = False
    cpu, share = capacities[2:, 0].sum(), demands[:24, 0] / capacities[:, 0].sum()
    level, limits = cpu / (demands[:24, 0] / share).sum(), np.full(28, np.inf)
    limits[:24:3] = part * level / share[::3]
    program = fo.formulate(fo.Instance(capacities, demands, eligibility=eligibility, tasks=limits), "drfh")
    exact = by_highs(program)
    together, spread = np.zeros(28, bool), LevelGroups.spread

    def noted(groups: LevelGroups, *given: Any) -> LevelResult:
        together[groups.part.member[groups.is_together & ~groups.face.course.rising]] = True
        return spread(groups, *given)

    monkeypatch.setattr(LevelGroups, "spread", noted)
    assert isinstance(program.goal, Leximin)
    with np.errstate(all="ignore"):
        found = solve_in_regions(program, program.goal, exact, 1e-8, NEVER)
    assert found is not None
    tasks = program.per_user(found.x)
    t = (cpu - (demands[:24:3, 0] * limits[:24:3]).sum()) / (24 - 8) / capacities[:, 0].sum()
    np.testing.assert_allclose(tasks[:24:3], limits[:24:3], rtol=1e-9)
    np.testing.assert_allclose(np.delete(tasks[:24], np.s_[::3]), np.delete(t / share, np.s_[::3]), rtol=1e-9)
    np.testing.assert_allclose(tasks, program.per_user(exact.x), rtol=1e-6)
    assert together.sum() > 4
    assert np.isfinite(limits[together]).all()
