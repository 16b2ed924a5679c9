"""What follows from the data of an instance: its sizes, its capacity, how many tasks each user could run where, who runs nowhere, units.

Symbols as in :mod:`fairopt.instance.instance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.attributes import RowAttributes
from fairopt.instance.by_server import Kinds, as_given, differences
from fairopt.instance.queues import Queue
from fairopt.instance.ratios import lacks
from fairopt.instance.rule_rows import rule_rows
from fairopt.instance.rules import Rule
from fairopt.instance.selections import Selection
from fairopt.instance.tree import Tree
from fairopt.instance.units import amount
from fairopt.validation import BoolArray, FloatArray, IntArray
from fairopt.wording import did_you_mean, joined

__all__ = ["Derived"]


class Derived:
    """What an `Instance` knows beyond its fields; computed anew each time."""

    __slots__ = ()

    capacities: FloatArray
    demands_by_kind: FloatArray
    kind_of: IntArray
    speeds_given: FloatArray | None
    weights: FloatArray
    eligibility: BoolArray
    counts: FloatArray
    shared_capacity: FloatArray
    rates_per_server: FloatArray | None
    guarantees: FloatArray
    queues: tuple[Queue, ...]
    queue_of: tuple[str | None, ...]
    selections: tuple[Selection, ...]
    rules: tuple[Rule, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]
    attributes: tuple[RowAttributes, ...]
    _units: tuple[tuple[str, str], ...]

    if TYPE_CHECKING:

        def given(self, name: str) -> Any:
            """Return the array ``name`` as it was given."""

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Make an instance without its fields; refuse those that ``dataclasses.replace`` gives in the place of arguments."""
        if "demands_by_kind" in named:
            raise TypeError("dataclasses.replace does not know an instance's arguments; use instance.replace(...)")
        return super().__new__(cls)

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
        """The number of resources: M of servers, and those that are shared."""
        return len(self.resources)

    @property
    def n_server_resources(self) -> int:
        """M, the number of resources of servers: the first columns of demands, and all of capacities."""
        return int(self.capacities.shape[1])

    @property
    def server_resources(self) -> tuple[str, ...]:
        """Labels of the resources of servers."""
        return self.resources[: self.n_server_resources]

    @property
    def demands(self) -> FloatArray:
        """Demand of one task, (users, resources).

        Raises
        ------
        Unsupported
            Demands differ by server: see `demands_by_kind` and `demands_of` (`fairopt.instance.by_server`).
        """
        if self.demands_by_kind.shape[1] > 1:
            raise Unsupported(
                f"{differences(self)}, and this needs one demand for all servers; use fairopt.solve with a notion that follows demands by "  # type: ignore[arg-type]
                'server ("cdrf", "tsf", "drfh", "max-min", "proportional", "efficiency"), or read demands_of(users, servers)'
            )
        return self.demands_by_kind[:, 0]

    @property
    def kinds(self) -> Kinds:
        """Demands by kind of server, and the kind of each row of servers."""
        return Kinds(self.demands_by_kind, self.kind_of)

    def demands_of(self, users: IntArray, servers: IntArray) -> FloatArray:
        """Return the demands of one task of each pair of a user and a row of servers, (pairs, resources).

        >>> from fairopt.instance import Instance
        >>> Instance([[8], [8]], [[[1], [2]]]).demands_of([0, 0], [0, 1]).tolist()
        [[1.0], [2.0]]
        """
        if self.demands_by_kind.shape[1] == 1:
            return np.asarray(self.demands_by_kind[users, 0])
        return np.asarray(self.demands_by_kind[users, self.kind_of[servers]])

    def demands_by_row(self, user: int) -> FloatArray:
        """Return the demand of one task of a user on each row of servers, (servers, resources)."""
        return np.asarray(self.demands_by_kind[user, self.kind_of])

    def demands_on(self, users: Any = slice(None), servers: Any = slice(None)) -> Any:
        """Return the demands of some users on some rows of servers as the constructor takes them, as they were given.

        They have the shape (users, resources) where they do not differ by server, else (users, servers, resources).
        """
        return as_given(self.given("demands_by_kind")[users], self.kind_of[servers])

    def speeds_on(self, users: Any = slice(None), servers: Any = slice(None)) -> Any:
        """Return the speeds of some users on some rows of servers as they were given, or None."""
        return None if self.speeds_given is None else self.given("speeds_given")[users][:, servers]

    @property
    def speeds(self) -> FloatArray:
        """The work that a task of each user does on each row of servers, (users, servers); 1 where none is given."""
        shape = (self.n_users, self.n_servers)
        return np.broadcast_to(np.float64(1), shape) if self.speeds_given is None else self.speeds_given

    @property
    def differs_by_server(self) -> bool:
        """Do demands, or speeds, differ by server, or are there speeds other than 1?"""
        return self.demands_by_kind.shape[1] > 1 or self.speeds_given is not None

    def work(self, tasks: FloatArray) -> FloatArray:
        """Return the work that tasks, (users, servers), do, (users,): sum over i of speed[n,i] x[n,i].

        >>> from fairopt.instance import Instance
        >>> Instance([[8], [8]], [[1]], speeds=[[1, 0.5]]).work(np.array([[8.0, 8.0]]))
        array([12.])
        """
        return np.asarray((tasks if self.speeds_given is None else tasks * self.speeds_given).sum(axis=1))

    def usage(self, tasks: FloatArray, users: Any = slice(None)) -> FloatArray:
        """Return what tasks of these users, (users, servers), take of the resources of servers, (servers, M)."""
        return self._taken(tasks, self.demands_by_kind[users, :, : self.n_server_resources])

    def taken_on_rows(self, tasks: FloatArray) -> FloatArray:
        """Return what tasks, (users, servers), take of all resources on each row, shared ones too, (servers, resources)."""
        return self._taken(tasks, self.demands_by_kind)

    def _taken(self, tasks: FloatArray, by_kind: FloatArray) -> FloatArray:
        if by_kind.shape[1] == 1:
            return tasks.T @ by_kind[:, 0]
        used = np.zeros((self.n_servers, by_kind.shape[2]), np.result_type(tasks, by_kind))
        for k in range(by_kind.shape[1]):
            used[self.kind_of == k] = tasks[:, self.kind_of == k].T @ by_kind[:, k]
        return used

    def cost_of_tasks(self, prices: FloatArray) -> FloatArray:
        """Return what the resources of servers that a task takes cost at these prices, (servers, M); (users, servers)."""
        by_kind = self.demands_by_kind[:, :, : self.n_server_resources]
        if by_kind.shape[1] == 1:
            return np.asarray(by_kind[:, 0] @ prices.T)
        cost = np.zeros((self.n_users, self.n_servers), np.result_type(by_kind, prices))
        for k in range(by_kind.shape[1]):
            cost[:, self.kind_of == k] = by_kind[:, k] @ prices[self.kind_of == k].T
        return cost

    def held_of(self, tasks: FloatArray, users: Any = slice(None)) -> FloatArray:
        """Return what tasks of these users, (users, servers), take of each resource by user, (users, resources)."""
        by_kind = self.demands_by_kind[users]
        parts = [tasks[:, self.kind_of == k].sum(axis=1)[:, None] * by_kind[:, k] for k in range(by_kind.shape[1])]
        return np.asarray(sum(parts[1:], parts[0]))

    def usage_of_shared(self, tasks: FloatArray, users: Any = slice(None)) -> FloatArray:
        """Return what tasks of these users, (users, servers), take of the resources of the whole cluster, (shared,)."""
        by_kind = self.demands_by_kind[users, :, self.n_server_resources :]
        if by_kind.shape[1] == 1:
            return np.asarray(tasks.sum(axis=1) @ by_kind[:, 0])
        parts = [tasks[:, self.kind_of == k].sum(axis=1) @ by_kind[:, k] for k in range(by_kind.shape[1])]
        return np.asarray(sum(parts[1:], parts[0]))

    @property
    def server_demands(self) -> FloatArray:
        """Demands of the resources of servers, (users, M)."""
        return self.demands[:, : self.n_server_resources]

    @property
    def shared(self) -> dict[str, Any]:
        """The resources of the whole cluster, which no server has, and their amounts.

        >>> from fairopt.instance import Instance
        >>> Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10}).shared
        {'licences': 10.0}
        """
        return dict(zip(self.resources[self.n_server_resources :], self.shared_capacity.tolist(), strict=True))

    @property
    def shared_demands(self) -> FloatArray:
        """Demands of the shared resources, (users, shared)."""
        return self.demands[:, self.n_server_resources :]

    @property
    def total_capacity(self) -> FloatArray:
        """Capacity of the cluster, sum_i counts[i] c[i,r], then the shared amounts, (resources,)."""
        of_servers: FloatArray = self.counts @ self.capacities
        return np.concatenate([of_servers, self.shared_capacity]) if self.shared_capacity.size else of_servers

    @property
    def row_capacity(self) -> FloatArray:
        """Capacity of each row, counts[i] c[i,r], (servers, M)."""
        return self.counts[:, None] * self.capacities

    @property
    def rates_of_one(self) -> FloatArray:
        """Rho, (users, servers): the tasks that a user runs alone on *one* server of the row, eligible or not.

        It is inf for who demands nothing of servers. Shared resources do not count.
        """
        if self.rates_per_server is not None:
            return self.rates_per_server
        rho = np.full((self.n_users, self.n_servers), np.inf, dtype=self.capacities.dtype)
        for k in range(self.demands_by_kind.shape[1]):
            rows: Any = slice(None) if self.demands_by_kind.shape[1] == 1 else np.flatnonzero(self.kind_of == k)
            demands, capacities = self.demands_by_kind[:, k], self.capacities[rows]
            there = rho[:, rows]
            for r in range(self.n_server_resources):  # one resource at a time, to avoid an array (users, servers, resources)
                users = np.flatnonzero(demands[:, r] > 0)
                there[users] = np.minimum(there[users], capacities[:, r] / demands[users, r, None])
            rho[:, rows] = there
        return rho

    @property
    def unconstrained_rates(self) -> FloatArray:
        """Gamma without placement constraints, (users, servers): 0 where a demanded resource is missing, inf for no demand."""
        if self.rates_per_server is not None:
            return np.where(lacks(self.capacities, self.demands_by_kind, self.kind_of), 0, self.rates_per_server * self.counts)
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
        of_servers = self.demands_by_kind[:, :, : self.n_server_resources]
        limited &= (of_servers > 0).any(axis=(1, 2)) | (self.rates_per_server is not None)
        limited[limited] = at_once[limited] < self.eligibility[limited] @ self.counts
        return limited

    @property
    def servable(self) -> BoolArray:
        """Which users have at least one eligible server, (users,)."""
        return np.asarray(self.eligibility.any(axis=1))

    @property
    def zero_demand(self) -> BoolArray:
        """Which users demand nothing, of any resource, named limit or rule, (users,). All their (finitely many) tasks fit on any server."""
        if self.rates_per_server is not None:
            return np.zeros(self.n_users, bool)
        zero_demand: BoolArray = (self.demands_by_kind == 0).all(axis=(1, 2))
        for selection in self.selections:
            if selection.resource < 0:
                zero_demand &= ~selection.counted
        for row in rule_rows(self) if self.rules and zero_demand.any() else ():
            zero_demand &= ~row.counted
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
    def unservable_in_words(self) -> str:
        """A sentence without its end: which users have no eligible server, and what they need that the cluster has none of.

        >>> import fairopt as fo
        >>> fo.Instance([[20]], [[1, 1], [1, 0]], users=["L", "C"], resources=["cpu", "ansys"], shared={"ansys": 0}).unservable_in_words
        'no server is eligible for L (the cluster has no ansys)'
        """
        missing = (self.demands_by_kind[~self.servable] > 0).any(axis=(0, 1)) & (self.total_capacity == 0)
        why = f" (the cluster has no {joined([self.resources[r] for r in np.flatnonzero(missing)], 3)})" if missing.any() else ""
        return f"no server is eligible for {joined(self.unservable, 5)}{why}"

    @property
    def tree(self) -> Tree:
        """The queues and the users as a tree of arrays."""
        return Tree.of(self.queues, self.queue_of, self.users)

    @property
    def is_tree(self) -> bool:
        """Is there more than a flat list of users with weights: queues, guarantees, or users of weight 0?"""
        return bool(self.queues) or bool(self.guarantees.any()) or bool((self.weights == 0).any())

    @property
    def units(self) -> dict[str, str]:
        """The unit of each resource of which it is known, by the names of the resources.

        >>> from fairopt.instance import Instance
        >>> Instance([[512]], [[64]], resources=["memory"], units={"memory": "GiB"}).units
        {'memory': 'GiB'}
        """
        return dict(self._units)

    def amount(self, value: Any, resource: str, digits: int = 3) -> str:
        """Return an amount of a resource as text: "64 GiB memory", "8 gpu"."""
        return amount(value, resource, self.units.get(resource, ""), digits)

    def index(self, user: str) -> int:
        """Return the position of the user with this label.

        Raises
        ------
        InvalidInstance
            No user has this label.

        >>> from fairopt.instance import Instance
        >>> Instance([[1]], [[1], [2]], users=["a", "b"]).index("b")
        1
        """
        try:
            return self.users.index(user)
        except ValueError:
            queues = [queue.name for queue in self.queues]
            if user in queues:
                below = np.flatnonzero(self.tree.below[self.tree.index(user)])
                inside = f"users in it are {joined([self.users[n] for n in below], 5)}" if below.size else "no user is in it"
                raise InvalidInstance(f'there is no user "{user}", but a queue; {inside}') from None
            hint = did_you_mean(user, [*self.users, *queues]) if isinstance(user, str) else ""
            beside = f", and the queues {joined(queues, 5)}" if queues else ""
            raise InvalidInstance(f'there is no user "{user}"{hint}; there are {joined(self.users, 5)}{beside}') from None
