"""A leximin by the prices of one much like it: its levels without a linear program, and one small program for its tasks.

Let p >= 0 be prices of the limits, q[n] the cheapest price at them of a unit of the level of user n, and s[n] the levels of users who are
settled. By weak duality no next level is above the root t of

    sum over n who rise of  q[n] min(t, cap[n])  +  sum over n who are settled of  q[n] s[n]  =  p.b.

If p are optimal prices of this level, t is the level, and who rises with q[n] > 0 is settled there. Prices stay optimal as long as the
optimal basis does, which is the rule where one user of many leaves or changes its demands: levels move, and prices do not. So the prices of
all levels of the other answer give all levels here, from the lowest, if they are optimal here too.

They are if some allocation has these levels. Complementary slackness says where its tasks may be: at each of these prices on the cheapest
pairs of their user alone. Users with one such pair are decided. A linear program places the tasks of the others, or finds that there is no
room for them. It starts from the basis of the tasks of the other answer, and needs few pivots.

The answer is a solution like that of any method: its certificate is computed from its tasks and its prices. Nothing relies on the guess.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.program.likeness import Likeness
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import DUAL_SIMPLEX
from fairopt.solvers.leximin.levels import Course, Proof, Together, bound_of, exactly
from fairopt.solvers.via_highs.level_model import LevelModel
from fairopt.solvers.via_highs.level_points import point_of
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.levels import reached_caps
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["solve_by_known_prices"]


def solve_by_known_prices(program: Program, likeness: Likeness, deadline: Deadline) -> Solution | None:
    """Return the leximin, if the known prices are optimal for it; else None."""
    problem = LevelProblem.of(program, program.goal_as(Leximin))
    if likeness.prices is None or likeness.tasks is None or not problem.own.even.all():
        return None
    found = _levels(problem, likeness.prices)
    if found is None:
        return None
    levels, stages = found
    rest = _undecided(problem, levels, stages)
    if rest is None or (rest.taken > 1 + SETTINGS.over_decided).any():
        return None
    x, pivots = (rest.decided, 0) if not rest.columns.size else _placed(rest, levels, likeness.tasks, deadline)
    if x is None:
        return None
    return Solution(exactly(program, problem.per_level, x, levels), stages, iterations=pivots, programs_solved=int(rest.columns.size > 0))


def _levels(problem: LevelProblem, known: FloatArray) -> tuple[FloatArray, tuple[Stage, ...]] | None:
    """Return the levels of all users, (users,), and the stages, if the prices stop all who have no cap."""
    cap = problem.own.caps()[0]
    course, stages, last = Together(problem.members).begin(), list[Stage](), 0.0
    for prices in known:
        q, spent = problem.program.cheapest(_costs(problem, prices), problem.columns), float(prices @ problem.program.limits.bounds)
        t = bound_of(course, q, spent - float(q @ np.where(course.rising, 0.0, course.start)), cap)
        if not last <= t < np.inf:
            return None
        capped = reached_caps(course, cap, t)
        course = course.settled(capped, cap[capped])
        stopped = np.flatnonzero(course.rising)[Proof(prices, q, spent, t).stops(course, t)]
        if stopped.size:
            stages.append(Stage(t, stopped, prices))
            course, last = course.settled(stopped, np.full(stopped.size, t)), t
    left = np.flatnonzero(course.rising)
    return (course.settled(left, cap[left]).start, tuple(stages)) if np.isfinite(cap[left]).all() else None


def _costs(problem: LevelProblem, prices: FloatArray) -> FloatArray:
    """Return what a unit of level costs on each column, (columns,)."""
    costs: FloatArray = np.asarray(problem.program.limits.transposed @ prices)[problem.columns] / problem.per_level[problem.columns]
    return costs


def _undecided(problem: LevelProblem, levels: FloatArray, stages: tuple[Stage, ...]) -> LevelProblem | None:
    """Return the problem of users with several pairs that are cheapest at the prices of all stages; None where somebody has none."""
    program, columns, users = problem.program, problem.columns, problem.users
    closed: BoolArray = np.zeros(columns.size, bool)
    for stage in stages:
        assert stage.prices is not None
        cost = _costs(problem, stage.prices)
        wasted = (cost - program.cheapest(cost, columns)[users]) * levels[users]
        closed |= wasted > SETTINGS.dear * float(stage.prices @ program.limits.bounds)
    left = np.bincount(users[~closed], minlength=levels.size)
    if (left[problem.members] == 0).any():
        return None
    only, several = ~closed & (left[users] == 1), ~closed & (left[users] > 1)
    decided, members = np.zeros(program.n_pairs), np.zeros(levels.size, bool)
    decided[columns[only]] = levels[users[only]] / problem.per_level[columns[only]]
    members[users[several]] = True
    taken = np.asarray(program.limits.matrix @ decided)[problem.rows] / program.limits.bounds[problem.rows]
    return replace(
        problem,
        columns=columns[several],
        users=users[several],
        largest=problem.largest[several],
        members=members,
        decided=decided,
        taken=taken,
    )


def _placed(problem: LevelProblem, levels: FloatArray, tasks: FloatArray, deadline: Deadline) -> tuple[FloatArray | None, int]:
    """Return tasks, (pairs,), that give everybody its level, None if there are none, and the pivots.

    The first basis is that of ``tasks``, (pairs,), and of the limits that they fill. Levels fill limits to rounding, and have to leave room
    for it.
    """
    limits, course = problem.program.limits, Course(problem.members, np.zeros(levels.size), np.where(problem.members, levels, 0.0))
    model = LevelModel.of(problem, course, 1.0, None, 0.0)
    highs = model.highs
    highs.set_column_bounds(problem.columns.size, 1 - SETTINGS.relaxed, 1 - SETTINGS.relaxed)
    used = np.asarray(limits.matrix @ tasks)[problem.rows] / limits.bounds[problem.rows]
    full = np.flatnonzero(used >= 1 - SETTINGS.full)
    highs.start_from(np.flatnonzero(tasks[problem.columns] > 0), np.concatenate([full, model.user_rows[problem.members]]), complete=False)
    highs.set_options(simplex_strategy=DUAL_SIMPLEX)
    outcome = highs.run(deadline.left)
    if outcome.status is not Status.OPTIMAL:
        return None, outcome.iterations
    point, error = point_of(model, problem, course, outcome)
    if error > SETTINGS.refine_above:
        point, _ = point_of(model, problem, course, highs.refine(outcome, deadline.left))
    return point.x, point.outcome.iterations
