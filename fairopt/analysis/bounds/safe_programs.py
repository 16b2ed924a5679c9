"""Linear programs whose bounds are proved by arithmetic, whatever the solver says.

    maximise c @ x  subject to  A x <= b,  0 <= x <= u,   u finite.

Any prices p >= 0 prove  c @ x <= p @ b + sum_j max(0, c[j] - (A'p)[j]) u[j]  for every feasible x. The prices are those of HiGHS; the right
side is computed from them and from the program, with a bound on all errors of rounding added. (Neumaier and Shcherbina, 2004.)

>>> program = SafeProgram.of(np.array([1.0, 1.0]), np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([4.0, 6.0]), np.array([9.0, 9.0]))
>>> optimum = program.solve(np.inf)
>>> optimum.x.round(6), 2.8 <= optimum.bound < 2.8 + 1e-9
(array([1.6, 1.2]), True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray
from fairopt.solvers.highs_model import HighsModel, Status

__all__ = ["Optimum", "SafeProgram", "down", "up"]

_EPS = float(np.finfo(float).eps)
_STEPS = 8  # units in the last place by which a number of a few roundings is moved outwards


def down(values: FloatArray | float) -> FloatArray:
    """Return numbers >= 0 a few units in the last place smaller: a lower bound of what a few roundings computed."""
    return np.asarray(values * (1 - _STEPS * _EPS))


def up(values: FloatArray | float) -> FloatArray:
    """Return numbers >= 0 a few units in the last place larger."""
    return np.asarray(values * (1 + _STEPS * _EPS))


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The point and prices that the solver gave, and the bound that the prices prove, for every feasible point."""

    x: FloatArray
    prices: FloatArray
    bound: float


@dataclass(frozen=True, slots=True, eq=False)
class SafeProgram:
    """The data of a linear program: goal, rows, right sides, and the largest value of each variable, which is finite.

    The programs of a branch and bound are small and many, so rows are dense.
    """

    goal: FloatArray
    rows: FloatArray
    sides: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, goal: FloatArray, rows: FloatArray, sides: FloatArray, largest: FloatArray) -> SafeProgram:
        """Return the program; rows without an end are left out."""
        kept = np.isfinite(sides)
        return cls(goal, rows[kept], sides[kept], largest)

    def solve(self, time_limit: float) -> Optimum:
        """Solve, and prove a bound. Without an answer of the solver the bound is that of no prices.

        Raises
        ------
        NoSolution
            The solver says that no point is feasible.
        """
        scale = np.abs(self.rows).max(axis=1)
        scale[scale == 0] = 1.0
        scaled = sp.csr_array(self.rows / scale[:, None])
        model = HighsModel(self.goal, np.zeros(self.goal.size), self.largest, scaled, np.full(self.sides.size, -np.inf), self.sides / scale)
        outcome = model.run(time_limit)
        if outcome.status is Status.INFEASIBLE:
            raise NoSolution("no point keeps all rows of this linear program")
        found = outcome.status is Status.OPTIMAL and outcome.row_duals.size == self.sides.size
        prices = np.abs(outcome.row_duals) / scale if found else np.zeros(self.sides.size)
        x = np.clip(outcome.x, 0, self.largest) if outcome.x.size == self.goal.size else np.zeros(self.goal.size)
        return Optimum(x, prices, self.proved_by(prices))

    def proved_by(self, prices: FloatArray) -> float:
        """Return the upper bound on the goal that prices >= 0 prove, rounded upwards."""
        columns = self.rows.T
        charged, size = columns @ prices, np.abs(columns) @ prices + np.abs(self.goal)
        excess = np.maximum(self.goal - charged + 2 * _EPS * (self.sides.size + 3) * size, 0.0)
        terms = np.concatenate([prices * self.sides, excess * self.largest])
        return float(terms.sum() + 2 * _EPS * (terms.size + 3) * np.abs(terms).sum())
