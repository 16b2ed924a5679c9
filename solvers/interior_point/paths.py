"""The interior point for each kind of program.

Alpha-fair goals and trade-offs use ``alpha_fair``, and a path in logarithms (``logarithmic_path``) where that one finds no exact answer,
because weights or capacities span many orders of magnitude. Where neither is exact, one of them is followed again with lower weights of
users whom a limit on tasks stops (`fairopt.solvers.active_sets.stopped`).

Levels and totals use ``levels`` and ``total``, trees of queues ``tree``. Equilibria of servers that divide their time are solved as markets
(``market``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairopt.errors import NoSolution
from fairopt.program import AlphaFair, Equalize, Leximin, Program, Solution, Total, Tradeoff, TreeFilling
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import solve_near
from fairopt.solvers.active_sets.stopped import with_full_weights, with_lower_weights
from fairopt.solvers.active_sets.tradeoff import find_total_worth
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair import follow_with_total, solve_alpha_fair, solve_tradeoff
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.logarithmic_path import follow as follow_in_logarithms
from fairopt.solvers.interior_point.settings import ENGINE
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.interior_point.tree import solve_filling
from fairopt.solvers.structure.arrays import Arrays
from fairopt.solvers.structure.threads import one_thread
from fairopt.wording import SMALLER_RATIOS

__all__ = [
    "Path",
    "one_level_path",
    "paths_of_alpha_fair",
    "paths_of_market",
    "structured_path",
]

_LOGARITHMS = "path in logarithms"
_LOWER_WEIGHTS = "path with lower weights"
_WORTHS_OF_TOTAL = "path for each worth of the total"


@dataclass(frozen=True, slots=True)
class Path:
    """A method and its name; an empty name stands for the engine's own.

    A last resort is tried if others miss a tenth of the tolerance; in programs of few pairs, if they are not exact.
    """

    name: str
    follow: Callable[[Program, float, Deadline, Solution | None], Solution | None]
    last_resort: bool = False


def structured_path(arrays: Arrays) -> Path:
    """Return the one path to levels, a tree or a total."""
    return Path("", lambda program, tolerance, deadline, _: _structured(program, tolerance, deadline, arrays))


def one_level_path(arrays: Arrays) -> Path:
    """Return the path to a leximin that may have one level: it takes all users to stop at the first one.

    Where weights lie far apart, its prices are too rough to prove who stops there. They prove it once the polish has made them exact, and
    the certificate refuses the answer if somebody does not stop.
    """

    def follow(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution | None:
        with np.errstate(all="ignore"), one_thread():
            return solve_levels(program, Equalize(program.goal.weights), tolerance, deadline, arrays)

    return Path("path to one level", follow)


def _structured(program: Program, tolerance: float, deadline: Deadline, arrays: Arrays) -> Solution | None:
    """Follow the path to levels or to a total."""
    goal = program.goal
    assert isinstance(goal, Leximin | Equalize | TreeFilling | Total)
    with np.errstate(all="ignore"), one_thread():  # a path that overflows fails, and says so
        if isinstance(goal, Total):
            return solve_total(program, tolerance, deadline, arrays)
        if isinstance(goal, TreeFilling):
            return solve_filling(program, goal, tolerance, deadline, arrays)
        return solve_levels(program, goal, tolerance, deadline, arrays)


def paths_of_alpha_fair(program: Program, arrays: Arrays) -> list[Path]:
    """Return the paths to an alpha-fair goal or a trade-off, in order.

    To a trade-off the first one finds the worth of the total on its way; where it does not converge, there is a path for each such worth.

    To an alpha-fair goal the second one is for what the first does not reach: weights and capacities over many orders of magnitude. The
    third one is for users who are stopped so early that rounding of their marginal worth hides what they pay servers.
    """
    first = Path("", lambda program, tolerance, deadline, _: _alpha_fair(program, tolerance, arrays, deadline))
    if not isinstance(program.goal, AlphaFair):
        return [first, Path(_WORTHS_OF_TOTAL, lambda program, _, deadline, __: _with_worths_of_total(program, deadline))]
    if not program.down_closed:  # least tasks of users: the others have no such demand
        return [first]
    second = Path(_LOGARITHMS, lambda program, _, deadline, __: _in_logarithms(program, deadline))

    def follow_lower(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
        return None if best is None else _with_lower_weights(program, tolerance, arrays, deadline, best)

    return [first, second, Path(_LOWER_WEIGHTS, follow_lower, last_resort=True)]


def paths_of_market(market: Program, arrays: Arrays) -> list[Path]:
    """Return the paths for the market form of an equilibrium. Answers have no prices: those of the market are others."""

    def of_market(path: Path) -> Path:
        def follow(_: Program, tolerance: float, deadline: Deadline, __: Solution | None) -> Solution | None:
            found = path.follow(market, tolerance, deadline, None)
            if found is not None and market.n_pairs < ENGINE.pairs_to_polish:
                found = polish(market, found) or found
            return None if found is None else replace(found, prices=None)

        return Path(path.name, follow)

    return [of_market(path) for path in paths_of_alpha_fair(market, arrays) if not path.last_resort]


def _alpha_fair(program: Program, tolerance: float, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``alpha_fair``; None if it does not converge."""
    goal = program.goal
    assert isinstance(goal, AlphaFair | Tradeoff)
    with np.errstate(all="ignore"), one_thread():
        if isinstance(goal, AlphaFair):
            return solve_alpha_fair(program, goal, tolerance, deadline, arrays)
        return solve_tradeoff(program, goal, tolerance, deadline)


