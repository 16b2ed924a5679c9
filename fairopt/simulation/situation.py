"""Which jobs are unfinished, who is there and how many servers there are, from one moment of a trace to the next."""

from __future__ import annotations

import numpy as np

from fairopt.instance import IntArray
from fairopt.program.events import Change
from fairopt.simulation.streams import Streams

__all__ = ["Situation"]

_DONE = 1e-9  # part of a job's work that is rounding


class Situation:
    """A moment. Times are in seconds, work in seconds of a task.

    Attributes
    ----------
    left, started, finished : arrays (jobs,)
        Work that is left; when a job was started and ended, nan: not yet.
    present : bool array (users,)
    counts : array (rows,)
        Servers of each row.
    here : int array
        Unfinished jobs, stream by stream, each stream's in the order of their submission.
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
        """When the trace goes on; inf: nothing is to come."""
        times = self.streams.times
        return float(times[self._event]) if self._event < times.size else np.inf

    @property
    def active(self) -> IntArray:
        """Unfinished jobs whose user is there."""
        return self.here[self.present[self.streams.job_owner[self.here]]]

    def advance(self, now: float) -> None:
        """End the jobs whose work is done, and let happen what the trace has at this time."""
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
