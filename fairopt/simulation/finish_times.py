r"""Finish times: the exact scheduler of the notion `finish-time`, and how much later than alone each job of a simulation ended.

*Scheduler.* At each event a stream of jobs is a user of the notion: L is the work of its unfinished jobs, e the time since the first of
them was submitted, and a the work that they have done, each part of it divided by the rate at which the stream alone, with the slice of its
weight among those that have jobs, would have done it then. Between events e, a and L go on changing, and so does the exact answer: it is
computed again after each ``period``, a hundredth of the time over which jobs are submitted (but of the last event alone nothing).

*Ratio of a job.* rho = (end - submission) / (the same alone). Alone, the jobs of an owner run in the order of submission on the slice
phi / sum of phi of every server and resource of the cluster that is there, a relaxation as the fluid simulations are: a job of K tasks
takes the part of the slice that earlier jobs leave, at most as much as K tasks take of it. Above 1 a job ended later than alone.

>>> import fairopt as fo
>>> pool = fo.Instance([[4]], [[1], [1]], users=["ann", "bob"], resources=["cpu"])
>>> jobs = fo.Trace(["ann", "bob", "bob"], [0, 0, 0], [4, 2, 2], [[1]] * 3, [60, 60, 60], resources=["cpu"])
>>> fo.simulate(jobs, pool, "drfh:first-fit").finish_ratios.tolist()  # alone with 2 cpus ann needs 120 s, bob's jobs 60 s and 120 s
[1.0, 1.0, 1.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.models.finish_time import FinishTime
from fairopt.program.most_work import work_of_slice
from fairopt.simulation.fluid import Optimum, instance_at, tasks_of
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

__all__ = ["FinishTimeOptimum", "ended_alone", "summary"]


class FinishTimeOptimum(Optimum):
    """The exact allocation of finish times, as jobs wait and advance."""

    def __init__(self, streams: Streams, notion: FinishTime) -> None:
        super().__init__(streams, notion)
        length = float(np.ptp(streams.trace.submit)) if streams.trace.n_jobs else 0.0
        self.period = length / 100 if length > 0 else np.inf
        jobs = streams.trace.n_jobs
        self.left = np.array(streams.trace.job_work)  # as of ``since``
        self.alone = np.zeros(jobs)
        self.since = -np.inf
        self.slices = np.zeros(streams.owner.size)  # the rates alone of the streams, since then
