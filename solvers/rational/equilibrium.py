r"""Equilibria of servers in fractions: PS-DSF, under both sharings.

An equilibrium in floats shows its *active sets*: the pairs that hold something, and for each pair p of an incomplete user a full limit j
that it uses, at which no holder has a larger share. With these sets fixed an equilibrium solves linear equations,

    t[n]  =  sum of x[p] over the pairs p of n
    u[p] t[n] / weights[n]  =  L[j]      for each pair that holds something and is stopped by limit j
    t[n]  =  T[n]                        for each user that has all its tasks
    sum of A[j,p] x[p]  =  b[j]          for each limit j that stops a pair

in the unknowns x[p], t[n] and L[j]. Under time division the only limit is a server's time, L is 1 / its price, and the equations are
those of the equality edges of a market with linear utilities, whose equilibrium is rational as well. The equations are solved in
rationals (`fairopt.solvers.rational.near`), and the definition of an equilibrium is checked in rationals: every pair of an incomplete
user needs a full limit of its server that it uses, where its share is the largest of all holders.

*Doubtful members.* Sets that are read off floats can be wrong where two shares, or a limit and what is in use, differ by less than floats
show. A pair that turns out negative holds nothing; where the check fails at a pair, its other limits, and whether its user has all its
tasks, are tried in turn, those with the fewest changes first. Nothing that fails the check is returned. Equal numbers are no difficulty.
Decimal numbers may be proportional in floats and differ by a hair as they are written; then some pairs that hold something in floats hold
nothing, and of two limits of a server that are full one is not. Of few pairs these are tried, too; of more, none of the sets may pass,
and the answer is refused.

*Which equilibrium.* Where the equations leave the totals t[n] open, they are simple fractions near the floats: another equilibrium of the
same face. The placement is a vertex of those with the same totals.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from flint import fmpq

from fairopt.errors import NoSolution
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.near import Tableau
from fairopt.solvers.rational.servers import Servers
from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Servers", "equilibrium_near", "solve_equilibrium", "unstopped"]


@dataclass(frozen=True, slots=True)
class _Sets:
    """Active sets: pairs that hold something, users that have all their tasks, the limit that stops each pair (-1: complete)."""

    holds: frozenset[int]
    complete: frozenset[int]
    stop: tuple[int, ...]


def solve_equilibrium(program: ExactProgram, near: Solution, deadline: Deadline) -> Solution:
    """Return the equilibrium in rationals near one in floats.

    Raises
    ------
    NoSolution
        At the deadline, or where no active sets near those of the floats have an equilibrium.
    """
    answer = equilibrium_near(Servers.of(program), np.maximum(near.x, 0.0).tolist(), lambda: deadline.left > 0)
    if answer is None and deadline.left == 0.0:
        raise deadline.passed({})
    if answer is None:
        raise NoSolution(
            "an equilibrium in floats was found, but none in fractions near it: too many pairs of users and servers are nearly tied "
            "for floats to show which hold something; leave exact out",
            {"tasks": near.x},
        )
    x = np.empty(len(answer), dtype=object)
    x[:] = answer
    return Solution(x)


def equilibrium_near(servers: Servers, x: list[float], go_on: Callable[[], bool] = lambda: True) -> list[fmpq] | None:
    """Return the equilibrium in rationals near one in floats, checked; None where none of the active sets that were tried has one.

    Parameters
    ----------
    servers : Servers
    x : list (pairs,)
        An equilibrium in floats.
    go_on : function
        Asked before each trial whether there is time for it.
    """
    seen: set[_Sets] = set()
    usual = chain.from_iterable(_sets_near(servers, x, tolerance) for tolerance in SETTINGS.tolerances_of_equilibria)
    fewer = _sets_near(servers, x, SETTINGS.tolerances_of_equilibria[0], fewer=True) if len(x) <= SETTINGS.few_pairs else iter(())
    for candidates, most in ((usual, SETTINGS.most_trials), (fewer, SETTINGS.most_trials_of_few)):
        end = len(seen) + most
        for sets in candidates:
            if len(seen) >= end:
                break
            if not go_on():
                return None
            if sets in seen:
                continue
            seen.add(sets)
            answer = _solved(servers, sets, x)
            if answer is not None and not unstopped(servers, answer):
                return answer
    return None


def unstopped(servers: Servers, x: list[fmpq]) -> list[int]:
    """Return the pairs that nothing stops, though their users have tasks left; all pairs where x exceeds a limit."""
    everything = list(range(len(x)))
    total = [fmpq(0)] * len(servers.tasks)
    for n, value in zip(servers.user, x, strict=True):
        if value < 0:
            return everything
        total[n] += value
    if any(most is not None and held > most for held, most in zip(total, servers.tasks, strict=True)):
        return everything
    full, highest = [], []
    for row, bound in zip(servers.limits, servers.bounds, strict=True):
        used = sum((a * x[p] for p, a in row.items() if x[p] != 0), fmpq(0))
        if used > bound:
            return everything
        full.append(used == bound)
        highest.append(max((servers.measure[p] * total[servers.user[p]] for p in row if x[p] > 0), default=fmpq(0)))
    found = []
    for p, limits in enumerate(servers.limits_of_pairs()):
        n = servers.user[p]
        share = servers.measure[p] * total[n]
        if total[n] != servers.tasks[n] and not any(full[j] and share >= highest[j] for j in limits):
            found.append(p)
    return found


# Active sets -----------------------------------------------------------------------------------------------------------------------


def _sets_near(servers: Servers, x: list[float], tolerance: float, fewer: bool = False) -> Iterator[_Sets]:
    """Yield active sets of a solution in floats: the likeliest first, then those that differ in few doubtful members.

    With ``fewer``, a change is a limit that stops nobody who has another one, or a pair that holds nothing: where shares or limits are
    tied in floats alone, a part of them counts.
    """
    user, number = servers.user, len(x)
    uses = servers.limits_of_pairs()
    measure = [float(value) for value in servers.measure]
    bounds = [float(value) for value in servers.bounds]
    limits = [{p: float(a) for p, a in row.items()} for row in servers.limits]
    largest = [min((bounds[j] / limits[j][p] for j in uses[p]), default=0.0) for p in range(number)]
    total = [0.0] * len(servers.tasks)
    for p in range(number):
        total[user[p]] += max(x[p], 0.0)
    share = [measure[p] * total[user[p]] for p in range(number)]
    holds = [x[p] > tolerance * largest[p] for p in range(number)]
    free = [1 - sum(a * x[p] for p, a in row.items()) / bound if bound else 0.0 for row, bound in zip(limits, bounds, strict=True)]
    highest = [max((share[p] for p in row if holds[p]), default=0.0) for row in limits]
    complete = {n for n, most in enumerate(servers.tasks) if most is not None and total[n] >= float(most) * (1 - tolerance)}

    choices: list[list[int]] = []  # of each pair: the limits that may stop it, the likeliest first; -1: its user has all its tasks
    chosen: set[int] = set()
    for p in sorted(range(number), key=lambda q: not holds[q]):  # limits that stop a holder are full anyway
        off = {j: max(free[j], 1 - share[p] / highest[j] if highest[j] else 0.0, 0.0) for j in uses[p]}
        near = sorted((j for j in uses[p] if off[j] <= tolerance), key=lambda j: (j not in chosen, off[j], j))
        chosen.update(near[:1])
        choices.append([p, *near])
    choices = [near for _, *near in sorted(choices)]
    least = [
        [min(uses[p], key=lambda j: max(free[j], 1 - share[p] / highest[j] if highest[j] else 0.0))] if uses[p] else []
        for p in range(number)
    ]
    choices = [near or ([] if user[p] in complete else least[p]) for p, near in enumerate(choices)]
    must = {user[p] for p in range(number) if not choices[p]}  # only all their tasks stop these
    if any(n not in complete for n in must):
        return

    # A change is another limit of a pair, or a user who may have all its tasks and counts as one who has not.
    options = [[frozenset(complete)]]
    for n in sorted(complete - must):
        options[0].append(frozenset(complete - {n}))
    if len(complete - must) > 1:
        options[0].append(frozenset(must))
    held = frozenset(p for p in range(number) if holds[p])
    if fewer:
        several = sorted({j for near in choices if len(near) > 1 for j in near})
        holders = sorted(held)
        for position in _nearest_first([len(options[0]), *[2] * (len(several) + len(holders))], SETTINGS.most_trials_of_few):
            done, out = options[0][position[0]], position[1 + len(several) :]
            idle = {j for j, off in zip(several, position[1 : 1 + len(several)], strict=True) if off}
            stop = [next((j for j in near if j not in idle), -1) for near in choices]
            if all(stop[p] >= 0 or user[p] in done for p in range(number)):
                left = frozenset(p for p, gone in zip(holders, out, strict=True) if not gone)
                yield _Sets(left, done, tuple(-1 if user[p] in done else stop[p] for p in range(number)))
        return
    doubtful = [p for p in range(number) if len(choices[p]) > 1]
    sizes = [len(options[0]), *(len(choices[p]) for p in doubtful)]
    for position in _nearest_first(sizes, SETTINGS.most_trials):
        done = options[0][position[0]]
        stop = [near[0] if near else -1 for near in choices]
        for p, which in zip(doubtful, position[1:], strict=True):
            stop[p] = choices[p][which]
        yield _Sets(held, done, tuple(-1 if user[p] in done else stop[p] for p in range(number)))


def _nearest_first(sizes: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield positions in a grid of these sizes by the number of steps from its first corner."""
    start = (0,) * len(sizes)
    waiting, seen = [(0, start)], {start}
    while waiting:
        steps, position = heapq.heappop(waiting)
        yield position
        for axis, size in enumerate(sizes):
            if position[axis] + 1 < size:
                following = (*position[:axis], position[axis] + 1, *position[axis + 1 :])
                if following not in seen and len(seen) < 4 * most:
                    seen.add(following)
                    heapq.heappush(waiting, (steps + 1, following))


