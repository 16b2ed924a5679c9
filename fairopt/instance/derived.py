"""What follows from the data of an instance: its sizes, its capacity, how many tasks each user could run where, and who runs nowhere.

Symbols as in :mod:`fairopt.instance.instance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance.queues import Queue
from fairopt.instance.ratios import lacking
from fairopt.instance.selections import Selection
from fairopt.instance.tree import Tree
from fairopt.validation import BoolArray, FloatArray

__all__ = ["Derived"]


class Derived:
    """What an `Instance` knows beyond its fields; computed anew each time."""

    __slots__ = ()

    capacities: FloatArray
    demands: FloatArray
    weights: FloatArray
    eligibility: BoolArray
    counts: FloatArray
    rates_per_server: FloatArray | None
    guarantees: FloatArray
    queues: tuple[Queue, ...]
    queue_of: tuple[str | None, ...]
    selections: tuple[Selection, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]

    if TYPE_CHECKING:

        def given(self, name: str) -> Any:
            """Return the array ``name`` as it was given."""

    @property
    def n_users(self) -> int:
        """N, the number of users."""
        return len(self.users)

    @property
    def n_servers(self) -> int:
        """K, the number of rows; the number of servers is ``counts.sum()``."""
        return len(self.servers)

    @property
    def n_resources(self) -> int:
        """M, the number of resources."""
        return len(self.resources)

    @property
    def total_capacity(self) -> FloatArray:
        """Capacity of the cluster, sum_i counts[i] c[i,r], (resources,)."""
        return self.counts @ self.capacities

    @property
    def row_capacity(self) -> FloatArray:
        """Capacity of each row, counts[i] c[i,r], (servers, resources)."""
        return self.counts[:, None] * self.capacities

    @property
    def rates_of_one(self) -> FloatArray:
        """Rho, (users, servers): the tasks that a user runs alone on *one* server of the row, eligible or not; inf for no demand."""
        if self.rates_per_server is not None:
            return self.rates_per_server
        rho = np.full((self.n_users, self.n_servers), np.inf, dtype=self.capacities.dtype)
        for r in range(self.n_resources):  # one resource at a time, to avoid an array (users, servers, resources)
            users = np.flatnonzero(self.demands[:, r] > 0)
            rho[users] = np.minimum(rho[users], self.capacities[:, r] / self.demands[users, r, None])
        return rho

    @property
    def unconstrained_rates(self) -> FloatArray:
        """Gamma without placement constraints, (users, servers): 0 where a demanded resource is missing, inf for no demand."""
        if self.rates_per_server is not None:
            return np.where(lacking(self.capacities, self.demands), 0, self.rates_per_server * self.counts)
        gamma = self.rates_of_one
        empty = self.counts == 0
        gamma[:, ~empty] *= self.counts[~empty]
        gamma[:, empty] = 0
        return gamma

    @property
    def rates(self) -> FloatArray:
        """Gamma, (users, servers): the tasks that a user could run alone on the row; 0 for pairs that are not eligible."""
        return np.where(self.eligibility, self.unconstrained_rates, 0)

    @property
    def limited(self) -> BoolArray:
        """Which users have a parallelism below their number of eligible servers, (users,). For the others it never binds."""
        at_once = self.given("parallelism")
        limited: BoolArray = at_once < np.inf
        if not limited.any():
            return limited
        limited &= (self.demands > 0).any(axis=1) | (self.rates_per_server is not None)
        limited[limited] = at_once[limited] < self.eligibility[limited] @ self.counts
        return limited

    @property
    def servable(self) -> BoolArray:
        """Which users have at least one eligible server, (users,)."""
        return np.asarray(self.eligibility.any(axis=1))

    @property
    def zero_demand(self) -> BoolArray:
        """Which users demand nothing, of any resource or named limit, (users,). All their (finitely many) tasks fit on any server."""
        if self.rates_per_server is not None:
            return np.zeros(self.n_users, bool)
        zero_demand: BoolArray = (self.demands == 0).all(axis=1)
        for selection in self.selections:
            if selection.resource < 0:
                zero_demand &= ~selection.counted
        return zero_demand

    @property
    def effortless(self) -> BoolArray:
        """Another name of `zero_demand`."""
        return self.zero_demand

    @property
    def unservable(self) -> tuple[str, ...]:
        """Labels of the users without an eligible server. They get 0 tasks and are left out of every goal."""
        return tuple(self.users[n] for n in np.flatnonzero(~self.servable))

    @property
    def tree(self) -> Tree:
        """The queues and the users as a tree of arrays."""
        return Tree.of(self.queues, self.queue_of, self.users)

    @property
    def is_tree(self) -> bool:
        """Is there more than a flat list of users with weights: queues, guarantees, or users of weight 0?"""
        return bool(self.queues) or bool(self.guarantees.any()) or bool((self.weights == 0).any())
