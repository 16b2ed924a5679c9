"""Leximins of a few thousand pairs, against the loop that one writes with HiGHS: ``python benchmarks/small_leximins.py [CASE ...]``.

The loop keeps one model: it maximises the level t, fixes at t the users whose rows have a positive dual, and goes on from the last basis,
until nobody rises. It is `contenders.highs_levels`: by primal simplex, for which the last basis stays feasible (the faster way), and with
HiGHS' own choices. It checks nothing. fairopt's time includes the reading of the instance into a program, the merging of equal rows and the
certificate. Among thousands of users a share is as small as the tolerances of HiGHS, and the loop goes wrong without a word: "wrong" is the
largest relative difference of a user's tasks from the certified ones, and "users" counts those beyond 1e-6.

Every contender has a process of its own; the fastest of some solves counts, in processor time. "loop / fairopt" above 1: fairopt is faster.
Writes benchmarks/results/small_leximins.md and .json, unless cases are named.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import contenders
import instances
import numpy as np
from measuring import Row, best_of, commit, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_LIMIT, _REPEATS = 120.0, 9
_OFF = 1e-6  # relative: a user's tasks are wrong

CASES: dict[str, tuple[str, Callable[[], fo.Instance]]] = {
    "many-levels": ("100 users x 50 servers x 3 resources, few servers each", lambda: instances.few_servers_each(100, 50, 3)),
    "many-levels-2": ("the same, another seed", lambda: instances.few_servers_each(100, 50, 3, seed=2)),
    "many-users": ("1,000 users x 10 servers x 2 resources, few servers each", lambda: instances.few_servers_each(1000, 10, 2)),
    "degenerate": ("3,000 users x 20 servers x 3 resources, few servers each", lambda: instances.few_servers_each(3000, 20, 3, seed=2)),
}
LOOPS: dict[str, Callable[[fo.Instance], np.ndarray]] = {
    "HiGHS loop, primal simplex": lambda instance: contenders.highs_levels(instance, primal=True),
    "HiGHS loop as it comes": lambda instance: contenders.highs_levels(instance, primal=False),
}
CONTENDERS = {"fairopt": contenders.fairopt_solve} | LOOPS


def measure(case: str, name: str) -> Row:
    """Run one contender here and now."""
    warm_up(lambda: CONTENDERS[name](fo.Instance([[1.0, 1.0]], [[0.1, 0.2], [0.2, 0.1]])))
    instance = CASES[case][1]()
    tasks, row = best_of(lambda: CONTENDERS[name](instance), _LIMIT, _REPEATS)
    certified = fo.solve(instance, "drfh")
    if name == "fairopt":
        row |= {"levels": len(certified.levels), "residual": certified.certificate.worst}
    off = np.abs(tasks.sum(axis=1) / certified.tasks_per_user - 1)
    return row | {"wrong": float(off.max()), "users": int((off > _OFF).sum())}


def main() -> None:
    """Measure every case, or those named, and write the table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:4])))
        return
    found = {}
    lines = [
        "# Small leximins",
        "",
        f"{machine()}; one run of `benchmarks/small_leximins.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of the fastest "
        f"of up to {_REPEATS} solves. The loop of linear programs checks nothing; fairopt's answer is certified. Wrong: largest relative "
        f"difference of a user's tasks from the certified ones, and how many users differ by more than {_OFF:g}. Memory: peak above the "
        "loaded instance.",
        "",
    ]
    for case in sys.argv[1:] or CASES:
        rows = {name: in_own_process(__file__, ["--one", case, name], _LIMIT) for name in CONTENDERS}
        found[case] = rows
        ours = rows["fairopt"]
        about = f": {ours['levels']} levels, worst residual {ours['residual']:.0e}" if "levels" in ours else ""
        table = [
            f"## {CASES[case][0]}{about}",
            "",
            "| | processor | loop / fairopt | memory, MiB | wrong | users |",
            "|---|---|---|---|---|---|",
        ]
        for name, row in rows.items():
            if "failed" in row:
                table.append(f"| {name} | failed: {row['failed']} | | | | |")
                continue
            ratio = f"{row['processor'] / ours['processor']:.2f}" if "processor" in ours else ""
            wrong = "certified" if name == "fairopt" else f"{row['wrong']:.0e}"
            table.append(f"| {name} | {row['processor']:.3f} | {ratio} | {row['peak_mib']:.0f} | {wrong} | {row['users']} |")
        lines += [*table, ""]
        print("\n".join([*table, ""]), flush=True)
    if not sys.argv[1:]:
        write(RESULTS / "small_leximins.md", "\n".join(lines))
        write(RESULTS / "small_leximins.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
