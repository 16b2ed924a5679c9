"""Whole tasks on identical single servers.

Servers that hold the same are kept together as one `_Kind`, so that thousands of them are a few rows. Three ways, and the one that places
the most tasks is taken:

* the largest tasks first, each on the first servers where it fits;
* an equal number of tasks to every server, and then the rest in this way;
* server by server: the task comes next whose demand points most in the direction of what the server has left, each resource counting by
  how scarce it is: the smallest angle between (s[r] d[n,r] / c[r]) and left[r] / c[r], s[r] = asked[r] / there[r] (after the dot product
  heuristic of Panigrahy, Talwar, Uyeda and Wieder 2011). A server that is full is a pattern, repeated while there are tasks for it.

None is always the best (packing several resources is hard). Where tasks are left over, and there are few servers and users, branch and cut
looks for a better packing. Some tasks may be left over all the same.

>>> pack(np.array([4.0]), 2, np.array([[3.0], [1.0]]), np.array([2.0, 3.0])).placed  # of 8 units each server has 1 left beside a 3
array([2., 2.])
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.instance.tolerances import FITS
from fairopt.solvers import pack_servers

__all__ = ["Budget", "Packed", "pack"]

_STEPS = 16
_FEW = 600  # pairs of user and single server, for branch and cut
_SHORTEST = 0.01  # seconds: less is not worth a start
_EFFORT = 120_000.0  # checks of one run of branch and cut, times its columns, without a time limit,
_MOST_STEPS = 20_000  # and steps of the simplex method after which no further one starts


class Budget:
    """What several searches share: by default steps, which are the same on every machine; seconds where there is a time limit.

    Attributes
    ----------
    seconds : float or None
        The time limit. Without one, each run of branch and cut ends after a number of its checks, and no further one starts after a number
        of steps of the simplex method.
    spent : float
        Seconds of the searches so far.
    steps : int
        Steps of the simplex method so far.

    >>> budget = Budget(2.0)
    >>> with budget.spending():
    ...     budget.steps += 3
    >>> 1.9 < budget.left() <= 2.0, budget.effort, Budget().left(), Budget().effort
    (True, inf, None, 120000.0)
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.spent, self.steps = seconds, 0.0, 0

    @property
    def effort(self) -> float:
        """The most that one run of branch and cut may take: checks times columns."""
        return _EFFORT if self.seconds is None else np.inf

    @property
    def is_spent(self) -> bool:
        """Is nothing left for a search that may be left out?"""
        return self.steps >= _MOST_STEPS if self.seconds is None else self.seconds - self.spent <= _SHORTEST

    def left(self, part: float = 1.0, least: float = 0.0) -> float | None:
        """Return this part of the seconds that are left, at least the part ``least`` of all; None without a time limit."""
        return None if self.seconds is None else max(part * (self.seconds - self.spent), least * self.seconds, 0.0)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Take the seconds of a ``with`` statement from the budget."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - started


@dataclass(slots=True)
class _Kind:
    """Servers that hold the same: how many, what each has left, and the tasks of each user on each."""

    count: int
    left: FloatArray
    tasks: dict[int, int]


