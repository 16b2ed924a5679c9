"""Enclosures of alpha-fair optima: they contain the solution found independently to 50 digits, and forged answers prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate.enclosure import proved_radius
from fairopt.errors import CertificateError
from fairopt.instance.fractions import rational
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers import points_near
from fairopt.solvers.backend import Deadline
from fairopt.solving.enclosures import answer_in_floats

Instance: Any = fo.Instance  # array types do not know Fractions
solve: Any = fo.solve  # its answers have fractions here

TWO_RESOURCES = Instance([[9, 18]], [[1, 4], [3, 1]])


def point_of(instance: fo.Instance, notion: str, digits: int = 80, **options: Any) -> tuple[ExactProgram, Any]:
    """A program in fractions, and the best point near its optimum."""
    chosen = fo.NOTIONS[notion](**options)
    program = chosen.in_fractions(instance.exact, chosen.formulate(instance, sharing="rdm", integral=False))
    return program, points_near(program, answer_in_floats(program, Deadline(None)), digits, Deadline(None))[-1]


def fifty(function: Callable[[Any], Any], start: Any) -> Any:
    """A root to 60 digits."""
    with mpmath.workdps(60):
        return mpmath.findroot(function, start)


def test_two_users_of_one_full_resource() -> None:
    """x0 + 3 x1 = 9 alone binds: phi x^-alpha = p d, so x0 = phi... by hand, for several alphas."""
    for alpha in (0.5, 1, 2, 7.5, 40):
        instance = Instance([[9]], [[1], [3]], weights=[2, 1])
        exact = solve(instance, "proportional", alpha=alpha, exact=True, digits=45).exact
        with mpmath.workdps(60):
            a = mpmath.mpf(alpha)
            ratio = (mpmath.mpf(2) * 3) ** (1 / a)  # x0 / x1
            second = 9 / (ratio + 3)
            for found, expected in zip(exact.tasks_per_user, (ratio * second, second), strict=True):
                off = abs(mpmath.mpf(found.numerator) / found.denominator - expected)
                assert off <= mpmath.mpf(10) ** -45 * expected


@pytest.mark.parametrize(("notion", "options"), [("gfj", {"beta": 2, "lam": -4}), ("gfj", {"beta": 0.5}), ("fds", {"beta": 3})])
def test_trade_off_on_one_edge(notion: str, options: dict[str, float]) -> None:
    """Two users of one resource: the maximum of log |f| along x0 + 3 x1 = 9, where its derivative is 0."""
    instance = Instance([[9]], [[1], [3]], weights=[1, 1])
    answer = solve(instance, notion, exact=True, digits=40, **options)
    beta = mpmath.mpf(options["beta"])
    with mpmath.workdps(60):
        lam = mpmath.mpf(options.get("lam", 2 * (1 - beta) / beta))
        e = 1 - (1 - beta) / (beta * lam)
        worth = [mpmath.mpf(1) / 9, mpmath.mpf(1) / 3] if notion == "fds" else [mpmath.mpf(1)] * 2

        def goal(x1: Any) -> Any:
            U = [worth[0] * (9 - 3 * x1), worth[1] * x1]
            return (1 - e) / (1 - beta) * mpmath.log(U[0] ** (1 - beta) + U[1] ** (1 - beta)) + e * mpmath.log(U[0] + U[1])

        x1 = mpmath.findroot(lambda x: mpmath.diff(goal, x), mpmath.mpf(float(answer.tasks_per_user[1])))
        found = answer.exact.tasks_per_user[1]
        assert abs(mpmath.mpf(found.numerator) / found.denominator - x1) <= mpmath.mpf(10) ** -25


def test_the_radius_contains_a_better_point() -> None:
    """Of points with 20, 40, ..., 100 digits, each encloses the ones after it."""
    instance = Instance([[9, 12], [5, 3]], [[1, 2], [2, 1], [1, 1]], weights=[1, 2, 3])
    points = []
    for digits in (20, 40, 60, 100):
        program, point = point_of(instance, "proportional", digits, alpha=2)
        points.append((proved_radius(program, point, digits + 20), program.per_user(program.utilities * point.x)))
    for k, (radius, utility) in enumerate(points):
        assert 0 < radius < 1
        for _, better in points[k + 1 :]:
            assert all(abs(a / b - 1) <= rational(radius) for a, b in zip(better, utility, strict=True))
    assert points[0][0] > points[1][0] > points[2][0] > points[3][0]


def test_payments_that_lie_farther_apart_than_the_digits() -> None:
    """Two users on a small server and two on one a thousand times as large: at alpha = 30 the latter pay 10^-87 of what the former do."""
    instance = Instance([[1], [1000]], [[1], [3], [1], [3]], eligibility=[[1, 0], [1, 0], [0, 1], [0, 1]])
    program, point = point_of(instance, "proportional", 60, alpha=30)
    assert proved_radius(program, point, 76) < Fraction(1, 10**25)


def test_rational_optima_have_radius_0() -> None:
    """Section 5.5 of the BBF paper: 1/2; and a square root that is rational."""
    pool = Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2])
    exact = solve(pool, "bbf", exact=True).exact
    assert (exact.tasks_per_user.tolist(), exact.radius) == ([Fraction(1, 2)] * 3, 0)
    squares = solve(Instance([[5]], [[1], [4]]), "proportional", alpha=2, exact=True)
    assert (squares.exact.tasks_per_user.tolist(), squares.exact.radius) == ([Fraction(5, 3), Fraction(5, 6)], 0)
    assert squares.certificate.exact
    assert squares.certificate.worst == 0


def test_a_ball_says_its_radius() -> None:
    """Not exact, and the certificate's residual is not below the radius."""
    answer = solve(TWO_RESOURCES, "proportional", alpha=3, exact=True, digits=20)
    assert not answer.certificate.exact
    assert 0 < answer.exact.radius <= Fraction(answer.certificate.worst) < 2e-20
    assert "relative" in answer.proof


FORGED: dict[str, Callable[[Any], Solution]] = {
    "over a limit": lambda s: replace(s, x=s.x * rational(1 + Fraction(1, 10**60))),
    "negative": lambda s: replace(s, x=s.x - s.x[0] * 2),
    "nothing for somebody": lambda s: replace(s, x=s.x * np.array([rational(1), rational(0)], dtype=object)),
    "a negative price": lambda s: replace(s, prices=-s.prices),
    "no prices": lambda s: replace(s, prices=None),
    "prices of 0": lambda s: replace(s, prices=s.prices * rational(0)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_answers_are_refused(name: str) -> None:
    """What is not feasible, or has no prices that prove anything."""
    program, point = point_of(TWO_RESOURCES, "proportional", alpha=2)
    assert proved_radius(program, point, 100) < Fraction(1, 10**35)
    with pytest.raises(CertificateError):
        proved_radius(program, FORGED[name](point), 100)


def test_a_worse_allocation_has_a_larger_radius() -> None:
    """Feasible and with the right prices, but a part of it is left: the radius covers what is missing."""
    program, point = point_of(TWO_RESOURCES, "proportional", alpha=2)
    for part in (Fraction(1, 10**6), Fraction(1, 100)):
        radius = proved_radius(program, replace(point, x=point.x * rational(1 - part)), 100)
        assert radius >= part
