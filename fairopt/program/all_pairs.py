r"""A program of all pairs of users and servers, as tables: its columns and rows are made when they are first asked for.

Every user may run on every server, demands something of every resource and has no limit of its own, and a task of a user is worth the
same on all servers:

    U[n] = u[n] sum_i x[n,i],        sum_n d[n,r] x[n,i] <= c[i,r]  for each server i and resource r,        x >= 0

So u (users,), d (users, resources) and c (servers, resources) say it all: half a million numbers for 100,000 users and 1,000 servers, where
columns and rows have a billion. The engine `fairopt.solvers.large` and the certificate need only the tables.

>>> instance = Instance([[9, 12], [12, 12]], [[1, 2], [2, 1], [1, 1]])
>>> program = AllPairs.of(instance, np.ones(3), Leximin(np.ones(3)), "max-min", "")
>>> program.n_pairs, len(program.limits), program.pair_users
(6, 4, array([0, 0, 1, 1, 2, 2]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.program.goals import AlphaFair, Leximin
from fairopt.program.likeness import Likeness
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program

__all__ = ["AllPairs", "has_all_pairs"]

_MANY = 100_000  # pairs; of fewer, columns are made at once


def has_all_pairs(instance: Instance, sharing: str) -> bool:
    """Are all users eligible everywhere, with positive demands and weights and no limits of their own, and are there many pairs?"""
    if sharing != "rdm" or instance.n_users * instance.n_servers < _MANY:
        return False
    if instance.differs_by_server:
        return False
    if instance.is_tree or instance.weights.ndim > 1 or instance.shared or instance.limits:
        return False
    endless = bool(np.isinf(instance.tasks).all() and np.isinf(instance.parallelism).all())
    positive = bool((instance.demands > 0).all() and (instance.weights > 0).all())
    return endless and positive and instance.rates_per_server is None and bool(instance.eligibility.all())


class AllPairs(Program):
    """Such a program. `dataclasses.replace` returns an ordinary `Program`, with columns and rows.

    Attributes
    ----------
    capacities : array (servers, resources)
    demands : array (users, resources)
    worths : array (users,)
        u > 0.
    """

    __slots__ = ("capacities", "demands", "worths")

    capacities: FloatArray
    demands: FloatArray
    worths: FloatArray
    goal: Leximin | AlphaFair

    def __new__(cls, *arguments: Any, **fields: Any) -> Any:
        """Return an ordinary program: this is what `dataclasses.replace` calls."""
        return Program(*arguments, **fields)

    @classmethod
    def of(cls, instance: Instance, worths: FloatArray, goal: Leximin | AlphaFair, name: str, title: str) -> AllPairs:
        """Return the program of an instance that `has_all_pairs`."""
        labels = (instance.users, instance.servers, instance.resources)
        return cls.of_tables(*labels, instance.row_capacity, instance.demands, worths, goal, name, title)

    @classmethod
    def of_tables(
        cls,
        users: tuple[str, ...],
        servers: tuple[str, ...],
        resources: tuple[str, ...],
        capacities: FloatArray,
        demands: FloatArray,
        worths: FloatArray,
        goal: Leximin | AlphaFair,
        name: str,
        title: str,
    ) -> AllPairs:
        """Return the program of these tables."""
        program: AllPairs = object.__new__(cls)
        fields: dict[str, Any] = {"name": name, "title": title, "goal": goal, "integral": False, "queue_limits": (), "kept": None}
        fields |= {"users": users, "servers": servers, "resources": resources, "kept_rows": (), "_largest": None}
        fields |= {"stated": (), "likeness": None, "source": None}
        fields |= {"capacities": capacities, "demands": demands, "worths": worths}
        fields |= {"limits": _Rows.of_tables(capacities, demands)}
        for field, value in fields.items():
            object.__setattr__(program, field, value)
        return program

    def __getattr__(self, name: str) -> Any:
        """Make the columns, when one of their arrays is first asked for."""
        n, k = len(self.users), len(self.servers)
        if name == "pair_users":
            made = np.repeat(np.arange(n), k)
        elif name == "pair_servers":
            made = np.tile(np.arange(k), n)
        elif name == "utilities":
            made = np.repeat(self.worths, k)
        else:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        object.__setattr__(self, name, made)
        return made

    def with_likeness(self, likeness: Likeness) -> Program:
        """Return the same program: it is too large for the linear programs of many levels."""
        return self

    @property
    def n_pairs(self) -> int:
        """Number of columns."""
        return len(self.users) * len(self.servers)

    @property
    def is_large(self) -> bool:
        """Has it so many columns that tables are of use?"""
        return self.n_pairs >= _MANY

    @property
    def members(self) -> IntArray:
        """All users."""
        return np.arange(len(self.users))

    @property
    def can_run(self) -> BoolArray:
        """Everybody can."""
        return np.ones(len(self.users), bool)

    def table(self, x: FloatArray) -> FloatArray:
        """Return a value per column as a table, (users, servers)."""
        return np.reshape(x, (len(self.users), len(self.servers)))

    def utility(self, table: FloatArray) -> FloatArray:
        """Return U of tasks, (users,)."""
        return np.asarray(self.worths * table.sum(axis=1))

    def prices_of_servers(self, prices: FloatArray) -> FloatArray:
        """Return prices of limits as a table, (servers, resources)."""
        return np.reshape(prices, self.capacities.shape)


class _Rows(Limits):
    """The capacities of servers, resource by resource; the matrix is made when it is first asked for."""

    __slots__ = ("_demands", "_n_servers")

    _demands: FloatArray
    _n_servers: int

    def __new__(cls, *arguments: Any, **fields: Any) -> Any:
        """Return ordinary limits."""
        return Limits(*arguments, **fields)

    @classmethod
    def of_tables(cls, capacities: FloatArray, demands: FloatArray) -> _Rows:
        k, m = capacities.shape
        rows: _Rows = object.__new__(cls)
        keys = np.column_stack([np.repeat(np.arange(k), m), np.tile(np.arange(m), k)])
        fields: dict[str, Any] = {"bounds": capacities.ravel(), "kinds": np.full(k * m, int(LimitKind.CAPACITY)), "keys": keys}
        for field, value in (fields | {"_of_rows": {}, "_demands": demands, "_n_servers": k}).items():
            object.__setattr__(rows, field, value)
        return rows

    def __getattr__(self, name: str) -> Any:
        """Make the matrix."""
        if name != "matrix":
            raise AttributeError(f"{type(self).__name__} has no {name}")
        (n, m), k = self._demands.shape, self._n_servers
        columns = np.repeat(np.arange(k), m)[:, None] + k * np.arange(n)
        entries = (np.tile(self._demands.T, (k, 1)).ravel(), columns.ravel(), n * np.arange(k * m + 1))
        made = sp.csr_array(entries, shape=(k * m, n * k))
        object.__setattr__(self, "matrix", made)
        return made
