"""A real Dask cluster on loopback: its programs can be killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["PATIENCE", "cluster", "started", "until"]

PATIENCE = 300  # seconds until something that will happen must have happened, on however slow a machine


@contextlib.contextmanager
def started(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program of Dask, whose messages go to a file; it is gone at the end."""
    with (folder / f"{name}.log").open("wb") as messages:
        program = subprocess.Popen([sys.executable, "-m", *arguments], cwd=folder, stdout=messages, stderr=messages)
        try:
            yield program
        finally:
            program.kill()
            program.wait(PATIENCE)


def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until it is so."""
    limit = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


@contextlib.contextmanager
def cluster(folder: Path, number: int = 2, *nanny: str) -> Iterator[tuple[str, dict[int, subprocess.Popen[bytes]]]]:
    """Start a scheduler and workers of one thread each; its address, and the workers by process. The scheduler is process 0."""
    where = folder / "scheduler.json"
    quiet = ("--no-dashboard", "--host", "127.0.0.1")
    with contextlib.ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(where), *quiet)
        programs = {0: stack.enter_context(started(folder, "scheduler", *scheduler))}
        until(where.exists, "the scheduler starts")
        options = ("--scheduler-file", str(where), "--nthreads", "1", *(nanny or ("--no-nanny",)), *quiet)
        workers = [stack.enter_context(started(folder, f"worker-{j}", "distributed.cli.dask_worker", *options)) for j in range(number)]
        from distributed import Client

        with Client(scheduler_file=str(where), timeout=PATIENCE) as client:  # type: ignore[no-untyped-call]
            if number:
                client.wait_for_workers(number, timeout=PATIENCE)
            address = client.scheduler.address
        yield address, programs | {worker.pid: worker for worker in workers}
