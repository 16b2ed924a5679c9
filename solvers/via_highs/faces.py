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

from fairopt.instance import BoolArray, FloatArray, IntArray
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
    problem: LevelProblem,
    closed: BoolArray,
    course: Course,
    x: FloatArray,
    narrower: float = SETTINGS.narrower,
    by_own_limits: bool = False,
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
    by_own_limits : bool
        Do limits of their own decide settled users, too? Then later prices need not be those of all their pairs: these limits, which are
        always full, need prices of any sign for that (`fairopt.solvers.leximin.least_prices`).
    """
    users, rows, rising = problem.users, problem.rows, course.rising
    if by_own_limits:
        closed = closed | _beyond_own_limits(problem, ~closed, course)
    pairs_left = np.bincount(users[~closed], minlength=rising.size)
    if (pairs_left[rising] == 0).any():
        return None
    settled = ~rising[users] & (course.start[users] > 0)
    only = ~closed & settled & (pairs_left[users] == 1)
    of_two_pairs = ~closed & settled & (pairs_left[users] == 2) & by_own_limits
    two, of_two = _decided_by_two(problem, of_two_pairs, course)
    left = ~closed & ~only
    left[two] = False
    near = _near(problem, left, rising)
    if near.sum() > narrower * near.size:
        return None
    columns = problem.columns[near]
    decided = np.where(problem.decided > 0, problem.decided, x)
    alone = problem.columns[only]
    decided[alone] = course.start[users[only]] / problem.per_level[alone]
    decided[problem.columns[two]] = of_two
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


def _beyond_own_limits(problem: LevelProblem, left: BoolArray, course: Course) -> BoolArray:
    """Return which of the columns that are left take more of a limit of their settled user's own than it can spare, (columns,).

    A user at a cap has its level on the pairs alone that take least of that limit.
    """
    own, columns, beyond = problem.own, problem.columns, np.zeros(problem.columns.size, bool)
    place = np.full(problem.program.n_pairs, -1)
    place[columns[left]] = np.flatnonzero(left)
    here = np.flatnonzero(place[own.pair] >= 0)
    row, worth = own.row[here], own.worth[here]
    most = np.zeros(own.rows.size)
    np.maximum.at(most, row, worth)
    of_all = np.bincount(row, minlength=most.size) == np.bincount(problem.users[left], minlength=course.rising.size)[own.users]
    at_cap = ~course.rising[own.users] & of_all & (course.start[own.users] >= own.bounds * most * (1 - SETTINGS.at_cap))
    less = at_cap[row] & (worth < most[row] * (1 - SETTINGS.takes_more))
    beyond[place[own.pair[here[less]]]] = True
    return beyond


def _decided_by_two(problem: LevelProblem, left: BoolArray, course: Course) -> tuple[IntArray, FloatArray]:
    """Return which of these columns, two of each user, are decided, and their tasks.

    The level of the user is known, and a limit of its own is always full: two equations.
    """
    own, users = problem.own, problem.users
    tight = (problem.full[own.rows] & ~own.even)[own.row]
    row, use = np.full(problem.program.n_pairs, -1), np.zeros(problem.program.n_pairs)
    row[own.pair[tight]], use[own.pair[tight]] = own.row[tight], own.use[tight]
    first, second = np.flatnonzero(left)[::2], np.flatnonzero(left)[1::2]
    p, q = problem.columns[first], problem.columns[second]
    a, b, bound, level = use[p], use[q], own.bounds[row[p]] if own.rows.size else np.zeros(p.size), course.start[users[first]]
    level_of_p, level_of_q = problem.per_level[p], problem.per_level[q]
    apart = a * level_of_q - b * level_of_p
    there = (row[p] >= 0) & (row[p] == row[q]) & (np.abs(apart) > SETTINGS.least_apart * (a * level_of_q + b * level_of_p))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_p, of_q = (bound * level_of_q - b * level) / apart, (a * level - bound * level_of_p) / apart
        there &= np.minimum(a * of_p, b * of_q) >= -SETTINGS.proved_gap * bound
    return np.concatenate([first[there], second[there]]), np.maximum(np.concatenate([of_p[there], of_q[there]]), 0.0)


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
