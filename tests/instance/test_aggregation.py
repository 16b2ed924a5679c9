"""Merging is exact, and the way back too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo
from fairopt.instance import aggregation
from fairopt.instance.aggregation import expand, merge, number_distinct


@given(instance=instances(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_duplicates_merge_and_change_nothing(instance: fo.Instance, seed: int) -> None:
    """Every server twice and every user twice (with half the weight and tasks): each pair of twins gets what the one got."""
    rng = np.random.default_rng(seed)
    k, n = np.repeat(np.arange(instance.n_servers), 2), np.repeat(np.arange(instance.n_users), 2)
    part = rng.uniform(0.2, 0.8, instance.n_users)
    parts = np.column_stack([part, 1 - part]).ravel()
    twins = fo.Instance(
        instance.capacities[k] / 2,
        instance.demands[n],
        instance.weights[n] * parts,
        instance.eligibility[np.ix_(n, k)],
        instance.counts[k],
        instance.tasks[n] * parts,
    )
    merging = merge(twins)
    assert merging.instance.n_servers <= instance.n_servers
    assert merging.user_part.min() > 0
    for notion in ("drfh", "tsf"):
        one, two = fo.solve(instance, notion).tasks_per_user, fo.solve(twins, notion).tasks_per_user
        np.testing.assert_allclose(two, one[n] * parts, rtol=1e-7, atol=1e-9)


@given(instance=instances())
@settings(max_examples=40)
def test_spread_keeps_totals(instance: fo.Instance) -> None:
    """What the merged rows hold is what the original rows hold together."""
    merging = merge(instance)
    x = np.random.default_rng(0).random((merging.instance.n_users, merging.instance.n_servers))
    tasks = merging.spread(x)
    assert np.isclose(tasks.sum(), x.sum())
    np.testing.assert_allclose(np.bincount(merging.user_group, tasks.sum(axis=1)), x.sum(axis=1))


def test_the_google_cluster_is_ten_rows() -> None:
    """12,583 rows of one server each become the ten of the table."""
    rng = np.random.default_rng(0)
    shapes = rng.uniform(0.1, 1, (10, 2))
    each = fo.Instance(shapes[rng.integers(0, 10, 12_583)], rng.uniform(0.001, 0.1, (20, 2)))
    assert merge(each).instance.n_servers == 10
    allocation = fo.solve(each, "drfh")
    assert allocation.tasks.shape == (20, 12_583)
    assert allocation.certificate.worst <= 1e-8


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.5, 1.0, 3.0])
def test_joint_weight_of_identical_users(alpha: float) -> None:
    """(sum phi^(1/alpha))^alpha, spread by phi^(1/alpha); where that is steep only equal weights merge, k of them to k^alpha phi."""
    instance = fo.Instance([[4]], [[1], [1], [1]], weights=[2, 2, 5])
    merging = merge(instance, alpha=alpha)
    if alpha < 0.05:
        np.testing.assert_allclose(merging.instance.weights, [2 * 2**alpha, 5])
        np.testing.assert_allclose(merging.user_part, [0.5, 0.5, 1])
    else:
        pull = np.array([2, 2, 5]) ** (1 / alpha)
        np.testing.assert_allclose(merging.instance.weights, [pull.sum() ** alpha])
        np.testing.assert_allclose(merging.user_part, pull / pull.sum())


def test_expanding_names_single_servers() -> None:
    """Rows of one keep their name; others are numbered, with a sign that no label holds."""
    expanded, row = expand(fo.Instance([[1], [2]], [[1]], counts=[2, 1], servers=["A", "B#1"]))
    assert expanded.servers == ("A##1", "A##2", "B#1")
    assert row.tolist() == [0, 0, 1]


def test_identical_servers_take_their_turns_where_tasks_run_out() -> None:
    """DRF server by server with finite tasks is not symmetric in servers: two identical ones are not merged."""
    demands, tasks = np.array([[1, 0.1], [0.05, 1], [0.1, 1]]), np.array([np.inf, 4, 5])
    twins = fo.Instance([[3, 8], [3, 8]], demands, tasks=tasks)
    nearly = fo.Instance(np.array([[3, 8], [3, 8 + 1e-9]]), demands, tasks=tasks)
    np.testing.assert_allclose(
        fo.solve(twins, "per-server-drf").tasks_per_user, fo.solve(nearly, "per-server-drf").tasks_per_user, rtol=1e-6
    )


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("notion", ["drfh", "cdrf", "tsf", "asset", "max-min", "per-server-drf", "uniform"])
@given(instance=instances(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_merging_is_continuous(notion: str, sharing: str, instance: fo.Instance, seed: int) -> None:
    """Rows that differ by 1e-9 do not merge, rows that are equal do, and the shares are the same."""
    twice = np.repeat(np.arange(instance.n_servers), 2)
    equal = fo.Instance(
        instance.capacities[twice], instance.demands, instance.weights, instance.eligibility[:, twice], tasks=instance.tasks
    )
    factor = 1 + 1e-9 * np.random.default_rng(seed).random((twice.size, 1))
    apart = equal.replace(capacities=equal.capacities * factor)
    one, two = (fo.solve(each, notion, sharing=sharing).shares for each in (equal, apart))  # type: ignore[arg-type]
    if one.ndim == 1:
        np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-12)
    else:
        np.testing.assert_allclose(two.sum(axis=1), one.sum(axis=1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("collide", [False, True])
def test_rows_are_numbered_by_their_hashes_as_by_themselves(collide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of few entries are compared, and rows of many are hashed; where two different rows have one hash, these are compared, too."""
    rng = np.random.default_rng(0)
    values = np.array([-0.0, 0.0, 1.0, 0.1, 1 / 3, np.inf, 1e-300])
    tables = [[rng.choice(values, (rows, 2)), rng.random((rows, 3)) < 0.5] for rows in (1, 2, 9, 40) for _ in range(20)]
    compared = [number_distinct(keys) for keys in tables]
    monkeypatch.setattr(aggregation, "_FEW", 0)
    if collide:
        monkeypatch.setattr(aggregation, "_hashes", lambda keys: np.zeros(keys[0].shape[0], np.uint64))
    for keys, numbers in zip(tables, compared, strict=True):
        np.testing.assert_array_equal(number_distinct(keys), numbers)
        np.testing.assert_array_equal(np.unique(np.hstack(keys) + 0.0, axis=0).shape[0], numbers.max() + 1)
