"""Named limits: what users hold together of a resource, or how many tasks they run together, wherever they are in the tree.

A limit is one row, over the users and servers that it selects *together*; a row of servers counts with all the servers it stands for:

    sum over the selected n, i of a[n,i] x[n,i] <= bound,        a[n,i] = d[n,resource], or the amounts given, or 1: tasks

It selects by names; servers also by a requirement, such as ``model = A100``. What is not given is not restricted: a limit with ``users``
and ``queues`` is over those of the users who are below one of the queues. With ``each`` there is such a row for each user, queue or
server by itself; the bound is then that of each of them, of *one* server.

>>> Limit("long-gpu", 8, resource="gpu", users=["ann", "bob"])
Limit('long-gpu', 8, resource='gpu', users=['ann', 'bob'])
>>> Limit("two at once", 2, each="user", servers="model = A100").counts_tasks
True

Limits never count in shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.fractions import fraction_of, is_exact, nearest, plain, plain_numbers, written
from fairopt.validation import RANGE, in_range, is_number
from fairopt.wording import joined
from fairopt.wording import written as shown

__all__ = ["Each", "Limit", "refuse_limits"]

Each: TypeAlias = Literal["user", "queue", "server"]
"""What a limit has one row for, each by itself."""

_FIELDS = ("name", "bound", "resource", "amounts", "users", "queues", "servers", "each")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Limit:
    """A named limit on what some users hold on some servers, together.

    Parameters
    ----------
    name : str
        Unique among the limits of an instance; not blank, without a dot.
    bound : float
        Finite, >= 0. Users whose every task counts in a limit of 0 can have nothing.
    resource : str, optional
        What counts is the demand for this resource. Left out, with ``amounts`` left out too, each task counts 1.
    amounts : mapping from users to numbers, or to mappings from servers to numbers; or array (users,) or (users, servers); optional
        What a task counts, >= 0; who is not named counts 0. Not together with ``resource``.
    users : sequence of str, optional
        Names of users.
    queues : sequence of str, optional
        Names of queues: all users below them.
    servers : sequence of str, or str, optional
        Names of rows of servers, or a requirement on their attributes, such as ``"model = A100"``.
    each : {"user", "queue", "server"}, optional
        One row for each of these, instead of one row for all.

    Raises
    ------
    InvalidInstance
        A name or number is not allowed, or the arguments exclude each other.

    Examples
    --------
    >>> Limit("gpus", -1, resource="gpu")
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: limit "gpus": its bound must be finite and >= 0, got -1
    """

    name: str
    bound: float
    resource: str | None
    amounts: Any  # a read-only mapping; before an instance has it also an array
    users: tuple[str, ...] | None
    queues: tuple[str, ...] | None
    servers: tuple[str, ...] | str | None
    each: Each | None

    def __init__(
        self,
        name: str,
        bound: Any,
        resource: str | None = None,
        amounts: Any = None,
        users: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
        servers: Sequence[str] | str | None = None,
        each: Each | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f"the name of a limit must be a string that is not blank, got {shown(name)}")
        where = f'limit "{name}"'
        if "." in name:
            raise InvalidInstance(
                f"{where}: its name has a dot, which separates the parts of a change such as limits.NAME.bound+=5; leave it out"
            )
        if resource is not None and amounts is not None:
            raise InvalidInstance(f"{where}: it has a resource and amounts; give one of them, or neither to count tasks")
        if resource is not None and (not isinstance(resource, str) or not resource):
            raise InvalidInstance(f"{where}: its resource must be the name of a resource, got {shown(resource)}")
        if each is not None and each not in get_args(Each):
            raise InvalidInstance(f'{where}: each is {shown(each)}; give "user", "queue" or "server", or leave it out')
        values = {
            "name": name,
            "bound": _number(f"{where}: its bound", bound),
            "resource": resource,
            "amounts": _amounts(where, amounts),
            "users": _names(where, "users", users),
            "queues": _names(where, "queues", queues),
            "servers": servers if isinstance(servers, str) and servers.strip() else _names(where, "servers", servers),
            "each": each,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def counts_tasks(self) -> bool:
        """Does each task count 1?"""
        return self.resource is None and self.amounts is None

    @property
    def in_fractions(self) -> bool:
        """Was some number given that is not the shortest decimal of its float, such as Fraction(1, 3)?"""
        return any(fraction_of(value) != fraction_of(float(value)) for value in self.numbers())

    @property
    def exact(self) -> Limit:
        """The same limit with Fractions for its numbers, as in `fairopt.Instance.exact`."""
        return self._with_numbers(fraction_of)

    def replace(self, **changes: Any) -> Limit:
        """Return a copy with some arguments changed.

        >>> Limit("gpus", 8, resource="gpu").replace(bound=12)
        Limit('gpus', 12, resource='gpu')
        """
        return Limit(**{**{field: getattr(self, field) for field in _FIELDS}, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data in the schema of instance files; what has its default is left out.

        >>> Limit("gpus", Fraction(1, 3), resource="gpu", servers="model = A100").to_dict()
        {'name': 'gpus', 'bound': '1/3', 'resource': 'gpu', 'servers': 'model = A100'}
        """
        values = {field: getattr(self, field) for field in _FIELDS if getattr(self, field) is not None}
        found: dict[str, Any] = {**values, "bound": plain(fraction_of(self.bound))}
        for field in ("users", "queues", "servers"):
            if isinstance(found.get(field), tuple):
                found[field] = list(found[field])
        if self.amounts is not None:
            found["amounts"] = (
                self.amounts.tolist()
                if isinstance(self.amounts, np.ndarray)
                else {
                    user: {server: plain(fraction_of(a)) for server, a in amount.items()}
                    if isinstance(amount, Mapping)
                    else plain(fraction_of(amount))
                    for user, amount in self.amounts.items()
                }
            )
        return found

    def numbers(self) -> Iterator[Any]:
        """Yield the bound and the amounts."""
        yield self.bound
        if isinstance(self.amounts, Mapping):
            for amount in self.amounts.values():
                if isinstance(amount, Mapping):
                    yield from amount.values()
                else:
                    yield amount
        elif self.amounts is not None:
            yield from self.amounts.ravel().tolist()

    def _with_numbers(self, change: Any) -> Limit:
        """Return the same limit with every number changed."""
        copied = object.__new__(Limit)
        for field in _FIELDS:
            object.__setattr__(copied, field, getattr(self, field))
        object.__setattr__(copied, "bound", change(self.bound))
        if isinstance(self.amounts, Mapping):
            changed = {
                user: MappingProxyType({server: change(a) for server, a in amount.items()})
                if isinstance(amount, Mapping)
                else change(amount)
                for user, amount in self.amounts.items()
            }
            object.__setattr__(copied, "amounts", MappingProxyType(changed))
        return copied

    def __eq__(self, other: object) -> bool:
        """Two limits are equal if all that they hold is, numbers as fractions."""
        return self.to_dict() == other.to_dict() if isinstance(other, Limit) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, float(self.bound), self.resource, self.users, self.queues, self.servers, self.each))

    def __reduce__(self) -> tuple[Any, ...]:
        amounts = self.amounts
        if isinstance(amounts, Mapping):
            amounts = {user: dict(amount) if isinstance(amount, Mapping) else amount for user, amount in amounts.items()}
        return Limit, tuple(amounts if field == "amounts" else getattr(self, field) for field in _FIELDS)

    def __repr__(self) -> str:
        plain_data = {key: value for key, value in self.to_dict().items() if key not in ("name", "bound")}
        if "amounts" in plain_data and len(str(plain_data["amounts"])) > 60:
            plain_data["amounts"] = "..."
        more = "".join(f", {key}={value!r}" for key, value in plain_data.items())
        return f"Limit({self.name!r}, {plain_numbers(plain(fraction_of(self.bound)))}{more})"


