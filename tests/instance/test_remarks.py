"""What is said of a tree that is allowed but cannot mean what its owner hopes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import fairopt as fo
from fairopt.instance.remarks import remarks


def lab(*queues: fo.Queue, queue_of: list[str | None], **more: Any) -> fo.Instance:
    """Two servers with 8 GPUs each, and a user in each of these queues who needs one GPU."""
    users = [f"u{n + 1}" for n in range(len(queue_of))]
    return fo.Instance(
        [[8], [8]], [[1]] * len(users), queues=queues, queue_of=queue_of, users=users, servers=["A", "B"], resources=["gpu"], **more
    )


def test_nothing_is_said_of_a_flat_list_and_of_a_tree_in_order() -> None:
    """Guarantees that fit exactly fit."""
    assert remarks(fo.Instance([[8]], [[1]])) == ()
    parts = [fo.Queue(f"q{k}", guarantee={"gpu": 1.6}, limit={"gpu": 1.6}, parent="all") for k in range(10)]
    assert remarks(lab(fo.Queue("all", guarantee={"gpu": 16}), *parts, queue_of=[q.name for q in parts])) == ()


def test_guarantees_that_exceed_the_cluster() -> None:
    """By how much, and whose; those of users count in tasks times demand, and a parent's with what is in it."""
    instance = lab(
        fo.Queue("a", guarantee={"gpu": 8}),
        fo.Queue("b", parent="a", guarantee={"gpu": 6}),
        fo.Queue("the rest", guarantee={"gpu": 7.5}),
        queue_of=["b", "the rest", None],
        guarantees=[0, 0, 3],
    )
    assert remarks(instance) == (
        'guarantees of gpu exceed the cluster by 2.5: a 8, "the rest" 7.5 and u3 3, and there are 16; not all of them can be met',
    )


def test_guarantees_that_exceed_a_group_of_servers() -> None:
    """Although they fit into the cluster; a group is named as in its quota."""
    quota = fo.Quota(["A"], guarantee={"gpu": 5}, name="model = A100")
    instance = lab(fo.Queue("a", quotas=[quota]), fo.Queue("b", quotas=[quota]), queue_of=["a", "b"])
    assert remarks(instance) == ("guarantees of gpu exceed model = A100 by 2: a 5 and b 5, and there are 8; not all of them can be met",)


def test_guarantees_on_groups_count_in_the_cluster() -> None:
    """Those of different servers add up; of the same servers the larger one says all."""
    apart = [fo.Quota(["A"], guarantee={"gpu": 6}), fo.Quota(["B"], guarantee={"gpu": 6})]
    assert remarks(lab(fo.Queue("a", quotas=apart), fo.Queue("b", guarantee={"gpu": 5}), queue_of=["a", "b"])) == (
        "guarantees of gpu exceed the cluster by 1: a 12 and b 5, and there are 16; not all of them can be met",
    )
    same = [fo.Quota(["A"], guarantee={"gpu": 6}), fo.Quota(["A", "B"], guarantee={"gpu": 6})]
    assert remarks(lab(fo.Queue("a", quotas=same), fo.Queue("b", guarantee={"gpu": 10}), queue_of=["a", "b"])) == ()


def test_children_that_are_guaranteed_more_than_their_parent() -> None:
    """Where the parent is guaranteed something; else it is a name for what is in it."""
    children = [fo.Queue("b", parent="a", guarantee={"gpu": 3}), fo.Queue("c", parent="a", guarantee={"gpu": 2})]
    assert remarks(lab(fo.Queue("a", guarantee={"gpu": 4}), *children, queue_of=["b", "c"])) == (
        "what is in the queue a is guaranteed 5 gpu together (b 3 and c 2), 1 more than the queue itself (4); "
        "what is guaranteed below a queue adds to its own guarantee",
    )
    assert remarks(lab(fo.Queue("a"), *children, queue_of=["b", "c"])) == ()


def test_guarantees_beyond_a_limit() -> None:
    """Of the children, of a quota whose queue is limited to less, and of a child in a group of servers that its parent is limited on."""
    children = [fo.Queue("b", parent="a", guarantee={"gpu": 3}), fo.Queue("c", parent="a", guarantee={"gpu": 2})]
    assert remarks(lab(fo.Queue("a", limit={"gpu": 4}), *children, queue_of=["b", "c"])) == (
        "the queue a, with what is in it, is guaranteed 5 gpu (b 3 and c 2), but its limit is 4; "
        "what is guaranteed beyond the limit will not be met",
    )
    quota = fo.Quota(["A"], guarantee={"gpu": 5})
    end = "but its limit is 4; what is guaranteed beyond the limit will not be met"
    assert remarks(lab(fo.Queue("a", limit={"gpu": 4}, quotas=[quota]), queue_of=["a"])) == (
        f"the queue a, with what is in it, is guaranteed 5 gpu, {end}",
    )
    limited = fo.Queue("a", quotas=[fo.Quota(["A"], limit={"gpu": 4}, name="model = A100")])
    assert remarks(lab(limited, fo.Queue("b", "a", quotas=[quota]), queue_of=["b"])) == (
        f"the queue a, with what is in it, is guaranteed 5 gpu on model = A100 (b 5), {end}",
    )


