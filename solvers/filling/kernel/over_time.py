"""Whose turn it is at a moment of a simulation, and the server of its task.

A stream whose task fitted nowhere can only fit on a server where something was given back since: it is tried on those few, and not on all.
"""

from __future__ import annotations

import math

from fairopt.instance.tolerances import SAME
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.event_state import FREED, IN_LINE, IN_POOL
from fairopt.solvers.filling.kernel.codes import FIRST, L1, LARGEST_RESIDUAL, OWN, RANDOM, RESIDUAL, SMALLEST_SHARE
from fairopt.solvers.filling.kernel.events import sort_freed, take_out
from fairopt.solvers.filling.kernel.servers import (
    column_of,
    draw,
    first_fit,
    first_freed,
    fits_there,
    fitting,
    next_score,
    pivot,
    room_for,
    score_block,
    search,
    smallest_share,
)

__all__ = ["drop_those_without", "gather", "is_before", "next_on_server", "next_stream", "seek"]


@step(inline="always")
def _share_of(state, run, u):  # type: ignore[no-untyped-def]
    """Return the owner's own share: of its running tasks, each counted as its stream says."""
    if run.share[u] < 0.0:
        share = 0.0
        for k in range(run.streams_from[u], run.streams_from[u + 1]):
            n = run.streams[k]
            if state.total[n] > 0 and state.worth.shape[1] == 1:
                share += state.total[n] * state.worth[n, 0]
            elif state.total[n] > 0:
                for j in range(state.worth.shape[1]):
                    if state.tasks[n, j] > 0:
                        share += state.tasks[n, j] * state.worth[n, j]
        run.share[u] = share
    return run.share[u]


@step(inline="always")
def _share_there(state, run, n, i):  # type: ignore[no-untyped-def]
    """Return the owner's share in the eyes of the server, as to a task of this stream."""
    u = run.owner[n]
    if state.measure == OWN:
        return _share_of(state, run, u)
    if run.running[u] == 0:
        return 0.0
    row = state.row[i]
    worth = state.worth[n, column_of(state.worth, row)]
    if state.measure == RESIDUAL:
        worth /= room_for(state.used, i, state.capacity, row, state.demand, n, column_of(state.demand, row))
    return run.running[u] * worth


@step()
def seek(state, run, rule, n, rng):  # type: ignore[no-untyped-def]
    """Return the server for a task of the stream by a rule, -1 if it fits on none."""
    if rule == SMALLEST_SHARE:
        if state.measure == OWN or run.running[run.owner[n]] == 0:
            rule = FIRST
        elif state.measure == RESIDUAL:
            rule = LARGEST_RESIDUAL
    if run.untried[n]:
        if rule == FIRST:
            return first_fit(state, n)
        if rule == SMALLEST_SHARE:
            return smallest_share(state, n)
        if rule == RANDOM:
            number = fitting(state, n)
            return state.fits[draw(rng, number)] if number else -1
        return search(state, rule, n)
    return _seek_freed(state, run, rule, n, rng)


@step()
def _seek_freed(state, run, rule, n, rng):  # type: ignore[no-untyped-def]
    """The same among the servers that were freed; on those before ``state.first`` it does not fit."""
    freed = run.freed[state.first[n] : run.progress[FREED]]
    if rule == SMALLEST_SHARE:
        for row in state.rows_by_worth[n if state.rows_by_worth.shape[0] > 1 else 0]:
            for i in freed:
                if state.row[i] == row and fits_there(state, n, i):
                    return i
        return -1
    if rule == RANDOM:
        number = 0
        for i in freed:
            number += fits_there(state, n, i)
        drawn = draw(rng, number)
        for i in freed:
            if fits_there(state, n, i):
                if drawn == 0:
                    return i
                drawn -= 1
        return -1
    best, lower = -1, math.inf
    for i in freed:
        if not fits_there(state, n, i):
            continue
        if rule == FIRST:
            return i
        k = column_of(state.demand, state.row[i])
        p = 0
        if rule == L1:
            p = pivot(state.demand, n, k)
            for r in range(state.ratio.size):
                state.ratio[r] = state.demand[n, k, r] / state.demand[n, k, p]
        score = state.scores[:1]
        score_block(state, rule, n, k, p, i, score)
        if score[0] < lower:
            best, lower = i, next_score(score[0])
    return best


