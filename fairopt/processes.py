"""Worker processes that end with the process that started them.

joblib leaves its workers alone when their parent is killed: SIGKILL cannot be caught, and each goes on with the task that it has, perhaps
for hours, and then waits for another that never comes. So every worker looks once a second whether its parent is still there.

>>> with workers(1) as parallel:
...     parallel([(abs, (-2,), {})])
[2]
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterable
from typing import Any

from fairopt.registry import carried

__all__ = ["carrying", "end_with", "workers"]

_PERIOD = 1.0  # seconds
_INIT = 1  # the process that inherits those whose parent is gone


def workers(jobs: int, **options: Any) -> Any:
    """Return joblib's ``Parallel`` with this number of jobs; where they are processes of this machine, they end with this one."""
    return carrying()(n_jobs=jobs, initializer=end_with, initargs=(os.getpid(),), **options)


@functools.cache
def carrying() -> Any:
    """Return joblib's ``Parallel``, whose functions take the registries of this process along."""
    from joblib import Parallel

    class Carrying(Parallel):  # type: ignore[misc]
        def __call__(self, calls: Iterable[tuple[Any, ...]]) -> Any:
            return super().__call__((carried(function), *rest) for function, *rest in calls)

    return Carrying


def end_with(parent: int) -> None:
    """Have this process end, whatever it is doing, when its parent does; nothing is done in a process of another parent."""
    if os.name != "posix" or os.getpid() == parent:
        return
    above = os.getppid()
    if above == parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    elif above == _INIT:  # the parent is gone already
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PERIOD)
    os._exit(1)  # without a word: nobody is there to read it, and a task in native code cannot be asked to stop
