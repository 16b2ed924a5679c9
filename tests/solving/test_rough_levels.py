"""Rough levels of groups of users and servers: about right, asked for where they help, and never more than a beginning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import instance_in_zones
from support.deadlines import Late

import fairopt as fo
from fairopt.program import Program, Solution
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import paths
from fairopt.solving import rough_levels as rough
from fairopt.solving.formulation import notion_of
from fairopt.solving.policy import find
from fairopt.solving.rough_levels import fits_rough, rough_levels

NEVER = Deadline(None)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rough levels of small instances, too, from few groups."""
    for name, value in {"_LEAST_PAIRS": 0, "_LEAST_LIMITS": 0, "_GROUPS": 40, "_SERVER_GROUPS": 12}.items():
        monkeypatch.setattr(rough, name, value)


def rough_and_exact(seed: int) -> tuple[Program, Solution, fo.Allocation]:
    """A program, its rough levels, and its leximin by HiGHS."""
    instance = instance_in_zones(200, 24, 6, seed)
    program = fo.formulate(instance, "drfh")
    found = rough_levels(instance, notion_of("drfh"), program, NEVER)
    assert found is not None
    return program, found, fo.solve(instance, "drfh", solver="highs")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(4))
def test_levels_are_about_right(seed: int) -> None:
    """The lowest and the highest one to some tenths; prices are those of limits of servers, and nobody has a level."""
    program, found, exact = rough_and_exact(seed)
    low, high = (pick(stage.value for stage in found.stages) for pick in (min, max))
    of_servers = [level.value for level in exact.levels if level.prices is not None]  # others are of users who have all their tasks
    assert low == pytest.approx(min(of_servers), rel=0.4)
    assert high == pytest.approx(max(of_servers), rel=0.4)
    for stage in found.stages:
        assert stage.users.size == 0
        assert stage.prices is not None
        assert stage.prices.shape == program.limits.bounds.shape
        assert not stage.prices[~program.limits.of_servers].any()
        assert stage.prices.any()
    assert found.x.size == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(4))
def test_they_lead_to_the_leximin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody has what HiGHS gives it, by the paths of regions and no others."""
    instance = instance_in_zones(200, 24, 6, seed)
    exact = fo.solve(instance, "drfh", solver="highs")
    monkeypatch.setattr(paths, "solve_levels", None)
    found = fo.solve(instance, "drfh", solver="interior-point")
    assert found.certificate.worst < 1e-8
    np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user, rtol=1e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", [3, 12, 21])
def test_an_answer_in_a_wrong_order_shows_the_right_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of a rough answer that are wrong by a factor: the second path begins with what the first has found."""
    program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
    engines, rng = candidates(program, "interior-point"), np.random.default_rng(seed)
    exact = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    wrong = tuple(replace(stage, value=stage.value * np.exp(rng.normal())) for stage in exact.stages)
    monkeypatch.setattr(paths, "solve_levels", None)
    found = find(program, engines, 1e-8, NEVER, replace(exact, stages=wrong))
    assert found.certificate.worst < 1e-8
    np.testing.assert_allclose(program.per_user(found.solution.x), program.per_user(exact.x), rtol=1e-6)


@pytest.mark.usefixtures("small")
def test_users_who_are_all_different_have_none() -> None:
    """Each has servers of its own: groups are no fewer than users."""
    rng = np.random.default_rng(0)
    instance = fo.generate("uniform", users=60, servers=12, resources=2).replace(eligibility=rng.random((60, 12)) < 0.5)
    assert rough_levels(instance, notion_of("drfh"), fo.formulate(instance, "drfh"), NEVER) is None


@pytest.mark.usefixtures("small")
def test_levels_of_groups_are_not_final_at_the_deadline() -> None:
    """They are those of no user."""
    instance = instance_in_zones(200, 24, 6)
    program, errors = fo.formulate(instance, "drfh"), []
    for looks in range(1, 40):
        try:
            rough_levels(instance, notion_of("drfh"), program, Late(looks))
        except fo.NoSolution as error:
            errors.append(error)
    assert len(errors) > 3
    assert all(error.known["levels"] == error.known["users"] == [] for error in errors)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("failing", ["find", "_formulated"])
def test_an_error_of_a_rough_answer_is_none_of_the_leximin(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine goes without."""

    def broken(*_: object) -> None:
        raise fo.FairoptError("the solver of the groups failed")

    instance = instance_in_zones(200, 24, 6)
    monkeypatch.setattr(rough, failing, broken)
    assert rough_levels(instance, notion_of("drfh"), fo.formulate(instance, "drfh"), NEVER) is None
    assert fo.solve(instance, "drfh", solver="interior-point").certificate.worst < 1e-8


def test_engines_that_begin_with_rough_levels() -> None:
    """Of leximins, in NumPy's arrays; the others have no ways to begin so."""
    leximin, total = (fo.formulate(instance_in_zones(20, 6, 3), notion) for notion in ("drfh", "efficiency"))
    nothing = Solution(np.zeros(0))
    engine = candidates(leximin, "interior-point")[0]
    assert engine.takes_rough_levels
    assert len(engine.ways_from(nothing, leximin, 1e-8)) == 2
    assert not engine.ways_from(nothing, total, 1e-8)
    assert not fo.SOLVERS["interior-point"]("torch").takes_rough_levels
    highs = fo.SOLVERS["highs"]()
    assert not highs.takes_rough_levels
    assert not highs.ways_from(nothing, leximin, 1e-8)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("notion", ["proportional", "efficiency", "psdsf", "per-server-drf"])
def test_other_goals_go_without(notion: str) -> None:
    """Leximins of shares with all of the servers' limits alone have such levels."""
    instance = instance_in_zones(200, 24, 6)
    assert not fits_rough(instance, notion_of(notion), "rdm")
    assert fits_rough(instance, notion_of("tsf"), "rdm")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", [{"parallelism": np.full(200, 2.0)}, {"guarantees": np.full(200, 0.01)}, {"rates": np.ones((200, 24))}])
def test_other_limits_go_without(change: dict[str, Any]) -> None:
    """A group of users does not have them."""
    assert not fits_rough(instance_in_zones(200, 24, 6).replace(**change), notion_of("drfh"), "rdm")


@pytest.mark.parametrize(("name", "large"), [("_LEAST_PAIRS", 10**6), ("_LEAST_LIMITS", 10**6)])
@pytest.mark.usefixtures("small")
def test_where_they_are_asked_for(name: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there may be several levels, and each of them takes longer than a rough answer."""
    instance, drfh = instance_in_zones(200, 24, 6), notion_of("drfh")
    assert fits_rough(instance, drfh, "rdm")
    assert not fits_rough(instance, drfh, "tdm")
    assert not fits_rough(fo.generate("uniform", users=200, servers=24, resources=3), drfh, "rdm")  # one level
    monkeypatch.setattr(rough, name, large)
    assert not fits_rough(instance, drfh, "rdm")
