"""Greedy schedules within a box: every schedule of an instance of the box is one of the ends that are followed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.greedy import Filling, _Followed


def drawn(seed: int) -> tuple[fo.Instance, dict[str, Any]]:
    """Two or three users with a few tasks on two rows of servers, and demands that vary by a tenth."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    demands = rng.uniform(2, 4, (n, m))
    vary: dict[str, Any] = {"demands": (demands, demands * 1.1)}
    if seed % 3 == 0:
        vary["tasks"] = (np.full(n, 1.5), np.full(n, 3.5))
    if seed % 4 == 0:
        vary["weights"] = (1, 1.2)
    return fo.Instance(rng.uniform(5, 9, (2, m)), demands, counts=[1, 1 + seed % 2]), vary


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit"])
@pytest.mark.parametrize("seed", range(8))
def test_every_schedule_is_an_end(placement: str, seed: int) -> None:
    """At ten instances of the box; and the fewest tasks are no more than anybody has."""
    cluster, vary = drawn(seed)
    box = Box.of(cluster, vary)
    notion = fo.NOTIONS["drfh"]()
    ends = _Followed(box, box.ranges, notion, placement == "first-fit").ends()
    assert ends is not None
    known = {tuple(end) for end in ends.tolist()}
    heuristic, found = Filling(notion, placement == "first-fit"), Enclosure.of(box, box.ranges, notion)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        instance = box.at(box.draw(rng))
        own = fo.schedule(instance, "drfh", placement=placement)
        assert tuple(own.tasks_per_user.astype(int).tolist()) in known
        shares = own.tasks_per_user * (instance.demands / instance.total_capacity).max(axis=1) / instance.weights
        assert all(heuristic.share(box, box.ranges, found, n) <= shares[n] + 1e-9 for n in range(instance.n_users))
        assert heuristic.total(box, box.ranges) <= own.tasks_per_user.sum()


@pytest.mark.parametrize("seed", range(6))
def test_a_point_has_one_end(seed: int) -> None:
    """Without ties, first-fit is what `fairopt.schedule` does."""
    cluster, _ = drawn(seed)
    box = Box.of(cluster, {"demands": (cluster.demands, cluster.demands)})
    ends = _Followed(box, box.ranges, fo.NOTIONS["drfh"](), True).ends()
    assert ends is not None
    own = fo.schedule(cluster, "drfh", placement="first-fit").tasks_per_user.astype(int).tolist()
    starts = [end for end in ends.tolist() if end == own]
    assert len(starts) == 1
    assert len(ends) <= len(own)  # all shares are 0 at first, so that any user may begin


def test_two_users_on_one_server() -> None:
    """10 units and demands from 2 to 4. With (4, 2 + little) user 1 has one task or two; both ends meet, and no sample is worse."""
    cluster = fo.Instance([[10]], [[1], [1]])
    asked: dict[str, Any] = {"cluster": cluster, "vary": {"demands": (2, 4)}, "measure": "level"}
    worst = fo.worst_case("drfh:first-fit", "drfh", **asked, bound=True, gap=0.06)
    assert worst.stopped == ""
    assert worst.bound is not None
    drawn_worst = fo.worst_case("drfh:first-fit", "drfh", **asked, integral=False, tries=200)
    assert drawn_worst.value <= worst.bound + 1e-9
    assert worst.value <= worst.bound <= worst.value + 0.06
