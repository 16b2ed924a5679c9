"""Whose weight counts, against solving again with other weights."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues

import fairopt as fo
from fairopt.instance.rivals import deciding_nodes, weight_without_effect


def lab(**changes: Any) -> fo.Instance:
    """12 GPUs. ann is alone in low, in mid, in top; ben and the queue kids share other; zoe of weight 0 is beside ann."""
    queues = [
        fo.Queue("top", weight=2),
        fo.Queue("mid", "top"),
        fo.Queue("low", "mid"),
        fo.Queue("other"),
        fo.Queue("kids", "other"),
        fo.Queue("empty", "mid"),
    ]
    instance = fo.Instance(
        [[12]],
        np.ones((4, 1)),
        users=["ann", "zoe", "ben", "kim"],
        weights=[1, 0, 1, 1],
        resources=["gpu"],
        queues=queues,
        queue_of=["low", "low", "other", "kids"],
    )
    return instance.replace(**changes)


def names(instance: fo.Instance, **of: int) -> list[str]:
    """Return the deciding nodes by name."""
    return ["itself" if node is None else instance.tree.name(node) for node in deciding_nodes(instance, **of)]


def test_the_nearest_queue_with_a_rival() -> None:
    """By hand: nobody of positive weight is beside ann below the root; kim is alone, and ben is beside her queue."""
    assert names(lab(), user=0) == ["top"]
    assert names(lab(), user=1) == ["itself", "top"]  # with a weight she would take part
    assert names(lab(), user=2) == ["itself", "other"]
    assert names(lab(), user=3) == ["kids", "other"]
    assert names(lab(), node=2) == ["top"]
    assert names(lab(), node=6) == []
    assert names(lab(tasks={"ben": 0, "kim": 0}), user=0) == []
    assert names(lab(weights={"zoe": 1}), user=0) == ["itself", "top"]


def test_another_tier_is_no_rival() -> None:
    """Tiers are served one after the other."""
    tiered = [dataclasses.replace(queue, tier=1) if queue.name == "top" else queue for queue in lab().queues]
    assert names(lab(queues=tiered), user=0) == []


@pytest.mark.parametrize(
    ("of", "changes", "sentence"),
    [
        ({"user": 2}, {}, ""),
        (
            {"user": 3},
            {},
            "the weight of kim has no effect in the tree, because kim is alone in the queue kids; "
            "the weight of the queue kids counts instead",
        ),
        (
            {"user": 0},
            {},
            "the weight of ann has no effect in the tree, because nobody else in the queue low competes with it; "
            "the weight of the queue top counts instead",
        ),
        (
            {"node": 3},
            {"tasks": {"ben": 0, "kim": 0}},
            "the weight of the queue low has no effect in the tree, because nobody else in the queue mid competes with it; "
            "no weight changes what it gets",
        ),
        (
            {"node": 6},
            {},
            "the weight of the queue empty has no effect in the tree, because no user below the queue empty has a task that can run; "
            "no weight changes what it gets",
        ),
    ],
)
def test_the_sentence(of: dict[str, int], changes: dict[str, object], sentence: str) -> None:
    """It says why, and which weight counts."""
    assert weight_without_effect(lab(**changes), **of) == sentence


@pytest.mark.parametrize("options", [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}])
def test_a_weight_without_effect_changes_nothing(options: dict[str, Any]) -> None:
    """Of random trees with tiers, guarantees, limits and weights of 0: with all of these weights times 3 or more, tasks stay the same."""
    idle = 0
    for seed in range(30):
        instance = instance_in_queues(seed)
        users = [n for n in range(instance.n_users) if instance.weights[n] and weight_without_effect(instance, user=n)]
        nodes = [v for v, queue in enumerate(instance.queues, 1) if queue.weight and weight_without_effect(instance, node=v)]
        if users or nodes:
            weights, queues = instance.weights.copy(), [*instance.queues]
            for factor, n in enumerate(users, 3):  # each by a factor of its own, so that no two make up for each other
                weights[n] *= factor
            for factor, v in enumerate(nodes, 3 + len(users)):
                queues[v - 1] = dataclasses.replace(queues[v - 1], weight=factor * queues[v - 1].weight)
            held, again = (fo.solve(each, "drfh", **options) for each in (instance, instance.replace(weights=weights, queues=queues)))
            np.testing.assert_allclose(again.tasks_per_user, held.tasks_per_user, rtol=1e-7, atol=1e-9)
            idle += len(users) + len(nodes)
    assert idle > 20
