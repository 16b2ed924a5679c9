"""Programs of whole numbers, against HiGHS itself."""

from __future__ import annotations

from functools import partial

import pytest
from support.whole_models import agrees_with_highs, stops_with_a_point

from fairopt.errors import SolverUnavailable
from fairopt.solvers.via_pyomo.running import Engine, solver
from fairopt.solvers.via_pyomo.whole_model import WholeModel


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_highs(seed: int) -> None:
    """And what has no point has none."""
    agrees_with_highs(partial(WholeModel, solver("highs")), seed)


def there(name: str) -> Engine:
    """A solver, if it is installed."""
    try:
        return solver(name)
    except SolverUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name", ["appsi_highs", "highs", "gurobi", "gurobi_direct", "scip_direct", "cplex_direct", "appsi_cplex", "xpress_direct", "cbc"]
)
def test_a_time_limit_leaves_the_best_point_and_a_bound(name: str) -> None:
    """Gurobi, CPLEX and Xpress have an option of their own for it; CBC takes the value for the bound: that of the columns counts."""
    stops_with_a_point(partial(WholeModel, there(name)))
