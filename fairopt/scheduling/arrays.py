"""The input of progressive filling for an instance and a criterion: a `Filling`, in floats, or in fractions if the instance is.

The share of a task is divided by the weight (with queues, the tree has the weights). Users without demand, tasks or an eligible server are
left out. Floats compare with tolerances (`fairopt.program.filling`), fractions without.
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.fractions import fractions_of
from fairopt.instance.tolerances import FITS
from fairopt.models import Notion, ShareNotion, Sharing
from fairopt.program.filling import Criterion, Filling, Queues

__all__ = ["filling_of", "order_of_ties", "time_of_a_task"]

_ENDLESS = np.iinfo(np.int64).max // 4  # tasks of a user without a limit


def filling_of(
    instance: Instance,
    chosen: Notion,
    sharing: Sharing,
    ties: str,
    first_block: bool = False,
    queues: Queues | None = None,
    each_server: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[Filling, BoolArray]:
    """Return the arrays of progressive filling, and which users have a task that fits on no server. These take part only to block.

    ``each_server`` are limits of each server, as `fairopt.scheduling.queues.server_limits` returns them.
    """
    exact = instance.capacities.dtype == object
    one_more = 1 if exact else 1 + FITS
    if sharing == "tdm":
        capacities = np.full((instance.n_servers, 1), fractions_of(1) if exact else 1.0)
        demands = time_of_a_task(instance)[:, :, None]
    else:
        by_kind = instance.demands_by_kind[:, :, : instance.n_server_resources]
        capacities, demands = instance.capacities, by_kind if by_kind.shape[1] == 1 else by_kind[:, instance.kind_of]
    scored = capacities.shape[1]
    if each_server is not None:
        width = max(demands.shape[1], each_server[1].shape[1])
        of_limits = [np.broadcast_to(each, (each.shape[0], width, each.shape[2])) for each in (demands, each_server[1])]
        capacities, demands = np.concatenate([capacities, each_server[0]], axis=1), np.concatenate(of_limits, axis=2)
    fits = instance.eligibility.copy()
    for r in range(capacities.shape[1]):  # one resource at a time, to avoid an array (users, servers, resources)
        fits &= (demands[:, :, r] <= capacities[:, r] * one_more).astype(bool)
    of_cluster = instance.demands_by_kind[:, :, instance.n_server_resources :]
    for r, amount in enumerate(instance.shared_capacity):
        fits &= (of_cluster[:, :, r] <= amount * one_more).astype(bool)[:, instance.kind_of]
    takes_part = instance.servable & ~instance.zero_demand & (instance.tasks > 0).astype(bool)
    too_large = takes_part & ~fits.any(axis=1)
    if not first_block:
        takes_part &= ~too_large
    whole = np.floor(np.minimum(instance.tasks, _ENDLESS) * one_more).astype(np.int64)
    return Filling(
        capacities=capacities,
        counts=instance.counts.astype(np.int64),
        demands=demands,
        eligibility=fits,
        tasks=np.where(takes_part, whole, 0),
        criterion=_criterion(instance, chosen, takes_part, fits, weighted=queues is None),
        order=order_of_ties(instance, ties),
        queues=queues,
        scored=scored,
        costs=_costs(instance, chosen, sharing),
    ), too_large


def _costs(instance: Instance, chosen: Notion, sharing: Sharing) -> FloatArray | None:
    """Return the part of the cluster that a unit of work takes, as it counts, (users, rows), 0 for pairs that are not eligible.

    None: all alike.
    """
    if sharing == "tdm":
        parts = time_of_a_task(instance)
    elif instance.differs_by_server:
        of_kinds = safe_ratio(instance.demands_by_kind, instance.total_capacity)
        counting = chosen.counting(instance) if isinstance(chosen, ShareNotion) else None
        if counting is not None:
            of_kinds = np.where(counting.last[:, None, None], of_kinds, counting.weigh(of_kinds))
        parts = of_kinds.max(axis=2)[:, instance.kind_of]
    else:
        return None
    return safe_ratio(np.where(instance.eligibility, parts, 0), instance.speeds)


def time_of_a_task(instance: Instance) -> FloatArray:
    """Return the part of a server's time that a task takes, (users, servers); 0 for pairs that are not eligible."""
    zero = fractions_of(0) if instance.capacities.dtype == object else 0.0
    time: FloatArray = np.where(instance.eligibility, safe_ratio(instance.counts, instance.rates), zero)
    return time


def order_of_ties(instance: Instance, ties: str) -> IntArray:
    """Return the users in the order in which ties are broken: by index, or by the largest part of a resource that a task takes."""
    if ties != "largest-demand":
        return np.arange(instance.n_users)
    largest = safe_ratio(instance.demands_by_kind.max(axis=1), instance.total_capacity).max(axis=1).tolist()
    if instance.capacities.dtype != object:
        largest = [float(f"{part:.12g}") for part in largest]  # those that differ by rounding stay in order
    return np.array(sorted(range(instance.n_users), key=lambda n: -largest[n]), np.int64)


def _criterion(instance: Instance, chosen: Notion, takes_part: BoolArray, fits: BoolArray, weighted: bool) -> Criterion:
    criterion = chosen.criterion(instance)
    exact = instance.capacities.dtype == object
    per_task = fractions_of(criterion.per_task) if exact else np.array(criterion.per_task, dtype=np.float64)
    if per_task.shape not in ((instance.n_users,), fits.shape):
        raise InvalidInstance(
            f'the share of a task under "{chosen.name}" has shape {per_task.shape}; '
            f"return one per user, ({instance.n_users},), or per user and server, {fits.shape}"
        )
    table = per_task if per_task.ndim == 2 else per_task[:, None]
    counted = takes_part[:, None] if per_task.ndim == 1 else fits & takes_part[:, None]
    wrong = np.argwhere(counted & ~((table > 0) & (table < np.inf)).astype(bool))
    if wrong.size:
        n, i = wrong[0]
        raise InvalidInstance(
            f'a task of user "{instance.users[n]}" is worth a share of {float(table[n, i]):g} under "{chosen.name}", but shares must be '
            '> 0; give the user a demand > 0, or use "max-min" with a utility of your own'
        )
    if weighted and instance.weights.ndim == 1:  # weights per resource are part of the share
        table = table / instance.weights[:, None]
    return Criterion(table.reshape(per_task.shape), criterion.measure)
