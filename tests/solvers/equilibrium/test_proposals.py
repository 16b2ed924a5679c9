"""Points that are proposed to the sweeps: from near the equilibrium, each method finds it."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Equilibrium
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import kernel, proposals, violation_kernel
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.proposals import Help, drifted, smoothed, solved_equations

CASES = [(1, 8), (4, 16)]  # seeds, and a number of sweeps that is not enough


def after(seed: int, sweeps: int) -> tuple[Layout, State, float, np.ndarray]:
    """Servers after some sweeps, the last change, and x[n] of the certified equilibrium."""
    instance = fo.generate("uniform", users=5, servers=3, resources=2, seed=seed)
    program = fo.formulate(instance, "psdsf")
    assert isinstance(program.goal, Equilibrium)
    layout = Layout.of(program, program.goal)
    state, steps, change = layout.empty(), Steps(kernel), np.inf
    for _ in range(sweeps):
        change = float(steps.run("sweep", np.flatnonzero(np.diff(layout.start)), *layout.arrays(state), seconds=0.0))
    return layout, state, change, fo.solve(instance, "psdsf").tasks_per_user


@pytest.mark.parametrize(("seed", "sweeps"), CASES)
def test_the_equations_of_the_right_sets_are_the_equilibrium(seed: int, sweeps: int) -> None:
    """The sweeps are not there yet; one of the solutions is."""
    layout, state, change, expected = after(seed, sweeps)
    assert np.abs(state.total - expected).max() > 0.01
    found = [layout.program.per_user(x) for x in solved_equations(layout, state, change)]
    assert min(float(np.abs(tasks - expected).max()) for tasks in found) < 1e-10


@pytest.mark.parametrize(("seed", "sweeps"), CASES)
def test_the_smoothed_point_is_near_it(seed: int, sweeps: int) -> None:
    """An interior point knows the answer to some digits."""
    layout, state, change, expected = after(seed, sweeps)
    x = smoothed(layout, state, change)
    assert x is not None
    np.testing.assert_allclose(layout.program.per_user(layout.by_pair(x)), expected, rtol=1e-6)


def test_pairs_that_creep_towards_nothing_go_all_the_way() -> None:
    """One pair loses 0.001 in each sweep and has 0.5 left: 500 sweeps. One whose changes halve gets the rest of its series, its last change
    once more. The others stay.
    """
    layout, state, _, _ = after(1, 1)
    size = state.x.size
    now = np.full(size, 1.0)
    last, previous = np.zeros(size), np.zeros(size)
    now[0], last[0], previous[0] = 0.5, -0.001, -0.001
    last[1], previous[1] = 0.1, 0.2
    state.x[:] = now
    (x,) = drifted(layout, state, [now - last - 2 * previous, now - last - previous, now - last, now])
    np.testing.assert_allclose(x, [0.0, 1.1, *np.ones(size - 2)], atol=1e-12)


def test_nothing_is_proposed_where_nothing_empties() -> None:
    """Too few sweeps, or pairs that rise."""
    layout, state, _, _ = after(1, 1)
    assert not list(drifted(layout, state, [state.x]))
    rising = [state.x - k for k in (3.0, 2.0, 1.0)] + [state.x]
    assert not list(drifted(layout, state, rising))


def test_longer_steps_empty_more_pairs() -> None:
    """Five pairs lose 0.001 in each sweep and have 1, 2, ..., 5 times as much: steps of 1, 2 and 4 sweeps empty as many."""
    layout, state, _, _ = after(1, 1)
    drift = np.where(np.arange(state.x.size) < 5, -0.001, 0.0)
    state.x[:] = np.where(drift < 0, 0.001 * np.arange(1, state.x.size + 1), 1.0)
    steps = list(drifted(layout, state, [state.x - k * drift for k in (3, 2, 1, 0)]))
    assert [round(1000 * (state.x[4] - x[4])) for x in steps] == [1, 2, 4]
    assert [np.count_nonzero(x < 1e-12) for x in steps] == [1, 2, 4]


@pytest.mark.parametrize("sweeps", [1, 2, 3])
def test_a_user_with_all_its_tasks_moves_them_between_servers(sweeps: int) -> None:
    """It has 0.9 tasks on servers of 1 and 2, each with a user of its own: with the first of these it has one level, so that 0.1 of its
    tasks run there, and 0.8 on the second server, where nothing stops it. Each sweep halves the way that is left.
    """
    instance = fo.Instance(
        [[1.0], [2.0]], [[1.0]] * 3, [1, 1, 1], [[True, True], [True, False], [False, True]], tasks=[0.9, np.inf, np.inf]
    )
    program = fo.formulate(instance, "psdsf")
    assert isinstance(program.goal, Equilibrium)
    layout = Layout.of(program, program.goal)
    state, steps = layout.empty(), Steps(kernel)
    for _ in range(sweeps):
        steps.run("sweep", np.arange(2), *layout.arrays(state), seconds=0.0)
    expected = [0.1, 0.9, 0.8, 1.2]
    assert np.abs(state.x - expected).max() > 0.04
    x = smoothed(layout, state, 0.1)
    assert x is not None
    np.testing.assert_allclose(x, expected, rtol=1e-9)


def test_the_sweeps_do_not_go_on_from_worse_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long step to where nobody has anything is refused, one to where the sweeps are is not; of several the longest before the first that
    is refused is taken. An interior point waits longer each time.
    """
    layout, state, _, _ = after(4, 16)
    reached = layout.violation(layout.by_pair(state.x), Steps(violation_kernel))
    help_ = Help(layout, Steps(violation_kernel))
    monkeypatch.setattr(proposals, "smoothed", lambda *_: None)
    for target, kept in ((np.zeros_like(state.x), False), (state.x + 0.0, True)):
        monkeypatch.setattr(proposals, "drifted", lambda *_, target=target: [target])
        ahead = help_.ahead(state, [], 300, 1.0, reached, layout.by_pair(state.x), reached, False)
        assert (ahead is not None) == kept
    steps = [state.x, 0.999 * state.x, 0.0 * state.x, 0.998 * state.x]
    monkeypatch.setattr(proposals, "drifted", lambda *_: steps)
    longest = help_.ahead(state, [], 300, 1.0, reached, layout.by_pair(state.x), reached, False)
    assert longest is not None
    np.testing.assert_array_equal(longest, steps[1])
    waits = []
    for _ in range(4):
        sweep = help_.interior
        assert help_.ahead(state, [], sweep + 1000, 1e-3, reached, layout.by_pair(state.x), reached, False) is None
        waits.append(help_.interior - sweep - 1000)
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]


def test_no_circles_between_sweeps_and_equations() -> None:
    """A solution that halves the violation is gone on from once, and again only if it is better than the last one by as much."""
    layout, state, _, _ = after(4, 16)
    help_ = Help(layout, Steps(violation_kernel))
    near = layout.by_pair(state.x)
    jumps = [help_.ahead(state, [], 1, 1.0, 1e-3, near, nearest, False) is not None for nearest in (4e-4, 4e-4, 3e-4, 1.9e-4)]
    assert jumps == [True, False, False, True]
