"""Programs with rules by Pyomo's solvers: the linear programs of `fairopt.solvers.leximin.ruled_tree`, each a model of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.leximin.ruled_tree import solve_by_programs
from fairopt.solvers.via_pyomo import model as pyomo_model
from fairopt.solvers.via_pyomo import running

__all__ = ["solve_with_rules"]


def solve_with_rules(program: Program, engine: Any, deadline: Deadline, tolerance: float = CERTIFIED) -> Solution:
    """Return the leximin, the largest total, or the filled tree, of a program with rules.

    Raises
    ------
    NoSolution
        At the deadline, or where nothing is feasible.
    """
    import pyomo.environ as pyo

    def solve(cost: FloatArray, matrix: sp.csr_array, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        with running.inside():
            model: Any = pyo.ConcreteModel()
            model.z = pyo.Var(range(cost.size), domain=pyo.NonNegativeReals)
            columns = [model.z[j] for j in range(cost.size)]
            model.rows = pyo.Constraint(range(right.size))
            some = np.flatnonzero(np.diff(matrix.indptr))
            for row in some.tolist():
                model.rows.add(row, pyomo_model.row_of(matrix, row, columns) <= float(right[row]))
            model.goal = pyo.Objective(expr=pyo.quicksum(float(a) * z for a, z in zip(cost, columns, strict=True) if a), sense=pyo.maximize)
            pyomo_model.with_duals(model)
        status, _ = running.run(model, engine, deadline.left)
        if status is Status.INFEASIBLE or (right[np.diff(matrix.indptr) == 0] < 0).any():
            raise NoSolution("nothing is feasible", {"infeasible": True})
        running.require_solved(status, deadline, {})
        prices = np.zeros(right.size)
        prices[some] = [abs(float(model.dual.get(model.rows[row], 0.0))) for row in some.tolist()]
        return np.maximum(running.values(columns), 0.0), prices

    return solve_by_programs(program, solve, tolerance, deadline)
