"""The most work that a user could do alone where tasks take other amounts, and do other work, on other servers.

    W[n] = max over x of sum_g worth[n,g] x[g]    subject to    sum_g use[n,r,g] x[g] <= bound[n,r],  0 <= x[g] <= most[n,g]

over groups g of rows of servers on which nobody's demands and speeds differ. Each user has a linear program of its own, with a column for
each group and a row for each resource that is pooled.

* Of a pool (`work_of_pool`, for `drfh`) the rows are all resources, with the capacity of the whole cluster. A group offers no more than its
  servers could run if only their most plentiful resource counted: most[n,g] = sum of counts[i] max_r c[i,r] / d[n,i,r].
* Alone with its slice of every server and of every shared resource (`work_of_slice`, for `finish-time`) there is a row for its tasks, too.
* Alone on its servers (`work_alone`, for `cdrf` and `tsf`) the rows are the resources of the whole cluster, and most is the sum of gamma.

Where demands are equal everywhere and every speed is 1 these are min_r C[r] / d[n,r], and the sum of gamma within the shared resources.

>>> lab = Instance([[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1, 0.5], [1, 1]])
>>> work_alone(lab, lab.rates)  # 8 tasks on the first server, and 4 that count half on the second
array([10., 16.])
>>> work_of_pool(lab)  # 16 of the pool; the second server offers what 4 tasks take there: 8 + 0.5 * 4
array([10., 16.])
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.fractions import fractions_of
from fairopt.instance.shared import within_shared
from fairopt.program.parallelism import fastest_first

__all__ = ["work_alone", "work_of_pool", "work_of_slice"]


def work_of_pool(instance: Instance, m: FloatArray | None = None) -> FloatArray:
    """Return W[n] of the whole cluster as one pool, (users,): what `drfh` compares a user's work with. Fractions of fractions.

    With the weights of resources ``m``, (resources,), a task takes m[r] d[n,i,r], and the most plentiful resource is one that counts. Where
    nothing that counts is taken, a group offers what its servers could run if only their most plentiful resource counted.

    >>> work_of_pool(Instance([[8, 4], [8, 9]], [[[1, 1], [2, 0]]], resources=["cpu", "gpu"]), np.array([0, 1]))  # 4 on the first, 4 beside
    array([8.])
    """
    m = np.ones(instance.n_resources, np.int64) if m is None else m
    by_kind = instance.demands_by_kind
    weighed = by_kind * m
    group = _groups(instance)
    first = np.unique(group, return_index=True)[1]
    use = np.swapaxes(weighed[:, instance.kind_of[first]], 1, 2)
    most = np.zeros((instance.n_users, instance.n_servers), instance.capacities.dtype)
    for k in range(instance.demands_by_kind.shape[1]):
        rows = np.flatnonzero((instance.kind_of == k) & (instance.counts > 0))
        nothing_counts = (weighed[:, k] == 0).all(axis=1)
        demand = np.where(nothing_counts[:, None], by_kind[:, k], weighed[:, k])[:, : instance.n_server_resources]
        ratio = safe_ratio(instance.capacities[rows][None], demand[:, None, :])
        ratio = np.where(demand[:, None, :] > 0, ratio, 0)
        takes_nothing = (demand == 0).all(axis=1)
        offered = instance.counts[rows] * ratio.max(axis=2, initial=0)
        offered[takes_nothing] = np.inf
        most[:, rows] = offered
    return _most(_by_group(instance.speeds, first), use, instance.total_capacity, _sums_of_groups(most, group))


def work_alone(instance: Instance, possible: FloatArray, at_once: bool = True) -> FloatArray:
    """Return the work of these tasks, (users, servers), within the shared resources, (users,); and, with ``at_once``, within parallelism.

    Raises
    ------
    Unsupported
        See `fairopt.instance.by_server`.
    """
    some = np.flatnonzero(instance.limited) if at_once else np.zeros(0, int)
    possible = np.where(instance.speeds > 0, possible, 0)  # endless tasks that do nothing are no work
    work = np.asarray((possible * instance.speeds).sum(axis=1))
    if some.size:
        speeds = instance.speeds[some]
        rho = np.where(speeds > 0, instance.rates_of_one[some], 1) * np.where(speeds > 0, speeds, 1)
        work[some] = fastest_first(possible[some] * instance.speeds[some], rho, instance.parallelism[some])
    if not instance.shared_capacity.size:
        return work
    if some.size:
        from fairopt.errors import Unsupported

        raise Unsupported(
            f'the parallelism of "{instance.users[int(some[0])]}" is limited, its demands or speeds differ by server, and it shares '
            "resources of the whole cluster: what it could do alone is not defined by the papers; leave one of these out"
        )
    group = _groups(instance)
    first = np.unique(group, return_index=True)[1]
    use = np.swapaxes(instance.demands_by_kind[:, instance.kind_of[first], instance.n_server_resources :], 1, 2)
    return _most(_by_group(instance.speeds, first), use, instance.shared_capacity, _sums_of_groups(possible, group))


def work_of_slice(instance: Instance, part: FloatArray | None = None) -> FloatArray:
    """Return what each user could do with the slice phi[n] / sum of phi of every server and shared resource, within its tasks, (users,).

    ``part`` is the slice of each user, (users,), if it is another.

    >>> work_of_slice(Instance([[8], [8]], [[1], [2]], speeds=[[1, 0.5], [1, 1]], tasks=[float("inf"), 3]))  # 4 + 0.5 * 4, and 3 of 4
    array([6., 3.])
    """
    part = instance.weights / instance.weights.sum() if part is None else part
    possible = part[:, None] * instance.rates
    tasks = instance.given("tasks") if instance.capacities.dtype == object else instance.tasks  # in the arithmetic of the instance
    if not instance.differs_by_server:
        return np.asarray(np.minimum(within_shared(instance, possible.sum(axis=1), part), tasks))
    can = (part > 0) & (tasks > 0)  # the others do nothing, whatever their rows say
    possible, part, tasks = np.where(can[:, None], possible, 0), np.where(can, part, 1), np.where(can, tasks, 1)
    group = _groups(instance)
    first = np.unique(group, return_index=True)[1]
    of_shared = np.swapaxes(instance.demands_by_kind[:, instance.kind_of[first], instance.n_server_resources :], 1, 2)
    of_tasks = np.broadcast_to(safe_ratio(1, tasks)[:, None, None], (instance.n_users, 1, first.size))
    use = np.concatenate([safe_ratio(of_shared, part[:, None, None]), of_tasks], axis=1)
    one = np.ones(1, np.int64) if instance.capacities.dtype != object else fractions_of(1)[None]
    bounds = np.concatenate([instance.shared_capacity, one])
    return _most(_by_group(instance.speeds, first), use, bounds, _sums_of_groups(possible, group))


def _groups(instance: Instance) -> IntArray:
    """Return the group of each row, (servers,): rows of one kind with equal speeds of every user."""
    speeds = np.asarray(instance.speeds)
    number: dict[Any, int] = {}
    keys = (
        (kind, column.tobytes() if column.dtype != object else tuple(column.tolist()))
        for kind, column in zip(instance.kind_of.tolist(), np.ascontiguousarray(speeds.T), strict=True)
    )
    return np.array([number.setdefault(key, len(number)) for key in keys])


def _by_group(values: FloatArray, first: IntArray) -> FloatArray:
    return np.asarray(values)[:, first]


def _sums_of_groups(values: FloatArray, group: IntArray) -> FloatArray:
    sums = np.zeros((len(values), int(group.max()) + 1), values.dtype)
    for g in range(sums.shape[1]):
        sums[:, g] = values[:, group == g].sum(axis=1)
    return sums


def _most(worth: FloatArray, use: FloatArray, bounds: FloatArray, most: FloatArray) -> FloatArray:
    """Return the optimum of each user's program, (users,); worth, most (users, groups), use (users, rows, groups), bounds (rows,)."""
    endless = np.asarray((worth > 0) & (most == np.inf) & ~(use > 0).any(axis=1)).any(axis=1)
    found: FloatArray = np.zeros(len(worth), bounds.dtype)
    here = np.flatnonzero(~endless)
    if bounds.dtype == object:
        found[:] = [Fraction(0)] * len(worth)
        of_users = zip(fractions_of(worth[here]), fractions_of(use[here]), fractions_of(most[here]), strict=True)
        found[here] = [_most_in_fractions(*each, bounds) for each in of_users]
    elif here.size:
        found[here] = _most_of_all(worth[here], use[here], bounds, most[here])
    found[endless] = np.inf
    return found


