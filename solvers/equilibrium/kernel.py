r"""The closed-form best response of a server, in sweeps and asynchronously.

Given the tasks y[n] of its users on other servers, server i solves a leximin over (y[n] + x[n,i]) / g[n,i], where g[n,i] is the number of
tasks of user n at level 1. It raises one level S for all:

    x[n,i](S) = min(max(0, S g[n,i] - y[n]), T[n] - y[n]).

A user starts to rise at S = y / g and has all its tasks at S = T / g. Between these breakpoints, sorted once, the use of each limit
is linear in S. Where a limit fills up, it stops every user that needs it, risen or not: the limit is its bottleneck. The others
rise on. There is no iteration: each breakpoint is passed once, and each limit fills once. Breakpoints beyond the level at which the
last limit filled when the server last acted are sorted only where this level is passed: mostly they are many, and of no use.

The level at which a limit fills is computed anew from the users who rise at that moment, not from running sums: it is exact to rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.compiled import step

__all__ = [
    *("Jobs", "Servers", "Users", "Watch"),
    *("act_asynchronously", "distance", "fill_server", "follow", "keep_to_tasks", "look_afresh", "sweep", "violation"),
]

_BEYOND = 1.01  # times the highest level of the last time: up to there breakpoints are sorted at first
_WAITING, _RISING, _DONE = 0, 1, 2
_NOTHING = 1e-9  # part of the most that a user can hold on a server, or of a job's tasks, that is rounding


def _same(array):  # type: ignore[no-untyped-def]
    return array


@step(compiled_as=_same)
def _numbers(array):  # type: ignore[no-untyped-def]
    """Return an array as plain Python reads and writes it fastest: as lists. What is written there has to be copied back."""
    return array.tolist()


@step()
def fill_server(y, g, cap, use, bounds, x, stop, level):  # type: ignore[no-untyped-def]
    """Solve one server's problem, with its pairs p and limits r: the module has the mathematics.

    In: y (pairs,), tasks on other servers; g (pairs,), tasks at level 1; cap (pairs,), T, tasks in all; use (pairs, limits), what a task
    takes; bounds (limits,). Out: x (pairs,), tasks here; stop (pairs,), the limit that stopped each pair, -1: it has all its tasks; level
    (limits,), S where each limit filled, inf: not full. In, ``level`` is that of the last time, from which the horizon of the sort comes.
    """
    horizon = 0.0
    for r in range(level.size):
        if horizon < level[r] < math.inf:
            horizon = level[r]
    horizon = _BEYOND * horizon if horizon > 0.0 else math.inf
    if not _fill_up_to(horizon, y, g, cap, use, bounds, x, stop, level):
        _fill_up_to(math.inf, y, g, cap, use, bounds, x, stop, level)


@step()
def _fill_up_to(horizon, y, g, cap, use, bounds, x, stop, level):  # type: ignore[no-untyped-def]
    """Solve the problem of `fill_server` with the breakpoints S <= ``horizon`` alone, and return whether that is its solution.

    It is not if a pair has not stopped yet, or stopped above the horizon, where breakpoints were left out. Then x, stop and level mean
    nothing. With an infinite horizon no breakpoint is left out.
    """
    pairs, rows = use.shape
    times = np.empty(2 * pairs)
    pair_of_event = np.empty(2 * pairs, np.int64)
    events = 0
    y, g, cap, use, bounds = _numbers(y), _numbers(g), _numbers(cap), _numbers(use), _numbers(bounds)
    state, given = _numbers(np.zeros(pairs, np.int64)), _numbers(np.zeros(pairs))
    used, slope, count = _numbers(np.zeros(rows)), _numbers(np.zeros(rows)), _numbers(np.zeros(rows, np.int64))
    filled = _numbers(np.full(rows, math.inf))
    for p in range(pairs):
        stop[p] = -1
        if cap[p] <= y[p]:
            state[p] = _DONE  # it has all its tasks elsewhere
            continue
        if y[p] / g[p] <= horizon:
            times[events] = y[p] / g[p]
            pair_of_event[events] = p
            events += 1
        if cap[p] / g[p] <= horizon and cap[p] < math.inf:
            times[events] = cap[p] / g[p]
            pair_of_event[events] = p
            events += 1
    order = np.argsort(times[:events], kind="mergesort")
    time_of, pair_of = _numbers(times[order]), _numbers(pair_of_event[order])
    now = 0.0
    for k in range(events + 1):
        then = time_of[k] if k < events else math.inf
        while True:  # limits that fill before the next breakpoint
            first, at = -1, math.inf
            for r in range(rows):
                if count[r] > 0 and filled[r] == math.inf and slope[r] != 0.0:  # rounding may leave 0
                    t = now + max(bounds[r] - used[r], 0.0) / slope[r]
                    if t < at:
                        first, at = r, t
            if first < 0 or at > then:
                break
            held = 0.0
            per_level = 0.0
            for p in range(pairs):
                if use[p][first] > 0.0:
                    if state[p] == _RISING:
                        held -= use[p][first] * y[p]
                        per_level += use[p][first] * g[p]
                    else:
                        held += use[p][first] * given[p]
            at = max((bounds[first] - held) / per_level, now)
            for r in range(rows):
                used[r] += slope[r] * (at - now)
            now = at
            filled[first] = now
            for p in range(pairs):
                if use[p][first] > 0.0 and state[p] != _DONE:
                    if state[p] == _RISING:
                        given[p] = max(now * g[p] - y[p], 0.0)
                        for r in range(rows):
                            if use[p][r] > 0.0:
                                slope[r] -= use[p][r] * g[p]
                                count[r] -= 1
                    state[p] = _DONE
                    stop[p] = first
        if k == events:
            break
        for r in range(rows):
            used[r] += slope[r] * (then - now)
        now = max(then, now)
        p = pair_of[k]
        if state[p] == _WAITING:
            state[p] = _RISING
            for r in range(rows):
                if use[p][r] > 0.0:
                    slope[r] += use[p][r] * g[p]
                    count[r] += 1
        elif state[p] == _RISING:  # its second breakpoint: it has all its tasks
            state[p] = _DONE
            given[p] = cap[p] - y[p]
            for r in range(rows):
                if use[p][r] > 0.0:
                    slope[r] -= use[p][r] * g[p]
                    count[r] -= 1
    x[:] = given
    level[:] = filled
    if horizon == math.inf:
        return True
    for p in range(pairs):
        if state[p] != _DONE:
            return False
    return now <= horizon


# Sweeps ----------------------------------------------------------------------------------------------------------------------------


@step()
def sweep(order, start, user, g, tasks, use, bounds, x, total, stop, level):  # type: ignore[no-untyped-def]
    """Let each server act once, in this order, on the present state; return the largest change of a pair, relative to the tasks of its
    user."""
    largest = 0.0
    for i in order:
        low, high = start[i], start[i + 1]
        old = x[low:high].copy()
        y = np.maximum(total[user[low:high]] - old, 0.0)
        fill_server(y, g[low:high], tasks[user[low:high]], use[low:high], bounds[i], x[low:high], stop[low:high], level[i])
        now, before, n = _numbers(x[low:high]), _numbers(old), _numbers(user[low:high])
        for p in range(high - low):
            change = now[p] - before[p]
            if change != 0.0:
                total[n[p]] += change
                largest = max(largest, abs(change) / max(total[n[p]], before[p]))
    held, n, afresh = _numbers(x), _numbers(user), _numbers(np.zeros(total.size))  # additions and subtractions leave rounding behind
    for p in range(x.size):
        afresh[n[p]] += held[p]
    total[:] = afresh
    return largest


@step()
def act_asynchronously(actors, delays, length, start, user, g, tasks, use, bounds, x, total, stop, level, planned, due, clock):  # type: ignore[no-untyped-def]
    """Let servers act at times of their own; return the largest change as `sweep` does.

    At each tick one idle server decides, given the tasks of its users elsewhere, and carries out its decision ``delays`` ticks later
    (``due``, ``planned``), while others act. It takes the part ``length`` of the step.
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
                change = length * (planned[p] - x[p])
                if change != 0.0:
                    old = x[p]
                    x[p] = planned[p] if length == 1.0 else x[p] + change
                    total[user[p]] += x[p] - old
                    largest = max(largest, abs(x[p] - old) / length / max(total[user[p]], old))
    total[:] = 0.0
    for p in range(x.size):
        total[user[p]] += x[p]
    return largest


