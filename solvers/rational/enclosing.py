"""The data of an alpha-fair goal or a trade-off in rationals, and what both need that solve it: utilities, marginal worth, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log

from flint import arb, ctx, fmpq

from fairopt.program import AlphaFair, Tradeoff
from fairopt.program.exact import ExactProgram, exact_powers
from fairopt.solvers.rational.near import fraction, rational, simplest
from fairopt.solvers.rational.settings import SETTINGS

__all__ = [
    "BITS",
    "Enclosing",
    "digits_apart",
    "in_worth",
    "marginal_worth",
    "midpoint",
    "rounded",
    "small_fraction",
    "utilities_of",
    "within_limits",
]

BITS = 3.3219280948873626  # of a decimal digit


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The data of a goal in rationals.

    Attributes
    ----------
    user, worth : lists (pairs,)
        User and u[p] of each pair. Every pair can hold something.
    limits : list of dicts from a pair to A[j,p], > 0 but in rules
    bounds : list of b[j], > 0 but in rules
    phi : list (users,)
        Weights > 0 of the users, each of whom has a pair.
    alpha : fmpq
        The power: alpha, or beta of a trade-off.
    efficiency : fmpq
        e of a trade-off; 0 for an alpha-fair goal.
    rules : set of int
        Which limits are rules. With any, less of x may break one.
    """

    user: list[int]
    worth: list[fmpq]
    limits: list[dict[int, fmpq]]
    bounds: list[fmpq]
    phi: list[fmpq]
    alpha: fmpq
    efficiency: fmpq
    rules: frozenset[int] = frozenset()

    @property
    def sizes(self) -> list[fmpq]:
        """The unit of each limit: its bound, of a rule its largest number."""
        numbers = zip(self.limits, self.bounds, strict=True)
        return [max([abs(b), *map(abs, row.values())]) or fmpq(1) if j in self.rules else b for j, (row, b) in enumerate(numbers)]

    @classmethod
    def of(cls, program: ExactProgram) -> tuple[Enclosing, list[int], list[int]]:
        """Return the data of a program, and which pairs and limits it has: those that can hold something, and their users."""
        largest = program.largest()
        pairs = [p for p, most in enumerate(largest) if most > 0]
        rules = program.rules
        limits = [j for j, bound in enumerate(program.bounds.tolist()) if bound > 0 or j in rules]
        column, row = {p: k for k, p in enumerate(pairs)}, {j: k for k, j in enumerate(limits)}
        rows: list[dict[int, fmpq]] = [{} for _ in limits]
        for j, p, value in zip(program.rows.tolist(), program.columns.tolist(), program.data.tolist(), strict=True):
            if j in row and p in column:
                rows[row[j]][column[p]] = value
        of_pair = program.program.pair_users[pairs].tolist()
        users = sorted(set(of_pair))
        number = {n: k for k, n in enumerate(users)}
        goal = program.goal
        assert isinstance(goal, AlphaFair | Tradeoff)
        power, e = exact_powers(goal)
        return (
            cls(
                [number[n] for n in of_pair],
                [program.utilities[p] for p in pairs],
                rows,
                [program.bounds[j] for j in limits],
                [goal.weights[n] for n in users],
                power,
                e,
                frozenset(k for k, j in enumerate(limits) if j in rules),
            ),
            pairs,
            limits,
        )


def utilities_of(goal: Enclosing, x: Sequence[arb]) -> list[arb]:
    """Return U[n], the sum of u[p] x[p] over the pairs of each user."""
    utility = [arb(0)] * len(goal.phi)
    for p, n in enumerate(goal.user):
        utility[n] += arb(goal.worth[p]) * x[p]
    return utility


def marginal_worth(goal: Enclosing, utility: Sequence[arb]) -> tuple[list[arb], arb]:
    """Return z[n] = phi[n] U[n]^-alpha + kappa, and kappa."""
    power = arb(goal.alpha)
    own = [arb(phi) * (-power * value.log()).exp() for phi, value in zip(goal.phi, utility, strict=True)]
    if goal.efficiency == 0:
        return own, arb(0)
    e = arb(goal.efficiency)
    kappa = e / (1 - e) * sum((a * b for a, b in zip(own, utility, strict=True)), arb(0)) / sum(utility, arb(0))
    return [value + kappa for value in own], kappa


def digits_apart(goal: Enclosing, utility: Sequence[arb]) -> int:
    """Return by how many orders of magnitude the most that a user pays exceeds the least."""
    if not all(value > 0 for value in utility):
        return 0
    z, _ = marginal_worth(goal, utility)
    log_money = [float((worth * value).log()) for worth, value in zip(z, utility, strict=True)]
    return int((max(log_money) - min(log_money)) / log(10))


def in_worth(goal: Enclosing, x: Sequence[float], prices: Sequence[float]) -> list[arb]:
    """Return the prices in the unit of phi U^-alpha, in which all worth is spent."""
    utility = utilities_of(goal, [arb(value) for value in x])
    if not all(value > 0 for value in utility):
        return [arb(0)] * len(goal.bounds)
    z, _ = marginal_worth(goal, utility)
    worth = sum((a * b for a, b in zip(z, utility, strict=True)), arb(0))
    positive = [arb(max(price, 0.0)) for price in prices]
    income = sum((price * arb(bound) for price, bound in zip(positive, goal.bounds, strict=True)), arb(0))
    return [(price * worth / income).mid() for price in positive] if income > 0 else positive


def midpoint(value: arb) -> fmpq:
    """Return the midpoint as a rational."""
    mantissa, exponent = value.mid().man_exp()
    number = fmpq(mantissa)
    return number * fmpq(2) ** int(exponent) if exponent >= 0 else number / fmpq(2) ** int(-exponent)


def small_fraction(value: arb) -> fmpq | None:
    """Return the fraction of few digits that a number is to half its digits; None if there is none, as of a number that is not finite."""
    if not value.is_finite():
        return None
    near = simplest(fraction(midpoint(value)), 10 ** int(ctx.prec / BITS * 0.7))
    if max(near.numerator.bit_length(), near.denominator.bit_length()) > SETTINGS.most_bits_of_guess:
        return None
    return rational(near)


def rounded(value: fmpq, digits: int, down: bool) -> fmpq:
    """Return a number >= 0 with so many significant decimal digits, rounded down or to the nearest."""
    if value <= 0:
        return fmpq(0)
    size = floor((int(value.p).bit_length() - int(value.q).bit_length()) / BITS)  # within a digit
    shift = digits - size
    scale = fmpq(10) ** shift if shift >= 0 else 1 / fmpq(10) ** -shift
    scaled = value * scale
    return (fmpq(scaled.floor()) if down else fmpq((scaled + fmpq(1, 2)).floor())) / scale


def within_limits(goal: Enclosing, x: list[fmpq]) -> list[fmpq]:
    """Return x, made smaller by one factor if a limit is exceeded."""
    worst = fmpq(1)
    for row, bound in zip(goal.limits, goal.bounds, strict=True):
        used = sum((a * x[p] for p, a in row.items() if x[p] != 0), fmpq(0))
        worst = max(worst, used / bound)
    return x if worst == 1 else [value / worst for value in x]
