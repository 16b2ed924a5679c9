"""What a named limit selects in an instance: users, servers, and what each task counts; and the rows that it makes.

>>> from fairopt.instance.limits import Limit
>>> from fairopt.instance import Instance
>>> pool = Instance([[8], [8]], [[1], [2]], resources=["gpu"], users=["a", "b"], limits=[Limit("long", 3, resource="gpu", each="user")])
>>> [(row.name, row.bound) for row in pool.selections[0].rows()]
[('long of a', 3.0), ('long of b', 3.0)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.by_server import Kinds
from fairopt.instance.fractions import fractions_of, objects
from fairopt.instance.limits import Limit
from fairopt.instance.named import Named
from fairopt.instance.queues import Queue
from fairopt.instance.requirements import Attributes
from fairopt.instance.tolerances import SAME
from fairopt.validation import BoolArray, FloatArray, IntArray
from fairopt.wording import contrast, did_you_mean, joined

__all__ = ["Selection", "SelectionRow", "bounded", "check_row_names", "is_own", "selections_of"]


class SelectionRow(NamedTuple):
    """A row of a limit: its name, its users, (users,), its servers, (servers,), its bound, and who is in it where that is one user."""

    name: str
    users: BoolArray
    servers: BoolArray
    bound: Any
    only: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What a limit selects.

    Attributes
    ----------
    limit : Limit
    users : bool array (users,)
        The users that it selects, those for whom a task counts 0 included.
    servers : bool array (servers,)
    resource : int
        Position of the resource that counts; -1 if there is none.
    amounts : array (users,), or sparse as three arrays: users, servers, amounts; or None
        What a task counts, where that is no demand. The three arrays are sorted by user, then by server.
    counts : array (servers,)
        Servers that each row stands for.
    user_names, server_names : tuples of str
    queues : tuple of (str, bool array (users,))
        With ``each="queue"``, the name of each queue and the users below it.
    """

    limit: Limit
    users: BoolArray
    servers: BoolArray
    resource: int
    amounts: Any
    counts: FloatArray
    user_names: tuple[str, ...]
    server_names: tuple[str, ...]
    queues: tuple[tuple[str, BoolArray], ...] = ()

    def rows(self) -> Iterator[SelectionRow]:
        """Yield the rows of the limit, with names that no other row has."""
        name, bound = self.limit.name, self.limit.bound
        if self.limit.each is None:
            yield SelectionRow(name, self.users, self.servers, bound)
        elif self.limit.each == "user":
            for n in np.flatnonzero(self.users).tolist():
                own = np.zeros(self.users.size, bool)
                own[n] = True
                yield SelectionRow(f"{name} of {self.user_names[n]}", own, self.servers, bound, n)
        elif self.limit.each == "queue":
            for queue, below in self.queues:
                yield SelectionRow(f"{name} of {queue}", self.users & below, self.servers, bound)
        else:
            for i in np.flatnonzero(self.servers).tolist():
                there = np.zeros(self.servers.size, bool)
                there[i] = True
                number = self.counts[i]
                yield SelectionRow(f"{name} on {self.server_names[i]}", self.users, there, bound if number == 1 else bound * number)

    def per_task(self, kinds: Kinds) -> Any:
        """Return what a task counts, (users,), or (users, servers) where that depends on the server; 0 outside of the selection."""
        if self.resource >= 0:
            each = kinds.per_task(self.resource)
            return np.where(self.users if each.ndim == 1 else self.users[:, None] & self.servers, each, 0)
        if self.amounts is None:
            return np.where(self.users, 1, 0).astype(kinds.demands.dtype)
        if isinstance(self.amounts, tuple):
            table = np.zeros((self.users.size, self.servers.size), kinds.demands.dtype)
            users, servers, amounts = self.amounts
            table[users, servers] = amounts
            return table
        return np.where(self.users, self.amounts, 0)

    def coefficients(self, users: IntArray, servers: IntArray, dtype: Any = float) -> Any:
        """Return what a task counts on pairs of users and servers, if it is no demand, (pairs,); 0 where the amounts name no pair."""
        if self.amounts is None:
            return np.ones(users.size, dtype)
        if not isinstance(self.amounts, tuple):
            return self.amounts[users]
        known, size = self.amounts[0] * self.servers.size + self.amounts[1], self.amounts[2].size
        key = users * self.servers.size + servers
        place = np.minimum(np.searchsorted(known, key), size - 1)
        there = known[place] == key if size else np.zeros(users.size, bool)
        return np.where(there, self.amounts[2][place] if size else 0, 0)

    @property
    def exact(self) -> Selection:
        """The same with Fractions for its numbers."""
        limit = self.limit.exact
        amounts, given = self.amounts, limit.amounts
        if isinstance(amounts, tuple):
            names = [(self.user_names[n], self.server_names[i]) for n, i in zip(amounts[0], amounts[1], strict=True)]
            each = [given[user][server] if isinstance(given[user], Mapping) else given[user] for user, server in names]
            amounts = (*amounts[:2], objects(each))
        elif amounts is not None:
            amounts = objects([given.get(user, 0) if a else 0 for user, a in zip(self.user_names, amounts.tolist(), strict=True)])
        return replace(self, limit=limit, amounts=amounts, counts=fractions_of(self.counts))

    @property
    def counted(self) -> BoolArray:
        """For whom a task counts on some server, if it is no demand that counts, (users,)."""
        if self.amounts is None:
            return self.users
        if isinstance(self.amounts, tuple):
            found = np.zeros(self.users.size, bool)
            found[self.amounts[0]] = True
            return found
        return np.asarray(self.users & (self.amounts > 0))


