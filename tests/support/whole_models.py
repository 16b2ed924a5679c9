"""Models of whole numbers, and the check that another solver has the answers of HiGHS to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.backend import Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.rows import Maker, begin, by_highs

__all__ = ["agrees_with_highs", "stops_with_a_point"]


def agrees_with_highs(maker: Maker, seed: int, whole: int = 3) -> None:
    """So many whole columns of four, rows of both sides: the same optimum, no gap; and a row that nothing satisfies is found.

    The optimum is also the one that begins with the point of HiGHS.
    """
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(rng.integers(0, 4, (3, 4)) * rng.choice([1.0, 0.1, 1 / 3], (3, 1)))
    cost, upper = rng.integers(0, 5, 4) * rng.choice([1.0, 0.7]), np.array([4.0, 4.0, 4.0, 2.5])
    size = abs(matrix).max(axis=1).toarray().ravel()
    rows = np.array([-np.inf, -np.inf, 0.3 * size[2]]), np.array([2.3, 3.0, np.inf]) * np.maximum(size, 0.1)
    mine, highs = (_run(each, cost, upper, matrix, *rows, whole=whole) for each in (maker, by_highs))
    again = _run(maker, cost, upper, matrix, *rows, whole=whole, start=highs.x)
    assert (again.status, again.gap) == (mine.status, mine.gap)
    assert again.bound == pytest.approx(mine.bound, abs=1e-7, nan_ok=True)
    assert mine.status is highs.status
    if highs.x.size:
        assert float(cost @ mine.x) == pytest.approx(float(cost @ highs.x), abs=1e-7)
        np.testing.assert_allclose(mine.x[:whole], np.round(mine.x[:whole]), atol=1e-6)
        assert mine.gap == 0
        assert mine.bound == pytest.approx(float(cost @ mine.x), abs=1e-7)
    none = np.full(3, -np.inf), np.array([7.0, 9.0, -1.0])
    mine, highs = (_run(each, cost, upper, matrix, *none, whole=whole) for each in (maker, by_highs))
    assert mine.status is highs.status


def _run(maker: Maker, cost: Any, upper: Any, matrix: Any, least: Any, most: Any, *, whole: int, start: Any = ()) -> Outcome:
    model = maker(IntegerProgram(cost, np.zeros(4), upper, matrix, least, most, np.arange(whole)))
    if len(start):
        begin(model, lambda: np.asarray(start, float))
    return model.run(np.inf)


def stops_with_a_point(maker: Maker, seconds: float = 1.0) -> None:
    """Sixty whole columns, fifteen rows: after a moment a point that keeps the rows, and a bound above the optimum, 110.711964...

    Gurobi, CPLEX and Xpress prove that optimum in about a minute.
    """
    rng = np.random.default_rng(0)
    cost = rng.uniform(1, 2, 60)
    matrix: sp.csr_array = sp.csr_array(rng.uniform(0, 1, (15, 60)))
    rows = np.full(15, -np.inf), np.full(15, 30.3)
    found = maker(IntegerProgram(cost, np.zeros(60), np.full(60, 9.0), matrix, *rows, integral=np.arange(60))).run(seconds)
    assert found.status is Status.TIME_LIMIT
    assert found.x.size == 60
    np.testing.assert_allclose(found.x, np.round(found.x), atol=1e-6)
    assert (matrix @ found.x).max() <= 30.3 * (1 + 1e-6)
    value = float(cost @ found.x)
    assert value <= 110.711965 <= found.bound * (1 + 1e-7)
    assert found.gap == pytest.approx((found.bound - value) / value)
