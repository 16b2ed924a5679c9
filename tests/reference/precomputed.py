"""Precomputed DRF as its paper has it, in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

import numpy as np

import fairopt as fo


class Book:
    """An instance of one server in fractions: capacities, demands, weighted dominant shares and tasks of the users who can run."""

    def __init__(self, instance: fo.Instance) -> None:
        self.capacity = [Fraction(repr(float(v))) for v in instance.capacities[0]]
        self.demand = [[Fraction(repr(float(v))) for v in row] for row in instance.demands]
        weight = [Fraction(repr(float(v))) for v in instance.weights]
        self.tasks = [floor(v) if np.isfinite(v) else inf for v in instance.tasks]
        self.users = [n for n in range(instance.n_users) if instance.servable[n]]
        self.share = {n: max(d / c for d, c in zip(self.demand[n], self.capacity, strict=True) if d) / weight[n] for n in self.users}

    def fits(self, n: int, x: dict[int, int]) -> bool:
        """Is there room for one more task of user n?"""
        used = [sum(x[u] * self.demand[u][r] for u in self.users) for r in range(len(self.capacity))]
        return all(u + d <= c for u, d, c in zip(used, self.demand[n], self.capacity, strict=True))

    def fill(self, x: dict[int, int], *, go_on: bool, largest_first: bool = False) -> dict[int, int]:
        """Algorithm 1 of Ghodsi et al. (2011)."""
        open_to = list(self.users)
        while waiting := [n for n in open_to if x[n] + 1 <= self.tasks[n]]:
            n = min(waiting, key=lambda n: (x[n] * self.share[n], -self.share[n] if largest_first else 0, n))
            if self.fits(n, x):
                x[n] += 1
            elif go_on:
                open_to.remove(n)
            else:
                break
        return x

    def cycles(self) -> dict[int, int]:
        """Section 3.4, then section 6.1: without the users of the largest share, until a cycle makes a whole turn."""
        x: dict[int, int] = dict.fromkeys(self.users, 0)
        left = list(self.capacity)
        rest = [n for n in self.users if self.tasks[n] >= 1]
        first = True
        while rest:
            top = max(self.share[n] for n in rest)
            turn = [sum(top / self.share[n] * self.demand[n][r] for n in rest) for r in range(len(left))]
            k = min(have / need for have, need in zip(left, turn, strict=True) if need)
            if first or k >= 1:
                for n in rest:
                    given = int(min(floor(k * top / self.share[n]), self.tasks[n] - x[n]))
                    x[n] += given
                    left = [have - given * d for have, d in zip(left, self.demand[n], strict=True)]
            first = False
            rest = [n for n in rest if self.share[n] < top and x[n] + 1 <= self.tasks[n]]
        return x
