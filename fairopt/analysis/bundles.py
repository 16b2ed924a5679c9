"""What a user could do with a bundle: with amounts of resources on each server, and of the whole cluster.

    maximise    sum_i worth[i] x[i]
    subject to  0 <= x[i] <= possible[i],    sum_i a[i] x[i] <= b    for each row (a, b): its tasks, its parallelism, shared resources.

Without rows everything possible is run; with one row the most worth for its use comes first (a continuous knapsack); with more it is a
linear program. ``worth`` is the work of a task, or what a notion says that it is worth.

>>> possible, worth = np.array([2.0, 3.0]), np.array([0.5, 1.0])
>>> float(most_of(possible, worth, [])), float(most_of(possible, worth, [Row(np.ones(2), 4.0)]))
(4.0, 3.5)
>>> float(most_of(possible, worth, [Row(np.ones(2), 4.0), Row(np.array([0.0, 2.0]), 3.0)]))  # 2 on the first server, 1.5 on the second
2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.instance.shared import needs_no_server
from fairopt.instance.tolerances import SAME

__all__ = ["Row", "by_bundle", "most_of", "most_with_others", "rows_of_user"]


class Row(NamedTuple):
    """A limit on the tasks of one user: what a task counts on each server, (servers,), and the bound."""

    per_task: FloatArray
    bound: Any


def by_bundle(instance: Instance) -> bool:
    """Is what users could run with a bundle no plain sum of tasks: are there speeds, or demands of shared resources that differ?

    >>> by_bundle(Instance([[4]], [[1]])), by_bundle(Instance([[4], [4]], [[1]], speeds=[[1, 2]]))
    (False, True)
    """
    return instance.speeds_given is not None or (bool(instance.shared_capacity.size) and instance.demands_by_kind.shape[1] > 1)


def rows_of_user(instance: Instance, user: int, amounts: FloatArray, *, alone: bool = True) -> list[Row]:
    """Return the limits on the tasks of a user who has these amounts of the shared resources, (shared,).

    ``alone``: in the cluster as it is, where a parallelism that is never reached is none.
    """
    rows = []
    zero = np.zeros(instance.n_servers, instance.capacities.dtype)
    if instance.tasks[user] < np.inf:
        rows.append(Row(zero + 1, instance.tasks[user]))
    if instance.limited[user] if alone else instance.parallelism[user] < np.inf:
        rates = instance.rates_of_one[user]
        rows.append(Row(np.divide(1, rates, out=zero.copy(), where=rates > 0), instance.parallelism[user]))
    of_shared = instance.demands_by_kind[user, :, instance.n_server_resources :]
    rows += [Row(each[instance.kind_of], amount) for each, amount in zip(of_shared.T, amounts, strict=True)]
    return rows


def most_of(possible: FloatArray, worth: FloatArray, rows: Sequence[Row], time_limit: float | None = None) -> Any:
    """Return the largest worth of at most ``possible`` tasks on each server, (servers,), within the rows; inf where nothing bounds it."""
    exactly = possible.dtype == object
    alone = possible
    for row in rows:  # what each server could run if the user ran nothing elsewhere
        alone = np.minimum(alone, np.where(row.per_task > 0, safe_ratio(row.bound, np.where(row.per_task > 0, row.per_task, 1)), np.inf))
    useful = np.flatnonzero((alone > 0) & (worth > 0))
    if not useful.size:
        return possible[:0].sum()
    if (alone[useful] == np.inf).any():
        return np.inf
    size = worth[useful] * alone[useful]
    uses = [row.per_task[useful] * alone[useful] / row.bound for row in rows if row.bound > 0 and row.bound < np.inf]
    uses = [use for use in uses if use.sum() > (1 if exactly else 1 + SAME)]
    if len(uses) < 2:
        return size.sum() if not uses else _knapsack(size, uses[0])
    if exactly:
        from fairopt.analysis.in_fractions import largest  # imports everything that computes in fractions
        from fairopt.solvers.backend import Deadline

        entries = [(k, j, value) for k, use in enumerate(uses) for j, value in enumerate(use.tolist())]
        entries += [(len(uses) + j, j, 1) for j in range(size.size)]
        point = largest(size.tolist(), entries, [1] * (len(uses) + size.size), Deadline(time_limit))
        assert point is not None  # 0 is feasible
        return point @ size
    greatest = float(size.max())
    found: Any = scipy.optimize.linprog(-size / greatest, A_ub=np.array(uses), b_ub=np.ones(len(uses)), bounds=(0, 1), method="highs")
    return greatest * float(-found.fun)


def _knapsack(size: FloatArray, use: FloatArray) -> Any:
    """Return the largest part of ``size`` with a use of at most 1; parts of each may be taken."""
    order = np.argsort(-safe_ratio(size, use), kind="stable")
    filled = np.minimum(np.cumsum(use[order]), 1)
    taken = np.diff(filled, prepend=0)
    part = np.divide(taken, use[order], out=np.ones_like(size), where=use[order] > 0)
    return part @ size[order]


def most_with_others(
    instance: Instance, sharing: str, user: int, held: FloatArray, worth: FloatArray, above: Any = 0, more: Sequence[Row] = ()
) -> FloatArray:
    """Return the largest worth for a user of what each user holds, scaled by the weights of both, (users,).

    Parameters
    ----------
    held : array (users, servers)
        The tasks whose resources are looked at.
    worth : array (servers,)
        Of a task of ``user``.
    above : number
        A result up to this may be too large: callers look for more.
    more : sequence of Row
        Further limits on its tasks.
    """
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    none = np.zeros(weights.shape, held.dtype)
    scale = np.divide(weights[user], weights, out=none, where=weights > 0)  # with a weight of 0, only guarantees can be held
    possible = np.where(instance.eligibility[user], _possible(instance, sharing, user, held, scale), 0)
    of_cluster = scale[:, instance.n_server_resources :] if scale.shape[1] > 1 else scale
    amounts = of_cluster * instance.held_of(held)[:, instance.n_server_resources :]
    found: FloatArray = (np.where(worth > 0, possible, 0) * worth).sum(axis=1)
    for m in np.flatnonzero(found > above):
        found[m] = most_of(possible[m], worth, [*rows_of_user(instance, user, amounts[m], alone=False), *more])
    return found


def _possible(instance: Instance, sharing: str, user: int, held: FloatArray, scale: FloatArray) -> FloatArray:
    """Return how many tasks the user could run on each server with what each user holds there, (users, servers)."""
    if sharing == "tdm":
        rates = instance.rates
        time = np.divide(held, rates, out=np.zeros_like(held), where=(rates > 0) & (rates < np.inf))
        return np.asarray(scale * time * (0 if needs_no_server(instance)[user] else rates[user]))
    possible = np.full(held.shape, np.inf, held.dtype)
    for r in range(instance.n_server_resources):
        of_all = instance.demands_by_kind[:, instance.kind_of, r]
        asks = of_all[user] > 0
        of_each = scale[:, [r if scale.shape[1] > 1 else 0]]
        possible[:, asks] = np.minimum(possible[:, asks], of_each * held[:, asks] * of_all[:, asks] / of_all[user, asks])
    return possible
