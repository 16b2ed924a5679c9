"""Who owns the tasks of an instance: its users, summed up by owner.

An owner often runs tasks of several shapes, and each shape is a user. The owner of a user is the one that the instance names
(``owners``, in files ``owner``), else the queue that the user is in, else the user itself.

>>> from fairopt.instance.queues import Queue
>>> users, queues = ["chem/1 cpu", "y", "guest"], ["chem/ann", "bio", None]
>>> tree = [Queue("chem/ann"), Queue("bio")]
>>> owners_of(Instance([[9]], [[1], [2], [3]], users=users, queues=tree, queue_of=queues, owners={"chem/1 cpu": "chem"}))
('chem', 'bio', 'guest')
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.allocation import Allocation
from fairopt.instance import Instance, safe_ratio

__all__ = ["OwnerHoldings", "owner_holdings", "owners_of"]


def owners_of(instance: Instance) -> tuple[str, ...]:
    """Return the owner of each user."""
    return tuple(owner or queue or user for owner, queue, user in zip(instance.owners, instance.queue_of, instance.users, strict=True))


@dataclass(frozen=True, slots=True)
class OwnerHoldings:
    """What an owner holds.

    Attributes
    ----------
    name : str
    users : int
    tasks : float
    dominant_resource : str
    dominant_share : float
        The largest part of the cluster's capacity of a resource that the owner holds, and of which resource.
    """

    name: str
    users: int
    tasks: float
    dominant_resource: str
    dominant_share: float


def owner_holdings(allocation: Allocation) -> tuple[OwnerHoldings, ...]:
    """Return what each owner holds, in the order of the users."""
    instance = allocation.instance
    owners = np.array(owners_of(instance), dtype=object)
    tasks, amounts, found = allocation.tasks_per_user, instance.held_of(allocation.tasks), []
    for name in dict.fromkeys(owners.tolist()):
        mine = owners == name
        parts = safe_ratio(amounts[mine].sum(axis=0), instance.total_capacity)
        r = int(np.argmax(parts))
        resource = instance.resources[r] if parts[r] > 0 else ""
        found.append(OwnerHoldings(name, int(mine.sum()), float(tasks[mine].sum()), resource, float(parts[r])))
    return tuple(found)
