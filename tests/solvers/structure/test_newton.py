"""A Newton step on a structured program, against the linear conditions that it is to solve."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import PairLists, PairTable
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram


@pytest.mark.parametrize("layout", [PairLists, PairTable])
@pytest.mark.parametrize(("users", "servers"), [(3, 5), (9, 2)])
@pytest.mark.parametrize("notion", ["drfh", "equalize", "efficiency"])
@pytest.mark.parametrize("across", [False, True])
def test_a_step_solves_the_linear_conditions(layout: type[Pairs], users: int, servers: int, notion: str, across: bool) -> None:
    """Of limits, rows of users (levels, limits on tasks, both), costs, the unit of price, and products; either side is kept."""
    rng = np.random.default_rng(0)
    eligibility = rng.random((users, servers)) < 0.8
    eligibility[:, 0] = True
    tasks = np.where(np.arange(users) % 2, 3.0, np.inf)
    instance = fo.Instance(rng.uniform(1, 5, (servers, 2)), rng.uniform(0.1, 1, (users, 2)), eligibility=eligibility, tasks=tasks)
    if across:
        some = instance.users[::2]
        limits = [
            fo.Limit(f"limit-{k}", 2.0, resource=instance.resources[k % 2], users=some[k:], servers=instance.servers[:2]) for k in (0, 1)
        ]
        instance = instance.replace(limits=[*limits, fo.Limit("all", 3.0, resource=instance.resources[0], servers=instance.servers[-2:])])
    program = fo.formulate(instance, "drfh", formulation="equalize") if notion == "equalize" else fo.formulate(instance, notion)
    scaled = ScaledProgram.of(program)
    pairs = layout(scaled, NUMPY)  # type: ignore[call-arg]
    size = pairs.n_pairs + pairs.n_slots * pairs.n_places + pairs.n_rows
    primal, dual = rng.uniform(0.5, 2, size), rng.uniform(0.5, 2, size)
    side = np.where(np.arange(pairs.n_rows) < pairs.n_levels, 1.0, -1.0)
    a = np.where(side > 0, rng.uniform(0.5, 1, pairs.n_rows), 0.0) if pairs.has_levels else None
    residuals = Residuals(
        rng.normal(size=(pairs.n_slots, pairs.n_places)),
        rng.normal(size=pairs.n_rows),
        pairs.eligible(rng.normal(size=pairs.n_pairs)),
        0.0 if a is None else 0.3,
    )
    wanted = pairs.eligible(rng.normal(size=size))
    assert (pairs.across is not None) == across
    d_primal, d_dual, dt = NewtonSystem(pairs, primal, dual, side, a).step(wanted, residuals)
    (dx, ds, dv), (dz, dp, dm) = pairs.parts(d_primal), pairs.parts(d_dual)
    np.testing.assert_allclose(pairs.use(dx) + ds, residuals.limits, atol=1e-10)
    np.testing.assert_allclose(pairs.rows(dx) - side * dv - (0.0 if a is None else a * dt), residuals.rows, atol=1e-10)
    np.testing.assert_allclose(pairs.eligible(pairs.cost(dp) - pairs.along_rows(side * dm) - dz), residuals.costs, atol=1e-10)
    np.testing.assert_allclose(pairs.eligible(dual * d_primal + primal * d_dual), wanted, atol=1e-10)
    if a is not None:
        assert a @ dm == pytest.approx(residuals.unit, abs=1e-10)


@pytest.mark.parametrize("layout", [PairLists, PairTable])
def test_two_limits_of_which_all_take_the_same_leave_a_step_that_solves_all(layout: type[Pairs]) -> None:
    """Two rows of the server fall together, up to slacks that rounding swallows: its Cholesky factor would have the root of -1e-16."""
    rng = np.random.default_rng(1)
    users, servers = 3, 40
    demands = np.repeat(rng.uniform(0.1, 1, (users, 1)), 3, axis=1) * [1.0, 1.0, 0.3]
    instance = fo.Instance(np.repeat(rng.uniform(1, 5, (servers, 1)), 3, axis=1), demands)
    pairs = layout(ScaledProgram.of(fo.formulate(instance, "proportional")), NUMPY)  # type: ignore[call-arg]
    primal = pairs.point(rng.uniform(0.5, 2, pairs.n_pairs), np.full((3, servers), 1e-20), rng.uniform(0.5, 2, users))
    dual = pairs.point(rng.uniform(0.5, 2, pairs.n_pairs), rng.uniform(0.5, 2, (3, servers)), rng.uniform(0.5, 2, users))
    side = np.ones(users)
    residuals = Residuals(np.zeros((3, servers)), rng.normal(size=users), rng.normal(size=pairs.n_pairs), 0.0)
    d_primal, d_dual, _ = NewtonSystem(pairs, primal, dual, side, None).step(np.zeros(primal.size), residuals, 4)
    (dx, ds, dv), (dz, dp, dm) = pairs.parts(d_primal), pairs.parts(d_dual)
    np.testing.assert_allclose(pairs.use(dx) + ds, 0.0, atol=1e-9)
    np.testing.assert_allclose(pairs.rows(dx) - dv, residuals.rows, atol=1e-9)
    np.testing.assert_allclose(pairs.cost(dp) - pairs.along_rows(dm) - dz, residuals.costs, atol=1e-9)
