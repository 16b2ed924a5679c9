"""Queues of the users of a cluster, with guarantees, limits and tiers.

A queue has a name, a parent (the root if none) and a weight among its siblings. A user of fairopt is one shape of task, a leaf of the
tree; an owner with several shapes of tasks is a queue with several users. A guarantee and a limit are amounts of resources: what a queue
does not name is neither guaranteed nor limited. They hold for the whole cluster, or for a group of servers (`Quota`).

>>> research = Queue("research", weight=2, guarantee={"gpu": 8}, limit={"gpu": 24})
>>> vision = Queue("vision", parent="research", quotas=[Quota(["a100-1", "a100-2"], guarantee={"gpu": 4})])
>>> vision.parent, research.limit["gpu"]
('research', 24.0)

Queues and users together are a tree: `fairopt.instance.tree.Tree`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import fraction_of, nearest
from fairopt.instance.fractions import plain as number_or_text
from fairopt.instance.tolerances import SAME
from fairopt.validation import RANGE, RANGE_OF_WEIGHTS, FloatArray, in_range, is_number, is_whole_number
from fairopt.wording import brief, contrast, did_you_mean, joined, written

__all__ = ["ORDERS", "Order", "Queue", "Quota", "amounts", "misfits", "unknown_order"]

Order: TypeAlias = Literal["fair", "listed"]
ORDERS: tuple[str, ...] = get_args(Order)

_NONE: Mapping[str, float] = MappingProxyType({})
_AS_FLOATS: Mapping[tuple[str, str], Fraction] = MappingProxyType({})
_LARGEST_TIER = 10**15


@dataclass(frozen=True, init=False)
class Quota:
    """What a queue is guaranteed and limited to on a group of servers.

    Parameters
    ----------
    servers : sequence of str
        Names of server rows.
    guarantee, limit, lending_limit : mappings from resources to amounts
        As in `Queue`, counted on these servers.
    name : str, optional
        A word for the group, such as ``model = A100``.
    """

    servers: tuple[str, ...]
    guarantee: Mapping[str, float]
    limit: Mapping[str, float]
    lending_limit: Mapping[str, float]
    name: str
    _written = _AS_FLOATS  # numbers that were given as fractions which their floats do not mean; no field of the dataclass

    def __init__(
        self,
        servers: Sequence[str],
        guarantee: Mapping[str, float] = _NONE,
        limit: Mapping[str, float] = _NONE,
        lending_limit: Mapping[str, float] = _NONE,
        name: str = "",
    ) -> None:
        if isinstance(servers, str) or not all(isinstance(server, str) for server in servers):
            raise InvalidInstance(f"the servers of a quota must be a list of names, not {servers!r}")
        if not servers:
            raise InvalidInstance("a quota names no server; list the servers that it is for, or give the queue a guarantee or a limit")
        object.__setattr__(self, "servers", tuple(dict.fromkeys(servers)))
        object.__setattr__(self, "name", name or joined(self.servers, 3))
        _take(self, f"the quota on {self.name}", guarantee, limit, lending_limit)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (Quota, _plain(_in_fractions(self) if self._written else self))


@dataclass(frozen=True, init=False)
class Queue:
    """A queue of a cluster.

    Parameters
    ----------
    name : str
    parent : str, optional
        Name of the queue that this one is in; default: the root.
    weight : float
        Among its siblings, finite, >= 0; 0: nothing beyond the guarantee.
    guarantee : mapping from resources to amounts
        What the queue gets before anybody else gets more than their guarantee, as far as it asks for it. A resource that is not named is
        not guaranteed.
    limit : mapping from resources to amounts
        What the users below the queue may hold together. A resource that is not named is not limited.
    lending_limit : mapping from resources to amounts
        How much of its guarantee the queue lends while it does not use it; it keeps the rest to itself, even while it is idle. What
        several queues keep adds up (`fairopt.instance.keeping`). Default: all of it is lent.
    tier : int
        The surplus goes to queues of the highest tier first. Queues below have the tier of the nearest queue above that has one.
    quotas : sequence of Quota
        Guarantees and limits on groups of servers.
    order : {"fair", "listed"}
        How the queue divides what it gets. "fair": by weights. "listed": first come, first served, in the order of the instance: a child
        rises only once all children before it have stopped; the weights of the children do not count, except that 0 still gives nothing
        beyond a guarantee. A listed queue holds users or queues, not both.

    Raises
    ------
    InvalidInstance
        A name, number or amount is not allowed, a limit is below a guarantee, or there is a lending limit without a guarantee.

    Examples
    --------
    >>> Queue("research", weight=2, guarantee={"gpu": 8}, limit={"gpu": 4})
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: queue "research": the limit of gpu is 4, less than its guarantee of 8; raise or lower one
    """

    name: str
    parent: str | None
    weight: float
    guarantee: Mapping[str, float]
    limit: Mapping[str, float]
    lending_limit: Mapping[str, float]
    tier: int
    quotas: tuple[Quota, ...]
    order: Order
    _written = _AS_FLOATS  # numbers that were given as fractions which their floats do not mean; no field of the dataclass

    def __init__(
        self,
        name: str,
        parent: str | None = None,
        weight: float = 1.0,
        guarantee: Mapping[str, float] = _NONE,
        limit: Mapping[str, float] = _NONE,
        lending_limit: Mapping[str, float] = _NONE,
        tier: int = 0,
        quotas: Sequence[Quota] = (),
        order: Order = "fair",
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f"the name of a queue must be a string that is not blank, got {written(name)}")
        where = f'queue "{name}"'
        if parent is not None and (not isinstance(parent, str) or not parent):
            raise InvalidInstance(f"{where}: its parent must be the name of a queue, or None for the root, got {written(parent)}")
        if not (_is_number(weight) and weight >= 0):
            raise InvalidInstance(f"{where}: its weight must be finite and >= 0, got {written(weight)}")
        if not in_range(nearest(weight)):
            raise InvalidInstance(f"{where}: its weight is {nearest(weight):g}; it must be 0 or {RANGE_OF_WEIGHTS}")
        if not is_whole_number(tier) or abs(tier) > _LARGEST_TIER:
            raise InvalidInstance(f"{where}: its tier must be a whole number of at most 15 digits, got {written(tier)}")
        for quota in quotas:
            if not isinstance(quota, Quota):
                raise InvalidInstance(f"{where}: its quotas must be a list of fairopt.Quota, got {quota!r}")
        if not isinstance(order, str) or order not in ORDERS:
            raise InvalidInstance(f"{where}: {unknown_order(order)}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "parent", parent)
        object.__setattr__(self, "weight", float(weight))
        object.__setattr__(self, "tier", int(tier))
        object.__setattr__(self, "quotas", tuple(quotas))
        object.__setattr__(self, "order", order)
        _take(self, where, guarantee, limit, lending_limit, weight=weight)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (Queue, _plain(self.given))

    @property
    def in_fractions(self) -> bool:
        """Was some number given that is not the shortest decimal of its float, such as Fraction(1, 3)?"""
        return bool(self._written) or any(quota._written for quota in self.quotas)

    @property
    def given(self) -> Queue:
        """The queue with its numbers as they were given: `exact` if some are fractions, else as it is. For a new queue like it."""
        return self.exact if self.in_fractions else self

    @property
    def exact(self) -> Queue:
        """The same queue with Fractions for its numbers, as in `fairopt.Instance.exact`."""
        exact = _in_fractions(self)
        object.__setattr__(exact, "weight", self._written.get(("weight", ""), fraction_of(self.weight)))
        object.__setattr__(exact, "quotas", tuple(_in_fractions(quota) for quota in self.quotas))
        return exact

    @property
    def everywhere_and_on_groups(self) -> tuple[Queue | Quota, ...]:
        """The queue itself, which has the amounts for the whole cluster, and its quotas."""
        return (self, *self.quotas)

    @property
    def limits_alone(self) -> Queue:
        """The queue with its limits, and nothing else that says who gets what: no guarantee, lending limit, weight, tier or order."""
        given = self.given
        quotas = [Quota(quota.servers, limit=quota.limit, name=quota.name) for quota in given.quotas if quota.limit]
        return Queue(self.name, self.parent, limit=given.limit, quotas=quotas)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data in the schema of instance files; what has its default is left out.

        >>> Queue("a", weight=2, limit={"gpu": 4}).to_dict()
        {'name': 'a', 'weight': 2.0, 'limit': {'gpu': 4.0}}
        """
        plain = {key: value for key, value in _as_data(self).items() if value not in (None, {}, ())}
        if plain["weight"] == 1:
            del plain["weight"]
        if self.tier == 0:
            del plain["tier"]
        if self.order == "fair":
            del plain["order"]
        if self.quotas:
            plain["quotas"] = [
                {key: value for key, value in _as_data(quota).items() if value not in ({}, "", joined(quota.servers, 3))}
                | {"servers": list(quota.servers)}
                for quota in self.quotas
            ]
        return plain


