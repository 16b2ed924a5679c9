"""Audits where resources are of the whole cluster: on one server they say what they say of a resource of that server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.measures import envy_matrix, violations

NAMES = [
    *("sharing-incentive", "envy-freeness", "pareto", "bottleneck-fairness", "population-monotonicity", "max-min"),
    *("no-justified-complaints", "guarantees", "single-resource-fairness"),
]


def drawn(seed: int, **more: Any) -> tuple[fo.Instance, fo.Instance]:
    """A pool with two shared resources, and one that has them on its server."""
    rng = np.random.default_rng(seed)
    demands = rng.integers(0, 4, (4, 4)).astype(float)
    demands[:, 0] = np.maximum(demands[:, 0], 1)
    labels = ["cpu", "memory", "ansys", "uplink"]
    capacity, weights = rng.integers(8, 20, 4).astype(float), rng.integers(1, 4, 4)
    shared = {"ansys": capacity[2], "uplink": capacity[3]}
    return (
        fo.Instance(capacity[None, :2], demands, weights=weights, shared=shared, resources=labels, **more),
        fo.Instance(capacity[None], demands, weights=weights, resources=labels, **more),
    )


def _same(mine: fo.Allocation, theirs: fo.Allocation) -> None:
    found, expected = fo.audit(mine, NAMES, effort=10), fo.audit(theirs, NAMES, effort=10)
    for name in NAMES:
        if name == "bottleneck-fairness" and expected[name].holds is not None:
            continue  # of a resource that is dominant on every server, which a shared one is not
        assert found[name].holds == expected[name].holds, (name, found[name], expected[name])
        assert found[name].violation == pytest.approx(expected[name].violation, rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("notion", ["drfh", "efficiency", "proportional"])
@pytest.mark.parametrize("seed", range(3))
def test_on_one_server(seed: int, notion: str) -> None:
    """Slices, envy, Pareto optimality and all others."""
    pool, other = drawn(seed)
    mine = fo.solve(pool, notion)
    _same(mine, fo.solve(other, notion))
    assert envy_matrix(mine) == pytest.approx(envy_matrix(fo.solve(other, notion)), rel=1e-6, abs=1e-8)


def test_in_fractions() -> None:
    """The same of answers in fractions."""
    pool, other = drawn(1)
    for notion in ("drfh", "efficiency"):
        _same(fo.solve(pool, notion, exact=True), fo.solve(other, notion, exact=True))


@pytest.mark.parametrize("notion", ["drfh", "tsf"])
def test_in_a_tree(notion: str) -> None:
    """Queues with a guarantee and a limit of a shared resource."""
    queues = [fo.Queue("lab", guarantee={"ansys": 2}, limit={"uplink": 6}), fo.Queue("team", parent="lab")]
    pool, other = drawn(2, queues=queues, queue_of=["lab", "team", "team", None])
    _same(fo.solve(pool, notion), fo.solve(other, notion))


def test_whole_tasks() -> None:
    """Pareto optimality and max-min fairness among whole tasks."""
    names = ["pareto", "max-min"]
    for each in drawn(0):
        found = fo.audit(fo.solve(each, "drfh", integral=True), names)
        assert [found[name].holds for name in names] == [True, True]


def test_a_slice_of_the_cluster() -> None:
    """Two users on two servers: each may have half of the 10 licences, on servers that would run 20 tasks."""
    instance = fo.Instance([[10], [10]], [[1, 1], [1, 0]], shared={"licences": 10}, users=["L", "C"])
    from fairopt.analysis.rerun import given

    short = given(instance, [[4, 0], [0, 10]], sharing="rdm", notion="drfh")
    verdict = fo.audit(short, "sharing-incentive")["sharing-incentive"]
    assert verdict.violation == pytest.approx(1)
    assert verdict.witness is not None
    assert '"L" runs 4 tasks; 1/2, by weight, of every server and of licences would run 5' in verdict.witness.text


def test_envy_within_what_others_hold() -> None:
    """C holds 10 cpu and no licence, so L could run nothing with it; C could run 4 tasks with what L has."""
    from fairopt.analysis.rerun import given

    instance = fo.Instance([[10], [10]], [[1, 1], [1, 0]], shared={"licences": 10}, users=["L", "C"])
    assert envy_matrix(given(instance, [[4, 0], [0, 2]], sharing="rdm", notion="drfh")).tolist() == [[0, 0], [2, 0]]


def test_a_user_who_needs_no_server() -> None:
    """Its tasks run anywhere: with a part of what others hold of the uplink."""
    from fairopt.analysis.rerun import given

    instance = fo.Instance([[10]], [[0, 1], [1, 2]], shared={"uplink": 12}, users=["U", "B"])
    assert envy_matrix(given(instance, [[2], [5]], sharing="rdm", notion="drfh")).tolist() == [[0, 8], [0, 0]]
    found = fo.audit(fo.solve(instance, "drfh"), NAMES, effort=10)
    assert found["pareto"].holds
    assert found["envy-freeness"].holds


def test_limits_that_are_exceeded() -> None:
    """A table of tasks with too many licences."""
    instance = fo.Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10})
    (found,) = violations(instance, np.array([[11.0], [2.0]]), "rdm", 1e-9)
    assert (found.limit, found.used, found.allowed) == ("licences of the cluster", 11, 10)
