"""Which server gets the next task of a user: where it fits, and how well each server suits it.

A server that a user's task does not fit on never fits it later, so searches in a fixed order (`first-fit`, the smallest share of a
server-specific criterion) continue from the last position. Other rules score every server, in blocks whose loops become vector instructions
if the score allows. (A cache of the best servers of each user was slower: the placements of other users invalidate it before the user's
next turn.) Scores are compared in steps of 1e-9, which makes equality of scores transitive. Equal scores go to the first server.
"""

from __future__ import annotations

import math

from fairopt.instance.tolerances import FITS
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.codes import (
    DOT,
    FASTEST,
    FIRST,
    L1,
    L2,
    LARGEST_RESIDUAL,
    LOOSEST,
    OWN,
    RANDOM,
    SERVER,
    SMALLEST_SHARE,
    TIGHTEST,
)

__all__ = [
    "choose",
    "column_of",
    "draw",
    "first_fit",
    "first_freed",
    "fits",
    "fits_on_row",
    "fits_on_rows",
    "fits_there",
    "fitting",
    "next_score",
    "pivot",
    "room_for",
    "score_block",
    "search",
    "smallest_share",
]

_STEP = 1e9  # scores are compared in steps of its inverse
_OFFSET = 0.2718  # steps end where no simple fraction lies, so that equal scores do not fall on two sides


@step()
def column_of(array, row):  # type: ignore[no-untyped-def]
    """Return the column of a row of servers in an array that has one for all of them, or one each."""
    return row if array.shape[1] > 1 else 0


