"""What a named limit, or a resource of the cluster, costs: ``python benchmarks/limits.py [CASE ...]``.

Each case is an instance of another benchmark, as it is, with one limit more (half of a resource of all servers, for half of the users),
with a shared resource that a tenth of the users demand, and with 50 limits, each of a resource over half of the servers. All are solved in
one process, in turn, and the fastest of some solves counts, in processor time. "ratio" is relative to the instance as it is; the goal of
one row more is 1.2. "loose" is a limit that nobody reaches. A limit that binds asks for another answer, which may take more steps for a
reason of its own: "same answer" is the ratio to the instance without the limit, but with weights that give its answer. That has one level,
so it is told of instances that have one as they are.
Writes benchmarks/results/limits.md and .json, unless cases are named.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import instances
import numpy as np
from measuring import commit, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_REPEATS, _GOAL = 5, 1.2
_ONE_LEVEL = ("one-level", "large")

CASES: dict[str, tuple[str, Callable[[], fo.Instance], str]] = {
    "one-level": ("1,000 users x 10 server classes x 2 resources, DRFH", lambda: instances.all_pairs(1000, 10, 2), "drfh"),
    "many-levels": (
        "1,000 users x 10 servers x 2 resources, few servers each, DRFH",
        lambda: instances.few_servers_each(1000, 10, 2),
        "drfh",
    ),
    "small-levels": (
        "100 users x 50 servers x 3 resources, few servers each, DRFH",
        lambda: instances.few_servers_each(100, 50, 3),
        "drfh",
    ),
    "proportional": ("300 users x 20 servers x 3 resources, proportional", lambda: instances.all_pairs(300, 20, 3), "proportional"),
    "efficiency": ("300 users x 20 servers x 3 resources, efficiency", lambda: instances.all_pairs(300, 20, 3), "efficiency"),
    "large": ("1,000 users x 100 servers x 3 resources, DRFH", lambda: instances.all_pairs(1000, 100, 3), "drfh"),
    "large-proportional": (
        "1,000 users x 100 servers x 3 resources, proportional",
        lambda: instances.all_pairs(1000, 100, 3),
        "proportional",
    ),
}


def with_limit(instance: fo.Instance, part: float) -> fo.Instance:
    """Limit every second user to this part of the first resource of the cluster, all together."""
    bound = part * float(instance.total_capacity[0])
    return instance.replace(limits=[fo.Limit("half", bound, resource=instance.resources[0], users=list(instance.users[::2]))])


def with_shared(instance: fo.Instance) -> fo.Instance:
    """Let every tenth user take a licence a task, of which there are half as many as these users would run."""
    demands = np.zeros((instance.n_users, 1))
    demands[::10] = 1.0
    tasks = fo.solve(instance, "drfh").tasks_per_user[::10].sum()
    return fo.Instance(
        instance.capacities,
        np.hstack([instance.demands, demands]),
        users=instance.users,
        servers=instance.servers,
        resources=[*instance.resources, "licence"],
        weights=instance.weights,
        eligibility=instance.eligibility,
        counts=instance.counts,
        shared={"licence": float(tasks) / 2},
    )


def with_weights(instance: fo.Instance, other: fo.Instance) -> fo.Instance:
    """Let users of an instance have the weights that give them, without a limit, the shares that they have in another one."""
    tasks = fo.solve(other, "drfh").tasks_per_user
    shares = tasks * (instance.demands / instance.total_capacity).max(axis=1)
    return instance.replace(weights=shares / shares.max())


def with_many(instance: fo.Instance) -> fo.Instance:
    """Add 50 limits, each of one resource over a random half of the servers: three to five tenths of what these have."""
    rng, limits = np.random.default_rng(0), []
    for k in range(50):
        servers = np.flatnonzero(rng.random(instance.n_servers) < 0.5)
        servers = servers if servers.size else np.arange(instance.n_servers)
        r = int(rng.integers(instance.n_resources))
        bound = float(rng.uniform(0.3, 0.5) * (instance.capacities[servers, r] * instance.counts[servers]).sum())
        limits.append(fo.Limit(f"limit-{k}", bound, resource=instance.resources[r], servers=[instance.servers[i] for i in servers]))
    return instance.replace(limits=limits)


def with_each(plain: fo.Instance) -> dict[str, fo.Instance]:
    """Return an instance as it is, with a limit, with a shared resource, and with many limits."""
    return {
        "plain": plain,
        "loose limit": with_limit(plain, 0.999),
        "limit": with_limit(plain, 0.2),
        "shared": with_shared(plain),
        "50 limits": with_many(plain),
    }


def measure(case: str) -> dict[str, float]:
    """Return the processor seconds of each variant."""
    _, make, notion = CASES[case]
    warm_up(lambda: [fo.solve(small, notion) for small in with_each(instances.all_pairs(30, 5, 2)).values()])
    plain = make()
    variants = with_each(plain)
    if case in _ONE_LEVEL:
        alike = {f"{name} by weights": with_weights(plain, variants[name]) for name in ("limit", "shared")}
        variants |= alike
    spent: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(_REPEATS):
        for name, instance in variants.items():
            before = time.process_time()
            fo.solve(instance, notion)
            spent[name].append(time.process_time() - before)
    return {name: min(times) for name, times in spent.items()}


def main() -> None:
    """Measure every case, or those named, and write the table."""
    found = {}
    lines = [
        "# What limits and shared resources cost",
        "",
        f"{machine()}; one run of `benchmarks/limits.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of the fastest of "
        f"{_REPEATS} solves in one process, and relative to the instance as it is. The goal of one row more is {_GOAL}.",
        "",
        "| | plain | loose limit | ratio | limit | ratio | same answer | shared | ratio | same answer | 50 limits | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in sys.argv[1:] or CASES:
        found[case] = row = measure(case)
        cells = [f"{row['plain']:.4f}"]
        for name in ("loose limit", "limit", "shared", "50 limits"):
            cells += [f"{row[name]:.4f}", f"{row[name] / row['plain']:.2f}"]
            if name in ("limit", "shared"):
                alike = row.get(f"{name} by weights")
                cells.append("" if alike is None else f"{row[name] / alike:.2f}")
        lines.append(f"| {CASES[case][0]} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if not sys.argv[1:]:
        write(RESULTS / "limits.md", "\n".join([*lines, ""]))
        write(RESULTS / "limits.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
