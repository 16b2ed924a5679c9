"""Filling over time. A moment is all that happens at one time (`fairopt.solvers.filling.kernel.events`); then progressive filling goes on.

Without queues, ``tree`` is None, and numba leaves out what is about it. What is called for each moment, or for each server, is inlined: to
hand on the state and the run, 60 arrays, would take ten times as long as the rest. The loop itself is a step of its own, because steps that
are called from outside count references.
"""

from __future__ import annotations

import math

from fairopt.solvers.compiled import step
from fairopt.solvers.filling.event_state import EVENT, FREED, IN_LINE, IN_POOL, RUNNING
from fairopt.solvers.filling.kernel.accounts import resize
from fairopt.solvers.filling.kernel.codes import ADD, RANDOM, REMOVE
from fairopt.solvers.filling.kernel.events import apply_event, end_task, pop, start_task
from fairopt.solvers.filling.kernel.filling import shuffle_open
from fairopt.solvers.filling.kernel.over_time import drop_those_without, gather, next_on_server, next_stream, seek
from fairopt.solvers.filling.kernel.queues_over_time import next_on_server_in_tree, next_stream_in_tree, seek_in_tree

__all__ = ["advance", "begin_moment", "end_moment", "next_moment"]


@step(inline="always")
def next_moment(run):  # type: ignore[no-untyped-def]
    """Return the time of the next event or end of a task, inf if there is none."""
    now = run.ends[0] if run.progress[RUNNING] > 0 else math.inf
    if run.progress[EVENT] < run.times.size:
        now = min(now, run.times[run.progress[EVENT]])
    return now


@step(inline="always")
def begin_moment(state, run, tree, now):  # type: ignore[no-untyped-def]
    """Let tasks end and events happen, and fill the pool; return whether a stream in it was never tried."""
    progress = run.progress
    progress[FREED] = 0
    while progress[RUNNING] > 0 and run.ends[0] == now:
        end_task(state, run, tree, pop(run))
    servers = False
    while progress[EVENT] < run.times.size and run.times[progress[EVENT]] == now:
        servers |= run.changes[progress[EVENT]] in (REMOVE, ADD)
        apply_event(state, run, progress[EVENT])
        progress[EVENT] += 1
    if tree is not None:
        if servers:
            resize(state, run, tree)
        for k in range(progress[IN_LINE]):
            n = run.line[k]
            if tree.again[n]:
                run.untried[n] = True
                tree.again[n] = False
        tree.at[:] = 0
    return gather(state, run)


@step(inline="always")
def end_moment(state, run, tree):  # type: ignore[no-untyped-def]
    """Empty the pool: what is left in it fits nowhere now. With queues it may fit, but be barred, or have a weight of 0 on its way."""
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        run.untried[n] = False
        if tree is not None:
            run.untried[n] = tree.barred[n] > 0 or tree.closed[tree.leaf[n]] > 0
        run.pool_at[n] = -1
    for k in range(run.progress[FREED]):
        run.is_freed[run.freed[k]] = False


@step(inline="always")
def _start_by_server(state, run, tree, rng, now, untried):  # type: ignore[no-untyped-def]
    """Server first, as `fill_by_server`: in rounds of a random order (or a random one each time) of the servers that may have room."""
    number = state.open.size if untried else run.progress[FREED]
    for k in range(number):
        state.open[k] = k if untried else run.freed[k]
    while True:
        number = shuffle_open(state, number, rng)
        if number == 0:
            break
        for at in range(number - 1 if state.rule == RANDOM else 0, number):
            i = state.open[at]
            n = next_on_server(state, run, i, rng) if tree is None else next_on_server_in_tree(state, run, tree, i, rng)
            if n < 0:
                state.open[at] = -1
            else:
                start_task(state, run, tree, n, i, now)


@step()
def _advance(state, run, tree, rng, server_first, until, most):  # type: ignore[no-untyped-def]
    for passed in range(most + 1):
        now = next_moment(run)
        if now == math.inf or now > until or passed == most:
            return now
        untried = begin_moment(state, run, tree, now)
        if server_first:
            _start_by_server(state, run, tree, rng, now, untried)
        else:
            while True:
                n = next_stream(state, run, rng) if tree is None else next_stream_in_tree(state, run, tree, rng)
                if n < 0:
                    break
                i = seek(state, run, state.rule, n, rng) if tree is None else seek_in_tree(state, run, tree, n, rng)
                start_task(state, run, tree, n, i, now)
                drop_those_without(state, run, i)
        end_moment(state, run, tree)
    return math.inf


@step(nogil=True)
def advance(state, run, tree, rng, server_first, until, most):  # type: ignore[no-untyped-def]
    """Process at most ``most`` moments; return the time of the next moment; inf, or a time after ``until``, at the end."""
    return _advance(state, run, tree, rng, server_first, until, most)
