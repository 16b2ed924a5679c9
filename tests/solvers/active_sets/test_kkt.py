"""Large systems of a Newton step: what solves them, in whatever order rows are eliminated."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.solvers.active_sets import kkt


@pytest.mark.parametrize("full_rows", [0, 1, 5])
def test_rows_that_many_meet_come_last(full_rows: int) -> None:
    """A symmetric quasi-definite system with a few full rows anywhere is solved, and its factors stay nearly as sparse as it is."""
    rng = np.random.default_rng(full_rows)
    n = 3000
    few, full = (rng.integers(0, n, (2, 2 * n)), rng.choice(n, full_rows, replace=False))
    rows = np.concatenate([few[0], np.repeat(full, n)])
    columns = np.concatenate([few[1], np.tile(np.arange(n), full_rows)])
    one_side = sp.coo_array((rng.uniform(0.1, 1.0, rows.size), (rows, columns)), shape=(n, n)).tocsr()
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    system = sp.csc_array(one_side + one_side.T + sp.diags_array(sign * rng.uniform(50.0, 60.0, n)))
    x = rng.normal(size=n)
    np.testing.assert_allclose(kkt._factorised_sparse(system)(system @ x), x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("users", "limits", "each"), [(60, 80, 6), (200, 64, 4), (40, 48, 48)])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_one_server_with_many_limits(users: int, limits: int, each: int, alpha: float) -> None:
    """Flows over the links of one server, as CVXPY's solver finds them."""
    rng = np.random.default_rng(users)
    demands = np.zeros((users, limits))
    for n in range(users):
        demands[n, rng.choice(limits, each, replace=False)] = rng.choice([1.0, 2.0])
    instance = fo.Instance([rng.integers(10, 100, limits)], demands, tasks=rng.integers(1, 20, users))
    own = fo.solve(instance, "proportional", alpha=alpha, solver="interior-point")
    other = fo.solve(instance, "proportional", alpha=alpha, solver="cvxpy")
    np.testing.assert_allclose(own.tasks_per_user, other.tasks_per_user, rtol=1e-6)


def test_jobs_that_run_in_one_place_at_a_time() -> None:
    """Many users with rates and a parallelism of 1 on four servers: each server is a limit of all users."""
    rng = np.random.default_rng(5)
    users = 1500
    counts = np.floor(rng.uniform(0.1, 0.3, 4) * users)
    instance = fo.Instance(
        [[1]] * 4, np.ones((users, 1)), counts=counts, rates=rng.uniform(0.2, 1.0, (users, 4)), parallelism=np.ones(users)
    )
    own, other = (fo.solve(instance, "proportional", solver=solver).tasks_per_user for solver in ("interior-point", "cvxpy"))
    np.testing.assert_allclose(own, other, rtol=1e-6)
