"""Schedules in fractions: against the loops on paper, against the compiled engine, ties, and what floats cannot tell apart."""

from __future__ import annotations

import logging
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import decimal_tree, instance_in_queues, with_lenders
from reference import schedule as reference
from reference import tree as tree_reference
from strategies import instances

import fairopt as fo
from fairopt.errors import CertificateError
from fairopt.instance import FloatArray, IntArray
from fairopt.scheduling.in_fractions import check_placements, seen_exactly
from fairopt.solvers import PLACEMENTS, Filled

Instance: Any = fo.Instance  # array types do not know Fractions

CRITERIA = ("drfh", "tsf", "cdrf", "asset", "max-min", "psdsf", "rpsdsf")
RULES: list[tuple[str, dict[str, Any]]] = [
    *(("best-fit", {"metric": metric}) for metric in ("l1", "l2", "cosine", "dot", "tightest")),
    *((name, {}) for name in ("first-fit", "worst-fit", "random-round-robin", "random-server", "random", "joint")),
    ("slots", {"slots": 3}),
]
TIES: list[Any] = ["index", "largest-demand", "random"]


def order_of(allocation: fo.Allocation) -> list[tuple[int, int]]:
    """User and single server of each task."""
    return list(zip(allocation.trace.users.tolist(), allocation.trace.servers.tolist(), strict=True))


