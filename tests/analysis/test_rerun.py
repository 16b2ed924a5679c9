"""What an allocation remembers of how it was made, and the same question asked again."""

from __future__ import annotations

import json
import pickle
from typing import Literal

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.rerun import given, merged_servers, rerun

CLUSTER = fo.Instance(
    [[9, 12, 100], [12, 12, 0]],
    [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
    weights=[1, 1, 2],
    users=["a", "b", "c"],
    servers=["s", "t"],
    resources=["cpu", "memory", "bandwidth"],
)
POOL = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("instance", "notion", "options"),
    [
        (CLUSTER, "drfh", {"formulation": "equalize"}),
        (CLUSTER, "drfh", {"integral": True}),
        (CLUSTER, "psdsf", {"sharing": "tdm", "formulation": "market", "solver": "interior-point"}),
        (CLUSTER, "psdsf", {"order": "random", "seed": 3}),
        (CLUSTER, "proportional", {"alpha": 3, "utility": [1, 2, 1]}),
        (CLUSTER, "max-min", {"utility": [[1, 2], [2, 1], [1, 1]]}),
        (POOL, "bbf", {"prefer": [1, 0, 0]}),
        (POOL, "bbf", {"prefer": "utilization"}),
    ],
    ids=str,
)
def test_the_same_question_of_the_same_instance_has_the_same_answer(instance: fo.Instance, notion: str, options: dict[str, object]) -> None:
    """Every option counts: notion's, engine's, sharing, whole tasks."""
    first = fo.solve(instance, notion, **options)  # type: ignore[arg-type]
    again = rerun(first, instance)
    np.testing.assert_allclose(again.tasks, first.tasks, rtol=1e-12)  # by what is known of it, and so to rounding
    assert (again.notion, again.solver, again.sharing) == (first.notion, first.solver, first.sharing)
    assert again.certificate.whole_tasks == first.certificate.whole_tasks


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "psdsf", "placement": "joint"},
        {"criterion": "drfh", "placement": "random", "seed": 5, "ties": "random"},
        {"criterion": "drfh", "placement": "best-fit", "metric": "cosine"},
        {"criterion": "drfh", "placement": "slots", "slots": 3},
        {"criterion": "drfh", "stop": "first-block"},
        pytest.param({"criterion": "drfh", "placement": lambda user, free, demand, fits: fits[-1]}, id="a placement of the caller's own"),
    ],
    ids=str,
)
def test_a_schedule_is_made_again(options: dict[str, object]) -> None:
    """Placement with its options, ties, seed and where to stop."""
    first = fo.schedule(CLUSTER, **options)  # type: ignore[arg-type]
    again = rerun(first, CLUSTER)
    np.testing.assert_allclose(again.tasks, first.tasks, rtol=1e-12)  # by what is known of it, and so to rounding
    assert again.solver == first.solver


def test_data_about_users_and_servers_is_taken_along() -> None:
    """Of the users 0 and 2 and the servers 1, 0: the answer is that of a solve from scratch."""
    utility = np.array([[1.0, 2.0], [5.0, 7.0], [3.0, 1.0]])
    first = fo.solve(CLUSTER, "max-min", utility=utility)
    users, servers = np.array([0, 2]), np.array([1, 0])
    part = fo.Instance(CLUSTER.capacities[servers], CLUSTER.demands[users], weights=CLUSTER.weights[users])
    expected = fo.solve(part, "max-min", utility=utility[np.ix_(users, servers)])
    np.testing.assert_allclose(rerun(first, part, users=users, servers=servers).tasks_per_user, expected.tasks_per_user)

    fair = fo.solve(POOL, "bbf", prefer=[0, 1, 5])
    two = fo.Instance(POOL.capacities, POOL.demands[users], weights=POOL.weights[users])
    expected = fo.solve(two, "bbf", prefer=[0, 5])
    np.testing.assert_allclose(rerun(fair, two, users=users).tasks_per_user, expected.tasks_per_user)


def test_rows_that_nobody_explains_are_refused() -> None:
    """Options about users or servers are never cut by guess."""
    first = fo.solve(CLUSTER, "max-min", utility=[[1, 2], [5, 7], [3, 1]])
    two = fo.Instance(CLUSTER.capacities, CLUSTER.demands[:2], users=["a", "b"], servers=["s", "t"])
    with pytest.raises(fo.Unsupported, match="name users, and this instance has others; say which with users="):
        rerun(first, two)
    with pytest.raises(fo.Unsupported, match="name servers"):
        rerun(first, CLUSTER.replace(servers=["s", "u"]))
    assert rerun(fo.solve(CLUSTER, "drfh"), two).instance is two  # where there are none, nothing needs to be said


