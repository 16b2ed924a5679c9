"""Merge identical rows of an instance in fractions: rows that differ by 10^-30 are not identical.

What is merged, and how tasks are divided on the way back, is as in `fairopt.instance.aggregation`.

>>> from fractions import Fraction
>>> from fairopt.instance.aggregation import merge
>>> instance = Instance([[1], [1]], [[1], [1], [1 + Fraction(1, 10**30)]])
>>> merge(instance).instance.n_users, merge_exactly(instance).instance.n_users
(1, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.instance.aggregation import Merging, alike, number_distinct, unmerged
from fairopt.instance.fractions import ExactArray
from fairopt.instance.instance import Instance, IntArray
from fairopt.instance.limit_merging import limit_keys

__all__ = ["coded", "merge_exactly", "unmerged_exactly"]


def merge_exactly(instance: Instance, pair_data: ExactArray | None = None, by_weight: bool = True) -> Merging:
    """Merge rows whose fractions are identical.

    Parameters
    ----------
    instance : Instance
    pair_data : array (users, servers) or (users, 1), optional
        Further data in fractions, such as utilities, in which merged rows must also agree.
    by_weight : bool
        Users divide the tasks of their merged row in proportion to their weights, as in max-min goals; else only users of equal weight
        merge, as in totals.
    """
    exact = instance.exact
    one_weight = exact.weights.ndim == 1
    pull = exact.weights.copy() if one_weight and by_weight else np.full(exact.n_users, Fraction(1), dtype=object)
    weightless = exact.weights == 0 if one_weight else np.zeros(exact.n_users, bool)
    pull[weightless] = Fraction(1)
    at_once = np.where(exact.limited, exact.parallelism, np.inf)
    of_tasks = exact.demands_by_kind.reshape(exact.n_users, -1)
    user_keys: list[npt.NDArray[Any]] = [of_tasks, exact.eligibility, (exact.tasks / pull)[:, None], (at_once / pull)[:, None]]
    server_keys: list[npt.NDArray[Any]] = [exact.capacities, exact.eligibility.T, exact.kind_of[:, None]]
    if exact.speeds_given is not None:
        user_keys.append(exact.speeds_given)
        server_keys.append(exact.speeds_given.T)
    for keys, of_limits in zip((user_keys, server_keys), limit_keys(exact, pull), strict=True):
        keys += of_limits
    if not (one_weight and by_weight):
        user_keys.append(exact.weights.reshape(exact.n_users, -1))
    if exact.is_tree:
        user_keys += [exact.tree.user_node[:, None], weightless[:, None], (exact.guarantees / pull)[:, None], exact.tree.places[:, None]]
        server_keys += [np.isin(exact.servers, quota.servers)[:, None] for queue in exact.queues for quota in queue.quotas]
    if exact.rates_per_server is not None:
        known = np.where(exact.servable[:, None] & (exact.unconstrained_rates > 0), exact.rates_per_server, 0)
        user_keys.append(known)
        server_keys.append(known.T)
    if pair_data is not None:
        of_servers = pair_data.shape[1] == exact.n_servers
        data = np.where(exact.eligibility, pair_data, 0) if of_servers else pair_data
        user_keys.append(data)
        if of_servers:
            server_keys.append(data.T)
    user_group, server_group = (number_distinct([coded(key) for key in keys]) for keys in (user_keys, server_keys))
    if user_group[-1] == exact.n_users - 1 and server_group[-1] == exact.n_servers - 1:  # all rows are distinct
        return unmerged_exactly(instance)
    first_user, first_server = (np.unique(group, return_index=True)[1] for group in (user_group, server_group))
    counts = _sums(exact.counts, server_group)
    of_group = np.where(counts == 0, 1, counts)[server_group]
    sums = _sums(pull, user_group)
    if not one_weight:
        weights = exact.weights[first_user] * sums[:, None]
    else:
        weights = sums.copy() if by_weight else exact.weights[first_user]
        weights[weightless[first_user]] = 0
    merged = Instance(
        exact.capacities[first_server],
        exact.demands_on(first_user, first_server),
        weights=weights,
        counts=counts,
        tasks=_sums(exact.tasks, user_group),
        speeds=exact.speeds_on(first_user, first_server),
        parallelism=_sums(at_once, user_group),
        guarantees=_sums(exact.guarantees, user_group),
        **alike(exact, user_group, server_group, pull),
    )
    return Merging(instance, merged, user_group, server_group, pull / sums[user_group], exact.counts / of_group)


def unmerged_exactly(instance: Instance) -> Merging:
    """Return the merging in which every row stays as it is, in fractions."""
    users, servers = (np.full(size, Fraction(1), dtype=object) for size in (instance.n_users, instance.n_servers))
    return replace(unmerged(instance), user_part=users, server_part=servers)


def coded(key: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return equal numbers for equal entries, and different ones for different entries."""
    if key.dtype != object:
        return key.astype(np.float64)
    codes: dict[Any, int] = {}
    flat: Sequence[Any] = key.ravel().tolist()
    return np.array([codes.setdefault(value, len(codes)) for value in flat], np.float64).reshape(key.shape)


def _sums(values: npt.NDArray[Any], group: IntArray) -> ExactArray:
    sums = np.zeros(int(group.max()) + 1, dtype=object)
    np.add.at(sums, group, values)
    return sums
