"""Least prices: they prove the same levels, and spend less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.least_prices import with_least_prices
from fairopt.solvers.leximin.polish import polish
from fairopt.solvers.via_highs.levels import solve_levels


def jobs(number: int, classes: int, load: float, seed: int) -> fo.Instance:
    """Jobs on one server at a time, of classes of different speeds."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(1, 6, classes) * rng.lognormal(0, 0.5, (number, classes)) * rng.lognormal(0, 1, (number, 1))
    counts = np.maximum(np.round(np.linspace(0.5, 0.2, classes) / np.linspace(0.5, 0.2, classes).sum() * number / load), 1)
    one = np.ones(number)
    return fo.Instance(np.ones((classes, 1)), one[:, None], rates=rates, counts=counts, parallelism=one, weights=rng.integers(1, 6, number))


def polished(instance: fo.Instance) -> tuple[Program, Solution]:
    """Return a program and its levels, whose equations hold to rounding."""
    program = fo.formulate(instance, "drfh")
    goal = program.goal
    assert isinstance(goal, Leximin)
    return program, polish(program, solve_levels(program, goal, 1e-8, Deadline(None)))


def spent(program: Program, stage: Stage) -> float:
    """Return what prices spend, in parts of what the users of the level pay."""
    assert stage.prices is not None
    cost = np.asarray(program.limits.transposed @ np.maximum(stage.prices, 0.0)) / program.worth
    paid = program.cheapest(cost, np.arange(program.n_pairs))[stage.users].sum() * stage.value
    return float(np.abs(stage.prices) @ program.limits.bounds / paid)


@pytest.mark.parametrize("seed", range(3))
def test_jobs_with_about_one_server_each_are_proved(seed: int) -> None:
    """A chain of levels: rounding of the lower ones is charged to the upper ones as many times as prices spend."""
    program, solution = polished(jobs(100, 20, 0.8, seed))
    least = with_least_prices(program, solution, Deadline(None))
    assert least is not None
    assert certify(program, least).worst <= 1e-9
    before, after = (max(spent(program, stage) for stage in each.stages) for each in (solution, least))
    assert after < 0.1 * before
    np.testing.assert_array_equal(least.x, solution.x)
    assert [stage.value for stage in least.stages] == [stage.value for stage in solution.stages]


def test_a_level_spends_no_more_than_it_must() -> None:
    """Two servers and a user alone on each: prices that pay for the other's server, too, are replaced."""
    program = fo.formulate(fo.Instance([[1], [3]], [[1], [1]], eligibility=[[True, False], [False, True]]), "drfh")
    x, low, high = np.array([1.0, 3.0]), np.array([1.0, 0.0]), np.array([7.0, 1.0])
    wasteful = Solution(x, (Stage(0.25, np.array([0]), low), Stage(0.75, np.array([1]), high)))
    least = with_least_prices(program, wasteful, Deadline(None))
    assert least is not None
    assert spent(program, wasteful.stages[1]) == pytest.approx(10 / 3)
    assert spent(program, least.stages[1]) == pytest.approx(1.0)
    assert certify(program, least).worst <= 1e-14


def test_users_at_limits_of_their_own_pay_for_these_alone() -> None:
    """Two users on one server, the first with a limit on parallelism that is full: the server has no price at its level.

    Where its level is told too high, the limit is not what stops it.
    """
    there = [[False, False, True]] * 2  # servers have larger numbers than users
    cluster = fo.Instance([[1]] * 3, [[1], [1]], counts=[1, 1, 4], eligibility=there, parallelism=[1, np.inf])
    program = fo.formulate(cluster, "drfh")
    own = int(np.flatnonzero(~program.limits.of_servers)[0])
    wasteful = np.where(np.arange(len(program.limits)) == own, 1.0, 0.5)
    at_limit = Solution(np.array([1.0, 3.0]), (Stage(1 / 6, np.array([0]), wasteful), Stage(0.5, np.array([1]), np.ones(wasteful.size))))
    least = with_least_prices(program, at_limit, Deadline(None))
    assert least is not None
    assert certify(program, least).worst <= 1e-14
    prices = least.stages[0].prices
    assert prices is not None
    assert np.flatnonzero(prices).tolist() == [own]
    assert spent(program, least.stages[0]) == pytest.approx(1.0)
    below = replace(at_limit, x=np.array([0.5, 3.5]), stages=(replace(at_limit.stages[0], value=1 / 12), at_limit.stages[1]))
    assert with_least_prices(program, below, Deadline(None)) is None


def test_what_is_closed_already_is_not_made_dear() -> None:
    """47 levels: prices that made closed pairs dear left open pairs worth exactly what they cost, and the 44th level had none."""
    answer = fo.solve(jobs(150, 30, 1.0, 0), "drfh", solver="highs")
    assert answer.certificate.worst <= 1e-8


def test_levels_that_are_wrong_have_no_prices() -> None:
    """A user told to be stopped by a server that is not full; and stages of something else than a leximin."""
    program = fo.formulate(fo.Instance([[1], [3]], [[1], [1]], eligibility=[[True, False], [False, True]]), "drfh")
    prices = np.array([1.0, 1.0])
    wrong = Solution(np.array([1.0, 2.0]), (Stage(0.25, np.array([0]), prices), Stage(0.5, np.array([1]), prices)))
    assert with_least_prices(program, wrong, Deadline(None)) is None
    assert with_least_prices(program, replace(wrong, x=np.array([1.0, 3.0])), Deadline(0.0)) is None
    of_part = replace(wrong, stages=tuple(replace(stage, part=1) for stage in wrong.stages))
    assert with_least_prices(program, of_part, Deadline(None)) is None


def test_levels_of_a_chain_are_right_to_the_last_digits() -> None:
    """41 levels, in whose prices lower ones count up to 10^4 times: each is found where the equations of all below it hold."""
    answer = fo.solve(jobs(100, 20, 1.0, 1), "drfh", solver="highs")
    assert answer.certificate.worst <= 1e-9


def test_another_method_finds_levels_on_which_the_first_one_gives_up() -> None:
    """LPs without users whom limits of their own decide: their prices prove the levels once they are completed."""
    answer = fo.solve(jobs(150, 30, 1.1, 1), "drfh", solver="highs")
    assert answer.certificate.worst <= 1e-8
