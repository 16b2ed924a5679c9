"""What an instance carries and no notion reads: hosts and attributes of rows of servers, owners of users; and where it goes with its row.

Rows that are merged keep all their hosts, the attributes that they have in common, and the owner if they have one owner.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairopt.errors import InvalidInstance
from fairopt.instance.attributes import RowAttributes, common
from fairopt.instance.labelled import rows_of
from fairopt.validation import IntArray
from fairopt.wording import written

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["OF_SERVERS", "OF_USERS", "changed_by_label", "changed_facts", "expanded_facts", "merged_facts", "owners_of", "places_after"]

OF_SERVERS, OF_USERS = ("hosts", "attributes"), ("owners",)


def owners_of(given: Any, users: Sequence[str]) -> tuple[str | None, ...]:
    """Return the owner of each user, checked; None where none is given.

    Raises
    ------
    InvalidInstance
    """
    if given is None:
        return (None,) * len(users)
    owners = [None if owner is None or owner != owner else owner for owner in rows_of("owners", given, users, "user")]
    for user, owner in zip(users, owners, strict=True):
        if owner is not None and not (isinstance(owner, str) and owner.strip()):
            raise InvalidInstance(f'the owner of "{user}" is {written(owner)}; it must be text that is not blank, or None')
    return tuple(owners)


def merged_facts(instance: Instance, server_group: IntArray, user_group: IntArray) -> dict[str, Any]:
    """Return the hosts, attributes and owners of merged rows, as arguments of the merged instance; ``group`` says into which each goes."""
    found: dict[str, Any] = {}
    if any(instance.hosts):
        found["hosts"] = [_together(instance, rows) for rows in _members(server_group)]
    if any(instance.attributes):
        found["attributes"] = [common([instance.attributes[i] for i in rows]) for rows in _members(server_group)]
    if any(instance.owners):
        of_group = [{instance.owners[n] for n in users} for users in _members(user_group)]
        found["owners"] = [next(iter(owners)) if len(owners) == 1 else None for owners in of_group]
    return found


def expanded_facts(instance: Instance, row: IntArray) -> dict[str, Any]:
    """Return the hosts, attributes and owners of an instance with a row for each single server; ``row`` is the original one of each."""
    found: dict[str, Any] = {"owners": instance.owners}
    if any(instance.hosts):
        own = zip(instance.hosts, instance.counts.astype(int).tolist(), strict=True)
        found["hosts"] = [(name,) if name else () for names, number in own for name in names or [""] * number]
    if any(instance.attributes):
        found["attributes"] = [instance.attributes[i] for i in row.tolist()]
    return found


def _members(group: IntArray) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(int(group.max()) + 1)]
    for row, g in enumerate(group.tolist()):
        members[g].append(row)
    return members


def _together(instance: Instance, rows: list[int]) -> tuple[str, ...]:
    """Return the hosts of rows; none if the hosts of one are not known."""
    if any(instance.counts[i] and not instance.hosts[i] for i in rows):
        return ()
    return tuple(itertools.chain.from_iterable(instance.hosts[i] for i in rows))


def changed_facts(instance: Instance, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hosts, attributes and owners of an instance after changes of other arguments, as arguments of the new instance.

    Where capacities or demands are given anew they go with the labels, else each row keeps its own. A row of servers whose count changes
    has no hosts any more: nobody knows which of them are there.
    """
    servers, users = (places_after(instance, changes, *names) for names in (("servers", "capacities"), ("users", "demands")))
    found: dict[str, Any] = {
        "hosts": [() if i is None else instance.hosts[i] for i in servers] if any(instance.hosts) else None,
        "attributes": [None if i is None else instance.attributes[i] for i in servers] if any(instance.attributes) else None,
        "owners": [None if n is None else instance.owners[n] for n in users] if any(instance.owners) else None,
    }
    if found["hosts"] and "counts" in changes:
        counts = changes["counts"]
        if counts is None:
            counts = [1] * len(servers)
        elif isinstance(counts, Mapping):
            counts = rows_of("counts", counts, instance.servers, "server", instance.counts.tolist())
        given: list[Any] = list(counts)
        if len(given) == len(servers):  # a wrong number is refused later
            found["hosts"] = [names if len(names) == number else () for names, number in zip(found["hosts"], given, strict=True)]
    return found


def places_after(instance: Instance, changes: Mapping[str, Any], labels: str, numbers: str) -> list[int | None]:
    """Return where each label of the changed instance is in the present one; None: nowhere."""
    present = getattr(instance, labels)
    after = present if changes.get(labels) is None else list(changes[labels])
    if numbers in changes and not isinstance(changes[numbers], Mapping):
        place = {label: i for i, label in enumerate(present)}
        return [place.get(label) for label in after]
    return list(range(len(present)))


def changed_by_label(name: str, given: Mapping[str, Any], instance: Instance) -> list[Any]:
    """Return the hosts, attributes or owners with those of some labels changed; of attributes by name, and None removes one.

    Raises
    ------
    InvalidInstance
        A label is not there.
    """
    if name == "owners":
        return rows_of(name, given, instance.users, "user", instance.owners)
    if name == "attributes":
        present = dict(zip(instance.servers, instance.attributes, strict=True))
        given = {server: _changed(present.get(server), change) for server, change in given.items()}
        return rows_of(name, given, instance.servers, "server", instance.attributes)
    return rows_of(name, given, instance.servers, "server", instance.hosts)


def _changed(present: RowAttributes | None, change: Any) -> Any:
    if present is None or not isinstance(change, Mapping):
        return change
    return {name: value for name, value in {**present, **change}.items() if value is not None}
