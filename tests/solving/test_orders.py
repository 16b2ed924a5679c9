"""Queues that serve their children one after the other (`fairopt.Queue.order`): against the oracle of trees, and what must hold of all.

The oracle is ``queue_oracle``, LPs of SciPy and in fractions by the definition: of the children of a listed queue only the first rises.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_oracle import ask, exact_shares, gap, random_tree, share_per_task, with_orders

import fairopt as fo
from fairopt.instance.aggregation import merge
from fairopt.models.drfh import DRFH
from fairopt.models.share_notion import ShareNotion

BOUND = 1e-8
GPU = ("gpu",)


def pool(capacity: Any, queues: list[fo.Queue], queue_of: list[str | None], **data: Any) -> fo.Instance:
    """One server with one resource, of which each task takes 1."""
    return fo.Instance([[capacity]], [[1]] * len(queue_of), queues=queues, queue_of=queue_of, resources=GPU, **data)


def two_queues(order: Any = "listed", **data: Any) -> fo.Instance:
    """8 GPUs; A is listed and B fair, with two users of 6 tasks each."""
    return pool(8, [fo.Queue("A", order=order), fo.Queue("B")], ["A", "A", "B", "B"], tasks=[6] * 4, **data)


# The oracle ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 20, 4))
def test_shares_are_those_of_the_oracle(first: int) -> None:
    """Guarantees, limits, tiers, weights over six orders, constraints; the shares of queues in turn as sums and dominant."""
    for seed in range(first, first + 4):
        instance = with_orders(random_tree(seed), seed)
        guarantees: Any = "clamp" if seed % 3 == 1 else "surplus"
        assert gap(*ask(instance, "drfh", guarantees, "sum" if seed % 2 else "dominant")) <= BOUND, seed


def test_fractions_are_those_of_the_oracle() -> None:
    """On one server every share is a fraction; proved without a tolerance."""
    listed = 0
    for seed in (1, 2, 3, 5, 6, 10, 11, 57, 67, 84, 85):  # the last four have floors, for which the oracle solves LPs
        instance = with_orders(random_tree(seed, servers=1), seed)
        listed += int(instance.tree.listed.sum())
        notion = fo.NOTIONS["drfh"]()
        assert isinstance(notion, ShareNotion)
        per_task: Any = notion.share_per_task(instance.exact)
        found = fo.solve(instance, "drfh", exact=True).exact
        assert found is not None
        expected = exact_shares(instance, share_per_task(instance, "drfh"))
        actual = [float(tasks * share) if tasks else 0.0 for tasks, share in zip(found.tasks_per_user, per_task, strict=True)]
        assert actual == pytest.approx([float(share) for share in expected], rel=1e-12, abs=1e-15), seed
    assert listed > 10


@pytest.mark.parametrize("solver", ["highs", "cvxpy", "pyomo"])
def test_engines_agree(solver: str) -> None:
    """A listed queue of queues, one of which is listed itself, on servers that not all may use."""
    queues = [fo.Queue("lab", weight=2, order="listed"), fo.Queue("x", "lab"), fo.Queue("y", "lab", order="listed"), fo.Queue("club")]
    instance = fo.Instance(
        [[8, 16], [4, 32]],
        [[1, 2], [2, 1], [1, 4], [1, 1], [1, 3]],
        eligibility=[[1, 0], [1, 1], [0, 1], [1, 1], [1, 1]],
        queues=queues,
        queue_of=["x", "x", "y", "y", "club"],
        tasks=[3, 2, np.inf, np.inf, np.inf],
    )
    exact = fo.solve(instance, "drfh", exact=True)
    assert fo.solve(instance, "drfh", solver=solver).tasks_per_user == pytest.approx(exact.tasks_per_user, rel=1e-9)


# By hand -------------------------------------------------------------------------------------------------------------------------


def test_the_first_user_has_all_that_the_queue_can_get() -> None:
    """Both queues rise to 4: A by its first user alone, B by both; whole tasks, greedy schedules and fractions say the same."""
    instance = two_queues()
    for options in ({}, {"guarantees": "clamp"}, {"integral": True}, {"queue_share": "sum"}, {"exact": True}):
        assert fo.solve(instance, "drfh", **options).tasks_per_user.tolist() == [4, 0, 2, 2], options
    assert fo.schedule(instance, "drfh").tasks_per_user.tolist() == [4, 0, 2, 2]
    assert fo.solve(two_queues("fair"), "drfh").tasks_per_user.tolist() == [2, 2, 2, 2]


def test_the_next_user_goes_on_where_the_first_has_all_its_tasks() -> None:
    """Of 20 GPUs A gets 10: 6 for the first, whatever the weights inside are, and 4 for the second."""
    instance = two_queues().replace(capacities=[[20]], weights=[1, 9, 1, 1], tasks=[6, 6, 8, 8])
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([6, 4, 5, 5])


def test_a_user_waits_for_one_who_stops_at_another_resource() -> None:
    """The first user runs on the first server alone; when that is full, the second user has what is left of the queue's part."""
    instance = fo.Instance(
        [[2], [10]], [[1]] * 3, eligibility=[[1, 0], [1, 1], [1, 1]], queues=[fo.Queue("A", order="listed")], queue_of=["A", "A", None]
    )
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([2, 4, 6])


