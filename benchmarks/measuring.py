"""How benchmarks measure: one process a measurement, processor time, the peak of memory; and how exact an answer is.

What is measured is loaded and compiled before, by a small piece of the same work (`warm_up`), which does not count. What a first run takes
is another question: `first_runs.py` answers it.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import fairopt as fo
from fairopt.certificate import allocation_excess
from fairopt.models import default_sharing
from fairopt.solvers import compiled

Row = dict[str, Any]
_COMPARED = ("numpy", "scipy", "highspy", "cvxpy", "clarabel", "scs", "ecos", "cvxpy-leximin")
_LEAST = 2.0  # seconds in all up to which a short measurement is repeated


def warm_up(small: Callable[[], Any]) -> float:
    """Do a small piece of the work that is measured next; return its processor seconds: packages are loaded, and kernels compiled.

    From here on kernels are compiled at once; those that an earlier process has compiled are read.
    """
    compiled.PATIENCE = 0.0
    began = time.process_time()
    small()
    return time.process_time() - began


def best_of(solve: Callable[[], np.ndarray], limit: float, repeats: int, at_least: int = 1) -> tuple[np.ndarray, Row]:
    """Return the tasks, and the fastest of several solves, with its peak of memory.

    A solve is stopped by the system after ``limit`` seconds of processor time, and with it this process. The first ``at_least`` are
    made where one takes half of that at most; further ones as long as they are short.
    """
    before = fresh_peak()
    clocks: list[tuple[float, float]] = []
    peak = 0.0
    while not clocks or len(clocks) < (at_least if clocks[0][1] < limit / 2 else 1) or (len(clocks) < repeats and _total(clocks) < _LEAST):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit) + 1, hard))
        wall, processor = time.perf_counter(), time.process_time()
        tasks = solve()
        clocks.append((time.perf_counter() - wall, time.process_time() - processor))
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
        if len(clocks) == 1:
            peak = (memory("VmHWM") - before) / 1024
    spent = [processor for _, processor in clocks]
    fastest = min(spent)
    spread = max(spent) / fastest - 1
    return tasks, {"seconds": min(clocks)[0], "processor": fastest, "repeats": len(clocks), "spread": spread, "peak_mib": peak}


def _total(clocks: list[tuple[float, float]]) -> float:
    return sum(processor for _, processor in clocks)


def memory(field: str) -> int:
    """Read a field of this process from the system, KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def fresh_peak() -> int:
    """Forget the peak of memory up to now, that of building the instance, and return what is in use, KiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return memory("VmRSS")


def exactness(instance: fo.Instance, tasks: np.ndarray, certified: np.ndarray, per_task: np.ndarray | None, lowest: bool = False) -> Row:
    """Compare an answer with the certified tasks of each user.

    ``per_task`` is the share that a task of each user is worth; None for proportional fairness. ``error``: the largest relative difference
    of a share (``lowest``: of the smallest one, for one LP), or of a user's tasks. ``gap``: what is missing of the certified goal once the
    tasks are scaled back into the limits: of the smallest share, or of the weighted geometric mean of the tasks.
    """
    inside = 1.0 + allocation_excess(instance, tasks, default_sharing(instance))
    mine = tasks.sum(axis=1)
    if per_task is None:
        with np.errstate(divide="ignore"):
            ratio = float(np.exp(np.average(np.log(mine / inside / certified), weights=instance.weights)))
        return {"error": float(np.abs(mine / certified - 1).max()), "gap": max(0.0, 1.0 - ratio)}
    shares, best = per_task * mine, per_task * certified
    error = abs(shares.min() / best.min() - 1) if lowest else np.abs(shares / best - 1).max()
    return {"error": float(error), "gap": max(0.0, 1.0 - float(shares.min() / inside / best.min()))}


def in_own_process(script: str, arguments: list[str], limit: float) -> Row:
    """Let a script measure in a fresh interpreter, with one thread for linear algebra; ``failed`` says why there is nothing.

    Its last line is the row, as JSON.
    """
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | one_thread)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode == -signal.SIGXCPU:
        return {"failed": f"over {limit:g} s"}
    if done.returncode < 0:  # such as for want of memory
        return {"failed": f"stopped by {signal.Signals(-done.returncode).name}"}
    return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:120]}


def machine() -> str:
    """Name the machine and the versions of what is compared."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    total = [int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    versions = []
    for name in _COMPARED:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} not installed")
    hardware = f"{os.cpu_count()} cores ({names[0] if names else platform.machine()}), {total[0]:.0f} GiB" if total else platform.machine()
    return f"{hardware}; Python {platform.python_version()}, {', '.join(versions)}"


def commit() -> str:
    """Name the commit of this repository, " at ...", or nothing where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return ""
    return f" at {done.stdout.strip()}" if done.returncode == 0 else ""


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


def svg(figure: Any) -> str:
    """Return a matplotlib figure as SVG that is the same on every run."""
    from io import StringIO

    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
