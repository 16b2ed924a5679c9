"""Linear programs over the levels of a case, in units in which each column and each limit reaches 1.

A case has columns x >= 0, limits A x <= b, and the level of each user, level[n] = sum of u[p] x[p] / phi[n] over its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.scheduling.baselines.baseline import Case

__all__ = ["LevelProgram"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelProgram:
    """Columns y in [0, 1] of what each could have alone, and rows <= 1.

    Attributes
    ----------
    case : Case
    unit : float
        Of levels, so that those that matter are near 1.
    columns : int array
        The columns of the program that have room.
    rows : sparse array (limits, columns)
        rows @ y <= 1.
    levels : sparse array (users, columns)
        levels @ y is level / unit.
    """

    case: Case
    unit: float
    columns: IntArray
    rows: sp.csr_array
    levels: sp.csr_array

    @classmethod
    def of(cls, case: Case, unit: float) -> LevelProgram:
        """Return the program of a case."""
        program = case.program
        largest = program.largest()
        columns = np.flatnonzero(largest > 0)
        most = largest[columns]
        used = sp.csr_array(program.limits.matrix[:, columns])
        rows = sp.csr_array(sp.diags_array(safe_ratio(1.0, program.limits.bounds)) @ used @ sp.diags_array(most))
        users = program.pair_users[columns]
        worth = program.utilities[columns] * most / case.weights[users] / unit
        levels = sp.csr_array((worth, (users, np.arange(columns.size))), shape=(case.instance.n_users, columns.size))
        return cls(case, unit, columns, rows, levels)

    @property
    def members(self) -> IntArray:
        """The users who can have something."""
        return np.flatnonzero(np.diff(self.levels.indptr))

    @property
    def alone(self) -> FloatArray:
        """An upper bound on level / unit, (users,): what the columns of each user could have alone."""
        most: FloatArray = np.asarray(self.levels.sum(axis=1), float).ravel()
        return most

    def largest(self, goal: FloatArray, rows: Any, bounds: FloatArray, upper: FloatArray) -> FloatArray:
        """Return columns, y first, that maximise a goal subject to the limits and to more rows; columns are from 0 to ``upper``.

        Raises
        ------
        NoSolution
            HiGHS finds none.
        """
        beside = goal.size - self.columns.size
        limits = sp.hstack([self.rows, sp.csr_array((self.rows.shape[0], beside))]) if beside else self.rows
        every: Any = sp.csr_array(sp.vstack([limits, rows]))
        ends: Any = np.column_stack([np.zeros(goal.size), upper])
        right = np.concatenate([np.ones(self.rows.shape[0]), bounds])
        found: Any = None
        for presolve in (True, False):  # presolve may take what a program lacks by rounding for a contradiction
            found = scipy.optimize.linprog(-goal, A_ub=every, b_ub=right, bounds=ends, method="highs", options={"presolve": presolve})
            if found.x is not None:
                break
        else:
            raise NoSolution(f"a linear program of a baseline was not solved: {found.message}")
        point: FloatArray = found.x
        return point

    def feasible(self, point: FloatArray) -> FloatArray:
        """Return the y of a point, (columns,), within all limits: columns of rows that rounding exceeds shrink."""
        y = np.clip(point[: self.columns.size], 0.0, 1.0)
        used = np.maximum(self.rows @ y, 1.0)
        by_column = sp.csc_array(self.rows)
        worst = np.ones(y.size)
        np.maximum.at(worst, np.repeat(np.arange(y.size), np.diff(by_column.indptr)), used[by_column.indices])
        return y / worst

    def tasks(self, y: FloatArray) -> FloatArray:
        """Return y as a value for each column of the program, (pairs,)."""
        x = np.zeros(self.case.program.n_pairs)
        x[self.columns] = y * self.case.program.largest()[self.columns]
        return x
