"""All servers as one: the pool that notions of a single server are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.limits import Limit
from fairopt.instance.queues import Queue
from fairopt.instance.ratios import safe_ratio
from fairopt.instance.selections import Selection

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["pooled"]


def pooled(instance: Instance) -> Instance:
    """Return the instance with one server that has all the capacity of the cluster, shared resources included, and where everyone may run.

    A user's parallelism P[n] becomes the fraction of the pool that P[n] of its best servers would fill.
    """
    if instance.rates_per_server is not None:
        raise InvalidInstance(
            "the instance gives rates, a speed for each user and server, which do not add up to the capacity of one pool; leave rates out"
        )
    refuse_by_server(instance, "one pool has one demand and no speeds", "keep the servers apart, or leave demands and speeds by server out")
    if instance.in_fractions:
        instance = instance.exact
    total, demands = instance.total_capacity, instance.demands
    best = instance.rates_of_one[:, instance.counts > 0].max(axis=1, initial=0)
    pool = safe_ratio(total, demands[:, None, :])[:, 0].min(axis=1, initial=np.inf, where=demands > 0)
    part = np.divide(best, pool, out=np.zeros_like(pool), where=(pool < np.inf) & (pool > 0) & (best < np.inf))
    limited = (part > 0) & (instance.parallelism < np.inf)
    return instance.replace(
        capacities=total[None, :],
        resources=instance.resources,
        shared=None,
        counts=None,
        eligibility=None,
        parallelism=np.multiply(instance.parallelism, part, out=np.full_like(pool, np.inf), where=limited),
        queues=[_without_groups(queue, instance) for queue in instance.queues],
        limits=[_of_the_pool(selection, instance) for selection in instance.selections],
        servers=["pool"],
    )


def _without_groups(queue: Queue, instance: Instance) -> Queue:
    """Return a queue without groups of servers: its guarantees, and what it lends of them, add up, its limits where groups have all."""
    guarantee, limit = dict(queue.guarantee), dict(queue.limit)
    lending = dict(queue.lending_limit)
    for r, resource in enumerate(instance.resources):
        groups = [quota for quota in queue.quotas if resource in quota.guarantee]
        if groups and resource not in queue.guarantee:
            guarantee[resource] = sum(quota.guarantee[resource] for quota in groups)
            if any(resource in quota.lending_limit for quota in groups):
                lending[resource] = sum(quota.lending_limit.get(resource, quota.guarantee[resource]) for quota in groups)
        shared = r >= instance.n_server_resources
        elsewhere = np.ones(instance.n_servers) if shared else instance.row_capacity[:, r].copy()
        most: float = 0
        for quota in (quota for quota in queue.quotas if resource in quota.limit):
            elsewhere[[instance.servers.index(name) for name in quota.servers]] = 0
            most += quota.limit[resource]
        if not elsewhere.any() or (most and not shared):
            limit[resource] = min(limit.get(resource, np.inf), most + elsewhere.sum())
    limit = {r: max(amount, guarantee.get(r, 0)) for r, amount in limit.items()}
    return Queue(queue.name, queue.parent, queue.weight, guarantee, limit, lending, queue.tier, order=queue.order)


def _of_the_pool(selection: Selection, instance: Instance) -> Limit:
    """Return a named limit without servers: one of each server adds up; of a resource on some servers, what the others have is added."""
    limit, r = selection.limit, selection.resource
    there = selection.servers & (instance.counts > 0)
    bound = limit.bound * instance.counts[there].sum() if limit.each == "server" else limit.bound
    amounts = limit.amounts
    if isinstance(selection.amounts, tuple):
        amounts = _equal_everywhere(selection, instance)
    elif not there[instance.counts > 0].all():
        if r < 0:
            raise InvalidInstance(
                f'limit "{limit.name}" is about some servers alone, which one pool does not tell apart; select all servers, or leave it out'
            )
        m = instance.n_server_resources
        elsewhere = instance.row_capacity[~selection.servers, r].sum() if r < m else instance.shared_capacity[r - m]
        bound = bound + elsewhere
    return limit.replace(bound=bound, amounts=amounts, servers=None, each=None if limit.each == "server" else limit.each)


def _equal_everywhere(selection: Selection, instance: Instance) -> dict[str, Any]:
    """Return amounts by user, which must not differ between servers."""
    found: dict[str, Any] = {}
    there = int((instance.counts > 0).sum())
    for n in np.unique(selection.amounts[0]).tolist():
        amounts = selection.amounts[2][selection.amounts[0] == n]
        if amounts.size < there or len(set(amounts.tolist())) > 1:
            raise InvalidInstance(
                f'limit "{selection.limit.name}" counts the tasks of "{instance.users[n]}" differently on its servers, which one pool '
                "does not tell apart; give one amount for each user, or leave the limit out"
            )
        found[instance.users[n]] = amounts[0]
    return found
