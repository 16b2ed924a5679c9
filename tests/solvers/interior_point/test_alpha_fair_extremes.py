"""The interior point at the edges of its range: small and large alpha, weights over six decades, users who get next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import questions
from instances import demands_with_zeros, instance_of_everything, instance_of_extremes, some_servers_each
from scipy.optimize import linprog

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import paths
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solving.policy import find


def most(instance: fo.Instance, worth: FloatArray) -> float:
    """Return the largest sum_n worth[n] x[n] over all feasible allocations: a plain linear program of SciPy's."""
    users, servers = np.nonzero(instance.eligibility)
    rows, bounds = [], []
    for i in range(instance.n_servers):
        for r in range(instance.n_resources):
            rows.append(np.where(servers == i, instance.demands[users, r], 0.0))
            bounds.append(instance.row_capacity[i, r])
    for n in np.flatnonzero(np.isfinite(instance.tasks)):
        rows.append((users == n).astype(float))
        bounds.append(instance.tasks[n])
    answer = linprog(-worth[users], A_ub=np.array(rows), b_ub=bounds, method="highs")
    assert answer.status == 0
    return -float(answer.fun or 0.0)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_the_published_condition_holds(alpha: float) -> None:
    """sum_n phi[n] (x'[n] - x[n]) / x[n]^alpha <= 0 for every feasible x', to 1e-8 of what the users have."""
    for seed in range(10):
        instance = instance_of_extremes(seed)
        if not instance.servable.any():
            continue
        allocation = fo.solve(instance, "proportional", alpha=alpha, solver="interior-point")
        x = allocation.tasks_per_user
        has = x > 1e-30  # less than that (a small weight at a small alpha) overflows here
        log_worth = np.log(instance.weights[has]) - alpha * np.log(x[has])
        worth = np.zeros(x.size)
        worth[has] = np.exp(log_worth - log_worth.max(initial=0.0))
        reached = float(worth @ x)
        assert most(instance, worth) <= reached * (1 + 1e-8), (seed, alpha)


def by_cvxpy(instance: fo.Instance, **options: Any) -> fo.Allocation | None:
    """Solve by CVXPY; None where its polished answer fails its check, and the message names the engine that does better."""
    try:
        return fo.solve(instance, "proportional", solver="cvxpy", **options)
    except fo.CertificateError as error:
        if 'try solver="interior-point"' not in str(error):
            raise
        return None


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_both_engines_agree_at_the_edges(alpha: float) -> None:
    """x[n] to 1e-7, also of users whose worths are many orders of magnitude apart; what CVXPY cannot prove it refuses."""
    answered = 0
    for seed in range(8):
        instance = instance_of_extremes(seed)
        first = fo.solve(instance, "proportional", alpha=alpha, solver="interior-point").tasks_per_user
        second = by_cvxpy(instance, alpha=alpha)
        if second is not None:
            answered += 1
            np.testing.assert_allclose(first, second.tasks_per_user, rtol=1e-7, atol=1e-12, err_msg=f"seed {seed}")
    assert answered >= 2 or alpha > 1  # at large alpha CVXPY's answers seldom show their active sets


@pytest.mark.parametrize(("alpha", "seed"), [(0.1, 5), (0.5, 1), (0.5, 11), (1.0, 12), (2.0, 13), (10.0, 14)])
def test_small_servers_among_large_ones(alpha: float, seed: int) -> None:
    """Capacities over nine orders of magnitude, weights over six: what takes a billionth of anybody's money is told exactly as well."""
    rng = np.random.default_rng(seed)
    n, k, m = 80, 8, 2
    demands = demands_with_zeros(rng, (n, m), 0.01, 1, 0.2)
    eligibility = some_servers_each(rng, n, k, 0.7)
    instance = fo.Instance(10 ** rng.uniform(-3, 6, (k, m)), demands, weights=10 ** rng.uniform(-3, 3, n), eligibility=eligibility)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    assert certify(program, paths._in_logarithms(program, Deadline(None))).worst <= 1e-9
    assert find(program, [InteriorPoint()], 1e-8, Deadline(None)).certificate.worst <= 1e-9


