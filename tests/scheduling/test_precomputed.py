"""Precomputed DRF and EDRF: the paper's numbers, the formulas in fractions, task-by-task filling by the book, and what always holds."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.precomputed import Book
from strategies import instances

import fairopt as fo
from fairopt.solvers import fill_lowest_first, precompute

EXAMPLE = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
ONE_RESOURCE = fo.Instance([[35]], [[2], [4], [10]])


# By the book, in fractions -------------------------------------------------------------------------------------------------------


def whole_pools() -> st.SearchStrategy[fo.Instance]:
    """Small integers on one server, so that ties and whole quotients are common."""
    return instances(max_users=5, one_server=True, whole=True)


def of_user(instance: fo.Instance, x: dict[int, int]) -> list[float]:
    """All users, with 0 for those who cannot run."""
    return [float(x.get(n, 0)) for n in range(instance.n_users)]


@given(whole_pools())
@settings(max_examples=300)
def test_cycles_are_those_of_the_book(instance: fo.Instance) -> None:
    """Floors of quotients that are whole in exact arithmetic included: there are many among small integers."""
    assert fo.precomputed_drf(instance, cycles=None).tasks_per_user.tolist() == of_user(instance, Book(instance).cycles())


@given(whole_pools(), st.booleans(), st.booleans())
@settings(max_examples=300)
def test_filling_is_that_of_the_book(instance: fo.Instance, go_on: bool, largest_first: bool) -> None:
    """The heap serves the user that a search through all would, ties as stated."""
    book = Book(instance)
    share = np.array([float(book.share.get(n, 0)) for n in range(instance.n_users)])
    ties: Any = "largest-demand" if largest_first else "index"
    ours = fill_lowest_first(instance.capacities[0], instance.demands, share, instance.tasks, ties=ties, go_on=go_on)
    theirs = book.fill(dict.fromkeys(book.users, 0), go_on=go_on, largest_first=largest_first)
    assert ours.tolist() == of_user(instance, theirs)


@given(whole_pools())
def test_the_end_is_filled_from_what_the_cycles_gave(instance: fo.Instance) -> None:
    """The final round of section 5; after it no task of anybody fits."""
    book = Book(instance)
    x = book.fill(book.cycles(), go_on=True)
    assert fo.precomputed_drf(instance, cycles=None, finish=True).tasks_per_user.tolist() == of_user(instance, x)
    assert not any(book.fits(n, x) for n in book.users if x[n] + 1 <= book.tasks[n])


@given(whole_pools(), st.sampled_from([1, 2, None]), st.booleans())
def test_in_fractions(instance: fo.Instance, cycles: int | None, finish: bool) -> None:
    """The book's numbers, and the floats': whole numbers of tasks, and turns that are fractions."""
    instance = instance.replace(capacities=instance.capacities / 10, demands=instance.demands / 10)
    exact, floats = (fo.precomputed_drf(instance, cycles=cycles, finish=finish, exact=exact) for exact in (True, False))
    assert exact.exact is not None
    assert exact.tasks_per_user.tolist() == floats.tasks_per_user.tolist() == exact.exact.tasks_per_user.astype(float).tolist()
    assert np.allclose(exact.shares, floats.shares)
    assert [float(cycle.turns) for cycle in exact.trace] == pytest.approx([cycle.turns for cycle in floats.trace])
    assert all(isinstance(cycle.turns, Fraction) for cycle in exact.trace)
    if cycles is None:
        book = Book(instance)
        x = book.cycles()
        assert exact.tasks_per_user.tolist() == of_user(instance, book.fill(x, go_on=True) if finish else x)


def test_fractions_that_floats_cannot_tell_apart() -> None:
    """Three thirds fit, and a hair more does not: of that the floor gives two."""
    third, hair = Fraction(1, 3), Fraction(1, 10**30)
    assert fo.precomputed_drf(fo.Instance([[1]], np.array([[third]])), exact=True).tasks_per_user.tolist() == [3]
    assert fo.precomputed_drf(fo.Instance([[1]], np.array([[third + hair]])), exact=True).tasks_per_user.tolist() == [2]


# What always holds ---------------------------------------------------------------------------------------------------------------


@given(instances(max_users=8, one_server=True), st.sampled_from([1, 2, None]), st.booleans())
def test_tasks_are_whole_and_fit(instance: fo.Instance, cycles: int | None, finish: bool) -> None:
    """Whatever the instance; and more cycles never take anything away."""
    allocation = fo.precomputed_drf(instance, cycles=cycles, finish=finish)
    x = allocation.tasks_per_user
    assert (x == np.floor(x)).all()
    assert allocation.certificate.feasibility <= 1e-8
    assert np.isnan(allocation.certificate.worst)  # nothing is proved of an approximation
    assert (x >= fo.precomputed_drf(instance).tasks_per_user).all()


@given(instances(max_users=8, one_server=True))
def test_one_cycle_is_the_first_round_of_edrf_rounded_down(instance: fo.Instance) -> None:
    """Without the floor, k w*/w[n] is the level of the first round over w[n]: of users with enough tasks."""
    unlimited = instance.replace(tasks=None)
    rounds = fo.edrf_rounds(unlimited)
    if not rounds:
        assert not unlimited.servable.any()
        return
    x = fo.precomputed_drf(unlimited).tasks_per_user
    assert (x <= rounds[0].tasks * (1 + 1e-9) + 1e-9).all()
    assert (x > rounds[0].tasks * (1 - 1e-9) - 1)[unlimited.servable].all()


@given(instances(max_users=6, one_server=True))
def test_rounds_end_in_drf(instance: fo.Instance) -> None:
    """As the linear programs of another engine find it; each round fills a resource that all who stop there demand, and levels rise."""
    rounds = fo.edrf_rounds(instance)
    exact = fo.solve(instance, "drf", solver="highs").tasks_per_user
    stopped = np.zeros(instance.n_users, bool)
    for step in rounds:
        users = [instance.index(user) for user in step.users]
        np.testing.assert_allclose(step.tasks[users], exact[users], rtol=1e-6, atol=1e-9)
        assert (step.tasks <= exact * (1 + 1e-6) + 1e-9).all()
        stopped[users] = True
        full = [instance.resources.index(name) for name in step.saturated]
        assert full
        assert (instance.demands[np.ix_(users, full)] > 0).any(axis=1).all()
    np.testing.assert_allclose(exact[~stopped], np.where(instance.servable, instance.tasks, 0)[~stopped], rtol=1e-6)
    assert all(a.level < b.level for a, b in pairwise(rounds))


# The paper's numbers (those that are data are in fairopt/papers, and read by tests/reproduction/test_reproducing.py) --------------


def test_the_order_of_operations_does_not_matter() -> None:
    """All quotients are whole here. Section 3.4 finds k' / w[n] less accurate; a bare floor of the printed k w*/w[n] loses tasks too."""
    rng = np.random.default_rng(5)
    lost = 0
    for _ in range(200):
        demands = rng.integers(1, 13, (5, 1)).astype(float)
        capacity = np.array([5.0 * 27720 * rng.integers(1, 20)])  # 27720 is a multiple of all demands: user n gets capacity / (5 d[n])
        share = (demands / capacity).max(axis=1)
        ratio = share.max() / share
        printed = (capacity / (ratio @ demands)).min() * ratio
        simplified = (capacity / (demands / share[:, None]).sum(axis=0)).min() / share
        (cycle,) = precompute(capacity, demands, share, np.full(5, np.inf))
        assert cycle.tasks.tolist() == (capacity / 5 / demands[:, 0]).tolist()
        np.testing.assert_allclose(simplified, cycle.tasks, rtol=1e-14)
        lost += int((np.floor(printed) < cycle.tasks).any())
    assert lost > 0


