"""The conditions of alpha-fair answers under least tasks of users, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.conditions import ruled_violation
from fairopt.program import AlphaFair, Solution

# a has to have 6 tasks, and with so small a weight it wants no more; b has what is left, 3 tasks on each server.
TWO = fo.Instance([[12], [6]], [[1], [2]], weights=[1e-20, 1], users=["a", "b"], servers=["s", "t"], rules=["x[a] >= 6"])
TASKS = np.array([6.0, 0.0, 3.0, 3.0])


def violation(tasks: np.ndarray, prices: list[float], alpha: float = 1.0) -> float:
    """Return the violation of a user, at prices of the servers and of the rule in parts of what a task is worth to b."""
    program = fo.formulate(TWO, "proportional", alpha=alpha)
    assert isinstance(program.goal, AlphaFair)
    return ruled_violation(program, program.goal, tasks, 6.0**-alpha * np.array(prices))[1]


@pytest.mark.parametrize("alpha", [1.0, 8.0, 30.0, 100.0])
def test_worth_that_rounding_hides(alpha: float) -> None:
    """Two units of a server are a task of b; the rule pays for what a's costs. Other prices are seen, however little a's is worth."""
    assert violation(TASKS, [0.5, 0.5, 0.5], alpha) <= 1e-15
    for wrong in ([0.5, 0.5, 0.4999], [0.5, 0.5, 0.5001], [0.5, 0.4999, 0.5], [0.5001, 0.5, 0.5]):
        assert 1e-5 <= violation(TASKS, wrong, alpha) <= 1e-2
    assert violation(TASKS, [0.5, 0.5, 0.0], alpha) >= 1e15  # a pays for what it does not want


def test_tasks_on_the_dearer_server() -> None:
    """What a has on t is a waste if t costs more than s."""
    assert violation(np.array([5.0, 1.0, 3.5, 2.5]), [0.5, 0.5, 0.5]) <= 1e-15
    assert violation(np.array([5.0, 1.0, 3.5, 2.5]), [0.5, 0.501, 0.5]) >= 1e-4


@pytest.mark.parametrize("more", [1e-3, 1.0])
def test_more_than_the_least(more: float) -> None:
    """A rule has no price where its user has more than it asks for."""
    assert violation(TASKS + np.array([more, 0.0, -more / 2, 0.0]), [0.5, 0.5, 0.5]) >= more / 12


# The weights of three users. c has a server of its own that is worth much: the gap of the total does not see what b lacks.
WEIGHTS = [1e-14, 1e-10, 1.0]


def worst(pool: fo.Instance, tasks: list[float], prices: list[float]) -> float:
    """Return the largest residual of an answer of proportional fairness."""
    return certify(fo.formulate(pool, "proportional"), Solution(np.array(tasks), prices=np.array(prices))).worst


def test_a_rule_on_one_server_does_not_hide_waste_on_another() -> None:
    """a has to have a task on s, which c wants as well; it takes half of t from b, where it wants next to nothing."""
    servers = [[2], [1]]
    pool = fo.Instance(servers, [[1]] * 3, weights=WEIGHTS, users=["a", "b", "c"], servers=["s", "t"], eligibility=[[1, 1], [0, 1], [1, 0]])
    pool = pool.replace(rules=["x[a, s] >= 1"])
    assert worst(pool, [1.0, 0.5, 0.5, 1.0], [1.0, 2e-10, 1.0]) >= 1.0
    for values in ("2 * x[a, s] + x[a, t] >= 2", "x[a, s] + x[a, t] / 1000 >= 1"):  # not in the ratio of utilities
        assert worst(pool.replace(rules=[values]), [1.0, 0.5, 0.5, 1.0], [1.0, 2e-10, 0.5]) >= 1.0
    seen = pool.replace(weights=[1e-5, 1e-5, 1])  # with weights that rounding does not hide
    assert worst(seen, [1.0, 0.5, 0.5, 1.0], [1.0, 2e-5, 1 - 1e-5 / 1.5]) >= 0.1
    assert worst(seen, [1.0, 0.0, 1.0, 1.0], [1.0, 1e-5, 1 - 1e-5]) <= 1e-10


FORCED = fo.Instance(
    [[2], [2], [1]],
    [[1]] * 3,
    weights=WEIGHTS,
    users=["a", "b", "c"],
    servers=["s", "t", "u"],
    eligibility=[[1, 1, 0], [0, 1, 0], [0, 0, 1]],
)


@pytest.mark.parametrize(
    "pool",
    [FORCED.replace(rules=["x[a] == 1"]), FORCED.replace(rules=["x[a] >= 1"], tasks=[1, np.inf, np.inf])],
    ids=["an equation", "as many tasks"],
)
def test_a_floor_that_is_a_cap_has_any_price(pool: fo.Instance) -> None:
    """a has one task, nobody else wants s, and a has it on t, where b lacks it. The prices of the floor and the cap hide what t costs."""
    lower = fo.formulate(pool, "proportional").limits.bounds < 0
    for price in (0.0, 1e-2, 1e2, 1e10):
        assert worst(pool, [0.0, 1.0, 1.0, 1.0], [0.0, 1e-10, 1.0, price, price]) >= 0.5
    own = np.where(lower[3:], 0.0, 1e-14).tolist()
    assert worst(pool, [1.0, 0.0, 2.0, 1.0], [0.0, 0.5e-10, 1.0, *own]) <= 1e-14


def test_a_server_that_is_idle() -> None:
    """a has more than its least. b has half of t, whose other half is idle, at the price that makes b content."""
    pool = fo.Instance(
        [[2], [1], [1]], [[1]] * 3, weights=[1, 1e-10, 1], users=["a", "b", "c"], servers=["s", "t", "u"], eligibility=np.eye(3)
    )
    pool = pool.replace(rules=["x[a] >= 1"])
    assert worst(pool, [2.0, 0.5, 1.0], [0.5, 2e-10, 1.0, 0.0]) == pytest.approx(0.5)
    assert worst(pool, [2.0, 1.0, 1.0], [0.5, 1e-10, 1.0, 0.0]) <= 1e-14


def test_tasks_that_a_cap_pays_for() -> None:
    """a runs all its tasks, and these are worth much: where it runs them, other users pay."""
    pool = FORCED.replace(weights=[1.0, 1e-10, 1e-10], tasks=[1, np.inf, np.inf], rules=["x[c] >= 0.5"])
    kinds = fo.formulate(pool, "proportional").limits.kinds
    assert len(kinds) == 5
    assert worst(pool, [0.0, 1.0, 1.0, 1.0], [0.0, 1e-10, 1e-10, 1.0, 0.0]) >= 0.1
    assert worst(pool, [1.0, 0.0, 2.0, 1.0], [0.0, 0.5e-10, 1e-10, 1.0, 0.0]) <= 1e-14


def test_a_server_that_nobody_uses_at_a_price() -> None:
    """b leaves a third server alone, whose price says that it is not worth a task. The server is idle: the price is no reason."""
    pool = fo.Instance([[1], [1], [1]], [[1]] * 2, weights=[1, 1e-10], users=["a", "b"], servers=["s", "t", "u"], rules=["x[a] >= 0.5"])
    pool = pool.replace(eligibility=[[1, 0, 0], [0, 1, 1]])
    assert worst(pool, [1.0, 1.0, 0.0], [1.0, 1e-10, 1e-10, 0.0]) == pytest.approx(1.0)
    assert worst(pool, [1.0, 1.0, 1.0], [1.0, 5e-11, 5e-11, 0.0]) <= 1e-14


def test_tasks_that_the_cap_of_a_rule_pays_for() -> None:
    """The same as a limit on tasks: what the cap pays does not hide that a takes t from b."""
    pool = FORCED.replace(weights=[1.0, 1e-10, 1e-10], rules=["x[a] <= 1"])
    assert worst(pool, [0.0, 1.0, 1.0, 1.0], [0.0, 1e-10, 1e-10, 1.0]) >= 0.1
    assert worst(pool, [1.0, 0.0, 2.0, 1.0], [0.0, 0.5e-10, 1e-10, 1.0]) <= 1e-14


def test_a_rule_for_users_who_all_have_floors_has_any_price() -> None:
    """a and d have a task each, and together no more: the prices of three rules hide that a takes t from b."""
    weights, open_to = [1e-14, 1e-10, 1.0, 1e-14], [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    pool = fo.Instance([[2], [2], [1], [2]], [[1]] * 4, weights=weights, users=["a", "b", "c", "d"], servers=["s", "t", "u", "v"])
    pool = pool.replace(eligibility=open_to, rules=["x[a] >= 1", "x[d] >= 1", "x[a] + x[d] <= 2"])
    for price in (0.0, 1e-2, 1e2, 1e10):
        assert worst(pool, [0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 1e-10, 1.0, 0.0, price, price, price]) >= 0.5
    assert worst(pool, [1.0, 0.0, 2.0, 1.0, 1.0], [0.0, 0.5e-10, 1.0, 0.0, 0.0, 0.0, 1e-14]) <= 1e-14
