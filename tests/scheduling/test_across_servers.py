"""Rows across servers in greedy schedules: named limits and resources of the cluster, as limits of queues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues, instance_of_everything
from queue_oracle import random_tree
from reference.kept import all_rows
from reference.limited import limited_cluster, schedule_within
from reference.named_limits import rows_of_limits, with_limits

import fairopt as fo


def whole(seed: int) -> fo.Instance:
    """Whole capacities and demands, three licences more or less, named limits of all selections."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    demands = np.hstack([rng.integers(0, 4, (users, 2)) + np.array([1, 0]), rng.integers(0, 3, (users, 1))])
    pool = fo.Instance(
        rng.integers(4, 15, (servers, 2)), demands, resources=["a", "b", "licence"], shared={"licence": int(rng.integers(3, 15))}
    )
    return with_limits(pool, seed, round_to=1, number=4)


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


@pytest.mark.parametrize("seed", range(24))
def test_task_by_task_as_on_paper(seed: int) -> None:
    """Amounts by server and limits of each of several servers included: the same user and server each time, in floats and in fractions."""
    instance = limited_cluster(seed)
    drawn: list[tuple[str, dict[str, Any]]] = [("first-fit", {}), ("best-fit", {}), ("worst-fit", {}), ("best-fit", {"metric": "l2"})]
    placement, options = drawn[seed % 4]
    expected = schedule_within(instance, placement, **options)
    for exact in (False, True):
        found = fo.schedule(instance, "drfh", placement=placement, record=True, exact=exact, **options)
        assert list(zip(found.trace.users.tolist(), found.trace.servers.tolist(), strict=True)) == expected


def test_a_limit_of_each_server_is_of_each_of_several() -> None:
    """Four servers, two of user 1's tasks on each; three of anybody's on the larger ones; by amounts on them, 4 of 2 each."""
    pool = fo.Instance([[8], [9]], [[1], [1]], counts=[2, 2], resources=["gpu"], tasks=[99, 0])
    each = fo.Limit("two", 2, users=["user-1"], each="server")
    for placement in ("first-fit", "best-fit", "random", "random-round-robin"):
        assert fo.schedule(pool.replace(limits=[each]), "drfh", placement=placement).tasks.tolist() == [[4, 4], [0, 0]]
    by_server = fo.Limit("amounts", 4, amounts={"user-1": {"server-1": 1, "server-2": 2}}, each="server")
    assert fo.schedule(pool.replace(limits=[by_server]), "drfh").tasks.tolist() == [[8, 4], [0, 0]]
    together = fo.Limit("amounts", 4, amounts={"user-1": {"server-1": 1, "server-2": 2}})
    assert fo.schedule(pool.replace(limits=[together]), "drfh").tasks.tolist() == [[4, 0], [0, 0]]
    assert fo.schedule(pool.replace(limits=[together]), "drfh", exact=True).tasks.tolist() == [[4, 0], [0, 0]]


def test_paths_of_a_network() -> None:
    """Whole flows over paths within their links: amounts by server. The greedy first path, then the other."""
    net = fo.Instance.from_paths({"ab": 3, "bc": 2, "ac": 1}, {"x": [["ab", "bc"], ["ac"]], "y": [["ab"]]})
    found = fo.schedule(net, "max-min")
    assert found.tasks_per_user.sum() == fo.solve(net, "efficiency", integral=True).tasks_per_user.sum() == 4


def test_what_is_refused() -> None:
    """Shares that differ between servers, and nothing to compare servers by."""
    two = fo.Instance([[8], [8]], [[1], [2]], counts=[2, 1], resources=["gpu"])
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


def without_limits(instance: fo.Instance) -> fo.Instance:
    """Return the instance without limits of queues, and with all of its guarantees to lend."""

    def bare(queue: Any) -> Any:
        quotas = {"quotas": [bare(each) for each in queue.quotas]} if isinstance(queue, fo.Queue) else {}
        return replace(queue, limit={}, lending_limit={}, **quotas)

    return instance.replace(queues=[bare(queue) for queue in instance.queues], limits=[])


