"""Every notion, every engine that can, on random instances: do they agree, and what does the worst certificate say?

``python tests/agreement.py --instances 500`` prints a table; tests/test_agreement.py runs a fixed sample of it.

Instances: zero demands, missing resources, placement constraints, limits on tasks, counts, weights over three orders of magnitude.
Compared are shares, relative to the larger. Where the answer is not unique (PS-DSF under resource division, totals), only
certificates count.
"""

from __future__ import annotations

import argparse
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fairopt as fo

NOT_UNIQUE = {("psdsf", "rdm"), ("efficiency", "rdm"), ("efficiency", "tdm")}
ALPHAS = (0.1, 0.5, 1.0, 2.0, 10.0)


@dataclass
class Worst:
    """The worst seen of one notion, sharing and engine."""

    solved: int = 0
    refused: int = 0
    residual: float = 0.0
    difference: float = 0.0
    failures: list[str] = field(default_factory=list)


def random_instance(seed: int) -> fo.Instance:
    """A small instance with everything in it."""
    rng = np.random.default_rng(seed)
    n, k, m = rng.integers(1, 9), rng.integers(1, 7), rng.integers(1, 4)
    capacities = rng.uniform(1, 10, (k, m)) * (rng.random((k, m)) > 0.1)
    demands = rng.uniform(0.05, 1, (n, m)) * (rng.random((n, m)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    return fo.Instance(
        capacities,
        demands,
        weights=10 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.7 else None,
        eligibility=rng.random((n, k)) < 0.7 if rng.random() < 0.5 else None,
        counts=rng.integers(1, 4, k) if rng.random() < 0.5 else None,
        tasks=np.where(rng.random(n) < 0.4, rng.uniform(0, 8, n), np.inf) if rng.random() < 0.5 else None,
    )


def questions(instance: fo.Instance, seed: int) -> Iterator[tuple[str, str, fo.Instance, dict[str, Any]]]:
    """What to ask about an instance: a label, a notion, the instance that suits it, its options."""
    rng = np.random.default_rng(seed + 10**6)
    total = instance.total_capacity
    pool = fo.Instance([np.where(total > 0, total, 1.0)], instance.demands, instance.weights, tasks=instance.tasks)
    for notion in fo.NOTIONS:
        if notion == "max-min":
            yield notion, notion, instance, {"utility": rng.uniform(0.1, 1, (instance.n_users, instance.n_servers))}
        elif notion == "drf":
            yield notion, notion, pool, {}
        elif notion == "bbf":
            requests = pool.demands * pool.total_capacity * rng.uniform(0.3, 1, (pool.n_users, 1)) / pool.demands.max(axis=1, keepdims=True)
            requests = np.minimum(requests, pool.total_capacity)
            yield notion, notion, fo.Instance(pool.capacities, requests, pool.weights, tasks=np.ones(pool.n_users)), {}
        elif notion == "proportional":
            alpha = ALPHAS[seed % len(ALPHAS)]
            yield f"{notion} {alpha:g}", notion, instance, {"alpha": alpha}
        else:
            yield notion, notion, instance, {}


def compare(seeds: Iterator[int] | range, tolerance: float = 1e-8) -> dict[tuple[str, str, str], Worst]:
    """Solve everything; return the worst of each (notion, sharing, engine)."""
    table: dict[tuple[str, str, str], Worst] = defaultdict(Worst)
    for seed in seeds:
        for label, notion, instance, options in questions(random_instance(seed), seed):
            for sharing in ("rdm", "tdm"):
                first: fo.Allocation | None = None
                for solver in fo.SOLVERS:
                    worst = table[label, sharing, solver]
                    try:
                        allocation = fo.solve(
                            instance,
                            notion,
                            sharing=sharing,
                            solver=solver,
                            tolerance=tolerance,
                            **options,
                        )
                    except (fo.Unsupported, fo.SolverUnavailable):
                        worst.refused += 1
                        continue
                    except fo.FairoptError as error:
                        worst.failures.append(f"seed {seed}: {type(error).__name__}: {error}")
                        continue
                    worst.solved += 1
                    worst.residual = max(worst.residual, allocation.certificate.worst)
                    if first is None or (notion, sharing) in NOT_UNIQUE:
                        first = first or allocation
                        continue
                    scale = np.maximum(np.abs(first.shares), np.abs(allocation.shares))
                    difference = np.abs(allocation.shares - first.shares) / np.where(scale > 1e-12, scale, 1.0)
                    worst.difference = max(worst.difference, float(difference.max(initial=0.0)))
    return {key: worst for key, worst in table.items() if worst.solved or worst.failures}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.getLogger("fairopt").setLevel(logging.ERROR)
    table = compare(range(arguments.seed, arguments.seed + arguments.instances))
    print(f"{'notion':20} {'sharing':8} {'engine':16} {'solved':>7} {'failed':>7} {'residual':>10} {'difference':>11}")
    for (label, sharing, solver), worst in sorted(table.items()):
        print(
            f"{label:20} {sharing:8} {solver:16} {worst.solved:7} {len(worst.failures):7} {worst.residual:10.1e} {worst.difference:11.1e}"
        )
        for failure in worst.failures[:3]:
            print(f"    {failure}")


if __name__ == "__main__":
    main()
