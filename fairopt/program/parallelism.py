"""Parallelism: how many servers a user is on at once, and how many tasks it can run on a limited number of servers.

x[n,i] tasks of user n on row i count as x[n,i] / rho[n,i] servers, where rho[n,i] is the number of tasks that n runs alone on *one* server
of the row: min c/d, or the rate given. Under time division this is a fraction of a server's time. Under resource division it is the
fraction of its dominant resource there. With limited parallelism P[n],

    sum_i x[n,i] / rho[n,i] <= P[n].

>>> instance = Instance([[4], [2]], [[1], [1]], parallelism=[1.5, np.inf])
>>> servers_at_once(instance, np.array([[4.0, 1.0], [4.0, 2.0]]))
array([1.5, 2. ])
>>> tasks_within(instance, instance.rates)   # alone in the cluster
array([5., 6.])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairopt.instance import FloatArray, Instance, safe_ratio

__all__ = ["fastest_first", "servers_at_once", "tasks_within"]


def servers_at_once(instance: Instance, tasks: FloatArray) -> FloatArray:
    """Return sum_i x[n,i] / rho[n,i], (users,), for tasks x of shape (users, servers)."""
    rho = instance.rates_of_one
    worth: FloatArray = np.divide(tasks, rho, out=np.zeros_like(tasks), where=(rho > 0) & (rho < np.inf)).sum(axis=1)
    return worth


def tasks_within(instance: Instance, possible: FloatArray) -> FloatArray:
    """Return how many of its possible tasks, (users, servers), each user can run within its parallelism, (users,).

    It uses its fastest servers first. With ``possible`` = gamma this is what each user could run alone in the cluster (limits on tasks are
    ignored).
    """
    total: FloatArray = possible.sum(axis=1)
    some = np.flatnonzero(instance.limited)
    if some.size:
        total[some] = fastest_first(possible[some], instance.rates_of_one[some], instance.parallelism[some])
    return total


def fastest_first(possible: FloatArray, rho: FloatArray, parallelism: npt.ArrayLike) -> FloatArray:
    """Return how many of the possible tasks, (..., servers), run on ``parallelism`` servers at once; rho is the rate on one server.

    max sum_i x[i] subject to x[i] <= possible[i] and sum_i x[i] / rho[i] <= parallelism: a continuous knapsack, filled by decreasing rho.

    >>> float(fastest_first(np.array([4.0, 6.0]), np.array([2.0, 3.0]), 3.0))   # two servers at rate 3, one at rate 2
    8.0

    Where rho is infinite, tasks need nothing, and take no part of the servers at once.
    """
    order = np.argsort(-rho, axis=-1, kind="stable")
    tasks = np.take_along_axis(possible, np.broadcast_to(order, possible.shape), axis=-1)
    speed = np.take_along_axis(rho, order, axis=-1)
    endless = speed == np.inf
    speed = np.where(endless, 0, speed)
    filled = np.minimum(np.cumsum(safe_ratio(np.where(endless, 0, tasks), speed), axis=-1), np.asarray(parallelism)[..., None])
    part = np.diff(filled, axis=-1, prepend=0)
    run: FloatArray = np.where(endless, tasks, np.minimum(tasks, part * speed)).sum(axis=-1)
    return run
