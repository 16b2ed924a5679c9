"""HiGHS: the leximin as a sequence of warm-started linear programs on one model, the equal level and the total as one, and all of
them over whole tasks.

Leximins are solved by ``levels``; where many users with limits of their own share few limits, first by ``sifting``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution, Unsupported
from fairopt.program import Equalize, Feature, FinishTimes, Leximin, LimitKind, Nested, Program, Solution, Total, TreeFilling
from fairopt.solvers.backend import Backend, Deadline, Method
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["HiGHS"]

_CP_SAT = "cp-sat"  # of OR-Tools
_Try: TypeAlias = Callable[[Program, float, Deadline, Solution | None], Solution | None]


class HiGHS(Backend):
    """HiGHS through highspy: simplex, interior point, branch and cut."""

    name = "highs"
    title = "HiGHS: warm-started LPs, MILP stages for whole tasks"
    features = frozenset(
        {
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.FINISH_TIMES,
            Feature.TOTAL,
            Feature.TREE,
            Feature.NESTED,
            Feature.INTEGRAL,
            Feature.WHOLE_BY_STOP_TIMES,
            Feature.WHOLE_ALPHA_FAIR,
            Feature.SEVERAL_SERVERS,
            Feature.RULES,
        }
    )
    package = "highspy"
    requirement = "pip install highspy"
    takes_options = True
    takes_solver = True  # of whole tasks: "cp-sat"

    def __init__(self, within: str | None = None, options: Mapping[str, object] | None = None) -> None:
        super().__init__(within, options)
        if within and self.solver_inside(within) is None:
            raise Unsupported(f'"highs" has no solver "{within}" inside; it has "highs:cp-sat", for whole tasks')

    @classmethod
    def solver_inside(cls, name: str) -> str | None:
        """Return "cp-sat" for every spelling of CP-SAT."""
        return _CP_SAT if name.lower().replace("_", "").replace("-", "") == "cpsat" else None

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the one method; of a leximin that sifting suits two, sifted LPs and, where these fail, the LPs of all users.

        Of a large leximin, too: programs that become smaller from level to level, and where that fails the LPs of all pairs. And of one
        with limits on parallelism: LPs without users whom their own limits decide, and where that fails the LPs of all users.
        """
        if self.within:
            return super().methods(program, tolerance)
        methods = self._methods(program, tolerance)
        return [replace(method, solve=self._with_options(method.solve)) for method in methods] if self.options else methods

    def _with_options(self, solve: _Try) -> _Try:
        """Return a method that solves with the options of the user's."""

        def solved(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
            from fairopt.solvers.highs_options import given_options

            with given_options(self.options):
                return solve(program, tolerance, deadline, best)

        return solved

    def _methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        methods = self._without_known_prices(program, tolerance)
        return (Method("known prices", _by_known_prices), *methods) if _has_known_prices(program) else methods

    def _without_known_prices(self, program: Program, tolerance: float) -> Sequence[Method]:
        everybody = super().methods(program, tolerance)
        if program.goal.feature is Feature.NESTED and not program.integral:
            return (*everybody, Method("LPs in small units", _nested_in_small_units, skip_below=tolerance))
        if program.integral or not program.down_closed:
            return everybody
        if _suits_sifting(program):
            return (
                Method("sifted LPs", _sifted, polish_above=SETTINGS.sifted_digits * tolerance),
                replace(everybody[0], skip_below=tolerance),
            )
        if program.goal.feature is Feature.LEXIMIN and (program.limits.kinds == LimitKind.PARALLELISM).any():
            return (
                Method("LPs of undecided users", _undecided, polish_above=tolerance),
                Method("LPs of all users", _levels_if_found, skip_below=tolerance),
            )
        if _narrows(program):
            return (
                Method(self.name, _narrowed, rough_from=SETTINGS.rough_levels),
                replace(everybody[0], name="LPs of all pairs", skip_below=tolerance),
            )
        return everybody

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Solve any program of these features by the LPs of all users, or by branch and cut, which may be that of another solver."""
        if self.within:
            return self._whole_by_cp_sat(program, deadline)
        if not program.down_closed and not program.integral and program.goal.feature is not Feature.NESTED:
            from fairopt.solvers.via_highs.ruled import solve_ruled

            return solve_ruled(program, deadline, tolerance)
        return (_WHOLE if program.integral else _DIVISIBLE)[program.goal.feature](program, program.goal, tolerance, deadline)

    def _whole_by_cp_sat(self, program: Program, deadline: Deadline) -> Solution:
        from fairopt.solvers.via_highs.cp_sat import CpSat, checked
        from fairopt.solvers.via_highs.whole import solve_whole_program

        if not program.integral:
            raise Unsupported(f'"highs:{_CP_SAT}" finds whole tasks alone, and "{program.name}" divides tasks; add integral, or use highs')
        checked(self.options)
        return solve_whole_program(program, deadline, partial(CpSat, self.options))


def _whole(program: Program, _: Leximin | Total | TreeFilling, __: float, deadline: Deadline) -> Solution:
    from fairopt.solvers.via_highs.rows import by_highs
    from fairopt.solvers.via_highs.whole import solve_whole_program

    return solve_whole_program(program, deadline, partial(by_highs, deadline=deadline))


def _nested(program: Program, goal: Nested, _: float, deadline: Deadline) -> Solution:
    from fairopt.solvers.via_highs.nested import solve_nested

    return solve_nested(program, goal, deadline)


def _filling(program: Program, goal: TreeFilling, tolerance: float, deadline: Deadline) -> Solution:
    from fairopt.solvers.via_highs.tree import solve_filling

    return solve_filling(program, goal, tolerance, deadline)


def _levels(program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline) -> Solution:
    from fairopt.solvers.via_highs.levels import solve_levels

    return solve_levels(program, goal, tolerance, deadline)


def _finish_times(program: Program, goal: FinishTimes, tolerance: float, deadline: Deadline) -> Solution:
    from fairopt.solvers.via_highs.finish_times import solve_finish_times

    return solve_finish_times(program, goal, tolerance, deadline)


def _has_known_prices(program: Program) -> bool:
    """Are there prices of a leximin much like this one, and no limits but those of servers and of the tasks of users?"""
    likeness = program.likeness
    if likeness is None or program.goal.feature is not Feature.LEXIMIN or program.integral:
        return False
    return likeness.has_prices_of(program.limits)


def _by_known_prices(program: Program, _: float, deadline: Deadline, __: Solution | None) -> Solution | None:
    from fairopt.solvers.via_highs.known_prices import solve_by_known_prices

    assert program.likeness is not None
    return solve_by_known_prices(program, program.likeness, deadline)


def _narrows(program: Program) -> bool:
    """Is this a leximin with so many pairs that its programs should become smaller from level to level?"""
    few_caps = not (program.limits.kinds == LimitKind.PARALLELISM).any()
    return program.goal.feature is Feature.LEXIMIN and program.n_pairs >= SETTINGS.narrowed_columns and few_caps


def _narrowed(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution:
    from fairopt.solvers.via_highs.levels import solve_levels

    return solve_levels(program, program.goal_as(Leximin), tolerance, deadline, narrows=True)


def _levels_if_found(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
    """Return the leximin; None where HiGHS does not solve one of its LPs, and there is an answer of another method."""
    try:
        return _levels(program, program.goal_as(Leximin), tolerance, deadline)
    except NoSolution:
        if deadline.left == 0.0 or best is None:
            raise
        return None


def _undecided(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution | None:
    """Return the leximin with the least prices of its levels: those of the LPs prove them only once they are completed.

    None where HiGHS does not solve one of the LPs, and there is time for another method.
    """
    from fairopt.solvers.leximin.least_prices import with_least_prices
    from fairopt.solvers.leximin.polish import polish
    from fairopt.solvers.via_highs.levels import solve_levels

    try:
        found = solve_levels(program, program.goal_as(Leximin), tolerance, deadline, decides=True)
    except NoSolution:
        if deadline.left == 0.0:
            raise
        return None
    if len(found.stages) == 1:
        return found  # the LP of the first level has all users, and its prices are complete
    near = polish(program, found)
    return with_least_prices(program, near, deadline) or near


def _suits_sifting(program: Program) -> bool:
    """Ask ``sifting`` whether it is faster, which it can be only where many users have limits of their own."""
    if len(program.users) < SETTINGS.sifted_users or program.limits.of_servers.all():
        return False
    from fairopt.solvers.via_highs.sifting import wins

    return wins(program)


def _nested_in_small_units(program: Program, _: float, deadline: Deadline, __: Solution | None) -> Solution:
    from fairopt.solvers.via_highs.nested import solve_nested

    return solve_nested(program, program.goal_as(Nested), deadline, small=True)


def _sifted(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution | None:
    from fairopt.solvers.via_highs.sifting import solve_sifted

    return solve_sifted(program, program.goal_as(Leximin), tolerance, deadline)


def _total(program: Program, _: Total, __: float, deadline: Deadline) -> Solution:
    """One LP, in the variables y = x / largest. What keeps them below 1 is the limits, so that the limits have all the prices."""
    from fairopt.solvers.highs_model import FINEST, HighsModel, solved

    largest = program.largest()
    limits = program.limits
    bounds = np.where(limits.bounds > 0, limits.bounds, 1.0)  # a bound of 0 makes its columns' largest 0
    matrix = sp.csr_array(limits.matrix * largest) / bounds[:, None]
    worth = program.worth * largest
    unit = float(worth.max()) or 1.0
    model = HighsModel(
        worth / unit,
        np.zeros(largest.size),
        np.where(largest > 0, np.inf, 0.0),
        sp.csc_array(matrix),
        np.full(bounds.size, -np.inf),
        np.ones(bounds.size),
        tolerance=FINEST,
    )
    outcome = solved(model.run(deadline.left), deadline, {})
    prices = np.maximum(outcome.row_duals, 0.0) * unit / bounds
    return Solution(np.maximum(outcome.x, 0.0) * largest, prices=prices, iterations=outcome.iterations)


_Solve: TypeAlias = Callable[[Program, Any, float, Deadline], Solution]
_DIVISIBLE: dict[Feature, _Solve] = {
    Feature.LEXIMIN: _levels,
    Feature.EQUALIZE: _levels,
    Feature.FINISH_TIMES: _finish_times,
    Feature.TOTAL: _total,
    Feature.TREE: _filling,
    Feature.NESTED: _nested,
}
_WHOLE: dict[Feature, _Solve] = {Feature.LEXIMIN: _whole, Feature.TOTAL: _whole, Feature.TREE: _whole, Feature.ALPHA_FAIR: _whole}
