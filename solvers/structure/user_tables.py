"""Users and servers as tables, for `fairopt.solvers.alpha_fair.table_path`: what a unit of utility takes of limits, and what it costs.

Users whose utility takes the same of all limits, in proportion, may share a column though their weights and limits on tasks differ
(`UserTables.joined`): whatever the prices are, they buy at the same servers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.solvers.structure.arrays import Arrays

__all__ = ["UserTables"]

_SAME = 2.0**44  # numbers that differ by less than a part in so many are the same but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class UserTables:
    """Users of a program, and what a unit of their utility takes.

    Attributes
    ----------
    arrays : Arrays
    take : array (slots, servers, columns)
        Q, parts of the whole limit; 0 for pairs that are not eligible. A column is a user, unless users are `joined`.
    may : bool array (servers, columns)
        Which pairs are eligible; one of each column at least.
    log_phi : array (users,)
    alpha : float
    used : bool NumPy array (slots, servers)
        Which limits somebody can use.
    log_cap : array (users,), or None
        Logarithms of the most that limits on tasks let users have, inf without one; None where nobody has one.
    column : int NumPy array (users,), or None
        Column of each user; None where each has one of its own.
    """

    arrays: Arrays
    take: Any
    may: Any
    log_phi: Any
    alpha: float
    used: BoolArray
    log_cap: Any = None
    column: IntArray | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns: of users, unless they are `joined`."""
        return int(self.may.shape[1])

    def joined(self) -> tuple[UserTables, Any]:
        """Return tables in which users with proportional columns share one, and a user's unit of utility in those of its column, (users,).

        The tables themselves, and 1, where that leaves more than half of the columns, and where arrays are not NumPy's.
        """
        if not self.arrays.are_numpy:
            return self, 1.0
        size = self.take.max(axis=(0, 1))
        digits, powers = np.frexp((self.take / size).reshape(-1, self.n_columns).T)
        column = number_distinct([np.round(digits * _SAME), powers, self.may.T])
        _, first = np.unique(column, return_index=True)
        if first.size > self.n_columns // 2:
            return self, 1.0
        unit = size / size[first][column]
        joined = replace(
            self,
            take=np.ascontiguousarray(self.take[:, :, first]),
            may=np.ascontiguousarray(self.may[:, first]),
            log_phi=self.log_phi + (self.alpha - 1) * np.log(unit),
            log_cap=None if self.log_cap is None else self.log_cap + np.log(unit),
            column=column,
        )
        return joined, unit

    def of_users(self, values: Any) -> Any:
        """Return values of columns, (columns,) or (servers, columns), for users."""
        return values if self.column is None else values[..., self.column]

    def by_column(self, values: Any) -> Any:
        """Sum values of users, (users,), over the users of each column, (columns,)."""
        return values if self.column is None else np.bincount(self.column, weights=values, minlength=self.n_columns)

    def cost(self, p: FloatArray) -> Any:
        """Return what a unit of utility costs, c = sum_r Q p, (servers, users); inf for pairs that are not eligible."""
        xp = self.arrays.xp
        total = self.of_prices(p)
        return xp.where(self.may, total, xp.asarray(xp.inf, dtype=xp.float64, device=self.arrays.device))

    def of_prices(self, p: FloatArray) -> Any:
        """Return sum_r Q p for all pairs, (servers, users)."""
        table = self.take
        total = table[0, :, :] * self.arrays.floats(p[0])[:, None]
        for r in range(1, p.shape[0]):
            total = total + table[r, :, :] * self.arrays.floats(p[r])[:, None]
        return total

    def use(self, v: Any) -> FloatArray:
        """Return the part of each limit that utilities (servers, users) take, (slots, servers)."""
        xp = self.arrays.xp
        return np.stack([self.arrays.numpy(xp.sum(self.take[r, :, :] * v, axis=1)) for r in range(self.take.shape[0])])

    def tasks(self, v: Any) -> Any:
        """Return the part of its tasks that each user holds, (users,); 0 for users without a limit on tasks."""
        t = self.arrays.xp.sum(v, axis=0)
        return 0.0 * t if self.log_cap is None else t / self.arrays.xp.exp(self.log_cap)

    def fullest(self, use: FloatArray) -> Any:
        """Return how full the fullest limit is that a pair uses, (servers, users); 0 for pairs that are not eligible."""
        xp, part = self.arrays.xp, self.arrays.floats(use)[:, :, None]
        most = xp.where(self.take[0, :, :] > 0, part[0, :, :], 0.0)
        for r in range(1, use.shape[0]):
            most = xp.maximum(most, xp.where(self.take[r, :, :] > 0, part[r, :, :], 0.0))
        return most
