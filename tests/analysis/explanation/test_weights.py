"""What explanations say of weights and shares, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.analysis.rerun import given
from fairopt.errors import NoSolution
from fairopt.solving import notion_of
from fairopt.solving.optimum import best_found

TWO: dict[str, Any] = {"users": ["a", "b"], "servers": ["s"], "resources": ["gpu"]}
Q = fo.Queue("q")


def ten(**changes: Any) -> fo.Instance:
    """10 GPUs, one for each task; a has the weight 4 and b 1."""
    return fo.Instance([[10]], [[1], [1]], **TWO, **{"weights": [4, 1], **changes})


def share_of(allocation: fo.Allocation, user: str = "a") -> str:
    """Return the sentence on the share of a user."""
    found = [sentence for sentence in fo.explain(allocation, user, resolves=0).sentences if "share is" in sentence]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize(
    ("changes", "tasks", "sentence"),
    [
        # 4 : 1 of 10 is 8 : 2, in a list as in a queue: 80 %, 20 % for each unit of weight.
        ({}, 8, "80 %, which is 20 % for each unit of its weight 4; b has the same share for its weight; nobody has less or more."),
        (
            {"queues": [Q], "queue_of": ["q", "q"]},
            8,
            "80 %, which is 20 % for each unit of its weight 4; it stops in the surplus, together with b.",
        ),
        # A queue of weight 3 beside b of weight 1: 7.5 : 2.5.
        (
            {"queues": [fo.Queue("q", weight=3)], "queue_of": ["q", None]},
            7.5,
            "75 %, which is 18.75 % for each unit of its weight 4; it stops in the surplus, together with b.",
        ),
        # A guarantee of 5, and of the other 5 four fifths: 9.
        (
            {"guarantees": [5, 0]},
            9,
            "90 %, which is 22.5 % for each unit of its weight 4; it stops in the surplus, together with b.",
        ),
        # Weight 0: the guarantee alone.
        ({"weights": [0, 1], "guarantees": [5, 0]}, 5, "50 %; it stops in the guarantees, alone."),
        # A limit of the queue at 6.
        (
            {"queues": [fo.Queue("q", limit={"gpu": 6})], "queue_of": ["q", None]},
            5,
            "50 %, which is 12.5 % for each unit of its weight 4; it stops in the surplus, together with b.",
        ),
    ],
)
def test_a_share_is_not_multiplied_by_the_weight_in_a_tree(changes: dict[str, Any], tasks: float, sentence: str, exactly: bool) -> None:
    """Tasks are tenths of the cluster, so the share is a tenth of the tasks."""
    allocation = fo.solve(ten(**changes), "drfh", exact=exactly)
    assert allocation.tasks_per_user[0] == pytest.approx(tasks)
    expected = sentence if exactly else sentence.replace("18.75 %", "18.8 %")
    if exactly:  # a part that is no whole number of percent is written as a fraction
        expected = expected.replace("18.75 %", "3/16").replace("22.5 %", "9/40").replace("12.5 %", "1/8")
    assert share_of(allocation) == f"Its share is {expected}"


@pytest.mark.parametrize("notion", ["drf", "drfh"])
def test_weights_per_resource(notion: str) -> None:
    """12 of both resources: a task of a counts 1/24, of b 1/12; 8 and 4 tasks have the share 1/3. In a queue the sentence is the same."""
    flat = fo.Instance([[12, 12]], [[1, 1], [1, 1]], weights=[[2, 4], [1, 1]], users=["a", "b"], servers=["s"], resources=["gpu", "cpu"])
    allocation = fo.solve(flat, notion)
    assert allocation.tasks_per_user == pytest.approx([8, 4])
    assert share_of(allocation).startswith("Its share is 33.3 %, divided by its weights; ")
    assert share_of(allocation, "b").startswith("Its share is 33.3 %; ")
    assert allocation.shares_by_weight
    assert allocation.share_heading == "share / weight"


def test_schedules() -> None:
    """8 and 2 tasks of ten; beside a in its queue, b has as much for its weight."""
    flat, tree = fo.schedule(ten(), "drfh"), fo.schedule(ten(queues=[Q], queue_of=["q", "q"]), "drfh")
    for allocation in (flat, tree):
        assert allocation.tasks_per_user.tolist() == [8, 2]
    share = "Its share is 80 %, which is 20 % for each unit of its weight 4; "
    assert share_of(flat) == f"{share}nobody has a smaller one or a larger one."
    assert share_of(tree) == f"{share}beside it nobody has less for each unit of weight or more for each unit of weight."
    apart = fo.schedule(ten(queues=[fo.Queue("q", weight=4)], queue_of=["q", None]), "drfh")
    assert apart.tasks_per_user.tolist() == [8, 2]
    assert share_of(apart) == "Its share is 80 %, which is 20 % for each unit of its weight 4."  # b is in another queue


def test_a_goal_that_is_a_sum_has_shares_without_weights() -> None:
    """The best whole tasks so far: 6 tasks are worth 6, whatever the weight."""
    known = {"tasks": np.array([[6.0], [4.0]]), "value": 28.0, "bound": 40.0, "solver": "highs"}
    allocation = best_found(ten(), Optimum(notion_of("efficiency"), integral=True), "rdm", NoSolution("no answer within 1 s", known))
    assert allocation is not None
    assert not allocation.shares_by_weight
    assert allocation.share_heading == "share"
    assert share_of(allocation).startswith("Its share is 6, which is 1.5 for each unit of its weight 4; ")


def test_shares_of_servers() -> None:
    """s alone is one server: a holds 80 % of it, and so is its share there."""
    for notion in ("psdsf", "per-server-drf"):
        assert share_of(fo.solve(ten(), notion)).startswith("On s its share is 80 %, which is 20 % for each unit of its weight 4")


def test_the_share_of_the_cluster_is_the_sum_over_users() -> None:
    """Not of shares divided by weights: all of it is held, in a list and in a tree."""
    for instance in (ten(), ten(queues=[Q], queue_of=["q", "q"])):
        for allocation in (fo.solve(instance, "drfh"), fo.solve(instance, "drfh", exact=True).in_fractions):
            assert allocation.queue_holdings()[0].share == pytest.approx(1)
            assert allocation.to_frame(by="queue")["share"].astype(float).iloc[0] == pytest.approx(1)
    assert given(ten(), np.array([[8.0], [2.0]]), "rdm").queue_holdings()[0].share == pytest.approx(1)


# Whose weight would help ---------------------------------------------------------------------------------------------------------


def told(allocation: fo.Allocation, **of: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the sentences, and the kind and the gain of each change."""
    explanation = fo.explain(allocation, **of)
    return explanation.sentences, {gain.change: (gain.kind, float(gain.best_known)) for gain in explanation.gains}


