"""Processes of this machine, by joblib's loky: each is an executor of one process, so that one that dies harms no other.

The processes wait for further work for a while, so that the next study does not start new ones.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairopt.processes.batches import Lost, Payload, own_versions, work
from fairopt.processes.pools import BATCH, Ended, taken
from fairopt.processes.workers import no_interrupt, safe_path, settle, start_trackers

__all__ = ["processes"]

_IDLE = 300  # seconds after which a process without work ends
_LARGE = 1_000_000  # bytes of a function that is sent by a file, not with every batch
_THREADS = (  # how many threads libraries start: all processes together as many as there are cores
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
_CODES = re.compile(r"exit codes? of the workers? (?:is|are) \{(.*?)\}")

_waiting: dict[int, list[Any]] = {}  # executors without work, by the threads that each may start
_guard = threading.Lock()


@contextlib.contextmanager
def processes(number: int) -> Iterator[_Processes]:
    """Have processes of this machine as workers."""
    start_trackers()
    with tempfile.TemporaryDirectory(prefix="fairopt-") as folder:
        pool = _Processes(number, Path(folder))
        try:
            yield pool
        finally:
            pool.close()


class _Processes:
    seconds = BATCH
    isolates = True

    def __init__(self, number: int, folder: Path) -> None:
        from joblib import cpu_count

        self.number, self._folder = number, folder
        self._threads = max(cpu_count() // number, 1)
        self._free: list[Any] = []
        self._busy: dict[int, Any] = {}
        self._ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def slots(self) -> int:
        return self.number

    def missing(self) -> str:
        return ""

    def share(self, function: Callable[[Any], Any]) -> Payload:
        payload = Payload(function)
        if len(payload.content or b"") > _LARGE:
            for earlier in self._folder.iterdir():  # of runs that have ended
                earlier.unlink()
            payload.keep_in(self._folder)
        return payload

    def submit(self, number: int, function: Payload, tasks: Sequence[Any]) -> None:
        with safe_path(), no_interrupt():  # a process may be started here
            executor = self._free.pop() if self._free else _executor(self._threads)
            self._busy[number] = executor
            future = executor.submit(work, function, tasks, self.seconds, own_versions())
        future.add_done_callback(lambda found: self._ended.put((number, found)))

    def wait(self, seconds: float) -> list[Ended]:
        return [(number, self._result(number, future)) for number, future in taken(self._ended, seconds) if number in self._busy]

    def _result(self, number: int, future: Any) -> Any:
        from concurrent.futures.process import BrokenProcessPool

        executor = self._busy.pop(number)
        try:
            found = future.result()
        except BrokenProcessPool as error:
            executor.shutdown(wait=False, kill_workers=True)
            codes = _CODES.search(str(error))
            return Lost(f"the process ended with {codes[1]}" if codes else "the process ended")
        except BaseException:
            executor.shutdown(wait=False, kill_workers=True)
            raise
        self._free.append(executor)
        return found

    def drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if (executor := self._busy.pop(number, None)) is not None:
                executor.shutdown(wait=False, kill_workers=True)

    def close(self) -> None:
        self.drop(list(self._busy))
        with _guard:
            _waiting.setdefault(self._threads, []).extend(self._free)


@functools.cache
def _end_at_exit() -> None:
    """End the processes that wait, before Python takes apart what ends them."""
    atexit.register(_end)


def _end() -> None:
    for executor in (each for some in _waiting.values() for each in some):
        executor.shutdown(wait=True, kill_workers=True)
    _waiting.clear()


def _executor(threads: int) -> Any:
    """Return an executor of one process: one that waits, or a new one."""
    from joblib.externals.loky import ProcessPoolExecutor

    with _guard:
        if _waiting.get(threads):
            return _waiting[threads].pop()
    _end_at_exit()  # after the import of loky, whose own end comes later then
    env = {name: os.environ.get(name, str(threads)) for name in _THREADS}
    return ProcessPoolExecutor(max_workers=1, timeout=_IDLE, initializer=settle, initargs=(os.getpid(),), env=env)
