"""Writes ``gpu-lab/jobs.csv``: a day and a night of jobs in the lab of ``gpu-lab``, for ``fairopt simulate``.

All numbers are synthetic, drawn with a fixed seed.

Each group submits jobs at random times of the day, most of them between 9 and 18 o'clock. A job has up to thirty tasks of the group's usual
demand (fewer if a task takes several GPUs), and each task runs for half an hour to five hours.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import fairopt as fo

HERE = Path(__file__).parent
HOUR = 3600


def main() -> None:
    """Write the table."""
    lab = fo.load(HERE / "gpu-lab")
    servers = [dict(row) for row in csv.DictReader((HERE / "gpu-lab" / "users.csv").open(encoding="utf-8"))]
    rng = np.random.default_rng(1)
    rows = []
    for n, (name, demand) in enumerate(zip(lab.users, lab.demands, strict=True)):
        for _ in range(int(rng.integers(6, 14))):
            submit = int(np.clip(rng.normal(12.5, 3.0), 0.0, 23.5) * HOUR)
            hours = float(np.exp(rng.uniform(np.log(0.5), np.log(5.0))))
            tasks = max(1, int(rng.integers(2, 30) // max(1.0, demand[0])))
            rows.append([submit, name, tasks, round(hours * HOUR), *(f"{part:g}" for part in demand), servers[n].get("requires", "")])
    rows.sort(key=lambda row: row[0])
    with (HERE / "gpu-lab" / "jobs.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["job", "user", "submit_s", "tasks", "run_s", *lab.resources, "requires"])
        for number, (submit, name, tasks, run, *rest) in enumerate(rows, start=1):
            table.writerow([f"job-{number}", name, submit, tasks, run, *rest])


if __name__ == "__main__":
    main()
