"""The steps of placing tasks in order of arrival: the choice of the server, and of its card.

Free resources only shrink, so a task that fits on no server never fits later, and its user is not tried again. Scores are those of
``fairopt.solvers.filling.kernel``, compared in steps of 1e-9, so that equal scores go to the first server.
"""

from __future__ import annotations

import math

import numpy as np

from fairopt.instance.tolerances import FITS
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.codes import COSINE, DOT, FASTEST, FIRST, L1, L2, LOOSEST, RANDOM
from fairopt.solvers.filling.kernel.servers import column_of, next_score

__all__ = ["place_in_turn"]


@step()
def place_in_turn(  # type: ignore[no-untyped-def]
    rule, turns, row, capacity, demand, eligible, cost, asked, left, entries_from, account, of_server, amount, room, rng
):
    """Place one task of each user in ``turns``, in this order; return the single server of each task, -1 if it fits on none.

    ``row`` is the row of each single server. ``demand``, ``cost`` and ``asked`` have one column for all rows, or one each. A unit of work
    takes the part ``cost`` of the cluster. ``asked`` is the demand of a task for cards (0: none, below 1: a fraction of one card, else
    whole cards). ``left`` is the free fraction of each card of each server. Both are empty if no resource comes in cards.

    Accounts are what limits tasks across servers, or on each server beside its resources. Account j has ``room[j]`` left. A task of user n
    on server i takes ``amount[e, row[i]]`` of the account ``account[e]``, or ``account[e] + i`` if the entry is ``of_server``, for the
    entries e of n, from ``entries_from[n]`` on.
    """
    free = capacity[row]
    chosen = np.full(turns.size, -1, np.int64)
    refused = np.zeros(demand.shape[0], np.bool_)
    for turn in range(turns.size):
        n = turns[turn]
        if refused[n]:
            continue
        first, last = entries_from[n], entries_from[n + 1]
        i = _choose(
            rule,
            n,
            row,
            capacity,
            demand,
            eligible,
            cost,
            asked,
            left,
            free,
            account[first:last],
            of_server[first:last],
            amount[first:last],
            room,
            rng,
        )
        if i < 0:
            refused[n] = True
            continue
        taken = demand[n, column_of(demand, row[i])]
        for r in range(taken.size):
            free[i, r] -= taken[r]
        if asked.size > 0 and asked[n, column_of(asked, row[i])] > 0.0:
            _take(rule, left[i], asked[n, column_of(asked, row[i])])
        for e in range(first, last):
            room[account[e] + (i if of_server[e] else 0)] -= amount[e, row[i]]
        chosen[turn] = i
    return chosen


@step()
def _choose(  # type: ignore[no-untyped-def]
    rule, n, row, capacity, demand, eligible, cost, asked, left, free, account, of_server, amount, room, rng
):
    best, lower, number = -1, math.inf, 0
    for i in range(row.size):
        taken = demand[n, column_of(demand, row[i])]
        if not eligible[n, row[i]] or not _fits(free[i], capacity[row[i]], taken):
            continue
        if asked.size > 0 and not _cards_fit(left[i], asked[n, column_of(asked, row[i])]):
            continue
        if account.size > 0 and not _within(i, row[i], account, of_server, amount, room):
            continue
        if rule == FIRST:
            return i
        if rule == RANDOM:  # reservoir sampling: the k-th server replaces the choice with probability 1 / k
            number += 1
            if rng.random() * number < 1.0:
                best = i
            continue
        score = cost[n, column_of(cost, row[i])] if rule == FASTEST else _score(rule, free[i], capacity[row[i]], taken)
        if score < lower:
            best, lower = i, next_score(score)
    return best


@step()
def _within(i, k, account, of_server, amount, room):  # type: ignore[no-untyped-def]
    """Is there room in all accounts for a task on server i of row k?"""
    for e in range(account.size):  # noqa: SIM110
        if amount[e, k] > 0.0 and amount[e, k] > room[account[e] + (i if of_server[e] else 0)]:
            return False
    return True


@step()
def _fits(free, capacity, demand):  # type: ignore[no-untyped-def]
    for r in range(demand.size):  # noqa: SIM110
        if demand[r] > free[r] + FITS * capacity[r]:
            return False
    return True


@step()
def _score(rule, free, capacity, demand):  # type: ignore[no-untyped-def]
    """Return the score of a server that the task fits on; smaller is better (see `fairopt.solvers.filling.placements.BestFit`)."""
    score = 0.0
    if rule in (L1, L2):
        p = np.argmax(demand > 0.0)  # the first resource with a demand
        room = max(free[p], demand[p])  # the task fits, so free[p] < demand[p] is rounding
        for r in range(demand.size):
            apart = demand[r] / demand[p] - free[r] / room
            score += abs(apart) if rule == L1 else apart * apart
    elif rule == DOT:
        for r in range(demand.size):
            if capacity[r] > 0.0:
                score -= demand[r] / capacity[r] * free[r] / capacity[r]
    elif rule == COSINE:
        dot = length = room = 0.0
        for r in range(demand.size):
            part = max(free[r], 0.0)
            dot += demand[r] * part
            length += demand[r] * demand[r]
            room += part * part
        score = -dot / math.sqrt(length * room) if room > 0.0 else 0.0
    else:
        for r in range(demand.size):
            score += free[r]
        if rule == LOOSEST:
            score = -score
    return score


# Cards ---------------------------------------------------------------------------------------------------------------------------


@step()
def _cards_fit(left, asked):  # type: ignore[no-untyped-def]
    """Return whether one card has room for a fraction, or whether there are enough free cards for a whole number."""
    if asked == 0.0:
        return True
    number = 0
    for g in range(left.size):
        if left[g] + FITS >= min(asked, 1.0):
            number += 1
            if number + FITS >= asked:
                return True
    return False


@step()
def _take(rule, left, asked):  # type: ignore[no-untyped-def]
    """Take the first free cards; or a fraction of one card with room: the first (FIRST), the emptiest (LOOSEST), or else the fullest."""
    if asked >= 1.0:
        for g in range(left.size):
            if asked > 0.5 and left[g] + FITS >= 1.0:
                left[g] = 0.0
                asked -= 1.0
        return
    best = -1
    for g in range(left.size):
        if left[g] + FITS < asked:
            continue
        if best < 0 or (rule == LOOSEST and left[g] > left[best]) or (rule not in (FIRST, LOOSEST) and left[g] < left[best]):
            best = g
    left[best] -= asked
