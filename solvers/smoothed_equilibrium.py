r"""The equilibrium of many servers by an interior point: where sweeps crawl, a few dozen Newton steps.

Take from the sweeps only which limit j(p) stops each pair p = (n, i). Then x is an equilibrium if, with a level L[j] for each such limit,

    w[p] = log(X[n] / g[p]) - log L[j(p)] >= 0,    x[p] >= 0,    x[p] w[p] = 0      nobody holds anything above the level
    sum of x over the pairs of n = X[n],           sum of A[j,p] x[p] = b[j]        the limits are full

As in an interior-point method, x[p] w[p] = mu times the largest value of x[p], and mu goes to 0. A Newton step eliminates x and w
and leaves a dense system in log X and log L, of users and limits, however many pairs there are: 1,000 users and 1,000 servers are
2,000 equations. (Under time division these are the conditions of a convex program. Otherwise nothing promises that the steps
converge.)

The answer proves nothing: it is a point for the sweeps to go on from, near which the exact equations have the right structure.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray

__all__ = ["MOST_EQUATIONS", "approach"]

MOST_EQUATIONS = 4_000  # a dense system of these takes a second or two
_STEPS = 60
_END = 1e-12
_START = 1e-6  # of its largest value is the least that a pair starts with
_SLACK = 0.05


def approach(
    user: IntArray,
    g: FloatArray,
    largest: FloatArray,
    use: sp.csr_array,
    bounds: FloatArray,
    x: FloatArray,
    stop: IntArray,
) -> FloatArray | None:
    """Return an approximate equilibrium in which limit ``stop`` stops each pair; None where the steps go astray.

    Users with a pair that no limit stops (-1: they have all their tasks) keep what they have, and so do pairs whose limit stops
    nobody who holds anything.
    """
    done = np.bincount(user, weights=stop < 0) > 0
    holding = np.unique(stop[(x > 0) & (stop >= 0)])
    moving = np.flatnonzero(~done[user] & np.isin(stop, holding) & (largest > 0))
    if not moving.size:
        return None
    users, n = np.unique(user[moving], return_inverse=True)
    rows, j = np.unique(stop[moving], return_inverse=True)
    if users.size + rows.size > MOST_EQUATIONS:
        return None
    matrix = sp.csr_array(sp.diags_array(1.0 / bounds[rows]) @ use[rows])
    kept = x.copy()
    kept[moving] = 0.0
    room = 1.0 - matrix @ kept
    if (room <= 0).any():
        return None
    answer = _follow(n, j, np.log(g[moving]), largest[moving], sp.csr_array(matrix[:, moving]), room, x[moving])
    if answer is None:
        return None
    kept[moving] = answer
    return kept


def _follow(
    n: IntArray, j: IntArray, log_g: FloatArray, largest: FloatArray, matrix: sp.csr_array, room: FloatArray, x: FloatArray
) -> FloatArray | None:
    users, rows = int(n.max()) + 1, int(j.max()) + 1
    entries = matrix.tocoo()
    x = np.maximum(x, _START * largest)
    have = np.log(np.bincount(n, weights=x, minlength=users))
    level = np.full(rows, np.inf)
    np.minimum.at(level, j, have[n] - log_g)
    level -= _SLACK
    w = have[n] - log_g - level[j]
    mu = 0.0
    for step in range(_STEPS):
        mu = float((x / largest * w).mean()) * (0.2 if step else 1.0)
        target = mu * largest / w  # what x[p] would be, were w to stay
        pull = x / w
        total = np.exp(have)
        system = np.zeros((users + rows, users + rows))
        system[np.arange(users), np.arange(users)] = -np.bincount(n, weights=pull, minlength=users) - total
        np.add.at(system, (n, users + j), pull)
        pair_pull = entries.data * pull[entries.col]
        np.add.at(system, (users + entries.row, n[entries.col]), -pair_pull)
        np.add.at(system, (users + entries.row, users + j[entries.col]), pair_pull)
        system[:users] /= total[:, None]
        right = np.concatenate([1.0 - np.bincount(n, weights=target, minlength=users) / total, room - matrix @ target])
        try:
            move = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            return None
        dw = move[n] - move[users + j]
        dx = target - x - pull * dw
        if not (np.isfinite(dx).all() and np.isfinite(dw).all()):
            return None
        length = 1.0
        for value, change in ((x, dx), (w, dw)):
            falling = change < 0
            if falling.any():
                length = min(length, 0.95 * float((value[falling] / -change[falling]).min()))
        x = x + length * dx
        have += length * move[:users]
        level += length * move[users:]
        w = np.maximum(have[n] - log_g - level[j], 1e-300)
        if mu < _END and length > 0.5:
            return np.where(x / largest > w, x, 0.0)
    return None
