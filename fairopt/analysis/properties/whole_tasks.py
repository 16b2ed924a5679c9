"""Whole tasks in fractions: enumerate all maximal placements.

A placement stays feasible with a task less. So only maximal totals matter (called *largest*): no other placement gives every user at least
as many tasks and some user more. They are found server by server. A placement on one server is an integer vector q with
sum over n of q[n] d[n,r] <= c[r], which is decided in integers. Each largest placement on the next server is added to each largest total
of the servers before, and the largest sums are kept.

>>> from fractions import Fraction
>>> pool = Instance([[1, 1]], [[Fraction(1, 3), Fraction(1, 10)], [Fraction(1, 4), Fraction(1, 2)]])
>>> largest_totals(pool.exact, "rdm", np.array([0, 1])).totals.tolist()
[[2, 1], [3, 0], [0, 2]]

All but small instances have too many largest totals. Totals do not show whether limits of queues and parallelism, which concern several
servers together, are kept: such instances are not compared here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.analysis.measures import violations
from fairopt.analysis.properties.case import Case
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.fractions import ExactArray
from fairopt.program.parallelism import servers_at_once

__all__ = ["Placements", "best_sorted", "exact_tasks", "largest_totals", "more_for_somebody", "one_more", "proved"]

_MOST = 20_000  # totals compared at a time
_IN_ALL = 60_000  # totals compared altogether
_SERVERS = 200  # single servers at most


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """The largest totals, and how each is placed.

    Attributes
    ----------
    users : int array (members,)
    totals : int array (number, members)
    steps : tuple of (row, placements, array (number, 2))
        For each single server: its row; the placements on it, (placements, members); and, for each total kept after it, the positions of
        the previous total and of the placement added.
    """

    users: IntArray
    totals: IntArray
    steps: tuple[tuple[int, IntArray, IntArray], ...]

    def tasks(self, number: int, instance: Instance) -> ExactArray:
        """Return a placement with one of the totals, (users, servers), in Fractions."""
        placed = np.zeros((instance.n_users, instance.n_servers), np.int64)
        place = number
        for row, options, back in reversed(self.steps):
            place, option = back[place]
            placed[self.users, row] += options[option]
        for k, n in enumerate(self.users):  # a server may hold more tasks than the user has
            for i in range(instance.n_servers):
                placed[n, i] -= min(placed[n, i], placed[n].sum() - self.totals[number, k])
        return exact_tasks(placed)


def exact_tasks(tasks: FloatArray | IntArray) -> ExactArray:
    """Return whole tasks as Fractions."""
    table = np.empty(tasks.shape, dtype=object)
    table[:] = [[Fraction(round(value)) for value in row] for row in tasks.tolist()]
    return table


def largest_totals(instance: Instance, sharing: str, users: IntArray) -> Placements | None:
    """Return the largest totals of tasks of some users, each with a placement; None if there are too many, or totals do not decide.

    ``instance`` is in fractions.
    """
    if instance.queues or instance.shared or instance.limited.any() or instance.counts.sum() > _SERVERS:
        return None
    endless = np.iinfo(np.int64).max // 4
    most = np.array([endless if tasks == np.inf else math.floor(tasks) for tasks in instance.tasks[users]], np.int64)
    totals, steps, compared = np.zeros((1, users.size), np.int64), [], 0
    for i in range(instance.n_servers):
        options = _on_one_server(instance, sharing, users, i, most) if instance.counts[i] else None
        if options is None and instance.counts[i]:
            return None
        for _ in range(int(instance.counts[i])):
            assert options is not None
            compared += len(totals) * len(options)
            if len(totals) * len(options) > _MOST or compared > _IN_ALL:
                return None
            sums = np.minimum((totals[:, None] + options[None]).reshape(-1, users.size), most)
            kept = _largest(sums)
            totals = sums[kept]
            steps.append((i, options, np.column_stack(np.divmod(kept, len(options)))))
    return Placements(users, totals, tuple(steps))


def _on_one_server(instance: Instance, sharing: str, users: IntArray, i: int, most: IntArray) -> IntArray | None:
    """Return the largest placements on one server of row i, (placements, users); None if they are too many."""
    if sharing == "tdm":
        speed = instance.rates_of_one[users, i]
        needs = [[1 / value if value > 0 else Fraction(0)] for value in speed]
        room = [Fraction(1)]
    else:
        needs, room = instance.demands_by_kind[users, instance.kind_of[i]].tolist(), instance.capacities[i].tolist()
    scale = [math.lcm(room[r].denominator, *(need[r].denominator for need in needs)) for r in range(len(room))]
    whole = [[int(need[r] * scale[r]) for r in range(len(room))] for need in needs]
    allowed = instance.eligibility[users, i]
    found: list[list[int]] = [[]]
    left: list[list[int]] = [[int(room[r] * scale[r]) for r in range(len(room))]]
    for k in range(users.size):
        longer, rest = [], []
        for placed, free in zip(found, left, strict=True):
            fit = min([int(most[k]), *(free[r] // need for r, need in enumerate(whole[k]) if need)]) if allowed[k] else 0
            for q in range(fit, -1, -1) if k < users.size - 1 else [fit]:
                longer.append([*placed, q])
                rest.append([has - q * need for has, need in zip(free, whole[k], strict=True)])
            if len(longer) > _MOST:
                return None
        found, left = longer, rest
    options = np.array(found, np.int64).reshape(-1, users.size)
    return options[_largest(options)]


def _largest(totals: IntArray) -> IntArray:
    """Return the positions of the totals that no other one exceeds, each once, the largest sums first."""
    _, first = np.unique(totals, axis=0, return_index=True)
    order = first[np.argsort(-totals[first].sum(axis=1), kind="stable")]
    kept = np.empty((order.size, totals.shape[1]), np.int64)
    positions: list[int] = []
    for place in order.tolist():
        if not (kept[: len(positions)] >= totals[place]).all(axis=1).any():
            kept[len(positions)] = totals[place]
            positions.append(place)
    return np.array(positions, np.int64)


def more_for_somebody(case: Case, placements: Placements) -> ExactArray | str | None:
    """Return the tasks of the largest sum in which nobody has fewer and somebody has more; None if there are none.

    Return a text if the allocation itself is not a placement of whole tasks on single servers.
    """
    held = _held(case, placements.users)
    at_least = np.flatnonzero((placements.totals >= held).all(axis=1))
    if not at_least.size:
        return "the allocation exceeds its limits, and no allocation within them gives everybody as much."
    best = at_least[placements.totals[at_least].sum(axis=1).argmax()]
    if (placements.totals[best] == held).all():
        return None
    return _others_kept(case, placements.tasks(int(best), case.instance))


def best_sorted(case: Case, placements: Placements, per_task: ExactArray) -> ExactArray:
    """Return tasks whose sorted shares are largest in lexicographic order; ``per_task``, (users,), is the share of a task."""
    own = per_task[placements.users]
    best = max(range(len(placements.totals)), key=lambda k: sorted((own * placements.totals[k]).tolist()))
    return _others_kept(case, placements.tasks(best, case.instance))


def one_more(case: Case) -> ExactArray | None:
    """Return the allocation with one more task of a user on a single server where it fits; None if none does, or rows have several."""
    instance, tasks = case.instance, case.allocation.tasks
    held, at_once, speed = tasks.sum(axis=1), servers_at_once(instance, tasks), instance.rates_of_one
    free = 1 - case.allocation.time_utilization if case.sharing == "tdm" else instance.row_capacity - case.allocation.usage
    left = instance.shared_capacity - case.allocation.shared_usage
    for n in case.members[held[case.members] + 1 <= instance.tasks[case.members]]:
        for i in np.flatnonzero(instance.eligibility[n] & (instance.counts == 1)):
            demand = instance.demands_by_kind[n, instance.kind_of[i]]
            needs = 1 / speed[n, i] if case.sharing == "tdm" else demand[: instance.n_server_resources]
            at_its_limit = instance.limited[n] and at_once[n] + 1 / speed[n, i] > instance.parallelism[n]
            if np.all(free[i] >= needs) and np.all(left >= demand[instance.n_server_resources :]) and not at_its_limit:
                better = tasks.copy()
                better[n, i] += 1
                return better
    return None


def proved(case: Case, tasks: Any) -> ExactArray | None:
    """Return whole tasks found in floats as Fractions if they keep every limit in fractions; else None.

    Also None if a row has several servers, since the placement on each server is not known.
    """
    table = _others_kept(case, exact_tasks(np.asarray(tasks)))
    fits = (case.instance.counts <= 1).all() and not violations(case.instance, table, case.sharing, 0)
    return table if fits else None


def _held(case: Case, users: IntArray) -> IntArray:
    return np.array([int(value) for value in case.allocation.tasks_per_user[users]], np.int64)


def _others_kept(case: Case, tasks: ExactArray) -> ExactArray:
    """Return tasks in which users who do not take part keep their tasks."""
    tasks[~case.part] = case.allocation.tasks[~case.part]
    return tasks
