"""The families fds and gfj: the paper's formula word for word, its special cases, refusals, merging, engines."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import uniform_instance
from scipy.optimize import linprog
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Tradeoff
from fairopt.solvers.backend import Deadline

POOL = fo.Instance([[9, 18]], [[1, 4], [6, 1]])
STEEP = [(0.5, 1.0), (0.5, 3.0), (2.0, -0.5), (2.0, -1.0), (2.0, -6.0), (5.0, -1.2)]


def f(s: FloatArray, weights: FloatArray, beta: float, lam: float) -> float:
    """sgn(1 - beta) (sum phi (s / S)^(1 - beta))^(1 / beta) S^lambda, as it is written."""
    total = s.sum()
    return float(np.sign(1 - beta) * (weights @ (s / total) ** (1 - beta)) ** (1 / beta) * total**lam)


def worth(instance: fo.Instance, notion: str) -> FloatArray:
    """What a task counts: its global dominant share, or 1."""
    if notion == "gfj":
        return np.ones(instance.n_users)
    total = [
        float(sum(count * row[r] for count, row in zip(instance.counts, instance.capacities, strict=True)))
        for r in range(instance.n_resources)
    ]
    shares = [max((d / c for d, c in zip(demand, total, strict=True) if d > 0 and c > 0), default=1.0) for demand in instance.demands]
    return np.where(instance.eligibility.any(axis=1), shares, 1.0)


def best_response(instance: fo.Instance, value: FloatArray) -> float:
    """Return the largest sum_n value[n] x[n] over all feasible allocations: a plain linear program of SciPy's."""
    users, servers = np.nonzero(instance.eligibility)
    rows, bounds = [], []
    for i, r in itertools.product(range(instance.n_servers), range(instance.n_resources)):
        rows.append(np.where(servers == i, instance.demands[users, r], 0.0))
        bounds.append(instance.row_capacity[i, r])
    for n in np.flatnonzero(np.isfinite(instance.tasks)):
        rows.append((users == n).astype(float))
        bounds.append(instance.tasks[n])
    answer = linprog(-value[users], A_ub=np.array(rows), b_ub=bounds, method="highs")
    assert answer.status == 0
    return -float(answer.fun or 0.0)


# The formula ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["fds", "gfj"])
@given(instance=instances(max_users=4, max_servers=3), member=st.sampled_from(STEEP))
@settings(max_examples=12)
def test_no_move_raises_the_printed_formula(notion: str, instance: fo.Instance, member: tuple[float, float]) -> None:
    """grad f . (s' - s) <= 0 for every feasible s', with the gradient from differences of f itself, to their precision."""
    beta, lam = member
    allocation = fo.solve(instance, notion, beta=beta, lam=lam)
    has = np.flatnonzero(allocation.tasks_per_user > 0)
    if not has.size:
        return
    per_task, weights = worth(instance, notion)[has], instance.weights[has]
    s = per_task * allocation.tasks_per_user[has]
    value = np.zeros(instance.n_users)
    for j, n in enumerate(has):
        step = np.zeros(has.size)
        step[j] = 1e-5 * s[j]
        rise = (f(s + step, weights, beta, lam) - f(s - step, weights, beta, lam)) / (2 * step[j])
        value[n] = per_task[j] * rise
    reached = float(value @ allocation.tasks_per_user)
    assert best_response(instance, value) <= reached * (1 + 1e-6)


@pytest.mark.parametrize("member", STEEP)
@given(instance=instances(max_users=4, max_servers=3))
@settings(max_examples=3)
def test_no_other_allocation_has_a_larger_f(member: tuple[float, float], instance: fo.Instance) -> None:
    """Those of other notions, and the averages with them."""
    beta, lam = member
    mine = fo.solve(instance, "fds", beta=beta, lam=lam)
    has = mine.tasks_per_user > 0
    if not has.any():
        return
    per_task, weights = worth(instance, "fds")[has], instance.weights[has]
    best = f(per_task * mine.tasks_per_user[has], weights, beta, lam)
    for notion, part in itertools.product(("drfh", "asset", "uniform", "efficiency"), (0.01, 0.5)):
        other = part * fo.solve(instance, notion).tasks_per_user + (1 - part) * mine.tasks_per_user
        assert f(per_task * other[has], weights, beta, lam) <= best + 1e-9 * abs(best)


