"""Programs of whole numbers, against HiGHS itself."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from support.whole_models import agrees_with_highs, stops_with_a_point

from fairopt.processes.streams import unwarned
from fairopt.solvers.via_cvxpy.inside import imported
from fairopt.solvers.via_cvxpy.running import Solver, bound_of
from fairopt.solvers.via_cvxpy.whole_model import WholeModel

with unwarned():
    import cvxpy

    INSTALLED = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_highs(seed: int) -> None:
    """And what has no point has none."""
    agrees_with_highs(partial(WholeModel, Solver(imported("HIGHS", {}), "HIGHS", {})), seed)


@pytest.mark.parametrize(
    "name", [each for each in ("HIGHS", "SCIPY", "SCIP", "GUROBI", "CPLEX", "COPT", "XPRESS", "GLPK_MI") if each in INSTALLED]
)
def test_a_time_limit_leaves_the_best_point_and_a_bound(name: str) -> None:
    """SciPy, SCIP and Xpress call that "optimal_inaccurate", which is no optimum. Xpress and GLPK give no bound: the columns give one."""
    stops_with_a_point(partial(WholeModel, Solver(imported(name, {}), name, {})))


def test_a_bound_is_one_or_none() -> None:
    """Of an answer of another form, of a solver that is not known, and of one that has none yet."""
    assert bound_of("SCIPY", {"mip_dual_bound": -3.5}) == 3.5
    for solver, raw in (("SCIPY", {}), ("SCIPY", None), ("CBC", {"mip_dual_bound": 1}), ("SCIPY", {"mip_dual_bound": -np.inf})):
        assert bound_of(solver, raw) is None
    assert bound_of("SCIPY", {"mip_dual_bound": np.nan}) is None
