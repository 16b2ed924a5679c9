"""The steps of progressive filling: the choice of the user, the choice of the server, and the placement of one task.

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
``SAME``. Scores are compared in steps of 1e-9, which makes equality of scores transitive. Equal scores go to the first server.

All compiled steps are in this file, and constants of other modules are repeated here: numba's cache recompiles only when this file changes,
and ignores changes in other files. A test compares the constants. (The steps over time are in this file too, because they call the same
functions. In a second file, they would keep an old version of a changed function.)
"""

from __future__ import annotations

import math

from fairopt.solvers.compiled import step

__all__ = [
    *("advance", "close_absent", "fill", "fill_by_server", "fitting", "next_user", "place"),
    *("advance_in_tree", "bar", "choose_in_tree", "fill_tree", "fill_tree_by_server"),
    *("fitting_in_tree", "next_in_tree", "place_in_tree", "record", "resize", "settle"),
]

_OPTIONS = {"_nrt": False}  # no step allocates an array, so none counts references within: a third less to compile

_STEP = 1e9  # scores are compared in steps of its inverse
_OFFSET = 0.2718  # steps end where no simple fraction lies, so that equal scores do not fall on two sides

_CLOSED = 1e30  # "usage" of a server that is not there: nothing fits on it

# Of fairopt.instance.tolerances, fairopt.program.filling and fairopt.program.events:
FITS, SAME = 1e-9, 1e-12
OWN, SERVER, RESIDUAL = range(3)
FIRST, RANDOM, SMALLEST_SHARE, L1, L2, COSINE, DOT, TIGHTEST, LOOSEST, LARGEST_RESIDUAL = range(10)
LEAVE, JOIN, REMOVE, ADD, SUBMIT = range(5)
GUARANTEE, LIMIT, KEPT = range(3)

# What ``progress`` and ``marks`` hold, of fairopt.solvers.filling.state, event_state and queue_state:
ROUND_AT, ROUND_LENGTH, BLOCKED_BY = range(3)
EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED = range(6)
CHANGED, LEVEL = range(2)


# Fitting and scores --------------------------------------------------------------------------------------------------------------


@step()
def _column(array, row):  # type: ignore[no-untyped-def]
    """Return the column of a row of servers in an array that has one for all of them, or one each."""
    return row if array.shape[1] > 1 else 0


