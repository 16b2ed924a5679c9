"""One step of Newton's method for a program of users, servers and the pairs between them, by eliminating the larger side.

A point has primal values (x of pairs, s of limits, v of users), their duals (z, p, m) and, in a leximin, a level t. With q = m or, where
a user's part of the goal is w - m, dq = -dm (``side`` = +1, -1), the step solves

    A dx + ds = rc            W dx - side dv - a dt = ru           A'dp - W'dq - dz = rd           a dq = rt
    z dx + x dz,  p ds + s dp,  m dv + v dm  = the wanted changes of the products.

Eliminating dx, ds, dv leaves, with theta = x/z, one block of limits for each server and one number for each user:

    [  H   -E  ] [dp]      H = A theta A' + s/p    one small block a server
    [ -E'   F  ] [dq]      F = W theta W' + v/m    diagonal,             E = A theta W'

Whichever side is shorter is kept: the Schur complement is dense, of size min(users, limits), and nothing else takes more time than a few passes
over the pairs. So users may be many where servers are few, and the other way round. t is one bordering row.

H and F are scaled to a unit diagonal, which makes the elimination as good as its data. Near the end theta spans thirty orders of magnitude;
then the step of the reduced system misses the first two conditions, and one more solve for what it misses (iterative refinement of the
whole system, not of the reduced one) is what lets the gap go on falling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.solvers.structured_pairs import Pairs

__all__ = ["NewtonSystem", "Residuals"]

_REGULAR = 1e-14  # of the unit diagonal; refinement takes it out again
_RAISE = 100.0  # by which it grows until the factorisation succeeds
_MOST_RAISES = 6


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What the linear conditions lack: of limits (slots, servers), levels (users,), reduced costs (pairs,) and the unit of price."""

    limits: FloatArray
    levels: FloatArray
    costs: FloatArray | float
    unit: float


class NewtonSystem:
    """The system at a point, factorised; ``step`` solves it for any right-hand side."""

    def __init__(self, pairs: Pairs, primal: FloatArray, dual: FloatArray, rising: FloatArray | None, side: int = 1) -> None:
        self.pairs, self.dual, self.side, self.a = pairs, dual, side, rising
        self.ratio = ratio = primal / dual
        self.cut = pairs.n_pairs, pairs.n_pairs + pairs.n_slots * pairs.n_servers
        theta, s_p, v_m = np.split(ratio, self.cut)
        A, W, m, k = pairs.A, pairs.W, pairs.n_slots, pairs.n_servers
        used = A * theta
        lower = np.tril_indices(m)
        H = np.empty((k, m, m))
        H[:, lower[0], lower[1]] = H[:, lower[1], lower[0]] = pairs.sum_by_server(
            np.stack([used[r] * A[c] for r, c in zip(*lower, strict=True)])
        ).T
        H[:, np.arange(m), np.arange(m)] += s_p.reshape(m, k).T
        worth = theta * W
        self.f = np.sqrt(pairs.sum_by_user(worth * W) + v_m)
        d = np.sqrt(H[:, np.arange(m), np.arange(m)])
        H /= d[:, :, None] * d[:, None, :]
        self.d = np.ascontiguousarray(d.T)
        E = used * (W / pairs.spread(self.f))
        E /= np.repeat(self.d[:, None, :], pairs.n_users, 1).reshape(m, -1) if pairs.whole else self.d[:, pairs.server]
        self.by_user = pairs.n_users <= m * k
        if self.by_user:
            H[:, np.arange(m), np.arange(m)] += 1e-15
            self.L = np.linalg.cholesky(H)
            self.E = pairs.table(self._forward_pairs(E))
            schur = -_square(self.E.T)
            schur[np.diag_indices_from(schur)] += 1.0 + _REGULAR
        else:
            self.E = pairs.table(E)
            schur = -_square(self.E)
            blocks = schur.reshape(m, k, m, k)
            blocks[:, np.arange(k), :, np.arange(k)] += H
            schur[np.diag_indices_from(schur)] += _REGULAR
        self.factor = _factor(schur)
        if rising is not None:
            self.along_t = self._reduced(np.zeros((m, k)), rising)
            self.pivot = float(rising @ self.along_t[1])

    def step(self, products: FloatArray, residuals: Residuals) -> tuple[FloatArray, FloatArray, float]:
        """Return the changes of the primal values, of the dual ones and of t."""
        pairs = self.pairs
        quotient = products / self.dual
        qx, qs, qv = np.split(quotient, self.cut)
        w = qx + self.ratio[: self.cut[0]] * residuals.costs
        shape = (pairs.n_slots, pairs.n_servers)
        dp, dq, dt = self._bordered(
            pairs.use(w) + qs.reshape(shape) - residuals.limits, residuals.levels - pairs.level(w) + self.side * qv, residuals.unit
        )
        d_dual = self._duals(dp, dq)
        d_dual[: self.cut[0]] -= residuals.costs
        d_primal = quotient - self.ratio * d_dual
        # What the step misses, solved for once more.
        dx, ds, dv = np.split(d_primal, self.cut)
        missed_limits = residuals.limits - pairs.use(dx) - ds.reshape(shape)
        missed_levels = residuals.levels - pairs.level(dx) + self.side * dv
        missed_unit = 0.0
        if self.a is not None:
            missed_levels += self.a * dt
            missed_unit = residuals.unit - float(self.a @ dq)
        dp, dq, more = self._bordered(-missed_limits, missed_levels, missed_unit)
        correction = self._duals(dp, dq)
        return d_primal - self.ratio * correction, d_dual + correction, dt + more

    def _duals(self, dp: FloatArray, dq: FloatArray) -> FloatArray:
        pairs = self.pairs
        return np.concatenate([pairs.cost(dp) - pairs.W * pairs.spread(dq), dp.ravel(), self.side * dq])

    def _bordered(self, of_limits: FloatArray, of_users: FloatArray, unit: float) -> tuple[FloatArray, FloatArray, float]:
        dp, dq = self._reduced(of_limits, of_users)
        if self.a is None:
            return dp, dq, 0.0
        dt = (unit - float(self.a @ dq)) / self.pivot
        return dp + dt * self.along_t[0], dq + dt * self.along_t[1], dt

    def _reduced(self, of_limits: FloatArray, of_users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the system of prices and user prices."""
        first, second = of_limits / self.d, of_users / self.f
        if self.by_user:
            first = self._forward(first)
            dq = scipy.linalg.cho_solve(self.factor, second + self.E @ first.ravel(), check_finite=False)
            dp = self._backward(first + (self.E.T @ dq).reshape(first.shape))
        else:
            dp = scipy.linalg.cho_solve(self.factor, first.ravel() + self.E.T @ second, check_finite=False)
            dq = second + self.E @ dp
            dp = dp.reshape(first.shape)
        return dp / self.d, dq / self.f

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

    def _forward_pairs(self, values: FloatArray) -> FloatArray:
        """Solve at every pair, with the block of its server, in place."""
        pairs, L = self.pairs, self.L
        where = slice(None) if pairs.whole else pairs.server
        table = values.reshape(values.shape[0], -1, pairs.n_servers) if pairs.whole else values
        for r in range(table.shape[0]):
            for c in range(r):
                table[r] -= L[where, r, c] * table[c]
            table[r] /= L[where, r, r]
        return values


def _square(matrix: FloatArray | sp.csr_array) -> FloatArray:
    """Return the matrix's transpose times itself, dense."""
    product = matrix.T @ matrix
    return product.toarray() if sp.issparse(product) else np.asarray(product)


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
