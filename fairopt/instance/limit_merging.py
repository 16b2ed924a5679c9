"""Named limits where rows of an instance are merged, numbered one by one, renamed or left out.

* Users merge if each limit over several users counts their tasks alike. Limits of one user merge as its tasks do: the joint row has the sum
  of their bounds, and the bounds must be in proportion to what users hold of the joint row. Of several such limits of a user that
  count the same on the same servers only the smallest matters.
* Servers merge if each limit counts them alike.

Limits are kept by labels: `moved` renames what they name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairopt.instance.limits import Limit
from fairopt.instance.selections import Selection, is_own
from fairopt.validation import BoolArray, IntArray

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["by_name", "limit_keys", "merged_limits", "moved", "split", "with_somebody"]


def moved(
    limits: Sequence[Limit],
    users: Mapping[str, Sequence[str]] | None = None,
    servers: Mapping[str, Sequence[str]] | None = None,
    queues: Mapping[str, Sequence[str]] | None = None,
) -> list[Limit]:
    """Return limits with other labels: each label stands for those that it is mapped to. What selects nothing any more is left out.

    A requirement stays one where servers are given: attributes go with their servers.

    >>> moved([Limit("two", 2, users=["a", "b"]), Limit("one", 1, users=["b"])], users={"a": ["a"], "b": []})
    [Limit('two', 2, users=['a'])]
    """
    found = []
    for limit in limits:
        changes: dict[str, Any] = {
            word: tuple(dict.fromkeys(label for name in names for label in others.get(name, ())))
            for word, names, others in (
                ("users", limit.users, users),
                ("queues", limit.queues, queues),
                ("servers", limit.servers, servers),
            )
            if others is not None and isinstance(names, tuple)
        }
        if isinstance(limit.servers, str) and servers is not None and limit.servers in servers:
            changes["servers"] = tuple(servers[limit.servers])
        if limit.amounts is not None:
            changes["amounts"] = _moved_amounts(limit.amounts, users, servers)
        if all(len(each) for each in changes.values()):
            found.append(limit.replace(**changes) if changes else limit)
    return found


def _moved_amounts(amounts: Any, users: Mapping[str, Sequence[str]] | None, servers: Mapping[str, Sequence[str]] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, amount in amounts.items():
        if servers is not None and isinstance(amount, Mapping):
            amount = {label: a for server, a in amount.items() for label in servers.get(server, ())}
            if not amount:
                continue
        found |= dict.fromkeys([name] if users is None else users.get(name, ()), amount)
    return found


def by_name(instance: Instance) -> list[Limit]:
    """Return the named limits of an instance with the names of their servers in the place of requirements.

    Amounts are those of users and servers that they count: the name of another may become one of these.
    """
    found = []
    for selection in instance.selections:
        limit = selection.limit
        if isinstance(limit.servers, str):
            limit = limit.replace(servers=[instance.servers[i] for i in np.flatnonzero(selection.servers)])
        if limit.amounts is not None:
            users = set(compress(instance.users, selection.users))
            servers = set(compress(instance.servers, selection.servers))
            amounts = {name: _within(amount, servers) for name, amount in limit.amounts.items() if name in users}
            limit = limit.replace(amounts=amounts or {min(users): 0})
        found.append(limit)
    return found


def _within(amount: Any, servers: Collection[str]) -> Any:
    return {server: each for server, each in amount.items() if server in servers} if isinstance(amount, Mapping) else amount


def with_somebody(limits: Sequence[Limit], instance: Instance, stay: BoolArray) -> list[Limit]:
    """Return limits without those of an instance all of whose users leave; ``stay``, (users,), says who does not.

    `moved` sees lists of users. A limit of queues may also lose all users below these, or all of its list who are below them.
    """
    left = {selection.limit.name for selection in instance.selections if not (selection.users & stay).any()}
    return [limit for limit in limits if limit.name not in left]


def split(instance: Instance, users: Mapping[str, Sequence[str]]) -> list[Limit]:
    """Return the named limits where each user is several, ``users`` says which: one of each user is one of its parts together."""
    found = []
    for limit in by_name(instance):
        if limit.each != "user":
            found.append(limit)
            continue
        for k, name in enumerate(limit.users or instance.users):
            amounts = None if limit.amounts is None else {name: limit.amounts.get(name, 0)}
            found.append(limit.replace(name=f"{limit.name} {k}", users=[name], amounts=amounts, each=None))
    return moved(found, users)


# Merging -------------------------------------------------------------------------------------------------------------------------


def limit_keys(instance: Instance, pull: npt.NDArray[Any]) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Return in what users, and in what servers, must agree to be merged: arrays with a row for each.

    ``pull``, (users,), is in proportion to what users hold of a joint row.
    """
    of_users: list[npt.NDArray[Any]] = []
    of_servers: list[npt.NDArray[Any]] = []
    for kind in _kinds(instance).values():
        of_users.append((_tightest(kind, pull)[0] / pull)[:, None])
    by_user: dict[int, list[Any]] = {}
    by_server: dict[int, list[Any]] = {}
    for number, selection in enumerate(instance.selections):
        if not selection.servers.all():
            of_servers.append(selection.servers[:, None])
        together = not is_own(selection)
        told = together or selection.limit.each == "user"  # the amounts of a row of one user alone are in what kind it is
        if isinstance(selection.amounts, tuple):
            for n, i, amount in zip(*(each.tolist() for each in selection.amounts), strict=True):
                by_server.setdefault(i, []).append((number, n, amount))
                if told:
                    by_user.setdefault(n, []).append((number, i, amount))
            continue
        if together and not selection.users.all():
            of_users.append(selection.users[:, None])
        if told and selection.amounts is not None:
            of_users.append(selection.amounts[:, None])
    for table, keys, size in ((by_user, of_users, instance.n_users), (by_server, of_servers, instance.n_servers)):
        if table:
            keys.append(_numbered(table, size))
    return of_users, of_servers


