"""The polish of alpha-fair answers and its parts, against KKT conditions written out by hand, and closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from instances import instance_of_extremes

import fairopt as fo
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets import kkt
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import negligible_users
from fairopt.solvers.active_sets.settings import SETTINGS
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_cvxpy.engine import CVXPY

THREE = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1.5, 2.2])  # users 1, 2 on server 1 only


def by_hand(program: Program, solution: Solution) -> float:
    """Return the largest violation of the KKT conditions, in the units of the program, relative to worth, spending and bounds."""
    assert solution.prices is not None
    x, p, limits = solution.x, solution.prices, program.limits
    level = program.per_user(program.utilities * x)
    if isinstance(program.goal, Tradeoff):
        goal = program.goal
        powers = float((goal.weights * level ** (1 - goal.beta)).sum())
        worth = goal.weights * level**-goal.beta + goal.efficiency / (1 - goal.efficiency) * powers / level.sum()
    else:
        assert isinstance(program.goal, AlphaFair)
        worth = program.goal.weights * level**-program.goal.alpha
    worth = worth[program.pair_users] * program.utilities
    reduced = limits.matrix.T @ p - worth
    slack = limits.bounds - limits.matrix @ x
    return max(
        float((-reduced / worth).max()),
        float(np.abs(reduced * x).max() / (worth @ x)),
        float((-slack / limits.bounds).max()),
        float(np.abs(slack * p).max() / (p @ limits.bounds)),
        float(-min(x.min(), p.min())),
    )


def spoiled(solution: Solution, rng: np.random.Generator, noise: float) -> Solution:
    """Return an approximate answer, with prices in another unit of money."""
    assert solution.prices is not None
    return dataclasses.replace(
        solution,
        x=np.abs(solution.x * (1 + noise * rng.normal(size=solution.x.size)) + noise * rng.random(solution.x.size)),
        prices=17 * np.abs(solution.prices + noise * rng.normal(size=solution.prices.size)),
    )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("tasks", [None, [np.inf, 2.0, 1.0]])
def test_a_spoiled_answer_is_exact_again(alpha: float, tasks: list[float] | None) -> None:
    """The KKT conditions hold to rounding; what else the answer says stays."""
    instance = THREE if tasks is None else THREE.replace(tasks=tasks)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    answer = CVXPY().solve(program, tolerance=1e-8, deadline=Deadline(None))
    assert 1e-15 < by_hand(program, answer) < 1e-5
    rough = spoiled(dataclasses.replace(answer, trace="kept"), np.random.default_rng(0), 1e-6)
    assert by_hand(program, rough) > 1
    polished = polish(program, rough)
    assert polished is not None
    assert by_hand(program, polished) <= 1e-13
    assert polished.trace == "kept"
    assert polished.iterations > answer.iterations


@pytest.mark.parametrize(("beta", "lam"), [(0.5, 2.0), (3.0, -1.0)])
def test_a_spoiled_trade_off_is_exact_again(beta: float, lam: float) -> None:
    """The worth of the total is found, too."""
    program = fo.formulate(THREE, "fds", beta=beta, lam=lam)
    assert isinstance(program.goal, Tradeoff)
    assert program.goal.efficiency > 0.1
    allocation = fo.solve(THREE, "fds", beta=beta, lam=lam, solver="cvxpy")
    assert allocation.prices is not None
    x = allocation.tasks[program.pair_users, program.pair_servers]
    prices = allocation.prices[program.limits.keys[:, 0], program.limits.keys[:, 1]]
    polished = polish(program, spoiled(Solution(x, prices=prices), np.random.default_rng(1), 1e-5))
    assert polished is not None
    assert by_hand(program, polished) <= 1e-10  # kappa is known to 1e-11


def test_what_there_is_nothing_to_polish_of() -> None:
    """Other goals, answers without prices, users with nothing: None, and no error."""
    program = fo.formulate(THREE, "proportional")
    assert polish(fo.formulate(THREE, "drfh"), Solution(np.ones(5), prices=np.ones(5))) is None
    assert polish(program, Solution(np.ones(program.n_pairs))) is None
    assert polish(program, Solution(np.zeros(program.n_pairs), prices=np.ones(len(program.limits)))) is None


def test_scaled_units_and_the_way_back() -> None:
    """Columns reach 1, the largest utility of a user's columns is 1, and an optimum has no KKT violation; prices are true multipliers."""
    program = fo.formulate(fo.Instance([[4.0]], [[1.0], [2.0]], weights=[1, 3]), "proportional")
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    problem = AlphaFairProblem.of(program, goal)
    np.testing.assert_array_equal(problem.A.toarray(), [[1.0, 1.0]])
    np.testing.assert_array_equal(problem.v, [1.0, 1.0])
    price = 4 / np.exp(problem.shift)  # of the whole limit: all money is 1 + 3
    assert problem.kkt_violation(np.array([0.25, 0.75]), np.array([price])) <= 1e-15
    assert problem.kkt_violation(np.array([0.25, 0.70]), np.array([price])) == pytest.approx(
        4 * 0.05 / (0.95 / (0.25 / 1 + 0.70 / 3)),
        rel=1e-9,  # spent on what is left, in parts of the harmonic mean of the money
    )
    solution = problem.solution(Point(np.array([0.25, 0.75]), np.array([price]), 3))
    np.testing.assert_allclose(solution.x, [1.0, 1.5], rtol=1e-15)
    assert solution.prices == pytest.approx([1.0], rel=1e-14)  # d (log x1 + 3 log x2) / d capacity = 4 / 4
    back = problem.point(solution)
    np.testing.assert_allclose(np.append(back.x, back.p), [0.25, 0.75, 4.0], rtol=1e-14)  # in the program's unit of money


