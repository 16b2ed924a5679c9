"""Any linear program in fractions, against the rational simplex of the tests, and its proof."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import fmpq
from reference.exact import maximise

from fairopt.certificate.exact_largest import prove_largest
from fairopt.errors import CertificateError, NoSolution
from fairopt.instance.fractions import from_rational
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.largest import largest


def test_random_programs() -> None:
    """The value is that of the other simplex, whatever the magnitudes, and the prices prove it."""
    rng = random.Random(5)
    for _ in range(60):
        n, m = rng.randint(1, 5), rng.randint(1, 5)
        unit = [fmpq(10) ** rng.choice([0, 0, 9, -9, 40, -40]) for _ in range(m)]
        rows = [[fmpq(rng.choice([0, 1, 2, 3, -1]), 3) for _ in range(n)] for _ in range(m)]
        rows.append([fmpq(1)] * n)
        right = [*(fmpq(rng.randint(0, 6)) * u for u in unit), fmpq(100)]
        rows = [[value * u for value in row] for row, u in zip(rows, [*unit, fmpq(1)], strict=True)]
        cost = [fmpq(rng.randint(-2, 4)) for _ in range(n)]
        entries = [(i, j, value) for i, row in enumerate(rows) for j, value in enumerate(row)]
        found = largest(cost, entries, right, Deadline(None))
        assert found is not None
        point, prices = found
        prove_largest(cost, entries, right, point.tolist(), prices.tolist())
        value = from_rational(sum((c * z for c, z in zip(cost, point, strict=True)), fmpq(0)))
        table = [[from_rational(entry) for entry in row] for row in rows]
        assert value == maximise([from_rational(c) for c in cost], table, [from_rational(b) for b in right])
        if value > 0:
            with pytest.raises(CertificateError):
                prove_largest(cost, entries, right, [z * (1 - fmpq(1, 10**40)) for z in point], prices.tolist())


def test_no_feasible_point_and_no_bound() -> None:
    """x <= 1 and x >= 2; x without a limit."""
    assert largest([1], [(0, 0, 1), (1, 0, -1)], [1, -2], Deadline(None)) is None
    with pytest.raises(NoSolution, match="no bound"):
        largest([1, 0], [(0, 1, 1)], [Fraction(1, 3)], Deadline(None))
