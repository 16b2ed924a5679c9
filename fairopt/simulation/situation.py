"""The unfinished jobs, the present users and the number of servers, from one moment of a trace to the next."""

from __future__ import annotations

import numpy as np

from fairopt.instance import IntArray
from fairopt.program.events import Change
from fairopt.simulation.streams import Streams

__all__ = ["Situation"]

_DONE = 1e-9  # a job with less than this fraction of its work left has ended: the rest is rounding


class Situation:
    """The state of a trace at one moment. Times are in seconds, work in seconds of one task.

    Attributes
    ----------
    left, started, finished : arrays (jobs,)
        Remaining work, start and end of each job; nan: not yet.
    present : bool array (users,)
        Whether the user is present.
    counts : array (rows,)
        Number of servers of each row.
    here : int array
        Unfinished jobs, sorted by stream, and in each stream by submission.
    """

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.work = streams.trace.job_work
        self.left = np.array(self.work)
        self.started, self.finished = np.full(self.work.size, np.nan), np.full(self.work.size, np.nan)
        self.present = streams.present.copy()
        self.counts = np.array(streams.cluster.counts)
        self.here = np.empty(0, np.int64)
        self.takes_part = streams.instance.servable[streams.stream]
        self._event = 0

    @property
    def coming(self) -> float:
        """Time of the next event of the trace; inf: there is none."""
        times = self.streams.times
        return float(times[self._event]) if self._event < times.size else np.inf

    @property
    def active(self) -> IntArray:
        """Unfinished jobs whose user is present."""
        return self.here[self.present[self.streams.job_owner[self.here]]]

    def advance(self, now: float) -> None:
        """End the jobs whose work is done, and apply the events of the trace up to time ``now``."""
        streams = self.streams
        over = np.isfinite(self.work[self.here]) & (self.left[self.here] <= _DONE * self.work[self.here])
        self.finished[self.here[over]] = now
        new: list[int] = []
        while self.coming <= now:
            kind, subject, amount = streams.changes[self._event], int(streams.subjects[self._event]), streams.amounts[self._event]
            if kind == Change.SUBMIT:
                if self.takes_part[subject]:
                    new.append(subject)
            elif kind in (Change.JOIN, Change.LEAVE):
                self.present[subject] = kind == Change.JOIN
            else:
                self.counts[subject] += amount if kind == Change.ADD else -amount
            self._event += 1
        jobs = np.array(new, np.int64)
        at_once = jobs[self.left[jobs] == 0]  # tasks of no duration
        self.started[at_once], self.finished[at_once] = now, now
        here = np.sort(np.concatenate([self.here[~over], jobs[self.left[jobs] > 0]]))
        self.here = here[np.argsort(streams.stream[here], kind="stable")]
