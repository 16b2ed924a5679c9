"""The interior point for each kind of program.

Large alpha-fair goals use the steps of levels (``worths``); others use tables of users and servers (``alpha_fair.tables``) or a path in
logarithms (``alpha_fair.logarithmic_path``); trade-offs use the latter. Levels and totals use ``levels`` and ``total``, and trees of queues
``tree``. Equilibria of servers that divide their time are solved as markets (``alpha_fair.market``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from threadpoolctl import ThreadpoolController

from fairopt.program import AlphaFair, Equalize, Leximin, LimitKind, Program, Solution, Total, Tradeoff, TreeFilling
from fairopt.solvers.alpha_fair.logarithmic_path import follow
from fairopt.solvers.alpha_fair.polish import polish
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem, Point
from fairopt.solvers.alpha_fair.reduced_weights import reduced_weights, with_full_weights
from fairopt.solvers.alpha_fair.tables import fits, solve_alpha_fair
from fairopt.solvers.alpha_fair.tradeoff import follow_tradeoff
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.interior_point.tree import solve_filling
from fairopt.solvers.interior_point.worths import fits_worths, solve_worths
from fairopt.solvers.structure.arrays import Arrays

__all__ = [
    "EASIER",
    "FEW_PAIRS",
    "PAIRS_TO_POLISH",
    "TABLES",
    "WORTHS",
    "Path",
    "fits",
    "paths_of_alpha_fair",
    "paths_of_market",
    "structured_path",
]

# Small alpha-fair goals use tables first, if they fit. Tables end at 1e-12, the path in logarithms at 1e-15: below this number of pairs,
# answers are polished on their active sets, which takes as long as a few steps.
PAIRS_TO_POLISH = 500
FEW_PAIRS = 50  # below, a limit on tasks that binds at the price 0 decides the order of the paths
WORTHS, TABLES, _LOGARITHMS = "path of worths", "path on tables", "path in logarithms"
EASIER, _EASIEST = "path with reduced weights", "path with the least weights"


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


def paths_of_alpha_fair(program: Program, arrays: Arrays, tables: bool) -> list[Path]:
    """Return the paths for an alpha-fair goal or a trade-off, in order: of worths for many pairs, on tables if it `fits`, in logarithms,
    and with reduced weights of users who hold all their tasks.

    With few pairs and limits on tasks, logarithms come first: only they show a limit that binds at the price 0.
    """
    logarithms = Path(_LOGARITHMS if tables else "", _in_logarithms)
    paths = [Path(TABLES, lambda program, _, deadline, __: _on_tables(program, arrays, deadline)), logarithms] if tables else [logarithms]
    if program.n_pairs < FEW_PAIRS and arrays.are_numpy and (program.limits.kinds == LimitKind.TASKS).any():
        paths.reverse()
    if fits_worths(program) and (tables or arrays.are_numpy):
        paths.insert(0, Path(WORTHS, lambda program, tolerance, deadline, _: _of_worths(program, tolerance, arrays, deadline)))
    if isinstance(program.goal, AlphaFair):
        paths += [Path(EASIER, partial(_with_reduced_weights, least=False)), Path(_EASIEST, partial(_with_reduced_weights, least=True))]
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

    return [of_market(path) for path in paths_of_alpha_fair(market, arrays, fits(market)) if path.name not in (EASIER, _EASIEST)]


def _of_worths(program: Program, tolerance: float, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``worths``; None if it does not converge."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
        return solve_worths(program, program.goal, tolerance, deadline, arrays)


def _on_tables(program: Program, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``alpha_fair.tables``; None if it does not converge or overflows."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
        return solve_alpha_fair(program, program.goal, arrays, deadline)


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
        return problem.solution(follow(problem, deadline))


def _with_reduced_weights(program: Program, _: float, deadline: Deadline, best: Solution | None, *, least: bool) -> Solution | None:
    """Follow the path in logarithms again, with smaller weights of users who hold all their tasks; None if no weight changes."""
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    easier = None if best is None else reduced_weights(program, goal, best, least=least)
    if best is None or easier is None:
        return None
    problem = AlphaFairProblem.of(replace(program, goal=easier), easier)
    with _blas().limit(limits=1, user_api="blas"):
        second = with_full_weights(program, goal, easier, problem.solution(follow(problem, deadline)))
    return replace(second, iterations=best.iterations + second.iterations, programs_solved=2)
