"""The steps of progressive filling, compiled by numba: the choice of the user, the choice of the server, and the placement of one task.

A placement changes one server, and only reduces its free resources. This makes filling fast:

* A server that a user's task does not fit on never fits it later. Searches in a fixed order (`first-fit`, the smallest share of a
  server-specific criterion) continue from the last position.
* A user whose task fits on no server is finished.
* The share of a user only rises, also the smallest share over servers of a server-specific criterion. So an earlier share is a lower bound,
  and is recomputed only when its user is the lowest.
* Other placements score every server, in blocks whose loops become vector instructions if the score allows. (A cache of the best servers of
  each user was slower: the placements of other users invalidate it before the user's next turn.)

A tree of minima holds the shares, in the order in which ties are broken, and finds the lowest user in O(log N). Memory is linear in users,
servers, and the users x rows of the instance.

Rounding. Usage is a compensated sum of demands: its error does not grow with the number of tasks, and stays far below ``FITS``. Shares are
products of a whole number and a constant (or sums of such products, if the share of a task depends on the server), far more accurate than
``TIE``. Scores are compared in steps of 1e-9, which makes equality of scores transitive. Equal scores go to the first server.

All compiled steps are in this file, and constants of other modules are repeated here: numba's cache recompiles only when this file changes,
and ignores changes in other files. A test compares the constants. (The steps over time are in this file too, because they call the same
functions. In a second file, they would keep an old version of a changed function.)
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = [
    *("advance", "close_absent", "fill", "fill_by_server", "fitting", "next_user", "place"),
]

_STEP = 1e9  # scores are compared in steps of its inverse
_OFFSET = 0.2718  # steps end where no simple fraction lies, so that equal scores do not fall on two sides

_CLOSED = 1e30  # "usage" of a server that is not there: nothing fits on it

# Of fairopt.program.filling and fairopt.program.events:
FITS, TIE = 1e-9, 1e-12
OWN, SERVER, RESIDUAL = range(3)
FIRST, RANDOM, SMALLEST_SHARE, L1, L2, COSINE, DOT, TIGHTEST, LOOSEST, LARGEST_RESIDUAL = range(10)
LEAVE, JOIN, REMOVE, ADD, SUBMIT = range(5)

# What ``progress`` holds, of fairopt.solvers.filling.state and fairopt.solvers.filling.event_state:
ROUND_AT, ROUND_LENGTH, BLOCKED_BY = range(3)
EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED = range(6)


# Fitting and scores --------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _column(array, row):  # type: ignore[no-untyped-def]
    """Return the column of a row of servers in an array that has one for all of them, or one each."""
    return row if array.shape[1] > 1 else 0


@njit(cache=True)
def _fits(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Does a task of n fit on server i of this row? k is the column of its demand.

    It is given arrays, and not the state: to hand that on, 28 arrays, costs more than the test.
    """
    for r in range(used.shape[1]):  # noqa: SIM110
        if used[i, r] + demand[n, k, r] > capacity[row, r] * (1.0 + FITS):
            return False
    return True


