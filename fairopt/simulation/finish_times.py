r"""Finish times: the exact scheduler of the notion `finish-time`, and how much later than alone each job of a simulation ended.

*Scheduler.* A stream of jobs is a user of the notion: L is the work left of its unfinished jobs, e the time since the first of these was
submitted, and a the work that they have done, each part of it divided by the rate of the stream alone at that time, with the slice of its
weight among the streams that have jobs. These change between events, too: the allocation is computed again after each ``period``, a
hundredth of the time over which jobs are submitted and of the longest task together.

*Ratio of a job.* rho = (end - submission) / (the same alone). Alone, the jobs of an owner run in the order of submission on the slice
phi / sum of phi of every server and of every resource of the cluster that are there, in the relaxation of the fluid simulations: a job of K
tasks takes of the slice what earlier jobs leave, at most as much as K tasks do on the fastest servers. Above 1 it ended later than alone.

>>> import fairopt as fo
>>> pool = fo.Instance([[4]], [[1], [1]], users=["ann", "bob"], resources=["cpu"])
>>> jobs = fo.Trace(["ann", "bob", "bob"], [0, 0, 0], [4, 2, 2], [[1]] * 3, [60, 60, 60], resources=["cpu"])
>>> fo.simulate(jobs, pool, "drfh:first-fit").finish_ratios.tolist()  # with 2 cpus ann needs 120 s, bob's jobs 60 s and 120 s
[1.0, 1.0, 1.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.analysis.properties.case import quietly
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.models import FinishTime
from fairopt.program.most_work import work_of_slice
from fairopt.simulation.fluid import Optimum, instance_at
from fairopt.simulation.keeping import State
from fairopt.simulation.running_alone import run_alone
from fairopt.simulation.streams import Streams
from fairopt.solving import solve

if TYPE_CHECKING:
    from fairopt.simulation.situation import Situation

__all__ = ["FinishTimeOptimum", "ended_alone"]

_PERIODS = 100  # in the time of submissions and of the longest task


class FinishTimeOptimum(Optimum):
    """The exact allocation of finish times, while jobs wait and advance."""

    def __init__(self, streams: Streams, notion: FinishTime) -> None:
        if notion != FinishTime():
            raise Unsupported('left, elapsed and alone of "finish-time" follow from the trace in a simulation; leave them out')
        endless = np.isinf(streams.trace.job_work) & streams.instance.servable[streams.stream]
        if endless.any():
            job = streams.trace.jobs[int(endless.argmax())]
            raise Unsupported(f'the tasks of job "{job}" never end, so it has no finish time; give them durations, or use another notion')
        super().__init__(streams, notion)
        trace = streams.trace
        self.period = (float(np.ptp(trace.submit)) + float(trace.durations.max(initial=0.0))) / _PERIODS or np.inf
        self.situation: Situation | None = None
        self.alone = np.zeros(streams.trace.n_jobs)
        self.left = np.array(streams.trace.job_work)  # when ``alone`` was brought up to date
        self.slices = np.zeros(streams.owner.size)
        self.now = -np.inf

    def follow(self, situation: Situation) -> None:
        """Take the work left from there."""
        self.situation = situation

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers from now on."""
        assert self.situation is not None
        done = self.left - np.maximum(self.situation.left, 0.0)
        rate = self.slices[self.streams.stream]
        self.alone += np.divide(done, rate, out=np.zeros(done.size), where=rate > 0)
        self.left, self.now, self.key = np.maximum(self.situation.left, 0.0), now, None
        return super().at(jobs, counts, now)

    def _solve(self, active: IntArray, counts: FloatArray) -> None:
        assert self.situation is not None
        streams, number = self.streams, self.x.size
        jobs = self.situation.active
        stream = streams.stream[jobs]
        left, alone = (np.bincount(stream, weights=each[jobs], minlength=number)[active] for each in (self.left, self.alone))
        came = np.full(number, np.inf)
        np.minimum.at(came, stream, streams.trace.submit[jobs])
        instance = instance_at(streams, active, self.limits[active], counts, self.group, self.first)
        with quietly():
            found = solve(instance, FinishTime(left=left, elapsed=np.maximum(self.now - came[active], 0.0), alone=alone))
        self.residual = max(self.residual, found.certificate.worst)
        self.slices[:] = 0.0
        self.slices[active] = work_of_slice(instance)
        tasks = np.zeros((number, self.first.size))
        tasks[active] = found.tasks
        self._take(tasks, counts)

    @property
    def is_afresh(self) -> bool:
        """True: no allocation starts from the last one."""
        return True

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the allocation is to be computed again though nothing happens; inf: not before the next event."""
        return now + self.period if unfinished and self.x.any() else np.inf

    def state(self) -> State:
        """Return the state, for `restore`."""
        return super().state() | {"alone": self.alone, "work_left": self.left, "slices": self.slices}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        super().restore(state)
        self.alone, self.left, self.slices = (np.array(state[name]) for name in ("alone", "work_left", "slices"))


def ended_alone(streams: Streams) -> FloatArray:
    """Return when each job would have ended if its owner had been alone with its slice, (jobs,), in seconds; nan: never."""
    trace, instance = streams.trace, streams.instance
    part = np.divide(streams.weights, streams.weights.sum(), out=np.zeros(streams.weights.size), where=streams.weights > 0)[streams.owner]
    changed, counts = streams.counts_over_time()
    kept = np.append(True, (counts[1:] != counts[:-1]).any(axis=1))
    distinct, which = np.unique(counts[kept], axis=0, return_inverse=True)
    of_counts = [work_of_slice(instance.replace(counts=there), part).tolist() for there in distinct]
    rates = [of_counts[k] for k in which.ravel().tolist()]
    fastest = np.where(instance.eligibility, instance.speeds, 0.0).max(axis=1, initial=0.0)
    most = trace.tasks * fastest[streams.stream]
    ends = np.full(trace.n_jobs, np.nan)
    owner, since = streams.job_owner, changed[kept].tolist()
    for user in np.unique(owner).tolist():
        own = np.flatnonzero(owner == user)
        asked = trace.submit[own].tolist(), trace.job_work[own].tolist(), most[own].tolist(), streams.stream[own].tolist()
        ends[own] = run_alone(*asked, since, rates)
    return ends
