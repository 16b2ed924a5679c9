"""Pyomo's solvers, and the only place that runs them: names, tolerances, options, statuses; what they print and throw is kept in."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from fairopt.errors import FairoptError, SolverUnavailable, Unsupported
from fairopt.instance import FloatArray
from fairopt.processes.streams import unheard, unwarned
from fairopt.processes.surroundings import refuse_settings
from fairopt.solvers.backend import Deadline, Status, named_in
from fairopt.solvers.highs_options import check_options, without_banner
from fairopt.solvers.licence_texts import without_licence_text
from fairopt.wording import did_you_mean

__all__ = ["Engine", "inside", "known_name", "require_solved", "run", "solver", "status_of", "values"]

_HIGHS = ("appsi_highs", "highs")
_TIGHT = {
    **{"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "mip_feasibility_tolerance": 1e-9},
    **{"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "small_matrix_value": 1e-12},
}
_TIGHT_OF_OTHERS: dict[str, dict[str, object]] = {  # by the first word of a name, such as gurobi_direct
    "gurobi": {"FeasibilityTol": 1e-9, "OptimalityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": 0.0, "MIPGapAbs": 0.0},
    "cplex": {"simplex_tolerances_feasibility": 1e-9, "simplex_tolerances_optimality": 1e-9, "mip_tolerances_mipgap": 0.0},
    "xpress": {"feastol": 1e-9, "optimalitytol": 1e-9, "miprelstop": 0.0, "mipabsstop": 0.0},
    "scip": {"numerics/feastol": 1e-9, "limits/gap": 0.0},
}
_TIME_LIMIT = {"gurobi": "TimeLimit", "cplex": "timelimit", "xpress": "timelimit"}  # of the families that leave Pyomo's own out
_STATUS = {
    **dict.fromkeys(("optimal", "globallyOptimal", "locallyOptimal"), Status.OPTIMAL),
    **dict.fromkeys(("maxTimeLimit", "userInterrupt", "resourceInterrupt"), Status.TIME_LIMIT),
    "infeasible": Status.INFEASIBLE,
    **dict.fromkeys(("unbounded", "infeasibleOrUnbounded"), Status.UNBOUNDED),
    **dict.fromkeys(("unknown", "maxIterations", "minFunctionValue", "minStepLength", "feasible", "maxEvaluations"), Status.FAILED),
    **dict.fromkeys(("other", "invalidProblem", "intermediateNonInteger", "noSolution", "solverFailure"), Status.FAILED),
    **dict.fromkeys(("internalSolverError", "error", "licensingProblems"), Status.FAILED),
}
_LATE = 0.95  # of a time limit: a solver that stops later stops at it
_SHORTEST = 1e-3  # seconds: 0 means no limit to some
_START_OF_NEW = "warmstart_discrete_vars"  # an option of Pyomo's newer interfaces
_guard = threading.Lock()
_before: list[tuple[int, list[Any]]] = []  # the level of the log, and the defaults of what finds programs, for each that is inside


def status_of(native: Any) -> Status:
    """Map Pyomo's termination conditions; what is not listed is a failure."""
    return _STATUS.get(str(getattr(native, "value", native)), Status.FAILED)


