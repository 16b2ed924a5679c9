"""Nearly dependent columns: which of them count, and what makes up what."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.solvers.rational.pivots import combination, independent, vertex_of


@pytest.mark.parametrize("seed", range(40))
def test_independent_columns_make_the_same_sum(seed: int) -> None:
    """With columns that are combinations of others but for 1e-14: those that are kept have full rank and reach the same sum with >= 0."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 3, (4, 7)).astype(float)
    columns[:, 4] = columns[:, :3] @ rng.integers(0, 3, 3)
    columns *= 1 + 1e-14 * rng.standard_normal(columns.shape)
    sizes = rng.uniform(0.1, 1, 7)
    kept = independent(columns, sizes.tolist())
    used = columns[:, kept]
    assert np.linalg.matrix_rank(used, tol=1e-6) == len(kept)
    weights = np.linalg.lstsq(used, columns @ sizes, rcond=None)[0]
    assert np.allclose(used @ weights, columns @ sizes)
    assert weights.min(initial=0.0) > -1e-6


def test_combination() -> None:
    """Within the span, and not."""
    basis = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    made_of = combination(basis, np.array([2.0, 3.0, 2.0]))
    assert made_of is not None
    assert made_of == pytest.approx([2.0, 1.0])
    assert combination(basis, np.array([0.0, 0.0, 1.0])) is None
    assert combination(np.empty((2, 0)), np.zeros(2)) is not None


@pytest.mark.parametrize("seed", range(20))
def test_a_vertex_has_the_same_combination(seed: int) -> None:
    """Sizes >= 0, the same sum, and nothing outside the basis."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 3, (4, 9)).astype(float)
    sizes = rng.uniform(0.0, 1.0, 9)
    basis, values = vertex_of(columns, sizes.tolist())
    assert np.allclose(columns @ values, columns @ sizes)
    assert values.min() > -1e-9
    outside = np.setdiff1d(np.arange(9), basis)
    assert np.allclose(values[outside], 0.0)
