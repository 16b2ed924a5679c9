"""Programs of whole numbers, against HiGHS itself."""

from __future__ import annotations

from functools import partial

import pytest
from support.whole_models import agrees_with_highs

from fairopt.solvers.via_pyomo.running import solver
from fairopt.solvers.via_pyomo.whole_model import WholeModel


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_highs(seed: int) -> None:
    """And what has no point has none."""
    agrees_with_highs(partial(WholeModel, solver("highs")), seed)
