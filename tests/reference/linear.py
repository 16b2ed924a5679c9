"""The largest value of a linear goal, by SciPy: what a test asks of a program beside the engine that it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

__all__ = ["largest"]


def largest(goal: Any, rows: Any, bounds: Any, *, lower: Any = 0.0, upper: Any = np.inf, whole: bool = False) -> float:
    """Max goal x subject to rows x <= bounds, lower <= x <= upper, x whole numbers if asked; inf where there is no end."""
    goal = np.asarray(goal, float)
    found: Any
    if whole:
        kinds = np.ones(goal.size, np.int64)
        found = milp(-goal, integrality=kinds, bounds=Bounds(lower, upper), constraints=LinearConstraint(rows, ub=bounds))
    else:
        ends: Any = np.column_stack([np.broadcast_to(lower, goal.shape), np.broadcast_to(upper, goal.shape)])
        found = linprog(-goal, A_ub=rows, b_ub=bounds, bounds=ends, method="highs")
    if found.status == 3:
        return float("inf")
    assert found.status == 0, found.message
    return -float(found.fun or 0.0)
