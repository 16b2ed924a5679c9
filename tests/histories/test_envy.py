"""Envy of owners at a moment: by hand, and against loops over owners, streams, rows and resources."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from fairopt.histories.by_server import StreamTasks
from fairopt.histories.envy import envy_at
from fairopt.instance.by_server import Kinds


def setting(**changes: Any) -> Any:
    """Two owners with one stream each on one row of 8 CPUs; a task is 1/8 of the cluster."""
    found = SimpleNamespace(
        **{
            "owners": ("a", "b"),
            "cluster": SimpleNamespace(n_servers=1, n_server_resources=1),
            "owner": np.array([0, 1]),
            "task_share": np.array([1 / 8, 1 / 8]),
            "weights": np.array([1.0, 1.0]),
            "siblings": np.array([0, 0]),
            "eligibility": np.ones((2, 1), bool),
            "demands": np.array([[1.0], [1.0]]),
            "speeds": None,
            **changes,
        }
    )
    by_kind = found.demands if found.demands.ndim == 3 else found.demands[:, None]
    kind_of = np.arange(found.cluster.n_servers) if by_kind.shape[1] > 1 else np.zeros(found.cluster.n_servers, int)
    found.cluster.n_resources = by_kind.shape[2]
    found.tasks = StreamTasks(Kinds(by_kind, kind_of), found.speeds, np.zeros(len(by_kind), int))
    found.shares = lambda tasks: np.bincount(found.owner, weights=tasks * found.task_share, minlength=len(found.owners))
    return found


@pytest.mark.parametrize(
    ("weights", "envy"),
    [([1, 1], 6 / 8 - 2 / 8), ([1, 3], 8 / 8 - 2 / 8), ([3, 1], 0), ([1, 0], 0), ([0, 1], 0)],
)
def test_the_bundle_of_another_is_scaled_by_weights(weights: list[float], envy: float) -> None:
    """a holds 6 CPUs, and b 2 and wants 8. With three times the weight of a, b could run 18 with what a holds, and wants 8.

    With a third of it b could run 2, which it has. Nobody is compared with an owner of weight 0.
    """
    found = envy_at(setting(weights=np.array(weights, float)), np.array([6.0, 8.0]), np.array([[6.0], [2.0]]))
    assert found.tolist() == pytest.approx([0, envy])


def by_loops(of: Any, wanted: np.ndarray, held: np.ndarray) -> list[float]:
    """The formula of the module, term by term."""
    envy, servers = [], of.cluster.n_server_resources
    for n in range(len(of.owners)):
        streams = [s for s in range(len(of.owner)) if of.owner[s] == n]
        own = sum(held[s].sum() * of.task_share[s] for s in streams)
        most = 0.0
        for s in streams:
            if wanted[s] <= held[s].sum() * (1 + 1e-9):
                continue
            for m in range(len(of.owners)):
                bundle = sum(held[other][:, None] * of.demands[other][None] for other in range(len(of.owner)) if of.owner[other] == m)
                if m == n or of.siblings[m] != of.siblings[n] or of.weights[m] == 0 or not np.any(bundle):
                    continue
                could = 0.0
                for i in range(of.cluster.n_servers):
                    if of.eligibility[s, i]:
                        could += min(bundle[i, r] / d if d > 0 else math.inf for r, d in enumerate(of.demands[s][:servers]))
                for r, d in enumerate(of.demands[s][servers:], servers):
                    could = min(could, bundle[:, r].sum() / d if d > 0 else math.inf)
                could *= of.weights[n] / of.weights[m]
                most = max(most, min(could, wanted[s]) * of.task_share[s] - own)
        envy.append(most)
    return envy


@pytest.mark.parametrize("seed", range(30))
def test_against_loops(seed: int) -> None:
    """Several streams, queues, rows, constraints, resources that a stream does not use or of no server, weights from 0 to 4."""
    rng = np.random.default_rng(seed)
    owners, streams, rows = 4, 7, 3
    demands = rng.integers(0, 3, (streams, 2)).astype(float)
    demands[demands.sum(axis=1) == 0, 0] = 1
    of = setting(
        owners=tuple("abcd"),
        cluster=SimpleNamespace(n_servers=rows, n_server_resources=2 if seed % 2 else 1),
        owner=np.concatenate([np.arange(owners), rng.integers(0, owners, streams - owners)]),
        task_share=rng.uniform(0.01, 0.1, streams),
        demands=demands,
        weights=rng.choice([0.0, 1.0, 1.0, 2.0, 4.0], owners),
        siblings=rng.integers(0, 2, owners),
        eligibility=rng.random((streams, rows)) < 0.7,
    )
    held = rng.integers(0, 5, (streams, rows)) * of.eligibility * 1.0
    wanted = held.sum(axis=1) + rng.integers(0, 12, streams)
    np.testing.assert_allclose(envy_at(of, wanted, held), by_loops(of, wanted, held), atol=1e-12)


def could_do(of: Any, s: int, bundle: np.ndarray, wanted: float) -> float:
    """The most work of a stream with a bundle, (rows, resources), of which the last resource is of the cluster: a linear program."""
    rows, servers = of.cluster.n_servers, of.cluster.n_server_resources
    fits = [min(bundle[i, r] / of.demands[s, i, r] for r in range(servers)) if of.eligibility[s, i] else 0 for i in range(rows)]
    across = [np.ones(rows), *(of.demands[s, :, r] for r in range(servers, of.demands.shape[2]))]
    bounds = [wanted, *(bundle[:, r].sum() for r in range(servers, of.demands.shape[2]))]
    found: Any = linprog(-of.speeds[s], A_ub=across, b_ub=bounds, bounds=[(0, each) for each in fits])
    return float(-found.fun)


@pytest.mark.parametrize("seed", range(20))
def test_by_server_it_is_the_most_work_with_the_bundle(seed: int) -> None:
    """Against a linear program for each pair: amounts and speeds that differ by server, with a resource of the cluster and without."""
    rng = np.random.default_rng(seed)
    number, rows = 4, 3
    of = setting(
        owners=tuple("abcd"),
        cluster=SimpleNamespace(n_servers=rows, n_server_resources=2 - seed % 2),
        owner=np.arange(number),
        task_share=rng.uniform(0.01, 0.1, number),
        demands=rng.integers(1, 4, (number, rows, 2)).astype(float),
        speeds=rng.choice([0.25, 0.5, 1.0, 2.0], (number, rows)),
        weights=rng.choice([1.0, 2.0, 4.0], number),
        siblings=np.zeros(number, int),
        eligibility=rng.random((number, rows)) < 0.8,
    )
    held = rng.integers(0, 5, (number, rows)) * of.eligibility * 1.0
    wanted = held.sum(axis=1) + rng.integers(0, 12, number)
    expected = np.zeros(number)
    for n in np.flatnonzero(wanted > held.sum(axis=1)).tolist():
        own = (held[n] * of.speeds[n]).sum() * of.task_share[n]
        for m in range(number):
            if m != n and held[m].any():
                bundle = of.weights[n] / of.weights[m] * held[m][:, None] * of.demands[m]
                expected[n] = max(expected[n], could_do(of, n, bundle, wanted[n]) * of.task_share[n] - own)
    np.testing.assert_allclose(envy_at(of, wanted, held), expected, atol=1e-9)
