"""What a worker does: several tasks one after the other, for about a second, so that sending costs little beside computing.

A *payload* is a function that travels once, with what the registries of its process hold; the batches that follow hold tasks only. The
versions of the process that asks travel with every batch: a worker whose own differ refuses it, so that no result of another version is
ever mixed in.

>>> done = work(abs, [-3, 2], seconds=10.0, versions=own_versions())
>>> done.results, done.raised, done.refused
([3, 2], None, '')
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairopt.processes.workers import Interruptible
from fairopt.registry import carried

__all__ = ["Done", "Lost", "Payload", "own_versions", "work"]

_CHECKED = "highspy"  # the package whose version changes answers most
_UNKNOWN = "an unknown version"


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker made of a batch.

    Attributes
    ----------
    results : list
        Of the first tasks of the batch; the others are to be done by somebody else.
    seconds : float
    worker : str
        Which worker it was.
    raised : Exception, optional
        What the task after those of ``results`` raised.
    interrupted : bool
        Ctrl-C reached the worker.
    refused : str
        Why the worker must not compute any of these tasks; empty if it may.
    """

    results: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    worker: str = ""
    raised: Exception | None = None
    interrupted: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A batch whose worker ended before it was done, and how it ended."""

    why: str


class Payload:
    """A function for other processes, as bytes, or in a file where bytes would be sent many times."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        from joblib.externals.loky.backend.reduction import dumps

        self.content: bytes | None = bytes(dumps(Interruptible(carried(function))))
        self.digest = hashlib.sha256(self.content).hexdigest()
        self.file: Path | None = None

    def keep_in(self, folder: Path) -> None:
        """Move the bytes to a file, for workers of this machine."""
        assert self.content is not None
        self.file = folder / self.digest
        self.file.write_bytes(self.content)
        self.content = None

    def function(self) -> Callable[[Any], Any]:
        """Return the function; the last few are remembered."""
        if self.digest not in _LOADED:
            content = self.content if self.file is None else self.file.read_bytes()
            assert content is not None
            while len(_LOADED) >= _REMEMBERED:
                _LOADED.pop(next(iter(_LOADED)))
            _LOADED[self.digest] = pickle.loads(content)
        return _LOADED[self.digest]


_LOADED: dict[str, Callable[[Any], Any]] = {}
_REMEMBERED = 4  # functions


def own_versions() -> dict[str, str]:
    """Return the versions of this process that its answers depend on."""
    return {"fairopt": sys.modules["fairopt"].__version__, _CHECKED: _version(_CHECKED)}


@functools.cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return _UNKNOWN


def work(
    what: Payload | Callable[[Any], Any], tasks: Sequence[Any], seconds: float, versions: Mapping[str, str], worker: str | None = None
) -> Done:
    """Do tasks in their order until the time is over; at least the first is done.

    Parameters
    ----------
    what : Payload or function
    tasks : sequence
        What the function is called with, one by one.
    seconds : float
        After this time no further task is begun.
    versions : mapping
        `own_versions` of the process that asks.
    worker : str, optional
        The name of this worker. Default: its machine and its process.
    """
    name = f"{socket.gethostname()}, process {os.getpid()}" if worker is None else worker
    began = time.perf_counter()
    results: list[Any] = []

    def done(**more: Any) -> Done:
        return Done(results, time.perf_counter() - began, name, **more)

    if refused := _other_version(name, versions):
        return done(refused=refused)
    try:
        function = what.function() if isinstance(what, Payload) else what
    except Exception as error:  # whatever the import of something that this worker lacks raises
        python = sys.version.split()[0]
        return done(refused=f"the worker {name} (Python {python}) cannot load what it has to compute: {type(error).__name__}: {error}")
    try:
        for task in tasks:
            results.append(function(task))
            if time.perf_counter() - began >= seconds:
                break
    except KeyboardInterrupt:
        return done(interrupted=True)
    except Exception as error:
        return done(raised=_portable(error) if isinstance(what, Payload) else error)
    return done()


def _other_version(name: str, versions: Mapping[str, str]) -> str:
    """Return what to say of a worker whose versions differ from those of the process that asks."""
    own = own_versions()
    package = next((each for each, version in versions.items() if own.get(each) != version), None)
    if package is None:
        return ""
    return (
        f"the worker {name} has {package} {own.get(package, _UNKNOWN)}, and the process that asks has {versions[package]}; "
        "install the same version on all workers"
    )


def _portable(error: Exception) -> Exception:
    """Return an exception that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception of somebody's own may raise anything here
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