@njit(cache=True)
def _score(rule, used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Return how badly the server suits a task that fits on it, by the rules that are not scored in blocks."""
    score = 0.0
    if rule == L2:
        p = _pivot(demand, n, k)
        free = max(capacity[row, p] - used[i, p], demand[n, k, p])  # it fits: less is rounding
        for r in range(used.shape[1]):
            apart = demand[n, k, r] / demand[n, k, p] - (capacity[row, r] - used[i, r]) / free
            score += apart * apart
    elif rule == DOT:
        for r in range(used.shape[1]):
            if capacity[row, r] > 0.0:
                score -= demand[n, k, r] / capacity[row, r] * (1.0 - used[i, r] / capacity[row, r])
    else:  # COSINE
        dot = length = room = 0.0
        for r in range(used.shape[1]):
            free = max(capacity[row, r] - used[i, r], 0.0)
            dot += demand[n, k, r] * free
            length += demand[n, k, r] * demand[n, k, r]
            room += free * free
        score = -dot / math.sqrt(length * room) if room > 0.0 else 0.0
    return score


@njit(cache=True)
def _pivot(demand, n, k):  # type: ignore[no-untyped-def]
    """Return the first resource that the user demands. (The metric is printed with resource 1, of which a demand may be 0.)"""
    p = 0
    while demand[n, k, p] == 0.0:
        p += 1
    return p


@njit(cache=True)
def _room(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Return min_r residual[r] / d[r], the tasks that what is left of the server would hold."""
    room = math.inf
    for r in range(used.shape[1]):
        if demand[n, k, r] > 0.0:
            room = min(room, max(capacity[row, r] - used[i, r], demand[n, k, r]) / demand[n, k, r])  # it fits: less than 1 is rounding
    return room


# Which server --------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _first_fit(state, n):  # type: ignore[no-untyped-def]
    i = state.first[n]
    while i < state.row.size:
        row = state.row[i]
        if not state.eligible[n, row]:
            i = state.start[row + 1]
        elif _fits(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row)):
            break
        else:
            i += 1
    state.first[n] = i
    return i if i < state.row.size else -1


@njit(cache=True)
def _smallest_share(state, n):  # type: ignore[no-untyped-def]
    """Return the first server that fits, in the user's own order of the rows: where w[n,i] is smallest."""
    rows = state.rows_by_worth[n if state.rows_by_worth.shape[0] > 1 else 0]
    while state.rank[n] < rows.size:
        row = rows[state.rank[n]]
        if state.eligible[n, row]:
            low = state.start[row]
            k = _column(state.demand, row)
            for i in range(low + state.rank_server[n], state.start[row + 1]):
                if _fits(state.used, i, state.capacity, row, state.demand, n, k):
                    state.rank_server[n] = i - low
                    return i
        state.rank[n] += 1
        state.rank_server[n] = 0
    return -1


@njit(cache=True)
def _l1_scores(free, inverse, ratio, p, low, scores):  # type: ignore[no-untyped-def]
    """Score the servers from ``low`` on by the metric of the DRFH paper, resource by resource: the loops become vector instructions."""
    part = inverse[p, low : low + scores.size]
    scores[:] = 0.0
    for r in range(ratio.size):
        if r != p:
            room, wanted = free[r, low : low + scores.size], ratio[r]  # slices: a sum of indices keeps the compiler from vectors
            for j in range(scores.size):
                scores[j] += abs(wanted - room[j] * part[j])


@njit(cache=True)
def _free_scores(free, sign, low, scores):  # type: ignore[no-untyped-def]
    """The same by the sum of what is free (sign 1: the least is best) or its negative."""
    scores[:] = 0.0
    for r in range(free.shape[0]):
        room = free[r, low : low + scores.size]
        for j in range(scores.size):
            scores[j] += sign * room[j]


@njit(cache=True)
def _residual_scores(free, demand, n, k, low, scores):  # type: ignore[no-untyped-def]
    """The same by -min_r residual[r] / d[r]: what `_room` says of one server."""
    scores[:] = -math.inf
    for r in range(free.shape[0]):
        wanted = demand[n, k, r]
        if wanted > 0.0:
            room = free[r, low : low + scores.size]
            for j in range(scores.size):
                scores[j] = max(scores[j], -(max(room[j], wanted) / wanted))


@njit(cache=True)
def _score_block(state, rule, n, k, p, low, scores):  # type: ignore[no-untyped-def]
    """Score the servers from ``low`` on by any rule that has a score; k is the column of the demand, p its pivot."""
    if rule == L1:
        _l1_scores(state.free, state.inverse, state.ratio, p, low, scores)
    elif rule in (TIGHTEST, LOOSEST):
        _free_scores(state.free, 1.0 if rule == TIGHTEST else -1.0, low, scores)
    elif rule == LARGEST_RESIDUAL:
        _residual_scores(state.free, state.demand, n, k, low, scores)
    else:
        for j in range(scores.size):
            scores[j] = _score(rule, state.used, low + j, state.capacity, state.row[low + j], state.demand, n, k)


