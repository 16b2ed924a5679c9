"""HiGHS: leximin as a sequence of warm-started linear programs on one model, the equal level and the total as one, all over
whole tasks too.

Leximin, level by level. With F the users already settled, at levels L[n], the next level is

    maximise t   subject to   A x <= b,   U[n]/phi[n] >= t (n not in F),   U[n]/phi[n] >= L[n] (n in F),   x >= 0.

Let p >= 0 be the multipliers of the limits and q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair], the cheapest
price of one unit of n's level. Weak duality bounds t, and with gap = bound - t no solution that reaches t can lift user n
above t + sigma gap / q[n]
(sigma = sum of q over the users who rise; see ``fairopt.certificate``). So the users with sigma gap / q[n] below the
tolerance are settled at t *in every* optimal solution, the others rise on. Settling a user takes t out of its row and
raises the row's bound: the last point stays feasible, and primal simplex goes on from it.

A user with finitely many tasks has a cap, the level at which all its tasks run. Its row is not in the LPs: an LP that ignores the
caps gives a level t that is too low if some caps lie below it; settling those users at their caps and solving again raises t, until
no cap lies below. That is Newton's method on a concave piecewise-linear function, so a few LPs pass any number of caps.

Columns are scaled to the user's own order of level and limits to a bound of 1, so that a user who can never get more than a
billionth of what others get is still seen by the solver's tolerances.
"""

from __future__ import annotations

import logging
import numpy as np
import scipy.sparse as sp

from fairopt.program import Equalize, Feature, Leximin, Program, Solution, Total
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.highs_levels import Levels
from fairopt.solvers.highs_model import HighsModel, solved
from fairopt.solvers.sifted_levels import SiftedLevels
from fairopt.solvers.whole_tasks import solve_whole

__all__ = ["HiGHS"]


class HiGHS(Backend):
    """HiGHS through highspy: simplex, interior point, branch and cut."""

    name = "highs"
    title = "HiGHS: warm-started LPs, MILP stages for whole tasks"
    features = frozenset({Feature.LEXIMIN, Feature.EQUALIZE, Feature.TOTAL, Feature.INTEGRAL, Feature.SEVERAL_SERVERS})
    package = "highspy"
    requirement = "pip install highspy"

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Solve any program of these features."""
        if program.integral:
            return solve_whole(program, deadline)
        if isinstance(program.goal, Total):
            return _total(program, program.goal, deadline)
        assert isinstance(program.goal, Leximin | Equalize)
        levels = SiftedLevels if SiftedLevels.wins(program) else Levels
        return levels(program, program.goal, tolerance, deadline).solve()


def _total(program: Program, goal: Total, deadline: Deadline) -> Solution:
    """One LP, in the variables y = x / largest. What keeps them below 1 is the limits, so that the limits have all the prices."""
    largest = program.largest()
    limits = program.limits
    bounds = np.where(limits.bounds > 0, limits.bounds, 1.0)  # a bound of 0 makes its columns' largest 0
    matrix = sp.csr_array(limits.matrix * largest) / bounds[:, None]
    worth = goal.weights[program.pair_users] * program.utilities * largest
    unit = float(worth.max()) or 1.0
    model = HighsModel(
        worth / unit,
        np.zeros(largest.size),
        np.where(largest > 0, np.inf, 0.0),
        sp.csc_array(matrix),
        np.full(bounds.size, -np.inf),
        np.ones(bounds.size),
        tolerance=1e-10,
    )
    outcome = solved(model.run(deadline.left), deadline, {})
    prices = np.maximum(outcome.row_duals, 0.0) * unit / bounds
    return Solution(np.maximum(outcome.x, 0.0) * largest, prices=prices, iterations=outcome.iterations)
