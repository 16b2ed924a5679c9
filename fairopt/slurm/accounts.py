"""The accounts of an instance and their users, as Slurm has them; `fairopt.slurm.exporting` says which label is which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.clusters.holdings import Holder, owners_in_root
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, Instance
from fairopt.slurm.tiers import in_tier
from fairopt.wording import did_you_mean, joined

__all__ = ["ROOT", "UNKNOWN", "Accounts", "Place"]

ROOT = "root"
UNKNOWN = "\0"  # the users of an account that the instance does not name; no label is this
_MOST = 5  # names in a message


@dataclass(frozen=True, slots=True)
class Place:
    """An account, a user of it, or the association of that user for one partition."""

    account: str
    user: str = ""
    partition: str = ""


class Accounts:
    """The accounts of an instance and their users, as holders; ``places`` says what each is in Slurm."""

    def __init__(self, instance: Instance, users: Mapping[str, str]) -> None:
        tree = instance.tree
        self.holders: tuple[Holder, ...] = ()
        self.places: list[Place] = []
        self.unknown: list[str] = []  # accounts whose users the instance does not name
        holders: list[Holder] = []
        place_of: dict[int, int] = {0: -1}
        accounts: dict[str, int] = {}

        def add(holder: Holder, place: Place) -> int:
            holders.append(holder)
            self.places.append(place)
            return len(holders) - 1

        for node in tree.downwards():
            if not node:
                continue
            queue, parent = tree.queues[node - 1], int(tree.parent[node])
            if in_tier(queue.name):  # within the queue of a user, who holds it
                place_of[node] = place_of[parent]
                continue
            above = tree.name(parent) if parent else ROOT
            inner = [child for child in tree.children(node) if not in_tier(tree.name(child))]
            if "/" in queue.name and not inner:  # of an account above, or of one with FairShare=parent, which is no queue
                owner = above if queue.name.startswith(f"{above}/") else queue.name.partition("/")[0]
                user, _, partition = queue.name.removeprefix(f"{owner}/").partition("/")
                place = Place(owner, user, partition)
                place_of[node] = add(Holder(queue.name, place_of[parent], tree.below[node], True, queue.weight, queue), place)
            else:
                place_of[node] = accounts[queue.name] = add(
                    Holder(queue.name, place_of[parent], tree.below[node], False, queue.weight, queue), Place(queue.name)
                )
        in_root = owners_in_root(instance)
        for name in users:
            if name not in accounts and name not in in_root and name not in instance.users:
                there = [*accounts, *in_root]
                raise InvalidInstance(f'there is no account "{name}"{did_you_mean(name, there)}; there are {joined(there, _MOST)}')
        for name, members in in_root.items():
            account = add(Holder(name, -1, _mask(instance, members), False, 1.0, None), Place(name))
            for n in members:
                self._leaf(add, account, name, users.get(instance.users[n]) or users.get(name), _mask(instance, [n]))
        for node in tree.downwards():
            if not node or self.places[place_of[node]].user:
                continue
            name = tree.name(node)
            for n in tree.users_of(node):
                label, owner = instance.users[n], instance.owners[n] or instance.users[n]
                person = users[label] if label in users else users.get(name) if owner == name else owner
                self._leaf(add, place_of[node], name, person, _mask(instance, [int(n)]))
        self.holders = tuple(_merged(holders, self.places))
        self.unknown = list(dict.fromkeys(self.unknown))

    def _leaf(self, add: Callable[[Holder, Place], int], account: int, name: str, user: str | None, mask: BoolArray) -> None:
        """Add a user of an account; one without a name stands for those that the instance does not name."""
        if user is None:
            self.unknown.append(name)
        add(Holder(f"{name}/{user or ''}", account, mask, True, 1.0, None), Place(name, user or UNKNOWN))


def _mask(instance: Instance, users: list[int]) -> BoolArray:
    mask = np.zeros(instance.n_users, bool)
    mask[users] = True
    return mask


def _merged(holders: list[Holder], places: list[Place]) -> Iterator[Holder]:
    """Yield the holders; several leaves of one user become one."""
    first: dict[tuple[Place, int], int] = {}
    keep: list[int] = []
    masks: dict[int, BoolArray] = {}
    for h, (holder, place) in enumerate(zip(holders, places, strict=True)):
        key = (place, holder.parent) if holder.leaf else (place, -2 - h)
        if key in first:
            masks[first[key]] = masks[first[key]] | holder.users
        else:
            first[key] = h
            masks[h] = holder.users
            keep.append(h)
    position = {h: number for number, h in enumerate(keep)} | {-1: -1}
    places[:] = [places[h] for h in keep]
    for h in keep:
        old = holders[h]
        yield Holder(old.label, position[old.parent], masks[h], old.leaf, old.weight, old.queue)
