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

from dataclasses import asdict, dataclass
from typing import Any

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
    work : float or None
        None where no speeds are given.
    dominant_resource : str
    dominant_share : float
        The largest part of the cluster's capacity of a resource that the owner holds, and of which resource.
    """

    name: str
    users: int
    tasks: float
    work: float | None
    dominant_resource: str
    dominant_share: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; work only where speeds are given."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def owner_holdings(allocation: Allocation) -> tuple[OwnerHoldings, ...]:
    """Return what each owner holds, in the order of the users."""
    instance = allocation.instance
    owners = np.array(owners_of(instance), dtype=object)
    tasks, work, amounts, found = allocation.tasks_per_user, allocation.work, instance.held_of(allocation.tasks), []
    for name in dict.fromkeys(owners.tolist()):
        mine = owners == name
        parts = safe_ratio(amounts[mine].sum(axis=0), instance.total_capacity)
        r = int(np.argmax(parts))
        resource = instance.resources[r] if parts[r] > 0 else ""
        done = None if instance.speeds_given is None else float(work[mine].sum())
        found.append(OwnerHoldings(name, int(mine.sum()), float(tasks[mine].sum()), done, resource, float(parts[r])))
    return tuple(found)
