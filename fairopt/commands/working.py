"""Work that Ctrl-C can end, in a thread of its own, and a bar that shows how far it is."""

from __future__ import annotations

import contextvars
import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rich.markup import escape
from rich.text import Text

from fairopt.commands.console import Console, say
from fairopt.commands.said import SAID, WRITTEN

if TYPE_CHECKING:
    from rich.status import Status

__all__ = ["NOTHING", "Bar", "work"]

T = TypeVar("T")

NOTHING = "there is no result, and no file was changed"

_LOOK = 0.1  # seconds between two checks for signals
_PATIENCE = 2.0  # seconds after which a terminal shows progress


class Bar:
    """A bar on stderr that shows how far a task is; `work` shows it if the task takes long.

    Parameters
    ----------
    what : str
        What is counted.
    total : float or None
        When it is full; None: not known yet.
    """

    def __init__(self, what: str, total: float | None = None) -> None:
        from rich.progress import Progress

        self.progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self.progress.add_task(escape(what), total=total)

    def advance(self, by: float = 1, what: str | None = None) -> None:
        """Move it on."""
        self.progress.update(self._task, advance=by, description=None if what is None else escape(what))

    def reach(self, now: float, total: float | None = None, what: str | None = None) -> None:
        """Move it to where the task is."""
        self.progress.update(self._task, completed=now, total=total, description=None if what is None else escape(what))


class _Listener(logging.Handler):
    """Prints each warning once, and shows progress on a terminal."""

    status: Status | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if (message := record.getMessage()) not in SAID:  # several solves of one instance give the same warning
                SAID.add(message)
                say("warning", message)
        elif self.status is not None:
            self.status.update(Text(record.getMessage()))


def work(what: str, task: Callable[[], T], bar: Bar | None = None, ended: threading.Event | None = None, lost: str = NOTHING) -> T:
    """Run a task in a thread of its own, so that Ctrl-C works while an engine computes, and show progress if it takes long.

    With ``bar``, it is shown, and the task advances it; otherwise ``what``, and what the engines log. With ``ended``, Ctrl-C and
    SIGTERM (by which batch systems announce that time is up) set it, and the task returns what it has. A second Ctrl-C ends it at once.
    ``lost`` says what there is after Ctrl-C without it, where no file was written.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    finished = threading.Event()  # not join(): after an interrupted join(), Python 3.11 takes a thread for ended

    def run() -> None:
        try:
            results.append(task())
        except BaseException as error:  # raised again below, in the thread that waits
            errors.append(error)
        finally:
            finished.set()

    log, listener = logging.getLogger("fairopt"), _Listener()
    level = log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    signals = _Signals(ended) if ended is not None and threading.current_thread() is threading.main_thread() else None
    try:
        threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()  # with the limits of this one
        console = Console(stderr=True)
        if not _wait(finished, signals, _PATIENCE) and console.is_terminal:
            if bar is not None:
                with bar.progress:
                    _wait(finished, signals)
            else:
                with console.status(Text(what)) as listener.status:
                    _wait(finished, signals)
        _wait(finished, signals)
        if signals is not None and signals.heard:  # also if workers received it, too, and ended the task sooner
            before = signals.interrupts
            say("interrupted", "the results so far come in a moment; press Ctrl-C again to stop at once")
            signals.told = True
            if signals.interrupts > before:  # the user read the sentence and pressed Ctrl-C before told was set
                raise KeyboardInterrupt
            finished.wait()
    except KeyboardInterrupt:
        if ended is None:
            say(
                "interrupted",
                lost if not WRITTEN else f"written so far: {', '.join(sorted(WRITTEN))}",
            )
        raise
    finally:
        if signals is not None:
            signals.restore()
        log.removeHandler(listener)
        log.setLevel(level)
    if errors:
        raise errors[0]
    return results[0]


class _Signals:
    """Records Ctrl-C and SIGTERM while a task runs that can be asked to end.

    The handlers only set flags: several signals may come at one instant, and an exception in a handler would interrupt the handler of an
    earlier signal. Once the user has been told that the task is ending, Ctrl-C ends the program.

    The task is asked to end in the handler itself: if its workers end because they receive the signal, too, it must know why.
    """

    def __init__(self, ended: threading.Event) -> None:
        self.ended = ended
        self.heard = self.told = False
        self.interrupts = 0
        heeded = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
        self.before = {number: signal.signal(number, self._hear) for number in heeded}

    def _hear(self, number: int, frame: object) -> None:
        if self.told and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.interrupts += number == signal.SIGINT
        if not self.heard:
            self.heard = True  # first: a second signal must not wait for the lock that the first one holds in set()
            self.ended.set()

    def restore(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _wait(finished: threading.Event, signals: _Signals | None, most: float = float("inf")) -> bool:
    """Wait until a task has finished, a signal was heard, or ``most`` seconds are over; return whether it has finished."""
    until = time.monotonic() + most
    while (left := until - time.monotonic()) > 0 and not (signals is not None and signals.heard):
        if finished.wait(min(left, _LOOK) if signals is not None else left if left < threading.TIMEOUT_MAX else None):
            return True
    return finished.is_set()