@step()
def fits(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Does a task of n fit on server i of this row? k is the column of its demand.

    It is given arrays, and not the state: to hand that on, 28 arrays, costs more than the test.
    """
    for r in range(used.shape[1]):  # noqa: SIM110
        if used[i, r] + demand[n, k, r] > capacity[row, r] * (1.0 + FITS):
            return False
    return True


@step()
def _score(rule, used, i, capacity, row, demand, n, k, resources):  # type: ignore[no-untyped-def]
    """Return how badly the server suits a task that fits on it, by the rules that are not scored in blocks and the first resources."""
    score = 0.0
    if rule == L2:
        p = pivot(demand, n, k)
        free = max(capacity[row, p] - used[i, p], demand[n, k, p])  # it fits: less is rounding
        for r in range(resources):
            apart = demand[n, k, r] / demand[n, k, p] - (capacity[row, r] - used[i, r]) / free
            score += apart * apart
    elif rule == DOT:
        for r in range(resources):
            if capacity[row, r] > 0.0:
                score -= demand[n, k, r] / capacity[row, r] * (1.0 - used[i, r] / capacity[row, r])
    else:  # COSINE
        dot = length = room = 0.0
        for r in range(resources):
            free = max(capacity[row, r] - used[i, r], 0.0)
            dot += demand[n, k, r] * free
            length += demand[n, k, r] * demand[n, k, r]
            room += free * free
        score = -dot / math.sqrt(length * room) if room > 0.0 else 0.0
    return score


@step()
def pivot(demand, n, k):  # type: ignore[no-untyped-def]
    """Return the first resource that the user demands. (The metric is printed with resource 1, of which a demand may be 0.)"""
    p = 0
    while demand[n, k, p] == 0.0:
        p += 1
    return p


@step()
def room_for(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Return min_r residual[r] / d[r], the tasks that what is left of the server would hold."""
    room = math.inf
    for r in range(used.shape[1]):
        if demand[n, k, r] > 0.0:
            room = min(room, max(capacity[row, r] - used[i, r], demand[n, k, r]) / demand[n, k, r])  # it fits: less than 1 is rounding
    return room


@step()
def first_fit(state, n):  # type: ignore[no-untyped-def]
    """Return the first server on which a task of n fits, -1 if there is none; the next search begins there."""
    i = state.first[n]
    while i < state.row.size:
        row = state.row[i]
        if not state.eligible[n, row]:
            i = state.start[row + 1]
        elif fits(state.used, i, state.capacity, row, state.demand, n, column_of(state.demand, row)):
            break
        else:
            i += 1
    state.first[n] = i
    return i if i < state.row.size else -1


@step()
def smallest_share(state, n):  # type: ignore[no-untyped-def]
    """Return the first server that fits, in the user's own order of the rows: where w[n,i] is smallest."""
    rows = state.rows_by_worth[n if state.rows_by_worth.shape[0] > 1 else 0]
    while state.rank[n] < rows.size:
        row = rows[state.rank[n]]
        if state.eligible[n, row]:
            low = state.start[row]
            k = column_of(state.demand, row)
            for i in range(low + state.rank_server[n], state.start[row + 1]):
                if fits(state.used, i, state.capacity, row, state.demand, n, k):
                    state.rank_server[n] = i - low
                    return i
        state.rank[n] += 1
        state.rank_server[n] = 0
    return -1


@step()
def _l1_scores(free, inverse, ratio, p, low, scores):  # type: ignore[no-untyped-def]
    """Score the servers from ``low`` on by the metric of the DRFH paper, resource by resource: the loops become vector instructions."""
    part = inverse[p, low : low + scores.size]
    scores[:] = 0.0
    for r in range(ratio.size):
        if r != p:
            room, wanted = free[r, low : low + scores.size], ratio[r]  # slices: a sum of indices keeps the compiler from vectors
            for j in range(scores.size):
                scores[j] += abs(wanted - room[j] * part[j])


@step()
def _free_scores(free, sign, low, scores):  # type: ignore[no-untyped-def]
    """The same by the sum of what is free (sign 1: the least is best) or its negative."""
    scores[:] = 0.0
    for r in range(free.shape[0]):
        room = free[r, low : low + scores.size]
        for j in range(scores.size):
            scores[j] += sign * room[j]


@step()
def _residual_scores(free, demand, n, k, low, scores):  # type: ignore[no-untyped-def]
    """The same by -min_r residual[r] / d[r]: what `room_for` says of one server."""
    scores[:] = -math.inf
    for r in range(free.shape[0]):
        wanted = demand[n, k, r]
        if wanted > 0.0:
            room = free[r, low : low + scores.size]
            for j in range(scores.size):
                scores[j] = max(scores[j], -(max(room[j], wanted) / wanted))


@step()
def score_block(state, rule, n, k, p, low, scores):  # type: ignore[no-untyped-def]
    """Score the servers from ``low`` on by any rule that has a score; k is the column of the demand, p its pivot."""
    if rule == L1:
        _l1_scores(state.free, state.inverse, state.ratio, p, low, scores)
    elif rule in (TIGHTEST, LOOSEST):
        _free_scores(state.free, 1.0 if rule == TIGHTEST else -1.0, low, scores)
    elif rule == LARGEST_RESIDUAL:
        _residual_scores(state.free, state.demand, n, k, low, scores)
    elif rule == FASTEST:
        for j in range(scores.size):
            scores[j] = state.cost[n, column_of(state.cost, state.row[low + j])]
    else:
        for j in range(scores.size):
            scores[j] = _score(rule, state.used, low + j, state.capacity, state.row[low + j], state.demand, n, k, state.ratio.size)


@step()
def next_score(score):  # type: ignore[no-untyped-def]
    """Return what a score must be below to be better than this one by a step."""
    return (math.floor(score * _STEP + _OFFSET) - _OFFSET) / _STEP


@step()
def search(state, rule, n):  # type: ignore[no-untyped-def]
    """Return the server with the best score that fits, -1 if none does. Only what scores better than the best so far is tested."""
    used, capacity, demand, ratio, scores = state.used, state.capacity, state.demand, state.ratio, state.scores
    row_of, eligible = state.row, state.eligible[n]
    best, lower = -1, math.inf  # the best server, and what a score must be below to be better by a step
    for segment in range(state.segment.size - 1):
        first, end = state.segment[segment], state.segment[segment + 1]
        row = row_of[first]
        k = column_of(demand, row)
        if state.start[row] == first and state.start[row + 1] == end:  # one row: after its first empty server all are like that one
            if not eligible[row]:
                continue
            end = min(state.begun[row] + 1, end)
        p = 0
        if rule == L1:
            p = pivot(demand, n, k)
            for r in range(ratio.size):
                ratio[r] = demand[n, k, r] / demand[n, k, p]
        for low in range(first, end, state.scores.size):
            number = min(state.scores.size, end - low)
            score_block(state, rule, n, k, p, low, scores[:number])
            for j in range(number):
                if scores[j] < lower and eligible[row_of[low + j]] and fits(used, low + j, capacity, row_of[low + j], demand, n, k):
                    best = low + j
                    lower = next_score(scores[j])
    return best


@step()
def fitting(state, n):  # type: ignore[no-untyped-def]
    """Put the servers that a task of user n fits on into ``fits``, ascending; return how many."""
    number = 0
    for row in range(state.capacity.shape[0]):
        if state.eligible[n, row]:
            k = column_of(state.demand, row)
            for i in range(state.start[row], state.start[row + 1]):
                if fits(state.used, i, state.capacity, row, state.demand, n, k):
                    state.fits[number] = i
                    number += 1
    return number


@step()
def choose(state, n, rng):  # type: ignore[no-untyped-def]
    """Return the server of the user's next task, -1 if none fits."""
    if state.rule == FIRST or (state.rule == SMALLEST_SHARE and (state.measure == OWN or state.total[n] == 0)):
        return first_fit(state, n)
    if state.rule == RANDOM:
        number = fitting(state, n)
        return state.fits[draw(rng, number)] if number else -1
    if state.rule == SMALLEST_SHARE:
        return smallest_share(state, n) if state.measure == SERVER else state.found[n]  # nothing was placed since `next_user` found it
    return search(state, state.rule, n)


@step()
def draw(rng, number):  # type: ignore[no-untyped-def]
    """Return one of 0, ..., number - 1; nothing is drawn where there is no choice."""
    return min(int(rng.random() * number), number - 1) if number > 1 else 0


@step(inline="always")
def fits_there(state, n, i):  # type: ignore[no-untyped-def]
    """May a task of n run on server i, and does it fit?"""
    row = state.row[i]
    return state.eligible[n, row] and fits(state.used, i, state.capacity, row, state.demand, n, column_of(state.demand, row))


@step()
def first_freed(used, capacity, row_of, demand, eligible, n, freed, at):  # type: ignore[no-untyped-def]
    """Return the position, from ``at`` on, of the first freed server on which the stream's task fits; arrays, as in `fits`."""
    while at < freed.size:
        i = freed[at]
        row = row_of[i]
        if eligible[n, row] and fits(used, i, capacity, row, demand, n, column_of(demand, row)):
            break
        at += 1
    return at


@step()
def fits_on_rows(used, capacity, demand, row_of, start, eligible, rows, n, i):  # type: ignore[no-untyped-def]
    """Return the first server from i on, of these rows, on which a task of n fits; the number of servers if there is none."""
    while i < row_of.size:
        row = row_of[i]
        if not (rows[row] and eligible[n, row]):
            i = start[row + 1]
        elif fits(used, i, capacity, row, demand, n, column_of(demand, row)):
            break
        else:
            i += 1
    return i


@step()
def fits_on_row(used, capacity, demand, start, eligible, row, n, i):  # type: ignore[no-untyped-def]
    """Return the first server from i on, of this row, on which a task of n fits; the number of servers if there is none."""
    i = max(i, start[row])
    if eligible[n, row]:
        while i < start[row + 1]:
            if fits(used, i, capacity, row, demand, n, column_of(demand, row)):
                return i
            i += 1
    return start[start.size - 1]
