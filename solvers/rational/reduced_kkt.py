r"""The conditions of an alpha-fair optimum with fixed active sets, reduced to a few smooth equations, and Newton's method for them.

With the used pairs S and the priced limits F, the linear conditions of `fairopt.solvers.rational.alpha_fair`,

    z[n] u[p]  =  sum over j in F of A[j,p] price[j]    for the pairs of S,

have the solutions price = P c, z = Z c with rational P and Z, where c are the z of a few users. What remains is

    P'b  =  sum over n of Z[n] U[n](c),        U[n] = (phi[n] / (z[n] - kappa))^(1/alpha),

with kappa = 0 for an alpha-fair goal, and one more equation for a trade-off, kappa (1 - e) sum U = e sum (z - kappa) U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, arb_mat, ctx, fmpq

from fairopt.solvers.rational.enclosing import Enclosing, marginal_worth, midpoint
from fairopt.solvers.rational.near import Tableau
from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Reduced", "newton", "reduced_conditions", "utilities_at", "worth_and_prices"]


@dataclass(frozen=True, slots=True)
class Reduced:
    """The solutions of (1) for the ``tied`` pairs: price[j] = sum over k of P[j][k] c[k], z[n] = sum of Z[n][k] c[k].

    c[k] is the z of user ``users[k]``.
    """

    tied: frozenset[int]
    P: dict[int, dict[int, fmpq]]
    Z: list[dict[int, fmpq]]
    users: list[int]
    right: list[fmpq]  # P'b


def reduced_conditions(
    goal: Enclosing, tied: frozenset[int], priced: frozenset[int], prices: Sequence[arb], utility: Sequence[arb]
) -> Reduced | None:
    """Solve (1): eliminate the prices first, then worths, each the largest first, so that c are worths of users.

    In another order the smallest worths and prices would be differences of the largest, and rounding would hide them.
    """
    limits = sorted(priced)
    column = {j: k for k, j in enumerate(limits)}
    users = len(goal.phi)
    rows = []
    for p in sorted(tied):
        row = {column[j]: goal.limits[j][p] for j in limits if p in goal.limits[j]}
        row[len(limits) + goal.user[p]] = -goal.worth[p]
        rows.append(row)
    sizes = goal.sizes
    money = [prices[j] * arb(sizes[j]) for j in limits]
    order = [2.0 + place for place in _places(money)] + [1.0 + place for place in _places(marginal_worth(goal, utility)[0])]
    tableau = Tableau.of(rows, [fmpq(0)] * len(rows), order)
    assert tableau is not None
    if any(j < len(limits) for j in tableau.free):
        near = [midpoint(prices[j]) for j in limits] + [midpoint(value) for value in marginal_worth(goal, utility)[0]]
        return reduced_conditions(goal, *_at_vertex(goal, tableau, tied, limits, near), prices, utility)
    free = [j - len(limits) for j in tableau.free]
    number = {n: k for k, n in enumerate(free)}
    P: dict[int, dict[int, fmpq]] = {}
    Z: list[dict[int, fmpq]] = [{} for _ in range(users)]
    for n in free:
        Z[n] = {number[n]: fmpq(1)}
    for row, pivot in zip(tableau.rows, tableau.pivots, strict=True):
        values = {number[j - len(limits)]: -a for j, a in row.items()}
        if pivot < len(limits):
            P[limits[pivot]] = values
        else:
            Z[pivot - len(limits)] = values
    if not free or any(not row for row in Z):  # somebody's worth would be 0
        return None
    right = [fmpq(0)] * len(free)
    for j, row in P.items():
        for k, a in row.items():
            right[k] += a * goal.bounds[j]
    return Reduced(tied, P, Z, free, right)


def _at_vertex(
    goal: Enclosing, tableau: Tableau, tied: frozenset[int], limits: list[int], near: list[fmpq]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the sets at a vertex of the prices >= 0 that solve (1) and at which no pair is worth more than it costs.

    A price that is 0 there leaves the priced limits, and a pair whose cost is its worth joins the tied ones. The worths z stay as they are.
    Columns of the tableau are the prices, the worths, and beyond them what each pair that is not tied costs more than it is worth.
    """
    worths = range(len(limits), len(near))
    dependent = [j for j in tableau.free if j < len(limits)]
    of_pivot = dict(zip(tableau.pivots, tableau.rows, strict=True))
    moving = [j for j in range(len(limits)) if j in dependent or not of_pivot[j].keys().isdisjoint(dependent)]
    others = sorted({p for j in moving for p in goal.limits[limits[j]]} - tied)
    for k, p in enumerate(others, len(near)):
        dearer = {j: goal.limits[limit][p] for j, limit in enumerate(limits) if p in goal.limits[limit]}
        dearer[worths.start + goal.user[p]] = -goal.worth[p]
        row: dict[int, fmpq] = {}
        for column, value in dearer.items():
            for free, a in of_pivot.get(column, {column: fmpq(-1)}).items():
                row[free] = row.get(free, fmpq(0)) + value * a
        tableau.rows.append({free: a for free, a in row.items() if a != 0})
        tableau.right.append(fmpq(0))
        tableau.pivots.append(k)
        tableau.near_to.append(0.0)
    tableau.vertex(tableau.completed([*near, *[fmpq(0)] * len(others)]), dependent, worths)
    at_0 = set(tableau.free)
    joining = {p for k, p in enumerate(others, len(near)) if k in at_0}
    return tied | joining, frozenset(limit for j, limit in enumerate(limits) if j not in at_0)


