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


VERBOSE = 0
def approach(
    user: IntArray,
    g: FloatArray,
    largest: FloatArray,
    use: sp.csr_array,
    bounds: FloatArray,
    x: FloatArray,
    stop: IntArray,
    slack: float,
) -> FloatArray | None:
    total = np.bincount(user, weights=x)
    rest = np.flatnonzero((stop < 0) & (x > 0))
    rest = rest[np.argsort(x[rest], kind="stable")]
    absorber = np.full(total.size, -1)
    absorber[user[rest]] = rest  # the last one, the largest
    near = (stop >= 0) & (largest > 0) & ((x > 0) | (_above(user, g, x, stop) < SETTINGS.far))
    holding = np.unique(stop[near & (x > 0)])
    moving = np.flatnonzero(near & np.isin(stop, holding))
    if not moving.size:
        return None
    users, n = np.unique(user[moving], return_inverse=True)
    rows, j = np.unique(stop[moving], return_inverse=True)
    if rows.size > SETTINGS.most_equations:
        return None
    matrix = sp.csr_array(sp.diags_array(1.0 / bounds[rows]) @ use[rows])
    kept = x.copy()
    kept[moving] = 0.0
    takes = absorber[users]
    filled = takes >= 0
    held = np.where(filled, np.bincount(n, weights=x[moving]), 0.0)
    kept[takes[filled]] += held[filled]  # the absorber takes what the others leave
    room = 1.0 - matrix @ kept
    columns = sp.csr_array(matrix[:, moving])
    if filled.any():
        inner = np.flatnonzero(filled[n])
        less = sp.csr_array(matrix[:, takes[n[inner]]]).tocoo()
        columns = sp.csr_array(columns - sp.csr_array((less.data, (less.row, inner[less.col])), shape=columns.shape))
    elif (room <= 0).any():
        return None
    pairs = _Pairs(n, j, columns, room, filled, kept[takes])
    answer = _follow(pairs, np.log(total[users]), np.log(g[moving]), largest[moving], x[moving], slack)
    if answer is None:
        return None
    kept[moving] = answer
    given = np.bincount(n, weights=answer)
    kept[takes[filled]] = np.maximum(kept[takes[filled]] - given[filled], 0.0)
    return kept


def _above(user: IntArray, g: FloatArray, x: FloatArray, stop: IntArray) -> FloatArray:
    """Return by how much each pair lies above the level of the limit that stops it, in logarithms."""
    with np.errstate(divide="ignore"):
        share = np.log(np.bincount(user, weights=x)[user] / g)
    level = np.full(int(stop.max()) + 2, np.inf)
    np.minimum.at(level, stop, share)
    return np.asarray(share - level[stop])


def _follow(
    pairs: _Pairs, have: FloatArray, log_g: FloatArray, largest: FloatArray, x: FloatArray, slack: float
) -> FloatArray | None:
    n, j = pairs.n, pairs.j
    x = np.maximum(x, SETTINGS.start * largest)
    have = np.where(pairs.filled, have, np.log(pairs.per_user(x)))
    level = np.full(pairs.room.size, np.inf)
    np.minimum.at(level, j, have[n] - log_g)
    level -= slack
    w = have[n] - log_g - level[j]
    short, f = 0, SETTINGS.to_the_boundary
    for k in range(SETTINGS.steps):
        product = x / largest * w
        mu = float(product.mean())
        try:
            system = _System(pairs, x / w, np.exp(have))
            step = system.step(x, np.zeros(x.size))
            dx, dw = step[:2]
            ahead = (x + length(np, x, dx) * dx) / largest * (w + length(np, w, dw) * dw)
            reached = max(float(ahead.mean()), 0.0)  # may exceed mu by hundreds of orders of magnitude
            aim = mu if reached >= mu else mu * max((reached / mu) ** 3, SETTINGS.least_aim)
            step = system.step(x, (aim * largest - dx * dw) / w)
            part = min(length(np, x, step[0], f), length(np, w, step[1], f))
            if part < 0.3:
                other = system.step(x, mu * largest / w)
                longer = min(length(np, x, other[0], f), length(np, w, other[1], f))
                if longer > part:
                    step, part, aim = other, longer, mu
        except np.linalg.LinAlgError as e:
            if VERBOSE: print(e)
            return None
        dx, dw, d_have, d_level = step
        if VERBOSE: print(k, f'mu {mu:.1e} aim {aim/mu:.1e} part {part:.3f} min {product.min()/mu:.1e}', [f'{length(np,a,b,f):.2f}' for a,b in ((x,dx),(w,dw))], 'dl', abs(d_level).max())
        for _ in range(20):
            after = (have + part * d_have)[n] - log_g - (level + part * d_level)[j]
            if (after > 0.01 * w).all(): break
            part *= 0.5
        short = short + 1 if part < 0.01 else 0
        x, have, level, w = x + part * dx, have + part * d_have, level + part * d_level, after
        if mu < SETTINGS.end and part > 0.5:
            return np.where(x / largest > w, x, 0.0)
        if short == 3:
            return None
    return None


class _System:
    """Newton's equations at a point, factorised.

    With pull = x / w a pair changes by dx = target - x - pull (dX[n] - dL[j]), dX and dL in logarithms. A user's own equation,

        (X[n] + sum of pull over the pairs of n) dX[n]  =  sum of (target + pull dL[j]) over the pairs of n  -  X[n],

    gives dX from dL. What is left is as many equations as there are limits, however many users.
    """

    def __init__(self, pairs: _Pairs, pull: FloatArray, total: FloatArray) -> None:
        self.pairs, self.pull, self.total = pairs, pull, total
        self.own = np.where(pairs.filled, np.inf, total + pairs.per_user(pull))
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

    def __init__(self, n: IntArray, j: IntArray, matrix: sp.csr_array, room: FloatArray, filled, reserve) -> None:
        self.n, self.j, self.matrix, self.room, self.filled, self.reserve = n, j, matrix, room, filled, reserve
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
