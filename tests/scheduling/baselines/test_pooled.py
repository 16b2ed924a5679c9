"""The pooled cluster with greedy rounding, and whole tasks from fractions."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instance_of_everything
from support.baseline_cases import small_cluster

import fairopt as fo


@pytest.mark.parametrize("seed", range(8))
def test_nobody_has_more_than_on_the_pool(seed: int) -> None:
    """Whole tasks within all limits, at most those of the pool rounded up; each user has these, or no task of it fits any more."""
    instance = small_cluster(seed).replace(counts=None)
    entitled = fo.solve(instance.pooled(), "drfh").tasks_per_user
    found = fo.schedule(instance, "drfh:pooled")
    most = np.ceil(entitled * (1 - 1e-7))
    assert (found.tasks == np.round(found.tasks)).all()
    assert (found.tasks_per_user <= most).all()
    assert found.certificate.whole_tasks
    free = instance.row_capacity - found.usage
    for n in np.flatnonzero(found.tasks_per_user < np.minimum(most, np.floor(instance.tasks))):
        assert not (free >= instance.demands[n]).all(axis=1).any()


def test_room_of_the_pool_that_no_server_has() -> None:
    """Two servers of 3 run one task of 2 each, where the pool would run three."""
    instance = fo.Instance([[3], [3]], [[2]])
    assert fo.solve(instance.pooled(), "drfh").tasks_per_user.tolist() == [3.0]
    assert fo.schedule(instance, "drfh:pooled").tasks_per_user.tolist() == [2.0]


def test_a_pool_has_one_worth_of_a_task() -> None:
    """One utility for each user is taken; one for each server is refused, and so are rates."""
    instance = fo.Instance([[3], [3]], [[1], [1]])
    assert fo.schedule(instance, "max-min:pooled", utility=[1, 2]).tasks_per_user.tolist() == [4.0, 2.0]
    with pytest.raises(fo.Unsupported, match="the utility differs between servers; leave utility out"):
        fo.schedule(instance, "max-min:pooled", utility=[[1, 2], [1, 1]])
    with pytest.raises(fo.InvalidInstance, match="the instance gives rates"):
        fo.schedule(fo.Instance([[1], [1]], [[1]], rates=[[2, 3]]), "tsf:pooled")


@pytest.mark.parametrize("spec", ["drfh:pop", "tsf:swan", "drfh:water-filling", "proportional:partial-allocation", "efficiency:pinning"])
@pytest.mark.parametrize("seed", range(4))
def test_rounded_baselines(seed: int, spec: str) -> None:
    """Whole tasks on single servers, at most one more than the fractions of each user, and not below them rounded down by server."""
    instance = small_cluster(seed)
    fractions, whole = fo.schedule(instance, spec), fo.schedule(instance, spec, integral=True)
    assert (whole.tasks == np.round(whole.tasks)).all()
    assert whole.certificate.whole_tasks
    assert not fractions.certificate.whole_tasks or (fractions.tasks == np.round(fractions.tasks)).all()
    assert (whole.tasks_per_user <= np.ceil(fractions.tasks_per_user * (1 - 1e-6))).all()
    counts = instance.counts
    assert (whole.tasks.sum(axis=1) >= (counts * np.floor(fractions.tasks / counts * (1 + 1e-9))).sum(axis=1)).all()


@pytest.mark.parametrize("name", sorted(fo.BASELINES))
@pytest.mark.parametrize("seed", range(6))
def test_instances_with_everything(seed: int, name: str) -> None:
    """Zero demands, missing resources, constraints, counts: no limit is exceeded, in fractions and in whole tasks."""
    instance = instance_of_everything(seed)
    criterion = "proportional" if name == "partial-allocation" else "drfh"
    for integral in (False, True):
        found = fo.schedule(instance, f"{criterion}:{name}", integral=integral)
        assert found.certificate.feasibility < 1e-8
        assert found.certificate.qualifier == "approximate"
        assert found.details["guarantee"] == fo.BASELINES[name].guarantee
