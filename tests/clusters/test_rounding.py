"""Whole tasks near an allocation, and where they run."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from strategies import instances

import fairopt as fo
from fairopt.analysis.measures import violations
from fairopt.analysis.rerun import given
from fairopt.clusters import packing
from fairopt.clusters.rounding import whole_tasks


@settings(max_examples=30)
@examples(instances(max_users=4, max_servers=3))
def test_never_above_a_limit_or_a_server(instance: fo.Instance) -> None:
    """Whole numbers, within tasks and capacities, and at most one more than the divisible number of each user."""
    allocation = fo.solve(instance, "drfh")
    whole = whole_tasks(allocation)
    assert (whole.tasks == np.round(whole.tasks)).all()
    assert (whole.tasks_per_user <= np.where(np.isfinite(instance.tasks), instance.tasks, np.inf)).all()
    assert (whole.tasks_per_user < allocation.tasks_per_user + 1).all()
    back = whole.as_allocation()
    assert violations(instance, back.tasks, "rdm", 1e-9) == []
    assert back.tasks_per_user.tolist() == whole.tasks_per_user.tolist()


def test_one_bound_on_tasks_is_the_method_of_hamilton() -> None:
    """10 tasks for weights 43, 33 and 24: 4.3, 3.3 and 2.4; the tenth goes to the largest remainder, 0.4."""
    pool = fo.Instance([[10]], [[1], [1], [1]], weights=[43, 33, 24])
    assert whole_tasks(fo.solve(pool, "drfh")).tasks_per_user.tolist() == [4, 3, 3]


def test_limits_of_queues_stop_rounding_up() -> None:
    """7 of 10 for each of two users, were it not for the limit of 4.5 of the first; its remainder is not rounded up beyond it."""
    pool = fo.Instance(
        [[10]], [[1], [1]], users=["a", "b"], resources=["gpu"], queues=[fo.Queue("q", limit={"gpu": 4.5})], queue_of=["q", None]
    )
    allocation = fo.solve(pool, "drfh")
    assert allocation.tasks_per_user == pytest.approx([4.5, 5.5])
    assert whole_tasks(allocation).tasks_per_user.tolist() == [4, 6]


def test_single_servers_count() -> None:
    """Two servers of 3 GPUs and tasks of 2 GPUs: 3 divisible tasks, 2 whole ones. What is left out is said."""
    pool = fo.Instance([[3]], [[2]], counts=[2], users=["a"])
    whole = whole_tasks(fo.solve(pool, "drfh"))
    assert whole.tasks_per_user.tolist() == [2]
    assert any("do not fit between the others on single servers are left out: a 1" in note for note in whole.notes)


def fewest(instance: fo.Instance, tasks: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    """Return the fewest pairs of any placement of these tasks, by trying all."""
    ways = []
    for n in range(instance.n_users):
        splits = itertools.product(range(int(tasks[n]) + 1), repeat=instance.n_servers)
        ways.append([split for split in splits if sum(split) == tasks[n] and all(instance.eligibility[n] | (np.array(split) == 0))])
    best = np.inf
    for placement in itertools.product(*ways):
        x = np.array(placement, float)
        if (x.T @ instance.demands <= instance.row_capacity + 1e-9).all():
            best = min(best, float((x > 0).sum()))
    return int(best)


@pytest.mark.parametrize("seed", range(6))
def test_no_placement_has_fewer_pairs(seed: int) -> None:
    """Every placement of small numbers of tasks on two or three servers is tried."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(
        rng.integers(3, 9, (2 + seed % 2, 2)), rng.integers(1, 4, (3, 2)), eligibility=rng.random((3, 2 + seed % 2)) < 0.8
    )
    whole = whole_tasks(fo.solve(instance, "drfh"))
    assert int((whole.tasks > 0).sum()) == fewest(instance, whole.tasks_per_user)
    assert not any("one with fewer may exist" in note for note in whole.notes)


def test_no_task_is_lost_that_one_program_over_all_single_servers_places() -> None:
    """5.2, 5.2 and 1.04 tasks on two groups: as the totals of the groups go, one of the 5 is left over; 5, 6 and 1 fit."""
    instance = fo.Instance([[5, 7], [3, 6]], [[1.5, 1.5], [0.5, 0.5], [2.5, 0.5]], weights=[3, 1, 1], counts=[2, 1])
    whole = whole_tasks(fo.solve(instance, "drfh"))
    assert whole.tasks_per_user.tolist() == [5, 6, 1]
    for group, packed in zip(whole.groups, whole.packed, strict=True):
        assert sum(kind.count for kind in packed.kinds) == group.count
        for kind in packed.kinds:
            held = sum((number * instance.demands[user] for user, number in kind.tasks.items()), np.zeros(2))
            assert (held <= group.capacity).all()
    assert any("one with fewer may exist" in note for note in whole.notes)


