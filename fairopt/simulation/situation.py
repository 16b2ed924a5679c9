"""The unfinished jobs, the present users and the number of servers, from one moment of a trace to the next."""

from __future__ import annotations

import numpy as np

from fairopt.instance import IntArray
from fairopt.instance.tolerances import NOTHING
from fairopt.program.events import Change
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

__all__ = ["Situation"]


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
        self._order = streams.stream * self.work.size + np.arange(self.work.size)  # by stream, then by submission
        self._rounding = np.where(np.isfinite(self.work), NOTHING * self.work, -1.0)  # of the work left; work without end never ends
        self._all_end = bool(np.isfinite(self.work).all())
        self.takes_part = streams.instance.servable[streams.stream]
        self._event = 0

    def state(self) -> State:
        """Return a copy of the state, for `restore`."""
        changing = {name: getattr(self, name).copy() for name in ("left", "started", "finished", "present", "counts")}
        return changing | {"here": self.here, "event": self._event}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        for name in ("left", "started", "finished", "present", "counts", "here"):
            setattr(self, name, state[name])
        self._event = int(state["event"])

    @property
    def coming(self) -> float:
        """Time of the next event of the trace; inf: there is none."""
        times = self.streams.times
        return float(times[self._event]) if self._event < times.size else np.inf

    @property
    def active(self) -> IntArray:
        """Unfinished jobs whose user is present."""
        return self.here if self.present.all() else self.here[self.present[self.streams.owner[self.streams.stream[self.here]]]]

    def any_ends(self, jobs: IntArray) -> bool:
        """Does one of these unfinished jobs have an end?"""
        return bool(jobs.size) if self._all_end else bool(np.isfinite(self.left[jobs]).any())

    def advance(self, now: float) -> None:
        """End the jobs whose work is done, and apply the events of the trace up to time ``now``."""
        streams = self.streams
        over = self.left[self.here] <= self._rounding[self.here]
        if over.any():
            self.finished[self.here[over]] = now
            self.here = self.here[~over]
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
        if not new:
            return
        jobs = np.array(new, np.int64)
        at_once = jobs[self.left[jobs] == 0]  # tasks of no duration
        self.started[at_once], self.finished[at_once] = now, now
        jobs = jobs[self.left[jobs] > 0]
        jobs = jobs[np.argsort(self._order[jobs])]
        self.here = np.insert(self.here, np.searchsorted(self._order[self.here], self._order[jobs]), jobs)
