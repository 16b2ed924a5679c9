"""What the notions' pages say of sharing incentives, envy and lies: random instances where it is proved, an example where it fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
ALWAYS = ["psdsf", "per-server-drf", "proportional"]  # with placement constraints and limits on tasks


def unconstrained(instance: fo.Instance) -> fo.Instance:
    """Everybody may run everywhere: every server has something of everything."""
    return instance.replace(capacities=np.where(instance.capacities > 0, instance.capacities, 1.0), eligibility=None)


def below_slice(instance: fo.Instance, notion: str) -> float:
    """Largest part of its slice of every server that a user lacks."""
    slices = fo.solve(instance, "uniform").tasks_per_user
    own = fo.solve(instance, notion).tasks_per_user
    some = slices > 0
    return float(np.max(1 - own[some] / slices[some], initial=0.0))


def envy(instance: fo.Instance, allocation: fo.Allocation) -> float:
    """Largest part by which a user would run more with what another holds, by weight, on the servers where it may run itself."""
    d, phi, own = instance.demands, instance.weights, allocation.tasks_per_user
    worst: float = 0.0
    for n, m in np.ndindex(instance.n_users, instance.n_users):
        uses = d[n] > 0
        per_server = (allocation.tasks[m, :, None] * d[m] * phi[n] / phi[m])[:, uses] / d[n, uses]
        could = min(float(per_server.min(axis=1)[instance.eligibility[n]].sum()), float(instance.tasks[n]))
        worst = max(worst, 1 - float(own[n]) / could if could > 0 else 0.0)
    return worst


@pytest.mark.parametrize("notion", [*ALWAYS, "cdrf"])
@given(instance=instances())
@settings(max_examples=25, deadline=None)
def test_nobody_is_below_its_slice(notion: str, instance: fo.Instance) -> None:
    """x[n] >= the uniform slice, whatever the constraints."""
    assert below_slice(instance, notion) <= 1e-8


@pytest.mark.parametrize("notion", ALWAYS)
@given(instance=instances())
@settings(max_examples=25, deadline=None)
def test_nobody_envies(notion: str, instance: fo.Instance) -> None:
    """Server by server, whatever the constraints."""
    assert envy(instance, fo.solve(instance, notion)) <= 1e-8


@pytest.mark.parametrize("notion", ["tsf", "cdrf"])
@given(instance=instances())
@settings(max_examples=25, deadline=None)
def test_promises_without_placement_constraints(notion: str, instance: fo.Instance) -> None:
    """Both hold of TSF and CDRF, which are one notion there."""
    instance = unconstrained(instance)
    assert below_slice(instance, notion) <= 1e-8
    assert envy(instance, fo.solve(instance, notion)) <= 1e-8


def test_tsf_with_placement_constraints_may_give_less_than_the_slice() -> None:
    """8 s = 1 on the first server's cpu: x = (1.5, 1.25) / 8, and the slice of user 1 is half of 1/2."""
    instance = fo.Instance([[1, 2], [5, 2]], [[2, 2], [4, 2]], eligibility=[[True, False], [True, False]])
    np.testing.assert_allclose(fo.solve(instance, "tsf").tasks_per_user, [0.1875, 0.15625], rtol=1e-12)
    np.testing.assert_allclose(fo.solve(instance, "uniform").tasks_per_user, [0.25, 0.125], rtol=1e-12)
    assert below_slice(instance, "tsf") == pytest.approx(0.25)


def test_cdrf_with_placement_constraints_breeds_envy() -> None:
    """User 3, of weight 10, fills the second server at s = 1/10; on the first, users 1 and 2 of rates 1 and 2 share 1 : 2."""
    eligibility = [[True, False], [True, True], [False, True]]
    instance = fo.Instance([[1], [1]], [[1], [1], [1]], [1, 1, 10], eligibility)
    allocation = fo.solve(instance, "cdrf")
    np.testing.assert_allclose(allocation.tasks_per_user, [1 / 3, 2 / 3, 1], rtol=1e-12)
    assert envy(instance, allocation) == pytest.approx(0.5)
    assert envy(instance, fo.solve(instance, "tsf")) <= 1e-9


def test_asset_fairness_gives_no_sharing_incentive() -> None:
    """Ghodsi et al. (2011), section 4.1: 30 of each resource; the second user has 12 of each, half is 15."""
    instance = fo.Instance([[30, 30]], [[1, 3], [1, 1]])
    np.testing.assert_allclose(fo.solve(instance, "asset").tasks_per_user, [6, 12], rtol=1e-12)
    np.testing.assert_allclose(fo.solve(instance, "uniform").tasks_per_user, [5, 15], rtol=1e-12)


def test_slices_waste() -> None:
    """Figure 1 of the PS-DSF paper: users 1 and 2 cannot use theirs of the second server."""
    instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
    allocation = fo.solve(instance, "uniform")
    np.testing.assert_allclose(allocation.tasks_per_user, [1.5, 1.5, 6])
    assert allocation.usage[:, 1].sum() / instance.total_capacity[1] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("notion", "honest", "lie"),
    [("efficiency", fo.Instance([[10]], [[1], [2]]), [0.5]), ("proportional", POOL, [3, 2])],
)
def test_a_lie_of_user_2_pays(notion: str, honest: fo.Instance, lie: list[Any]) -> None:
    """What it is given for the demand that it declares runs more of its real tasks."""
    told = honest.replace(demands=[honest.demands[0], lie])
    given = fo.solve(told, notion).tasks_per_user[1] * np.array(lie)
    runs = (given / honest.demands[1]).min()
    assert runs > 1.05 * fo.solve(honest, notion).tasks_per_user[1]
