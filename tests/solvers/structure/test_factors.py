"""Sparse symmetric systems: solved with any rows last, and refused where they are singular."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.structure.factors import factorised, met_by_many


def arrow(size: int, full: int, rng: np.random.Generator) -> sp.csc_array:
    """A quasi-definite system with a full row and column at ``full``."""
    sign = np.where(rng.random(size) < 0.5, 1.0, -1.0)
    matrix = np.diag(sign * rng.uniform(2.0, 3.0, size))
    matrix[full], matrix[:, full] = 0.1, 0.1
    matrix[full, full] = -float(size)
    return sp.csc_array(matrix)


@pytest.mark.parametrize("last", [[], [7], [7, 3], list(range(40))])
@pytest.mark.parametrize("pivots", [0.0, 1e-3])
def test_any_rows_may_come_last(last: list[int], pivots: float) -> None:
    """The solution is the same."""
    rng = np.random.default_rng(len(last))
    system, x = arrow(40, 7, rng), rng.normal(size=40)
    is_last = np.zeros(40, bool)
    is_last[last] = True
    np.testing.assert_allclose(factorised(system, is_last, pivots)(system @ x), x, rtol=1e-10, atol=1e-12)


def test_singular_systems_are_refused() -> None:
    """A row of zeros."""
    with pytest.raises(RuntimeError, match="singular"):
        factorised(sp.csc_array(np.diag([1.0, 0.0, 2.0])), np.zeros(3, bool), 0.0)


def test_a_row_that_all_others_meet_should_come_last() -> None:
    """Of 400 rows, each meets itself and the first one."""
    arrow = np.eye(400)
    arrow[0], arrow[:, 0] = 1.0, 1.0
    np.testing.assert_array_equal(np.flatnonzero(met_by_many(sp.csc_array(arrow))), [0])