@njit(cache=True)
def _next_score(score):  # type: ignore[no-untyped-def]
    """Return what a score must be below to be better than this one by a step."""
    return (math.floor(score * _STEP + _OFFSET) - _OFFSET) / _STEP


@njit(cache=True)
def _search(state, rule, n):  # type: ignore[no-untyped-def]
    """Return the server with the best score that fits, -1 if none does. Only what scores better than the best so far is tested."""
    used, capacity, demand, ratio, scores = state.used, state.capacity, state.demand, state.ratio, state.scores
    row_of, eligible = state.row, state.eligible[n]
    best, lower = -1, math.inf  # the best server, and what a score must be below to be better by a step
    for segment in range(state.segment.size - 1):
        first, end = state.segment[segment], state.segment[segment + 1]
        row = row_of[first]
        k = _column(demand, row)
        if state.start[row] == first and state.start[row + 1] == end:  # one row: after its first empty server all are like that one
            if not eligible[row]:
                continue
            end = min(state.begun[row] + 1, end)
        p = _pivot(demand, n, k)
        if rule == L1:
            for r in range(ratio.size):
                ratio[r] = demand[n, k, r] / demand[n, k, p]
        for low in range(first, end, state.scores.size):
            number = min(state.scores.size, end - low)
            _score_block(state, rule, n, k, p, low, scores[:number])
            for j in range(number):
                if scores[j] < lower and eligible[row_of[low + j]] and _fits(used, low + j, capacity, row_of[low + j], demand, n, k):
                    best = low + j
                    lower = _next_score(scores[j])
    return best


@njit(cache=True)
def fitting(state, n):  # type: ignore[no-untyped-def]
    """Return the servers that a task of user n fits on, ascending."""
    found = np.empty(state.row.size, np.int64)
    number = 0
    for row in range(state.capacity.shape[0]):
        if state.eligible[n, row]:
            k = _column(state.demand, row)
            for i in range(state.start[row], state.start[row + 1]):
                if _fits(state.used, i, state.capacity, row, state.demand, n, k):
                    found[number] = i
                    number += 1
    return found[:number]


@njit(cache=True)
def choose(state, n, rng):  # type: ignore[no-untyped-def]
    """Return the server of the user's next task, -1 if none fits."""
    if state.rule == FIRST or (state.rule == SMALLEST_SHARE and (state.measure == OWN or state.total[n] == 0)):
        return _first_fit(state, n)
    if state.rule == RANDOM:
        servers = fitting(state, n)
        return servers[_draw(rng, servers.size)] if servers.size else -1
    if state.rule == SMALLEST_SHARE:
        return _smallest_share(state, n) if state.measure == SERVER else state.found[n]  # nothing was placed since `next_user` found it
    return _search(state, state.rule, n)


# Whose turn ----------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _draw(rng, number):  # type: ignore[no-untyped-def]
    """Return one of 0, ..., number - 1; nothing is drawn where there is no choice."""
    return min(int(rng.random() * number), number - 1) if number > 1 else 0


@njit(cache=True)
def _set_share(state, n, share):  # type: ignore[no-untyped-def]
    node = state.tree.size // 2 + state.leaf[n]
    state.tree[node] = share
    node //= 2
    while node > 0:
        state.tree[node] = min(state.tree[2 * node], state.tree[2 * node + 1])
        node //= 2


@njit(cache=True)
def _retire(state, n):  # type: ignore[no-untyped-def]
    """Nothing more for this user."""
    state.wanted[n] = 0
    _set_share(state, n, math.inf)