def _most_of_all(worth: FloatArray, use: FloatArray, bounds: FloatArray, most: FloatArray) -> FloatArray:
    """Return the optima as those of one program, whose blocks are the users. Columns and rows are scaled to 1."""
    from scipy.optimize import linprog

    (n, groups), m = worth.shape, bounds.size
    alone = np.minimum(most, safe_ratio(bounds[None, :, None], use).min(axis=1, initial=np.inf, where=use > 0))  # each column by itself
    alone = np.where(worth > 0, alone, 0.0)
    best = (worth * alone).max(axis=1)
    able = best > 0
    scale = np.divide(worth * alone, best[:, None], out=np.zeros_like(worth), where=able[:, None])
    part = np.where(bounds[None, :, None] > 0, safe_ratio(use * alone[:, None, :], bounds[None, :, None]), 0)
    user, row, group = np.nonzero(part)
    matrix = sp.csr_array((part[user, row, group], (user * m + row, user * groups + group)), shape=(n * m, n * groups))
    upper = np.where(alone > 0, np.divide(most, alone, out=np.ones_like(most), where=alone > 0), 0.0)
    limits: Any = {"A_ub": matrix, "b_ub": np.ones(n * m), "bounds": np.column_stack([np.zeros(upper.size), upper.ravel()])}
    answer = linprog(-scale.ravel(), **limits)
    return np.asarray((scale * answer.x.reshape(n, groups)).sum(axis=1) * best)


