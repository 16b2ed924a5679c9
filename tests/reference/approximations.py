"""The approximations of papers, as one would compute them on paper: in fractions, by loops, over rows that are written down one by one.

A model has columns x >= 0, each of one user, with the level that a unit of it gives (its share by the weight), and rows x <= bounds. Tasks
are the sums of a user's columns. Nothing of it knows fairopt's programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from reference import exact, simplex

from fairopt.instance import Instance

__all__ = ["Model", "in_bins", "leximin", "of_cluster", "of_flows", "partial_allocation", "pinned", "pop", "swan", "water_filling"]

Line = list[Fraction]


@dataclass(frozen=True)
class Model:
    """Columns and rows."""

    users: int
    user: list[int]
    level: Line
    rows: list[Line]
    bounds: Line
    own: list[bool]  # is the row about what one user has, and about nothing that others take?

    def tasks(self, x: Sequence[Fraction]) -> Line:
        """Sums over the columns of each user."""
        return [sum((value for value, n in zip(x, self.user, strict=True) if n == user), Fraction(0)) for user in range(self.users)]

    def levels(self, x: Sequence[Fraction]) -> Line:
        """The level of each user."""
        return self.tasks([value * each for value, each in zip(x, self.level, strict=True)])

    def level_row(self, user: int) -> Line:
        """The level of a user as a row."""
        return [each if n == user else Fraction(0) for n, each in zip(self.user, self.level, strict=True)]


def of_cluster(instance: Instance, notion: str) -> Model:
    """A cluster of divided resources, with numbers of tasks."""
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility)]
    rows, bounds = exact.limits(instance, pairs)
    share = exact.shares_per_task(instance, notion)
    shared = instance.n_servers * instance.n_resources
    own = [k >= shared for k in range(len(rows))]
    return Model(instance.n_users, [n for n, _ in pairs], [share[n] for n, _ in pairs], rows, bounds, own)


def of_flows(links: Mapping[str, int], flows: Mapping[str, Sequence[Sequence[str]]], tasks: Sequence[int | None] = ()) -> Model:
    """Flows over several paths, whose level is their rate; ``tasks`` are their demands, None where a flow takes all it can get."""
    paths = [(n, path) for n, own in enumerate(flows.values()) for path in own]
    rows = [[Fraction(int(link in path)) for _, path in paths] for link in links]
    bounds, own = [Fraction(capacity) for capacity in links.values()], [False] * len(links)
    for n, most in enumerate(tasks):
        if most is not None:
            rows.append([Fraction(int(user == n)) for user, _ in paths])
            bounds.append(Fraction(most))
            own.append(True)
    return Model(len(flows), [n for n, _ in paths], [Fraction(1)] * len(paths), rows, bounds, own)


def leximin(model: Model) -> Line:
    """A point of the leximin: raise the common level, then settle the users who could not have more."""
    level: dict[int, Fraction] = {n: Fraction(0) for n in range(model.users) if n not in model.user}
    point: Line = []
    while len(level) < model.users:
        rising = [n for n in range(model.users) if n not in level]
        need = {n: [*model.level_row(n), Fraction(0)] for n in level} | {n: [*model.level_row(n), Fraction(-1)] for n in rising}
        rows = [[*row, Fraction(0)] for row in model.rows] + [[-each for each in row] for row in need.values()]
        bounds = [*model.bounds, *(-level.get(n, Fraction(0)) for n in need)]
        t, point = simplex.maximise([Fraction(0)] * len(model.user) + [Fraction(1)], rows, bounds)
        floors = level | dict.fromkeys(rising, t)
        inside = model.rows + [[-each for each in model.level_row(n)] for n in floors]
        right = [*model.bounds, *(-value for value in floors.values())]
        stuck = [n for n in rising if simplex.maximise(model.level_row(n), inside, right)[0] == t]
        assert stuck
        level |= dict.fromkeys(stuck, t)
    return point[: len(model.user)]


def pop(model: Model, parts: Sequence[Sequence[Fraction]]) -> Line:
    """Tasks of POP; ``parts[k][n]`` is the part of user n that is dealt into part k."""
    tasks = [Fraction(0)] * model.users
    for part in parts:
        columns = [j for j, n in enumerate(model.user) if part[n]]
        bounds = []
        for row, bound, own in zip(model.rows, model.bounds, model.own, strict=True):
            of = next((model.user[j] for j, value in enumerate(row) if value), 0)
            bounds.append(bound * part[of] if own else bound / len(parts))
        small = _some(replace(model, bounds=bounds), columns)
        small = replace(small, level=[each / part[n] for each, n in zip(small.level, small.user, strict=True)])
        tasks = [a + b for a, b in zip(tasks, small.tasks(leximin(small)), strict=True)]
    return tasks


def pinned(model: Model, threshold: int, tasks: Sequence[int | None], first: bool = True) -> Line:
    """Tasks of pinning: who has few tasks runs them on the first column where they fit beside those before, else with the others."""
    left, given = list(model.bounds), [Fraction(0)] * model.users
    free = set(range(model.users))
    for n, most in enumerate(tasks):
        if most is None or most > threshold or n not in model.user:
            continue
        column = model.user.index(n)
        after = [bound - row[column] * most for row, bound in zip(model.rows, left, strict=True)]
        if min(after) >= 0:
            left, given[n] = after, Fraction(most)
            free.discard(n)
    small = _some(replace(model, bounds=left), [j for j, n in enumerate(model.user) if n in free])
    rest = leximin(small) if first else simplex.maximise([Fraction(1)] * len(small.user), small.rows, small.bounds)[1]
    return [a + b for a, b in zip(given, small.tasks(rest[: len(small.user)]), strict=True)]


def _some(model: Model, columns: Sequence[int]) -> Model:
    """The model with some of its columns."""
    return replace(
        model,
        user=[model.user[j] for j in columns],
        level=[model.level[j] for j in columns],
        rows=[[row[j] for j in columns] for row in model.rows],
    )


def in_bins(model: Model, ends: Sequence[Fraction]) -> tuple[Line, Line]:
    """The totals of bins in turn, sum over users of min(level, end), and levels that have all of them."""
    totals: Line = []
    columns, point = len(model.user), list[Fraction]()
    members = sorted(set(model.user))
    for end in ends:
        bins = [*ends[: len(totals)], end]
        width = columns + len(members) * len(bins)
        rows, bounds = [[*row, *[Fraction(0)] * (width - columns)] for row in model.rows], list(model.bounds)
        sums = [[Fraction(0)] * width for _ in bins]
        for (b, top), (j, n) in itertools.product(enumerate(bins), enumerate(members)):
            unit = [Fraction(0)] * width
            unit[columns + b * len(members) + j] = sums[b][columns + b * len(members) + j] = Fraction(1)
            rows += [unit, [*(-each for each in model.level_row(n)), *unit[columns:]]]
            bounds += [top, Fraction(0)]
        for b, total in enumerate(totals):
            rows.append([-each for each in sums[b]])
            bounds.append(-total)
        total, point = simplex.maximise(sums[-1], rows, bounds)
        totals.append(total)
    return totals, model.levels(point[:columns])


def swan(model: Model, ends: Sequence[Fraction]) -> Line:
    """Levels of SWAN's iterations: levels up to each end in turn; who misses one stays where it is."""
    fixed: dict[int, Fraction] = {}
    members, floor, level = set(model.user), Fraction(0), list[Fraction]()
    for end in ends:
        rows, bounds = list(model.rows), list(model.bounds)
        for n in members:
            low, high = (fixed[n], fixed[n]) if n in fixed else (floor, end)
            rows += [model.level_row(n), [-each for each in model.level_row(n)]]
            bounds += [high, -low]
        level = model.levels(simplex.maximise(model.level, rows, bounds)[1][: len(model.user)])
        fixed |= {n: level[n] for n in members if n not in fixed and level[n] < end}
        floor = end
        if len(fixed) == len(members):
            break
    return level


