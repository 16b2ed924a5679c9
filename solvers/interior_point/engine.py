"""The interior points behind one engine, and which of them solves what.

Alpha-fair goals go by tables of users and servers (``structured_alpha``) or by a path in logarithms (``logarithmic_path``), trade-offs by
the latter, levels and totals by ``structured_levels`` and ``structured_total``, trees of queues by ``tree``, equilibria of servers that
divide their time as markets (``market``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from fairopt.errors import NoSolution, Unsupported
from fairopt.program import AlphaFair, Equalize, Equilibrium, Feature, Leximin, LimitKind, Program, Solution, Total, Tradeoff, TreeFilling
from fairopt.solvers.alpha_fair.logarithmic_path import follow
from fairopt.solvers.alpha_fair.market import as_market, is_large
from fairopt.solvers.alpha_fair.polish import polish
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem, Point
from fairopt.solvers.alpha_fair.reduced_weights import reduced_weights, with_full_weights
from fairopt.solvers.alpha_fair.tables import fits, solve_alpha_fair
from fairopt.solvers.alpha_fair.tradeoff import follow_tradeoff
from fairopt.solvers.backend import Backend, Deadline, Way
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.interior_point.tree import obstacle_of_tree, solve_filling
from fairopt.solvers.structure.arrays import Arrays, array_namespace, first_line, is_out_of_memory
from fairopt.solvers.structure.scaling import obstacle
from fairopt.wording import plural

__all__ = ["InteriorPoint"]

_GOOD = 1e-9  # good enough to stop looking
# Sizes, pairs times limits of servers, from which on the path for levels is faster than HiGHS: in general, and where users have at most
# _PAIRS_EACH servers, so that there are many levels. Then the sizes of totals. Measured in benchmarks/results/choices.md.
_SIZE_OF_LEVELS, _SIZE_OF_FEW_EACH, _PAIRS_EACH = 100_000, 300_000, 3
_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT = 20_000, 100
_PAIRS_OF_TREES = 5000  # likewise, for trees of queues
# Alpha-fair goals go by tables first where these fit. These end at 1e-12, the path in logarithms at 1e-15: answers of small programs are
# sharpened on their sets, which takes as long as a few steps.
_PAIRS_TO_POLISH = 500
# The goal is flat at its best point: a residual of 1e-12 may be 1e-9 of x. A few pairs are worth both paths until one is sharp.
_FEW_PAIRS, _SHARP = 50, 1e-13
_DIGIT = 0.1  # of the tolerance, for levels and totals that HiGHS would solve as fast
_ALWAYS = -1.0  # as a residual above which to polish
_TABLES, _LOGARITHMS, _EASIER = "path on tables", "path in logarithms", "path with reduced weights"


@dataclass(frozen=True, slots=True)
class _Path:
    """A method by name; no name is that of the engine."""

    name: str
    follow: Callable[[Program, float, Deadline, Solution | None], Solution | None]


class InteriorPoint(Backend):
    """Alpha-fair goals and trade-offs by paths of their own; levels, trees and totals by that of ``structured_steps``.

    Alpha-fair goals with few limits or few users go by ``structured_alpha`` first. That and the paths of levels and totals run on tables
    that may live on another device: ``solver="interior-point:torch:cuda"``, or ``":torch"``, ``":cupy"``; ``":numpy"`` is the default.

    An equilibrium of servers that divide their time is solved as a market.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    >>> fo.solve(instance, "drfh", solver="interior-point").tasks_per_user.round(6)
    array([10., 10.])
    """

    name = "interior-point"
    title = "Interior point: alpha-fair goals, trade-offs with the total; leximins, trees, totals and markets of many users and servers"
    takes_solver = True  # which arrays: "numpy", "torch", "torch:cuda", "cupy"
    features = frozenset(
        {
            Feature.ALPHA_FAIR,
            Feature.TRADEOFF,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.TREE,
            Feature.MARKET,
            Feature.SEVERAL_SERVERS,
        }
    )

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this a large leximin of users with several servers, a large tree, total or market? See the sizes above, and ``market``."""
        if program.is_market:
            return is_large(program)
        pairs = program.n_pairs
        if isinstance(program.goal, TreeFilling):
            return pairs >= _PAIRS_OF_TREES and not obstacle_of_tree(program, program.goal)
        if isinstance(program.goal, Leximin | Equalize):
            shared = int((program.limits.kinds != LimitKind.TASKS).sum())
            large = pairs * shared >= (_SIZE_OF_LEVELS if pairs > _PAIRS_EACH * len(program.users) else _SIZE_OF_FEW_EACH)
        else:
            large = isinstance(program.goal, Total) and pairs >= max(_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT * len(program.limits))
        return large and not obstacle(program)

    def ways(self, program: Program, tolerance: float) -> Sequence[Way]:
        """Return the paths that lead to an answer, the fastest first.

        Raises
        ------
        Unsupported
            Where the arrays asked for are of a device, and the only path is one for NumPy.
        """
        goal, arrays = program.goal, array_namespace(self.within)
        if isinstance(goal, Equilibrium):
            return tuple(self._way(path, unless=_DIGIT * tolerance) for path in _paths_of_market(as_market(program), arrays))
        tables = isinstance(goal, AlphaFair) and fits(program)
        if self.within and not tables and not isinstance(goal, Leximin | Equalize | TreeFilling | Total):
            raise Unsupported(
                f'"{self.name}:{self.within}" is for levels, totals, and alpha-fair goals of few limits of servers or few users, and with '
                f'limits on tasks only where these are worth the same everywhere; "{program.name}" is another program here: '
                f'leave ":{self.within}" out'
            )
        if isinstance(goal, Leximin | Equalize | TreeFilling | Total):
            # Of large programs rounding alone leaves more than a tenth of the tolerance: there no polish does better.
            path = _Path("", lambda program, tolerance, deadline, _: _structured(program, tolerance, deadline, arrays))
            return (self._way(path, polish_above=tolerance if self.wins(program) else None),)
        polish_above = _ALWAYS if program.n_pairs < _PAIRS_TO_POLISH else tolerance
        enough = tolerance if program.n_pairs >= _PAIRS_TO_POLISH else _SHARP if program.n_pairs < _FEW_PAIRS else _GOOD
        return tuple(
            self._way(
                path, unless=_GOOD if path.name == _EASIER else enough, polish_above=polish_above if path.name == _TABLES else tolerance
            )
            for path in _paths_of_alpha_fair(program, arrays, tables)
        )

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Return the end of the first path that has one.

        Raises
        ------
        NoSolution
            At the deadline, where memory runs out, or where every path got lost.
        """
        for way in self.ways(program, tolerance):
            found = way.solve(program, tolerance, deadline, None)
            if found is not None:
                return found
        raise NoSolution(f'"{self.name}" found no way to the answer of "{program.name}"; use another solver', {})

    def _way(self, path: _Path, unless: float | None = None, polish_above: float | None = None) -> Way:
        """Return a path as a way, with the errors of arrays that do not fit into memory as errors of ours."""

        def solve(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
            try:
                return path.follow(program, tolerance, deadline, best)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                said = first_line(error)
            # Raised out here: the other error keeps alive all arrays of the calls that it came through.
            name = ":".join(filter(None, (self.name, self.within)))
            away = self.within not in (None, "numpy")
            elsewhere = f'try solver="{self.name}", which has all the memory that NumPy can get, or ' if away else ""
            raise NoSolution(
                f'"{name}" ran out of memory on {plural(program.n_pairs, "pair")} of users and servers ({said}); '
                f"{elsewhere}ask about fewer pairs: make one user, or one server, of several that are nearly alike"
            )

        return Way(path.name or self.name, solve, unless, polish_above)


@cache
def _blas() -> ThreadpoolController:
    """Look for the libraries once, which takes longer than limiting their threads.

    The steps of a path are many small products, for which threads would only wait for each other (benchmarks/results/choices.md).
    """
    return ThreadpoolController()


def _structured(program: Program, tolerance: float, deadline: Deadline, arrays: Arrays) -> Solution | None:
    """Follow the path to levels or to a total."""
    goal = program.goal
    assert isinstance(goal, Leximin | Equalize | TreeFilling | Total)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):  # a path that overflows is lost, and says so
        if isinstance(goal, Total):
            return solve_total(program, tolerance, deadline, arrays)
        if isinstance(goal, TreeFilling):
            return solve_filling(program, goal, tolerance, deadline, arrays)
        return solve_levels(program, goal, tolerance, deadline, arrays)


def _paths_of_alpha_fair(program: Program, arrays: Arrays, tables: bool) -> list[_Path]:
    """Return the paths for an alpha-fair goal or a trade-off: that on tables, the faster one, where it `fits`; that in logarithms; and that
    with reduced weights of users who hold all their tasks.

    Few pairs with limits on tasks begin in logarithms: where such a limit just binds, at no price, only logarithms show it.
    """
    logarithms = _Path(_LOGARITHMS if tables else "", _in_logarithms)
    paths = [_Path(_TABLES, lambda program, _, deadline, __: _on_tables(program, arrays, deadline)), logarithms] if tables else [logarithms]
    if program.n_pairs < _FEW_PAIRS and arrays.are_numpy and (program.limits.kinds == LimitKind.TASKS).any():
        paths.reverse()
    return [*paths, _Path(_EASIER, _with_reduced_weights)] if isinstance(program.goal, AlphaFair) else paths


def _paths_of_market(market: Program, arrays: Arrays) -> list[_Path]:
    """Return the paths for the market that an equilibrium is, without its prices, which are not those of the equilibrium."""

    def of_market(path: _Path) -> _Path:
        def follow(_: Program, tolerance: float, deadline: Deadline, __: Solution | None) -> Solution | None:
            found = path.follow(market, tolerance, deadline, None)
            if found is not None and market.n_pairs < _PAIRS_TO_POLISH:
                found = polish(market, found) or found
            return None if found is None else replace(found, prices=None)

        return _Path(path.name, follow)

    return [of_market(path) for path in _paths_of_alpha_fair(market, arrays, fits(market)) if path.name != _EASIER]


def _on_tables(program: Program, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``alpha_fair.tables``; None where it got lost: a point that overflows is, and says so."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
        return solve_alpha_fair(program, program.goal, arrays, deadline)


def _in_logarithms(program: Program, _: float, deadline: Deadline, __: Solution | None) -> Solution:
    """Follow the path in logarithms, of trade-offs for several weights of the total."""
    goal = program.goal
    assert isinstance(goal, AlphaFair | Tradeoff)
    problem = AlphaFairProblem.of(program, goal)
    if not problem.n_users:
        return problem.solution(Point(np.empty(0), np.zeros(problem.n_rows)))
    # Thousands of small products, for which threads cost more than they give.
    with _blas().limit(limits=1, user_api="blas"):
        if isinstance(goal, Tradeoff):
            return problem.solution(follow_tradeoff(problem, goal, deadline))
        return problem.solution(follow(problem, deadline))


def _with_reduced_weights(program: Program, _: float, deadline: Deadline, best: Solution | None) -> Solution | None:
    """Follow the path in logarithms once more, with smaller weights of users who hold all their tasks; None where there are none."""
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    easier = None if best is None else reduced_weights(program, goal, best)
    if best is None or easier is None:
        return None
    problem = AlphaFairProblem.of(replace(program, goal=easier), easier)
    with _blas().limit(limits=1, user_api="blas"):
        second = with_full_weights(program, goal, easier, problem.solution(follow(problem, deadline)))
    return replace(second, iterations=best.iterations + second.iterations, programs_solved=2)