@njit(cache=True)
def _find_tied(state):  # type: ignore[no-untyped-def]
    """Put the users with the smallest share into ``tied``, in order (only the first, unless one is drawn); return how many."""
    tree, leaves = state.tree, state.tree.size // 2
    if tree[1] == math.inf:
        return 0
    highest = tree[1] * (1.0 + TIE)
    node = 1
    number = 0
    while node > 0:
        if tree[node] <= highest and node < leaves:
            node *= 2  # down to the left
            continue
        if tree[node] <= highest:
            state.tied[number] = state.order[node - leaves]
            number += 1
            if not state.random_ties:
                break
        while node & 1:  # up, as long as this is a right child (or the root)
            node //= 2
        if node > 0:
            node += 1  # over to the right
    return number


@njit(cache=True)
def _share_at(state, n, i):  # type: ignore[no-untyped-def]
    """Return the user's share in the eyes of the server."""
    if state.measure == OWN:
        return state.tree[state.tree.size // 2 + state.leaf[n]]
    if state.total[n] == 0:
        return 0.0
    worth = state.worth[n, _column(state.worth, state.row[i])]
    if state.measure == RESIDUAL:
        row = state.row[i]
        worth /= _room(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row))
    return state.total[n] * worth


@njit(cache=True)
def _refresh(state, n):  # type: ignore[no-untyped-def]
    """Is what the tree says of the user still true? If not, mend it: a server-specific share is the smallest where a task fits."""
    if state.measure == OWN or state.total[n] == 0:
        i = _first_fit(state, n)
    else:
        i = _smallest_share(state, n) if state.measure == SERVER else _search(state, LARGEST_RESIDUAL, n)
        state.found[n] = i
    if i < 0:
        _retire(state, n)
        return False
    share = _share_at(state, n, i)
    if share <= state.tree[state.tree.size // 2 + state.leaf[n]] * (1.0 + TIE):
        return True
    _set_share(state, n, share)
    return False


@njit(cache=True)
def next_user(state, rng):  # type: ignore[no-untyped-def]
    """Return the user with the smallest share whose task fits, -1 if no task fits. With ``first_block``, its task need not fit."""
    while True:
        number = _find_tied(state)
        if number == 0:
            return -1
        true = True
        if not state.first_block:
            for k in range(number):
                true &= _refresh(state, state.tied[k])
        if true:
            return state.tied[_draw(rng, number)]


@njit(cache=True, inline="always")
def _hold(state, n, i, sign):  # type: ignore[no-untyped-def]
    """Let a task of the user take its demand of the server (sign 1), or give it back (-1)."""
    row = state.row[i]
    column = _column(state.demand, row)
    for r in range(state.capacity.shape[1]):
        more = sign * state.demand[n, column, r] - state.lost[i, r]
        total = state.used[i, r] + more
        state.lost[i, r] = (total - state.used[i, r]) - more
        _set_used(state, i, r, total)


@njit(cache=True, inline="always")
def _set_used(state, i, r, total):  # type: ignore[no-untyped-def]
    state.used[i, r] = total
    free = state.capacity[state.row[i], r] - total
    state.free[r, i] = free
    state.inverse[r, i] = 1.0 / free if free > 0.0 else 0.0


@njit(cache=True)
def place(state, n, i):  # type: ignore[no-untyped-def]
    """Place one task of user n on server i."""
    row = state.row[i]
    _hold(state, n, i, 1.0)
    state.begun[row] = max(state.begun[row], i + 1)
    state.total[n] += 1
    state.tasks[n, row] += 1
    state.wanted[n] -= 1
    if state.wanted[n] == 0:
        _retire(state, n)
    elif state.measure == OWN and state.worth.shape[1] == 1:
        _set_share(state, n, state.total[n] * state.worth[n, 0])
    elif state.measure == OWN:
        share = 0.0
        for j in range(state.worth.shape[1]):
            if state.tasks[n, j] > 0:
                share += state.tasks[n, j] * state.worth[n, j]
        _set_share(state, n, share)
    # Otherwise the tree keeps the share from before this task, a lower bound, until the user is the lowest.


# Running -------------------------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def fill(state, rng, users, servers):  # type: ignore[no-untyped-def]
    """Place tasks, choosing the user and then the server, until ``users`` and ``servers`` are full or no task fits; return their number."""
    placed = 0
    while placed < users.size:
        n = next_user(state, rng)
        if n < 0:
            break
        i = choose(state, n, rng)
        if i < 0:  # only where the first block ends it all
            state.progress[BLOCKED_BY] = n
            break
        place(state, n, i)
        users[placed] = n
        servers[placed] = i
        placed += 1
    return placed


@njit(cache=True, nogil=True)
def fill_by_server(state, rng, users, servers):  # type: ignore[no-untyped-def]
    """As `fill`, but choose the server first, at random or in rounds of a random order, then the lowest user whose task fits on it."""
    placed = 0
    progress = state.progress
    while placed < users.size:
        if progress[ROUND_AT] == progress[ROUND_LENGTH]:
            number = 0
            for i in state.open:
                if i >= 0:
                    state.open[number] = i
                    number += 1
            state.open[number:] = -1
            for k in range(number - 1, 0, -1):
                other = _draw(rng, k + 1)
                state.open[k], state.open[other] = state.open[other], state.open[k]
                if state.rule == RANDOM:  # rounds of one server
                    break
            progress[ROUND_AT] = number - 1 if state.rule == RANDOM and number > 0 else 0
            progress[ROUND_LENGTH] = number
            if number == 0:
                break
        at = progress[ROUND_AT]
        i = state.open[at]
        progress[ROUND_AT] += 1
        smallest = math.inf
        row = state.row[i]
        column = _column(state.demand, row)
        for n in range(state.wanted.size):
            state.shares[n] = math.inf
            if state.wanted[n] > 0 and state.eligible[n, row] and _fits(state.used, i, state.capacity, row, state.demand, n, column):
                state.shares[n] = _share_at(state, n, i)
                smallest = min(smallest, state.shares[n])
        if smallest == math.inf:
            state.open[at] = -1  # nobody fits, and nobody will
            continue
        number = 0
        for n in state.order:
            if state.shares[n] <= smallest * (1.0 + TIE):
                state.tied[number] = n
                number += 1
        n = state.tied[_draw(rng, number) if state.random_ties else 0]
        place(state, n, i)
        users[placed] = n
        servers[placed] = i
        placed += 1
    return placed


# Over time ------------------------------------------------------------------------------------------------------------------------
#
# A moment is all that happens at one time: tasks end, users and servers come and go, jobs are submitted; then progressive filling goes on.
# A stream whose task fitted nowhere can only fit on a server where something was given back since: it is tried on those few, and not on
# all. (600,000 tasks on 2,000 servers: 10 us a task.)


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
def _pop(run):  # type: ignore[no-untyped-def]
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


@njit(cache=True, inline="always")
def _free(run, i):  # type: ignore[no-untyped-def]
    """There is more room on this server than before."""
    if not run.is_freed[i]:
        run.is_freed[i] = True
        run.freed[run.progress[FREED]] = i
        run.progress[FREED] += 1


@njit(cache=True)
def _queue(run, n):  # type: ignore[no-untyped-def]
    """Put a stream into the line if it has tasks that wait, and its owner is there."""
    if run.line_at[n] < 0 and run.head[n] < run.arrived[n] and run.present[run.owner[n]]:
        run.line_at[n] = run.progress[IN_LINE]
        run.line[run.line_at[n]] = n
        run.progress[IN_LINE] += 1
        run.untried[n] = True


@njit(cache=True, inline="always")
def _take_out(members, at, progress, which, n):  # type: ignore[no-untyped-def]
    """Take a stream out of the line or the pool: the last one takes its place."""
    k = at[n]
    if k >= 0:
        progress[which] -= 1
        last = members[progress[which]]
        members[k] = last
        at[last] = k
        at[n] = -1


@njit(cache=True)
def _end(state, run, task):  # type: ignore[no-untyped-def]
    """A task ends, and its server has its demand back."""
    n, i = run.stream[run.job_of[task]], run.server[task]
    row, u = state.row[i], run.owner[n]
    run.number[i] -= 1
    if run.closed[i]:
        k = _column(state.demand, row)
        for r in range(state.used.shape[1]):
            run.kept[i, r] -= state.demand[n, k, r]
    else:
        _hold(state, n, i, -1.0)
        if run.number[i] == 0:  # rounding leaves nothing behind
            for r in range(state.used.shape[1]):
                state.lost[i, r] = 0.0
                _set_used(state, i, r, 0.0)
        _free(run, i)
    run.running[u] -= 1
    state.total[n] -= 1
    state.tasks[n, row] -= 1
    run.share[u] = -1.0


@njit(cache=True)
def _change(state, run, event):  # type: ignore[no-untyped-def]
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
                _take_out(run.line, run.line_at, run.progress, IN_LINE, run.streams[k])
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
                        _set_used(state, i, r, _CLOSED)
                    else:
                        state.lost[i, r] = 0.0
                        _set_used(state, i, r, run.kept[i, r] if run.number[i] > 0 else 0.0)
                if kind == ADD:
                    _free(run, i)


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
def _share_there(state, run, n, i):  # type: ignore[no-untyped-def]
    """Return the owner's share in the eyes of the server, as to a task of this stream."""
    u = run.owner[n]
    if state.measure == OWN:
        return _share_of(state, run, u)
    if run.running[u] == 0:
        return 0.0
    row = state.row[i]
    worth = state.worth[n, _column(state.worth, row)]
    if state.measure == RESIDUAL:
        worth /= _room(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row))
    return run.running[u] * worth


