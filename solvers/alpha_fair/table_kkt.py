"""The linear system of a step of `fairopt.solvers.alpha_fair.table_path`, by eliminating its larger side: users, or prices of limits.

Unknown are q[r,i] = dp/p and h[n] = dy/y, the relative changes of prices and of the users' marginal worth. With beta[r,i,n] = Q p / y,
kappa = w / z, money m, K[n] = sum_i kappa and own[n] = sum_i w / alpha, the parts w of a user's money change by

    dw = fixed - kappa (sum_r beta q - h),        sum_i dw + own h = missing,        sum_n m beta dw - p s q = -of_limits

(the last two for users and for limits), which is

    [  B   -E ] [q]      B = sum_n m kappa beta beta' + diag(p s), a small block for each server
    [ -E'   F ] [h]      F = m (K + own), diagonal         E = m kappa beta

The shorter side is kept, as a dense system: the Schur complement B - E F^-1 E' of prices or F - E' B^-1 E of users. Nothing else takes more
time than a few passes over the pairs. So users may be many where limits are few, and the other way round.

For a user split across servers, or a server split across users, kappa is of order 1/mu. Then most of either difference cancels, so the
diagonal blocks of the Schur complement are computed from what is left instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from fairopt.instance import FloatArray
from fairopt.solvers.structure.server_blocks import ServerBlocks
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["Coefficients", "KKTSystem", "OfPrices", "OfUsers", "factorise"]

_REGULAR = 1e-14  # of the unit diagonal
_RAISE, _MOST_RAISES = 100.0, 5  # by which it grows until the factorisation succeeds, and how often


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """What the system is made of: tables (servers, users), and vectors of limits (slots, servers) and users (users,).

    Attributes
    ----------
    users : UserTables
    p : NumPy array (slots, servers)
    y : array (users,)
    kappa : array (servers, users)
    money : array (users,)
    own : array (users,)
    diagonal : NumPy array (slots, servers)
        p s; 1 for limits that nobody uses.
    beta : list of arrays (servers, users)
        A table a slot.
    all_kappa, pivot : arrays (users,)
        K, and K + own.
    """

    users: UserTables
    p: FloatArray
    y: Any
    kappa: Any
    money: Any
    own: Any
    diagonal: FloatArray
    beta: list[Any]
    all_kappa: Any
    pivot: Any

    @classmethod
    def of(cls, users: UserTables, p: FloatArray, y: Any, kappa: Any, money: Any, own: Any, p_s: FloatArray) -> Coefficients:
        """Compute what follows from the others."""
        price = users.arrays.floats(p)
        beta = [users.take[r, :, :] * price[r, :][:, None] / y for r in range(p.shape[0])]
        all_kappa = users.arrays.xp.sum(kappa, axis=0)
        return cls(users, p, y, kappa, money, own, np.where(users.used, p_s, 1.0), beta, all_kappa, all_kappa + own)

    def sum_by_limit(self, values: Any) -> FloatArray:
        """Sum beta times values (servers, users) over the users."""
        arrays = self.users.arrays
        return np.stack([arrays.numpy(arrays.xp.sum(values * beta, axis=1)) for beta in self.beta])

    def cost_change(self, q: FloatArray) -> Any:
        """Return sum_r beta q, (servers, users)."""
        return self.users.of_prices(self.p * q) / self.y


class KKTSystem(Protocol):
    """A factorised system."""

    refinements: ClassVar[int]  # how often to solve once more for the residual of a solution

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Return q (slots, servers), h (users,), and by how much costs rise, sum_r beta q (servers, users)."""


def factorise(coefficients: Coefficients) -> KKTSystem:
    """Return the system of the shorter side; of prices where demands are capped: a user at its cap may have F = m K, which is next to E.

    Raises
    ------
    numpy.linalg.LinAlgError
    """
    users = coefficients.users
    shorter_users = users.n_columns < int(users.used.sum()) and users.log_cap is None
    return OfUsers.factorised(coefficients) if shorter_users else OfPrices.factorised(coefficients)


