"""One step of Newton's method for a program of users, servers and the pairs between them, by eliminating the larger side.

A point has primal values (x of pairs, s of limits, v of the rows of users), their duals (z, p, m) and, in a leximin, a level t. The rows
of users, U x, are levels, U x - v = a t + b, with prices q = m, and limits on tasks, U x + v = 1, with prices q = -m; ``side`` tells them
apart, +1 and -1. The step solves

    A dx + ds = rc            U dx - side dv - a dt = ru           A'dp - U'dq - dz = rd           a dq = rt
    z dx + x dz,  p ds + s dp,  m dv + v dm  = the wanted changes of the products.

Eliminating dx, ds, dv leaves, with theta = x/z, one small block for each server and one for each user:

    [  H   -E  ] [dp]      H = A theta A' + s/p
    [ -E'   F  ] [dq]      F = U theta U' + v/m         E = A theta U'

Whichever side is shorter is kept: the Schur complement is dense, of size min(rows of users, limits), and nothing else takes more time than
a few passes over the pairs. So users may be many where servers are few, and the other way round. t is one bordering row.

H is scaled to a unit diagonal and F to the unit matrix, which makes the elimination as good as its data. Near the end theta spans thirty
orders of magnitude; then the step of the reduced system misses the first two conditions, and one more solve for what it misses (iterative
refinement of the whole system, not of the reduced one) is what lets the gap go on falling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from fairopt.instance import FloatArray
from fairopt.solvers.structured_pairs import Pairs

__all__ = ["NewtonSystem", "Residuals"]

_REGULAR = 1e-15  # of the unit diagonal; refinement takes it out again
_TINY = 1e-200
_RAISE = 100.0  # by which it grows until the factorisation succeeds
_MOST_RAISES = 6


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What the linear conditions lack: of limits (slots, servers), rows of users (rows,), reduced costs (pairs,) and the unit of price."""

    limits: FloatArray
    rows: FloatArray
    costs: FloatArray
    unit: float


