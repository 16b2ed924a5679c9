"""How long PS-DSF takes by best response, and its market where time is divided: ``python benchmarks/equilibria.py``, a few minutes.

Random demands, weights from 1 to 5. Under time division and with unlimited tasks x[n] is that of a convex program,
``formulation="market"``, which the interior point solves without taking turns; "difference" is the largest relative one of a user's
tasks from best response. Time is processor time of one solve, each in a process of its own with one thread for linear algebra; memory
the peak above the instance.
Writes benchmarks/results/equilibria.md and equilibria.json.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import instances
import numpy as np

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
# users, servers, part of the pairs, seed, sharing, with the market
CASES = (
    (1000, 1000, 0.1, 0, "rdm", False),
    (1000, 1000, 0.1, 1, "rdm", False),
    (1000, 1000, 0.1, 0, "tdm", False),
    (1000, 1000, 0.1, 1, "tdm", False),
    (20000, 10, 1.0, 0, "rdm", False),
    (20000, 10, 1.0, 0, "tdm", False),
    (1000, 10, 1.0, 0, "tdm", True),
    (100, 100, 1.0, 0, "tdm", True),
)


def measure(users: int, servers: int, part: float, seed: int, sharing: Any, market: bool) -> dict[str, Any]:
    """Solve one case here and now."""
    tiny = fo.Instance([[1.0, 1.0]], [[0.1, 0.2], [0.2, 0.1]])
    fo.solve(tiny, "psdsf", sharing=sharing)  # loads all packages
    instance = instances.some_pairs(users, servers, 3, part, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = time.process_time()
    allocation = fo.solve(instance, "psdsf", sharing=sharing)
    row: dict[str, Any] = {
        "instance": f"{users:,} x {servers:,} x 3, {part:.0%} of the pairs, seed {seed}",
        "sharing": sharing,
        "processor": time.process_time() - clock,
        "sweeps": len(allocation.trace.changes) - 1,
        "residual": allocation.certificate.worst,
        "peak_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }
    if market:
        clock = time.process_time()
        other = fo.solve(instance, "psdsf", sharing=sharing, formulation="market")
        row |= {
            "market": time.process_time() - clock,
            "difference": float(np.abs(other.tasks_per_user / allocation.tasks_per_user - 1).max()),
        }
    return row


def main() -> None:
    """Measure every case and write the table."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*CASES[int(sys.argv[1])])))
        return
    rows = []
    for case in range(len(CASES)):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, __file__, str(case)], capture_output=True, text=True, check=True, env=environment)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    lines = [
        "# Benchmarks of PS-DSF",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; one run of `benchmarks/equilibria.py`, "
        f"{time.strftime('%Y-%m-%d')}. Users x servers x resources; seconds of processor time.",
        "",
        "| instance | divided | best response | sweeps | residual | memory, MiB | market | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        divided = {"rdm": "resources", "tdm": "time"}[row["sharing"]]
        market = f"{row['market']:.1f} | {row['difference']:.0e}" if "market" in row else "|"
        lines.append(
            f"| {row['instance']} | {divided} | {row['processor']:.1f} | {row['sweeps']} | {row['residual']:.0e} "
            f"| {row['peak_mib']:.0f} | {market} |"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "equilibria.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "equilibria.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
