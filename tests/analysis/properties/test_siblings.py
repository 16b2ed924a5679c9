"""Sharing incentive, envy and lies among the children of one queue: users, and queues with everything below them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import with_lenders
from queue_oracle import random_pool

import fairopt as fo
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.siblings import Families
from fairopt.analysis.rerun import given
from fairopt.processes.crew import Crew

ASKED = ("sharing-incentive", "envy-freeness")


def held(runs: list[float], queues: list[fo.Queue], queue_of: list[str | None], **changes: Any) -> fo.Allocation:
    """Users of one GPU a task on one server of ten."""
    instance = fo.Instance([[10]], np.ones((len(runs), 1)), resources=["gpu"], queues=queues, queue_of=queue_of, **changes)
    return given(instance, np.array(runs)[:, None], "rdm")


def verdict_on(allocation: fo.Allocation, name: str, effort: int = 200) -> fo.analysis.auditing.Verdict:
    """Audit one property."""
    return fo.audit(allocation, name, effort=effort)[name]


def test_a_queue_is_compared_with_its_siblings() -> None:
    """4 of 10 GPUs and 6, with equal weights: a lacks 1 of its half, and would have 2 more with what b holds."""
    allocation = held([1, 3, 6], [fo.Queue("a", weight=2), fo.Queue("b", weight=2)], ["a", "a", "b"], weights=[1, 3, 1])
    slices, envy = (verdict_on(allocation, name) for name in ASKED)
    assert (slices.violation, envy.violation) == pytest.approx((1, 2))
    assert slices.witness is not None
    assert envy.witness is not None
    assert slices.witness.text == (
        'Queue "a" runs 4 tasks; 2/4, by weight, of the cluster on each server would run 5, and nobody below it would run less.'
    )
    assert envy.witness.text == ('Queue "a" runs 4 tasks. With what queue "b" holds it would run 6, and nobody below it would run less.')
    assert slices.witness.users == ("user-1", "user-2")


def test_a_user_and_a_queue_are_siblings() -> None:
    """A user of weight 1 holds 2 GPUs beside a queue of weight 3 with 8: by weight it would have 8 / 3."""
    allocation = held([2, 4, 4], [fo.Queue("q", weight=3)], [None, "q", "q"])
    assert verdict_on(allocation, "envy-freeness").violation == pytest.approx(2 / 3)
    assert verdict_on(allocation, "sharing-incentive").violation == pytest.approx(0.5)


@pytest.mark.parametrize("size", [1e-6, 1, 1e6])
def test_a_queue_that_runs_nothing_is_owed_its_slice(size: float) -> None:
    """Half of ten GPUs, and all that its sibling holds, whatever a task takes."""
    instance = fo.Instance([[10]], [[size], [size]], queues=[fo.Queue("a"), fo.Queue("b")], queue_of=["a", "b"])
    allocation = given(instance, np.array([[0], [10 / size]]), "rdm")
    assert [verdict_on(allocation, name).violation for name in ASKED] == pytest.approx([5 / size, 10 / size])


def test_a_queue_is_better_off_only_if_nobody_below_it_loses() -> None:
    """a's users need gpu and cpu, one each. What b holds has more gpu and less cpu: in all more tasks, but one user would lose."""
    queues = [fo.Queue("a"), fo.Queue("b")]
    instance = fo.Instance([[20, 10]], [[1, 0], [0, 1], [1, 0], [0, 1]], queues=queues, queue_of=["a", "a", "b", "b"])
    assert verdict_on(given(instance, np.array([[4], [5], [16], [4.9]]), "rdm"), "envy-freeness").holds
    assert verdict_on(given(instance, np.array([[4.0], [5], [16], [5]]), "rdm"), "envy-freeness").violation == pytest.approx(12)


def test_guarantees_and_tiers_are_nobody_elses() -> None:
    """b holds 6 of which 3 are guaranteed, so a with 4 has more than b's 3 beyond it, and than half of 7. A tier compares with itself."""
    guaranteed = held([4, 6], [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 3})], ["a", "b"])
    assert all(verdict_on(guaranteed, name).holds for name in ASKED)
    less = held([3, 7], [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 3})], ["a", "b"])
    assert [verdict_on(less, name).violation for name in ASKED] == pytest.approx([0.5, 1])
    below = held([3, 7], [fo.Queue("a"), fo.Queue("b"), fo.Queue("c", "b", guarantee={"gpu": 7})], ["a", "c"])  # a child's is its parent's
    assert all(verdict_on(below, name).holds for name in ASKED)
    own = held([3, 7], [], [None, None], guarantees=[0, 4])
    assert verdict_on(own, "envy-freeness").holds
    assert verdict_on(held([3, 7], [], [None, None], guarantees=[0, 3]), "envy-freeness").violation == pytest.approx(1)
    tiers = held([1, 9], [fo.Queue("a"), fo.Queue("b", tier=1)], ["a", "b"])
    assert all(verdict_on(tiers, name).holds for name in ASKED)


