"""The linear program of one level of agents, which engines that fill trees share.

    maximise t   subject to   use y <= upper,   worth y - rate t >= begin  for each agent,   y, t >= 0

The LP has a solution, because somebody holds at least ``begin`` already. Rounding can hide it from HiGHS: then what agents begin with is
relaxed by a part of it, and by a larger one if that is not enough. The certificate judges the answer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import FINEST, PRIMAL_SIMPLEX, HighsModel, Outcome, first_solved
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["AgentRows"]


class AgentRows:
    """The LP, in units in which its numbers are about 1.

    Parameters
    ----------
    use : sparse array (limits, columns)
    upper : array (limits,)
    columns : bool array (columns,)
        The others are 0.
    worth : sparse array (agents, columns)
    rate, begin : arrays (agents,)

    Attributes
    ----------
    model : HighsModel
        Of the last run.
    runs, iterations : int
        Of all runs.
    """

    model: HighsModel

    def __init__(self, use: Any, upper: FloatArray, columns: BoolArray, worth: Any, rate: FloatArray, begin: FloatArray) -> None:
        self.matrix = sp.block_array([[use, None], [worth, sp.csr_array(-rate[:, None])]], format="csr")
        self.upper, self.columns, self.begin = upper, columns, begin
        self.runs = self.iterations = 0

    def solve(self, deadline: Deadline, basis: Any = None) -> Outcome:
        """Return the first outcome that is optimal, else the last one: from a basis, if there is one, from none, and then relaxed.

        >>> rows = AgentRows(sp.csr_array([[1.0]]), np.ones(1), np.ones(1, bool), sp.csr_array([[1.0]]), np.ones(1), np.zeros(1))
        >>> rows.solve(Deadline(None)).x, rows.runs
        (array([1., 1.]), 1)
        """
        slacks = (0.0, *SETTINGS.relaxed) if self.begin.any() else (0.0,)
        starts = [*([(0.0, basis)] if basis is not None else ()), *((slack, None) for slack in slacks)]
        return first_solved(partial(self._run, deadline, *start) for start in starts)

    def _run(self, deadline: Deadline, slack: float, basis: Any) -> Outcome:
        columns, agents = self.columns.size, self.begin.size
        self.model = HighsModel(
            np.append(np.zeros(columns), 1.0),
            np.zeros(columns + 1),
            np.append(np.where(self.columns, np.inf, 0.0), np.inf),
            self.matrix,
            np.concatenate([np.full(self.upper.size, -np.inf), self.begin * (1 - slack)]),
            np.concatenate([self.upper, np.full(agents, np.inf)]),
            tolerance=FINEST,
        )
        if basis is not None:
            self.model.basis = basis
            self.model.set_options(simplex_strategy=PRIMAL_SIMPLEX)
        outcome = self.model.run(deadline.left)
        self.runs, self.iterations = self.runs + 1, self.iterations + outcome.iterations
        return outcome
