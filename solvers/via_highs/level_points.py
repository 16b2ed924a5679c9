"""What an LP of one level says: a feasible point, and prices that prove its level.

HiGHS solves within tolerances; the point is scaled back until it violates nothing, so that what it shows can be had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_model import LevelModel
from fairopt.solvers.via_highs.level_problem import LevelProblem

__all__ = ["Point", "paid_at", "point_of", "prices_at"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A feasible point that a program found: x, (pairs,), its levels, (users,), and the part of ``wanted`` that all who rise have.

    ``t_unit`` is the level that was wanted.
    """

    x: FloatArray
    levels: FloatArray
    part: float
    t_unit: float
    outcome: Outcome

    @property
    def t(self) -> float:
        """The level that all who rise have, where nobody has a cap."""
        return self.part * self.t_unit


def point_of(model: LevelModel, problem: LevelProblem, course: Course, outcome: Outcome, slack: float = 0.0) -> tuple[Point, float]:
    """Return the point of an outcome, scaled back to exact feasibility, and the largest violation.

    That is of a value below 0, of a limit (relative), or of a level that is owed (relative, after scaling). Settled users are owed their
    levels less ``slack``, a part of them, as in the model.
    """
    least, t = float(outcome.x.min()), float(outcome.x[-1])
    y = outcome.x[:-1] if least >= 0 else np.maximum(outcome.x[:-1], 0.0)
    most = max(1.0, float((model.use(y) + problem.taken).max(initial=0.0)))
    x = problem.decided.copy()
    x[problem.columns] = y * model.scale
    if most > 1.0:
        x /= most
    levels = problem.program.per_user(x * problem.per_level)
    owed = (course.start * (1 - slack) if slack else course.start) + t * model.wanted
    short = owed - levels
    np.divide(short, owed, out=short, where=owed > 0)
    part = Course(course.rising, course.start, model.wanted).reached(levels, t)
    return Point(x, levels, part, model.t_unit, outcome), max(-least, most - 1, float(short.max(initial=0.0)))


def paid_at(model: LevelModel, problem: LevelProblem, point: Point) -> FloatArray:
    """Return what each user pays for a unit of its level, in the prices of a proof, (users,)."""
    members = problem.members
    pays = np.zeros(members.size)
    pays[members] = np.maximum(-point.outcome.row_duals[model.user_rows[members]], 0.0)
    return np.asarray(pays / model.unit * model.t_unit)


def prices_at(model: LevelModel, problem: LevelProblem, point: Point) -> tuple[FloatArray, FloatArray, float]:
    """Return the prices of limits, (limits,), the cheapest price of a unit of level of each user, (users,), and all that is spent.

    Users all of whose pairs are decided pay nothing, and what they take is not counted.
    """
    users, members, rows = problem.users, problem.members, problem.rows
    cost_of, duals = model.use_by_column, point.outcome.row_duals
    prices = np.maximum(duals[: rows.size], 0.0)
    cost = cost_of(prices) / model.worth
    # A pair that can carry only a vanishing part of its user's level is below the solver's tolerances, and so is the price of what
    # it uses. Raise that price to what the user pays elsewhere: it hardly costs anything, and the pair no longer looks cheap.
    if model.vanishing.size:
        pays = np.zeros(members.size)
        pays[members] = np.maximum(-duals[model.user_rows[members]], 0.0)
        by_column = cost_of.matrix
        for p in model.vanishing[cost[model.vanishing] < pays[users[model.vanishing]]]:
            span = slice(by_column.indptr[p], by_column.indptr[p + 1])
            limit, use = by_column.indices[span], by_column.data[span]
            missing = pays[users[p]] * model.worth[p] - use @ prices[limit]
            if missing > 0:
                prices[limit[use.argmax()]] += missing / use.max()
        cost = cost_of(prices) / model.worth
    q = np.zeros(members.size)
    if cost.size:
        of = users[model.first]
        q[of] = np.minimum.reduceat(cost, model.first) / model.unit[of]
    full = np.zeros(len(problem.program.limits))
    full[rows] = prices * model.t_unit / problem.program.limits.bounds[rows]  # what t gains per unit of each limit
    return full, q, float((prices * (1 - problem.taken)).sum())
