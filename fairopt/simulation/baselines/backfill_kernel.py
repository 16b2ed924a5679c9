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

import numpy as np

from fairopt.solvers.compiled import step

__all__ = ["END", "NUMBER", "SERVER", "STREAM", "TASKS", "start_beside"]

END, NUMBER, STREAM, SERVER, TASKS = range(5)  # the columns of a table of running tasks


@step()
def start_beside(  # type: ignore[no-untyped-def]
    now, head, jobs, first, last, gang, stream, shape, expected, room, row, closed, allowed, demands, needed, running
):
    """Return the tasks that start beside the first job that does not fit.

    ``head`` is this job, and ``jobs`` are those behind it, in order, which may contain it. Of job j the tasks ``first[j]`` to
    ``last[j] - 1`` wait. ``room`` and ``demands`` are (resources, servers) and (resources, streams); ``allowed`` is (streams, rows).
    ``needed`` is the least that must be given back, in all, before the head fits, (resources,). ``running`` has a row for each server
    of the running tasks, in the order of their expected ends.

    The first result has a row for each job that starts tasks: the job, and the number of its servers. The second has a row for each of
    these servers, one job after the other: the server, and the tasks on it.
    """
    resources, size = room.shape
    servers, tasks = np.empty(size, np.int64), np.empty(size, np.int64)
    refused = np.zeros((2, shape.max() + 1), np.bool_)  # shapes that fit nowhere; and nowhere beside the first job
    some_fit = False
    for j in jobs:
        if j == head or refused[0, shape[j]]:
            continue
        wanted = last[j] - first[j]
        _, total = _place(stream[j], wanted, room, room, row, closed, allowed, demands, servers, tasks)
        if total == wanted or (total > 0 and not gang[j]):
            some_fit = True
            break
        refused[0, shape[j]] = total == 0
    started, places = np.empty((8, 2), np.int64), np.empty((8, 2), np.int64)
    n_started = n_places = 0
    if not some_fit:  # no reservation is needed
        return started[:0], places[:0]
    free, spare = room.copy(), room.copy()
    of_head = last[head] - first[head] if gang[head] else 1
    shadow = _reserve(now, stream[head], of_head, spare, row, closed, allowed, demands, needed, running, servers, tasks)
    for j in jobs:
        late = now + expected[j] > shadow
        if j == head or refused[0, shape[j]] or (late and refused[1, shape[j]]):
            continue
        wanted = last[j] - first[j]
        found, total = _place(stream[j], wanted, free, spare if late else free, row, closed, allowed, demands, servers, tasks)
        if total == 0:
            refused[1 if late else 0, shape[j]] = True
        if total == 0 or (gang[j] and total < wanted):
            continue
        for k in range(found):
            for r in range(resources):
                amount = tasks[k] * demands[r, stream[j]]
                free[r, servers[k]] -= amount
                if late:
                    spare[r, servers[k]] -= amount
        started = _with_room(started, n_started + 1)
        started[n_started, 0], started[n_started, 1] = j, found
        n_started += 1
        places = _with_room(places, n_places + found)
        for k in range(found):
            places[n_places + k, 0], places[n_places + k, 1] = servers[k], tasks[k]
        n_places += found
    return started[:n_started], places[:n_places]


@step()
def _place(n, wanted, room, beside, row, closed, allowed, demands, servers, tasks):  # type: ignore[no-untyped-def]
    """Write the first servers where so many tasks of stream n fit into both rooms, and the tasks on each; return how many of both."""
    found, total = 0, 0
    for i in range(room.shape[1]):
        if total == wanted:
            break
        if closed[i] or not allowed[n, row[i]]:
            continue
        most = float(wanted - total)
        for r in range(room.shape[0]):
            if demands[r, n] > 0.0:
                most = min(most, min(room[r, i], beside[r, i]) / demands[r, n])
        if most >= 1.0:
            servers[found], tasks[found] = i, int(most)
            found += 1
            total += int(most)
    return found, total


@step()
def _reserve(  # type: ignore[no-untyped-def]
    now, n, wanted, room, row, closed, allowed, demands, needed, running, servers, tasks
):
    """Let running tasks of ``room`` end until so many tasks of stream n fit, and take what these take; return when that is, or inf."""
    resources = room.shape[0]
    back, in_all = np.zeros(room.shape), np.zeros(resources)
    for p in range(running.shape[0]):
        time = max(running[p, END], now)
        m, i = int(running[p, STREAM]), int(running[p, SERVER])
        for r in range(resources):
            amount = running[p, TASKS] * demands[r, m]
            back[r, i] += amount
            in_all[r] += amount
        if p + 1 < running.shape[0] and max(running[p + 1, END], now) == time:
            continue
        enough = True
        for r in range(resources):
            enough = enough and in_all[r] >= needed[r]
        if not enough:
            continue
        for r in range(resources):
            for k in range(room.shape[1]):
                room[r, k] += back[r, k]
                back[r, k] = 0.0
        found, total = _place(n, wanted, room, room, row, closed, allowed, demands, servers, tasks)
        if total == wanted:
            for k in range(found):
                for r in range(resources):
                    room[r, servers[k]] -= tasks[k] * demands[r, n]
            return time
    return np.inf


@step()
def _with_room(table, rows):  # type: ignore[no-untyped-def]
    """Return a table with room for so many rows, and what it has."""
    if rows <= table.shape[0]:
        return table
    larger = np.empty((2 * rows, table.shape[1]), table.dtype)
    larger[: table.shape[0]] = table
    return larger
