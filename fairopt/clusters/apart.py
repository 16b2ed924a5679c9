"""Users whose tasks differ by server, taken apart: one part for each kind of server that the user is on.

On servers where a task of the user takes the same and does the same work, its tasks are those of one part, and the parts are users of an
instance in which nothing differs by server. So whole tasks can be placed as if every part were a user, and the user gets those of its
parts together: never more than its own limits allow, nor than the divisible number rounded up.

>>> import fairopt as fo
>>> lab = fo.Instance([[8], [8]], [[[1], [2]], [[1], [1]]], users=["train", "infer"], servers=["a100", "v100"])
>>> apart = taken_apart(lab, np.array([[4.5, 1.5], [0.0, 5.0]]))
>>> apart.instance.users, apart.instance.demands.tolist(), apart.tasks.tolist()
(('train on a100', 'train on v100', 'infer'), [[1.0], [2.0], [1.0]], [[4.5, 0.0], [0.0, 1.5], [0.0, 5.0]])
>>> apart.together(apart.tasks).tolist()
[[4.5, 1.5], [0.0, 5.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.limit_merging import split
from fairopt.instance.limits import Limit
from fairopt.instance.tolerances import WRITTEN

__all__ = ["Apart", "taken_apart"]


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """The parts of users.

    Attributes
    ----------
    instance : Instance
        Its users are the parts; nothing differs by server.
    tasks : array (parts, servers)
    user : int array (parts,)
        The user of each part.
    n_users : int
    """

    instance: Instance
    tasks: FloatArray
    user: IntArray
    n_users: int

    def together(self, tasks: FloatArray) -> FloatArray:
        """Return the tasks of users, (users, ...), from those of their parts, (parts, ...)."""
        found = np.zeros((self.n_users, *tasks.shape[1:]))
        np.add.at(found, self.user, tasks)
        return found


def taken_apart(instance: Instance, tasks: FloatArray) -> Apart:
    """Take users apart by kind of server; where nothing differs, each user is one part and the instance is the same.

    Parameters
    ----------
    tasks : array (users, servers)
        A user has a part for each kind of server that it has tasks on, and one if it has none.
    """
    if not instance.differs_by_server:
        return Apart(instance, tasks, np.arange(instance.n_users), instance.n_users)
    user: list[int] = []
    where: list[FloatArray] = []
    names: list[str] = []
    taken = {*instance.users, *(queue.name for queue in instance.queues)}
    for n, name in enumerate(instance.users):
        kind = number_distinct([instance.kind_of[:, None].astype(float), instance.speeds[n][:, None]])
        held = np.bincount(kind, weights=tasks[n])
        kinds = np.flatnonzero(held > WRITTEN * held.max(initial=0.0)) if held.any() else kind[:1]
        for k in kinds.tolist():
            user.append(n)
            where.append((kind == k).astype(float))
            label = name if kinds.size == 1 else f"{name} on {instance.servers[int(np.argmax((kind == k) & (tasks[n] > 0)))]}"
            while label in taken and label != name:
                label += "'"
            taken.add(label)
            names.append(label)
    of, inside = np.array(user), np.array(where) > 0
    first = inside.argmax(axis=1)
    parts = {name: [names[p] for p in np.flatnonzero(of == n)] for n, name in enumerate(instance.users)}
    own = tasks[of] * inside
    made = Instance(
        instance.capacities,
        instance.demands_of(of, first),
        weights=instance.weights[of],
        eligibility=instance.eligibility[of] & inside,
        counts=instance.counts,
        rates=None if instance.rates_per_server is None else instance.rates_per_server[of],
        queues=instance.queues,
        queue_of=[instance.queue_of[n] for n in user],
        shared=instance.shared,
        limits=[*split(instance, parts), *_own_limits(instance, tasks, parts)],
        hosts=instance.hosts,
        attributes=instance.attributes,
        owners=[instance.owners[n] for n in user],
        units=dict(instance.units),
        users=names,
        servers=instance.servers,
        resources=instance.resources,
    )
    return Apart(made, own, of, instance.n_users)


def _own_limits(instance: Instance, tasks: FloatArray, parts: dict[str, list[str]]) -> list[Limit]:
    """Return the limits of users on their parts together: tasks, rounded up at most once, and servers at once."""
    found = []
    most = np.minimum(np.ceil(tasks.sum(axis=1) * (1 - WRITTEN)), instance.tasks)
    for n, (name, own) in enumerate(parts.items()):
        found.append(Limit(f"tasks of user {n + 1}", float(most[n]), users=own))
        if np.isfinite(instance.parallelism[n]):
            per_task = {
                server: 1 / rate
                for server, rate in zip(instance.servers, instance.rates_of_one[instance.users.index(name)].tolist(), strict=True)
                if 0 < rate < np.inf
            }
            found.append(Limit(f"servers at once of user {n + 1}", float(instance.parallelism[n]), amounts=dict.fromkeys(own, per_task)))
    return found