# At times of their own -------------------------------------------------------------------------------------------------------------
#
# Between two actions everything is constant: who holds what, and so how fast each job's work goes on. The next thing to happen is an
# action, the end of a job, or what the caller waits for. The k-th action of server s is at ``origin + phases[s] + k period``: computed
# afresh, never summed up.


class Servers(NamedTuple):
    """S single servers of R rows; ``order`` are they by phase."""

    row: IntArray  # (S,)
    order: IntArray  # (S,)
    phases: FloatArray  # (S,) seconds
    there: BoolArray  # (S,)


class Users(NamedTuple):
    """N users who have tasks, and L limits of a server: its resources, or its time."""

    alone: FloatArray  # (R, N) gamma[n,i] of one server of the row; 0 where n may not run
    worth: FloatArray  # (R, N) phi[n] gamma[n,i]
    tasks: FloatArray  # (N,)
    use: FloatArray  # (R, N, L) of a task
    bounds: FloatArray  # (R, L)
    exact: FloatArray  # (N,) tasks in the exact allocation
    x: FloatArray  # (S, N)
    total: FloatArray  # (N,)


class Jobs(NamedTuple):
    """J unfinished jobs, user by user, each user's in the order in which they run."""

    user: IntArray  # (J,)
    tasks: FloatArray  # (J,)
    left: FloatArray  # (J,) work, in seconds of a task
    started: FloatArray  # (J,) when; nan: not yet
    rate: FloatArray  # (J,) tasks that run


