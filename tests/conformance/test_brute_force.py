"""The library against exact arithmetic that shares no code with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.exact import integral_outcomes, leximin, maximise, shares_per_task
from strategies import instances, limited_instances

import fairopt as fo

NOTIONS = ["drfh", "cdrf", "tsf", "asset"]


def test_the_reference_itself() -> None:
    """max 3x + 2y, x + y <= 4, x + 3y <= 6, x <= 3: optimum 11 at (3, 1)."""
    f = [Fraction(v) for v in range(7)]
    assert maximise([f[3], f[2]], [[f[1], f[1]], [f[1], f[3]], [f[1], f[0]]], [f[4], f[6], f[3]]) == 11


@pytest.mark.parametrize("notion", NOTIONS)
@given(instance=instances(max_users=3, max_servers=2, max_resources=2, whole=True))
@settings(max_examples=60)
def test_leximin_equals_the_rational_one(notion: str, instance: fo.Instance) -> None:
    """x[n] agrees with fractions to 1e-9, on instances with zero demands, constraints, counts, limits and weights."""
    expected = [float(x) for x in leximin(instance, notion)]
    np.testing.assert_allclose(fo.solve(instance, notion).tasks_per_user, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("notion", NOTIONS)
@given(instance=limited_instances(max_users=3, max_servers=3, max_resources=2, whole=True))
@settings(max_examples=40)
def test_leximin_of_limited_users_equals_the_rational_one(notion: str, instance: fo.Instance) -> None:
    """The same where users are limited to some servers at once."""
    expected = [float(x) for x in leximin(instance, notion)]
    np.testing.assert_allclose(fo.solve(instance, notion).tasks_per_user, expected, rtol=1e-9, atol=1e-9)


@given(instance=limited_instances(max_users=2, max_servers=2, max_resources=2, whole=True))
@settings(max_examples=40)
def test_whole_tasks_of_limited_users_equal_enumeration(instance: fo.Instance) -> None:
    """Whole tasks, every one of which takes its part of the servers that the user may be on."""
    share = shares_per_task(instance, "drfh")
    tasks = fo.solve(instance, "drfh", integral=True).tasks_per_user
    if instance.servable.any():
        assert sorted(share[n] * int(tasks[n]) for n in np.flatnonzero(instance.servable)) == integral_outcomes(instance, "drfh")


@pytest.mark.parametrize("notion", ["drfh", "cdrf"])
@given(instance=instances(max_users=3, max_servers=2, max_resources=2, whole=True))
@settings(max_examples=40)
def test_whole_tasks_equal_enumeration(notion: str, instance: fo.Instance) -> None:
    """The sorted shares of the best whole-task allocation are unique: compare those."""
    servable = np.flatnonzero(instance.servable)
    allocation = fo.solve(instance, notion, integral=True)
    assert (allocation.tasks == np.round(allocation.tasks)).all()
    share = shares_per_task(instance, notion)
    reached = sorted(share[n] * int(allocation.tasks_per_user[n]) for n in servable)
    if servable.size:
        assert reached == integral_outcomes(instance, notion)


@given(data=st.data())
@settings(max_examples=30)
def test_integral_total_equals_enumeration(data: st.DataObject) -> None:
    """The uniform slice over whole tasks: each server's slice rounded down, user by user."""
    instance = data.draw(instances(max_users=3, max_servers=2, max_resources=2, whole=True))
    tasks = fo.solve(instance, "uniform", integral=True).tasks_per_user
    parts = instance.weights / instance.weights.sum()
    for n in range(instance.n_users):
        slices = 0
        for i in np.flatnonzero(instance.eligibility[n]):
            alone = min(
                Fraction(instance.capacities[i, r]) / Fraction(instance.demands[n, r])
                for r in range(instance.n_resources)
                if instance.demands[n, r] > 0
            )
            slices += int(instance.counts[i]) * int(float(alone) * parts[n] + 1e-9)
        assert tasks[n] == min(slices, instance.tasks[n])
