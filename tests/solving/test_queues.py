"""Trees of queues: `fairopt.solve` against an independent oracle, numbers worked out by hand, and what must hold of every tree.

The oracle is ``queue_oracle``; tests/conformance/test_queue_oracle.py checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from instances import instance_of_extremes
from queue_oracle import ask, by_htcondor, by_kai, by_yarn, gap, nested, random_pool, random_tree, share_per_task, tasks_alone

import fairopt as fo

BOUND = 1e-8
CPU = ("cpu",)


def tasks(instance: fo.Instance, notion: str = "drfh", **options: Any) -> np.ndarray:
    """Tasks of each user."""
    return fo.solve(instance, notion, **options).tasks_per_user


def pool(capacity: float, queues: Sequence[fo.Queue], queue_of: Sequence[str | None], **data: Any) -> fo.Instance:
    """One server with one resource, of which each task takes 1."""
    return fo.Instance([[capacity]], np.ones((len(queue_of), 1)), queues=queues, queue_of=queue_of, resources=CPU, **data)


# The oracle ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_shares_are_those_of_the_oracle(seed: int) -> None:
    """Three levels, guarantees, limits, tiers, weights over six orders of magnitude, constraints, finite tasks."""
    instance = random_tree(seed)
    for guarantees in ("surplus", "clamp"):
        for queue_share in ("dominant", "sum"):
            assert gap(*ask(instance, "drfh", guarantees, queue_share)) <= BOUND


@pytest.mark.parametrize("solver", ["highs", "cvxpy", "pyomo"])
def test_a_user_who_rises_by_a_millionth_of_what_it_has_does_not_blur_the_level_of_others(solver: str) -> None:
    """The first user has a guarantee and a weight of 5e-6 of the third one's; the level it reaches is lost in the rounding of its share."""
    capacity, own, others, weights = 9.51, 0.446, 0.5, (0.00374, 599.0, 652.0)
    instance = fo.Instance(
        [[capacity]],
        [[own], [others], [others]],
        weights=weights,
        guarantees=[3.32, 0.0, 0.0],
        queues=[fo.Queue("q")],
        queue_of=["q", None, "q"],
    )
    surplus = capacity - 3.32 * own
    queue, inside = surplus / (1 + weights[1]), weights[0] + weights[2]
    expected = [
        3.32 + queue * weights[0] / inside / own,
        surplus * weights[1] / (1 + weights[1]) / others,
        queue * weights[2] / inside / others,
    ]
    assert tasks(instance, solver=solver) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("solver", ["highs", "cvxpy", "pyomo"])
def test_a_guarantee_on_servers_that_no_user_of_the_queue_may_use(solver: str) -> None:
    """The stage of the guarantee gives nothing; in the surplus, the pairs that it closed are open."""
    queue = fo.Queue("q", quotas=[fo.Quota(["b"], guarantee={"cpu": 1.0})])
    instance = fo.Instance(
        [[8.0], [2.0]], [[0.5]], eligibility=[[True, False]], queues=[queue], queue_of=["q"], servers=["a", "b"], resources=CPU
    )
    assert tasks(instance, solver=solver) == pytest.approx([16.0], rel=1e-12)


@pytest.mark.parametrize("notion", ["asset", "tsf", "cdrf", "max-min"])
@pytest.mark.parametrize("seed", range(100, 106))
def test_other_shares_are_those_of_the_oracle(seed: int, notion: str) -> None:
    """The share of a queue is then the sum of its users' shares."""
    instance = random_tree(seed)
    for guarantees in ("surplus", "clamp"):
        assert gap(*ask(instance, notion, guarantees, None)) <= BOUND


@pytest.mark.parametrize("seed", range(200, 208))
def test_fairness_among_queues_first_is_that_of_the_oracle(seed: int) -> None:
    """Nested, with limits, weights > 0, and neither guarantees nor tiers."""
    drawn = random_tree(seed)
    queues = [
        fo.Queue(q.name, q.parent, q.weight or 1.0, limit=q.limit, quotas=[fo.Quota(x.servers, limit=x.limit) for x in q.quotas])
        for q in drawn.queues
    ]
    instance = drawn.replace(queues=queues, weights=np.where(drawn.weights > 0, drawn.weights, 1.0), guarantees=None)
    per_task = share_per_task(instance, "drfh")
    assert gap(tasks(instance, tree="nested"), nested(instance, per_task) / per_task, tasks_alone(instance)) <= BOUND


