"""How many servers a user is on at once, and what it can run on so many.

x[n,i] tasks of user n on row i are worth x[n,i] / rho[n,i] servers, rho[n,i] being what n runs on *one* server of the row: min c/d, or the
rate that was given. Under time division that is a part of the time of a server, and under division of resources the part that the user's
dominant resource there takes. With limited parallelism P[n],

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
    """Return sum_i x[n,i] / rho[n,i], the servers that each user's tasks, (users, servers), are worth, (users,)."""
    rho = instance.rates_of_one
    worth: FloatArray = np.divide(tasks, rho, out=np.zeros_like(tasks), where=(rho > 0) & np.isfinite(rho)).sum(axis=1)
    return worth


def tasks_within(instance: Instance, possible: FloatArray) -> FloatArray:
    """Return how many of so many possible tasks, (users, servers), each user can run, (users,): on its fastest servers first.

    With ``possible`` = gamma it is what each runs alone in the whole cluster, whether it has as many tasks or not.
    """
    total: FloatArray = possible.sum(axis=1)
    some = np.flatnonzero(instance.limited)
    if some.size:
        total[some] = fastest_first(possible[some], instance.rates_of_one[some], instance.parallelism[some])
    return total


def fastest_first(possible: FloatArray, rho: FloatArray, parallelism: npt.ArrayLike) -> FloatArray:
    """Return how many of the possible tasks, (..., servers), run on so many servers at once; rho is those of one server.

    max sum_i x[i] subject to x[i] <= possible[i] and sum_i x[i] / rho[i] <= parallelism: a knapsack of divisible things, filled by rho.

    >>> float(fastest_first(np.array([4.0, 6.0]), np.array([2.0, 3.0]), 3.0))   # two servers of 3 each, and one of 2
    8.0
    """
    order = np.argsort(-rho, axis=-1, kind="stable")
    tasks = np.take_along_axis(possible, np.broadcast_to(order, possible.shape), axis=-1)
    speed = np.take_along_axis(rho, order, axis=-1)
    filled = np.minimum(np.cumsum(safe_ratio(tasks, speed), axis=-1), np.asarray(parallelism)[..., None])
    part = np.diff(filled, axis=-1, prepend=0.0)
    run: FloatArray = np.minimum(tasks, part * speed).sum(axis=-1)
    return run
