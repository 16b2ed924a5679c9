"""Bounds by prices: whatever the prices are, no feasible point is worth more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.analysis.bounds.safe_programs import SafeProgram, down, up
from fairopt.errors import NoSolution


def drawn(seed: int) -> SafeProgram:
    """A random program with numbers of many sizes, which x = 0 keeps."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 2, (4, 3)) * 10.0 ** rng.integers(-6, 6, (4, 1))
    return SafeProgram.of(rng.uniform(-1, 2, 3), rows, rng.uniform(0, 3, 4) * np.abs(rows).max(axis=1), rng.uniform(1, 5, 3))


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_at_least_what_fractions_say(seed: int) -> None:
    """p @ b + sum max(0, c - A'p) u in Fractions, for the solver's prices and for wrong ones; and the optimum is not far below."""
    program = drawn(seed)
    optimum = program.solve(np.inf)
    rng = np.random.default_rng(seed)
    for prices in (optimum.prices, np.zeros(4), optimum.prices * rng.uniform(0.5, 2, 4)):
        p = [Fraction(float(value)) for value in prices]
        exact = sum((Fraction(float(b)) * price for b, price in zip(program.sides, p, strict=True)), Fraction(0))
        for j in range(3):
            paid = sum((Fraction(float(program.rows[i, j])) * p[i] for i in range(4)), Fraction(0))
            exact += max(Fraction(0), Fraction(float(program.goal[j])) - paid) * Fraction(float(program.largest[j]))
        assert Fraction(program.proved_by(prices)) >= exact
        assert program.proved_by(prices) == pytest.approx(float(exact), rel=1e-9, abs=1e-9)
    assert optimum.bound == pytest.approx(program.goal @ optimum.x, rel=1e-6, abs=1e-6)


def test_rows_without_an_end_are_left_out_and_nothing_feasible_is_said() -> None:
    """x <= inf says nothing; x <= -1 and x >= 0 no point."""
    one = np.ones(1)
    assert SafeProgram.of(one, np.ones((1, 1)), np.array([np.inf]), one).solve(np.inf).bound == pytest.approx(1)
    with pytest.raises(NoSolution, match="no point"):
        SafeProgram.of(one, np.ones((1, 1)), -one, one).solve(np.inf)


def test_outwards() -> None:
    """Below and above, by little."""
    assert 0.1 * (1 - 1e-14) < down(0.1) < 0.1 < up(0.1) < 0.1 * (1 + 1e-14)
    assert down(0.0) == up(0.0) == 0
