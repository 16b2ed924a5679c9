"""The only place that solves by highspy: arrays in, arrays out, statuses mapped totally, its exceptions kept inside."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_options import options_given, without_banner

__all__ = [
    "DUAL_SIMPLEX",
    "FINEST",
    "PRIMAL_SIMPLEX",
    "REFINED",
    "HighsModel",
    "Outcome",
    "Status",
    "first_solved",
    "solved",
]

log = logging.getLogger(__name__)

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # HiGHS's numbers, as values of ``simplex_strategy``
FINEST = 1e-10  # the smallest tolerance that HiGHS takes, for points and for prices
REFINED = 1e5  # by how much smaller a refinement makes it


_COUNTS = ("simplex_iteration_count", "ipm_iteration_count")


def status_of(native: Any) -> Status:
    """Map every native model status; what is not listed is a failure."""
    return _statuses().get(native, Status.FAILED)


@cache
def _statuses() -> dict[Any, Status]:
    import highspy

    names = highspy.HighsModelStatus
    return {
        names.kOptimal: Status.OPTIMAL,
        names.kTimeLimit: Status.TIME_LIMIT,
        names.kInterrupt: Status.TIME_LIMIT,
        names.kInfeasible: Status.INFEASIBLE,
        names.kUnbounded: Status.UNBOUNDED,
        names.kUnboundedOrInfeasible: Status.UNBOUNDED,
    }


def _array(values: list[float]) -> FloatArray:
    """Return numbers as an array, in less time than `numpy.array`, which looks at the type of each."""
    return np.fromiter(values, np.float64, len(values))


class _Threads:
    """The number of threads that HiGHS has started by itself.

    HiGHS 1.16 asks the system for every processor in each run, twice unless it is told this number. It starts its threads in the first run,
    one for each core, or for every other processor, and refuses to run with another number of them; then that number is not tried again in
    this process.
    """

    def __init__(self) -> None:
        self._guesses: tuple[int, ...] | None = None

    def guess(self) -> int | None:
        """Return the number, as far as is known; None if it is none of those that were likely."""
        if self._guesses is None:
            processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            self._guesses = tuple(dict.fromkeys((processors, (processors + 1) // 2)))
        return self._guesses[0] if self._guesses else None

    def is_not(self, threads: int) -> None:
        """Take note that HiGHS has another number of threads."""
        self._guesses = tuple(guess for guess in self._guesses or () if guess != threads)


_THREADS = _Threads()


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of one run; arrays are empty where there is no point."""

    status: Status
    x: FloatArray
    row_duals: FloatArray
    gap: float
    iterations: int
    bound: float = float("nan")  # of whole numbers: on the goal


def solved(outcome: Outcome, deadline: Deadline, known: Mapping[str, object]) -> Outcome:
    """Return the outcome if it is optimal, else raise NoSolution with what is known."""
    if outcome.status is Status.TIME_LIMIT:
        raise deadline.passed(known)
    if outcome.status is not Status.OPTIMAL:
        raise NoSolution(
            f"the solver did not solve a program that always has a solution: {outcome.status.value}; measure resources in units "
            "that make their numbers more alike, or report the instance",
            known,
        )
    return outcome


def first_solved(runs: Iterable[Callable[[], Outcome]]) -> Outcome:
    """Return the first outcome that is optimal or ended by the time limit, else the last one; the runs after it are not made.

    For programs that have a solution, which HiGHS may miss by rounding: each run allows for more of it than the one before.
    """
    outcome: Outcome | None = None
    for run in runs:
        if outcome is not None:
            log.info("HiGHS: %s; trying again", outcome.status.value)
        outcome = run()
        if outcome.status in (Status.OPTIMAL, Status.TIME_LIMIT):
            break
    assert outcome is not None  # there is a run
    return outcome