class Packed:
    """Identical servers, and the tasks on them.

    Attributes
    ----------
    capacity : array (resources,)
        Of one server.
    count : int
    demands : array (users, resources)
    placed : array (users,)
        Tasks of each user.
    kinds : list of _Kind
    """

    def __init__(self, capacity: FloatArray, count: int, demands: FloatArray) -> None:
        self.capacity, self.count, self.demands = capacity.astype(float), count, demands
        self.kinds = [_Kind(count, self.capacity.copy(), {})]
        self.placed: FloatArray = np.zeros(demands.shape[0])

    def add(self, user: int, tasks: int) -> int:
        """Place as many tasks of a user as fit, at most so many, on the first servers; return how many were placed."""
        demand, rest, kinds, seen = self.demands[user], tasks, list[_Kind](), 0
        if tasks <= 0 or not demand.any():
            return 0
        needed = demand > 0
        left = np.array([kind.left[needed] for kind in self.kinds]) + FITS * self.capacity[needed]
        room = np.floor((left / demand[needed]).min(axis=1))
        for j in np.flatnonzero(room > 0).tolist():
            if not rest:
                break
            kinds += self.kinds[seen:j]
            kind, seen, each = self.kinds[j], j + 1, min(int(room[j]), rest)
            full = min(kind.count, rest // each)
            kinds += self._taken(kind, user, each, full)
            rest -= full * each
            part, others = min(rest, each), kind.count - full
            if others and part:
                kinds += self._taken(kind, user, part, 1)
                rest, others = rest - part, others - 1
            if others:
                kinds.append(_Kind(others, kind.left, kind.tasks))
        self.kinds = kinds + self.kinds[seen:]
        self.placed[user] += tasks - rest
        return tasks - rest

    def add_to_each(self, tasks: FloatArray) -> None:
        """Place whole numbers of tasks of each user on every server; they must fit."""
        for kind in self.kinds:
            kind.left = self.clean(kind.left - tasks @ self.demands)
            kind.tasks = {int(n): kind.tasks.get(int(n), 0) + int(tasks[n]) for n in np.flatnonzero(tasks)}
            self.placed += tasks * kind.count

    def place(self, users: IntArray, tasks: FloatArray) -> None:
        """Set the tasks of users on each server, (users, servers)."""
        left = self.capacity - tasks.T @ self.demands[users]
        kinds = [
            _Kind(1, self.clean(left[s]), {int(users[j]): int(tasks[j, s]) for j in np.flatnonzero(tasks[:, s])})
            for s in range(tasks.shape[1])
        ]
        self.start(kinds, users, tasks.sum(axis=1))

    def start(self, kinds: list[_Kind], users: IntArray, placed: FloatArray) -> None:
        """Set what the servers hold."""
        self.kinds = kinds
        self.placed[users] = placed

    def spread(self, counts: IntArray) -> FloatArray:
        """Return the tasks on rows of so many servers, (users, rows): the servers in their order."""
        tasks = np.zeros((self.demands.shape[0], counts.size))
        row, room = 0, int(counts[0]) if counts.size else 0
        for kind in self.kinds:
            rest = kind.count
            while rest:
                while room == 0:
                    row += 1
                    room = int(counts[row])
                number = min(rest, room)
                for user, each in kind.tasks.items():
                    tasks[user, row] += number * each
                rest, room = rest - number, room - number
        return tasks

    def fits(self, tasks: FloatArray) -> bool:
        """Return whether every server has room for these tasks of each user."""
        need = tasks @ self.demands
        return all(bool((need <= kind.left + FITS * self.capacity).all()) for kind in self.kinds)

    def _taken(self, kind: _Kind, user: int, each: int, count: int) -> list[_Kind]:
        if not count:
            return []
        left = self.clean(kind.left - each * self.demands[user])
        return [_Kind(count, left, kind.tasks | {user: kind.tasks.get(user, 0) + each})]

    def clean(self, left: FloatArray) -> FloatArray:
        """Return what servers have left, 0 for rounding."""
        return np.where(left > FITS * self.capacity, left, 0.0)


def pack(capacity: FloatArray, count: int, demands: FloatArray, tasks: FloatArray, budget: Budget | None = None) -> Packed:
    """Place whole numbers of tasks, (users,), on ``count`` servers of this capacity, as many of them as fit.

    Branch and cut has half of what is left of the budget.
    """
    size = safe_ratio(demands, capacity).max(axis=1, initial=0.0)
    order = sorted(np.flatnonzero(tasks > 0).tolist(), key=lambda user: (-size[user], user))
    best: Packed | None = None
    for start in (_empty, _even, _patterns):
        packed = start(Packed(capacity, count, demands), tasks)
        if packed is None:
            continue
        for user in order:
            packed.add(user, int(tasks[user] - packed.placed[user]))
        if best is None or packed.placed.sum() > best.placed.sum():
            best = packed
        if np.array_equal(best.placed, tasks):
            break
    assert best is not None
    mine = np.flatnonzero(tasks > 0)
    budget = budget or Budget()
    if best.placed.sum() < tasks.sum() and mine.size * count <= _FEW and not budget.is_spent:
        with budget.spending():
            found, steps = pack_servers(capacity, count, demands[mine], tasks[mine], budget.left(0.5), budget.effort)
            budget.steps += steps
        if found.sum() > best.placed.sum():
            best = Packed(capacity, count, demands)
            best.place(mine, found)
    return best


def _empty(packed: Packed, tasks: FloatArray) -> Packed | None:
    return packed


def _even(packed: Packed, tasks: FloatArray) -> Packed | None:
    each = np.floor(tasks / max(packed.count, 1))
    if not each.any() or not packed.fits(each):
        return None
    packed.add_to_each(each)
    return packed


def _patterns(packed: Packed, tasks: FloatArray) -> Packed | None:
    """Fill server after server, in patterns."""
    mine = np.flatnonzero(tasks > 0)
    rest = tasks[mine].copy()
    capacity = np.where(packed.capacity > 0, packed.capacity, 1.0)
    demands = packed.demands[mine] / capacity
    kinds, free = [], packed.count
    while free and rest.any():
        scarcity = rest @ demands / free
        weighted = demands * scarcity
        weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
        left, pattern = (packed.capacity > 0).astype(float), np.zeros(mine.size)
        while True:
            fits = (pattern < rest) & (demands <= left + FITS).all(axis=1)
            if not fits.any():
                break
            best = int(np.argmax(np.where(fits, weighted @ left, -1.0)))
            needed = demands[best] > 0
            room = min(float((left[needed] / demands[best, needed]).min()), rest[best] - pattern[best])
            step = max(1.0, np.floor(room / _STEPS))  # one task, or a small part of those that fit
            pattern[best] += step
            left = left - step * demands[best]
        used = pattern > 0
        if not used.any():
            break
        number = int(min(free, (rest[used] // pattern[used]).min()))
        rest -= number * pattern
        free -= number
        kinds.append(_Kind(number, packed.clean(left * capacity), {int(mine[j]): int(pattern[j]) for j in np.flatnonzero(used)}))
    packed.start([*kinds, *([_Kind(free, packed.capacity.copy(), {})] if free else [])], mine, tasks[mine] - rest)
    return packed
