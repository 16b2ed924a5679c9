"""Best response: execution in any order ends at a verified equilibrium, slow instances end, and the record tells how."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import demands_with_zeros
from strategies import instances

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.program import Equilibrium
from fairopt.solvers.backend import Deadline
from fairopt.solvers.equilibrium import proposals, smoothing, sweeping
from fairopt.solvers.equilibrium.engine import BestResponse
from fairopt.solvers.equilibrium.record import Sweeps
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.equilibrium.smoothing import _Pairs


def drawn(seed: int, users: int, servers: int) -> fo.Instance:
    """Zero demands, missing resources, weights over three orders of magnitude, constraints and finite tasks."""
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(0.5, 10, (servers, 3)) * (rng.random((servers, 3)) > 0.15)
    demands = demands_with_zeros(rng, (users, 3), 0.05, 2, least=1.0)
    tasks = np.where(rng.random(users) < 0.2, rng.uniform(0, 6, users), np.inf)
    return fo.Instance(capacities, demands, 10 ** rng.uniform(-1.5, 1.5, users), rng.random((users, servers)) < 0.7, tasks=tasks)


@pytest.mark.parametrize("order", ["sequential", "random"])
@given(instance=instances(max_users=8, max_servers=6), seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_any_order_of_sweeps(order: str, instance: fo.Instance, seed: int) -> None:
    """Under resource division."""
    allocation = fo.solve(instance, "psdsf", order=order, seed=seed)
    assert allocation.certificate.worst <= 1e-9


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("delay", [0, 3, 12])
@pytest.mark.parametrize("seed", range(2))
def test_asynchronous_servers_end_at_an_equilibrium(sharing: str, delay: int, seed: int) -> None:
    """Whatever the times and delays; under time division at the one x[n]."""
    instance = drawn(seed, 8, 6)
    if sharing == "tdm":  # x[n] is unique only where tasks are not limited
        instance = instance.replace(tasks=None)
    allocation = fo.solve(instance, "psdsf", sharing=sharing, order="asynchronous", seed=seed, delay=delay)  # type: ignore[arg-type]
    assert allocation.certificate.worst <= 1e-9
    if sharing == "tdm":
        np.testing.assert_allclose(
            allocation.tasks_per_user, fo.solve(instance, "psdsf", sharing="tdm").tasks_per_user, rtol=1e-7, atol=1e-9
        )


def test_many_seeds_and_delays() -> None:
    """Whoever acts when, on what news of the others: 48 runs, and each allocation satisfies theorem 1 row for row."""
    for seed in range(12):
        instance = drawn(seed % 6, 8, 6)
        program = fo.formulate(instance, "psdsf")
        assert isinstance(program.goal, Equilibrium)
        for delay in (0, 2, 7, 25):
            tasks = fo.solve(instance, "psdsf", order="asynchronous", seed=seed, delay=delay).tasks
            assert bottleneck_violation(program, program.goal, tasks[program.pair_users, program.pair_servers]) <= 1e-8, (seed, delay)


def test_a_seed_repeats_itself() -> None:
    """The same record, number for number; another seed another one."""
    instance = drawn(3, 8, 6)
    first, again, other = (fo.solve(instance, "psdsf", order="asynchronous", seed=seed, delay=4).trace for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.changes, again.changes)
    np.testing.assert_array_equal(first.tasks, again.tasks)
    assert first.tasks.shape != other.tasks.shape or not np.array_equal(first.tasks, other.tasks)


def test_record() -> None:
    """A row for each sweep; the first is DRF on each server in order, the last is the answer."""
    mirror = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    allocation = fo.solve(mirror, "psdsf")
    trace = allocation.trace
    assert isinstance(trace, Sweeps)
    assert trace.changes.shape == (trace.tasks.shape[0],)
    assert trace.changes[0] == 1.0
    np.testing.assert_allclose(trace.tasks[-1], allocation.tasks_per_user)
    assert allocation.details["iterations"] + 1 == trace.changes.size


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("seed", [4, 10, 13])
def test_slow_instances_end(seed: int, sharing: str) -> None:
    """Sweeps that converge over hundreds, by themselves or helped."""
    allocation = fo.solve(drawn(seed, 30, 15), "psdsf", sharing=sharing)  # type: ignore[arg-type]
    assert allocation.certificate.worst <= 1e-9
    assert allocation.details["iterations"] < 1000


def hard(users: int, servers: int, seed: int, zeros: bool, tasks: bool, whole: bool) -> fo.Instance:
    """Three tenths of the pairs; numbers of tasks of 0.2 to 3 times what the cluster holds of each user's, all alike."""
    rng = np.random.default_rng(seed)
    capacities, demands = rng.uniform(1, 10, (servers, 3)), rng.uniform(0.01, 0.1, (users, 3))
    if whole:
        capacities, demands = np.round(5 * capacities), np.ceil(200 * demands)
    if zeros:
        demands[(rng.random((users, 3)) < 0.3) & (np.arange(3) != rng.integers(3, size=users)[:, None])] = 0.0
    eligibility = rng.random((users, servers)) < 0.3
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    most = np.ceil((capacities.sum(axis=0) / demands.sum(axis=0)).min() * rng.uniform(0.2, 3, users)) if tasks else np.inf
    return fo.Instance(capacities, demands, rng.integers(1, 5, users), eligibility, tasks=np.full(users, most))