def test_the_placement_does_not_depend_on_where_an_engine_placed_the_tasks() -> None:
    """Two users on two equal servers: split evenly or one each, the export is the same, and no user is split."""
    pool = fo.Instance([[4, 4], [4, 4]], [[1, 1], [1, 1]], servers=["a", "b"], eligibility=[[True, True], [True, True]])
    split = whole_tasks(given(pool, np.array([[2.0, 2.0], [2.0, 2.0]]), "rdm"), {"a": "left", "b": "right"})
    apart = whole_tasks(given(pool, np.array([[0.0, 4.0], [4.0, 0.0]]), "rdm"), {"a": "left", "b": "right"})
    assert split.tasks.tolist() == apart.tasks.tolist()
    assert sorted(split.tasks.tolist()) == [[0, 4], [4, 0]]


def test_of_placements_with_as_few_pairs_the_one_on_the_fewest_servers_is_taken() -> None:
    """A task takes half a small server or a quarter of a large one."""
    pool = fo.Instance([[2], [4]], [[1]], counts=[4, 2], tasks=[4], servers=["small", "large"])
    whole = whole_tasks(fo.solve(pool, "drfh"))
    assert dict(zip([group.name for group in whole.groups], whole.tasks[0].tolist(), strict=True)) == {"small": 0, "large": 4}


def test_identical_rows_are_one_group_unless_they_are_told_apart() -> None:
    """By the caller, by who may run there, and by quotas of queues."""
    servers = ["a1", "a2", "b1", "b2"]
    pool = fo.Instance([[4]] * 4, [[1], [1]], servers=servers, eligibility=[[1, 1, 1, 1], [1, 1, 0, 0]])
    allocation = fo.solve(pool, "drfh")
    assert [group.name for group in whole_tasks(allocation).groups] == ["a1 +1", "b1 +1"]
    assert [group.name for group in whole_tasks(allocation, {"a2": "other"}).groups] == ["a1", "other", "b1 +1"]
    back = whole_tasks(allocation).as_allocation()
    assert (back.tasks.T @ pool.demands <= 4).all()


@pytest.mark.parametrize("servers", [["n1"], ["n2"], "zone = b"])
def test_rows_that_a_limit_tells_apart_are_two_groups(servers: Any) -> None:
    """a may have 4 GPUs of one of two equal servers: 8 tasks of each user, a where there is no limit."""
    pool = fo.Instance(
        [[8], [8]],
        [[1], [1]],
        users=["a", "b"],
        servers=["n1", "n2"],
        resources=["gpu"],
        attributes=[{"zone": "a"}, {"zone": "b"}],
        limits=[fo.Limit("l", 4, resource="gpu", users=["a"], servers=servers)],
    )
    free = 1 if servers == ["n1"] else 0
    assert whole_tasks(fo.solve(pool, "drfh")).tasks.tolist() == [[0, 8][:: 1 if free else -1], [8, 0][:: 1 if free else -1]]
    alike = pool.replace(limits=[fo.Limit("l", 4, resource="gpu", users=["a"], servers=["n1", "n2"])])
    assert whole_tasks(fo.solve(alike, "drfh")).tasks.tolist() == [[4], [12]]


def test_large_programs_are_filled_server_by_server() -> None:
    """2,500 pairs: a linear program and then packing; at most one task of a hundred is lost, and no server is over its capacity."""
    rng = np.random.default_rng(0)
    instance = fo.Instance(rng.uniform(4, 8, (10, 2)), rng.uniform(0.05, 0.4, (250, 2)), counts=np.full(10, 20))
    allocation = fo.solve(instance, "drfh")
    whole = whole_tasks(allocation)
    assert whole.tasks.sum() >= 0.99 * allocation.tasks.sum()
    assert violations(instance, whole.as_allocation().tasks, "rdm", 1e-9) == []
    assert any("one with fewer may exist" in note for note in whole.notes)


def test_what_cannot_be_exported_is_refused() -> None:
    """Time division; an allocation that is not for this instance; names of rows that are not there."""
    pool = fo.Instance([[4]], [[1]], users=["a"], servers=["s"])
    with pytest.raises(fo.Unsupported, match="take turns"):
        whole_tasks(fo.solve(pool, "drfh", sharing="tdm"))
    with pytest.raises(fo.InvalidInstance, match="does not fit this instance"):
        whole_tasks(given(pool, np.array([[5.0]]), "rdm"))
    with pytest.raises(fo.InvalidInstance, match=r'no server row "t"'):
        whole_tasks(fo.solve(pool, "drfh"), {"t": "x"})


