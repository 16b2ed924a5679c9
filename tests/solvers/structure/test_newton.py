"""A Newton step on a structured program, against the linear conditions that it is to solve."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import PairLists, Pairs, PairTable
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
