"""Bounds where speeds vary: shares and totals count work, and every end holds at random instances of the box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.heuristics import bounded
from fairopt.analysis.bounds.levels import least_shares
from fairopt.analysis.bounds.optima import largest_share, largest_total
from fairopt.analysis.worst_cases.objective import Subject

HEURISTICS = (
    "uniform",
    "per-server-drf",
    "efficiency",
    "tsf",
    "max-min",
    "drfh:pop:parts=2:seed=1",
    "drfh:geometric-binning:first=0.01:part=0.3",
)


def drawn(seed: int) -> fo.Instance:
    """Three users on two or three servers, each with a speed of its own on each."""
    rng = np.random.default_rng(seed)
    servers = 2 + seed % 2
    eligible = rng.random((3, servers)) < 0.8
    eligible[np.arange(3), rng.integers(0, servers, 3)] = True
    demands, speeds = rng.uniform(1, 2, (3, 2)), rng.uniform(1, 3, (3, servers))
    return fo.Instance(rng.uniform(4, 12, (servers, 2)), demands, eligibility=eligible, speeds=speeds)


@pytest.mark.parametrize("name", ["drfh", "tsf", "cdrf", "max-min"])
@pytest.mark.parametrize(("seed", "width"), [(0, 1.2), (3, 1.2), (1, 1.0)])
def test_everything_holds_at_random_points(seed: int, width: float, name: str) -> None:
    """Enclosures, the optimum and heuristics; in a box of one instance the share of each user is known."""
    instance, notion = drawn(seed), fo.NOTIONS[name]()
    demands, speeds = instance.demands_by_kind[:, 0], instance.speeds
    box = Box.of(instance, {"demands": (demands, demands * width), "speeds": (speeds, speeds * width)})
    box.check()
    found = Enclosure.of(box, box.ranges, notion)
    least, total = least_shares(box, box.ranges, found), largest_total(box, box.ranges, found, notion)
    most = np.array([largest_share(box, box.ranges, found, n) for n in range(3)])
    own = {}
    for word in HEURISTICS:
        subject = Subject.of(word)
        assert subject.notion is not None
        heuristic = bounded(subject.notion, subject.baseline, box)
        assert heuristic is not None
        shares = np.array([heuristic.share(box, box.ranges, found, n) for n in range(3)])
        own[word] = subject, shares, heuristic.total(box, box.ranges)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        each = box.at(box.draw(rng))
        per = np.ones(3) if name == "max-min" else notion.share_per_task(each)  # type: ignore[attr-defined]
        amounts = (each.demands_by_kind[:, 0] / per[:, None])[:, None] / each.speeds[:, :, None]
        assert (found.amounts_low <= amounts * (1 + 1e-9)).all()
        assert (amounts <= found.amounts_high * (1 + 1e-9)).all()
        exact = fo.solve(each, notion)
        assert (least <= per * exact.work * (1 + 1e-7)).all()
        assert (per * exact.work <= most * (1 + 1e-7)).all()
        assert exact.work.sum() <= total * (1 + 1e-7)
        for subject, shares, work in own.values():
            given = subject.run(each)
            assert (shares <= per * given.work * (1 + 1e-6) + 1e-8).all()
            assert work <= given.work.sum() * (1 + 1e-6)
        if width == 1:
            np.testing.assert_allclose(most, per * exact.work, rtol=1e-6)


def test_a_box_of_speeds() -> None:
    """By hand: servers of 4, speeds (v, 1) and (1, v): slices give each user 2 v + 2, its faster server alone 4 v. At v = 3, 1 - 8/12.

    At v = 1 both have the same. So the worst is 1/3, where both are as fast as they can be, each on a server of its own.
    """
    cluster = fo.Instance([[4], [4]], [[1], [1]], speeds=[[1, 1], [1, 1]])
    vary = {"speeds": ([[1, 1], [1, 1]], [[3, 1], [1, 3]])}
    asked: dict[str, Any] = {"cluster": cluster, "vary": vary, "measure": "level"}
    worst = fo.worst_case("uniform", "max-min", **asked, bound=True, gap=0.02, time_limit=30)
    assert worst.value == pytest.approx(1 / 3, abs=0.02)
    assert 1 / 3 - 1e-9 <= (worst.bound or 0) <= 1 / 3 + 0.02
    searched = fo.worst_case("uniform", "max-min", **asked, tries=30)
    assert searched.value <= (worst.bound or 0) + 1e-7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vary": {"speeds": (0, 2)}}, 'the smallest number of "speeds" is 0 where the largest is more; give one > 0'),
        ({"vary": {"speeds": (1, 2), "tasks": (1, 2)}}, "where users have finitely many tasks and speeds differ from 1"),
        ({"schedule": "drfh:first-fit"}, 'no bound is known for "drfh:first-fit" with speeds'),
        ({"where": ["speeds['user-1', 'server-1'] >= 3"]}, "the box is empty"),
    ],
    ids=str,
)
def test_bad_input(changes: dict[str, Any], message: str) -> None:
    """What, and what to do."""
    cluster = fo.Instance([[4, 4], [5, 5]], [[1, 1], [1, 2]])
    asked: dict[str, Any] = {"schedule": "uniform", "notion": "drfh", "cluster": cluster, "vary": {"speeds": (1, 2)}, "bound": True}
    with pytest.raises((fo.InvalidInstance, fo.Unsupported)) as error:
        fo.worst_case(**(asked | changes))
    assert message in str(error.value)
