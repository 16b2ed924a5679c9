"""Schedules with queues: against fractions on paper, what must hold of every schedule, and against the exact shares of one resource."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues, with_lenders
from queue_oracle import random_pool, random_tree, with_orders
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
    for seed in SEEDS[:12] if lenders else SEEDS:  # 12: each criterion with each way
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


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "random-server"])
def test_listed_queues_task_by_task_as_in_fractions(placement: str) -> None:
    """Guarantees come before the order of a queue, and the order before shares, weights and ties; also in exact arithmetic."""
    listed = 0
    for seed in range(8):
        instance = with_orders(decimal_tree(instance_in_queues(seed)), seed)
        listed += int(instance.tree.listed.sum())
        share: Any = "sum" if seed % 2 else "dominant"
        ties = TIES[seed % 3]
        expected = reference.schedule(instance, "drfh", placement, share, ties=ties, seed=seed)
        actual = fo.schedule(instance, "drfh", placement=placement, ties=ties, seed=seed, record=True, queue_share=share)
        assert list(zip(actual.trace.users.tolist(), actual.trace.servers.tolist(), strict=True)) == expected, seed
        exact = fo.schedule(instance, "drfh", placement=placement, ties=ties, seed=seed, queue_share=share, exact=True)
        assert exact.tasks_per_user.tolist() == actual.tasks_per_user.tolist(), seed
    assert listed > 6


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


# Guarantees that do not fit together: use / guarantee ----------------------------------------------------------------------------


def divided(
    capacity: float, *queues: fo.Queue, queue_of: list[str], tasks: list[float] | None = None, guarantees: list[float] | None = None
) -> list[float]:
    """Return the tasks of users in queues of one server, in floats and in fractions; a task takes one GPU."""
    demands = np.ones((len(queue_of), 1))
    pool = fo.Instance([[capacity]], demands, resources=["gpu"], tasks=tasks, guarantees=guarantees, queues=queues, queue_of=queue_of)
    found: list[list[float]] = [fo.schedule(pool, "drfh", exact=exact).tasks_per_user.tolist() for exact in (False, True)]
    assert found[0] == found[1]
    return found[0]


def promised(name: str, gpu: float, **more: Any) -> fo.Queue:
    """Return a queue that is guaranteed GPUs."""
    return fo.Queue(name, guarantee={"gpu": gpu}, **more)


@pytest.mark.parametrize(
    ("capacity", "a", "b", "expected"),
    [(15, 20, 10, [10, 5]), (500, 900, 100, [450, 50]), (100, 900, 100, [90, 10]), (6, 4, 8, [2, 4])],
)
def test_guarantees_that_do_not_fit_are_met_to_the_same_part(capacity: float, a: float, b: float, expected: list[float]) -> None:
    """As pools of Spark, queues of Hadoop's FairSharePolicy and quotas of HTCondor; neither weights nor tiers count."""
    queue_of = ["A", "B"]
    assert divided(capacity, promised("A", a), promised("B", b), queue_of=queue_of) == expected
    assert divided(capacity, promised("A", a, weight=0), promised("B", b, weight=9), queue_of=queue_of) == expected
    assert divided(capacity, promised("A", a, tier=1), promised("B", b, tier=2), queue_of=queue_of) == expected
    assert divided(capacity, fo.Queue("A"), fo.Queue("B"), queue_of=["A", "A"], guarantees=[a, b]) == expected


def test_who_runs_out_of_tasks_leaves_its_guarantee_to_the_others() -> None:
    """A is guaranteed 90 of 50 GPUs and has 10 tasks: it runs them, and B has 40 of its 50."""
    assert divided(50, promised("A", 90), promised("B", 50), queue_of=["A", "B"], tasks=[10, 99]) == [10, 40]


@pytest.mark.parametrize("own", [0.5, 1, 2, 4])
def test_a_queue_gets_no_more_by_promising_more_inside(own: float) -> None:
    """A and B are guaranteed 4 of 4 GPUs, and a user of A its own part: 2, 2. Two users of A with 4 each: 1, 1, 2; of 8 GPUs 2, 2, 4."""
    both = promised("A", 4), promised("B", 4)
    assert divided(4, *both, queue_of=["A", "B"], guarantees=[own, 0]) == [2, 2]
    assert divided(4, *both, queue_of=["A", "A", "B"], guarantees=[4, 4, 0]) == [1, 1, 2]
    assert divided(8, *both, queue_of=["A", "A", "B"], guarantees=[4, 4, 0]) == [2, 2, 4]


def test_a_queue_that_has_met_its_guarantee_comes_after_those_below_theirs() -> None:
    """A has its 2, then B its 6; only of 12 GPUs does the user of A get what A promises it. Both queues met: their users' parts count."""
    assert divided(8, promised("A", 2), promised("B", 6), queue_of=["A", "B"], guarantees=[6, 0]) == [2, 6]
    assert divided(12, promised("A", 2), promised("B", 6), queue_of=["A", "B"], guarantees=[6, 0]) == [6, 6]
    assert divided(12, promised("A", 2), promised("B", 2), queue_of=["A", "B"], guarantees=[6, 12]) == [4, 8]


