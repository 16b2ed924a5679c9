"""Kernels that run as plain Python while work is small, and are compiled by numba when it is not.

Compiling takes 15 to 50 seconds the first time, and loading what was compiled takes about one. Most work is done sooner than that. So a
kernel is a module of plain functions on arrays, each marked by `step`, with those that it imports from other modules. `Steps` calls them as
they are for ``PATIENCE`` seconds, then lets numba compile them, and goes on from the same arrays. Many small pieces of work add up: from
``PATIENCE_IN_ALL`` seconds on, steps are compiled at once, and from ``PATIENCE_IF_KEPT`` seconds on if an earlier process has compiled
them. While another process compiles, as in a parallel study, plain Python goes on. Both give the same results bit for bit: the tests run
both.

Compiled functions are kept on disk beside their file. numba compiles a function anew when its own file changes, but not when a step that it
calls, or a number that it reads, changes in another file. So its name on disk has the `_version` of the whole kernel. A step is compiled
anew for arrays of another type or layout, and for arrays that are read-only: whoever calls one gives it arrays of one kind, contiguous and
writable.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.processes.surroundings import without_settings
from fairopt.wording import plural

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["PATIENCE", "PATIENCE_IF_KEPT", "PATIENCE_IN_ALL", "Steps", "compiled", "is_being_compiled", "is_kept", "load", "step"]

log = logging.getLogger(__name__)

PATIENCE = 1.0  # seconds of plain Python in one piece of work before numba compiles
PATIENCE_IN_ALL = 10.0  # seconds of plain Python in all the work of this process before numba compiles
PATIENCE_IF_KEPT = 1.0  # the same before compiled steps are loaded that an earlier process has left on disk
_COMPILING = 60.0  # seconds of plain Python for which a process waits for another one that compiles; for less work it goes on meanwhile

_compiled: dict[str, SimpleNamespace] = {}  # by the name of the kernel
_loaded: set[tuple[str, str]] = set()  # kernels and steps that this process has compiled or loaded
_spent: defaultdict[str, float] = defaultdict(float)  # seconds that plain steps of a kernel have taken
_looked: dict[tuple[str, str], float] = {}  # how many these were when a step was last looked for on disk, in vain


def step(compiled_as: Callable[..., Any] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function of a kernel as one that numba may compile, with these options of ``numba.njit``.

    ``compiled_as`` is compiled in its place: another function of the same file with the same arguments. It does not count as a step itself.
    """

    def mark(function: Any) -> Any:
        function.options, function.compiled_as = options, compiled_as or function
        return function

    return mark


def compiled(kernel: ModuleType) -> SimpleNamespace:
    """Return the steps of a kernel as numba's dispatchers. Each is compiled, or loaded from disk, when it is called first."""
    if kernel.__name__ not in _compiled:
        numba = _numba()
        njit: Any = numba.njit  # its stubs leave out options
        files = _files(kernel)
        version = _version(kernel, files)
        names = {file.__name__: dict(vars(file)) for file in files}  # what the compiled steps of each file read: each other, not plain ones

        def jitted(function: Any, name: str, inner: bool) -> Any:
            own = function.compiled_as
            copy = FunctionType(own.__code__, names[function.__module__], function.__name__, own.__defaults__)
            copy.__module__, copy.__doc__ = kernel.__name__, function.__doc__
            copy.__qualname__ = f"{name}.{'inner.' if inner else ''}{version}"
            # What is called from outside counts references: else it would keep every generator of random numbers for ever.
            options = getattr(kernel, "OPTIONS", {}) | function.options | ({} if inner else {"_nrt": True})
            # What one step calls in another needs no wrapper to be called from outside, and a wrapper takes a second to compile.
            return njit(cache=True, no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options)(copy)

        steps = {function: jitted(function, function.__name__, True) for file in files for function in _steps(file).values()}
        for file in files:
            names[file.__name__] |= {name: steps[function] for name, function in _steps(file).items()}
        _compiled[kernel.__name__] = SimpleNamespace(**{name: jitted(each, name, False) for name, each in _steps(kernel).items()})
    return _compiled[kernel.__name__]


def _steps(file: ModuleType) -> dict[str, Any]:
    """Return the steps that a module has or imports, by name."""
    return {name: value for name, value in vars(file).items() if isinstance(value, FunctionType) and hasattr(value, "options")}


def _files(kernel: ModuleType) -> list[ModuleType]:
    """Return a kernel and the modules of all steps that its steps may call."""
    files = [kernel]
    for file in files:
        files += {sys.modules[step.__module__] for step in _steps(file).values()} - set(files)
    return files


