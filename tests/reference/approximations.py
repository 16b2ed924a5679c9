"""The approximations of papers, as one would compute them on paper: in fractions, by loops, over rows that are written down one by one.

A model has columns x >= 0, each of one user, with the level that a unit of it gives (its share by the weight), and rows x <= bounds. Tasks
are the sums of a user's columns. Nothing of it knows fairopt's programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from reference import exact, simplex

from fairopt.instance import Instance

__all__ = ["Model", "leximin", "of_cluster", "of_flows", "pinned", "pop"]

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