def test_what_nobody_could_use_is_no_reason_for_envy() -> None:
    """a is at its limit, or has all its tasks, or holds its guarantee at the weight 0; without the guarantee, all were b's."""
    for queue, tasks in (
        (fo.Queue("a", limit={"gpu": 2}), np.inf),
        (fo.Queue("a"), 2),
        (fo.Queue("a", weight=0, guarantee={"gpu": 2}), np.inf),
    ):
        allocation = held([2, 8], [queue, fo.Queue("b")], ["a", "b"], tasks=[tasks, np.inf])
        assert all(verdict_on(allocation, name).holds for name in ASKED)
    idle = held([2, 8], [fo.Queue("a", weight=0), fo.Queue("b")], ["a", "b"])
    assert verdict_on(idle, "envy-freeness").holds
    assert verdict_on(idle, "sharing-incentive").violation == pytest.approx(2)
    limited = held([2, 8], [fo.Queue("a", limit={"gpu": 3}), fo.Queue("b")], ["a", "b"])
    assert [verdict_on(limited, name).violation for name in ASKED] == pytest.approx([1, 1])
    kept = held([2, 0], [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 8}, lending_limit={"gpu": 0})], ["a", "b"], tasks=[np.inf, 0])
    assert all(verdict_on(kept, name).holds for name in ASKED)


@pytest.mark.parametrize("seed", range(8))
def test_a_queue_of_one_user_is_that_user(seed: int) -> None:
    """Wrapped in a queue of its weight each, users lack and envy as much as without queues."""
    rng = np.random.default_rng(seed)
    flat = fo.Instance(
        rng.uniform(5, 15, (3, 2)),
        rng.uniform(0.2, 2, (4, 2)),
        weights=rng.uniform(0.5, 2, 4),
        eligibility=np.maximum(rng.random((4, 3)) < 0.7, [1, 0, 0]),
        tasks=np.where(rng.random(4) < 0.3, 8.0, np.inf),
        parallelism=np.where(rng.random(4) < 0.3, 1.0, np.inf),
        users=list("abcd"),
    )
    tasks = fo.solve(flat, "proportional", alpha=0.5).tasks
    queues = [fo.Queue(f"of {name}", weight=float(weight)) for name, weight in zip(flat.users, flat.weights, strict=True)]
    wrapped = flat.replace(queues=queues, queue_of=[queue.name for queue in queues], weights=None)
    for name in ASKED:
        users, agents = (verdict_on(given(instance, tasks, "rdm"), name) for instance in (flat, wrapped))
        assert (users.holds, agents.violation) == (agents.holds, pytest.approx(users.violation, rel=1e-6, abs=1e-9))


@pytest.mark.parametrize("guarantees", ["surplus", "clamp"])
def test_a_filling_of_one_resource_gives_everybody_its_slice(guarantees: str) -> None:
    """Guarantees, limits, tiers, weights of 0, in trees of three levels on one server: nobody lacks a slice, and nobody envies.

    So too where queues keep parts of their guarantees.
    """
    for seed in range(12):
        for pool in (random_pool(seed), with_lenders(random_pool(seed), seed)):
            found = fo.audit(fo.solve(pool, "drfh", guarantees=guarantees), ASKED)
            assert not found.violated, (seed, found)


def test_what_others_keep_is_no_part_of_a_slice() -> None:
    """b and c keep 3 and 2 of 10 GPUs and use none: a and d divide 5. d has 3 of them, so that a lacks half a task and envies one."""
    keeps = [fo.Queue(name, guarantee={"gpu": kept}, lending_limit={"gpu": 0}) for name, kept in (("b", 3), ("c", 2))]
    queues = [fo.Queue("a", weight=2), fo.Queue("d", weight=2), *keeps]
    allocation = held([2, 3], queues, ["a", "d"])
    assert [verdict_on(allocation, name).violation for name in ASKED] == pytest.approx([0.5, 1])


def test_a_lie_of_a_queue() -> None:
    """No user gains by a lie of its own here, but the queue does when all its users say that they need half of a resource.

    The gain is checked by hand: its users can run the tasks that the witness claims with what they are given.
    """
    rng = np.random.default_rng(111)
    instance = fo.Instance(
        rng.uniform(5, 15, (2, 2)),
        rng.uniform(0.2, 2, (5, 2)) * (rng.random((5, 2)) < 0.7) + [[0.3, 0]],
        queues=[fo.Queue("a"), fo.Queue("b")],
        queue_of=["a", "a", "a", "b", "b"],
    )
    allocation = fo.solve(instance, "drfh")
    verdict = verdict_on(allocation, "strategy-proofness", effort=40)
    assert verdict.holds is False
    assert verdict.witness is not None
    assert verdict.statement.startswith("A lie pays a queue")
    told, given_then = verdict.witness.instance, verdict.witness.tasks
    assert told is not None
    assert given_then is not None
    mine = [instance.users.index(name) for name in verdict.witness.users]
    bundle = given_then[mine].T @ told.demands[mine]
    families = Families(Case(allocation, 1, 0, Crew(), None))
    queue = families.queue(1 if mine[0] == 0 else 2)
    assert families.gain(queue, bundle) == pytest.approx(verdict.violation)
    assert families.gain(queue, bundle * 0.5) == 0
