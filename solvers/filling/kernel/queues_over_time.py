"""Filling by a tree of queues over time.

A leaf is an owner, who may have several streams. A stream that fits, but is barred or has a weight of 0 on its way, stays in line as one
that was never tried.
"""

from __future__ import annotations

import math

from fairopt.solvers.compiled import step
from fairopt.solvers.filling.event_state import EVENT, FREED, IN_LINE, IN_POOL, RUNNING
from fairopt.solvers.filling.kernel.accounts import record, resize
from fairopt.solvers.filling.kernel.codes import ADD, RANDOM, REMOVE
from fairopt.solvers.filling.kernel.events import apply_event, end_task, pop, start_task, take_out
from fairopt.solvers.filling.kernel.filling import shuffle_open
from fairopt.solvers.filling.kernel.over_time import drop_those_without, gather, is_before, open_servers, seek
from fairopt.solvers.filling.kernel.queues import narrow_rows, need_of, need_on, offer, walk, widen_rows
from fairopt.solvers.filling.kernel.servers import first_fit, first_freed, fits_there
from fairopt.solvers.filling.queue_state import LEVEL

__all__ = ["advance_in_tree", "next_stream_in_tree"]


@step()
def _first_of_leaf(run, tree, leaf):  # type: ignore[no-untyped-def]
    """Return the first stream of an owner that has the need, and outside guarantees the tier, that was found."""
    pool, leaves, value, level = run.pool, tree.leaf, tree.value, tree.marks[LEVEL]
    first = -1
    for k in range(run.progress[IN_POOL]):
        n = pool[k]
        if level == 0 and tree.tier[n] < tree.top[leaf]:
            continue
        if leaves[n] == leaf and value[n] >= level and (first < 0 or is_before(run, n, first)):
            first = n
    return first


@step()
def _still_fits(state, run, n):  # type: ignore[no-untyped-def]
    """Does a task of the stream fit on some server?"""
    if run.untried[n]:
        return first_fit(state, n) >= 0
    freed = run.freed[: run.progress[FREED]]
    at = first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, state.first[n])
    return at < freed.size


@step()
def next_stream_in_tree(state, run, tree, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is, -1 if no task can be placed any more."""
    tree.need[:] = -1
    k = 0
    while k < run.progress[IN_POOL]:
        n = run.pool[k]
        tree.value[n] = -1
        if tree.barred[n] == 0:
            if not _still_fits(state, run, n):
                take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
                run.untried[n] = False
                continue
            offer(tree, n, need_of(state, tree, n))
        k += 1
    leaf = walk(tree, rng, state.random_ties)
    return _first_of_leaf(run, tree, leaf) if leaf >= 0 else -1


@step()
def _seek_in_tree(state, run, tree, n, rng):  # type: ignore[no-untyped-def]
    """Return the server for the next task of the stream."""
    narrow, first, untried = narrow_rows(state, tree, n), state.first[n], run.untried[n]
    if narrow and not untried:
        state.first[n], run.untried[n] = 0, True
    i = seek(state, run, state.rule, n, rng)
    if narrow:
        state.first[n], run.untried[n] = first, untried
        widen_rows(state, tree, n)
    return i


@step()
def _start_by_server_in_tree(state, run, tree, rng, now, untried):  # type: ignore[no-untyped-def]
    """As ``_start_by_server`` of ``over_time``, with queues."""
    number = open_servers(state, run, untried)
    while True:
        number = shuffle_open(state, number, rng)
        if number == 0:
            break
        for at in range(number - 1 if state.rule == RANDOM else 0, number):
            i = state.open[at]
            tree.need[:] = -1
            for k in range(run.progress[IN_POOL]):
                n = run.pool[k]
                tree.value[n] = -1
                if tree.barred[n] == 0 and fits_there(state, n, i):
                    offer(tree, n, need_on(tree, n, state.row[i]))
            leaf = walk(tree, rng, state.random_ties)
            if leaf < 0:
                state.open[at] = -1
                continue
            n = _first_of_leaf(run, tree, leaf)
            start_task(state, run, n, i, now)
            record(state, tree, n, state.row[i], 1)


@step(nogil=True)
def advance_in_tree(state, run, tree, rng, server_first, until, most):  # type: ignore[no-untyped-def]
    """As `advance`, with queues."""
    progress = run.progress
    for passed in range(most + 1):
        now = run.ends[0] if progress[RUNNING] > 0 else math.inf
        if progress[EVENT] < run.times.size:
            now = min(now, run.times[progress[EVENT]])
        if now == math.inf or now > until or passed == most:
            return now
        progress[FREED] = 0
        while progress[RUNNING] > 0 and run.ends[0] == now:
            task = pop(run)
            end_task(state, run, task)
            record(state, tree, run.stream[run.job_of[task]], state.row[run.server[task]], -1)
        servers = False
        while progress[EVENT] < run.times.size and run.times[progress[EVENT]] == now:
            servers |= run.changes[progress[EVENT]] in (REMOVE, ADD)
            apply_event(state, run, progress[EVENT])
            progress[EVENT] += 1
        if servers:
            resize(state, run, tree)
        for k in range(progress[IN_LINE]):
            n = run.line[k]
            if tree.again[n]:
                run.untried[n] = True
                tree.again[n] = False
        untried = gather(state, run)
        tree.at[:] = 0
        if server_first:
            _start_by_server_in_tree(state, run, tree, rng, now, untried)
        else:
            while True:
                n = next_stream_in_tree(state, run, tree, rng)
                if n < 0:
                    break
                i = _seek_in_tree(state, run, tree, n, rng)
                start_task(state, run, n, i, now)
                record(state, tree, n, state.row[i], 1)
                drop_those_without(state, run, i)
        for k in range(progress[IN_POOL]):
            n = run.pool[k]
            run.untried[n] = tree.barred[n] > 0 or tree.closed[tree.leaf[n]] > 0
            run.pool_at[n] = -1
        for k in range(progress[FREED]):
            run.is_freed[run.freed[k]] = False
    return math.inf
