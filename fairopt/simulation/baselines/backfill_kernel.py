"""EASY backfill in one step, where nothing but servers limits tasks, and each task is the same on every server.

The rules, and their sources, are those of `fairopt.simulation.baselines.passes`, whose loop over NumPy arrays finds the same tasks on the
same servers, and knows limits, resources of the cluster and speeds, too.

    c[i]          what is free of server i, and a rounding error more
    shadow time   the first end t of running tasks, by the estimates, at which the first job fits into  c[i] + what tasks give back until t
    spare[i]      what is left of this beside the first job
    a later job starts now on the first servers where it fits into

        c[i]                   if it ends by the shadow time
        min(c[i], spare[i])    otherwise

Room only shrinks within a pass. So once no task of a job fits, none of a job of the same shape does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.compiled import step

__all__ = ["COLUMNS", "END", "ENDS", "JOB", "NUMBER", "SERVER", "STREAM", "TASKS", "Jobs", "Servers", "start_beside", "with_room"]

# The columns of the table of running tasks, which has a row for each of their servers, in the order of their expected ends: when they are
# expected to end, the number of those that started together, their stream, the server, the tasks there, when they end, and their job.
END, NUMBER, STREAM, SERVER, TASKS, ENDS, JOB = range(7)
COLUMNS = 7


class Jobs(NamedTuple):
    """The jobs, in the order of submission.

    Attributes
    ----------
    first, last : int arrays (jobs,)
        Of job j the tasks ``first[j]`` to ``last[j] - 1`` wait.
    gang : bool array (jobs,)
    stream, shape : int arrays (jobs,)
    expected : array (jobs,)
        The duration of a task by the estimate.
    duration : array (jobs,) or (tasks,)
    """

    first: IntArray
    last: IntArray
    gang: BoolArray
    stream: IntArray
    shape: IntArray
    expected: FloatArray
    duration: FloatArray


class Servers(NamedTuple):
    """The servers, one by one.

    Attributes
    ----------
    room : array (resources, servers)
        What is free, and a rounding error more.
    row : int array (servers,)
    closed : bool array (servers,)
    allowed : bool array (streams, rows)
    demands : array (resources, streams)
    slack : array (resources,)
        A rounding error of all servers together.
    """

    room: FloatArray
    row: IntArray
    closed: BoolArray
    allowed: BoolArray
    demands: FloatArray
    slack: FloatArray


@step()
def start_beside(now, head, waiting, jobs, servers, running):  # type: ignore[no-untyped-def]
    """Return the tasks that start beside the first job that does not fit.

    ``head`` is this job, and ``waiting`` are those behind it, in order, which may contain it. ``running`` is the table of running tasks.

    The first result has a row for each job that starts tasks: the job, and the number of its servers. The second has a row for each of
    these servers, one job after the other: the server, and the tasks on it.
    """
    first, last, gang, stream, shape = jobs.first, jobs.last, jobs.gang, jobs.stream, jobs.shape
    resources, size = servers.room.shape
    on, tasks = np.empty(size, np.int64), np.empty(size, np.int64)
    refused = np.zeros((2, shape.max() + 1), np.bool_)  # shapes that fit nowhere; and nowhere beside the first job
    some_fit = False
    for j in waiting:
        if j == head or refused[0, shape[j]]:
            continue
        wanted = last[j] - first[j]
        _, total = place(stream[j], wanted, servers.room, servers.room, servers, on, tasks)
        if total == wanted or (total > 0 and not gang[j]):
            some_fit = True
            break
        refused[0, shape[j]] = total == 0
    started, places = np.empty((8, 2), np.int64), np.empty((8, 2), np.int64)
    n_started = n_places = 0
    if not some_fit:  # no reservation is needed
        return started[:0], places[:0]
    free, spare = servers.room.copy(), servers.room.copy()
    shadow = _reserve(now, stream[head], last[head] - first[head] if gang[head] else 1, spare, servers, running, on, tasks)
    for j in waiting:
        late = now + jobs.expected[j] > shadow
        if j == head or refused[0, shape[j]] or (late and refused[1, shape[j]]):
            continue
        wanted = last[j] - first[j]
        found, total = place(stream[j], wanted, free, spare if late else free, servers, on, tasks)
        if total == 0:
            refused[1 if late else 0, shape[j]] = True
        if total == 0 or (gang[j] and total < wanted):
            continue
        for k in range(found):
            for r in range(resources):
                amount = tasks[k] * servers.demands[r, stream[j]]
                free[r, on[k]] -= amount
                if late:
                    spare[r, on[k]] -= amount
        started = with_room(started, n_started + 1)
        started[n_started, 0], started[n_started, 1] = j, found
        n_started += 1
        places = with_room(places, n_places + found)
        for k in range(found):
            places[n_places + k, 0], places[n_places + k, 1] = on[k], tasks[k]
        n_places += found
    return started[:n_started], places[:n_places]


@step()
def place(n, wanted, room, beside, servers, on, tasks):  # type: ignore[no-untyped-def]
    """Write the first servers where so many tasks of stream n fit into both rooms, and the tasks on each; return how many of both."""
    found, total = 0, 0
    for i in range(room.shape[1]):
        if total == wanted:
            break
        if servers.closed[i] or not servers.allowed[n, servers.row[i]]:
            continue
        most = float(wanted - total)
        for r in range(room.shape[0]):
            demand = servers.demands[r, n]
            if demand > 0.0:
                most = min(most, min(room[r, i], beside[r, i]) / demand)
        if most >= 1.0:
            on[found], tasks[found] = i, int(most)
            found += 1
            total += int(most)
    return found, total


@step()
def _reserve(now, n, wanted, room, servers, running, on, tasks):  # type: ignore[no-untyped-def]
    """Let running tasks of ``room`` end until so many tasks of stream n fit, and take what these take; return when that is, or inf."""
    resources, demands = room.shape[0], servers.demands
    back, missing = np.zeros(room.shape), np.empty(resources)
    for r in range(resources):
        missing[r] = wanted * demands[r, n] - servers.slack[r]
        for i in range(room.shape[1]):
            if not servers.closed[i]:
                missing[r] -= room[r, i]
    for p in range(running.shape[0]):
        time = max(running[p, END], now)
        m, i = int(running[p, STREAM]), int(running[p, SERVER])
        for r in range(resources):
            amount = running[p, TASKS] * demands[r, m]
            back[r, i] += amount
            missing[r] -= amount
        if (p + 1 < running.shape[0] and max(running[p + 1, END], now) == time) or missing.max() > 0.0:
            continue
        for r in range(resources):
            for k in range(room.shape[1]):
                room[r, k] += back[r, k]
                back[r, k] = 0.0
        found, total = place(n, wanted, room, room, servers, on, tasks)
        if total == wanted:
            for k in range(found):
                for r in range(resources):
                    room[r, on[k]] -= tasks[k] * demands[r, n]
            return time
    return np.inf


@step()
def with_room(table, rows):  # type: ignore[no-untyped-def]
    """Return a table with room for so many rows, and what it has."""
    if rows <= table.shape[0]:
        return table
    larger = np.empty((2 * rows, table.shape[1]), table.dtype)
    larger[: table.shape[0]] = table
    return larger
