"""Every engine, the same cases. A capability that an engine does not declare is a skip of that type; anything else is a failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program
from fairopt.solvers.backend import Deadline

# Relative error of x[n], owned by the engine.
TOLERANCE = {
    **{"highs": 1e-9, "water-filling": 1e-12, "best-response": 1e-9, "interior-point": 1e-9, "large": 1e-9},
    **{"cvxpy": 1e-7, "trajectory": 1e-9, "pyomo": 1e-9},
}
EXACT = ("water-filling", "highs", "interior-point")  # the engines of leximins that are compared on random instances

FIGURE_1 = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
MIRROR = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
HALF_TIME = fo.Instance([[1], [1]], [[1], [1]], rates=[[1, 4], [1, 4]], parallelism=[0.5, np.inf])
HALF = fo.Instance([[4], [8]], [[1], [1]], parallelism=[0.5, np.inf])
CASES: dict[str, tuple[fo.Instance, str, dict[str, Any], list[float]]] = {
    "drf pool": (POOL, "drf", {}, [3, 2]),
    "drf pool, time": (POOL, "drf", {"sharing": "tdm"}, [2.25, 1.5]),
    "drf weights": (POOL.replace(weights=[1, 3]), "drf", {}, [1.2857142857142858, 2.5714285714285716]),
    "drf weights per resource": (POOL.replace(weights=[[1, 2], [1, 1]]), "drf", {}, [54 / 13, 18 / 13]),
    "drf finite": (POOL.replace(tasks=[1, np.inf]), "drf", {}, [1, 8 / 3]),
    "drf nothing to do": (POOL.replace(tasks=[0, np.inf]), "drf", {}, [0, 3]),
    "drf whole tasks": (POOL.replace(capacities=[[10, 19]]), "drf", {"integral": True}, [4, 2]),
    "one of each": (fo.Instance([[4]], [[2]]), "drfh", {}, [2]),
    "mirror drfh": (MIRROR, "drfh", {}, [10, 10]),
    "mirror equalized": (MIRROR, "drfh", {"formulation": "equalize"}, [10, 10]),
    "mirror per server": (MIRROR, "per-server-drf", {}, [6, 6]),
    "mirror slice": (MIRROR, "uniform", {}, [6, 6]),
    "figure 1 tsf": (FIGURE_1, "tsf", {}, [2, 2, 8]),
    "figure 1 psdsf": (FIGURE_1, "psdsf", {}, [3, 3, 6]),
    "figure 1 whole tasks": (FIGURE_1, "tsf", {"integral": True}, [2, 2, 8]),
    "one server each": (fo.Instance([[4, 0], [0, 6]], [[1, 0], [0, 1], [0, 2]]), "drfh", {}, [4, 3, 1.5]),
    "rates": (fo.Instance([[1], [1]], [[1], [1]], rates=[[4, 2], [1, 2]]), "cdrf", {}, [4, 2]),
    # x + 3 y = 9 and 4 x + y = 18 meet at (45/11, 18/11), where (1/x, 1/y) = p (1, 3) + q (4, 1) with p = 1/5, q = 1/90: prices > 0.
    "proportional pool": (POOL, "proportional", {}, [45 / 11, 18 / 11]),
    "proportional mirror": (MIRROR, "proportional", {"alpha": 0.5}, [10, 10]),
    # One resource: phi x^-a = p d, so x = (phi / d)^(1/a) k with sum d x = c.
    "alpha 2": (fo.Instance([[12]], [[1], [1]], weights=[1, 4]), "proportional", {"alpha": 2}, [4, 8]),
    "alpha 0.5": (fo.Instance([[17]], [[1], [1]], weights=[1, 4]), "proportional", {"alpha": 0.5}, [1, 16]),
    "alpha finite": (fo.Instance([[12]], [[1], [1], [1]], tasks=[2, 0, np.inf]), "proportional", {}, [2, 0, 10]),
    # beta = 2: the harmonic mean of x and y times (x + y)^(2 |lambda| - 1); at lambda = -1 that is x y, on x + 6 y = 9 largest half way.
    "fairness and total": (fo.Instance([[9, 100]], [[1, 4], [6, 1]]), "gfj", {"beta": 2, "lam": -1}, [4.5, 0.75]),
    # One resource that is all used: S = 1, so lambda does not count, and phi s^-beta is the same for all.
    "fairness alone": (fo.Instance([[12]], [[1], [1]], weights=[1, 4]), "fds", {"beta": 2, "lam": -3}, [4, 8]),
    # User 1 can be on half a server: the faster one, with 2 and 4 tasks there; the rest is user 2's.
    "half a server, time": (HALF_TIME, "tsf", {}, [2, 3]),
    "half a server, proportional": (HALF_TIME, "proportional", {}, [2, 3]),
    "half a server, both parts of a total": (HALF_TIME, "gfj", {"beta": 2, "lam": -1}, [2, 3]),
    "half a server, resources": (HALF, "drfh", {}, [4, 8]),
    "half a server, cdrf": (HALF, "cdrf", {}, [3, 9]),
    "half a server, server by server": (HALF, "per-server-drf", {}, [2, 2 + 8]),  # the first server comes first
    "half a server, slices": (HALF, "uniform", {}, [4, 6]),
    "half a server, whole tasks": (HALF.replace(parallelism=[0.55, np.inf]), "drfh", {"integral": True}, [4, 8]),
    "efficiency": (POOL, "efficiency", {}, [45 / 11, 18 / 11]),
    "minute and huge": (fo.Instance([[1e-6, 1e12]], [[1e-9, 1e6], [1e-8, 1e10]]), "drf", {}, [500, 50]),
}


@pytest.mark.parametrize("solver", list(fo.SOLVERS))
@pytest.mark.parametrize("case", list(CASES))
def test_case(solver: str, case: str) -> None:
    """The engine finds the known x[n], with a certificate."""
    instance, notion, options, expected = CASES[case]
    try:
        allocation = fo.solve(instance, notion, solver=solver, **options)
    except fo.Unsupported as reason:
        pytest.skip(f"{solver}: {reason}")
    np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=TOLERANCE[solver], atol=1e-12)
    assert allocation.certificate.worst <= 1e-9
    assert allocation.solver == solver


def test_only_declared_inability_skips() -> None:
    """Water-filling declares one server and divisible tasks; the message names what is missing and who can."""
    with pytest.raises(fo.Unsupported, match="users who may run on several servers; use highs or interior-point or cvxpy"):
        fo.solve(MIRROR, "drfh", solver="water-filling")
    with pytest.raises(fo.Unsupported, match="whole tasks"):
        fo.solve(POOL, "drf", solver="water-filling", integral=True)


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@given(instance=instances(max_users=8, one_server=True))
@settings(max_examples=60)
def test_engines_agree_on_one_server(sharing: str, instance: fo.Instance) -> None:
    """Closed form and linear programs: x[n] equal to 1e-9."""
    answers = [fo.solve(instance, "drf", solver=solver, sharing=sharing).tasks_per_user for solver in EXACT]  # type: ignore[arg-type]
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("notion", ["per-server-drf"])
@given(instance=instances(max_users=6))
@settings(max_examples=30)
def test_engines_agree_server_by_server(notion: str, instance: fo.Instance) -> None:
    """Also where every server is a problem of its own."""
    answers = [fo.solve(instance, notion, solver=solver).tasks for solver in EXACT]
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-8, atol=1e-8)


@given(instance=instances(max_users=6))
@settings(max_examples=60)
def test_four_checks_that_need_no_stored_answer(instance: fo.Instance) -> None:
    """Feasibility, sign of prices, complementary slackness, stationarity (no pair is cheaper than its user's price), by level."""
    program: Program = fo.formulate(instance, "drfh")
    if program.n_pairs == 0:
        return
    solution = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=Deadline(None))
    limits = program.limits
    use = limits.matrix @ solution.x
    assert (use <= limits.bounds * (1 + 1e-9) + 1e-12).all()
    settled: set[int] = set()
    for stage in solution.stages:
        assert stage.prices is not None
        assert (stage.prices >= 0).all()
        slack = (limits.bounds - use) * stage.prices
        # A limit with a price is full, by the users settled so far at their levels (those who rise later do not use it beyond theirs).
        assert (slack <= 1e-7 * stage.value).all()
        cost = limits.matrix.T @ stage.prices
        paid = np.array([cost[program.pair_users == n] @ solution.x[program.pair_users == n] for n in stage.users])
        cheapest = np.array([(cost / program.utilities)[program.pair_users == n].min() for n in stage.users])
        reached = np.array([program.per_user(solution.x * program.utilities)[n] for n in stage.users])
        np.testing.assert_allclose(paid, cheapest * reached, rtol=1e-6, atol=1e-9 * stage.value)
        settled |= set(stage.users.tolist())
    assert certify(program, solution).worst <= 1e-8
    assert len(settled) == sum(len(stage.users) for stage in solution.stages)
