"""The state of a simulation besides the state of progressive filling: jobs, streams, running tasks, and changes at the current moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program.events import Change, Work
from fairopt.program.filling import Filling
from fairopt.solvers.filling.queue_state import QueueState
from fairopt.solvers.filling.state import State

__all__ = ["EVENT", "FIXED", "FREED", "IN_LINE", "IN_POOL", "RUNNING", "STARTED", "Run", "check_restored"]

EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED = range(6)  # positions in `progress`: the next event, and numbers of entries
FIXED = {  # arrays that never change in a simulation
    "Run": frozenset(
        [
            *("owner", "rank", "streams", "streams_from", "jobs", "stream", "end_task", "job_of"),
            *("durations", "speed", "times", "changes", "subjects", "amounts"),
        ]
    ),
    "State": frozenset(
        [
            *("start", "row", "capacity", "demand", "wanted", "worth", "cost", "order", "leaf", "rows_by_worth", "segment", "progress"),
            *("free", "inverse"),  # follow from `used`
        ]
    ),
    "QueueState": frozenset(
        [
            *("parts", "parent", "depth", "weight", "listed", "tier", "promised", "closed", "children_from", "children", "upwards"),
            *("plain_worth", "plain_parts"),
            *("given_from", "given", "total", "leaf", "kind", "level", "keeping", "keeping_from", "above", "asked", "everywhere"),
            *("rows", "of_server", "resource", "accounts_from", "accounts", "on_row", "adds", "user_of"),
            *("members_from", "members", "eligible"),
        ]
    ),
}


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
    speed: FloatArray  # (N, 1 or R)
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
            speed=np.ones((n, 1)) if work.speeds is None else np.array(work.speeds),
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


def check_restored(state: State, run: Run, tree: QueueState | None, begun: Run) -> None:
    """Refuse a state between two moments in which a step would point outside of an array: compiled, it would not notice.

    ``begun`` is the run before its first event.

    Raises
    ------
    ValueError
    """
    n, servers, rows, places = run.owner.size, state.row.size, state.eligible.shape[1], 0 if tree is None else tree.parent.size
    within: list[tuple[IntArray, int | IntArray, int | IntArray]] = [
        *((state.rank, 0, rows), (state.rank_server, 0, servers), (state.first, 0, servers), (state.begun, 0, servers)),
        *((state.found, -1, servers - 1), (state.open, -1, servers - 1), (state.fits, 0, servers - 1), (state.tied, 0, n - 1)),
        *((run.server, -1, servers - 1), (run.best, -1, n - 1)),
        (run.progress, 0, np.array([run.times.size, run.ending.size, run.ending.size, n, n, servers])),
    ]
    if tree is not None:
        within += [
            *((tree.at, 0, servers), (tree.barred_to, tree.members_from[:-1], tree.members_from[1:]), (tree.tied, 0, places)),
            *((tree.need, -1, places), (tree.value, -1, places), (tree.marks, -1, places)),
        ]
    _require(*((low <= array).all() and (array <= high).all() for array, low, high in within))
    floats = [each for part in (state, run, tree) if part is not None for name, each in part._asdict().items() if name in _MEASURED]
    _require(*((np.abs(each) <= _LARGEST).all() for each in floats))

    event, running, started, in_line = run.progress[:4].tolist()
    submitted = run.subjects[:event][run.changes[:event] == Change.SUBMIT]
    _require((run.arrived == begun.arrived + np.bincount(run.stream[submitted], minlength=n)).all())
    over = np.zeros(run.stream.size, bool)  # jobs all of whose tasks have started: those before the head of their stream
    over[run.jobs] = np.arange(run.jobs.size) < run.head[run.stream[run.jobs]]
    _require(
        (begun.head <= run.head).all() and (run.head <= run.arrived).all(),
        ((run.next_task == run.end_task) == over).all(),
        (begun.next_task <= run.next_task).all() and (run.next_task <= run.end_task).all(),
        int((run.next_task - begun.next_task).sum()) == started,
    )
    tasks, line = run.ending[:running], run.line[:in_line]
    _require((tasks >= 0).all() and (tasks < run.job_of.size).all(), (line >= 0).all() and (line < n).all())
    line_at = np.full(n, -1)
    line_at[line] = np.arange(in_line)
    _require(
        np.unique(tasks).size == running and (tasks < run.next_task[run.job_of[tasks]]).all() and (run.server[tasks] >= 0).all(),
        np.isfinite(run.ends[:running]).all(),
        np.unique(line).size == in_line and (run.line_at == line_at).all() and (run.head[line] < run.arrived[line]).all(),
        (run.pool_at == -1).all() and not run.is_freed.any(),
    )


_LARGEST = 1e30  # "usage" of a closed server
_MEASURED = frozenset(("used", "lost", "kept", "share", "usage", "usage_lost", "held", "held_lost"))


def _require(*true: object) -> None:
    if not all(true):
        raise ValueError("its numbers do not belong together")
