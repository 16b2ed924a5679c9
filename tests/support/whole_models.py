"""Models of whole numbers, and the check that another solver has the answers of HiGHS to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.highs_model import HighsModel, Outcome
from fairopt.solvers.via_highs.rows import Maker

__all__ = ["agrees_with_highs"]


def agrees_with_highs(maker: Maker, seed: int) -> None:
    """Three whole columns, a divisible one, rows of both sides: the same optimum, no gap; and a row that nothing satisfies is found."""
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(rng.integers(0, 4, (3, 4)).astype(float))
    cost, upper = rng.integers(0, 5, 4).astype(float), np.array([4.0, 4.0, 4.0, 2.5])
    rows = np.array([-np.inf, -np.inf, 1.0]), np.array([7.0, 9.0, np.inf])
    mine, highs = (_run(each, cost, upper, matrix, *rows) for each in (maker, HighsModel))
    assert mine.status is highs.status
    if highs.x.size:
        assert float(cost @ mine.x) == pytest.approx(float(cost @ highs.x), abs=1e-7)
        np.testing.assert_allclose(mine.x[:3], np.round(mine.x[:3]), atol=1e-6)
        assert mine.gap == 0
        assert mine.bound == pytest.approx(float(cost @ mine.x), abs=1e-7)
    none = np.full(3, -np.inf), np.array([7.0, 9.0, -1.0])
    mine, highs = (_run(each, cost, upper, matrix, *none) for each in (maker, HighsModel))
    assert mine.status is highs.status


def _run(maker: Maker, cost: Any, upper: Any, matrix: Any, *rows: Any) -> Outcome:
    return maker(cost, np.zeros(4), upper, matrix, *rows, integral=np.arange(3), tolerance=1e-9).run(np.inf)
