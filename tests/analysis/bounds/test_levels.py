"""What a leximin gives at least, at every level: never more than it gives, and just that where the box is a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.levels import least_shares
from fairopt.analysis.bounds.optima import largest_share
from fairopt.instance import FloatArray

DRFH = fo.NOTIONS["drfh"]()


def drawn(seed: int, *, zeros: bool) -> fo.Instance:
    """Five users on four servers, most with a few servers each, so that there are several levels; some have few tasks."""
    rng = np.random.default_rng(seed)
    demands = rng.uniform(1, 2, (5, 2)) * (rng.random((5, 2)) > 0.35 if zeros else 1)
    demands[demands.sum(axis=1) == 0, 0] = 1
    eligible = rng.random((5, 4)) < 0.45
    eligible[np.arange(5), rng.integers(0, 4, 5)] = True
    tasks = np.where(rng.random(5) < 0.3, rng.uniform(1, 8, 5), np.inf)
    return fo.Instance(rng.uniform(4, 20, (4, 2)), demands, eligibility=eligible, tasks=tasks, weights=rng.uniform(1, 2, 5))


def shares(allocation: fo.Allocation) -> FloatArray:
    """Weighted dominant shares."""
    instance = allocation.instance
    return np.asarray(allocation.tasks_per_user * (instance.demands / instance.total_capacity).max(axis=1) / instance.weights)


def ends(instance: fo.Instance, width: float) -> tuple[Box, FloatArray, FloatArray]:
    """A box of demands, and what each user has at least and at most."""
    box = Box.of(instance, {"demands": (instance.demands, instance.demands * (1 + width))})
    found = Enclosure.of(box, box.ranges, DRFH)
    most = [largest_share(box, box.ranges, found, n) for n in range(instance.n_users)]
    return box, least_shares(box, box.ranges, found), np.array(most)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_instance_gives_less_or_more(seed: int, zeros: bool) -> None:
    """At four instances of a box in which demands rise by up to 30 %."""
    box, least, most = ends(drawn(seed, zeros=zeros), 0.3)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        held = shares(fo.solve(box.at(box.draw(rng)), DRFH))
        assert (least <= held * (1 + 1e-8)).all()
        assert (held <= most * (1 + 1e-8)).all()


@pytest.mark.parametrize("seed", range(12))
def test_every_level_at_a_point(seed: int) -> None:
    """With some of each resource demanded by each user, both ends are what the leximin gives, at the third level and above, too."""
    instance = drawn(seed, zeros=False)
    _, least, most = ends(instance, 1e-9)
    held = shares(fo.solve(instance, DRFH))
    np.testing.assert_allclose(least, held, rtol=1e-6)
    np.testing.assert_allclose(most, held, rtol=1e-6)


def test_there_are_many_levels() -> None:
    """The instances of these tests have three and more."""
    levels = [np.unique(shares(fo.solve(drawn(seed, zeros=False), DRFH)).round(6)).size for seed in range(12)]
    assert sum(number >= 3 for number in levels) >= 4


def test_a_chain_of_three_levels() -> None:
    """By hand: exactly 3, 6 and 12; a third of each server runs 1, 3 and 6. The worst is the first user, 1 - 1/3, whatever they demand."""
    chain = fo.Instance([[3], [6], [12]], [[1], [1], [1]], eligibility=[[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    asked: dict[str, Any] = {"cluster": chain, "vary": {"demands": (1, 1.05)}, "measure": "user", "bound": True}
    worst = fo.worst_case("uniform", "max-min", **asked, gap=0.03, time_limit=30)
    exact, own = fo.solve(chain, "max-min"), fo.solve(chain, "uniform")
    assert exact.tasks_per_user == pytest.approx([3, 6, 12])
    assert own.tasks_per_user == pytest.approx([1, 3, 6])
    assert worst.stopped == ""
    assert 2 / 3 <= (worst.bound or 0) <= worst.value + 0.03
