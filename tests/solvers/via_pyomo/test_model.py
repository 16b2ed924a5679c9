"""The Pyomo model of a program: the answer by hand, its units and multipliers, and each row under a name of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo

pytest.importorskip("pyomo")

from fairopt.program import Leximin
from fairopt.solvers.backend import Status
from fairopt.solvers.via_pyomo import running
from fairopt.solvers.via_pyomo.model import build, in_units, prices, row_of, with_duals

POOL = fo.Instance([[9.0, 18.0]], [[1.0, 4.0], [3.0, 1.0]], users=["a", "b"], servers=["s"], resources=["cpu", "memory"])


def solved(program: Any) -> Any:
    """Return the model of a program, with its values and multipliers."""
    model = with_duals(build(program))
    status, _ = running.run(model, running.solver(None), np.inf)
    assert status is Status.OPTIMAL
    return model


def test_the_first_level_of_drf_is_that_of_its_paper() -> None:
    """3 and 2 tasks and a share of 2/3, of Ghodsi et al. (NSDI 2011), figure 3."""
    model = solved(fo.formulate(POOL, "drf"))
    assert running.values([model.x["a", "s"], model.x["b", "s"]]) == pytest.approx([3, 2], abs=1e-8)
    assert running.values([model.level]) == pytest.approx([2 / 3], abs=1e-9)


def test_units_of_tasks_and_bounds_leave_the_level() -> None:
    """x in units of (3, 2) is (1, 1), every bound is 1, and the share is 2/3 as before."""
    program = fo.formulate(POOL, "drf")
    assert isinstance(program.goal, Leximin)
    scaled = in_units(program, np.array([3.0, 2.0]), program.goal)
    assert scaled.limits.bounds.tolist() == [1.0] * len(program.limits)
    model = solved(scaled)
    assert running.values([model.x["a", "s"], model.x["b", "s"]]) == pytest.approx([1, 1], abs=1e-8)
    assert running.values([model.level]) == pytest.approx([2 / 3], abs=1e-9)


def test_prices_are_the_multipliers_of_the_limits() -> None:
    """At level t, user a needs 9t/2 cpu and b 9t of 9, so t = 2/3: one more cpu adds 2/27; memory, of which 4 are left, adds nothing."""
    program = fo.formulate(POOL, "drf")
    found = prices(solved(program), program)
    names = [program.limit_name(row) for row in range(len(program.limits))]
    by_resource = {word: found[[word in name for name in names]].sum() for word in ("cpu", "memory")}
    assert by_resource == pytest.approx({"cpu": 2 / 27, "memory": 0.0}, abs=1e-9)


def test_a_row_is_the_sum_of_its_terms() -> None:
    """The row of cpu, evaluated at x = (3, 2): 3 x 1 + 2 x 3 = 9."""
    program = fo.formulate(POOL, "drf")
    (cpu,) = (row for row in range(len(program.limits)) if "cpu" in program.limit_name(row))
    assert row_of(program.limits.matrix, cpu, [3.0, 2.0]) == 9.0


def test_rows_whose_names_begin_as_those_of_other_kinds_are_kept_apart() -> None:
    """A row called "time of b" is no limit of time, and another called "b" stands beside it."""
    pool = fo.Instance([[4.0]], [[1.0], [1.0]], users=["a", "b"], servers=["s"])
    program = fo.formulate(pool, "drfh").with_limit("time of b", {("b", "s"): 1.0}, 1.0).with_limit("b", {("b", "s"): 1.0}, 0.5)
    assert set(fo.to_pyomo(program).rows) == {"time of b", "b"}
    assert fo.solve(program, solver="pyomo").tasks_per_user == pytest.approx([3.5, 0.5], abs=1e-9)