def _number(what: str, value: Any) -> float:
    """Return a finite number >= 0, as a float that keeps a fraction which it rounds."""
    fine = value.is_finite() and is_number(float(value)) if isinstance(value, Decimal) else is_number(value)
    if not (fine and value >= 0):
        raise InvalidInstance(f"{what} must be finite and >= 0, got {shown(value)}")
    if not in_range(nearest(value)):
        raise InvalidInstance(f"{what} is {nearest(value):g}; it must be 0 or {RANGE}")
    if isinstance(value, float):  # also one that keeps a fraction
        return value
    return written(Fraction(value)) if is_exact(value) else float(value)


def _names(where: str, word: str, given: Any) -> tuple[str, ...] | None:
    """Return names, each once."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidInstance(f"{where}: {word} must be a list of names, got {shown(given)}")
    if not names:
        raise InvalidInstance(f"{where}: its list of {word} is empty; leave {word} out to select all, or leave the limit out")
    return tuple(dict.fromkeys(names))


def _amounts(where: str, given: Any) -> Any:
    """Return amounts by label, read-only; an array as it is, until an instance says whose its rows are."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        array = np.array(given) if not hasattr(given, "to_numpy") else given.to_numpy()
        if array.ndim not in (1, 2) or array.dtype.kind not in "iufO":
            raise InvalidInstance(f"{where}: its amounts must be a mapping by user, or an array (users,) or (users, servers)")
        array.setflags(write=False)
        return array
    found: dict[str, Any] = {}
    for user, amount in given.items():
        what = f'{where}: the amount of "{user}"'
        if isinstance(amount, Mapping):
            found[str(user)] = MappingProxyType({str(server): _number(f'{what} on "{server}"', each) for server, each in amount.items()})
        else:
            found[str(user)] = _number(what, amount)
    if not found:
        raise InvalidInstance(f"{where}: its amounts name nobody; name users, or leave the limit out")
    return MappingProxyType(found)


def refuse_limits(limits: Sequence[Limit], what: str) -> None:
    """Refuse named limits for something that cannot keep them; ``what`` begins the sentence.

    Raises
    ------
    Unsupported

    >>> refuse_limits([Limit("licences", 10)], "a Pareto frontier")
    Traceback (most recent call last):
    fairopt.errors.Unsupported: a Pareto frontier keeps no named limits, and the instance has "licences"; leave it out: replace(limits=[])
    """
    if limits:
        names = joined([f'"{limit.name}"' for limit in limits], 3)
        it = "it" if len(limits) == 1 else "them"
        raise Unsupported(f"{what} keeps no named limits, and the instance has {names}; leave {it} out: replace(limits=[])")
