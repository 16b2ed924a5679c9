"""Bounds within a box hold at every instance of it: enclosures, fillings, heuristics and optima, at random points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.enclosures import SHARES, Enclosure
from fairopt.analysis.bounds.heuristics import bounded
from fairopt.analysis.bounds.levels import least_shares
from fairopt.analysis.bounds.optima import has_one_level, largest_level, largest_share, largest_total
from fairopt.analysis.worst_cases.objective import Subject
from fairopt.instance import FloatArray

HEURISTICS = ("uniform", "per-server-drf", "efficiency", "tsf", "max-min", "drfh:pop:parts=2:seed=1")
SLACK = 1e-9  # relative: what fairopt solves is certified up to this


def boxes(seed: int) -> Box:
    """A random small box: three users and servers, two or three resources, all kinds of ranges, some servers forbidden."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 4))
    low = rng.uniform(1, 2, (3, m))
    vary: dict[str, Any] = {"demands": (low, low * rng.uniform(1, 1.6, (3, m)))}
    if rng.random() < 0.4:
        weights = rng.uniform(1, 2, 3)
        vary["weights"] = (weights, weights * 1.3)
    if rng.random() < 0.4:
        tasks = np.where(rng.random(3) < 0.5, rng.uniform(1, 4, 3), np.inf)
        vary["tasks"] = (tasks, tasks * 1.5)
    capacities = rng.uniform(4, 12, (3, m))
    if rng.random() < 0.3:
        vary["capacities"] = (capacities, capacities * 1.2)
    eligible = rng.random((3, 3)) < 0.7 if rng.random() < 0.5 else np.ones((3, 3), bool)
    eligible[np.arange(3), np.arange(3)] = True
    counts = rng.integers(1, 3, 3)
    return Box.of(fo.Instance(capacities, low, eligibility=eligible, counts=counts), vary)


def chosen(name: str) -> fo.ShareNotion:
    """A notion of shares."""
    notion = fo.NOTIONS[name]()
    assert isinstance(notion, fo.ShareNotion)
    return notion


def shares(notion: str, allocation: fo.Allocation) -> FloatArray:
    """Weighted shares of an allocation, counted as a notion counts."""
    per_task = chosen(notion).share_per_task(allocation.instance)
    return np.asarray(per_task * allocation.tasks_per_user / allocation.instance.weights)


@pytest.mark.parametrize("seed", range(12))
def test_everything_holds_at_random_points(seed: int) -> None:
    """Of each notion and heuristic, at three instances of the box; and on a part of it that is nearly a point, the ends nearly meet."""
    box = boxes(seed)
    rng = np.random.default_rng(seed)
    for notion_name in (SHARES[seed % 6], "drfh"):
        if notion_name == "drf":
            continue  # of one server only, where it is drfh
        notion = chosen(notion_name)
        found = Enclosure.of(box, box.ranges, notion)
        level, least = largest_level(box, box.ranges, found), least_shares(box, box.ranges, found)
        most = [largest_share(box, box.ranges, found, n) for n in range(3)]
        total = largest_total(box, box.ranges, found, notion)
        for _ in range(3):
            instance = box.at(box.draw(rng))
            per_task = notion.share_per_task(instance)
            per_task = per_task if per_task.ndim == 1 else per_task[:, 0]  # of "max-min" the same on every server
            amounts = (instance.demands / per_task[:, None])[:, None]
            assert (found.share_low <= per_task).all()
            assert (per_task <= found.share_high).all()
            assert (found.amounts_low <= amounts * (1 + 1e-14)).all()
            assert (amounts <= found.amounts_high * (1 + 1e-14)).all()
            exact = fo.solve(instance, notion)
            held = shares(notion_name, exact)
            assert held.min() <= level * (1 + SLACK)
            assert (least <= held * (1 + SLACK)).all()
            assert (held <= np.array(most) * (1 + SLACK)).all()
            assert exact.tasks_per_user.sum() <= total * (1 + SLACK)
            if has_one_level(box):
                np.testing.assert_allclose(held, held.min(), rtol=1e-7)


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("seed", range(6))
def test_a_heuristic_gives_no_less(name: str, seed: int) -> None:
    """Its shares and total at three instances of the box."""
    box = boxes(100 + seed)
    rng = np.random.default_rng(seed)
    subject = Subject.of(name)
    assert subject.notion is not None
    heuristic = bounded(subject.notion, subject.baseline, box)
    assert heuristic is not None
    found = Enclosure.of(box, box.ranges, fo.NOTIONS["drfh"]())
    least = np.array([heuristic.share(box, box.ranges, found, n) for n in range(3)])
    total = heuristic.total(box, box.ranges)
    for _ in range(3):
        own = subject.run(box.at(box.draw(rng)))
        assert (least <= shares("drfh", own) * (1 + SLACK) + SLACK).all()
        assert total <= own.tasks_per_user.sum() * (1 + SLACK)


@pytest.mark.parametrize("name", HEURISTICS)
def test_the_ends_meet_at_a_point(name: str) -> None:
    """With positive demands and one answer, the bounds of a box of one instance are what it gives."""
    instance = fo.Instance([[10, 2, 5], [2, 10, 6], [7, 3, 4]], np.array([[1, 2, 1], [2, 1, 1.5], [1, 1, 2]]), weights=[1, 1.37, 1.21])
    box = Box.of(instance, {"demands": (instance.demands, instance.demands)})
    subject = Subject.of(name)
    assert subject.notion is not None
    heuristic = bounded(subject.notion, subject.baseline, box)
    assert heuristic is not None
    found = Enclosure.of(box, box.ranges, fo.NOTIONS["drfh"]())
    own, exact = subject.run(instance), fo.solve(instance, "drfh")
    least = [heuristic.share(box, box.ranges, found, n) for n in range(3)]
    np.testing.assert_allclose(least, shares("drfh", own), rtol=1e-6, atol=1e-6)
    assert heuristic.total(box, box.ranges) == pytest.approx(own.tasks_per_user.sum(), rel=1e-6)
    assert [largest_share(box, box.ranges, found, n) for n in range(3)] == pytest.approx(shares("drfh", exact).tolist(), rel=1e-6)
    assert largest_total(box, box.ranges, found, fo.NOTIONS["drfh"]()) == pytest.approx(exact.tasks_per_user.sum(), rel=1e-6)
