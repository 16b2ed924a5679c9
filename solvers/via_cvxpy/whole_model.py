"""Mixed-integer programs by a solver inside CVXPY, for the searches of whole tasks (`fairopt.solvers.via_highs.whole`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_cvxpy.inside import inside
from fairopt.solvers.via_cvxpy.running import Solver
from fairopt.solvers.via_highs.integer_program import IntegerProgram

__all__ = ["WholeModel"]


class WholeModel:
    """An `IntegerProgram` in the form of this package."""

    def __init__(self, solver: Solver, program: IntegerProgram) -> None:
        if not inside(solver.name).whole:
            known = ", ".join(name for name in solver.cp.installed_solvers() if inside(name).whole)
            raise Unsupported(f'"{solver.name}" of CVXPY does not prove whole tasks; use one of {known}')
        cp = solver.cp
        self.solver, self.program = solver, program
        self.has_start = False
        cost, lower, upper = program.cost, program.lower, program.upper
        is_whole = np.isin(np.arange(cost.size), program.integral)
        self.parts: list[tuple[IntArray, Any]] = []  # columns, and their variable
        for columns, integer in ((np.flatnonzero(is_whole), True), (np.flatnonzero(~is_whole), False)):
            if columns.size:
                self.parts.append((columns, cp.Variable(columns.size, integer=integer)))
        by_column = sp.csc_array(program.matrix)
        activity = sum(sp.csr_array(by_column[:, columns]) @ part for columns, part in self.parts)
        rows: list[Any] = []
        for columns, part in self.parts:
            some = np.flatnonzero(np.isfinite(upper[columns]))
            rows += [part >= lower[columns], *([part[some] <= upper[columns][some]] if some.size else [])]
        for bound, sign in ((program.row_upper, 1.0), (program.row_lower, -1.0)):
            some = np.flatnonzero(np.isfinite(bound))
            rows += [sign * activity[some] <= sign * bound[some]] if some.size else []
        self.problem = cp.Problem(cp.Maximize(sum(cost[columns] @ part for columns, part in self.parts)), rows)

    def guess(self, x: FloatArray) -> None:
        """Give a whole point: CVXPY hands the values of variables on where it knows how, as to Gurobi and Xpress."""
        self.has_start = True
        for columns, part in self.parts:
            part.value = x[columns]

    def run(self, time_limit: float) -> Outcome:
        """Solve. At a time limit the point is the best that was found; of an optimum the solver says that there is no gap."""
        for _, part in self.parts if not self.has_start else ():
            part.value = None
        status, bound = self.solver.search(self.problem, Deadline(time_limit if np.isfinite(time_limit) else None))
        if status is Status.UNBOUNDED and np.isfinite(self.program.largest()):  # "infeasible or unbounded"
            status = Status.INFEASIBLE
        x = np.full(self.program.cost.size, np.nan)
        for columns, part in self.parts:
            x[columns] = np.nan if part.value is None else part.value
        if status is Status.TIME_LIMIT:
            return self.program.outcome(status, x, bound)
        if status is not Status.OPTIMAL or not np.isfinite(x).all():
            return Outcome(Status.FAILED if status is Status.OPTIMAL else status, np.empty(0), np.empty(0), np.inf, 0)
        return Outcome(status, x, np.empty(0), 0.0, 0, float(self.program.cost @ x))

    def set_options(self, **options: object) -> None:
        """Leave the options of HiGHS out: they make a search shorter, and no answer another."""

    def forget(self) -> None:
        """Keep nothing, as ever."""