class NewtonSystem:
    """The system at a point, factorised; ``step`` solves it for any right-hand side. ``a`` is None where there is no t."""

    def __init__(self, pairs: Pairs, primal: FloatArray, dual: FloatArray, side: FloatArray, a: FloatArray | None) -> None:
        self.pairs, self.dual, self.side, self.a = pairs, dual, side, a
        self.ratio = ratio = primal / dual
        theta, s_p, v_m = pairs.parts(ratio)
        m, k = s_p.shape
        used = pairs.A * theta
        self._scale_servers(used, s_p)
        rows = self._scale_users(theta, v_m)
        if pairs.whole:
            table = used.reshape(m, -1, k)
            table /= self.d[:, None, :]
        else:
            used /= self.d.take(pairs.server, axis=1)
        self.by_user = pairs.n_rows <= m * k
        if self.by_user:
            self.L = np.linalg.cholesky(self.H)
            self._forward_pairs(used)
        self.E = pairs.tables(used, rows) if rows else np.zeros((0, m * k))
        if self.by_user:
            schur = -_dense(self.E @ self.E.T)
            schur[np.diag_indices_from(schur)] += 1.0 + _REGULAR
        else:
            schur = -_dense(self.E.T @ self.E)
            schur.reshape(m, k, m, k)[:, np.arange(k), :, np.arange(k)] += self.H
            schur[np.diag_indices_from(schur)] += _REGULAR
        self.factor = _factor(schur)
        if a is not None:
            self.along_t = self._reduced(np.zeros((m, k)), a)
            self.pivot = float(a @ self.along_t[1])

    def _scale_servers(self, used: FloatArray, s_p: FloatArray) -> None:
        """Set H, (servers, slots, slots), scaled to a unit diagonal by d, (slots, servers)."""
        pairs, (m, k) = self.pairs, s_p.shape
        lower, diagonal = np.tril_indices(m), np.arange(m)
        H = np.empty((k, m, m))
        for r, c in zip(*lower, strict=True):
            H[:, r, c] = H[:, c, r] = pairs.dot_by_server(used[r], pairs.A[c])
        H[:, diagonal, diagonal] += s_p.T
        d = np.sqrt(H[:, diagonal, diagonal])
        self.H = H / (d[:, :, None] * d[:, None, :])
        self.H[:, diagonal, diagonal] += _REGULAR / 10
        self.d = np.ascontiguousarray(d.T)

    def _scale_users(self, theta: FloatArray, v_m: FloatArray) -> list[FloatArray]:
        """Set the Cholesky factor of F, [[f, 0], [f l, g]] of each user; return the rows (levels, then tasks) scaled by its inverse."""
        pairs = self.pairs
        of_level, of_tasks = np.split(v_m, [pairs.n_levels])
        rows, mixed = [], pairs.T
        if pairs.has_levels:
            square = pairs.sum_by_user(theta * pairs.W * pairs.W) + of_level
            square = square * (1 + _REGULAR) + _TINY
            self.f = np.sqrt(square)
            rows.append(pairs.W / pairs.spread(self.f))
        if pairs.limited.size:
            self.l = np.zeros(pairs.limited.size)
            if pairs.has_levels:
                along = pairs.sum_by_user(theta * pairs.W * pairs.T) / square
                mixed = pairs.T - pairs.W * pairs.spread(along)
                self.l = along[pairs.limited]
                of_tasks = of_tasks + of_level[pairs.limited] * self.l**2
            given = pairs.sum_by_user(theta * (mixed * mixed + _REGULAR * pairs.T * pairs.T))[pairs.limited]
            self.g = np.sqrt(given + of_tasks + _TINY)
            rows.append(mixed / pairs.spread(pairs.placed(self.g, 1.0)))
        return rows

    def _to_scaled(self, values: FloatArray) -> FloatArray:
        n, limited = self.pairs.n_levels, self.pairs.limited
        if not limited.size:
            return values / self.f if n else values
        first, second = values[:n], values[n:]
        if not n:
            return second / self.g
        return np.concatenate([first / self.f, (second - self.l * first[limited]) / self.g])

    def _from_scaled(self, values: FloatArray) -> FloatArray:
        n, limited = self.pairs.n_levels, self.pairs.limited
        if not limited.size:
            return values / self.f if n else values
        second = values[n:] / self.g
        if not n:
            return second
        first = values[:n] / self.f
        first[limited] -= self.l * second
        return np.concatenate([first, second])

    def step(self, products: FloatArray, residuals: Residuals, refinements: int = 2) -> tuple[FloatArray, FloatArray, float]:
        """Return the changes of the primal values, of the dual ones and of t."""
        pairs, ratio = self.pairs, self.ratio
        quotient = products / self.dual
        qx, qs, qv = pairs.parts(quotient)
        w = qx + ratio[: pairs.n_pairs] * residuals.costs
        dp, dq, dt = self._bordered(pairs.use(w) + qs - residuals.limits, residuals.rows - pairs.rows(w) + self.side * qv, residuals.unit)
        d_dual = self._duals(dp, dq)
        d_dual[: pairs.n_pairs] -= residuals.costs
        d_primal = quotient - ratio * d_dual
        for _ in range(refinements):  # what the step misses, solved for once more
            dx, ds, dv = pairs.parts(d_primal)
            missed_rows = residuals.rows - pairs.rows(dx) + self.side * dv
            missed_unit = 0.0
            if self.a is not None:
                missed_rows += self.a * dt
                missed_unit = residuals.unit - float(self.a @ (self.side * d_dual[-missed_rows.size :]))
            dp, dq, more = self._bordered(pairs.use(dx) + ds - residuals.limits, missed_rows, missed_unit)
            correction = self._duals(dp, dq)
            d_primal, d_dual, dt = d_primal - ratio * correction, d_dual + correction, dt + more
        return d_primal, d_dual, dt

    def _duals(self, dp: FloatArray, dq: FloatArray) -> FloatArray:
        return np.concatenate([self.pairs.cost(dp) - self.pairs.along_rows(dq), dp.ravel(), self.side * dq])

    def _bordered(self, of_limits: FloatArray, of_users: FloatArray, unit: float) -> tuple[FloatArray, FloatArray, float]:
        dp, dq = self._reduced(of_limits, of_users)
        if self.a is None:
            return dp, dq, 0.0
        dt = (unit - float(self.a @ dq)) / self.pivot
        return dp + dt * self.along_t[0], dq + dt * self.along_t[1], dt

    def _reduced(self, of_limits: FloatArray, of_users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the system of prices and user prices."""
        first, second = of_limits / self.d, self._to_scaled(of_users)
        if self.by_user:
            first = self._forward(first)
            dq = scipy.linalg.cho_solve(self.factor, second + self.E @ first.ravel(), check_finite=False)
            dp = self._backward(first + (self.E.T @ dq).reshape(first.shape))
        else:
            dp = scipy.linalg.cho_solve(self.factor, first.ravel() + self.E.T @ second, check_finite=False)
            dq = second + self.E @ dp
            dp = dp.reshape(first.shape)
        return dp / self.d, self._from_scaled(dq)

    # Triangular solves with the blocks of the servers ----------------------------------------------------------------------------

    def _forward(self, values: FloatArray) -> FloatArray:
        out, L = np.empty_like(values), self.L
        for r in range(values.shape[0]):
            out[r] = (values[r] - (L[:, r, :r].T * out[:r]).sum(axis=0)) / L[:, r, r]
        return out

    def _backward(self, values: FloatArray) -> FloatArray:
        out, L = np.empty_like(values), self.L
        for r in range(values.shape[0] - 1, -1, -1):
            out[r] = (values[r] - (L[:, r + 1 :, r].T * out[r + 1 :]).sum(axis=0)) / L[:, r, r]
        return out

    def _forward_pairs(self, values: FloatArray) -> None:
        """Solve at every pair, with the block of its server, in place."""
        pairs, L = self.pairs, self.L
        where = slice(None) if pairs.whole else pairs.server
        table = values.reshape(values.shape[0], -1, pairs.n_servers) if pairs.whole else values
        for r in range(table.shape[0]):
            for c in range(r):
                table[r] -= L[where, r, c] * table[c]
            table[r] /= L[where, r, r]


def _dense(matrix: Any) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """Return the Cholesky factor of a matrix that may have lost its rank to rounding."""
    added = _REGULAR
    for _ in range(_MOST_RAISES):
        try:
            factor, lower = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
            return factor, bool(lower)
        except np.linalg.LinAlgError:
            matrix[np.diag_indices_from(matrix)] += (_RAISE - 1) * added
            added *= _RAISE
    raise np.linalg.LinAlgError("the Schur complement is far from positive definite")
