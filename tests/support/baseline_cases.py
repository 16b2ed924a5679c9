"""Random clusters and networks for the tests of baselines."""

from __future__ import annotations

import numpy as np

import fairopt as fo

__all__ = ["odd_cluster", "random_flows", "small_cluster"]


def small_cluster(seed: int) -> fo.Instance:
    """A few users and servers, some with a number of tasks."""
    rng = np.random.default_rng(seed)
    return fo.Instance(
        rng.integers(4, 20, (3, 2)),
        rng.integers(1, 5, (5, 2)),
        weights=rng.integers(1, 4, 5),
        counts=rng.integers(1, 3, 3),
        tasks=np.where(rng.random(5) < 0.4, rng.integers(1, 6, 5), np.inf),
    )


def odd_cluster(seed: int) -> fo.Instance:
    """Four users on two servers, of numbers so odd that a linear program over them has one answer."""
    rng = np.random.default_rng(seed)
    return fo.Instance(
        rng.integers(4000, 20000, (2, 2)),
        rng.integers(101, 997, (4, 2)),
        weights=rng.integers(101, 997, 4),
        tasks=np.where(rng.random(4) < 0.3, rng.integers(1, 6, 4), np.inf),
    )


def random_flows(seed: int) -> fo.Instance:
    """Flows over up to three paths of up to three links, half of the networks with demands."""
    rng = np.random.default_rng(seed)
    links, flows = int(rng.integers(2, 8)), int(rng.integers(2, 9))
    capacity = {f"l{k}": int(rng.integers(1, 30)) for k in range(links)}
    paths = {}
    for n in range(flows):
        drawn = {
            tuple(sorted(rng.choice(links, int(rng.integers(1, min(links, 3) + 1)), replace=False).tolist()))
            for _ in range(int(rng.integers(1, 4)))
        }
        paths[f"f{n}"] = [[f"l{k}" for k in path] for path in sorted(drawn)]
    network = fo.Instance.from_paths(capacity, paths)
    if rng.random() < 0.5:
        return network.replace(tasks=np.where(rng.random(flows) < 0.5, rng.integers(1, 20, flows), np.inf))
    return network
