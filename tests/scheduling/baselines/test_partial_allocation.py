"""The partial allocation mechanism, and what is proved of it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from reference import approximations
from support.baseline_cases import small_cluster

import fairopt as fo


@pytest.mark.parametrize("users", [2, 3, 7])
def test_equal_users_of_one_pool(users: int) -> None:
    """U* = C / n and U^-n = C / (n - 1), so f = ((n - 1) / n)^(n - 1), which tends to 1 / e."""
    fair, others = [Fraction(1, users)] * users, [[Fraction(1, users - 1)] * users] * users
    expected = approximations.partial_allocation(fair, others)
    assert expected == pytest.approx([((users - 1) / users) ** (users - 1)] * users)
    found = fo.schedule(fo.Instance([[60]], np.ones((users, 1))), "proportional:partial-allocation")
    assert found.tasks_per_user == pytest.approx(60 / users * np.array(expected))


def test_against_fair_shares_on_one_resource() -> None:
    """Proportional fairness divides one resource by weight, whatever the demands: U[n] = phi[n] / W (C / d[n])."""
    weights, demands = [1, 2, 3], [5, 1, 2]
    total = sum(weights)
    parts = [
        np.prod([(total - weights[n]) / total for m in range(3) if m != n for _ in range(weights[m])]) ** (1 / weights[n]) for n in range(3)
    ]
    found = fo.schedule(fo.Instance([[60]], [[each] for each in demands], weights=weights), "proportional:partial-allocation")
    assert found.tasks_per_user == pytest.approx([60 * w / total / d * part for w, d, part in zip(weights, demands, parts, strict=True)])
    assert list(found.details["parts"].values()) == pytest.approx(parts)


@pytest.mark.parametrize("seed", range(6))
def test_everybody_has_at_least_1_over_e(seed: int) -> None:
    """Of what it has under proportional fairness, and no more than that."""
    instance = small_cluster(seed)
    found = fo.schedule(instance, "proportional:partial-allocation").tasks_per_user
    fair = fo.solve(instance, "proportional").tasks_per_user
    assert (found >= fair / math.e * (1 - 1e-6)).all()
    assert (found <= fair * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_lie_about_demands_helps(seed: int) -> None:
    """Theorem of Cole et al. for users without task limits: the tasks that a liar can really run are no more."""
    rng = np.random.default_rng(seed)
    capacities, demands = rng.integers(5, 20, (2, 2)), rng.integers(1, 6, (3, 2))
    honest = fo.schedule(fo.Instance(capacities, demands), "proportional:partial-allocation").tasks_per_user[0]
    for _ in range(5):
        lie = demands.copy()
        lie[0] = rng.integers(1, 8, 2)
        given = fo.schedule(fo.Instance(capacities, lie), "proportional:partial-allocation")
        held = given.tasks[0][:, None] * lie[0]
        assert (held / demands[0]).min(axis=1).sum() <= honest * (1 + 1e-6)


@pytest.mark.parametrize("spec", ["drfh:partial-allocation", "proportional:alpha=2:partial-allocation"])
def test_other_notions_are_refused(spec: str) -> None:
    """The parts are of proportional fairness."""
    with pytest.raises(fo.Unsupported, match='"partial-allocation" gives parts of what users have under proportional fairness'):
        fo.schedule(fo.Instance([[1]], [[1]]), spec)


def test_users_who_differ_in_weight_alone() -> None:
    """By hand: of a pool of sum phi, user n has phi[n], and the others have sum phi - phi[n] without it.

    So f[n] = (1 - phi[n] / sum phi)^((sum phi - phi[n]) / phi[n]), with sum phi = 4.
    """
    pool = fo.Instance([[4]], [[1], [1], [1]], weights=[1, 2, 1])
    parts = fo.schedule(pool, "proportional:partial-allocation").tasks_per_user
    np.testing.assert_allclose(parts, [(3 / 4) ** 3, 2 * (2 / 4) ** 1, (3 / 4) ** 3], rtol=1e-6)
