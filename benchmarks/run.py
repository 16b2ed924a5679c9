"""Speed and memory against what a user would write otherwise, all measured in one run: ``make bench``.

Every contender runs in a process of its own, with one thread for linear algebra, which imports first, then builds the instance, then
times `repeats` solves, by the clock and in processor time; the fastest counts, and the peak of resident memory above that before the first
solve. "error" is the largest relative difference of a share from the one that fairopt certifies (of the lowest, for one LP; of a user's
tasks, under proportional fairness), "gap" what is missing of the certified lowest share (geometric mean of the tasks) once the tasks are
scaled back into the limits. Those of fairopt compare two solves of its own (its "error" under proportional fairness is the certificate's):
what speaks for it is the worst residual.
Writes benchmarks/results/results.md and results.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import contenders
import instances
import numpy as np
from measuring import Row, exactness, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
_SHORT, _REPEATS = 1.0, 3  # who is done within this many seconds is measured this often: the first solve may load compiled kernels
_LIMIT = 60  # seconds of processor time for a contender, the building of its instance included


@dataclass(frozen=True)
class Case:
    """One row of the issue: an instance, who competes, and what fairopt is asked to reach."""

    title: str
    make: Callable[[], fo.Instance]
    names: tuple[str, ...]
    goal: str
    repeats: int = 5


FIRST_LEVEL = (
    "fairopt",
    "fairopt by HiGHS",
    "HiGHS, one LP",
    "HiGHS interior point, one LP",
    "CVXPY + HiGHS, one LP",
    "CVXPY + Clarabel, one LP",
)
CASES = {
    "one-level": Case(
        "1,000 users x 10 server classes x 2 resources, all pairs, weighted DRFH, one level",
        lambda: instances.all_pairs(1000, 10, 2),
        ("fairopt", "fairopt equalize", "HiGHS, one LP", "SciPy linprog, one LP", "CVXPY + HiGHS, one LP", "CVXPY + Clarabel, one LP"),
        "not slower than CVXPY",
        9,
    ),
    "many-levels": Case(
        "1,000 users x 10 server classes x 2 resources, one to three servers each, 30 % zero demands",
        lambda: instances.few_servers_each(1000, 10, 2),
        ("fairopt", "CVXPY + HiGHS, leximin"),
        "at least 5 times faster",
        5,
    ),
    "hundreds-of-levels": Case(
        "5,000 users x 100 servers x 3 resources, one to three servers each, 30 % zero demands",
        lambda: instances.few_servers_each(5000, 100, 3),
        ("fairopt", "fairopt by HiGHS", "CVXPY + HiGHS, leximin"),
        "a certified answer below 20 s",
        1,
    ),
    "package": Case(
        "40 users x 20 servers, many levels",
        lambda: instances.few_servers_each(40, 20, 2, seed=1),
        ("fairopt", "cvxpy-leximin"),
        "at least 100 times faster than cvxpy-leximin",
        1,
    ),
    "google": Case(
        "Google cluster, 12,583 servers and 900 users, from the file to the answer",
        instances.google,
        ("fairopt from the file",),
        "below 1 s",
        3,
    ),
    "large": Case(
        "1,000 users x 100 servers x 3 resources, all pairs",
        lambda: instances.all_pairs(1000, 100, 3),
        FIRST_LEVEL,
        "at least 10 times faster than a plain HiGHS LP",
        1,
    ),
    "tenth": Case(
        "1,000 users x 100 servers x 3 resources, a tenth of the pairs",
        lambda: instances.some_pairs(1000, 100, 3, 0.1),
        FIRST_LEVEL,
        "at least 5 times faster than a plain HiGHS LP",
        1,
    ),
    "proportional": Case(
        "proportional fairness, 10,000 users x 10 server classes with individual rates",
        lambda: instances.rated(10_000, 10),
        ("fairopt, proportional", "CVXPY + Clarabel, proportional"),
        "at least 20 times faster than CVXPY with Clarabel, and 1e4 times closer",
        3,
    ),
    "proportional-million": Case(
        "proportional fairness, 1,000,000 users x 4 server classes with individual rates",
        lambda: instances.rated(1_000_000, 4),
        ("fairopt, proportional",),
        "below 6 s at a relative gap of 1e-9, and 3 GiB",
        1,
    ),
    "proportional-resources": Case(
        "proportional fairness, 10,000 users x 100 servers x 3 resources, all pairs",
        lambda: instances.all_pairs(10_000, 100, 3),
        ("fairopt, proportional",),
        "below 3 s of processor time at a relative gap of 1e-9, and 0.3 GiB",
        1,
    ),
    **{
        f"jobs-{users}": Case(
            f"{users:,} jobs x 3 classes of GPUs, one at a time, speeds of their own: many levels",
            lambda users=users: instances.jobs(users, 3),  # type: ignore[misc]
            ("fairopt", "HiGHS, leximin as it comes", "HiGHS, leximin, primal simplex")[: 3 if users == 4096 else 1],
            f"below {seconds} s",
            3 if users > 4096 else 1,
        )
        for users, seconds in ((4096, 1.5), (8192, 4))
    },
    "million": Case(
        "1,000 users x 1,000 servers x 3 resources, all pairs",
        lambda: instances.all_pairs(1000, 1000, 3),
        ("fairopt",),
        "below 15 s and 3 GiB",
        1,
    ),
}


def measure(case: Case, name: str) -> Row:
    """Run one contender here and now; the system stops this process at the limit."""
    resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    if name == "fairopt from the file":
        solve: Callable[[fo.Instance], np.ndarray] = lambda _: contenders.fairopt_solve(instances.google())  # noqa: E731
    else:
        solve = contenders.CONTENDERS[name]
    proportional = name.endswith("proportional")
    warm = fo.Instance([[1.0, 1.0]], [[0.1, 0.2], [0.2, 0.1]])
    if name.startswith("fairopt"):
        warm_up(lambda: [each(warm) for each in (contenders.fairopt_solve, contenders.fairopt_by_interior_point)])
    warm_up(lambda: solve(warm))
    instance = case.make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clocks: list[tuple[float, float]] = []
    while len(clocks) < case.repeats or (len(clocks) < _REPEATS and sum(wall for _, wall in clocks) < _SHORT):
        processor, started = time.process_time(), time.perf_counter()
        tasks = solve(instance)
        clocks.append((time.process_time() - processor, time.perf_counter() - started))
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    measured: Row = {"seconds": min(wall for _, wall in clocks), "processor": min(clocks)[0], "peak_mib": peak}
    allocation = fo.solve(instance, "proportional" if proportional else contenders.notion(instance))
    worst = allocation.certificate.worst
    per_task = None if proportional else allocation.shares / allocation.tasks_per_user
    measured |= exactness(instance, tasks, allocation.tasks_per_user, per_task, name in contenders.FIRST_LEVEL_ONLY)
    if name == "fairopt, proportional":  # its own reference, whose certified gap is four digits and more below the errors of the others
        measured |= {"error": worst, "worst_residual": worst}
    if name == "fairopt":
        measured |= {
            "levels": np.unique(allocation.shares.round(9)).size,
            "formulation_part": allocation.seconds["formulate"] / sum(allocation.seconds.values()),
            "worst_residual": worst,
        }
    return measured


def page(everything: dict[str, list[Row]], date: str) -> str:
    """Return all cases in Markdown."""
    lines = [
        "# Benchmarks",
        "",
        f"{machine()}; one run of `make bench`, {date}. Ratio: processor time of the contender / that of "
        "fairopt. Error: "
        "largest relative difference of a share (of the lowest, for one LP; of tasks, under proportional fairness). Gap: what is missing "
        "of the certified lowest share (geometric mean of the tasks) once the tasks are scaled back into the limits. Those of fairopt "
        "compare two solves of its own; its worst residual speaks for it. Memory: peak above the loaded program.",
        "",
    ]
    for key, rows in everything.items():
        lines += section(CASES[key], rows)
    return "\n".join(lines)


def section(case: Case, rows: list[Row]) -> list[str]:
    """Return a case in Markdown."""
    ours, notes = rows[0], list[str]()
    if "levels" in ours:
        notes.append(
            f"{ours['levels']} levels, worst residual {ours['worst_residual']:.0e}, formulation {ours['formulation_part']:.0%} of the time"
        )
    if "again" in ours:
        notes.append(f"measured again, {ours['again']}")
    lines = [
        f"## {case.title}",
        "",
        f"Goal: {case.goal}. {'; '.join(notes)}",
        "",
        "| | seconds | processor | ratio | memory, MiB | error | gap |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['contender']} | failed: {row['failed']} | | | | | |")
            continue
        lines.append(
            f"| {row['contender']} | {row['seconds']:.3f} | {row['processor']:.3f} | {row['processor'] / ours['processor']:.2f} "
            f"| {row['peak_mib']:.0f} | {row['error']:.0e} | {row['gap']:.0e} |"
        )
    return [*lines, ""]


def main() -> None:
    """Measure every case, or those named again, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="measured again, what is there of the others stays; default: all")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "CONTENDER"))
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(CASES[arguments.one[0]], arguments.one[1])))
        return
    today, kept = time.strftime("%Y-%m-%d"), RESULTS / "results.json"
    found = json.loads(kept.read_text()) if arguments.cases else {"date": today, "cases": {}}
    for key in arguments.cases or CASES:
        rows = [{"contender": name} | in_own_process(__file__, ["--one", key, name], _LIMIT) for name in CASES[key].names]
        if arguments.cases:
            rows[0]["again"] = today
        found["cases"][key] = rows
        print("\n".join(section(CASES[key], rows)), flush=True)
    write(kept, json.dumps(found, indent=1) + "\n")
    write(RESULTS / "results.md", page(found["cases"], found["date"]))


if __name__ == "__main__":
    main()