def is_own(selection: Selection) -> bool:
    """Is each row of a limit one of a single user?"""
    return selection.limit.each == "user" or int(selection.counted.sum()) == 1


# From labels to positions --------------------------------------------------------------------------------------------------------


def labelled(limit: Limit, users: Sequence[str], servers: Sequence[str]) -> Limit:
    """Return a limit whose amounts are by label: those of an array are in the order of the instance, and zeros are left out."""
    array = limit.amounts
    if not isinstance(array, np.ndarray):
        return limit
    if array.shape not in ((len(users),), (len(users), len(servers))):
        raise InvalidInstance(
            f'limit "{limit.name}": the shape of its amounts is {array.shape}, expected ({len(users)},), one per user, or '
            f"({len(users)}, {len(servers)}), one per user and server"
        )
    if array.ndim == 1:
        return limit.replace(amounts={user: a for user, a in zip(users, array.tolist(), strict=True) if a != 0})
    rows = {user: {s: a for s, a in zip(servers, row, strict=True) if a != 0} for user, row in zip(users, array.tolist(), strict=True)}
    return limit.replace(amounts={user: row for user, row in rows.items() if row})


def select(limits: Sequence[Limit], counts: FloatArray, named: Named) -> tuple[Selection, ...]:
    """Return what limits select.

    Raises
    ------
    InvalidInstance
        A name is unknown, a requirement cannot be read, or nothing is selected.
    """
    users, servers, tree = tuple(named.users), tuple(named.servers), named.tree
    of_user, of_server, of_resource = ({name: k for k, name in enumerate(names)} for names in (users, servers, named.resources))
    nodes = {queue.name: node for node, queue in enumerate(tree.queues, 1)}
    known = Attributes([dict(each) for each in named.attributes])
    found = []
    for limit in limits:
        where = f'limit "{limit.name}"'
        resource = -1 if limit.resource is None else _place(where, "resource", limit.resource, of_resource)
        chosen = np.ones(len(users), bool)
        if limit.users is not None:
            chosen[:] = False
            chosen[[_place(where, "user", name, of_user) for name in limit.users]] = True
        queues: tuple[tuple[str, BoolArray], ...] = ()
        if limit.queues is not None or limit.each == "queue":
            names = list(nodes) if limit.queues is None else limit.queues
            queues = tuple((name, tree.below[_place(where, "queue", name, nodes)]) for name in names)
            if not queues:
                raise InvalidInstance(f"{where}: it has a row for each queue, and there are no queues; add queues, or leave each out")
            chosen &= np.logical_or.reduce([below for _, below in queues])
        rows = _servers(where, limit, known, of_server)
        amounts = _resolved(where, limit, chosen, rows, of_user, of_server)
        if not chosen.any():
            what = f"below {joined([*limit.queues], 5)}" if limit.queues else "in a queue"
            also = " and in its list of users" if limit.users and limit.queues else ""
            raise InvalidInstance(f"{where}: it selects nobody, as no user is {what}{also}; name others, or leave the limit out")
        found.append(Selection(limit, chosen, rows, resource, amounts, counts, users, servers, queues if limit.each == "queue" else ()))
    return tuple(found)


