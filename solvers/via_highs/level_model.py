"""The HiGHS model of one level, in units of the unknown level.

    maximise t'   subject to   use y <= 1 - taken,   worth y - (wanted / unit) t' >= start / unit  for each user,   y, t' >= 0

t' is t in units of ``t_unit``; y are the tasks of a pair, in units that make one unit of its user's level; and each user's level is in
units of its own order of magnitude. So the solver's tolerances still resolve a user who can get at most a billionth of what others get.
``wanted`` is the level of each rising user at t' = 1: rate t_unit, or min(guess, cap) if a guess of the level and caps are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program.sparse_rows import Products, selected
from fairopt.solvers.highs_model import FINEST, HighsModel
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["LevelModel"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelModel:
    """A HiGHS model and its units. Columns: y, then t'. Rows: limits with a bound of 1 less what is taken, then a row for each member.

    ``coefficient`` and ``lower`` (users,) are the present values in the rows of users. ``first``: each user's first column; ``vanishing``:
    columns that can carry only a vanishing part of their user's level.
    """

    highs: HighsModel
    t_unit: float
    wanted: FloatArray
    unit: FloatArray
    scale: FloatArray
    worth: FloatArray
    use: Products
    use_by_column: Products
    user_rows: IntArray
    coefficient: FloatArray
    lower: FloatArray
    first: IntArray
    vanishing: IntArray
    capped: bool

    @classmethod
    def of(
        cls,
        problem: LevelProblem,
        course: Course,
        t_unit: float,
        cap: FloatArray | None,
        slack: float,
        magnified: float = SETTINGS.magnified,
    ) -> LevelModel:
        """Return the model of a level in a unit of t; the levels of settled users are relaxed by ``slack``, a part of them."""
        members, columns, users, rows = problem.members, problem.columns, problem.users, problem.rows
        wanted = course.rate * t_unit if cap is None else np.where(course.rising, np.minimum(cap, t_unit), 0.0)
        # The unit of level of a settled user has the order of magnitude of its level, that of others the one of t (a start below 0 may
        # cancel what is wanted).
        level = course.start + np.where(course.rising, wanted, 0.0)
        level = np.where(course.rising, np.maximum(level, SETTINGS.least_of_wanted * wanted), level)
        level = np.where(course.rising & (level > 0), np.minimum(problem.reach, level), level)
        unit = np.where(level > 0, level, np.where(problem.reach > 0, problem.reach, 1.0) if course.start.any() else 1.0)
        # Tasks per unit of a column: in these units neither its use of a limit nor its part of the user's level exceeds 1.
        per_level = problem.per_level[columns]
        scale = np.minimum(unit[users] / per_level, problem.largest)
        worth = scale * per_level / unit[users]
        use = _use(problem, scale)
        present = np.flatnonzero(members)
        place = np.cumsum(members) - 1
        # The rows are built by hand, the pairs of each user and then t': SciPy's classes would take as long as the LP.
        first = np.searchsorted(users, present)
        indices = np.insert(np.arange(columns.size), np.append(first[1:], columns.size), columns.size)
        coefficient = -wanted / unit
        data = np.insert(worth, np.append(first[1:], columns.size), coefficient[present])  # entries of 0 too, which may be changed
        ends = np.append(first[1:], columns.size) + np.arange(1, present.size + 1)
        matrix = sp.csr_array(
            (
                np.concatenate([use.data, data]),
                np.concatenate([use.indices, indices]),
                np.concatenate([use.indptr, use.indptr[-1] + ends]),
            ),
            shape=(rows.size + present.size, columns.size + 1),
        )
        lower = course.start / unit * (1 - slack)
        highs = HighsModel(
            np.append(np.zeros(columns.size), 1.0),
            np.zeros(columns.size + 1),
            np.full(columns.size + 1, np.inf),
            matrix,
            np.concatenate([np.full(rows.size, -np.inf), lower[present]]),
            np.concatenate([np.maximum(1 - problem.taken, 0.0), np.full(present.size, np.inf)]),
            tolerance=FINEST,
            magnified=magnified,
        )
        by_column = sp.csr_array(use.T)
        return cls(
            highs,
            t_unit,
            wanted,
            unit,
            scale,
            worth,
            Products.of(use),
            Products.of(by_column),
            user_rows=place + rows.size,
            coefficient=coefficient,
            lower=lower,
            first=np.flatnonzero(np.diff(users, prepend=-1)),
            vanishing=np.flatnonzero(worth < SETTINGS.vanishing),
            capped=cap is not None,
        )


def _use(problem: LevelProblem, scale: FloatArray) -> sp.csr_array:
    """Return which part of each limit a unit of a column takes, (rows, columns)."""
    limits = problem.program.limits
    matrix, bounds = limits.matrix, limits.bounds
    if problem.rows.size < bounds.size:
        matrix, bounds = selected(matrix, problem.rows), bounds[problem.rows]
    if problem.columns.size < matrix.shape[1]:
        matrix = matrix[:, problem.columns]
    part = matrix.data * scale[matrix.indices] / np.repeat(bounds, np.diff(matrix.indptr))
    return sp.csr_array((part, matrix.indices, matrix.indptr), shape=matrix.shape)
