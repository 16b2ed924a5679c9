"""Measures of any allocation, computed from the instance and the tasks without optimisation.

Let x[n,i] be the tasks, C[r] = sum_i counts[i] c[i,r], and phi the weights.

* *Weighted dominant share* of user n: max_r d[n,r] / C[r] * x[n] / phi[n]; with weights per resource, max_r d[n,r] / (C[r] phi[n,r]) *
  x[n]. If the instance has rates, time is shared, and the share is the part of the time of all servers, sum_i counts[i] x[n,i] / gamma[n,i]
  / sum_i counts[i], divided by phi[n].
* *Jain's index* of N values y (Jain, Chiu and Hawe 1984): (sum y)^2 / (N sum y^2). It is 1/N if one user has all, and 1 if all are equal.
* *Envy* of n towards m: the tasks that n could run with what m holds, scaled by phi[n] / phi[m], less the tasks that n has. It is counted
  *server by server*, over the servers where n may run:

      min(T[n], sum_i min_r phi[n] / phi[m] x[m,i] d[m,r] / d[n,r]) - x[n],

  and under time division with sum_i phi[n] / phi[m] x[m,i] gamma[n,i] / gamma[m,i]. Parts of tasks count. If n has a parallelism, it
  fills that many servers at most, the fastest first. In a tree of queues the users of one queue are compared, and what m holds within a
  guarantee of its own does not count. Where tasks do other work on other servers, envy compares *work*: the most that T[n] tasks of n could
  do with what m holds, less what n does (`fairopt.analysis.bundles`); amounts are those of a task of n, and of m, on each server.
* *Use* of a resource: the sum over servers and users of x[n,i] d[n,r], as a part of C[r]; under time division, the part of the time of all
  servers.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
>>> allocation = fo.solve(instance, "drf")
>>> dominant_shares(allocation).round(4), jain_index(dominant_shares(allocation))
(array([0.6667, 0.6667]), 1.0)
>>> largest_envy(fo.solve(instance, "efficiency"))
Envy(tasks=0.0, user=None, of=None)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.bundles import by_bundle, most_with_others
from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.rule_sides import sides
from fairopt.instance.shared import limit_name, needs_no_server
from fairopt.instance.tolerances import NOTHING
from fairopt.instance.units import shown_unit, unit_in_name
from fairopt.models.share_notion import by_work, dominant_share, share_of_work
from fairopt.program.kept_parts import counted_rows
from fairopt.program.parallelism import fastest_first, servers_at_once
from fairopt.wording import contrast

__all__ = [
    "Envy",
    "Violation",
    "beyond_guarantees",
    "cluster_use",
    "could_run_with",
    "dominant_shares",
    "envy_applies",
    "envy_matrix",
    "jain_index",
    "largest_envy",
    "shares_per_task",
    "takes_part",
    "violations",
    "with_shared_of_others",
    "with_what_others_hold",
]

_BLOCK = 4_000_000  # the most numbers in memory at a time


@dataclass(frozen=True, slots=True)
class Envy:
    """The largest envy, in tasks: ``user`` envies ``of``; both are None if it is 0. Of `fairopt.Allocation.in_fractions` a Fraction."""

    tasks: float | Fraction
    user: str | None
    of: str | None


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that an allocation exceeds, such as ``cpu @ server-1`` or ``tasks of alice``; what is used, and what is allowed.

    Of an allocation in fractions, these are fractions. ``unit`` is that of both; "" for tasks, and where it is unknown or in the name.
    """

    limit: str
    used: float | Fraction
    allowed: float | Fraction
    unit: str = field(default="", repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; fractions as text beside the floats."""
        exact = {"exact": {"used": str(self.used), "allowed": str(self.allowed)}} if isinstance(self.used, Fraction) else {}
        return {"limit": self.limit, "used": float(self.used), "allowed": float(self.allowed), **exact}

    def __str__(self) -> str:
        size, unit = shown_unit(self.allowed or self.used, "", self.unit)
        used, allowed = contrast(self.used / size, self.allowed / size) if size > 1 else contrast(self.used, self.allowed)
        after = f" {unit}" if unit else ""
        return f"{self.limit}: {used}{after}, allowed {allowed}{after}"


def takes_part(instance: Instance) -> BoolArray:
    """Return which users take part, (users,): a user takes part if it may run somewhere, demands something and has tasks."""
    part: BoolArray = instance.servable & ~instance.zero_demand & (instance.tasks > 0)
    return part


def shares_per_task(instance: Instance) -> FloatArray:
    """Return the weighted global dominant share of one task, (users, 1); if there are rates, its share of time, (users, servers).

    It is inf where a user may not run. The share of a user is the sum of its tasks times these numbers. A weight of 0 counts as 1 here.
    Where demands or speeds differ by server, it is that of the work of a task, as in "drfh".
    """
    weights = np.where(instance.weights > 0, instance.weights, 1) if instance.weights.ndim == 1 else np.ones(instance.n_users, np.int64)
    if instance.rates_per_server is not None:
        return safe_ratio(instance.counts, instance.rates * instance.counts.sum() * weights[:, None])
    if instance.differs_by_server:
        share = by_work(instance, share_of_work(instance, None))
        return np.asarray(share / weights[:, None] if share.ndim == 2 else (share / weights)[:, None])
    return (dominant_share(instance, instance.total_capacity) / weights)[:, None]


def dominant_shares(allocation: Allocation) -> FloatArray:
    """Return the weighted global dominant share of each user, (users,); if the instance has rates, its share of the cluster's time."""
    per_task = shares_per_task(allocation.instance)
    held = allocation.tasks_per_user[:, None] if per_task.shape[1] == 1 else allocation.tasks
    # A task may have an infinite share where the user may not run.
    shares: FloatArray = (np.where(held > 0, per_task, 0) * held).sum(axis=1)
    return shares


def jain_index(values: FloatArray) -> float:
    """Return Jain's index of values >= 0: 1 if all are equal, also if all are 0.

    >>> jain_index(np.array([1.0, 1.0, 0.0, 0.0]))
    0.5
    """
    largest = float(values.max(initial=0.0))
    if largest <= 0:
        return 1.0
    scaled = values / largest
    return float(scaled.sum() ** 2 / (scaled.size * (scaled**2).sum()))


def cluster_use(allocation: Allocation) -> dict[str, float]:
    """Return the part of each resource of the cluster that is in use; under time division, the part of its time."""
    instance = allocation.instance
    if allocation.sharing == "tdm":
        of_servers = {"time": float(allocation.time_utilization @ instance.counts) / max(float(instance.counts.sum()), 1.0)}
    else:
        total = instance.row_capacity.sum(axis=0)
        used = np.divide(allocation.usage.sum(axis=0), total, out=np.zeros(total.size), where=total > 0)
        of_servers = dict(zip(instance.server_resources, used.tolist(), strict=True))
    return of_servers | dict(zip(instance.shared, allocation.shared_utilization.tolist(), strict=True))


def envy_applies(allocation: Allocation) -> bool:
    """Say whether envy is defined. With weights per resource under time division it is not: no single number scales a share of time."""
    return not (allocation.instance.weights.ndim == 2 and allocation.sharing == "tdm")


def largest_envy(allocation: Allocation) -> Envy:
    """Return the largest envy of any user towards any other (in a tree, of its queue), in tasks."""
    users = allocation.instance.users
    best: float | Fraction = 0.0 if allocation.tasks.dtype != object else Fraction(0)
    pair = None
    for first, envy in _envy(allocation):
        worst = np.unravel_index(envy.argmax(), envy.shape)
        if envy[worst] > best:
            best, pair = _number(envy[worst]), (first + int(worst[0]), int(worst[1]))
    return Envy(best, None, None) if pair is None else Envy(best, users[pair[0]], users[pair[1]])


def envy_matrix(allocation: Allocation) -> FloatArray:
    """Return the envy of every user (row) towards every other (column), in tasks, >= 0, (users, users).

    The matrix of 10,000 users takes 0.8 GB; `largest_envy` needs little memory.

    >>> instance = Instance([[4, 1]], [[1, 0.1], [2, 1]], users=["A", "B"])
    >>> import fairopt as fo
    >>> envy_matrix(fo.solve(instance, "efficiency")).round(3)   # B could run 0.4 tasks on what A holds
    array([[0. , 0. ],
           [0.4, 0. ]])
    """
    return np.concatenate([envy for _, envy in _envy(allocation)])


def could_run_with(allocation: Allocation, user: int) -> FloatArray:
    """Return the tasks that user n could run with what each user m holds, scaled by phi[n] / phi[m], server by server, (users,).

    Where tasks do other work on other servers, it is the work that the tasks of n could do with it.

    >>> import fairopt as fo
    >>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"]), "drf")
    >>> could_run_with(allocation, 0)  # A, with its own 3 cpu and 12 memory, and with the 6 and 2 of B
    array([3. , 0.5])
    """
    instance = allocation.instance
    if by_bundle(instance):
        return most_with_others(instance, allocation.sharing, user, allocation.tasks, instance.speeds[user])
    would: FloatArray = _would_run(allocation, slice(user, user + 1))[0]
    return would


def violations(instance: Instance, tasks: FloatArray, sharing: str, tolerance: float) -> list[Violation]:
    """Return the limits that the tasks, (users, servers), exceed by more than a relative tolerance, the worst first.

    >>> violations(Instance([[9]], [[2]], users=["A"], servers=["pool"], resources=["cpu"]), np.array([[5.0]]), "rdm", 1e-6)
    [Violation(limit='cpu @ pool', used=10.0, allowed=9.0)]
    """
    found = [
        Violation(f"tasks of {instance.users[n]} @ {instance.servers[i]}, where it may not run", _number(tasks[n, i]), 0.0)
        for n, i in np.argwhere(~instance.eligibility & (tasks > tolerance))
    ]
    units = {resource: unit for resource, unit in instance.units.items() if not unit_in_name(resource)}
    held = tasks.sum(axis=1)
    for n in np.flatnonzero(held > instance.tasks * (1 + tolerance) + tolerance * (instance.tasks == 0)):
        found.append(Violation(f"tasks of {instance.users[n]}", _number(held[n]), _number(instance.tasks[n])))
    at_once = servers_at_once(instance, tasks)
    for n in np.flatnonzero(instance.limited & (at_once > instance.parallelism * (1 + tolerance))):
        found.append(Violation(f"servers of {instance.users[n]} at once", _number(at_once[n]), _number(instance.parallelism[n])))
    things: tuple[str, ...] = ("time",)
    if sharing == "tdm":
        used, allowed = _times(instance, tasks).sum(axis=0)[:, None], np.ones((instance.n_servers, 1), tasks.dtype)
    else:
        used, allowed, things = instance.usage(tasks), instance.row_capacity, instance.server_resources
    for i, r in np.argwhere((used > allowed * (1 + tolerance)) & (used > tolerance * used.max(initial=0.0))):
        unit = units.get(things[r], "") if sharing == "rdm" else ""
        found.append(Violation(f"{things[r]} @ {instance.servers[i]}", _number(used[i, r]), _number(allowed[i, r]), unit))
    for name, use, amount in zip(instance.shared, instance.usage_of_shared(tasks), instance.shared_capacity, strict=True):
        if use > amount * (1 + tolerance) + tolerance * (amount == 0):
            found.append(Violation(limit_name(name), _number(use), _number(amount), units.get(name, "")))
    for row in counted_rows(instance, tasks):
        held_together = _number(row.used(instance.kinds, tasks))
        if held_together > row.bound * (1 + tolerance) + tolerance * (row.bound == 0):
            name = row.name if row.keepers else f"limit {row.name}" if row.selection is not None else f"limit of {row.name}"
            unit = units.get(instance.resources[row.resource], "") if row.resource >= 0 else ""
            found.append(Violation(name, held_together, row.bound, unit))
    for side in sides(instance, tasks):
        if side.is_broken(tolerance):
            found.append(Violation(f'rule "{side.rule.text}"', _number(side.used), _number(side.allowed)))
    return sorted(found, key=lambda each: each.allowed / each.used)


def _number(value: Any) -> float | Fraction:
    return value if isinstance(value, Fraction) else float(value)


def _times(instance: Instance, tasks: FloatArray) -> FloatArray:
    """x[n,i] / gamma[n,i], (users, servers)."""
    rates = instance.rates
    return np.divide(tasks, rates, out=np.zeros_like(tasks), where=(rates > 0) & (rates < np.inf))


def _envy(allocation: Allocation) -> Iterator[tuple[int, FloatArray]]:
    """Yield, for each block of users, its first user and the envy towards every user, (block, users); 0 where it is rounding."""
    if not envy_applies(allocation):
        raise Unsupported("envy has no meaning under time division with weights per resource: give one weight per user, or use rdm")
    instance, does = allocation.instance, allocation.work
    idle, node = ~takes_part(instance), instance.tree.user_node
    for first, would in with_what_others_hold(allocation, beyond_guarantees(allocation)):
        users = np.arange(first, first + len(would))
        envy = would - does[users, None]
        envy[idle[users]] = 0
        envy[(node[users, None] != node) | instance.tree.listed[node]] = 0  # weights compare the users of one queue that is not listed
        envy[np.arange(users.size), users] = 0
        yield first, np.where(envy > (NOTHING if envy.dtype != object else 0) * would, envy, 0)


def beyond_guarantees(allocation: Allocation) -> FloatArray:
    """Return the tasks of each user beyond its own guarantee, (users, servers); the guaranteed part is the same on all its servers."""
    own, has = allocation.instance.guarantees, allocation.tasks_per_user
    if not own.any():
        return allocation.tasks
    part = np.divide(own, has, out=np.zeros_like(has), where=has > 0)
    return np.asarray(allocation.tasks * (1 - np.minimum(part, 1))[:, None])


def with_what_others_hold(allocation: Allocation, tasks: FloatArray | None = None) -> Iterator[tuple[int, FloatArray]]:
    """Yield, for each block of users n, its first user and what n could do with the scaled holdings of m, (block, users).

    It is the number of tasks that n could run, at most T[n], or the work of these, where tasks do other work on other servers.
    ``tasks``, (users, servers), are those that users hold for others to envy; default: all.
    """
    instance = allocation.instance
    if by_bundle(instance):
        held, does = allocation.tasks if tasks is None else tasks, allocation.work
        for n in range(instance.n_users):
            yield n, most_with_others(instance, allocation.sharing, n, held, instance.speeds[n], does[n])[None]
        return
    number = instance.n_users
    size = max(1, _BLOCK // (number * (instance.n_servers if (instance.parallelism < np.inf).any() else 1)))
    for first in range(0, number, size):
        block = slice(first, min(first + size, number))
        yield first, np.minimum(_would_run(allocation, block, tasks), instance.tasks[block, None])


def _would_run(allocation: Allocation, block: slice, tasks: FloatArray | None = None) -> FloatArray:
    instance, x, timed = allocation.instance, allocation.tasks if tasks is None else tasks, allocation.sharing == "tdm"
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    scale = np.zeros((block.stop - block.start, instance.n_users, weights.shape[1]), x.dtype)
    np.divide(weights[block, None], weights[None], out=scale, where=weights[None] > 0)  # 0: with a weight of 0, only guarantees can be held
    elsewhere = needs_no_server(instance)
    mine, held = _on_servers(instance, x, timed, elsewhere, block)
    would = np.zeros(scale.shape[:2], x.dtype)
    # What another user holds, scaled by weight, may fill more servers than there are: every finite parallelism counts here.
    limited = np.flatnonzero(((instance.parallelism < np.inf) & ~elsewhere)[block])
    by_server = np.zeros((limited.size, instance.n_users, instance.n_servers), x.dtype)
    for kind in np.unique(instance.kind_of).tolist():
        here = np.flatnonzero(instance.kind_of == kind)
        each = scale[:, :, 0] if timed else _tasks_with_one(instance, kind, block, scale)
        total = _sums(mine[:, here], held[:, here])
        would += np.where(total > 0, each, 0) * total
        for j, row in zip(limited.tolist(), by_server, strict=True):
            there = (held[:, here] > 0) & (mine[j, here] > 0)  # elsewhere it runs nothing, even if it needs nothing there
            row[:, here] = np.where(there, each[j, :, None], 0) * mine[j, here] * held[:, here]
    for j, row in zip(limited.tolist(), by_server, strict=True):
        would[j] = fastest_first(row, instance.rates_of_one[block.start + j], instance.parallelism[block.start + j])
    if instance.shared:
        would[elsewhere[block]] = np.inf
        within = with_shared_of_others(instance, x.sum(axis=1), np.arange(block.start, block.stop))
        would = np.minimum(would, within)
        would[instance.zero_demand[block] | ~instance.servable[block]] = 0
    return would


def _on_servers(instance: Instance, x: FloatArray, timed: bool, elsewhere: BoolArray, block: slice) -> tuple[Any, FloatArray]:
    """Return what a unit of what is held on a server is to the users of a block, (block, servers), and what users hold, (users, servers).

    They hold tasks, which are something to whoever may run there, or time, in which others run tasks at their own rates.
    """
    if not timed:
        return instance.eligibility[block], x
    return np.where(instance.eligibility & ~elsewhere[:, None], instance.rates, 0)[block], _times(instance, x)


def _tasks_with_one(instance: Instance, kind: int, block: slice, scale: FloatArray) -> FloatArray:
    """Return how many tasks users could run with what a task of another takes on servers of a kind, by weight, (block, users)."""
    demands, each = instance.demands_by_kind[:, kind], np.full(scale.shape[:2], np.inf, scale.dtype)
    for r in range(instance.n_server_resources):
        own = demands[block, r]
        asks = own > 0
        bundle = scale[asks, :, r if scale.shape[2] > 1 else 0] * demands[:, r]
        each[asks] = np.minimum(each[asks], bundle / own[asks, None])
    return each


def _sums(mine: Any, held: FloatArray) -> FloatArray:
    """Return the sums of mine[n,i] held[m,i] over servers i, (block, users). Of fractions only those that are not 0 are added."""
    if held.dtype != object:
        return np.asarray(mine @ held.T)
    total = np.zeros((mine.shape[0], held.shape[0]), object)
    for i in range(held.shape[1]):
        who = np.flatnonzero(held[:, i] > 0)
        total[:, who] += mine[:, i, None] * held[who, i]
    return total


def with_shared_of_others(instance: Instance, held: FloatArray, users: IntArray) -> FloatArray:
    """Return how many tasks users could run with what others hold of the resources of the cluster, scaled by weight, (users, all users).

    ``held``, (all users,), are the tasks of the others. It is inf for who needs nothing of these resources.
    """
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    could = np.full((users.size, instance.n_users), np.inf, held.dtype)
    for r in range(instance.n_server_resources, instance.n_resources):
        own = weights[:, r if weights.shape[1] > 1 else 0]
        asks = np.flatnonzero(instance.demands[users, r] > 0)
        scale = np.zeros((asks.size, instance.n_users), held.dtype)
        np.divide(own[users[asks], None], own[None, :], out=scale, where=own[None, :] > 0)
        bundle = scale * (held * instance.demands[:, r])
        could[asks] = np.minimum(could[asks], bundle / instance.demands[users[asks], r, None])
    return could
