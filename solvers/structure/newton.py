"""One step of Newton's method for a program of users, servers and the pairs between them, by eliminating the larger side.

A point has primal values (x of pairs, s of limits, v of the rows of users), their duals (z, p, m) and, in a leximin, a level t. The rows
of users, U x, are levels, U x - v = a t + b, with prices q = m, and limits on tasks, U x + v = 1, with prices q = -m; ``side`` tells them
apart, +1 and -1. The step solves

    A dx + ds = rc            U dx - side dv - a dt = ru           A'dp - U'dq - dz = rd           a dq = rt
    z dx + x dz,  p ds + s dp,  m dv + v dm  = the wanted changes of the products.

Eliminating dx, ds, dv leaves, with theta = x/z, one small block for each server and one for each user:

    [  H   -E  ] [dp]      H = A theta A' + s/p
    [ -E'   F  ] [dq]      F = U theta U' + v/m         E = A theta U'

The larger side is eliminated: the Schur complement is dense, of size min(rows of users, limits), and all else takes a few passes over the
pairs. So either the users or the servers may be many. Rows across servers, C x, of which there are few, border the Schur complement on
either side (`fairopt.solvers.structure.border`). t is one bordering row.

H is scaled to a unit diagonal and F to the unit matrix, so the elimination is as accurate as its data. Near the end theta spans thirty
orders of magnitude, and the step of the reduced system misses the first two conditions. Iterative refinement of the whole system, not of
the reduced one, then lets the gap fall further.

All arrays are those of `fairopt.solvers.structure.pairs`, except the factor of the Schur complement if these have no solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.solvers.structure.across import Across
from fairopt.solvers.structure.border import Border
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.server_blocks import ServerBlocks
from fairopt.solvers.structure.settings import SETTINGS
from fairopt.solvers.structure.user_blocks import BlockMatrix

__all__ = ["NewtonSystem", "Residuals"]


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """The residuals of the linear conditions: of limits (slots, places), rows of users (rows,), reduced costs (pairs,) and the unit of
    price."""

    limits: Any
    rows: Any
    costs: Any
    unit: float


class NewtonSystem:
    """The system at a point, factorised; ``step`` solves it for any right-hand side. ``a`` is None where there is no t."""

    def __init__(self, pairs: Pairs, primal: Any, dual: Any, side: Any, a: Any | None) -> None:
        self.pairs, self.dual, self.side, self.a = pairs, pairs.mask_equalities(dual, 1.0), side, a
        self.ratio = pairs.mask_equalities(primal) / self.dual
        theta, s_p, v_m = pairs.parts(self.ratio)
        of_servers, of_across = pairs.split(s_p)
        used = pairs.A * theta
        plain = self._of_servers(used)
        H = self._with_slack(plain, of_servers)
        rows = self._scale_users(theta, v_m)
        limits = pairs.n_slots * pairs.n_servers
        self.by_user = pairs.n_rows <= limits
        if self.by_user:
            self.blocks = ServerBlocks(pairs.xp, H)
            self.blocks.forward_pairs(pairs, used)
        else:
            H = self._scale_servers(H, used)
        self.E = pairs.matrix(used, rows) if rows else pairs.arrays.floats(np.zeros((0, limits)))
        schur = _products(self.E, self.by_user)
        schur *= -1
        if self.by_user:
            pairs.arrays.add_to_diagonal(schur, 1.0)
        else:
            self._add_blocks(schur, H)
        self.border = None if pairs.across is None else self._border(pairs.across, theta, of_across, rows, plain)
        if self.border is not None:
            schur = self.border.around_users(schur, self.E) if self.by_user else self.border.around_servers(schur, self.E)
        self.solve = self._factorised(schur)
        if isinstance(self.E, BlockMatrix):
            self.solve = self.E.in_order(self.solve)
        if a is not None:
            self.along_t = self._reduced(pairs.xp.zeros_like(s_p), a)
            self.pivot = float(a @ self.along_t[1])

    def _of_servers(self, used: Any) -> list[Any]:
        """Return the lower half of A theta A', by row: (columns up to that row, servers)."""
        return [self.pairs.use_of_servers(used[r, :], r + 1) for r in range(self.pairs.n_slots)]

    def _with_slack(self, plain: list[Any], s_p: Any) -> list[list[Any]]:
        """Return the lower half of H, by row and column: one entry of all servers, (servers,)."""
        H = []
        for r, row in enumerate(plain):
            own = self.pairs.xp.where(s_p[r, :] > 0, s_p[r, :], SETTINGS.tight * row[r, :] + SETTINGS.tiny)
            H.append([*(row[c, :] for c in range(r)), row[r, :] + own])
        return H

    def _scale_servers(self, H: list[list[Any]], used: Any) -> list[list[Any]]:
        """Scale H to a unit diagonal by d, (slots, servers), and ``used`` with it, in place."""
        xp, pairs = self.pairs.xp, self.pairs
        d = [xp.sqrt(row[-1]) for row in H]
        self.d = xp.stack(d)
        view = pairs.view(used)
        for r in range(pairs.n_slots):
            view[r, ...] /= pairs.at_servers(d[r])
        return [[entry / (d[r] * d[c]) for c, entry in enumerate(row)] for r, row in enumerate(H)]

    def _add_blocks(self, schur: Any, H: list[list[Any]]) -> None:
        """Add the blocks of the servers to the Schur complement of the limits, in place."""
        k = self.pairs.n_servers
        for r, row in enumerate(H):
            for c, entry in enumerate(row):
                for first, second in {(r, c), (c, r)}:
                    if isinstance(self.E, BlockMatrix):
                        self.E.add_to_gram(schur, entry, first, second)
                    else:
                        self.pairs.arrays.add_to_diagonal(schur, entry, first * k, second * k)

    def _border(self, across: Across, theta: FloatArray, s_p: FloatArray, rows: list[FloatArray], plain: list[FloatArray]) -> Border:
        """Return the border, in the units of servers and users; ``plain`` is the lower half of A theta A', by row."""
        pairs, H = self.pairs, _square(plain)
        along, G = across.with_servers(theta, pairs.A, H), across.G.transpose(1, 0, 2)
        of_users = across.with_users(theta, rows)
        if pairs.n_limited:
            of_users[-1] = of_users[-1][:, pairs.scaled.limited]
        if self.by_user:
            J, G = self.blocks.forward(along), self.blocks.along_factor(G)
        else:
            J, G = along / self.d[:, None, :], G * self.d[:, None, :]
        J, G = (values.transpose(1, 0, 2).reshape(across.n_rows, -1) for values in (J, G))
        L = np.concatenate([np.zeros((across.n_rows, 0)), *of_users], axis=1) + (self.E @ G.T).T
        return Border.of(across, theta, s_p, along, H, J, L)

    def _scale_users(self, theta: Any, v_m: Any) -> list[Any]:
        """Set the Cholesky factor of F, [[f, 0], [f l, g]] of each user; return the rows (levels, then tasks) scaled by its inverse."""
        pairs, xp = self.pairs, self.pairs.xp
        of_level, of_tasks = v_m[: pairs.n_levels], v_m[pairs.n_levels :]
        rows, mixed = [], pairs.T
        if pairs.has_levels:
            square = pairs.dot_by_user(theta * pairs.W, pairs.W) + of_level
            square = square * (1 + SETTINGS.regular) + SETTINGS.tiny
            self.f = xp.sqrt(square)
            rows.append(pairs.W / pairs.spread(self.f))
        if pairs.n_limited:
            if pairs.has_levels:
                along = pairs.dot_by_user(theta * pairs.W, pairs.T) / square
                mixed = pairs.T - pairs.W * pairs.spread(along)
                self.l = pairs.of_limited(along)
                of_tasks = of_tasks + pairs.of_limited(of_level) * self.l**2
            given = pairs.of_limited(pairs.dot_by_user(theta, mixed * mixed + SETTINGS.regular * pairs.T * pairs.T))
            self.g = xp.sqrt(given + of_tasks + SETTINGS.tiny)
            rows.append(mixed / pairs.spread(pairs.scatter(self.g, 1.0)))
        return rows

    def _to_scaled(self, values: Any) -> Any:
        pairs, n = self.pairs, self.pairs.n_levels
        if not pairs.n_limited:
            return values / self.f if n else values
        first, second = values[:n], values[n:]
        if not n:
            return second / self.g
        return pairs.xp.concat([first / self.f, (second - self.l * pairs.of_limited(first)) / self.g])

    def _from_scaled(self, values: Any) -> Any:
        pairs, n = self.pairs, self.pairs.n_levels
        if not pairs.n_limited:
            return values / self.f if n else values
        second = values[n:] / self.g
        if not n:
            return second
        return pairs.xp.concat([values[:n] / self.f - pairs.scatter(self.l * second), second])

    def _factorised(self, matrix: Any) -> Callable[[Any], Any]:
        """Return a function that solves with the Schur complement, which may be rank-deficient by rounding."""
        arrays, add = self.pairs.arrays, SETTINGS.regular
        for _ in range(SETTINGS.most_raises):
            arrays.add_to_diagonal(matrix, add)
            try:
                return arrays.factorised(matrix)
            except np.linalg.LinAlgError:
                add *= SETTINGS.raised_by
        raise np.linalg.LinAlgError("the Schur complement is far from positive definite")

    def step(self, products: Any, residuals: Residuals, refinements: int = 2) -> tuple[Any, Any, float]:
        """Return the changes of the primal values, of the dual ones and of t."""
        pairs, ratio = self.pairs, self.ratio
        quotient = pairs.eligible(products / self.dual)
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
                missed_unit = residuals.unit - float(self.a @ (self.side * pairs.parts(d_dual)[2]))
            dp, dq, more = self._bordered(pairs.use(dx) + ds - residuals.limits, missed_rows, missed_unit)
            correction = self._duals(dp, dq)
            d_primal, d_dual, dt = d_primal - ratio * correction, d_dual + correction, dt + more
        return d_primal, d_dual, dt

    def _duals(self, dp: Any, dq: Any) -> Any:
        return self.pairs.point(self.pairs.cost(dp) - self.pairs.along_rows(dq), dp, self.side * dq)

    def _bordered(self, of_limits: Any, of_users: Any, unit: float) -> tuple[Any, Any, float]:
        dp, dq = self._reduced(of_limits, of_users)
        if self.a is None:
            return dp, dq, 0.0
        dt = (unit - float(self.a @ dq)) / self.pivot
        return dp + dt * self.along_t[0], dq + dt * self.along_t[1], dt

    def _reduced(self, of_limits: Any, of_users: Any) -> tuple[Any, Any]:
        """Solve the system of prices and user prices."""
        pairs, xp, border, second = self.pairs, self.pairs.xp, self.border, self._to_scaled(of_users)
        of_servers, of_across = pairs.split(of_limits)
        if self.by_user:
            first = self.blocks.forward(of_servers)
            flat = xp.reshape(first, (-1,))
            right = second + self.E @ flat
            if border is None:
                dq = self.solve(right)
                back = self.E.T @ dq
            else:
                dq, dc = self._solved(right, of_across / border.units - border.J @ flat)
                back = self.E.T @ dq - border.J.T @ dc
            dp = self.blocks.backward(first + xp.reshape(back, first.shape))
        else:
            right = xp.reshape(of_servers / self.d, (-1,)) + self.E.T @ second
            if border is None:
                first = self.solve(right)
                dq = second + self.E @ first
            else:
                first, dc = self._solved(right, of_across / border.units + border.L @ second)
                dq = second + self.E @ first + border.L.T @ dc
            dp = xp.reshape(first, of_servers.shape) / self.d
        return dp if border is None else pairs.joined(dp, dc / border.units), self._from_scaled(dq)

    def _solved(self, right: FloatArray, of_across: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve with the bordered Schur complement."""
        both = self.solve(np.concatenate([right, of_across]))
        return both[: right.size], both[right.size :]


def _square(lower: list[FloatArray]) -> FloatArray:
    """Return a symmetric matrix for each server, (slots, slots, servers), from its lower half by row."""
    n = len(lower)
    return np.array([[lower[max(r, c)][min(r, c)] for c in range(n)] for r in range(n)])


def _products(E: Any, by_user: bool) -> Any:
    """Return the products of the rows, or of the columns, of a matrix, in a contiguous array."""
    if isinstance(E, BlockMatrix):
        return E.gram()
    product = E @ E.T if by_user else E.T @ E
    if not isinstance(product, sp.csr_array | sp.csc_array):
        return product
    dense = product.toarray()
    return dense if dense.flags.c_contiguous else dense.T
