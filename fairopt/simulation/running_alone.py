"""The jobs of one owner, alone with its slice of the cluster, in the order of submission.

Job j has the work L[j] and asks for at most m[j] work a second (all its tasks at once, on the fastest servers). With the whole slice it
would do R[j] a second. In the order of submission each job takes the part

    min(what earlier jobs leave of the slice, m[j] / R[j])

and does R[j] times that part. Earlier jobs only end, so a job never slows down until servers come or go: at any time at most one job has
less than it asks for, and a heap has the ends of the others.

>>> run_alone([0, 0, 10], [60, 40, 10], [1, 1, 1], [0, 0, 0], [0], [[2]])  # a slice for two of the tasks
[60.0, 40.0, 50.0]
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from math import inf, nan

__all__ = ["run_alone"]

_LEFT = 1e-12  # of the slice: less is rounding


def run_alone(
    submit: Sequence[float],
    work: Sequence[float],
    most: Sequence[float],
    stream: Sequence[int],
    changed: Sequence[float],
    rates: Sequence[Sequence[float]],
) -> list[float]:
    """Return when each job ends, (jobs,), in seconds; nan: never.

    Parameters
    ----------
    submit : sequence of float (jobs,)
        In seconds, in ascending order.
    work : sequence of float (jobs,)
        inf: it never ends.
    most : sequence of float (jobs,)
        The most work a second.
    stream : sequence of int (jobs,)
        Column of ``rates``: jobs of one stream have the same demand.
    changed : sequence of float (periods,)
        When each period begins, in seconds, in ascending order.
    rates : sequences of float (periods, streams)
        Work a second with the whole slice, in each period; 0: it cannot run.
    """
    ends, left = [nan] * len(submit), [float(each) for each in work]
    full: list[tuple[float, int, float]] = []  # end, job, part of the slice
    waiting, unable = deque[int](), list[int]()
    partial, taken, partial_end = -1, 0.0, inf  # the job that has less than it asks for
    came, period, free = 0, 0, 1.0
    now = submit[0] if len(submit) else inf
    while now < inf:
        while full and full[0][0] <= now:
            end, job, part = heapq.heappop(full)
            ends[job], free = float(end), free + part
        if partial_end <= now:
            ends[partial] = float(partial_end)
            partial, taken, partial_end, free = -1, 0.0, inf, free + taken
        while came < len(submit) and submit[came] <= now:
            waiting.append(came)
            came += 1
        before = period
        while period + 1 < len(changed) and changed[period + 1] <= now:
            period += 1
        if partial >= 0:
            waiting.appendleft(partial)
            free += taken
        if period > before:  # other rates: everybody takes its part anew
            for end, job, _ in full:
                left[job] = (end - now) * most[job]
            waiting = deque(sorted([*waiting, *unable, *(job for _, job, _ in full)]))
            full, unable = [], []
        free = free if full else 1.0
        partial, taken, partial_end = -1, 0.0, inf
        while waiting and partial < 0 and free > _LEFT:
            job = waiting.popleft()
            whole = rates[period][stream[job]]
            if whole <= 0:
                unable.append(job)
                continue
            part = min(free, most[job] / whole)
            free -= part
            if part * whole >= most[job] * (1 - _LEFT):
                heapq.heappush(full, (now + left[job] / most[job], job, part))
            else:
                partial, taken, partial_end = job, part, now + left[job] / (part * whole)
        coming = submit[came] if came < len(submit) else inf
        changes = changed[period + 1] if period + 1 < len(changed) else inf
        then = min(coming, changes, partial_end, full[0][0] if full else inf)
        if partial >= 0 and then < partial_end:
            left[partial] = max(left[partial] - taken * rates[period][stream[partial]] * (then - now), 0.0)
        now = then
    return ends
