"""The rational simplex against HiGHS and against itself from many bases."""

# mypy: disable-error-code="index, operator"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

import random

import numpy as np
import pytest
from flint import fmpq, fmpz
from scipy.optimize import linprog

from fairopt.solvers.rational.simplex import InfeasibleError, RationalProgram, UnboundedError


def draw(rng: random.Random) -> tuple[list[list[int]], list[int], list[bool], list[int]]:
    """Matrix, right side, which rows are at most, cost: small numbers, so that ties and degenerate vertices abound."""
    n, m = rng.randint(1, 7), rng.randint(1, 7)
    matrix = [[rng.choice([0, 0, 1, 2, 3, -1]) for _ in range(n)] for _ in range(m)]
    return matrix, [rng.randint(-3, 8) for _ in range(m)], [rng.random() < 0.6 for _ in range(m)], [rng.randint(-2, 4) for _ in range(n)]


def test_any_basis_leads_to_the_optimum() -> None:
    """From a random set of columns, independent or not: the optimum, or the reason why there is none."""
    rng, found = random.Random(3), {"optimal": 0, "infeasible": 0, "unbounded": 0}
    for _ in range(300):
        matrix, right, at_most, cost = draw(rng)
        n, m = len(cost), len(right)
        columns = [[(i, fmpz(matrix[i][j])) for i in range(m) if matrix[i][j]] for j in range(n)]
        program = RationalProgram(columns, [fmpq(b) for b in right], at_most, [fmpq(c) for c in cost])
        sign = np.array([1 if less else -1 for less in at_most])
        reference = linprog([-c for c in cost], A_ub=np.array(matrix) * sign[:, None], b_ub=np.array(right) * sign, method="highs")
        try:
            optimum = program.optimise(rng.sample(range(n + m), rng.randint(0, m)), lambda _: None)
        except (InfeasibleError, UnboundedError) as error:
            assert reference.status in (2, 3, 4)
            found["infeasible" if isinstance(error, InfeasibleError) else "unbounded"] += 1
            continue
        found["optimal"] += 1
        value = sum((c * z for c, z in zip(cost, optimum.z, strict=True)), fmpq(0))
        assert reference.status == 0
        assert float(int(value.p) / int(value.q)) == pytest.approx(-reference.fun, abs=1e-9)
        assert value == sum((y * b for y, b in zip(optimum.prices, right, strict=True)), fmpq(0))  # strong duality, exactly
        assert min(optimum.z) >= 0
        for i in range(m):
            used = sum((matrix[i][j] * optimum.z[j] for j in range(n)), fmpq(0))
            assert used <= right[i] if at_most[i] else used >= right[i]
    assert min(found.values()) > 20


def test_beale_does_not_cycle() -> None:
    """Beale's example, on which the largest reduced cost goes round in circles: 1/20."""
    rows = [[fmpq(1, 4), -60, fmpq(-1, 25), 9], [fmpq(1, 2), -90, fmpq(-1, 50), 3], [0, 0, 1, 0]]
    columns = [[(i, (fmpq(rows[i][j]) * 100).p) for i in range(3) if rows[i][j] != 0] for j in range(4)]
    program = RationalProgram(columns, [fmpq(0), fmpq(0), fmpq(100)], [True] * 3, [fmpq(3, 4), fmpq(-150), fmpq(1, 50), fmpq(-6)])
    optimum = program.optimise([4, 5, 6], lambda _: None)
    assert sum((y * b for y, b in zip(optimum.prices, [0, 0, 100], strict=True)), fmpq(0)) == fmpq(1, 20)


def test_the_caller_can_stop_it() -> None:
    """Before every pivot it asks."""

    def stop(_: float) -> None:
        raise TimeoutError

    program = RationalProgram([[(0, fmpz(1))]], [fmpq(1)], [True], [fmpq(1)])
    with pytest.raises(TimeoutError):
        program.optimise([1], stop)
