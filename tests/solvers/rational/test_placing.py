"""A vertex of the placements with the same utilities."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.solvers.rational.placing import vertex_of


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
