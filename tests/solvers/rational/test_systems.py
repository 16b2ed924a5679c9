"""Square systems against elimination in fractions."""

from __future__ import annotations

import contextlib
import random

import pytest
from flint import fmpq, fmpq_mat, fmpz

from fairopt.solvers.rational.systems import Column, SingularError, System, common_denominator


def columns_of(rng: random.Random, size: int, density: float) -> list[Column]:
    """Sparse columns of small whole numbers."""
    return [[(i, fmpz(rng.choice([-3, -1, 1, 2, 7]))) for i in range(size) if rng.random() < density] for _ in range(size)]


@pytest.mark.parametrize("density", [0.3, 0.5, 0.9])
def test_systems_are_solved_both_ways(density: float) -> None:
    """The same as FLINT's dense solution of the whole matrix; singular matrices are found out."""
    rng, regular, singular = random.Random(1), 0, 0
    for _ in range(120):
        size = rng.randint(1, 9)
        columns = columns_of(rng, size, density)
        right = [fmpq(rng.choice([-5, -1, 1, 2, 5]), rng.randint(1, 9)) for _ in range(size)]
        matrix = fmpq_mat(size, size)
        for j, column in enumerate(columns):
            for i, value in column:
                matrix[i, j] = fmpq(value)
        expected = fmpq_mat(size, 1, right)
        if matrix.det() == 0:
            singular += 1
            with contextlib.suppress(SingularError):  # it is found out when the matrix is taken apart, or
                assert System(columns).dependent()[0]
            continue
        regular += 1
        system = System(columns)
        assert system.dependent() == ([], [])
        assert system.solve(right) == matrix.solve(expected).entries()
        assert system.solve_transposed(right) == matrix.transpose().solve(expected).entries()
    assert regular > 10
    assert singular > 3 or density > 0.8


def test_a_triangle_leaves_no_kernel() -> None:
    """Rows and columns with one entry are taken out: nothing is left for FLINT."""
    columns: list[Column] = [[(i, fmpz(i + 1)) for i in range(j + 1)] for j in range(20)]
    system = System(columns)
    assert len(system.by_row) + len(system.by_column) == 20


def test_common_denominators() -> None:
    """1/4, 1/6 and 2: 12."""
    assert common_denominator([fmpq(1, 4), fmpq(1, 6), fmpq(2)]) == 12
