"""How long an audit takes of 1,000 users on 100 distinct servers with 3 resources, all pairs eligible, random demands.

    python benchmarks/audit.py

All properties but strategy-proofness (whose lies are a solve each) of the exact DRFH allocation; then of the same tasks as if they were
somebody's own, without prices, so that linear programs have to be solved. Both are done for 30 users before. Wall-clock and processor time
of one run each; the latter says more on a machine that does other things too. Writes benchmarks/results/audit.md and audit.json.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import warm_up

import fairopt as fo
from fairopt.analysis import rerun
from fairopt.analysis.properties import CHECKS

RESULTS = Path(__file__).resolve().parent / "results"
PROPERTIES = [name for name in CHECKS if name != "strategy-proofness"]


def random_instance(users: int, servers: int, resources: int) -> fo.Instance:
    rng = np.random.default_rng(0)
    return fo.Instance(rng.uniform(1.0, 10.0, (servers, resources)), rng.uniform(0.1, 1.0, (users, resources)))


def measured(title: str, allocation: fo.Allocation) -> dict[str, Any]:
    """Audit, and return the seconds of each property and of all."""
    parts: dict[str, list[float]] = {}
    clocks = [time.perf_counter(), time.process_time()]
    start = list(clocks)

    def done(name: str) -> None:
        now = [time.perf_counter(), time.process_time()]
        parts[name] = [now[0] - clocks[0], now[1] - clocks[1]]
        clocks[:] = now

    audit = fo.audit(allocation, PROPERTIES, done=done)
    print(audit)
    verdicts = {
        name: {"holds": verdict.holds, "violation": None if verdict.holds is None else verdict.violation} for name, verdict in audit.items()
    }
    return {
        "title": title,
        "instance": repr(allocation.instance),
        "seconds": time.perf_counter() - start[0],
        "processor": time.process_time() - start[1],
        "parts": parts,
        "verdicts": verdicts,
    }


def main() -> None:
    """Measure both cases and write the table."""
    sizes = [int(word) for word in sys.argv[1:4]] or [1000, 100, 3]
    few = random_instance(30, 5, 3)
    small = fo.solve(few, "drfh", solver="interior-point")
    warm_up(lambda: [fo.audit(each, PROPERTIES) for each in (small, rerun.given(few, small.tasks.copy(), "rdm"))])
    instance = random_instance(*sizes)
    clock = time.process_time()
    allocation = fo.solve(instance, "drfh")
    solved = time.process_time() - clock
    cases = [
        measured("exact DRFH (goal: below 30 s)", allocation),
        measured("the same, without its prices", rerun.given(instance, allocation.tasks.copy(), "rdm")),
    ]
    lines = [
        "# Benchmarks of audits",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; one run of `benchmarks/audit.py`, "
        f"{time.strftime('%Y-%m-%d')}. All properties but strategy-proofness. Processor: seconds of processor time. "
        f"The solve itself: {solved:.1f} s of processor time.",
        "",
        cases[0]["instance"],
        "",
        "| | seconds | processor | the longest, seconds of processor time |",
        "|---|---|---|---|",
    ]
    for case in cases:
        longest = sorted(case["parts"].items(), key=lambda part: -part[1][1])[:3]
        listed = ", ".join(f"{name} {seconds[1]:.2f}" for name, seconds in longest)
        lines.append(f"| {case['title']} | {case['seconds']:.1f} | {case['processor']:.1f} | {listed} |")
    print("\n".join(lines))
    if sizes == [1000, 100, 3]:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "audit.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (RESULTS / "audit.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
