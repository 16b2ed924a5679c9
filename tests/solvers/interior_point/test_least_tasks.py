"""Least tasks of users on the path of an alpha-fair goal: floors of their demands, against another solver and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from instances import spread_instance

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)


def with_least(instance: fo.Instance, alpha: float) -> fo.Instance:
    """Return the instance with rules that ask for more than a third of the users would have without them."""
    has = np.minimum(1.1 * fo.solve(instance, "proportional", alpha=alpha).tasks_per_user, instance.tasks)
    return instance.replace(rules=[f"x['{user}'] >= {least}" for user, least in zip(instance.users[::3], has[::3], strict=True)])


def path(program: Program) -> fo.program.Solution:
    """Return the end of the interior point's path, without a polish."""
    engine = candidates(program, "interior-point")[0]
    return engine.solve(program, tolerance=1e-8, deadline=NEVER)


KINDS = ["plain", "weights", "limits on tasks", "some servers at once", "many limits"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 8.0])
def test_against_another_solver(kind: str, alpha: float) -> None:
    """The path ends where the primal-dual steps end from the answer of Clarabel."""
    instance = spread_instance(24, 6, 40 if kind == "many limits" else 3, 1, part=0.6)
    rng = np.random.default_rng(2)
    if kind == "weights":
        instance = instance.replace(weights=10 ** rng.uniform(-1, 1, 24))
    elif kind == "limits on tasks":
        even = fo.solve(instance, "drfh").tasks_per_user
        instance = instance.replace(tasks=np.where(rng.random(24) < 0.5, np.inf, even * rng.uniform(1, 1.3, 24)))
    elif kind == "some servers at once":
        instance = instance.replace(parallelism=rng.uniform(1, 3, 24))
    program = fo.formulate(with_least(instance, alpha), "proportional", alpha=alpha)
    assert [engine.name for engine in candidates(program, None)][:1] == ["interior-point"]
    found = path(program)
    assert certify(program, found).worst <= 1e-9
    other = fo.solve(program, solver="cvxpy")
    np.testing.assert_allclose(program.per_user(found.x), other.tasks_per_user, rtol=1e-6)
    assert found.prices is not None
    floors = program.limits.bounds < 0
    assert (found.prices[floors] > 0).sum() >= 4


def test_a_floor_by_hand() -> None:
    """a has 6 by rule; b and c share the rest; the price of the rule is what a pays beyond the worth of its tasks."""
    pool = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s"], rules=["x[a] >= 6"])
    found = path(fo.formulate(pool, "proportional", alpha=2))
    assert found.prices is not None
    np.testing.assert_allclose(found.x, [6, 3, 3], rtol=1e-9)
    np.testing.assert_allclose(found.prices, [1 / 9, 1 / 9 - 1 / 36], rtol=1e-7)


def test_who_pays_more_than_a_task_is_worth() -> None:
    """A user who has its least tasks pays the least cost; one with more of them than that pays its marginal worth, and misses its floor."""
    pool = fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 6"])
    worths = Worths(lay_out(ScaledProgram.of(fo.formulate(pool, "proportional")), NUMPY), 1.0, np.ones(2))
    v, dear, cheap = np.array([0.5, 0.5]), np.array([[3.0]]), np.array([[1.0]])
    paid, missing, stopped = worths.paid(v, dear)
    assert stopped is None
    np.testing.assert_allclose(paid, [3, 2])
    np.testing.assert_allclose(missing, [0, 0])
    np.testing.assert_allclose(worths.paid(v, cheap)[0], [2, 2])
    for has in (0.4, 0.6):
        assert worths.paid(np.array([has, 0.5]), dear)[1][0] == pytest.approx(0.2)
    assert worths.paid(np.array([0.4, 0.5]), cheap)[1][0] == pytest.approx(0.2)
    assert worths.paid(np.array([0.6, 0.5]), cheap)[1][0] <= 0


def test_a_floor_is_no_limit_on_tasks() -> None:
    """Demand is rigid at a floor and at a cap. The limit on tasks stops only a user who is nearer its cap."""
    pool = fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"], tasks=[9, np.inf], rules=["x[a] >= 1"])
    worths = Worths(lay_out(ScaledProgram.of(fo.formulate(pool, "proportional")), NUMPY), 1.0, np.ones(2))
    floor, cap = float(np.exp(worths.log_floor[0])), float(np.exp(worths.log_cap[0]))
    assert cap == pytest.approx(9 * floor)
    rigid, flexible = np.array([0.1, 0.1]), np.array([0.9, 0.9])
    assert np.asarray(worths.stopped(np.array([floor, 0.5]), rigid)).tolist() == [False, False]
    assert np.asarray(worths.stopped(np.array([cap, 0.5]), rigid)).tolist() == [True, False]
    assert np.asarray(worths.stopped(np.array([cap, 0.5]), flexible)).tolist() == [False, False]


def test_guarantees_of_many_users() -> None:
    """A third of the users have guarantees: the interior point answers, and nobody has less than it was guaranteed."""
    instance = spread_instance(60, 20, 3, 4, part=0.4)
    even = fo.solve(instance, "drfh").tasks_per_user
    given = np.where(np.arange(60) % 3 == 0, even * 1.2, 0.0)
    allocation = fo.solve(instance.replace(guarantees=given), "proportional", alpha=3)
    assert allocation.solver == "interior-point"
    assert (allocation.tasks_per_user >= given * (1 - 1e-9)).all()
    assert allocation.certificate.worst <= 1e-9