def test_next_to_nothing_follows_from_the_prices() -> None:
    """Two users of one server, alpha = 0.1: x[n] = (phi[n] / p)^10, so a thousandth of the weight is 1e-30 of the tasks."""
    allocation = fo.solve(fo.Instance([[1.0]], [[1.0], [1.0]], weights=[1.0, 1e-3]), "proportional", alpha=0.1, solver="interior-point")
    np.testing.assert_allclose(allocation.tasks_per_user, [1.0, 1e-30], rtol=1e-9)


@pytest.mark.parametrize("tasks", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("weights", [(1, 1), (0.06, 17)])
def test_who_has_all_its_tasks_is_not_in_the_way(tasks: float, weights: tuple[float, float]) -> None:
    """User 1 may use server 1 only, so that user 2 runs its few tasks on server 2, though it is worth 1e12 times as much anywhere."""
    instance = fo.Instance(
        [[9], [9]],
        [[1], [1]],
        weights=weights,
        eligibility=[[True, False], [True, True]],
        tasks=np.array([np.inf, tasks]),
        parallelism=[np.inf, 1.5],  # a row beside those of servers
    )
    for allocation in (fo.solve(instance, "proportional", alpha=10, solver="interior-point"), by_cvxpy(instance, alpha=10)):
        if allocation is None:
            continue
        np.testing.assert_allclose(allocation.tasks, np.array([[9, 0], [0, tasks]]), rtol=1e-12, atol=1e-12)
        assert allocation.certificate.worst <= 1e-12


@pytest.mark.parametrize(("seed", "sharing"), [(128, "rdm"), (183, "rdm"), (369, "rdm"), (217, "tdm")])
def test_who_is_stopped_by_marginal_worths_that_hide_what_it_pays(seed: int, sharing: Any) -> None:
    """At alpha = 10 a stopped user's tasks are worth 10^12 times those of others, and more: everybody has what it has in fractions."""
    asked = questions(instance_of_everything(seed), seed)
    instance = next(each.instance for each in asked if (each.label, each.sharing) == ("proportional 10", sharing))
    allocation = fo.solve(instance, "proportional", alpha=10, sharing=sharing)
    exact = fo.solve(instance, "proportional", alpha=10, sharing=sharing, exact=True)
    np.testing.assert_allclose(allocation.tasks_per_user, exact.tasks_per_user, rtol=1e-9)


def test_less_than_floating_point_can_hold() -> None:
    """1e3 ^ -200 of the tasks: refused, and the user is named."""
    with pytest.raises(fo.Unsupported, match="user-2"):
        fo.solve(fo.Instance([[1.0]], [[1.0], [1.0]], weights=[1e3, 1.0]), "proportional", alpha=0.005)


def test_deterministic() -> None:
    """The same answer, bit by bit."""
    instance = instance_of_extremes(3)
    first, second = (fo.solve(instance, "proportional", alpha=2.0, solver="interior-point").tasks for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_user_who_is_on_next_to_no_part_of_a_server() -> None:
    """User 1 may be on 0.99841565 of a server, and is, where it is fast: server 3. What is left of that is next to nothing for user 2."""
    instance = fo.Instance(
        [[0.0], [3.06297378], [0.88924848]],
        [[1.23293976], [1.47251829]],
        eligibility=[[False, True, True], [False, True, True]],
        rates=[[6.69852456, 5.49340605, 6.93016169], [7.0893342, 4.86926546, 0.77840668]],
        parallelism=[0.99841565, np.inf],
    )
    program = fo.formulate(instance, "proportional", sharing="tdm")
    found = find(program, [InteriorPoint()], 1e-8, Deadline(None)).solution
    assert certify(program, found).worst <= 1e-12
    left = 1 - 0.99841565
    right = [0.99841565 * 6.93016169, 4.86926546 + left * 0.77840668]
    assert program.per_user(found.x) == pytest.approx(right, rel=1e-12)


def test_many_kinds_of_rows_at_once() -> None:
    """Limits on tasks, on servers at once, and of resources."""
    answer = fo.solve(instance_of_everything(117), "proportional", solver="interior-point")
    assert answer.certificate.worst <= 1e-13
    assert answer.details["iterations"] < 60
