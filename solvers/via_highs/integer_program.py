"""A program with whole numbers as data: what every solver of such programs is given, and what a search that was stopped has proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.backend import Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["IntegerProgram"]


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProgram:
    """maximise cost @ x  subject to  row_lower <= matrix @ x <= row_upper,  lower <= x <= upper,  x[integral] whole.

    Attributes
    ----------
    cost, lower, upper : arrays (columns,)
    matrix : sparse array (rows, columns)
    row_lower, row_upper : arrays (rows,)
        -inf and inf where a row has no such bound.
    integral : int array
        The columns that are whole.
    tolerance : float
        By how much a point may miss a row, a bound or a whole number.
    """

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    matrix: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    integral: IntArray
    tolerance: float = 1e-9

    def has(self, x: FloatArray) -> bool:
        """Say whether a point keeps everything; a solver that was stopped may give one that does not."""
        if x.size != self.cost.size or not np.isfinite(x).all():
            return False
        activity = self.matrix @ x
        room = SETTINGS.missed * np.maximum(1.0, abs(self.matrix) @ np.abs(x))
        whole = x[self.integral]
        return bool(
            (activity <= self.row_upper + room).all() and (activity >= self.row_lower - room).all()
            and (x <= self.upper + SETTINGS.missed * np.maximum(1.0, np.abs(x))).all() and (x >= self.lower - SETTINGS.missed).all()
            and (np.abs(whole - np.round(whole)) <= SETTINGS.missed).all()
        )  # fmt: skip

    def largest(self) -> float:
        """Return a bound on the goal that follows from the bounds of the columns alone; inf if there is none."""
        some = self.cost != 0
        ends = np.where(self.cost > 0, self.upper, self.lower)[some]
        return float(self.cost[some] @ ends)

    def outcome(self, status: Status, x: FloatArray, bound: float | None) -> Outcome:
        """Return the outcome of a search with a point, or of one that was stopped before it found one.

        ``bound`` is that of the solver, None if it gives none: then the bounds of the columns have to do.
        """
        bound = self.largest() if bound is None else bound
        if not self.has(x):
            return Outcome(status, np.empty(0), np.empty(0), np.inf, 0, bound)
        value = float(self.cost @ x)
        above = max(bound - value, 0.0)
        gap = 0.0 if above <= SETTINGS.same_goal else above / abs(value) if value else np.inf
        return Outcome(status, x, np.empty(0), gap, 0, max(bound, value))
