"""A year of a cluster judged: processor time and memory of `fairopt.history`, and its ratio to a slow loop.

    python benchmarks/history.py [--jobs 1000000] [--owners 500] [--queues 20] [--moments N]

The log of a year is drawn at random: owners in queues of unequal weight, jobs of one to three shapes each, submitted by day more than by
night, and started first come, first served on each kind of server, so that work waits and large submitters hold more than they are due.
It is judged as `fairopt.history` does by itself, at random moments. A small log is judged before, which loads what is needed ("warm-up").

The slow loop takes small logs, solves every change anew, and sums in plain Python; both must agree to 1e-9. FAIROPT_DATA, if set, is a
folder that holds slurm-lab/ and google2011/, whose logs are compared too. Memory: peak of the process. Writes
benchmarks/results/history.md and history.json, unless options are given.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import warm_up

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
YEAR = 365 * 86_400.0
SERVERS = {"cn": ([32, 128, 0], 200), "bm": ([48, 768, 0], 120), "gn": ([32, 256, 4], 60), "gx": ([64, 512, 8], 30)}
SHAPES = {
    "cn": [[1, 2, 0], [4, 16, 0], [8, 32, 0]],
    "bm": [[4, 48, 0], [8, 128, 0]],
    "gn": [[4, 32, 1], [8, 64, 1]],
    "gx": [[8, 64, 1], [16, 128, 2]],
}


def cluster_of(owners: int, queues: int, part: int = 1) -> fo.Instance:
    """Return servers of four kinds, and owners in queues of weights 1 to 4."""
    capacities = [capacity for capacity, _ in SERVERS.values()]
    tree = [fo.Queue(f"q{k:02d}", weight=float(1 + k % 4)) for k in range(queues)]
    return fo.Instance(
        capacities,
        np.ones((owners, 3)) * [1, 2, 0],
        counts=[count // part for _, count in SERVERS.values()],
        queues=tree,
        queue_of=[f"q{n % queues:02d}" for n in range(owners)],
        users=[f"u{n:03d}" for n in range(owners)],
        servers=list(SERVERS),
        resources=["cpu", "memory", "gpu"],
    )


def log_of(jobs: int, owners: int, length: float, load: float, seed: int, part_of: int = 1) -> pd.DataFrame:
    """Return a log in which jobs of each kind of server start first come, first served."""
    rng = np.random.default_rng(seed)
    kinds = list(SERVERS)
    kind = rng.choice(len(kinds), owners, p=[0.5, 0.25, 0.15, 0.1])
    activity = rng.pareto(1.2, owners) + 0.05
    owner = rng.choice(owners, jobs, p=activity / activity.sum())
    submit = np.sort(rng.random(jobs) * length)
    submit = submit - 0.6 * 86_400 / (2 * np.pi) * np.sin(2 * np.pi * submit / 86_400)  # more by day
    order = np.argsort(submit, kind="stable")
    submit, owner = np.round(submit[order]), owner[order]
    shape = rng.integers(0, 3, jobs) % np.array([len(SHAPES[kinds[k]]) for k in kind])[owner]
    tasks = rng.choice([1, 1, 1, 2, 4, 8], jobs)
    run = np.round(np.exp(rng.normal(0.0, 1.2, jobs)) * 600) + 1
    frame = pd.DataFrame({"user": [f"u{n:03d}" for n in owner], "submit": submit - submit.min(), "tasks": tasks})
    start = np.zeros(jobs)
    for k, name in enumerate(kinds):
        capacity, count = SERVERS[name][0], SERVERS[name][1] // part_of
        demands = np.array(SHAPES[name], float)
        parts = (demands[:, None, :] / (count * np.array(capacity, float) + 1e-9)).max(axis=(1, 2))
        mine = np.flatnonzero(kind[owner] == k)
        part = parts[shape[mine]] * tasks[mine]
        if not mine.size:
            continue
        scale = load * length / float((part * run[mine]).sum())
        run[mine] = np.maximum(np.round(run[mine] * scale), 1)
        start[mine] = _first_come(frame["submit"].to_numpy()[mine], run[mine], part)
    frame["start"], frame["end"] = start, start + run
    frame["server"] = [kinds[k] for k in kind[owner]]
    demand = np.array([SHAPES[kinds[kind[n]]][s] for n, s in zip(owner, shape, strict=True)], float)
    return frame.assign(cpu=demand[:, 0], memory=demand[:, 1], gpu=demand[:, 2])


def _first_come(submit: Any, run: Any, part: Any) -> Any:
    """Return when jobs start, one after the other, each as soon as its part of the servers is free."""
    ends: list[tuple[float, float]] = []
    start, used, now = np.zeros(submit.size), 0.0, 0.0
    for j, (time_, length, size) in enumerate(zip(submit.tolist(), run.tolist(), part.tolist(), strict=True)):
        now = max(now, time_)
        while ends and (ends[0][0] <= now or used + size > 1.0):
            end, freed = heapq.heappop(ends)
            used -= freed
            now = max(now, end)
        start[j] = now
        used += size
        heapq.heappush(ends, (now + length, size))
    return start


def dominant_shares(kinds: list[Any], tasks: Iterable[float], total: np.ndarray) -> dict[str, float]:
    """Return the largest part of a resource that each owner holds, with all its kinds of tasks together."""
    parts: dict[str, list[float]] = {}
    for (name, *demand), number in zip(kinds, tasks, strict=True):
        before = parts.get(name, [0.0] * len(demand))
        parts[name] = [part + number * amount / capacity for part, amount, capacity in zip(before, demand, total, strict=True)]
    return {name: max(each) for name, each in parts.items()}


def slow_loop(frame: pd.DataFrame, cluster: fo.Instance) -> dict[str, list[float]]:
    """Return shortfall and surplus of each owner in share-hours, by solving every change anew."""
    rows = frame.to_dict("records")
    resources, total = list(cluster.resources), cluster.total_capacity
    times = sorted({row[name] for row in rows for name in ("submit", "start", "end") if np.isfinite(row[name])})
    names = sorted({row["user"] for row in rows})
    found = {name: [0.0, 0.0] for name in names}
    kinds = sorted({(row["user"], *(row[name] for name in resources)) for row in rows})
    queues, homes = list(cluster.queues), dict(zip(cluster.users, cluster.queue_of, strict=True))
    homes |= {queue.name: queue.name for queue in queues}
    for name in names:
        if sum(kind[0] == name for kind in kinds) > 1 and homes.get(name) != name:
            queues.append(fo.Queue(f"of {name}", homes.get(name)))
            homes[name] = f"of {name}"
    allowed = [_allowed(kind, cluster) for kind in kinds]
    for first, last in itertools.pairwise(times):
        here = [row for row in rows if row["submit"] <= first < row["end"]]
        if all(row["start"] <= first for row in here):
            continue
        asked, held = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
        for row in here:
            key = (row["user"], *(row[name] for name in resources))
            asked[key] += row["tasks"]
            held[key] += row["tasks"] * (row["start"] <= first)
        instance = fo.Instance(
            cluster.capacities,
            [kind[1:] for kind in kinds],
            counts=cluster.counts,
            eligibility=allowed,
            tasks=list(asked.values()),
            queues=queues,
            queue_of=[homes.get(kind[0]) for kind in kinds],
            resources=resources,
        )
        x = fo.solve(instance, "drfh").tasks_per_user
        due, has = dominant_shares(kinds, x, total), dominant_shares(kinds, held.values(), total)
        for name in names:
            value = due[name] - has[name]
            found[name][int(value < 0)] += abs(value) * (last - first) / 3600
    return found


def _allowed(kind: tuple[Any, ...], cluster: fo.Instance) -> list[bool]:
    """Return where tasks of an owner may run: as those of the cluster's user in its queue with the same demand, if there is one."""
    for n, queue in enumerate(cluster.queue_of):
        if cluster.placement is not None and queue == kind[0] and np.allclose(cluster.demands[n], kind[1:]):
            return list(map(bool, cluster.placement[n]))
    return [True] * cluster.n_servers