@pytest.mark.parametrize("placement", ["first-fit", "random-server"])
def test_guarantees_that_count_work_row_by_row_are_filled_as_those_that_count_tasks(placement: str) -> None:
    """A speed where its user may not run changes nothing, but that guarantees count work, server by server; also in fractions."""
    compared = 0
    for seed in range(40):
        instance = without_limits(decimal_tree(instance_in_queues(seed)))
        barred = np.argwhere(~instance.eligibility)
        if not barred.size or not any(each.guarantee for queue in instance.queues for each in queue.everywhere_and_on_groups):
            continue
        speeds = np.ones(instance.eligibility.shape)
        speeds[tuple(barred[0])] = 2
        other, criterion = instance.replace(speeds=speeds), ("cdrf", "max-min")[seed % 2]
        for exact in (False, True):
            options: dict[str, Any] = {"placement": placement, "queue_share": "sum", "seed": seed, "record": True, "exact": exact}
            plain, by_server = (fo.schedule(each, criterion, **options) for each in (instance, other))
            assert plain.trace.users.tolist() == by_server.trace.users.tolist(), seed
            assert plain.trace.servers.tolist() == by_server.trace.servers.tolist(), seed
            compared += 1
    assert compared > 20


def test_a_guarantee_counts_the_least_that_work_takes() -> None:
    """One task takes 1 A100, or 2 V100 for half of the work: of 4 GPUs, 2 tasks on A100s fill 2, and 4 on V100s the other 2."""
    cluster = fo.Instance(
        [[2], [10]],
        [[[1], [2]], [[1], [1]]],
        users=["ann", "bob"],
        servers=["a100", "v100"],
        resources=["gpu"],
        speeds=[[1.0, 0.5], [1.0, 1.0]],
        queues=[fo.Queue("chemistry", guarantee={"gpu": 4}), fo.Queue("others")],
        queue_of=["chemistry", "others"],
    )
    for exact in (False, True):
        found = fo.schedule(cluster, "cdrf", placement="first-fit", record=True, exact=exact)
        assert found.trace.users.tolist() == [0] * 6 + [1] * 2
        assert found.tasks.astype(float).tolist() == [[2, 4], [0, 2]]
    lending = cluster.replace(queues=[fo.Queue("chemistry", guarantee={"gpu": 4}, lending_limit={"gpu": 0}), fo.Queue("others")])
    idle = lending.replace(tasks=[1, np.inf])
    for exact in (False, True):  # chemistry keeps 4 of 12 GPUs, of which its only task takes 1: others may have 8
        assert fo.schedule(idle, "cdrf", exact=exact).tasks_per_user.astype(float).tolist() == [1, 8]


@pytest.mark.parametrize("seed", range(60))
def test_what_queues_keep_where_tasks_take_other_amounts_elsewhere(seed: int) -> None:
    """No row of the family is exceeded, by brute force, and nobody's next task fits anywhere; fractions decide the same."""
    rng = np.random.default_rng(seed)
    plain = instance_in_queues(seed)
    elsewhere = rng.integers(0, 4, (plain.n_users, plain.n_servers, plain.n_resources))
    elsewhere[..., 0] += elsewhere.sum(axis=2) == 0
    speeds = rng.choice([0.5, 1.0, 2.0], (plain.n_users, plain.n_servers)) if seed % 2 else None

    def keeps(queue: Any) -> Any:
        own = {"quotas": [keeps(each) for each in queue.quotas], "weight": 1.0} if isinstance(queue, fo.Queue) else {}
        return replace(queue, limit={}, lending_limit={name: amount // 3 for name, amount in queue.guarantee.items()}, **own)

    keeping = [keeps(queue) for queue in plain.queues]
    bare = {"weights": None, "guarantees": None, "queues": keeping, "counts": None, "eligibility": None}
    pool = plain.replace(demands=elsewhere, speeds=speeds, **bare)
    options: dict[str, Any] = {"placement": ("first-fit", "best-fit", "fastest")[seed % 3], "record": True}
    found, exact = (fo.schedule(pool, "cdrf", exact=exact, **options) for exact in (False, True))
    assert found.trace.users.tolist() == exact.trace.users.tolist()
    assert found.trace.servers.tolist() == exact.trace.servers.tolist()
    taken = np.moveaxis(pool.demands_by_kind[:, pool.kind_of], 2, 0)  # (resources, users, servers)
    rows = [
        (taken[r] * (np.arange(pool.n_servers) == i), pool.capacities[i, r]) for r in range(pool.n_resources) for i in range(pool.n_servers)
    ]
    for row in all_rows(pool, float):
        counts = np.isin(np.arange(pool.n_users), row.users)[:, None] & np.isin(np.arange(pool.n_servers), row.servers)
        rows.append((taken[row.resource] * counts, row.bound))
    for use, bound in rows:
        assert (use * found.tasks).sum() <= bound + 1e-9
    for n, i in np.argwhere(pool.eligibility & (found.tasks_per_user < pool.tasks)[:, None]):
        assert any((use * found.tasks).sum() + use[n, i] > bound + 1e-9 for use, bound in rows if use[n, i] > 0)
