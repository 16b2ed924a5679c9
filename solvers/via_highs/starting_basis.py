"""A good first basis for "raise one level for all": a greedy placement, found in one pass.

Put every user on a single server, the largest first, each where the fullest limit that it touches stays emptiest (longest processing
time first, as for parallel machines). The basis that holds these columns, the slacks of the limits and no t is feasible at
level 0; the first pivot of primal simplex brings in t and raises everybody until the first limit is full, which is a few
percent below the optimum. ``benchmarks/results/choices.md`` says how many pivots that saves.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray

__all__ = ["greedy_columns"]


def greedy_columns(use: sp.csr_array, users: IntArray) -> IntArray:
    """Return one column for each user.

    Parameters
    ----------
    use : csr array (columns, limits)
        Part of each limit that a column uses when it alone lifts its user to level 1; every row has an entry.
    users : int array (columns,)
        User of each column, sorted.
    """
    start, limit, part = use.indptr, use.indices, use.data
    first = np.flatnonzero(np.diff(users, prepend=-1))
    last = np.append(first[1:], users.size)
    size: FloatArray = np.minimum.reduceat(np.maximum.reduceat(part, start[:-1]), first)
    load = np.zeros(use.shape[1])
    chosen = np.empty(first.size, dtype=np.int64)
    for k in np.argsort(-size):
        begin, end = start[first[k]], start[last[k]]
        fullest = np.maximum.reduceat(load[limit[begin:end]] + part[begin:end], start[first[k] : last[k]] - begin)
        column = first[k] + int(fullest.argmin())
        span = slice(start[column], start[column + 1])
        load[limit[span]] += part[span]
        chosen[k] = column
    return chosen
