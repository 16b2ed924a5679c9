"""The interior point for each kind of program.

Alpha-fair goals whose limits belong to servers use ``alpha_fair``; those with other rows, and trade-offs, a path in logarithms
(``logarithmic_path``), which is also tried where the first path finds no exact answer. Levels and totals use ``levels`` and ``total``, and
trees of queues ``tree``. Equilibria of servers that divide their time are solved as markets (``market``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from fairopt.errors import NoSolution
from fairopt.program import AlphaFair, Equalize, Leximin, Program, Solution, Total, Tradeoff, TreeFilling
from fairopt.solvers.active_sets.active_sets import solve_near
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.tradeoff import find_total_worth
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair import follow, solve_alpha_fair
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.logarithmic_path import follow as follow_logs
from fairopt.solvers.interior_point.regions import solve_in_regions
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.interior_point.tree import solve_filling
from fairopt.solvers.structure.arrays import Arrays
from fairopt.solvers.structure.scaling import obstacle

__all__ = [
    "FEW_PAIRS",
    "LOGARITHMS",
    "PAIRS_TO_POLISH",
    "Path",
    "paths_of_alpha_fair",
    "paths_of_market",
    "paths_of_regions",
    "structured_path",
]

# The path of `alpha_fair` ends at 1e-12: below this number of pairs, its answers are always polished on their active sets, which takes as
# long as a few steps.
PAIRS_TO_POLISH = 500
FEW_PAIRS = 50  # below, the second path is tried for less
LOGARITHMS = "path in logarithms"
_REGIONS, _AGAIN = "paths of regions", "paths of regions, again"


@dataclass(frozen=True, slots=True)
class Path:
    """A method and its name; an empty name stands for the engine's own."""

    name: str
    follow: Callable[[Program, float, Deadline, Solution | None], Solution | None]


@cache
def _blas() -> ThreadpoolController:
    """Find the libraries once; this takes longer than limiting their threads.

    The steps of a path are many small products, in which threads only wait for each other (benchmarks/results/choices.md).
    """
    return ThreadpoolController()


def structured_path(arrays: Arrays) -> Path:
    """Return the one path to levels, a tree or a total."""
    return Path("", lambda program, tolerance, deadline, _: _structured(program, tolerance, deadline, arrays))


def _structured(program: Program, tolerance: float, deadline: Deadline, arrays: Arrays) -> Solution | None:
    """Follow the path to levels or to a total."""
    goal = program.goal
    assert isinstance(goal, Leximin | Equalize | TreeFilling | Total)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):  # a path that overflows fails, and says so
        if isinstance(goal, Total):
            return solve_total(program, tolerance, deadline, arrays)
        if isinstance(goal, TreeFilling):
            return solve_filling(program, goal, tolerance, deadline, arrays)
        return solve_levels(program, goal, tolerance, deadline, arrays)


def paths_of_regions(rough: Solution, goal: Leximin) -> list[Path]:
    """Return two paths to levels, region by region.

    The first takes the regions from a rough answer. The second runs where the answer of the first is not proved, and takes the regions from
    that answer.
    """

    def follow(program: Program, begin: Solution | None, tolerance: float, deadline: Deadline) -> Solution | None:
        if begin is None:
            return None
        with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
            return solve_in_regions(program, goal, begin, tolerance, deadline)

    return [
        Path(_REGIONS, lambda program, tolerance, deadline, _: follow(program, rough, tolerance, deadline)),
        Path(_AGAIN, lambda program, tolerance, deadline, best: follow(program, best, tolerance, deadline)),
    ]


def paths_of_alpha_fair(program: Program, arrays: Arrays) -> list[Path]:
    """Return the paths for an alpha-fair goal or a trade-off, in order; in other arrays than NumPy's there is one at most."""
    paths = []
    if isinstance(program.goal, AlphaFair) and (arrays.are_numpy or not obstacle(program)):
        paths.append(Path("", lambda program, tolerance, deadline, _: _alpha_fair(program, tolerance, arrays, deadline)))
    import os

    if os.environ.get("ONLY") and paths:
        return paths
    if arrays.are_numpy or paths:
        paths.append(Path(LOGARITHMS if paths else "", _in_logarithms))
    return paths


def paths_of_market(market: Program, arrays: Arrays) -> list[Path]:
    """Return the paths for the market form of an equilibrium. Answers have no prices: those of the market are others."""

    def of_market(path: Path) -> Path:
        def follow(_: Program, tolerance: float, deadline: Deadline, __: Solution | None) -> Solution | None:
            found = path.follow(market, tolerance, deadline, None)
            if found is not None and market.n_pairs < PAIRS_TO_POLISH:
                found = polish(market, found) or found
            return None if found is None else replace(found, prices=None)

        return Path(path.name, follow)

    return [of_market(path) for path in paths_of_alpha_fair(market, arrays)]


def _alpha_fair(program: Program, tolerance: float, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``alpha_fair``; None if it does not converge."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
        return solve_alpha_fair(program, program.goal, tolerance, deadline, arrays)


def _in_logarithms(program: Program, _: float, deadline: Deadline, __: Solution | None) -> Solution:
    """Follow the path in logarithms; for a trade-off, once for each weight of the total that is tried."""
    goal = program.goal
    assert isinstance(goal, AlphaFair | Tradeoff)
    problem = AlphaFairProblem.of(program, goal)
    if not problem.n_users:
        return problem.solution(Point(np.empty(0), np.zeros(problem.n_rows)))
    # In thousands of small products, threads cost more time than they save.
    with _blas().limit(limits=1, user_api="blas"):
        if isinstance(goal, Tradeoff):
            return problem.solution(follow_tradeoff(problem, goal, deadline))
        return problem.solution(follow_logs(problem, deadline))


def follow_tradeoff(problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline) -> Point:
    """Return the optimum of a trade-off by the path in logarithms; after the first kappa by active sets, where these do not change.

    Raises
    ------
    NoSolution
        At the deadline, or where no kappa was found.
    """
    start = follow(problem, goal, deadline)
    if goal.efficiency == 0:
        return start
    found = find_total_worth(problem, goal, deadline, lambda at, near: solve_near(at, near) or follow(at, goal, deadline), start)
    if found is None:
        raise NoSolution("the weight of the total was not found; try another solver, or numbers that are closer together", {})
    return found
