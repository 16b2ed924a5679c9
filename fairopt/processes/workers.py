"""Worker processes that end with the process that started them, and import nothing from the current folder.

loky leaves its workers alone when their parent is killed: SIGKILL cannot be caught, and each goes on with the task that it has, perhaps
for hours, and then waits for another that never comes. So every worker looks once a second whether its parent is still there.

A worker is a Python that is started by ``-m`` or ``-c``, which puts the current folder first on its path: a ``types.py`` there would run,
or break it. So all of them are started inside `safe_path`. Each then has the path of the process that started it.

A terminal sends Ctrl-C to every process. A worker that hears it while it starts, or between two tasks, dies. So a worker hears it during a
task alone: the task ends, and the process that started the worker decides what is next.

>>> with no_interrupt():  # processes that are started here do not hear Ctrl-C while they start
...     pass
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Interruptible", "end_with", "no_interrupt", "safe_path", "settle", "start_trackers"]

_PERIOD = 1.0  # seconds
_INIT = 1  # the process that inherits those whose parent is gone
_SAFE = "PYTHONSAFEPATH"
_deaf = False  # whether this process is a worker that ignores Ctrl-C between tasks
_guard = threading.Lock()
_before: list[str | None] = []  # what the variable was, for each that is inside


def start_trackers() -> None:
    """Start the processes that clean up after workers: started just before the first worker, they may undo `no_interrupt`."""
    if os.name == "posix":
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as of_joblib

        with safe_path():
            for tracker in (resource_tracker, of_joblib):
                tracker.ensure_running()


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


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Keep Ctrl-C from this thread, and from the threads and processes that it starts inside; other threads hear it."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Interruptible:
    """A function that hears Ctrl-C in a worker, which ignores Ctrl-C otherwise."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function."""
        if not _deaf or threading.current_thread() is not threading.main_thread():
            return self.function(*args, **options)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return self.function(*args, **options)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def settle(parent: int) -> None:
    """Begin a worker: it ignores Ctrl-C between tasks, and ends when its parent does."""
    global _deaf
    if os.name == "posix" and os.getpid() != parent:
        _deaf = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # as it is where a shell starts a program in the background
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that came while this process was started
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with(parent)


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