@pytest.mark.parametrize("rule", range(len(RULES)))
@settings(max_examples=12)
@given(
    instance=instances(whole=True, max_servers=3), criterion=st.sampled_from(CRITERIA), ties=st.sampled_from(TIES), seed=st.integers(0, 99)
)
def test_task_by_task(rule: int, instance: fo.Instance, criterion: str, ties: Any, seed: int) -> None:
    """The loops on paper give the same user and server each time, and so does the compiled engine."""
    placement, options = RULES[rule]
    instance = instance.replace(capacities=instance.capacities / 10, demands=instance.demands / 10)
    expected = reference.schedule(instance, criterion, placement, ties=ties, seed=seed, **options)
    exact, compiled = (
        fo.schedule(instance, criterion, placement=placement, ties=ties, seed=seed, record=True, exact=exact, **options)
        for exact in (True, False)
    )
    assert order_of(exact) == order_of(compiled) == expected
    assert exact.exact is not None
    assert exact.exact.tasks.astype(float).tolist() == compiled.tasks.tolist()
    assert np.allclose(exact.shares, compiled.shares)
    assert exact.certificate.exact


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "slots"])
@settings(max_examples=12)
@given(instance=instances(whole=True), ties=st.sampled_from(TIES))
def test_first_block(placement: str, instance: fo.Instance, ties: Any) -> None:
    """Stops where the lowest user does not fit."""
    instance = instance.replace(capacities=instance.capacities / 10, demands=instance.demands / 10)
    expected = reference.schedule(instance, "drfh", placement, ties=ties, first_block=True, slots=14)
    answer = fo.schedule(instance, "drfh", placement=placement, ties=ties, stop="first-block", record=True, exact=True)
    assert order_of(answer) == expected


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit", "random", "random-round-robin", "random-server", "slots"])
def test_trees(placement: str) -> None:
    """Guarantees, limits, tiers, weights of 0 and what queues keep, as on paper."""
    for seed in (*range(0, 24, 3), 27, 84):  # 27, 84: the only unmet guarantee is the first amount of the tree
        instance = decimal_tree(with_lenders(instance_in_queues(seed), seed))
        criterion, ties = ("drfh", "tsf", "asset", "max-min")[seed % 4], TIES[seed // 3 % 3]
        share = "sum" if criterion == "max-min" or seed % 8 > 5 else "dominant"
        expected = tree_reference.schedule(instance, criterion, placement, share, ties=ties, seed=seed)
        options = {"slots": 3} if placement == "slots" else {}
        answer = fo.schedule(
            instance,
            criterion,
            placement=placement,
            ties=ties,
            seed=seed,
            record=True,
            queue_share=share,
            exact=True,
            **options,  # type: ignore[arg-type]
        )
        assert order_of(answer) == expected, seed


@settings(max_examples=20)
@given(instance=instances(), criterion=st.sampled_from(CRITERIA), seed=st.integers(0, 9))
def test_time_division_as_compiled(instance: fo.Instance, criterion: str, seed: int) -> None:
    """Demands that differ between servers."""
    exact, compiled = (
        fo.schedule(instance, criterion, placement="joint", sharing="tdm", ties="random", seed=seed, record=True, exact=exact)
        for exact in (True, False)
    )
    assert order_of(exact) == order_of(compiled)


def test_a_hair_too_large() -> None:
    """1/3 + 1/3 + 1/3 fits into 1; with 10^-30 more it does not, and no float can tell."""
    third, hair = Fraction(1, 3), Fraction(1, 10**30)
    assert fo.schedule(Instance([[1]], [[third]]), exact=True).tasks_per_user.tolist() == [3]
    assert fo.schedule(Instance([[1]], [[third + hair]]), exact=True).tasks_per_user.tolist() == [2]
    assert fo.schedule(Instance([[1]], [[third + hair]])).tasks_per_user.tolist() == [3]


def test_a_tie_is_a_tie() -> None:
    """Of two users with 1/3 and 1/3 + 10^-30 of the server the first has the smaller share; of two that are equal the first in order."""
    hair = Fraction(1, 10**30)
    two = Instance([[10]], [[1 + hair], [1]])
    assert order_of(fo.schedule(two, exact=True, record=True))[:4] == [(0, 0), (1, 0), (1, 0), (0, 0)]
    same = Instance([[10]], [[1], [1]])
    assert order_of(fo.schedule(same, exact=True, record=True))[:4] == [(0, 0), (1, 0), (0, 0), (1, 0)]


def test_a_function_chooses() -> None:
    """It sees floats, and goes the same way as the rule that it is."""

    def first(user: int, free: FloatArray, demand: FloatArray, fits: IntArray) -> int:
        assert free.dtype == demand.dtype == float
        return int(fits[0])

    instance = Instance([[0.3, 1.2], [0.7, 0.4]], [[0.1, 0.2], [0.1, 0.1]], counts=[2, 1])
    by_rule, own = (fo.schedule(instance, placement=placement, exact=True, record=True) for placement in ("first-fit", first))
    assert order_of(by_rule) == order_of(own)
    tree = decimal_tree(instance_in_queues(3))
    by_rule, own = (fo.schedule(tree, placement=placement, exact=True, record=True) for placement in ("first-fit", first))
    assert order_of(by_rule) == order_of(own)


def test_slots_are_counted_exactly() -> None:
    """A server of 3/7 of the largest holds 3 of its 7 slots, and a task of 2/7 + 10^-20 takes 3."""
    instance = Instance([[1], [Fraction(3, 7)]], [[Fraction(2, 7)], [Fraction(2, 7) + Fraction(1, 10**20)]])
    slots: Any = PLACEMENTS["slots"]
    seen = seen_exactly(instance, slots(slots=7))
    assert seen.capacities.ravel().tolist() == [7, 3]
    assert seen.demands.ravel().tolist() == [2, 3]


def test_forged_placements_are_refused() -> None:
    """A task too many, on the wrong server, or of a user without tasks left."""
    instance = Instance([[Fraction(1)], [1]], [[Fraction(1, 3)], [1]], eligibility=[[True, False], [True, True]], tasks=[np.inf, 1])

    def filled(*pairs: tuple[int, int]) -> Filled:
        users, servers = np.array(pairs, np.int64).T
        return Filled(np.zeros((2, 2), np.int64), users, servers, None)

    check_placements(instance, filled((0, 0), (0, 0), (0, 0), (1, 1)), "rdm")
    for wrong in (filled((0, 0), (0, 0), (0, 0), (0, 0)), filled((0, 1)), filled((1, 0), (1, 1))):
        with pytest.raises(CertificateError):
            check_placements(instance, wrong, "rdm")
    with pytest.raises(CertificateError):
        check_placements(instance, filled((1, 1), (0, 0), (0, 0), (0, 0), (0, 0)), "tdm")


def test_too_long(caplog: pytest.LogCaptureFixture) -> None:
    """Refused with the hours that it would take; and a task that fits nowhere is named."""
    with pytest.raises(fo.Unsupported, match="hours"):
        fo.schedule(Instance([[10**6]], [[1], [2]], counts=[10**6]), placement="best-fit", exact=True)
    with caplog.at_level(logging.WARNING):
        fo.schedule(Instance([[1]], [[2], [1]], users=["A", "B"]), exact=True)
    assert "a task of A is larger" in caplog.text


def test_asked_again() -> None:
    """An audit runs the schedule again, in fractions too."""
    answer = fo.schedule(Instance([[1]], [[Fraction(1, 3)], [Fraction(1, 3)]]), exact=True)
    again = fo.audit(answer)["population-monotonicity"]
    assert again.holds