@pytest.mark.parametrize("notion", ["drfh", "psdsf", "per-server-drf", "proportional"])
@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
def test_identical_rows_become_one(notion: str, sharing: Literal["rdm", "tdm"]) -> None:
    """The allocation of 2 + 3 single servers as one of two rows: what a solve with counts says, shares and prices too."""
    counted = fo.Instance(
        [[4, 2], [1, 3]], [[1.0, 0.5], [0.3, 1.0], [1.0, 1.0]], counts=[2, 3], eligibility=[[1, 1], [1, 1], [1, 0]], weights=[1, 2, 1]
    )
    single = fo.Instance(
        counted.capacities[[0, 0, 1, 1, 1]], counted.demands, eligibility=counted.eligibility[:, [0, 0, 1, 1, 1]], weights=counted.weights
    )
    merged, direct = merged_servers(fo.solve(single, notion, sharing=sharing)), fo.solve(counted, notion, sharing=sharing)
    assert merged.instance.servers == ("server-1 and 1 like it", "server-3 and 2 like it")
    np.testing.assert_allclose(merged.tasks_per_user, direct.tasks_per_user, rtol=1e-6)
    np.testing.assert_allclose(merged.shares, direct.shares, rtol=1e-6)
    for mine, theirs in zip(merged.levels, direct.levels, strict=True):
        assert mine.prices is not None
        assert theirs.prices is not None
        np.testing.assert_allclose(mine.prices, theirs.prices, rtol=1e-6, atol=1e-12)
    if direct.prices is not None:
        assert merged.prices is not None
        np.testing.assert_allclose(merged.prices, direct.prices, rtol=1e-5, atol=1e-9)


def test_rows_that_may_hold_different_things_are_left_alone() -> None:
    """Of schedules and given tasks."""
    single = fo.Instance([[4], [4]], [[1], [1]])
    for allocation in (fo.schedule(single), given(single, np.zeros((2, 2)), "rdm"), fo.solve(single, "drfh", integral=True)):
        assert merged_servers(allocation) is allocation


def test_what_somebody_else_made_cannot_be_made_again() -> None:
    """Neither can the approximation of DRF, which is no program and no schedule."""
    with pytest.raises(fo.Unsupported, match="nothing says how"):
        rerun(given(CLUSTER, np.zeros((3, 2)), "rdm"), CLUSTER)
    with pytest.raises(fo.Unsupported, match="nothing says how"):
        rerun(fo.precomputed_drf(POOL), POOL)


def test_the_memory_leaves_no_trace_in_files() -> None:
    """The question in ``to_dict`` is plain data, and allocations still travel between processes."""
    allocation = fo.solve(CLUSTER, "max-min", utility=[1, 2, 1])
    assert json.loads(json.dumps(allocation.to_dict()["question"]))["options"]["utility"] == [[1], [2], [1]]
    assert json.loads(json.dumps(fo.schedule(CLUSTER).to_dict()["question"]))
    copy = pickle.loads(pickle.dumps(allocation))
    np.testing.assert_allclose(rerun(copy, copy.instance).tasks, allocation.tasks, rtol=1e-12)


@pytest.mark.parametrize(
    ("tasks", "sharing", "message"),
    [
        ([[-1.0], [1.0]], "rdm", 'user "A" has -1 tasks on "pool"'),
        ([[np.nan], [1.0]], "rdm", 'user "A" has nan tasks on "pool"'),
        ([[1.0], [np.inf]], "rdm", 'user "B" has inf tasks on "pool"'),
        ([[1.0, 2.0], [1.0, 2.0]], "rdm", "the shape of tasks is"),
        ([[1.0], [1.0]], "mine", 'there is no sharing "mine"'),
    ],
)
def test_what_is_no_allocation(tasks: list[list[float]], sharing: str, message: str) -> None:
    """Tasks of somebody else are refused where an audit of them would say nothing."""
    instance = fo.Instance([[9]], [[1], [2]], users=["A", "B"], servers=["pool"])
    with pytest.raises(fo.FairoptError, match=message):
        given(instance, np.array(tasks), sharing)


def test_where_several_levels_are_known_highs_answers_again() -> None:
    """The first answer of a cluster of this size is by the interior point, which takes a path for every level.

    Users of ten servers, and users of ten that have four times as much: two levels, though one user may be on all servers. Where all may
    be, there is one level.
    """
    rng = np.random.default_rng(0)
    there = (np.arange(200)[:, None] % 2 == np.arange(20) % 2) | (np.arange(200)[:, None] == 0)
    capacities = rng.uniform(50, 100, (20, 2)) * np.where(np.arange(20) % 2, 4.0, 1.0)[:, None]
    two_levels = fo.Instance(capacities, rng.uniform(0.1, 1, (200, 2)), eligibility=there)
    one_level = two_levels.replace(eligibility=np.ones((200, 20), bool))
    for instance, levels, again in ((two_levels, 2, "highs"), (one_level, 1, "interior-point")):
        allocation = fo.solve(instance, "drfh")
        assert (allocation.solver, len(allocation.levels)) == ("interior-point", levels)
        reduced = instance.replace(weights=np.where(np.arange(200) == 7, 0.5, 1.0))
        found = rerun(allocation, reduced)
        assert found.solver == again
        np.testing.assert_allclose(found.tasks_per_user, fo.solve(reduced, "drfh", solver="interior-point").tasks_per_user, rtol=1e-7)
        assert fo.solve(reduced, "drfh").solver == "interior-point"