def water_filling(model: Model, rounds: int) -> Line:
    """Levels of water-filling by pairs: all rise, one row after another is full; then again with the parts that each pair got."""
    parts = [Fraction(1, model.user.count(n)) for n in model.user]
    level: Line = []
    for _ in range(rounds):
        speed = [part / each for part, each in zip(parts, model.level, strict=True)]
        x, rising = [Fraction(0)] * len(speed), {j for j, value in enumerate(speed) if value}
        while rising:
            room = {}
            for k, (row, bound) in enumerate(zip(model.rows, model.bounds, strict=True)):
                if load := sum((row[j] * speed[j] for j in rising), Fraction(0)):
                    held = sum((row[j] * x[j] for j in range(len(x)) if j not in rising), Fraction(0))
                    room[k] = (bound - held) / load
            k = min(room, key=lambda each: room[each])
            for j in [j for j in rising if model.rows[k][j]]:
                x[j] = speed[j] * room[k]
                rising.discard(j)
        level = model.levels(x)
        parts = [value * each / level[n] for value, each, n in zip(x, model.level, model.user, strict=True)]
    return level


def partial_allocation(utilities: Line, without: Sequence[Line]) -> list[float]:
    """The part that each user gets, of utilities of proportional fairness with equal weights, and of those without each user."""
    found = []
    for n, others in enumerate(without):
        part = Fraction(1)
        for m, (mine, alone) in enumerate(zip(utilities, others, strict=True)):
            part *= mine / alone if m != n else 1
        found.append(float(part))
    return found