class Watch(NamedTuple):
    """From when on the servers have been this near to what is exact; inf while they are not."""

    tolerances: FloatArray
    near: FloatArray  # by the tasks of users, looked at after each action
    fair: FloatArray  # by the theorem's condition, looked at after each round


@step()
def follow(servers, users, jobs, watch, now, until, turn, origin, period, at_once):  # type: ignore[no-untyped-def]
    """Let servers act until just before ``until``, or until a job may have ended; return the time and the number of the next action."""
    number = servers.order.size
    snapshot = users.total.copy()
    while True:
        s = servers.order[turn % number]
        due = max(origin + servers.phases[s] + (turn // number) * period, now)
        ends = _share_out(users.total, jobs, now)
        then = min(due, ends, until)
        for j in range(jobs.left.size):
            if jobs.rate[j] > 0.0:
                jobs.left[j] -= jobs.rate[j] * (then - now)
        now = then
        if now >= until or now >= ends:
            return now, turn
        if at_once:
            snapshot[:] = users.total
            for k in range(number):
                _act(servers, users, servers.order[k], snapshot)
            turn += number
            keep_to_tasks(users)
        else:
            _act(servers, users, s, users.total)
            turn += 1
        _look(watch.tolerances, watch.near, distance(users.total, users.exact), now)
        if turn % number == 0:
            add_up(users)  # afresh: additions and subtractions leave rounding behind
            _look(watch.tolerances, watch.fair, violation(servers, users), now)


@step()
def look_afresh(servers, users, watch, now):  # type: ignore[no-untyped-def]
    """Begin to watch: something has changed."""
    watch.near[:] = math.inf
    watch.fair[:] = math.inf
    _look(watch.tolerances, watch.near, distance(users.total, users.exact), now)
    _look(watch.tolerances, watch.fair, violation(servers, users), now)


@step()
def _act(servers, users, s, known):  # type: ignore[no-untyped-def]
    """Let one server divide what it has, given what all users are known to have."""
    if not servers.there[s]:
        return
    i = servers.row[s]
    n_users, limits = users.use.shape[1], users.use.shape[2]
    x = users.x[s]
    elsewhere = np.empty(n_users)
    most = np.empty(n_users)
    old = x.copy()
    for n in range(n_users):
        elsewhere[n] = max(known[n] - x[n], 0.0)
        most[n] = users.tasks[n] if users.alone[i, n] > 0.0 else 0.0
    fill_server(elsewhere, users.worth[i], most, users.use[i], users.bounds[i], x, np.empty(n_users, np.int64), np.empty(limits))
    for n in range(n_users):
        users.total[n] += x[n] - old[n]


@step()
def keep_to_tasks(users):  # type: ignore[no-untyped-def]
    """Reduce the tasks of a user that is given more than it has, by the same factor on all servers."""
    add_up(users)
    for n in range(users.total.size):
        if users.total[n] > users.tasks[n]:
            users.x[:, n] *= users.tasks[n] / users.total[n]
            users.total[n] = users.tasks[n]


@step()
def add_up(users):  # type: ignore[no-untyped-def]
    for n in range(users.total.size):
        users.total[n] = 0.0
        for s in range(users.x.shape[0]):
            users.total[n] += users.x[s, n]


@step()
def _share_out(total, jobs, now):  # type: ignore[no-untyped-def]
    """Give each user's jobs, the first first, what it runs; return when the first job ends."""
    last, free, ends = -1, 0.0, math.inf
    for j in range(jobs.user.size):
        n = jobs.user[j]
        if n != last:
            last, free = n, total[n]
        rate = min(jobs.tasks[j], free)
        free -= rate
        jobs.rate[j] = rate if rate > _NOTHING * jobs.tasks[j] else 0.0
        if jobs.rate[j] > 0.0:
            if math.isnan(jobs.started[j]):
                jobs.started[j] = now
            end = now + max(jobs.left[j], 0.0) / jobs.rate[j]
            ends = min(ends, end if end > now else np.nextafter(now, math.inf))  # less than the clock can tell: rounding
    return ends


@step()
def _look(tolerances, since, far, now):  # type: ignore[no-untyped-def]
    for k in range(tolerances.size):
        if not far <= tolerances[k]:
            since[k] = math.inf
        elif since[k] == math.inf:
            since[k] = now


@step()
def distance(total, exact):  # type: ignore[no-untyped-def]
    """Return the largest relative difference of the tasks of a user, |x - x*| / max(x, x*)."""
    far = 0.0
    for n in range(total.size):
        if math.isnan(exact[n]):  # it is not known
            return math.nan
        larger = max(total[n], exact[n])
        if larger > 0.0:
            far = max(far, abs(total[n] - exact[n]) / larger)
    return far


@step()
def violation(servers, users):  # type: ignore[no-untyped-def]
    """Return the largest violation of the condition of the theorem, as `fairopt.certificate.conditions.bottleneck_violation` on single
    servers."""
    worst = 0.0
    limits = users.bounds.shape[1]
    free = np.empty(limits)
    highest = np.empty(limits)
    for s in range(servers.row.size):
        if not servers.there[s]:
            continue
        i = servers.row[s]
        free[:] = users.bounds[i]
        highest[:] = 0.0
        for n in range(users.total.size):
            if users.alone[i, n] > 0.0:
                holds = users.x[s, n] > _NOTHING * min(users.alone[i, n], users.tasks[n])
                for r in range(limits):
                    free[r] -= users.use[i, n, r] * users.x[s, n]
                    if holds and users.use[i, n, r] > 0.0:
                        highest[r] = max(highest[r], users.total[n] / users.worth[i, n])
        for n in range(users.total.size):
            if users.alone[i, n] > 0.0:
                least = max(users.tasks[n] - users.total[n], 0.0) / users.tasks[n] if users.tasks[n] < math.inf else math.inf
                for r in range(limits):
                    if users.use[i, n, r] > 0.0:
                        behind = 0.0
                        if highest[r] > 0.0:
                            behind = 1.0 - users.total[n] / users.worth[i, n] / highest[r]
                        least = min(least, max(free[r] / users.bounds[i, r], behind, 0.0))
                worst = max(worst, least)
    return worst