# Other systems on one resource of one server -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_one_resource_is_divided_as_kai_yarn_and_htcondor_do(seed: int) -> None:
    """KAI: guarantees, then the rest by weights. YARN: clamp(w t, minimum, maximum). HTCondor: quotas, then surplus by quotas."""
    instance = random_pool(seed)
    assert gap(tasks(instance) * instance.demands[:, 0], by_kai(instance)) <= BOUND
    if not any(queue.tier for queue in instance.queues):  # YARN has none
        assert gap(tasks(instance, guarantees="clamp") * instance.demands[:, 0], by_yarn(instance)) <= BOUND
    instance = random_pool(seed, quotas=True)
    assert gap(tasks(instance) * instance.demands[:, 0], by_htcondor(instance)) <= BOUND


# Numbers -------------------------------------------------------------------------------------------------------------------------


def test_the_meanings_of_a_guarantee() -> None:
    """8 cpus, weights 1 : 3, 2 cpus guaranteed to each: on top of it, at least it, in proportion to it, no more than it."""
    first, second = fo.Queue("a", guarantee={"cpu": 2}), fo.Queue("b", weight=3, guarantee={"cpu": 2})
    instance = pool(8, [first, second], ["a", "b"])
    assert tasks(instance) == pytest.approx([3, 5], abs=1e-9)
    assert tasks(instance, guarantees="clamp") == pytest.approx([2, 6], abs=1e-9)
    in_proportion = [fo.Queue(name, weight=2, guarantee={"cpu": 2}) for name in "ab"]
    assert tasks(instance.replace(queues=in_proportion)) == pytest.approx([4, 4], abs=1e-9)
    capped = [fo.Queue(q.name, weight=q.weight, guarantee={"cpu": 2}, limit={"cpu": 2}) for q in (first, second)]
    assert tasks(instance.replace(queues=capped)) == pytest.approx([2, 2], abs=1e-9)


def test_weights_are_not_multiplied_down_the_tree() -> None:
    """{A {a1 wants 10, a2}, B} of 100: what a1 leaves is its sibling's."""
    instance = pool(100, [fo.Queue("A")], ["A", "A", None], tasks=[10, np.inf, np.inf])
    assert tasks(instance) == pytest.approx([10, 40, 50], abs=1e-8)
    assert tasks(instance, tree="nested") == pytest.approx([10, 40, 50], abs=1e-8)


def test_an_owner_with_two_kinds_of_task() -> None:
    """A runs on x (2 gpus) and on y (20), B on y, C on x. Filling treats A's tasks alike while A rises; nested looks at owners first."""
    instance = fo.Instance(
        [[2], [20]],
        np.ones((4, 1)),
        eligibility=[[True, False], [False, True], [False, True], [True, False]],
        queues=[fo.Queue("A")],
        queue_of=["A", "A", None, None],
    )
    filled = tasks(instance)
    assert [filled[:2].sum(), *filled[2:]] == pytest.approx([31 / 3, 31 / 3, 4 / 3], abs=1e-8)
    first = tasks(instance, tree="nested")
    assert [first[:2].sum(), *first[2:]] == pytest.approx([10, 10, 2], abs=1e-8)
    divided = tasks(instance.replace(queues=None, queue_of=None, weights=[0.5, 0.5, 1, 1]))
    assert [divided[:2].sum(), *divided[2:]] == pytest.approx([22 / 3, 40 / 3, 4 / 3], abs=1e-8)


def test_children_with_complementary_demands_do_not_starve() -> None:
    """H-DRF, first problem: the child that has all cpus to itself does not cost its sibling the gpus (Bhattacharya et al. 2013)."""
    instance = fo.Instance([[10, 10]], [[0, 1], [1, 0], [0, 1]], queues=[fo.Queue("n2")], queue_of=[None, "n2", "n2"])
    assert tasks(instance) == pytest.approx([5, 10, 5], abs=1e-8)
    both = instance.replace(demands=[[1, 1], [1, 0], [0, 1]])
    assert tasks(both) == pytest.approx([5, 5, 5], abs=1e-8)
    assert tasks(both, queue_share="sum") == pytest.approx([20 / 3, 10 / 3, 10 / 3], abs=1e-8)


def test_a_blocked_child_does_not_hold_back_its_sibling() -> None:
    """H-DRF, second problem: n3's cpu task is stopped at a third of the cpus; its gpu task goes on to half of the gpus."""
    instance = fo.Instance(
        [[1, 1]], [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]], queues=[fo.Queue("n3")], queue_of=[None, None, "n3", "n3", None]
    )
    assert tasks(instance) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2], abs=1e-9)


