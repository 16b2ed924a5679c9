"""Simulations over time: speed against the event loop that one would write otherwise, and the time and memory of full sizes.

    python benchmarks/simulations.py [CASE ...]

FAIROPT_DATA, if set, is a folder that holds google2011/ (Reiss, Wilkes and Hellerstein 2011), whose tables are then read too. Everything
else is drawn from the seeded generators of benchmarks/instances.py, which say how.

Each case runs in a process of its own. Before a run of fairopt, a small one of its kind loads and compiles what it needs: "warm-up" is the
processor time of that, and is not counted. Wall-clock and processor time of one run each; the latter says more on a machine that does other
things too. Memory: peak of the process above what it was with the instance in it. All contenders of a case must start and end every task
at the same time. Writes benchmarks/results/simulations.md and simulations.json, unless cases are named.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import contenders
import instances
import numpy as np
from measuring import fresh_peak, memory, warm_up

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
FEW = 100  # tasks of a small run, or rows of a small table
SLICE = 80_000  # tasks: the first hours of a day, until servers are full and tasks wait


def first_tasks(trace: fo.Trace, tasks: int) -> fo.Trace:
    """Return the first jobs of a trace, with so many tasks at most."""
    jobs = int(np.searchsorted(np.cumsum(trace.tasks), tasks, side="right"))
    return fo.Trace(
        [trace.users[n] for n in trace.user[:jobs]],
        trace.submit[:jobs],
        trace.tasks[:jobs],
        trace.demands[:jobs],
        trace.durations[: trace.tasks[:jobs].sum()],
        resources=trace.resources,
    )


def timed(work: Callable[[], Any], small: Callable[[], Any] | None = None) -> tuple[dict[str, float], Any]:
    """Return seconds and peak memory, and what came of it; ``small`` is done before."""
    before = {} if small is None else {"warm_up": warm_up(small)}
    with_instance = fresh_peak()
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    spent = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    return before | spent | {"memory_mib": (memory("VmHWM") - with_instance) / 1024}, found


def against_a_loop() -> list[dict[str, Any]]:
    """The same slice by fairopt and by two event loops in Python and NumPy."""
    day, cluster = instances.jobs_over_a_day(load=1.5)
    trace = first_tasks(day, SLICE)
    spent, found = timed(
        lambda: fo.simulate(trace, cluster, "drfh:best-fit"), lambda: fo.simulate(first_tasks(day, FEW), cluster, "drfh:best-fit")
    )
    waited = float((found.task_start > trace.submit[trace.job_of]).mean())
    rows = [{"what": "fairopt", **spent, "note": f"{trace.n_tasks:,} tasks; {waited:.1%} of them waited"}]
    for title, patient in (("Python loop, NumPy", False), ("the same, with a memory of what did not fit", True)):
        spent, (start, end) = timed(lambda patient=patient: contenders.best_fit_over_time(trace, cluster, patient))
        same = np.isclose(start, found.task_start) & np.isclose(end, found.task_start + trace.task_durations)
        rows.append({"what": title, **spent, "note": f"{int((~same).sum())} tasks with another start or end"})
    return rows


def whole_day() -> list[dict[str, Any]]:
    """600,000 tasks on 2,000 servers."""
    trace, cluster = instances.jobs_over_a_day()
    spent, found = timed(
        lambda: fo.simulate(trace, cluster, "drfh:best-fit"), lambda: fo.simulate(first_tasks(trace, FEW), cluster, "drfh:best-fit")
    )
    waited = float((found.task_start > trace.submit[trace.job_of]).mean())
    return [{"what": "fairopt", **spent, "note": f"{trace.n_tasks:,} tasks, {trace.n_jobs:,} jobs; {waited:.1%} of the tasks waited"}]


def exact_at_each_event() -> list[dict[str, Any]]:
    """The fluid DRFH of 100 users and 10 classes of servers, at the 10,000 submissions and ends of 5,000 jobs."""
    trace, cluster = instances.jobs_of_classes(load=1.3)
    spent, found = timed(lambda: fo.simulate(trace, cluster, "drfh"), lambda: fo.simulate(trace, cluster, "drfh", until=500.0))
    series = found.series
    active = float(((series.running + series.waiting) > 0).sum(axis=1).mean())
    short = float((series.waiting.sum(axis=1) > 1).mean())
    note = (
        f"{2 * trace.n_jobs:,} events, {found.details['solved']:,} allocations computed, {active:.0f} users active on average, "
        f"tasks wait at {short:.0%} of the samples, worst residual {found.details['residual']:.0e}"
    )
    return [{"what": "fairopt", **spent, "note": note}]


def exact_with_a_memory() -> list[dict[str, Any]]:
    """The same trace with a half-life of an hour: the leximin of cumulative shares at each event, and after each 36 s without one."""
    trace, cluster = instances.jobs_of_classes(load=1.3)
    scheduler = "drfh:half_life=3600"
    spent, found = timed(lambda: fo.simulate(trace, cluster, scheduler), lambda: fo.simulate(trace, cluster, scheduler, until=500.0))
    note = f"{found.details['solved']:,} allocations computed, worst residual {found.details['residual']:.0e}"
    return [{"what": "fairopt", **spent, "note": note}]


def as_clusters_schedule() -> list[dict[str, Any]]:
    """Parallel jobs of 100 users in 20 queues on 128 servers of four processors, which they ask for to nineteen twentieths."""
    trace, cluster = instances.parallel_jobs()
    soon, rows = float(trace.submit[FEW]), []
    for scheduler in ("fifo", "backfill", "fairtree:half_life=7d", "priority:half_life=1d"):
        spent, found = timed(
            lambda scheduler=scheduler: fo.simulate(trace, cluster, scheduler),
            lambda scheduler=scheduler: fo.simulate(trace, cluster, scheduler, until=soon),
        )
        wait = float(np.nanmean(found.started - trace.submit))
        rows.append({"what": scheduler, **spent, "note": f"{trace.n_jobs:,} jobs, mean wait {wait:,.0f} s"})
    return rows


def first_rows(table: Path, path: Path) -> Path:
    """Write the first rows of a compressed table to a file of their own, and return its path."""
    with gzip.open(table, "rt", encoding="utf-8") as rows, gzip.open(path, "wt", encoding="utf-8") as few:
        few.writelines(islice(rows, FEW))
    return path


def reading() -> list[dict[str, Any]]:
    """The tables of the Google cluster, where they are."""
    if not (folder := os.environ.get("FAIROPT_DATA")):
        print("the Google tables are left out; give their folder in FAIROPT_DATA")
        return []
    machines = Path(folder, "google2011", "google2011_machine_configs_t0.csv")
    tasks = Path(folder, "google2011", "google2011_task_groups_0-19.6h.csv.gz")

    def small() -> None:
        import_module("pandas")  # which a small table does without
        with TemporaryDirectory() as scratch:
            few = first_rows(tasks, Path(scratch, tasks.name))
            fo.import_google2011(machines, few)
            fo.trace_google2011(few)

    instance, imported = timed(lambda: fo.import_google2011(machines, tasks), small)
    trace, found = timed(lambda: fo.trace_google2011(tasks, until=19.65 * 3600))
    return [
        {"what": "as an instance", **instance, "note": f"{imported.instance.counts.sum():,.0f} machines"},
        {"what": "as a trace", **trace, "note": f"{found.n_jobs:,} jobs, {len(found.left_out)} rows left out"},
    ]


CASES: dict[str, tuple[str, Callable[[], list[dict[str, Any]]]]] = {
    "slice": ("Best-fit DRFH on 2,000 servers, the first 80,000 tasks of a day (goal: at least 10 times faster)", against_a_loop),
    "day": ("Best-fit DRFH on 2,000 servers, a day of 600,000 tasks (goal: below 30 s and 4 GiB)", whole_day),
    "fluid": ("Exact DRFH at each of 10,000 events (goal: below 60 s)", exact_at_each_event),
    "memory": ("Exact DRFH with a half-life at each of 10,000 events (goal: below 60 s)", exact_with_a_memory),
    "clusters": ("100,000 parallel jobs as clusters schedule (goal: below 60 s of processor time each)", as_clusters_schedule),
    "reading": ("Reading the tables of the Google cluster (goal: below 3 s)", reading),
}


def table(title: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return a case in Markdown."""
    lines = [f"## {title}", "", "| | seconds | ratio | processor | ratio | warm-up | memory, MiB | |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        numbers = [f"{row[key]:.2f} | {row[key] / rows[0][key]:.1f}" for key in ("seconds", "processor")]
        before = f"{row['warm_up']:.2f}" if "warm_up" in row else ""
        lines.append(f"| {row['what']} | {' | '.join(numbers)} | {before} | {row['memory_mib']:.0f} | {row['note']} |")
    return [*lines, ""]


def main() -> None:
    """Measure all cases, or those named, and write the table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(CASES[sys.argv[2]][1]()))
        return
    found = {}
    lines = [
        "# Benchmarks of simulations",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; one run of `benchmarks/simulations.py`, "
        f"{time.strftime('%Y-%m-%d')}. Ratio: of the contender / of fairopt. Processor: seconds of processor time. "
        "Warm-up: that of a small run before, which loads and compiles.",
        "",
    ]
    for case in sys.argv[1:] or CASES:
        done = subprocess.run([sys.executable, __file__, "--one", case], stdout=subprocess.PIPE, text=True, check=True)
        *said, answer = done.stdout.splitlines()
        found[case] = json.loads(answer)
        lines += table(CASES[case][0], found[case]) if found[case] else []
        print("\n".join(said + table(CASES[case][0], found[case])), flush=True)
    if not sys.argv[1:]:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "simulations.md").write_text("\n".join(lines), encoding="utf-8")
        (RESULTS / "simulations.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
