"""The linear system of a step of ``alpha_fair_path``, by eliminating the larger side: users or the prices of limits.

Unknown are q[r,i] = dp/p and h[n] = dy/y, what a unit of utility is worth to a user. With beta[r,i,n] = Q p / y, kappa = w / z, money m,
K[n] = sum_i kappa and own[n] = sum_i w / alpha, shares of a user's money change by

    dw = fixed - kappa (sum_r beta q - h),        sum_i dw + own h = missing,        sum_n m beta dw - p s q = -of_limits

(the last two for users and for limits), which is

    [  B   -E ] [q]      B = sum_n m kappa beta beta' + diag(p s), a small block for each server
    [ -E'   F ] [h]      F = m (K + own), diagonal         E = m kappa beta

Whichever side is shorter is kept, as a dense system: the Schur complement B - E F^-1 E' of prices or F - E' B^-1 E of users. Nothing else
takes more time than some passes over the pairs, so users may be many where limits are few, and the other way round.

Where a user is torn between servers, or a server between users, kappa is of order 1/mu. Then most of either difference cancels, so its
diagonal blocks are made of what is left.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg

from fairopt.instance import FloatArray
from fairopt.solvers.structure.server_blocks import ServerBlocks
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["NewtonSystem", "OfPrices", "OfUsers", "newton_system"]

_REGULAR = 1e-14  # of the unit diagonal
_MOST_RAISES = 5


class NewtonSystem(Protocol):
    """A system at a point, factorised."""

    refinements: int  # how often what a solution misses is to be solved for once more

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Return q (slots, servers), h (users,), and by how much prices raise costs, sum_r beta q (servers, users)."""


def newton_system(users: UserTables, p: FloatArray, y: Any, kappa: Any, money: Any, own: Any, p_s: FloatArray) -> NewtonSystem:
    """Return the system of the shorter side; of prices where demands are capped: who has all its tasks may have F = m K, next to E."""
    side = OfUsers if users.n_users < int(users.used.sum()) and users.log_cap is None else OfPrices
    return side(users, p, y, kappa, money, own, p_s)


class _Side:
    """What both sides are made of."""

    def __init__(self, users: UserTables, p: FloatArray, y: Any, kappa: Any, money: Any, own: Any, p_s: FloatArray) -> None:
        self.users, self.xp, self.p, self.y, self.kappa, self.money = users, users.arrays.xp, p, y, kappa, money
        self.diagonal = np.where(users.used, p_s, 1.0)
        price = users.arrays.floats(p)
        self.beta = [users.take[r, :, :] * price[r, :][:, None] / y for r in range(p.shape[0])]
        self.all_kappa = self.xp.sum(kappa, axis=0)
        self.pivot = self.all_kappa + own
        self._factorise(own)

    def _factorise(self, own: Any) -> None:
        raise NotImplementedError

    def _sum_by_limit(self, values: Any) -> FloatArray:
        """Sum beta times values (servers, users) over users."""
        return np.stack([self.users.arrays.numpy(self.xp.sum(values * beta, axis=1)) for beta in self.beta])

    def _dearer(self, q: FloatArray) -> Any:
        return self.users.of_prices(self.p * q) / self.y


