"""Filling one instance, the user first or the server first.

Without queues, ``tree`` is None, and numba leaves out what is about it.
"""

from __future__ import annotations

import math

from fairopt.instance.tolerances import SAME
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.accounts import record
from fairopt.solvers.filling.kernel.codes import RANDOM
from fairopt.solvers.filling.kernel.queues import choose_in_tree, next_in_tree, next_on_server_in_tree, place_in_tree
from fairopt.solvers.filling.kernel.servers import choose, column_of, draw, fits
from fairopt.solvers.filling.kernel.users import next_user, place, share_at
from fairopt.solvers.filling.state import BLOCKED_BY, ROUND_AT, ROUND_LENGTH

__all__ = ["fill", "fill_by_server", "shuffle_open"]


@step(nogil=True)
def fill(state, tree, rng, users, servers):  # type: ignore[no-untyped-def]
    """Place tasks, choosing the user and then the server, until ``users`` and ``servers`` are full or no task fits; return their number."""
    placed = 0
    while placed < users.size:
        n = next_user(state, rng) if tree is None else next_in_tree(state, tree, rng)
        if n < 0:
            break
        i = choose(state, n, rng) if tree is None else choose_in_tree(state, tree, n, rng)
        if i < 0:  # only where the first block ends it all
            state.progress[BLOCKED_BY] = n
            break
        if tree is None:
            place(state, n, i)
        else:
            place_in_tree(state, tree, n, i)
        users[placed] = n
        servers[placed] = i
        placed += 1
    return placed


@step()
def shuffle_open(state, number, rng):  # type: ignore[no-untyped-def]
    """Put those of the first servers that may have room into a random order, or draw one of them to the end; return how many there are."""
    found = 0
    for k in range(number):
        if state.open[k] >= 0:
            state.open[found] = state.open[k]
            found += 1
    for k in range(found - 1, 0, -1):
        other = draw(rng, k + 1)
        state.open[k], state.open[other] = state.open[other], state.open[k]
        if state.rule == RANDOM:  # rounds of one server
            break
    return found


@step()
def _begin_round(state, rng):  # type: ignore[no-untyped-def]
    """Put the servers that may have room into a random order (or one of them first); return whether there are any."""
    progress = state.progress
    number = shuffle_open(state, state.open.size, rng)
    state.open[number:] = -1
    progress[ROUND_AT] = number - 1 if state.rule == RANDOM and number > 0 else 0
    progress[ROUND_LENGTH] = number
    return number > 0


@step(inline="always")
def _next_on_server(state, i, rng):  # type: ignore[no-untyped-def]
    """Return the user with the smallest share whose task fits on server i, -1 if none does."""
    smallest = math.inf
    row = state.row[i]
    column = column_of(state.demand, row)
    for n in range(state.wanted.size):
        state.shares[n] = math.inf
        if state.wanted[n] > 0 and state.eligible[n, row] and fits(state.used, i, state.capacity, row, state.demand, n, column):
            state.shares[n] = share_at(state, n, i)
            smallest = min(smallest, state.shares[n])
    if smallest == math.inf:
        return -1
    number = 0
    for n in state.order:
        if state.shares[n] <= smallest * (1.0 + SAME):
            state.tied[number] = n
            number += 1
    return state.tied[draw(rng, number) if state.random_ties else 0]


@step(nogil=True)
def fill_by_server(state, tree, rng, users, servers):  # type: ignore[no-untyped-def]
    """As `fill`, but choose the server first, at random or in rounds of a random order, then the lowest user whose task fits on it."""
    placed = 0
    progress = state.progress
    while placed < users.size:
        if progress[ROUND_AT] == progress[ROUND_LENGTH] and not _begin_round(state, rng):
            break
        at = progress[ROUND_AT]
        i = state.open[at]
        progress[ROUND_AT] += 1
        n = _next_on_server(state, i, rng) if tree is None else next_on_server_in_tree(state, tree, i, rng)
        if n < 0:
            state.open[at] = -1  # nobody fits, and nobody will
            continue
        place(state, n, i)
        if tree is not None:
            record(state, tree, n, state.row[i], 1)
        users[placed] = n
        servers[placed] = i
        placed += 1
    return placed