def _place(where: str, kind: str, name: str, known: Mapping[str, int]) -> int:
    if name not in known:
        there = f"; the {kind}s are {joined([*known], 8)}" if known else f"; there are no {kind}s"
        raise InvalidInstance(f'{where}: there is no {kind} "{name}"{did_you_mean(name, known) or there}')
    return known[name]


def _servers(where: str, limit: Limit, attributes: Attributes, known: Mapping[str, int]) -> BoolArray:
    """Return the servers that a limit selects, (servers,)."""
    if limit.servers is None:
        return np.ones(len(known), bool)
    if isinstance(limit.servers, str):
        if limit.servers not in known:
            try:
                chosen = attributes.where(limit.servers)
            except InvalidInstance as error:
                raise InvalidInstance(f"{where}, servers: {error}") from None
            if not chosen.any():
                raise InvalidInstance(f'{where}: no server meets "{limit.servers}"; compare it with the attributes of the servers')
            return chosen
        return np.asarray(np.arange(len(known)) == known[limit.servers])
    chosen = np.zeros(len(known), bool)
    chosen[[_place(where, "server", name, known) for name in limit.servers]] = True
    return chosen


def _resolved(
    where: str, limit: Limit, users: BoolArray, servers: BoolArray, of_user: Mapping[str, int], of_server: Mapping[str, int]
) -> Any:
    """Return the amounts of a limit as arrays: `Selection.amounts`."""
    if limit.amounts is None:
        return None
    assert isinstance(limit.amounts, Mapping)
    if not any(isinstance(amount, Mapping) for amount in limit.amounts.values()):
        array = np.zeros(users.size)
        for name, amount in limit.amounts.items():
            array[_place(where, "user", name, of_user)] = amount
        array[~users] = 0
        return array
    entries: list[tuple[int, int, Any]] = []
    there = np.flatnonzero(servers).tolist()
    for name, amount in limit.amounts.items():
        n = _place(where, "user", name, of_user)
        each: dict[int, Any] = dict.fromkeys(there, amount)
        if isinstance(amount, Mapping):
            each = {_place(where, "server", server, of_server): a for server, a in amount.items()}
        if users[n]:
            entries += [(n, i, a) for i, a in each.items() if a > 0 and servers[i]]
    entries.sort(key=lambda entry: entry[:2])
    columns = np.array([(n, i) for n, i, _ in entries], np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1], np.array([a for *_, a in entries], float)


# Checks --------------------------------------------------------------------------------------------------------------------------


def check_limits(selections: Sequence[Selection], queues: Sequence[Queue], guarantees: FloatArray) -> None:
    """Refuse names that are not unique, and limits below a guarantee of the same users, servers and resource.

    Limits with ``each="user"`` may share a name where they have no user in common.
    """
    first: dict[str, Limit] = {}
    for limit in (selection.limit for selection in selections):
        if not first.setdefault(limit.name, limit).each == limit.each == "user" and first[limit.name] is not limit:
            raise InvalidInstance(f'there are two limits "{limit.name}"; give each limit a name of its own')
    names: dict[str, str] = {}
    for queue in queues:
        for quota in queue.everywhere_and_on_groups:
            for resource in quota.limit:
                group = "" if quota is queue else f" on {quota.name}"
                names[f"{resource} of {queue.name}{group}"] = f'the limit of {resource} of queue "{queue.name}"'
    for selection in selections:
        for row in selection.rows():
            own = f'limit "{selection.limit.name}"'
            if row.name in names:
                raise InvalidInstance(f'{own}: its row "{row.name}" has the name of {names[row.name]}; choose another name')
            names[row.name] = f"a row of {own}"
        _check_guarantees(selection, queues, guarantees)


