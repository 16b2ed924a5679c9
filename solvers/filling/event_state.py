"""The state of a simulation besides the state of progressive filling: jobs, streams, running tasks, and changes at the current moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program.events import Work
from fairopt.program.filling import Filling

__all__ = ["EVENT", "FIXED", "FREED", "IN_LINE", "IN_POOL", "RUNNING", "STARTED", "Run"]

EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED = range(6)  # positions in `progress`: the next event, and numbers of entries
FIXED = frozenset(  # arrays of a run that never change
    [
        *("owner", "rank", "streams", "streams_from", "jobs", "stream", "end_task", "job_of"),
        *("durations", "times", "changes", "subjects", "amounts"),
    ]
)


class Run(NamedTuple):
    """Arrays only, so a simulation can be stopped and resumed. J jobs, T tasks, N streams, U owners, S servers."""

    owner: IntArray  # (N,)
    rank: IntArray  # (N,)
    streams: IntArray  # (N,) sorted by owner
    streams_from: IntArray  # (U + 1,) first position of each owner in `streams`
    jobs: IntArray  # (J,) sorted by stream, then by submission
    head: IntArray  # (N,) next job of the stream, as a position in `jobs`
    arrived: IntArray  # (N,) end of the submitted jobs of the stream, as a position in `jobs`
    stream: IntArray  # (J,)
    next_task: IntArray  # (J,)
    end_task: IntArray  # (J,)
    job_of: IntArray  # (T,)
    durations: FloatArray  # (J,) or (T,)
    each_task: bool
    start: FloatArray  # (T,) nan: not started
    server: IntArray  # (T,)
    share: FloatArray  # (U,) -1: must be recomputed
    running: IntArray  # (U,)
    present: BoolArray  # (U,)
    best: IntArray  # (U,) scratch
    closed: BoolArray  # (S,) the server is removed, or not yet added
    kept: FloatArray  # (S, M) usage of closed servers, whose tasks run to their ends
    number: IntArray  # (S,) running tasks of the server
    times: FloatArray  # events
    changes: IntArray
    subjects: IntArray
    amounts: IntArray
    ends: FloatArray  # (T,) heap of running tasks: time of the end
    ending: IntArray  # (T,) the same heap: task
    line: IntArray  # (N,) streams with waiting tasks
    line_at: IntArray  # (N,) position in `line`; -1: none
    untried: BoolArray  # (N,) tasks of the stream may fit on any server; tasks of other streams only on freed servers
    pool: IntArray  # (N,) streams with a task that may fit at this moment
    pool_at: IntArray  # (N,) position in `pool`; -1: none
    bound: FloatArray  # (N,) lower bound of the share
    freed: IntArray  # (S,) servers with more room than before
    is_freed: BoolArray  # (S,)
    progress: IntArray  # EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED

    @classmethod
    def begin(cls, filling: Filling, work: Work) -> Run:
        """Return the state before the first event."""
        n, s, jobs, u = work.owner.size, int(filling.counts.sum()), work.stream.size, work.present.size
        end_task = np.cumsum(work.tasks)
        total = int(end_task[-1]) if jobs else 0
        part = np.flatnonzero(work.stream >= 0)
        by_stream = part[np.argsort(work.stream[part], kind="stable")]
        first_job = np.concatenate([[0], np.cumsum(np.bincount(work.stream[part], minlength=n))]).astype(np.int64)
        row = np.repeat(np.arange(filling.counts.size), filling.counts)
        at = np.arange(s) - np.concatenate([[0], np.cumsum(filling.counts)])[row]
        return cls(
            owner=work.owner,
            rank=work.rank,
            streams=np.argsort(work.owner, kind="stable"),
            streams_from=np.concatenate([[0], np.cumsum(np.bincount(work.owner, minlength=u))]).astype(np.int64),
            jobs=by_stream,
            head=first_job[:-1].copy(),
            arrived=first_job[:-1].copy(),
            stream=work.stream,
            next_task=end_task - work.tasks,
            end_task=end_task,
            job_of=np.repeat(np.arange(jobs), work.tasks),
            durations=np.array(work.durations),
            each_task=work.durations.size != jobs,
            start=np.full(total, np.nan),
            server=np.full(total, -1),
            share=np.full(u, -1.0),
            running=np.zeros(u, np.int64),
            present=work.present.copy(),
            best=np.full(u, -1),
            closed=at >= work.servers[row],
            kept=np.zeros((s, filling.capacities.shape[1])),
            number=np.zeros(s, np.int64),
            times=work.times,
            changes=work.changes,
            subjects=work.subjects,
            amounts=work.amounts,
            ends=np.empty(total),
            ending=np.empty(total, np.int64),
            line=np.empty(n, np.int64),
            line_at=np.full(n, -1),
            untried=np.zeros(n, bool),
            pool=np.empty(n, np.int64),
            pool_at=np.full(n, -1),
            bound=np.zeros(n),
            freed=np.empty(s, np.int64),
            is_freed=np.zeros(s, bool),
            progress=np.zeros(6, np.int64),
        )
