"""How time and memory of the largest leximins grow: a million to a hundred million pairs of users and servers; and of alpha-fair goals.

    python benchmarks/large.py [CASE ...]

Weighted DRFH, all pairs eligible, distinct servers, three resources (`instances.all_pairs`): users of similar demands are solved in
groups (`fairopt.solvers.large`), and the certificate is computed over all users and servers. "all pairs": without groups. The same of
proportional fairness. "in zones": zero demands, constraints and numbers of tasks (`instances.in_zones`), which make some tens of levels;
"pairs" are the eligible ones there.
Each solve is a process of its own with one thread for linear algebra, which builds the instance before the clock starts. Memory is the
peak of the solve above what is in use before it; the table of tasks is part of it. "linear" is the
processor time of a pair, in parts of that of the first row of this notion with as many servers.
Writes benchmarks/results/large.md, large.svg and large.json; with cases named, it measures these and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import instances
import numpy as np
from large_pages import plot
from measuring import Row, best_of, commit, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_LIMIT = 900.0  # seconds of processor time


@dataclass(frozen=True)
class Case:
    """The size of an instance, whether users are grouped, the notion, and whether servers are in zones."""

    users: int
    servers: int
    grouped: bool = True
    notion: str = "drfh"
    zones: bool = False

    @property
    def title(self) -> str:
        """The row's heading."""
        notion = "" if self.notion == "drfh" else f", {self.notion}"
        return f"{self.users:,} x {self.servers:,} x 3{notion}{', in zones' if self.zones else '' if self.grouped else ', all pairs'}"

    @property
    def kind(self) -> tuple[int, str, bool]:
        """Cases of one kind differ in the number of users."""
        return self.servers, self.notion, self.zones


CASES = {
    "1e5-users": Case(1_000, 100),
    "1e6-users": Case(10_000, 100),
    "1e7-users": Case(100_000, 100),
    "1e6-users-all-pairs": Case(10_000, 100, grouped=False),
    "1e5": Case(100, 1_000, grouped=False),
    "1e6": Case(1_000, 1_000, grouped=False),
    "1e7": Case(10_000, 1_000),
    "1e8": Case(100_000, 1_000),
    "1e6-zones": Case(1_000, 1_000, zones=True),
    "1e7-zones": Case(10_000, 1_000, zones=True),
    "1e5-proportional": Case(1_000, 100, notion="proportional"),
    "1e6-proportional": Case(10_000, 100, notion="proportional"),
    "1e6-proportional-all-pairs": Case(10_000, 100, grouped=False, notion="proportional"),
    "1e7-proportional": Case(100_000, 100, notion="proportional"),
}
CURVES = {
    "DRFH, 1,000 servers": ("1e5", "1e6", "1e7", "1e8"),
    "DRFH, 100 servers": ("1e5-users", "1e6-users", "1e7-users"),
    "proportional fairness, 100 servers": ("1e5-proportional", "1e6-proportional", "1e7-proportional"),
}


def measure(case: Case) -> Row:
    """Solve one case in this process."""
    warm_up(lambda: fo.solve(instances.all_pairs(30, 5, 3), case.notion, solver="interior-point"))
    instance = (instances.in_zones if case.zones else instances.all_pairs)(case.users, case.servers, 3)
    answers: list[fo.Allocation] = []

    def solve() -> np.ndarray:
        answers.append(fo.solve(instance, case.notion))
        return answers[-1].tasks_per_user

    if case.grouped:
        row = best_of(solve, _LIMIT, 1)[1]
    else:
        with patch("fairopt.solvers.large.engine.suits_groups", lambda _: False):
            row = best_of(solve, _LIMIT, 1)[1]
    answer = answers[-1]
    return row | {
        "pairs": int(instance.eligibility.sum()),
        "levels": len(answer.levels),
        "certificate": answer.certificate.worst,
        "level": answer.levels[0].value if answer.levels else None,
        "groups": answer.details.get("groups", ""),
        "programs": answer.details["programs_solved"],
    }


def main() -> None:
    """Measure every case, or those named, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"default: all of {', '.join(CASES)}")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(CASES[arguments.one])))
        return
    kept = RESULTS / "large.json"
    rows = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for key in arguments.cases or CASES:
        rows[key] = in_own_process(__file__, ["--one", key], _LIMIT) | {"about": f"{time.strftime('%Y-%m-%d')}, {machine()}{commit()}"}
        print(key, rows[key], flush=True)
        write(kept, json.dumps(rows, indent=1) + "\n")
        write(RESULTS / "large.md", page(rows))
    plot(
        {name: [rows[key] for key in keys if "failed" not in rows.get(key, {"failed"})] for name, keys in CURVES.items()},
        RESULTS / "large.svg",
    )


def page(rows: dict[str, Row]) -> str:
    """Return the table as Markdown."""
    lines = [
        "# Benchmarks of the largest leximins",
        "",
        "Weighted DRFH, and proportional fairness where it says so; users x servers x resources, all pairs eligible, distinct servers; one "
        "thread. In zones: zero demands, constraints and numbers of tasks. `benchmarks/large.py` says what the columns are.",
        "",
        "![Time and memory against the number of pairs](large.svg)",
        "",
        "| | pairs | seconds | processor | linear | memory, MiB | certificate | groups | programs | levels |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    first: dict[tuple[int, str, bool], float] = {}
    for key, case in CASES.items():
        row = rows.get(key)
        if row is None or "failed" in row:
            lines += [] if row is None else [f"| {case.title} | failed: {row['failed']} | | | | | | | | |"]
            continue
        a_pair = row["processor"] / row["pairs"]
        linear = a_pair / first.setdefault(case.kind, a_pair)
        lines.append(
            f"| {case.title} | {row['pairs']:,} | {row['seconds']:.1f} | {row['processor']:.1f} | {linear:.2f} | {row['peak_mib']:.0f} "
            f"| {row['certificate']:.0e} | {row['groups']} | {row['programs']} | {row.get('levels', '')} |"
        )
    about = sorted({row["about"] for row in rows.values()})
    return "\n".join([*lines, "", *(f"Measured: {each}." for each in about), ""])


if __name__ == "__main__":
    main()