def test_a_user_without_a_whole_task_is_named() -> None:
    """Two users share one server that has room for one task of either: half a task each."""
    whole = whole_tasks(fo.solve(fo.Instance([[1]], [[1], [1]], users=["a", "b"]), "drfh"))
    assert sorted(whole.tasks_per_user.tolist()) == [0, 1]
    assert any("gets no whole task" in note for note in whole.notes)


def hard() -> fo.Allocation:
    """12 groups on 30 servers, no two alike: the fewest pairs of user and server cannot be proved in an hour."""
    rng = np.random.default_rng(1)
    servers = np.column_stack([rng.choice([32, 64, 96, 128], 30), rng.choice([128, 256, 512, 1024], 30), rng.choice([0, 0, 4, 8], 30)])
    demands = np.column_stack([rng.integers(1, 13, 12), rng.integers(4, 65, 12), rng.choice([0, 0, 1, 2], 12)])
    return fo.solve(fo.Instance(servers, demands, weights=rng.choice([1, 1, 2, 3], 12)), "drfh")


def test_a_search_without_a_proof_says_what_it_gained() -> None:
    """From the number of pairs at first; the whole tasks fit, however early the search ends."""
    allocation = hard()
    whole = whole_tasks(allocation, time_limit=0.05)
    assert violations(allocation.instance, whole.as_allocation().tasks, "rdm", 1e-9) == []
    assert whole.tasks.sum() >= 0.9 * allocation.tasks.sum()
    (note,) = [note for note in whole.notes if note.startswith("the search for fewer pairs of user and row ended after ")]
    assert "(placement_time_limit= searches longer)" in note
    if found := re.search(r"(\d+) pairs of user and row at first, (\d+) now", note):
        assert int(found[2]) == (whole.tasks > 0).sum() < int(found[1])
    if found := re.search("at least ([0-9]+) are needed", note):
        assert 0 < int(found[1]) < (whole.tasks > 0).sum()
    with pytest.raises(fo.Unsupported, match="placement_time_limit is 0; give a number of seconds > 0"):
        whole_tasks(allocation, time_limit=0)


def test_without_a_time_limit_no_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answer and the same words where each look at the clock is an hour later: on a machine that is very slow."""
    allocation = hard()
    first = whole_tasks(allocation)
    (note,) = [note for note in first.notes if note.startswith("the search for fewer pairs of user and row ended ")]
    assert re.search(r"ended after its usual number of steps: .*; at least \d+ are needed", note)
    hours = itertools.count(0.0, 3600.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    again = whole_tasks(allocation)
    assert again.tasks.tolist() == first.tasks.tolist()
    assert again.on_rows().tolist() == first.on_rows().tolist()
    assert again.notes == first.notes


def test_searches_share_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """5, 6 and 1 tasks, which only a program over all single servers packs: where the steps are spent it does not start."""
    instance = fo.Instance([[5, 7], [3, 6]], [[1.5, 1.5], [0.5, 0.5], [2.5, 0.5]], weights=[3, 1, 1], counts=[2, 1])
    allocation = fo.solve(instance, "drfh")
    assert whole_tasks(allocation).tasks_per_user.tolist() == [5, 6, 1]
    monkeypatch.setattr(packing, "_MOST_STEPS", 0)
    assert whole_tasks(allocation).tasks_per_user.sum() < 12
    assert whole_tasks(allocation, time_limit=60).tasks_per_user.tolist() == [5, 6, 1]  # seconds are another budget


def test_users_stay_on_their_rows_where_one_program_packs_single_servers() -> None:
    """Two rows of two servers: 10 and 7 tasks that only one packing holds, and a third user elsewhere, who is not moved."""
    servers, demands = [[64, 256, 0], [8, 8, 4]], [[8, 16, 0], [4, 48, 0], [1, 1, 1]]
    eligible = [[True, False], [True, False], [True, True]]
    pool = fo.Instance(servers, demands, counts=[2, 2], tasks=[10, 7, 8], eligibility=eligible)
    whole = whole_tasks(given(pool, np.array([[10.0, 0], [7.0, 0], [0, 8.0]]), "rdm"))
    assert whole.tasks.tolist() == [[10, 0], [7, 0], [0, 8]]
