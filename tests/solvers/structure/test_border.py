"""The border of rows across servers: eliminating servers, or users, from the system of its docstring leaves its Schur complement."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.structure.across import Across
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.border import Border
from fairopt.solvers.structure.combinations import combinations
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram


def program() -> ScaledProgram:
    """Three users on two servers, with a limit for one user and one for all."""
    limits = [
        fo.Limit("cpu of a", 2.0, resource="cpu", users=["a"]),
        fo.Limit("cpu of all", 5.0, resource="cpu"),
    ]
    instance = fo.Instance([[4, 3], [5, 6]], [[1, 2], [2, 1], [1, 1]], users=list("abc"), resources=["cpu", "gpu"], limits=limits)
    return ScaledProgram.of(fo.formulate(instance, "drfh"))


def test_the_limit_of_all_adds_up_limits_of_servers() -> None:
    """C = G A: 5 cpu in all are 4/5 of the first server's 4 and 5/5 of the second one's 5; the limit of one user is no such sum."""
    scaled = program()
    G = combinations(scaled.columns, scaled.A, scaled.row, scaled.row_slot, scaled.row_place, scaled.across)
    np.testing.assert_allclose(sorted(G.sum(axis=(1, 2)).tolist())[-1], 4 / 5 + 5 / 5)
    assert [bool(row.any()) for row in G].count(True) == 1
    assert Across.of(scaled, scaled.n_pairs, None).free.size == 1


@pytest.mark.parametrize("seed", range(5))
def test_schur_complements(seed: int) -> None:
    """Beside elimination in one dense system, in units where the diagonals of H and F are 1."""
    scaled, rng = program(), np.random.default_rng(seed)
    pairs = lay_out(scaled, NUMPY)
    across = pairs.across
    assert across is not None
    theta, s_p = pairs.eligible(rng.uniform(0.5, 2, pairs.n_pairs)), rng.uniform(0.1, 1, across.n_rows)
    server = np.resize(pairs.at_servers(np.arange(pairs.n_servers)), pairs.n_pairs)
    H = np.einsum("rp,sp,p,ip->rsi", pairs.A, pairs.A, theta, np.arange(pairs.n_servers)[:, None] == server)
    with_servers = across.with_servers(theta, pairs.A, H)
    n_limits, n_users = 4, 3
    J, L, E = (rng.uniform(0, 0.3, shape) for shape in ((across.n_rows, n_limits), (across.n_rows, n_users), (n_users, n_limits)))
    border = Border.of(across, theta, s_p, with_servers, H, J, L)
    K = across.with_each_other(theta, H, with_servers) + np.diag(s_p)
    np.testing.assert_allclose(np.diag(border.K), 1)
    np.testing.assert_allclose(border.K * border.units * border.units[:, None], K)
    J, L = J / border.units[:, None], L / border.units[:, None]
    of_users, of_servers = np.block([[np.eye(n_users), -L.T], [-L, border.K]]), np.block([[np.eye(n_limits), J.T], [J, border.K]])
    right = np.vstack([-E, J])  # rows of users and rows across, beside limits of servers
    np.testing.assert_allclose(border.around_users(np.eye(n_users) - E @ E.T, E), of_users - right @ right.T, atol=1e-13)
    right = np.vstack([-E.T, -L])
    np.testing.assert_allclose(border.around_servers(np.eye(n_limits) - E.T @ E, E), of_servers - right @ right.T, atol=1e-13)
