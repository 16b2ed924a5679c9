"""The equations of `fairopt.solvers.equilibrium.smoothing` for limits, summed over the users."""

from __future__ import annotations

import numpy as np

from fairopt.solvers.compiled import step

__all__ = ["eliminate_users"]


@step()
def eliminate_users(start, limits, first, pairs, use, user, pull, own, pull_by_user, limit_by_user):  # type: ignore[no-untyped-def]
    """Return the dense matrix sum over the users n of B_n (I - 1 pull_n' / own[n]) J_n, (limits, limits).

    B_n holds use times pull of the pairs of n, and J_n the limit that stops each (`fairopt.solvers.equilibrium.smoothing`). The matrix is
    written row by row, so that a row stays in the cache: row r has the pairs ``first[r]`` to ``first[r + 1]`` (``pairs``, ``use``). User n
    has the pairs ``start[n]`` to ``start[n + 1]``, with ``pull_by_user`` and ``limit_by_user``; ``limits`` are the limits of the pairs in
    their own order.
    """
    size = first.size - 1
    matrix = np.zeros((size, size))
    for r in range(size):
        row = matrix[r]
        for e in range(first[r], first[r + 1]):
            p = pairs[e]
            n = user[p]
            used = use[e] * pull[p]
            row[limits[p]] += used
            part = used / own[n]
            for q in range(start[n], start[n + 1]):
                row[limit_by_user[q]] -= part * pull_by_user[q]
    return matrix