class HighsModel:
    """One HiGHS model that is built once, changed and solved again from where it stood.

    maximise cost @ x  subject to  row_lower <= matrix @ x <= row_upper,  lower <= x <= upper.

    HiGHS has absolute tolerances, of ``FINEST`` at least. With ``magnified`` = M, HiGHS solves for M x and M times the prices, so that the
    tolerances of x and of the prices are M times smaller. If M is a power of 2, this adds no rounding. Not for whole numbers.
    """

    def __init__(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        matrix: sp.csr_array | sp.csc_array,
        row_lower: FloatArray,
        row_upper: FloatArray,
        integral: IntArray | None = None,
        tolerance: float = 1e-9,
        magnified: float = 1.0,
    ) -> None:
        import highspy

        without_banner()
        self._magnified = magnified

        self._matrix = sp.csr_array(matrix, copy=True)
        self._matrix.sort_indices()
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = cost.size, row_lower.size
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost * magnified, lower * magnified, upper * magnified
        lp.row_lower_, lp.row_upper_ = row_lower * magnified, row_upper * magnified
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = self._matrix.indptr.astype(np.int32)
        lp.a_matrix_.index_ = self._matrix.indices.astype(np.int32)
        lp.a_matrix_.value_ = self._matrix.data
        lp.sense_ = highspy.ObjSense.kMaximize
        if integral is not None:
            kinds = [highspy.HighsVarType.kContinuous] * cost.size
            for j in integral:
                kinds[j] = highspy.HighsVarType.kInteger
            lp.integrality_ = kinds
        self._cost = np.array(cost, float)
        self._bounds = [np.array(values, float) for values in (lower, upper, row_lower, row_upper)]
        self._all = np.arange(max(matrix.shape), dtype=np.int32)
        self._entries: dict[int, IntArray] = {}  # positions of a column's entries in the matrix, by row; -1 where there is none
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._options: dict[str, object] = {}  # those that were set
        self._kept: set[str] = set()  # those of the user's, which stay
        self._integral = integral is not None
        self._is_limited = False  # has a time limit been set?
        self._runs_again = False
        self.set_options(
            output_flag=False,
            primal_feasibility_tolerance=max(tolerance, FINEST),
            dual_feasibility_tolerance=max(tolerance, FINEST),
            mip_feasibility_tolerance=max(tolerance, FINEST),
            small_matrix_value=1e-12,
            mip_rel_gap=0.0,
            mip_abs_gap=0.0,
        )
        for name, value in options_given().items():
            self.set_options(**{name: value})
            self._kept.add(name)
        if self._highs.passModel(lp) == highspy.HighsStatus.kError:
            raise FairoptError("HiGHS refused the model; this is a fault of fairopt: please report the instance")

    @classmethod
    def within(cls, cost: FloatArray, matrix: sp.csr_array | sp.csc_array, right: FloatArray) -> HighsModel:
        """Return the model that maximises cost @ x subject to matrix @ x <= right, x >= 0, to the finest tolerance.

        >>> HighsModel.within(np.array([1.0, 2.0]), sp.csr_array([[1.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0])).run(np.inf).x
        array([2., 1.])
        """
        n, rows = cost.size, right.size
        return cls(cost, np.zeros(n), np.full(n, np.inf), matrix, np.full(rows, -np.inf), right, tolerance=FINEST)

    def set_options(self, **options: object) -> None:
        """Set HiGHS options by name."""
        for name, value in options.items():
            if self._options.get(name) != value and name not in self._kept:
                self._highs.setOptionValue(name, value)
                self._options[name] = value

    def end_after(self, checks: int) -> None:
        """End branch and cut where HiGHS asks for this time whether to go on: at fixed points of its course, the same on every machine."""
        left = itertools.count(checks - 1, -1)

        def check(event: Any) -> None:
            if next(left) <= 0:
                event.interrupt()

        self._highs.cbMipInterrupt.subscribe(check)

    def end_with(self, deadline: Deadline, steps: float) -> None:
        """Take ``steps`` from a deadline each time HiGHS asks whether to go on with branch and cut; end it there where none are left."""

        def check(event: Any) -> None:
            deadline.spend(steps)
            if deadline.is_spent:
                event.interrupt()

        self._highs.cbMipInterrupt.subscribe(check)

    @property
    def basis(self) -> Any:
        """The basis where the last run ended; it can be given to another model of the same shape."""
        return self._highs.getBasis()

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._highs.setBasis(basis)

    @property
    def basic_variables(self) -> IntArray:
        """The variables of this basis: columns, and -1 - row for slacks of rows."""
        return np.asarray(self._highs.getBasicVariables()[1], np.int64)

    def extend(self, basis: Any, new: BoolArray) -> None:
        """Go on from the basis of a model without the ``new`` columns, which are at 0."""
        import highspy

        old = iter(basis.col_status)
        extended = highspy.HighsBasis()
        extended.col_status = [highspy.HighsBasisStatus.kLower if fresh else next(old) for fresh in new]
        extended.row_status = list(basis.row_status)
        extended.valid = True
        self._highs.setBasis(extended)

    def keep(self, basis: Any, columns: BoolArray, rows: BoolArray) -> None:
        """Start from what is left of the basis of a model that had more columns and rows, of which this one has these."""
        import highspy

        rest = highspy.HighsBasis()
        rest.col_status = [status for status, kept in zip(basis.col_status, columns.tolist(), strict=True) if kept]
        rest.row_status = [status for status, kept in zip(basis.row_status, rows.tolist(), strict=True) if kept]
        rest.valid = rest.alien = True  # it may have too many or too few basic variables: HiGHS makes it complete
        self._highs.setBasis(rest)

    def start_at(self, x: FloatArray) -> None:
        """Give a whole point from which branch and cut starts."""
        import highspy

        solution = highspy.HighsSolution()
        solution.col_value = x.tolist()
        self._highs.setSolution(solution)

    def forget(self) -> None:
        """Drop the last basis and answer: the next run starts afresh."""
        self._highs.clearSolver()

    def start_from(self, columns: IntArray, tight_rows: IntArray, *, complete: bool = True) -> None:
        """Set a basis: these columns basic, these rows at the bounds that they have (lower ones first), every other row slack.

        One that is not ``complete`` may have too many basic variables, or too few: HiGHS makes it complete.
        """
        import highspy

        status = highspy.HighsBasisStatus
        basis = highspy.HighsBasis()
        basic = np.zeros(self._matrix.shape[1], bool)
        basic[columns] = True
        tight = np.zeros(self._matrix.shape[0], bool)
        tight[tight_rows] = True
        basis.col_status = [status.kBasic if yes else status.kLower for yes in basic]
        below = np.isfinite(self._bounds[2])
        at_bound = [status.kLower if has_lower else status.kUpper for has_lower in below]
        basis.row_status = [bound if yes else status.kBasic for bound, yes in zip(at_bound, tight, strict=True)]
        basis.valid, basis.alien = True, not complete
        self._highs.setBasis(basis)

    def basic(self) -> tuple[IntArray, IntArray]:
        """Return the columns and the rows that are basic where the last run ended; none where there is no basis."""
        import highspy

        basis = self._highs.getBasis()
        statuses = (basis.col_status, basis.row_status) if basis.valid else ((), ())
        columns, rows = (
            np.array([j for j, status in enumerate(found) if status == highspy.HighsBasisStatus.kBasic], np.int64) for found in statuses
        )
        return columns, rows

    def set_costs(self, cost: FloatArray) -> None:
        """Change the goal."""
        self._cost = np.array(cost, float)
        self._write_costs(self._cost)

    def _write_costs(self, cost: FloatArray) -> None:
        self._highs.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), cost * self._magnified)

    def set_coefficients(self, rows: IntArray, column: int, values: FloatArray) -> None:
        """Change entries of one column, which the matrix has."""
        if column not in self._entries:
            place = np.full(self._matrix.shape[0], -1)
            entries = np.flatnonzero(self._matrix.indices == column)
            place[np.searchsorted(self._matrix.indptr, entries, side="right") - 1] = entries
            self._entries[column] = place
        self._matrix.data[self._entries[column][rows]] = values
        change = self._highs.changeCoeff
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            change(row, column, value)

    def set_column_bounds(self, column: int, lower: float, upper: float) -> None:
        """Change the bounds of one column."""
        self._bounds[0][column], self._bounds[1][column] = lower, upper
        self._highs.changeColBounds(int(column), float(lower) * self._magnified, float(upper) * self._magnified)

    def set_column_lower(self, column: int, lower: float) -> None:
        """Change the lower bound of one column."""
        self.set_column_bounds(column, lower, float(self._bounds[1][column]))

    def set_row_lower(self, rows: IntArray, lower: FloatArray) -> None:
        """Change the lower bounds of some rows that have no upper ones."""
        self._bounds[2][rows] = lower
        self._highs.changeRowsBounds(rows.size, rows.astype(np.int32), lower * self._magnified, self._bounds[3][rows] * self._magnified)

    def run(self, time_limit: float) -> Outcome:
        """Solve, from the last basis or a whole point if there is one.

        HiGHS 1.16 may return the whole point in place of the better one whose value it states. Then it solves once more without it; if a
        limit ended the run, the gap is that of the point.
        """
        if time_limit < np.inf:  # HiGHS counts time over all runs of a model
            self.set_options(time_limit=float(time_limit) + self._highs.getRunTime())
            self._is_limited = True
        elif self._is_limited:
            self.set_options(time_limit=np.inf)
            self._is_limited = False
        outcome = self._run()
        if not self._integral:
            return outcome
        if outcome.status is Status.OPTIMAL and self._falls_short(outcome):
            self.forget()
            outcome = self._run()
        if self._falls_short(outcome):
            value = float(self._cost @ outcome.x)
            outcome = replace(outcome, gap=(outcome.bound - value) / abs(value) if value else np.inf)
        return outcome

    def _falls_short(self, outcome: Outcome) -> bool:
        """Is a whole point worse than the value that HiGHS states?"""
        if not outcome.x.size:
            return False
        stated, largest = float(self._info("objective_function_value")), float(np.abs(self._cost).max(initial=0.0))
        return float(self._cost @ outcome.x) < stated - CERTIFIED * max(abs(stated), largest)

    def _run_native(self) -> None:
        """Run HiGHS; a model that runs again says how many threads HiGHS has (`_Threads`)."""
        if self._runs_again and not self._integral and not self._kept:
            import highspy

            while (threads := _THREADS.guess()) is not None:
                self.set_options(threads=threads)
                if self._highs.run() != highspy.HighsStatus.kError:
                    return
                _THREADS.is_not(threads)
            self.set_options(threads=0)
        self._highs.run()
        self._runs_again = True

    def _run(self) -> Outcome:
        try:
            self._run_native()
        except Exception as error:  # whatever pybind lets through
            raise FairoptError(f"HiGHS failed: {error}") from error
        solution = self._highs.getSolution()
        counts = ("simplex_iteration_count",) if self._options.get("solver") == "simplex" else _COUNTS
        return Outcome(
            status_of(self._highs.getModelStatus()),
            _array(solution.col_value) / self._magnified if solution.value_valid else np.empty(0),
            _array(solution.row_dual) / self._magnified,
            float(self._info("mip_gap")) if self._integral else 0.0,
            sum(max(0, int(self._info(each))) for each in counts),  # -1 where it does not apply
            float(self._info("mip_dual_bound")) if self._integral else float("nan"),
        )

    def _info(self, name: str) -> Any:
        """Return one value of what HiGHS says of the last run; ``getInfo`` reads all of them, which is slower."""
        return self._highs.getInfoValue(name)[1]

    def refine(self, outcome: Outcome, time_limit: float, factor: float = REFINED, of_prices: float = 1.0) -> Outcome:
        """Solve an LP again for the correction of its last point, so that tolerances are those of a model magnified by ``factor`` in all.

        With x = x0 + d / factor the bounds of d are factor * (bounds - x0) and factor * (row bounds - A x0); the basis stays. Costs
        times ``of_prices`` shrink the tolerance of prices. (Iterative refinement of linear programs; Gleixner, Steffy and Wolter 2016.)
        The iterations of both are counted.
        """
        lower, upper, row_lower, row_upper = self._bounds
        point = np.clip(outcome.x, lower, upper)
        activity = self._matrix @ point
        factor, of_prices = max(factor / self._magnified, 1.0), max(of_prices / self._magnified, 1.0)
        self._write_bounds(
            factor * (lower - point), factor * (upper - point), factor * (row_lower - activity), factor * (row_upper - activity)
        )
        if of_prices != 1.0:
            self._write_costs(self._cost * of_prices)
        correction = self.run(time_limit)
        self._write_bounds(*self._bounds)
        if of_prices != 1.0:
            self._write_costs(self._cost)
        iterations = outcome.iterations + correction.iterations
        if correction.status is not Status.OPTIMAL:
            return replace(outcome, iterations=iterations)
        return replace(outcome, x=point + correction.x / factor, row_duals=correction.row_duals / of_prices, iterations=iterations)

    def _write_bounds(self, lower: FloatArray, upper: FloatArray, row_lower: FloatArray, row_upper: FloatArray) -> None:
        times = self._magnified
        self._highs.changeColsBounds(lower.size, self._all[: lower.size], lower * times, upper * times)
        self._highs.changeRowsBounds(row_lower.size, self._all[: row_lower.size], row_lower * times, row_upper * times)
