"""Rows across servers in greedy schedules: named limits and resources of the cluster, as limits of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import instance_of_everything
from queue_oracle import random_tree
from reference.named_limits import rows_of_limits, with_limits

import fairopt as fo


def whole(seed: int) -> fo.Instance:
    """Whole capacities and demands, three licences more or less, named limits that count a task alike on all servers."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    demands = np.hstack([rng.integers(0, 4, (users, 2)) + np.array([1, 0]), rng.integers(0, 3, (users, 1))])
    pool = fo.Instance(
        rng.integers(4, 15, (servers, 2)), demands, resources=["a", "b", "licence"], shared={"licence": int(rng.integers(3, 15))}
    )
    limited = with_limits(pool, seed, round_to=1, number=4)
    return limited.replace(limits=[limit for limit in limited.limits if not any(isinstance(a, dict) for a in _amounts(limit))])


def _amounts(limit: fo.Limit) -> list[Any]:
    return [dict(a) if hasattr(a, "items") else a for a in (limit.amounts or {}).values()]


@pytest.mark.parametrize("seed", range(20))
def test_no_row_is_exceeded_and_no_task_is_left_out(seed: int) -> None:
    """What was placed is within every row, and nobody's next task fits anywhere; fractions decide the same."""
    instance = whole(seed)
    placement = ("first-fit", "best-fit", "joint")[seed % 3]
    tasks = fo.schedule(instance, "drfh", placement=placement).tasks
    np.testing.assert_array_equal(tasks, fo.schedule(instance, "drfh", placement=placement, exact=True).tasks)
    rows = [(row.use, row.bound) for row in rows_of_limits(instance)]
    rows += [
        (np.outer(demand, np.ones(instance.n_servers)), amount)
        for demand, amount in zip(instance.shared_demands.T, instance.shared_capacity, strict=True)
    ]
    for i in range(instance.n_servers):
        for r in range(instance.n_server_resources):
            use = np.zeros(tasks.shape)
            use[:, i] = instance.demands[:, r]
            rows.append((use, instance.capacities[i, r]))
    for use, bound in rows:
        assert (use * tasks).sum() <= bound + 1e-9
    for n, i in np.argwhere(instance.eligibility):
        assert any((use * tasks).sum() + use[n, i] > bound + 1e-9 for use, bound in rows)


@pytest.mark.parametrize("seed", range(8))
def test_limits_of_queues_and_named_limits_fill_alike(seed: int) -> None:
    """The same limits, said of queues and as named limits."""
    tree = random_tree(seed)
    limits = [
        fo.Limit(f"{resource} below {queue.name}", amount, resource=resource, queues=[queue.name])
        for queue in tree.queues
        for resource, amount in queue.limit.items()
        if tree.tree.below[tree.tree.index(queue.name)].any()
    ]
    bare = tree.replace(queues={queue.name: {"limit": dict.fromkeys(queue.limit)} for queue in tree.queues})
    np.testing.assert_array_equal(fo.schedule(bare.replace(limits=limits), "drfh").tasks, fo.schedule(tree, "drfh").tasks)


def test_licences() -> None:
    """20 cpu and 10 licences: L takes 1 and 1, C 1 cpu; exact 20/3 and 40/3."""
    pool = fo.Instance([[20]], [[1, 1], [1, 0]], resources=["cpu", "licence"], shared={"licence": 10})
    assert fo.schedule(pool, "drfh").tasks_per_user.tolist() == [7, 13]


def test_what_no_account_can_count_is_refused() -> None:
    """Amounts by server, one limit of each of several servers, shares that differ between servers, and nothing to compare servers by."""
    two = fo.Instance([[8], [8]], [[1], [2]], counts=[2, 1], resources=["gpu"])
    for limit, words in (
        (fo.Limit("x", 3, amounts={"user-1": {"server-1": 1}}), "counts a task alike on all servers"),
        (fo.Limit("x", 3, each="server"), "is one of each server"),
    ):
        with pytest.raises(fo.Unsupported, match=words):
            fo.schedule(two.replace(limits=[limit]), "drfh")
    with pytest.raises(fo.Unsupported, match="named limits and resources of the cluster are followed by one share"):
        fo.schedule(two.replace(limits=[fo.Limit("x", 3, users=["user-1"])]), "psdsf", placement="joint")
    free = fo.Instance([[5]], [[0, 1], [1, 0]], resources=["cpu", "licence"], shared={"licence": 3})
    assert fo.schedule(free, "drfh").tasks_per_user.tolist() == [3, 5]
    with pytest.raises(fo.Unsupported, match="demands nothing of servers"):
        fo.schedule(free, "drfh", placement="best-fit")


def test_flat_lists_with_a_limit_that_never_binds_are_filled_as_without() -> None:
    """The walk over a tree of one node chooses whom the flat list chooses."""
    for seed in range(10):
        instance = instance_of_everything(seed)
        if (instance.demands == 0).all(axis=1).any() or not instance.servable.all():
            continue
        loose = instance.replace(limits=[fo.Limit("never", 1e6)])
        np.testing.assert_array_equal(fo.schedule(loose, "drfh").tasks, fo.schedule(instance, "drfh").tasks)
