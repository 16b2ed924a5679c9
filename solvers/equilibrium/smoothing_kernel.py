"""The equations of `fairopt.solvers.equilibrium.smoothing` for limits, summed over the users."""

from __future__ import annotations

import numpy as np

from fairopt.solvers.compiled import step

__all__ = ["eliminate_users"]


@step()
def eliminate_users(start, by_user, first, rows, use, pull, own, j, limits):  # type: ignore[no-untyped-def]
    """Return the dense matrix sum over the users n of B_n (I - 1 pull_n' / own[n]) J_n, (limits, limits).

    B_n holds use times pull of the pairs of n, those from ``start[n]`` to ``start[n + 1]`` in ``by_user``, in compressed columns
    (``first``, ``rows``, ``use``), and J_n the limit j that stops each: see `fairopt.solvers.equilibrium.smoothing`.
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