class OfPrices(_Side):
    """Users are eliminated."""

    refinements = 0

    def _factorise(self, own: Any) -> None:
        xp, (m, k) = self.xp, self.p.shape
        root = xp.sqrt(self.money / self.pivot)
        weighted = self.kappa * root
        rows = xp.concat([weighted * beta for beta in self.beta], axis=0)
        matrix = -self.users.arrays.numpy(xp.matmul(rows, rows.T)).reshape(m, k, m, k)
        others = self.all_kappa - self.kappa
        block = self.kappa * (own + xp.where(others > 0, others, 0.0)) * (self.money / self.pivot)
        each = np.arange(k)
        for r in range(m):
            part = block * self.beta[r]
            for c in range(r + 1):
                along = self.users.arrays.numpy(xp.sum(part * self.beta[c], axis=1))
                matrix[r, each, c, each] = matrix[c, each, r, each] = along
        matrix = matrix.reshape(m * k, m * k)
        matrix[np.diag_indices_from(matrix)] += self.diagonal.ravel()
        self.dense = _Dense(matrix)

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Solve for the prices first."""
        rise = (missing - self.xp.sum(fixed, axis=0)) / self.pivot
        right = self._sum_by_limit((fixed + self.kappa * rise) * self.money) + of_limits
        q = self.dense.solve(right.ravel()).reshape(self.p.shape)
        dearer = self._dearer(q)
        return q, rise + self.xp.sum(self.kappa * dearer, axis=0) / self.pivot, dearer


class OfUsers(_Side):
    """Prices are eliminated, server by server: with L L' = B of a server, its part of the complement is made of L^-1 beta.

    What a user leaves of a server to others is what L^-1 beta lacks to a unit vector; it is known to rounding times kappa, no better than
    the factor of a block of nearly dependent limits. So steps are refined.
    """

    refinements = 1

    def _factorise(self, own: Any) -> None:
        xp, arrays, m = self.xp, self.users.arrays, self.p.shape[0]
        weight = self.kappa * self.money
        root = xp.sqrt(weight)
        parts = [root * beta for beta in self.beta]
        lower = [[xp.sum(parts[r] * parts[c], axis=1)[:, None] for c in range(r + 1)] for r in range(m)]
        lower = [[*row[:-1], row[-1] + arrays.floats(self.diagonal[r])[:, None]] for r, row in enumerate(lower)]
        self.size = xp.stack([xp.sqrt(row[-1]) for row in lower])  # (slots, servers, 1)
        scaled = [[entry / (self.size[r, ...] * self.size[c, ...]) for c, entry in enumerate(row)] for r, row in enumerate(lower)]
        self.blocks = ServerBlocks(xp, [[*row[:-1], row[-1] + (m - 1) * _REGULAR] for row in scaled])
        unit = self.blocks.forward(xp.stack(parts) / self.size)
        left = 1 - xp.sum(unit * unit, axis=0)
        self.rows = xp.reshape(unit * root, (-1, root.shape[1]))
        matrix = -arrays.numpy(xp.matmul(self.rows.T, self.rows))
        along = xp.sum(weight * xp.where(left > 0, left, 0.0), axis=0) + self.money * own
        matrix[np.diag_indices_from(matrix)] = arrays.numpy(along)
        self.dense = _Dense(matrix)

    def solve(self, fixed: Any, missing: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any]:
        """Solve for the users first."""
        xp, arrays = self.xp, self.users.arrays
        right = arrays.floats(self._sum_by_limit(fixed * self.money) + of_limits)[:, :, None]
        first = self.blocks.forward(right / self.size)
        of_users = self.money * (missing - xp.sum(fixed, axis=0)) + xp.matmul(self.rows.T, xp.reshape(first, (-1,)))
        h = arrays.floats(self.dense.solve(arrays.numpy(of_users)))
        first = first + xp.reshape(xp.matmul(self.rows, h), first.shape)
        q = arrays.numpy((self.blocks.backward(first) / self.size)[:, :, 0])
        return q, h, self._dearer(q)


class _Dense:
    """A dense positive definite matrix, scaled to a unit diagonal, which may have lost its rank to rounding."""

    def __init__(self, matrix: FloatArray) -> None:
        self.size = np.sqrt(np.diag(matrix))
        matrix = matrix / self.size / self.size[:, None]
        added = _REGULAR
        for _ in range(_MOST_RAISES):
            try:
                self.factor = scipy.linalg.cho_factor(matrix + added * np.eye(matrix.shape[0]), lower=True)
                return
            except (np.linalg.LinAlgError, ValueError):
                added *= 100
        raise np.linalg.LinAlgError("the system is far from positive definite")

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve with the factor."""
        solution: FloatArray = scipy.linalg.cho_solve(self.factor, right / self.size, check_finite=False) / self.size
        return solution