@njit(cache=True, inline="always")
def _fits_there(state, n, i):  # type: ignore[no-untyped-def]
    row = state.row[i]
    return state.eligible[n, row] and _fits(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row))


@njit(cache=True)
def _seek(state, run, rule, n, rng):  # type: ignore[no-untyped-def]
    """Return the server for a task of the stream by a rule, -1 if it fits on none."""
    if rule == SMALLEST_SHARE:
        if state.measure == OWN or run.running[run.owner[n]] == 0:
            rule = FIRST
        elif state.measure == RESIDUAL:
            rule = LARGEST_RESIDUAL
    if run.untried[n]:
        if rule == FIRST:
            return _first_fit(state, n)
        if rule == SMALLEST_SHARE:
            return _smallest_share(state, n)
        if rule == RANDOM:
            servers = fitting(state, n)
            return servers[_draw(rng, servers.size)] if servers.size else -1
        return _search(state, rule, n)
    return _seek_freed(state, run, rule, n, rng)


@njit(cache=True)
def _seek_freed(state, run, rule, n, rng):  # type: ignore[no-untyped-def]
    """The same among the servers that were freed; on those before ``state.first`` it does not fit."""
    freed = run.freed[state.first[n] : run.progress[FREED]]
    if rule == SMALLEST_SHARE:
        for row in state.rows_by_worth[n if state.rows_by_worth.shape[0] > 1 else 0]:
            for i in freed:
                if state.row[i] == row and _fits_there(state, n, i):
                    return i
        return -1
    if rule == RANDOM:
        number = 0
        for i in freed:
            number += _fits_there(state, n, i)
        drawn = _draw(rng, number)
        for i in freed:
            if _fits_there(state, n, i):
                if drawn == 0:
                    return i
                drawn -= 1
        return -1
    best, lower = -1, math.inf
    for i in freed:
        if not _fits_there(state, n, i):
            continue
        if rule == FIRST:
            return i
        k = _column(state.demand, state.row[i])
        p = _pivot(state.demand, n, k)
        if rule == L1:
            for r in range(state.ratio.size):
                state.ratio[r] = state.demand[n, k, r] / state.demand[n, k, p]
        score = state.scores[:1]
        _score_block(state, rule, n, k, p, i, score)
        if score[0] < lower:
            best, lower = i, _next_score(score[0])
    return best


