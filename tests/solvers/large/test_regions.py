"""A leximin region by region is that of all servers at once, whatever a rough answer says of the regions."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import instance_in_zones

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.path import LevelPath, LevelResult
from fairopt.solvers.large import regions
from fairopt.solvers.large.placing import place
from fairopt.solvers.large.regions import regions_of, solve_in_regions
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)


def by_highs(program: Program) -> Solution:
    """All servers at once, by another engine."""
    return fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)


def by_regions(program: Program, rough: Solution) -> Solution | None:
    """Region by region."""
    assert isinstance(program.goal, Leximin)
    with np.errstate(all="ignore"):  # as in ``paths``
        return solve_in_regions(program, program.goal, rough, 1e-8, NEVER)


def tasks(program: Program, solution: Solution) -> FloatArray:
    """What everybody has, (users,)."""
    return np.asarray(program.per_user(solution.x))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("blur", [0.0, 0.05, 1.0])
def test_the_regions_of_a_rough_answer_give_the_leximin(seed: int, blur: float) -> None:
    """With expectations that are right, off by some per cent, or wrong: then the levels that are found are expectations that are right."""
    program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
    exact = by_highs(program)
    rng = np.random.default_rng(seed)
    rough = replace(exact, stages=tuple(replace(stage, value=stage.value * np.exp(blur * rng.normal())) for stage in exact.stages))
    found = by_regions(program, rough)
    assert found is not None
    if blur and certify(program, found).worst > 1e-8:
        found = by_regions(program, found)
        assert found is not None
    assert certify(program, found).worst < 1e-8
    np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_region_that_is_overlooked_is_noticed(seed: int) -> None:
    """Half of the levels of an answer are kept, with the prices of other levels: there is no answer then, or the right one."""
    program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
    exact = by_highs(program)
    stages = exact.stages
    wrong = tuple(replace(stages[k], prices=stages[-1 - k].prices) for k in range(0, len(stages), 2))
    found = by_regions(program, replace(exact, stages=wrong))
    if found is not None:
        assert certify(program, found).worst < 1e-8
        np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)


def test_a_level_below_an_earlier_one_shows_what_was_overlooked(caplog: pytest.LogCaptureFixture) -> None:
    """Where the lowest level is expected far above all others, the way starts again, with what it has found, and gets there."""
    corrected = 0
    for seed in range(4):
        program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
        exact = by_highs(program)
        lowest = min(stage.value for stage in exact.stages)
        rough = replace(
            exact, stages=tuple(replace(stage, value=stage.value * (100.0 if stage.value == lowest else 1.0)) for stage in exact.stages)
        )
        caplog.clear()
        with caplog.at_level(logging.INFO, logger=regions.__name__):
            found = by_regions(program, rough)
        if "a region was overlooked" in caplog.text:
            assert found is not None
            assert certify(program, found).worst < 1e-8
            np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)
            corrected += 1
    assert corrected > 0


def test_the_servers_of_a_lower_level_and_of_those_above_it_are_a_region(caplog: pytest.LogCaptureFixture) -> None:
    """Here the level is about users of all of them: each alone gives the same wrong order again."""
    program = fo.formulate(instance_in_zones(200, 40, 10, 21), "drfh")
    exact = by_highs(program)
    rng = np.random.default_rng(21)
    rough = replace(exact, stages=tuple(replace(stage, value=stage.value * np.exp(0.3 * rng.normal())) for stage in exact.stages))
    with caplog.at_level(logging.INFO, logger=regions.__name__):
        found = by_regions(program, rough)
    assert "a region was overlooked" in caplog.text
    assert found is not None
    assert certify(program, found).worst < 1e-8
    np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)


@pytest.mark.parametrize("part", [0.99, 1.01])
def test_levels_that_nobody_can_have_at_once_are_no_answer(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a part of them, or more, is all that a point has, a region was overlooked."""
    program = fo.formulate(instance_in_zones(120, 24, 6, 0), "drfh")
    exact = by_highs(program)
    assert by_regions(program, exact) is not None
    monkeypatch.setattr(regions, "place", lambda *given: replace(place(*given), t=part))
    monkeypatch.setattr(regions._Regions, "_placed_by_last", lambda own, _, kept: (np.where(own.faces.open, 0.0, own.faces.x), kept))
    assert by_regions(program, exact) is None