def test_guarantees_that_do_not_fit_are_met_in_the_same_part() -> None:
    """12 and 8 of 10 cpus: 6 and 4, whatever the weights."""
    queues = [fo.Queue("a", weight=1, guarantee={"cpu": 12}), fo.Queue("b", weight=0, guarantee={"cpu": 8})]
    assert tasks(pool(10, queues, ["a", "b"])) == pytest.approx([6, 4], abs=1e-9)


def test_nothing_beyond_the_guarantee_at_weight_0() -> None:
    """A queue and a user of weight 0."""
    queues = [fo.Queue("a", weight=0, guarantee={"cpu": 2}), fo.Queue("b")]
    instance = pool(10, queues, ["a", "b", "b"], weights=[1, 0, 1], guarantees=[0, 1, 0])
    assert tasks(instance) == pytest.approx([2, 1, 7], abs=1e-9)


def test_the_highest_tier_takes_the_surplus() -> None:
    """A guarantee comes before any tier; a limit stops the first tier, and the second takes the rest."""
    queues = [fo.Queue("a", tier=2, limit={"cpu": 6}), fo.Queue("b", tier=1), fo.Queue("c", guarantee={"cpu": 1})]
    assert tasks(pool(10, queues, ["a", "b", "c"])) == pytest.approx([6, 3, 1], abs=1e-9)


def test_a_queue_that_lends_little_keeps_the_rest() -> None:
    """Guaranteed 6 of 10 and idle, it lends 2: 4 stay idle."""
    queues = [fo.Queue("a", guarantee={"cpu": 6}, lending_limit={"cpu": 2}), fo.Queue("b")]
    assert tasks(pool(10, queues, ["a", "b"], tasks=[0.5, np.inf])) == pytest.approx([0.5, 6], abs=1e-9)


def test_a_guarantee_on_a_group_of_servers() -> None:
    """Kueue's quota of a flavour: 3 of the 4 cpus of x are for A, who shares y with B by weights."""
    queues = [fo.Queue("A", weight=0, quotas=[fo.Quota(["x"], guarantee={"cpu": 3})]), fo.Queue("B")]
    instance = fo.Instance([[4], [6]], [[1], [1]], queues=queues, queue_of=["A", "B"], servers=["x", "y"], resources=CPU)
    assert tasks(instance) == pytest.approx([3, 7], abs=1e-9)
    assert tasks(instance.replace(eligibility=[[False, True], [True, True]])) == pytest.approx([0, 10], abs=1e-9)
    limited = [fo.Queue("A"), fo.Queue("B", quotas=[fo.Quota(["y"], limit={"cpu": 1})])]
    assert tasks(instance.replace(queues=limited)) == pytest.approx([5, 5], abs=1e-9)


# What must hold of every tree ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_flat_tree_is_the_leximin(seed: int) -> None:
    """Each user in a queue of its own, of its weight; a queue around everybody changes nothing either."""
    flat = instance_of_extremes(seed)
    names = [f"q{n}" for n in range(flat.n_users)]
    own = flat.replace(queues=[fo.Queue(name, weight=w) for name, w in zip(names, flat.weights, strict=True)], queue_of=names, weights=None)
    around = flat.replace(queues=[fo.Queue("all")], queue_of=["all"] * flat.n_users)
    expected = tasks(flat)
    assert gap(tasks(own), expected, tasks_alone(flat)) <= BOUND
    assert gap(tasks(around, queue_share="sum"), expected, tasks_alone(flat)) <= BOUND
    assert gap(tasks(own, tree="nested"), expected, tasks_alone(flat)) <= BOUND


def quotas_with(queue: fo.Queue, names: dict[str, list[str]], scale: dict[str, float] | None = None) -> list[fo.Quota]:
    """The quotas of a queue with other servers and other units."""

    def amounts(given: Any) -> dict[str, float]:
        return {r: v * (scale or {}).get(r, 1.0) for r, v in given.items()}

    return [
        fo.Quota(
            [new for old in quota.servers for new in names[old]],
            guarantee=amounts(quota.guarantee),
            limit=amounts(quota.limit),
            lending_limit=amounts(quota.lending_limit),
        )
        for quota in queue.quotas
    ]


def changed(queue: fo.Queue, **changes: Any) -> fo.Queue:
    """The queue with some fields changed."""
    return fo.Queue(**({name: getattr(queue, name) for name in queue.__dataclass_fields__} | changes))