@njit(cache=True, inline="always")
def _before(run, n, other):  # type: ignore[no-untyped-def]
    """Is this stream before the other, of those with the same share?"""
    if run.rank[n] != run.rank[other]:
        return run.rank[n] < run.rank[other]
    return run.jobs[run.head[n]] < run.jobs[run.head[other]]


@njit(cache=True)
def _first_of_owners(state, run, highest, shares):  # type: ignore[no-untyped-def]
    """Put the first stream of each owner whose share is no higher into ``state.tied``, owner by owner; return how many."""
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        u = run.owner[n]
        if shares[n] <= highest and (run.best[u] < 0 or _before(run, n, run.best[u])):
            run.best[u] = n
    number = 0
    for u in range(run.best.size):
        if run.best[u] >= 0:
            state.tied[number] = run.best[u]
            number += 1
            run.best[u] = -1
    return number


@njit(cache=True)
def _first_of_all(run, highest, shares):  # type: ignore[no-untyped-def]
    """Return the first stream of those whose share is no higher."""
    first = -1
    for k in range(run.progress[IN_POOL]):
        n = run.pool[k]
        if shares[n] <= highest and (first < 0 or _before(run, n, first)):
            first = n
    return first


@njit(cache=True)
def _still(state, run, n, rng):  # type: ignore[no-untyped-def]
    """Does a task of the stream still fit, and is its share still what was thought? If not, mend it."""
    measured = state.measure != OWN and run.running[run.owner[n]] > 0
    i = _seek(state, run, SMALLEST_SHARE if measured else FIRST, n, rng)
    if i < 0:
        _take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
        run.untried[n] = False
        return False
    share = _share_there(state, run, n, i)
    if share <= run.bound[n] * (1.0 + TIE):
        return True
    run.bound[n] = share
    return False


