"""The workers of a Ray cluster: one Ray task for each batch, and `ray.wait`.

Ray ends every program whose head is gone for a minute, without an exception. So this looks whether the head is there, and stops before.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairopt.errors import NoSolution, Unsupported
from fairopt.processes.batches import Done, Lost, Payload, own_versions, work
from fairopt.processes.pools import BATCH, Ended
from fairopt.processes.workers import safe_path
from fairopt.wording import message_line

__all__ = ["cluster_of_ray"]

_LOOK = 2.0  # seconds between two looks at how many cores there are
_EACH = 2  # batches for each core: one that is computed, one that waits
_HEAD = 30.0  # seconds that a head may be gone, as one is that starts again: half of what Ray waits
_WORKER = re.compile(r"\(pid=(\d+), ip=([^)]+)\)")  # in Ray's message of an error
_CONNECT = 10.0  # seconds in which something must answer at an address
_ANSWER = 2.0  # seconds in which a head must answer


@contextlib.contextmanager
def cluster_of_ray(workers: int, address: str | None) -> Iterator[_Ray]:
    """Connect to a cluster, or start one on this machine; one that the program is connected to is taken as it is.

    Without an address, the environment variable RAY_ADDRESS names the cluster. Without both, Ray by itself would join any cluster that runs
    on this machine, also somebody else's; so a new one is asked for.

    Raises
    ------
    Unsupported
        No cluster answers at the address.
    """
    ray: Any = importlib.import_module("ray")
    with safe_path(), contextlib.ExitStack() as stack:
        if not ray.is_initialized():
            try:
                address = address or os.environ.get("RAY_ADDRESS")
                cores = None if workers == -1 or address else workers
                quiet = {"log_to_driver": False, "logging_level": "error"}
                _look_at(address)
                ray.init(address=address or "local", num_cpus=cores, job_config=_job(ray), **quiet)
            except (OSError, ValueError) as error:  # includes ConnectionError
                why = message_line(error)
                raise Unsupported(
                    f"no Ray cluster answers at {address}: {why}; start one with: ray start --head (where it was started with a token, "
                    "set RAY_AUTH_MODE=token here)"
                ) from error
            stack.callback(ray.shutdown)
        yield _Ray(ray, None if workers == -1 else workers)


def _look_at(address: str | None) -> None:
    """Raise OSError where nothing is at an address of host and port: Ray would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()


def _head(ray: Any) -> tuple[str, int] | None:
    """Return where the head of the cluster answers; None where a server between it and this program (ray://) hides it."""
    if ray.util.client.ray.is_connected():
        return None
    host, _, port = str(ray.get_runtime_context().gcs_address).rpartition(":")
    return host.strip("[]"), int(port)


class _Ray:
    seconds = BATCH
    isolates = True  # a task has a process of its own

    def __init__(self, ray: Any, most: int | None) -> None:
        self._ray, self._most = ray, most
        self._work = ray.remote(num_cpus=1, max_retries=0)(work)
        self._flying: dict[Any, int] = {}
        self._looked = -float("inf")
        self._cores = 0
        self._head = _head(ray)
        self._answered = time.monotonic()  # when the head did last

    def slots(self) -> int:
        number = self._cores_now()
        return max(number if self._most is None else min(number, self._most), 1) * _EACH

    def missing(self) -> str:
        self._looked = -float("inf")
        return "" if self._cores_now() else "the Ray cluster has 0 workers (no cores)"

    def _cores_now(self) -> int:
        if time.monotonic() - self._looked > _LOOK:
            cores = self._cores_of_cluster()
            if cores is not None:
                self._answered, self._cores = time.monotonic(), cores
            elif time.monotonic() - self._answered > _HEAD:
                raise self._gone()
            self._looked = time.monotonic()
        return self._cores

    def _cores_of_cluster(self) -> int | None:
        """Return how many cores the cluster has; None while its head does not answer."""
        if self._head is not None and not self._answers(self._head):
            return None
        try:
            return int(self._ray.cluster_resources().get("CPU", 0))
        except self._ray.exceptions.RayError:  # the head was lost between the two questions
            return None

    def _answers(self, head: tuple[str, int]) -> bool:
        try:
            socket.create_connection(head, timeout=_ANSWER).close()
        except OSError:
            return False
        return True

    def _gone(self) -> NoSolution:
        return NoSolution(
            "the head of the Ray cluster is lost" if self._head is None else "the Ray head at {}:{} is lost".format(*self._head)
        )

    def share(self, function: Callable[[Any], Any]) -> Any:
        return self._ray.put(Payload(function))

    def submit(self, number: int, function: Any, tasks: Sequence[Any]) -> None:
        self._flying[self._work.remote(function, list(tasks), self.seconds, own_versions())] = number

    def wait(self, seconds: float) -> list[Ended]:
        flying = list(self._flying)
        ready, _ = self._ray.wait(flying, num_returns=1, timeout=seconds)
        if ready and len(flying) > 1:
            ready, _ = self._ray.wait(flying, num_returns=len(flying), timeout=0)
        return [(self._flying.pop(reference), self._result(reference)) for reference in ready]

    def _result(self, reference: Any) -> Done | Lost:
        wrong = self._ray.exceptions
        try:
            done: Done = self._ray.get(reference)
        except wrong.RayTaskError as error:  # what a task raises is in its result: this is of a worker that lacks something
            versions, why = own_versions()["fairopt"], str(error).strip().rpartition("\n")[2]
            found = _WORKER.search(str(error))
            worker = f"the worker {found[2]}, process {found[1]}," if found else "a worker"
            return Done(refused=f"{worker} cannot load fairopt {versions}: {why}; install the same version on all workers")
        except wrong.RayError as error:  # its process, its node, or the memory of the node
            return Lost(f"{type(error).__name__}: {message_line(error).partition('. ')[0]}")
        return done

    def drop(self, numbers: Sequence[int]) -> None:
        if self._head is not None and not self._answers(self._head):  # Ray would wait for it
            self._flying.clear()
        dropped = set(numbers)
        for reference in [each for each, number in self._flying.items() if number in dropped]:
            del self._flying[reference]
            self._ray.cancel(reference, force=True)


def _job(ray: Any) -> Any:
    """Return settings with which Ray's workers have the folder of the script, or the current folder, on their path if this process has.

    By itself, Ray always puts the current folder first, except where a job has a working folder of its own.
    """

    class Job(ray.job_config.JobConfig):  # type: ignore[misc]
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    job, path = Job(), [os.path.abspath(folder) for folder in sys.path]
    script = os.path.dirname(os.path.realpath(sys.argv[0]))
    job._py_driver_sys_path = [folder for folder in (script, os.getcwd()) if folder in path]
    return job