def test_guarantees_come_before_the_order() -> None:
    """ben is guaranteed 2 of 8 GPUs; the rest of A's half goes to ann, who comes first. In the queue's own guarantee ann comes first."""
    own = two_queues(guarantees=[0, 2, 0, 0])
    assert fo.solve(own, "drfh").tasks_per_user.tolist() == [3, 2, 1.5, 1.5]
    of_queue = two_queues().replace(queues={"A": {"guarantee": {"gpu": 7}}})
    assert fo.solve(of_queue, "drfh").tasks_per_user == pytest.approx([6, 1.5, 0.25, 0.25])


def test_tiers_come_before_the_order() -> None:
    """A tier is a rank in the whole cluster: the second queue of the listed one has a higher one."""
    queues = [fo.Queue("A", order="listed"), fo.Queue("x", "A"), fo.Queue("y", "A", tier=1)]
    assert fo.solve(pool(8, queues, ["x", "y", None]), "drfh").tasks_per_user.tolist() == [0, 8, 0]


def test_users_of_a_listed_queue_do_not_merge() -> None:
    """Identical users are one row only in a fair queue; of two notions of one's own, too."""
    assert merge(two_queues()).instance.users == ("user-1", "user-2", "user-3")

    class Own(DRFH):
        def share_per_task(self, instance: fo.Instance) -> Any:
            return super().share_per_task(instance)

    assert not Own().is_symmetric
    assert fo.solve(two_queues(), Own()).tasks_per_user.tolist() == [4, 0, 2, 2]


# What must hold of every tree ----------------------------------------------------------------------------------------------------

LISTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(max_examples=15)
@given(first=LISTS, second=LISTS, weights=st.tuples(st.integers(1, 3), st.integers(1, 3)), capacity=st.integers(1, 30))
def test_one_resource(first: list[int], second: list[int], weights: tuple[int, int], capacity: int) -> None:
    """With one resource the order changes nothing outside of the queue, and inside it is first come, first served.

    So does an order of a queue with one child, and a queue without a property around a listed one.
    """
    queue_of: list[str | None] = [*["A"] * len(first), *["B"] * len(second)]

    def solve(*queues: fo.Queue) -> list[Fraction]:
        found = fo.solve(pool(capacity, list(queues), queue_of, tasks=first + second), "drfh", exact=True).exact
        assert found is not None
        return list(found.tasks_per_user)

    other = fo.Queue("B", weight=weights[1])
    fair = solve(fo.Queue("A", weight=weights[0]), other)
    listed = solve(fo.Queue("A", weight=weights[0], order="listed"), other)
    size, rest = len(first), sum(fair[: len(first)])
    assert listed[size:] == fair[size:]
    for tasks, wanted in zip(listed[:size], first, strict=True):
        assert tasks == min(wanted, rest)
        rest -= tasks
    around = fo.Queue("around", weight=weights[0])
    assert solve(around, fo.Queue("A", "around", weight=7, order="listed"), other) == listed
    alone = fo.Queue("around", weight=weights[0], order="listed")
    assert solve(alone, fo.Queue("A", "around", weight=7, order="listed"), other) == listed
    assert solve(alone, fo.Queue("A", "around", weight=7), other) == fair


# Who refuses what ----------------------------------------------------------------------------------------------------------------


def test_what_does_not_follow_an_order() -> None:
    """A reading of trees, and notions that take the limits of queues alone."""
    with pytest.raises(fo.Unsupported, match=r'tree="nested" supports only weights > 0 and limits, and queue "A" has the order "listed"'):
        fo.solve(two_queues(), "drfh", tree="nested")
    with pytest.raises(
        fo.Unsupported, match=r'"proportional" takes the .*limits of queues, but not their order, and queue "A" has the order'
    ):
        fo.solve(two_queues(), "proportional")