@pytest.mark.parametrize(
    ("users", "servers", "seed", "zeros", "tasks", "whole", "sweeps"),
    [(120, 60, 0, True, True, True, 5000), (300, 150, 1, False, True, False, 1000)],
)
def test_slow_sweeps_with_finite_tasks_and_zero_demands(
    users: int, servers: int, seed: int, zeros: bool, tasks: bool, whole: bool, sweeps: int
) -> None:
    """Each of these had no answer after 20,000 sweeps, or took thousands.

    Demands of the first one that differ by rounding take 250 to 830 sweeps.
    """
    allocation = fo.solve(hard(users, servers, seed, zeros, tasks, whole), "psdsf")
    assert allocation.details["iterations"] < sweeps


def test_sweeps_alone_would_take_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three users in a cycle of three servers, whose rates match but for 0.1%: each sweep moves a thousandth of a task."""
    instance = fo.Instance([[1.0], [1.0], [1.0]], [[1.0], [1.0], [1.0]], rates=[[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.001, 0.0, 1.0]])
    helped = fo.solve(instance, "psdsf")
    assert helped.certificate.worst <= 1e-12
    assert helped.details["iterations"] < 300
    monkeypatch.setattr(proposals, "SETTINGS", SETTINGS._replace(help_after=np.inf, help_after_pairs=np.inf))
    alone = fo.solve(instance, "psdsf")
    assert alone.details["iterations"] > 2000
    np.testing.assert_allclose(helped.tasks_per_user, alone.tasks_per_user, rtol=1e-9)


def test_without_time_there_is_no_answer() -> None:
    """Never an unverified one: the point reached comes with its violation."""
    program = fo.formulate(drawn(4, 30, 15), "psdsf")
    with pytest.raises(fo.NoSolution, match="time limit") as caught:
        BestResponse().solve(program, tolerance=1e-8, deadline=Deadline(0.0))
    assert caught.value.known["residual"] > 1e-9
    assert isinstance(program.goal, Equilibrium)
    assert bottleneck_violation(program, program.goal, caught.value.known["x"]) == pytest.approx(caught.value.known["residual"])


def test_weights_far_apart() -> None:
    """A user of weight 1e-3 beside one of 1e3 still gets its exact share: x[n] = phi[n] / sum phi on one resource."""
    instance = fo.Instance([[1.0], [1.0]], [[1.0], [1.0], [1.0]], weights=[1e-3, 1, 1e3])
    np.testing.assert_allclose(fo.solve(instance, "psdsf").tasks_per_user, 2 * instance.weights / instance.weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("dense", [0.0, np.inf])
def test_elimination_of_users_is_the_schur_complement(dense: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """B (I - 1 pull' / own) J user by user, and by tables of users, against the same product with dense matrices of all pairs."""
    monkeypatch.setattr(smoothing, "SETTINGS", SETTINGS._replace(dense_products=dense))
    rng = np.random.default_rng(0)
    n, j = (part.ravel() for part in np.nonzero(rng.random((7, 5)) < 0.6))
    use = rng.random((5, n.size)) * (rng.random((5, n.size)) < 0.4)
    pairs = _Pairs(n, j, sp.csr_array(use), np.ones(5), np.zeros(7, bool))
    pull, own = rng.uniform(0.1, 1, n.size), rng.uniform(5, 9, 7)
    of_user, of_limit = np.eye(7)[n], np.eye(5)[j]
    moves = of_limit - of_user @ np.diag(1 / own) @ of_user.T @ np.diag(pull) @ of_limit
    np.testing.assert_allclose(pairs.eliminated(pull, own), use @ np.diag(pull) @ moves, rtol=0, atol=1e-14)


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
def test_many_users_of_few_servers(sharing: str) -> None:
    """400 users are no equations: what is factorised belongs to the servers. Under time division the market has the same tasks."""
    instance = fo.generate("uniform", users=400, servers=6, resources=3, weights=5, seed=3)
    allocation = fo.solve(instance, "psdsf", sharing=sharing)  # type: ignore[arg-type]
    assert allocation.certificate.worst <= 1e-9
    if sharing == "tdm":
        market = fo.solve(instance, "psdsf", sharing="tdm", formulation="market")
        np.testing.assert_allclose(allocation.tasks_per_user, market.tasks_per_user, rtol=1e-7)


def test_an_answer_within_the_tolerance_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the tolerance is aimed at; where the sweeps end between the two, the tolerance is what counts."""
    monkeypatch.setattr(sweeping, "SETTINGS", SETTINGS._replace(most_sweeps=1))
    monkeypatch.setattr(proposals, "solved_equations", lambda *_: [])
    instance = fo.Instance([[9.0, 12.0, 100.0], [12.0, 12.0, 0.0]], [[1.5, 1.0, 10.0], [1.0, 2.0, 10.0], [0.5, 1.0, 0.0], [1.0, 0.5, 0.0]])
    violation = fo.solve(instance, "psdsf", tolerance=0.7).certificate.fairness
    assert 0.07 < violation <= 0.7
    with pytest.raises(fo.NoSolution, match="violates its condition"):
        fo.solve(instance, "psdsf", tolerance=0.9 * violation)


def test_steps_of_the_interior_point_stay_numbers() -> None:
    """The steps stop at the border of what is positive, and one that leads far away is no overflow: users 2 and 3 have all their tasks."""
    instance = fo.Instance(
        [[4.7, 7.4], [4.7, 3.2]],
        [[1.8, 0.3], [2, 1.8], [0.7, 0]],
        [7.9, 2.6, 4.1],
        [[1, 0], [1, 1], [1, 1]],
        [4, 2],
        [np.inf, 2.2, 8.7],
    )
    for order in ("sequential", "random"):
        allocation = fo.solve(instance, "psdsf", order=order)
        np.testing.assert_allclose(allocation.tasks_per_user[1:], [2.2, 8.7])
        assert allocation.certificate.worst <= 1e-10


def test_servers_that_change_nothing_are_not_asked_20000_times() -> None:
    """Magnitudes beyond floats: a fixed point of the sweeps that is no equilibrium is given up at once."""
    much = 10**30
    instance = fo.Instance(
        [[8 * much // 10], [3 * 10**42]],
        [[8 * 10**59], [5], [4 * much]],
        weights=[1.0, 4e12 / 3, 1.2e30],
        eligibility=[[True, True], [True, False], [True, True]],
    )
    with pytest.raises(fo.NoSolution, match="found no equilibrium") as caught:
        fo.solve(instance, "psdsf")
    assert caught.value.known["sweeps"] < 1_000
