r"""The equilibrium of many servers by an interior point: a few dozen Newton steps where sweeps converge slowly.

Take from the sweeps only which limit j(p) stops each pair p = (n, i). Then x is an equilibrium if, with a level L[j] for each such limit,

    w[p] = log(X[n] / g[p]) - log L[j(p)] >= 0,    x[p] >= 0,    x[p] w[p] = 0      no pair holds anything above the level
    sum of x over the pairs of n = X[n],           sum of A[j,p] x[p] = b[j]        the limits are full

As in an interior-point method, x[p] w[p] = mu times the largest value of x[p], and mu goes to 0, by Mehrotra's predictor and corrector.
A Newton step eliminates x, w and log X, user by user, and leaves a dense system in log L: as many equations as limits that stop somebody,
however many users and pairs there are. (Under time division these are the conditions of a convex program. Otherwise there is no guarantee
that the steps converge.)

*Users who have all their tasks.* Their X is the number of their tasks. At servers whose limits stop them their shares equal the levels, as
those of others do, and the rest of their tasks runs where nothing stops them. Such a pair has room for more and no equation of its own:
a task of the user at another pair is one less here, and so the other pair uses A[j,p] - A[j,rest].

*Where it begins.* With wrong limits, or far from the equilibrium, the path to mu = 0 may turn back, and the equations become singular where
it does. The nearer to the equilibrium the steps begin, the rarer this is. So they begin as near to it as the last change of the sweeps,
and give up as soon as they make no progress.

The answer proves nothing: it is a point for the sweeps to go on from, near which the equations have the right active sets.
"""

from __future__ import annotations

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
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
    slack: float,
) -> FloatArray | None:
    """Return an approximate equilibrium in which limit ``stop`` stops each pair; None where the steps do not converge.

    Pairs that no limit stops (-1: their users have all their tasks) keep what they have, but for one pair of each user, which takes what
    its other pairs leave. So do pairs whose limit stops no pair that holds anything, and empty pairs far above its level. Levels begin
    ``slack`` below the least share, in logarithms.
    """
    unstopped = np.flatnonzero((stop < 0) & (x > 0))
    unstopped = unstopped[np.argsort(x[unstopped], kind="stable")]
    rest = np.full(int(user.max(initial=-1)) + 1, -1)  # the pair of each user that takes what is left: its largest one
    rest[user[unstopped]] = unstopped
    near = (stop >= 0) & (largest > 0) & ((x > 0) | (_above(user, g, x, stop) < SETTINGS.far))
    moving = np.flatnonzero(near & np.isin(stop, stop[near & (x > 0)]))
    if not moving.size:
        return None
    users, n = np.unique(user[moving], return_inverse=True)
    rows, j = np.unique(stop[moving], return_inverse=True)
    if rows.size > SETTINGS.most_equations:
        return None
    matrix = sp.csr_array(sp.diags_array(1.0 / bounds[rows]) @ use[rows])
    rest, complete = rest[users], rest[users] >= 0
    kept, held = x.copy(), np.bincount(n, weights=x[moving])
    kept[moving] = 0.0
    kept[rest[complete]] += held[complete]
    columns = sp.csr_array(matrix[:, moving])
    if complete.any():
        own = np.flatnonzero(complete[n])
        taken = matrix[:, rest[n[own]]].tocoo()
        columns = sp.csr_array(columns - sp.csr_array((taken.data, (taken.row, own[taken.col])), shape=columns.shape))
    pairs = _Pairs(n, j, columns, 1.0 - matrix @ kept, complete)
    total: FloatArray = np.bincount(user, weights=x).astype(np.float64)[users]
    answer = _follow(pairs, total, np.log(g[moving]), largest[moving], x[moving], slack)
    if answer is None:
        return None
    kept[moving] = answer
    kept[rest[complete]] = np.maximum(kept[rest[complete]] - np.bincount(n, weights=answer)[complete], 0.0)
    return kept


def _above(user: IntArray, g: FloatArray, x: FloatArray, stop: IntArray) -> FloatArray:
    """Return by how much each pair lies above the level of the limit that stops it, in logarithms."""
    with np.errstate(divide="ignore"):
        share = np.log(np.bincount(user, weights=x)[user] / g)
    level = np.full(int(stop.max()) + 2, np.inf)
    np.minimum.at(level, stop, share)
    return np.asarray(share - level[stop])


