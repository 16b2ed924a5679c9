"""Mixed-integer programs by one of Pyomo's solvers, for the searches of whole tasks (`fairopt.solvers.via_highs.whole`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.solvers.backend import Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_pyomo import model as pyomo_model
from fairopt.solvers.via_pyomo import running

__all__ = ["WholeModel"]

_NOTHING = 1e-9  # a smaller difference of two goals is none


class WholeModel:
    """An `IntegerProgram` in the form of this package."""

    def __init__(self, engine: running.Engine, program: IntegerProgram) -> None:
        import pyomo.environ as pyo

        self.has_start = False
        self.engine, self.program = engine, program
        cost, matrix, tolerance = program.cost, program.matrix, program.tolerance
        lower, upper, whole = program.lower, program.upper, set(program.integral.tolist())
        with running.inside():
            self.model: Any = pyo.ConcreteModel()
            self.model.x = pyo.Var(
                range(cost.size),
                domain=lambda _, j: pyo.Integers if j in whole else pyo.Reals,
                bounds=lambda _, j: (float(lower[j]), float(upper[j]) if np.isfinite(upper[j]) else None),
            )
            self.columns = list(self.model.x.values())
            self.model.rows = pyo.ConstraintList()
            self.is_empty = False  # has it a row that nothing satisfies?
            for row, (least, most) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
                if matrix.indptr[row] == matrix.indptr[row + 1]:
                    self.is_empty |= least > tolerance or most < -tolerance
                    continue
                body = pyomo_model.row_of(matrix, row, self.columns)
                if np.isfinite(most):
                    self.model.rows.add(body <= most)
                if np.isfinite(least):
                    self.model.rows.add(body >= least)
            goal = (
                pyo.quicksum(float(cost[j]) * self.columns[j] for j in np.flatnonzero(cost).tolist())
                if cost.any()
                else 0.0 * self.columns[0]
            )
            self.model.goal = pyo.Objective(expr=goal, sense=pyo.maximize)

    def guess(self, x: FloatArray) -> None:
        """Give a whole point, for solvers of Pyomo's that start from one."""
        self.has_start = True
        for column, value in zip(self.columns, x.tolist(), strict=True):
            column.set_value(value, skip_validation=True)

    def run(self, time_limit: float) -> Outcome:
        """Solve; the gap is that between the point and the bound of the solver. At a time limit the point is the best that was found.

        Raises
        ------
        Unsupported
            The solver gives no bound, which proves that a point is the best.
        """
        status, bound = running.run(self.model, self.engine, time_limit, start=self.has_start)
        if self.is_empty or (status is Status.UNBOUNDED and np.isfinite(self.program.largest())):  # "infeasible or unbounded"
            status = Status.INFEASIBLE
        if status is Status.TIME_LIMIT:
            return self.program.outcome(status, running.values(self.columns), bound)
        if status is not Status.OPTIMAL:
            return Outcome(status, np.empty(0), np.empty(0), np.inf, 0, np.nan if bound is None else bound)
        if bound is None and self.program.cost.any():
            raise Unsupported(f'"pyomo:{self.engine.name}" gives no bound, which proves whole tasks; use another solver')
        x = running.values(self.columns)
        value = float(self.program.cost @ x)
        above = 0.0 if bound is None else max(bound - value, 0.0)
        gap = 0.0 if above <= _NOTHING else above / abs(value) if value else np.inf
        return Outcome(status, x, np.empty(0), gap, 0, value if bound is None else bound)

    def set_options(self, **options: object) -> None:
        """Leave the options of HiGHS out: they make a search shorter, and no answer another."""

    def forget(self) -> None:
        """Keep nothing, as ever."""
