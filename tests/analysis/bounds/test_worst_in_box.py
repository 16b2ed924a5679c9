"""The worst case of a box: both ends enclose what brute force finds, no sampled instance beats the bound, and bad input is said."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import fairopt as fo
from fairopt.instance import FloatArray

PAIR = fo.Instance([[10, 2], [2, 10]], np.ones((2, 2)))


def level(capacities: FloatArray, amounts: FloatArray) -> float:
    """The largest L with sum_i y[n,i] = L and sum_n a[n,r] y[n,i] <= c[i,r], by SciPy."""
    (n, m), k = amounts.shape, len(capacities)
    rows = np.zeros((k * m, n * k + 1))
    for user, server, r in itertools.product(range(n), range(k), range(m)):
        rows[server * m + r, user * k + server] = amounts[user, r]
    equal = np.zeros((n, n * k + 1))
    for user in range(n):
        equal[user, user * k : (user + 1) * k] = 1
    equal[:, -1] = -1
    found = so.linprog(np.append(np.zeros(n * k), -1), rows, capacities.ravel(), equal, np.zeros(n))
    assert found.x is not None
    return float(found.x[-1])


def slices(capacities: FloatArray, amounts: FloatArray) -> FloatArray:
    """Shares in the uniform slices."""
    return np.array([np.min(capacities / each, axis=1).sum() for each in amounts]) / len(amounts)


def by_brute_force(capacities: FloatArray, low: float, high: float, steps: int) -> tuple[float, float]:
    """Both ends of the worst regret of uniform slices against DRFH, two users and resources, over a grid of ratios of demands.

    Shares know only d[1] / d[2]. On a cell of the grid, amounts per share d[r] / max_s (d[s] / C[s]) lie between their values at its ends,
    since each of them is monotone in the ratio. Both levels fall as amounts grow: the cell's regret is at most 1 - own(largest) /
    best(smallest).
    """
    total = capacities.sum(axis=0)
    ratios = np.geomspace(low / high, high / low, steps + 1)
    demands = np.stack([ratios, np.ones(steps + 1)], axis=1)
    amounts = demands / (demands / total).max(axis=1)[:, None]
    found, bound = -1.0, -1.0
    for i, j in itertools.combinations_with_replacement(range(steps), 2):
        cells = [np.stack([amounts[c], amounts[c + 1]]) for c in (i, j)]
        least, most = (np.stack([end(cell, axis=0) for cell in cells]) for end in (np.min, np.max))
        bound = max(bound, 1 - slices(capacities, most).min() / level(capacities, least))
        point = np.stack([amounts[i], amounts[j]])
        found = max(found, 1 - slices(capacities, point).min() / level(capacities, point))
    return found, bound


@pytest.mark.parametrize("capacities", [[[10, 2], [2, 10]], [[3, 9], [8, 4]]])
@pytest.mark.parametrize("measure", ["level", "user"])
def test_both_ends_against_a_grid(capacities: list[list[float]], measure: str) -> None:
    """lower <= truth <= upper on both sides, so the ends cross."""
    found, bound = by_brute_force(np.array(capacities, float), 1, 2, 12)
    cluster = fo.Instance(capacities, np.ones((2, 2)))
    worst = fo.worst_case("uniform", "drfh", cluster=cluster, vary={"demands": (1, 2)}, measure=measure, bound=True, gap=0.01)
    assert worst.bound is not None
    assert (worst.stopped, worst.measure, worst.gap) == ("", measure, worst.bound - worst.value)
    assert worst.bound <= worst.value + 0.01
    assert found - 1e-9 <= worst.bound
    assert worst.value <= bound + 1e-9
    assert bound - found < 0.1


def test_a_quarter() -> None:
    """Servers (10, 2) and (2, 10), demands in [1, 2]: with (2, 1) and (1, 2) each user has 1/4 and could have 1/3; in fractions, too."""
    worst = fo.worst_case("uniform", "drfh", cluster=PAIR, vary={"demands": (1, 2)}, measure="user", bound=True, gap=0.02, exact=True)
    assert worst.value == pytest.approx(0.25)
    assert worst.proved == Fraction(1, 4)
    assert ((worst.instance.demands >= 1) & (worst.instance.demands <= 2)).all()
    assert worst.regret.user == pytest.approx(0.25)
    assert 0.25 <= (worst.bound or 0) <= 0.27
    assert str(worst).startswith("WorstCaseInBox(uniform against drfh: regret (user) 1/4 to 0.2")


def cases() -> list[Any]:
    """Heuristics, notions and measures over several boxes."""
    boxes: list[dict[str, Any]] = [
        {"demands": (1, 2)}, {"weights": (1, 3)}, {"demands": (1, 1.5), "weights": (1, 2)}, {"tasks": (0.5, 3)}, {"capacities": (2, 5)},
        {"demands": ([[0, 1], [1, 0], [1, 1]], [[0, 2], [2, 0], [2, 2]])},
    ]  # fmt: skip
    heuristics = ("uniform", "per-server-drf", "efficiency", "asset", "drfh:pop:parts=2")
    notions = (("drfh", "level"), ("drfh", "user"), ("max-min", "level"), ("tsf", "user"), ("efficiency", "total"), ("drfh", "total"))
    return [(heuristics[k % 5], *notions[k % 6], boxes[(k // 2) % 6]) for k in range(18)]


@pytest.mark.parametrize(("heuristic", "notion", "measure", "vary"), cases(), ids=str)
def test_no_sampled_instance_beats_the_bound(heuristic: str, notion: str, measure: str, vary: dict[str, Any]) -> None:
    """A search without a bound, which solves every instance by fairopt, finds none; and the value is that of its instance."""
    cluster = fo.Instance([[10, 3], [2, 9]], np.ones((3, 2)), eligibility=[[True, True], [True, True], [False, True]])
    asked: dict[str, Any] = {"cluster": cluster, "vary": vary, "measure": measure}
    worst = fo.worst_case(heuristic, notion, **asked, bound=True, time_limit=0.5)
    drawn = fo.worst_case(heuristic, notion, **asked, tries=25)
    assert worst.bound is not None
    assert drawn.bound is None
    assert worst.value <= worst.bound
    assert drawn.value <= worst.bound + 1e-7
    again = fo.regret(worst.own, notion, exact=fo.solve(worst.instance, notion))
    assert worst.value == pytest.approx(getattr(again, measure), abs=1e-6)


def test_it_goes_on_from_where_it_was_stopped(tmp_path: Path) -> None:
    """The parts that were bounded are not bounded again; another question, and a damaged file, are refused."""
    asked: dict[str, Any] = {"cluster": PAIR, "vary": {"demands": (1, 2)}, "bound": True, "resume": tmp_path / "kept"}
    steps = iter([False] * 20 + [True] * 10)
    first = fo.worst_case("uniform", "drfh", **asked, gap=0.05, stop=lambda: next(steps))
    assert (first.stopped, first.nodes) == ("interrupted", 21)
    second = fo.worst_case("uniform", "drfh", **asked, gap=0.05)
    whole = fo.worst_case("uniform", "drfh", **(asked | {"resume": None}), gap=0.05)
    assert (second.stopped, second.nodes, second.bound, second.value) == ("", whole.nodes, whole.bound, whole.value)
    message = (
        r"^\S*bound\.npz keeps another search for a worst case: measure was 'level' and is 'user'; give another folder, or ask the same$"
    )
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.worst_case("uniform", "drfh", **asked, measure="user")
    path = tmp_path / "kept" / "bound.npz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(fo.InvalidInstance, match=r"bound\.npz"):
        fo.worst_case("uniform", "drfh", **asked)


@pytest.mark.parametrize("measure", ["level", "user"])
def test_a_cluster_without_a_resource_that_the_box_has(measure: str) -> None:
    """By hand: one server of (6, 6), demands of (2, 1) and (1, 2). Half a server runs 1.5 tasks, and together they run 2 each."""
    cluster = fo.Instance([[10, 0]], [[1, 1], [1, 1]])
    vary = {"capacities": (6, 6), "demands": (1, 2)}
    worst = fo.worst_case("uniform", "drfh", cluster=cluster, vary=vary, measure=measure, bound=True, gap=0.02)
    assert worst.value == pytest.approx(0.25)
    assert 0.25 <= (worst.bound or 0) <= 0.28


def test_parts_are_dealt_on_an_instance_of_the_box() -> None:
    """The user who demands nothing in the cluster is in no part there; in each instance of the box it is in one."""
    held = fo.Instance([[10]], [[1], [0], [1], [1]], tasks=[10] * 4, weights=[3, 3, 1, 1])
    in_box = held.replace(demands=np.ones((4, 1)))
    regrets: list[float] = []
    for seed in range(8):
        pop = f"drfh:pop:parts=2:seed={seed}"
        worst = fo.worst_case(pop, "drfh", cluster=held, vary={"demands": (1, 1.001)}, bound=True, gap=0.05)
        regrets.append(fo.regret(fo.schedule(in_box, pop), "drfh").level or 0.0)
        assert regrets[-1] <= (worst.bound or 0) + 1e-7
        assert (worst.bound or 0) <= regrets[-1] + 0.1
    assert max(regrets) == pytest.approx(1 / 3)  # with weights of 3 and 3 in one part: levels of 5/6 and 10/8
    assert min(regrets) == pytest.approx(0)


def test_a_time_limit_gives_both_ends() -> None:
    """However short it is: one part is bounded at least. And progress tells both ends."""
    seen: list[tuple[int, float, float]] = []
    worst = fo.worst_case(
        "uniform", "drfh", cluster=PAIR, vary={"demands": (1, 2)}, bound=True, gap=0, time_limit=0.001, done=lambda *now: seen.append(now)
    )
    assert (worst.stopped, worst.open_parts > 0) == ("time limit", True)
    assert seen[-1][1:] == (worst.value, worst.bound)
    assert sum(each[0] for each in seen) == worst.nodes
    assert json.loads(json.dumps(worst.to_dict()))["bound"] == worst.bound


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"vary": {"demands": (1, np.inf)}},
            'the range of "demands" has no largest number: a bound needs a bounded box; give a finite one',
        ),
        ({"vary": {"demands": (2, 1)}}, 'the range of "demands" is empty: from 2 to 1; give the smallest number first'),
        ({"vary": {"demands": ([[1, 1], [1, 2]], 1.5)}}, 'empty at "user-2", "resource-2": from 2 to 1.5'),
        ({"vary": {"demands": (0, 1)}}, 'user "user-1" demands nothing at the low end'),
        ({"vary": {"demands": 3}}, 'the range of "demands" is 3; give the smallest and the largest number'),
        ({"vary": {"demands": ("a", 2)}}, "give a number, or an array of shape (2, 2)"),
        ({"vary": {"demands": (-1, 2)}}, "give numbers >= 0"),
        (
            {"vary": {"demand": (1, 2)}},
            '"demand" cannot vary (did you mean "demands"?); use any of demands, weights, tasks, capacities, speeds',
        ),
        ({"vary": {}}, "vary is empty, so the box has a single instance"),
        ({"vary": ["demands"]}, "give what varies and between which numbers"),
        ({"vary": {"weights": (0, 1)}}, 'the smallest number of "weights" is 0; give one > 0'),
        ({"vary": {"capacities": (0, 1)}}, 'the cluster may have no "resource-1"'),
        ({"schedule": "drfh:slots"}, 'no bound is known for "drfh:slots" here; bounds are known for uniform, per-server-drf'),
        ({"schedule": "drfh:pop", "exact": True}, "leave exact out"),
        ({"schedule": "proportional"}, 'no bound is known for "proportional"'),
        ({"schedule": "drfh:pop:split=1"}, "leave split out"),
        ({"notion": "proportional"}, 'no bound is known against "proportional"; bounds are known against drfh'),
        ({"notion": "efficiency"}, 'no bound is known against "efficiency"'),
        ({"notion": "drfh:only=resource-1"}, "no bound is known where resources count differently"),
        ({"notion": None}, 'name the notion that "uniform" is held to'),
        ({"measure": "leximin"}, '"leximin" has no bound; use level, user or total'),
        ({"measure": "levle", "bound": False}, 'there is no measure "levle" (did you mean "level"?)'),
        ({"time_limit": "x"}, "time_limit is 'x'"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"seed": "x"}, "seed is 'x'; give a whole number >= 0"),
        ({"tries": 0, "bound": False}, "tries is 0; give a whole number >= 1"),
        ({"bound": "yes"}, "bound is 'yes'"),
        ({"gap": float("nan")}, "gap is nan"),
        ({"gap": 2}, "gap is 2; give how far apart"),
        ({"integral": True}, "no bound is known against the optimum of whole tasks"),
        ({"users": 5}, "with a cluster, leave users out: only a search among random instances takes it"),
        ({"cluster": None}, "ranges in vary= are for the instances of one cluster"),
        ({"cluster": "x.yaml"}, "cluster is str; give a fairopt.Instance"),
        ({"cluster": fo.Instance([[4]], [[1]], shared=None, parallelism=[0.5])}, "the cluster has limited parallelism"),
    ],
    ids=str,
)
def test_bad_input(changes: dict[str, Any], message: str) -> None:
    """What, where, and what to do."""
    asked: dict[str, Any] = {"schedule": "uniform", "notion": "drfh", "cluster": PAIR, "vary": {"demands": (1, 2)}, "bound": True}
    with pytest.raises((fo.InvalidInstance, fo.Unsupported)) as error:
        fo.worst_case(**(asked | changes))
    assert message in str(error.value)