@njit(cache=True)
def _next_stream(state, run, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is, -1 if no task fits any more."""
    while True:
        smallest = math.inf
        for k in range(run.progress[IN_POOL]):
            smallest = min(smallest, run.bound[run.pool[k]])
        if smallest == math.inf:
            return -1
        highest = smallest * (1.0 + TIE)
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
            return state.tied[_draw(rng, number)]


@njit(cache=True)
def _start(state, run, n, i, now):  # type: ignore[no-untyped-def]
    """Start the next task of the stream on the server."""
    row, u = state.row[i], run.owner[n]
    _hold(state, n, i, 1.0)
    state.begun[row] = max(state.begun[row], i + 1)
    run.number[i] += 1
    job = run.jobs[run.head[n]]
    task = run.next_task[job]
    run.next_task[job] += 1
    run.start[task], run.server[task] = now, i
    end = now + run.durations[task if run.each_task else job]
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
            _take_out(run.line, run.line_at, run.progress, IN_LINE, n)
            _take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)


@njit(cache=True)
def _first_freed(used, capacity, row_of, demand, eligible, n, freed, at):  # type: ignore[no-untyped-def]
    """Return the position, from ``at`` on, of the first freed server on which the stream's task fits; arrays, as in `_fits`."""
    while at < freed.size:
        i = freed[at]
        row = row_of[i]
        if eligible[n, row] and _fits(used, i, capacity, row, demand, n, _column(demand, row)):
            break
        at += 1
    return at


@njit(cache=True)
def _drop_those_without(state, run, i):  # type: ignore[no-untyped-def]
    """Something was placed on server i: take those who hoped for it, and have no other that was freed, out of the pool."""
    freed = run.freed[: run.progress[FREED]]
    k = 0
    while k < run.progress[IN_POOL]:
        n = run.pool[k]
        if not run.untried[n] and freed[state.first[n]] == i:
            state.first[n] = _first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, state.first[n])
            if state.first[n] == freed.size:
                _take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
                continue
        k += 1


