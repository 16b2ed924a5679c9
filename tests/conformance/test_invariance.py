"""What must hold of every instance, whatever the answer is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo

LEXIMIN = ["drfh", "cdrf", "tsf", "asset", "max-min"]
ALL = [*LEXIMIN, "per-server-drf", "uniform"]
SHARING = ["rdm", "tdm"]


def tasks(instance: fo.Instance, notion: str, sharing: str, **options: object) -> np.ndarray:
    """x[n]: unique, unlike placements."""
    return fo.solve(instance, notion, sharing=sharing, **options).tasks_per_user  # type: ignore[arg-type]


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to what the certificate allows."""
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("notion", ALL)
@given(instance=instances(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_permuting_users_and_servers_permutes_the_answer(notion: str, sharing: str, instance: fo.Instance, seed: int) -> None:
    """x[pi(n)] of the permuted instance = x[n]. (Servers too, but for DRF on each server in turn, whose order matters to finite users.)"""
    rng = np.random.default_rng(seed)
    p = rng.permutation(instance.n_users)
    q = np.arange(instance.n_servers) if notion == "per-server-drf" else rng.permutation(instance.n_servers)
    permuted = fo.Instance(
        instance.capacities[q],
        instance.demands[p],
        instance.weights[p],
        instance.eligibility[np.ix_(p, q)],
        instance.counts[q],
        instance.tasks[p],
    )
    close(tasks(permuted, notion, sharing), tasks(instance, notion, sharing)[p])


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("notion", ALL)
@given(instance=instances(), unit=st.floats(1e-6, 1e9))
@settings(max_examples=12)
def test_the_unit_of_a_resource_does_not_matter(notion: str, sharing: str, instance: fo.Instance, unit: float) -> None:
    """c[:,0] and d[:,0] times any factor: the same x[n]."""
    scale = np.ones(instance.n_resources)
    scale[0] = unit
    rescaled = instance.replace(capacities=instance.capacities * scale, demands=instance.demands * scale)
    close(tasks(rescaled, notion, sharing), tasks(instance, notion, sharing))


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("notion", ALL)
@given(instance=instances())
@settings(max_examples=12)
def test_splitting_a_server_class_changes_nothing(notion: str, sharing: str, instance: fo.Instance) -> None:
    """One row of n servers = n rows of one server; the merged solution spreads back within every server's own capacity."""
    from fairopt.instance.aggregation import expand

    split, row = expand(instance)
    whole, parts = fo.solve(instance, notion, sharing=sharing), fo.solve(split, notion, sharing=sharing)  # type: ignore[arg-type]
    if notion != "per-server-drf" or np.isinf(instance.tasks).all():
        close(parts.tasks_per_user, whole.tasks_per_user)
    assert parts.certificate.worst <= 1e-8
    assert np.array_equal(split.capacities, instance.capacities[row])


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("notion", [n for n in ALL if n != "per-server-drf"])
@given(instance=instances(max_users=3, max_servers=3))
@settings(max_examples=12)
def test_cloning_the_cluster_and_the_users_keeps_each_answer(notion: str, sharing: str, instance: fo.Instance) -> None:
    """Twice the servers and twice the users: everybody keeps x[n]."""
    twice = fo.Instance(
        np.vstack([instance.capacities] * 2),
        np.vstack([instance.demands] * 2),
        np.tile(instance.weights, 2),
        np.tile(instance.eligibility, (2, 2)),
        np.tile(instance.counts, 2),
        np.tile(instance.tasks, 2),
    )
    close(tasks(twice, notion, sharing), np.tile(tasks(instance, notion, sharing), 2))


@pytest.mark.parametrize("notion", LEXIMIN)
@given(instance=instances(), factor=st.floats(1e-3, 1e3))
@settings(max_examples=12)
def test_only_ratios_of_weights_matter(notion: str, instance: fo.Instance, factor: float) -> None:
    """Phi times any factor: the same x[n]."""
    close(tasks(instance.replace(weights=instance.weights * factor), notion, "rdm"), tasks(instance, notion, "rdm"))


@given(instance=instances())
@settings(max_examples=40)
def test_no_allocation_beats_the_leximin_in_its_own_order(instance: fo.Instance) -> None:
    """Sorted shares of every other notion's allocation, measured by DRFH's yardstick, are lexicographically no larger."""
    best = fo.solve(instance, "drfh")
    yardstick = (instance.demands / np.where(instance.total_capacity > 0, instance.total_capacity, 1)).max(axis=1) / instance.weights
    best_sorted = np.sort(yardstick * best.tasks_per_user)
    for notion in ("cdrf", "tsf", "asset", "uniform", "per-server-drf"):
        other = np.sort(yardstick * fo.solve(instance, notion).tasks_per_user)
        different = np.flatnonzero(np.abs(best_sorted - other) > 1e-7 * np.maximum(best_sorted, other))
        assert not different.size or best_sorted[different[0]] > other[different[0]]


@given(instance=instances())
@settings(max_examples=40)
def test_named_equal_notions_are_equal(instance: fo.Instance) -> None:
    """DRFH is max-min of global dominant shares; CDRF and TSF agree without placement constraints; the slice is the same under TDM."""
    share = (instance.demands / np.where(instance.total_capacity > 0, instance.total_capacity, 1)).max(axis=1)
    if instance.servable.all():
        close(tasks(instance, "max-min", "rdm", utility=share), tasks(instance, "drfh", "rdm"))
    free = instance.replace(eligibility=None)
    if free.eligibility.all():
        close(tasks(free, "cdrf", "rdm"), tasks(free, "tsf", "rdm"))
    close(tasks(instance, "uniform", "rdm"), tasks(instance, "uniform", "tdm"))


@given(instance=instances(max_users=4, one_server=True))
@settings(max_examples=40)
def test_one_server_makes_them_all_drf(instance: fo.Instance) -> None:
    """On one server DRFH, TSF, CDRF and DRF server by server are DRF."""
    drf = tasks(instance, "drf", "rdm")
    for notion in ("drfh", "tsf", "cdrf", "per-server-drf"):
        close(tasks(instance, notion, "rdm"), drf)


@given(instance=instances())
@settings(max_examples=40)
def test_equalising_is_the_leximin_where_it_should_be(instance: fo.Instance) -> None:
    """Positive demands, no constraint, unlimited tasks: one LP is enough. Elsewhere nobody gets more than the leximin's lowest level."""
    friendly = fo.Instance(
        np.maximum(instance.capacities, 0.5), np.maximum(instance.demands, 0.05), instance.weights, counts=instance.counts
    )
    close(tasks(friendly, "drfh", "rdm", formulation="equalize"), tasks(friendly, "drfh", "rdm"))
    equal = fo.solve(instance, "drfh", formulation="equalize")
    full = fo.solve(instance, "drfh")
    positive = equal.shares[equal.shares > 0]
    assert positive.size == 0 or np.ptp(positive) <= 1e-7 * positive.max()
    assert (equal.tasks_per_user <= full.tasks_per_user * (1 + 1e-7) + 1e-9).all()
