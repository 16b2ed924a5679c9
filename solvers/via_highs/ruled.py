"""Programs with rules by HiGHS: the linear programs of `fairopt.solvers.leximin.ruled_tree`, refined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import REFINED, HighsModel, solved
from fairopt.solvers.leximin.ruled_tree import solve_by_programs

__all__ = ["solve_ruled"]


def solve_ruled(program: Program, deadline: Deadline, tolerance: float = CERTIFIED) -> Solution:
    """Return the leximin, the largest total, or the filled tree, of a program with rules.

    Raises
    ------
    NoSolution
        At the deadline, or where nothing is feasible.
    """
    iterations = 0

    def solve(cost: FloatArray, matrix: sp.csr_array, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal iterations
        model = HighsModel.within(cost, matrix, right)
        first = model.run(deadline.left)
        if first.status is Status.INFEASIBLE:
            raise NoSolution("nothing is feasible", {"infeasible": True})
        outcome = model.refine(solved(first, deadline, {}), deadline.left, of_prices=REFINED)
        iterations += outcome.iterations
        return np.maximum(outcome.x, 0.0), np.maximum(outcome.row_duals, 0.0)

    found = solve_by_programs(program, solve, tolerance, deadline)
    return replace(found, iterations=found.iterations + iterations)
