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
from fairopt.solvers.backend import Deadline
from fairopt.solvers.large import engine
from fairopt.solvers.large import rough_levels as rough
from fairopt.solvers.large.engine import suits_regions
from fairopt.solvers.large.rough_levels import rough_levels
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solving.policy import find

NEVER = Deadline(None)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rough levels of small instances, too, from few groups."""
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(pairs_of_regions=0, limits_of_regions=0))
    monkeypatch.setattr(rough, "SETTINGS", SETTINGS._replace(groups_of_rough=40, server_groups_of_rough=12))


def rough_and_exact(seed: int) -> tuple[Program, Solution, fo.Allocation]:
    """A program, its rough levels, and its leximin by HiGHS."""
    instance = instance_in_zones(200, 24, 6, seed)
    program = fo.formulate(instance, "drfh")
    found = rough_levels(program, NEVER)
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
def test_they_lead_to_the_leximin(seed: int) -> None:
    """Everybody has what HiGHS gives it, by the paths of regions and no others."""
    instance = instance_in_zones(200, 24, 6, seed)
    exact = fo.solve(instance, "drfh", solver="highs")
    found = fo.solve(instance, "drfh", solver="large")
    assert found.certificate.worst < 1e-8
    np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user, rtol=1e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", [3, 12, 21])
def test_an_answer_in_a_wrong_order_shows_the_right_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of a rough answer that are wrong by a factor: the second path begins with what the first has found."""
    program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
    rng = np.random.default_rng(seed)
    exact = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    wrong = tuple(replace(stage, value=stage.value * np.exp(rng.normal())) for stage in exact.stages)
    monkeypatch.setattr(rough, "rough_levels", lambda *_: replace(exact, stages=wrong))
    found = find(program, [engine.Large()], 1e-8, NEVER)
    assert found.certificate.worst < 1e-8
    np.testing.assert_allclose(program.per_user(found.solution.x), program.per_user(exact.x), rtol=1e-6)


@pytest.mark.usefixtures("small")
def test_users_who_are_all_different_have_none() -> None:
    """Each has servers of its own: groups are no fewer than users."""
    rng = np.random.default_rng(0)
    instance = fo.generate("uniform", users=60, servers=12, resources=2).replace(eligibility=rng.random((60, 12)) < 0.5)
    assert rough_levels(fo.formulate(instance, "drfh"), NEVER) is None


@pytest.mark.usefixtures("small")
def test_levels_of_groups_are_not_final_at_the_deadline() -> None:
    """They are those of no user."""
    instance = instance_in_zones(200, 24, 6)
    program, errors = fo.formulate(instance, "drfh"), []
    for looks in range(1, 40):
        try:
            rough_levels(program, Late(looks))
        except fo.NoSolution as error:
            errors.append(error)
    assert len(errors) > 3
    assert all(error.known["levels"] == error.known["users"] == [] for error in errors)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("failing", ["solve_levels", "_formulated"])
def test_an_error_of_a_rough_answer_is_none_of_the_leximin(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine goes without."""

    def broken(*_: object) -> None:
        raise fo.FairoptError("the solver of the groups failed")

    instance = instance_in_zones(200, 24, 6)
    monkeypatch.setattr(rough, failing, broken)
    assert rough_levels(fo.formulate(instance, "drfh"), NEVER) is None
    answer = fo.solve(instance, "drfh")
    assert answer.certificate.worst < 1e-8
    assert answer.solver != "large"


@pytest.mark.usefixtures("small")
def test_weights_that_lie_far_apart_go_to_another_engine(caplog: pytest.LogCaptureFixture) -> None:
    """Over ten orders of magnitude the path of the groups does not converge: no levels, and the next engine has the leximin."""
    instance = instance_in_zones(200, 24, 6).replace(weights=np.logspace(-5, 5, 200))
    program = fo.formulate(instance, "drfh")
    with caplog.at_level("INFO"):
        assert rough_levels(program, NEVER) is None
    assert "the path of the groups did not converge" in caplog.text
    found = find(program, [engine.Large(), fo.SOLVERS["highs"]()], 1e-8, NEVER)
    assert (found.engine, found.engines[0]) == ("highs", "large")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("notion", ["proportional", "efficiency", "psdsf", "per-server-drf"])
def test_other_goals_go_without(notion: str) -> None:
    """Leximins of shares with all of the servers' limits alone have such levels."""
    instance = instance_in_zones(200, 24, 6)
    assert not suits_regions(fo.formulate(instance, notion))
    assert suits_regions(fo.formulate(instance, "tsf"))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", [{"parallelism": np.full(200, 2.0)}, {"guarantees": np.full(200, 0.01)}, {"rates": np.ones((200, 24))}])
def test_other_limits_go_without(change: dict[str, Any]) -> None:
    """A group of users does not have them."""
    program = fo.formulate(instance_in_zones(200, 24, 6).replace(**change), "drfh")
    assert not suits_regions(program)


@pytest.mark.parametrize("most", [{"pairs_of_regions": 10**6}, {"limits_of_regions": 10**6}], ids=str)
@pytest.mark.usefixtures("small")
def test_where_they_are_asked_for(most: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each level takes longer than a rough answer."""
    program = fo.formulate(instance_in_zones(200, 24, 6), "drfh")
    assert suits_regions(program)
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(**most))
    assert not suits_regions(program)
    with pytest.raises(fo.Unsupported, match="leave solver out"):
        fo.solve(instance_in_zones(200, 24, 6), "drfh", solver="large")
