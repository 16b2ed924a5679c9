"""Apply one function to many tasks on workers: processes, threads, or a cluster of Dask or Ray.

Results arrive in the order in which they are finished. Only the calling process writes them, so a task that another worker repeats, because
its first worker was lost, is not counted twice.

>>> sorted(run(abs, [-3, 2, -1], workers=2, backend="threading"))
[1, 2, 3]
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from fairopt.errors import FairoptError, NoSolution, SolverUnavailable, Unsupported
from fairopt.processes.workers import carrying, no_interrupt, safe_path, start_trackers
from fairopt.processes.workers import workers as processes
from fairopt.validation import check_number_of_workers
from fairopt.wording import did_you_mean, installing

__all__ = ["BACKENDS", "check_workers", "run"]

T = TypeVar("T")
R = TypeVar("R")

BACKENDS = ("loky", "threading", "dask", "ray")
_CLUSTERS = ("dask", "ray")
_BLOCK = 4  # tasks for each Ray worker at a time: Ray's pool returns results only when a whole block is finished
_PATIENCE = 30  # seconds to wait for the answer of a cluster


def check_workers(workers: Any, backend: Any, address: Any) -> None:
    """Refuse an unknown backend, an invalid number of workers, and an address that the backend does not use."""
    if backend not in BACKENDS:
        hint = did_you_mean(backend, BACKENDS) if isinstance(backend, str) else ""
        raise Unsupported(f'there is no backend "{backend}"{hint}; there are {", ".join(BACKENDS)}')
    check_number_of_workers(workers)
    if address is not None and backend not in _CLUSTERS:
        raise Unsupported(f'the backend "{backend}" has no address; give backend="dask" or "ray" with it')


def run(
    function: Callable[[T], R], tasks: Sequence[T], *, workers: int = -1, backend: str = "loky", address: str | None = None
) -> Generator[R, None, None]:
    """Yield function(task) for every task, in the order in which the results are finished.

    Raises
    ------
    SolverUnavailable
        The package of the backend is not installed.
    Unsupported
        No cluster answers at the address.
    NoSolution
        All workers are lost. (If a cluster loses one worker, the others take its tasks.)
    """
    from joblib import delayed, effective_n_jobs

    if not tasks:
        return
    # joblib warns about unfinished tasks after Ctrl-C, or if the caller stops early. The caller knows this already.
    warnings.filterwarnings("ignore", r".*You could benefit from adjusting the input task iterator", UserWarning, r"joblib\.")
    with safe_path(), _connected(backend, workers, address):
        step = _BLOCK * effective_n_jobs(workers) if backend == "ray" else len(tasks)
        how = "list" if backend == "ray" else "generator_unordered"
        for first in range(0, len(tasks), step):
            # A batch of one: a finished result is returned at once, and an unfinished task cannot lose it.
            parallel = (processes if backend == "loky" else carrying())(workers, batch_size=1, return_as=how)
            results = parallel(delayed(function)(task) for task in tasks[first : first + step])
            try:
                yield from results
            except FairoptError:
                raise
            except Exception as error:  # raised by joblib or the backend
                raise NoSolution(
                    f"the workers ({backend}) ended before all tasks were done: {type(error).__name__}: {_first_line(error)}; one may have "
                    "been killed for lack of memory: use fewer workers"
                ) from error
            finally:
                if hasattr(results, "close"):
                    results.close()


@contextlib.contextmanager
def _connected(backend: str, workers: int, address: str | None) -> Iterator[None]:
    """Connect joblib to the backend, for the duration of a context."""
    from joblib import parallel_config

    if backend == "dask":
        distributed = _package("distributed", backend)
        options: dict[str, Any] = {"address": address, "timeout": _PATIENCE}
        if address is None:  # start a cluster on this machine
            options = {"n_workers": None if workers == -1 else workers, "threads_per_worker": 1, "dashboard_address": None}
        with contextlib.ExitStack() as stack:
            try:
                start_trackers()
                with no_interrupt():  # a worker that hears Ctrl-C ends, and the study waits for its results for ever
                    stack.enter_context(distributed.Client(**options))
            except (OSError, ValueError) as error:
                raise Unsupported(
                    f"no Dask scheduler answers at {address}: {_first_line(error)}; start one with: dask scheduler, and workers with: "
                    "dask worker ADDRESS"
                ) from error
            stack.enter_context(parallel_config(backend="dask"))
            yield
    elif backend == "ray":
        ray = _package("ray", backend)
        _package("ray.util.joblib", backend).register_ray()
        with contextlib.ExitStack() as stack:
            if not ray.is_initialized():
                try:
                    cores = None if workers == -1 or address else workers
                    quiet = {"log_to_driver": False, "logging_level": "error"}
                    ray.init(address=address, num_cpus=cores, job_config=_job(ray), **quiet)
                except (OSError, ValueError) as error:  # includes ConnectionError
                    why = _first_line(error)
                    raise Unsupported(f"no Ray cluster answers at {address}: {why}; start one with: ray start --head") from error
                stack.callback(ray.shutdown)
            stack.enter_context(parallel_config(backend="ray"))
            yield
    else:
        with parallel_config(backend=backend):
            yield


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


def _package(name: str, backend: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise SolverUnavailable(
            f'the backend "{backend}" needs a package that is not installed; install it with: {installing(backend)}'
        ) from None


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
