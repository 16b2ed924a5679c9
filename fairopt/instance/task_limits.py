"""Named limits that say no more than `tasks`: on the number of tasks of one user, wherever they run.

Notions that decide server by server take these, because they are no rows across servers there.

>>> from fairopt.instance.limits import Limit
>>> lab = Instance([[8], [8]], [[1], [1]], users=["a", "b"], limits=[Limit("three", 3, users=["a"]), Limit("five", 5)])
>>> as_tasks(lab).tasks, [limit.name for limit in as_tasks(lab).limits]
(array([ 3., inf]), ['five'])
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance.fractions import fraction_of
from fairopt.instance.instance import Instance
from fairopt.instance.limits import Limit

__all__ = ["as_tasks", "refuse_across_servers"]


def as_tasks(instance: Instance) -> Instance:
    """Return the instance in which such limits are numbers of tasks."""
    if not instance.limits:
        return instance
    tasks, others = instance.given("tasks").copy(), list[Limit]()
    for selection in instance.selections:
        limit = selection.limit
        single = limit.each == "user" or (limit.each is None and selection.users.sum() == 1)
        everywhere = not (instance.eligibility[selection.users] & ~selection.servers).any()
        if not (limit.counts_tasks and single and everywhere):
            others.append(limit)
            continue
        if limit.in_fractions and tasks.dtype != object:
            tasks = tasks.astype(object)
        bound = fraction_of(limit.bound) if tasks.dtype == object else limit.bound
        tasks[selection.users] = np.minimum(tasks[selection.users], bound)
    if len(others) == len(instance.limits):
        return instance
    found = instance.replace(tasks=tasks, limits=others)
    return found.exact if instance.capacities.dtype == object else found


def refuse_across_servers(instance: Instance, name: str) -> None:
    """Refuse limits that are about several servers, for a notion that decides server by server.

    Raises
    ------
    Unsupported
    """
    for selection in as_tasks(instance).selections:
        there = selection.servers & instance.eligibility[selection.counted].any(axis=0)
        if selection.limit.each != "server" and there.sum() > 1:
            raise Unsupported(
                f'"{name}" decides server by server, and limit "{selection.limit.name}" is about several servers together; limit each '
                'server by itself (each="server") or the tasks of one user, leave it out, or use "drfh" or another notion of '
                "the whole cluster"
            )