@step()
def _fits(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Does a task of n fit on server i of this row? k is the column of its demand.

    It is given arrays, and not the state: to hand that on, 28 arrays, costs more than the test.
    """
    for r in range(used.shape[1]):  # noqa: SIM110
        if used[i, r] + demand[n, k, r] > capacity[row, r] * (1.0 + FITS):
            return False
    return True


@step()
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


@step()
def _pivot(demand, n, k):  # type: ignore[no-untyped-def]
    """Return the first resource that the user demands. (The metric is printed with resource 1, of which a demand may be 0.)"""
    p = 0
    while demand[n, k, p] == 0.0:
        p += 1
    return p


@step()
def _room(used, i, capacity, row, demand, n, k):  # type: ignore[no-untyped-def]
    """Return min_r residual[r] / d[r], the tasks that what is left of the server would hold."""
    room = math.inf
    for r in range(used.shape[1]):
        if demand[n, k, r] > 0.0:
            room = min(room, max(capacity[row, r] - used[i, r], demand[n, k, r]) / demand[n, k, r])  # it fits: less than 1 is rounding
    return room


# Which server --------------------------------------------------------------------------------------------------------------------


@step()
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


@step()
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
    """The same by -min_r residual[r] / d[r]: what `_room` says of one server."""
    scores[:] = -math.inf
    for r in range(free.shape[0]):
        wanted = demand[n, k, r]
        if wanted > 0.0:
            room = free[r, low : low + scores.size]
            for j in range(scores.size):
                scores[j] = max(scores[j], -(max(room[j], wanted) / wanted))


@step()
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


@step()
def _next_score(score):  # type: ignore[no-untyped-def]
    """Return what a score must be below to be better than this one by a step."""
    return (math.floor(score * _STEP + _OFFSET) - _OFFSET) / _STEP


@step()
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


@step()
def fitting(state, n):  # type: ignore[no-untyped-def]
    """Put the servers that a task of user n fits on into ``fits``, ascending; return how many."""
    number = 0
    for row in range(state.capacity.shape[0]):
        if state.eligible[n, row]:
            k = _column(state.demand, row)
            for i in range(state.start[row], state.start[row + 1]):
                if _fits(state.used, i, state.capacity, row, state.demand, n, k):
                    state.fits[number] = i
                    number += 1
    return number


@step()
def choose(state, n, rng):  # type: ignore[no-untyped-def]
    """Return the server of the user's next task, -1 if none fits."""
    if state.rule == FIRST or (state.rule == SMALLEST_SHARE and (state.measure == OWN or state.total[n] == 0)):
        return _first_fit(state, n)
    if state.rule == RANDOM:
        number = fitting(state, n)
        return state.fits[_draw(rng, number)] if number else -1
    if state.rule == SMALLEST_SHARE:
        return _smallest_share(state, n) if state.measure == SERVER else state.found[n]  # nothing was placed since `next_user` found it
    return _search(state, state.rule, n)


# Whose turn ----------------------------------------------------------------------------------------------------------------------


@step()
def _draw(rng, number):  # type: ignore[no-untyped-def]
    """Return one of 0, ..., number - 1; nothing is drawn where there is no choice."""
    return min(int(rng.random() * number), number - 1) if number > 1 else 0


@step()
def _set_share(state, n, share):  # type: ignore[no-untyped-def]
    node = state.tree.size // 2 + state.leaf[n]
    state.tree[node] = share
    node //= 2
    while node > 0:
        state.tree[node] = min(state.tree[2 * node], state.tree[2 * node + 1])
        node //= 2


@step()
def _retire(state, n):  # type: ignore[no-untyped-def]
    """Nothing more for this user."""
    state.wanted[n] = 0
    _set_share(state, n, math.inf)


@step()
def _find_tied(state):  # type: ignore[no-untyped-def]
    """Put the users with the smallest share into ``tied``, in order (only the first, unless one is drawn); return how many."""
    tree, leaves = state.tree, state.tree.size // 2
    if tree[1] == math.inf:
        return 0
    highest = tree[1] * (1.0 + SAME)
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


@step()
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


@step()
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
    if share <= state.tree[state.tree.size // 2 + state.leaf[n]] * (1.0 + SAME):
        return True
    _set_share(state, n, share)
    return False


@step()
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


@step(inline="always")
def _hold(state, n, i, sign):  # type: ignore[no-untyped-def]
    """Let a task of the user take its demand of the server (sign 1), or give it back (-1)."""
    row = state.row[i]
    column = _column(state.demand, row)
    for r in range(state.capacity.shape[1]):
        more = sign * state.demand[n, column, r] - state.lost[i, r]
        total = state.used[i, r] + more
        state.lost[i, r] = (total - state.used[i, r]) - more
        _set_used(state, i, r, total)


@step(inline="always")
def _set_used(state, i, r, total):  # type: ignore[no-untyped-def]
    state.used[i, r] = total
    free = state.capacity[state.row[i], r] - total
    state.free[r, i] = free
    state.inverse[r, i] = 1.0 / free if free > 0.0 else 0.0


@step()
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


@step(nogil=True)
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


@step()
def _shuffle_open(state, number, rng):  # type: ignore[no-untyped-def]
    """Put those of the first servers that may have room into a random order, or draw one of them to the end; return how many there are."""
    found = 0
    for k in range(number):
        if state.open[k] >= 0:
            state.open[found] = state.open[k]
            found += 1
    for k in range(found - 1, 0, -1):
        other = _draw(rng, k + 1)
        state.open[k], state.open[other] = state.open[other], state.open[k]
        if state.rule == RANDOM:  # rounds of one server
            break
    return found


@step()
def _begin_round(state, rng):  # type: ignore[no-untyped-def]
    """Put the servers that may have room into a random order (or one of them first); return whether there are any."""
    progress = state.progress
    number = _shuffle_open(state, state.open.size, rng)
    state.open[number:] = -1
    progress[ROUND_AT] = number - 1 if state.rule == RANDOM and number > 0 else 0
    progress[ROUND_LENGTH] = number
    return number > 0


@step(nogil=True)
def fill_by_server(state, rng, users, servers):  # type: ignore[no-untyped-def]
    """As `fill`, but choose the server first, at random or in rounds of a random order, then the lowest user whose task fits on it."""
    placed = 0
    progress = state.progress
    while placed < users.size:
        if progress[ROUND_AT] == progress[ROUND_LENGTH] and not _begin_round(state, rng):
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
            if state.shares[n] <= smallest * (1.0 + SAME):
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
# all.


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
def _take_out(members, at, progress, which, n):  # type: ignore[no-untyped-def]
    """Take a stream out of the line or the pool: the last one takes its place."""
    k = at[n]
    if k >= 0:
        progress[which] -= 1
        last = members[progress[which]]
        members[k] = last
        at[last] = k
        at[n] = -1


@step()
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


@step()
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
    worth = state.worth[n, _column(state.worth, row)]
    if state.measure == RESIDUAL:
        worth /= _room(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row))
    return run.running[u] * worth


@step(inline="always")
def _fits_there(state, n, i):  # type: ignore[no-untyped-def]
    row = state.row[i]
    return state.eligible[n, row] and _fits(state.used, i, state.capacity, row, state.demand, n, _column(state.demand, row))


@step()
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
            number = fitting(state, n)
            return state.fits[_draw(rng, number)] if number else -1
        return _search(state, rule, n)
    return _seek_freed(state, run, rule, n, rng)


@step()
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


@step(inline="always")
def _before(run, n, other):  # type: ignore[no-untyped-def]
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
        if shares[n] <= highest and (run.best[u] < 0 or _before(run, n, run.best[u])):
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
        if shares[n] <= highest and (first < 0 or _before(run, n, first)):
            first = n
    return first


@step()
def _still(state, run, n, rng):  # type: ignore[no-untyped-def]
    """Does a task of the stream still fit, and is its share still what was thought? If not, mend it."""
    measured = state.measure != OWN and run.running[run.owner[n]] > 0
    i = _seek(state, run, SMALLEST_SHARE if measured else FIRST, n, rng)
    if i < 0:
        _take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
        run.untried[n] = False
        return False
    share = _share_there(state, run, n, i)
    if share <= run.bound[n] * (1.0 + SAME):
        return True
    run.bound[n] = share
    return False


@step()
def _next_stream(state, run, rng):  # type: ignore[no-untyped-def]
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
            return state.tied[_draw(rng, number)]


@step()
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


@step()
def _first_freed(used, capacity, row_of, demand, eligible, n, freed, at):  # type: ignore[no-untyped-def]
    """Return the position, from ``at`` on, of the first freed server on which the stream's task fits; arrays, as in `_fits`."""
    while at < freed.size:
        i = freed[at]
        row = row_of[i]
        if eligible[n, row] and _fits(used, i, capacity, row, demand, n, _column(demand, row)):
            break
        at += 1
    return at


@step()
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


@step()
def _sort_freed(run):  # type: ignore[no-untyped-def]
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
def _gather(state, run):  # type: ignore[no-untyped-def]
    """Put the streams of which a task may fit now into the pool; return whether one of them was never tried."""
    run.progress[IN_POOL] = 0
    _sort_freed(run)
    freed = run.freed[: run.progress[FREED]]
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


@step()
def _open(state, run, untried):  # type: ignore[no-untyped-def]
    """Open all servers, or those that were freed at this moment; return how many."""
    number = state.open.size if untried else run.progress[FREED]
    for k in range(number):
        state.open[k] = k if untried else run.freed[k]
    return number


@step()
def _start_by_server(state, run, rng, now, untried):  # type: ignore[no-untyped-def]
    """Server first, as `fill_by_server`: in rounds of a random order (or a random one each time) of the servers that may have room."""
    number = _open(state, run, untried)
    while True:
        number = _shuffle_open(state, number, rng)
        if number == 0:
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
            highest = smallest * (1.0 + SAME)
            if state.random_ties:
                n = state.tied[_draw(rng, _first_of_owners(state, run, highest, state.shares))]
            else:
                n = _first_of_all(run, highest, state.shares)
            _start(state, run, n, i, now)


@step()
def close_absent(state, run):  # type: ignore[no-untyped-def]
    """Close the servers that are not present at the beginning."""
    for i in range(state.row.size):
        if run.closed[i]:
            for r in range(state.used.shape[1]):
                _set_used(state, i, r, _CLOSED)


@step(nogil=True)
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


# A tree of queues -----------------------------------------------------------------------------------------------------------------
#
# The user is found by a walk from the root down. For each place, ``need`` and ``top`` say which tasks below can be placed. They are found
# anew when a user, a guarantee or a limit has changed. ``measure`` is what the children of a node are compared by. Usage is a compensated
# sum, as on servers. A limit, or what queues keep, that leaves no room for a task bars its user from all servers or, if it counts some rows
# only, from these rows. Without events usage only rises, so a user that is barred from all servers is finished.


@step(inline="always")
def _plus(total, lost, at, amount):  # type: ignore[no-untyped-def]
    """Add an amount to a compensated sum."""
    more = amount - lost[at]
    result = total[at] + more
    lost[at] = (result - total[at]) - more
    total[at] = result


@step(inline="always")
def _unmet(kind, held, amount, a):  # type: ignore[no-untyped-def]
    return kind[a] == GUARANTEE and held[a] < amount[a] * (1.0 - FITS)


@step(inline="always")
def _below_own(running, promised, leaf):  # type: ignore[no-untyped-def]
    """Has the leaf fewer tasks than are guaranteed to it?"""
    return running[leaf] < promised[leaf] * (1.0 - FITS)


@step()
def _fits_on_rows(used, capacity, demand, row_of, start, eligible, rows, n, i):  # type: ignore[no-untyped-def]
    """Return the first server from i on, of these rows, on which a task of n fits; the number of servers if there is none."""
    while i < row_of.size:
        row = row_of[i]
        if not (rows[row] and eligible[n, row]):
            i = start[row + 1]
        elif _fits(used, i, capacity, row, demand, n, _column(demand, row)):
            break
        else:
            i += 1
    return i


@step()
def _need(state, tree, n):  # type: ignore[no-untyped-def]
    """Return the depth of the deepest unmet guarantee that a task of n can add to, 0 if there is none."""
    level, kind, held, amount, accounts = tree.level, tree.kind, tree.held, tree.amount, tree.accounts
    leaf = tree.leaf[n]
    if _below_own(tree.running, tree.promised, leaf):
        return tree.depth[leaf]
    need = 0
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = accounts[entry]
        if level[a] > need and _unmet(kind, held, amount, a):
            if not tree.everywhere[a]:
                at = _fits_on_rows(
                    state.used, state.capacity, state.demand, state.row, state.start, state.eligible, tree.rows[a], n, tree.at[entry]
                )
                tree.at[entry] = at
                if at == state.row.size:
                    continue
            need = level[a]
    return need


@step()
def _need_on(tree, n, row):  # type: ignore[no-untyped-def]
    """Return the same for a task on a server of this row."""
    level, kind, held, amount, accounts = tree.level, tree.kind, tree.held, tree.amount, tree.accounts
    leaf = tree.leaf[n]
    if _below_own(tree.running, tree.promised, leaf):
        return tree.depth[leaf]
    need = 0
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = accounts[entry]
        if level[a] > need and tree.rows[a, row] and _unmet(kind, held, amount, a):
            need = level[a]
    return need


@step()
def _offer(tree, n, need):  # type: ignore[no-untyped-def]
    """Tell the places above that a task of n can be placed, which adds to an unmet guarantee at depth ``need``."""
    needs, top, parent = tree.need, tree.top, tree.parent
    place = tree.leaf[n]
    tree.value[n] = -1
    if need < tree.closed[place]:  # a weight of 0 below that guarantee
        return
    tree.value[n] = need
    tier = tree.tier[place]
    while place >= 0 and (need > needs[place] or (need == needs[place] and tier > top[place])):
        needs[place] = need
        top[place] = tier
        place = parent[place]


@step()
def _part_of_guarantee(tree, node, neediest):  # type: ignore[no-untyped-def]
    """Return use / guarantee of a queue, of which ``neediest`` is the smallest among its children below a guarantee."""
    kind, held, amount, resource = tree.kind, tree.held, tree.amount, tree.resource
    use = largest = 0.0
    last, is_unmet = -1, False
    accounts = tree.given[tree.given_from[node] : tree.given_from[node + 1]]
    for a in accounts:
        is_unmet = is_unmet or _unmet(kind, held, amount, a)
        use = (use if resource[a] == last else 0.0) + min(held[a], amount[a]) / tree.total[resource[a]]
        largest = max(largest, use)
        last = resource[a]
    if is_unmet:
        return largest / tree.promised[node]
    return neediest + 1.0 if accounts.size > 0 else neediest


@step()
def _measure_needs(tree):  # type: ignore[no-untyped-def]
    """Measure the places at or below which a guarantee is unmet by use / guarantee."""
    need, depth, parent, measure = tree.need, tree.depth, tree.parent, tree.measure
    running, promised, nodes = tree.running, tree.promised, tree.children_from.size - 1
    measure[:] = math.inf
    for place in tree.upwards:
        if need[place] >= depth[place]:
            measure[place] = running[place] / promised[place] if place >= nodes else _part_of_guarantee(tree, place, measure[place])
            measure[parent[place]] = min(measure[parent[place]], measure[place])


@step()
def _walk(tree, rng, random_ties):  # type: ignore[no-untyped-def]
    """Return the leaf of the next task, -1 if no task can be placed. Its task must have at least the need ``marks[LEVEL]``."""
    need, tops, measure, weight, share, all_children = tree.need, tree.top, tree.measure, tree.weight, tree.share, tree.children
    if need[0] < 0:
        return -1
    if need[0] > 0:
        _measure_needs(tree)
    nodes = tree.children_from.size - 1
    place = depth = level = 0
    while place < nodes:
        depth += 1
        children = all_children[tree.children_from[place] : tree.children_from[place + 1]]
        top, first = 0, True
        for child in children:
            if need[child] >= depth:
                level = depth
            if need[child] >= 0 and (first or tops[child] > top):
                top, first = tops[child], False
        smallest = math.inf
        for child in children:
            if need[child] < level or (level == 0 and tops[child] < top):
                measure[child] = math.inf
                continue
            if level < depth:  # all weights below the guarantee are positive
                measure[child] = share[child] / weight[child]
            smallest = min(smallest, measure[child])
        number = 0
        for child in children:
            if measure[child] <= smallest * (1.0 + SAME):
                tree.tied[number] = child
                number += 1
                if not random_ties:
                    break
        place = tree.tied[_draw(rng, number)]
    tree.marks[LEVEL] = level
    return place


@step()
def record(state, tree, n, row, sign):  # type: ignore[no-untyped-def]
    """A task of n begins (sign 1) or ends (-1) on a server of this row: count it everywhere above, and in the accounts."""
    running, parts, share, parent = tree.running, tree.parts, tree.share, tree.parent
    worth = state.worth[n, _column(state.worth, row)]
    leaf = tree.leaf[n]
    below_own = _below_own(running, tree.promised, leaf)
    place = leaf
    while place >= 0:
        usage, lost = tree.usage[place], tree.usage_lost[place]
        running[place] += sign
        if running[place] == 0:  # rounding leaves nothing behind
            usage[:] = 0.0
            lost[:] = 0.0
            share[place] = 0.0
        elif place == leaf or not tree.dominant:
            _plus(usage, lost, 0, sign * worth)
            share[place] = usage[0]
        else:
            largest = 0.0
            for r in range(usage.size):
                _plus(usage, lost, r, sign * parts[n, r])
                largest = max(largest, usage[r])
            share[place] = largest
        place = parent[place]
    if below_own != _below_own(running, tree.promised, leaf):
        tree.marks[CHANGED] = 1
    accounts, rows, kind, held, amount, holders = tree.accounts, tree.rows, tree.kind, tree.held, tree.amount, tree.holders
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = accounts[entry]
        if not rows[a, row]:
            continue
        unmet = _unmet(kind, held, amount, a)
        holders[a] += sign
        if holders[a] == 0:
            held[a] = tree.held_lost[a] = 0.0
        else:
            _plus(held, tree.held_lost, a, sign * tree.demand[n, tree.resource[a]])
        if kind[a] == LIMIT:
            bar(state, tree, a)
        elif kind[a] == KEPT:
            settle(state, tree, tree.keeping[a])
        elif unmet != _unmet(kind, held, amount, a):
            tree.marks[CHANGED] = 1


@step()
def bar(state, tree, a):  # type: ignore[no-untyped-def]
    """Bar the users whose task is larger than what is left of a limit; let the others in again."""
    members, demand = tree.members, tree.demand
    left = tree.amount[a] * (1.0 + FITS) - tree.held[a]
    r = tree.resource[a]
    first, last, at = tree.members_from[a], tree.members_from[a + 1], tree.barred_to[a]
    while True:
        if at < last and demand[members[at], r] > left:
            n, number = members[at], 1
            at += 1
        elif at > first and demand[members[at - 1], r] <= left:
            at -= 1
            n, number = members[at], -1
        else:
            break
        tree.marks[CHANGED] = 1
        if tree.everywhere[a]:
            tree.barred[n] += number
        else:
            _bar_on_rows(state.eligible, tree.eligible, tree.barred_on, tree.rows[a], n, number)
            tree.again[n] |= number < 0
    tree.barred_to[a] = at


@step()
def settle(state, tree, keeping):  # type: ignore[no-untyped-def]
    """Find how much each user may hold beside what queues keep of a resource on a group of servers, and bar those who may hold no more."""
    first, root = tree.keeping_from[keeping], tree.keeping_from[keeping + 1] - 1
    above, keeps, held, counted, amount = tree.above, tree.keeps, tree.held, tree.counted, tree.amount
    for a in range(first, root + 1):
        counted[a] = held[a]
    for a in range(root - 1, first - 1, -1):  # children before parents
        counted[above[a]] += max(keeps[a], counted[a])
    amount[root] = keeps[root] - counted[root]
    for a in range(first, root):  # what may be held in addition, parents before children
        amount[a] = amount[above[a]] + max(keeps[a] - counted[a], 0.0)
    for a in range(first, root + 1):
        amount[a] += held[a]
        bar(state, tree, a)


@step()
def resize(state, run, tree):  # type: ignore[no-untyped-def]
    """Scale what queues keep to the servers that are there, as `fairopt.instance.keeping.Keeping.with_capacity` does."""
    above, keeps, asked, counted = tree.above, tree.keeps, tree.asked, tree.counted
    for keeping in range(tree.keeping_from.size - 1):
        first, root = tree.keeping_from[keeping], tree.keeping_from[keeping + 1] - 1
        capacity = 0.0
        for row in range(tree.of_server.shape[0]):
            if tree.rows[root, row]:
                there = 0
                for i in range(state.start[row], state.start[row + 1]):
                    there += not run.closed[i]
                capacity += there * tree.of_server[row, tree.resource[root]]
        for a in range(first, root + 1):
            counted[a] = 0.0
        for a in range(root - 1, first - 1, -1):  # children before parents
            counted[above[a]] += max(asked[a], counted[a])
        part = capacity / counted[root] if counted[root] > capacity else 1.0
        for a in range(first, root):
            keeps[a] = asked[a] * part
        keeps[root] = capacity
        settle(state, tree, keeping)


@step()
def _bar_on_rows(eligible, without_limits, barred_on, rows, n, number):  # type: ignore[no-untyped-def]
    """Count a limit that bars user n from these rows (number 1), or does so no longer (-1)."""
    for row in range(rows.size):
        if rows[row]:
            barred_on[n, row] += number
            eligible[n, row] = without_limits[n, row] and barred_on[n, row] == 0


@step()
def _adds(tree, n, row, level):  # type: ignore[no-untyped-def]
    """Does a task of n on a server of this row add to an unmet guarantee at this depth or below?"""
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = tree.accounts[entry]
        if tree.level[a] >= level and tree.rows[a, row] and _unmet(tree.kind, tree.held, tree.amount, a):
            return True
    return False


@step()
def _narrow(state, tree, n):  # type: ignore[no-untyped-def]
    """Leave the user only the rows where its task adds to a guarantee of the need that was found; return whether there are others."""
    level = tree.marks[LEVEL]
    if level == 0 or not _on_some_rows(tree) or _below_own(tree.running, tree.promised, tree.leaf[n]):
        return False
    narrow = False
    for row in range(tree.kept.size):
        tree.kept[row] = state.eligible[n, row]
        if tree.kept[row] and not _adds(tree, n, row, level):
            state.eligible[n, row] = False
            narrow = True
    return narrow


@step()
def _widen(state, tree, n):  # type: ignore[no-untyped-def]
    """Give the user back the rows that `_narrow` took."""
    for row in range(tree.kept.size):
        state.eligible[n, row] = tree.kept[row]


@step()
def fitting_in_tree(state, tree, n):  # type: ignore[no-untyped-def]
    """Put the servers on which the next task of n may be placed into ``fits``, ascending; return how many."""
    narrow = _narrow(state, tree, n)
    number = fitting(state, n)
    if narrow:
        _widen(state, tree, n)
    return number


@step()
def choose_in_tree(state, tree, n, rng):  # type: ignore[no-untyped-def]
    """Return the server of the next task of n."""
    narrow, first = _narrow(state, tree, n), state.first[n]
    i = choose(state, n, rng)
    if narrow:
        state.first[n] = first
        _widen(state, tree, n)
    return i


@step()
def _survey(state, tree):  # type: ignore[no-untyped-def]
    """Find which tasks can be placed, and which guarantees they add to."""
    wanted, barred, value = state.wanted, tree.barred, tree.value
    tree.need[:] = -1
    for n in range(wanted.size):
        value[n] = -1
        if wanted[n] == 0:
            continue
        if barred[n] > 0 or _first_fit(state, n) < 0:
            _retire(state, n)
        else:
            _offer(tree, n, _need(state, tree, n))
    tree.marks[CHANGED] = 0


@step()
def _on_some_rows(tree):  # type: ignore[no-untyped-def]
    """Is a guarantee on some rows only unmet? Then the needs may change with every task."""
    everywhere, kind, held, amount = tree.everywhere, tree.kind, tree.held, tree.amount
    for a in range(amount.size):  # noqa: SIM110
        if not everywhere[a] and _unmet(kind, held, amount, a):
            return True
    return False


@step()
def next_in_tree(state, tree, rng):  # type: ignore[no-untyped-def]
    """Return the user of the next task, -1 if no task can be placed."""
    if tree.marks[CHANGED] or _on_some_rows(tree):
        _survey(state, tree)
    leaf = _walk(tree, rng, state.random_ties)
    return leaf - (tree.children_from.size - 1) if leaf >= 0 else -1


@step()
def place_in_tree(state, tree, n, i):  # type: ignore[no-untyped-def]
    """Place one task of user n on server i."""
    place(state, n, i)
    record(state, tree, n, state.row[i], 1)
    if state.wanted[n] == 0:
        tree.marks[CHANGED] = 1
    first, wanted = state.first, state.wanted
    for other in range(wanted.size):
        if first[other] == i and wanted[other] > 0 and _first_fit(state, other) < 0:
            _retire(state, other)
            tree.marks[CHANGED] = 1


@step(nogil=True)
def fill_tree(state, tree, rng, users, servers):  # type: ignore[no-untyped-def]
    """As `fill`, with queues."""
    placed = 0
    while placed < users.size:
        n = next_in_tree(state, tree, rng)
        if n < 0:
            break
        i = choose_in_tree(state, tree, n, rng)
        place_in_tree(state, tree, n, i)
        users[placed] = n
        servers[placed] = i
        placed += 1
    return placed


@step(nogil=True)
def fill_tree_by_server(state, tree, rng, users, servers):  # type: ignore[no-untyped-def]
    """As `fill_by_server`, with queues."""
    placed = 0
    progress, wanted, barred, eligible = state.progress, state.wanted, tree.barred, state.eligible
    used, capacity, demand = state.used, state.capacity, state.demand
    nodes = tree.children_from.size - 1
    while placed < users.size:
        if progress[ROUND_AT] == progress[ROUND_LENGTH] and not _begin_round(state, rng):
            break
        at = progress[ROUND_AT]
        i = state.open[at]
        row = state.row[i]
        progress[ROUND_AT] += 1
        tree.need[:] = -1
        for n in range(wanted.size):
            if wanted[n] > 0 and barred[n] == 0 and eligible[n, row] and _fits(used, i, capacity, row, demand, n, _column(demand, row)):
                _offer(tree, n, _need_on(tree, n, row))
        leaf = _walk(tree, rng, state.random_ties)
        if leaf < 0:
            state.open[at] = -1
            continue
        place(state, leaf - nodes, i)
        record(state, tree, leaf - nodes, row, 1)
        users[placed] = leaf - nodes
        servers[placed] = i
        placed += 1
    return placed


# A tree of queues over time -------------------------------------------------------------------------------------------------------
#
# A leaf is an owner, who may have several streams. A stream that fits, but is barred or has a weight of 0 on its way, stays in line as one
# that was never tried.


@step()
def _first_of_leaf(run, tree, leaf):  # type: ignore[no-untyped-def]
    """Return the first stream of an owner that has the need that was found."""
    pool, leaves, value, level = run.pool, tree.leaf, tree.value, tree.marks[LEVEL]
    first = -1
    for k in range(run.progress[IN_POOL]):
        n = pool[k]
        if leaves[n] == leaf and value[n] >= level and (first < 0 or _before(run, n, first)):
            first = n
    return first


@step()
def _still_fits(state, run, n):  # type: ignore[no-untyped-def]
    """Does a task of the stream fit on some server?"""
    if run.untried[n]:
        return _first_fit(state, n) >= 0
    freed = run.freed[: run.progress[FREED]]
    at = _first_freed(state.used, state.capacity, state.row, state.demand, state.eligible, n, freed, state.first[n])
    return at < freed.size


@step()
def _next_stream_in_tree(state, run, tree, rng):  # type: ignore[no-untyped-def]
    """Return the stream whose turn it is, -1 if no task can be placed any more."""
    tree.need[:] = -1
    k = 0
    while k < run.progress[IN_POOL]:
        n = run.pool[k]
        tree.value[n] = -1
        if tree.barred[n] == 0:
            if not _still_fits(state, run, n):
                _take_out(run.pool, run.pool_at, run.progress, IN_POOL, n)
                run.untried[n] = False
                continue
            _offer(tree, n, _need(state, tree, n))
        k += 1
    leaf = _walk(tree, rng, state.random_ties)
    return _first_of_leaf(run, tree, leaf) if leaf >= 0 else -1


@step()
def _seek_in_tree(state, run, tree, n, rng):  # type: ignore[no-untyped-def]
    """Return the server for the next task of the stream."""
    narrow, first, untried = _narrow(state, tree, n), state.first[n], run.untried[n]
    if narrow and not untried:
        state.first[n], run.untried[n] = 0, True
    i = _seek(state, run, state.rule, n, rng)
    if narrow:
        state.first[n], run.untried[n] = first, untried
        _widen(state, tree, n)
    return i


@step()
def _start_by_server_in_tree(state, run, tree, rng, now, untried):  # type: ignore[no-untyped-def]
    """As `_start_by_server`, with queues."""
    number = _open(state, run, untried)
    while True:
        number = _shuffle_open(state, number, rng)
        if number == 0:
            break
        for at in range(number - 1 if state.rule == RANDOM else 0, number):
            i = state.open[at]
            tree.need[:] = -1
            for k in range(run.progress[IN_POOL]):
                n = run.pool[k]
                tree.value[n] = -1
                if tree.barred[n] == 0 and _fits_there(state, n, i):
                    _offer(tree, n, _need_on(tree, n, state.row[i]))
            leaf = _walk(tree, rng, state.random_ties)
            if leaf < 0:
                state.open[at] = -1
                continue
            n = _first_of_leaf(run, tree, leaf)
            _start(state, run, n, i, now)
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
            task = _pop(run)
            _end(state, run, task)
            record(state, tree, run.stream[run.job_of[task]], state.row[run.server[task]], -1)
        servers = False
        while progress[EVENT] < run.times.size and run.times[progress[EVENT]] == now:
            servers |= run.changes[progress[EVENT]] in (REMOVE, ADD)
            _change(state, run, progress[EVENT])
            progress[EVENT] += 1
        if servers:
            resize(state, run, tree)
        for k in range(progress[IN_LINE]):
            n = run.line[k]
            if tree.again[n]:
                run.untried[n] = True
                tree.again[n] = False
        untried = _gather(state, run)
        tree.at[:] = 0
        if server_first:
            _start_by_server_in_tree(state, run, tree, rng, now, untried)
        else:
            while True:
                n = _next_stream_in_tree(state, run, tree, rng)
                if n < 0:
                    break
                i = _seek_in_tree(state, run, tree, n, rng)
                _start(state, run, n, i, now)
                record(state, tree, n, state.row[i], 1)
                _drop_those_without(state, run, i)
        for k in range(progress[IN_POOL]):
            n = run.pool[k]
            run.untried[n] = tree.barred[n] > 0 or tree.closed[tree.leaf[n]] > 0
            run.pool_at[n] = -1
        for k in range(progress[FREED]):
            run.is_freed[run.freed[k]] = False
    return math.inf
