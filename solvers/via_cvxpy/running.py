"""One run of a solver inside CVXPY: what it throws, prints and warns of stays inside; a status says how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.errors import FairoptError, Unsupported
from fairopt.instance import FloatArray
from fairopt.processes.streams import on_stderr, unheard, unwarned
from fairopt.solvers.backend import Deadline, Status, named_in
from fairopt.solvers.licence_texts import refusal
from fairopt.solvers.via_cvxpy.inside import arguments, inside

__all__ = ["Solver", "require_point", "status_of"]

_SOON = 0.1  # of the time that was left: a solver that stops at a limit later than this before the deadline stops at the time limit
_ENDLESS = 1e19  # a bound that is no smaller is none
_BOUNDS: Mapping[str, Callable[[Any], Any]] = {  # of the answer that CVXPY's interface to a solver returns
    "HIGHS": lambda raw: raw["info"].mip_dual_bound,
    "SCIPY": lambda raw: raw["mip_dual_bound"],
    "SCIP": lambda raw: raw["model"].getDualbound(),
    "GUROBI": lambda raw: raw["model"].ObjBound,
    "COPT": lambda raw: raw["model"].bestbnd,
    "CPLEX": lambda raw: raw["model"].solution.MIP.get_best_objective(),
}


def status_of(native: str | None) -> Status:
    """Map every status of CVXPY; what is not listed is a failure. Inaccurate answers are answers: the certificate judges them."""
    return {
        "optimal": Status.OPTIMAL,
        "optimal_inaccurate": Status.OPTIMAL,
        "user_limit": Status.TIME_LIMIT,
        "infeasible": Status.INFEASIBLE,
        "infeasible_inaccurate": Status.INFEASIBLE,
        "unbounded": Status.UNBOUNDED,
        "unbounded_inaccurate": Status.UNBOUNDED,
        "infeasible_or_unbounded": Status.UNBOUNDED,
    }.get(native or "", Status.FAILED)


@dataclass(frozen=True, slots=True)
class Solver:
    """A solver inside CVXPY, by CVXPY's name, and the options that the user gave for it."""

    cp: Any
    name: str
    options: Mapping[str, object]

    def run(self, problem: Any, deadline: Deadline, known: dict[str, object]) -> Status:
        """Solve, with whatever CVXPY and its solver throw, print or warn of kept inside; return the status, which is not a limit.

        Raises
        ------
        NoSolution
            At the deadline, with what is ``known``.
        Unsupported
            The solver does not take an option of the user's.
        FairoptError
            Where the solver fails, or stops at a limit of its own: CVXPY says of both limits, time and iterations, ``user_limit``.
        """
        for tight in (True, False) if inside(self.name).tight else (True,):  # some never reach the tolerances that others do
            left = deadline.left
            if left == 0.0:
                raise deadline.passed(known)
            try:
                with unwarned(), np.errstate(all="ignore"), self._streams():
                    problem.solve(solver=self.name, **arguments(self.name, self.options, left, tight=tight))
            except Exception as error:  # CVXPY's own, the solver's, and what bindings let through
                raise deadline.passed(known) if _is_late(deadline, left) else self.failure(error, problem) from None
            status = status_of(problem.status)
            if _is_late(deadline, left) and status is not Status.OPTIMAL:  # COPT says that a program is infeasible then
                raise deadline.passed(known)
            if status is not Status.TIME_LIMIT:
                return status
        raise FairoptError(f"CVXPY with {self.name} stopped at a limit of its own; try another solver")

    def search(self, problem: Any, deadline: Deadline) -> tuple[Status, float | None]:
        """Solve a program of whole numbers, which maximises, as `run` does; a time limit is a status, with the best point in the variables.

        Return the status and the bound of the solver on the goal, None if it gives none to CVXPY.
        """
        left, raw = deadline.left, None
        options = arguments(self.name, self.options, left, whole=True)
        verbose = bool(options.pop("verbose", False))
        try:
            with unwarned(), np.errstate(all="ignore"), self._streams():
                data, chain, inverse = problem.get_problem_data(self.name)
                raw = chain.solve_via_data(problem, data, warm_start=True, verbose=verbose, solver_opts=options)
                problem.unpack_results(raw, chain, inverse)
        except Exception as error:
            if _is_late(deadline, left):
                return Status.TIME_LIMIT, bound_of(self.name, raw)
            raise self.failure(error, problem) from None
        status = status_of(problem.status)
        if problem.status != "optimal" and _is_late(deadline, left):  # SCIP, SciPy and Xpress call a time limit "optimal_inaccurate"
            return Status.TIME_LIMIT, bound_of(self.name, raw)
        if status is Status.TIME_LIMIT or problem.status == "optimal_inaccurate":
            raise FairoptError(f"CVXPY with {self.name} stopped at a limit of its own; try another solver")
        return status, None

    def _streams(self) -> AbstractContextManager[None]:
        """Return what keeps stdout free of what the solver prints; a log that the user asked for goes to stderr."""
        if self.options.get("verbose"):
            return on_stderr()
        return unheard() if inside(self.name).prints else nullcontext()

    def failure(self, error: Exception, problem: Any) -> FairoptError:
        """Return the error to raise where the solver threw this one."""
        reason = str(error).strip().rstrip(".")
        if option := named_in(self.options, reason):
            return Unsupported(f"CVXPY with {self.name} does not take {option}={self.options[option]}: {reason}")
        if isinstance(error, self.cp.SolverError):  # of CVXPY's, which leaves the reason out
            rows = sum(each.size for each in problem.constraints)
            reason = refusal(self.name, problem.size_metrics.num_scalar_variables, rows) or reason
        without = " without these options, or" if self.options else ""
        return FairoptError(f"CVXPY with {self.name} failed: {reason}; try{without} another solver")

    def multipliers(self, rows: Any) -> FloatArray:
        """Return the dual prices of a constraint, never negative.

        Raises
        ------
        Unsupported
            The solver gives none.
        """
        if rows.dual_value is None:
            raise Unsupported(f'"{self.name}" gives CVXPY no dual prices, which prove an answer; use another solver, such as cvxpy:HIGHS')
        return np.asarray(np.maximum(rows.dual_value, 0.0), float)


def bound_of(solver: str, raw: Any) -> float | None:
    """Return the bound of a solver on the goal of a program that maximises; None if its answer has none.

    CVXPY hands a solver the negative of the goal.
    """
    try:
        least = float(_BOUNDS[solver](raw))
    except Exception:  # no such solver, no answer, or one without a bound
        return None
    return -least if abs(least) < _ENDLESS else None


def _is_late(deadline: Deadline, left: float) -> bool:
    """Is the time that was left nearly over?"""
    return deadline.seconds is not None and deadline.left <= _SOON * left


def require_point(status: Status, x: FloatArray | None, solver: str) -> None:
    """Raise where a solver has no point."""
    if status is not Status.OPTIMAL or x is None or not np.isfinite(x).all():
        raise FairoptError(f"CVXPY with {solver} found no answer: {status.value}; try another solver")
