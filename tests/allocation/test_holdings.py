"""What queues hold: sums over the tree, and guarantees that are met as far as the queue asks for them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from queue_oracle import random_tree

import fairopt as fo
from fairopt.allocation.holdings import QueueHoldings, tree_order
from fairopt.analysis.rerun import given
from fairopt.instance import FloatArray
from fairopt.instance.remarks import remarks
from fairopt.instance.tree import Tree
from fairopt.reporting.tables.queues import tree_of

NAN = float("nan")


def lab(guarantee: dict[str, float], demands: Any, tasks: Any = None, **changes: Any) -> fo.Instance:
    """Ten GPUs and forty cores; everybody but the last user is in the queue of the guarantee."""
    users = len(demands)
    return fo.Instance(
        [[10, 40]],
        demands,
        tasks=tasks,
        resources=["gpu", "cpu"],
        queues=[fo.Queue("lab", guarantee=guarantee), *changes.pop("queues", [])],
        queue_of=changes.pop("queue_of", ["lab"] * (users - 1) + [None]),
        **changes,
    )


def held(instance: fo.Instance, tasks: list[float], queue: str = "lab") -> QueueHoldings:
    """Return what a queue holds where the users run so many tasks on the one server."""
    found = given(instance, np.array(tasks, float)[:, None], "rdm").queue_holdings()
    return next(each for each in found if each.name == queue)


def missing(instance: fo.Instance, tasks: list[float], queue: str = "lab") -> list[float]:
    """Return what is missing of each guarantee."""
    return [round(each.missing, 6) for each in held(instance, tasks, queue).guarantees]


# How much is missing of a guarantee ----------------------------------------------------------------------------------------------


def test_a_guarantee_is_missing_as_far_as_it_is_not_held() -> None:
    """8 GPUs are guaranteed. With 5 of them 3 are missing, and with 8 or more none."""
    instance = lab({"gpu": 8}, [[1, 0], [1, 0]])
    assert [missing(instance, [x, 0]) for x in (0, 5, 8, 9)] == [[8], [3], [0], [0]]
    nine = held(instance, [9, 0]).guarantees[0]
    assert (nine.met, nine.borrowed, nine.unused) == (True, 1, 0)


def test_what_nobody_asks_for_is_not_missing() -> None:
    """The lab has 5 tasks of a GPU each: with 5 it asks for no more, with 4 one is missing."""
    instance = lab({"gpu": 8}, [[1, 0], [1, 0]], tasks=[5, np.inf])
    assert [missing(instance, [x, 0]) for x in (4, 5)] == [[1], [0]]
    five = held(instance, [5, 5]).guarantees[0]
    assert (five.met, five.borrowed, five.unused) == (True, 0, 3)


def test_several_guarantees_are_one_bundle() -> None:
    """8 GPUs and 8 cores: a task of a GPU and 4 cores fits twice into the bundle, so that 6 of the GPUs are not asked for."""
    instance = lab({"gpu": 8, "cpu": 8}, [[1, 4], [1, 0]])
    assert [missing(instance, [x, 0]) for x in (0, 1, 2)] == [[2, 8], [1, 4], [0, 0]]
    # Another user without cores can use them.
    assert missing(lab({"gpu": 8, "cpu": 8}, [[1, 4], [1, 0], [1, 0]]), [2, 3, 0]) == [3, 0]


def test_nobody_gives_up_tasks_to_fill_a_guarantee() -> None:
    """4 tasks of half a GPU and a core fill the guaranteed cores; a task of a GPU and a core would use more GPUs, in their place."""
    assert missing(lab({"gpu": 8, "cpu": 4}, [[0.5, 1], [1, 1], [1, 0]]), [4, 0, 0]) == [0, 0]


def test_a_limit_below_or_above_a_queue_ends_what_it_can_ask_for() -> None:
    """A limit of 3 GPUs, of the lab's only child or of its parent. What others keep for themselves lessens no claim: 8 - 3 are missing."""
    child = lab({"gpu": 8}, [[1, 0], [1, 0]], queues=[fo.Queue("child", "lab", limit={"gpu": 3})], queue_of=["child", None])
    assert [missing(child, [x, 0]) for x in (1, 3)] == [[2], [0]]
    top = fo.Instance(
        [[10, 40]],
        [[1, 0], [1, 0]],
        resources=["gpu", "cpu"],
        queues=[fo.Queue("top", limit={"gpu": 3}), fo.Queue("lab", "top", guarantee={"gpu": 8})],
        queue_of=["lab", None],
    )
    assert [missing(top, [x, 0]) for x in (1, 3)] == [[2], [0]]
    lends = lab({"gpu": 8}, [[1, 0], [1, 0]], queues=[fo.Queue("b", guarantee={"gpu": 9}, lending_limit={"gpu": 2})])
    assert [missing(lends, [x, 0]) for x in (1, 3)] == [[7], [5]]


