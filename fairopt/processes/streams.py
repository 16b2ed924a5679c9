"""Keep what libraries print off the stdout and stderr of a command.

Native code prints on file descriptor 1, whatever ``sys.stdout`` is. HiGHS, for example, prints a banner when its first object is made,
before any option can be set. There are two measures:

* `claim_stdout` is for a command, which owns its process. ``sys.stdout`` moves to a descriptor of its own, and descriptor 1 leads nowhere
  from then on, in this process and in those that it starts. A file named ``/dev/stdout`` still means the stdout of the command.
* `unheard` is for one call that is known to print, in a process that is not ours. Descriptor 1 and ``sys.stdout`` lead nowhere during the
  call; what other threads print at that moment is lost, so the call should be short. `on_stderr` is the same for what a user has asked to
  be printed: the log of a solver.

`quiet_libraries` keeps Python's warnings and the log messages of libraries off the stderr of a command. Its descriptor stays as it is:
there a process says why it crashed. `unwarned` is for calls whose warnings mean nothing, in any program and in several threads.

>>> with unheard():
...     _ = os.write(1, b"a banner")
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

__all__ = ["claim_stdout", "is_stream", "on_stderr", "quiet_libraries", "unheard", "unwarned", "write_device"]

_STDOUT, _STDERR = 1, 2  # their descriptors
_OPEN = re.compile(rf"/dev/(stdout|stderr|fd/\d+)|/proc/(self|thread-self|{os.getpid()})(/task/\d+)?/fd/\d+")  # what this process has open
_LINKS = 40  # that are followed
_REDIRECTING = threading.Lock()  # two threads at once would each restore what the other has set
_IGNORING = threading.Lock()
_IGNORED: list[warnings.catch_warnings[None]] = []  # one for each call that is inside `unwarned`


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Lead descriptor 1 and ``sys.stdout`` nowhere during a call. Where the descriptor is closed, nothing is heard there anyway."""
    with _led(io.StringIO(), _lead_nowhere):
        yield


@contextlib.contextmanager
def on_stderr() -> Iterator[None]:
    """Lead descriptor 1 and ``sys.stdout`` to stderr during a call: what a library prints because its user has asked for it."""
    with _led(sys.stderr, _lead_to_stderr):
        yield


@contextlib.contextmanager
def _led(stream: TextIO, lead: Callable[[], None]) -> Iterator[None]:
    with _REDIRECTING, contextlib.redirect_stdout(stream):
        _flush(sys.__stdout__)
        try:
            kept = os.dup(_STDOUT)
        except OSError:
            yield
            return
        try:
            lead()
            yield
        finally:
            os.dup2(kept, _STDOUT)
            os.close(kept)


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Show no warnings during a call, nor those of other threads meanwhile.

    The filters of warnings belong to the process. So the last thread to leave restores what was there before the first; with
    ``warnings.catch_warnings`` alone, a thread that leaves late would restore what another thread had set, for ever.
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # they belong to the thread
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    with _IGNORING:
        _IGNORED.append(warnings.catch_warnings())
        if len(_IGNORED) == 1:
            _IGNORED[0].__enter__()
            warnings.simplefilter("ignore")
    try:
        yield
    finally:
        with _IGNORING:
            last = _IGNORED.pop()
            if not _IGNORED:
                last.__exit__(None, None, None)


def claim_stdout() -> None:
    """Let ``sys.stdout`` alone write to the stdout of this process. It stays so until the process ends.

    Where ``sys.stdout`` is no longer the stream of descriptor 1, because a caller has replaced it, nothing is done.
    """
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper) or stream is not sys.__stdout__ or stream.fileno() != _STDOUT:
        return
    _flush(stream)
    own = open(os.dup(_STDOUT), "w", encoding=stream.encoding, errors=stream.errors)  # noqa: SIM115 - open until the process ends
    own.reconfigure(line_buffering=stream.line_buffering or stream.write_through)
    _lead_nowhere()
    sys.stdout = sys.__stdout__ = own  # type: ignore[misc]


def quiet_libraries(own: str) -> None:
    """Show no warnings, except those of modules whose names match ``own``, and no log messages but fairopt's, unless ``-W`` asks for them.

    Processes that this one starts show no warnings at all.
    """
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=f"(?!(?:{own})$)")
        os.environ["PYTHONWARNINGS"] = "ignore"
    if logging.lastResort is not None:  # prints what no handler takes
        logging.lastResort.addFilter(lambda record: record.name.partition(".")[0] == "fairopt")


def is_stream(path: Path) -> bool:
    """Return whether this is a name of something that this process has open, or a link to one: ``/dev/stdout``, ``/dev/fd/3``.

    >>> is_stream(Path("/dev/stderr")), is_stream(Path("/dev/shm/stderr"))
    (True, False)
    """
    return _open_name(path) != ""


def _open_name(path: Path) -> str:
    """Return the name of what is open, "" if this is none; links are followed one by one, because the last one leads to the file itself."""
    text = os.path.abspath(path)
    for _ in range(_LINKS):
        if _OPEN.fullmatch(text):
            return text
        if not os.path.islink(text):
            return ""
        text = os.path.abspath(os.path.join(os.path.dirname(text), os.readlink(text)))
    return ""


def write_device(path: Path, data: bytes) -> None:
    """Write to a pipe or a device; the names of stdout mean the stream that `claim_stdout` has kept."""
    if _open_name(path).endswith(("/stdout", "/fd/1")) and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        path.write_bytes(data)


def _lead_to_stderr() -> None:
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # it is closed
        _lead_nowhere()


def _lead_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    if nowhere != _STDOUT:
        os.close(nowhere)


def _flush(stream: object) -> None:
    """Write out what has been printed before: it belongs to stdout."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it is closed
            stream.flush()