def test_bad_orders() -> None:
    """A word that is no order, and a listed queue of users and queues."""
    for order in ("fifo", "", None, 1, ["listed"]):
        with pytest.raises(fo.InvalidInstance, match=r'^queue "A": there is no order .* of a queue; use "fair" \(by weights\) or "listed"'):
            fo.Queue("A", order=order)  # type: ignore[arg-type]
    queues = [fo.Queue("A", order="listed"), fo.Queue("x", "A")]
    with pytest.raises(fo.InvalidInstance, match=r'^queue "A": its order is "listed", but it holds both user "user-1" and queue "x"'):
        pool(1, queues, ["A", "x"])


# What is said --------------------------------------------------------------------------------------------------------------------


def nested_lists() -> fo.Instance:
    """8 GPUs; lab serves A before B, A serves ann before ben, and club has nobody before it."""
    queues = [fo.Queue("lab", order="listed"), fo.Queue("A", "lab", order="listed"), fo.Queue("B", "lab"), fo.Queue("club")]
    users = ["ann", "ben", "bea", "cleo"]
    return pool(8, queues, ["A", "A", "B", "club"], users=users, tasks=[3, 6, 6, 9], weights=[1, 4, 1, 1])


def test_nobody_is_compared_inside_a_listed_queue() -> None:
    """ben would run more with what ann holds for its weight, and bea has nothing: in their queues that is no envy."""
    allocation = fo.solve(nested_lists(), "drfh")
    assert allocation.tasks_per_user.tolist() == [3, 1, 0, 4]
    audit = fo.audit(allocation, effort=20)  # of lies, which are not looked at here: the default tries 200
    for name in ("envy-freeness", "sharing-incentive", "pareto", "population-monotonicity"):
        assert audit[name].holds, name
    for name in ("envy-freeness", "sharing-incentive"):
        told = "Nobody is compared inside lab and A: the order is listed, first come, first served."
        assert audit[name].statement.endswith(told), name
    fair = fo.audit(fo.solve(nested_lists().replace(queues={"A": {"order": "fair"}}), "drfh"), properties=["envy-freeness"])
    assert "Nobody is compared inside lab:" in fair["envy-freeness"].statement


def test_who_comes_before_is_explained() -> None:
    """Of a user, of a queue, and why a weight has no effect."""
    allocation = fo.solve(nested_lists(), "drfh")
    text = " ".join(str(fo.explain(allocation, "ben")).split())
    assert "It waits for ann, who comes before it in the queue A." in text
    assert 'The weight of ben has no effect in the tree, because the order in the queue A is "listed"' in text
    assert "In their queue ann is served before ben, so their weights do not compare them." in text
    text = " ".join(str(fo.explain(allocation, queue="B")).split())
    assert "It waits for the queue A, which comes before B in the queue lab." in text
    assert "Beside its siblings, served one after the other, it holds nothing" in text
    assert "It waits for the queue A, which comes before B in the queue lab." in " ".join(str(fo.explain(allocation, "bea")).split())
    assert "It serves one after the other: ann and ben." in " ".join(str(fo.explain(allocation, queue="A")).split())


def test_the_program_shows_the_order() -> None:
    """As text and as LaTeX."""
    program = fo.formulate(nested_lists(), "drfh")
    assert "of the children of a queue that serves one after the other only the first that is not stopped rises" in str(program)
    assert "A, w = 1, one after the other" in str(program)
    assert "the first child that is not stopped rises alone" in program.to_latex()


def test_files_and_changes(tmp_path: Path) -> None:
    """The key order, in each format; a change by name."""
    instance = nested_lists()
    for name in ("lab.yaml", "lab.json", "folder", "lab.xlsx"):
        fo.save(instance, tmp_path / name)
        assert fo.load(tmp_path / name) == instance, name
    assert [queue.order for queue in fo.load(tmp_path / "lab.yaml", changes={"queues.A.order": "fair"}).queues] == ["listed", *["fair"] * 3]
    with pytest.raises(fo.InvalidInstance, match=r"""queue "A", order: expected 'fair' or 'listed', found the text "fifo\""""):
        fo.load(tmp_path / "lab.yaml", changes={"queues.A.order": "fifo"})
    with pytest.raises(fo.InvalidInstance, match=r'queue "lab", order: its order is "listed", but it holds both user "ann" and queue "A"'):
        fo.load(tmp_path / "lab.yaml", changes={"users.ann.queue": "lab"})
