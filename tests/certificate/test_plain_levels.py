"""All levels proved at once by their own prices alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances import instance_of_many_levels

import fairopt as fo
from fairopt.certificate import certify, leximin_levels
from fairopt.certificate.plain_levels import plain_gaps
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.choosing import choose


def of_many_levels(users: int, servers: int, seed: int) -> Program:
    """Tens of levels."""
    return fo.formulate(instance_of_many_levels(users, servers, 3, seed=seed), "drfh")


def solved(program: Program, solver: str = "highs") -> Solution:
    """The answer of one engine, as it comes."""
    return choose(program, solver).solve(program, tolerance=1e-8, deadline=Deadline(None))


def proved_at_once(program: Program, solution: Solution) -> tuple[float, float] | None:
    """The plain proofs of an answer in which nobody is at a cap."""
    levels = program.per_user(solution.x * program.worth)
    value = np.zeros(levels.size)
    for stage in solution.stages:
        value[stage.users] = stage.value
    stages = sorted(solution.stages, key=lambda stage: stage.value)
    return plain_gaps(program, solution.x, levels, value, np.zeros(levels.size), stages)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_at_once_is_proved_level_by_level(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both bounds hold; the loop over levels knows more of pairs that levels close, and never proves much less."""
    program = of_many_levels(60, 20, seed)
    solution = solved(program)
    found = proved_at_once(program, solution)
    assert found is not None
    together = certify(program, solution)
    assert (together.optimality, together.fairness) == found
    monkeypatch.setattr(leximin_levels, "plain_gaps", lambda *_: None)
    alone = certify(program, solution)
    assert max(alone.optimality, alone.fairness) <= max(2 * max(found), 1e-12)


@pytest.mark.parametrize("part", [1e-7, 1e-5])
def test_a_part_of_a_share_that_is_given_away_is_found(part: float) -> None:
    """Whoever loses it, at whatever level: the tables leave the answer to the loop, which refuses it."""
    program = of_many_levels(40, 10, 0)
    solution = solved(program)
    for user in range(0, 40, 5):
        x = np.where(program.pair_users == user, solution.x * (1 - part), solution.x)
        assert proved_at_once(program, replace(solution, x=x)) is None
        assert certify(program, replace(solution, x=x)).worst > 0.3 * part


def test_prices_that_prove_too_little_are_left_to_the_loop() -> None:
    """Prices below 0, none at all, or those of another level."""
    program = of_many_levels(40, 10, 0)
    solution = solved(program)
    first, *others = sorted(solution.stages, key=lambda stage: stage.value)
    assert first.prices is not None
    for prices in (None, -first.prices, np.zeros_like(first.prices), others[-1].prices):
        stages = (replace(first, prices=prices), *others)
        assert proved_at_once(program, replace(solution, stages=stages)) is None


@pytest.mark.parametrize("what", ["x", "prices"])
def test_what_is_no_number_proves_nothing(what: str) -> None:
    """One nan among the tasks, or among the prices of any level."""
    program = of_many_levels(40, 10, 0)
    solution = solved(program)
    stages = sorted(solution.stages, key=lambda stage: stage.value)
    levels = program.per_user(solution.x * program.worth)
    value = np.zeros(levels.size)
    for stage in stages:
        value[stage.users] = stage.value
    for place in range(5):
        x, spoilt = solution.x.copy(), list(stages)
        if what == "x":
            x[place] = np.nan
        else:
            prices = stages[place].prices
            assert prices is not None
            spoilt[place] = replace(stages[place], prices=np.where(np.arange(prices.size) == place, np.nan, prices))
        with np.errstate(all="ignore"):
            assert plain_gaps(program, x, levels, value, np.zeros(levels.size), spoilt) is None


def test_the_distance_of_a_user_from_its_cap_counts() -> None:
    """One server of 10: user a has 2 tasks of 1, b the rest; where a had 1e-6 less than its cap, b could have that too much."""
    program = fo.formulate(fo.Instance([[10.0]], [[1.0], [1.0]], tasks=[2.0, np.inf]), "drfh")
    solution = solved(program)
    stages = [stage for stage in solution.stages if stage.prices is not None]
    levels = program.per_user(solution.x * program.worth)
    of = [plain_gaps(program, solution.x, levels, levels, np.array([lack, 0.0]), stages) for lack in (0.0, 1e-10, 1e-6, np.nan)]
    assert of[0] is not None
    assert of[0][1] <= 1e-12
    assert of[1] is not None
    assert of[1][1] == pytest.approx(1e-10 / levels[1], rel=1e-3)
    assert of[2] is of[3] is None
