"""The program of some users, for each of whom any weight and own limit is given (`fairopt.solvers.interior_point.by_sample`).

A sample is one: each of its users demands as much as the m users that it stands for, at the same prices, if its weight is multiplied by
m^alpha and its own limit by m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program import AlphaFair, LimitKind, Limits, Program
from fairopt.solvers.interior_point.sample_users import Users

__all__ = ["Columns", "sampled"]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a program of some users, in parts of the limits of servers, sorted by user.

    Attributes
    ----------
    number, limit : int arrays (columns,)
        Of the user, from 0 on, and of the limit of a server.
    utilities, own : arrays (columns,)
        Utility of the whole limit, and what the whole limit takes of the user's own limit, 0 for users without one.
    log_weights : array (users,)
    """

    number: IntArray
    limit: IntArray
    utilities: FloatArray
    own: FloatArray
    log_weights: FloatArray

    @property
    def log_unit(self) -> float:
        """Logarithm of the unit of money, in which the largest weight is 1."""
        return float(self.log_weights.max())

    def program(self, users: Users) -> tuple[Program, AlphaFair]:
        """Return the program, whose first limits are those of servers, and its goal."""
        before, n, size = users.program, self.log_weights.size, self.number.size
        goal = AlphaFair(users.alpha, np.exp(self.log_weights - self.log_unit))
        some = np.flatnonzero(self.own)
        owners, row = np.unique(self.number[some], return_inverse=True)
        rows, columns = np.append(self.limit, users.shared.size + row), np.append(np.arange(size), some)
        data, shape = np.append(np.ones(size), self.own[some]), (users.shared.size + owners.size, size)
        of_servers = before.limits.keys[users.shared]
        limits = Limits(
            sp.csr_array((data, (rows, columns)), shape=shape),
            np.ones(shape[0]),
            np.append(before.limits.kinds[users.shared], np.full(owners.size, int(LimitKind.PARALLELISM))),
            np.concatenate([of_servers, np.stack([owners, np.full(owners.size, -1)], axis=1)]),
        )
        part = replace(
            before,
            users=tuple(map(str, range(n))),
            pair_users=self.number,
            pair_servers=of_servers[self.limit, 0],
            utilities=self.utilities,
            limits=limits,
            goal=goal,
        )
        return part, goal


def sampled(users: Users, every: int) -> Columns:
    """Return a sample, one user of ``every`` so many: each demands as much as the users that it stands for."""
    chosen = np.zeros(users.n, bool)
    chosen[every // 2 :: every] = True
    stands_for = users.n / int(chosen.sum())
    pairs = np.flatnonzero(chosen[users.user])
    q, h = users.q[pairs], users.h[pairs]
    log_weights = users.log_phi[chosen] + users.alpha * np.log(stands_for)
    return Columns((np.cumsum(chosen) - 1)[users.user[pairs]], users.limit[pairs], 1 / q, h / q / stands_for, log_weights)
