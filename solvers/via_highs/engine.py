"""HiGHS: leximin as a sequence of warm-started linear programs on one model, the equal level and the total as one, all over
whole tasks too.

Leximins are those of ``highs_levels``; where many users with limits of their own share few limits, those of ``sifted_levels``.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp

from fairopt.certificate import certify
from fairopt.program import Equalize, Feature, Leximin, Program, Solution, Total
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.leximin import sharpened
from fairopt.solvers.via_highs.levels import Levels
from fairopt.solvers.via_highs.model import HighsModel, solved
from fairopt.solvers.via_highs.sifting import solve_sifted, wins
from fairopt.solvers.via_highs.whole_tasks import solve_whole

__all__ = ["HiGHS"]

log = logging.getLogger(__name__)


_DIGIT = 0.1  # of the tolerance: an answer of sifted LPs is sharpened to one digit more than others


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
        if isinstance(program.goal, Leximin) and wins(program):
            found = solve_sifted(program, program.goal, tolerance, deadline)
            # Many users feel the rounding of few prices; to sharpen it takes a tenth of a second, the LPs of all of them minutes.
            sharp = None if found is None else sharpened(program, found, _DIGIT * tolerance)
            if sharp is not None and certify(program, sharp).worst <= tolerance:
                return sharp
            log.info("the LPs of torn users got lost; those of all users solve it from the beginning")
        return sharpened(program, Levels(program, program.goal, tolerance, deadline).solve(), tolerance)


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
