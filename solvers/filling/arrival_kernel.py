"""The steps of placing tasks in the order of their arrival, compiled by numba: which server, and which card of it.

Servers only fill up, so a task that fits nowhere never will: its user is not tried again. Scores are those of
``fairopt.solvers.filling.kernel``, in steps of 1e-9 as there, so that equal ones go to the first server. They and their numbers are written
once more here: numba keeps what it compiled until the file changes, and does not look at others. A test compares the numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["place_in_turn"]

_STEP = 1e9  # scores are compared in steps of its inverse
_OFFSET = 0.2718  # steps end where no simple fraction lies

FITS = 1e-9  # of fairopt.program.filling, as these:
FIRST, RANDOM = range(2)
L1, L2, COSINE, DOT, TIGHTEST, LOOSEST = range(3, 9)


@njit(cache=True)
def place_in_turn(rule, turns, row, capacity, demand, eligible, asked, left, rng):  # type: ignore[no-untyped-def]
    """Place one task of each user in ``turns``, in this order; return the single server of each, -1 where none has room.

    ``row`` is the row of each single server; ``asked`` what a task asks of cards (0: nothing, below 1: a part of one, else whole ones), and
    ``left`` what is left of each card of each server, both empty where there are no cards.
    """
    free = capacity[row]
    chosen = np.full(turns.size, -1, np.int64)
    refused = np.zeros(demand.shape[0], np.bool_)
    for turn in range(turns.size):
        n = turns[turn]
        if refused[n]:
            continue
        i = _choose(rule, n, row, capacity, demand, eligible, asked, left, free, rng)
        if i < 0:
            refused[n] = True
            continue
        for r in range(demand.shape[1]):
            free[i, r] -= demand[n, r]
        if asked.size > 0 and asked[n] > 0.0:
            _take(rule, left[i], asked[n])
        chosen[turn] = i
    return chosen


@njit(cache=True)
def _choose(rule, n, row, capacity, demand, eligible, asked, left, free, rng):  # type: ignore[no-untyped-def]
    best, lower, number = -1, math.inf, 0
    for i in range(row.size):
        if not eligible[n, row[i]] or not _fits(free[i], capacity[row[i]], demand[n]):
            continue
        if asked.size > 0 and not _cards_fit(left[i], asked[n]):
            continue
        if rule == FIRST:
            return i
        if rule == RANDOM:  # the k-th that fits takes the place of the one before with probability 1 / k: each is as likely
            number += 1
            if rng.random() * number < 1.0:
                best = i
            continue
        score = _score(rule, free[i], capacity[row[i]], demand[n])
        if score < lower:
            best, lower = i, (math.floor(score * _STEP + _OFFSET) - _OFFSET) / _STEP  # what is better by a step
    return best


@njit(cache=True)
def _fits(free, capacity, demand):  # type: ignore[no-untyped-def]
    for r in range(demand.size):  # noqa: SIM110
        if demand[r] > free[r] + FITS * capacity[r]:
            return False
    return True


@njit(cache=True)
def _score(rule, free, capacity, demand):  # type: ignore[no-untyped-def]
    """Return how badly the server suits a task that fits on it (see `fairopt.solvers.filling.placements.BestFit`)."""
    score = 0.0
    if rule in (L1, L2):
        p = np.argmax(demand > 0.0)  # the first resource that it demands
        room = max(free[p], demand[p])  # it fits: less is rounding
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


@njit(cache=True)
def _cards_fit(left, asked):  # type: ignore[no-untyped-def]
    """Is there a card with room for the part of one that is asked for, or are there as many whole ones?"""
    if asked == 0.0:
        return True
    number = 0
    for g in range(left.size):
        if left[g] + FITS >= min(asked, 1.0):
            number += 1
            if number + FITS >= asked:
                return True
    return False


@njit(cache=True)
def _take(rule, left, asked):  # type: ignore[no-untyped-def]
    """Take whole cards, the first that are free; or a part of the first that has room, of the emptiest, or else of the fullest."""
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
