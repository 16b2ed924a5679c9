"""What demands and speeds by server cost: ``python benchmarks/by_server.py [CASE ...]``.

Users on ten kinds of servers, on each of which a task takes other amounts and does other work, against the same users whose tasks are
everywhere those of the first kind. Both are solved in one process, in turn, and the fastest of some solves counts, in processor time. The
W[n] of `drfh` are linear programs, one for each user; those of `cdrf` are sums. Writes benchmarks/results/by_server.md and .json, unless
cases are named.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from measuring import commit, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_REPEATS = 3
_KINDS = 10

CASES: dict[str, tuple[int, str, str, float]] = {
    "drfh": (2_000, "", "drfh", 2.0),
    "cdrf": (2_000, "", "cdrf", 2.0),
    "proportional": (2_000, "", "proportional", 1.0),
    "queues": (2_000, "queues", "cdrf", 2.0),
    "tasks": (2_000, "tasks", "drfh", 2.0),
    "drfh-large": (20_000, "", "drfh", 30.0),
    "tasks-large": (20_000, "tasks", "cdrf", 30.0),
    "proportional-large": (20_000, "", "proportional", 30.0),
}
_WITH = {"": "", "queues": ", 20 queues with limits", "tasks": ", a third with finite tasks, on three kinds each"}


def of_kinds(users: int, more: str) -> tuple[fo.Instance, fo.Instance]:
    """Return an instance with demands and speeds by server, and the same users with the demands of the first kind and no speeds."""
    rng = np.random.default_rng(0)
    capacities = rng.uniform(50, 100, (_KINDS, 3)) * users / 20
    demands = rng.uniform(0.5, 4, (users, 1, 3)) * rng.uniform(0.5, 2, (users, _KINDS, 3))
    speeds = rng.uniform(0.3, 1, (users, _KINDS))
    given = {}
    if more == "queues":
        limits = [fo.Queue(f"q{k}", limit={"resource-1": float(capacities[:, 0].sum() / 30)}) for k in range(20)]
        given = {"queues": limits, "queue_of": [f"q{n % 20}" for n in range(users)]}
    if more == "tasks":
        eligible = rng.random((users, _KINDS)) < 0.3
        eligible[~eligible.any(axis=1), 0] = True
        given = {"eligibility": eligible, "tasks": np.where(rng.random(users) < 0.3, rng.uniform(0.5, 40, users), np.inf)}
    return fo.Instance(capacities, demands, speeds=speeds, **given), fo.Instance(capacities, demands[:, 0], **given)


def measure(case: str) -> dict[str, float]:
    """Return the processor seconds of both, and the worst residual of the one with demands and speeds by server."""
    users, more, notion, goal = CASES[case]
    by_server, plain = of_kinds(users, more)
    spent: dict[str, list[float]] = {"plain": [], "by server": []}
    worst = 0.0
    for _ in range(_REPEATS if users < 10_000 else 1):
        for name, instance in (("plain", plain), ("by server", by_server)):
            before = time.process_time()
            answer = fo.solve(instance, notion)
            spent[name].append(time.process_time() - before)
            worst = max(worst, answer.certificate.worst)
    return {name: min(times) for name, times in spent.items()} | {"goal": goal, "worst residual": worst}


def main() -> None:
    """Measure every case, or those named, and write the table."""
    warm_up(lambda: [fo.solve(of_kinds(20, "")[0], notion) for notion in ("drfh", "cdrf", "proportional")])
    found = {}
    lines = [
        "# What demands and speeds by server cost",
        "",
        f"{machine()}; one run of `benchmarks/by_server.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of the fastest of "
        f"{_REPEATS} solves (1 of the large ones) in one process; {_KINDS} kinds of servers, 3 resources.",
        "",
        "| | same everywhere | by server | goal | worst residual |",
        "|---|---|---|---|---|",
    ]
    for case in sys.argv[1:] or CASES:
        users, more, notion, goal = CASES[case]
        found[case] = row = measure(case)
        cells = f" {row['plain']:.3f} | {row['by server']:.3f} | {goal:g} | {row['worst residual']:.1e} |"
        lines.append(f"| {users:,} users{_WITH[more]}, `{notion}` |{cells}")
        print(lines[-1], flush=True)
    if not sys.argv[1:]:
        write(RESULTS / "by_server.md", "\n".join([*lines, ""]))
        write(RESULTS / "by_server.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
