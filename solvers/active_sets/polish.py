"""The polish of alpha-fair answers: from an approximate answer of any engine, with its prices, to the exact one nearby.

An approximate answer shows its active sets: which pairs are used, and which limits are full. With these sets fixed, the KKT conditions
are equations, which Newton's method solves to rounding (`fairopt.solvers.active_sets.sets`). In a trade-off, the worth of the total
is one more unknown (`fairopt.solvers.active_sets.tradeoff`). Users whom a limit on tasks stops have lower weights there
(`fairopt.solvers.active_sets.stopped`).

Polishing neither certifies nor chooses: whether the polished answer is better than the one it came from, the caller finds out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import solve_near
from fairopt.solvers.active_sets.settings import SETTINGS
from fairopt.solvers.active_sets.stopped import with_full_weights, with_lower_weights
from fairopt.solvers.active_sets.tradeoff import find_total_worth
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.threads import one_thread

__all__ = ["polish"]

_Solve: TypeAlias = Callable[[AlphaFairProblem, Point], Point | None]


def polish(program: Program, solution: Solution, solve: _Solve = solve_near) -> Solution | None:
    """Return the solution of the equations of a solution's active sets; None where the sets do not show, or are not the right ones.

    Parameters
    ----------
    program : Program
        With a goal `AlphaFair` or `Tradeoff`; of any other goal there is nothing to polish here, and None is returned.
    solution : Solution
        Near an optimum, with prices (in any unit of money) and something for every user who can have something. What it says of its
        engine (iterations, trace, seconds) is kept, and the steps of the polish are added to its iterations.
    solve : callable, optional
        Which sets count as those of the solution, and how their equations are solved.

    Examples
    --------
    >>> import fairopt as fo
    >>> program = fo.formulate(fo.Instance([[1.0]], [[1.0], [2.0]]), "proportional")
    >>> polished = polish(program, Solution(np.array([0.501, 0.249]), prices=np.array([2.01])))
    >>> polished.x, polished.prices
    (array([0.5 , 0.25]), array([2.]))
    """
    goal = program.goal
    if not isinstance(goal, AlphaFair | Tradeoff) or solution.prices is None:
        return None
    with np.errstate(all="ignore"):
        lowered = with_lower_weights(program, goal, solution)
        if lowered is None:
            return _polished(program, goal, solution, solve)
        lower, near = lowered
        polished = _polished(replace(program, goal=lower), lower, near, solve)
        return None if polished is None else with_full_weights(program, goal, lower, polished)


def _polished(program: Program, goal: AlphaFair | Tradeoff, solution: Solution, solve: _Solve) -> Solution | None:
    """Return the solution of the equations of a solution's active sets."""
    problem = AlphaFairProblem.of(program, goal)
    if not problem.n_users:
        return None
    near = problem.point(solution)
    near = Point(np.maximum(near.x, 0.0), np.maximum(near.p, 0.0))
    if not (problem.utility(near.x) > 0).all():
        return None
    small = problem.rows.B.shape[0] * problem.rows.B.shape[1] <= SETTINGS.small
    with one_thread() if small else nullcontext():
        exact = solve(problem, near) if isinstance(goal, AlphaFair) else find_total_worth(problem, goal, Deadline(None), solve, near)
    if exact is None:
        return None
    try:
        polished = problem.solution(exact)
    except Unsupported:  # somebody has less than floating point can hold
        return None
    return replace(solution, x=polished.x, prices=polished.prices, iterations=solution.iterations + exact.steps)
