"""From the utilities of an alpha-fair optimum to a placement in rationals: equations that are consistent, near the floats, at a vertex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import ctx, fmpq

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING
from fairopt.solvers.rational.enclosing import Enclosing
from fairopt.solvers.rational.near import Tableau
from fairopt.solvers.rational.reduced_kkt import Reduced
from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Sets", "placed_near", "vertex_of"]


Sets = tuple[frozenset[int], frozenset[int]]
"""Used pairs and priced limits."""


def placed_near(
    goal: Enclosing, reduced: Reduced, tied: frozenset[int], priced: frozenset[int], utility: list[fmpq], x: Sequence[float]
) -> list[fmpq] | Sets | None:
    """Solve (2) in rationals near x, at a vertex; or return better sets; or None.

    The utilities of the users of c are made to fit exactly: only then are the equations consistent.
    """
    corner, held = _corner(goal, tied, x)
    if len(corner) < len(tied):
        found = _placed_on(goal, reduced, corner, priced, utility, held)
        if isinstance(found, list):
            return found
    return _placed_on(goal, reduced, tied, priced, utility, x)


def _corner(goal: Enclosing, tied: frozenset[int], x: Sequence[float]) -> tuple[frozenset[int], list[float]]:
    """Return the pairs that hold something at a vertex of the placements with the utilities of x, and what they hold, in floats."""
    pairs, limits, sizes = sorted(tied), range(len(goal.bounds)), goal.sizes
    total = [0.0] * len(goal.phi)
    for p, n in enumerate(goal.user):
        total[n] += float(goal.worth[p]) * x[p]
    table = np.zeros((len(limits) + len(total), len(pairs) + len(limits)))
    place = {p: k for k, p in enumerate(pairs)}
    for j in limits:
        for p, a in goal.limits[j].items():
            if p in place:
                table[j, place[p]] = float(a / sizes[j])
        table[j, len(pairs) + j] = 1.0
    for p, k in place.items():
        table[len(limits) + goal.user[p], k] = float(goal.worth[p]) / total[goal.user[p]]
    size = np.append(np.abs(table[:, : len(pairs)]).max(axis=0, initial=0.0), np.ones(len(limits)))
    held = np.array([x[p] for p in pairs])
    allowed = np.array([float(bound / unit) for bound, unit in zip(goal.bounds, sizes, strict=True)])
    left = np.maximum(allowed - table[: len(limits), : len(pairs)] @ held, 0.0)
    left[left < NOTHING] = 0.0
    basis, values = vertex_of(table / size, np.append(held * size[: len(pairs)], left).tolist())
    at = [0.0] * len(x)
    for p, k in place.items():
        at[p] = float(values[k] / size[k])
    return frozenset(pairs[k] for k in basis if k < len(pairs)), at


def _placed_on(
    goal: Enclosing, reduced: Reduced, tied: frozenset[int], priced: frozenset[int], utility: list[fmpq], x: Sequence[float]
) -> list[fmpq] | Sets | None:
    """Return the same with these pairs alone."""
    utility = list(utility)
    own = set(reduced.users)
    for k, n in enumerate(reduced.users):
        rest = sum((row[k] * utility[m] for m, row in enumerate(reduced.Z) if m not in own and k in row), fmpq(0))
        utility[n] = reduced.right[k] - rest
    pairs = sorted(tied)
    column = {p: k for k, p in enumerate(pairs)}
    near = [x[p] for p in pairs]
    rows: list[dict[int, fmpq]] = [{} for _ in goal.phi]
    for p in pairs:
        rows[goal.user[p]][column[p]] = goal.worth[p]
    right = list(utility)
    slack: dict[int, int] = {}
    for j, (limit, bound, size) in enumerate(zip(goal.limits, goal.bounds, goal.sizes, strict=True)):
        row = {column[p]: a for p, a in limit.items() if p in column}
        if not row:
            continue
        if j not in reduced.P:
            slack[len(near)] = j
            left = max(float(bound / size) - sum(float(a / size) * near[k] for k, a in row.items()), 0.0)
            row[len(near)] = size
            near.append(left)
        rows.append(row)
        right.append(bound)
    tableau = Tableau.of(rows, right, near)
    if tableau is None:
        return None
    z = tableau.near()
    little = fmpq(1, 2 ** (ctx.prec * 7 // 10))
    of_user = {p: utility[goal.user[p]] / goal.worth[p] for p in pairs}
    leave = {p for p in pairs if z[column[p]] < -little * of_user[p]}
    over = {j for k, j in slack.items() if z[k] < (0 if j in goal.rules else -little)}  # what breaks a rule by rounding is not scaled down
    if leave or over:
        return tied - leave, priced | over
    z = [max(value, fmpq(0)) for value in z]
    if all(value >= 0 for value in tableau.completed(z)):
        z = tableau.vertex(tableau.completed(z))
    answer = [fmpq(0)] * len(goal.user)
    for p in pairs:
        answer[p] = max(z[column[p]], fmpq(0))
    return answer


def vertex_of(columns: FloatArray, sizes: Sequence[float]) -> tuple[list[int], FloatArray]:
    """Return the basis of a vertex of all sizes >= 0 with the same combination of the columns, and the sizes there.

    Dependent columns are taken out one by one, and what they contributed goes to the others; where one of these would become negative, it
    is taken out instead.
    """
    table, value = np.array(columns, float), np.array(sizes, float)
    largest = np.abs(table).max(axis=0, initial=0.0)
    open_rows = np.ones(table.shape[0], bool)
    basis = np.full(table.shape[0], -1)
    free: list[int] = []
    for k in np.argsort(-value, kind="stable").tolist():
        row = int(np.where(open_rows, np.abs(table[:, k]), -1.0).argmax()) if open_rows.any() else -1
        if row < 0 or abs(table[row, k]) <= SETTINGS.dependent * largest[k]:
            free.append(k)
            continue
        _pivot(table, row, k)
        basis[row], open_rows[row] = k, False
    used = np.flatnonzero(basis >= 0)
    for k in free:
        made_of = table[used, k]
        falling = np.flatnonzero(made_of < -SETTINGS.dependent)
        steps = value[basis[used[falling]]] / -made_of[falling]
        step = min(float(steps.min(initial=np.inf)), value[k])
        value[basis[used]] += step * made_of
        value[k] -= step
        if value[k] > 0 and falling.size:
            row = used[falling[steps.argmin()]]
            value[basis[row]] = 0.0
            basis[row] = k
            _pivot(table, row, k)
    return sorted(basis[used].tolist()), value


def _pivot(table: FloatArray, row: int, column: int) -> None:
    table[row] /= table[row, column]
    others = table[:, column].copy()
    others[row] = 0.0
    touched = np.flatnonzero(others)
    table[touched] -= others[touched, None] * table[row]
