"""The most of a resource that a queue asks for within its guarantees: the linear program of `fairopt.allocation.promises` in fractions.

It is solved in rationals, and `fairopt.certificate` proves its optimum by dual prices.

>>> from fractions import Fraction
>>> from fairopt.instance.queues import Queue
>>> lab = Instance([[10]], [[3]], resources=["gpu"], queues=[Queue("q", guarantee={"gpu": Fraction(20, 3)})], queue_of=["q"])
>>> tasks = np.array([[Fraction(2)]])
>>> most_held(lab.exact, tasks, 1, np.ones(1, bool), np.ones(1, bool), np.array([[3]]))
Fraction(20, 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.certificate.exact_largest import prove_largest
from fairopt.instance import BoolArray, Instance
from fairopt.instance.fractions import ExactArray, from_rational, rational
from fairopt.program.queue_limits import guarantee_rows, limit_rows
from fairopt.solvers import largest_exactly
from fairopt.solvers.backend import Deadline

__all__ = ["most_held"]

Line = tuple[dict[int, Any], Any]  # a row of the linear program: coefficients by column, and the bound


def most_held(
    instance: Instance, tasks: ExactArray, node: int, claimants: BoolArray, servers: BoolArray, counts: ExactArray
) -> Fraction | None:
    """Return the most of a resource on ``servers`` that the users below a queue ask for; None if the program is infeasible.

    ``instance`` and ``tasks``, (users, servers), are in fractions. ``claimants``, (users,), may get more than they have. ``counts``,
    (users, servers), is what a task counts.
    """
    below = instance.tree.below[node]
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility & (below & ~instance.zero_demand)[:, None])]
    lines = [*_of_users(instance, pairs, tasks, claimants), *_of_queues(instance, pairs)]
    for row in guarantee_rows(instance, instance.tree, node):
        has = row.used(instance.kinds, tasks)
        lines.append((_used(instance, pairs, row.users, row.servers, row.resource), max(row.bound, has)))
    entries = [(k, j, rational(value)) for k, (line, _) in enumerate(lines) for j, value in line.items()]
    right = [rational(bound) for _, bound in lines]
    cost = [rational(counts[n, i]) if servers[i] else rational(0) for n, i in pairs]
    found = largest_exactly(cost, entries, right, Deadline(None))
    if found is None:
        return None
    point, prices = found
    prove_largest(cost, entries, right, point.tolist(), prices.tolist())
    return from_rational(sum((c * x for c, x in zip(cost, point.tolist(), strict=True)), rational(0)))


def _of_users(instance: Instance, pairs: list[tuple[int, int]], tasks: ExactArray, claimants: BoolArray) -> Iterator[Line]:
    """Yield the limits of users: tasks and parallelism; no user loses tasks, and a user that is no claimant gains none."""
    for n in sorted({n for n, _ in pairs}):
        own = [j for j, (user, _) in enumerate(pairs) if user == n]
        has = tasks[n].sum()
        yield dict.fromkeys(own, -1), -has
        if instance.tasks[n] < np.inf or not claimants[n]:
            yield dict.fromkeys(own, 1), instance.tasks[n] if claimants[n] else min(has, instance.tasks[n])
        if instance.limited[n]:
            speed = instance.rates_of_one[n]
            yield {j: 1 / speed[pairs[j][1]] for j in own}, instance.parallelism[n]


def _of_queues(instance: Instance, pairs: list[tuple[int, int]]) -> Iterator[Line]:
    """Yield the limits of queues. What other queues keep of their guarantees does not lessen what a queue asks for."""
    for row in limit_rows(instance):
        each = row.per_task(instance.kinds)
        yield {j: each[n] if each.ndim == 1 else each[n, i] for j, (n, i) in enumerate(pairs) if row.users[n] and row.servers[i]}, row.bound


def _used(instance: Instance, pairs: list[tuple[int, int]], users: BoolArray, servers: BoolArray, r: int) -> dict[int, Any]:
    """Return the use of a resource by column, for pairs whose user and server are among these."""
    demand = _demand(instance, pairs, r)
    return {j: d for j, (d, (n, i)) in enumerate(zip(demand, pairs, strict=True)) if users[n] and servers[i]}


def _demand(instance: Instance, pairs: list[tuple[int, int]], r: int) -> list[Any]:
    """Return the demand of a resource of one task of each pair."""
    users, servers = np.array(pairs, np.int64).reshape(-1, 2).T
    return list(instance.kinds.of_pairs(users, servers, r).tolist())