def test_the_printed_algorithm_stops_too_early() -> None:
    """Section 6.2: 2 and 8 tasks with (33, 3) left, and user B could have three more."""
    capacity, demands = np.array([59.0, 19.0]), np.array([[1.0, 4.0], [3.0, 1.0]])
    share, endless = (demands / capacity).max(axis=1), np.full(2, np.inf)
    stopped = fill_lowest_first(capacity, demands, share, endless, go_on=False)
    assert stopped.tolist() == [2, 8]
    assert (capacity - stopped @ demands).tolist() == [33, 3]
    assert fill_lowest_first(capacity, demands, share, endless).tolist() == [2, 11]


def test_secondary_cycle() -> None:
    """Section 6.1: of 9 units, users with 2 and 4 take 8 in one turn."""
    (first,) = precompute(np.array([9.0]), np.array([[2.0], [4.0]]), np.array([2 / 35, 4 / 35]), np.full(2, np.inf))
    assert (first.tasks.tolist(), first.left.tolist()) == ([2, 1], [1])


def test_ties_of_section_3_1_go_to_the_larger_share() -> None:
    """B first, then A twice: with room for one task of either, B has it."""
    capacity, demands = np.array([3.0, 4.0]), np.array([[1.0, 4.0], [3.0, 1.0]])
    share = np.array([2 / 9, 1 / 3])
    for ties, expected in (("largest-demand", [0, 1]), ("index", [1, 0])):
        assert fill_lowest_first(capacity, demands, share, np.full(2, np.inf), ties=ties).tolist() == expected  # type: ignore[arg-type]


