"""A program as plain data: what it says is the program, by arithmetic on its numbers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo

CLUSTER = fo.Instance(
    [[8, 64], [4, 48]],
    [[1, 4], [2, 8], [0, 16]],
    servers=["new", "old"],
    users=["a", "b", "c"],
    resources=["gpu", "cpu"],
    eligibility=[[1, 1], [1, 0], [1, 1]],
    tasks=[np.inf, np.inf, 3],
    weights=[2, 1, 1],
)


def sides(found: dict[str, Any], allocation: fo.Allocation) -> dict[str, tuple[float, str, float]]:
    """Return both sides of each limit at an allocation, from the data alone."""
    instance = allocation.instance
    place = {name: k for k, name in enumerate(instance.users)}, {name: k for k, name in enumerate(instance.servers)}
    x = [float(allocation.tasks[place[0][column["user"]], place[1][column["server"]]]) for column in found["columns"]]
    return {
        limit["name"]: (sum(a * x[j] for j, a in zip(limit["columns"], limit["coefficients"], strict=True)), limit["sense"], limit["bound"])
        for limit in found["limits"]
    }


@pytest.mark.parametrize("notion", ["drfh", "tsf", "efficiency"])
def test_an_answer_keeps_the_limits_and_has_the_utilities(notion: str) -> None:
    """Five eligible pairs; capacity is full where the allocation says so, and U[n] is the share."""
    allocation, found = fo.solve(CLUSTER, notion), fo.formulate(CLUSTER, notion).to_dict()
    pairs = [(column["user"], column["server"]) for column in found["columns"]]
    assert sorted(pairs) == [("a", "new"), ("a", "old"), ("b", "new"), ("c", "new"), ("c", "old")]
    at = sides(found, allocation)
    assert set(at) == {*(f"{resource} @ {server}" for resource in ("gpu", "cpu") for server in ("new", "old")), "tasks of c"}
    for i, server in enumerate(CLUSTER.servers):
        for r, resource in enumerate(CLUSTER.resources):
            held, sense, bound = at[f"{resource} @ {server}"]
            assert (sense, bound) == ("<=", CLUSTER.capacities[i, r])
            assert held / bound == pytest.approx(allocation.utilization[i, r])
    assert at["tasks of c"][1:] == ("<=", 3)
    x = {pair: float(allocation.tasks["abc".index(pair[0]), ["new", "old"].index(pair[1])]) for pair in pairs}
    worth = [sum(c["utility"] * x[c["user"], c["server"]] for c in found["columns"] if c["user"] == user) for user in "abc"]
    weights = {user["name"]: user["weight"] for user in found["users"]}
    assert weights == {"a": 2, "b": 1, "c": 1}
    by_weight = [total / weights[user] for total, user in zip(worth, "abc", strict=True)]
    assert worth == pytest.approx(allocation.tasks_per_user) if notion == "efficiency" else by_weight == pytest.approx(allocation.shares)


def test_rules_have_their_sense() -> None:
    """x[a] >= 2 x[b] and x[a] + x[c] == 4, as they were given."""
    ruled = CLUSTER.replace(rules=["x[a] >= 2 * x[b]", "x[a] + x[c] == 4"])
    allocation, found = fo.solve(ruled, "drfh"), fo.formulate(ruled, "drfh").to_dict()
    held = [side for name, side in sides(found, allocation).items() if name.startswith(("x[", "rule"))]
    assert sorted(side[1] for side in held) == ["==", ">="]
    for left, sense, right in held:
        assert left == pytest.approx(right) if sense == "==" else left >= right - 1e-9


def test_a_limit_of_ones_own_is_the_last() -> None:
    """The question stays that of the notion; a program that was made of no instance has none."""
    program = fo.formulate(CLUSTER, "drfh").with_limit("purse", {("a", "new"): 3}, 6)
    found = program.to_dict()
    assert found["question"]["notion"] == "drfh"
    assert replace(program, source=None).to_dict() | {"question": None} == found | {"question": None}
    assert replace(program, source=None).to_dict()["question"] == {"integral": False}
    assert found["limits"][-1] == {"name": "purse", "sense": "<=", "bound": 6.0, "columns": [0], "coefficients": [3.0]}
