"""Instances of the benchmarks, all seeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fairopt as fo

GOOGLE = Path(__file__).resolve().parent.parent / "examples" / "google-cluster.yaml"


def all_pairs(users: int, servers: int, resources: int, seed: int = 0) -> fo.Instance:
    """Positive demands, everybody may run everywhere, weights from 1 to 5: mostly one level."""
    return fo.generate("uniform", users=users, servers=servers, resources=resources, weights=5, seed=seed)


def some_pairs(users: int, servers: int, resources: int, part: float, seed: int = 0) -> fo.Instance:
    """The same with a part of the pairs eligible, one of each user at least."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((users, servers)) < part
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    return all_pairs(users, servers, resources, seed).replace(eligibility=eligibility)


def few_servers_each(users: int, servers: int, resources: int, seed: int = 0) -> fo.Instance:
    """Each user on one to three servers, 30 % of the demands zero: many levels."""
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(1, 10, (servers, resources))
    demands = rng.uniform(0.01, 0.1, (users, resources)) * (rng.random((users, resources)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.05
    weights = rng.uniform(1, 5, users)
    eligibility = np.zeros((users, servers), bool)
    for n in range(users):
        eligibility[n, rng.choice(servers, rng.integers(1, 4), replace=False)] = True
    return fo.Instance(capacities, demands, weights=weights, eligibility=eligibility)


def jobs(users: int, classes: int, load: float = 1.25, seed: int = 0) -> fo.Instance:
    """Jobs on heterogeneous GPUs: speeds that differ by job and class, one GPU at a time, weights from 1 to 5, ``load`` jobs to a GPU."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(1, 6, classes) * rng.lognormal(0, 0.5, (users, classes)) * rng.lognormal(0, 1, (users, 1))
    counts = np.round(np.linspace(0.5, 0.2, classes) / np.linspace(0.5, 0.2, classes).sum() * users / load)
    weights = rng.integers(1, 6, users)
    one = np.ones(users)
    return fo.Instance(np.ones((classes, 1)), one[:, None], rates=rates, counts=counts, parallelism=one, weights=weights)


def google() -> fo.Instance:
    """The example file: 12,583 servers in ten rows, 900 users."""
    return fo.load(GOOGLE)