def _numbered(table: Mapping[int, Sequence[Any]], size: int) -> npt.NDArray[Any]:
    """Return a number for each row, equal where the entries are, (size, 1)."""
    codes: dict[Any, int] = {(): 0}
    return np.array([[codes.setdefault(tuple(table.get(row, ())), len(codes))] for row in range(size)], float)


def _kinds(instance: Instance) -> dict[Any, list[tuple[int, Selection]]]:
    """Return the limits of single users, with their positions; together are those that count the same on the same servers."""
    found: dict[Any, list[tuple[int, Selection]]] = {}
    for number, selection in enumerate(instance.selections):
        if is_own(selection):
            what: Any = (selection.resource, selection.limit.each if selection.limit.each != "user" else None, selection.servers.tobytes())
            if isinstance(selection.amounts, tuple):
                what = (
                    number
                    if selection.limit.each == "user"
                    else (*what, *zip(*(each.tolist() for each in selection.amounts[1:]), strict=True))
                )
            elif selection.amounts is not None:
                what = (*what, number) if selection.limit.each == "user" else (*what, "amount", selection.amounts[selection.counted][0])
            found.setdefault(what, []).append((number, selection))
    return found


def _tightest(kind: Sequence[tuple[int, Selection]], pull: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the smallest bound of each user among limits that count the same, inf where it has none, and whose it is (-1: nobody's)."""
    bounds: npt.NDArray[Any] = np.full(pull.size, np.inf, dtype=pull.dtype)
    whose = np.full(pull.size, -1)
    for number, selection in kind:
        lower = selection.counted & (bounds > selection.limit.bound)
        bounds[lower], whose[lower] = selection.limit.bound, number
    return bounds, whose


def merged_limits(instance: Instance, user_group: IntArray, server_group: IntArray, pull: npt.NDArray[Any]) -> list[Limit]:
    """Return the limits of the merged instance; ``group`` says into which row each user or server goes, named as its first."""
    if not instance.selections:
        return []
    first_user, first_server = (np.unique(group, return_index=True)[1] for group in (user_group, server_group))
    size = np.bincount(user_group)
    users = {name: [instance.users[first_user[g]]] for name, g in zip(instance.users, user_group.tolist(), strict=True)}
    servers = {name: [instance.servers[first_server[g]]] for name, g in zip(instance.servers, server_group.tolist(), strict=True)}
    own = {number for kind in _kinds(instance).values() for number, selection in kind if (size[user_group[selection.counted]] > 1).any()}
    found = []
    for number, limit in enumerate(by_name(instance)):
        if number not in own:
            found += moved([limit], users, servers)
    for kind in _kinds(instance).values():
        bounds, whose = _tightest(kind, pull)
        together: npt.NDArray[Any] = np.zeros(first_user.size, dtype=bounds.dtype)
        np.add.at(together, user_group, bounds)
        of = dict(kind)
        for g in np.flatnonzero(whose[first_user] >= 0).tolist():
            number = int(whose[first_user[g]])
            if number in own:
                found.append(_joint(instance, of[number], int(first_user[g]), together[g], servers))
    return found


def _joint(instance: Instance, selection: Selection, user: int, bound: Any, servers: Mapping[str, Sequence[str]]) -> Limit:
    """Return the limit of a merged user, as that of its first; those of ``each="user"`` keep their name and have one user each."""
    limit, name = selection.limit, instance.users[user]
    changes: dict[str, Any] = {"bound": bound, "users": [name], "queues": None}
    if not selection.servers.all():
        changes["servers"] = [instance.servers[i] for i in np.flatnonzero(selection.servers)]
    if limit.amounts is not None:
        changes["amounts"] = {name: limit.amounts[name]}
    return moved([limit.replace(**changes)], None, servers)[0]
