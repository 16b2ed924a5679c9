"""Users and servers as tables, for `fairopt.solvers.alpha_fair.table_path`: what a unit of utility takes of limits, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.structure.arrays import Arrays

__all__ = ["UserTables"]


@dataclass(frozen=True, slots=True, eq=False)
class UserTables:
    """Users of a program, and what a unit of their utility takes.

    Attributes
    ----------
    arrays : Arrays
    take : array (slots, servers, users)
        Q, parts of the whole limit; 0 for pairs that are not eligible.
    may : bool array (servers, users)
        Which pairs are eligible; one of each user at least.
    log_phi : array (users,)
    alpha : float
    used : bool NumPy array (slots, servers)
        Which limits somebody can use.
    log_cap : array (users,), or None
        Logarithms of the most that limits on tasks let users have, inf without one; None where nobody has one.
    """

    arrays: Arrays
    take: Any
    may: Any
    log_phi: Any
    alpha: float
    used: BoolArray
    log_cap: Any = None

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.may.shape[1])

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
