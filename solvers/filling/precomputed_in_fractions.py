"""Precomputed DRF in fractions: the formulas of `fairopt.solvers.filling.precomputed` on Fractions, where a whole quotient is whole.

>>> left, demands = [Fraction(35)], [[Fraction(2)], [Fraction(10)]]
>>> first, second = precompute_in_fractions(left, demands, [Fraction(2, 35), Fraction(10, 35)], [inf, inf], None)
>>> first.turns, first.tasks.tolist(), second.tasks.tolist()
(Fraction(7, 4), [Fraction(8, 1), Fraction(1, 1)], [Fraction(4, 1), Fraction(0, 1)])
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf

import numpy as np

from fairopt.solvers.filling.precomputed import Cycle

__all__ = ["fill_lowest_in_fractions", "precompute_in_fractions"]


def precompute_in_fractions(
    capacity: Sequence[Fraction],
    demands: Sequence[Sequence[Fraction]],
    share: Sequence[Fraction],
    tasks: Sequence[Fraction | float],
    most: int | None = 1,
) -> list[Cycle]:
    """Return the cycles of precomputed DRF as `fairopt.solvers.filling.precomputed.precompute` does; their numbers are Fractions."""
    left = list(capacity)
    wanted: list[Fraction | float] = [inf if number == inf else floor(number) for number in tasks]
    members = sorted((n for n, each in enumerate(share) if each > 0 and wanted[n] > 0), key=lambda n: -share[n])
    cycles: list[Cycle] = []
    while members and (most is None or len(cycles) < most):
        turns = _turns(left, demands, share, members)
        while cycles and turns < 1:
            top = share[members[0]]
            members = [n for n in members if share[n] < top]
            if not members:
                return cycles
            turns = _turns(left, demands, share, members)
        top = share[members[0]]
        given = [Fraction(0)] * len(share)
        for n in members:
            given[n] = Fraction(min(floor(turns * top / share[n]), wanted[n]))
            wanted[n] -= given[n]
            left = [have - given[n] * d for have, d in zip(left, demands[n], strict=True)]
        cycles.append(Cycle(turns, np.array(given, object), np.array(left, object)))  # type: ignore[arg-type]
        members = [n for n in members if share[n] < top and wanted[n] > 0]
    return cycles


def _turns(left: Sequence[Fraction], demands: Sequence[Sequence[Fraction]], share: Sequence[Fraction], members: Sequence[int]) -> Fraction:
    """Return how many turns of the cycle of these users fit, the largest share first."""
    top = share[members[0]]
    for_a_turn = [sum((top / share[n] * demands[n][r] for n in members), Fraction(0)) for r in range(len(left))]
    return min(have / need for have, need in zip(left, for_a_turn, strict=True) if need > 0)


def fill_lowest_in_fractions(
    capacity: Sequence[Fraction],
    demands: Sequence[Sequence[Fraction]],
    share: Sequence[Fraction],
    tasks: Sequence[Fraction | float],
    held: Sequence[Fraction],
) -> list[Fraction]:
    """Fill task by task, always for the user with the lowest share x[n] w[n], the first of several, from ``held`` on; return x."""
    x = list(held)
    left = list(capacity)
    for n, number in enumerate(held):
        left = [have - number * d for have, d in zip(left, demands[n], strict=True)]
    waiting = [(x[n] * each, n) for n, each in enumerate(share) if each > 0]
    heapq.heapify(waiting)
    while waiting:
        _, n = heapq.heappop(waiting)
        if x[n] + 1 > tasks[n] or any(d > have for d, have in zip(demands[n], left, strict=True)):
            continue  # what does not fit now never does
        x[n] += 1
        left = [have - d for have, d in zip(left, demands[n], strict=True)]
        heapq.heappush(waiting, (x[n] * share[n], n))
    return x