def check_row_names(
    selections: Sequence[Selection],
    queues: Sequence[Queue],
    shared: Iterable[str],
    users: Sequence[str],
    servers: Sequence[str],
    resources: Sequence[str],
    finite: BoolArray,
    limited: BoolArray,
) -> None:
    """Refuse rows of limits and of queues with the name of another row of every program of the instance.

    Parameters
    ----------
    shared : iterable of str
        Resources of the cluster.
    finite, limited : bool arrays (users,)
        Whose tasks, and whose parallelism, are limited.

    Raises
    ------
    InvalidInstance
    """
    stated = {row.name: f'limit "{each.limit.name}"' for each in selections for row in each.rows()}
    for queue in queues:
        stated |= {f"{name} of the cluster": 'queue "the cluster"' for name in queue.limit if queue.name == "the cluster"}
    if not stated:
        return
    taken = {f"{name} of the cluster": f'the shared resource "{name}"' for name in shared}
    taken |= {f"tasks of {users[n]}": f'the tasks of user "{users[n]}"' for n in np.flatnonzero(finite).tolist()}
    taken |= {f"servers of {users[n]}": f'the parallelism of user "{users[n]}"' for n in np.flatnonzero(limited).tolist()}
    for name, own in stated.items():
        what, at, server = name.rpartition(" @ ")
        other = taken.get(name) or (f'{what} of server "{server}"' if at and what in resources and server in servers else "")
        if other:
            raise InvalidInstance(f'{own}: its row "{name}" has the name of the row of {other}; choose another name')


def _check_guarantees(selection: Selection, queues: Sequence[Queue], guarantees: FloatArray) -> None:
    limit, everywhere = selection.limit, bool(selection.servers.all())
    where, bound = f'limit "{limit.name}"', float(limit.bound)
    if limit.counts_tasks and everywhere and (limit.each == "user" or selection.users.sum() == 1):
        for n in np.flatnonzero(selection.users & (guarantees > bound * (1 + SAME))).tolist():
            less, more = contrast(bound, float(guarantees[n]))
            raise InvalidInstance(
                f'{where} is {less} tasks, less than the guarantee of user "{selection.user_names[n]}", {more}; raise or lower one'
            )
    alone = limit.each == "queue" or (limit.each is None and limit.queues is not None and len(limit.queues) == 1)
    if limit.resource is None or not alone or limit.users is not None:
        return
    for queue in queues:
        if limit.queues is not None and queue.name not in limit.queues:
            continue
        for quota in queue.everywhere_and_on_groups:
            same = everywhere if quota is queue else bool((np.isin(selection.server_names, quota.servers) == selection.servers).all())  # type: ignore[union-attr]
            amount = float(quota.guarantee.get(limit.resource, 0))
            if same and amount > bound * (1 + SAME):
                less, more = contrast(bound, amount)
                raise InvalidInstance(
                    f'{where}: its bound of {limit.resource} is {less}, less than the guarantee of queue "{queue.name}", {more}; '
                    "raise or lower one"
                )


def selections_of(limits: Sequence[Limit] | None, counts: FloatArray, guarantees: FloatArray, named: Named) -> tuple[Selection, ...]:
    """Return what the limits of an instance select, checked.

    Raises
    ------
    InvalidInstance
    """
    if limits is None or (isinstance(limits, tuple | list) and not limits):
        return ()
    if isinstance(limits, str | Mapping | Limit) or not all(isinstance(limit, Limit) for limit in limits):
        raise InvalidInstance("limits must be a list of fairopt.Limit")
    by_label = [labelled(limit, named.users, named.servers) for limit in limits]
    selected = select(by_label, counts, named)
    check_limits(selected, named.queues, guarantees)
    return selected


def bounded(selections: Sequence[Selection], eligibility: BoolArray) -> BoolArray:
    """Return for whom some limit bounds the tasks on every server where they may run, whatever they demand, (users,)."""
    if not selections:
        return np.zeros(eligibility.shape[0], bool)
    covered = np.zeros(eligibility.shape, bool)
    for selection in selections:
        if selection.resource >= 0:
            continue
        if isinstance(selection.amounts, tuple):
            covered[selection.amounts[0], selection.amounts[1]] = True
        else:
            covered[np.ix_(selection.counted, selection.servers)] = True
    return np.asarray((covered | ~eligibility).all(axis=1))
