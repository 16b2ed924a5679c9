"""The same as ``over_time`` with a tree of queues.

A leaf is an owner, who may have several streams. A stream that fits, but is barred or has a weight of 0 on its way, stays in line as one
that was never tried.
"""

from __future__ import annotations

from fairopt.solvers.compiled import step
from fairopt.solvers.filling.event_state import FREED, IN_POOL
from fairopt.solvers.filling.kernel.events import take_out
from fairopt.solvers.filling.kernel.over_time import is_before, seek
from fairopt.solvers.filling.kernel.queues import narrow_rows, need_of, offer, walk, widen_rows
from fairopt.solvers.filling.kernel.servers import first_fit, first_freed, fits_there
from fairopt.solvers.filling.queue_state import LEVEL

__all__ = ["next_on_server_in_tree", "next_stream_in_tree", "seek_in_tree"]


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
            offer(tree, n, need_of(state, tree, n, -1))
        k += 1
    leaf = walk(tree, rng, state.random_ties)
    return _first_of_leaf(run, tree, leaf) if leaf >= 0 else -1


@step()
def seek_in_tree(state, run, tree, n, rng):  # type: ignore[no-untyped-def]
    """Return the server for the next task of the stream."""
    narrow, first, untried = narrow_rows(state, tree, n), state.first[n], run.untried[n]
    if narrow and not untried:
        state.first[n], run.untried[n] = 0, True
    i = seek(state, run, state.rule, n, rng)
    if narrow:
        state.first[n], run.untried[n] = first, untried
        widen_rows(state, tree, n)
    return i


@step(inline="always")
def next_on_server_in_tree(state, run, tree, i, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is on server i, -1 if no task can be placed there."""
    tree.need[:] = -1
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        tree.value[n] = -1
        if tree.barred[n] == 0 and fits_there(state, n, i):
            offer(tree, n, need_of(state, tree, n, state.row[i]))
    leaf = walk(tree, rng, state.random_ties)
    return _first_of_leaf(run, tree, leaf) if leaf >= 0 else -1