def _version(kernel: ModuleType, files: Sequence[ModuleType]) -> str:
    """Return digits that change when one of the files changes, or a number that they import."""
    told = hashlib.sha256(kernel.__name__.encode())
    for file in sorted(files, key=lambda file: file.__name__):
        numbers = sorted((name, repr(value)) for name, value in vars(file).items() if isinstance(value, int | float))
        told.update(Path(str(file.__file__)).read_bytes() + repr(numbers).encode())
    return told.hexdigest()[:12]


def _numba() -> Any:
    """Return numba, which reads no settings of the current folder: they can name a cache, and what is in a cache runs."""
    ours = "numba" not in sys.modules
    with without_settings():
        import numba
    if ours:  # numba looks again whenever it compiles
        numba.core.config._config_fname = os.devnull
    return numba


def _mark(function: Any) -> Path:
    """Return the file that says that a step is kept on disk. It has another name when the kernel changes, as what numba keeps has."""
    changed = Path(function.py_func.__code__.co_filename).stat().st_mtime_ns
    return Path(function.stats.cache_path) / f"{function.py_func.__qualname__}-{changed:x}.kept"


def is_kept(kernel: ModuleType, name: str) -> bool:
    """Has a process compiled this step since its kernel was changed?"""
    with suppress(OSError):
        return _mark(getattr(compiled(kernel), name)).exists()
    return False


def _lock(function: Any, timeout: float = -1.0) -> BaseFileLock:
    """Return the lock of a kernel's folder, which who compiles a step holds; -1: who wants it waits."""
    from filelock import FileLock

    folder = Path(function.stats.cache_path)
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{function.py_func.__module__.rpartition('.')[2]}.lock", timeout=timeout)


def is_being_compiled(kernel: ModuleType, name: str) -> bool:
    """Does another process compile a step of this kernel at the moment?"""
    from filelock import Timeout

    try:
        with _lock(getattr(compiled(kernel), name), 0.0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def load(function: Any, *arguments: Any) -> float:
    """Load a compiled function for arguments like these, or compile it, without calling it; return the seconds that took.

    Of several processes one compiles a kernel, and the others wait and load what it kept: steps share most of what they call.
    """
    from numba import typeof

    started = time.perf_counter()
    types = tuple(typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
    with ExitStack() as stack:
        with suppress(OSError):  # a folder that cannot be written to: each process compiles
            stack.enter_context(_lock(function))
        function.compile(types)
    with suppress(OSError):
        _mark(function).touch()
    return time.perf_counter() - started


class Steps:
    """The steps of one kernel for one piece of work: plain at first, compiled when plain ones have taken ``PATIENCE`` seconds.

    Attributes
    ----------
    loading : float
        Seconds that compiling, or loading from disk, has taken.
    """

    def __init__(self, kernel: ModuleType) -> None:
        self.loading = 0.0
        self._kernel = kernel
        self._begun = _spent[kernel.__name__]
        self._size = 1  # of the next piece of work for a plain step
        self._due: set[tuple[str, str]] = set()  # steps for which patience is over

    def size(self, name: str, most: int) -> int:
        """Return how much work the next call of a step shall be given: little while it is plain, ``most`` once it is compiled."""
        return most if self._is_compiled(name) else min(self._size, most)

    def run(self, name: str, *arguments: Any, seconds: float = 0.0) -> Any:
        """Call a step. If plain Python would take about ``seconds`` for it, which is more than there is patience for, it is compiled."""
        if self._is_compiled(name, seconds):
            steps = compiled(self._kernel)
            if (self._kernel.__name__, name) not in _loaded:
                log.info("compiling %s.%s; the first time takes up to a minute", self._kernel.__name__.removeprefix("fairopt."), name)
                self.loading += load(getattr(steps, name), *arguments)
                log.info("compiled within %s", plural(round(self.loading), "second"))
                _loaded.add((self._kernel.__name__, name))
            return getattr(steps, name)(*arguments)
        started = time.thread_time()  # of this processor, so that a busy machine compiles no more than an idle one
        with np.errstate(all="ignore"):  # as compiled
            result = getattr(self._kernel, name)(*arguments)
        _spent[self._kernel.__name__] += time.thread_time() - started
        self._size *= 2
        return result

    def _is_compiled(self, name: str, seconds: float = 0.0) -> bool:
        step = self._kernel.__name__, name
        spent = _spent[self._kernel.__name__] + seconds
        late = spent - self._begun >= PATIENCE or spent >= PATIENCE_IN_ALL
        if step in _loaded or step in self._due or (late and seconds >= _COMPILING):
            return True
        soonest = min(PATIENCE, PATIENCE_IF_KEPT)
        if spent < soonest or spent < _looked.get(step, 0.0) + soonest:
            return False
        if is_kept(self._kernel, name) or (late and not is_being_compiled(self._kernel, name)):
            self._due.add(step)
            return True
        _looked[step] = spent
        return False
