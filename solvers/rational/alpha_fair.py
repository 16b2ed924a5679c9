r"""Alpha-fair goals and trade-offs to any number of digits: a feasible allocation and prices in rationals, as near to the optimum as
asked.

The optimum is irrational in general. Floats show its *active sets*, the pairs whose worth is their cost (S) and the limits that have a
price (F), or else the end of a path with many digits does (`fairopt.solvers.rational.central_end`). With these fixed, the conditions of
optimality are

    z[n] u[p] = sum over j in F of A[j,p] price[j]   for the pairs of S,    z[n] = phi[n] U[n]^-alpha  (+ kappa for a trade-off)   (1)
    sum of A[j,p] x[p] = b[j]   on F,        sum of u[p] x[p] over the pairs of n = U[n],    x = 0 outside S                      (2)

(1) is linear and homogeneous in (price, z): its solutions are price = P c, z = Z c, with rational P and Z, where c are the z of a few
users. (2) can be solved for x if and only if U is orthogonal to what (1) leaves open: P'b = Z'U. So everything comes down to as many
smooth equations as there are entries of c,

    P'b  =  sum over n of Z[n] U[n](c),        U[n] = (phi[n] / z[n])^(1/alpha),

whose Jacobian is positive definite: Z' diag(U / (alpha z)) Z. They have no trouble with placements that are not unique, since x does not
stand in them. A trade-off has one more unknown, kappa, and one more equation. Newton's method solves them with as many digits as wanted,
and then U is rounded, (2) is solved in rationals, and x is rounded down. Since all coefficients of limits are >= 0, x is feasible
exactly. Under rules x is not rounded: it solves (2).

Prices that are not unique are made so: of the prices >= 0 that solve (1) and at which no pair is worth more than it costs, a vertex. Where
a price or a part of x turns out negative, or a pair is worth more than it costs, or a limit overflows, the sets are corrected. Equal
numbers are no difficulty; where demands or capacities differ by a part of 10^-12, none of the sets may have a solution, and the answer is
refused.

Nothing is proved here. How far from the optimum this allocation can be at most, `fairopt.certificate.enclosure` finds out from the
allocation and the prices alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product

import numpy as np
from flint import arb, ctx, fmpq

from fairopt.errors import NoSolution
from fairopt.instance.fractions import rationals
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.central_end import ends_of_path
from fairopt.solvers.rational.enclosing import (
    BITS,
    Enclosing,
    digits_apart,
    in_worth,
    marginal_worth,
    midpoint,
    rounded,
    small_fraction,
    utilities_of,
    within_limits,
)
from fairopt.solvers.rational.placing import Sets, placed_near
from fairopt.solvers.rational.reduced_kkt import Reduced, newton, reduced_conditions, utilities_at, worth_and_prices
from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Point", "points_near", "solve_near"]

_GUESSES = tuple(product((True, False), ("either", "cost", "held"), SETTINGS.tolerances_of_sets))  # limits by price, pairs by, tolerance


@dataclass(frozen=True, slots=True)
class Point:
    """x (pairs,) >= 0 within all limits, and prices (limits,) >= 0, in rationals; ``rational`` if they may be the optimum itself."""

    x: list[fmpq]
    prices: list[fmpq]
    rational: bool = False


def points_near(program: ExactProgram, near: Solution, digits: int, deadline: Deadline) -> list[Solution]:
    """Return points near the optimum of a program by about ``digits`` digits, from a solution in floats, the likeliest first.

    Raises
    ------
    NoSolution
        At the deadline, or where no active sets near those of the floats have a solution.
    """
    goal, pairs, limits = Enclosing.of(program)
    if not pairs:
        return [Solution(rationals(np.zeros(program.n_pairs, np.int64)), prices=rationals(np.zeros(program.bounds.size, np.int64)))]
    prices = np.zeros(program.bounds.size) if near.prices is None else near.prices

    def go_on(steps: float) -> bool:
        deadline.spend(steps)
        return deadline.left > 0

    found = solve_near(goal, near.x[pairs].tolist(), prices[limits].tolist(), digits, go_on)
    if not found and deadline.left == 0.0:
        raise deadline.passed({})
    if not found:
        raise NoSolution(
            "floats do not show which pairs of users and servers hold something and which limits have a price at the optimum, so no digits "
            'of it can be proved; use a smaller alpha (beta of fds and gfj), or "max-min", the limit of a large alpha',
            {"tasks": near.x},
        )
    solutions = []
    for point in found:
        x, at = rationals(np.zeros(program.n_pairs, np.int64)), rationals(np.zeros(program.bounds.size, np.int64))
        x[pairs], at[limits] = point.x, point.prices
        solutions.append(Solution(x, prices=at))
    return solutions


def solve_near(goal: Enclosing, x: Sequence[float], prices: Sequence[float], digits: int, go_on: Callable[[float], bool]) -> list[Point]:
    """Return points that are near the optimum by about ``digits`` digits, the likeliest first: a guess in small fractions, then decimals.

    Parameters
    ----------
    x, prices : near the optimum; prices in any unit of money
    digits : int
        Relative digits of x, U and prices. (A point with d digits proves about d/2 of them.)
    go_on : function
        Asked before each guess of the active sets, and each step to its end, whether there is time and work left for it; it takes the work.
    """
    before = ctx.prec
    of_a_guess = SETTINGS.steps_of_a_guess + SETTINGS.steps_of_a_cell * (len(goal.phi) + len(goal.bounds)) * len(goal.user)
    try:
        ctx.prec = int(SETTINGS.first_digits * BITS)
        money = in_worth(goal, x, prices)
        seen: set[Sets] = set()
        first, *others = _GUESSES
        for sets, near, at, start in chain(
            _read([first], goal, x, money), ends_of_path(goal, x, money, go_on), _read(others, goal, x, money)
        ):
            for _ in range(SETTINGS.rounds_of_sets):
                if sets is None or sets in seen or not go_on(of_a_guess):
                    break
                seen.add(sets)
                apart = digits_apart(goal, start)
                ctx.prec = int((SETTINGS.first_digits + 2 * apart) * BITS)
                found = _try(goal, *sets, near, at, start, digits + apart)
                if isinstance(found, list):
                    return found
                sets = found
    finally:
        ctx.prec = before
    return []


def _read(
    guesses: Sequence[tuple[bool, str, float]], goal: Enclosing, x: Sequence[float], prices: list[arb]
) -> Iterator[tuple[Sets | None, Sequence[float], list[arb], list[arb]]]:
    """Yield sets that are read off floats, one for each guess of what is 0 there, with the floats, the prices and the utilities."""
    start = utilities_of(goal, [arb(value) for value in x])
    for by_price, by, tolerance in guesses:
        yield _sets_near(goal, x, prices, tolerance, by_price, by), x, prices, start


def _sets_near(goal: Enclosing, x: Sequence[float], prices: Sequence[arb], tolerance: float, by_price: bool, by: str) -> Sets | None:
    """Return the pairs whose worth is their cost, or which hold something, and the limits that have a price (or are full)."""
    ctx.prec = 64
    utility = utilities_of(goal, [arb(value) for value in x])
    if not all(value > 0 for value in utility):
        return None
    z, _ = marginal_worth(goal, utility)
    free = [
        (arb(bound) - sum((arb(a) * arb(x[p]) for p, a in row.items()), arb(0))) / arb(size)
        for row, bound, size in zip(goal.limits, goal.bounds, goal.sizes, strict=True)
    ]
    full = {j for j, part in enumerate(free) if float(part) < max(tolerance, 1e-9)}
    cost = [arb(0)] * len(goal.user)
    for j, row in enumerate(goal.limits):
        if prices[j] > 0:
            for p, a in row.items():
                cost[p] += arb(a) * prices[j]
    tied = set()
    for p, n in enumerate(goal.user):
        held = float(arb(goal.worth[p]) * arb(x[p]) / utility[n])
        dearer = float(cost[p] / (arb(goal.worth[p]) * z[n])) - 1
        if (dearer <= tolerance and by != "held") or (held > tolerance and by != "cost"):
            tied.add(p)
    if not by_price:
        return frozenset(tied), frozenset(full)
    priced = {
        j
        for j in full
        if any(float(abs(arb(a)) * prices[j] / cost[p]) > tolerance for p, a in goal.limits[j].items() if p in tied and cost[p] > 0)
    }
    return frozenset(tied), frozenset(priced)


# One guess of the sets -------------------------------------------------------------------------------------------------------------


def _try(
    goal: Enclosing,
    tied: frozenset[int],
    priced: frozenset[int],
    x: Sequence[float],
    prices: Sequence[arb],
    start: Sequence[arb],
    digits: int,
) -> list[Point] | Sets | None:
    """Return points of these sets; or better sets; or None where the sets tell nothing."""
    reduced = reduced_conditions(goal, tied, priced, prices, start)
    if reduced is None:
        return None
    tied = reduced.tied
    solved = newton(goal, reduced, start)
    if solved is None:
        return None
    c, kappa = solved
    z, price = worth_and_prices(reduced, c)
    utility = utilities_at(goal, z, kappa)
    if not all(value.is_finite() for value in utility):  # kappa is a worth z to all digits
        return None
    placed = placed_near(goal, reduced, tied, priced, [midpoint(value) for value in utility], x)
    better = _corrected_by_prices(goal, tied, priced, z, price)
    if better is not None:
        return better
    if isinstance(placed, tuple):
        return placed
    if placed is None:
        return None
    points = []
    guess = _guessed(goal, reduced, c, kappa, tied, priced, x)
    if guess is not None:
        points.append(guess)
    while ctx.prec < int((digits + SETTINGS.guard_digits) * BITS) + 32:
        ctx.prec = min(2 * ctx.prec, int((digits + SETTINGS.guard_digits) * BITS) + 32)
        again = newton(goal, reduced, utility)
        if again is None:
            return points or None
        c, kappa = again
        z, price = worth_and_prices(reduced, c)
        utility = utilities_at(goal, z, kappa)
        if not all(value.is_finite() for value in utility):
            return points or None
    near = [midpoint(value) for value in utility]
    if goal.rules:  # what is placed obeys the rules as it is, and rounded down it may not
        near = [rounded(value, digits + SETTINGS.guard_digits, down=False) for value in near]
    placed = placed_near(goal, reduced, tied, priced, near, x)
    if isinstance(placed, tuple) and not points:  # rounding breaks a rule
        return placed
    if isinstance(placed, list):
        at_most = placed if goal.rules else [rounded(value, digits + SETTINGS.guard_digits, down=True) for value in placed]
        at = [
            rounded(midpoint(price[j]), digits + SETTINGS.guard_digits, down=False) if j in price else fmpq(0)
            for j in range(len(goal.bounds))
        ]
        points.append(Point(at_most if goal.rules else within_limits(goal, at_most), [max(value, fmpq(0)) for value in at]))
    return points


def _corrected_by_prices(
    goal: Enclosing, tied: frozenset[int], priced: frozenset[int], z: Sequence[arb], price: dict[int, arb]
) -> Sets | None:
    """Return sets without limits whose price is negative, and with pairs that are worth more than they cost; None: nothing to do."""
    sizes = goal.sizes
    money = sum((value * arb(sizes[j]) for j, value in price.items() if value > 0), arb(0))
    little = arb(2) ** (-(ctx.prec * 7 // 10))
    negative = {j for j, value in price.items() if (value * arb(sizes[j]) + little * money) < 0}
    if negative:
        return tied, priced - negative
    cost = [arb(0)] * len(goal.user)
    for j, value in price.items():
        for p, a in goal.limits[j].items():
            cost[p] += arb(a) * value
    join = {p for p, n in enumerate(goal.user) if p not in tied and cost[p] < arb(goal.worth[p]) * z[n] * (1 - little)}
    return (tied | join, priced) if join else None


def _guessed(
    goal: Enclosing, reduced: Reduced, c: Sequence[arb], kappa: arb, tied: frozenset[int], priced: frozenset[int], x: Sequence[float]
) -> Point | None:
    """Return the point at which c are small fractions, if they look like it and the equations hold exactly."""
    guess = [small_fraction(value) for value in c]
    if any(value is None for value in guess):
        return None
    exact = [value for value in guess if value is not None]
    z = [sum((a * exact[k] for k, a in row.items()), fmpq(0)) for row in reduced.Z]
    k = small_fraction(kappa) if goal.efficiency != 0 else fmpq(0)
    if k is None:
        return None
    approximate = utilities_at(goal, [arb(value) for value in z], arb(k))
    utility = [small_fraction(value) for value in approximate]
    if any(value is None for value in utility):
        return None
    U = [value for value in utility if value is not None]
    for n, row in enumerate(reduced.right):
        if row != sum((each[n] * value for each, value in zip(reduced.Z, U, strict=True) if n in each), fmpq(0)):
            return None
    placed = placed_near(goal, reduced, tied, priced, U, x)
    if not isinstance(placed, list):
        return None
    prices = [fmpq(0)] * len(goal.bounds)
    for j, own in reduced.P.items():
        prices[j] = sum((a * exact[k] for k, a in own.items()), fmpq(0))
    return Point(placed, prices, rational=True)