def test_queues_without_users() -> None:
    """A queue that has users at any depth is not empty."""
    instance = lab(fo.Queue("a"), fo.Queue("b", parent="a"), fo.Queue("c"), fo.Queue("d", parent="c"), queue_of=["b"])
    assert remarks(instance) == ("no user is in the queues c and d or below them; they get nothing",)


def test_only_a_queue_with_a_guarantee_has_one() -> None:
    """One of 0 is none; one on a group of servers is one."""
    on_a = fo.Quota(["A"], guarantee={"gpu": 2})
    queues = [fo.Queue("a"), fo.Queue("none"), fo.Queue("zero", guarantee={"gpu": 0}), fo.Queue("two", quotas=[on_a])]
    assert remarks(lab(*queues, queue_of=["a"])) == (
        "no user is in the queues none and zero or below them; they get nothing",
        "no user is in the queue two or below it; it gets nothing, and what it is guaranteed goes to others",
    )


def test_a_guarantee_is_named_after_who_has_it() -> None:
    """Queues b and c have none of their own, but user u1 in c and queue d; a has less than what is in it, and e more."""
    inner = [fo.Queue("b"), fo.Queue("c", "b"), fo.Queue("d", "b", guarantee={"gpu": 4})]
    outer = [fo.Queue("a", guarantee={"gpu": 5}), fo.Queue("e", guarantee={"gpu": 7}), fo.Queue("f", "e", guarantee={"gpu": 3})]
    instance = lab(*inner, *outer, queue_of=["c", "d", "a", "f"], guarantees=[3, 0, 6, 0])
    assert remarks(instance)[0] == (
        "guarantees of gpu exceed the cluster by 4: e 7, d 4, u3 6 and u1 3, and there are 16; not all of them can be met"
    )


def test_what_queues_without_users_keep_goes_to_nobody() -> None:
    """b keeps 2 of 3 GPUs, and 1 of 4 on A; c lends all."""
    quota = fo.Quota(["A"], guarantee={"gpu": 4}, lending_limit={"gpu": 3}, name="model = A100")
    empty = fo.Queue("b", guarantee={"gpu": 3}, lending_limit={"gpu": 1}, quotas=[quota])
    assert remarks(lab(fo.Queue("a"), empty, fo.Queue("c", guarantee={"gpu": 1}), queue_of=["a"])) == (
        "no user is in the queues b and c or below them; they get nothing, and what they are guaranteed goes to others, except "
        "2 gpu that b keeps and 1 gpu on model = A100 that b keeps",
    )


def test_kept_parts_that_do_not_fit() -> None:
    """12 and 8 of 16 GPUs: each keeps four fifths of it. That the guarantees do not fit is said first."""
    keeps = [fo.Queue(name, guarantee={"gpu": amount}, lending_limit={"gpu": 0}) for name, amount in (("a", 12), ("b", 8))]
    said = remarks(lab(*keeps, queue_of=["a", "b"]))
    assert len(said) == 2
    assert said[1] == (
        "the guarantees of gpu do not fit together in the cluster, so that 2 queues keep less of it than their lending limits say: "
        "a 9.6 instead of 12 and b 6.4 instead of 8"
    )


def test_solve_says_it(caplog: pytest.LogCaptureFixture) -> None:
    """As a warning, as of users who cannot run anywhere."""
    instance = lab(fo.Queue("a"), fo.Queue("empty"), queue_of=["a"])
    with caplog.at_level(logging.WARNING):
        fo.solve(instance, "drfh")
    assert caplog.messages == list(remarks(instance))
    assert len(caplog.messages) == 1


def test_what_holds_of_many_queues_is_one_sentence() -> None:
    """Ten queues guaranteed 1, with one of 1.5 in each: the first in full, the others by name and number."""
    above = [fo.Queue(f"q{k}", guarantee={"gpu": 1}) for k in range(10)]
    within = [fo.Queue(f"p{k}", parent=f"q{k}", guarantee={"gpu": 1.5}) for k in range(10)]
    assert remarks(lab(*above, *within, queue_of=[queue.name for queue in within])) == (
        "what is in the queue q0 is guaranteed 1.5 gpu together (p0 1.5), 0.5 more than the queue itself (1); what is guaranteed below a "
        "queue adds to its own guarantee; the same holds of 9 other queues: q1, q2, q3, q4, q5 and 4 more",
    )