@pytest.mark.parametrize("log_kappa", [-np.inf, 0.3])
def test_elasticity_and_residual_of_marginal_worth(log_kappa: float) -> None:
    """By differences of the marginal worth."""
    program = fo.formulate(THREE, "proportional", alpha=2.5)
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    problem = AlphaFairProblem.of(program, goal).with_total_worth(log_kappa)
    t, step = np.array([0.2, 0.5, 1.5]), 1e-6
    slope = (np.log(problem.worth(t * np.exp(step))) - np.log(problem.worth(t * np.exp(-step)))) / (2 * step)
    np.testing.assert_allclose(-slope, problem.elasticity(np.log(t)) * np.ones(3), rtol=1e-8)
    np.testing.assert_allclose(problem.worth_residual(np.log(problem.worth(t)) + 0.1, np.log(t)), 0.1, rtol=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_a_step_solves_the_linear_system(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever columns are eliminated and however the matrices are stored, as by a dense solve."""
    if not dense:
        monkeypatch.setattr(kkt, "SETTINGS", SETTINGS._replace(small=0))
    program = fo.formulate(THREE, "proportional")
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    problem = AlphaFairProblem.of(program, goal)
    rng = np.random.default_rng(0)
    n, m = problem.v.size, problem.rows.B.shape[0]
    D, F, right = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, m), rng.normal(size=n + m)
    B = problem.rows.B.toarray()
    expected = np.linalg.solve(np.block([[np.diag(D), B.T], [B, -np.diag(F)]]), right)
    for keep in (np.ones(n, bool), np.zeros(n, bool), np.arange(n) % 2 == 0):
        dx, dq = KKTSystem.factorised(problem.rows, D, F, keep).step(right[:n], right[n:])
        np.testing.assert_allclose(np.append(dx, dq), expected, rtol=1e-12, atol=1e-13)


def test_negligible_users_have_next_to_nothing() -> None:
    """(phi / p)^(1 / alpha): at alpha = 0.1 a thousandth of the weight is 1e-30 of the tasks; at alpha = 1 it is a thousandth."""
    instance = fo.Instance([[1.0]], [[1.0], [1.0]], weights=[1.0, 1e-3])
    for alpha, expected in ((0.1, [False, True]), (1.0, [False, False])):
        program = fo.formulate(instance, "proportional", alpha=alpha)
        goal = program.goal
        assert isinstance(goal, AlphaFair)
        problem = AlphaFairProblem.of(program, goal)
        price = np.exp(problem.log_phi[0])  # at which the first user takes the whole limit
        np.testing.assert_array_equal(negligible_users(problem, np.array([price])), expected)


@pytest.mark.parametrize(
    ("capacities", "demands", "options", "expected"),
    [
        ([[4, 6]], [[1, 1], [1, 3]], {}, [3, 1]),  # x1 + 3 x2 = 6 alone binds, and x1 + x2 = 4 is full at the price 0
        ([[2, 2], [6, 58 / 15]], [[3, 1], [2, 2]], {"weights": [2, 3]}, [16 / 15, 12 / 5]),  # on both servers
        (
            [[2, 1 / 2], [5, 0.9]],
            [[4, 1], [2, 0], [4, 1]],
            {"weights": [2, 1, 2]},
            [0.7, 0.7, 0.7],
        ),  # and a pair that holds nothing is free
        ([[8, 5 / 3], [6, 3]], [[2, 1], [1, 0], [4, 1]], {"weights": [3, 1, 2], "tasks": [np.inf, 7 / 3, np.inf]}, [3.5, 7 / 3, 7 / 6]),
    ],
)
def test_limits_that_are_full_at_the_price_0(
    capacities: object, demands: object, options: dict[str, object], expected: list[float]
) -> None:
    """Proportional fairness of one resource; the other one, or the tasks of a user, are just what the optimum takes."""
    allocation = fo.solve(fo.Instance(capacities, demands, **options), "proportional")  # type: ignore[arg-type]
    assert np.abs(allocation.tasks_per_user / expected - 1).max() <= 1e-13


def test_who_has_all_its_tasks_leaves_room_to_users_with_little_worth() -> None:
    """At alpha = 20, where user 3 runs its 3 tasks is worth 1e-7 of them to it; it leaves users 4 and 5 as many tasks each, 13 / 2."""
    instance = fo.Instance(
        [[7, 7], [5, 2], [3, 2], [0, 8], [4, 4]],
        [[3, 0], [3, 0], [0, 3], [1, 1], [0, 1], [1, 1]],
        tasks=[np.inf, np.inf, 3, np.inf, np.inf, 1],
        eligibility=np.array(
            [[0, 0, 0, 0, 1], [0, 1, 1, 0, 1], [1, 0, 1, 1, 1], [1, 1, 1, 0, 1], [0, 1, 1, 0, 1], [0, 1, 1, 0, 0]], dtype=bool
        ),
    )
    tasks = fo.solve(instance, "proportional", alpha=20).tasks_per_user
    assert np.allclose(tasks, [4 / 3, 7 / 3, 3, 6.5, 6.5, 1], rtol=1e-12, atol=0)


def test_a_trade_off_is_as_exact() -> None:
    """The worth of the total is found to rounding: every share is that of the answer to 20 digits.

    User 8 has a hundredth of a server. Its share changes by 400 times the relative change of that worth, whose logarithm, 2.9, is known to
    some units of its last place: to 10^-14.
    """
    instance = instance_of_extremes(32)
    options: dict[str, object] = {"beta": 0.5, "lam": 1.5}
    shares = fo.solve(instance, "gfj", **options).shares  # type: ignore[arg-type]
    exact = fo.solve(instance, "gfj", exact=True, digits=20, **options).shares  # type: ignore[arg-type]
    assert (np.abs(shares / exact - 1) <= np.where(np.arange(shares.size) == 8, 400 * 1e-14, 1e-13)).all()
