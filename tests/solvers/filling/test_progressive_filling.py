"""Progressive filling, without an instance around it: every step replayed in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray, IntArray
from fairopt.program.filling import Criterion, Filling, Measure
from fairopt.solvers.filling import kernel
from fairopt.solvers.filling.placements import BestFit, FirstFit, Joint
from fairopt.solvers.filling.progressive_filling import Filled, fill, state_of
from fairopt.solvers.filling.state import BLOCKED_BY, ROUND_AT, ROUND_LENGTH

TENTHS = 10


def drawn(seed: int, measure: Measure = Measure.OWN) -> Filling:
    """Servers and tasks in tenths, which are no binary numbers; few tasks, and two rows of several servers."""
    rng = np.random.default_rng(seed)
    n, rows, m = 4, 3, 2
    per_task = rng.integers(1, 9, n if measure is Measure.OWN else (n, rows)) / TENTHS
    return Filling(
        capacities=rng.integers(4, 12, (rows, m)) / TENTHS,
        counts=np.array([2, 1, 3]),
        demands=rng.integers(1, 5, (n, 1, m)) / TENTHS,
        eligibility=rng.random((n, rows)) < 0.8,
        tasks=rng.integers(0, 9, n),
        criterion=Criterion(per_task, measure),
        order=rng.permutation(n),
    )


def exact(values: FloatArray) -> list[Fraction]:
    """Tenths as fractions."""
    return [Fraction(round(float(value) * TENTHS), TENTHS) for value in values]


def fits(filling: Filling, used: list[list[Fraction]], row: IntArray, n: int) -> list[int]:
    """Single servers on which a task of n fits."""
    demand = exact(filling.demands[n, 0])
    return [
        i
        for i, r in enumerate(row)
        if filling.eligibility[n, r] and all(u + d <= c for u, d, c in zip(used[i], demand, exact(filling.capacities[r]), strict=True))
    ]


def replay(filling: Filling, filled: Filled) -> None:
    """Check that each task went to a user with the smallest share, to the first server that it fits on, and that none fits at the end."""
    row = np.repeat(np.arange(filling.counts.size), filling.counts)
    used = [[Fraction(0)] * filling.capacities.shape[1] for _ in row]
    held = np.zeros((len(filling.tasks), len(row)), int)
    worth = filling.criterion.per_task

    def share(n: int, i: int) -> Fraction:
        if filling.criterion.measure is Measure.OWN:
            return exact(worth[[n]])[0] * int(held[n].sum())
        return exact(worth[n, [row[i]]])[0] * int(held[n].sum())

    def may(n: int) -> list[int]:
        return fits(filling, used, row, n) if held[n].sum() < filling.tasks[n] else []

    for n, i in zip(filled.users, filled.servers, strict=True):
        everybody = {user: may(user) for user in range(len(filling.tasks))}
        assert i in everybody[n]
        if filling.criterion.measure is Measure.OWN:
            lowest = min(share(user, 0) for user, servers in everybody.items() if servers)
            tied = [user for user in filling.order if everybody[user] and share(user, 0) == lowest]
            assert (n, i) == (tied[0], everybody[n][0])
        else:
            assert share(n, i) == min(share(user, j) for user, servers in everybody.items() for j in servers)
        held[n, i] += 1
        used[i] = [u + d for u, d in zip(used[i], exact(filling.demands[n, 0]), strict=True)]
    assert not any(may(n) for n in range(len(filling.tasks)))
    assert (filled.tasks == np.stack([held[:, row == r].sum(axis=1) for r in range(filling.counts.size)], axis=1)).all()


@pytest.mark.parametrize("seed", range(25))
def test_every_step_is_the_lowest_user_and_the_first_server(seed: int) -> None:
    """The same share in the eyes of every server."""
    filling = drawn(seed)
    replay(filling, fill(filling, FirstFit(), random_ties=False, seed=0, first_block=False))


@pytest.mark.parametrize("seed", range(25))
def test_every_step_is_the_lowest_pair(seed: int) -> None:
    """Shares in the eyes of each server, user and server together."""
    filling = drawn(seed, Measure.SERVER)
    replay(filling, fill(filling, Joint(), random_ties=False, seed=0, first_block=False))


def test_it_stops_at_the_first_block() -> None:
    """User 2, the lowest then, needs 4 where 3 are left; user 1 could go on."""
    filling = Filling(
        capacities=np.array([[9.0]]),
        counts=np.array([1]),
        demands=np.array([[[1.0]], [[4.0]]]),
        eligibility=np.ones((2, 1), bool),
        tasks=np.array([9, 9]),
        criterion=Criterion(np.array([2.0, 5.0])),
        order=np.arange(2),
    )
    stopped = fill(filling, FirstFit(), random_ties=False, seed=0, first_block=True)
    assert (stopped.users.tolist(), stopped.blocked_by) == ([0, 1, 0, 0], 1)  # shares 0 0, 2 0, 2 5, 4 5, 6 5
    onward = fill(filling, FirstFit(), random_ties=False, seed=0, first_block=False)
    assert (onward.tasks[:, 0].tolist(), onward.blocked_by) == ([5, 1], None)


def test_what_runs_already_counts() -> None:
    """User 1 has 2 of 5 units: the others' turns come first, until they have as many."""
    filling = Filling(
        capacities=np.array([[5.0]]),
        counts=np.array([1]),
        demands=np.ones((3, 1, 1)),
        eligibility=np.ones((3, 1), bool),
        tasks=np.full(3, 9),
        criterion=Criterion(np.ones(3)),
        order=np.arange(3),
        held=np.array([[2], [0], [0]]),
    )
    filled = fill(filling, FirstFit(), random_ties=False, seed=0, first_block=False)
    assert filled.users.tolist() == [1, 2, 1]
    assert filled.tasks[:, 0].tolist() == [2, 2, 1]


