"""Geometric binning within a box: nobody has less than the bound in any instance, and at a point it is what the baseline gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import fairopt as fo
from fairopt.analysis.bounds.binned import Binned
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.heuristics import bounded
from fairopt.analysis.worst_cases.objective import Subject
from fairopt.instance import FloatArray

DRFH = fo.NOTIONS["drfh"]()
BINNINGS = (
    "drfh:geometric-binning:first=0.04",
    "drfh:geometric-binning:first=0.04:part=0.2",
    "drfh:geometric-binning:first=0.04:part=0.6:ratio=4",
)


def drawn(seed: int) -> fo.Instance:
    """Three users on two servers, one of them with few tasks."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((3, 2)) < 0.7
    eligible[np.arange(3), [0, 1, seed % 2]] = True
    weights = rng.uniform(1, 1.5, 3)
    tasks = [rng.uniform(0.5, 3), np.inf, np.inf]
    return fo.Instance(rng.uniform(5, 12, (2, 2)), rng.uniform(1, 2, (3, 2)), eligibility=eligible, weights=weights, tasks=tasks)


def heuristic_of(name: str, box: Box) -> tuple[Subject, Binned]:
    """The baseline, and its bound."""
    subject = Subject.of(name)
    assert subject.notion is not None
    found = bounded(subject.notion, subject.baseline, box)
    assert isinstance(found, Binned)
    return subject, found


def levels(allocation: fo.Allocation) -> FloatArray:
    """Weighted dominant shares."""
    instance = allocation.instance
    return np.asarray(allocation.tasks_per_user * (instance.demands / instance.total_capacity).max(axis=1) / instance.weights)


@pytest.mark.parametrize("name", BINNINGS)
@pytest.mark.parametrize("seed", range(5))
def test_no_instance_gives_less(name: str, seed: int) -> None:
    """Neither a user nor all together, at six instances; all kinds of data vary in turn."""
    instance = drawn(seed)
    vary: dict[str, Any] = {"demands": (instance.demands, instance.demands * 1.1)}
    if seed % 2:
        vary |= {"weights": (instance.weights, instance.weights * 1.1), "capacities": (instance.capacities, instance.capacities * 1.1)}
    if seed % 3 == 0:
        vary |= {"tasks": (instance.tasks, instance.tasks * 1.2)}
    box = Box.of(instance, vary)
    subject, heuristic = heuristic_of(name, box)
    found = Enclosure.of(box, box.ranges, DRFH)
    least = np.array([heuristic.share(box, box.ranges, found, n) for n in range(3)])
    total, rng = heuristic.total(box, box.ranges), np.random.default_rng(seed)
    for _ in range(6):
        own = subject.run(box.at(box.draw(rng)))
        assert (least <= levels(own) + 1e-7).all()
        assert total <= own.tasks_per_user.sum() + 1e-6


def fewest(instance: fo.Instance, goals: list[dict[int, float]], ends: list[float]) -> FloatArray:
    """The least level of each user over all answers, by SciPy: goals, one after another, say what a unit in each bin is worth.

    Columns: tasks of each user on each server, then what lies in each bin of each user.
    """
    n, k = instance.n_users, instance.n_servers
    sigma = (instance.demands / instance.total_capacity).max(axis=1) / instance.weights
    width = n * k + n * len(ends)
    rows, sides = [], []
    for i in range(k):
        for r in range(2):
            row = np.zeros(width)
            for u in range(n):
                row[u * k + i] = instance.demands[u, r]
            rows.append(row)
            sides.append(instance.capacities[i, r])
    for u in range(n):
        placed, binned = np.zeros(width), np.zeros(width)
        placed[u * k : (u + 1) * k] = 1
        binned[u * k : (u + 1) * k] = -sigma[u]
        binned[n * k + u * len(ends) : n * k + (u + 1) * len(ends)] = 1
        rows += [placed, binned]
        sides += [min(instance.tasks[u], 1e6), 0.0]
    most = [1e6 if instance.eligibility[u, i] else 0.0 for u in range(n) for i in range(k)]
    most += list(np.diff(ends, prepend=0)) * n

    def smallest(cost: FloatArray) -> float:
        found = so.linprog(cost, np.array(rows), np.array(sides), bounds=[(0, end) for end in most])
        assert found.fun is not None
        return float(found.fun)

    for goal in goals:
        cost = np.zeros(width)
        for b, worth in goal.items():
            cost[n * k + b :: len(ends)] = -worth
        best = smallest(cost)
        rows.append(cost)
        sides.append(best + 1e-9)
    return np.array([sigma[u] * smallest(np.repeat(np.arange(n) == u, k, axis=0).astype(float) @ np.eye(n * k, width)) for u in range(n)])


@pytest.mark.parametrize(
    ("name", "goals", "ends"),
    [
        (BINNINGS[1], [{b: 0.2**b for b in range(7)}], [0.04 * 2.0**b for b in range(7)]),
        (BINNINGS[2], [{b: 0.6**b for b in range(5)}], [0.04 * 4.0**b for b in range(5)]),
        ("drfh:geometric-binning:first=0.1:ratio=50", [{0: 1}, {0: 1, 1: 1}], [0.1, 5.0]),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(5))
def test_a_point(name: str, goals: list[dict[int, float]], ends: list[float], seed: int) -> None:
    """In a box of one instance each user has what it has in its worst answer: of the one program, and of two bins in turn.

    Of bins in turn no more than the floors is known where somebody has fewer tasks than the first bin holds, so there tasks have no end.
    """
    instance = drawn(seed) if "part" in name else drawn(seed).replace(tasks=np.full(3, np.inf))
    box = Box.of(instance, {"demands": (instance.demands, instance.demands)})
    _, heuristic = heuristic_of(name, box)
    found = Enclosure.of(box, box.ranges, DRFH)
    least = [heuristic.share(box, box.ranges, found, n) for n in range(3)]
    assert least == pytest.approx(fewest(instance, goals, ends), rel=1e-3)


def test_one_server() -> None:
    """By hand: two users of 1 unit a task on one server of 10. Everybody fills the bins up to 1/4 and up to 1/2: there is no regret."""
    pool = fo.Instance([[10]], [[1], [1]])
    worst = fo.worst_case("drfh:geometric-binning:first=0.25:part=0.1", cluster=pool, vary={"demands": (1, 1.1)}, bound=True, gap=0.02)
    assert worst.value == pytest.approx(0, abs=1e-6)
    assert worst.bound == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", 'a bound is known for "geometric-binning" if its first bin is the same in every instance; give first, at most 0.165'),
        (":first=0.3", "ends at the level 0.3, which not everybody can reach in every instance of the box; give first, at most 0.165"),
        (":first=0.001:part=0.1", "too little for a bound; give a larger ratio or part, or leave part out"),
    ],
)
def test_what_has_no_bound(options: str, message: str) -> None:
    """Said, with what to give instead. With demands up to 2, servers (10, 2) and (2, 10) give two users a share of 1/6 at least."""
    pair = fo.Instance([[10, 2], [2, 10]], np.ones((2, 2)))
    with pytest.raises(fo.Unsupported) as error:
        fo.worst_case(f"drfh:geometric-binning{options}", cluster=pair, vary={"demands": (1, 1.6)}, bound=True)
    assert message in str(error.value)
    with pytest.raises(fo.Unsupported, match=r'"equal-binning", whose bins end at other levels in every instance'):
        fo.worst_case("drfh:equal-binning", cluster=pair, vary={"demands": (1, 1.6)}, bound=True)
