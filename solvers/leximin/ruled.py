"""Leximins and totals over any polytope A x <= b, x >= 0, which need not contain 0: rules have coefficients and bounds of any sign.

Less of x may be infeasible here, so nobody is scaled down, no user has a cap without a row, and nobody is given exactly its level
afterwards. Each level is one linear program of all rows,

    maximise t   subject to   A x <= b,   s[n] >= t for users who rise,   s[n] >= L[n] for settled ones,   x, t >= 0,

and users with a clearly positive multiplier are settled (`fairopt.certificate.ruled_levels` has the proof). An engine gives a function that
solves a linear program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.program import Program, Solution, Stage
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["LinearProgram", "Scaled", "shares_of_users", "solve_ruled"]

log = logging.getLogger(__name__)

LinearProgram: TypeAlias = Callable[[FloatArray, sp.csr_array, FloatArray], tuple[FloatArray, FloatArray]]
"""From cost, matrix and right to z and prices: the z >= 0 of the largest cost z within matrix z <= right, and prices >= 0 of the rows."""


def solve_ruled(program: Program, solve: LinearProgram, deadline: Deadline) -> Solution:
    """Return the leximin, or the largest total, of a program with rules.

    Raises
    ------
    NoSolution
        At the deadline; whatever ``solve`` raises where nothing is feasible.
    """
    scaled = Scaled.of(program)
    return _levels(scaled, solve, deadline) if program.goal.has_levels else _total(scaled, solve)


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """The columns with room, in units of the most that each can have; rows in units of their largest number.

    Attributes
    ----------
    program : Program
    columns : int array (columns,)
    scale : array (columns,)
    matrix : sparse array (limits, columns)
    right, size : arrays (limits,)
        Bounds, and the unit of each row.
    """

    program: Program
    columns: np.ndarray
    scale: FloatArray
    matrix: sp.csr_array
    right: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, program: Program) -> Scaled:
        """Return the columns and rows of a program in these units."""
        largest, limits = program.largest(), program.limits
        columns = np.flatnonzero(largest > 0)
        scale = largest[columns]
        matrix = sp.csr_array(limits.matrix[:, columns] * scale)
        size = np.abs(limits.bounds)
        rows = np.repeat(np.arange(len(limits)), np.diff(matrix.indptr))
        np.maximum.at(size, rows, np.abs(matrix.data))
        size = np.where(size > 0, size, 1.0)
        return cls(program, columns, scale, sp.csr_array(matrix / size[:, None]), limits.bounds / size, size)

    def point(self, y: FloatArray) -> FloatArray:
        """Return x, (pairs,)."""
        x = np.zeros(self.program.n_pairs)
        x[self.columns] = np.maximum(y, 0.0) * self.scale
        return x


def shares_of_users(scaled: Scaled, per_task: FloatArray) -> tuple[sp.csr_array, IntArray, FloatArray]:
    """Return the rows s[n] / reach[n] of the users who can have something, these users, and the reach of all, (users,).

    ``per_task``, (pairs,), is what a task adds to s: `Program.utilities`, or `Program.worth`.
    """
    program = scaled.program
    users, per_column = program.pair_users[scaled.columns], per_task[scaled.columns] * scaled.scale
    reach = np.bincount(users, weights=per_column, minlength=len(program.users)).astype(np.float64)
    members: IntArray = np.flatnonzero(reach > 0)
    place = np.full(reach.size, -1)
    place[members] = np.arange(members.size)
    entries = per_column / reach[users], (place[users], np.arange(users.size))
    return sp.csr_array(entries, shape=(members.size, users.size)), members, reach


def _total(scaled: Scaled, solve: LinearProgram) -> Solution:
    worth = scaled.program.worth[scaled.columns] * scaled.scale
    unit = float(worth.max(initial=0.0)) or 1.0
    y, prices = solve(worth / unit, scaled.matrix, scaled.right)
    return Solution(scaled.point(y), prices=np.maximum(prices, 0.0) * unit / scaled.size)


def _levels(scaled: Scaled, solve: LinearProgram, deadline: Deadline) -> Solution:
    program = scaled.program
    own, members, reach = shares_of_users(scaled, program.worth)
    unit = float(reach[members].min(initial=np.inf)) / max(members.size, 1) ** 0.5 if members.size else 1.0
    rising, level = np.ones(members.size, bool), np.zeros(members.size)
    stages, y = list[Stage](), np.zeros(scaled.columns.size)
    while rising.any():
        if deadline.left == 0.0:
            raise deadline.passed(final_levels(program, stages))
        rate = np.where(rising, unit / reach[members], 0.0)
        matrix = sp.block_array([[scaled.matrix, None], [-own, sp.csr_array(rate[:, None])]], format="csr")
        right = np.concatenate([scaled.right, -level / reach[members]])
        z, prices = solve(np.append(np.zeros(y.size), 1.0), matrix, right)
        y, t = z[:-1], float(z[-1]) * unit
        pays = np.maximum(prices[scaled.size.size :], 0.0) * rate  # of those who rise they sum to 1
        clearly = rising & (pays >= SETTINGS.clearly_paying / int(rising.sum()))
        stopped = np.flatnonzero(clearly if clearly.any() else rising & (pays >= pays[rising].max()))
        stages.append(Stage(t, members[stopped], np.maximum(prices[: scaled.size.size], 0.0) * unit / scaled.size))
        rising[stopped], level[stopped] = False, t
        log.info("level %d: %.6g, %d users left", len(stages), t, int(rising.sum()))
        if t > 0 and not 1 / SETTINGS.other_unit < t / unit < SETTINGS.other_unit:
            unit = t
    y = _without_excess(y, own, level / reach[members], scaled, solve)
    return Solution(scaled.point(y), tuple(stages), programs_solved=len(stages))


def _without_excess(y: FloatArray, own: sp.csr_array, level: FloatArray, scaled: Scaled, solve: LinearProgram) -> FloatArray:
    """Return a point at which no user has more than its level, where rounding left users of small weight some."""
    inverse = np.divide(1.0, level, out=np.zeros(level.size), where=level > 0)
    excess = np.asarray(own @ y) * inverse - 1
    if not excess.max(initial=0.0) > SETTINGS.excess:
        return y
    more = np.asarray(inverse @ own)
    try:
        found, _ = solve(-more / more.max(), sp.block_array([[scaled.matrix], [-own]], format="csr"), np.append(scaled.right, -level))
    except NoSolution:
        return y
    return found if np.abs(np.asarray(own @ found) * inverse - 1)[level > 0].max() < excess.max() else y