_K = TypeVar("_K", "Queue", "Quota")


def _in_fractions(thing: _K) -> _K:
    """Return a copy with fractions for amounts."""
    copied = object.__new__(type(thing))
    for name in thing.__dataclass_fields__:
        value = getattr(thing, name)
        if name in ("guarantee", "limit", "lending_limit"):
            value = MappingProxyType({r: thing._written.get((name, r), fraction_of(amount)) for r, amount in value.items()})
        object.__setattr__(copied, name, value)
    object.__setattr__(copied, "_written", thing._written)
    return copied


def _equal(one: Queue | Quota, other: object) -> bool:
    """Compare all numbers and names; fractions too, where floats are the same."""
    if not isinstance(other, Queue | Quota) or type(other) is not type(one):
        return False
    return one._written == other._written and all(getattr(one, name) == getattr(other, name) for name in one.__dataclass_fields__)


def _plain(thing: Queue | Quota) -> dict[str, Any]:
    values = {name: getattr(thing, name) for name in thing.__dataclass_fields__}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _as_data(thing: Queue | Quota) -> dict[str, Any]:
    """Return the attributes with numbers as plain data; fractions are text."""
    values = _plain(thing)
    for (name, resource), exact in thing._written.items():
        if name == "weight":
            values["weight"] = number_or_text(exact)
        else:
            values[name][resource] = number_or_text(exact)
    return values


