"""Who owns the tasks of an instance: its users, summed up by owner.

An owner often runs tasks of several shapes, and each shape is a user. The owner of a user is the queue that it is in; where that is the
queue of a person in an account, ``account/person``, it is the account. The owner of a user in the root is what its label has before the
first slash: importers name users ``owner/shape``.

>>> from fairopt.instance.queues import Queue
>>> tree = [Queue("chem"), Queue("chem/ann", "chem"), Queue("bio")]
>>> lab = Instance([[9]], [[1], [2], [3]], users=["x", "y", "guest/1 cpu"], queues=tree, queue_of=["chem/ann", "bio", None])
>>> owners_of(lab)
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
    parent = {queue.name: queue.parent for queue in instance.queues}
    owners = []
    for user, queue in zip(instance.users, instance.queue_of, strict=True):
        if queue is None:
            owner = user.partition("/")[0]
            owners.append(owner if owner and owner not in parent else user)
        else:
            above = parent[queue]
            owners.append(above if above is not None and queue.startswith(f"{above}/") else queue)
    return tuple(owners)


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
    tasks, found = allocation.tasks_per_user, []
    for name in dict.fromkeys(owners.tolist()):
        mine = owners == name
        parts = safe_ratio(tasks[mine] @ instance.demands[mine], instance.total_capacity)
        r = int(np.argmax(parts))
        resource = instance.resources[r] if parts[r] > 0 else ""
        found.append(OwnerHoldings(name, int(mine.sum()), float(tasks[mine].sum()), resource, float(parts[r])))
    return tuple(found)