@dataclass(frozen=True, slots=True, eq=False)
class OfPrices:
    """Users are eliminated."""

    refinements: ClassVar[int] = 0
    at: Coefficients
    solve_schur: Callable[[FloatArray], FloatArray]

    @classmethod
    def factorised(cls, at: Coefficients) -> OfPrices:
        """Factorise the Schur complement of the prices."""
        arrays, xp, (m, k) = at.users.arrays, at.users.arrays.xp, at.p.shape
        root = xp.sqrt(at.money / at.pivot)
        weighted = at.kappa * root
        rows = xp.concat([weighted * beta for beta in at.beta], axis=0)
        matrix = -arrays.numpy(xp.matmul(rows, rows.T)).reshape(m, k, m, k)
        others = at.all_kappa - at.kappa
        block = at.kappa * (at.own + xp.where(others > 0, others, 0.0)) * (at.money / at.pivot)
        each = np.arange(k)
        for r in range(m):
            part = block * at.beta[r]
            for c in range(r + 1):
                along = arrays.numpy(xp.sum(part * at.beta[c], axis=1))
                matrix[r, each, c, each] = matrix[c, each, r, each] = along
        matrix = matrix.reshape(m * k, m * k)
        matrix[np.diag_indices_from(matrix)] += at.diagonal.ravel()
        return cls(at, _cholesky(matrix))

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Solve for the prices first."""
        at, xp = self.at, self.at.users.arrays.xp
        rise = (missing - xp.sum(fixed, axis=0)) / at.pivot
        right = at.sum_by_limit((fixed + at.kappa * rise) * at.money) + of_limits
        q = self.solve_schur(right.ravel()).reshape(at.p.shape)
        change = at.cost_change(q)
        return q, rise + xp.sum(at.kappa * change, axis=0) / at.pivot, change


@dataclass(frozen=True, slots=True, eq=False)
class OfUsers:
    """Prices are eliminated, server by server: with L L' = B of a server, its part of the complement is made of L^-1 beta.

    What a user leaves of a server to others is 1 - |L^-1 beta|^2. It is known to rounding times kappa only, no better than the factor of a
    block of nearly dependent limits; so steps are refined.
    """

    refinements: ClassVar[int] = 1
    at: Coefficients
    size: Any  # square roots of the diagonal of B, (slots, servers, 1)
    blocks: ServerBlocks
    rows: Any
    solve_schur: Callable[[FloatArray], FloatArray]

    @classmethod
    def factorised(cls, at: Coefficients) -> OfUsers:
        """Factorise the Schur complement of the users."""
        arrays, xp, m = at.users.arrays, at.users.arrays.xp, at.p.shape[0]
        weight = at.kappa * at.money
        root = xp.sqrt(weight)
        parts = [root * beta for beta in at.beta]
        lower = [[xp.sum(parts[r] * parts[c], axis=1)[:, None] for c in range(r + 1)] for r in range(m)]
        lower = [[*row[:-1], row[-1] + arrays.floats(at.diagonal[r])[:, None]] for r, row in enumerate(lower)]
        size = xp.stack([xp.sqrt(row[-1]) for row in lower])
        scaled = [[entry / (size[r, ...] * size[c, ...]) for c, entry in enumerate(row)] for r, row in enumerate(lower)]
        blocks = ServerBlocks(xp, [[*row[:-1], row[-1] + (m - 1) * _REGULAR] for row in scaled])
        unit = blocks.forward(xp.stack(parts) / size)
        left = 1 - xp.sum(unit * unit, axis=0)
        rows = xp.reshape(unit * root, (-1, root.shape[1]))
        matrix = -arrays.numpy(xp.matmul(rows.T, rows))
        along = xp.sum(weight * xp.where(left > 0, left, 0.0), axis=0) + at.money * at.own
        matrix[np.diag_indices_from(matrix)] = arrays.numpy(along)
        return cls(at, size, blocks, rows, _cholesky(matrix))

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Solve for the users first."""
        at, arrays, xp = self.at, self.at.users.arrays, self.at.users.arrays.xp
        right = arrays.floats(at.sum_by_limit(fixed * at.money) + of_limits)[:, :, None]
        first = self.blocks.forward(right / self.size)
        of_users = at.money * (missing - xp.sum(fixed, axis=0)) + xp.matmul(self.rows.T, xp.reshape(first, (-1,)))
        h = arrays.floats(self.solve_schur(arrays.numpy(of_users)))
        first = first + xp.reshape(xp.matmul(self.rows, h), first.shape)
        q = arrays.numpy((self.blocks.backward(first) / self.size)[:, :, 0])
        return q, h, at.cost_change(q)


def _cholesky(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return what solves with a positive definite matrix, scaled to a unit diagonal, which may have lost its rank to rounding."""
    size = np.sqrt(np.diag(matrix))
    matrix = matrix / size / size[:, None]
    added = _REGULAR
    for _ in range(_MOST_RAISES):
        factor, failed = dpotrf(matrix + added * np.eye(matrix.shape[0]), lower=True, clean=False)
        if not failed:
            return lambda right: np.asarray(dpotrs(factor, right / size, lower=True)[0] / size)
        added *= _RAISE
    raise np.linalg.LinAlgError("the system is far from positive definite")
