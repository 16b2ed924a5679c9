"""How far what users have moves with the doubts of prices: by as much as the answer is wrong."""

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate.price_parts import EPSILON
from fairopt.certificate.price_response import Doubts, elasticity, response
from fairopt.program import AlphaFair, Program, Tradeoff


def doubts(program: Program, x: np.ndarray, prices: np.ndarray) -> Doubts:
    """All pairs that hold something are in use, and cost as much as they are worth up to what their user could save."""
    cost = np.asarray(program.limits.transposed @ prices)
    cheapest = np.full(len(program.users), np.inf)
    np.minimum.at(cheapest, program.pair_users, cost)
    beyond = cost - cheapest[program.pair_users]
    everywhere = np.ones(len(program.limits), bool)
    return Doubts(prices, cost, cost, beyond, beyond, x > 0, everywhere, ~everywhere)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0])
def test_a_price_that_is_wrong_moves_its_users(alpha: float) -> None:
    """Two users on two servers, of which each has one by itself, and a third one on both.

    At prices that differ by a part of 1e-6, the third one counts as doubtful by 1e-6, and each of the others may have 1e-6 / alpha more or
    less: x = (1, 1, 2) of (2, 2) at equal prices.
    """
    instance = fo.Instance([[2], [2]], [[1], [1], [1]], weights=[1, 1, 2**alpha], eligibility=[[1, 0], [0, 1], [1, 1]])
    program = fo.formulate(instance, "proportional", alpha=alpha)
    x = np.ones(4)
    goal = program.goal_as(AlphaFair)
    assert response(program, goal, x, doubts(program, x, np.array([1.0, 1.0]))) < 1e-14
    moved = response(program, goal, x, doubts(program, x, np.array([1.0, 1 + 1e-6])))
    assert 0.5e-6 / alpha <= moved <= 10e-6 / alpha


@pytest.mark.parametrize(("price", "known"), [(1e-2, True), (1e-5, True), (1e-20, False)])
def test_a_price_that_is_lost_in_another_cost_is_not_known(price: float, known: bool) -> None:
    """User 1 pays 1 for a CPU and ``price`` for memory on either server, user 2 for a CPU alone; users 3 and 4 for memory, one on each.

    User 1 could be on either server, as far as CPUs go. What that means for users 3 and 4 rounding hides, or not.
    """
    instance = fo.Instance([[2, 2], [2, 2]], [[1, 1], [1, 0], [0, 1], [0, 1]], eligibility=[[1, 1], [1, 1], [1, 0], [0, 1]])
    program = fo.formulate(instance, "proportional", alpha=2)
    x, prices = np.ones(6), np.array([1, price, 1, price])
    moved = response(program, program.goal_as(AlphaFair), x, doubts(program, x, prices))
    assert (moved < 1e-9) == known
    assert known or moved > 1e-5


@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_the_equations_are_solved(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same changes as from the equations as they are stated, all pairs, prices and users at once, in 60 digits.

    Users 1 and 2 have a server each, user 3 is on both; all pay for licences, which cost the same wherever they run, and user 4 for nothing
    else.
    """
    monkeypatch.setattr("fairopt.certificate.price_response._SIGNS", 1)
    monkeypatch.setattr("fairopt.certificate.price_response._MULTIPLE", 1.0)
    eligibility = [[1, 0], [0, 1], [1, 1], [1, 1]]
    demands = [[1, 1], [1, 1], [1, 1], [0, 1]]
    instance = fo.Instance([[2], [2]], demands, eligibility=eligibility, shared={"licences": 6}, resources=["cpu"])
    program = fo.formulate(instance, "proportional", alpha=alpha)
    x, prices = np.ones(6), np.array([1.0, 1 + 1e-6, 1.0])
    A, bounds, user = program.limits.matrix.toarray(), program.limits.bounds, program.pair_users
    doubt = doubts(program, x, prices)
    level = np.bincount(user, weights=x)
    a, h = A * prices[:, None] / doubt.cost, A * level[user] / bounds[:, None]
    s = 1 / np.maximum(h.max(axis=0), 1.0)
    rho, pairs, limits, users = mpmath.mpf("1e-13"), len(x), len(bounds), len(level)
    with mpmath.workdps(60):
        matrix, right = mpmath.zeros(pairs + limits + users), mpmath.zeros(pairs + limits + users, 1)
        for k in range(pairs):
            matrix[k, k], matrix[k, pairs + limits + user[k]] = rho, -s[k]
            right[k] = s[k] * (doubt.beyond[k] / doubt.cost[k] + EPSILON)
            matrix[pairs + limits + user[k], k] = s[k]
            for j in range(limits):
                matrix[k, pairs + j], matrix[pairs + j, k] = s[k] * a[j, k], s[k] * h[j, k]
        for j in range(limits):
            matrix[pairs + j, pairs + j], right[pairs + j] = -rho, abs(A[j] @ x / bounds[j] - 1) + EPSILON
        for n in range(users):
            matrix[pairs + limits + n, pairs + limits + n] = 1 / alpha
        change = mpmath.lu_solve(matrix, right)
        moved = max(abs(change[pairs + limits + n]) for n in range(users)) / alpha
    assert response(program, program.goal_as(AlphaFair), x, doubt) == pytest.approx(float(moved), rel=1e-2)


def test_too_many_limits_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system of the limits is dense."""
    monkeypatch.setattr("fairopt.certificate.price_response._MOST_LIMITS", 1)
    program = fo.formulate(fo.Instance([[1], [1]], [[1], [1]]), "proportional")
    x = np.full(4, 0.5)
    assert response(program, program.goal_as(AlphaFair), x, doubts(program, x, np.ones(2))) == 1.0


@pytest.mark.parametrize("beta", [2.0, 30.0])
def test_elasticities_at_a_given_worth_of_the_total(beta: float) -> None:
    """In 60 digits, by a difference; 1 / `EPSILON` at most, and 0 of a user who has nothing."""
    goal = Tradeoff(beta, 2 * (1 - beta) / beta, np.array([1.0, 2.0, 3.0, 1.0]))
    utilities = np.array([1.0, 2.0, 1e9, 0.0])
    found = elasticity(goal, utilities)
    with mpmath.workdps(60):
        kappa = sum(w * mpmath.mpf(u) ** (1 - beta) for w, u in zip(goal.weights[:3], utilities[:3], strict=True)) / mpmath.mpf(
            utilities.sum()
        )

        def worth(k: int, part: mpmath.mpf) -> mpmath.mpf:
            return goal.weights[k] * (utilities[k] * part) ** -beta + kappa

        step = mpmath.mpf(10) ** -25
        for k in range(3):
            fall = -mpmath.log(worth(k, 1 + step) / worth(k, mpmath.mpf(1))) / step
            assert found[k] == pytest.approx(min(float(1 / fall) if fall > 0 else np.inf, 1 / EPSILON), rel=1e-6)
    assert found[3] == 0
