"""The servers' kernels, against leximins by bisection, dense products, and servers that act by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.errors import Unsupported
from fairopt.program import Equilibrium
from fairopt.solvers.equilibrium import kernel
from fairopt.solvers.equilibrium.asynchronous import AsynchronousServers, Turns
from fairopt.solvers.equilibrium.smoothing_kernel import eliminate_users
from fairopt.solvers.equilibrium.violation_kernel import largest_violation


@pytest.mark.parametrize("seed", range(6))
def test_one_server_is_filled_to_the_leximin(seed: int) -> None:
    """Rounds of bisection: raise the common level of all who can rise until a limit is full, stop its users, and go on."""
    rng = np.random.default_rng(seed)
    n, m = 6, 2
    y, g = rng.random(n) * (rng.random(n) < 0.7), rng.uniform(0.5, 2, n)
    cap = np.where(rng.random(n) < 0.4, rng.uniform(0.2, 2, n), np.inf)
    use, bounds = rng.uniform(0.2, 1, (n, m)) * (rng.random((n, m)) < 0.8), rng.uniform(0.5, 2, m)
    use[:, 0] += 0.1
    x, stop, level = np.zeros(n), np.zeros(n, np.int64), np.zeros(m)
    kernel.fill_server(y, g, cap, use, bounds, x, stop, level)

    expected, fixed = np.zeros(n), np.zeros(n, bool)
    while not fixed.all():

        def at(s: float, now: np.ndarray = expected, fixed: np.ndarray = fixed) -> np.ndarray:
            return np.where(fixed, now, np.clip(np.minimum(s * g, cap) - y, 0.0, None))

        low, high = 0.0, 1e3
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if (use.T @ at(middle) <= bounds).all() else (low, middle)
        expected = at(low)
        full = use.T @ expected >= bounds * (1 - 1e-9)
        done = (use[:, full] > 0).any(axis=1) if full.any() else np.ones(n, bool)
        fixed = fixed | done
    np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-12)
    held = use.T @ x
    assert (held <= bounds * (1 + 1e-14)).all()
    for p in range(n):  # who rises no more has all its tasks, or uses a full limit whose level is its own share or below it
        if stop[p] < 0:
            assert y[p] + x[p] == pytest.approx(max(cap[p], y[p]), rel=1e-12)
        else:
            assert held[stop[p]] == pytest.approx(bounds[stop[p]], rel=1e-12)
            assert (y[p] + x[p]) / g[p] >= level[stop[p]] * (1 - 1e-12)


def test_users_are_eliminated_as_by_dense_products() -> None:
    """B (I - 1 pull' / own) J, summed over the users."""
    rng = np.random.default_rng(1)
    user, j = np.array([0, 2, 1, 2, 0, 2]), np.array([0, 0, 1, 1, 2, 2])
    use = rng.random((3, 6)) * (rng.random((3, 6)) < 0.7)
    pull, own = rng.uniform(0.1, 1, 6), rng.uniform(4, 6, 3)
    rows = sp.csr_array(use)
    order = np.argsort(user, kind="stable")
    start = np.searchsorted(user[order], np.arange(4))
    matrix = eliminate_users(start, j, rows.indptr, rows.indices, rows.data, user, pull, own, pull[order], j[order])
    moves = np.eye(3)[j] - np.array([(pull * (user == n)) @ np.eye(3)[j] / own[n] for n in range(3)])[user]
    np.testing.assert_allclose(matrix, use @ np.diag(pull) @ moves, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_the_violation_is_that_of_the_certificate(seed: int) -> None:
    """Of answers, of points near them, of points far off, with limits on tasks, zero demands and pairs that are not eligible."""
    rng = np.random.default_rng(seed)
    demands = rng.uniform(0.1, 1, (8, 2)) * (rng.random((8, 2)) < 0.8)
    demands[:, 0] += 0.01
    tasks = np.where(rng.random(8) < 0.4, rng.uniform(0.5, 3, 8), np.inf)
    eligibility = rng.random((8, 4)) < 0.8
    eligibility[:, 0] = True
    instance = fo.Instance(rng.uniform(1, 4, (4, 2)), demands, weights=rng.uniform(1, 3, 8), eligibility=eligibility, tasks=tasks)
    program = fo.formulate(instance, "psdsf")
    assert isinstance(program.goal, Equilibrium)
    order = np.lexsort((program.pair_users, program.pair_servers))
    user, server = program.pair_users[order], program.pair_servers[order]
    answer = fo.solve(instance, "psdsf").tasks[program.pair_users, program.pair_servers]
    for factor in (1.0, rng.uniform(0.999, 1.001, answer.size), rng.uniform(0.3, 2, answer.size), -1e-3):
        x = answer * factor
        excess = program.limits.matrix @ x / program.limits.bounds - 1
        expected = max(excess.max(), -x.min(), bottleneck_violation(program, program.goal, x))
        found = largest_violation(
            np.searchsorted(server, np.arange(5)),
            user,
            (program.goal.weights[program.pair_users] / program.utilities)[order],
            program.largest()[order],
            tasks,
            demands[user],
            instance.row_capacity,
            program.per_user(x),
            x[order],
            1e-9,
        )
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


def servers_of(phases: str, seed: int = 0) -> AsynchronousServers:
    """Two servers of one unit of time, two users who run one task a second on either."""
    turns = Turns(2.0, phases, seed)  # type: ignore[arg-type]
    servers = AsynchronousServers(
        np.arange(2), np.ones((2, 2)), np.zeros((2, 1)), np.ones((2, 1)), True, turns, origin=0.0, tolerances=(0.01,)
    )
    servers.change(np.ones(2, bool), np.arange(2), np.array([1.0, 3.0]), np.full(2, np.inf), np.array([0.5, 1.5]))
    return servers


def test_a_sweep_of_two_servers_by_hand() -> None:
    """Weights 1 and 3. The first server gives 1/4 and 3/4; the second sees that, and does the same: shares are 1/2 for both."""
    servers = servers_of("sweep")
    nothing = np.zeros(0)
    assert servers.distance == 1.0
    end = servers.follow(0.0, 1.0, np.zeros(0, np.int64), nothing, nothing, nothing)
    assert end == 1.0
    assert servers.acted == 2
    np.testing.assert_allclose(servers.rows, [[0.25, 0.75], [0.25, 0.75]], rtol=1e-14)
    assert servers.distance <= 1e-14
    assert servers.violation <= 1e-14


def test_servers_act_once_a_period() -> None:
    """At phases of their own, from the origin on; when nobody was there, actions that were due are left out."""
    servers = servers_of("random", seed=5)
    nothing, none = np.zeros(0), np.zeros(0, np.int64)
    phases = servers.servers.phases
    assert ((phases >= 0) & (phases < 2)).all()
    servers.follow(0.0, float(phases.min()) + 1e-9, none, nothing, nothing, nothing)
    assert servers.acted == 1
    servers.follow(float(phases.min()) + 1e-9, 10.0, none, nothing, nothing, nothing)
    assert servers.acted == 10
    servers.skip(20.0)
    servers.follow(20.0, 22.0, none, nothing, nothing, nothing)
    assert servers.acted == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "period of the servers is 0"),
        ((1.0, "waves"), 'phases of the servers are "waves"'),
        ((1.0, "sweep", -1), "seed of the servers"),
    ],
)
def test_turns_that_cannot_be(arguments: tuple[object, ...], message: str) -> None:
    """Refused, with what to give."""
    with pytest.raises(Unsupported, match=message):
        Turns(*arguments)  # type: ignore[arg-type]
