"""What rules cost: ``python benchmarks/rules.py [CASE ...]``.

Each case is an instance as it is, with one rule that its answer obeys, with one rule that changes the answer, and with twenty. A rule asks
for at least a part of what another user has: ``x[a] >= 0.5 * x[b]`` is obeyed where a has half as much as b. Rows of any sign are solved by
HiGHS or CVXPY without merging users, so the same instance without merging (by weights that differ by a millionth) stands beside it. All are
solved in one process, in turn, and the fastest of some solves counts, in processor time. Writes benchmarks/results/rules.md and .json,
unless cases are named.
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
_REPEATS, _MANY = 3, 20


def _tree() -> fo.Instance:
    """120 users in 12 queues of 3 departments, on 10 classes of servers."""
    flat = instances.all_pairs(120, 10, 2)
    departments = [fo.Queue(f"d{k}", weight=float(1 + k)) for k in range(3)]
    teams = [fo.Queue(f"t{k}", f"d{k % 3}", weight=float(1 + k % 4)) for k in range(12)]
    return flat.replace(queues=[*departments, *teams], queue_of=[f"t{n % 12}" for n in range(120)])


CASES: dict[str, tuple[str, Callable[[], fo.Instance], str]] = {
    "one-level": ("100 users x 10 server classes x 2 resources, DRFH", lambda: instances.all_pairs(100, 10, 2), "drfh"),
    "levels": ("100 users x 50 servers x 3 resources, few servers each, DRFH", lambda: instances.few_servers_each(100, 50, 3), "drfh"),
    "tree": ("120 users in 12 queues x 10 server classes x 2 resources, DRFH", _tree, "drfh"),
    "proportional": ("60 users x 10 servers x 2 resources, proportional", lambda: instances.all_pairs(60, 10, 2), "proportional"),
    "trade-off": ("60 users x 10 servers x 2 resources, FDS", lambda: instances.all_pairs(60, 10, 2), "fds"),
    "efficiency": ("300 users x 20 servers x 3 resources, efficiency", lambda: instances.all_pairs(300, 20, 3), "efficiency"),
}


def with_rules(instance: fo.Instance, tasks: np.ndarray, number: int, part: float) -> fo.Instance:
    """Ask that users have this part more than their share of what others have, pair by pair."""
    running = np.flatnonzero(tasks > 1e-3 * tasks.max())
    pairs = [(int(running[2 * k]), int(running[2 * k + 1])) for k in range(min(number, running.size // 2))]
    names = instance.users
    return instance.replace(rules=[f"x['{names[a]}'] >= {part * tasks[a] / tasks[b]:.6g} * x['{names[b]}']" for a, b in pairs])


def variants_of(plain: fo.Instance, notion: str) -> dict[str, fo.Instance]:
    """Return an instance as it is, without merging, and with each number of rules."""
    tasks = fo.solve(plain, notion).tasks_per_user
    apart = plain.replace(weights=plain.weights * (1 + 1e-6 * np.arange(plain.n_users) / plain.n_users))
    return {
        "plain": plain,
        "unmerged": apart,
        "obeyed": with_rules(plain, tasks, 1, 0.5),
        "one": with_rules(plain, tasks, 1, 1.5),
        "twenty": with_rules(plain, tasks, _MANY, 1.5),
    }


def measure(case: str) -> dict[str, float]:
    """Return the processor seconds of each variant."""
    _, make, notion = CASES[case]
    warm_up(lambda: [fo.solve(small, notion) for small in variants_of(instances.all_pairs(20, 3, 2), notion).values()])
    variants = variants_of(make(), notion)
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
        "# What rules cost",
        "",
        f"{machine()}; one run of `benchmarks/rules.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of the fastest of "
        f"{_REPEATS} solves in one process, and relative to the instance as it is.",
        "",
        "| | plain | unmerged | ratio | a rule that is obeyed | ratio | a rule | ratio | twenty rules | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in sys.argv[1:] or CASES:
        found[case] = row = measure(case)
        cells = "".join(f" {row[name]:.4f} | {row[name] / row['plain']:.2f} |" for name in row if name != "plain")
        lines.append(f"| {CASES[case][0]} | {row['plain']:.4f} |{cells}")
        print(lines[-1], flush=True)
    if not sys.argv[1:]:
        write(RESULTS / "rules.md", "\n".join([*lines, ""]))
        write(RESULTS / "rules.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
