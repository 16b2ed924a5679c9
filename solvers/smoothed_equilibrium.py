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
import scipy.linalg
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray

__all__ = ["MOST_EQUATIONS", "approach"]

MOST_EQUATIONS = 4_000  # a dense system of these takes a second or two
_STEPS = 60
_END = 1e-12
_START = 1e-6  # of its largest value is the least that a pair starts with
_SLACK = 0.05
_LEAST_AIM = 1e-3  # part of the products that a step aims at, at least


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
    users = int(n.max()) + 1
    x = np.maximum(x, _START * largest)
    have = np.log(np.bincount(n, weights=x, minlength=users))
    level = np.full(room.size, np.inf)
    np.minimum.at(level, j, have[n] - log_g)
    level -= _SLACK
    w = have[n] - log_g - level[j]
    for _ in range(_STEPS):
        product = x / largest * w
        mu = float(product.mean())
        system = _System(n, j, matrix, x / w, np.exp(have), room)
        try:
            dx, dw, *_ = system.step(x, np.zeros(x.size))
            ahead = (x + _length(x, dx) * dx) / largest * (w + _length(w, dw) * dw)
            aim = mu * min(max((float(ahead.mean()) / mu) ** 3, _LEAST_AIM), 1.0)
            dx, dw, d_have, d_level = system.step(x, (aim * largest - dx * dw) / w)
        except np.linalg.LinAlgError:
            return None
        length = min(1.0, 0.95 * min(_length(x, dx), _length(w, dw)))
        x = x + length * dx
        have += length * d_have
        level += length * d_level
        w = np.maximum(have[n] - log_g - level[j], 1e-300)
        if mu < _END and length > 0.5:
            return np.where(x / largest > w, x, 0.0)
    return None


def _length(values: FloatArray, change: FloatArray) -> float:
    """Return how far one can go before a value becomes 0."""
    return 1.0 / max(-float((change / values).min()), 1e-300)


class _System:
    """Newton's equations at a point, of which only those of the limits are left to factorise.

    With pull = x / w, a pair changes by dx = target - x - pull (dX[n] - dL[j]), dX and dL in logarithms, and so

        (X[n] + sum of pull over the pairs of n) dX[n] = X[n]... - sum of target + sum of pull dL[j]          each user by itself.
    """

    def __init__(self, n: IntArray, j: IntArray, matrix: sp.csr_array, pull: FloatArray, total: FloatArray, room: FloatArray) -> None:
        self.n, self.j, self.matrix, self.pull, self.total, self.room = n, j, matrix, pull, total, room
        users, rows = total.size, room.size
        entries = matrix.tocoo()
        self.own = total + np.bincount(n, weights=pull, minlength=users)
        by_user = np.zeros((users, rows))  # a user has one pair at each limit, the one on its server
        by_user[n, j] = pull / self.own[n]
        use = np.zeros((rows, users))
        use[entries.row, n[entries.col]] = entries.data * pull[entries.col]
        system = -(use @ by_user)
        np.add.at(system, (entries.row, j[entries.col]), entries.data * pull[entries.col])
        self.factors = scipy.linalg.lu_factor(system, overwrite_a=True, check_finite=False)

    def step(self, x: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the changes of x, w, log X and log L; ``target`` is what x would be, were w to stay."""
        n, j, pull = self.n, self.j, self.pull
        rest = (np.bincount(n, weights=target, minlength=self.total.size) - self.total) / self.own
        level = scipy.linalg.lu_solve(self.factors, self.room - self.matrix @ (target - pull * rest[n]), check_finite=False)
        have = rest + np.bincount(n, weights=pull * level[j], minlength=self.total.size) / self.own
        dw = have[n] - level[j]
        dx = target - x - pull * dw
        if not (np.isfinite(dx).all() and np.isfinite(dw).all()):
            raise np.linalg.LinAlgError("the step is no number")
        return dx, dw, have, level