@njit(cache=True)
def _gather(state, run):  # type: ignore[no-untyped-def]
    """Put the streams of which a task may fit now into the pool; return whether one of them was never tried."""
    run.progress[IN_POOL] = 0
    freed = np.sort(run.freed[: run.progress[FREED]])
    run.freed[: freed.size] = freed
    untried = False
    for k in range(run.progress[IN_LINE]):
        n = run.line[k]
        hope = run.untried[n]
        if hope:
            untried = True
            state.first[n] = state.rank[n] = state.rank_server[n] = 0
        else:
            state.first[n] = _first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, 0)
            hope = state.first[n] < freed.size
        if hope:
            run.pool_at[n] = run.progress[IN_POOL]
            run.pool[run.pool_at[n]] = n
            run.progress[IN_POOL] += 1
            run.bound[n] = _share_of(state, run, run.owner[n]) if state.measure == OWN else 0.0
    return untried


@njit(cache=True)
def _start_by_server(state, run, rng, now, untried):  # type: ignore[no-untyped-def]
    """Server first, as `fill_by_server`: in rounds of a random order (or a random one each time) of the servers that may have room."""
    number = state.open.size if untried else run.progress[FREED]
    for k in range(number):
        state.open[k] = k if untried else run.freed[k]
    while True:
        open_servers = 0
        for k in range(number):
            if state.open[k] >= 0:
                state.open[open_servers] = state.open[k]
                open_servers += 1
        number = open_servers
        if number == 0:
            break
        for k in range(number - 1, 0, -1):
            other = _draw(rng, k + 1)
            state.open[k], state.open[other] = state.open[other], state.open[k]
            if state.rule == RANDOM:
                break
        for at in range(number - 1 if state.rule == RANDOM else 0, number):
            i = state.open[at]
            smallest = math.inf
            for k in range(run.progress[IN_POOL]):
                n = run.pool[k]
                state.shares[n] = _share_there(state, run, n, i) if _fits_there(state, n, i) else math.inf
                smallest = min(smallest, state.shares[n])
            if smallest == math.inf:
                state.open[at] = -1
                continue
            highest = smallest * (1.0 + TIE)
            if state.random_ties:
                n = state.tied[_draw(rng, _first_of_owners(state, run, highest, state.shares))]
            else:
                n = _first_of_all(run, highest, state.shares)
            _start(state, run, n, i, now)


@njit(cache=True)
def close_absent(state, run):  # type: ignore[no-untyped-def]
    """Close the servers that are not present at the beginning."""
    for i in range(state.row.size):
        if run.closed[i]:
            for r in range(state.used.shape[1]):
                _set_used(state, i, r, _CLOSED)


@njit(cache=True, nogil=True)
def advance(state, run, rng, server_first, until, most):  # type: ignore[no-untyped-def]
    """Process at most ``most`` moments; return the time of the next moment; inf, or a time after ``until``, at the end."""
    progress = run.progress
    for passed in range(most + 1):
        now = run.ends[0] if progress[RUNNING] > 0 else math.inf
        if progress[EVENT] < run.times.size:
            now = min(now, run.times[progress[EVENT]])
        if now == math.inf or now > until or passed == most:
            return now
        progress[FREED] = 0
        while progress[RUNNING] > 0 and run.ends[0] == now:
            _end(state, run, _pop(run))
        while progress[EVENT] < run.times.size and run.times[progress[EVENT]] == now:
            _change(state, run, progress[EVENT])
            progress[EVENT] += 1
        untried = _gather(state, run)
        if server_first:
            _start_by_server(state, run, rng, now, untried)
        else:
            while True:
                n = _next_stream(state, run, rng)
                if n < 0:
                    break
                i = _seek(state, run, state.rule, n, rng)
                _start(state, run, n, i, now)
                _drop_those_without(state, run, i)
        for k in range(progress[IN_POOL]):  # nothing of theirs fits any more
            run.untried[run.pool[k]] = False
            run.pool_at[run.pool[k]] = -1
        for k in range(progress[FREED]):
            run.is_freed[run.freed[k]] = False
    return math.inf
