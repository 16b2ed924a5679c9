"""How long PS-DSF takes by best response, and as a market where time is divided: ``python benchmarks/equilibria.py``, a few minutes.

With numbers of cases (from 0) it measures these and keeps the rows of the others; each row has its date.

Random demands, weights from 1 to 5. Under time division and with unlimited tasks x[n] is that of a convex program, a market, which the
interior point solves without taking turns, and takes by itself where users are many; its answer is checked by the condition of the
equilibrium, as that of best response is. "Difference" is the largest relative one of a user's tasks between the two, "chosen" the engine
that `fairopt.solve` takes. Time is processor time of one solve, each in a process of its own with one thread for linear algebra; memory
the peak above the instance.
Writes benchmarks/results/equilibria.md and equilibria.json.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import instances
import numpy as np
from measuring import Row, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
# users, servers, part of the pairs, seed, sharing, with the market
CASES = (
    (1000, 1000, 0.1, 0, "rdm", False),
    (1000, 1000, 0.1, 1, "rdm", False),
    (1000, 1000, 0.1, 0, "tdm", False),
    (1000, 1000, 0.1, 1, "tdm", False),
    (1000, 1000, 1.0, 0, "rdm", False),
    (20000, 10, 1.0, 0, "rdm", False),
    (20000, 10, 1.0, 0, "tdm", True),
    (1000, 30, 1.0, 0, "tdm", True),
    (1000, 10, 1.0, 0, "tdm", True),
    (100, 100, 1.0, 0, "tdm", True),
)


def measure(users: int, servers: int, part: float, seed: int, sharing: Any, market: bool) -> Row:
    """Solve one case here and now."""
    small = instances.some_pairs(300, 30, 3, part, seed)
    for solver in ("best-response", "interior-point")[: 1 + market]:
        warm_up(partial(fo.solve, small, "psdsf", sharing=sharing, solver=solver))
    instance = instances.some_pairs(users, servers, 3, part, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = time.process_time()
    allocation = fo.solve(instance, "psdsf", sharing=sharing, solver="best-response")
    row: Row = {
        "instance": f"{users:,} x {servers:,} x 3, {part:.0%} of the pairs, seed {seed}",
        "sharing": sharing,
        "processor": time.process_time() - clock,
        "sweeps": len(allocation.trace.changes) - 1,
        "residual": allocation.certificate.worst,
        "peak_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }
    if market:
        clock = time.process_time()
        other = fo.solve(instance, "psdsf", sharing=sharing, solver="interior-point")
        row |= {
            "market": time.process_time() - clock,
            "market_residual": other.certificate.worst,
            "finished_by": other.details.get("finished_by"),
            "chosen": fo.solve(instance, "psdsf", sharing=sharing).solver,
            "difference": float(np.abs(other.tasks_per_user / allocation.tasks_per_user - 1).max()),
        }
    return row


def main() -> None:
    """Measure every case and write the table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*CASES[int(sys.argv[2])])))
        return
    kept = RESULTS / "equilibria.json"
    rows: list[Row] = json.loads(kept.read_text(encoding="utf-8")) if len(sys.argv) > 1 else [{} for _ in CASES]
    for case in map(int, sys.argv[1:] or range(len(CASES))):
        rows[case] = in_own_process(__file__, ["--one", str(case)], np.inf) | {"measured": time.strftime("%Y-%m-%d")}
        if "failed" in rows[case]:
            raise SystemExit(rows[case]["failed"])
        print(rows[case], flush=True)
    lines = [
        "# Benchmarks of PS-DSF",
        "",
        f"{machine()}; `benchmarks/equilibria.py`. Users x servers x resources; seconds of processor time.",
        "",
        "| instance | divided | best response | sweeps | residual | memory, MiB | market | residual | difference | chosen | measured |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        divided = {"rdm": "resources", "tdm": "time"}[row["sharing"]]
        market = "| | |"
        if "market" in row:
            by = f" (by {row['finished_by']})" if row["finished_by"] else ""
            market = f"{row['market']:.2f} | {row['market_residual']:.0e}{by} | {row['difference']:.0e} | {row['chosen']}"
        lines.append(
            f"| {row['instance']} | {divided} | {row['processor']:.2f} | {row['sweeps']} | {row['residual']:.0e} "
            f"| {row['peak_mib']:.0f} | {market} | {row['measured']} |"
        )
    write(RESULTS / "equilibria.md", "\n".join(lines) + "\n")
    write(RESULTS / "equilibria.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
