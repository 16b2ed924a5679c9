r"""How far an allocation can be from an alpha-fair optimum at most: a proof from the allocation and prices alone, without rounding.

Let x be feasible, U its utilities, U* those of the optimum, and z[n] = phi[n] U[n]^-alpha the gradient of the goal at U. By weak duality,
for any prices p >= 0,

    z . (U* - U)  <=  gap  =  p . b + sum over pairs of max(0, z u - A'p) * largest x  -  z . U.

The goal at U* is not below that at U, and g(V) = V^(1-alpha) / (1-alpha) is strictly concave. With the relative change rho[n] = U*[n] /
U[n],

    phi[n] U[n]^(1-alpha) d(rho[n])  <=  gap,     d(rho) = rho - 1 - (rho^(1-alpha) - 1) / (1-alpha)      (rho - 1 - log rho for alpha = 1)

for every user by itself. d is convex and 0 only at rho = 1, so d(1 - r) > limit and d(1 + r) > limit prove that |U*[n] - U[n]| < r U[n].
Everything is evaluated in Arb's ball arithmetic, whose results enclose the true ones, and r is a rational number. (The gap of a point
with 2 d correct digits proves about d.) Neither complementarity nor uniqueness of prices or placements is needed.

*Trade-offs*, (1 - e) log M(U) + e log sum U with the power mean M: with z[n] = phi[n] U[n]^-beta + kappa and Q = sum of phi[n]
U[n]^(1-beta), the gradient is z (1 - e) / Q. Let U* = s V, with V such that the gradient of log M has the same product with V as with U.
Then M(U*) <= M(U) s, since M is concave and homogeneous, so

    s - 1 - log s  <=  gap / Q,         phi[n] U[n]^(1-beta) d(V[n] / U[n])  <=  Q (e^((beta-1) gap / Q) - 1) / (beta - 1).

*Rational optima.* If every z[n] is rational and the gap, computed in rationals, is 0, then U is the optimum itself, and r = 0.

Source of the ball arithmetic: Johansson (2017), Arb: efficient arbitrary-precision midpoint-radius interval arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from fairopt.errors import CertificateError
from fairopt.program import AlphaFair, Solution, Tradeoff
from fairopt.program.exact import ExactProgram, exact_powers

__all__ = ["proved_radius"]

_LARGEST_POWER = 64  # numerator and denominator of an exponent with which roots are sought in rationals
_TIMES = (2, 8, 64, 4096)  # what the radius of the quadratic approximation is multiplied by
_ZERO = fmpq(0)


def proved_radius(program: ExactProgram, solution: Solution, digits: int) -> Fraction:
    """Return r such that the optimal utility of every user is within r U[n] of that of the allocation; 0 where x is optimal.

    Parameters
    ----------
    program : ExactProgram
        With a goal AlphaFair or Tradeoff.
    solution : Solution
        x and prices in rationals. The nearer the prices are to the optimal dual ones, the smaller is r.
    digits : int
        Precision of the arithmetic: twice the digits of r that are hoped for, and some more.

    Raises
    ------
    CertificateError
        x is not feasible, a price is negative, a user that could have something has nothing, or no r < 1 can be proved.
    """
    point = _Point.of(program, solution)
    return Fraction(0) if not point.weights or point.is_optimal() else point.radius(digits)


@dataclass(frozen=True, slots=True)
class _Point:
    """A feasible point: of each user with something to have the weight and U[n]; of each of its pairs u[p], cost and largest value."""

    alpha: fmpq
    efficiency: fmpq
    weights: dict[int, fmpq]
    utility: dict[int, fmpq]
    pairs: list[tuple[int, fmpq, fmpq, fmpq]]
    income: fmpq

    @classmethod
    def of(cls, program: ExactProgram, solution: Solution) -> _Point:
        goal, x = program.goal, solution.x
        assert isinstance(goal, AlphaFair | Tradeoff)
        prices = solution.prices
        if prices is None or any(price < 0 for price in prices.tolist()):
            raise CertificateError("a price is negative, or missing")
        if any(value < 0 for value in x.tolist()):
            raise CertificateError("a pair holds a negative number of tasks")
        for j, (used, bound) in enumerate(zip(program.usage(x).tolist(), program.bounds.tolist(), strict=True)):
            if used > bound:
                raise CertificateError(f"the limit {program.program.limit_name(j)} is exceeded")
        largest, cost = program.largest(), program.cost(prices)
        utility = program.per_user(program.utilities * x)
        members = {int(n) for n, most in zip(program.program.pair_users, largest, strict=True) if most > 0}
        for n in sorted(members):
            if utility[n] == 0 or goal.weights[n] <= 0:
                why = "has nothing" if utility[n] == 0 else "has weight 0, so that what it has is not unique"
                raise CertificateError(f'user "{program.program.users[n]}" {why}')
        if any(not isinstance(most, fmpq) for most in largest):
            raise CertificateError("a pair has no limit, so nothing bounds what it could hold")
        return cls(
            *exact_powers(goal),
            {n: goal.weights[n] for n in members},
            {n: utility[n] for n in members},
            [
                (int(n), u, at, most)
                for n, u, at, most in zip(program.program.pair_users, program.utilities, cost, largest, strict=True)
                if isinstance(most, fmpq) and most > 0
            ],
            sum((price * bound for price, bound in zip(prices.tolist(), program.bounds.tolist(), strict=True)), _ZERO),
        )

    def is_optimal(self) -> bool:
        """Is the gap 0, computed in rationals? False also where a gradient is irrational."""
        own: dict[int, fmpq] = {}
        for n, value in self.utility.items():
            power = _power(value, self.alpha)
            if power is None:
                return False
            own[n] = self.weights[n] / power
        kappa = _ZERO
        if self.efficiency != 0:
            paid = sum((own[n] * value for n, value in self.utility.items()), _ZERO)
            kappa = self.efficiency / (1 - self.efficiency) * paid / sum(self.utility.values(), _ZERO)
        gap = self.income - sum(((own[n] + kappa) * value for n, value in self.utility.items()), _ZERO)
        for n, u, cost, most in self.pairs:
            gap += max(u * (own[n] + kappa) - cost, _ZERO) * most
        return bool(gap == 0)

    def radius(self, digits: int) -> Fraction:
        """Return a radius, proved in balls.

        The gap is a difference of all payments, and is compared with the least of them: where these lie apart by as many digits as are
        asked for, balls of so many digits would prove nothing.
        """
        before = ctx.prec
        ctx.prec = int(3.33 * (digits + self._digits_apart())) + 64
        try:
            return self._radius()
        finally:
            ctx.prec = before

    def _digits_apart(self) -> float:
        """Return by about how many orders of magnitude the most that a user pays exceeds the least."""
        alpha = arb(self.alpha)
        paid = [float(arb(self.weights[n]).log() + (1 - alpha) * arb(value).log()) for n, value in self.utility.items()]
        return (max(paid) - min(paid)) / math.log(10)

    def _radius(self) -> Fraction:
        alpha, zero = arb(self.alpha), arb(0)
        U = {n: arb(value) for n, value in self.utility.items()}
        own = {n: arb(self.weights[n]) * (-alpha * value.log()).exp() for n, value in U.items()}
        paid = {n: own[n] * value for n, value in U.items()}
        Q = sum(paid.values(), zero)
        e = arb(self.efficiency)
        kappa = e / (1 - e) * Q / sum(U.values(), zero)
        gap = arb(self.income) - sum(((own[n] + kappa) * value for n, value in U.items()), zero)
        for n, u, cost, most in self.pairs:
            gap += (arb(u) * (own[n] + kappa) - arb(cost)).max(zero) * arb(most)
        gap = gap.max(zero)
        if self.efficiency == 0:
            return max(_nearest(gap / paid[n], alpha) for n in U)
        gap = gap / Q
        rest = Q * ((alpha - 1) * gap).expm1() / (alpha - 1)
        scale = _nearest(gap, arb(1))
        return max((1 + _nearest(rest / paid[n], alpha)) * (1 + scale) - 1 for n in U)


def _power(value: fmpq, exponent: fmpq) -> fmpq | None:
    """Return value^exponent where it is rational and the exponent small; else None."""
    if max(exponent.p, exponent.q) > _LARGEST_POWER:
        return None
    degree = int(exponent.q)
    roots = [number if degree == 1 else _root(int(number), degree) for number in (value.p, value.q)]
    top, bottom = roots
    return None if top is None or bottom is None else fmpq(fmpz(top), fmpz(bottom)) ** int(exponent.p)


def _root(number: int, degree: int) -> int | None:
    """Return the whole root of a whole number > 0; None if there is none."""
    low, high = 1, 1 << (number.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle)
    return low if low**degree == number else None


def _nearest(limit: arb, alpha: arb) -> Fraction:
    """Return r < 1 such that d(rho) <= limit only if |rho - 1| < r."""

    def d(rho: arb) -> arb:
        power = 1 - alpha
        return rho - 1 - (rho.log() if power == 0 else (power * rho.log()).expm1() / power)

    for times in _TIMES if limit.is_finite() else ():
        r = _short(((2 * limit / alpha).upper().sqrt() * times).upper())
        if r >= 1:
            break
        ball = arb(fmpq(r.numerator, r.denominator))
        if d(1 + ball) > limit and d(1 - ball) > limit:
            return r
    raise CertificateError("the gap between the allocation and its bound is too large to prove anything")


def _short(value: arb) -> Fraction:
    """Return a number of few binary digits that is not below a positive one, and not 0."""
    if value == 0:
        return Fraction(1, 2**ctx.prec)
    mantissa, power = (int(part) for part in value.man_exp())
    shift = max(mantissa.bit_length() - 8, 0)
    return Fraction((mantissa >> shift) + 1) * Fraction(2) ** (power + shift)
