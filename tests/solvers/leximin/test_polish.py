"""Leximins of many levels, each of users who live on what those below them leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse.linalg
from instances import instance_of_many_levels

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.polish import levels_on, polish, polishes
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solving.policy import find


def solved(servers: int, seed: int) -> tuple[Program, Solution]:
    """Return a program and its solution by HiGHS."""
    program = fo.formulate(instance_of_many_levels(30 * servers, servers, seed=seed), "drfh")
    return program, HiGHS().solve(program, tolerance=1e-8, deadline=Deadline(None))


@pytest.mark.parametrize(("servers", "seed"), [(25, 2), (30, 1), (35, 2), (45, 0)])
def test_every_level_is_proved(servers: int, seed: int) -> None:
    """The levels above rest on a millionth of what is spent; the proof of each still has eight digits."""
    program = fo.formulate(instance_of_many_levels(30 * servers, servers, seed=seed), "drfh")
    solution = find(program, [HiGHS()], 1e-8, Deadline(None)).solution
    values = [stage.value for stage in solution.stages]
    assert len(values) >= 15
    assert values == sorted(values)
    assert certify(program, solution).worst <= 1e-8


def test_errors_of_the_last_digits_are_mended() -> None:
    """Of x moved by up to 1e-9 of itself, and levels by as much, nothing is left."""
    program, solution = solved(10, 0)
    rng = np.random.default_rng(0)
    moved = solution.x * (1 + 1e-9 * rng.uniform(-1, 1, solution.x.size))
    stages = tuple(replace(stage, value=stage.value * (1 + 1e-9 * rng.uniform(-1, 1))) for stage in solution.stages)
    rough = replace(solution, x=moved, stages=stages)
    mended = polish(program, rough)
    assert certify(program, rough).worst > 1e-8
    assert certify(program, mended).worst <= 1e-9
    assert certify(program, mended).feasibility <= 1e-14


def test_a_level_that_was_told_apart_is_one() -> None:
    """User 2 pays a thousand times what user 1 does, and lacks 2e-11 of their common level: user 1 has 2e-8 too much."""
    program = fo.formulate(fo.Instance([[1]], [[1], [1]], weights=[1, 1e3]), "drfh")
    equal, prices = 1 / 1001, np.array([1 / 1001])
    low, high = equal * (1 - 2e-11), equal * (1 + 2e-8)
    apart = Solution(np.array([high, 1e3 * low]), (Stage(low, np.array([1]), prices), Stage(high, np.array([0]), prices)))
    assert certify(program, apart).worst > 1e-8
    *_, one = polishes(program, apart)
    np.testing.assert_allclose(one.x, [equal, 1e3 * equal], rtol=1e-14)
    assert certify(program, one).worst <= 1e-14
    for again in polishes(program, one):
        np.testing.assert_allclose(again.x, one.x, rtol=1e-14)


@pytest.mark.parametrize("seed", [7, 9, 30])
def test_users_who_pay_a_ten_millionth_of_what_others_pay(seed: int) -> None:
    """Weights over seven orders of magnitude: users stop at one level, which prices that are off by 1e-10 do not prove of the lightest."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.uniform(5, 50, (20, 3)), rng.uniform(0.1, 1, (40, 3)), weights=10.0 ** rng.uniform(0, 7, 40))
    program = fo.formulate(instance, "drfh")
    solution = HiGHS().solve(program, tolerance=1e-8, deadline=Deadline(None))
    off = 1 + 1e-10 * rng.uniform(-1, 1, len(program.limits))
    stages = tuple(replace(stage, prices=None if stage.prices is None else stage.prices * off) for stage in solution.stages)
    moved = replace(solution, stages=stages)
    assert certify(program, moved).fairness > 1e-8
    assert min(certify(program, near).worst for near in polishes(program, moved)) <= 1e-12
    allocation = fo.solve(instance, "drfh", solver="highs")
    np.testing.assert_allclose(allocation.shares, allocation.shares[0], rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize("seed", range(4))
def test_users_who_differ_by_less_than_a_solver_sees(noise: float, seed: int) -> None:
    """One server, one resource, all the same up to noise: by hand, each has the same share of it."""
    rng = np.random.default_rng(seed)
    demands = 1 + noise * rng.random((12, 1))
    allocation = fo.solve(fo.Instance([[5.0], [7.0], [1.0]], demands), "drfh", solver="highs")
    np.testing.assert_allclose(allocation.tasks_per_user, 13 / demands[:, 0] / 12, rtol=1e-8)
    assert allocation.certificate.worst <= 1e-8


def test_users_with_no_free_pair_have_no_cap_from_one() -> None:
    """User 3 is stopped by its parallelism; users 1 and 2 share the 5 tasks' room that is left, 1 to 10,000."""
    instance = fo.Instance([[7.0], [5.0]], [[1.0], [1.0], [3.0]], weights=[1e-3, 10, 1e3], parallelism=[1, 3.5, 1.5])
    allocation = fo.solve(instance, "drfh", solver="highs")
    tasks = allocation.tasks_per_user
    np.testing.assert_allclose(tasks, [2.5 / 10_001, 2.5 * 10_000 / 10_001, 19 / 6], rtol=1e-8)
    assert allocation.certificate.worst <= 1e-8


def test_a_user_without_a_pair_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that call all pairs of a user too dear leave it none: the equations are singular. SuperLU, which prints so, is not asked."""

    def asked(_: object) -> None:
        raise AssertionError("a singular matrix is factorised")

    monkeypatch.setattr(scipy.sparse.linalg, "splu", asked)
    program = fo.formulate(fo.Instance([[1.0], [1.0]], [[1.0], [2.0]]), "drfh")
    stages = (Stage(0.5, np.array([0]), np.array([1.0, 0.0])), Stage(0.5, np.array([1]), np.array([0.0, 1.0])))
    solution = Solution(np.full(program.n_pairs, 0.25), stages=stages)
    assert polish(program, solution) is solution


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_users_at_their_caps_have_no_specks_on_slower_servers(seed: int) -> None:
    """A user who may be on some servers at once has 10^-10 of what it could have on each slower one, beside all that it may be on."""
    draw = np.random.default_rng(seed)
    rates = np.linspace(1, 6, 8) * draw.lognormal(0, 0.5, (30, 8)) * draw.lognormal(0, 1, (30, 1))
    parallelism, weights = draw.choice([0.1, 0.3, 0.5, 1], 30), 10.0 ** draw.uniform(-2, 2, 30)
    jobs = fo.Instance(np.ones((8, 1)), np.ones((30, 1)), rates=rates, parallelism=parallelism, weights=weights)
    program = fo.formulate(jobs, "tsf")
    solution = polish(program, HiGHS().solve(program, tolerance=1e-8, deadline=Deadline(None)))
    at_caps = ~np.isin(program.pair_users, np.concatenate([stage.users for stage in solution.stages]))
    specks = np.where(at_caps & (solution.x == 0), 1e-10 * program.largest(), 0.0)
    rough = replace(solution, x=solution.x + specks)
    assert certify(program, rough).worst > 1e-8
    assert certify(program, polish(program, rough)).worst <= 1e-12


def test_a_speck_is_no_pair() -> None:
    """User 1 has its task on the server that user 2 does not share, and 1e-13 of it on the other: a solver's rounding."""
    program = fo.formulate(fo.Instance([[1], [2]], [[1], [1]], eligibility=[[True, True], [True, False]]), "drfh")
    assert program.pair_users.tolist() == [0, 0, 1]
    low, high = Stage(1 / 3, np.array([1]), np.array([1.0, 0.0])), Stage(2 / 3, np.array([0]), np.array([0.0, 1.0]))
    rough = Solution(np.array([2e-13, 2.0, 1.0]), (low, high))
    np.testing.assert_allclose(polish(program, rough).x, [0.0, 2.0, 1.0], rtol=1e-14)
    found = levels_on(program, replace(rough, stages=(low,)), np.array([True, False]))
    assert found is not None
    np.testing.assert_allclose(found, [np.nan, 1 / 3], rtol=1e-14)
    assert levels_on(program, replace(rough, stages=()), np.array([True, False])) is None
