"""Whole tasks and where they run: the program that turns an allocation of divisible tasks into one that a scheduler can carry out.

A row i of servers stands for counts[i] identical ones. x[p] is how many tasks the pair p = (user n, row i) has:

    x[p] whole,  0 <= x[p] <= most[p] = counts[i] floor(min_r c[i,r] / d[n,r]),   A x <= b,   y[n] = sum of x[p] over the pairs of n

A x <= b are the capacities of rows, what there is of resources of the cluster, the limits of queues, the parallelism of users, and what
single servers allow of large tasks: where d[n,r] > c[i,r] / (k + 1), no server of the row holds more than k of them, so that  sum of x[p]
over these n <= k counts[i]  (k = 1, 2, 3).

Three goals, each with the outcome of the one before kept:

    numbers   maximise  sum_n part[n] more[n] - (N + 1) short[n],   y[n] + short[n] = floor[n] + more[n],   more[n] in {0, 1}
    pairs     minimise  the number of pairs with x[p] > 0
    spread    minimise  sum_p x[p] / rho[p],  the number of servers that the tasks fill by their dominant resource

Programs of more than 2,000 pairs are solved as linear ones instead: with y[n] = floor[n] + part[n], minimise the sum of x[p] / most[p],
and round every pair down. Who fills up what is left is decided where the tasks are put on single servers.

Branch and cut ends after a number of nodes; where the fewest pairs are not proved by then, the spread is that of the pairs found.

floor[n] and part[n] are the whole part and the rest of the number of tasks that n has in the allocation. So nobody loses a task that fits,
and the largest remainders are rounded up as far as there is room (with a single bound on the number of tasks: the method of Hamilton). The
answer depends on the instance and on the number of tasks of each user, and not on where an engine placed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.shared import within_shared
from fairopt.instance.tolerances import REACHED
from fairopt.program.cluster_limits import capacity_limits, eligible_pairs, parallelism_limits, shared_limits
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.queue_limits import Row, stack_rows

__all__ = ["WholePlacement"]

_NO_PART = 1e-6  # a smaller part of a task is rounding
_LARGEST = 3  # of k


@dataclass(frozen=True, slots=True, eq=False)
class WholePlacement:
    """The program.

    Attributes
    ----------
    pair_users, pair_servers : int arrays (pairs,)
    most : array (pairs,)
    servers_per_task : array (pairs,)
        1 / rho[p].
    limits : Limits
    floors, parts : arrays (users,)
    """

    pair_users: IntArray
    pair_servers: IntArray
    most: FloatArray
    servers_per_task: FloatArray
    limits: Limits
    floors: FloatArray
    parts: FloatArray

    @classmethod
    def of(cls, instance: Instance, tasks: FloatArray, rows: Sequence[Row]) -> WholePlacement:
        """Return the program that rounds ``tasks``, (users,), within these rows of queues."""
        users, servers = eligible_pairs(instance)
        rho = instance.replace(rates=None).rates_of_one[users, servers]
        single = np.floor(rho * (1 + REACHED))
        floors = np.floor(tasks * (1 + REACHED) + REACHED)
        parts = np.round(tasks - floors, 6)
        parts[(parts < _NO_PART) | (floors + 1 > instance.tasks)] = 0.0
        limits = Limits.stack(
            [
                capacity_limits(instance, users, servers),
                shared_limits(instance, users, servers),
                stack_rows(instance.kinds, rows, users, servers),
                parallelism_limits(instance, users, servers),
                _large_tasks(instance, users, servers),
            ]
        )
        within = np.floor(within_shared(instance, np.full(instance.n_users, np.inf)) * (1 + REACHED))
        return cls(users, servers, np.minimum(single * instance.counts[servers], within[users]), 1.0 / rho, limits, floors, parts)


def _large_tasks(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """Return what single servers allow of tasks that need more than a half, a third, a quarter of one of its resources."""
    rows: list[IntArray] = []
    bounds: list[float] = []
    for i in np.flatnonzero(instance.counts > 1):
        here = np.flatnonzero(servers == i)
        for r in np.flatnonzero(instance.capacities[i] > 0):
            part = instance.kinds.of_pairs(users[here], servers[here], int(r)) / instance.capacities[i, r]
            for k in range(1, _LARGEST + 1):
                large = here[part > (1 + REACHED) / (k + 1)]
                if large.size:
                    rows.append(large)
                    bounds.append(float(k * instance.counts[i]))
    sizes = [row.size for row in rows]
    entries = (np.ones(sum(sizes)), np.concatenate([*rows, np.empty(0, np.int64)]), np.concatenate([[0], np.cumsum(sizes)]))
    matrix = sp.csr_array(entries, shape=(len(rows), users.size))
    return Limits.of(LimitKind.LARGE_TASKS, matrix, np.array(bounds), np.arange(len(rows)))