def test_a_placement_of_ones_own_sees_the_units_of_the_instance() -> None:
    """What is free, the demand, and where it fits; what it returns is checked."""
    filling = drawn(3)
    seen: list[tuple[int, float, list[int]]] = []

    def last(user: int, free: FloatArray, demand: FloatArray, fits: IntArray) -> int:
        assert (free[fits] >= demand * (1 - 1e-9)).all()
        seen.append((user, float(demand[0]), fits.tolist()))
        return int(fits[-1])

    filled = fill(filling, last, random_ties=False, seed=0, first_block=False)
    assert [user for user, _, _ in seen] == filled.users.tolist()
    assert [fits[-1] for _, _, fits in seen] == filled.servers.tolist()
    assert all(demand == filling.demands[user, 0, 0] for user, demand, _ in seen)
    with pytest.raises(fo.InvalidInstance, match="is no server that its task fits on"):
        fill(filling, lambda *_: 99, random_ties=False, seed=0, first_block=False)


def test_the_state_is_that_of_what_was_placed() -> None:
    """In parts of an average server: usage, what is free, and the numbers of tasks, however it came about."""
    filling = drawn(5)
    state = state_of(filling, BestFit(), random_ties=False, first_block=False)
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(3), filling.counts)
    while (n := int(kernel.next_user(state, rng))) >= 0 and kernel.fitting(state, n) > 0:
        kernel.place(state, n, int(state.fits[0]))
        np.testing.assert_allclose(state.free.T, state.capacity[row] - state.used, atol=1e-12)
    np.testing.assert_allclose(state.used.sum(axis=0), state.tasks.sum(axis=1) @ state.demand[:, 0], rtol=1e-12)
    np.testing.assert_allclose(filling.counts @ state.capacity, filling.counts.sum(), rtol=1e-12)
    assert (state.total == state.tasks.sum(axis=1)).all()
    assert (state.total <= filling.tasks).all()
    assert sorted((ROUND_AT, ROUND_LENGTH, BLOCKED_BY)) == list(range(state.progress.size))