def test_the_largest_part_of_several_guaranteed_resources_counts() -> None:
    """Of 8 GPUs and 80 CPUs a task of A takes 1 and 10, one of B 10 CPUs. A is guaranteed half of both, B all CPUs: 3 and 5 tasks.

    The guarantees would be met by 4 and 8 tasks, so j tasks of B should run for j / 2 of A, and 8 tasks fit: A first, 3 and 5.
    """
    queues = [fo.Queue("A", guarantee={"gpu": 4, "cpu": 40}), fo.Queue("B", guarantee={"cpu": 80})]
    pool = fo.Instance([[8, 80]], [[1, 10], [0, 10]], resources=["gpu", "cpu"], queues=queues, queue_of=["A", "B"])
    assert fo.schedule(pool, "drfh").tasks_per_user.tolist() == [3, 5]


def test_a_guarantee_of_what_nobody_demands_does_not_count() -> None:
    """A and B are guaranteed 4 of 4 GPUs; that A is guaranteed all CPUs, too, which its users do not demand, changes nothing."""
    queues = [fo.Queue("A", guarantee={"gpu": 4, "cpu": 80}), fo.Queue("B", guarantee={"gpu": 4})]
    pool = fo.Instance([[4, 80]], [[1, 0], [1, 0]], resources=["gpu", "cpu"], queues=queues, queue_of=["A", "B"])
    assert fo.schedule(pool, "drfh").tasks_per_user.tolist() == [2, 2]


def test_what_is_held_on_a_group_counts_up_to_its_guarantee() -> None:
    """A is guaranteed 2 on x and 4 on y, B 4 on y. A's first user is guaranteed 6 on x: beyond 2 they are none of A's 6.

    y has 4. A holds (2 + j) / 6 and B (4 - j) / 4 of their guarantees where A has j there: 0.6 each for j = 1.6, in whole tasks 2 and 2.
    """
    pool = fo.Instance(
        [[8.0], [4.0]],
        np.ones((3, 1)),
        servers=["x", "y"],
        resources=["gpu"],
        eligibility=[[1, 0], [0, 1], [0, 1]],
        guarantees=[6, 0, 0],
        queues=[
            fo.Queue("A", quotas=[fo.Quota(["x"], guarantee={"gpu": 2}), fo.Quota(["y"], guarantee={"gpu": 4})]),
            fo.Queue("B", quotas=[fo.Quota(["y"], guarantee={"gpu": 4})]),
        ],
        queue_of=["A", "A", "B"],
    )
    for exact in (False, True):
        found = fo.schedule(pool, "drfh", exact=exact, record=True)
        assert np.bincount(found.trace.users[:10], minlength=3).tolist() == [6, 2, 2]


@pytest.mark.parametrize("seed", range(30))
def test_a_queue_without_properties_around_a_node_changes_nothing(seed: int) -> None:
    """Every user and every queue gets one around it, with its weight; the same tasks go to the same servers in the same order."""
    bare = decimal_tree(instance_in_queues(seed))
    queues, queue_of = list[fo.Queue](), list[str]()
    for queue in bare.queues:
        queues += [fo.Queue(f"around {queue.name}", queue.parent, queue.weight), dataclasses.replace(queue, parent=f"around {queue.name}")]
    for user, name, weight in zip(bare.users, bare.queue_of, bare.weights.tolist(), strict=True):
        queues.append(fo.Queue(f"around {user}", name, weight))
        queue_of.append(f"around {user}")
    wrapped = bare.replace(queues=queues, queue_of=queue_of)
    for placement in ("first-fit", "best-fit"):
        expected, found = (fo.schedule(pool, "drfh", placement=placement, record=True).trace for pool in (bare, wrapped))
        assert found.users.tolist() == expected.users.tolist()
        assert found.servers.tolist() == expected.servers.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_guarantees_of_queues_and_users_are_met_to_the_same_part_as_far_as_work_goes(seed: int) -> None:
    """Children of the root are guaranteed more than there is: nobody has had its last task before somebody whose part is smaller.

    With x[c] tasks of the a[c] that are guaranteed, (x[c] - 1) / a[c] <= x[e] / a[e] for every e that has a task left.
    """
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 7))
    guarantees, work = rng.integers(1, 200, number).astype(float), rng.integers(1, 300, number).astype(float)
    capacity = float(rng.integers(number, np.minimum(work, guarantees).sum() + 1))
    own = rng.random(number) < 0.5  # a user of the root with a guarantee; the others are queues with one user
    queues = [
        fo.Queue(
            f"q{c}", weight=float(rng.integers(0, 3)), tier=int(rng.integers(0, 3)), guarantee={} if own[c] else {"gpu": guarantees[c]}
        )
        for c in range(number)
    ]
    own_guarantees = np.where(own, np.minimum(guarantees, work), 0).tolist()
    amounts = np.where(own, np.minimum(guarantees, work), guarantees)  # a user is guaranteed no more tasks than it has
    queue_of = [queue.name for queue in queues]
    x = np.array(divided(capacity, *queues, queue_of=queue_of, tasks=work.tolist(), guarantees=own_guarantees))
    assert x.sum() == capacity
    assert ((x - 1) / amounts).max() <= (x / amounts)[x < work].min(initial=np.inf) * (1 + 1e-12)


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
