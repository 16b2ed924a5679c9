"""Servers while they are filled in fractions: what is free on each, what each user has, where a task fits, and the scores of servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from fairopt.program.filling import Filling, Measure, Rule
from fairopt.solvers.filling.progressive_filling import Filled

__all__ = ["Servers"]

ZERO = Fraction(0)


class Servers:
    """Single servers, numbered row by row, and users. All amounts are Fractions."""

    def __init__(self, filling: Filling) -> None:
        self.filling, self.measure = filling, filling.criterion.measure
        rows, table = filling.counts.size, filling.criterion.per_task
        self.row: list[int] = np.repeat(np.arange(rows), filling.counts).tolist()
        self.capacity = [filling.capacities[k].tolist() for k in self.row]
        self.free = [list(room) for room in self.capacity]
        demands = np.broadcast_to(filling.demands, (filling.tasks.size, rows, filling.capacities.shape[1]))
        self.demand: list[list[list[Fraction]]] = demands.tolist()  # users x rows x resources
        self.worth: list[list[Fraction]] = np.broadcast_to(table if table.ndim == 2 else table[:, None], (table.shape[0], rows)).tolist()
        self.eligible: list[list[bool]] = filling.eligibility.tolist()
        self.wanted: list[int] = filling.tasks.tolist()
        self.first = [0] * len(self.wanted)  # on no server before this one a task of the user fits any more
        self.total = [0] * len(self.wanted)
        self.own = [ZERO] * len(self.wanted)  # shares
        self.scored = filling.n_scored
        self.average = [sum(amounts, ZERO) / len(self.row) for amounts in zip(*(c[: self.scored] for c in self.capacity), strict=True)]
        self.placed: list[tuple[int, int]] = []

    # Where a task fits ---------------------------------------------------------------------------------------------------------

    def fits(self, n: int, i: int) -> bool:
        """May the user run on the server, and is there room?"""
        row = self.row[i]
        return self.eligible[n][row] and all(d <= f for d, f in zip(self.demand[n][row], self.free[i], strict=True))

    def fitting(self, n: int) -> Iterator[int]:
        """Yield the servers that the next task of n fits on, ascending."""
        if self.wanted[n] > 0:
            while self.first[n] < len(self.row) and not self.fits(n, self.first[n]):
                self.first[n] += 1
            yield from (i for i in range(self.first[n], len(self.row)) if self.fits(n, i))

    def only(self, i: int, n: int) -> Iterator[int]:
        """Yield the server, if the next task of n fits on it."""
        if self.wanted[n] > 0 and self.fits(n, i):
            yield i

    def wanting(self, n: int) -> Iterator[int]:
        """Yield a server, whether a task fits on it or not, if the user has a task left."""
        if self.wanted[n] > 0:
            yield 0

    # Shares --------------------------------------------------------------------------------------------------------------------

    def share_at(self, n: int, i: int) -> Fraction:
        """Return the share of a user in the eyes of a server that its next task fits on (`fairopt.program.filling`)."""
        if self.measure is Measure.OWN or self.total[n] == 0:
            return self.own[n]
        share: Fraction = self.total[n] * self.worth[n][self.row[i]]
        return share / self.room(n, i) if self.measure is Measure.RESIDUAL else share

    def smallest_share(self, n: int, servers: Iterable[int]) -> Fraction | None:
        """Return the smallest share of a user in the eyes of these servers; None if there are none."""
        if self.measure is Measure.OWN or self.total[n] == 0:
            return next((self.own[n] for _ in servers), None)
        return min((self.share_at(n, i) for i in servers), default=None)

    def room(self, n: int, i: int) -> Fraction:
        """Return how many tasks of n would fit on what is left of the server."""
        of_resources = zip(self.demand[n][self.row[i]], self.free[i], strict=True)
        return min(Fraction(f, d) for d, f in of_resources if d)

    # Servers -------------------------------------------------------------------------------------------------------------------

    def score(self, rule: Rule, n: int, i: int) -> Fraction:
        """Return the score of a server for a task of n (`fairopt.solvers.filling.placements.BestFit`); the smallest is the best."""
        if rule == Rule.FASTEST:
            return ZERO if self.filling.costs is None else Fraction(self.filling.costs[n, self.row[i]])
        if rule == Rule.DOT:
            of_server = zip(self.demand[n][self.row[i]][: self.scored], self.free[i], self.capacity[i], strict=False)
            return -sum((d * f / (c * c) for d, f, c in of_server if c), ZERO)
        of_cluster = zip(self.demand[n][self.row[i]], self.free[i], self.average, strict=False)
        d, f = zip(*((d / a, f / a) for d, f, a in of_cluster if a), strict=True)
        if rule in (Rule.TIGHTEST, Rule.LOOSEST):
            return sum(f, ZERO) * (1 if rule == Rule.TIGHTEST else -1)
        if rule == Rule.COSINE:
            room = sum((b * b for b in f), ZERO)
            return -(sum((a * b for a, b in zip(d, f, strict=True)), ZERO) ** 2) / room if room else ZERO
        p = next(r for r, each in enumerate(d) if each)
        apart = (a / d[p] - b / f[p] for a, b in zip(d, f, strict=True))
        return sum((each * each if rule == Rule.L2 else abs(each) for each in apart), ZERO)

    def place(self, n: int, i: int) -> None:
        """Place one task."""
        row = self.row[i]
        self.free[i] = [f - d for d, f in zip(self.demand[n][row], self.free[i], strict=True)]
        self.total[n] += 1
        self.wanted[n] -= 1
        self.own[n] += self.worth[n][row]
        self.placed.append((n, i))

    def filled(self, blocked_by: int | None = None) -> Filled:
        """Return the result."""
        users, servers = (np.array([pair[side] for pair in self.placed], np.int64) for side in (0, 1))
        tasks = np.zeros((len(self.wanted), self.filling.counts.size), np.int64)
        np.add.at(tasks, (users, np.array(self.row, np.int64)[servers]), 1)
        return Filled(tasks, users, servers, blocked_by)
