"""The audit of a tree of queues: guarantees, what is asked among siblings, and what does not apply."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from queue_oracle import random_tree
from reference.kept import all_rows

import fairopt as fo
from fairopt.analysis.measures import envy_matrix, largest_envy, violations
from fairopt.analysis.properties import OF_FLAT_LISTS
from fairopt.analysis.rerun import given
from fairopt.instance.remarks import remarks


def tree(held: list[float], queues: list[fo.Queue], queue_of: list[str | None], **changes: Any) -> fo.Allocation:
    """Users of one GPU a task on one server of ten, with so many tasks."""
    instance = fo.Instance([[10]], np.ones((len(held), 1)), resources=["gpu"], queues=queues, queue_of=queue_of, **changes)
    return given(instance, np.array(held)[:, None], "rdm")


def test_who_lacks_what_it_is_guaranteed_and_who_holds_more() -> None:
    """a holds 2.5 of 4 GPUs; its sibling b holds 3.5 beyond its 1, and a user beside them 3."""
    allocation = tree([2.5, 4.5, 3.0], [fo.Queue("a", guarantee={"gpu": 4}), fo.Queue("b", guarantee={"gpu": 1})], ["a", "b", None])
    verdict = fo.audit(allocation, "guarantees")["guarantees"]
    assert verdict.holds is False
    assert verdict.violation == pytest.approx(1.5)
    assert verdict.witness is not None
    assert verdict.witness.users == ("user-1",)
    assert verdict.witness.text == (
        'The queue "a" holds 2.5 of the 4 gpu that it is guaranteed, and asks for 1.5 more. Alone in the cluster it could hold 4. '
        "Held there beyond guarantees: 3.5 by b and 3 by user-3."
    )


def test_what_is_idle_is_said_and_the_deepest_queue_that_lacks_it() -> None:
    """7 of 10 GPUs are idle, and a1 lacks as much as a above it; b holds one more than it is guaranteed."""
    queues = [fo.Queue("a", guarantee={"gpu": 4}), fo.Queue("a1", "a", guarantee={"gpu": 4}), fo.Queue("b", guarantee={"gpu": 1})]
    for held, rest in ((2.0, " Held there beyond guarantees: 1 by b."), (1.0, "")):
        verdict = fo.audit(tree([1, held], queues, ["a1", "b"]), "guarantees")["guarantees"]
        assert verdict.statement == "2 guarantees are not met."
        assert verdict.witness is not None
        assert verdict.witness.text == (
            f'The queue "a1" holds 1 of the 4 gpu that it is guaranteed, and asks for 3 more. '
            f"Alone in the cluster it could hold 4. There, {9 - held:g} gpu is free.{rest}"
        )


def test_what_others_keep_is_not_simply_free() -> None:
    """a keeps 5 of 10 GPUs, as its guarantee and that of b do not fit; b has 5, or 3: of the 5 or 7 that are free, all or 5 are kept."""
    queues = [fo.Queue("a", guarantee={"gpu": 6}, lending_limit={"gpu": 0}), fo.Queue("b", guarantee={"gpu": 6})]
    for held, free, part in ((5, 5, "all of it"), (3, 7, "5 of it")):
        verdict = fo.audit(tree([0, held], queues, ["a", "b"], tasks=[0, np.inf]), "guarantees")["guarantees"]
        assert verdict.witness is not None
        assert verdict.witness.text.endswith(f"There, {free} gpu is free, and other queues keep {part} by lending limits.")


def test_what_children_are_guaranteed_is_no_surplus_of_their_parent() -> None:
    """b has no guarantee of its own, but its child is guaranteed the 6 that b holds: nobody holds more than it is guaranteed."""
    queues = [fo.Queue("a", guarantee={"gpu": 6}), fo.Queue("b"), fo.Queue("b1", "b", guarantee={"gpu": 6})]
    verdict = fo.audit(tree([4, 6], queues, ["a", "b1"]), "guarantees")["guarantees"]
    assert verdict.witness is not None
    assert verdict.witness.text.endswith("No sibling holds more than its guarantee: the guarantees together do not fit.")


def test_a_user_lacks_tasks_of_its_own_guarantee() -> None:
    """3 of 4 tasks. Without a task missing, the property holds."""
    verdicts = [fo.audit(tree([x, 1], [], [None, None], guarantees=[4, 0]), "guarantees")["guarantees"] for x in (3, 4)]
    assert [(verdict.holds, verdict.violation) for verdict in verdicts] == [(False, 1), (True, 0)]
    assert verdicts[0].witness is not None
    assert verdicts[0].witness.text == '"user-1" runs 3 tasks of the 4 guaranteed. Alone in the cluster it could run 4.'


def test_guarantees_are_tested_where_there_is_a_tree() -> None:
    """By default; elsewhere where they are asked for, and then they do not apply."""
    flat = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf")
    assert "guarantees" not in fo.audit(flat, effort=2)
    assert fo.audit(flat, "guarantees")["guarantees"].holds is None
    queued = fo.solve(fo.Instance([[10]], [[1], [1]], queues=[fo.Queue("a")], queue_of=["a", None]), "drfh")
    found = fo.audit(queued, effort=4)
    assert found["guarantees"].statement == "Does not apply: no queue and no user has a guarantee."
    assert all(found[name].holds is None and "here users are in queues" in found[name].statement for name in OF_FLAT_LISTS if name in found)
    assert all(found[name].promised is None for name in found)


def test_envy_is_asked_among_the_users_of_a_queue() -> None:
    """1 task for a1, 3 for a2, 6 for b: a1 envies a2 by 2 tasks, not b by 5. By weights 1 and 3 it envies nobody.

    By weights 4 and 6 the queues have the same.
    """
    queues = [fo.Queue("a", weight=4), fo.Queue("b", weight=6)]
    verdict = fo.audit(tree([1, 3, 6], queues, ["a", "a", "b"]), "envy-freeness")["envy-freeness"]
    assert verdict.holds is False
    assert verdict.violation == pytest.approx(2)
    weighted = tree([1, 3, 6], queues, ["a", "a", "b"], weights=[1, 3, 1])
    assert fo.audit(weighted, "envy-freeness")["envy-freeness"].holds
    nothing = tree([1, 3, 6], queues, ["a", "a", "b"], weights=[1, 0, 1])  # nobody is compared with a user of weight 0
    assert fo.audit(nothing, "envy-freeness")["envy-freeness"].holds


def test_a_slice_is_one_of_what_the_queue_holds() -> None:
    """The users of a hold 4 GPUs: half of them is 2, and a1 has 1. Of the cluster each would have 3 1/3."""
    queues = [fo.Queue("a", weight=4), fo.Queue("b", weight=6)]
    verdict = fo.audit(tree([1, 3, 6], queues, ["a", "a", "b"]), "sharing-incentive")["sharing-incentive"]
    assert verdict.holds is False
    assert verdict.violation == pytest.approx(1)
    assert fo.audit(tree([2, 2, 6], queues, ["a", "a", "b"]), "sharing-incentive")["sharing-incentive"].holds


def test_what_a_limit_keeps_idle_is_not_wasted() -> None:
    """a is limited to 3 GPUs, and b keeps 4 of its 6 to itself: nobody can have more. Without the limit, 7 are idle for nothing."""
    limited = [fo.Queue("a", limit={"gpu": 3})]
    assert fo.audit(tree([3], limited, ["a"]), "pareto")["pareto"].holds
    assert fo.audit(tree([2.5], limited, ["a"]), "pareto")["pareto"].violation == pytest.approx(0.5)
    keeps = [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 6}, lending_limit={"gpu": 2})]
    assert fo.audit(tree([6.0, 0.0], keeps, ["a", "b"], tasks=[np.inf, 0]), "pareto")["pareto"].holds
    wasted = fo.audit(tree([5.5, 0.0], keeps, ["a", "b"], tasks=[np.inf, 0]), "pareto")["pareto"]
    assert wasted.holds is False
    assert wasted.violation == pytest.approx(0.5)


def test_whole_tasks_are_judged_within_the_limits_of_queues() -> None:
    """a is limited to 5 of 9 GPUs: with tasks of 2 it runs 2, and b the other 5. One less of b is one that b could run, and not a."""
    queues = [fo.Queue("a", limit={"gpu": 5}, guarantee={"gpu": 1}), fo.Queue("b", weight=0.5)]
    instance = fo.Instance([[9], [1]], [[2], [1]], resources=["gpu"], queues=queues, queue_of=["a", "b"], eligibility=[[1, 0], [1, 0]])
    best, worse, free = (
        fo.audit(given(instance, np.array([[a, 0], [b, 0]]), "rdm"), "pareto")["pareto"] for a, b in ((2, 5), (2, 4), (0, 9))
    )
    assert (best.holds, free.holds) == (True, True)
    assert worse.violation == pytest.approx(1)
    swapped = fo.Instance(
        [[2], [3]], [[2], [3], [1]], resources=["gpu"], queues=[fo.Queue("a", limit={"gpu": 3})], queue_of=["a", None, None]
    )
    moved = fo.audit(given(swapped, np.array([[0, 1], [0, 0], [2, 0]]), "rdm"), "pareto")["pareto"]
    assert moved.violation == pytest.approx(1)  # with user-1 on the other server, there is room for 3 tasks of user-3
    kept = instance.replace(queues=[fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 3}, lending_limit={"gpu": 1})])
    decided = fo.audit(given(kept, np.array([[1, 0], [1, 0]]), "rdm"), "pareto")["pareto"]
    assert decided.holds is False


@pytest.mark.parametrize("seed", range(12))
def test_whole_tasks_are_judged_by_what_queues_keep_together(seed: int) -> None:
    """One server of 7 GPUs, three queues that keep some, tasks of 1 to 3: better whole tasks exist, or not, by trying all of them."""
    rng = np.random.default_rng(seed)
    guarantees = rng.integers(1, 4, 3)
    queues = [
        fo.Queue(f"q{k}", guarantee={"gpu": float(amount)}, lending_limit={"gpu": float(rng.integers(0, amount))})
        for k, amount in enumerate(guarantees)
    ]
    sizes = rng.integers(1, 4, 4)
    instance = fo.Instance([[7]], sizes[:, None], resources=["gpu"], queues=queues, queue_of=["q0", "q1", "q2", None])
    rows = list(all_rows(instance))

    def fits(tasks: tuple[int, ...]) -> bool:
        used = np.array(tasks) * sizes
        return used.sum() <= 7 and all(used[row.users].sum() <= row.bound for row in rows)

    points = [point for point in itertools.product(*(range(7 // size + 1) for size in sizes)) if fits(point)]
    for point in [points[k] for k in rng.choice(len(points), min(len(points), 4), replace=False)]:
        more = [sum(other) - sum(point) for other in points if all(b >= a for a, b in zip(point, other, strict=True))]
        for exact in (False, True):
            verdict = fo.audit(given(instance, np.array(point)[:, None], "rdm", exact=exact), "pareto")["pareto"]
            assert verdict.holds is (max(more) == 0), (point, verdict)


def test_what_breaks_kept_parts_is_not_pareto_optimal() -> None:
    """a and b keep 2 of 10 GPUs each and use 1 each: c may have 6, has 6.5, and the audit says which limit that is."""
    keeps: dict[str, Any] = {"guarantee": {"gpu": 2}, "lending_limit": {"gpu": 0}}
    queues = [fo.Queue("a", **keeps), fo.Queue("b", **keeps), fo.Queue("c")]
    instance = fo.Instance([[10]], np.ones((3, 1)), tasks=[1, 1, np.inf], resources=["gpu"], queues=queues, queue_of=["a", "b", "c"])
    assert [fo.audit(given(instance, np.array([[1], [1], [x]]), "rdm"), "pareto")["pareto"].holds for x in (5.5, 6, 6.5)] == [
        False,
        True,
        None,
    ]
    (exceeded,) = violations(instance, np.array([[1.0], [1.0], [6.5]]), "rdm", 1e-9)
    assert str(exceeded) == "gpu beside what a and b keep: 6.5, allowed 6"


@pytest.mark.parametrize("seed", range(0, 20, 3))
def test_exact_allocations_of_trees_pass(seed: int) -> None:
    """Nothing that somebody under its limits could use is idle; guarantees that fit are met; nobody envies a sibling without one."""
    instance = random_tree(seed, servers=1)
    found = fo.audit(fo.solve(instance, "drfh"), ["pareto", "guarantees", "envy-freeness"])
    assert found["pareto"].holds
    if not any("exceed" in sentence or "is guaranteed" in sentence for sentence in remarks(instance)):
        assert found["guarantees"].holds is not False


def test_somebody_leaves_a_tree() -> None:
    """The others keep their queues: without a2, everything of a goes to a1, and b has half as before."""
    instance = fo.Instance([[10]], [[1], [1], [1]], queues=[fo.Queue("a"), fo.Queue("b")], queue_of=["a", "a", "b"])
    verdict = fo.audit(fo.solve(instance, "drfh"), "population-monotonicity")["population-monotonicity"]
    assert (verdict.holds, verdict.searched) == (True, 2)  # a1 and a2 are alike, b is not


def test_measured_envy_is_that_of_the_audit() -> None:
    """a1 would have 2 tasks more with what a2 holds, and envies nobody in b."""
    allocation = tree([1, 3, 6], [fo.Queue("a"), fo.Queue("b")], ["a", "a", "b"])
    assert largest_envy(allocation).tasks == pytest.approx(2)
    assert envy_matrix(allocation).tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 0]]
