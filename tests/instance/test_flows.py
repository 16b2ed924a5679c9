"""Flow networks: what `Instance.from_paths` makes of links and paths, and published rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import fairopt as fo


def levels_of(links: dict[str, float], flows: dict[str, list[list[str]]], weights: np.ndarray) -> np.ndarray:
    """Return the max-min rates of flows, level by level, by linear programs over the paths."""
    pairs = [(n, path) for n, paths in enumerate(flows.values()) for path in paths]
    matrix = np.array([[float(link in path) for _, path in pairs] for link in links])
    bounds, owner = np.array([*links.values()]), np.array([n for n, _ in pairs])
    own = (owner == np.arange(len(flows))[:, None]) / weights[:, None]
    level: dict[int, float] = {}
    while len(level) < len(flows):
        free = [n for n in range(len(flows)) if n not in level]
        floors = -np.array([level.get(n, 0) for n in range(len(flows))]) * (1 - 1e-12)
        rises = np.hstack([-own, np.isin(np.arange(len(flows)), free)[:, None].astype(float)])
        goal = np.append(np.zeros(len(pairs)), -1)
        found: Any = linprog(goal, A_ub=np.vstack([np.hstack([matrix, np.zeros((len(bounds), 1))]), rises]), b_ub=[*bounds, *floors])
        reached = -found.fun
        kept = np.array([level.get(n, reached) for n in range(len(flows))])
        for n in free:
            others = np.arange(len(flows)) != n
            most: Any = linprog(-own[n], A_ub=np.vstack([matrix, -own[others]]), b_ub=[*bounds, *(-kept[others] * (1 - 1e-12))])
            if -most.fun <= reached * (1 + 1e-7):
                level[n] = reached
    return np.asarray([level[n] for n in range(len(flows))] * weights)


@pytest.mark.parametrize("seed", range(8))
def test_random_networks(seed: int) -> None:
    """Rates are those of linear programs over paths and links alone."""
    rng = np.random.default_rng(seed)
    links = {f"link {j}": float(rng.integers(1, 20)) for j in range(int(rng.integers(3, 9)))}
    names = [*links]
    flows = {
        f"flow {n}": [
            [str(link) for link in rng.choice(names, size=int(rng.integers(1, 4)), replace=False)] for _ in range(int(rng.integers(1, 4)))
        ]
        for n in range(int(rng.integers(2, 7)))
    }
    weights = rng.integers(1, 5, len(flows)).astype(float)
    network = fo.Instance.from_paths(links, flows, weights=weights)
    np.testing.assert_allclose(fo.solve(network, "max-min").tasks_per_user, levels_of(links, flows, weights), rtol=1e-6)


@pytest.mark.parametrize("number", [1, 2, 5, 20])
@pytest.mark.parametrize("alpha", [0.5, 1, 2, 5])
def test_linear_networks(number: int, alpha: float) -> None:
    """One flow over all links, and one on each: x0 = 1 / (1 + L^(1 / alpha)); max-min gives everybody a half."""
    links = {str(j): 1 for j in range(number)}
    flows = {"long": [[*links]]} | {f"short {j}": [[j]] for j in links}
    network = fo.Instance.from_paths(links, flows)
    rates = fo.solve(network, "proportional", alpha=alpha).tasks_per_user
    long = 1 / (1 + number ** (1 / alpha))
    np.testing.assert_allclose(rates, [long, *[1 - long] * number], atol=1e-6)
    np.testing.assert_allclose(fo.solve(network, "max-min").tasks_per_user, 0.5)


def test_asymmetric_links() -> None:
    """floodns, MaxMinConnBwLpAllocatorTest.testAsymmetricLinksMulti: 100, 800/49 and 1650/49."""
    links = {"0-1": 100, "1-2": 7, "1-3": 10, "2-3": 40}
    flows = {"c0": [["0-1"]], "c1": [["1-2", "2-3"], ["1-3"]], "c2": [["2-3"]]}
    network = fo.Instance.from_paths(links, flows, weights=[0.8, 16, 33])
    np.testing.assert_allclose(fo.solve(network, "max-min").tasks_per_user, [100, 800 / 49, 1650 / 49], rtol=1e-8)
    answer = fo.solve(network, "max-min", exact=True).exact
    assert answer is not None
    assert [str(rate) for rate in answer.tasks_per_user] == ["100", "800/49", "1650/49"]


@pytest.mark.parametrize(
    ("links", "flows", "message"),
    [
        ({"ab": 1}, {"f": [["bc"]]}, 'path 1 takes the link "bc", which is none'),
        ({"ab": -1}, {"f": [["ab"]]}, 'the capacity of link "ab" must be finite and >= 0, got -1'),
        ({"ab": float("nan")}, {"f": [["ab"]]}, "must be finite and >= 0, got nan"),
        ({"ab": 1}, {"f": []}, 'flow "f" must have a list of paths'),
        ({"ab": 1}, {"f": ["ab"]}, 'flow "f": path 1 must be a list of links'),
        ({"ab": 1}, {"f": [["ab", "ab"]]}, 'takes the link "ab" twice'),
        ({"ab": 1}, {}, "there are no flows"),
    ],
)
def test_what_is_no_network_is_refused(links: Any, flows: Any, message: str) -> None:
    """Each refusal names the flow, the path and the link."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.Instance.from_paths(links, flows)


def test_names_with_dots_are_names_of_limits() -> None:
    """The names of limits have no dot, those of links may have one."""
    network = fo.Instance.from_paths({"10.0.0.1": 4}, {"f": [["10.0.0.1"]]})
    assert [limit.name for limit in network.limits] == ["10_0_0_1"]