def test_a_small_cluster_does_not_lessen_a_claim() -> None:
    """10 GPUs, of which 16 and 4 are guaranteed: who holds 8 and 2 misses 8 and 2, as users with such guarantees do; alone, 16 - 10."""
    both = fo.Instance(
        [[10]],
        [[1], [1]],
        resources=["gpu"],
        queues=[fo.Queue("lab", guarantee={"gpu": 16}), fo.Queue("guests", guarantee={"gpu": 4})],
        queue_of=["lab", "guests"],
    )
    solved = fo.solve(both, "drfh")
    np.testing.assert_allclose(solved.tasks_per_user, [8, 2])
    assert [round(each.guarantees[0].missing, 6) for each in solved.queue_holdings()[1:]] == [8, 2]
    assert [each.guarantees[0].missing for each in fo.solve(both, "drfh", exact=True).in_fractions.queue_holdings()[1:]] == [8, 2]
    assert missing(lab({"gpu": 16}, [[1, 0], [1, 0]]), [10, 0]) == [6]
    # Cores that the cluster lacks: 10 GPUs would need 50.
    assert missing(lab({"gpu": 10}, [[1, 5], [1, 0]]), [8, 0]) == [2]


def test_users_of_weight_zero_claim_nothing() -> None:
    """Their own weight, or that of a queue below the guaranteed one."""
    assert missing(lab({"gpu": 8}, [[1, 0], [1, 0]], weights=[0, 1]), [1, 0]) == [0]
    below = [fo.Queue("child", "lab", weight=0)]
    assert missing(lab({"gpu": 8}, [[1, 0], [1, 0]], queues=below, queue_of=["child", None]), [1, 0]) == [0]


def test_a_quota_counts_its_servers_only() -> None:
    """4 GPUs of the new server are guaranteed; tasks on the old one do not count."""
    instance = fo.Instance(
        [[10], [10]],
        [[1], [1]],
        servers=["new", "old"],
        resources=["gpu"],
        queues=[fo.Queue("lab", quotas=[fo.Quota(["new"], {"gpu": 4}, {"gpu": 6}, name="model = A100")])],
        queue_of=["lab", None],
    )
    found = [given(instance, np.array(tasks, float), "rdm").queue_holdings()[1] for tasks in ([[1, 5], [0, 0]], [[6, 0], [0, 0]])]
    assert [(each.guarantees[0].held, each.guarantees[0].missing, each.limits[0].reached) for each in found] == [
        (1, 3, False),
        (6, 0, True),
    ]
    assert (found[0].verdict, found[1].verdict) == ("3 gpu on model = A100 missing", "met")


def test_less_than_a_task_is_not_missing_of_whole_tasks() -> None:
    """8 GPUs are guaranteed, a task takes 3: two tasks use 6, and a third does not fit within the guarantee."""
    instance = lab({"gpu": 8}, [[3, 0], [1, 0]])
    assert missing(instance, [2, 0]) == [0]
    assert missing(instance, [2.5, 0]) == [0.5]  # divisible tasks


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_exact_allocations_meet_guarantees_that_fit(seed: int) -> None:
    """On one server nothing stands between a guarantee and its queue but other guarantees, and what is said of the tree."""
    instance = random_tree(seed, servers=1)
    if any("exceed" in sentence or "is guaranteed" in sentence for sentence in remarks(instance)):
        return
    for each in fo.solve(instance, "drfh").queue_holdings():
        assert each.verdict in ("met", "")


# The tree ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_queue_holds_what_its_users_and_its_children_hold(seed: int) -> None:
    """Sums over the users below each node, computed one by one."""
    instance = random_tree(seed)
    rng = np.random.default_rng(seed)
    tasks: FloatArray = rng.random((instance.n_users, instance.n_servers))
    allocation = given(instance, tasks, "rdm")
    below: dict[str, list[int]] = {queue.name: [] for queue in instance.queues}
    parents = {queue.name: queue.parent for queue in instance.queues}
    for n, name in enumerate(instance.queue_of):
        while name is not None:
            below[name].append(n)
            name = parents[name]
    for each in allocation.queue_holdings()[1:]:
        users = below[each.name]
        used = instance.demands[users].T @ tasks[users].sum(axis=1)
        assert (each.users, each.parent) == (len(users), parents[each.name])
        assert each.tasks == pytest.approx(tasks[users].sum())
        assert list(each.used.values()) == pytest.approx(used)
        capacity = instance.total_capacity
        assert each.dominant_share == pytest.approx((used[capacity > 0] / capacity[capacity > 0]).max(initial=0))
        assert each.share == pytest.approx(allocation.shares[users].sum())


