"""Results are equal if all that they hold is: copies, pickles, and the same answer to the same question."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.show.equality import same

LAB = fo.Instance(
    [[8, 64], [4, 32]],
    [[1, 4], [2, 4], [1, 8]],
    weights=[1, 2, 1],
    tasks=[np.inf, 3, np.inf],
    users=["vision", "speech", "course"],
    servers=["new", "old"],
    resources=["gpu", "memory"],
)
TRACE = fo.Trace(["vision"], [0.0], [2], [[1, 4]], [5.0], resources=["gpu", "memory"])
RESULTS = {
    "Allocation": lambda: fo.solve(LAB, "drfh"),
    "Allocation in fractions": lambda: fo.solve(LAB, "drfh", exact=True),
    "Schedule": lambda: fo.schedule(LAB, "drfh"),
    "Audit": lambda: fo.audit(fo.solve(LAB, "drfh"), ["pareto", "envy-freeness"]),
    "Comparison": lambda: fo.compare(LAB, notions=["drfh", "tsf"]),
    "Explanation": lambda: fo.explain(fo.solve(LAB, "drfh"), "vision"),
    "Frontier": lambda: fo.frontier(LAB, notions=["drfh"]),
    "WorstCase": lambda: fo.worst_case("drfh:first-fit", users=2, servers=1, tries=3),
    "WorstCaseInBox": lambda: fo.worst_case("uniform", "drfh", cluster=LAB, vary={"weights": (1, 2)}, tries=3),
    "Plan": lambda: fo.plan(LAB, np.array([[8, 0], [0, 0], [0, 4]]), "drfh"),
    "SideBySide": lambda: fo.compare_over_time(TRACE, LAB.replace(tasks=None), ["fifo"]),
    "Regret": lambda: fo.regret(fo.schedule(LAB, "drfh"), "drfh"),
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_copy_and_a_pickle_are_equal(make: Any) -> None:
    """Of every kind of result; another question has another answer."""
    result = make()
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other is not result
        assert other == result
        assert hash(other) == hash(result)
        assert len({other, result}) == 1


def test_the_same_answer_is_equal_and_another_is_not() -> None:
    """How long it took does not count; one number that differs does."""
    first, second = fo.solve(LAB, "drfh"), fo.solve(LAB, "drfh")
    assert first.seconds is not second.seconds
    assert first == second
    assert first != fo.solve(LAB, "tsf")
    assert first != fo.solve(LAB.replace(weights={"speech": 3}), "drfh")
    assert first != "drfh"
    assert first != dataclasses.replace(first, tasks=first.tasks + np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1e-12]]))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0]), np.array([1]), False),
        (np.array([1.0]), [1.0], False),
        (float("nan"), float("nan"), True),
        (1, 1.0, True),
        ({"a": (1, [2.0])}, {"a": (1, [2.0])}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ("a", "b", False),
        (None, 0, False),
    ],
)
def test_values(one: object, other: object, expected: bool) -> None:
    """Part by part."""
    assert same(one, other) == expected


def test_a_part_may_lead_back_to_the_whole() -> None:
    """As the source of a program to the program."""
    one, other = ([1], [1])
    one.append(one)  # type: ignore[arg-type]
    other.append(other)  # type: ignore[arg-type]
    assert same(one, other)
