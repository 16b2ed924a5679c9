"""Leximins and totals of whole tasks, against enumeration and SciPy's branch and cut."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact
from reference.linear import largest
from strategies import instances

import fairopt as fo
from fairopt.program import Leximin, Program, Total
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs import whole_tasks
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.whole_tasks import LevelsOfTotals, solve_whole

NEVER = Deadline(None)


def by_enumeration(program: Program, weights: np.ndarray) -> list[float]:
    """Sorted levels of the best of all points of whole tasks, (members,)."""
    most = np.floor(program.largest() + 1e-9).astype(int)
    per_level = program.utilities / weights[program.pair_users]
    best: list[float] = []
    for point in itertools.product(*(range(q + 1) for q in most)):
        x = np.array(point, float)
        if (program.limits.matrix @ x <= program.limits.bounds + 1e-9).all():
            best = max(best, sorted(np.round(program.per_user(per_level * x)[program.members], 9).tolist()))
    return best


@given(instance=instances(max_users=3, max_servers=2, max_resources=2, whole=True), large=st.booleans())
@settings(max_examples=40)
def test_levels_are_those_of_enumeration(instance: fo.Instance, large: bool) -> None:
    """The sorted shares, which are unique; every user is in one stage, at its level or above it by none. From either start."""
    program = fo.formulate(instance, "drfh", integral=True)
    if not program.n_pairs:
        return
    with mock.patch.object(whole_tasks, "SETTINGS", SETTINGS._replace(pairs_with_start=0 if large else 10**9)):
        solution = solve_whole(program, NEVER)
    assert (solution.x == np.round(solution.x)).all()
    share, tasks = exact.shares_per_task(instance, "drfh"), program.per_user(solution.x)
    servable = np.flatnonzero(instance.servable)
    assert sorted(share[n] * int(tasks[n]) for n in servable) == exact.integral_outcomes(instance, "drfh")
    settled = np.concatenate([stage.users for stage in solution.stages]) if solution.stages else np.empty(0, int)
    assert len(set(settled.tolist())) == settled.size
    for stage in solution.stages:
        np.testing.assert_allclose([float(share[n]) * tasks[n] for n in stage.users], stage.value, rtol=1e-6)


@given(instance=instances(max_users=2, max_servers=1, max_resources=2, whole=True), count=st.integers(2, 3))
@settings(max_examples=25)
def test_identical_servers(instance: fo.Instance, count: int) -> None:
    """Totals first and a packing afterwards come to what enumeration over single servers comes to."""
    single = fo.Instance(
        np.repeat(instance.capacities, count, axis=0),
        instance.demands,
        weights=instance.weights,
        eligibility=np.repeat(instance.eligibility, count, axis=1),
        tasks=instance.tasks,
    )
    program = fo.formulate(single, "drfh", integral=True)
    if not program.n_pairs:
        return
    solution = solve_whole(program, NEVER)
    assert (program.limits.matrix @ solution.x <= program.limits.bounds * (1 + 1e-9) + 1e-9).all()
    share, tasks = exact.shares_per_task(single, "drfh"), program.per_user(solution.x)
    assert sorted(share[n] * int(tasks[n]) for n in np.flatnonzero(single.servable)) == exact.integral_outcomes(single, "drfh")


def test_nearly_full_identical_servers() -> None:
    """Branch and cut over single servers takes minutes here, because any two of them can change places.

    The first two levels are those of one server as large as all, and no allocation has more.
    """
    demands = [[2.424], [1.788], [0.373], [1.356], [1.489], [1.0]]
    instance = fo.Instance([[10.16]], demands, [2.468, 0.385, 0.101, 8.85, 0.395, 0.425], counts=[4])
    pooled = instance.replace(capacities=[[40.64]], counts=[1])
    levels, bounds = (sorted(fo.solve(each, "drfh", integral=True).shares / each.weights) for each in (instance, pooled))
    assert levels[:2] == pytest.approx(bounds[:2])
    assert levels <= bounds


@pytest.mark.parametrize("seed", range(6))
def test_tasks_that_differ_in_worth(seed: int) -> None:
    """Where a task is worth more on one server than on another, levels are numbers, not multiples of one share."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.integers(2, 5, (2, 2)), rng.integers(1, 3, (2, 2)))
    program = fo.formulate(instance, "max-min", integral=True, utility=rng.integers(1, 6, (2, 2)))
    assert isinstance(program.goal, Leximin)
    solution = solve_whole(program, NEVER)
    levels = program.per_user(program.utilities * solution.x) / program.goal.weights
    np.testing.assert_allclose(np.sort(levels[program.members]), by_enumeration(program, program.goal.weights), rtol=1e-6)