def year(jobs: int, owners: int, queues: int, load: float, moments: int | None) -> dict[str, Any]:
    """Judge the large log, from a Parquet file."""
    cluster = cluster_of(owners, queues)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "year.parquet")
        few, small = Path(folder, "few.parquet"), cluster_of(20, 4, 15)
        log_of(200, 20, 7 * 86_400.0, 1.1, 2, 15).to_parquet(few)
        before = warm_up(lambda: [fo.history(few, small, "drfh", moments=every) for every in (None, "all")])
        log_of(jobs, owners, YEAR, load, 1).to_parquet(path)
        began = time.process_time()
        found = fo.history(path, cluster, "drfh", moments=moments)
        seconds = time.process_time() - began
    data = found.to_dict()
    return {
        "case": f"a year: {jobs:,} jobs of {owners} owners in {queues} queues",
        "processor": seconds,
        "warm_up": before,
        "memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "moments": data["moments"],
        "changes": data["contended_changes"],
        "error": data["shortfall_error"] / max(data["shortfall"], 1e-300),
        "residual": data["residual"],
    }


def against_a_loop(name: str, frame: pd.DataFrame, cluster: fo.Instance, found: Callable[[], fo.History]) -> dict[str, Any]:
    """Judge every change of a log, and compare with the slow loop."""
    began = time.process_time()
    quick = found()
    fast = time.process_time() - began
    began = time.process_time()
    slow = slow_loop(frame, cluster)
    loop = time.process_time() - began
    table = quick.to_frame()
    worst = max(abs(table.loc[owner, word] - sums[k]) for owner, sums in slow.items() for k, word in enumerate(("shortfall", "surplus")))
    scale = float(table["entitled"].sum())
    assert worst < 1e-9 * scale, (name, worst, scale)
    changes = quick.to_dict()["contended_changes"]
    return {"case": name, "processor": fast, "loop": loop, "ratio": loop / fast, "difference": worst / scale, "changes": changes}