@step(inline="always")
def is_before(run, n, other):  # type: ignore[no-untyped-def]
    """Is this stream before the other, of those with the same share?"""
    if run.rank[n] != run.rank[other]:
        return run.rank[n] < run.rank[other]
    return run.jobs[run.head[n]] < run.jobs[run.head[other]]


@step()
def _first_of_owners(state, run, highest, shares):  # type: ignore[no-untyped-def]
    """Put the first stream of each owner whose share is no higher into ``state.tied``, owner by owner; return how many."""
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        u = run.owner[n]
        if shares[n] <= highest and (run.best[u] < 0 or is_before(run, n, run.best[u])):
            run.best[u] = n
    number = 0
    for u in range(run.best.size):
        if run.best[u] >= 0:
            state.tied[number] = run.best[u]
            number += 1
            run.best[u] = -1
    return number


@step()
def _first_of_all(run, highest, shares):  # type: ignore[no-untyped-def]
    """Return the first stream of those whose share is no higher."""
    first = -1
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        if shares[n] <= highest and (first < 0 or is_before(run, n, first)):
            first = n
    return first


@step()
def _still(state, run, n, rng):  # type: ignore[no-untyped-def]
    """Does a task of the stream still fit, and is its share still what was thought? If not, mend it."""
    measured = state.measure != OWN and run.running[run.owner[n]] > 0
    i = seek(state, run, SMALLEST_SHARE if measured else FIRST, n, rng)
    if i < 0:
        take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
        run.untried[n] = False
        return False
    share = _share_there(state, run, n, i)
    if share <= run.bound[n] * (1.0 + SAME):
        return True
    run.bound[n] = share
    return False


@step()
def next_stream(state, run, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is, -1 if no task fits any more."""
    while True:
        smallest = math.inf
        for k in range(run.progress[IN_POOL]):
            smallest = min(smallest, run.bound[run.pool[k]])
        if smallest == math.inf:
            return -1
        highest = smallest * (1.0 + SAME)
        if not state.random_ties:
            n = _first_of_all(run, highest, run.bound)
            if _still(state, run, n, rng):
                return n
            continue
        number = _first_of_owners(state, run, highest, run.bound)
        true = True
        for k in range(number):
            true &= _still(state, run, state.tied[k], rng)
        if true:
            return state.tied[draw(rng, number)]


@step()
def drop_those_without(state, run, i):  # type: ignore[no-untyped-def]
    """Something was placed on server i: take those who hoped for it, and have no other that was freed, out of the pool."""
    freed = run.freed[: run.progress[FREED]]
    k = 0
    while k < run.progress[IN_POOL]:
        n = run.pool[k]
        if not run.untried[n] and freed[state.first[n]] == i:
            state.first[n] = first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, state.first[n])
            if state.first[n] == freed.size:
                take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
                continue
        k += 1


@step()
def gather(state, run):  # type: ignore[no-untyped-def]
    """Put the streams of which a task may fit now into the pool; return whether one of them was never tried."""
    run.progress[IN_POOL] = 0
    sort_freed(run)
    freed = run.freed[: run.progress[FREED]]
    untried = False
    for k in range(run.progress[IN_LINE]):
        n = run.line[k]
        hope = run.untried[n]
        if hope:
            untried = True
            state.first[n] = state.rank[n] = state.rank_server[n] = 0
        else:
            state.first[n] = first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, 0)
            hope = state.first[n] < freed.size
        if hope:
            run.pool_at[n] = run.progress[IN_POOL]
            run.pool[run.pool_at[n]] = n
            run.progress[IN_POOL] += 1
            run.bound[n] = _share_of(state, run, run.owner[n]) if state.measure == OWN else 0.0
    return untried


@step(inline="always")
def next_on_server(state, run, i, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is on server i, -1 if no task of the pool fits there."""
    smallest = math.inf
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        state.shares[n] = _share_there(state, run, n, i) if fits_there(state, n, i) else math.inf
        smallest = min(smallest, state.shares[n])
    if smallest == math.inf:
        return -1
    highest = smallest * (1.0 + SAME)
    if state.random_ties:
        return state.tied[draw(rng, _first_of_owners(state, run, highest, state.shares))]
    return _first_of_all(run, highest, state.shares)
