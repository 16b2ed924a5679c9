"""One pool filled task by task, the lowest share first; compiled by numba (a run gives out 10^4 to 10^6 tasks, one after another).

Algorithm 1 of Ghodsi et al. (2011): the user with the lowest share gets one task, until the task of that user does not fit. Users wait in
a binary heap, so that a task costs O(log N).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill"]


@njit(cache=True)
def _before(a, b, share, rank):  # type: ignore[no-untyped-def]
    """Is user a served before user b?"""
    return share[a] < share[b] or (share[a] == share[b] and rank[a] < rank[b])


@njit(cache=True)
def _sink(heap, size, k, share, rank):  # type: ignore[no-untyped-def]
    """Let the user at place k sink until both below it are served after it."""
    while True:
        child = 2 * k + 1
        if child >= size:
            return
        if child + 1 < size and _before(heap[child + 1], heap[child], share, rank):
            child += 1
        if not _before(heap[child], heap[k], share, rank):
            return
        heap[k], heap[child] = heap[child], heap[k]
        k = child


@njit(cache=True, nogil=True)
def fill(demands, room, slack, step, rank, tasks, x, go_on):  # type: ignore[no-untyped-def]
    """Give out tasks: raises x (users,) and lowers room (resources,) in place.

    The share of user n is x[n] step[n], rounded to a whole number; ties go to the lower rank. A user whose task does not fit leaves if
    ``go_on``, and ends it all otherwise.
    """
    users, resources = demands.shape
    share = np.rint(x * step)
    heap = [n for n in range(users) if step[n] > 0.0 and x[n] + 1.0 <= tasks[n]]
    size = len(heap)
    for k in range(size // 2 - 1, -1, -1):
        _sink(heap, size, k, share, rank)
    while size > 0:
        n = heap[0]
        fits = True
        for r in range(resources):
            if demands[n, r] > room[r] + slack[r]:
                fits = False
        if fits:
            for r in range(resources):
                room[r] -= demands[n, r]
            x[n] += 1.0
            share[n] = np.rint(x[n] * step[n])
        elif not go_on:
            return
        if not fits or x[n] + 1.0 > tasks[n]:
            size -= 1
            heap[0] = heap[size]
        _sink(heap, size, 0, share, rank)