@pytest.mark.parametrize("exactly", [False, True])
def test_alone_in_a_queue_the_weight_of_the_queue_helps(exactly: bool) -> None:
    """qa is guaranteed 2 of 10; of the other 8 it has 3/4: 8. With the weight 4 it has 2 + 8 * 4/5 = 8.4."""
    queues = [fo.Queue("qa", weight=3, guarantee={"gpu": 2}), fo.Queue("qb")]
    allocation = fo.solve(ten(weights=[1, 1], queues=queues, queue_of=["qa", "qb"]), "drfh", exact=exactly)
    sentences, gains = told(allocation, user="a")
    assert gains["weight 4 instead of 3 of the queue qa"] == ("weight of a queue", pytest.approx(0.4))
    assert not any(kind == "weight" for kind, _ in gains.values())
    assert not any("would give it nothing" in sentence for sentence in sentences)
    assert (
        "The weight of a has no effect in the tree, because a is alone in the queue qa; the weight of the queue qa counts instead."
        in sentences
    )
    gain = "2/5 of a task more (+5 %)" if exactly else "0.4 tasks more (+5 %)"
    assert f"Weight 4 instead of 3 of the queue qa would give it {gain}." in sentences
    assert told(allocation, queue="qa")[1]["weight 4 instead of 3"] == ("weight", pytest.approx(0.4))


def test_the_nearest_queue_above_with_a_rival() -> None:
    """a is alone in low, in mid and in top of weight 2, beside b: 20/3 of 10; with the weight 3 it has 7.5. So of the queue low."""
    queues = [fo.Queue("top", weight=2), fo.Queue("mid", "top"), fo.Queue("low", "mid")]
    allocation = fo.solve(ten(weights=[1, 1], queues=queues, queue_of=["low", None]), "drfh")
    for of in ({"user": "a"}, {"queue": "low"}):
        sentences, gains = told(allocation, **of)
        assert gains["weight 3 instead of 2 of the queue top"] == ("weight of a queue", pytest.approx(7.5 - 20 / 3))
        assert any("the weight of the queue top counts instead" in sentence for sentence in sentences)


