"""What the levels so far leave to the next ones: the linear programs become smaller with every level.

The prices of a level say what no allocation with this level uses: a pair that costs more than it is worth has no task there, and a user who
pays has its level exactly (complementary slackness). So such pairs are no columns of later programs, and a settled user who has one pair
left is decided: it takes its part of the limits, and leaves. Of the others only those matter who share limits with users who rise, directly
or through others. In a network of 3,000 flows, the last of 360 levels needed thousands of pivots each, among flows that could not move.

Prices are known to rounding. A pair is closed where these prices allow it a negligible part of its user's level, as in
`fairopt.certificate.levels`, which charges later levels for it. Their own prices need not make closed pairs dear.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.program.components import components
from fairopt.program.sparse_rows import selected
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["closed_columns", "narrowed"]


def closed_columns(problem: LevelProblem, prices: FloatArray, gap: float, x: FloatArray) -> BoolArray:
    """Return which columns no allocation with the levels so far uses, (columns,).

    Parameters
    ----------
    problem : LevelProblem
    prices : array (limits,)
        Of the last level.
    gap : float
        Of these prices, relative to the level.
    x : array (pairs,)
    """
    limits, columns, users = problem.program.limits, problem.columns, problem.users
    cost = np.asarray(limits.transposed @ prices)[columns] / problem.per_level[columns]  # of a unit of level
    dear = (cost - problem.program.cheapest(cost, columns)[users]) * problem.program.per_user(x * problem.per_level)[users]
    spent = float(prices @ limits.bounds)
    return np.asarray((dear > max(SETTINGS.dear, SETTINGS.gaps * gap) * spent) & (x[columns] <= 0))


def narrowed(
    problem: LevelProblem, closed: BoolArray, course: Course, x: FloatArray, narrower: float = SETTINGS.narrower
) -> LevelProblem | None:
    """Return the problem of what is left to users who rise, None where that is hardly less, or one of them would have no pair left.

    Parameters
    ----------
    problem : LevelProblem
    closed : bool array (columns,)
    course : Course
        To the next level.
    x : array (pairs,)
        A point with the levels so far.
    narrower : float
        The largest part of the columns with which a smaller problem is made.
    """
    users, rows, rising = problem.users, problem.rows, course.rising
    pairs_left = np.bincount(users[~closed], minlength=rising.size)
    if (pairs_left[rising] == 0).any():
        return None
    settled = ~rising[users] & (course.start[users] > 0)
    only = ~closed & settled & (pairs_left[users] == 1)
    near = _near(problem, ~closed & ~only, rising)
    if near.sum() > narrower * near.size:
        return None
    columns = problem.columns[near]
    decided = np.where(problem.decided > 0, problem.decided, x)
    alone = problem.columns[only]
    decided[alone] = course.start[users[only]] / problem.per_level[alone]
    decided[problem.columns[closed]] = decided[columns] = 0.0
    matrix = problem.program.limits.matrix[rows]
    needed = np.asarray(matrix[:, columns].sum(axis=1)).ravel() > 0
    taken = np.asarray(matrix @ decided) / problem.program.limits.bounds[rows]
    members = np.zeros(rising.size, bool)
    members[users[near]] = True
    return replace(
        problem,
        columns=columns,
        users=users[near],
        largest=problem.largest[near],
        rows=rows[needed],
        members=members,
        decided=decided,
        taken=taken[needed],
    )


def _near(problem: LevelProblem, left: BoolArray, rising: BoolArray) -> BoolArray:
    """Return which of the columns that are left belong to users who rise, or share limits with them, also through others, (columns,)."""
    kept = np.flatnonzero(left)
    matrix = selected(problem.program.limits.matrix, problem.rows)
    place = np.full(matrix.shape[1], -1)
    place[problem.columns[kept]] = kept
    column = place[matrix.indices]
    row, n = np.repeat(np.arange(problem.rows.size), np.diff(matrix.indptr)), rising.size
    there = column >= 0
    group = components(problem.users[column[there]], n + row[there], n + problem.rows.size)
    near = np.zeros(left.size, bool)
    near[kept] = np.isin(group[problem.users[kept]], group[:n][rising])
    return near
