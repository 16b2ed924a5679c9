r"""One server's part of an equilibrium, in closed form, and sweeps over the servers; compiled by numba (a sweep is 10^5 small steps).

Server i sees what its users have elsewhere, y[n], and solves a leximin over (y[n] + x[n,i]) / g[n,i], where g[n,i] is what a level
of 1 is worth to n in tasks. It raises one level S for all:

    x[n,i](S) = min(max(0, S g[n,i] - y[n]), T[n] - y[n]).

A user starts to rise at S = y / g and has all its tasks at S = T / g. Between these breakpoints, sorted once, the use of each limit
is linear in S. Where a limit fills up, it stops every user that needs it, risen or not: the limit is its bottleneck. The others
rise on. There is no iteration: each breakpoint is passed once, and each limit fills once.

The level at which a limit fills is computed anew from the users who rise at that moment, not from running sums: it is exact to rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["act_asynchronously", "eliminate_users", "fill_server", "sweep"]

_WAITING, _RISING, _DONE = 0, 1, 2


@njit(cache=True)
def fill_server(y, g, cap, use, bounds, x, stop, level):  # type: ignore[no-untyped-def]
    """Solve one server's problem: x (pairs), stop (the limit that stopped each pair, -1: all its tasks), level (limits, inf: not full)."""
    pairs, rows = use.shape
    times = np.empty(2 * pairs)
    who = np.empty(2 * pairs, np.int64)
    events = 0
    state = np.zeros(pairs, np.int64)
    for p in range(pairs):
        x[p] = 0.0
        stop[p] = -1
        if cap[p] <= y[p]:
            state[p] = _DONE  # it has all its tasks elsewhere
            continue
        times[events] = y[p] / g[p]
        who[events] = p
        events += 1
        if cap[p] < math.inf:
            times[events] = cap[p] / g[p]
            who[events] = p
            events += 1
    order = np.argsort(times[:events])
    used = np.zeros(rows)
    slope = np.zeros(rows)
    count = np.zeros(rows, np.int64)
    for r in range(rows):
        level[r] = math.inf
    now = 0.0
    for k in range(events + 1):
        then = times[order[k]] if k < events else math.inf
        while True:  # limits that fill before the next breakpoint
            first, at = -1, math.inf
            for r in range(rows):
                if count[r] > 0 and level[r] == math.inf:
                    t = now + max(bounds[r] - used[r], 0.0) / slope[r]
                    if t < at:
                        first, at = r, t
            if first < 0 or at > then:
                break
            held = 0.0
            per_level = 0.0
            for p in range(pairs):
                if use[p, first] > 0.0:
                    if state[p] == _RISING:
                        held -= use[p, first] * y[p]
                        per_level += use[p, first] * g[p]
                    else:
                        held += use[p, first] * x[p]
            at = max((bounds[first] - held) / per_level, now)
            for r in range(rows):
                used[r] += slope[r] * (at - now)
            now = at
            level[first] = now
            for p in range(pairs):
                if use[p, first] > 0.0 and state[p] != _DONE:
                    if state[p] == _RISING:
                        x[p] = max(now * g[p] - y[p], 0.0)
                        for r in range(rows):
                            if use[p, r] > 0.0:
                                slope[r] -= use[p, r] * g[p]
                                count[r] -= 1
                    state[p] = _DONE
                    stop[p] = first
        if k == events:
            break
        for r in range(rows):
            used[r] += slope[r] * (then - now)
        now = max(then, now)
        p = who[order[k]]
        if state[p] == _WAITING:
            state[p] = _RISING
            for r in range(rows):
                if use[p, r] > 0.0:
                    slope[r] += use[p, r] * g[p]
                    count[r] += 1
        elif state[p] == _RISING:  # its second breakpoint: it has all its tasks
            state[p] = _DONE
            x[p] = cap[p] - y[p]
            for r in range(rows):
                if use[p, r] > 0.0:
                    slope[r] -= use[p, r] * g[p]
                    count[r] -= 1


@njit(cache=True)
def sweep(order, start, user, g, tasks, use, bounds, x, total, stop, level):  # type: ignore[no-untyped-def]
    """Let each server act once, in this order, on what is now; return the largest change of a pair relative to what its user has."""
    largest = 0.0
    for i in order:
        low, high = start[i], start[i + 1]
        old = x[low:high].copy()
        y = np.maximum(total[user[low:high]] - old, 0.0)
        fill_server(y, g[low:high], tasks[user[low:high]], use[low:high], bounds[i], x[low:high], stop[low:high], level[i])
        for p in range(low, high):
            change = x[p] - old[p - low]
            if change != 0.0:
                total[user[p]] += change
                largest = max(largest, abs(change) / max(total[user[p]], old[p - low]))
    total[:] = 0.0  # afresh: additions and subtractions leave rounding behind
    for p in range(x.size):
        total[user[p]] += x[p]
    return largest


@njit(cache=True)
def act_asynchronously(actors, delays, step, start, user, g, tasks, use, bounds, x, total, stop, level, planned, due, clock):  # type: ignore[no-untyped-def]
    """Let servers act at times of their own; return the largest change as `sweep` does.

    At each tick one server that is idle looks at what its users have elsewhere, and carries out what it decides ``delays`` ticks later
    (``due``, ``planned``), while others act. It goes the part ``step`` of the way.
    """
    largest = 0.0
    servers = start.size - 1
    for k in range(actors.size):
        now = clock + k
        i = actors[k]
        if due[i] < 0:
            low, high = start[i], start[i + 1]
            y = np.maximum(total[user[low:high]] - x[low:high], 0.0)
            fill_server(y, g[low:high], tasks[user[low:high]], use[low:high], bounds[i], planned[low:high], stop[low:high], level[i])
            due[i] = now + delays[k]
        for j in range(servers):
            if due[j] < 0 or due[j] > now:
                continue
            due[j] = -1
            for p in range(start[j], start[j + 1]):
                change = step * (planned[p] - x[p])
                if change != 0.0:
                    old = x[p]
                    x[p] = planned[p] if step == 1.0 else x[p] + change
                    total[user[p]] += x[p] - old
                    largest = max(largest, abs(x[p] - old) / step / max(total[user[p]], old))
    total[:] = 0.0
    for p in range(x.size):
        total[user[p]] += x[p]
    return largest


@njit(cache=True)
def eliminate_users(start, by_user, first, rows, use, pull, own, j, limits):  # type: ignore[no-untyped-def]
    """Return the dense matrix sum over the users n of B_n (I - 1 pull_n' / own[n]) J_n, (limits, limits).

    B_n holds use times pull of the pairs of n, those from ``start[n]`` to ``start[n + 1]`` in ``by_user``, in compressed columns
    (``first``, ``rows``, ``use``), and J_n the limit j that stops each: see ``smoothed_equilibrium``.
    """
    matrix = np.zeros((limits, limits))
    for n in range(own.size):
        mine = by_user[start[n] : start[n + 1]]
        where = j[mine]
        part = pull[mine] / own[n]
        for k in range(mine.size):
            p = mine[k]
            for e in range(first[p], first[p + 1]):
                row = matrix[rows[e]]
                used = use[e] * pull[p]
                for q in range(mine.size):
                    row[where[q]] -= used * part[q]
                row[where[k]] += used
    return matrix
