"""An alpha-fair optimum by the active sets of one much like it: a few steps of Newton's method in place of a path.

Where one user of many leaves or changes its demands, all tasks and prices move, and mostly the same pairs are used and the same limits are
full. With these sets the KKT conditions are equations (`fairopt.solvers.active_sets.sets`), and the other answer is near their solution.
Its sets are those of its numbers: pairs with tasks, and limits with a price. If they are not the sets of this program, its solution has a
negative number, or exceeds a limit, or leaves out a pair that is worth more than it costs. Then there is no answer here. To correct the
sets would take longer than a path.

Prices of limits on tasks are not known. That of a user with all its tasks is what a task is worth to it beyond its cost on servers.

The answer is a solution like that of any method: its certificate is computed from its tasks and its prices. Nothing relies on the guess.
"""

from __future__ import annotations

import numpy as np

from fairopt.program import AlphaFair, LimitKind, Program, Solution
from fairopt.program.likeness import Likeness
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import ActiveSets, negligible_users, solve_on_sets
from fairopt.solvers.active_sets.settings import SETTINGS

__all__ = ["solve_on_known_sets"]


def solve_on_known_sets(program: Program, likeness: Likeness) -> Solution | None:
    """Return the alpha-fair optimum, if its active sets are those of the tasks and the prices that are known; else None.

    Somebody has left 12 cpu to two users with the weights 1 and 2, who had 3 and 6 of them, at a price of 1/3:

    >>> import fairopt as fo
    >>> program = fo.formulate(fo.Instance([[12]], [[1], [1]], weights=[1, 2]), "proportional")
    >>> found = solve_on_known_sets(program, Likeness(False, np.array([[1 / 3]]), np.array([3.0, 6.0])))
    >>> found.x.round(12), found.prices.round(12)
    (array([4., 8.]), array([0.25]))
    """
    goal = program.goal
    if not isinstance(goal, AlphaFair) or likeness.prices is None or likeness.tasks is None:
        return None
    with np.errstate(all="ignore"):
        near = _within_tasks(program, goal, likeness.tasks, likeness.prices[-1])
    return polish(program, near, _on_its_sets)


def _within_tasks(program: Program, goal: AlphaFair, tasks: np.ndarray, known: np.ndarray) -> Solution:
    """Return tasks of which no user has more than its limit on tasks, and prices, also of these limits."""
    limits, users = program.limits, program.pair_users
    rows = np.flatnonzero(limits.kinds == LimitKind.TASKS)
    owner, most = limits.keys[rows, 0], limits.bounds[rows]
    held, part = (limits.matrix @ tasks)[rows], np.ones(len(program.users))
    np.minimum.at(part, owner, np.where(held > most, most / held, 1.0))
    x = tasks * part[users]
    worth = program.utilities * np.exp(goal.log_worth(program.per_user(program.utilities * x)))[users]
    beyond = np.where(program.largest() > 0, worth - limits.transposed @ known, 0.0)
    most_beyond, prices = np.zeros(len(program.users)), known.copy()
    np.maximum.at(most_beyond, users, beyond)
    prices[rows] = np.where(held >= most * (1 - SETTINGS.full), most_beyond[owner], 0.0)
    return Solution(x, prices=prices)


def _on_its_sets(problem: AlphaFairProblem, near: Point) -> Point | None:
    """Return the solution of the equations if pairs with tasks are used and limits with a price are full; None if it has other sets."""
    money = problem.worth(problem.utility(near.x)) * problem.utility(near.x)
    p = near.p * (money.sum() / near.p.sum())
    used = near.x * problem.v > SETTINGS.nothing * problem.utility(near.x)[problem.user]
    sets = ActiveSets(used, p > SETTINGS.nothing * p.max(), negligible_users(problem, p))
    return solve_on_sets(problem, Point(near.x, p), sets, rounds=1)
