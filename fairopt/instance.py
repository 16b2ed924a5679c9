"""The question: who asks for what, and what there is to share.

Symbols (the code spells them out): user n of N, server i of K (a row may stand for ``counts[i]`` identical servers), resource r of
M; capacity c[i,r], demand of one task d[n,r], weight phi[n], tasks T[n], eligibility delta[n,i], and

    gamma[n,i] = delta[n,i] * counts[i] * min over r with d[n,r] > 0 of c[i,r] / d[n,r],

the tasks that user n runs when it has the whole row i to itself.

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, did_you_mean

__all__ = ["BoolArray", "FloatArray", "Instance", "IntArray", "safe_ratio"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


_SMALLEST, _LARGEST = 1e-60, 1e60  # products and ratios of a few such numbers are still numbers


def safe_ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> FloatArray:
    """Divide with the conventions of this field: 0 / 0 = 0 (asks for nothing of nothing) and a / 0 = inf.

    >>> safe_ratio([0.0, 1.0, 1.0], [0.0, 0.0, 4.0])
    array([0.  ,  inf, 0.25])
    """
    a, b = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, 0.0, a / b)


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Instance:
    """A cluster and the users who share it. Immutable; its arrays are read-only.

    Parameters
    ----------
    capacities : array (servers, resources)
        Capacity of *one* server of the row, finite, >= 0, in any unit (one per resource).
    demands : array (users, resources)
        Demand of one task in the same units, finite, >= 0.
    weights : array (users,) or (users, resources), optional
        Priorities (entitlements), > 0; default 1. One per resource only for notions that take it.
    eligibility : bool array (users, servers), optional
        Where each user may run. The default is wherever every demanded resource exists. The attribute of this name is the effective one: a demanded
        resource with capacity 0, a row with count 0 or a rate of 0 makes a pair ineligible whatever was given; what was given stays in ``placement``.
    counts : array (servers,), optional
        How many identical servers the row stands for: whole numbers >= 0; default 1.
    tasks : array (users,), optional
        Tasks that the user has, >= 0; ``inf``, the default, for no limit.
    rates : array (users, servers), optional
        Tasks that a user runs on *one* server of the row alone, where that is not min c/d (a coprocessor, a radio channel, a job that
        is faster on another accelerator). Time is then what is shared. The attribute ``rates`` is gamma (times counts, 0 where ineligible) for every
        instance; what was given stays in ``rates_per_server``.
    users, servers, resources : sequences of unique strings, optional
        Labels; default ``user-1``, ``server-1``, ``resource-1`` and so on. Pandas frames bring theirs along: the columns and rows must
        then match exactly, nothing is aligned by guess.

    Raises
    ------
    InvalidInstance
        With the user, server and resource that is wrong, and what to do.
    """

    capacities: FloatArray
    demands: FloatArray
    weights: FloatArray
    eligibility: BoolArray
    counts: FloatArray
    tasks: FloatArray
    rates_per_server: FloatArray | None
    placement: BoolArray | None
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]

    def __init__(
        self,
        capacities: npt.ArrayLike,
        demands: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        eligibility: npt.ArrayLike | None = None,
        counts: npt.ArrayLike | None = None,
        tasks: npt.ArrayLike | None = None,
        rates: npt.ArrayLike | None = None,
        users: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
    ) -> None:
        servers, resources = _frame_labels(capacities, "capacities", servers, "servers", resources, "resources")
        users, resources = _frame_labels(demands, "demands", users, "users", resources, "resources")
        c = _matrix(capacities, "capacities", "(servers, resources)")
        d = _matrix(demands, "demands", "(users, resources)")
        if c.shape[1] != d.shape[1]:
            raise InvalidInstance(
                f"capacities have {c.shape[1]} resources (columns) but demands have {d.shape[1]}; "
                "give both one column per resource, in the same order"
            )
        (k, m), n = c.shape, d.shape[0]
        user_labels = _labels(users, n, "user")
        server_labels = _labels(servers, k, "server")
        resource_labels = _labels(resources, m, "resource")
        _check(c, np.isfinite(c) & (c >= 0), "capacity", "finite and >= 0", server_labels, resource_labels)
        _check(d, np.isfinite(d) & (d >= 0), "demand", "finite and >= 0", user_labels, resource_labels)

        phi = np.ones(n) if weights is None else _numbers(weights, "weights")
        if phi.shape not in ((n,), (n, m)):
            raise InvalidInstance(
                f"weights have shape {phi.shape}; give one per user, shape ({n},), or one per user and resource, shape ({n}, {m})"
            )
        _check(phi, np.isfinite(phi) & (phi > 0), "weight", "finite and > 0", user_labels, resource_labels)

        number = np.ones(k) if counts is None else _numbers(counts, "counts", (k,), "one per server row")
        whole = np.isfinite(number) & (number >= 0) & (number == np.round(number))
        _check(number, whole, "count", "a whole number >= 0", server_labels)

        work = np.full(n, np.inf) if tasks is None else _numbers(tasks, "tasks", (n,), "one per user")
        _check(work, work >= 0, "number of tasks", ">= 0, or inf for no limit", user_labels)

        given = None
        if rates is not None:
            given = _numbers(rates, "rates", (n, k), "(users, servers)")
            _check(given, np.isfinite(given) & (given >= 0), "rate", "finite and >= 0", user_labels, server_labels)

        for array, what, rows, columns in (
            (c, "capacity", server_labels, resource_labels),
            (d, "demand", user_labels, resource_labels),
            (phi, "weight", user_labels, resource_labels),
            (number, "count", server_labels, ()),
            (np.where(np.isinf(work), 0.0, work), "number of tasks", user_labels, ()),
            (np.zeros((n, k)) if given is None else given, "rate", user_labels, server_labels),
        ):
            ordinary = (array == 0) | ((array > _SMALLEST) & (array < _LARGEST))
            _check(array, ordinary, what, f"0 or between {_SMALLEST:g} and {_LARGEST:g}: measure in another unit", rows, columns)

        # A user may run where every resource that it demands exists; the product counts the demanded resources that are missing.
        missing = (d > 0).astype(np.float32) @ (c == 0).astype(np.float32).T
        allowed = (missing == 0) & (number > 0)
        if given is not None:
            allowed &= given > 0
        placement = None if eligibility is None else _booleans(eligibility, (n, k))
        if placement is not None:
            allowed &= placement

        endless = np.flatnonzero((d == 0).all(axis=1) & np.isinf(work)) if given is None else np.empty(0, int)
        if endless.size:
            raise InvalidInstance(
                f'user "{user_labels[endless[0]]}" demands nothing and has no limit on its tasks, so no allocation is largest; '
                "give it a demand > 0 for some resource, or a finite number of tasks"
            )
        for name, value in {
            "capacities": c,
            "demands": d,
            "weights": phi,
            "eligibility": allowed,
            "counts": number,
            "tasks": work,
            "rates_per_server": given,
            "placement": placement,
        }.items():
            if value is not None:
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "users", user_labels)
        object.__setattr__(self, "servers", server_labels)
        object.__setattr__(self, "resources", resource_labels)

    # What follows from the data -------------------------------------------------------------------------------------------

    @property
    def n_users(self) -> int:
        """N."""
        return len(self.users)

    @property
    def n_servers(self) -> int:
        """K, the number of rows; the number of servers is ``counts.sum()``."""
        return len(self.servers)

    @property
    def n_resources(self) -> int:
        """M."""
        return len(self.resources)

    @property
    def total_capacity(self) -> FloatArray:
        """Capacity of the whole cluster, (resources,)."""
        return self.counts @ self.capacities

    @property
    def row_capacity(self) -> FloatArray:
        """Capacity of each row, counts[i] c[i,r], (servers, resources)."""
        return self.counts[:, None] * self.capacities

    @property
    def unconstrained_rates(self) -> FloatArray:
        """Gamma as if there were no placement constraint, (users, servers): 0 where a demanded resource is missing, inf for a zero demand."""
        if self.rates_per_server is not None:
            return self.rates_per_server * self.counts
        gamma = np.full((self.n_users, self.n_servers), np.inf)
        for r in range(self.n_resources):  # a resource at a time: no (users, servers, resources) array is ever held
            users = np.flatnonzero(self.demands[:, r] > 0)
            gamma[users] = np.minimum(gamma[users], self.capacities[:, r] / self.demands[users, r, None])
        empty = self.counts == 0
        gamma[:, ~empty] *= self.counts[~empty]
        gamma[:, empty] = 0.0
        return gamma

    @property
    def rates(self) -> FloatArray:
        """Gamma, (users, servers): tasks that a user runs with the whole row to itself; 0 where it may not run."""
        return np.where(self.eligibility, self.unconstrained_rates, 0.0)

    @property
    def servable(self) -> BoolArray:
        """Which users have at least one eligible server, (users,)."""
        return self.eligibility.any(axis=1)

    @property
    def effortless(self) -> BoolArray:
        """Which users demand nothing at all, so that all their (finitely many) tasks fit anywhere, (users,)."""
        if self.rates_per_server is not None:
            return np.zeros(self.n_users, bool)
        return (self.demands == 0).all(axis=1)

    @property
    def unservable(self) -> tuple[str, ...]:
        """Labels of the users who have no eligible server: they get 0 and are left out of every goal."""
        return tuple(self.users[n] for n in np.flatnonzero(~self.servable))

    def index(self, user: str) -> int:
        """Position of the user with this label.

        >>> Instance([[1]], [[1], [2]], users=["a", "b"]).index("b")
        1
        """
        try:
            return self.users.index(user)
        except ValueError:
            raise InvalidInstance(f'there is no user "{user}"{did_you_mean(user, self.users)}; the instance has {self.n_users}') from None

    # Values -----------------------------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Instance:
        """Return a copy with some constructor arguments changed.

        >>> Instance([[1, 1]], [[.5, .1]]).replace(weights=[3]).weights
        array([3.])
        """
        arguments = {name: getattr(self, name) for name in self.__slots__ if name not in ("rates_per_server", "placement")}
        arguments |= {"rates": self.rates_per_server, "eligibility": self.placement}
        unknown = set(changes) - set(arguments)
        if unknown:
            word = min(unknown)
            raise TypeError(f'an instance has no "{word}"{did_you_mean(word, arguments)}')
        return Instance(**{**arguments, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data in the schema of instance files (``fairopt schema``); defaults are left out. Lossless.

        >>> Instance([[4]], [[2]], resources=["cpu"]).to_dict()["users"]
        [{'name': 'user-1', 'demand': {'cpu': 2.0}}]
        """
        servers: list[dict[str, Any]] = []
        for i, name in enumerate(self.servers):
            entry: dict[str, Any] = {"name": name, "capacity": self._by_resource(self.capacities[i])}
            if self.counts[i] != 1:
                entry["count"] = int(self.counts[i])
            servers.append(entry)
        users = []
        for n, name in enumerate(self.users):
            entry = {"name": name, "demand": self._by_resource(self.demands[n])}
            weight = self.weights[n]
            if weight.ndim:
                entry["weight"] = self._by_resource(weight)
            elif weight != 1:
                entry["weight"] = float(weight)
            if np.isfinite(self.tasks[n]):
                entry["tasks"] = float(self.tasks[n])
            if self.placement is not None and not self.placement[n].all():
                entry["servers"] = [self.servers[i] for i in np.flatnonzero(self.placement[n])]
            if self.rates_per_server is not None:
                entry["rates"] = dict(zip(self.servers, self.rates_per_server[n].tolist(), strict=True))
            users.append(entry)
        return {"resources": list(self.resources), "servers": servers, "users": users}

    def _by_resource(self, values: FloatArray) -> dict[str, float]:
        return dict(zip(self.resources, values.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        """Two instances are equal when every array and every label is, and users may run in the same places (for whatever reason)."""
        if not isinstance(other, Instance):
            return NotImplemented
        for name in self.__slots__:
            if name == "placement":
                continue
            mine, theirs = getattr(self, name), getattr(other, name)
            same = mine == theirs if isinstance(mine, tuple) or mine is None or theirs is None else np.array_equal(mine, theirs)
            if not same:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __repr__(self) -> str:
        def plural(number: float, word: str) -> str:
            return f"{number:,.0f} {word}{'' if number == 1 else 's'}"

        servers = plural(self.counts.sum(), "server")
        if (self.counts != 1).any():
            servers += f" in {plural(self.n_servers, 'row')}"
        totals = [f"{total:,.6g} {name}" for total, name in zip(self.total_capacity, self.resources, strict=True)]
        if len(totals) > 6:
            totals = [*totals[:5], f"{len(totals) - 5} more"]
        notes = [f"{plural(self.n_users, 'user')}, {servers}, {plural(self.n_resources, 'resource')}: {', '.join(totals)}"]
        confined = int((~self.eligibility[:, self.counts > 0]).any(axis=1).sum())
        for number, what in (
            (confined, "cannot run on every server"),
            (int(np.isfinite(self.tasks).sum()), "with finitely many tasks"),
            (len(self.unservable), "cannot run anywhere"),
        ):
            if number:
                notes.append(f"{plural(number, 'user')} {what}")
        if self.rates_per_server is not None:
            notes.append("rates given")
        return f"Instance({'; '.join(notes)})"


# Validation --------------------------------------------------------------------------------------------------------------------


def _numbers(values: npt.ArrayLike, what: str, shape: tuple[int, ...] | None = None, meaning: str = "") -> FloatArray:
    """Return a fresh float array, refusing what only looks like numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidInstance(f"{what} is not a rectangular array; give rows of equal length") from None
    if array.dtype.kind not in "iuf":
        array = _numbers_from_objects(array, what)
    if shape is not None and array.shape != shape:
        raise InvalidInstance(f"{what} have shape {array.shape}; expected {shape}: {meaning}")
    return np.array(array, dtype=np.float64, order="C") + 0.0  # + 0.0: a fresh array without negative zeros


def _numbers_from_objects(array: npt.NDArray[Any], what: str) -> FloatArray:
    """Convert an object array of true numbers (a pandas column may be one); anything else is an error."""
    if array.size == 0:
        return np.empty(array.shape)
    for position, value in np.ndenumerate(array):
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
            raise InvalidInstance(f"{what} at position {[int(p) for p in position]} is {value!r}, which is not a number; give numbers only")
    return array.astype(np.float64)


def _matrix(values: npt.ArrayLike, what: str, meaning: str) -> FloatArray:
    array = _numbers(values, what)
    if array.ndim != 2:
        raise InvalidInstance(f"{what} have shape {array.shape}; expected two dimensions, {meaning}")
    if 0 in array.shape:
        raise InvalidInstance(f"{what} have shape {array.shape}: there must be at least one row and one column, {meaning}")
    return array


def _booleans(values: npt.ArrayLike, shape: tuple[int, int]) -> BoolArray:
    array = np.asarray(values)
    if array.shape != shape:
        raise InvalidInstance(f"eligibility has shape {array.shape}; expected {shape}: (users, servers)")
    if array.dtype.kind != "b" and not (array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()):
        raise InvalidInstance(
            "eligibility must be true or false (or 1 or 0) for every user and server; found another value; "
            "for how fast a user runs on a server use rates"
        )
    return array.astype(bool)


def _labels(labels: Sequence[str] | None, number: int, kind: str) -> tuple[str, ...]:
    if labels is None:
        return tuple(f"{kind}-{j + 1}" for j in range(number))
    if isinstance(labels, str):
        raise InvalidInstance(f'the {kind} labels are one string, "{labels}"; give a list of {number} strings')
    names = tuple(labels)
    if len(names) != number:
        raise InvalidInstance(f"there are {len(names)} {kind} labels for {number} {kind}s; give one for each")
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidInstance(f"{kind} label {position + 1} is {name!r}, not a string; labels are strings")
        if not name.strip():
            raise InvalidInstance(f"{kind} label {position + 1} is empty; give every {kind} a name")
        if name in seen:
            raise InvalidInstance(f'the {kind} label "{name}" occurs twice; labels must be unique')
        seen.add(name)
    return names


def _frame_labels(
    values: object,
    what: str,
    rows: Sequence[str] | None,
    row_kind: str,
    columns: Sequence[str] | None,
    column_kind: str,
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Take the labels of a pandas frame; labels given otherwise must be equal to them."""
    if not (hasattr(values, "columns") and hasattr(values, "index")):
        return rows, columns
    result: list[Sequence[str]] = []
    for given, own, kind in ((rows, values.index, row_kind), (columns, values.columns, column_kind)):
        labels = list(own)
        if kind == row_kind and labels == list(range(len(labels))):  # pandas' default index says nothing
            result.append(given)  # type: ignore[arg-type]
            continue
        if given is not None and list(given) != labels:
            raise InvalidInstance(
                f"the {kind} of {what}, {labels}, are not those given elsewhere, {list(given)}; "
                "make both equal and in the same order: nothing is aligned by guess"
            )
        result.append(labels)
    return result[0], result[1]


def _check(values: FloatArray, good: BoolArray, what: str, rule: str, rows: tuple[str, ...], columns: tuple[str, ...] = ()) -> None:
    """Raise for the first value that is not good, with its labels."""
    if good.all():
        return
    position = np.argwhere(~good)[0]
    where = f'of "{rows[position[0]]}"'
    if len(position) > 1:
        where += f' for "{columns[position[1]]}"'
    others = int((~good).sum()) - 1
    also = f" ({others} more like it)" if others else ""
    raise InvalidInstance(f"the {what} {where} is {values[tuple(position)]:g}; it must be {rule}{also}")