def _made(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**values)


def unknown_order(order: object) -> str:
    """Return the message on an order that there is not.

    >>> unknown_order("fifo")
    'there is no order "fifo" of a queue; use "fair" (by weights) or "listed" (first come, first served)'
    """
    return f'there is no order "{brief(str(order))}" of a queue; use "fair" (by weights) or "listed" (first come, first served)'


def _is_number(value: object) -> bool:
    return value.is_finite() and is_number(float(value)) if isinstance(value, Decimal) else is_number(value)


def _take(thing: Queue | Quota, where: str, *amounts: Mapping[str, float], weight: float | None = None) -> None:
    """Check amounts of resources and keep them, read-only; fractions that are not what their floats mean beside them."""
    numbers: dict[tuple[str, str], Any] = {} if weight is None else {("weight", ""): weight}
    for name, given in zip(("guarantee", "limit", "lending_limit"), amounts, strict=True):
        word = name.replace("_", " ")
        if not isinstance(given, Mapping):
            raise InvalidInstance(f"{where}: its {word} must name resources and amounts, such as {{gpu: 8}}, got {written(given)}")
        for resource, amount in given.items():
            endless = name == "limit" and isinstance(amount, float) and amount == np.inf
            if not (endless or (_is_number(amount) and amount >= 0)):
                raise InvalidInstance(f"{where}: the {word} of {resource} must be finite and >= 0, got {written(amount)}")
            if not in_range(nearest(amount)):
                raise InvalidInstance(f"{where}: the {word} of {resource} is {nearest(amount):g}; it must be 0 or {RANGE}")
        numbers |= {(name, str(r)): a for r, a in given.items() if not np.isinf(float(a))}
        object.__setattr__(thing, name, MappingProxyType({r: float(a) for (of, r), a in numbers.items() if of == name}))
    as_written = {key: fraction_of(number) for key, number in numbers.items()}
    other = {key: exact for key, exact in as_written.items() if exact != fraction_of(float(numbers[key]))}
    object.__setattr__(thing, "_written", MappingProxyType(other))
    for _, _, message in misfits(thing.guarantee, thing.limit, thing.lending_limit):
        raise InvalidInstance(f"{where}: {message}")


def misfits(
    guarantee: Mapping[str, float], limit: Mapping[str, float], lending_limit: Mapping[str, float]
) -> Iterator[tuple[str, str, str]]:
    """Yield what does not fit together: "limit" or "lending_limit", the resource, and what is wrong.

    >>> list(misfits({"gpu": 8}, {"gpu": 4}, {}))
    [('limit', 'gpu', 'the limit of gpu is 4, less than its guarantee of 8; raise or lower one')]
    """
    for resource, amount in guarantee.items():
        if amount > limit.get(resource, np.inf) * (1 + SAME):
            less, more = contrast(amount, limit[resource])[::-1]
            yield "limit", resource, f"the limit of {resource} is {less}, less than its guarantee of {more}; raise or lower one"
    for resource in lending_limit:
        if resource not in guarantee:
            yield (
                "lending_limit",
                resource,
                f"it has a lending limit of {resource} but no guarantee of it to lend; give it a guarantee",
            )


def amounts(given: Mapping[str, float], resources: Sequence[str], where: str, missing: float) -> FloatArray:
    """Return amounts by resource as an array, (resources,), ``missing`` where a resource is not named.

    Raises
    ------
    InvalidInstance
        Where a resource is unknown.
    """
    values: npt.NDArray[np.float64] = np.full(len(resources), missing)
    for name, amount in given.items():
        if name not in resources:
            raise InvalidInstance(
                f'{where}: there is no resource "{name}"{did_you_mean(name, resources)}; there are {joined(resources, 5)}'
            )
        values[list(resources).index(name)] = amount
    return values
