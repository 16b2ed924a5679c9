"""The limit of sweeps whose sets have settled: where ten thousand sweeps go, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from instances import few_servers_each, uniform_instance

import fairopt as fo
from fairopt.program import Equilibrium
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import kernel
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.settled import limit_of_sweeps


def laid_out(instance: fo.Instance) -> tuple[Layout, State]:
    """The servers of an instance, before the first sweep."""
    program = fo.formulate(instance, "psdsf")
    assert isinstance(program.goal, Equilibrium)
    layout = Layout.of(program, program.goal)
    return layout, layout.empty()


def sweep(layout: Layout, state: State, times: int = 1) -> None:
    """Let each server act so many times."""
    steps = Steps(kernel)
    for _ in range(times):
        steps.run("sweep", np.flatnonzero(np.diff(layout.start)), *layout.arrays(state))


def drawn(seed: int) -> fo.Instance:
    """Users with few servers each, some of whom have few tasks."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(3, 9)), int(rng.integers(2, 5))
    tasks = np.where(rng.random(users) < 0.3, rng.uniform(1, 9, users), np.inf)
    return uniform_instance(users, servers, seed=seed, eligibility=few_servers_each(rng, users, servers), tasks=tasks)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_where_the_sweeps_go(seed: int) -> None:
    """Most equilibria of these are not unique: another point of the same sets would be one, too. So every number counts."""
    layout, state = laid_out(drawn(seed))
    sweep(layout, state)
    found = None
    for _ in range(1_000):
        before = state.sets()
        sweep(layout, state)
        if state.sets() == before and (found := limit_of_sweeps(layout, state)) is not None:
            break
    assert found is not None
    sweep(layout, state, 2_000)
    np.testing.assert_allclose(found, layout.by_pair(state.x), rtol=1e-8, atol=1e-10)


def test_after_one_sweep_by_hand() -> None:
    """Two servers with one unit each; the second user runs on the first server only.

    At first server 1 halves its unit, and server 2 gives its own to the first user, who then has as much elsewhere as the second user can
    get: the next answer of server 1 is (0, 1), and all stay there.
    """
    layout, state = laid_out(fo.Instance([[1.0], [1.0]], [[1.0], [1.0]], eligibility=[[1, 1], [1, 0]]))
    sweep(layout, state)
    assert state.total.tolist() == [1.5, 0.5]
    found = limit_of_sweeps(layout, state)
    assert found is not None
    assert layout.program.per_user(found).tolist() == [1.0, 1.0]


def test_sets_that_the_sweeps_will_leave_have_no_limit() -> None:
    """Three users in a cycle of three servers: each sweep moves a thousandth of a task, until a pair is empty after hundreds of sweeps."""
    rates = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.001, 0.0, 1.0]]
    program = fo.formulate(fo.Instance([[1.0], [1.0], [1.0]], [[1.0], [1.0], [1.0]], rates=rates), "psdsf")
    assert isinstance(program.goal, Equilibrium)
    layout = Layout.of(program, program.goal)
    state = layout.empty()
    sweep(layout, state, 5)
    before = state.sets()
    sweep(layout, state, 20)
    assert state.sets() == before
    assert limit_of_sweeps(layout, state) is None
    sweep(layout, state, 5_000)
    assert state.sets() != before


def test_a_state_of_nothing_has_none() -> None:
    """Before the first sweep nobody has anything, and no limit is full."""
    layout, state = laid_out(drawn(0))
    assert limit_of_sweeps(layout, state) is None
