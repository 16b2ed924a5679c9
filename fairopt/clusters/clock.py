"""The times of a log: seconds from any moment, or dates.

Logs of schedulers have local times without a zone. Where clocks are put back, an hour comes twice, and a job seems to end before it
started. With the time zone, times become seconds since 1970 in UTC; a time of the hour that comes twice is the first of the two, unless
the job would start before it was submitted, or end before it started.

>>> clock = Clock.dates("Europe/Berlin")
>>> start, end = clock.seconds(["2026-10-25T02:50:00", "2026-10-25T02:10:00"])
>>> bool(end < start), clock.shown(start)
(True, '2026-10-25 02:50')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray

__all__ = ["DAY", "Clock", "length_of", "nice_step"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Clock:
    """What the seconds of a log mean.

    Attributes
    ----------
    zero : float or None
        Seconds since 1970 of time 0; None: the log counts from any moment.
    zone : str or None
        The time zone; None: local times without one.
    """

    zero: float | None = None
    zone: str | None = None

    @classmethod
    def dates(cls, zone: str | None = None) -> Clock:
        """Return the clock of a log with dates.

        Raises
        ------
        InvalidInstance
            The time zone is not known.
        """
        if zone is not None:
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise InvalidInstance(f'there is no time zone "{zone}"; give a name such as Europe/Berlin') from None
        return cls(0.0, zone)

    @property
    def local(self) -> bool:
        """Whether times are local ones, whose zone is not known."""
        return self.zero is not None and self.zone is None

    def seconds(self, texts: Any) -> FloatArray:
        """Return dates as seconds; nan for empty ones.

        Raises
        ------
        ValueError
            A text is no date.
        """
        import pandas as pd

        times = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", utc=False)
        if times.dtype == object:  # of several time zones
            times = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", utc=True)
        if times.dt.tz is not None:
            times = times.dt.tz_convert("UTC").dt.tz_localize(None)
            if self.zone is None:
                return self._plain(times)
            return self._plain(times)
        if self.zone is not None:
            first = np.ones(len(times), bool)
            times = times.dt.tz_localize(self.zone, ambiguous=first, nonexistent="shift_forward").dt.tz_convert("UTC").dt.tz_localize(None)
        return self._plain(times)

    def _plain(self, times: Any) -> FloatArray:
        values = np.array(times.to_numpy("datetime64[ns]").astype(np.int64), float) / 1e9
        return np.asarray(np.where(times.isna().to_numpy(), np.nan, values) - (self.zero or 0.0))

    def later_of_two(self, times: FloatArray, wrong: BoolArray) -> FloatArray:
        """Return times, those that are wrong an hour later where the local hour comes twice."""
        if self.zone is None or not wrong.any():
            return times
        zone, later = ZoneInfo(self.zone), times.copy()
        for n in np.flatnonzero(wrong):
            local = datetime.fromtimestamp(times[n], zone).replace(fold=1)
            later[n] = local.timestamp()
        return later

    def shown(self, time: float) -> str:
        """Return a time as people read it."""
        if self.zero is None or not np.isfinite(time):
            return f"{round(time, 3):.15g} s"
        try:
            moment = datetime.fromtimestamp(self.zero + time, ZoneInfo(self.zone) if self.zone else UTC)
        except (OverflowError, ValueError, OSError):
            return f"{time:.15g} s"
        return moment.strftime("%Y-%m-%d %H:%M:%S" if moment.second else "%Y-%m-%d %H:%M")

    def iso(self, time: float) -> str | float:
        """Return a time for programs: a date if the log has dates, else seconds."""
        if self.zero is None:
            return float(time)
        moment = datetime.fromtimestamp(self.zero + time, ZoneInfo(self.zone) if self.zone else UTC)
        return moment.isoformat() if self.zone else moment.replace(tzinfo=None).isoformat()

    def read(self, given: object, what: str) -> float:
        """Return a time that a caller gives: seconds of the log, or a date.

        Raises
        ------
        InvalidInstance
        """
        if isinstance(given, int | float | np.number) and not isinstance(given, bool):
            if np.isfinite(given):
                return float(given)
        elif isinstance(given, str) and re.fullmatch(r"-?\d+(\.\d+)?", given.strip()):
            return float(given)
        elif self.zero is not None:
            try:
                found = self.seconds([given.isoformat() if hasattr(given, "isoformat") else str(given)])
                if np.isfinite(found[0]):
                    return float(found[0])
            except (ValueError, OverflowError):
                pass
        example = "2026-11-22T15:00" if self.zero is not None else "3600 (this log has seconds, and no dates)"
        raise InvalidInstance(f'{what}: "{str(given)[:40]}" is not a time of this log, such as {example}')

    def hour_edges(self, first: float, last: float) -> tuple[FloatArray, Any]:
        """Return times at which the hour of the day changes, from the first to the last, and the hour (0 to 23) after each."""
        step = 1800.0 if self.zone else 3600.0
        zero = self.zero or 0.0
        start = np.floor((first + zero) / step) * step
        edges = np.arange(start, last + zero + step, step)
        if self.zone:
            zone = ZoneInfo(self.zone)
            hours = np.array([datetime.fromtimestamp(edge, zone).hour for edge in edges], np.int64)
        else:
            hours = (np.floor(edges / 3600.0) % 24).astype(np.int64)
        return edges - zero, hours


def length_of(text: object, what: str) -> float:
    """Return a length of time in seconds: a number of them, or with a unit s, m, h, d or w.

    >>> length_of("7d", "every"), length_of("90m", "every"), length_of(3600, "every")
    (604800.0, 5400.0, 3600.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*", str(text), re.ASCII)
    value = float(match[1]) * _UNITS[match[2] or "s"] if match and len(match[1]) < 20 else 0.0
    if not value > 0:
        raise InvalidInstance(f'{what} is "{str(text)[:40]}"; give a length such as 1h, 7d or 3600 (seconds)')
    return value


def nice_step(length: float, most: int) -> float:
    """Return a round length of time, at most ``most`` of which make up a period.

    >>> nice_step(86_400, 100), nice_step(7 * 86_400, 200)
    (900.0, 3600.0)
    """
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY, 2 * DAY, 7 * DAY):
        if length / step <= most:
            return float(step)
    return float(DAY * 7 * np.ceil(length / (7 * DAY) / most))
