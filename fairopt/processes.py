"""Worker processes that end with the process that started them, and import nothing from the current folder.

joblib leaves its workers alone when their parent is killed: SIGKILL cannot be caught, and each goes on with the task that it has, perhaps
for hours, and then waits for another that never comes. So every worker looks once a second whether its parent is still there.

A worker is a Python that is started by ``-m`` or ``-c``, which puts the current folder first on its path: a ``types.py`` there would run,
or break it. So all of them are started inside `safe_path`. Each then has the path of the process that started it.

>>> with workers(1) as parallel:
...     parallel([(abs, (-2,), {})])
[2]
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fairopt.registry import carried

__all__ = ["carrying", "end_with", "safe_path", "workers"]

_PERIOD = 1.0  # seconds
_INIT = 1  # the process that inherits those whose parent is gone
_SAFE = "PYTHONSAFEPATH"
_guard = threading.Lock()
_before: list[str | None] = []  # what the variable was, for each that is inside


def workers(jobs: int, **options: Any) -> Any:
    """Return joblib's ``Parallel`` with this number of jobs; where they are processes of this machine, they end with this one."""
    return carrying()(n_jobs=jobs, initializer=end_with, initargs=(os.getpid(),), **options)


@functools.cache
def carrying() -> Any:
    """Return joblib's ``Parallel``, whose functions take the registries of this process along."""
    from joblib import Parallel

    class Carrying(Parallel):  # type: ignore[misc]
        def __enter__(self) -> Any:
            with ExitStack() as stack:
                stack.enter_context(safe_path())
                entered = super().__enter__()
                self._safe = stack.pop_all()
            return entered

        def __exit__(self, *raised: Any) -> Any:
            with self._safe:
                return super().__exit__(*raised)

        def __call__(self, calls: Iterable[tuple[Any, ...]]) -> Any:
            with safe_path():
                return super().__call__((carried(function), *rest) for function, *rest in calls)

    return Carrying


@contextmanager
def safe_path() -> Iterator[None]:
    """Have every Python that is started inside import nothing from the current folder, unless the path that it is given has it.

    >>> with safe_path():
    ...     os.environ["PYTHONSAFEPATH"]
    '1'
    """
    with _guard:  # several threads may be inside: the last one to leave restores what was there before the first
        _before.append(os.environ.get(_SAFE))
        os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        with _guard:
            last = _before.pop()
            if not _before:
                os.environ.pop(_SAFE, None)
                os.environ.update({} if last is None else {_SAFE: last})


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
