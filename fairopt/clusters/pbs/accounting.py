"""Accounting records of PBS as runs: when each job was there, waited, and ran.

A file of ``server_priv/accounting`` has a line for each event, ``MM/DD/YYYY HH:MM:SS;TYPE;JOB;KEY=VALUE ...``, whose times inside are
seconds since 1970:

======  =======================================================================================================
type    what it says here
======  =======================================================================================================
Q       the job enters a queue, and waits
S, s    it starts; it goes on with fewer vnodes
E       it ends: its owner, times, chunks and vnodes
R       it is requeued: the run ends, and it waits again
u       it gives vnodes back: the run ends, and goes on with the next line
z, r    it is suspended, and gives back what it holds; it is resumed
D, A    it is deleted or aborted: if it waits, it leaves
======  =======================================================================================================

All other types (of licences, reservations, the server, checkpoints) say nothing here. A job that runs when the log ends has no end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from sys import intern

import numpy as np

from fairopt.clusters.clock import DAY, Clock
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.tables.mistakes import Mistakes

__all__ = ["Run", "is_accounting", "read_runs"]

_LINE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)(?:\.\d+)?;([A-Za-z]);([^;]*);(.*)", re.ASCII)
_PAIR = re.compile(r'([^\s=]+)=("[^"]*"|\S*)')
_SECONDS = re.compile(r"\d{1,11}(\.\d+)?", re.ASCII)
_INSIDE = {"S": "start", "E": "end", "R": "end", "Q": "qtime"}  # the time of an event that its record has inside
_UNUSED = (
    "resources_used.",
    "resource_assigned.",
    "jobname",
    "session",
    "Exit_status",
    "run_count",
    "eligible_time",
    "Resource_List.walltime",
)
_QUARTER = 900.0  # seconds: offsets of time zones are multiples of it


@dataclass(frozen=True, slots=True)
class Run:
    """One stay of a job: it waits from ``submit`` to ``start``, and holds what it has from ``start`` to ``end``.

    Attributes
    ----------
    job : str
    fields : dict
        What the record says of it.
    submit, ready, start, end : float
        Seconds since 1970; nan: not known, never started, not ended. It could start from ``ready`` on.
    path, line : Path, int
    lost : bool
        Whether it ran, and no record says since when.
    """

    job: str
    fields: dict[str, str]
    submit: float
    ready: float
    start: float
    end: float
    path: Path
    line: int
    lost: bool = False

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}, line {self.line}"


@dataclass(slots=True)
class _Event:
    time: float
    kind: str
    job: str
    fields: dict[str, str]
    path: Path
    line: int

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}, line {self.line}"

    def seconds(self, key: str) -> float:
        """Return a time of the record; nan if it has none."""
        text = self.fields.get(key, "")
        return float(text) if _SECONDS.fullmatch(text) else math.nan


@dataclass(slots=True)
class _Stay:
    """What is known of a job while its records are read: since when it waits, runs, and is suspended; its last records."""

    waits: float = np.nan
    queued: _Event | None = None
    runs: _Event | None = None
    started: float = np.nan
    suspended: float = np.nan
    whole: bool = True  # whether the run that goes on began with its start, and not with a resumption or fewer vnodes

    def enters(self, event: _Event) -> Iterator[Run]:
        """Begin to wait; a job that is moved to another queue waits on."""
        self.queued = event
        if np.isnan(self.waits):
            time = event.seconds("qtime")
            self.waits = event.time if np.isnan(time) else time
        yield from ()

    def starts(self, event: _Event) -> Iterator[Run]:
        """Begin to run."""
        time = event.seconds("start")
        self.runs, self.suspended, self.whole = event, np.nan, True
        self.started = event.time if np.isnan(time) else time
        yield from ()

    def goes_on(self, event: _Event) -> Iterator[Run]:
        """Run with fewer vnodes, from now on."""
        self.runs, self.started, self.waits, self.whole = event, event.time, event.time, False
        yield from ()

    def is_suspended(self, event: _Event) -> Iterator[Run]:
        """Give back what it holds."""
        if self.runs is not None and np.isnan(self.suspended):
            yield self._run(self.runs, self.started, event.time)
            self.suspended = self.waits = event.time

    def is_resumed(self, event: _Event) -> Iterator[Run]:
        """Hold it again."""
        if self.runs is not None and not np.isnan(self.suspended):
            self.started, self.suspended, self.whole = event.time, np.nan, False
        yield from ()

    def gives_back(self, event: _Event) -> Iterator[Run]:
        """End a run that goes on with fewer vnodes."""
        if self.runs is not None:
            yield self._run(self.runs, self.started, event.time)
            self.runs = None

    def ends(self, event: _Event) -> Iterator[Run]:
        """End the run, and be gone."""
        time = event.seconds("end")
        end = event.time if np.isnan(time) else time
        if not np.isnan(self.suspended):
            yield self._run(event, np.nan, end)
        else:
            stated = event.seconds("start")
            start = stated if self.whole and not np.isnan(stated) else self.started
            last = self.runs if self.runs is not None and not self.whole else event
            here = event if last is event else replace(last, fields=event.fields | last.fields, path=event.path, line=event.line)
            run = self._run(here, start, end)
            yield replace(run, lost=True) if np.isnan(start) else run
        self.waits = self.started = self.suspended = np.nan
        self.runs, self.queued, self.whole = None, None, True

    def is_requeued(self, event: _Event) -> Iterator[Run]:
        """End the run, and wait again."""
        yield from self.ends(event)
        time = event.seconds("end")
        self.queued, self.waits = event, event.time if np.isnan(time) else time

    def leaves(self, event: _Event) -> Iterator[Run]:
        """Wait no longer; what runs has a record of its end."""
        if self.runs is None and self.queued is not None:
            yield self._run(self.queued, np.nan, event.time)
            self.queued, self.waits = None, np.nan

    def left(self) -> Iterator[Run]:
        """Yield what it does when the log ends."""
        if self.runs is not None:
            yield self._run(self.runs, self.started if np.isnan(self.suspended) else np.nan, np.nan)
        elif self.queued is not None:
            yield self._run(self.queued, np.nan, np.nan)

    def _run(self, event: _Event, start: float, end: float) -> Run:
        fields = {} if self.queued is None else self.queued.fields
        queued, ready = event.seconds("qtime"), event.seconds("etime")
        submit = float(np.fmax(queued, self.waits))
        return Run(event.job, fields | event.fields, submit, ready, start, end, event.path, event.line)


_NEXT = {
    "Q": _Stay.enters,
    "S": _Stay.starts,
    "s": _Stay.goes_on,
    "E": _Stay.ends,
    "R": _Stay.is_requeued,
    "u": _Stay.gives_back,
    "z": _Stay.is_suspended,
    "r": _Stay.is_resumed,
    "D": _Stay.leaves,
    "A": _Stay.leaves,
}


def is_accounting(line: str) -> bool:
    """Return whether a line is a record.

    >>> is_accounting("11/12/2018 13:50:10;Q;0.head;queue=workq")
    True
    """
    return _LINE.match(line) is not None


def read_runs(paths: Sequence[Path], *, timezone: str | None = None, lenient: bool = False) -> tuple[list[Run], int]:
    """Return the runs of the jobs in these files, and the number of lines that are no records and are left out.

    Parameters
    ----------
    timezone : str, optional
        That of the times of events; default: what the times inside of records show.

    Raises
    ------
    InvalidInstance
        With the files and lines: what is wrong; with ``lenient``, such lines are left out.
    """
    mistakes, bad = Mistakes(), 0
    files: list[list[_Event]] = []
    for path in paths:
        found: list[_Event] = []
        for number, line in enumerate(read_text(path).splitlines(), 1):
            event = _event(line, path, number) if line.strip() else None
            if isinstance(event, str):
                bad += 1
                mistakes.add(f"{path}, line {number}: {event}")
            elif event is not None:
                found.append(event)
        files += [found] if found else []
    if not lenient:
        mistakes.refuse(closing="lenient=True or --lenient leaves such lines out")
    if not files:
        raise InvalidInstance(f"{paths[0]}: there is no record of a job in this log")
    files.sort(key=lambda file: file[0].time, reverse=True)
    clock, offset = Clock.dates(timezone), math.nan
    stays: dict[str, _Stay] = {}
    runs: list[Run] = []
    while files:  # a file is forgotten when it has been read
        file = files.pop()
        times, offset = _since_1970(file, clock, offset)
        for event, time in zip(file, times, strict=True):
            stay = stays.setdefault(event.job, _Stay())
            event.time = time
            runs += _NEXT[event.kind](stay, event)
            if stay.runs is None and stay.queued is None:
                del stays[event.job]
    return runs + [run for stay in stays.values() for run in stay.left()], bad


def _since_1970(events: list[_Event], clock: Clock, offset: float) -> tuple[list[float], float]:
    """Return the times of events as seconds since 1970 instead of local ones, and how much later clocks showed at the last of them.

    ``offset`` is that of the file before; nan: there is none.
    """
    if clock.zone is not None:
        return clock.seconds([datetime.fromtimestamp(event.time, UTC).replace(tzinfo=None) for event in events]).tolist(), offset
    shown = [_offset(event) for event in events]
    if math.isnan(offset):
        offset = next((each for each in shown if not math.isnan(each)), 0.0)
    times = []
    for event, each in zip(events, shown, strict=True):
        if event.kind != "Q" and not math.isnan(each):  # a job may have been queued before on another server
            offset = each
        times.append(event.time - offset)
    return times, offset


def _offset(event: _Event) -> float:
    """Return how much later the clock shows than the time inside of a record, as offsets of time zones are; nan if nothing says it."""
    later = event.time - event.seconds(_INSIDE.get(event.kind, ""))
    return _QUARTER * round(later / _QUARTER) if abs(later) < DAY else math.nan


def _event(line: str, path: Path, number: int) -> _Event | str | None:
    """Return the event of a line; None if it is of another type; what is wrong with it."""
    match = _LINE.match(line)
    if match is None:
        return "this is no record such as 11/12/2018 13:50:10;E;7.head;user=ann ..."
    kind, job, text = match.groups()[6:]
    if kind not in _NEXT or "[]" in job:  # an array has records of its own beside those of its subjobs
        return None
    try:
        month, day, year, hour, minute, second = map(int, match.groups()[:6])
        time = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return f'"{line[:19]}" is not a time'
    fields = {intern(key): value.strip('"') for key, value in _PAIR.findall(text) if not key.startswith(_UNUSED)}
    return _Event(time, kind, job, fields, path, number)