@contextmanager
def inside() -> Iterator[None]:
    """Keep Pyomo's exceptions, warnings and log messages in, and have it run no program of the current folder."""
    from pyomo.common import fileutils

    logger = logging.getLogger("pyomo")
    finders = (fileutils.find_executable, fileutils.find_library)
    with _guard:
        _before.append((logger.level, [find.__defaults__ for find in finders]))
        logger.setLevel(logging.CRITICAL + 1)
        for find in finders:
            find.__defaults__ = (False, *find.__defaults__[1:])  # cwd: by default it looks there first
    try:
        with unwarned():
            yield
    except (FairoptError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise FairoptError(f"Pyomo failed: {error}") from error
    finally:
        with _guard:  # several threads may be inside: the last one to leave restores what was there before the first
            level, defaults = _before.pop()
            if not _before:
                logger.setLevel(level)
                for find, its in zip(finders, defaults, strict=True):
                    find.__defaults__ = its


def known_name(name: str) -> str | None:
    """Return Pyomo's name of a solver, in any case of letters; None if it knows none of this name."""
    return next((each for each in _names() if each.lower() == name.lower()), None)


def _names() -> list[str]:
    with unwarned():  # a package of a solver that is there may be newer than Pyomo knows
        import pyomo.environ as pyo

        return [each for each in pyo.SolverFactory if not each.startswith("_")]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One of Pyomo's solvers, and the options that the user gave for it; what it prints is kept in, unless it is known to print nothing.

    ``time_limit`` is its option of a time limit in seconds, None if Pyomo knows what it is. ``bounds_at_limit``: is the bound that Pyomo
    has of it a bound at a time limit, too? Of CBC and GLPK it is the value of the point then.
    """

    found: Any
    name: str
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    is_silent: bool = False
    time_limit: str | None = None
    bounds_at_limit: bool = False

    def failure(self, error: FairoptError) -> FairoptError:
        """Return the error to raise where Pyomo or its solver threw something, whose reason this error gives."""
        if option := named_in(self.options, str(error)):
            return Unsupported(f'"pyomo:{self.name}" does not take {option}={self.options[option]}: {error}')
        if "get_duals" in str(error):
            return Unsupported(
                f'"pyomo:{self.name}" gives no dual prices, which prove an answer; use another solver, such as "pyomo:highs"'
            )
        without = "; try without these options, or another solver" if self.options else ""
        return FairoptError(f'{error} ("pyomo:{self.name}"){without}')


def solver(name: str | None, options: Mapping[str, object] | None = None) -> Engine:
    """Return one of Pyomo's solvers, HiGHS by default, with tight tolerances where they are known, and with the user's own options.

    Raises
    ------
    SolverUnavailable
    """
    import pyomo.environ as pyo

    name = known_name(name) or name if name else _HIGHS[0]
    if name not in _HIGHS:
        refuse_settings(f'the solver "{name}" of Pyomo')
    if "gurobi" in name:
        without_licence_text()
    with inside(), unheard():
        found: Any = pyo.SolverFactory(name)
        there = bool(found.available(exception_flag=False))
    if not there:
        close = "" if known_name(name) else did_you_mean(name, _names())
        raise SolverUnavailable(
            f'Pyomo has no solver "{name}" here{close}; install it where Pyomo finds it, or leave it out: "pyomo" runs HiGHS'
        )
    family = next((family for family in _TIGHT_OF_OTHERS if family in name.split("_")), None)
    tight: dict[str, Any] = _TIGHT if name in _HIGHS else _TIGHT_OF_OTHERS.get(family or "", {})
    if name in _HIGHS:
        without_banner()
        check_options(options or {})
    for option, value in (tight | dict(options or {})).items():
        found.options[option] = value
    is_silent, knows_bounds = name in _HIGHS or family == "gurobi", name in _HIGHS or family is not None
    return Engine(found, name, dict(options or {}), is_silent, _TIME_LIMIT.get(family or ""), knows_bounds)


def run(model: Any, engine: Engine, seconds: float, *, start: bool = False) -> tuple[Status, float | None]:
    """Solve; the values are in the model then, at a time limit those of the best point if the solver has one.

    Return the status and the bound on the goal, None if the solver gives none.

    ``start``: begin with the values in the model, if the solver takes them.

    Raises
    ------
    Unsupported
        The solver does not take an option of the user's, or gives no multipliers where they are asked for.
    FairoptError
        Pyomo or its solver failed.
    """
    how: dict[str, Any] = {"timelimit": max(seconds, _SHORTEST)} if np.isfinite(seconds) else {}
    if how and engine.time_limit is not None and "appsi" not in engine.name:
        engine.found.options[engine.time_limit] = how.pop("timelimit")
    try:
        with inside(), nullcontext() if engine.is_silent else unheard():
            how |= _started(engine.found, start=start and engine.name not in _HIGHS)  # which may return the start in place of the optimum
            return _run(model, engine.found, how, seconds, bounds_at_limit=engine.bounds_at_limit)
    except FairoptError as error:
        raise engine.failure(error) from None


def _started(found: Any, *, start: bool) -> dict[str, Any]:
    """Return the arguments of a solver that begins with the values of a model, if it shall; none where it cannot."""
    if hasattr(getattr(found, "config", None), _START_OF_NEW):
        setattr(found.config, _START_OF_NEW, start)
        return {}
    return {"warmstart": True} if start and getattr(found, "warm_start_capable", bool)() else {}


def _run(model: Any, found: Any, how: dict[str, Any], seconds: float, *, bounds_at_limit: bool) -> tuple[Status, float | None]:
    from pyomo.solvers.plugins.solvers.persistent_solver import PersistentSolver

    keeps_model, began = isinstance(found, PersistentSolver), time.monotonic()
    if keeps_model:
        found.set_instance(model)
    results = found.solve(*(() if keeps_model else (model,)), load_solutions=False, **how)
    status = status_of(results.solver.termination_condition)
    if status is Status.FAILED and time.monotonic() - began >= _LATE * seconds:  # Xpress only says then that it has a point
        status = Status.TIME_LIMIT
    if status is Status.OPTIMAL and keeps_model:
        found.load_vars()
        if hasattr(model, "dual"):
            found.load_duals()
    elif status is Status.OPTIMAL:
        model.solutions.load_from(results)
    elif status is Status.TIME_LIMIT:
        with suppress(Exception):  # the best point so far, if there is one: whoever solves the whole numbers checks it
            found.load_vars() if keeps_model else model.solutions.load_from(results)
    try:
        bound = float(results.problem.upper_bound)
    except (TypeError, ValueError):
        return status, None
    known = status is not Status.TIME_LIMIT or bounds_at_limit
    return status, bound if known and np.isfinite(bound) else None


def values(variables: list[Any]) -> FloatArray:
    """Return the values of variables; those that no row mentions have none, and are 0."""
    return np.array([0.0 if variable.value is None else float(variable.value) for variable in variables])


def require_solved(status: Status, deadline: Deadline, known: dict[str, object]) -> None:
    """Raise what a status that is not optimal means."""
    if status is Status.TIME_LIMIT:
        raise deadline.passed(known)
    if status is not Status.OPTIMAL:
        raise FairoptError(f"Pyomo's solver did not solve a program that has a solution: {status.value}; try another solver")