# Special cases -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.3, 0.5, 2.0, 6.0])
@given(instance=instances())
@settings(max_examples=4)
def test_the_least_lambda_is_alpha_fairness(beta: float, instance: fo.Instance) -> None:
    """lambda = (1 - beta) / beta: proportional with alpha = beta, of shares for fds, of tasks for gfj, weights and all."""
    lam = (1 - beta) / beta
    for notion in ("fds", "gfj"):
        expected = fo.solve(instance, "proportional", alpha=beta, utility=worth(instance, notion)).tasks_per_user
        actual = fo.solve(instance, notion, beta=beta, lam=lam).tasks_per_user
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-12)


def test_large_beta_nears_max_min_of_shares() -> None:
    """s of fds comes nearer to that of drfh as beta grows, with lambda = (1 - beta) / beta."""
    instance = uniform_instance(5, 3, seed=4, demands=(0.1, 2))
    fair = fo.solve(instance, "drfh").shares
    far = [np.abs(fo.solve(instance, "fds", beta=b, lam=(1 - b) / b).shares - fair).max() for b in (2.0, 8.0, 40.0)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.05 * fair.min()


@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_large_lambda_nears_the_largest_total(beta: float) -> None:
    """The number of tasks of gfj grows with |lambda|, to that of efficiency."""
    instance = uniform_instance(5, 3, seed=5, demands=(0.1, 2))
    totals = [fo.solve(instance, "gfj", beta=beta, lam=m * (1 - beta) / beta).tasks.sum() for m in (1, 2, 10, 1000)]
    most = fo.solve(instance, "efficiency").tasks.sum()
    assert (np.diff(totals) > 1e-6).all()
    assert totals[-1] == pytest.approx(most, rel=2e-3)
    assert totals[-1] < most


@given(beta=st.sampled_from([0.4, 0.5, 2.0, 5.0]), times=st.floats(1.0, 50.0), weight=st.floats(0.1, 10.0))
@settings(max_examples=10)
def test_one_resource_leaves_lambda_nothing_to_choose(beta: float, times: float, weight: float) -> None:
    """All of it is used, so S = 1 whatever lambda, and phi s^-beta is the same for all: s in proportion to phi^(1/beta)."""
    instance = fo.Instance([[10.0]], [[1.0], [2.0], [5.0]], weights=[1.0, weight, 3.0])
    shares = fo.solve(instance, "fds", beta=beta, lam=times * (1 - beta) / beta).shares
    pull = np.array([1.0, weight, 3.0]) ** (1 / beta)
    np.testing.assert_allclose(shares, pull / pull.sum(), rtol=1e-9)


def test_two_users_by_hand() -> None:
    """beta = 2, lambda = -1: the largest x y / (x + y) times x + y, that is x y, where cpu x + 6 y = 9 alone binds: x = 4.5 is too much.

    memory 4 x + y = 18 stops x at 99/23, where both are full.
    """
    np.testing.assert_allclose(fo.solve(POOL, "gfj", beta=2, lam=-1).tasks_per_user, [99 / 23, 18 / 23], rtol=1e-9)
    roomy = fo.Instance([[9, 100]], [[1, 4], [6, 1]])
    np.testing.assert_allclose(fo.solve(roomy, "gfj", beta=2, lam=-1).tasks_per_user, [4.5, 0.75], rtol=1e-9)


def test_the_goal_prints_and_counts_as_written() -> None:
    """The program's own scale is a power of f: log|f| / lambda, up to the constant of the weights."""
    program = fo.formulate(POOL.replace(weights=[1, 2]), "fds", beta=3, lam=-2)
    assert "maximise    0.333333 log (sum of phi[n] U[n]^-2)^-0.5 + 0.666667 log sum of U[n], phi = (1, 2)" in str(program)
    goal = program.goal
    assert isinstance(goal, Tradeoff)
    rng = np.random.default_rng(6)
    for _ in range(5):
        s = rng.uniform(0.1, 1, 2)
        e = goal.efficiency
        ours = (1 - e) * np.log((goal.weights @ s**-2.0) ** -0.5) + e * np.log(s.sum())
        assert ours == pytest.approx(np.log(-f(s, goal.weights, 3, -2)) / -2)
    least = str(fo.formulate(POOL, "gfj", beta=0.5, lam=1))
    assert "maximise    log (sum of U[n]^0.5)^2\n" in least


# Engines, certificate, merging, regret -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["fds", "gfj"])
@given(instance=instances(), member=st.sampled_from(STEEP))
@settings(max_examples=8)
def test_engines_agree(notion: str, instance: fo.Instance, member: tuple[float, float]) -> None:
    """x[n] to 1e-7, certificates to 1e-9."""
    pytest.importorskip("cvxpy")
    options: dict[str, Any] = {"beta": member[0], "lam": member[1]}
    first, second = (fo.solve(instance, notion, solver=name, **options) for name in ("interior-point", "cvxpy"))
    np.testing.assert_allclose(first.tasks_per_user, second.tasks_per_user, rtol=1e-7, atol=1e-9)
    assert max(first.certificate.worst, second.certificate.worst) <= 1e-9


def test_the_certificate_sees_another_optimum() -> None:
    """The answer for another lambda, with its own prices, and a slice: both feasible, neither passes."""
    engine = fo.SOLVERS["interior-point"]()
    programs = [fo.formulate(fo.Instance([[9, 100]], [[1, 4], [6, 1]]), "gfj", beta=2, lam=lam) for lam in (-1.0, -1.001)]
    right, wrong = (engine.solve(program, tolerance=1e-8, deadline=Deadline(None)) for program in programs)
    assert certify(programs[0], right).worst <= 1e-10
    assert certify(programs[0], wrong).worst > 1e-5
    assert certify(programs[0], dataclasses.replace(right, x=right.x * 0.9)).worst > 1e-2
    assert right.prices is not None
    assert certify(programs[0], dataclasses.replace(right, prices=right.prices * [1, 0])).worst <= 1e-10  # memory is free
    assert certify(programs[0], dataclasses.replace(right, prices=np.zeros(2))).worst > 0.1


@pytest.mark.parametrize("member", [(0.5, 3.0), (3.0, -2.0)])
def test_merging_is_exact(member: tuple[float, float]) -> None:
    """Two users alike divide by phi^(1/beta), as they do when they are told apart; so do servers."""
    rng = np.random.default_rng(2)
    capacities, demands = rng.uniform(1, 9, (3, 2))[[0, 1, 2, 2]], rng.uniform(0.1, 2, (4, 2))
    alike = fo.Instance(capacities, demands[[0, 0, 1, 2, 3]], np.array([1.0, 7.0, 2.0, 0.3, 1.0]))
    apart = alike.replace(tasks=[1e9, np.inf, np.inf, np.inf, np.inf])  # a limit that never binds keeps rows apart
    first, second = (fo.solve(each, "fds", beta=member[0], lam=member[1]).tasks_per_user for each in (alike, apart))
    np.testing.assert_allclose(first, second, rtol=1e-8)


def test_regret_of_a_tradeoff() -> None:
    """beta = 2, lambda = -1: sqrt(x y / (x + y) (x + y)); drf gives 3 and 1 where sqrt(99 x 18) / 23 is the most."""
    drf = fo.solve(POOL, "drf")
    x, y = drf.tasks_per_user
    assert fo.regret(drf, "gfj", beta=2, lam=-1).goal == pytest.approx(1 - np.sqrt(x * y) / (np.sqrt(99 * 18) / 23))
    assert fo.regret(fo.solve(POOL, "gfj"), "gfj").goal == 0


def test_users_without_anything_are_left_out() -> None:
    """No server, no tasks, no demand: as if they were not there."""
    instance = fo.Instance(
        [[9, 18]],
        [[1, 4], [6, 1], [1, 1], [1, 1], [0, 0]],
        eligibility=[[True], [True], [False], [True], [True]],
        tasks=[np.inf, np.inf, np.inf, 0, 4],
    )
    tasks = fo.solve(instance, "gfj", beta=2, lam=-1).tasks_per_user
    np.testing.assert_allclose(tasks, [99 / 23, 18 / 23, 0, 0, 4], rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 1}, 'beta is 1, .* use "efficiency", "proportional"'),
        ({"beta": 0}, "beta is 0; give a number > 0 other than 1"),
        ({"beta": -2}, "beta is -2"),
        ({"beta": np.nan}, "beta is nan; give a finite number"),
        ({"beta": np.inf}, 'beta is inf; give a finite number .*"drfh"'),
        ({"beta": "much"}, "beta is 'much'; give a number > 0"),
        ({"beta": True}, "beta is True"),
        ({"beta": 2, "lam": -0.4}, "lam is -0.4, but at beta = 2 only lam <= .* = -0.5 can be maximised: .* not be Pareto efficient"),
        ({"beta": 2, "lam": -0.4999999}, "lam is -0.4999999, but at beta = 2 only lam <= .* = -0.5 can be maximised"),
        ({"beta": 2, "lam": 1}, "lam is 1, but at beta = 2 only lam <= "),
        ({"beta": 0.5, "lam": 0.9}, "lam is 0.9, but at beta = 0.5 only lam >= .* = 1 can be maximised"),
        ({"beta": 0.5, "lam": -3}, "lam is -3"),
        ({"beta": 2, "lam": np.inf}, 'lam is inf; give a finite number .*"efficiency"'),
        ({"beta": 2, "lam": "x"}, "lam is 'x'; give a number, or leave it out"),
    ],
)
def test_members_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    """Refused, with the reason and what to use."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.solve(POOL, "fds", **options)


def test_below_the_least_lambda_an_optimum_may_waste() -> None:
    """Why those are refused: at beta = 2, lambda = -0.1 more of what user 1 alone can use lowers f."""
    s, more = np.array([1.0, 0.5]), np.array([4.0, 0.5])
    assert f(more, np.ones(2), 2, -0.1) < f(s, np.ones(2), 2, -0.1)
    assert f(more, np.ones(2), 2, -0.5) > f(s, np.ones(2), 2, -0.5)


def test_decimals_of_the_least_lambda_are_taken_for_it() -> None:
    """(1 - beta) / beta is seldom a decimal number: rounded in its last digit it is still meant."""
    least = (1 - 0.3) / 0.3
    assert fo.NOTIONS["fds"](beta=0.3, lam=np.nextafter(least, 0)).lam == least  # type: ignore[call-arg, attr-defined]
    assert fo.NOTIONS["gfj"]().lam == -1.0  # type: ignore[attr-defined]


def test_only_engines_that_can() -> None:
    """Pyomo and the trajectory decline; whole tasks nobody solves."""
    with pytest.raises(fo.Unsupported, match="a goal that weighs fairness against the total; use interior-point or cvxpy"):
        fo.solve(POOL, "fds", solver="pyomo")
    with pytest.raises(fo.Unsupported, match="no engine can solve a program with a goal that weighs"):
        fo.solve(POOL, "fds", integral=True)


def test_the_model_of_pyomo_has_the_same_goal() -> None:
    """x y at beta = 2, lambda = -1: its logarithm, halved."""
    pyo = pytest.importorskip("pyomo.environ")
    model = fo.to_pyomo(POOL, "gfj", beta=2, lam=-1)
    for variable, tasks in zip(model.x.values(), (4.0, 0.5), strict=True):
        variable.set_value(tasks)
    assert pyo.value(model.goal) == pytest.approx(np.log(4.0 * 0.5) / 2)
