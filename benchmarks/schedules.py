"""Speed of best-fit DRFH schedules against the same algorithm as a Python loop with vectorised NumPy scoring, both in one run.

    python benchmarks/schedules.py [FOLDER]

FOLDER holds the openb data (Alibaba GPU cluster 2023; Weng et al. 2023): openb_nodes.csv.gz and openb_pods_default_gpuspec33.csv.gz. It
can also be given as FAIROPT_OPENB; without it, that case is left out. A user is a class of pods (quality of service, shape and allowed
GPU models). A GPU counts as a plain resource: parts of several cards add up, which is a relaxation, since a shared GPU must lie on one
card.

Each side is run once to compile and to warm up, then `REPEATS` times; the fastest counts, in wall-clock time and in processor time, which
says more on a machine that does other things too. Both must give the same tasks per user. Writes benchmarks/results/schedules.md and
schedules.json.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import instances
import numpy as np
import pandas as pd
from measuring import warm_up

import fairopt as fo
from fairopt.instance.aggregation import expand

REPEATS = 3
RESULTS = Path(__file__).resolve().parent / "results"


def numpy_best_fit(instance: fo.Instance) -> np.ndarray:
    """What one would write without a compiler: a loop over tasks, arrays over servers."""
    whole, _ = expand(instance)
    total = whole.total_capacity
    capacity, demand = whole.capacities / total, whole.demands / total
    limit, used = capacity * (1 + 1e-9), np.zeros_like(capacity)
    share = demand.max(axis=1) / whole.weights
    pivot = (demand > 0).argmax(axis=1)
    held, left, alive = np.zeros(whole.n_users), np.floor(whole.tasks), whole.servable & (whole.tasks >= 1)
    while alive.any():
        shares = np.where(alive, held * share, np.inf)
        n = int((shares <= shares.min() * (1 + 1e-12)).argmax())
        servers = np.flatnonzero(whole.eligibility[n] & (used + demand[n] <= limit).all(axis=1))
        if servers.size == 0:
            alive[n] = False
            continue
        free, p = capacity[servers] - used[servers], pivot[n]
        score = np.floor(np.abs(demand[n] / demand[n, p] - free / free[:, p, None]).sum(axis=1) * 1e9 + 0.2718)
        i = servers[score.argmin()]
        used[i] += demand[n]
        held[n] += 1
        left[n] -= 1
        alive[n] = left[n] >= 1
    return held


def fairopt_best_fit(instance: fo.Instance) -> np.ndarray:
    return fo.schedule(instance, "drfh", placement="best-fit").tasks_per_user


def openb(folder: Path) -> fo.Instance:
    """1,523 nodes, 8,152 pods: every node a row of its own, as a scheduler sees them."""
    nodes = pd.read_csv(folder / "openb_nodes.csv.gz", dtype={"model": str}, keep_default_na=False)
    pods = pd.read_csv(folder / "openb_pods_default_gpuspec33.csv.gz", dtype={"gpu_spec33": str}, keep_default_na=False)
    shape = ["qos", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec33"]
    classes = pods.groupby(shape, sort=True).size().reset_index(name="tasks")
    models = nodes["model"].to_numpy()
    eligibility = np.array([np.isin(models, spec.split("|")) if spec else np.ones(len(nodes), bool) for spec in classes["gpu_spec33"]])
    gpu = classes["num_gpu"] * classes["gpu_milli"] / 1000
    return fo.Instance(
        nodes[["cpu_milli", "memory_mib", "gpu"]].to_numpy(float),
        np.column_stack([classes["cpu_milli"], classes["memory_mib"], gpu]),
        eligibility=eligibility,
        tasks=classes["tasks"].to_numpy(float),
    )


def google(tasks: int = 200_000) -> fo.Instance:
    """12,583 servers, 900 users, and as many tasks in all: each user has the same number at most."""
    instance = instances.google()
    highest = 2 * tasks // instance.n_users
    lowest = 1
    while lowest < highest:  # the number at which the schedule places about so many
        middle = (lowest + highest + 1) // 2
        placed = fo.schedule(instance.replace(tasks=np.minimum(instance.tasks, middle))).tasks.sum()
        lowest, highest = (middle, highest) if placed <= tasks else (lowest, middle - 1)
    return instance.replace(tasks=np.minimum(instance.tasks, lowest + 1))


def fastest(work: Callable[[fo.Instance], np.ndarray], instance: fo.Instance, repeats: int = REPEATS) -> tuple[float, float, np.ndarray]:
    """Return the least wall-clock time, the least processor time, and the answer."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        answer = work(instance)
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors), answer


def compare(title: str, instance: fo.Instance, against: bool) -> dict[str, Any]:
    """Return what was measured of one case."""
    wall, processor, ours = fastest(fairopt_best_fit, instance)
    rows = [{"contender": "fairopt", "seconds": wall, "processor": processor, "tasks": float(ours.sum()), "users_that_differ": 0}]
    if against:
        wall, processor, theirs = fastest(numpy_best_fit, instance, 1)
        differ = int((ours != theirs).sum())
        rows.append(
            {
                "contender": "Python loop, NumPy",
                "seconds": wall,
                "processor": processor,
                "tasks": float(theirs.sum()),
                "users_that_differ": differ,
            }
        )
    return {"title": title, "instance": repr(instance), "rows": rows}


def table(case: dict[str, Any]) -> list[str]:
    """Return a case in Markdown."""
    lines = [f"## {case['title']}", "", case["instance"], ""]
    lines += ["| | seconds | ratio | processor | ratio | tasks placed | users that differ |", "|---|---|---|---|---|---|---|"]
    ours = case["rows"][0]
    for row in case["rows"]:
        numbers = [f"{row[key]:.3f} | {row[key] / ours[key]:.1f}" for key in ("seconds", "processor")]
        lines.append(f"| {row['contender']} | {' | '.join(numbers)} | {row['tasks']:,.0f} | {row['users_that_differ']} |")
    return [*lines, ""]


def main() -> None:
    """Measure both cases, or the second alone, and write the table."""
    warm_up(lambda: fairopt_best_fit(fo.Instance([[1, 1]], [[0.5, 0.4]])))
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FAIROPT_OPENB")
    cases = []
    if given and (Path(given) / "openb_nodes.csv.gz").exists():
        cases.append(compare("openb, best-fit DRFH (goal: at least 10 times faster)", openb(Path(given)), against=True))
    else:
        print("openb: left out; give its folder as an argument or in FAIROPT_OPENB")
    cases.append(compare("Google cluster, about 200,000 tasks (goal: below 5 s)", google(), against="--all" in sys.argv))
    lines = [
        "# Benchmarks of schedules",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; one run of `benchmarks/schedules.py`, "
        f"{time.strftime('%Y-%m-%d')}. Ratio: of the contender / of fairopt. Processor: seconds of processor time.",
        "",
        *(line for case in cases for line in table(case)),
    ]
    print("\n".join(lines))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "schedules.md").write_text("\n".join(lines), encoding="utf-8")
    (RESULTS / "schedules.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