@given(instance=instances(max_users=4, max_servers=3, whole=True))
@settings(max_examples=25)
def test_the_total_is_that_of_scipy(instance: fo.Instance) -> None:
    """The most tasks there can be, with a bound that proves it."""
    program = fo.formulate(instance.replace(tasks=np.minimum(instance.tasks, 20)), "efficiency", integral=True)
    if not program.n_pairs:
        return
    assert isinstance(program.goal, Total)
    worth = program.goal.weights[program.pair_users] * program.utilities
    expected = largest(worth, program.limits.matrix, program.limits.bounds + 1e-9, whole=True)
    solution = solve_whole(program, NEVER)
    assert (program.limits.matrix @ solution.x <= program.limits.bounds * (1 + 1e-9) + 1e-9).all()
    assert worth @ solution.x == pytest.approx(expected)
    assert solution.bound == pytest.approx(expected)


@given(instance=instances(max_users=4, max_servers=3, whole=True), notion=st.sampled_from(["drfh", "efficiency"]))
@settings(max_examples=25)
def test_the_bound_is_at_most_the_divisible_optimum(instance: fo.Instance, notion: str) -> None:
    """Whole tasks of the same users cannot have more: solved, and where the time is up before anything is found."""
    instance = instance.replace(tasks=np.minimum(instance.tasks, 20))
    program = fo.formulate(instance, notion, integral=True)
    if not program.n_pairs or not (program.per_user(np.floor(program.largest() + 1e-9))[program.members] > 0).all():
        return  # who has no room for one task is left out of the levels of whole tasks
    divisible = fo.solve(instance, notion)
    optimum = float(instance.weights @ divisible.tasks_per_user) if notion == "efficiency" else divisible.shares[program.members].min()
    solution = solve_whole(program, NEVER)
    assert solution.bound is not None
    assert solution.bound <= optimum * (1 + 1e-7)
    if notion == "drfh":
        search = LevelsOfTotals(program, NEVER)
        before = search.bound
        assert solution.bound <= search.divisible_bound() * (1 + 1e-9) <= before * (1 + 2e-9)
        assert search.divisible_bound() <= optimum * (1 + 1e-7)


def test_time_is_up() -> None:
    """With the best that is known by then, and a bound on the smallest level."""
    program = fo.formulate(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf", integral=True)
    with pytest.raises(fo.NoSolution) as caught:
        solve_whole(program, Deadline(0.0))
    assert caught.value.known["levels"] == []
    assert caught.value.known["bound"] >= 2 / 3


def test_a_total_begins_with_the_greedy_one() -> None:
    """At the time limit it is no less than what progressive filling reaches, and it fits."""
    rng = np.random.default_rng(3)
    pool = fo.Instance(rng.uniform(8, 64, (9, 3)).round(2), rng.uniform(0.5, 5, (30, 3)).round(2))
    program = fo.formulate(pool, "efficiency", integral=True)
    greedy = whole_tasks._greedy_total(program, NEVER)
    filled = whole_tasks._one_by_one(program, program.worth, NEVER)
    assert (program.limits.matrix @ greedy <= program.limits.bounds * (1 + 1e-9)).all()
    assert program.worth @ greedy >= program.worth @ filled > 0