def real_logs(folder: Path) -> list[dict[str, Any]]:
    """Compare on a real Slurm, and on jobs of the Google trace that run at once, on a hundredth of its machines."""
    found = []
    lab = folder / "slurm-lab"
    if lab.exists():
        sacct, limits = lab / "limits" / "sacct.txt.gz", lab / "limits"
        window = ("2026-11-22T15:02:00", "2026-11-22T15:03:40")
        imported = fo.import_slurm(
            lab / "edge-cases" / "nodes.json", limits / "jobs.json.gz", limits / "associations.json", sacct=sacct, window=window
        )
        log = fo.history(sacct, imported.instance).setting.log
        columns = {"user": np.array(log.owners, object)[log.owner], "submit": log.submit, "start": log.start, "end": log.end}
        frame = pd.DataFrame(columns | {"tasks": log.tasks})
        frame[list(imported.instance.resources)] = log.demands[log.shape]
        found.append(against_a_loop("a saturated Slurm, 518 jobs", frame, imported.instance, lambda: fo.history(sacct, imported.instance)))
    google = folder / "google2011"
    if google.exists():
        groups = pd.read_csv(google / "google2011_task_groups_0-19.6h.csv.gz")
        groups = groups[(groups["cpu"] > 0) & (groups["mem"] > 0) & (groups["first_submit_s"] > 0) & (groups["median_run_s"] > 0)][:60]
        begins, wait = groups["first_submit_s"], np.where(groups["n_tasks"] > groups["n_scheduled"], np.inf, 0.0)
        frame = pd.DataFrame({"user": groups["user"], "submit": begins, "start": begins + 60.0 + wait})
        frame["end"] = begins + 60.0 + groups["median_run_s"]
        frame["start"] = np.minimum(frame["start"], frame["end"])
        frame = frame.assign(tasks=groups["n_tasks"], cpu=groups["cpu"], memory=groups["mem"]).reset_index(drop=True)
        machines = pd.read_csv(google / "google2011_machine_configs_t0.csv")
        counts = np.ceil(machines["count"] / 1000)
        cluster = fo.Instance(machines[["cpu", "mem"]].to_numpy(), [[1, 1]], counts=counts, users=["nobody"], resources=["cpu", "memory"])
        found.append(
            against_a_loop(
                "60 groups of tasks of the Google trace of 2011, on few machines",
                frame,
                cluster,
                lambda: fo.history(frame, cluster, moments="all", lenient=True),
            )
        )
    return found


def main() -> None:
    """Measure all, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--owners", type=int, default=500)
    parser.add_argument("--queues", type=int, default=20)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--moments", type=int, default=None)
    args = parser.parse_args()
    large = year(args.jobs, args.owners, args.queues, args.load, args.moments)
    print(large, flush=True)
    small, few = cluster_of(20, 4, 15), log_of(200, 20, 7 * 86_400.0, 1.1, 2, 15)
    rows = [against_a_loop("drawn: 200 jobs of 20 owners in 4 queues", few, small, lambda: fo.history(few, small, moments="all"))]
    if data := os.environ.get("FAIROPT_DATA"):
        rows += real_logs(Path(data))
    for row in rows:
        print(row, flush=True)
    if sys.argv[1:]:
        return
    text = [
        "# Histories",
        "",
        f"`python benchmarks/history.py`, on {platform.machine()} with Python {platform.python_version()}, {date.today()}.",
        "",
        "| case | processor time | warm-up | memory at most | moments | of changes | standard error of the shortfall | worst residual |",
        "|---|---|---|---|---|---|---|---|",
        f"| {large['case']} | {large['processor']:.0f} s | {large['warm_up']:.1f} s | {large['memory_gib']:.2f} GiB | "
        f"{large['moments']:,} | {large['changes']:,} | "
        f"{large['error']:.1%} | {large['residual']:.1e} |",
        "",
        "Every change, against the slow loop. Both agree to the relative difference that is shown.",
        "",
        "| case | changes | processor time | slow loop | ratio | difference |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['case']} | {row['changes']:,} | {row['processor']:.2f} s | {row['loop']:.2f} s | {row['ratio']:.1f} | "
            f"{row['difference']:.1e} |"
            for row in rows
        ),
        "",
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "history.md").write_text("\n".join(text))
    (RESULTS / "history.json").write_text(json.dumps({"year": large, "loop": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
