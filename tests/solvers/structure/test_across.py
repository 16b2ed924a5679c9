"""Rows across servers: which add up limits of servers, and their products, against plain matrices."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle
from fairopt.solvers.structure.settings import SETTINGS

USERS, SERVERS, RESOURCES = 7, 4, 2


def scaled(*limits: fo.Limit, density: float = 0.7) -> ScaledProgram:
    """A random instance with these limits; a server has nothing of the first resource."""
    rng = np.random.default_rng(0)
    eligibility = rng.random((USERS, SERVERS)) < density
    eligibility[:, 1] = True
    capacities = rng.uniform(1, 5, (SERVERS, RESOURCES))
    capacities[3, 0] = 0.0
    demands = rng.uniform(0.1, 1, (USERS, RESOURCES))
    demands[0, 0] = 0.0
    instance = fo.Instance(capacities, demands, eligibility=eligibility, resources=["cpu", "gpu"], users=list("abcdefg"))
    return ScaledProgram.of(fo.formulate(instance.replace(limits=list(limits)), "drfh"))


SOME = fo.Limit("some users", 1.0, resource="cpu", users=list("bcd"))
ALL = fo.Limit("gpu of two servers", 2.0, resource="gpu", servers=["server-2", "server-4"])
WHOLE = fo.Limit("cpu of all", 2.0, resource="cpu")
TASKS = fo.Limit("tasks", 3.0, servers=["server-1", "server-2"])


def test_limits_of_all_users_add_up_limits_of_servers() -> None:
    """In proportion to the capacities of a resource on the servers of the limit; limits of some users, and of tasks, do not."""
    program = scaled(SOME, ALL, WHOLE, TASKS)
    combined = np.abs(program.G).sum(axis=(1, 2)) > 0
    names = [program.program.limit_name(j) for j in program.row[program.row_place >= program.n_servers]]
    at = {name: int(np.flatnonzero(program.row_place >= program.n_servers)[k]) for k, name in enumerate(names)}
    wide = program.n_places - program.n_servers
    for name, is_combined in (("some users", False), ("gpu of two servers", True), ("cpu of all", True), ("tasks", False)):
        j = at[name]
        k = int(program.row_slot[j] * wide + program.row_place[j] - program.n_servers)
        assert combined[k] == is_combined
        if is_combined:
            row = np.einsum("ri,rp,ip->p", program.G[k], program.A, np.arange(program.n_servers)[:, None] == program.server)
            np.testing.assert_allclose(program.across[[k]].toarray()[0], row, rtol=1e-13, atol=0)


@pytest.mark.parametrize("dense", [0.0, 1.0], ids=["table", "sparse"])
@pytest.mark.parametrize("density", [1.0, 0.85, 0.4], ids=["full table", "table", "lists"])
def test_sums_and_products_are_those_of_matrices(density: float, dense: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """C x, C'p, C theta A', C theta U' and C theta C', of all kinds of rows at once, in each layout."""
    program = scaled(SOME, ALL, WHOLE, TASKS, density=density)
    pairs = lay_out(program, NUMPY)
    across, n, rng = pairs.across, pairs.n_pairs, np.random.default_rng(1)
    assert across is not None
    monkeypatch.setattr("fairopt.solvers.structure.across.SETTINGS", SETTINGS._replace(dense_across=dense))
    C = np.zeros((across.n_rows, n))
    place = pairs.lay(np.arange(1.0, program.n_pairs + 1)).astype(int) - 1
    C[:, place >= 0] = program.across.toarray()[:, place[place >= 0]]
    user, server = pairs.spread(np.arange(pairs.n_users)), pairs.at_servers(np.arange(pairs.n_servers))
    server = np.resize(server, n) if server.size < n else server
    x, theta, p = pairs.eligible(rng.uniform(0, 1, n)), pairs.eligible(rng.uniform(0, 1, n)), rng.uniform(0, 1, across.n_rows)
    np.testing.assert_allclose(across.use(x, pairs.use_of_servers(x)), C @ x, rtol=1e-12)
    none = pairs.joined(np.zeros((pairs.n_slots, pairs.n_servers)), p)
    np.testing.assert_allclose(pairs.cost(none), C.T @ p, rtol=1e-12, atol=1e-15)
    on_server = np.arange(pairs.n_servers)[:, None] == server
    of_servers, of_across = pairs.split(pairs.largest_use(x))
    np.testing.assert_allclose(of_servers, (pairs.A[:, None] * x * on_server).max(axis=2), rtol=1e-12)
    np.testing.assert_allclose(of_across, (C * x).max(axis=1), rtol=1e-12)
    H = np.einsum("rp,sp,p,ip->rsi", pairs.A, pairs.A, theta, on_server)
    with_servers = across.with_servers(theta, pairs.A, H)
    np.testing.assert_allclose(with_servers, np.einsum("kp,p,rp,ip->rki", C, theta, pairs.A, on_server), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(across.with_each_other(theta, H, with_servers), (C * theta) @ C.T, rtol=1e-12, atol=1e-15)
    of_user = np.arange(pairs.n_users)[:, None] == user
    free = across.with_users(theta, [pairs.W])[0][across.free]
    np.testing.assert_allclose(free, np.einsum("kp,p,np->kn", C[across.free], theta * pairs.W, of_user), rtol=1e-12, atol=1e-15)


def test_too_many_rows_are_an_obstacle() -> None:
    """More than a few hundred, and than limits of servers."""
    instance = fo.Instance([[4], [5]], [[1], [2]], users=["a", "b"], servers=["s", "t"], resources=["cpu"])
    limits = [fo.Limit(f"limit-{k}", 3.0 + k, resource="cpu", users=["a"]) for k in range(SETTINGS.most_across + 1)]
    assert obstacle(fo.formulate(instance.replace(limits=limits[1:]), "max-min")) == ""
    assert obstacle(fo.formulate(instance.replace(limits=limits), "max-min")) == "many limits across servers"
