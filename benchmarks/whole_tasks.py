"""Whole tasks of many users on a lab's servers, in a minute: ``python benchmarks/whole_tasks.py [USERS ...]``.

The instance is `instances.lab_of_many`: users of the eight groups of `examples/gpu-lab`, and servers of its kinds. Per number of users, one
solve of weighted DRFH with ``integral=True`` and a time limit of 60 s by the clock, in a process of its own, after a solve of 8 users. The
search goes level by level from the lowest. "reached" is the smallest share of the answer, or of the best allocation at the time limit;
"bound" is what no allocation exceeds; "divisible" is the optimum where tasks can be divided, which the bound must not exceed; "levels"
counts those that are final.
Writes benchmarks/results/whole_tasks.md and .json, unless numbers are named.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import instances
import numpy as np
from measuring import Row, best_of, commit, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_USERS = (50, 150, 500)
_FEW = 8
_SECONDS = 60.0
_LIMIT = 300.0  # of processor time


def measure(users: int) -> Row:
    """Solve here and now."""
    warm_up(lambda: fo.solve(instances.lab_of_many(_FEW), "drfh", integral=True))
    instance = instances.lab_of_many(users)
    optimum = float(fo.solve(instance, "drfh").shares.min())
    found: Row = {}

    def solve() -> np.ndarray:
        try:
            allocation = fo.solve(instance, "drfh", integral=True, time_limit=_SECONDS)
        except fo.NoSolution as error:
            found.update(final=False, levels=len(error.known["levels"]), value=error.known["value"], bound=error.known["bound"])
            return np.asarray(error.known["tasks"])
        found.update(final=True, levels=len(allocation.levels), value=float(allocation.shares.min()), bound=allocation.details["bound"])
        return allocation.tasks

    tasks, row = best_of(solve, _LIMIT, 1)
    return row | found | {"divisible": optimum, "pairs": int(instance.eligibility.sum()), "tasks": int(tasks.sum())}


def main() -> None:
    """Measure every number of users, or those named, and write the table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(int(sys.argv[2]))))
        return
    rows = {users: in_own_process(__file__, ["--one", str(users)], _LIMIT) for users in map(int, sys.argv[1:] or _USERS)}
    lines = [
        "# Whole tasks",
        "",
        f"{machine()}; one run of `benchmarks/whole_tasks.py`{commit()}, {time.strftime('%Y-%m-%d')}. Weighted DRFH in whole tasks on "
        f"servers like those of `examples/gpu-lab`, {_SECONDS:g} s each. Gap: of the smallest share to the bound.",
        "",
        "| users | seconds | processor | memory, MiB | tasks | levels final | all final | reached | bound | divisible | gap |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for users, row in rows.items():
        if "failed" in row:
            lines.append(f"| {users} | failed: {row['failed']} | | | | | | | | | |")
            continue
        gap = (row["bound"] - row["value"]) / row["bound"] if row["bound"] > 0 else 0.0
        lines.append(
            f"| {users} | {row['seconds']:.1f} | {row['processor']:.1f} | {row['peak_mib']:.0f} | {row['tasks']:,} | {row['levels']} "
            f"| {'yes' if row['final'] else 'no'} | {row['value']:.6g} | {row['bound']:.6g} | {row['divisible']:.6g} | {100 * gap:.2g} % |"
        )
    print("\n".join(lines))
    if not sys.argv[1:]:
        write(RESULTS / "whole_tasks.md", "\n".join([*lines, ""]))
        write(RESULTS / "whole_tasks.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
