"""Servers that act by themselves at times of their own, from one action to the next; compiled by numba.

Between two actions everything is constant: who holds what, and so how fast each job's work goes on. The next thing to happen is an action,
the end of a job, or what the caller waits for. The k-th action of server s is at ``origin + phases[s] + k period``: computed afresh, never
summed up.

An action is ``fairopt.solvers.server_sweep.fill_server``, of another file: numba keeps what it compiled until *this* file changes. Whoever
changes that one saves this one too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.server_sweep import fill_server

__all__ = ["Jobs", "Servers", "Users", "Watch", "distance", "follow", "keep_to_tasks", "look_afresh", "violation"]

_NOTHING = 1e-9  # part of the most that a user can hold on a server, or of a job's tasks, that is rounding


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


@njit(cache=True)
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


@njit(cache=True)
def look_afresh(servers, users, watch, now):  # type: ignore[no-untyped-def]
    """Begin to watch: something has changed."""
    watch.near[:] = math.inf
    watch.fair[:] = math.inf
    _look(watch.tolerances, watch.near, distance(users.total, users.exact), now)
    _look(watch.tolerances, watch.fair, violation(servers, users), now)


@njit(cache=True)
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


@njit(cache=True)
def keep_to_tasks(users):  # type: ignore[no-untyped-def]
    """Whoever is given more than it has tasks leaves the same part free everywhere."""
    add_up(users)
    for n in range(users.total.size):
        if users.total[n] > users.tasks[n]:
            users.x[:, n] *= users.tasks[n] / users.total[n]
            users.total[n] = users.tasks[n]


@njit(cache=True)
def add_up(users):  # type: ignore[no-untyped-def]
    for n in range(users.total.size):
        users.total[n] = 0.0
        for s in range(users.x.shape[0]):
            users.total[n] += users.x[s, n]


@njit(cache=True)
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


@njit(cache=True)
def _look(tolerances, since, far, now):  # type: ignore[no-untyped-def]
    for k in range(tolerances.size):
        if not far <= tolerances[k]:
            since[k] = math.inf
        elif since[k] == math.inf:
            since[k] = now


@njit(cache=True)
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


@njit(cache=True)
def violation(servers, users):  # type: ignore[no-untyped-def]
    """Return the largest violation of the condition of the theorem, as `fairopt.conditions.envy_of_servers` on single servers."""
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
