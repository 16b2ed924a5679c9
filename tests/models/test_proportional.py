"""Proportional and alpha-fairness: closed forms, limits of the family, equilibrium prices, merging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 10])
def test_one_resource_in_closed_form(alpha: float) -> None:
    """phi x^-alpha = p d: x is proportional to (phi / d)^(1/alpha)."""
    demands, weights = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0, 2.0])
    pull = (weights / demands) ** (1 / alpha)
    actual = fo.solve(fo.Instance([[10]], demands[:, None], weights), "proportional", alpha=alpha).tasks_per_user
    np.testing.assert_allclose(actual, 10 * pull / (demands @ pull), rtol=1e-9)


def test_everybody_spends_its_weight() -> None:
    """At alpha = 1 the prices are those of an equilibrium with incomes phi."""
    rng = np.random.default_rng(1)
    weights = 10 ** rng.uniform(-3, 3, 12)
    instance = fo.Instance(rng.uniform(1, 9, (5, 3)), rng.uniform(0.1, 2, (12, 3)), weights)
    allocation = fo.solve(instance, "proportional")
    assert allocation.prices is not None
    spent = np.einsum("ni,nr,ir->n", allocation.tasks, instance.demands, allocation.prices)
    np.testing.assert_allclose(spent, weights, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1, 2])
@given(instance=instances())
@settings(max_examples=15)
def test_no_small_move_gains(alpha: float, instance: fo.Instance) -> None:
    """Towards the efficient, the equal and the per-server allocation: sum phi (U' - U) U^-alpha <= 0 (proposition 2)."""
    mine = fo.solve(instance, "proportional", alpha=alpha).tasks_per_user
    has = mine > 0
    for notion in ("efficiency", "max-min", "per-server-drf"):
        other = fo.solve(instance, notion).tasks_per_user
        worth: np.ndarray = instance.weights[has] * np.power(mine[has], -alpha)
        assert worth @ (other - mine)[has] <= 1e-8 * max(float(worth @ mine[has]), 1e-300)


@pytest.mark.parametrize("alpha", [0.5, 2, 4])
def test_merging_is_exact(alpha: float) -> None:
    """Two users alike divide by phi^(1/alpha), as they do when they are told apart."""
    rng = np.random.default_rng(2)
    capacities, demands = rng.uniform(1, 9, (3, 2)), rng.uniform(0.1, 2, (4, 2))
    weights = np.array([1.0, 7.0, 2.0, 0.3, 1.0])
    alike = fo.Instance(capacities, demands[[0, 0, 1, 2, 3]], weights)
    apart = alike.replace(tasks=[1e9, np.inf, np.inf, np.inf, np.inf])  # a limit that never binds keeps rows apart
    np.testing.assert_allclose(
        fo.solve(alike, "proportional", alpha=alpha).tasks_per_user,
        fo.solve(apart, "proportional", alpha=alpha).tasks_per_user,
        rtol=1e-8,
    )


def test_the_ends_of_the_family() -> None:
    """alpha = 0 is efficiency, large alpha nears max-min of U."""
    zero = fo.solve(POOL, "proportional", alpha=0).tasks_per_user
    np.testing.assert_allclose(zero, fo.solve(POOL, "efficiency").tasks_per_user)
    equal = fo.solve(POOL, "max-min").tasks_per_user
    far = [np.abs(fo.solve(POOL, "proportional", alpha=a).tasks_per_user - equal).max() for a in (2, 8, 20)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.5


def test_bad_alpha() -> None:
    """Negative, infinite, out of range, no number."""
    for alpha in (-1, np.inf, np.nan, 10**400, "much", True, np.False_):
        with pytest.raises(fo.InvalidInstance, match="alpha is"):
            fo.solve(POOL, "proportional", alpha=alpha)