INVARIANCE = [(seed, guarantees) for seeds, guarantees in (((1, 8, 15, 23), "surplus"), ((4, 10, 19, 29), "clamp")) for seed in seeds]


@pytest.mark.parametrize(("seed", "guarantees"), INVARIANCE)
def test_the_order_of_users_and_queues_does_not_matter(seed: int, guarantees: str) -> None:
    """Users permuted, queues reversed."""
    instance = random_tree(seed)
    order = np.random.default_rng(seed).permutation(instance.n_users)
    other = fo.Instance(
        instance.capacities,
        instance.demands[order],
        weights=instance.weights[order],
        eligibility=None if instance.placement is None else instance.placement[order],
        counts=instance.counts,
        tasks=instance.tasks[order],
        guarantees=instance.guarantees[order],
        queues=instance.queues[::-1],
        queue_of=[instance.queue_of[n] for n in order],
        servers=instance.servers,
        resources=instance.resources,
    )
    assert gap(tasks(other, guarantees=guarantees), tasks(instance, guarantees=guarantees)[order], tasks_alone(other)) <= BOUND


@pytest.mark.parametrize(("seed", "guarantees"), INVARIANCE)
def test_units_do_not_matter(seed: int, guarantees: str) -> None:
    """Each resource in a unit of its own."""
    instance = random_tree(seed)
    units = 2.0 ** np.random.default_rng(seed).integers(-8, 9, instance.n_resources)
    scale = dict(zip(instance.resources, units, strict=True))
    same = {name: [name] for name in instance.servers}

    def in_units(given: Any) -> dict[str, float]:
        return {r: v * scale[r] for r, v in given.items()}

    queues = [
        changed(
            queue,
            guarantee=in_units(queue.guarantee),
            limit=in_units(queue.limit),
            lending_limit=in_units(queue.lending_limit),
            quotas=quotas_with(queue, same, scale=scale),
        )
        for queue in instance.queues
    ]
    other = instance.replace(capacities=instance.capacities * units, demands=instance.demands * units, queues=queues)
    assert gap(tasks(other, guarantees=guarantees), tasks(instance, guarantees=guarantees), tasks_alone(instance)) <= BOUND


@pytest.mark.parametrize(("seed", "guarantees"), INVARIANCE)
def test_splitting_servers_does_not_matter(seed: int, guarantees: str) -> None:
    """Each row becomes two, with a quarter and three quarters of its capacity."""
    instance = random_tree(seed)
    names = {name: [name, f"{name}'"] for name in instance.servers}
    twice = [queue if not queue.quotas else changed(queue, quotas=quotas_with(queue, names)) for queue in instance.queues]
    placement = None if instance.placement is None else np.hstack([instance.placement, instance.placement])
    other = instance.replace(
        capacities=np.vstack([instance.capacities / 4, instance.capacities * 0.75]),
        counts=np.tile(instance.counts, 2),
        eligibility=placement,
        servers=[*instance.servers, *(f"{name}'" for name in instance.servers)],
        queues=twice,
    )
    assert gap(tasks(other, guarantees=guarantees), tasks(instance, guarantees=guarantees), tasks_alone(instance)) <= BOUND


@pytest.mark.parametrize(("seed", "guarantees"), INVARIANCE)
def test_cloning_changes_nobody(seed: int, guarantees: str) -> None:
    """The cluster twice, and each queue and user twice. Lending limits speak of the whole cluster, and quotas of its servers: left out."""
    instance = random_tree(seed)
    plain = [changed(queue, quotas=(), lending_limit={}) for queue in instance.queues]
    instance = instance.replace(queues=plain)
    copies = [changed(queue, name=f"{queue.name}'", parent=queue.parent and f"{queue.parent}'") for queue in plain]
    other = fo.Instance(
        instance.capacities,
        np.tile(instance.demands, (2, 1)),
        weights=np.tile(instance.weights, 2),
        eligibility=None if instance.placement is None else np.tile(instance.placement, (2, 1)),
        counts=2 * instance.counts,
        tasks=np.tile(instance.tasks, 2),
        guarantees=np.tile(instance.guarantees, 2),
        queues=[*plain, *copies],
        queue_of=[*instance.queue_of, *(name and f"{name}'" for name in instance.queue_of)],
        resources=instance.resources,
    )
    assert gap(tasks(other, guarantees=guarantees), np.tile(tasks(instance, guarantees=guarantees), 2), tasks_alone(other)) <= BOUND
