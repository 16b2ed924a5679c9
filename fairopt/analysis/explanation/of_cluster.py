"""Resources of the whole cluster in an explanation: which leave a user no room, and whether they stop it.

A shared resource leaves no room if nothing of it is left; for whole tasks, if less is left than a task demands. It stops a user on all
servers at once. It is a bottleneck under the same condition as a resource of a server (`fairopt.analysis.explanation.room`): nobody who
holds some of it has a larger share; in a tree of queues, and if the goal is a sum, it has a price.

>>> import fairopt as fo
>>> pool = fo.Instance([[20]], [[1, 1], [1, 0]], shared={"ansys": 4}, resources=["cpu"], users=["L", "C"])
>>> [each.words(pool) for each in full_of_cluster(fo.solve(pool, "max-min"), 0)]
['all 4 ansys of the cluster are in use']
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.analysis.explanation import Blocker, Number, number
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.fractions import rounding
from fairopt.instance.shared import limit_name
from fairopt.instance.tolerances import FITS, WRITTEN

__all__ = ["FullOfCluster", "blockers_of_cluster", "full_of_cluster"]

_HOLDERS = 3


@dataclass(frozen=True, slots=True, eq=False)
class FullOfCluster:
    """A resource of the cluster that leaves a user no room.

    Attributes
    ----------
    resource : int
    stops : bool
        Is it a bottleneck of the user?
    held : array (users,)
        How much each user holds of it.
    """

    resource: int
    stops: bool
    held: FloatArray
    amount: Number

    def words(self, instance: Instance) -> str:
        """Return it as a clause: "all 10 ansys of the cluster are in use"."""
        whole = bool(self.held.sum() >= self.amount * (1 - rounding(WRITTEN, self.held)))
        name = instance.resources[self.resource]
        there = f"{instance.amount(self.amount, name, 6)} of the cluster"
        left = instance.amount(max(self.amount - number(self.held.sum()), self.amount * 0), name)
        return f"all {there} are in use" if whole else f"of {there}, no more than {left} can be had"


def full_of_cluster(allocation: Allocation, user: int) -> list[FullOfCluster]:
    """Return the resources of the cluster that leave a user no room, those that stop it first."""
    instance, found = allocation.instance, list[FullOfCluster]()
    whole = allocation.certificate.whole_tasks
    for k, amount in enumerate(instance.shared_capacity):
        r = instance.n_server_resources + k
        held, demand = instance.held_of(allocation.tasks)[:, r], instance.demands_by_row(user)[instance.eligibility[user], r]
        left, same = amount - held.sum(), rounding(WRITTEN, held)
        if not (demand > 0).any() or not (left < demand[demand > 0].min() * (1 - rounding(FITS, held)) if whole else left <= same * amount):
            continue
        found.append(FullOfCluster(r, _stops(allocation, user, r, held > 0), held, number(amount)))
    return sorted(found, key=lambda each: not each.stops)


def _stops(allocation: Allocation, user: int, r: int, holders: BoolArray) -> bool:
    """Say whether a full resource of the cluster stops a user; True for schedules and whole tasks, where it cannot be decided."""
    if not isinstance(allocation.question, Optimum) or allocation.certificate.whole_tasks:
        return True
    name = limit_name(allocation.instance.resources[r])
    if allocation.instance.is_tree and allocation.levels:  # shares of users in different queues say nothing
        number = allocation.level_of_user[user]
        level = None if number is None else allocation.levels[number - 1]
        return level is None or (level.prices is None and not level.queue_prices) or level.queue_prices.get(name, 0) > 0
    if allocation.levels:
        shares = allocation.shares
        return bool((shares[holders] <= shares[user] * (1 + rounding(WRITTEN, shares))).all())
    return allocation.queue_prices.get(name, 0) > 0


def blockers_of_cluster(allocation: Allocation, user: int) -> tuple[Blocker, ...]:
    """Return these resources as `Blocker`, with the server ""."""
    instance, level = allocation.instance, allocation.level_of_user[user]
    prices = allocation.queue_prices if level is None else allocation.levels[level - 1].queue_prices
    return tuple(
        Blocker(
            server="",
            resource=instance.resources[each.resource],
            capacity=each.amount,
            used=number(each.held.sum()),
            own=number(each.held[user]),
            bottleneck=each.stops,
            holders=tuple((instance.users[m], number(each.held[m])) for m in _others(each.held, user)),
            price=prices.get(limit_name(instance.resources[each.resource])),
        )
        for each in full_of_cluster(allocation, user)
    )


def _others(held: FloatArray, user: int) -> list[int]:
    return [int(m) for m in np.argsort(-held, kind="stable")[: _HOLDERS + 1] if held[m] > 0 and m != user][:_HOLDERS]
