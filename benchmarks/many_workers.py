"""What workers add to the time of a study: tiny cells on two processes, Dask and Ray, and the memory and time of the driver alone.

    python benchmarks/many_workers.py [BACKEND ...]

A cell is one notion and one schedule of one user on one server, about ten milliseconds. *Serial* is the same study without workers. Each
measurement is a process of its own; the workers have computed some cells before the clock starts, and the time of a small study is taken
from that of a large one, so that what a study costs once does not count. *Wall* is the time of the study with two workers, as a fraction
of the serial time; *work* the processor time of all processes together, halved, as the same fraction: what *wall* is on two cores that are
free. *Driver* is the processor time of the process that asks, per cell. The last rows have cells that cost nothing, so that only the driver
works: it takes their rows, writes the file and returns the table. Backends that are not installed are left out. Writes
benchmarks/results/many_workers.md and many_workers.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

from measuring import Row, in_own_process, machine, write

import fairopt as fo
from fairopt.studies import sweep
from fairopt.studies.cell import Cells, Key

RESULTS = Path(__file__).resolve().parent / "results"
SMALL, LARGE, WORKERS = 40, 540, 2  # cells of two studies, and workers
CELLS = LARGE - SMALL
DRIVER = (100_000, 1_000_000)  # cells
BACKENDS = {"loky": None, "dask": "distributed", "ray": "ray"}
ASK: dict[str, Any] = {"notions": ["drfh"], "schedules": ["drfh:best-fit"]}
LIMIT = 900.0  # seconds


def tiny() -> Callable[[int], fo.Instance]:
    """Return a generator that travels by value."""

    def drawn(seed: int) -> fo.Instance:
        import fairopt as fo

        return fo.Instance([[1.0 + seed]], [[1.0]])

    return drawn


def processor(root: int) -> float:
    """Return the processor time of a process and all below it, in seconds; of those that run."""
    parents: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents.setdefault(int(fields[1]), []).append(number)
            spent[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    todo, total = [root], 0.0
    while todo:
        number = todo.pop()
        total += spent.get(number, 0.0)
        todo += parents.get(number, [])
    return total


@contextlib.contextmanager
def started(backend: str) -> Iterator[dict[str, Any]]:
    """Start workers; how a study asks for them."""
    if backend == "dask":
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            where = Path(folder) / "scheduler.json"
            quiet = ("--scheduler-file", str(where), "--no-dashboard", "--host", "127.0.0.1")
            for program in ("scheduler --port 0", *["worker --nthreads 1 --no-nanny"] * WORKERS):
                name, *options = program.split()
                command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *options, *quiet]
                done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
                stack.callback(done.wait)
                stack.callback(done.kill)
                while not where.exists():
                    time.sleep(0.1)
            yield {"backend": "dask", "address": json.loads(where.read_text())["address"]}
    elif backend == "ray":
        import ray

        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        try:
            yield {"backend": "ray"}
        finally:
            ray.shutdown()
    else:
        yield {"workers": 1 if backend == "serial" else WORKERS}


def measure(backend: str) -> Row:
    """Time a study of tiny cells."""
    with started(backend) as how:
        spent = []
        for cells in (SMALL, SMALL, LARGE):
            before, own, clock = processor(os.getpid()), time.process_time(), time.perf_counter()
            fo.study({"tiny": tiny()}, seeds=range(cells), **ASK, **how)
            wall, own = time.perf_counter() - clock, time.process_time() - own
            spent.append({"wall": wall, "work": processor(os.getpid()) - before, "driver": own})
        _, small, large = spent
        return {name: large[name] - small[name] for name in large}


def measure_driver(cells: int) -> Row:
    """Let cells cost nothing: their rows are those of one, with other seeds and numbers."""
    rows: list[dict[str, Any]] = []

    def run(cells: Cells, keys: Sequence[Key], **_: Any) -> Iterator[tuple[Key, list[dict[str, Any]]]]:
        rows.extend(cells(keys[0])[1])
        for name, seed in keys:
            yield (name, seed), [row | {"seed": seed, "tasks": float(seed)} for row in rows]

    with tempfile.TemporaryDirectory() as folder, patch.object(sweep, "run", run):
        clock = time.process_time()
        frame = fo.study({"tiny": tiny()}, seeds=range(cells), **ASK, resume=folder)
        assert frame["tasks"].iloc[-1] == cells - 1
        spent = time.process_time() - clock
        size = (Path(folder) / "study.parquet").stat().st_size
    return {"driver": spent, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "megabytes": size / 1e6}


def main() -> None:
    """Measure and write the tables."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure_driver(int(sys.argv[2])) if sys.argv[2].isdigit() else measure(sys.argv[2])))
        return
    asked = sys.argv[1:] or [name for name, package in BACKENDS.items() if package is None or find_spec(package)]
    found = {name: in_own_process(__file__, ["--measure", name], LIMIT) for name in ("serial", *asked)}
    serial = found["serial"]
    lines = [
        "# Benchmarks of workers",
        "",
        f"{machine()}; one run of `benchmarks/many_workers.py`, {time.strftime('%Y-%m-%d')}. {CELLS:,} cells of "
        f"{1000 * serial['work'] / CELLS:.1f} ms of processor time, {WORKERS} workers. Wall and work are fractions of the serial study; "
        "the docstring of the script says what the columns are.",
        "",
        "| workers | wall | work / 2 | driver, ms a cell |",
        "|---|---|---|---|",
    ]
    for name in asked:
        row = found[name]
        lines.append(
            f"| {name} | {row['failed']} | | |"
            if "failed" in row
            else f"| {name} | {row['wall'] / serial['wall']:.2f} | {row['work'] / WORKERS / serial['work']:.2f} | "
            f"{1000 * row['driver'] / CELLS:.2f} |"
        )
    lines += ["", "The driver alone:", "", "| cells | driver, ms a cell | peak, MiB | file, MB |", "|---|---|---|---|"]
    for cells in DRIVER:
        row = found[str(cells)] = in_own_process(__file__, ["--measure", str(cells)], LIMIT)
        lines.append(
            f"| {cells:,} | {row['failed']} | | |"
            if "failed" in row
            else f"| {cells:,} | {1000 * row['driver'] / cells:.3f} | {row['peak_mib']:.0f} | {row['megabytes']:.1f} |"
        )
    print("\n".join(lines))
    if not sys.argv[1:]:
        write(RESULTS / "many_workers.md", "\n".join(lines) + "\n")
        write(RESULTS / "many_workers.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
