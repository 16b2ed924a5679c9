"""A program in units of its own: every column reaches 1, every limit is 1; and the way back.

With m[p] = min over the limits j of b[j] / a[j,p], the largest value of column p by itself, and x[p] = m[p] y[p],

    A x <= b,  x >= 0        is        sum over p of (a[j,p] m[p] / b[j]) y[p] <= 1,  y >= 0,

where every coefficient is at most 1 and the largest of each column is 1. What can hold nothing is left out: columns without room
(m[p] = 0), limits with bound 0 (all of their columns are such), users and servers without a column that has room.

Prices go back by weak duality: a unit of limit j costs p[j] / b[j] where the whole limit costs p[j].

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18], [0, 4]], [[1, 4], [3, 1]], users=["A", "B"])
>>> scaled = fo.formulate(instance, "drfh").scaled()
>>> scaled.scale
array([4.5, 3. ])
>>> scaled.use.toarray().round(3)
array([[0.5  , 1.   ],
       [1.   , 0.167]])
>>> scaled.tasks(np.array([0.5, 0.25]))
array([2.25, 0.75])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray

if TYPE_CHECKING:
    from fairopt.program import Program

__all__ = ["ScaledColumns"]


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    """The columns of a program that have room, in these units. What is not needed is not computed.

    Attributes
    ----------
    program : Program
    columns : int array (columns,)
        Their positions among the pairs of the program.
    scale : array (columns,)
        m: the largest value of each, > 0.
    members : int array (users,)
        Positions of the users with such a column, ascending.
    user : int array (columns,)
        Position of each column's user in ``members``; sorted, every number from 0 on.
    """

    program: Program
    columns: IntArray
    scale: FloatArray
    members: IntArray
    user: IntArray

    @classmethod
    def of(cls, program: Program) -> ScaledColumns:
        """Scale a program."""
        largest = program.largest()
        columns = np.flatnonzero(largest > 0)
        users = program.pair_users[columns]
        new = np.diff(users, prepend=-1) > 0  # pairs are sorted by user
        return cls(program, columns, largest[columns], users[new], np.cumsum(new) - 1)

    # Users and servers -----------------------------------------------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.columns.size)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.members.size)

    @cached_property
    def first(self) -> IntArray:
        """Position of each user's first column, (users,)."""
        return np.flatnonzero(np.diff(self.user, prepend=-1))

    @cached_property
    def servers(self) -> IntArray:
        """Positions of the servers with a column, ascending, (servers,)."""
        there = np.zeros(len(self.program.servers), bool)
        there[self.program.pair_servers[self.columns]] = True
        return np.flatnonzero(there)

    @cached_property
    def server(self) -> IntArray:
        """Position of each column's server in ``servers``, (columns,)."""
        place = np.full(len(self.program.servers), -1)
        place[self.servers] = np.arange(self.servers.size)
        return place[self.program.pair_servers[self.columns]]

    def per_user(self, values: FloatArray) -> FloatArray:
        """Sum a value per column over the columns of each user, (users,)."""
        return np.bincount(self.user, weights=values, minlength=self.n_users).astype(np.float64)

    # Utilities and limits --------------------------------------------------------------------------------------------------------

    @cached_property
    def utilities(self) -> FloatArray:
        """u[p] m[p]: utility of a column that is as large as it can be, (columns,)."""
        return np.asarray(self.program.utilities[self.columns] * self.scale)

    @cached_property
    def reach(self) -> FloatArray:
        """Utility of a user all of whose columns are as large as they can be, (users,): no allocation gives more."""
        return self.per_user(self.utilities)

    @cached_property
    def rows(self) -> IntArray:
        """Positions of the limits with a bound > 0, (rows,)."""
        return np.flatnonzero(self.program.limits.bounds > 0)

    @cached_property
    def use(self) -> sp.csr_array:
        """a[j,p] m[p] / b[j], (rows, columns)."""
        limits = self.program.limits
        matrix, bounds = limits.matrix, limits.bounds
        if self.rows.size < bounds.size:
            matrix, bounds = sp.csr_array(matrix[self.rows]), bounds[self.rows]
        if self.columns.size < matrix.shape[1]:
            matrix = sp.csr_array(matrix[:, self.columns])
        part = matrix.data * self.scale[matrix.indices] / np.repeat(bounds, np.diff(matrix.indptr))
        return sp.csr_array((part, matrix.indices, matrix.indptr), shape=matrix.shape)

    # The way back ----------------------------------------------------------------------------------------------------------------

    def tasks(self, y: FloatArray) -> FloatArray:
        """Return x, (pairs,) of the program."""
        tasks = np.zeros(self.program.n_pairs)
        tasks[self.columns] = y * self.scale
        return tasks

    def prices(self, price: FloatArray) -> FloatArray:
        """Return the price of a unit of each limit of the program, (limits,), from prices of whole limits, (rows,)."""
        prices = np.zeros(len(self.program.limits))
        prices[self.rows] = price / self.program.limits.bounds[self.rows]
        return prices
