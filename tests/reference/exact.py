"""Reference solutions in exact arithmetic that share nothing with the library: a rational simplex, and leximin by asking each user.

Slow and simple on purpose. Only the data of an instance and the definitions of the notions are used.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from fairopt import Instance

Row = list[Fraction]


def maximise(cost: Row, rows: list[Row], bounds: Row) -> Fraction:
    """max cost x subject to rows x <= bounds, x >= 0, with bounds >= 0 (Bland's rule: never cycles).

    A row of the table is an equation, which may be multiplied by any positive number. So all numbers are whole, because Python adds and
    multiplies these faster than fractions. The last number of ``reduced`` is what that row is multiplied by.
    """
    n, m = len(cost), len(rows)
    table = [whole([*rows[i], *(Fraction(int(i == j)) for j in range(m)), bounds[i]]) for i in range(m)]
    reduced = whole([*(-c for c in cost), *[Fraction(0)] * (m + 1), Fraction(1)])
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if reduced[j] < 0), None)
        if enter is None:
            return Fraction(reduced[-2], reduced[-1])
        ratios = [(Fraction(table[i][-1], table[i][enter]), basis[i], i) for i in range(m) if table[i][enter] > 0]
        if not ratios:
            raise ArithmeticError("unbounded")
        _, _, leave = min(ratios)
        for i in range(m):
            if i != leave and table[i][enter]:
                table[i] = without(enter, table[i], table[leave])
        reduced = without(enter, reduced, [*table[leave], 0])
        basis[leave] = enter


def whole(row: Row) -> list[int]:
    """Multiply a row by the least number that makes all of it whole."""
    by = math.lcm(*(value.denominator for value in row))
    return [value.numerator * (by // value.denominator) for value in row]


def without(column: int, row: list[int], pivot: list[int]) -> list[int]:
    """Add a multiple of the row of the pivot, which is positive, so that the row has 0 in the column; divide by what all numbers share."""
    times, factor = pivot[column], row[column]
    added = [a * times - factor * b for a, b in zip(row, pivot, strict=True)]
    common = math.gcd(*added)
    return [value // common for value in added] if common > 1 else added


def shares_per_task(instance: Instance, notion: str) -> list[Fraction]:
    """w[n] / phi[n], by definition, for users who can run somewhere."""
    k, m = instance.n_servers, instance.n_resources
    c = [[Fraction(v) for v in row] for row in instance.capacities]
    d = [[Fraction(v) for v in row] for row in instance.demands]
    count = [Fraction(v) for v in instance.counts]
    total = [sum((count[i] * c[i][r] for i in range(k)), Fraction(0)) for r in range(m)]

    def gamma(n: int, i: int) -> Fraction:
        return count[i] * min(c[i][r] / d[n][r] for r in range(m) if d[n][r] > 0)

    result = []
    for n in range(instance.n_users):
        if not instance.servable[n]:
            result.append(Fraction(0))
            continue
        if notion == "drfh":
            w = max(d[n][r] / total[r] for r in range(m) if d[n][r] > 0)
        elif notion == "asset":
            w = sum((d[n][r] / total[r] for r in range(m) if d[n][r] > 0), Fraction(0))
        elif notion == "cdrf":
            own = [i for i in range(k) if instance.eligibility[n, i]]
            unit = [[Fraction(int(i == j)) for j in own] for i in own]
            alone, most = [gamma(n, i) for i in own], float(instance.parallelism[n])
            if most < np.inf:
                unit.append([count[i] / gamma(n, i) for i in own])
                alone.append(Fraction(most))
            w = 1 / maximise([Fraction(1)] * len(own), unit, alone)
        elif notion == "tsf":
            w = 1 / sum((gamma(n, i) for i in range(k)), Fraction(0))
        else:
            raise ValueError(notion)
        result.append(w / Fraction(instance.weights[n]))
    return result


def limits(instance: Instance, pairs: list[tuple[int, int]]) -> tuple[list[Row], Row]:
    """Rows of capacities, tasks and parallelism over the pairs."""
    rows, bounds = [], []
    for i, r in itertools.product(range(instance.n_servers), range(instance.n_resources)):
        rows.append([Fraction(instance.demands[n, r]) if i == j else Fraction(0) for n, j in pairs])
        bounds.append(Fraction(instance.counts[i]) * Fraction(instance.capacities[i, r]))
    for n in np.flatnonzero(instance.tasks < np.inf):
        rows.append([Fraction(int(n == user)) for user, _ in pairs])
        bounds.append(Fraction(instance.tasks[n]))
    for n in np.flatnonzero(instance.parallelism < np.inf):
        rows.append([servers_of_a_task(instance, int(n), i) if n == user else Fraction(0) for user, i in pairs])
        bounds.append(Fraction(instance.parallelism[n]))
    return rows, bounds


def servers_of_a_task(instance: Instance, n: int, i: int) -> Fraction:
    """The part of one server of row i that a task of user n is worth: that of its dominant resource there."""
    return max(
        Fraction(instance.demands[n, r]) / Fraction(instance.capacities[i, r])
        for r in range(instance.n_resources)
        if instance.demands[n, r] > 0
    )


def leximin(instance: Instance, notion: str) -> list[Fraction]:
    """Tasks per user: raise the common level, then ask for each user whether it could have more; who could not is settled."""
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility)]
    share = shares_per_task(instance, notion)
    rows, bounds = limits(instance, pairs)
    level: dict[int, Fraction] = {n: Fraction(0) for n in range(instance.n_users) if not instance.servable[n]}

    users = [n for n in range(instance.n_users) if instance.servable[n]]
    columns = len(pairs)

    def best(rising: list[int], need: dict[int, Fraction], goal: int | None) -> Fraction:
        """Max t with s[n] >= t for the rising users (goal None), or max s[goal]; both with s[n] >= need[n] for the others.

        Columns x, t, y. A need is met by y[n] <= s[n], y[n] <= need[n] and a reward for y beyond all else: x = 0 is then a feasible start.
        """
        reward = Fraction(10) ** 90
        cost = [Fraction(0)] * columns + [Fraction(int(goal is None))] + [reward] * len(users)
        table = [[*row, *[Fraction(0)] * (1 + len(users))] for row in rows]
        right = list(bounds)
        for j, n in enumerate(users):
            own = [-share[n] if user == n else Fraction(0) for user, _ in pairs]
            unit = [Fraction(int(j == q)) for q in range(len(users))]
            if n == goal:
                cost[:columns] = [-value for value in own]
            if n in rising:
                table.append([*own, Fraction(1), *[Fraction(0)] * len(users)])
                right.append(Fraction(0))
            table += [[*own, Fraction(0), *unit], [Fraction(0)] * (columns + 1) + unit]
            right += [Fraction(0), need.get(n, Fraction(0))]
        return maximise(cost, table, right) - reward * sum(need.get(n, Fraction(0)) for n in users)

    while len(level) < instance.n_users:
        rising = [n for n in range(instance.n_users) if n not in level]
        t = best(rising, level, None)
        stuck = [n for n in rising if best([], {**dict.fromkeys(rising, t), **level}, n) == t]
        assert stuck
        level.update(dict.fromkeys(stuck, t))
    return [level[n] / share[n] if share[n] else Fraction(0) for n in range(instance.n_users)]


def integral_outcomes(instance: Instance, notion: str) -> list[Fraction]:
    """Sorted shares of the best allocation of whole tasks on single servers, by enumeration (tiny instances only)."""
    share = shares_per_task(instance, notion)
    servers = [i for i in range(instance.n_servers) for _ in range(int(instance.counts[i]))]
    users = [n for n in range(instance.n_users) if instance.servable[n]]
    m = instance.n_resources

    def fits(i: int, placed: tuple[int, ...]) -> bool:
        return all(
            sum(q * Fraction(instance.demands[n, r]) for q, n in zip(placed, users, strict=True)) <= Fraction(instance.capacities[i, r])
            for r in range(m)
        )

    # What matters of an allocation: the tasks of each user, and the servers that they are worth where those are limited.
    totals: set[tuple[tuple[int, Fraction | int], ...]] = {tuple((0, 0) for _ in users)}
    for i in servers:
        most = [
            int(min(Fraction(instance.capacities[i, r]) / Fraction(instance.demands[n, r]) for r in range(m) if instance.demands[n, r] > 0))
            if instance.eligibility[n, i]
            else 0
            for n in users
        ]
        options = [placed for placed in itertools.product(*(range(q + 1) for q in most)) if fits(i, placed)]
        worth = [
            servers_of_a_task(instance, n, i) if np.isfinite(instance.parallelism[n]) and instance.eligibility[n, i] else 0 for n in users
        ]
        totals = {
            tuple((x + q, used + q * w) for (x, used), q, w in zip(total, placed, worth, strict=True))
            for total in totals
            for placed in options
        }
    allowed = [
        total
        for total in totals
        if all(x <= instance.tasks[n] and used <= instance.parallelism[n] for (x, used), n in zip(total, users, strict=True))
    ]
    return max(sorted(share[n] * x for (x, _), n in zip(total, users, strict=True)) for total in allowed)


def is_equilibrium(instance: Instance, x: list[list[Fraction]]) -> bool:
    """Is x an equilibrium of PS-DSF? Theorem 1, word by word, with the instance's own numbers."""
    exact = instance.exact
    total = [sum(row, Fraction(0)) for row in x]
    users, servers, resources = range(exact.n_users), range(exact.n_servers), range(exact.n_resources)
    used = [[sum((x[n][i] * exact.demands[n, r] for n in users), Fraction(0)) for r in resources] for i in servers]
    if any(used[i][r] > exact.row_capacity[i, r] for i in servers for r in resources):
        return False
    if any(total[n] > exact.tasks[n] for n in users):
        return False

    def share(n: int, i: int) -> Fraction:
        s: Fraction = total[n] / (exact.rates[n, i] * exact.weights[n])
        return s

    def bottleneck(n: int, i: int, r: int) -> bool:
        if not exact.demands[n, r] or used[i][r] != exact.row_capacity[i, r]:
            return False
        return all(share(n, i) >= share(m, i) for m in users if x[m][i] * exact.demands[m, r] > 0)

    return all(
        total[n] == exact.tasks[n] or any(bottleneck(n, i, r) for r in resources) for n in users for i in servers if exact.eligibility[n, i]
    )