def _solved(servers: Servers, sets: _Sets, x: list[float]) -> list[fmpq] | None:
    """Return x >= 0 of the equations of these sets, near x and placed at a vertex; None where there is none."""
    holds = sets.holds
    for _ in range(SETTINGS.rounds_of_equilibria):
        equations = _Equations.of(servers, sets, holds, x)
        tableau = Tableau.of(equations.rows, equations.right, equations.near_to)
        if tableau is None:
            return None
        z = tableau.near()
        negative = {p for p, column in equations.column.items() if z[column] < 0}
        if not negative:
            break
        holds = holds - negative
    else:
        return None
    rows, right = list(equations.rows), list(equations.right)
    for column in equations.totals:  # the totals stay; the placement moves to a vertex
        rows.append({column: fmpq(1)})
        right.append(z[column])
    placed = Tableau.of(rows, right, equations.near_to)
    assert placed is not None
    z = placed.vertex(placed.completed(z))
    answer = [fmpq(0)] * len(x)
    for p, column in equations.column.items():
        answer[p] = z[column]
    return answer


@dataclass(frozen=True, slots=True)
class _Equations:
    """The equations of active sets: sparse rows, and the column of each pair and of each user's total."""

    rows: list[dict[int, fmpq]]
    right: list[fmpq]
    near_to: list[float]
    column: dict[int, int]
    totals: list[int]

    @classmethod
    def of(cls, servers: Servers, sets: _Sets, holds: frozenset[int], x: list[float]) -> _Equations:
        user, uses = servers.user, servers.limits_of_pairs()
        pairs = sorted(holds)
        column = {p: k for k, p in enumerate(pairs)}
        near_to = [x[p] for p in pairs]
        users = sorted({user[p] for p in pairs})
        total = {n: len(near_to) + k for k, n in enumerate(users)}
        held = dict.fromkeys(users, 0.0)
        for p in pairs:
            held[user[p]] += x[p]
        near_to += held.values()
        of_user = {n: {total[n]: fmpq(-1)} for n in users}
        for p in pairs:
            of_user[user[p]][column[p]] = fmpq(1)
        rows = list(of_user.values())
        right = [fmpq(0)] * len(users)
        level: dict[int, int] = {}
        for n in users:
            if n in sets.complete:
                most = servers.tasks[n]
                assert most is not None
                rows.append({total[n]: fmpq(1)})
                right.append(most)
        for p in pairs:
            j = sets.stop[p]
            if j < 0:
                continue
            if j not in level:
                level[j] = len(near_to)
                near_to.append(float(servers.measure[p]) * near_to[total[user[p]]])
            rows.append({total[user[p]]: servers.measure[p], level[j]: fmpq(-1)})
            right.append(fmpq(0))
        full = {j for j in sets.stop if j >= 0}
        for j, (limit, bound) in enumerate(zip(servers.limits, servers.bounds, strict=True)):
            row = {column[p]: a for p, a in limit.items() if p in column}
            if j in full:
                rows.append(row)
                right.append(bound)
            elif row:
                row[len(near_to)] = bound or fmpq(1)
                near_to.append(max(1 - sum(float(a) * near_to[k] for k, a in row.items() if k < len(pairs)) / float(bound or 1), 0.0))
                rows.append(row)
                right.append(bound)
        for p in range(len(user)):  # a holder that another limit stops is not ahead here; who holds nothing is not behind where it stops
            for j in uses[p] if p in holds else [sets.stop[p]]:
                if (
                    j not in level
                    or user[p] not in total
                    or (user[p] in sets.complete and p not in holds)
                    or (p in holds and sets.stop[p] == j)
                ):
                    continue
                ahead = float(servers.measure[p]) * near_to[total[user[p]]] / near_to[level[j]] - 1
                if abs(ahead) > SETTINGS.close:
                    continue
                rows.append({total[user[p]]: servers.measure[p], level[j]: fmpq(-1), len(near_to): fmpq(1 if p in holds else -1)})
                right.append(fmpq(0))
                near_to.append(0.0)
        return cls(rows, right, near_to, column, list(total.values()))
