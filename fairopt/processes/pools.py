"""Where batches are computed: the interface of a pool of workers, and the pools of this process.

A pool takes batches and says which are done, and which have lost their worker. `fairopt.processes.crew` decides what is in a batch, and
what to do about a lost one. There is a module for each kind of pool: `on_loky` (processes of this machine), `on_dask` and `on_ray`.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fairopt.processes.batches import Done, Lost, own_versions, work

__all__ = ["BATCH", "Ended", "Here", "Pool", "Threads", "taken"]

BATCH = 1.0  # seconds that a batch shall take: long beside the milliseconds that sending takes, short beside what a lost batch may cost

Ended = tuple[int, Done | Lost]


class Pool(Protocol):
    """Workers that compute batches."""

    @property
    def seconds(self) -> float:
        """How many seconds a batch shall take; 0: batches of one task."""

    @property
    def isolates(self) -> bool:
        """Whether a task that ends its worker harms no batch but its own."""

    def slots(self) -> int:
        """Return how many batches shall be there at once, those that are computed and those that wait for a worker."""

    def missing(self) -> str:
        """Return why nothing can be computed now, such as that there are 0 workers; empty if nothing is wrong."""

    def share(self, function: Callable[[Any], Any]) -> Any:
        """Send a function to the workers, and return what batches name it by."""

    def submit(self, number: int, function: Any, tasks: Sequence[Any]) -> None:
        """Begin a batch."""

    def wait(self, seconds: float) -> list[Ended]:
        """Return the batches that have ended, as soon as there is one, or none after some seconds."""

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget batches, and stop them where that can be done."""


class Here:
    """This process itself: one task at a time."""

    seconds = 0.0
    isolates = True

    def __init__(self) -> None:
        self._next: list[tuple[int, Callable[[Any], Any], Sequence[Any]]] = []

    def slots(self) -> int:
        """One."""
        return 1

    def missing(self) -> str:
        """Nothing ever is."""
        return ""

    def share(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Nothing to do."""
        return function

    def submit(self, number: int, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        """Remember a task."""
        self._next.append((number, function, tasks))

    def wait(self, seconds: float) -> list[Ended]:
        """Do the task."""
        number, function, tasks = self._next.pop(0)
        return [(number, work(function, tasks, self.seconds, own_versions()))]

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget all."""
        self._next.clear()


class Threads:
    """Threads of this process, for what computes outside of Python. They do not keep the process from ending."""

    seconds = 0.0
    isolates = True

    def __init__(self, number: int) -> None:
        self.number = number
        self._begin: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._started = 0

    def slots(self) -> int:
        """One batch for each thread."""
        return self.number

    def missing(self) -> str:
        """Nothing ever is."""
        return ""

    def share(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Nothing to do."""
        return function

    def submit(self, number: int, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        """Begin a task, in a new thread if there are fewer than there may be."""
        if self._started < self.number:
            self._started += 1
            threading.Thread(target=contextvars.copy_context().run, args=(self._run,), daemon=True).start()
        self._begin.put((number, function, tasks))

    def _run(self) -> None:
        while (batch := self._begin.get()) is not None:
            number, function, tasks = batch
            self._ended.put((number, work(function, tasks, self.seconds, own_versions())))

    def wait(self, seconds: float) -> list[Ended]:
        """Wait for a thread."""
        return taken(self._ended, seconds)

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget what no thread has begun; what a thread has begun cannot be stopped."""
        while not self._begin.empty():
            taken(self._begin, 0.0)

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        for _ in range(self._started):
            self._begin.put(None)


def taken(waiting: queue.SimpleQueue[Any], seconds: float) -> list[Any]:
    """Return what is in a queue, as soon as there is something, or nothing after some seconds."""
    found = []
    try:
        found.append(waiting.get(timeout=seconds) if seconds > 0 else waiting.get_nowait())
        while True:
            found.append(waiting.get_nowait())
    except queue.Empty:
        return found
