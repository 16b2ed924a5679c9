r"""The equilibrium of many servers by an interior point: a few dozen Newton steps where sweeps converge slowly.

Take from the sweeps only which limit j(p) stops each pair p = (n, i). Then x is an equilibrium if, with a level L[j] for each such limit,

    w[p] = log(X[n] / g[p]) - log L[j(p)] >= 0,    x[p] >= 0,    x[p] w[p] = 0      no pair holds anything above the level
    sum of x over the pairs of n = X[n],           sum of A[j,p] x[p] = b[j]        the limits are full

As in an interior-point method, x[p] w[p] = mu times the largest value of x[p], and mu goes to 0, by Mehrotra's predictor and corrector.
A Newton step eliminates x, w and log X, user by user, and leaves a dense system in log L: as many equations as limits that stop somebody,
however many users and pairs there are. (Under time division these are the conditions of a convex program. Otherwise there is no guarantee
that the steps converge.)

The answer proves nothing: it is a point for the sweeps to go on from, near which the equations have the right active sets.
"""

from __future__ import annotations

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.processes.streams import unwarned
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import smoothing_kernel
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.structure.boundary import length

__all__ = ["approach"]


def approach(
    user: IntArray,
    g: FloatArray,
    largest: FloatArray,
    use: sp.csr_array,
    bounds: FloatArray,
    x: FloatArray,
    stop: IntArray,
) -> FloatArray | None:
    """Return an approximate equilibrium in which limit ``stop`` stops each pair; None where the steps do not converge.

    Users with a pair that no limit stops (-1: they have all their tasks) keep what they have, and so do pairs whose limit stops
    no pair that holds anything, and pairs far above its level.
    """
    done = np.bincount(user, weights=stop < 0) > 0
    holding = np.unique(stop[(x > 0) & (stop >= 0)])
    moving = np.flatnonzero(~done[user] & np.isin(stop, holding) & (largest > 0))
    moving = moving[(x[moving] > 0) | (_above(user, g, x, stop)[moving] < SETTINGS.far)]
    if not moving.size:
        return None
    n = np.unique(user[moving], return_inverse=True)[1]
    rows, j = np.unique(stop[moving], return_inverse=True)
    if rows.size > SETTINGS.most_equations:
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


def _above(user: IntArray, g: FloatArray, x: FloatArray, stop: IntArray) -> FloatArray:
    """Return by how much each pair lies above the level of the limit that stops it, in logarithms."""
    with np.errstate(divide="ignore"):
        share = np.log(np.bincount(user, weights=x)[user] / g)
    level = np.full(int(stop.max()) + 2, np.inf)
    np.minimum.at(level, stop, share)
    return np.asarray(share - level[stop])


def _follow(
    n: IntArray, j: IntArray, log_g: FloatArray, largest: FloatArray, matrix: sp.csr_array, room: FloatArray, x: FloatArray
) -> FloatArray | None:
    pairs = _Pairs(n, j, matrix, room)
    x = np.maximum(x, SETTINGS.start * largest)
    have = np.log(pairs.per_user(x))
    level = np.full(room.size, np.inf)
    np.minimum.at(level, j, have[n] - log_g)
    level -= SETTINGS.slack
    w = have[n] - log_g - level[j]
    for _ in range(SETTINGS.steps):
        product = x / largest * w
        mu = float(product.mean())
        try:
            system = _System(pairs, x / w, np.exp(have))
            dx, dw, *_ = system.step(x, np.zeros(x.size))
            ahead = (x + length(np, x, dx) * dx) / largest * (w + length(np, w, dw) * dw)
            reached = max(float(ahead.mean()), 0.0)  # may exceed mu by hundreds of orders of magnitude
            aim = mu if reached >= mu else mu * max((reached / mu) ** 3, SETTINGS.least_aim)
            dx, dw, d_have, d_level = system.step(x, (aim * largest - dx * dw) / w)
        except np.linalg.LinAlgError:
            return None
        part = min(length(np, x, dx, SETTINGS.to_the_boundary), length(np, w, dw, SETTINGS.to_the_boundary))
        x = x + part * dx
        have += part * d_have
        level += part * d_level
        w = np.maximum(have[n] - log_g - level[j], TINY)
        if mu < SETTINGS.end and part > 0.5:
            return np.where(x / largest > w, x, 0.0)
    return None


