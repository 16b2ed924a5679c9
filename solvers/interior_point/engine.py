"""The interior points behind one engine, and which of them solves what.

Alpha-fair goals go by tables of users and servers (``structured_alpha``) or by a path in logarithms (``logarithmic_path``), trade-offs by
the latter, levels and totals by ``structured_levels`` and ``structured_total``, equilibria of servers that divide their time as markets
(``market``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from fairopt.certificate import certify
from fairopt.errors import NoSolution, Unsupported
from fairopt.program import AlphaFair, Equalize, Equilibrium, Feature, Leximin, LimitKind, Program, Solution, Total, Tradeoff
from fairopt.solvers.alpha_fair.active_sets import from_answer
from fairopt.solvers.alpha_fair.logarithmic_path import follow
from fairopt.solvers.alpha_fair.market import as_market, is_large
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem
from fairopt.solvers.alpha_fair.reduced_weights import reduced_weights, with_full_weights
from fairopt.solvers.alpha_fair.tables import fits, solve_alpha_fair
from fairopt.solvers.alpha_fair.tradeoff import follow_tradeoff
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.equilibrium.engine import BestResponse
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.structure.arrays import Arrays, array_namespace, first_line, is_out_of_memory
from fairopt.solvers.structure.scaling import obstacle
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.wording import plural

__all__ = ["InteriorPoint"]

log = logging.getLogger(__name__)

_GOOD = 1e-9  # good enough to stop looking
# From what size on, pairs times limits, the structured path is the faster one. Seconds of a processor, this and HiGHS, demands positive
# and every pair eligible, users x servers x resources. One level: 100 x 20 x 2 0.008, 0.010; 200 x 30 x 3 0.016, 0.053; 1,000 x 10 x 2
# 0.026, 0.060; 3,000 x 5 x 2 0.029, 0.21; 50 x 100 x 2 0.011, 0.049; 1,000 x 100 x 3, three in a hundred pairs 0.15, 0.32. Users whose
# tasks end: 300 x 20 x 2 0.03, 0.06; 3,000 x 10 x 3 0.3 to 0.5, 1.2; 1,000 x 100 x 3 0.5, 8.8.
# Users with one to three servers each have many levels: 1,000 x 20 x 2 (12 of them) 0.14, 0.09; 1,000 x 50 x 2 (47) 0.57, 0.58;
# 2,000 x 50 x 2 (34) 0.64, 0.69; 3,000 x 50 x 3 (82) 2.4, lost after 13; 5,000 x 100 x 3 (172) 8, lost. Where tasks end 1,000 x 50 x 2
# 0.92, 0.76.
# Totals: 1,000 x 10 x 2 0.020, 0.023; 3,000 x 10 x 2 0.044, 0.10; 1,000 x 30 x 3 0.053, 0.089; 300 x 100 x 3 0.050, 0.077.
_SIZE_OF_LEVELS, _SIZE_OF_FEW_EACH, _PAIRS_EACH = 100_000, 300_000, 3
_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT = 20_000, 100
# Alpha-fair goals go by tables first where these fit. These end at 1e-12, the path in logarithms at 1e-15: answers of small programs are
# sharpened on their sets, which takes as long as a few steps.
_PAIRS_TO_SHARPEN = 500
# The goal is flat at its best point: a residual of 1e-12 may be 1e-9 of x. A few pairs are worth both paths until one is sharp.
_FEW_PAIRS, _SHARP = 50, 1e-13
_DIGIT = 0.1  # of the tolerance, for levels and totals that HiGHS would solve as fast


class InteriorPoint(Backend):
    """Alpha-fair goals and trade-offs by paths of their own; levels and totals by that of ``structured_steps``.

    Alpha-fair goals with few limits or few users go by ``structured_alpha`` first. That and the paths of levels and totals run on tables
    that may live on another device: ``solver="interior-point:torch:cuda"``, or ``":torch"``, ``":cupy"``; ``":numpy"`` is the default.

    A structured path that gets lost, or whose answer fails the certificate, is finished by HiGHS; ``Solution.finished_by`` says so. An
    equilibrium of servers that divide their time is solved as a market, and if that fails by best response.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    >>> fo.solve(instance, "drfh", solver="interior-point").tasks_per_user.round(6)
    array([10., 10.])
    """

    name = "interior-point"
    title = "Interior point: alpha-fair goals, trade-offs with the total; leximins, totals and markets of many users and servers"
    takes_solver = True  # which arrays: "numpy", "torch", "torch:cuda", "cupy"
    features = frozenset(
        {
            Feature.ALPHA_FAIR,
            Feature.TRADEOFF,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.MARKET,
            Feature.SEVERAL_SERVERS,
        }
    )

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this a large leximin of users with several servers, a large total or market? See ``_SIZE_OF_LEVELS``, and ``market``."""
        if program.is_market:
            return is_large(program)
        pairs = program.n_pairs
        if isinstance(program.goal, Leximin | Equalize):
            shared = int((program.limits.kinds != LimitKind.TASKS).sum())
            large = pairs * shared >= (_SIZE_OF_LEVELS if pairs > _PAIRS_EACH * len(program.users) else _SIZE_OF_FEW_EACH)
        else:
            large = isinstance(program.goal, Total) and pairs >= max(_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT * len(program.limits))
        return large and not obstacle(program)

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Follow the path from half an even slice to the end.

        Raises
        ------
        NoSolution
            At the deadline, or where memory runs out.
        """
        try:
            return self._solve(program, tolerance, deadline)
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

    def _solve(self, program: Program, tolerance: float, deadline: Deadline) -> Solution:
        goal = program.goal
        if isinstance(goal, Equilibrium):
            return self._solve_market(program, tolerance, deadline)
        arrays = array_namespace(self.within)
        tables = isinstance(goal, AlphaFair) and fits(program)
        if self.within and not tables and not isinstance(goal, Leximin | Equalize | Total):
            raise Unsupported(
                f'"{self.name}:{self.within}" is for levels, totals, and alpha-fair goals of few limits of servers or few users, and with '
                f'limits on tasks only where these are worth the same everywhere; "{program.name}" is another program here: '
                f'leave ":{self.within}" out'
            )
        if isinstance(goal, AlphaFair | Tradeoff):
            if isinstance(goal, AlphaFair) and tables:
                return _by_two_paths(program, goal, arrays, deadline)
            return _solve_alpha_fair(program, goal, deadline)
        assert isinstance(goal, Leximin | Equalize | Total)
        with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):  # a path that overflows is lost, and says so
            if isinstance(goal, Total):
                solution = solve_total(program, tolerance, deadline, arrays)
            else:
                solution = solve_levels(program, goal, tolerance, deadline, arrays)
        # Of 30,000 users each counts for so little that rounding alone is a residual of 2e-9; HiGHS would need minutes to do no better.
        enough = tolerance if self.wins(program) else _DIGIT * tolerance
        error = np.inf if solution is None else certify(program, solution).worst
        if solution is not None and error <= enough:
            return solution
        log.info("the structured path got lost, with an error of %.1e; HiGHS solves it from the beginning", error)
        HiGHS.require()
        try:
            second = replace(HiGHS().solve(program, tolerance=tolerance, deadline=deadline), finished_by=HiGHS.name)
        except NoSolution:
            if solution is None or error > tolerance:
                raise
            return solution
        return second if solution is None or not error < certify(program, second).worst else solution

    def _solve_market(self, program: Program, tolerance: float, deadline: Deadline) -> Solution:
        """Return the tasks of the market, without its prices, which are not those of the equilibrium."""
        market = self.solve(as_market(program), tolerance=tolerance, deadline=deadline)
        solution = replace(market, prices=None)
        if certify(program, solution).worst <= _DIGIT * tolerance:
            return solution
        log.info("the market is not exact enough for its equilibrium; best response solves it from the beginning")
        BestResponse.require()
        return replace(BestResponse().solve(program, tolerance=tolerance, deadline=deadline), finished_by=BestResponse.name)


@cache
def _blas() -> ThreadpoolController:
    """Look for the libraries once: that takes 2 to 5 ms, limiting their threads 0.01 ms.

    Steps of a structured path are many small products, a Schur complement, its factor. Two threads wait for each other: on two cores
    that have other work as well, 300 rows of 3,000 limits take 11 ms by one thread, 220 ms by two; 2,000 rows 0.32 s and 0.47 s.
    """
    return ThreadpoolController()


def _by_two_paths(program: Program, goal: AlphaFair, arrays: Arrays, deadline: Deadline) -> Solution:
    """Follow the path on tables, the faster one, and where it gets lost or leaves an error that in logarithms; the better answer counts.

    Few pairs with limits on tasks go the other way round: where such a limit just binds, at no price, only logarithms show it.
    """
    few = program.n_pairs < _FEW_PAIRS
    ways: list[tuple[str, Callable[[], Solution | None]]] = [
        ("path on tables", lambda: _on_tables(program, goal, arrays, deadline)),
        ("path in logarithms", lambda: _solve_alpha_fair(program, goal, deadline)),
    ]
    if few and arrays.are_numpy and (program.limits.kinds == LimitKind.TASKS).any():
        ways.reverse()
    best, least = None, np.inf
    for name, way in ways:
        found = way()
        if found is None:
            continue
        if program.n_pairs >= _PAIRS_TO_SHARPEN:  # large: it is certified by the caller
            return found if name == ways[0][0] else replace(found, finished_by=name)
        error = certify(program, found).worst
        if best is None or error < least:
            best, least = found if name == ways[0][0] else replace(found, finished_by=name), error
        if error <= (_SHARP if few else _GOOD):
            break
        log.info("the %s leaves an error of %.1e", name, error)
    assert best is not None  # the path in logarithms ends somewhere
    return best


def _sharpened(program: Program, goal: AlphaFair, found: Solution) -> Solution:
    """Return an answer with the equations of its sets solved to the last digit, where that works."""
    assert found.prices is not None
    problem = AlphaFairProblem(program, goal)
    if not problem.member.size:
        return found
    with np.errstate(all="ignore"):
        x, p = found.x[problem.column] / problem.scale, found.prices[problem.row] * program.limits.bounds[problem.row]
        exact = from_answer(problem, x, p)
    if exact is None:
        return found
    sharp = problem.solution(*exact[:2], found.iterations + exact[2])
    return sharp if certify(program, sharp).worst <= max(certify(program, found).worst, _SHARP) else found


def _on_tables(program: Program, goal: AlphaFair, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``structured_alpha``; None where it got lost: a point that overflows is, and says so."""
    with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
        found = solve_alpha_fair(program, goal, arrays, deadline)
    return found if found is None or program.n_pairs >= _PAIRS_TO_SHARPEN else _sharpened(program, goal, found)


def _solve_alpha_fair(program: Program, goal: AlphaFair | Tradeoff, deadline: Deadline) -> Solution:
    problem = AlphaFairProblem(program, goal)
    if problem.member.size == 0:
        return problem.solution(np.empty(0), np.zeros(problem.n_rows), 0)
    # Thousands of small products, for which threads cost more than they give: 60 users on 10 servers 3.8 s, by one thread 0.4 s;
    # 200 on 30 26 s and 3.3 s, both on two busy cores.
    with _blas().limit(limits=1, user_api="blas"):
        if isinstance(goal, Tradeoff):
            return problem.solution(*follow_tradeoff(problem, goal, deadline))
        found = problem.solution(*follow(problem, deadline))
        error = certify(program, found).worst
        easier = reduced_weights(program, goal, found) if error > _GOOD else None
        if easier is None:
            return found
        log.info("users with all their tasks leave an error of %.1e; with smaller weights they have them, too", error)
        again = AlphaFairProblem(replace(program, goal=easier), easier)
        second = with_full_weights(program, goal, easier, again.solution(*follow(again, deadline)))
        better = second if certify(program, second).worst < error else found
        return replace(better, iterations=found.iterations + second.iterations, programs_solved=2)