# Use -----------------------------------------------------------------------------------------------------------------------------


def test_the_allocation_says_that_it_is_approximate() -> None:
    """In the repr, in the data, which JSON can hold, and beside how it came about."""
    allocation = fo.precomputed_drf(ONE_RESOURCE, cycles=None)
    assert "approximate by precomputed-drf" in repr(allocation)
    assert "not an optimum" in repr(allocation)
    claims = json.loads(json.dumps(allocation.to_dict(), allow_nan=False))["certificate"]
    assert claims == {**dict.fromkeys(("optimality", "fairness", "worst")), "feasibility": 0, "whole_tasks": True} | {
        "greedy": False,
        "approximate": True,
        "best_found": False,
    }
    assert (allocation.notion, allocation.solver, allocation.prices) == ("drf", "precomputed-drf", None)
    assert allocation.details == {"cycles": 2, "finished": False}
    assert [cycle.tasks.tolist() for cycle in allocation.trace] == [[5, 2, 1], [3, 0, 0]]
    assert [cycle.left.tolist() for cycle in allocation.trace] == [[7], [1]]
    assert fo.precomputed_drf(ONE_RESOURCE, cycles=1).details["cycles"] == 1


def test_who_demands_nothing_has_all_tasks_and_who_cannot_run_none() -> None:
    """Neither takes part in a cycle."""
    pool = fo.Instance([[9, 0]], [[0, 0], [2, 0], [0, 1]], tasks=[7.5, np.inf, np.inf])
    assert fo.precomputed_drf(pool).tasks_per_user.tolist() == [7, 4, 0]


def test_a_row_that_stands_for_no_server_is_no_server() -> None:
    """One server is what counts say."""
    pool = fo.Instance([[5, 5], [9, 18]], [[1, 4], [3, 1]], counts=[0, 1])
    assert fo.precomputed_drf(pool).tasks.tolist() == [[0, 3], [0, 2]]


@pytest.mark.parametrize(
    ("instance", "options", "error", "message"),
    [
        (fo.Instance([[1], [1]], [[1]]), {}, fo.Unsupported, "is defined on one server"),
        (fo.Instance([[1]], [[1]], rates=[[2]]), {}, fo.Unsupported, "the instance gives rates"),
        (EXAMPLE, {"cycles": 0}, fo.InvalidInstance, "cycles is 0; give a whole number >= 1"),
        (EXAMPLE, {"cycles": 1.5}, fo.InvalidInstance, "cycles is 1.5"),
        ("pool", {}, fo.InvalidInstance, "expected an Instance, got str"),
    ],
)
def test_refusals(instance: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    """What, where, and what to do."""
    with pytest.raises(error, match=message):
        fo.precomputed_drf(instance, **options)


@pytest.mark.parametrize("options", [{}, {"cycles": None, "finish": True}, {"cycles": None, "finish": True, "exact": True}])
def test_a_resource_of_the_cluster_is_one_of_the_pool(options: dict[str, Any]) -> None:
    """The same tasks and shares; and the rounds end alike."""
    demands = [[1, 1], [1, 0], [2, 1]]
    pool = fo.Instance([[20, 10]], demands, tasks=[30, 30, 4], resources=["cpu", "licences"])
    other = fo.Instance([[20]], demands, tasks=[30, 30, 4], resources=["cpu"], shared={"licences": 10})
    one, two = (fo.precomputed_drf(each, **options) for each in (pool, other))
    assert (one.tasks_per_user.tolist(), one.shares.tolist()) == (two.tasks_per_user.tolist(), two.shares.tolist())
    rounds = [[(step.level, step.saturated, step.tasks.tolist()) for step in fo.edrf_rounds(each)] for each in (pool, other)]
    assert rounds[0] == rounds[1]


def test_named_limits_are_like_resources_that_count_in_no_share() -> None:
    """By hand: of user 1 and 3 five tasks at most, none of user 3, 9 cpu of each. The rounds end in DRF; fillings stay within."""
    limits = [fo.Limit("few", 5, users=["1", "3"]), fo.Limit("none", 0, users=["3"]), fo.Limit("each", 9, resource="cpu", each="user")]
    pool = fo.Instance([[20]], [[1, 1], [1, 0], [2, 1]], resources=["cpu"], shared={"licences": 10}, users=["1", "2", "3"], limits=limits)
    rounds = fo.edrf_rounds(pool)
    assert [step.saturated for step in rounds] == [("each of 2",), ("few",)]
    assert rounds[-1].tasks == pytest.approx(fo.solve(pool, "drf").tasks_per_user)
    for exact in (False, True):
        assert fo.precomputed_drf(pool, cycles=None, finish=True, exact=exact).tasks_per_user.tolist() == [5, 9, 0]
