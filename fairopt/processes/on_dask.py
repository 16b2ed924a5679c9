"""The workers of a Dask cluster, by `distributed` itself.

Dask gives a batch whose worker is lost to another worker, and again, until it has cost four of them. So a worker marks a batch at the
scheduler before it begins it, and a worker that gets a batch with a mark leaves it alone and says so: a task that ends its worker costs one
worker when it comes in a batch, and one when it comes alone.

A worker that lacks what a message of Dask's names ends, and takes no further ones. So a batch names nothing of fairopt: it is a line of
Python for `eval`, and bytes. A worker without fairopt then fails with an error that comes back, and is named.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import queue
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairopt.errors import NoSolution, Unsupported
from fairopt.processes.batches import Done, Lost, Payload, own_versions, work
from fairopt.processes.pools import BATCH, Ended, taken
from fairopt.processes.workers import no_interrupt, safe_path, start_trackers
from fairopt.wording import message_line

__all__ = ["cluster_of_dask", "once"]

_PATIENCE = 30  # seconds to wait for the answer of a scheduler
_LOOK = 2.0  # seconds between two looks at how many workers there are
_EACH = 2  # batches for each thread of a worker: one that it computes, one that waits
_LOST = "the worker was lost"
_ONCE = "__import__('fairopt.processes.on_dask', fromlist=['once']).once(key, payload, batch)"
_VERSION = "__import__('fairopt').__version__"


@contextlib.contextmanager
def cluster_of_dask(workers: int, address: str | None) -> Iterator[_Dask]:
    """Connect to a scheduler, or start a cluster on this machine.

    Raises
    ------
    Unsupported
        The address is none, or no scheduler answers there.
    """
    distributed: Any = importlib.import_module("distributed")
    _check(address)
    options: dict[str, Any] = {"address": address, "timeout": _PATIENCE}
    if address is None:
        options = {"n_workers": None if workers == -1 else workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with safe_path(), contextlib.ExitStack() as stack:
        try:
            start_trackers()
            with no_interrupt():  # a worker that hears Ctrl-C ends
                client = stack.enter_context(distributed.Client(**options, set_as_default=False))
        except (OSError, ValueError) as error:
            raise Unsupported(
                f"no Dask scheduler answers at {address}: {message_line(error)}; start one with: dask scheduler, and workers with: "
                "dask worker ADDRESS"
            ) from error
        yield _Dask(client, None if address is None or workers == -1 else workers)


def _check(address: str | None) -> None:
    """Refuse an address that is none at once: a client that was given one leaves a traceback a minute later."""
    if address is None or address.startswith("inproc://"):
        return
    comm: Any = importlib.import_module("distributed.comm")
    try:
        comm.get_address_host_port(address)
    except ValueError as error:
        raise Unsupported(
            f'address="{address}" is not the address of a Dask scheduler: {message_line(error)}; give one as tcp://10.0.0.1:8786'
        ) from error


class _Dask:
    seconds = BATCH

    def __init__(self, client: Any, most: int | None) -> None:
        self._client, self._most = client, most
        self._where = client.scheduler.address
        self._name = uuid.uuid4().hex[:8]
        self._flying: dict[int, Any] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._looked = -float("inf")
        self._threads: list[int] = []

    @property
    def isolates(self) -> bool:
        """Threads of one worker end together."""
        return max(self._workers(), default=1) == 1

    def slots(self) -> int:
        number = sum(self._workers())
        return max(number if self._most is None else min(number, self._most), 1) * _EACH

    def missing(self) -> str:
        if self._client.status != "running":
            raise self._gone()
        self._looked = -float("inf")
        return "" if self._workers() else f"the Dask scheduler at {self._where} has 0 workers"

    def _gone(self) -> NoSolution:
        return NoSolution(f"the Dask scheduler at {self._where} is lost")

    def _workers(self) -> list[int]:
        """Return the threads of each worker."""
        if time.monotonic() - self._looked > _LOOK:
            with contextlib.suppress(OSError, ValueError):  # the scheduler is away
                self._threads = list(self._client.nthreads().values())
            self._looked = time.monotonic()
        return self._threads

    def share(self, function: Callable[[Any], Any]) -> Any:
        payload = Payload(function)
        return self._client.submit(bytes, pickle.dumps(payload), key=f"fairopt-function-{self._name}-{payload.digest}", pure=False)

    def submit(self, number: int, function: Any, tasks: Sequence[Any]) -> None:
        from joblib.externals.loky.backend.reduction import dumps

        if self._client.status != "running":
            raise self._gone()
        key = f"fairopt-batch-{self._name}-{number}"
        batch = bytes(dumps((list(tasks), self.seconds, own_versions())))
        future = self._client.submit(eval, _ONCE, {"key": key, "payload": function, "batch": batch}, key=key, pure=False)
        self._flying[number] = future
        future.add_done_callback(lambda _: self._ended.put(number))

    def wait(self, seconds: float) -> list[Ended]:
        ended = taken(self._ended, seconds)
        if not ended and any(future.status == "lost" for future in self._flying.values()):  # nobody says so
            raise self._gone()
        return [(number, self._result(self._flying.pop(number))) for number in ended if number in self._flying]

    def _result(self, future: Any) -> Done | Lost:
        distributed: Any = importlib.import_module("distributed")
        try:
            found = future.result()
        except (distributed.KilledWorker, distributed.CancelledError):
            return Lost(_LOST)
        except (ImportError, AttributeError) as error:  # what a task raises is in its result: this is of a worker that lacks something
            return Done(refused=self._without(error))
        return Lost(_LOST) if found is None else found

    def _without(self, error: ImportError | AttributeError) -> str:
        """Say which workers lack fairopt, or have another one."""
        answers = self._client.run(eval, _VERSION, on_error="return")
        names = [worker for worker, answer in answers.items() if answer != own_versions()["fairopt"]]
        where = f"the worker {names[0]}" if names else "a worker"
        return f"{where} cannot load fairopt {own_versions()['fairopt']}: {message_line(error)}; install the same version on all workers"

    def drop(self, numbers: Sequence[int]) -> None:
        futures = [future for number in numbers if (future := self._flying.pop(number, None)) is not None]
        if self._client.status == "running":
            self._client.cancel(futures)


def once(key: str, payload: bytes, batch: bytes) -> Done | None:
    """Compute a batch that no worker has begun before; None if one has, and is gone."""
    distributed: Any = importlib.import_module("distributed")
    mark = distributed.Event(f"{key}-begun")
    if mark.is_set():
        mark.clear()
        return None
    mark.set()
    try:
        tasks, seconds, versions = pickle.loads(batch)
        return work(pickle.loads(payload), tasks, seconds, versions, distributed.get_worker().address)
    finally:
        mark.clear()
