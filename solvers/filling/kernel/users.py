"""Whose turn is it: the user with the smallest share whose task fits; and what one more task changes.

The share of a user only rises, also the smallest share over servers of a server-specific criterion. So an earlier share is a lower bound,
and is recomputed only when its user is the lowest. A tree of minima holds the shares, in the order in which ties are broken, and finds the
lowest user in O(log N).

Usage is a compensated sum of demands: its error does not grow with the number of tasks, and stays far below ``FITS``. Shares are products
of a whole number and a constant (or sums of such products, if the share of a task depends on the server), far more accurate than ``SAME``.
"""

from __future__ import annotations

import math

from fairopt.instance.tolerances import SAME
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.codes import LARGEST_RESIDUAL, OWN, RESIDUAL, SERVER
from fairopt.solvers.filling.kernel.servers import column_of, draw, first_fit, room_for, search, smallest_share

__all__ = ["hold", "next_user", "place", "retire", "set_used", "share_at"]


@step()
def _set_share(state, n, share):  # type: ignore[no-untyped-def]
    node = state.tree.size // 2 + state.leaf[n]
    state.tree[node] = share
    node //= 2
    while node > 0:
        state.tree[node] = min(state.tree[2 * node], state.tree[2 * node + 1])
        node //= 2


@step()
def retire(state, n):  # type: ignore[no-untyped-def]
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
def share_at(state, n, i):  # type: ignore[no-untyped-def]
    """Return the user's share in the eyes of the server."""
    if state.measure == OWN:
        return state.tree[state.tree.size // 2 + state.leaf[n]]
    if state.total[n] == 0:
        return 0.0
    worth = state.worth[n, column_of(state.worth, state.row[i])]
    if state.measure == RESIDUAL:
        row = state.row[i]
        worth /= room_for(state.used, i, state.capacity, row, state.demand, n, column_of(state.demand, row))
    return state.total[n] * worth


@step()
def _refresh(state, n):  # type: ignore[no-untyped-def]
    """Is what the tree says of the user still true? If not, mend it: a server-specific share is the smallest where a task fits."""
    if state.measure == OWN or state.total[n] == 0:
        i = first_fit(state, n)
    else:
        i = smallest_share(state, n) if state.measure == SERVER else search(state, LARGEST_RESIDUAL, n)
        state.found[n] = i
    if i < 0:
        retire(state, n)
        return False
    share = share_at(state, n, i)
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
            return state.tied[draw(rng, number)]


@step(inline="always")
def hold(state, n, i, sign):  # type: ignore[no-untyped-def]
    """Let a task of the user take its demand of the server (sign 1), or give it back (-1)."""
    row = state.row[i]
    column = column_of(state.demand, row)
    for r in range(state.capacity.shape[1]):
        more = sign * state.demand[n, column, r] - state.lost[i, r]
        total = state.used[i, r] + more
        state.lost[i, r] = (total - state.used[i, r]) - more
        set_used(state, i, r, total)


@step(inline="always")
def set_used(state, i, r, total):  # type: ignore[no-untyped-def]
    """Set the usage of a resource of server i, and what follows from it."""
    state.used[i, r] = total
    if r >= state.free.shape[0]:  # a limit of each server, which no score looks at
        return
    free = state.capacity[state.row[i], r] - total
    state.free[r, i] = free
    state.inverse[r, i] = 1.0 / free if free > 0.0 else 0.0


@step()
def place(state, n, i):  # type: ignore[no-untyped-def]
    """Place one task of user n on server i."""
    row = state.row[i]
    hold(state, n, i, 1.0)
    state.begun[row] = max(state.begun[row], i + 1)
    state.total[n] += 1
    state.tasks[n, row] += 1
    state.wanted[n] -= 1
    if state.wanted[n] == 0:
        retire(state, n)
    elif state.measure == OWN and state.worth.shape[1] == 1:
        _set_share(state, n, state.total[n] * state.worth[n, 0])
    elif state.measure == OWN:
        share = 0.0
        for j in range(state.worth.shape[1]):
            if state.tasks[n, j] > 0:
                share += state.tasks[n, j] * state.worth[n, j]
        _set_share(state, n, share)
