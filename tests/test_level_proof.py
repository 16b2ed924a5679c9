"""Proofs of many levels: what the levels below leave closes pairs to the levels above, and nothing that is wrong is proved that way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo
from fairopt import level_proof
from fairopt.certificate import certify
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline

NEVER = Deadline(None)


def few_servers_each(users: int, servers: int, seed: int) -> Program:
    """DRFH of users with one to three servers each, a third of the demands zero: tens of levels."""
    rng = np.random.default_rng(seed)
    demands = rng.uniform(0.01, 0.1, (users, 3)) * (rng.random((users, 3)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.05
    eligibility = np.zeros((users, servers), bool)
    for user in eligibility:
        user[rng.choice(servers, rng.integers(1, 4), replace=False)] = True
    weights = rng.uniform(1, 5, users)
    return fo.formulate(fo.Instance(rng.uniform(1, 10, (servers, 3)), demands, weights=weights, eligibility=eligibility), "drfh")


def by(engine: str, program: Program) -> Solution:
    """The solution of an engine."""
    return fo.SOLVERS[engine]().solve(program, tolerance=1e-8, deadline=NEVER)


def levels(program: Program, solution: Solution) -> np.ndarray:
    """What everybody has, (users,)."""
    return np.asarray(program.per_user(program.utilities * solution.x))


@pytest.mark.parametrize("seed", range(3))
def test_levels_without_end_are_exact(seed: int) -> None:
    """Each level climbs on the face that those below leave; HiGHS, whose prices keep everybody out by themselves, has the same."""
    program = few_servers_each(300, 40, seed)
    solution = by("interior-point", program)
    assert len(solution.stages) > 40
    assert solution.finished_by is None
    assert certify(program, solution).worst <= 1e-10
    other = by("highs", program)
    assert certify(program, other).worst <= 1e-8
    np.testing.assert_allclose(levels(program, solution), levels(program, other), rtol=1e-6)


def test_what_the_levels_below_leave_is_what_proves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices of a face say nothing by themselves: some are below 0, and pairs that are closed cost too little."""
    program = few_servers_each(100, 15, 0)
    solution = by("interior-point", program)
    assert certify(program, solution).worst <= 1e-10
    monkeypatch.setattr(level_proof, "_CLOSED", 0.0)
    assert certify(program, solution).worst > 1e-3


def test_the_order_of_the_levels_does_not_count() -> None:
    """They are proved from below, in whatever order they come."""
    program = few_servers_each(100, 15, 1)
    solution = by("interior-point", program)
    backwards = replace(solution, stages=solution.stages[::-1])
    assert certify(program, backwards) == certify(program, solution)


@pytest.mark.parametrize("seed", range(4))
def test_a_little_less_for_one_is_seen(seed: int) -> None:
    """A millionth less for somebody of a late level, told truthfully."""
    program = few_servers_each(100, 15, seed)
    solution = by("interior-point", program)
    stage = solution.stages[-1 - 3 * seed]
    user = int(stage.users[0])
    less = np.where(program.pair_users == user, 1 - 1e-6, 1.0)
    told = tuple(replace(each, value=each.value * (1 - 1e-6)) if each is stage else each for each in solution.stages)
    assert certify(program, replace(solution, x=solution.x * less, stages=told)).worst > 1e-7


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(instances(), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 3.0]))
def test_no_prices_prove_a_wrong_leximin(instance: fo.Instance, seed: int, width: float) -> None:
    """That of other weights, with its own prices: as they are, in other units, added to those of the levels below, and with noise."""
    rng = np.random.default_rng(seed)
    program = fo.formulate(instance, "drfh")
    assert isinstance(program.goal, Leximin)
    per_user = program.goal.weights
    right = levels(program, by("highs", program))
    other = replace(program, goal=Leximin(per_user * np.exp(rng.uniform(-width, width, per_user.size))))
    wrong = by(str(rng.choice(["highs", "interior-point"])), other)
    reached = levels(program, wrong)
    assume((np.abs(reached - right) > 1e-4 * np.maximum(reached, right)).any())
    for _ in range(20):
        stages, below = [], 0.0
        for stage in wrong.stages:
            assert stage.prices is not None
            prices = stage.prices * 10.0 ** rng.uniform(-6, 6) + below * rng.choice([0.0, 1.0, -1.0, 1e6])
            prices = prices * np.exp(rng.choice([0.0, 1e-9, 0.1]) * rng.uniform(-1, 1, prices.size))
            below = below + prices
            stages.append(Stage(float((reached / per_user)[stage.users].min()), stage.users, prices))
        assert certify(program, replace(wrong, stages=tuple(stages))).worst > 1e-6
