"""Merge identical rows of an instance without changing its answer, and spread the answer back.

For divisible tasks the following merges are exact:

* servers with the same capacity, the same eligibility column, the same rates, demands and speeds (and utilities) become one row with the
  sum of their counts;
* users with the same demand, eligibility, rates (and utilities) and the same tasks and parallelism per weight become one user, whose
  weight, tasks and parallelism are the sums of theirs. Named limits keep rows apart as `fairopt.instance.limit_merging` says, and so
  does a queue of the order "listed": one user comes before the other.

Hosts, attributes and owners keep no rows apart. A merged row has all hosts of its rows (:mod:`fairopt.instance.facts`).

Users that demand nothing have no column in any program. On the way back they get all their tasks.

The tasks of a merged row are divided among its servers in proportion to their counts, and among its users in proportion to their weights.
Averaging an optimal answer over identical rows keeps it feasible and changes no fair share, as these are unique. So the merged optimum is
an optimum. The 12,583 servers of the Google cluster, for example, become ten rows.

>>> instance = Instance([[1, 2], [1, 2], [4, 4]], [[1, 1], [1, 1]], weights=[1, 3])
>>> merging = merge(instance)
>>> merging.instance
Instance(1 user, 3 servers in 2 rows, 2 resources: 6 resource-1, 8 resource-2)
>>> merging.spread([[2.0, 4.0]])
array([[0.25, 0.25, 1.  ],
       [0.75, 0.75, 3.  ]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.instance.by_server import as_given
from fairopt.instance.facts import expanded_facts, merged_facts
from fairopt.instance.fractions import ExactArray, fraction_of
from fairopt.instance.instance import FloatArray, Instance, IntArray
from fairopt.instance.limit_merging import limit_keys, merged_limits, moved
from fairopt.instance.limits import Limit
from fairopt.instance.queues import Queue, Quota

__all__ = ["Merging", "alike", "best_server", "expand", "known_rates", "merge", "number_distinct", "on_rows", "single_servers", "unmerged"]

_STEEP = 0.05  # for a smaller alpha, phi^(1/alpha) is too steep to be computed: only users of equal weight merge
_FAINT = 1e-100  # if some (phi / max phi)^(1/alpha) is smaller, the same: it could not be divided by
_LARGEST = 1e60  # the joint weight of a group must be one that an instance accepts; else its users stay apart


@dataclass(frozen=True, slots=True, eq=False)
class Merging:
    """A merged instance and the way back.

    Attributes
    ----------
    original, instance : Instance
        The instance before and after merging.
    user_group, server_group : int arrays (users,), (servers,)
        Row of ``instance`` that each original row belongs to.
    user_part, server_part : arrays (users,), (servers,)
        Fraction of the merged row's tasks that each original row receives.
    """

    original: Instance
    instance: Instance
    user_group: IntArray
    server_group: IntArray
    user_part: FloatArray
    server_part: FloatArray

    def restrict(self, pair_data: FloatArray | None) -> FloatArray | None:
        """Return data about pairs, (users, servers) or (users, 1), for the merged rows."""
        if pair_data is None:
            return None
        users, servers = _first(self.user_group), _first(self.server_group)
        return pair_data[users] if pair_data.shape[1] == 1 else pair_data[np.ix_(users, servers)]

    def spread(self, x: npt.ArrayLike, utility: FloatArray | ExactArray | None = None) -> FloatArray:
        """Return tasks (users, servers) from tasks (merged users, merged servers); fractions from fractions.

        Users without demand have all their tasks on one server, where ``utility``, (users, servers), is largest.
        """
        x = np.asarray(x)
        exact = x.dtype == object
        tasks: FloatArray = (x if exact else x.astype(np.float64))[self.user_group]
        tasks = tasks * self.user_part[:, None] if exact else np.multiply(tasks, self.user_part[:, None], out=tasks)
        if self.server_group.size > x.shape[1] or not (self.server_part == 1).all():
            tasks = tasks[:, self.server_group] * self.server_part
        for n in np.flatnonzero(self.original.zero_demand & self.original.servable):
            given = self.original.given("tasks")[n]
            tasks[n, best_server(self.original, int(n), utility)] = fraction_of(given) if exact else float(given)
        return tasks


def best_server(instance: Instance, user: int, utility: FloatArray | ExactArray | None = None) -> int:
    """Return the server where a task of a user is worth most, the first of several; without utilities all are worth the same.

    >>> pool = Instance([[1], [1], [1]], [[1]], eligibility=[[False, True, True]])
    >>> best_server(pool, 0), best_server(pool, 0, np.array([[3.0, 1.0, 2.0]]))
    (1, 2)
    """
    places = np.flatnonzero(instance.eligibility[user])
    if utility is None or utility.shape[1] == 1:
        return int(places[0])
    return int(places[utility[user, places].argmax()])


def merge(instance: Instance, pair_data: FloatArray | None = None, alpha: float = 1.0) -> Merging:
    """Merge identical rows of an instance.

    Parameters
    ----------
    instance : Instance
    pair_data : array (users, servers) or (users, 1), optional
        Further data, such as utilities, in which merged rows must also agree.
    alpha : float
        That of an alpha-fair goal: users divide the tasks of their merged row in proportion to phi^(1/alpha), and its weight is
        (sum phi^(1/alpha))^alpha. Max-min goals divide by phi, as alpha = 1 does. If alpha is close to 0 (the largest weight takes all),
        only users of equal weight merge.
    """
    one_weight = instance.weights.ndim == 1
    largest = float(instance.weights.max(initial=0.0)) or 1.0
    parts = instance.weights / largest  # as powers of weights could overflow
    steep = alpha < _STEEP or bool(one_weight and (parts[instance.weights > 0] ** (1.0 / alpha) < _FAINT).any())
    pull = parts ** (1.0 / alpha) if one_weight and not steep else np.ones(instance.n_users)
    weightless = instance.weights == 0 if one_weight else np.zeros(instance.n_users, bool)
    pull[weightless] = 1.0  # they have their guarantees, in proportion to which they merge
    server_keys: list[npt.NDArray[np.generic]] = [instance.capacities, instance.eligibility.T]
    user_keys: list[npt.NDArray[np.generic]] = [instance.demands_by_kind.reshape(instance.n_users, -1), instance.eligibility]
    if instance.demands_by_kind.shape[1] > 1:
        server_keys.append(instance.kind_of[:, None])
    if instance.is_tree:
        user_keys += [instance.tree.user_node[:, None], weightless[:, None], (instance.guarantees / pull)[:, None]]
        user_keys.append(instance.tree.places[:, None])
        server_keys += [_in_quota(instance, quota)[:, None] for queue in instance.queues for quota in queue.quotas]
    for keys, of_limits in zip((user_keys, server_keys), limit_keys(instance, pull), strict=True):
        keys += of_limits
    at_once = np.where(instance.limited, instance.parallelism, np.inf)
    user_keys += [(instance.tasks / pull)[:, None], (at_once / pull)[:, None]]
    if not one_weight or steep:
        user_keys.append(instance.weights.reshape(instance.n_users, -1))
    # Rows merge if they differ only in numbers without a meaning: rates where a resource is missing, utilities of ineligible pairs.
    rates = known_rates(instance)
    if pair_data is not None and pair_data.shape[1] == instance.n_servers:
        pair_data = np.where(instance.eligibility, pair_data, 0.0)
    for data in (rates, pair_data, instance.speeds_given):
        if data is not None:
            user_keys.append(data)
            if data.shape[1] == instance.n_servers:
                server_keys.append(data.T)
    user_group, server_group = number_distinct(user_keys), number_distinct(server_keys)
    if user_group[-1] == instance.n_users - 1 and server_group[-1] == instance.n_servers - 1:  # all rows are distinct
        return unmerged(instance)
    first_user, first_server = _first(user_group), _first(server_group)

    counts = np.bincount(server_group, weights=instance.counts)
    server_part = np.divide(instance.counts, counts[server_group], out=np.zeros(instance.n_servers), where=instance.counts > 0)
    sums = np.bincount(user_group, weights=pull)
    weights: FloatArray
    if not one_weight:
        weights = instance.weights[first_user] * sums[:, None]
    else:
        with np.errstate(over="ignore"):
            weights = np.asarray((instance.weights[first_user] if steep else largest) * sums**alpha, float)
        weights[weightless[first_user]] = 0.0
        if (weights > _LARGEST).any():
            return unmerged(instance)
    merged = Instance(
        instance.capacities[first_server],
        as_given(instance.demands_by_kind[first_user], instance.kind_of[first_server]),
        weights=weights,
        counts=counts,
        tasks=np.bincount(user_group, weights=instance.tasks),
        speeds=None if instance.speeds_given is None else instance.speeds_given[np.ix_(first_user, first_server)],
        parallelism=np.bincount(user_group, weights=at_once),
        guarantees=np.bincount(user_group, weights=instance.guarantees),
        **alike(instance, user_group, server_group, pull),
    )
    return Merging(instance, merged, user_group, server_group, pull / sums[user_group], server_part)


def alike(instance: Instance, user_group: IntArray, server_group: IntArray, pull: FloatArray | ExactArray) -> dict[str, Any]:
    """Return what merged rows have of their first one, or of the whole instance, as arguments of the merged instance."""
    first_user, first_server = _first(user_group), _first(server_group)
    there = np.ix_(first_user, first_server)
    return {
        "eligibility": instance.eligibility[there],
        "rates": None if instance.rates_per_server is None else instance.rates_per_server[there],
        "queues": on_rows(instance, first_server[server_group].tolist()),
        "queue_of": [instance.queue_of[n] for n in first_user.tolist()],
        "shared": instance.shared,
        "limits": merged_limits(instance, user_group, server_group, pull),
        **merged_facts(instance, server_group, user_group),
        "users": [instance.users[n] for n in first_user.tolist()],
        "servers": [instance.servers[i] for i in first_server],
        "units": instance.units,
        "resources": instance.resources,
    }


def known_rates(instance: Instance) -> FloatArray | None:
    """Return the given rates, and 0 where no notion reads them: for users without an eligible server, and where gamma0 is 0."""
    if instance.rates_per_server is None:
        return None
    known = instance.servable[:, None] & (instance.unconstrained_rates > 0)
    return np.where(known, instance.rates_per_server, 0.0)


def unmerged(instance: Instance) -> Merging:
    """Return the merging in which every row stays as it is."""
    n, k = instance.n_users, instance.n_servers
    return Merging(instance, instance, np.arange(n), np.arange(k), np.ones(n), np.ones(k))


def single_servers(instance: Instance) -> tuple[IntArray, list[str]]:
    """Return the row and the name of each single server. The servers of a row that stands for several are numbered.

    >>> single_servers(Instance([[1], [2]], [[1]], counts=[2, 1], servers=["a", "b"]))
    (array([0, 0, 1]), ['a#1', 'a#2', 'b'])
    """
    sign = "#"
    while any(sign in name for name in instance.servers):
        sign += "#"
    row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))
    number = np.arange(row.size) - np.searchsorted(row, row)
    names = [
        instance.servers[i] if instance.counts[i] == 1 else f"{instance.servers[i]}{sign}{j + 1}" for i, j in zip(row, number, strict=True)
    ]
    return row, names


def expand(instance: Instance) -> tuple[Instance, IntArray]:
    """Return the instance with one row for each single server, as whole tasks need, and the original row of each.

    If every count is 0 the rows stay as they are: an instance has at least one row, and nobody may run on these.

    >>> expand(Instance([[1], [2]], [[1]], counts=[2, 1]))[1]
    array([0, 0, 1])
    """
    if (instance.counts == 1).all() or not instance.counts.any():
        return instance, np.arange(instance.n_servers)
    row, names = single_servers(instance)
    return (
        Instance(
            instance.capacities[row],
            as_given(instance.demands_by_kind, instance.kind_of[row]),
            weights=instance.weights,
            eligibility=instance.eligibility[:, row],
            tasks=instance.tasks,
            rates=None if instance.rates_per_server is None else instance.rates_per_server[:, row],
            speeds=None if instance.speeds_given is None else instance.speeds_given[:, row],
            parallelism=instance.parallelism,
            guarantees=instance.guarantees,
            queues=_on_single_servers(instance, row, names),
            queue_of=instance.queue_of,
            shared=instance.shared,
            limits=_limits_of_single_servers(instance, row, names),
            **expanded_facts(instance, row),
            users=instance.users,
            servers=names,
            units=instance.units,
            resources=instance.resources,
        ),
        row,
    )


def _in_quota(instance: Instance, quota: Quota) -> npt.NDArray[np.bool_]:
    """Return which servers a quota is for, (servers,)."""
    return np.isin(instance.servers, quota.servers)


def on_rows(instance: Instance, first: Sequence[int], names: Sequence[str] | None = None) -> list[Queue]:
    """Return the queues with quotas on the merged rows; ``first`` is the first row of the group of each row.

    ``names`` are those of the rows into which each row is merged; default: those of the first rows.
    """
    named = [instance.servers[row] for row in first] if names is None else names
    name = dict(zip(instance.servers, named, strict=True))
    return [_renamed(queue, lambda servers: [name[server] for server in servers]) for queue in instance.queues]


def _on_single_servers(instance: Instance, row: IntArray, names: Sequence[str]) -> list[Queue]:
    """Return the queues with quotas on single servers; a quota on rows that stand for no server is dropped."""
    of_row: dict[str, list[str]] = {server: [] for server in instance.servers}
    for i, name in zip(row, names, strict=True):
        of_row[instance.servers[i]].append(name)
    return [_renamed(queue, lambda servers: [name for server in servers for name in of_row[server]]) for queue in instance.queues]


def _limits_of_single_servers(instance: Instance, row: IntArray, names: Sequence[str]) -> list[Limit]:
    """Return the named limits on single servers; one on rows that stand for no server is dropped."""
    of_row: dict[str, list[str]] = {server: [] for server in instance.servers}
    for i, name in zip(row, names, strict=True):
        of_row[instance.servers[i]].append(name)
    return moved(instance.limits, servers=of_row)


def _renamed(queue: Queue, rename: Callable[[Sequence[str]], list[str]]) -> Queue:
    if not queue.quotas:
        return queue
    quotas = [_moved(quota, rename(quota.servers)) for quota in queue.quotas if rename(quota.servers)]
    return Queue(queue.name, queue.parent, queue.weight, queue.guarantee, queue.limit, queue.lending_limit, queue.tier, quotas, queue.order)


def _moved(quota: Quota, servers: Sequence[str]) -> Quota:
    """Return a quota for other servers."""
    return Quota(servers, quota.guarantee, quota.limit, quota.lending_limit, quota.name)


def number_distinct(keys: Sequence[npt.NDArray[np.generic]]) -> IntArray:
    """Return the number of each row among the distinct rows of these arrays, side by side, in order of first appearance.

    >>> number_distinct([np.array([[2.0], [1.0], [2.0]])])
    array([0, 1, 0])
    """
    if sum(key.size for key in keys) <= _FEW:
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in _table(keys)], np.int64)
    hashes = _hashes(keys)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.arange(hashes.size)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not all((key[first[inverse]] == key).all() for key in keys):  # two different rows have the same hash: compare all columns
        table = _table(keys)
        as_bytes = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
        _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    order = np.empty(first.size, dtype=np.int64)
    order[np.argsort(first)] = np.arange(first.size)
    return order[inverse]


def _table(keys: Sequence[npt.NDArray[np.generic]]) -> FloatArray:
    """Return the arrays side by side, without negative zeros: equal rows have equal bytes."""
    return np.asarray(np.hstack([np.asarray(key, np.float64) for key in keys]) + 0.0)


_FEW = 2_048  # entries whose rows are compared as they are: hashes of so few take longer
_AT_ONCE = 65_536  # entries of a table that are hashed together; a larger one is hashed row by row, or column by column


def _hashes(keys: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.uint64]:
    """Return a hash of each row. Equal rows have equal hashes; different rows almost never do."""
    hashes: npt.NDArray[np.uint64] = np.zeros(keys[0].shape[0], np.uint64)
    for key, factors in zip(keys, _factors(tuple(key.shape[1] for key in keys)), strict=True):
        rows, columns = key.shape
        if key.size <= _AT_ONCE:
            hashes += (_bits(key) * factors).sum(axis=1, dtype=np.uint64)
        elif rows < columns:
            for i in range(rows):
                hashes[i : i + 1] += (_bits(key[i : i + 1].ravel()) * factors).sum(dtype=np.uint64)
        else:
            for j in range(columns):
                hashes += _bits(key[:, j]) * factors[j]
    return hashes


@lru_cache(maxsize=8)
def _factors(columns: tuple[int, ...]) -> tuple[npt.NDArray[np.uint64], ...]:
    """Return an odd factor for each of n columns of a table; kept, because many instances have tables of one shape."""
    rng = np.random.default_rng(0)
    return tuple(rng.integers(2**63, size=number, dtype=np.uint64) * np.uint64(2) + np.uint64(1) for number in columns)


def _bits(values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    """Return the bits of numbers with the high half mixed into the low: a small whole number has zeros in the low half."""
    bits = (np.asarray(values, np.float64) + 0.0).view(np.uint64)  # + 0.0: no negative zeros
    return bits ^ (bits >> np.uint64(32))


def _first(group: IntArray) -> IntArray:
    """Return the first original row of each group."""
    return np.unique(group, return_index=True)[1]
