"""Schedules with queues: against fractions on paper, what must hold of every schedule, and against the exact shares of one resource."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues, with_lenders
from queue_oracle import random_pool, random_tree
from reference import tree as reference

import fairopt as fo
from fairopt.instance import FloatArray, IntArray
from fairopt.program.kept_parts import counted_rows
from fairopt.scheduling import filling_of, queues_of
from fairopt.solvers import fill
from fairopt.solvers.filling.placements import FirstFit
from fairopt.solving import notion_of

SEEDS = range(24)  # of each criterion with each way of breaking ties, and each kind of share
TIES: list[Any] = ["index", "largest-demand", "random"]
CRITERIA = ("drfh", "tsf", "asset", "max-min")
PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "random", "random-round-robin", "random-server", "slots")


@pytest.mark.parametrize("lenders", [False, True])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_task_by_task_as_in_fractions(placement: str, lenders: bool) -> None:
    """The same user and the same server each time, on random trees with guarantees, limits, tiers and weights of 0."""
    for seed in SEEDS:
        whole = instance_in_queues(seed)
        instance = decimal_tree(with_lenders(whole, seed) if lenders else whole)
        criterion, ties = CRITERIA[seed % 4], TIES[seed % 3]
        share = "sum" if criterion == "max-min" or seed % 8 > 5 else "dominant"
        expected = reference.schedule(instance, criterion, placement, share, ties=ties, seed=seed)
        options = {"slots": 3} if placement == "slots" else {}
        actual = fo.schedule(
            instance,
            criterion,
            placement=placement,
            ties=ties,
            seed=seed,
            record=True,
            queue_share=share,
            **options,  # type: ignore[arg-type]
        )
        assert list(zip(actual.trace.users.tolist(), actual.trace.servers.tolist(), strict=True)) == expected, seed


def test_a_function_goes_the_same_way() -> None:
    """A placement in Python that takes the first server, on the same trees."""

    def first(user: int, free: FloatArray, demand: FloatArray, fits: IntArray) -> int:
        return int(fits[0])

    for seed in SEEDS:
        instance = decimal_tree(instance_in_queues(seed))
        own, built_in = (fo.schedule(instance, "drfh", placement=placement, record=True).trace for placement in (first, "first-fit"))
        assert own.users.tolist() == built_in.users.tolist()
        assert own.servers.tolist() == built_in.servers.tolist()


@pytest.mark.parametrize("placement", ["first-fit", "random-server"])
def test_a_schedule_goes_on_from_what_runs(placement: str) -> None:
    """From the middle of a schedule on, the rest of it comes again: queues count what is held."""
    for seed in SEEDS:
        instance = decimal_tree(instance_in_queues(seed))
        trace = fo.schedule(instance, "drfh", record=True).trace
        first = trace.users.size // 2
        held = np.zeros((instance.n_users, int(instance.counts.sum())), np.int64)
        np.add.at(held, (trace.users[:first], trace.servers[:first]), 1)
        chosen = notion_of("drfh")
        filling, _ = filling_of(instance, chosen, "rdm", "index", queues=queues_of(instance, instance, chosen))
        rest = fill(dataclasses.replace(filling, held=held), FirstFit(), random_ties=False, seed=0, first_block=False)
        assert rest.users.tolist() == trace.users[first:].tolist()
        assert rest.servers.tolist() == trace.servers[first:].tolist()


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "random-round-robin"])
def test_limits_are_kept_and_nothing_is_left_over(placement: str) -> None:
    """No limit is exceeded, and whose weights are positive gets one task more only if that exceeds a limit or a capacity."""
    for seed in range(60):
        instance = random_tree(seed)
        found = fo.schedule(instance, "drfh", placement=placement, record=True)
        assert found.certificate.feasibility <= 1e-9
        row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))
        free = instance.capacities[row].copy()
        np.subtract.at(free, found.trace.servers, instance.demands[found.trace.users])
        open_to = instance.weights > 0
        for n in range(instance.n_users):
            node = int(instance.tree.user_node[n])
            while node > 0:
                open_to[n] &= instance.tree.weights[node] > 0
                node = int(instance.tree.parent[node])
        for user in np.flatnonzero(open_to & (found.tasks_per_user + 1 <= instance.tasks)):
            for i in np.flatnonzero(instance.eligibility[user, row] & (free >= instance.demands[user] * (1 + 1e-6)).all(axis=1)):
                more = found.tasks.copy()
                more[user, row[i]] += 1
                assert any(
                    more[rows.users][:, rows.servers].sum(axis=1) @ instance.demands[rows.users, rows.resource] > rows.bound
                    for rows in counted_rows(instance, more)
                )


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_one_resource_of_one_server_is_divided_as_by_the_exact_filling(seed: int) -> None:
    """With small tasks of one size: guarantees, limits, tiers and weights, in the sense of a clamp; one task of rounding per sibling."""
    pool = random_pool(seed)
    size = 0.05
    many = np.floor(pool.tasks * pool.demands[:, 0] / size)
    pool = pool.replace(
        demands=np.full_like(pool.demands, size),
        tasks=many,
        guarantees=np.minimum(many, np.floor(pool.guarantees * pool.demands[:, 0] / size)),
    )
    greedy, exact = fo.schedule(pool, "drfh"), fo.solve(pool, "drfh", guarantees="clamp")
    apart = greedy.tasks_per_user - exact.tasks_per_user
    tree = pool.tree
    most = np.zeros(tree.n_nodes)  # tasks of rounding below each node: one for each child of the nodes above
    for node in tree.downwards():
        most[node] += tree.children(node).size + tree.users_of(node).size + (most[tree.parent[node]] if node else 0)
    assert (np.abs(apart) <= most[tree.user_node]).all()
    assert (np.abs(tree.below @ apart)[1:] <= most[tree.parent[1:]]).all()


def test_guarantees_come_first() -> None:
    """Two servers of 4 GPUs; a late queue of weight 0 with a guarantee on the second, which the others would fill."""
    shared = fo.Instance(
        [[4.0], [4.0]],
        [[1.0], [1.0]],
        servers=["x", "y"],
        resources=["gpu"],
        queues=[fo.Queue("all", weight=5), fo.Queue("late", weight=0, quotas=[fo.Quota(["y"], guarantee={"gpu": 3})])],
        queue_of=["all", "late"],
    )
    assert fo.schedule(shared, "drfh").tasks.tolist() == [[4, 1], [0, 3]]


def test_meanings_of_a_guarantee() -> None:
    """8 units, weights 1 and 3, guarantees 2 and 2: 2 and 6, as YARN divides them."""
    pool = fo.Instance(
        [[8.0]],
        [[1.0], [1.0]],
        resources=["gpu"],
        queues=[fo.Queue("a", guarantee={"gpu": 2}), fo.Queue("b", weight=3, guarantee={"gpu": 2})],
        queue_of=["a", "b"],
    )
    assert fo.schedule(pool, "drfh").tasks_per_user.tolist() == [2, 6]


def test_weights_are_not_multiplied() -> None:
    """{A {a1 wants 10, a2}, B} of 100: 10, 40, 50."""
    queues = [fo.Queue("A"), fo.Queue("B")]
    tree = fo.Instance([[100.0]], np.ones((3, 1)), tasks=[10, np.inf, np.inf], queues=queues, queue_of=["A", "A", "B"])
    assert fo.schedule(tree, "drfh").tasks_per_user.tolist() == [10, 40, 50]


@pytest.mark.parametrize(
    ("criterion", "options", "word"),
    [("psdsf", {}, "queue"), ("rpsdsf", {}, "queue"), ("drfh", {"stop": "first-block"}, "queue")],
)
def test_what_cannot_follow_a_tree_says_so(criterion: str, options: dict[str, Any], word: str) -> None:
    """In a sentence about queues."""
    instance = fo.Instance([[4.0]], [[1.0]], queues=[fo.Queue("a", limit={"resource-1": 2})], queue_of=["a"])
    with pytest.raises(fo.Unsupported, match=word):
        fo.schedule(instance, criterion, **options)
