"""Apply one function to many tasks on workers: processes, threads, or a cluster of Dask or Ray.

Results arrive in the order in which they are finished. Only the calling process takes them, so a task that another worker repeats, because
its first worker was lost, is not counted twice. Tasks travel in batches of about a second each. A worker that is slower than expected
returns what it has, and the rest goes to others.

*A task that ends its worker* (memory, a crash in native code) ends nothing else: the tasks of its batch are tried once more, each alone,
and what ends its worker then, too, is the task's own fault: `lost` says what its result is.

>>> sorted(run(abs, [-3, 2, -1], workers=2, backend="threading"))
[1, 2, 3]
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from fairopt.errors import NoSolution, SolverUnavailable, Unsupported
from fairopt.processes.batches import Done, Lost
from fairopt.processes.pools import Here, Pool, Threads
from fairopt.validation import check_number_of_workers
from fairopt.wording import did_you_mean, installing

__all__ = ["BACKENDS", "Crew", "check_workers", "run"]

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

BACKENDS = ("loky", "threading", "dask", "ray")
_CLUSTERS = {"dask": "distributed", "ray": "ray"}  # and the package of each
_TICK = 1.0  # seconds after which to look whether there are workers
_WITHOUT_WORKERS = 3600.0  # seconds to wait for the first worker, and for one after the last was lost: batch systems have queues
_AHEAD = 2  # rounds of batches that a worker shall have to do until the end, so that all end at the same time


def check_workers(workers: Any, backend: Any, address: Any) -> None:
    """Refuse an unknown backend, an invalid number of workers, and an address that the backend does not use."""
    if backend not in BACKENDS:
        hint = did_you_mean(backend, BACKENDS) if isinstance(backend, str) else ""
        raise Unsupported(f'there is no backend "{backend}"{hint}; there are {", ".join(BACKENDS)}')
    check_number_of_workers(workers)
    if address is not None and not isinstance(address, str):
        raise Unsupported(
            f'address is {address!r}; give a text, such as "tcp://10.0.0.1:8786" (cluster.scheduler_address of a Dask cluster)'
        )
    if address is not None and backend not in _CLUSTERS:
        raise Unsupported(f'the backend "{backend}" has no address; give backend="dask" or backend="ray" with it')


def run(
    function: Callable[[T], R],
    tasks: Sequence[T],
    *,
    workers: int = -1,
    backend: str = "loky",
    address: str | None = None,
    lost: Callable[[T, str], R] | None = None,
) -> Generator[R, None, None]:
    """Yield function(task) for every task, in the order in which the results are finished.

    Parameters
    ----------
    function, tasks
        What to compute. Tasks are small: what all of them need belongs to the function, which is sent once.
    workers, backend, address
        As `fairopt.study` takes them.
    lost : function, optional
        Called with a task that has ended its worker twice, the second time alone, and how the worker ended; returns the result in its
        place. Default: such a task ends the run.

    Raises
    ------
    SolverUnavailable
        The package of the backend is not installed.
    Unsupported
        No cluster answers at the address. A worker has another version of fairopt.
    NoSolution
        The cluster is lost, or has had no worker for a long time.
    """
    if not tasks:
        return
    with Crew(workers, backend, address) as crew, contextlib.closing(crew.each(function, tasks, lost)) as results:
        for _, result in results:
            yield result


class Crew:
    """Workers for several runs, one after the other. They are started, or connected to, when the first run needs them.

    A crew that travels to a worker is that worker itself: what runs there starts no workers of its own.

    >>> with Crew(2, "threading") as crew:
    ...     crew.map(abs, [-3, 2])
    [3, 2]
    """

    def __init__(self, workers: int = 1, backend: str = "loky", address: str | None = None) -> None:
        check_workers(workers, backend, address)
        self._workers, self._backend, self._address = workers, backend, address
        self._stack = contextlib.ExitStack()
        self._number = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Crew, ()

    @functools.cached_property
    def _pool(self) -> Pool:
        return self._stack.enter_context(_opened(self._workers, self._backend, self._address))

    @property
    def alone(self) -> bool:
        """Whether the tasks are computed here, one after the other."""
        return isinstance(self._pool, Here)

    @property
    def size(self) -> int:
        """How many tasks are computed at once; at least one."""
        return max(self._pool.slots(), 1)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.close()
        vars(self).pop("_pool", None)

    def map(self, function: Callable[[T], R], tasks: Sequence[T], lost: Callable[[T, str], R] | None = None) -> list[R]:
        """Return function(task) for every task, in the order of the tasks; ``lost`` as in `run`."""
        results: dict[int, R] = dict(self.each(function, tasks, lost)) if tasks else {}
        return [results[j] for j in range(len(tasks))]

    def each(
        self, function: Callable[[T], R], tasks: Sequence[T], lost: Callable[[T, str], R] | None = None
    ) -> Generator[tuple[int, R], None, None]:
        """Yield the position of every task and its result, in the order in which they are finished."""
        pool, plan = self._pool, _Plan(len(tasks), self._pool)
        flying: dict[int, tuple[list[int], bool]] = {}
        patience = _Patience(pool, self._backend)
        try:
            shared = pool.share(function)
            while plan.left or flying:
                while len(flying) < pool.slots() and (batch := plan.next(flying)) is not None:
                    self._number += 1
                    flying[self._number] = batch
                    pool.submit(self._number, shared, [tasks[j] for j in batch[0]])
                ended = pool.wait(_TICK)
                patience.look(alive=bool(ended))
                for number, found in ended:
                    if number not in flying:  # of an earlier run that was left: a thread cannot be stopped
                        continue
                    positions, alone = flying.pop(number)
                    if isinstance(found, Lost):
                        if not alone:
                            plan.suspect(positions)
                        elif lost is not None:
                            yield positions[0], lost(tasks[positions[0]], found.why)
                        else:
                            raise NoSolution(_ends_its_worker(self._backend, found.why))
                        continue
                    if found.refused:
                        raise Unsupported(found.refused)
                    plan.learn(found)
                    plan.again(positions[len(found.results) + (found.raised is not None) :], alone=alone)
                    yield from zip(positions, found.results, strict=False)
                    if found.interrupted:
                        raise KeyboardInterrupt
                    if found.raised is not None:
                        raise found.raised
        finally:
            pool.drop(list(flying))


def _ends_its_worker(backend: str, why: str) -> str:
    return (
        f"a task ended its worker ({backend}) twice, the second time alone: {why}; it may have been killed for lack of memory: use fewer "
        "workers, or larger machines"
    )


class _Plan:
    """What is to be done, and in which batches: positions of tasks."""

    def __init__(self, number: int, pool: Pool) -> None:
        self._pool, self._number = pool, number
        self._fresh = 0  # the first that was in no batch yet
        self._back: deque[int] = deque()  # of batches whose time was over
        self._suspects: deque[int] = deque()  # of batches that have lost their worker
        self._rate = 0.0  # tasks a second

    @property
    def left(self) -> int:
        return self._number - self._fresh + len(self._back) + len(self._suspects)

    def next(self, flying: dict[int, tuple[list[int], bool]]) -> tuple[list[int], bool] | None:
        """Return the next batch, and whether it is one task alone; None if nothing may be begun now."""
        if self._suspects:
            others = bool(flying) if not self._pool.isolates else False
            return None if others else ([self._suspects.popleft()], True)
        if not self._pool.isolates and any(alone for _, alone in flying.values()):
            return None
        left = self.left
        if not left:
            return None
        fair = max(left // (_AHEAD * max(self._pool.slots(), 1)), 1)
        size = max(min(int(self._pool.seconds * self._rate), fair), 1)
        batch: list[int] = []
        while self._back and len(batch) < size:
            batch.append(self._back.popleft())
        more = min(size - len(batch), self._number - self._fresh)
        batch.extend(range(self._fresh, self._fresh + more))
        self._fresh += more
        return batch, False

    def learn(self, found: Done) -> None:
        """Take the time of a batch as the time of the next."""
        if found.results and found.seconds > 0:
            self._rate = len(found.results) / found.seconds

    def again(self, positions: Sequence[int], *, alone: bool) -> None:
        """Take tasks back that were not begun."""
        (self._suspects if alone else self._back).extend(positions)

    def suspect(self, positions: Sequence[int]) -> None:
        """Have each of these tried alone: one of them may have ended its worker."""
        self._suspects.extend(positions)


class _Patience:
    """Says once that nothing can be computed, and why, and ends the run if that lasts."""

    def __init__(self, pool: Pool, backend: str) -> None:
        self._pool, self._backend = pool, backend
        self._since: float | None = None

    def look(self, *, alive: bool) -> None:
        """Look at the pool unless it has just answered."""
        why = "" if alive else self._pool.missing()
        if not why:
            if self._since is not None:
                log.warning("%s: there are workers now", self._backend)
            self._since = None
            return
        now = time.monotonic()
        if self._since is None:
            self._since = now
            log.warning("%s: %s; waiting for workers", self._backend, why)
        elif now - self._since > _WITHOUT_WORKERS:
            raise NoSolution(f"{self._backend}: {why}, for {_WITHOUT_WORKERS / 60:.0f} minutes; start workers")


def _processors() -> int:
    """Return how many processors this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


@contextlib.contextmanager
def _opened(workers: int, backend: str, address: str | None) -> Iterator[Pool]:
    """Open the pool of a backend."""
    for package in (name for cluster, name in _CLUSTERS.items() if cluster == backend):
        try:
            importlib.import_module(package)
        except ImportError:
            raise SolverUnavailable(
                f'the backend "{backend}" needs a package that is not installed; install it with: {installing(backend)}'
            ) from None
    number = _processors() if workers == -1 else workers
    if backend == "dask":
        from fairopt.processes.on_dask import cluster_of_dask

        with cluster_of_dask(workers, address) as pool:
            yield pool
    elif backend == "ray":
        from fairopt.processes.on_ray import cluster_of_ray

        with cluster_of_ray(workers, address) as pool:
            yield pool
    elif number == 1:
        yield Here()
    elif backend == "threading":
        with contextlib.closing(Threads(number)) as threads:
            yield threads
    else:
        from fairopt.processes.on_loky import processes

        with processes(number) as pool:
            yield pool
