"""Make examples/gpu-lab/log.csv: a day of the lab as its scheduler would have logged it, first come, first served.

    python examples/make_gpu_lab_log.py

The jobs are those of examples/gpu-lab/jobs.csv. A row is for all tasks of a job that start at one time on servers of one kind;
it has a name of its own, as the parts of an array have.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import fairopt as fo

LAB = Path(__file__).parent / "gpu-lab"
DAY = pd.Timestamp("2026-11-02")


def main() -> None:
    """Simulate the day, and write what happened."""
    cluster = fo.load(LAB)
    trace = fo.load_trace(LAB / "jobs.csv", cluster=LAB)
    found = fo.simulate(trace, cluster, "fifo")
    assert found.task_start is not None
    assert found.task_server is not None
    kind = np.repeat(np.array(cluster.servers, object), cluster.counts.astype(int))[found.task_server]
    tasks = pd.DataFrame({"job": trace.job_of, "start": np.round(found.task_start), "server": kind, "tasks": 1})
    log = tasks.groupby(["job", "start", "server"], sort=True)["tasks"].sum().reset_index()
    jobs = pd.read_csv(LAB / "jobs.csv").loc[log["job"]].reset_index(drop=True)
    times = {"submit": jobs["submit_s"], "start": log["start"], "end": log["start"] + jobs["run_s"]}
    dates = {name: (DAY + pd.to_timedelta(seconds, unit="s")).dt.strftime("%Y-%m-%dT%H:%M:%S") for name, seconds in times.items()}
    names = jobs["job"] + "_" + (log.groupby("job").cumcount() + 1).astype(str)
    frame = jobs[["job", "user"]].assign(job=names, **dates, tasks=log["tasks"], server=log["server"])
    frame.join(jobs[["gpu", "cpu", "memory", "requires"]]).to_csv(LAB / "log.csv", index=False)


if __name__ == "__main__":
    main()