def _places(values: Sequence[arb]) -> list[float]:
    """Return numbers in [0, 1) that are in the same order as values."""
    ascending = sorted(range(len(values)), key=lambda k: values[k].mid())
    places = [0.0] * len(values)
    for place, k in enumerate(ascending):
        places[k] = place / len(values)
    return places


def worth_and_prices(reduced: Reduced, c: Sequence[arb]) -> tuple[list[arb], dict[int, arb]]:
    """Return z and the prices."""
    z = [sum((arb(a) * c[k] for k, a in row.items()), arb(0)) for row in reduced.Z]
    return z, {j: sum((arb(a) * c[k] for k, a in row.items()), arb(0)) for j, row in reduced.P.items()}


def utilities_at(goal: Enclosing, z: Sequence[arb], kappa: arb) -> list[arb]:
    """Return U[n] = (phi[n] / (z[n] - kappa))^(1/alpha)."""
    power = 1 / arb(goal.alpha)
    return [((arb(phi) / (value - kappa)).log() * power).exp().mid() for phi, value in zip(goal.phi, z, strict=True)]


def newton(goal: Enclosing, reduced: Reduced, utility: Sequence[arb]) -> tuple[list[arb], arb] | None:
    """Solve P'b = Z'U(c), and for a trade-off the equation of kappa; start from utilities."""
    start, kappa = marginal_worth(goal, utility)
    c = [start[n].mid() for n in reduced.users]
    kappa = kappa.mid()
    d = len(c)
    with_kappa = goal.efficiency != 0
    power, e = arb(goal.alpha), arb(goal.efficiency)
    enough = arb(2) ** (-(ctx.prec * 3 // 4))
    for _ in range(SETTINGS.steps_of_newton):
        z, _prices = worth_and_prices(reduced, c)
        own = [(value - kappa).mid() for value in z]
        if not all(value > 0 for value in own):
            return None
        U = utilities_at(goal, z, kappa)
        slope = [(value / (power * each)).mid() for value, each in zip(U, own, strict=True)]  # -dU/dz
        size = d + with_kappa
        J = [[arb(0)] * size for _ in range(size)]
        f = [arb(value) for value in reduced.right] + [arb(0)] * with_kappa
        for n, row in enumerate(reduced.Z):
            for k, a in row.items():
                f[k] -= arb(a) * U[n]
                for m, b in row.items():
                    J[k][m] += arb(a) * arb(b) * slope[n]
                if with_kappa:
                    J[k][d] -= arb(a) * slope[n]
                    # g = kappa (1 - e) sum U - e sum own U
                    J[d][k] += arb(a) * (-kappa * (1 - e) * slope[n] - e * (U[n] - own[n] * slope[n]))
        if with_kappa:
            total = sum(U, arb(0))
            f[d] = kappa * (1 - e) * total - e * sum((a * b for a, b in zip(own, U, strict=True)), arb(0))
            J[d][d] = (1 - e) * total + sum((kappa * (1 - e) * s + e * (u - o * s) for s, u, o in zip(slope, U, own, strict=True)), arb(0))
        scale = list(c) + ([kappa] if with_kappa else [])
        try:
            matrix = arb_mat([[(J[i][j] * scale[j]).mid() for j in range(size)] for i in range(size)])
            step = matrix.solve(arb_mat([[-value.mid()] for value in f]))
        except ZeroDivisionError:
            return None
        moves = [step[k, 0].mid() for k in range(size)]  # relative
        if not all(move.is_finite() for move in moves):
            return None
        largest = max((abs(move) for move in moves), key=float)
        length = _longest(reduced, c, kappa, moves, own)
        c = [(value * (1 + length * move)).mid() for value, move in zip(c, moves, strict=False)]
        if with_kappa:
            kappa = (kappa * (1 + length * moves[d])).mid()
        if length == 1 and largest < enough:
            return c, kappa
    return None


def _longest(reduced: Reduced, c: Sequence[arb], kappa: arb, moves: Sequence[arb], own: Sequence[arb]) -> arb:
    """Return the length of a step that leaves at least a tenth of every phi U^-alpha; at most 1."""
    length = arb(1)
    of_kappa = kappa * moves[len(c)] if len(moves) > len(c) else arb(0)
    for row, value in zip(reduced.Z, own, strict=True):
        change = (sum((arb(a) * c[k] * moves[k] for k, a in row.items()), arb(0)) - of_kappa).mid()
        if change < 0 and -change * length > value * arb("0.9"):
            length = (value * arb("0.9") / -change).mid()
    return length