def test_where_more_of_its_own_weight_gives_nothing_the_queue_is_tried() -> None:
    """b beside a has its only task: q holds 5 of 10, b 1 and a 4. With the weight 2, q holds 20/3, and a 17/3."""
    instance = fo.Instance(
        [[10]],
        np.ones((3, 1)),
        users=["a", "b", "c"],
        resources=["gpu"],
        tasks=[np.inf, 1, np.inf],
        queues=[Q],
        queue_of=["q", "q", None],
    )
    sentences, gains = told(fo.solve(instance, "drfh"), user="a")
    assert gains["weight 2 instead of 1"] == ("weight", 0.0)
    assert gains["weight 2 instead of 1 of the queue q"] == ("weight of a queue", pytest.approx(5 / 3))
    assert "Weight 2 instead of 1 of the queue q would give it 1.67 tasks more (+41.7 %)." in sentences
    assert "More weight of its own would give it nothing." in sentences


def test_nobody_else() -> None:
    """Then no weight changes anything, and it is not tried."""
    alone = fo.solve(ten(tasks=[np.inf, 0], queues=[Q], queue_of=["q", None]), "drfh")
    for of in ({"user": "a"}, {"queue": "q"}):
        sentences, gains = told(alone, **of)
        assert any(sentence.endswith("no weight changes what it gets.") for sentence in sentences)
        assert all("weight" not in kind for kind, _ in gains.values())


def test_siblings_are_users_too() -> None:
    """A user beside a queue, and a queue beside a user, with what they hold: 3 : 1 of 10."""
    allocation = fo.solve(ten(weights=[4, 1], queues=[fo.Queue("q", weight=3)], queue_of=["q", None]), "drfh")
    assert "Beside its siblings it holds 75 % of the gpu (weight 3); b 25 % of the gpu (weight 1)." in told(allocation, queue="q")[0]
    inner = fo.solve(ten(weights=[1, 1], queues=[Q, fo.Queue("in", "q")], queue_of=["q", "in"]), "drfh")
    assert "It is in the queue q, beside the queue in." in told(inner, user="a")[0]
    only = fo.solve(ten(weights=[1, 1], queues=[Q], queue_of=["q", "q"]), "drfh")
    assert "It has no sibling." in told(only, queue="q")[0]


def test_weight_0_is_what_stops_a_user() -> None:
    """Nothing is full; a has its guarantee of 2 of 10 GPUs, and c nothing, because the queue around it has the weight 0."""
    instance = fo.Instance(
        [[10]],
        np.ones((3, 1)),
        users=["a", "b", "c"],
        servers=["s"],
        resources=["gpu"],
        weights=[0, 1, 1],
        guarantees=[2, 0, 0],
        tasks=[np.inf, 3, np.inf],
        queues=[fo.Queue("q", weight=0), fo.Queue("in", "q")],
        queue_of=[None, None, "in"],
    )
    allocation = fo.solve(instance, "drfh")
    assert allocation.tasks_per_user == pytest.approx([2, 3, 0])
    assert "It gets nothing beyond guarantees: its weight is 0." in told(allocation, user="a")[0]
    assert "It gets nothing beyond guarantees: the weight of the queue q is 0." in told(allocation, user="c")[0]
    assert not any("guarantees" in sentence for sentence in told(allocation, user="b")[0])
    assert "c is stopped: nothing is due to it beyond guarantees, because the weight of the queue q is 0." in told(allocation, queue="q")[0]
    flat = instance.replace(queues=(), queue_of=None)
    assert "It gets nothing beyond guarantees: its weight is 0." in told(fo.solve(flat, "drfh"), user="a")[0]


def test_one_change_is_not_several() -> None:
    """c may run nowhere, and elsewhere everything is a's: the change of its constraint gives it nothing."""
    instance = fo.Instance(
        [[4]], [[1], [1]], users=["a", "c"], resources=["gpu"], weights=[1, 0], guarantees=[4, 0], eligibility=[[True], [False]]
    )
    assert "The change that was tried would not give it more." in told(fo.solve(instance, "drfh"), user="c")[0]
