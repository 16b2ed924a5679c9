"""A model that grows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.via_highs.rows import Rows


def model_of_two() -> Rows:
    """2 a + b <= 5 and b <= 1.5, a whole and at most 3."""
    rows = Rows()
    a, b = rows.column(3.0, whole=True), rows.column(1.5)
    rows.row({a: 2.0, b: 1.0}, upper=5.0)
    return rows


def test_goal() -> None:
    """Whole columns are whole, unless the model is relaxed."""
    rows = model_of_two()
    assert rows.model({0: 1.0, 1: 0.1}).run(60.0).x == pytest.approx([2.0, 1.0])
    assert rows.model({0: 1.0, 1: 0.1}, relaxed=True).run(60.0).x == pytest.approx([2.5, 0.0])


def test_a_copy_grows_alone() -> None:
    """By a block over columns in any order."""
    rows = model_of_two()
    copy = rows.copy()
    more = copy.columns(np.array([1.0, 1.0]))
    copy.block(sp.csr_array(np.array([[1.0, -1.0], [0.0, 1.0]])), np.array([more[1], 0]), np.array([0.0, 2.0]), np.inf)
    assert copy.model({1: 1.0, 0: 0.0}).run(60.0).x.size == 0  # a >= 2, and at most one column above it
    assert rows.model({1: 1.0}).run(60.0).x[1] == pytest.approx(1.5)
