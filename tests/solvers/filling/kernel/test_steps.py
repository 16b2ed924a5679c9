"""The steps of filling, one file after the other: each beside a plain loop, a sorted list or numbers worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fairopt.program.events import Change
from fairopt.program.filling import Kind, Measure, Rule
from fairopt.solvers.filling.kernel import accounts, codes, events, filling, over_time, queues, queues_over_time, servers, users


def test_codes_are_the_numbers_of_the_enums() -> None:
    """By name."""
    members = {member.name: int(member) for enum in (Kind, Measure, Rule, Change) for member in enum}
    assert {name: getattr(codes, name) for name in codes.__all__} == members


def cluster(seed: int) -> SimpleNamespace:
    """Return five servers in two rows, partly used, and three users."""
    rng = np.random.default_rng(seed)
    used = rng.uniform(0, 1, (5, 2))
    row, capacity = np.array([0, 0, 0, 1, 1]), np.array([[1.0, 1.0], [1.2, 0.8]])
    return SimpleNamespace(
        row=row,
        start=np.array([0, 3, 5]),
        capacity=capacity,
        used=used,
        demand=rng.uniform(0.05, 0.6, (3, 1, 2)),
        eligible=rng.random((3, 2)) < 0.7,
        first=np.zeros(3, int),
        fits=np.zeros(5, int),
        free=np.ascontiguousarray((capacity[row] - used).T),
        segment=np.array([0, 3, 5]),
        begun=np.array([3, 5]),
        scores=np.zeros(2),
        ratio=np.zeros(2),
    )


@pytest.mark.parametrize("seed", range(10))
def test_servers(seed: int) -> None:
    """The first server, all servers, and the fullest one on which a task fits."""
    state = cluster(seed)
    for n in range(3):
        room = state.capacity[state.row] - state.used
        there = [i for i in range(5) if state.eligible[n, state.row[i]] and (state.demand[n, 0] <= room[i]).all()]
        assert servers.first_fit(state, n) == (there[0] if there else -1)
        assert list(state.fits[: servers.fitting(state, n)]) == there
        tightest = servers.search(state, int(Rule.TIGHTEST), n)
        assert tightest == (min(there, key=lambda i: room[i].sum()) if there else -1)


def test_the_next_score_is_a_step_lower() -> None:
    """Scores that differ by less than 1e-9 are mostly equal, those that differ by more never."""
    assert servers.next_score(0.5) <= 0.5 < servers.next_score(0.5) + 1e-9
    assert servers.next_score(0.5) > 0.5 - 1e-9


def test_the_lowest_user_is_first() -> None:
    """Of five users, one after the other, from a tree of eight leaves."""
    shares = np.array([0.3, 0.1, 0.2, 0.5, 0.1])
    order = np.array([4, 0, 1, 2, 3])
    tree = np.full(16, np.inf)
    tree[8:13] = shares[order]
    for node in range(7, 0, -1):
        tree[node] = min(tree[2 * node : 2 * node + 2])
    leaf = np.argsort(order)
    state = SimpleNamespace(
        tree=tree, order=order, leaf=leaf, tied=np.zeros(5, int), random_ties=False, first_block=True, wanted=np.ones(5)
    )
    found = []
    while (n := users.next_user(state, None)) >= 0:
        found.append(n)
        users.retire(state, n)
    assert found == [4, 1, 2, 0, 3]


def test_open_servers_are_shuffled_without_those_that_are_full() -> None:
    """All of them; or one at random, in the last place."""
    rng = np.random.default_rng(0)
    for rule in (Rule.FIRST, Rule.RANDOM):
        last = set()
        for _ in range(40):
            state = SimpleNamespace(open=np.array([3, -1, 5, 0, -1, 4]), rule=int(rule))
            assert filling.shuffle_open(state, 6, rng) == 4
            assert sorted(state.open[:4]) == [0, 3, 4, 5]
            last.add(int(state.open[3]))
        assert last == {0, 3, 4, 5}


def test_tasks_end_in_order() -> None:
    """Of time, at one time by number."""
    rng = np.random.default_rng(1)
    times = rng.integers(0, 5, 30).astype(float)
    run = SimpleNamespace(progress=np.zeros(6, int), ends=np.zeros(30), ending=np.zeros(30, int))
    for task, time in enumerate(times):
        events._push(run, time, task)
    assert [events.pop(run) for _ in range(30)] == sorted(range(30), key=lambda task: (times[task], task))


def test_streams_come_by_rank_then_by_submission() -> None:
    """Of equal shares."""
    run = SimpleNamespace(rank=np.array([1, 0, 1]), head=np.array([0, 1, 2]), jobs=np.array([7, 9, 3]))
    assert sorted(range(3), key=lambda n: sum(over_time.is_before(run, other, n) for other in range(3) if other != n)) == [1, 2, 0]


def test_a_limit_bars_those_whose_task_is_too_large() -> None:
    """And lets them in again, at once."""
    adds = np.array([0.5, 0.2, 0.3])
    tree = SimpleNamespace(
        members=np.array([0, 2, 1]),  # the largest first
        members_from=np.array([0, 3]),
        barred_to=np.zeros(1, int),
        adds=adds,
        user_of=np.arange(3),
        on_row=np.full(3, -1),
        amount=np.ones(1),
        held=np.zeros(1),
        everywhere=np.ones(1, bool),
        barred=np.zeros(3, int),
        marks=np.zeros(2, int),
    )
    for held in (0.4, 0.6, 0.75, 0.9, 0.55, 0.0):
        tree.held[0] = held
        accounts.bar(SimpleNamespace(), tree, 0)
        assert list(tree.barred > 0) == [held + each > 1 for each in adds]


def test_a_limit_that_counts_by_row_bars_rows() -> None:
    """The only user takes 0.5 of it on the first row, and 0.2 on the other; the user is tried again where it is let in."""
    tree = SimpleNamespace(
        members=np.array([0, 1]),
        members_from=np.array([0, 2]),
        barred_to=np.zeros(1, int),
        adds=np.array([0.5, 0.2]),
        user_of=np.zeros(2, int),
        on_row=np.arange(2),
        amount=np.ones(1),
        held=np.zeros(1),
        everywhere=np.ones(1, bool),
        barred=np.zeros(1, int),
        barred_on=np.zeros((1, 2), int),
        eligible=np.ones((1, 2), bool),
        again=np.zeros(1, bool),
        marks=np.zeros(2, int),
    )
    state = SimpleNamespace(eligible=np.ones((1, 2), bool))
    for held, again in ((0.4, False), (0.6, False), (0.9, False), (0.7, True), (0.9, False), (0.0, True)):
        tree.held[0], tree.again[0] = held, False
        accounts.bar(state, tree, 0)
        assert state.eligible.tolist() == [[held <= 0.5, held <= 0.8]]
        assert tree.again[0] == again
        assert not tree.barred.any()


def test_a_walk_goes_to_the_smallest_share_by_weight() -> None:
    """Two queues of two users each: shares 0.4 and 0.5, weights 1 and 2, so the second; in it the user with 0.1."""
    tree = SimpleNamespace(
        children_from=np.array([0, 2, 4, 6]),
        children=np.array([1, 2, 3, 4, 5, 6]),
        need=np.zeros(7, int),
        top=np.zeros(7, int),
        measure=np.zeros(7),
        weight=np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]),
        share=np.array([0.9, 0.4, 0.5, 0.2, 0.2, 0.4, 0.1]),
        tied=np.zeros(7, int),
        listed=np.zeros(3, bool),
        has_last=False,
        marks=np.zeros(2, int),
    )
    assert queues.walk(tree, None, False) == 6
    tree.need[6] = -1  # nothing of that user fits
    assert queues.walk(tree, None, False) == 5
    tree.need[2] = -1
    assert queues.walk(tree, None, False) == 3


def test_the_first_stream_of_an_owner_has_the_need_that_was_found() -> None:
    """Stream 0 would be first, but adds to no guarantee; stream 3 has another owner."""
    run = SimpleNamespace(
        pool=np.array([3, 1, 2, 0]), progress=np.array([0, 0, 0, 0, 4, 0]), rank=np.zeros(4, int), head=np.arange(4), jobs=np.arange(4)
    )
    tree = SimpleNamespace(leaf=np.array([5, 5, 5, 6]), value=np.array([0, 1, 1, 1]), marks=np.array([0, 1]))
    assert queues_over_time._first_of_leaf(run, tree, 5) == 1
