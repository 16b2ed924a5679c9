"""The largest value of a linear goal, by HiGHS: what a test asks of a program beside the engine that it is about.

The program goes to HiGHS as the test writes it. ``scipy.optimize.linprog`` takes four times as long for a small program, most of it to
look at its options, and oracles solve tens of thousands of these.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import highspy
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

__all__ = ["TIGHT", "Optimum", "largest", "optimum"]

TIGHT: dict[str, Any] = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # as tight as HiGHS takes it


class Optimum(NamedTuple):
    """What HiGHS says: ``value`` is nan, and ``x`` is None, if ``status`` is not "Optimal"."""

    status: str
    value: float
    x: Any


@lru_cache
def _solver(**settings: Any) -> Any:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, **settings}.items():
        assert solver.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
    return solver


def optimum(goal: Any, rows: Any, bounds: Any, *, lower: Any = 0.0, upper: Any = np.inf, **settings: Any) -> Optimum:
    """Max goal x subject to rows x <= bounds, lower <= x <= upper, with these settings of HiGHS."""
    goal, bounds = np.asarray(goal, float), np.asarray(bounds, float)
    table = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, float).reshape(bounds.size, goal.size)
    column, row = np.nonzero(table.T)
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = table.shape
    program.col_cost_ = -goal
    program.col_lower_, program.col_upper_ = (np.broadcast_to(end, goal.shape) + 0.0 for end in (lower, upper))
    program.row_lower_, program.row_upper_ = np.full(bounds.size, -np.inf), bounds
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.num_row_, program.a_matrix_.num_col_ = table.shape
    program.a_matrix_.start_ = np.searchsorted(column, np.arange(goal.size + 1)).astype(np.int32)
    program.a_matrix_.index_, program.a_matrix_.value_ = row.astype(np.int32), table[row, column]
    solver = _solver(**settings)
    assert solver.passModel(program) != highspy.HighsStatus.kError
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        return Optimum(solver.modelStatusToString(status), np.nan, None)
    return Optimum("Optimal", -solver.getInfo().objective_function_value + 0.0, np.array(solver.getSolution().col_value))


def largest(goal: Any, rows: Any, bounds: Any, *, lower: Any = 0.0, upper: Any = np.inf, whole: bool = False) -> float:
    """Max goal x subject to rows x <= bounds, lower <= x <= upper, x whole numbers if asked; inf where there is no end."""
    if not whole:
        found = optimum(goal, rows, bounds, lower=lower, upper=upper)
        if found.status == "Unbounded":
            return float("inf")
        assert found.x is not None, found.status
        return found.value
    goal = np.asarray(goal, float)
    kinds = np.ones(goal.size, np.int64)
    answer: Any = milp(-goal, integrality=kinds, bounds=Bounds(lower, upper), constraints=LinearConstraint(rows, ub=bounds))
    if answer.status == 3:
        return float("inf")
    assert answer.status == 0, answer.message
    return -float(answer.fun or 0.0)
