"""Solutions of underdetermined equations near floats, against plain arithmetic in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq

from fairopt.solvers.rational.near import Tableau, fraction, rational, simplest


def random_equations(seed: int) -> tuple[list[dict[int, fmpq]], list[fmpq], list[float]]:
    """Equations with a solution of which some entries are 0, some of them dependent, and that solution in floats."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(6, 10))
    matrix = rng.integers(-2, 4, (rows, columns))
    matrix = np.vstack([matrix, matrix[:1] * 2])
    solution = [Fraction(int(value), 7) for value in rng.integers(0, 6, columns)]
    equations = [{j: fmpq(int(a)) for j, a in enumerate(row) if a} for row in matrix]
    right = [rational(sum((int(a) * z for a, z in zip(row, solution, strict=True)), Fraction(0))) for row in matrix]
    return equations, right, [float(value) for value in solution]


def holds(rows: list[dict[int, fmpq]], right: list[fmpq], z: list[fmpq]) -> bool:
    """Does z solve the equations?"""
    return all(sum((a * z[j] for j, a in row.items()), fmpq(0)) == b for row, b in zip(rows, right, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_near_and_vertex(seed: int) -> None:
    """Both solve the equations; the first is near the floats, the second >= 0 with independent columns."""
    rows, right, floats = random_equations(seed)
    tableau = Tableau.of(rows, right, floats)
    assert tableau is not None
    z = tableau.near()
    assert holds(rows, right, z)
    assert np.allclose([float(value) for value in z], floats, atol=1e-8)
    if min(z) < 0:
        return
    corner = tableau.vertex(z)
    assert holds(rows, right, corner)
    assert min(corner) >= 0
    used = [j for j, value in enumerate(corner) if value != 0]
    columns = np.array([[float(row.get(j, fmpq(0))) for j in used] for row in rows]).reshape(len(rows), len(used))
    assert np.linalg.matrix_rank(columns) == len(used)


def test_equations_that_contradict() -> None:
    """There is no solution, by however little."""
    rows = [{0: fmpq(1), 1: fmpq(1)}, {0: fmpq(2), 1: fmpq(2)}]
    assert Tableau.of(rows, [fmpq(1), 2 + fmpq(1, 10**40)], [0.5, 0.5]) is None


@pytest.mark.parametrize(
    ("value", "part", "expected"), [(0.3333333333, 10**6, (1, 3)), (-2.5, 10, (-5, 2)), (0.0, 10, (0, 1)), (1e-30, 10, (1, 10**30))]
)
def test_simplest(value: float, part: int, expected: tuple[int, int]) -> None:
    """The smallest denominator within the distance, tried one by one where that is possible."""
    found = simplest(value, part)
    assert abs(found - Fraction(value)) <= abs(Fraction(value)) / part
    if abs(value) > 1e-3:
        assert found == Fraction(*expected)
        for denominator in range(1, found.denominator):
            nearest = Fraction(round(Fraction(value) * denominator), denominator)
            assert abs(nearest - Fraction(value)) > abs(Fraction(value)) / part


def test_there_and_back() -> None:
    """Fractions of FLINT and of Python are the same numbers."""
    assert fraction(rational(Fraction(-20, 3))) == Fraction(-20, 3)