class _System:
    """Newton's equations at a point, factorised.

    With pull = x / w a pair changes by dx = target - x - pull (dX[n] - dL[j]), dX and dL in logarithms. A user's own equation,

        (X[n] + sum of pull over the pairs of n) dX[n]  =  sum of (target + pull dL[j]) over the pairs of n  -  X[n],

    gives dX from dL. What is left is as many equations as there are limits, however many users.
    """

    def __init__(self, pairs: _Pairs, pull: FloatArray, total: FloatArray) -> None:
        self.pairs, self.pull, self.total = pairs, pull, total
        self.own = total + pairs.per_user(pull)
        with unwarned():
            self.factors = scipy.linalg.lu_factor(pairs.eliminated(pull, self.own), overwrite_a=True, check_finite=False)
        if not self.factors[0].diagonal().all():
            raise np.linalg.LinAlgError("exactly singular")

    def step(self, x: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the changes of x, w, log X and log L; ``target`` is what x would be, were w to stay."""
        pairs, pull = self.pairs, self.pull
        rest = (pairs.per_user(target) - self.total) / self.own
        lacking = pairs.room - pairs.matrix @ (target - pull * rest[pairs.n])
        level = scipy.linalg.lu_solve(self.factors, lacking, check_finite=False)
        have = rest + pairs.per_user(pull * level[pairs.j]) / self.own
        dw = have[pairs.n] - level[pairs.j]
        dx = target - x - pull * dw
        if not (np.isfinite(dx).all() and np.isfinite(dw).all()):
            raise np.linalg.LinAlgError("the step is not a number")
        return dx, dw, have, level


class _Pairs:
    """The pairs that move: user n, limit j that stops it, use of the limits (limits, pairs), and what of these is left for them."""

    def __init__(self, n: IntArray, j: IntArray, matrix: sp.csr_array, room: FloatArray) -> None:
        self.n, self.j, self.matrix, self.room = n, j, matrix, room
        self.users = int(n.max()) + 1
        self.steps = Steps(smoothing_kernel)
        self.places = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
        self.by_user = np.argsort(n, kind="stable")
        self.start = np.searchsorted(n[self.by_user], np.arange(self.users + 1))
        self.j_by_user = j[self.by_user]

    def per_user(self, values: FloatArray) -> FloatArray:
        """Sum over the pairs of each user."""
        return np.bincount(self.n, weights=values, minlength=self.users).astype(np.float64)

    def eliminated(self, pull: FloatArray, own: FloatArray) -> FloatArray:
        """Return the matrix of the equations of the limits, without the users' changes."""
        products = float((np.diff(self.start) ** 2).sum()) * self.matrix.nnz / self.n.size
        if self.users * self.room.size**2 <= max(SETTINGS.dense_products * products, SETTINGS.small_table):
            return self._by_dense_tables(pull, own)
        arrays = (self.start, self.j, *self.places, self.n, pull, own, pull[self.by_user], self.j_by_user)
        return np.asarray(self.steps.run("eliminate_users", *arrays, seconds=SETTINGS.product_seconds * products))

    def _by_dense_tables(self, pull: FloatArray, own: FloatArray) -> FloatArray:
        """Return the same by a product of tables (limits, users)."""
        limits, (_, pairs, use) = self.room.size, self.places
        row, used = np.repeat(np.arange(limits), np.diff(self.matrix.indptr)), use * pull[pairs]

        def table(rows: IntArray, columns: IntArray, values: FloatArray, width: int) -> FloatArray:
            sums = np.bincount(rows * width + columns, weights=values, minlength=limits * width)
            return sums.astype(np.float64).reshape(limits, width)

        of_users, pulled = table(row, self.n[pairs], used, self.users), table(self.j, self.n, pull, self.users)
        return np.asarray(table(row, self.j[pairs], used, limits) - (of_users / own) @ pulled.T)