def test_whom_the_last_path_leaves_at_their_levels_is_not_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last path is about all that is left, so that no program places anybody; were its levels off, one would place everybody."""
    program = fo.formulate(instance_in_zones(120, 24, 6, 0), "drfh")
    exact = by_highs(program)
    to_the_end: list[int] = []

    def counted(*given: Any) -> Any:
        to_the_end.extend([given[0].n_users] if len(given) == 4 else [])  # without a part that is enough
        return place(*given)

    monkeypatch.setattr(regions, "place", counted)
    again = by_regions(program, exact)
    assert again is not None
    assert certify(program, again).worst <= 1e-9
    assert to_the_end == []
    monkeypatch.setattr(regions, "SETTINGS", SETTINGS._replace(exact_placing=-1.0))
    placed = by_regions(program, exact)
    assert placed is not None
    assert len(to_the_end) == 1
    np.testing.assert_allclose(tasks(program, again), tasks(program, placed), rtol=1e-9)


def test_users_with_low_caps_are_settled_before_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expectations are right here, so no level is solved twice, and so few steps are taken that none is followed from a bad start."""
    early, low, had_low_caps = 0, [], regions._Regions._had_low_caps

    def noted(own: Any, whole: LevelPath, path: LevelPath, end: LevelResult) -> bool:
        nonlocal early
        early += int((whole.rising & ~path.rising).sum())
        low.append(had_low_caps(own, whole, path, end))
        return low[-1]

    monkeypatch.setattr(regions._Regions, "_had_low_caps", noted)
    for seed in range(6):
        program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
        exact = by_highs(program)
        found = by_regions(program, exact)
        assert found is not None
        np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)
    assert early > 0
    assert all(low)


def test_caps_that_were_not_low_are_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rough answer whose levels are five times too high expects nearly all caps to be low: the answer is the same."""
    low, had_low_caps = [], regions._Regions._had_low_caps

    def noted(*given: Any) -> bool:
        low.append(had_low_caps(*given))
        return low[-1]

    monkeypatch.setattr(regions._Regions, "_had_low_caps", noted)
    for seed in range(6):
        program = fo.formulate(instance_in_zones(120, 24, 6, seed), "drfh")
        exact = by_highs(program)
        found = by_regions(program, replace(exact, stages=tuple(replace(stage, value=5 * stage.value) for stage in exact.stages)))
        assert found is not None
        np.testing.assert_allclose(tasks(program, found), tasks(program, exact), rtol=1e-6)
    assert not all(low)


def test_the_servers_of_a_region_are_those_with_a_price() -> None:
    """In ascending order of the levels; a price of a millionth is none, and a level without prices, a cap, shows nothing."""
    program = fo.formulate(fo.Instance([[1.0, 1.0], [2.0, 1.0]], [[1.0, 1.0]] * 2), "drfh")
    scaled = ScaledProgram.of(program)
    prices = np.zeros((2, len(program.limits)))
    of = {tuple(key): row for row, key in enumerate(program.limits.keys.tolist())}
    prices[0, of[0, 0]], prices[0, of[1, 1]] = 1.0, 1e-8
    prices[1, of[1, 0]] = 1.0
    nobody = np.empty(0, np.int64)
    rough = Solution(np.zeros(0), (Stage(2.0, nobody, prices[0]), Stage(1.0, nobody, prices[1]), Stage(3.0, nobody, None)))
    found = regions_of(scaled, rough)
    assert [region.level for region in found] == [1.0, 2.0]
    assert [region.servers.tolist() for region in found] == [[False, True], [True, False]]


def test_no_level_is_final_before_all_are_placed() -> None:
    """At the deadline nothing is known, after however many levels."""
    program = fo.formulate(instance_in_zones(120, 24, 6, 0), "drfh")
    rough = by_highs(program)
    assert isinstance(program.goal, Leximin)
    with pytest.raises(fo.NoSolution) as raised:
        solve_in_regions(program, program.goal, rough, 1e-8, Deadline(0.0))
    assert raised.value.known["levels"] == []
