"""An instance: the servers of a cluster and the users who share them.

Symbols (the code spells them out): user n of N, server i of K (a row may stand for ``counts[i]`` identical servers), resource r of M,
capacity c[i,r] of one server, demand d[n,r] of one task, weight phi[n], number of tasks T[n], eligibility delta[n,i], and

    gamma[n,i] = delta[n,i] * counts[i] * min over r with d[n,r] > 0 of c[i,r] / d[n,r],

the number of tasks that user n could run alone on row i. A user may be limited to P[n] servers at once: sum over i of counts[i] x[n,i] /
gamma[n,i] <= P[n].

>>> instance = Instance(
...     [[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
...     weights=[1, 1, 2], resources=["cpu", "memory", "bandwidth"])
>>> instance
Instance(3 users, 2 servers, 3 resources: 21 cpu, 24 memory, 100 bandwidth; 2 users cannot run on every server)
>>> instance.rates
array([[6., 0.],
       [6., 0.],
       [6., 6.]])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fairopt.drawing import ShowsItself
from fairopt.errors import InvalidInstance
from fairopt.instance.arguments import (
    check_queues,
    counts_of,
    given_by_label,
    guarantees_of,
    guarantees_within,
    parallelism_of,
    places_of,
    rates_of,
    refuse_endless,
    tasks_of,
    weights_of,
)
from fairopt.instance.attributes import RowAttributes, attributes_of
from fairopt.instance.facts import OF_SERVERS, OF_USERS, changed_by_label, changed_facts, owners_of
from fairopt.instance.fractions import ExactArray, fractions_of, kept
from fairopt.instance.hosts import Hosts, hosts_of
from fairopt.instance.labelled import changed_limits, changed_places, changed_queues, changed_rows
from fairopt.instance.limits import Limit
from fairopt.instance.pooling import pooled
from fairopt.instance.queues import Queue
from fairopt.instance.ratios import lacking, safe_ratio
from fairopt.instance.records import labelled_arrays, plain_data, summary
from fairopt.instance.selections import Selection, bounded, selections_of
from fairopt.instance.tree import Tree
from fairopt.instance.units import amount, units_of
from fairopt.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    booleans,
    check,
    frame_labels,
    matrix,
    require_labels,
    restore_read_only,
    unique_labels,
)
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["BoolArray", "FloatArray", "Instance", "IntArray", "require_instance", "safe_ratio"]


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Instance(ShowsItself):
    """A cluster and the users who share it. Immutable; its arrays are read-only.

    Weights, eligibility, counts, tasks, parallelism, guarantees, queue_of, hosts, attributes and owners may also be mappings by label, as
    in `replace`; a label that is left out has the default. No notion reads hosts, attributes and owners.

    Numbers may be ints, floats, `fractions.Fraction` or `decimal.Decimal`. The arrays hold floats; what these do not mean, such as 1/3, is
    kept beside them in `exact`, for answers in fractions.

    Parameters
    ----------
    capacities : array (servers, resources)
        Capacity of *one* server of the row, finite, >= 0, in any unit (one per resource).
    demands : array (users, resources)
        Demand of one task in the same units, finite, >= 0.
    weights : array (users,) or (users, resources), optional
        Priorities (entitlements) among the users of a queue, >= 0; default 1. 0: nothing beyond the guarantee. Weights per resource, > 0,
        only for the notions that accept them.
    eligibility : bool array (users, servers), optional
        Where each user may run; default: wherever every demanded resource exists. The attribute ``eligibility`` is the effective one: a
        pair with a demanded resource of capacity 0, a count of 0 or a rate of 0 is never eligible. The argument is kept in ``placement``.
    counts : array (servers,), optional
        Number of identical servers that the row stands for, whole numbers >= 0; default 1.
    tasks : array (users,), optional
        Number of tasks of each user, >= 0; default ``inf``, no limit.
    rates : array (users, servers), optional
        Number of tasks that a user runs alone on *one* server of the row, if it is not min c/d (a coprocessor, a radio channel, a job that
        is faster on another accelerator). Users then share the time of the servers. The attribute ``rates`` is gamma (times counts, 0 for
        pairs that are not eligible) for every instance; the argument is kept in ``rates_per_server``.
    parallelism : array (users,), optional
        Largest number of servers that a user is on at once, > 0; default ``inf``, no limit. With rho[n,i] the number of tasks that the user
        runs alone on *one* server of the row (min c/d, or the rate given), sum_i x[n,i] / rho[n,i] <= P[n]. Under time division the terms
        are fractions of servers' time: with P[n] = 1 a job never runs in two places at once. Under resource division they are fractions
        of the user's dominant resource on each server.
    guarantees : array (users,), optional
        Number of tasks that are guaranteed to each user, finite, >= 0 and at most its tasks; default 0.
    queues : sequence of Queue, optional
        The tree of queues; default none: every user is in the root.
    queue_of : sequence of str or None (users,), optional
        Name of the queue that each user is in; default None, the root.
    limits : sequence of Limit, optional
        What users hold together, or how many tasks they run together, wherever they are in the tree (`Limit`). The attribute
        ``selections`` has what each of them selects.
    hosts : sequence (servers,), optional
        Names of the hosts of each row, ``counts[i]`` of them or none: a list, or text with ranges in brackets, ``"cn[1,3,5]"``. A host is
        in one row. Logs of a cluster name hosts (`fairopt.history`). Default: none.
    attributes : sequence of mappings (servers,), optional
        Attributes of each row, by name: text, numbers, true or false. ``requires`` of jobs asks for them. Default: none.
    owners : sequence of str or None (users,), optional
        Who owns the tasks of each user; an owner has a user for each shape of its tasks. Default None: the queue of the user, else the
        user itself.
    units : mapping from resources to units, optional
        Such as ``{"memory": "GiB"}``, for messages, tables and exports; default: what the names of resources say, "RAM (GB)".
    users, servers, resources : sequences of unique strings, optional
        Labels; default ``user-1``, ``server-1``, ``resource-1`` and so on. The labels of pandas frames are used. Labels given twice must be
        equal and in the same order; nothing is aligned by guess.

    Raises
    ------
    InvalidInstance
        The message names the user, server or resource that is wrong, and says what to do.

    Examples
    --------
    >>> Instance([[1, 1]], [[.5, .1], [.1, .5]], users=["vision", "language"], weights={"vision": 3}).weights
    array([3., 1.])
    >>> Instance([[64]], [[1]], counts=[3], hosts=["cn[1,3,5]"], attributes=[{"model": "A100"}]).hosts
    (('cn1', 'cn3', 'cn5'),)
    """

    capacities: FloatArray
    demands: FloatArray
    weights: FloatArray
    eligibility: BoolArray
    counts: FloatArray
    tasks: FloatArray
    rates_per_server: FloatArray | None
    parallelism: FloatArray
    guarantees: FloatArray
    queues: tuple[Queue, ...]
    queue_of: tuple[str | None, ...]
    limits: tuple[Limit, ...]
    placement: BoolArray | None
    hosts: Hosts
    attributes: tuple[RowAttributes, ...]
    owners: tuple[str | None, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]
    selections: tuple[Selection, ...] = field(init=False, repr=False)
    _units: tuple[tuple[str, str], ...] = field(init=False, repr=False)
    _written: dict[str, ExactArray] | None = field(init=False, repr=False)
    """Of arrays that were given in numbers other than their floats, these numbers, by the names of the arrays."""

    def __init__(
        self,
        capacities: npt.ArrayLike,
        demands: npt.ArrayLike,
        weights: npt.ArrayLike | Mapping[str, Any] | None = None,
        eligibility: npt.ArrayLike | Mapping[str, Any] | None = None,
        counts: npt.ArrayLike | Mapping[str, Any] | None = None,
        tasks: npt.ArrayLike | Mapping[str, Any] | None = None,
        rates: npt.ArrayLike | None = None,
        parallelism: npt.ArrayLike | Mapping[str, Any] | None = None,
        guarantees: npt.ArrayLike | Mapping[str, Any] | None = None,
        queues: Sequence[Queue] | None = None,
        queue_of: Sequence[str | None] | Mapping[str, str | None] | None = None,
        limits: Sequence[Limit] | None = None,
        hosts: Sequence[str | Sequence[str] | None] | Mapping[str, Any] | None = None,
        attributes: Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None = None,
        owners: Sequence[str | None] | Mapping[str, str | None] | None = None,
        units: Mapping[str, str] | None = None,
        users: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
    ) -> None:
        servers, resources = frame_labels(capacities, "capacities", servers, "servers", resources, "resources")
        users, resources = frame_labels(demands, "demands", users, "users", resources, "resources")
        c = matrix(capacities, "capacities", "(servers, resources)")
        d = matrix(demands, "demands", "(users, resources)")
        if c.shape[1] != d.shape[1]:
            raise InvalidInstance(
                f"capacities have {c.shape[1]} resources (columns) but demands have {d.shape[1]}; "
                "give both one column per resource, in the same order"
            )
        (k, m), n = c.shape, d.shape[0]
        user_labels = unique_labels(users, n, "user")
        server_labels = unique_labels(servers, k, "server")
        resource_labels = unique_labels(resources, m, "resource")
        per_resource = isinstance(weights, Mapping) and any(isinstance(each, Mapping) for each in weights.values())
        of_resources, of_servers = (resource_labels, "resource"), (server_labels, "server")
        weights = given_by_label("weights", weights, np.ones((n, m) if per_resource else n), user_labels, "user", *of_resources)
        eligibility = given_by_label("eligibility", eligibility, np.ones((n, k), bool), user_labels, "user", *of_servers)
        counts = given_by_label("counts", counts, np.ones(k), server_labels, "server")
        tasks = given_by_label("tasks", tasks, np.full(n, np.inf), user_labels, "user")
        parallelism = given_by_label("parallelism", parallelism, np.full(n, np.inf), user_labels, "user")
        guarantees = given_by_label("guarantees", guarantees, np.zeros(n), user_labels, "user")
        if isinstance(queue_of, Mapping):
            queue_of = changed_places(queue_of, [None] * n, user_labels)
        for values, what, columns in (
            *((weights, "weights", resource_labels), (tasks, "tasks", ()), (parallelism, "parallelism", ())),
            *((guarantees, "guarantees", ()), (queue_of, "queue_of", ())),
            *((eligibility, "eligibility", server_labels), (rates, "rates", server_labels)),
        ):
            require_labels(values, what, user_labels, columns)
        for of_rows, what in ((counts, "counts"), (hosts, "hosts"), (attributes, "attributes")):
            require_labels(of_rows, what, server_labels)
        require_labels(owners, "owners", user_labels)
        check(c, np.isfinite(c) & (c >= 0), "capacity", "finite and >= 0", server_labels, resource_labels)
        check(d, np.isfinite(d) & (d >= 0), "demand", "finite and >= 0", user_labels, resource_labels)
        phi = weights_of(weights, user_labels, resource_labels)
        number = counts_of(counts, server_labels)
        work = tasks_of(tasks, user_labels)
        at_once = parallelism_of(parallelism, user_labels)
        promised = guarantees_of(guarantees, work, user_labels)
        tree, places = tuple(queues or ()), places_of(queue_of, user_labels)
        check_queues(tree, places, user_labels, server_labels, resource_labels)
        of_rows = attributes_of(attributes, server_labels)
        selected = selections_of(limits, number, promised, tree, places, of_rows, user_labels, server_labels, resource_labels)

        given = None if rates is None else rates_of(rates, user_labels, server_labels)
        allowed = ~lacking(c, d) & (number > 0)
        if given is not None:
            allowed &= given > 0
        placement = None if eligibility is None else booleans(eligibility, (n, k))
        if placement is not None:
            allowed &= placement

        if given is None:
            refuse_endless(d, work, user_labels, bounded(selected, allowed))
        for name, value in {
            "capacities": c,
            "demands": d,
            "weights": phi,
            "eligibility": allowed,
            "counts": number,
            "tasks": work,
            "rates_per_server": given,
            "parallelism": at_once,
            "guarantees": promised,
            "placement": placement,
        }.items():
            if value is not None:
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        arguments = {
            **{"capacities": (capacities, c), "demands": (demands, d), "weights": (weights, phi), "counts": (counts, number)},
            **{"tasks": (tasks, work), "parallelism": (parallelism, at_once), "guarantees": (guarantees, promised)},
            "rates_per_server": (rates, given),
        }
        as_written = {name: kept(value, floats) for name, (value, floats) in arguments.items() if floats is not None}
        not_floats = {name: exact for name, exact in as_written.items() if exact is not None}
        object.__setattr__(self, "_written", not_floats or None)
        if not {"guarantees", "tasks"}.isdisjoint(not_floats):  # for floats this is checked already
            guarantees_within(self.given("guarantees"), self.given("tasks"), user_labels)
        object.__setattr__(self, "queues", tree)
        object.__setattr__(self, "queue_of", places)
        object.__setattr__(self, "limits", tuple(each.limit for each in selected))
        object.__setattr__(self, "selections", selected)
        object.__setattr__(self, "hosts", hosts_of(hosts, number, server_labels))
        object.__setattr__(self, "attributes", of_rows)
        object.__setattr__(self, "owners", owners_of(owners, user_labels))
        object.__setattr__(self, "users", user_labels)
        object.__setattr__(self, "servers", server_labels)
        object.__setattr__(self, "resources", resource_labels)
        object.__setattr__(self, "_units", tuple(units_of(resource_labels, units).items()))

    __setstate__ = restore_read_only

    # Numbers as they were given -------------------------------------------------------------------------------------------

    @property
    def exact(self) -> Instance:
        """The same instance in fractions: its arrays of numbers have dtype object and hold Fractions, and so do its queues.

        An int and a `fractions.Fraction` that were given are taken as they are, a float by its shortest decimal: 0.1 is 1/10. No limit
        is the float ``inf``. Formulas that are written for the floats give fractions here, if they have no float of their own.

        >>> from fractions import Fraction
        >>> instance = Instance([[Fraction(20, 3), 0.1]], [[1, 0.3]])
        >>> instance.exact.capacities
        array([[Fraction(20, 3), Fraction(1, 10)]], dtype=object)
        >>> instance.exact.rates
        array([[Fraction(1, 3)]], dtype=object)
        """
        if self.capacities.dtype == object:
            return self
        view = object.__new__(Instance)
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.dtype != bool:
                value = fractions_of(self.given(name))
                value.setflags(write=False)
            object.__setattr__(view, name, value)
        object.__setattr__(view, "queues", tuple(queue.exact for queue in self.queues))
        if self.limits:
            selected = tuple(each.exact for each in self.selections)
            object.__setattr__(view, "limits", tuple(each.limit for each in selected))
            object.__setattr__(view, "selections", selected)
        return view

    def given(self, name: str) -> Any:
        """Return the array ``name`` as it was given: in fractions if its floats are rounded."""
        return (self._written or {}).get(name, getattr(self, name))

    @property
    def in_fractions(self) -> bool:
        """Was some number given that is not the shortest decimal of its float, such as Fraction(1, 3)?"""
        given: tuple[Queue | Limit, ...] = (*self.queues, *self.limits)
        return self._written is not None or any(each.in_fractions for each in given)

    # What follows from the data -------------------------------------------------------------------------------------------

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
    def units(self) -> dict[str, str]:
        """The unit of each resource of which it is known, by the names of the resources.

        >>> Instance([[512]], [[64]], resources=["memory"], units={"memory": "GiB"}).units
        {'memory': 'GiB'}
        """
        return dict(self._units)

    def amount(self, value: Any, resource: str, digits: int = 3) -> str:
        """Return an amount of a resource as text: "64 GiB memory", "8 gpu"."""
        return amount(value, resource, self.units.get(resource, ""), digits)

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
        """Which users demand nothing, of any resource or limit, (users,). All their (finitely many) tasks fit on any server."""
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

    def index(self, user: str) -> int:
        """Return the position of the user with this label.

        Raises
        ------
        InvalidInstance
            No user has this label.

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

    # Values -----------------------------------------------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        users: Any,
        servers: Any,
        queues: Any = None,
        *,
        eligibility: Any = None,
        rates: Any = None,
        weights: Any = None,
        units: Any = None,
        limits: Any = None,
    ) -> Instance:
        """Return the instance that pandas frames describe; their columns are those of the tables of a folder.

        Parameters
        ----------
        users, servers : DataFrame
            ``name`` (or the index), a column per resource, and in ``users`` weight, queue, guarantee, tasks, parallelism, requires and
            servers; in ``servers`` count, and attributes. A missing value (NaN, None, NA) is an empty cell; cells may have units
            ("256GiB"). :mod:`fairopt.formats.tables` describes all columns.
        queues : DataFrame, optional
        eligibility, rates, weights : DataFrame, optional
            A row for each user (the index, or a first column ``user``), and a column for each server or resource.
        units : DataFrame, optional
            A row for each resource whose unit is known: ``name`` (or the index) and ``unit``.
        limits : DataFrame, optional
            A row for each named limit: ``name`` (or the index), bound, resource, users, queues, servers and each.

        Raises
        ------
        InvalidInstance
            The message has the frame, the label of the row and the column.

        Examples
        --------
        >>> import pandas as pd
        >>> servers = pd.DataFrame({"gpu": [8, 4], "count": [2, None], "model": ["A100", "T4"]}, index=["new", "old"])
        >>> users = pd.DataFrame({"gpu": [1, 2], "requires": ["model = A100", None]}, index=["vision", "speech"])
        >>> Instance.from_frame(users, servers)
        Instance(2 users, 3 servers in 2 rows, 1 resource: 20 gpu; 1 user cannot run on every server)
        """
        more = {"queues": queues, "eligibility": eligibility, "rates": rates, "weights": weights, "units": units, "limits": limits}
        frames = {"servers": servers, "users": users} | {name: frame for name, frame in more.items() if frame is not None}
        made: Instance = import_module("fairopt.formats.tables").from_frames(frames)  # formats are a floor above
        return made

    def replace(self, **changes: Any) -> Instance:
        """Return a copy with some constructor arguments changed: as a whole, or by label, and then the other labels keep their values.

        ====================================================  =========================================================
        ``weights={"vision": 3}``                             so too ``tasks``, ``parallelism`` and ``guarantees``
        ``counts={"new": 6}``                                 of servers
        ``capacities={"new": {"gpu": 8}}``                    so too ``demands`` of users, ``rates`` on servers
        ``eligibility={"vision": ["new"]}``                   these servers alone, or ``{"vision": {"old": False}}``
        ``queue_of={"ines": "vision"}``                       None: the root
        ``queues={"research": {"guarantee": {"gpu": 8}}}``    arguments of `Queue`; None leaves the queue out
        ``limits={"licences": {"bound": 12}}``                arguments of `Limit`; None leaves the limit out
        ``attributes={"new": {"ssd": True}}``                 by name; None leaves one out. So too ``hosts`` and ``owners``
        ====================================================  =========================================================

        Hosts and attributes stay with their rows, owners with their users. A row whose count changes has no hosts any more, unless these
        are given, too.

        Raises
        ------
        InvalidInstance
            If a label is not there, or what comes out is not an instance.

        >>> lab = Instance([[1, 1]], [[.5, .1], [.1, .5]], users=["vision", "language"])
        >>> lab.replace(weights=[3, 1]) == lab.replace(weights={"vision": 3})
        True
        >>> lab.replace(weights={"vison": 3})
        Traceback (most recent call last):
        fairopt.errors.InvalidInstance: weights: there is no user "vison" (did you mean "vision"?)
        """
        arguments = {
            name: self.given(name)
            for name in self.__slots__
            if name not in ("rates_per_server", "placement", "selections", "_units", "_written")
        }
        arguments |= {"rates": self.given("rates_per_server"), "eligibility": self.placement, "units": self.units}
        if "resources" in changes:  # others than before may have no unit
            arguments["units"] = {resource: unit for resource, unit in self._units if resource in changes["resources"]}
        if not self.guarantees.any():
            arguments["guarantees"] = None  # as many zeros as there are users, whom the changes may add or remove
        if not any(self.queue_of):
            arguments["queue_of"] = None
        unknown = set(changes) - set(arguments)
        if unknown:
            word = min(unknown)
            raise TypeError(f'an instance has no "{word}"{did_you_mean(word, arguments)}')
        by_label = {name: self._by_label(name, value) for name, value in changes.items() if isinstance(value, Mapping)}
        return Instance(**{**arguments, **changed_facts(self, changes), **changes, **by_label})

    def _by_label(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return the argument of that name with the values of some labels changed."""
        if name == "queues":
            return changed_queues(given, self.queues)
        if name == "units":
            return self.units | dict(given)
        if name == "limits":
            return changed_limits(given, self.limits)
        if name == "queue_of":
            return changed_places(given, self.queue_of, self.users)
        if name in (*OF_SERVERS, *OF_USERS):
            return changed_by_label(name, given, self)
        if name in ("users", "servers", "resources"):
            raise InvalidInstance(f"{name} cannot be a mapping; give all labels as a list")
        present = self.given({"rates": "rates_per_server", "eligibility": "placement"}.get(name, name))
        if present is None and name == "rates":
            raise InvalidInstance("the instance has no rates, so that they cannot be changed by label; give an array (users, servers)")
        if present is None:
            present = np.ones((self.n_users, self.n_servers), bool)
        rows = (self.servers, "server") if name in ("capacities", "counts") else (self.users, "user")
        columns = (self.servers, "server") if name in ("rates", "eligibility") else (self.resources, "resource")
        return changed_rows(name, given, present, *rows, *columns)

    def pooled(self) -> Instance:
        """Return an instance with one server that has all the capacity of the cluster and on which every user is eligible.

        Notions of one pool (drf, bbf) need such an instance. Any placement on the cluster is also feasible in the pool. A user's
        parallelism P[n] becomes the fraction of the pool that P[n] of its best servers would fill.

        Raises
        ------
        InvalidInstance
            If the instance has rates: speeds on different servers do not add up to a capacity.

        >>> Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]], counts=[1, 2]).pooled().capacities
        array([[26., 16.]])
        """
        return pooled(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data in the schema of instance files (``fairopt schema``), without loss. Defaults are left out.

        A fraction that is not the shortest decimal of its float is text: "1/3".

        >>> Instance([[4]], [[2]], resources=["cpu"]).to_dict()["users"]
        [{'name': 'user-1', 'demand': {'cpu': 2.0}}]
        """
        return plain_data(self)

    def to_frame(
        self, of: Literal["users", "servers", "queues", "eligibility", "rates", "weights", "units", "limits"] = "users"
    ) -> pd.DataFrame:
        """Return a table that `from_frame` reads: users, servers, or, where the instance has them, queues, matrices and units.

        A column whose values are all defaults is left out, and a value that is a default is missing (NaN, None).

        Raises
        ------
        Unsupported, InvalidInstance
            The instance has no such table. A table cannot hold a label, such as a resource called "weight".

        >>> Instance([[4]], [[2], [1]], users=["a", "b"], resources=["cpu"], weights=[1, 3]).to_frame()["weight"].to_dict()
        {'a': nan, 'b': 3.0}
        """
        frame: pd.DataFrame = import_module("fairopt.formats.frames").frame_of(self, of)  # formats are a floor above
        return frame

    def to_xarray(self) -> xr.Dataset:
        """Return the arrays with labels: capacities, counts, demands, weights, eligibility, tasks; needs xarray (the extra ``xarray``).

        Raises
        ------
        SolverUnavailable
            xarray is not installed.
        """
        labelled: xr.Dataset = import_module("fairopt.formats.frames").dataset(self, labelled_arrays(self), {})  # a floor above
        return labelled

    def __eq__(self, other: object) -> bool:
        """Two instances are equal if all that they hold is; of placement constraints the effective eligibility is compared."""
        if not isinstance(other, Instance):
            return NotImplemented
        for name in self.__slots__:
            if name in ("placement", "selections", "_written"):
                continue
            mine, theirs = self.given(name), other.given(name)
            if mine is None or theirs is None:
                same = mine is theirs
            elif isinstance(mine, np.ndarray) and mine.dtype != theirs.dtype:
                same = False  # one is in fractions that are not the floats of the other
            else:
                same = mine == theirs if isinstance(mine, tuple) else np.array_equal(mine, theirs)
            if not same:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __repr__(self) -> str:
        return summary(self)


def require_instance(value: object) -> None:
    """Refuse anything that is not an `Instance`.

    >>> require_instance("cluster.yaml")
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: expected an Instance, got str; build one with fairopt.Instance or fairopt.load
    """
    if not isinstance(value, Instance):
        raise InvalidInstance(f"expected an Instance, got {type(value).__name__}; build one with fairopt.Instance or fairopt.load")
