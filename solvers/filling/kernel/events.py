"""What happens at one moment of a simulation: tasks start and end, users and servers come and go, jobs are submitted.

Without queues, ``tree`` is None, and numba leaves out what is about it.
"""

from __future__ import annotations

import math

from fairopt.solvers.compiled import step
from fairopt.solvers.filling.event_state import FREED, IN_LINE, IN_POOL, RUNNING, STARTED
from fairopt.solvers.filling.kernel.accounts import record
from fairopt.solvers.filling.kernel.codes import ADD, JOIN, LEAVE, REMOVE, SUBMIT
from fairopt.solvers.filling.kernel.servers import column_of
from fairopt.solvers.filling.kernel.users import hold, set_used

__all__ = ["apply_event", "close_absent", "end_task", "pop", "sort_freed", "start_task", "take_out"]

_CLOSED = 1e30  # "usage" of a server that is not there: nothing fits on it


@step(inline="always")
def _push(run, time, task):  # type: ignore[no-untyped-def]
    """Put a task into the heap of ends; at one time the first task is first."""
    k = run.progress[RUNNING]
    run.progress[RUNNING] += 1
    while k > 0:
        above = (k - 1) // 2
        if run.ends[above] < time or (run.ends[above] == time and run.ending[above] < task):
            break
        run.ends[k], run.ending[k] = run.ends[above], run.ending[above]
        k = above
    run.ends[k], run.ending[k] = time, task


@step(inline="always")
def pop(run):  # type: ignore[no-untyped-def]
    """Take the first task out of the heap of ends."""
    first = run.ending[0]
    run.progress[RUNNING] -= 1
    size = run.progress[RUNNING]
    time, task = run.ends[size], run.ending[size]
    k = 0
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if below + 1 < size and (
            run.ends[below + 1] < run.ends[below] or (run.ends[below + 1] == run.ends[below] and run.ending[below + 1] < run.ending[below])
        ):
            below += 1
        if time < run.ends[below] or (time == run.ends[below] and task < run.ending[below]):
            break
        run.ends[k], run.ending[k] = run.ends[below], run.ending[below]
        k = below
    run.ends[k], run.ending[k] = time, task
    return first


@step(inline="always")
def _free(run, i):  # type: ignore[no-untyped-def]
    """There is more room on this server than before."""
    if not run.is_freed[i]:
        run.is_freed[i] = True
        run.freed[run.progress[FREED]] = i
        run.progress[FREED] += 1


@step()
def _queue(run, n):  # type: ignore[no-untyped-def]
    """Put a stream into the line if it has tasks that wait, and its owner is there."""
    if run.line_at[n] < 0 and run.head[n] < run.arrived[n] and run.present[run.owner[n]]:
        run.line_at[n] = run.progress[IN_LINE]
        run.line[run.line_at[n]] = n
        run.progress[IN_LINE] += 1
        run.untried[n] = True


@step(inline="always")
def take_out(members, at, progress, which, n):  # type: ignore[no-untyped-def]
    """Take a stream out of the line or the pool: the last one takes its place."""
    k = at[n]
    if k >= 0:
        progress[which] -= 1
        last = members[progress[which]]
        members[k] = last
        at[last] = k
        at[n] = -1


@step()
def end_task(state, run, tree, task):  # type: ignore[no-untyped-def]
    """A task ends, and its server has its demand back."""
    n, i = run.stream[run.job_of[task]], run.server[task]
    row, u = state.row[i], run.owner[n]
    run.number[i] -= 1
    if run.closed[i]:
        k = column_of(state.demand, row)
        for r in range(state.used.shape[1]):
            run.kept[i, r] -= state.demand[n, k, r]
    else:
        hold(state, n, i, -1.0)
        if run.number[i] == 0:  # rounding leaves nothing behind
            for r in range(state.used.shape[1]):
                state.lost[i, r] = 0.0
                set_used(state, i, r, 0.0)
        _free(run, i)
    run.running[u] -= 1
    state.total[n] -= 1
    state.tasks[n, row] -= 1
    run.share[u] = -1.0
    if tree is not None:
        record(state, tree, n, row, -1)


@step()
def apply_event(state, run, event):  # type: ignore[no-untyped-def]
    """Let one event happen."""
    kind, subject = run.changes[event], run.subjects[event]
    if kind == SUBMIT:
        n = run.stream[subject]
        run.arrived[n] += 1
        _queue(run, n)
    elif kind in (JOIN, LEAVE):
        run.present[subject] = kind == JOIN
        for k in range(run.streams_from[subject], run.streams_from[subject + 1]):
            if kind == JOIN:
                _queue(run, run.streams[k])
            else:
                take_out(run.line, run.line_at, run.progress, IN_LINE, run.streams[k])
    else:
        first, last = state.start[subject], state.start[subject + 1]
        left = run.amounts[event]
        for k in range(last - first):
            i = first + k if kind == ADD else last - 1 - k  # the last of a row go first
            if left == 0:
                break
            if run.closed[i] == (kind == ADD):
                run.closed[i] = kind == REMOVE
                left -= 1
                for r in range(state.used.shape[1]):
                    if kind == REMOVE:
                        run.kept[i, r] = state.used[i, r]
                        set_used(state, i, r, _CLOSED)
                    else:
                        state.lost[i, r] = 0.0
                        set_used(state, i, r, run.kept[i, r] if run.number[i] > 0 else 0.0)
                if kind == ADD:
                    _free(run, i)


@step()
def start_task(state, run, tree, n, i, now):  # type: ignore[no-untyped-def]
    """Start the next task of the stream on the server."""
    row, u = state.row[i], run.owner[n]
    hold(state, n, i, 1.0)
    state.begun[row] = max(state.begun[row], i + 1)
    run.number[i] += 1
    job = run.jobs[run.head[n]]
    task = run.next_task[job]
    run.next_task[job] += 1
    run.start[task], run.server[task] = now, i
    end = now + run.durations[task if run.each_task else job] / run.speed[n, column_of(run.speed, row)]
    if end < math.inf:
        _push(run, end, task)
    run.progress[STARTED] += 1
    run.running[u] += 1
    state.total[n] += 1
    state.tasks[n, row] += 1
    run.share[u] = -1.0
    if run.next_task[job] == run.end_task[job]:
        run.head[n] += 1
        if run.head[n] == run.arrived[n]:
            take_out(run.line, run.line_at, run.progress, IN_LINE, n)
            take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
    if tree is not None:
        record(state, tree, n, row, 1)


@step()
def sort_freed(run):  # type: ignore[no-untyped-def]
    """Put the freed servers into ascending order: a few by insertion, many as their marks say."""
    freed = run.freed[: run.progress[FREED]]
    if freed.size * freed.size > run.is_freed.size:
        k = 0
        for i in range(run.is_freed.size):
            if run.is_freed[i]:
                freed[k] = i
                k += 1
        return
    for k in range(1, freed.size):
        i, at = freed[k], k
        while at > 0 and freed[at - 1] > i:
            freed[at] = freed[at - 1]
            at -= 1
        freed[at] = i


@step()
def close_absent(state, run):  # type: ignore[no-untyped-def]
    """Close the servers that are not present at the beginning."""
    for i in range(state.row.size):
        if run.closed[i]:
            for r in range(state.used.shape[1]):
                set_used(state, i, r, _CLOSED)