def _follow(pairs: _Pairs, total: FloatArray, log_g: FloatArray, largest: FloatArray, x: FloatArray, slack: float) -> FloatArray | None:
    n, j = pairs.n, pairs.j
    x = np.maximum(x, SETTINGS.start * largest)
    have = np.log(np.where(pairs.complete, total, pairs.per_user(x)))
    level = np.full(pairs.room.size, np.inf)
    np.minimum.at(level, j, have[n] - log_g)
    level -= slack
    w = have[n] - log_g - level[j]
    shorts = 0
    for _ in range(SETTINGS.steps):
        mu = float((x / largest * w).mean())
        try:
            system = _System(pairs, x / w, np.exp(have))
            part, (dx, _, d_have, d_level) = system.best_step(x, w, largest, mu)
        except np.linalg.LinAlgError:
            return None
        for _ in range(SETTINGS.halvings):  # X is an exponential, so that a step may take w below 0
            after = (have + part * d_have)[n] - log_g - (level + part * d_level)[j]
            if (after >= SETTINGS.keep * w).all():
                break
            part /= 2
        x, have, level, w = x + part * dx, have + part * d_have, level + part * d_level, np.maximum(after, TINY)
        shorts = shorts + 1 if part < SETTINGS.short else 0
        if mu < SETTINGS.end and part > 0.5:
            return np.where(x / largest > w, x, 0.0)
        if shorts == SETTINGS.shorts:
            return None
    return None


class _System:
    """Newton's equations at a point, factorised.

    With pull = x / w a pair changes by dx = target - x - pull (dX[n] - dL[j]), dX and dL in logarithms. A user's own equation,

        (X[n] + sum of pull over the pairs of n) dX[n]  =  sum of (target + pull dL[j]) over the pairs of n  -  X[n],

    gives dX from dL. What is left is as many equations as there are limits, however many users. X of a complete user stays.
    """

    def __init__(self, pairs: _Pairs, pull: FloatArray, total: FloatArray) -> None:
        self.pairs, self.pull, self.total = pairs, pull, total
        self.own = np.where(pairs.complete, np.inf, total + pairs.per_user(pull))
        with unwarned():
            self.factors = scipy.linalg.lu_factor(pairs.eliminated(pull, self.own), overwrite_a=True, check_finite=False)
        if not self.factors[0].diagonal().all():
            raise np.linalg.LinAlgError("exactly singular")

    def best_step(self, x: FloatArray, w: FloatArray, largest: FloatArray, mu: float) -> tuple[float, tuple[FloatArray, ...]]:
        """Return a step by predictor and corrector, or towards equal products where that goes further, and the part of it to go."""
        dx, dw, *_ = self.step(x, np.zeros(x.size))
        ahead = (x + length(np, x, dx) * dx) / largest * (w + length(np, w, dw) * dw)
        reached = max(float(ahead.mean()), 0.0)  # may exceed mu by hundreds of orders of magnitude
        aim = mu if reached >= mu else mu * max((reached / mu) ** 3, SETTINGS.least_aim)
        step = self.step(x, (aim * largest - dx * dw) / w)
        part = _part(x, w, step)
        if part < SETTINGS.centre:
            other = self.step(x, mu * largest / w)
            if (further := _part(x, w, other)) > part:
                return further, other
        return part, step

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


def _part(x: FloatArray, w: FloatArray, step: tuple[FloatArray, ...]) -> float:
    """Return the part of a step that x and w can go."""
    return min(length(np, x, step[0], SETTINGS.to_the_boundary), length(np, w, step[1], SETTINGS.to_the_boundary))


class _Pairs:
    """The pairs that move: user n, limit j that stops it, use of the limits (limits, pairs), and what of these is left for them.

    Of a ``complete`` user (users,) the use is that of a task that moves here from the pair that takes the rest.
    """

    def __init__(self, n: IntArray, j: IntArray, matrix: sp.csr_array, room: FloatArray, complete: BoolArray) -> None:
        self.n, self.j, self.matrix, self.room, self.complete = n, j, matrix, room, complete
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
