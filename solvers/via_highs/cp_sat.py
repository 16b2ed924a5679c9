r"""The programs of whole numbers by CP-SAT of OR-Tools, for the searches of whole tasks: ``solver="highs:cp-sat"``.

CP-SAT has integer coefficients alone. So a row l <= a x <= u, with 0 <= x <= U, is multiplied by 2^k and rounded, with the largest k for
which the sum of the \|a[j]\| U[j] 2^k stays within 2^53; a row of whole numbers stays as it is. Rounding then changes a x by less than half
the sum of the U[j] over 2^k. A row for which that is more than the tolerance is refused.

>>> _scaled(np.array([0.5, 3.0]), np.array([1.0, 1.0])), _scaled(np.array([2.0, 3.0]), np.array([1.0, 1.0]))
(2251799813685248.0, 1.0)
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.errors import SolverUnavailable, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.processes.streams import on_stderr
from fairopt.solvers.backend import Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.wording import did_you_mean

__all__ = ["CpSat", "checked"]

_OURS = {"mip_rel_gap": "relative_gap_limit", "mip_abs_gap": "absolute_gap_limit"}  # options of HiGHS, and of CP-SAT


def checked(options: Mapping[str, object]) -> None:
    """Refuse options that CP-SAT does not have, or not with such a value.

    Raises
    ------
    SolverUnavailable
        OR-Tools is not installed.
    Unsupported
    """
    _set(_cp_model().CpSolver().parameters, options)


def _cp_model() -> Any:
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise SolverUnavailable('"highs:cp-sat" needs OR-Tools; install it with: pip install ortools') from None


def _set(parameters: Any, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        names = [each for each in dir(parameters) if each.islower() and not each.startswith("_")]
        if name not in names:
            raise Unsupported(f'"cp-sat" takes no option "{name}"{did_you_mean(name, names)}; leave it out')
        try:
            setattr(parameters, name, value)
        except (TypeError, ValueError):
            default = getattr(parameters, name)
            raise Unsupported(f'"cp-sat" does not take "{value}" for its option "{name}"; its default is {default}') from None


def _scaled(coefficients: FloatArray, upper: FloatArray) -> float:
    """Return by what a row is multiplied."""
    if np.array_equal(coefficients, np.rint(coefficients)):
        return 1.0
    return float(2.0 ** np.floor(SETTINGS.bits_of_sums - np.log2(np.abs(coefficients) @ upper)))


class CpSat:
    """An `IntegerProgram` whose columns are all whole, in the form of CP-SAT.

    Raises
    ------
    Unsupported
        A column is divisible or has no bound; the numbers of a row lie too far apart.
    """

    def __init__(self, options: Mapping[str, object], program: IntegerProgram) -> None:
        cost, upper, matrix, tolerance = program.cost, program.upper, program.matrix, program.tolerance
        if program.integral.size < cost.size:
            raise Unsupported('"cp-sat" has whole numbers alone, and this program has other columns, too; use solver="highs"')
        if not np.isfinite(upper).all():
            raise Unsupported('"cp-sat" needs a bound on every number of tasks, and some have none; use solver="highs"')
        cp = self._cp = _cp_model()
        self.model: Any = cp.CpModel()
        self.cost, self._options, self._solver = cost, options, cp.CpSolver()
        least, most = np.ceil(program.lower - tolerance).astype(int), np.floor(upper + tolerance).astype(int)
        self.columns = [self.model.new_int_var(a, b, "") for a, b in zip(least.tolist(), most.tolist(), strict=True)]
        reach = np.maximum(np.abs(least), np.abs(most)).astype(float)
        for row, bounds in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            some = matrix.indices[entries][reach[matrix.indices[entries]] > 0]
            values = matrix.data[entries][reach[matrix.indices[entries]] > 0]
            times, terms = self._terms(some, values, reach, max(1.0, *(abs(each) for each in bounds if np.isfinite(each))) * tolerance)
            low, high = (times * (each + sign * tolerance * max(1.0, abs(each))) for each, sign in zip(bounds, (-1, 1), strict=True))
            if np.isfinite(low):
                self.model.add(terms >= int(np.ceil(low)))
            if np.isfinite(high):
                self.model.add(terms <= int(np.floor(high)))
        some = np.flatnonzero((cost != 0) & (reach > 0))
        self._times, goal = self._terms(some, cost[some], reach, np.inf)
        if some.size:
            self.model.maximize(goal)
        _set(self._solver.parameters, options)

    def _terms(self, columns: IntArray, values: FloatArray, reach: FloatArray, tolerance: float) -> tuple[float, Any]:
        """Return by what a row is multiplied, and the row."""
        times = _scaled(values, reach[columns])
        if times != 1.0 and 0.5 * float(reach[columns].sum()) > times * tolerance:
            raise Unsupported('the numbers of a row lie too far apart for "cp-sat", whose coefficients are whole; use solver="highs"')
        whole = [int(each) for each in np.rint(values * times)]
        return times, self._cp.LinearExpr.weighted_sum([self.columns[j] for j in columns.tolist()], whole)

    def run(self, time_limit: float) -> Outcome:
        """Solve; at a time limit with the best point and the bound that are known by then."""
        solver, cp = self._solver, self._cp
        if np.isfinite(time_limit):
            solver.parameters.max_time_in_seconds = max(time_limit, 0.0)
        with on_stderr() if self._options.get("log_search_progress") else contextlib.nullcontext():
            native = solver.solve(self.model)
        status = {
            cp.OPTIMAL: Status.OPTIMAL,
            cp.INFEASIBLE: Status.INFEASIBLE,
            cp.FEASIBLE: Status.TIME_LIMIT,
            cp.UNKNOWN: Status.TIME_LIMIT,
        }.get(native, Status.FAILED)
        if native not in (cp.OPTIMAL, cp.FEASIBLE):
            return Outcome(status, np.empty(0), np.empty(0), np.inf, 0)
        x = np.array([solver.value(column) for column in self.columns], float)
        value = float(self.cost @ x)
        if not self.model.has_objective():
            return Outcome(status, x, np.empty(0), 0.0, 0, value)
        above = max(solver.best_objective_bound - solver.objective_value, 0.0) / self._times
        gap = 0.0 if above == 0 else above / abs(value) if value else np.inf
        return Outcome(status, x, np.empty(0), gap, 0, value + above)

    def guess(self, x: FloatArray) -> None:
        """Give a whole point from which the search starts."""
        self.model.clear_hints()
        for column, value in zip(self.columns, np.rint(x).astype(int).tolist(), strict=True):
            self.model.add_hint(column, value)

    def set_options(self, **options: object) -> None:
        """Set what options of HiGHS mean here; those that have no counterpart make a search shorter, and no answer another."""
        _set(
            self._solver.parameters,
            {_OURS[name]: value for name, value in options.items() if _OURS.get(name) not in {None, *self._options}},
        )

    def forget(self) -> None:
        """Keep nothing, as ever."""
