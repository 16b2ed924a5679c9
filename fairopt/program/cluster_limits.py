"""The columns and limits that all notions share: the eligible pairs of an instance, and what its servers and users allow.

sum_n d[n,i,r] x[n,i] <= counts[i] c[i,r]     for each server i and resource r    resource division, "rdm"
sum_n x[n,i] / gamma[n,i] <= 1                for each server i                   time division, "tdm"
sum_n,i d[n,i,r] x[n,i] <= S[r]               for each resource r of the cluster, under both
sum_i x[n,i] <= T[n]                          for each user n with finitely many tasks
sum_i x[n,i] / rho[n,i] <= P[n]               for each user n with limited parallelism, rho[n,i] = gamma[n,i] / counts[i]

d[n,i,r] is d[n,r] on every server, unless demands are given by server.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import Instance, IntArray
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.sparse_rows import by_rows

__all__ = ["capacity_limits", "eligible_pairs", "parallelism_limits", "shared_limits", "sharing_limits", "user_limits"]


def eligible_pairs(instance: Instance) -> tuple[IntArray, IntArray]:
    """Return the user and the server of each column. A user who demands nothing has no column: all its tasks always fit."""
    users, servers = np.nonzero(instance.eligibility & ~instance.zero_demand[:, None])
    return users, servers


def sharing_limits(instance: Instance, users: IntArray, servers: IntArray, sharing: str) -> Limits:
    """Return all limits of an allocation: resources or time of each server, those of the cluster, tasks and parallelism of each user."""
    of_servers = capacity_limits if sharing == "rdm" else time_limits
    return Limits.stack([part(instance, users, servers) for part in (of_servers, shared_limits, user_limits)])


def user_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """Return the limits of single users: tasks and parallelism."""
    return Limits.stack([task_limits(instance, users), parallelism_limits(instance, users, servers)])


def capacity_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_n d[n,r] x[n,i] <= counts[i] c[i,r], a row for each server i and resource r that some column uses."""
    k, m = instance.n_servers, instance.n_server_resources
    values = instance.demands_of(users, servers)[:, :m]
    used = values > 0
    rows = (servers[:, None] * m + np.arange(m))[used]
    ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = sp.csc_array((values[used], rows, ends), shape=(k * m, users.size)).tocsr()  # by hand, because coordinates take longer
    keys = np.column_stack([np.repeat(np.arange(k), m), np.tile(np.arange(m), k)])
    return Limits.of(LimitKind.CAPACITY, matrix, instance.row_capacity.ravel(), keys)


def time_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_n x[n,i] / gamma[n,i] <= 1, a row for each server i."""
    rates, pairs = instance.rates[users, servers], np.arange(users.size)
    if instance.shared_capacity.size or instance.limits:  # who needs nothing of servers takes none of their time
        pairs = np.flatnonzero(rates < np.inf)
    matrix = by_rows(1.0 / rates[pairs], servers[pairs], pairs, (instance.n_servers, users.size))
    return Limits.of(LimitKind.TIME, matrix, np.ones(instance.n_servers), np.arange(instance.n_servers))


def shared_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_n,i d[n,r] x[n,i] <= S[r], a row for each resource r of the cluster."""
    first = instance.n_server_resources
    if first == instance.n_resources:
        return Limits.none(users.size)
    values = instance.demands_of(users, servers)[:, first:].T
    rows, columns = np.nonzero(values > 0)
    matrix = by_rows(values[rows, columns].astype(np.float64), rows, columns, (values.shape[0], users.size))
    return Limits.of(LimitKind.SHARED, matrix, instance.shared_capacity, first + np.arange(values.shape[0]))


def task_limits(instance: Instance, users: IntArray) -> Limits:
    """sum_i x[n,i] <= T[n], a row for each user n with finitely many tasks."""
    limited = np.flatnonzero(np.isfinite(instance.tasks))
    if not limited.size:
        return Limits.none(users.size)
    row = np.full(instance.n_users, -1)
    row[limited] = np.arange(limited.size)
    columns = np.flatnonzero(row[users] >= 0)
    matrix = by_rows(np.ones(columns.size), row[users[columns]], columns, (limited.size, users.size))
    return Limits.of(LimitKind.TASKS, matrix, instance.tasks[limited], limited)


def parallelism_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_i x[n,i] / rho[n,i] <= P[n], a row for each user n with limited parallelism. rho[n,i] is its rate on one server of row i."""
    mine = np.flatnonzero(instance.limited[users])  # for the other users the rows follow from the limits of the servers
    if mine.size and (instance.shared_capacity.size or instance.limits):  # who needs nothing of servers is on none
        mine = mine[instance.rates_of_one[users[mine], servers[mine]] < np.inf]
    if not mine.size:
        return Limits.none(users.size)
    matrix = by_rows(1.0 / instance.rates_of_one[users[mine], servers[mine]], users[mine], mine, (instance.n_users, users.size))
    return Limits.of(LimitKind.PARALLELISM, matrix, instance.parallelism, np.arange(instance.n_users))
