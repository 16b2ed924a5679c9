"""An instance whose tasks are units of work: where each server compares all that a user does, speeds are units of its tasks.

A task on row i that takes d[n,i,r] and does the work speed[n,i] is speed[n,i] tasks that take d[n,i,r] / speed[n,i] and do the work 1.

>>> from fairopt.instance import Instance
>>> lab = Instance([[8], [8]], [[1]], speeds=[[1, 0.5]])
>>> in_units_of_work(lab).demands_by_kind.tolist(), in_tasks(lab, np.array([[8.0, 4.0]])).tolist()
([[[1.0], [2.0]]], [[8.0, 8.0]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance.instance import Instance
from fairopt.instance.limits import Limit
from fairopt.instance.task_limits import as_tasks
from fairopt.validation import FloatArray
from fairopt.wording import figure, named

__all__ = ["in_tasks", "in_units_of_work", "refuse_counted_tasks"]


def in_units_of_work(instance: Instance) -> Instance:
    """Return the instance in units of work; in fractions of an instance in fractions.

    Numbers of tasks must be no question of the server: see `refuse_counted_tasks`.
    """
    instance = as_tasks(instance)
    if instance.speeds_given is None:
        return instance
    exact = instance.capacities.dtype == object
    speeds = _positive(instance)
    fastest = np.where(instance.eligibility, instance.speeds, 0).max(axis=1)
    finite = instance.tasks < np.inf
    tasks = instance.tasks.copy()
    tasks[finite] = tasks[finite] * fastest[finite]
    work = instance.replace(
        demands=instance.demands_by_kind[:, instance.kind_of] / speeds[:, :, None],
        rates=None if instance.rates_per_server is None else instance.rates_per_server * speeds,
        tasks=tasks,
        speeds=None,
        eligibility=instance.eligibility,
        limits=[_in_work(instance, k, speeds) for k in range(len(instance.limits))],
    )
    return work.exact if exact else work


def in_tasks(instance: Instance, work: FloatArray) -> FloatArray:
    """Return the tasks, (users, servers), that do this work."""
    return work if instance.speeds_given is None else np.asarray(work / _positive(instance))


def refuse_counted_tasks(instance: Instance, what: str) -> None:
    """Refuse a number of tasks of a user whose speeds differ: how much work it allows depends on where they run.

    Raises
    ------
    Unsupported
        ``what`` says who cannot follow that.
    """
    if instance.speeds_given is None:
        return
    runs, speeds = instance.eligibility, instance.speeds_given
    slowest, fastest = np.where(runs, speeds, np.inf).min(axis=1), np.where(runs, speeds, 0).max(axis=1)
    for n in np.flatnonzero((as_tasks(instance).tasks < np.inf) & (slowest < fastest)).tolist():
        slow, fast = (instance.servers[int(np.flatnonzero(runs[n] & (speeds[n] == each[n]))[0])] for each in (slowest, fastest))
        does = f"{figure(float(slowest[n]))} on {named(slow)} and {figure(float(fastest[n]))} on {named(fast)}"
        raise Unsupported(
            f'user "{instance.users[n]}" has {figure(float(as_tasks(instance).tasks[n]))} tasks, and the work that one does is {does}; '
            f'{what}, so leave its number of tasks out, or use "cdrf", "tsf" or "drfh"'
        )


def _positive(instance: Instance) -> Any:
    speeds: Any = instance.speeds
    return np.where(speeds > 0, speeds, speeds * 0 + 1)  # nobody runs where its speed is 0


def _in_work(instance: Instance, k: int, speeds: Any) -> Limit:
    """Return a limit on tasks, or on amounts by user, as one on amounts by server of a unit of work."""
    limit, selection = instance.limits[k], instance.selections[k]
    if selection.resource >= 0:
        return limit
    each = selection.per_task(instance.kinds)
    table = np.where(selection.servers, each if each.ndim == 2 else each[:, None], 0) / speeds
    amounts = {
        instance.users[n]: {instance.servers[i]: table[n, i] for i in np.flatnonzero(table[n]).tolist()}
        for n in np.flatnonzero((table != 0).any(axis=1)).tolist()
    }
    return limit.replace(amounts=amounts)