def _with_worths_of_total(program: Program, deadline: Deadline) -> Solution | None:
    """Follow the path of a trade-off once for each worth of the total that is tried."""
    goal = program.goal
    assert isinstance(goal, Tradeoff)
    with np.errstate(all="ignore"), one_thread():
        problem = AlphaFairProblem.of(program, goal)
        if not problem.n_users:
            return problem.solution(Point(np.empty(0), np.zeros(problem.n_rows)))
        return problem.solution(follow_tradeoff(problem, goal, deadline))


def _in_logarithms(program: Program, deadline: Deadline) -> Solution:
    """Follow the path in logarithms."""
    assert isinstance(program.goal, AlphaFair)
    problem = AlphaFairProblem.of(program, program.goal)
    with one_thread():
        return problem.solution(follow_in_logarithms(problem, deadline))


def _with_lower_weights(program: Program, tolerance: float, arrays: Arrays, deadline: Deadline, near: Solution) -> Solution | None:
    """Follow a path with lower weights of the users whom a limit on tasks stops in an approximate answer; None if there are none.

    With few pairs, in logarithms: a residual of 1e-12 may mean 1e-8 of x.
    """
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    with np.errstate(all="ignore"):
        lowered = with_lower_weights(program, goal, near)
    if lowered is None:
        return None
    lower, part = lowered[0], replace(program, goal=lowered[0])
    few = program.n_pairs < ENGINE.few_pairs
    found = _in_logarithms(part, deadline) if few else _alpha_fair(part, tolerance, arrays, deadline)
    if found is None:
        return None
    with np.errstate(all="ignore"):
        return with_full_weights(program, goal, lower, found)


def follow_tradeoff(problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline) -> Point:
    """Return the optimum of a trade-off, one path for each kappa; after the first kappa by active sets, where these do not change.

    Raises
    ------
    NoSolution
        At the deadline, or where no kappa was found.
    """

    def follow(at: AlphaFairProblem) -> Point:
        near = follow_with_total(at, goal, deadline)
        return (None if near is None else solve_near(at, near)) or follow_in_logarithms(at, deadline)

    start = follow_with_total(problem, goal, deadline) or follow_in_logarithms(problem, deadline)
    if goal.efficiency == 0:
        return solve_near(problem, start) or follow_in_logarithms(problem, deadline)
    found = find_total_worth(problem, goal, deadline, lambda at, near: solve_near(at, near) or follow(at), start)
    if found is None:
        raise NoSolution(f"the weight of the total was not found; try another solver, or {SMALLER_RATIOS}", {})
    return found
