"""Jobs in the order of submission, moment by moment, where nothing but servers limits tasks, and each task is the same on every server.

    at each moment   tasks end; users leave and join; servers are removed and added; jobs are submitted
                     the first waiting job starts, as long as it fits; with backfill, others start beside the first one that does not

`fairopt.simulation.baselines.events` has the same loop over NumPy arrays, which knows other orders, limits and speeds, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program.events import Change
from fairopt.simulation.baselines.backfill_kernel import (
    COLUMNS,
    END,
    ENDS,
    JOB,
    NUMBER,
    SERVER,
    STREAM,
    TASKS,
    place,
    start_beside,
    with_room,
)
from fairopt.solvers.compiled import step

__all__ = ["Events", "Moment", "follow", "start_beside"]

_SUBMIT, _JOIN, _LEAVE, _ADD = int(Change.SUBMIT), int(Change.JOIN), int(Change.LEAVE), int(Change.ADD)
WAITING, EVENT, STARTS, STARTED, RUNNING = range(5)  # counters: waiting jobs, events and starts so far, tasks started, rows of the table


class Events(NamedTuple):
    """The events, in order; ``owner`` and ``takes_part``, (jobs,), are the user of each job, and whether it can start at all."""

    times: FloatArray
    changes: IntArray
    subjects: IntArray
    amounts: IntArray
    owner: IntArray
    takes_part: BoolArray


class Moment(NamedTuple):
    """What changes from moment to moment: the waiting jobs, the users who are present, the counters, and start and server of each task."""

    queue: IntArray
    present: BoolArray
    counters: IntArray
    started: FloatArray
    server: IntArray


@step()
def follow(until, moments, backfill, events, jobs, servers, state, running):  # type: ignore[no-untyped-def]
    """Go through so many moments, none after ``until``; return the last one, and the table of running tasks, which may have grown."""
    now, counters = -np.inf, state.counters
    on, tasks = np.empty(servers.row.size, np.int64), np.empty(servers.row.size, np.int64)
    for _ in range(moments):
        then = events.times[counters[EVENT]] if counters[EVENT] < events.times.size else np.inf
        for p in range(counters[RUNNING]):
            then = min(then, running[p, ENDS])
        if then > until or then == np.inf:
            break
        now = then
        _end(now, servers, counters, running)
        _apply(now, events, servers, state)
        waiting = _those_present(state, events)
        begun, head, before = 0, -1, counters[STARTED]
        while begun < waiting.size and head < 0:
            j = waiting[begun]
            wanted = jobs.last[j] - jobs.first[j]
            found, total = place(jobs.stream[j], wanted, servers.room, servers.room, servers, on, tasks)
            if total == wanted or (total > 0 and not jobs.gang[j]):
                running = _start(j, now, on[:found], tasks[:found], jobs, servers, state, running)
            if total < wanted:
                head = j
            begun += 1
        if backfill and head >= 0 and begun < waiting.size:
            beside, places = start_beside(now, head, waiting[begun:], jobs, servers, running[: counters[RUNNING]])
            at = 0
            for k in range(beside.shape[0]):
                size = beside[k, 1]
                for i in range(size):
                    on[i], tasks[i] = places[at + i, 0], places[at + i, 1]
                running = _start(beside[k, 0], now, on[:size], tasks[:size], jobs, servers, state, running)
                at += size
        if counters[STARTED] > before:
            _drop_started(jobs, state)
    return now, running


@step()
def _end(now, servers, counters, running):  # type: ignore[no-untyped-def]
    """Let tasks end, those that started first before the others."""
    while True:
        size, at = counters[RUNNING], -1
        for p in range(size):
            if running[p, ENDS] == now and (at < 0 or running[p, NUMBER] < running[at, NUMBER]):
                at = p
        if at < 0:
            return
        behind = at
        while behind < size and running[behind, NUMBER] == running[at, NUMBER]:
            for r in range(servers.room.shape[0]):
                servers.room[r, int(running[behind, SERVER])] += running[behind, TASKS] * servers.demands[r, int(running[behind, STREAM])]
            behind += 1
        for p in range(behind, size):
            _copy_row(running, p, at + p - behind)
        counters[RUNNING] -= behind - at


@step()
def _apply(now, events, servers, state):  # type: ignore[no-untyped-def]
    """Apply the events of a moment."""
    counters = state.counters
    while counters[EVENT] < events.times.size and events.times[counters[EVENT]] == now:
        change, subject = events.changes[counters[EVENT]], events.subjects[counters[EVENT]]
        number = events.amounts[counters[EVENT]]
        counters[EVENT] += 1
        if change == _SUBMIT:
            if events.takes_part[subject]:
                state.queue[counters[WAITING]] = subject
                counters[WAITING] += 1
        elif change in (_JOIN, _LEAVE):
            state.present[subject] = change == _JOIN
        else:  # the first closed servers of a row open, or the last open ones close
            size = servers.row.size
            for k in range(size):
                i = k if change == _ADD else size - 1 - k
                if number > 0 and servers.row[i] == subject and servers.closed[i] == (change == _ADD):
                    servers.closed[i] = change != _ADD
                    number -= 1


@step()
def _those_present(state, events):  # type: ignore[no-untyped-def]
    """Return the waiting jobs of users who are present."""
    waiting = state.queue[: state.counters[WAITING]]
    if state.present.all():
        return waiting
    found, size = np.empty(waiting.size, np.int64), 0
    for j in waiting:
        if state.present[events.owner[j]]:
            found[size] = j
            size += 1
    return found[:size]


@step()
def _start(j, now, on, tasks, jobs, servers, state, running):  # type: ignore[no-untyped-def]
    """Start tasks of a job on these servers; return the table with them."""
    counters, each, n = state.counters, jobs.duration.size != jobs.first.size, jobs.stream[j]
    expected = now + jobs.expected[j]
    for k in range(on.size):
        for r in range(servers.room.shape[0]):
            servers.room[r, on[k]] -= tasks[k] * servers.demands[r, n]
        for _ in range(tasks[k]):
            task = jobs.first[j]
            state.started[task], state.server[task] = now, on[k]
            if each:  # tasks of different durations are counted apart
                counters[STARTS] += 1
                running = _add(n, j, on[k], 1, expected, now + jobs.duration[task], counters, running)
            jobs.first[j] += 1
            counters[STARTED] += 1
    if not each:
        counters[STARTS] += 1
        for k in range(on.size):
            running = _add(n, j, on[k], tasks[k], expected, now + jobs.duration[j], counters, running)
    return running


@step()
def _add(n, j, i, tasks, expected, end, counters, running):  # type: ignore[no-untyped-def]
    """Add the row of tasks on a server to the table, behind those that are expected to end no later."""
    running = with_room(running, counters[RUNNING] + 1)
    at = counters[RUNNING]
    while at > 0 and running[at - 1, END] > expected:
        _copy_row(running, at - 1, at)
        at -= 1
    running[at, END], running[at, NUMBER], running[at, STREAM] = expected, counters[STARTS], n
    running[at, SERVER], running[at, TASKS], running[at, ENDS], running[at, JOB] = i, tasks, end, j
    counters[RUNNING] += 1
    return running


@step()
def _copy_row(table, source, target):  # type: ignore[no-untyped-def]
    for c in range(COLUMNS):  # slices take longer
        table[target, c] = table[source, c]


@step()
def _drop_started(jobs, state):  # type: ignore[no-untyped-def]
    """Take the jobs of which no task waits out of the queue."""
    kept = 0
    for k in range(state.counters[WAITING]):
        j = state.queue[k]
        if jobs.first[j] < jobs.last[j]:
            state.queue[kept] = j
            kept += 1
    state.counters[WAITING] = kept