def _most_in_fractions(worth: npt.NDArray[Any], use: npt.NDArray[Any], most: npt.NDArray[Any], bounds: npt.NDArray[Any]) -> Fraction:
    """Return the optimum of one user's program by the simplex method in fractions, with Bland's rule: the first column, the first row."""
    groups = worth.size
    finite = [g for g in range(groups) if most[g] != np.inf]
    rows = [[*use[r], bounds[r]] for r in range(bounds.size)]
    rows += [[Fraction(int(g == h)) for g in range(groups)] + [most[h]] for h in finite]
    size = len(rows)
    table = [row[:-1] + [Fraction(int(k == j)) for j in range(size)] + row[-1:] for k, row in enumerate(rows)]
    goal, basis, value = [*worth, *[Fraction(0)] * size], list(range(groups, groups + size)), Fraction(0)
    while (column := next((j for j, gain in enumerate(goal) if gain > 0), None)) is not None:
        ratios = [(row[-1] / row[column], basis[k], k) for k, row in enumerate(table) if row[column] > 0]
        _, _, pivot = min(ratios)
        unit = table[pivot][column]
        table[pivot] = [each / unit for each in table[pivot]]
        for k, row in enumerate(table):
            if k != pivot and row[column] != 0:
                times = row[column]
                table[k] = [a - times * b for a, b in zip(row, table[pivot], strict=True)]
        times = goal[column]
        value += times * table[pivot][-1]
        goal = [a - times * b for a, b in zip(goal, table[pivot][:-1], strict=True)]
        basis[pivot] = column
    return value
