"""The largest violation of the condition of an equilibrium, or of a limit, in one pass over the pairs of each server."""

from __future__ import annotations

import math

import numpy as np

from fairopt.solvers.compiled import step

__all__ = ["largest_violation"]


@step()
def largest_violation(start, user, g, largest, tasks, use, bounds, total, x, nothing):  # type: ignore[no-untyped-def]
    """Return the largest relative excess over a limit, negative number, or violation of the bottleneck condition by a pair.

    Pairs are sorted by server; those of server i are ``start[i]`` to ``start[i + 1]``. ``use`` (pairs, limits of a server) and ``bounds``
    (servers, limits), inf where a server has fewer, are its limits; ``total`` are the tasks of users. A pair with less than the part
    ``nothing`` of its largest value holds nothing. The condition is that of `fairopt.certificate.conditions.bottleneck_violation`.
    """
    worst, width = 0.0, bounds.shape[1]
    free, highest = np.empty(width), np.empty(width)
    for n in range(tasks.size):
        if tasks[n] < math.inf:
            worst = max(worst, (total[n] - tasks[n]) / tasks[n] if tasks[n] > 0.0 else total[n])
    for i in range(start.size - 1):
        for r in range(width):
            free[r], highest[r] = 0.0, 0.0
        for p in range(start[i], start[i + 1]):
            share = total[user[p]] / g[p] if x[p] > nothing * largest[p] else 0.0
            worst = max(worst, -x[p])
            for r in range(width):
                if use[p, r] > 0.0:
                    free[r] += use[p, r] * x[p]
                    highest[r] = max(highest[r], share)
        for r in range(width):
            left = bounds[i, r] - free[r]
            scale = bounds[i, r] if bounds[i, r] > 0.0 else 1.0
            if left < 0.0:
                worst = max(worst, -left / scale)
            free[r] = max(left, 0.0) / scale if bounds[i, r] < math.inf and bounds[i, r] > 0.0 else 0.0
        for p in range(start[i], start[i + 1]):
            if largest[p] == 0.0:
                continue
            n = user[p]
            share, least = total[n] / g[p], math.inf
            for r in range(width):
                if use[p, r] > 0.0:
                    behind = (highest[r] - share) / highest[r] if highest[r] > 0.0 else 0.0
                    least = min(least, max(behind, free[r]))
            if tasks[n] < math.inf:
                least = min(least, max(tasks[n] - total[n], 0.0) / tasks[n] if tasks[n] > 0.0 else 0.0)
            worst = max(worst, least)
    return worst