def test_tree_order_puts_each_queue_before_what_is_below_it() -> None:
    """Siblings in the order in which they are given, wherever their parents are."""
    queues = [fo.Queue("b1", "b"), fo.Queue("a"), fo.Queue("b"), fo.Queue("b2", "b"), fo.Queue("b11", "b1")]
    tree = Tree.of(queues, [])
    assert [tree.name(node) for node in tree_order(tree)] == ["the cluster", "a", "b", "b1", "b11", "b2"]


def test_frames_have_a_row_for_each_queue_or_user() -> None:
    """The root first; amounts in columns of their own, nan where a queue has none."""
    instance = lab({"gpu": 8}, [[1, 1], [1, 0]], queues=[fo.Queue("child", "lab", limit={"cpu": 3})], queue_of=["child", None])
    allocation = fo.solve(instance, "drfh")
    frame = allocation.to_frame(by="queue")
    assert list(frame.index) == ["the cluster", "lab", "child"]
    assert list(frame["parent"])[1:] == ["the cluster", "lab"]
    assert list(frame["guarantee"]) == ["", "met", ""]
    assert list(frame["tasks"]) == pytest.approx([10, 3, 3])
    assert list(frame["cpu used"]) == pytest.approx([3, 3, 3])
    np.testing.assert_allclose(frame["gpu guarantee"], [NAN, 8, NAN])
    np.testing.assert_allclose(frame["gpu missing"], [NAN, 0, NAN])
    np.testing.assert_allclose(frame["cpu limit"], [NAN, NAN, 3])
    users = allocation.to_frame()
    assert list(users.columns)[:2] == ["queue", "tasks"]
    assert (users["queue"].iloc[0], list(users["queue"].isna())) == ("child", [False, True])
    assert "queue" not in fo.solve(fo.Instance([[1]], [[1]]), "drf").to_frame().columns
    with pytest.raises(fo.Unsupported, match='there are no rows by "server"; use by="user" or by="queue"'):
        allocation.to_frame(by="server")  # type: ignore[arg-type]


def test_a_cluster_without_queues_is_one_row() -> None:
    """The whole cluster."""
    frame = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf").to_frame(by="queue")
    assert list(frame.index) == ["the cluster"]
    assert frame["tasks"].iloc[0] == pytest.approx(5)


def test_plain_data_has_queues() -> None:
    """Without the root; each user has its queue; ready for JSON."""
    told = json.loads(json.dumps(fo.solve(lab({"gpu": 8}, [[1, 0], [1, 0]], tasks=[5, np.inf]), "drfh").to_dict(), allow_nan=False))
    assert [user["queue"] for user in told["users"]] == ["lab", None]
    (queue,) = told["queues"]
    assert (queue["name"], queue["parent"], queue["tasks"]) == ("lab", None, pytest.approx(5))
    assert queue["guarantees"] == [
        {"resource": "gpu", "on": None, "amount": 8, "held": pytest.approx(5), "met": True, "missing": 0, "borrowed": 0}
    ]
    assert {level["part"] for level in told["levels"]} == {"the guarantees", "the surplus"}
    assert "queues" not in fo.solve(fo.Instance([[1]], [[1]]), "drf").to_dict()


def test_a_listed_queue_says_so() -> None:
    """In plain data, in frames and in the table, which has no such column where all queues are fair."""
    instance = fo.Instance(
        [[8]], [[1]] * 4, tasks=[6] * 4, queues=[fo.Queue("A", order="listed"), fo.Queue("B")], queue_of=["A", "A", "B", "B"]
    )
    allocation = fo.solve(instance, "drfh")
    assert [queue["order"] for queue in allocation.to_dict()["queues"]] == ["listed", "fair"]
    assert allocation.to_frame(by="queue")["order"].to_dict() == {"the cluster": "fair", "A": "listed", "B": "fair"}
    assert [column.title for column in tree_of(allocation).table.columns].count("order") == 1
    fair = fo.solve(instance.replace(queues={"A": {"order": "fair"}}), "drfh")
    assert "order" not in {column.title for column in tree_of(fair).table.columns}
