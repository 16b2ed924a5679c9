"""An instance: the servers of a cluster and the users who share them.

Symbols (the code spells them out): user n of N, server i of K (a row may stand for ``counts[i]`` identical servers), resource r of M,
capacity c[i,r] of one server, demand d[n,r] of one task, weight phi[n], number of tasks T[n], eligibility delta[n,i], and

    gamma[n,i] = delta[n,i] * counts[i] * min over r with d[n,r] > 0 of c[i,r] / d[n,r],

the number of tasks that user n could run alone on row i. A user may be limited to P[n] servers at once: sum over i of counts[i] x[n,i] /
gamma[n,i] <= P[n]. Resources of the whole cluster, which no server has, are `shared` (`fairopt.instance.shared`).

>>> instance = Instance(
...     [[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
...     weights=[1, 1, 2], resources=["cpu", "memory", "bandwidth"])
>>> instance
Instance(3 users, 2 servers, 3 resources: 21 cpu, 24 memory, 100 bandwidth)
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

from fairopt.errors import InvalidInstance
from fairopt.instance.arguments import fields_of
from fairopt.instance.attributes import RowAttributes
from fairopt.instance.derived import Derived
from fairopt.instance.flows import arguments_of_paths
from fairopt.instance.fractions import ExactArray, fractions_of
from fairopt.instance.hosts import Hosts
from fairopt.instance.limits import Limit
from fairopt.instance.pooling import pooled
from fairopt.instance.queues import Queue
from fairopt.instance.ratios import safe_ratio
from fairopt.instance.records import holds_the_same, labelled_arrays, plain_data, summary
from fairopt.instance.replacing import changed_arguments
from fairopt.instance.rules import Rule
from fairopt.instance.selections import Selection
from fairopt.show.drawing import ShowsItself
from fairopt.validation import BoolArray, FloatArray, IntArray, restore_read_only

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["BoolArray", "FloatArray", "Instance", "IntArray", "require_instance", "safe_ratio"]


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Instance(Derived, ShowsItself):
    """A cluster and the users who share it. Immutable; its arrays are read-only.

    Weights, eligibility, counts, tasks, parallelism, guarantees, queue_of, hosts, attributes and owners may also be mappings by label, as
    in `replace`; a label that is left out has the default. No notion reads hosts, attributes and owners.

    Numbers may be ints, floats, `fractions.Fraction` or `decimal.Decimal`. The arrays hold floats; what these do not mean, such as 1/3, is
    kept beside them in `exact`, for answers in fractions.

    Parameters
    ----------
    capacities : array (servers, resources of servers)
        Capacity of *one* server of the row, finite, >= 0, in any unit (one per resource).
    demands : array (users, resources) or (users, servers, resources)
        Demand of one task in the same units, finite, >= 0. Columns: the resources of servers, then those that are ``shared``. With three
        dimensions a task takes other amounts on other rows of servers (`fairopt.instance.by_server`).
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
    shared : mapping from resources to amounts, optional
        Resources of the whole cluster, which no server has: licences, the bandwidth of a file system, a power budget. Finite, >= 0, and
        not multiplied by ``counts``. Where all resources are shared, ``capacities`` may be None: then there is one row, "cluster". The
        columns of frames go by their labels.
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
        Labels; ``resources`` are those of servers, then those that are shared, which may be left out. Default ``user-1``, ``server-1``,
        ``resource-1`` and so on. The labels of pandas frames are used. Labels given twice must be equal and in the same order; nothing is
        aligned by guess.

    speeds : array (users, servers), optional
        The work that a task does on each row of servers, finite, >= 0; default 1. 0: the user cannot run there. Also a mapping by user,
        and by server. Notions that follow speeds compare work, sum over i of speed[n,i] x[n,i]; ``tasks`` limits tasks.

    rules : sequence of Rule or str, optional
        Linear conditions of any sign, ``"x[vision] >= 2 * x[course]"``, which every allocation obeys (`fairopt.Rule`).

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
    >>> Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10}, resources=["cpu"]).total_capacity  # the second user needs no licence
    array([20., 10.])
    """

    capacities: FloatArray
    demands_by_kind: FloatArray
    kind_of: IntArray
    speeds_given: FloatArray | None
    shared_capacity: FloatArray
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
    rules: tuple[Rule, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]
    selections: tuple[Selection, ...] = field(init=False, repr=False)
    _units: tuple[tuple[str, str], ...] = field(init=False, repr=False)
    _written: dict[str, ExactArray] | None = field(init=False, repr=False)
    """Of arrays that were given in numbers other than their floats, these numbers, by the names of the arrays."""

    def __init__(
        self,
        capacities: npt.ArrayLike | None,
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
        shared: Mapping[str, Any] | None = None,
        limits: Sequence[Limit] | None = None,
        hosts: Sequence[str | Sequence[str] | None] | Mapping[str, Any] | None = None,
        attributes: Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None = None,
        owners: Sequence[str | None] | Mapping[str, str | None] | None = None,
        units: Mapping[str, str] | None = None,
        users: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
        rules: Sequence[Rule | str] | None = None,
        speeds: npt.ArrayLike | Mapping[str, Any] | None = None,
    ) -> None:
        fields = fields_of(
            *(capacities, demands, weights, eligibility, counts, tasks, rates, parallelism, guarantees, queues, queue_of),
            *(shared, limits, hosts, attributes, owners, units, users, servers, resources, rules, speeds),
        )
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

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
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                value = fractions_of(self.given(name))
                value.setflags(write=False)
            object.__setattr__(view, name, value)
        object.__setattr__(view, "queues", tuple(queue.exact for queue in self.queues))
        selected = tuple(each.exact for each in self.selections)
        object.__setattr__(view, "limits", tuple(each.limit for each in selected))
        object.__setattr__(view, "selections", selected)
        return view

    def given(self, name: str) -> Any:
        """Return the array ``name`` as it was given: in fractions if its floats are rounded."""
        if name == "demands":
            return self.demands_on() if self.demands_by_kind.shape[1] == 1 else self.demands
        return (self._written or {}).get(name, getattr(self, name))

    @property
    def in_fractions(self) -> bool:
        """Was some number given that is not the shortest decimal of its float, such as Fraction(1, 3)?"""
        limits = any(limit.in_fractions for limit in self.limits)
        return self._written is not None or limits or any(queue.in_fractions for queue in self.queues)

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
        shared: Any = None,
        limits: Any = None,
        on: Any = None,
    ) -> Instance:
        """Return the instance that frames of pandas or polars describe; their columns are those of the tables of a folder.

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
        shared : DataFrame, optional
            A row for each resource of the whole cluster: ``name`` (or the index) and ``capacity``. With it, ``servers`` may be None.
        limits : DataFrame, optional
            A row for each named limit: ``name`` (or the index), bound, resource, users, queues, servers and each.
        on : DataFrame, optional
            A row for each user and servers where its tasks take other amounts or do other work: ``user`` (or the index), servers, speed, a
            column per resource.

        Raises
        ------
        InvalidInstance
            The message has the frame, the label of the row and the column.

        >>> import pandas as pd
        >>> servers = pd.DataFrame({"gpu": [8, 4], "count": [2, None], "model": ["A100", "T4"]}, index=["new", "old"])
        >>> users = pd.DataFrame({"gpu": [1, 2], "requires": ["model = A100", None]}, index=["vision", "speech"])
        >>> Instance.from_frame(users, servers)
        Instance(2 users, 3 servers in 2 rows, 1 resource: 20 gpu; 1 user cannot run on every server)
        """
        more = {"queues": queues, "limits": limits, "eligibility": eligibility, "rates": rates, "weights": weights, "units": units}
        frames = {} if servers is None and shared is not None else {"servers": servers}
        more |= {"shared": shared, "on": on}
        frames |= {"users": users} | {name: frame for name, frame in more.items() if frame is not None}
        made: Instance = import_module("fairopt.formats.tables").from_frames(frames)  # formats are a floor above
        return made

    @classmethod
    def from_paths(cls, links: Mapping[str, Any], flows: Mapping[str, Sequence[Sequence[str]]], **arguments: Any) -> Instance:
        """Return a flow network: each flow divides its rate among its paths, and each link limits the sum of the rates on it.

        Parameters
        ----------
        links : mapping from names of links to capacities
        flows : mapping from users to lists of paths
            A path is a list of names of links.
        **arguments
            Other arguments of an instance, such as ``weights`` of the flows, or ``tasks``, the largest rates that they want.

        Returns
        -------
        Instance
            Its users are the flows and ``tasks`` their rates; a server is a path of a flow (``path 1``, ``path 2``), and a link a named
            limit (`fairopt.instance.flows`). For notions that count tasks: "max-min", "proportional" (with ``alpha``), "efficiency".

        Raises
        ------
        InvalidInstance
            A link is unknown, or its capacity is not finite and >= 0; a flow has no path.

        >>> network = Instance.from_paths({"ab": 10, "bc": 4}, {"ann": [["ab", "bc"]], "bob": [["ab"]], "eve": [["bc"], ["ab"]]})
        >>> [limit.name for limit in network.limits], network.servers
        (['ab', 'bc'], ('path 1', 'path 2'))
        """
        return cls(**{**arguments_of_paths(links, flows), **arguments})

    def replace(self, **changes: Any) -> Instance:
        """Return a copy with some constructor arguments changed: as a whole, or by label, and then the other labels keep their values.

        ====================================================  =========================================================
        ``weights={"vision": 3}``                             so too ``tasks``, ``parallelism`` and ``guarantees``
        ``counts={"new": 6}``                                 of servers
        ``capacities={"new": {"gpu": 8}}``                    so too ``demands`` of users, ``rates`` on servers
        ``eligibility={"vision": ["new"]}``                   these servers alone, or ``{"vision": {"old": False}}``
        ``queue_of={"ines": "vision"}``                       None: the root
        ``shared={"licences": 12}``                           None leaves one out, for all users
        ``queues={"research": {"guarantee": {"gpu": 8}}}``    arguments of `Queue`; None removes the queue, with those in it
        ``limits={"licences": {"bound": 12}}``                arguments of `Limit`; None leaves the limit out
        ``attributes={"new": {"ssd": True}}``                 by name; None leaves one out. So too ``hosts`` and ``owners``
        ====================================================  =========================================================

        With a queue that is removed go the queues and users in it, but for those that the same call moves elsewhere.
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
        return Instance(**changed_arguments(self, changes))

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

    __replace__ = replace  # of copy.replace

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Instance:
        """Return the instance of plain data in the schema of instance files: the inverse of `to_dict`."""
        made: Instance = import_module("fairopt.formats.document").instance_of(data)  # formats are a floor above
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return plain data in the schema of instance files (``fairopt schema``), without loss. Defaults are left out.

        >>> Instance([[4]], [[2]], resources=["cpu"]).to_dict()["users"]  # a fraction that no decimal is, is text: "1/3"
        [{'name': 'user-1', 'demand': {'cpu': 2.0}}]
        """
        return plain_data(self)

    def to_frame(
        self, of: Literal["users", "servers", "shared", "queues", "limits", "on", "eligibility", "rates", "weights", "units"] = "users"
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
        return holds_the_same(self, other)

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
