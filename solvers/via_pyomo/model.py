"""A program as a Pyomo ConcreteModel, with component names that a reader recognises; and the only place that runs Pyomo's solvers.

    x[alice,server-3]            tasks of the pair, >= 0, whole numbers where the program is integral
    utility[alice]               the expression U[n]
    capacity[cpu @ server-3], time[channel-2], tasks[alice], parallelism[alice], slices[alice @ server-3]       limits
    level, share[alice]          of a leximin or equal level: U[n] / phi[n] >= level (= level)
    alternative[2,0], clause[2]  disjuncts and disjunctions of a union of polytopes (pyomo.gdp), auxiliary[j] its other columns
    goal                         the objective, maximised

The goal of a leximin is its smallest level, the first of the linear programs that find it. Users who can hold nothing
at all (no tasks, no room) are in no goal. An alpha-fair goal is the nonlinear expression itself, with a start inside its domain.

The variables of a union of polytopes are bounded by what each can reach alone, so that gdp.bigm finds a tight M for every row.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, SolverUnavailable, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.processes.streams import unheard, unwarned
from fairopt.processes.surroundings import refuse_settings
from fairopt.program import AlphaFair, Disjunctive, Equalize, Feature, Leximin, LimitKind, Limits, Program, Total, Tradeoff
from fairopt.solvers.backend import Deadline, Status, named_in
from fairopt.solvers.highs_model import check_options, without_banner
from fairopt.solvers.licence_texts import without_licence_text
from fairopt.wording import did_you_mean

__all__ = [
    "COMPONENT",
    "build",
    "in_units",
    "inside",
    "known_name",
    "prices",
    "require_solved",
    "row_of",
    "run",
    "solver",
    "status_of",
    "values",
    "with_duals",
]

COMPONENT = {
    LimitKind.CAPACITY: "capacity",
    LimitKind.TIME: "time",
    LimitKind.TASKS: "tasks",
    LimitKind.SLICE: "slices",
    LimitKind.PARALLELISM: "parallelism",
    LimitKind.QUEUE: "queues",
    LimitKind.LIMIT: "named_limits",
    LimitKind.SHARED: "shared",
    LimitKind.NAMED: "rows",
    LimitKind.RULE: "rules",
    LimitKind.PAST: "past",
    LimitKind.WITH_PAST: "tasks_and_past",
}
_HIGHS = ("appsi_highs", "highs")
_NOISE = 1e-12  # a multiplier below this part of the largest is none
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
_STATUS = {
    **dict.fromkeys(("optimal", "globallyOptimal", "locallyOptimal"), Status.OPTIMAL),
    **dict.fromkeys(("maxTimeLimit", "userInterrupt", "resourceInterrupt"), Status.TIME_LIMIT),
    "infeasible": Status.INFEASIBLE,
    **dict.fromkeys(("unbounded", "infeasibleOrUnbounded"), Status.UNBOUNDED),
    **dict.fromkeys(("unknown", "maxIterations", "minFunctionValue", "minStepLength", "feasible", "maxEvaluations"), Status.FAILED),
    **dict.fromkeys(("other", "invalidProblem", "intermediateNonInteger", "noSolution", "solverFailure"), Status.FAILED),
    **dict.fromkeys(("internalSolverError", "error", "licensingProblems"), Status.FAILED),
}
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


def build(program: Program, transformation: str | None = "bigm") -> Any:
    """Return the ConcreteModel of a program.

    Parameters
    ----------
    transformation : {"bigm", "hull", None}
        What turns disjunctions into a MILP; None leaves them as they are.
    """
    goal = program.goal
    if goal.feature not in _FEATURES:
        raise Unsupported(
            f'"{program.name}" is not a single optimisation model here: its program has {goal.feature.value}; fairopt.solve '
            "answers it, and .tex and .txt hold its mathematics"
        )
    if transformation not in ("bigm", "hull", None):
        raise Unsupported(f'there is no transformation "{transformation}"; use "bigm", "hull", or None to keep the disjunctions')
    with inside():
        return _build(program, goal, transformation)


def _build(program: Program, goal: Any, transformation: str | None) -> Any:
    import pyomo.environ as pyo

    model: Any = pyo.ConcreteModel(name=program.name)
    names = [(program.users[n], program.servers[i]) for n, i in zip(program.pair_users, program.pair_servers, strict=True)]
    largest = program.largest()
    if program.integral:
        largest = np.floor(largest * (1 + FITS) + FITS)
    chooses = goal.feature is Feature.DISJUNCTIVE
    bounded = chooses or program.integral
    start = largest / (1.0 + max(program.n_pairs, 1))
    model.pairs = pyo.Set(initialize=names, dimen=2)
    model.x = pyo.Var(model.pairs, domain=pyo.NonNegativeIntegers if program.integral else pyo.NonNegativeReals)
    x = [model.x[name] for name in names]
    for p, variable in enumerate(x):
        if bounded:
            variable.setub(float(largest[p]))
        if goal.has_gradient:
            variable.set_value(float(start[p]))

    kinds = program.limits.kinds
    for kind, component in COMPONENT.items():
        rows = np.flatnonzero(kinds == kind)
        if rows.size:
            labels = _labels(program, rows)
            model.add_component(component, pyo.Constraint(list(labels)))
            for label, row in labels.items():
                if program.limits.matrix.indptr[row] < program.limits.matrix.indptr[row + 1]:  # Pyomo has no rows without a variable
                    body = row_of(program.limits.matrix, row, x)
                    getattr(model, component).add(label, body <= float(program.limits.bounds[row]))

    members = program.members
    model.utility = pyo.Expression([program.users[n] for n in members])
    for n in members:
        own = np.flatnonzero(program.pair_users == n)
        model.utility[program.users[n]] = pyo.quicksum(float(program.utilities[p]) * x[p] for p in own)
    reach = program.per_user(largest) > 0
    open_to = [int(n) for n in members if reach[n]]
    utility = {n: model.utility[program.users[n]] for n in members}
    value = _value(goal, model, x, utility, {n: program.users[n] for n in open_to})
    model.goal = pyo.Objective(expr=value, sense=pyo.maximize)
    if chooses and transformation is not None:
        pyo.TransformationFactory(f"gdp.{transformation}").apply_to(model)
    return model


@singledispatch
def _value(goal: Any, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    """Return what is maximised, with the variables and constraints that it takes; ``open_to`` are the users who can have something."""
    raise TypeError(f"there is no Pyomo model of the goal {type(goal).__name__}")


@_value.register
def _(goal: Leximin | Equalize, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    import pyomo.environ as pyo

    model.level = pyo.Var(domain=pyo.NonNegativeReals)
    model.share = pyo.Constraint(list(open_to.values()))
    for n, name in open_to.items():
        share = utility[n] / float(goal.weights[n])
        model.share.add(name, share == model.level if goal.is_equal else share >= model.level)
    if not open_to:
        model.level.fix(0.0)
    return model.level


@_value.register
def _(goal: Total, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    import pyomo.environ as pyo

    return pyo.quicksum(float(goal.weights[n]) * each for n, each in utility.items())


@_value.register
def _(goal: AlphaFair, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    import pyomo.environ as pyo

    power = 1 - goal.alpha
    return pyo.quicksum(float(goal.weights[n]) * (pyo.log(utility[n]) if power == 0 else utility[n] ** power / power) for n in open_to)


@_value.register
def _(goal: Tradeoff, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    import pyomo.environ as pyo

    power, e = 1 - goal.beta, goal.efficiency
    mean = pyo.log(pyo.quicksum(float(goal.weights[n]) * utility[n] ** power for n in open_to)) / power if open_to else 0.0
    return (1 - e) * mean + (e * pyo.log(pyo.quicksum(utility[n] for n in open_to)) if e and open_to else 0.0)


@_value.register
def _(goal: Disjunctive, model: Any, x: list[Any], utility: dict[int, Any], open_to: dict[int, str]) -> Any:
    return _alternatives(model, goal, x)


_FEATURES = {each.feature for each in (Leximin, Equalize, Total, AlphaFair, Tradeoff, Disjunctive)}


_OPENINGS = {
    LimitKind.TIME: "time of ",
    LimitKind.TASKS: "tasks of ",
    LimitKind.SLICE: "slice of ",
    LimitKind.PARALLELISM: "servers of ",
}


def _labels(program: Program, rows: IntArray) -> dict[str, int]:
    """Name limits of one kind, in their order, each by another name."""
    labels: dict[str, int] = {}
    for row in rows.tolist():
        label = _label(program, row)
        if label in labels:
            label = program.limit_name(row)
        labels[label if label not in labels else f"{label} (limit {row + 1})"] = row
    return labels


def _label(program: Program, row: int) -> str:
    """Name a limit within its component: the component's name need not be said twice."""
    name = program.limit_name(row)
    if program.limits.kinds[row] == LimitKind.SHARED:
        return name.removesuffix(" of the cluster")
    return name.removeprefix(_OPENINGS.get(program.limits.kinds[row], ""))


def row_of(matrix: sp.csr_array, row: int, columns: list[Any]) -> Any:
    """Return the left side of a row."""
    import pyomo.environ as pyo

    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return pyo.quicksum(float(a) * columns[p] for p, a in zip(matrix.indices[span], matrix.data[span], strict=True))


def _alternatives(model: Any, goal: Disjunctive, x: list[Any]) -> Any:
    import pyomo.environ as pyo
    from pyomo.gdp import Disjunct, Disjunction

    number = goal.auxiliary_upper.size
    model.auxiliary = pyo.Var(range(number), domain=pyo.NonNegativeReals)
    columns = [*x, *(model.auxiliary[j] for j in range(number))]
    for j in range(number):
        model.auxiliary[j].setub(float(goal.auxiliary_upper[j]))
    model.alternative = Disjunct([(c, k) for c, clause in enumerate(goal.clauses) for k in range(len(clause))])
    for c, clause in enumerate(goal.clauses):
        for k, alternative in enumerate(clause):
            disjunct = model.alternative[c, k]
            disjunct.row = pyo.Constraint(range(alternative.lower.size))
            matrix = sp.csr_array(alternative.matrix)
            for row in range(alternative.lower.size):
                lower, upper = (float(b) if np.isfinite(b) else None for b in (alternative.lower[row], alternative.upper[row]))
                if matrix.indptr[row] == matrix.indptr[row + 1]:  # 0 is within the bounds, or the alternative cannot be had
                    if not (alternative.lower[row] <= 0 <= alternative.upper[row]):
                        disjunct.deactivate()
                    continue
                body = row_of(matrix, row, columns)
                disjunct.row.add(row, body == lower if lower == upper else (lower, body, upper))
    numbers = range(len(goal.clauses))
    model.clause = Disjunction(numbers, rule=lambda m, c: [m.alternative[c, k] for k in range(len(goal.clauses[c]))])
    return pyo.quicksum(float(a) * column for a, column in zip(goal.preference, x, strict=True))


def known_name(name: str) -> str | None:
    """Return Pyomo's name of a solver, in any case of letters; None if it knows none of this name."""
    return next((each for each in _names() if each.lower() == name.lower()), None)


def _names() -> list[str]:
    import pyomo.environ as pyo

    return [each for each in pyo.SolverFactory if not each.startswith("_")]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One of Pyomo's solvers, and the options that the user gave for it; what it prints is kept in, unless it is known to print nothing."""

    found: Any
    name: str
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    is_silent: bool = False

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
    return Engine(found, name, dict(options or {}), name in _HIGHS or family == "gurobi")


def run(model: Any, engine: Engine, seconds: float) -> tuple[Status, float | None]:
    """Solve; the values are in the model then. Return the status and the bound on the goal, None if the solver gives none.

    Raises
    ------
    Unsupported
        The solver does not take an option of the user's, or gives no multipliers where they are asked for.
    FairoptError
        Pyomo or its solver failed.
    """
    how: dict[str, Any] = {"timelimit": max(seconds, 1e-3)} if np.isfinite(seconds) else {}
    try:
        with inside(), nullcontext() if engine.is_silent else unheard():
            return _run(model, engine.found, how)
    except FairoptError as error:
        raise engine.failure(error) from None


def _run(model: Any, found: Any, how: dict[str, Any]) -> tuple[Status, float | None]:
    from pyomo.solvers.plugins.solvers.persistent_solver import PersistentSolver

    keeps_model = isinstance(found, PersistentSolver)
    if keeps_model:
        found.set_instance(model)
    results = found.solve(*(() if keeps_model else (model,)), load_solutions=False, **how)
    status = status_of(results.solver.termination_condition)
    if status is Status.OPTIMAL and keeps_model:
        found.load_vars()
        if hasattr(model, "dual"):
            found.load_duals()
    elif status is Status.OPTIMAL:
        model.solutions.load_from(results)
    try:
        bound = float(results.problem.upper_bound)
    except (TypeError, ValueError):
        return status, None
    return status, bound if np.isfinite(bound) else None


def values(variables: list[Any]) -> FloatArray:
    """Return the values of variables; those that no row mentions have none, and are 0."""
    return np.array([0.0 if variable.value is None else float(variable.value) for variable in variables])


# In units, and back --------------------------------------------------------------------------------------------------------------


def in_units(program: Program, scale: FloatArray, goal: Any) -> Program:
    """Count the tasks of each pair in units of ``scale`` and limits in units of their bounds."""
    limits = program.limits
    unit = np.where(limits.bounds > 0, limits.bounds, 1.0)
    matrix = sp.csr_array(limits.matrix * scale / unit[:, None])
    scaled = Limits(matrix, np.where(limits.bounds > 0, 1.0, 0.0), limits.kinds, limits.keys)
    return dataclasses.replace(program, utilities=program.utilities * scale, limits=scaled, goal=goal)


def require_solved(status: Status, deadline: Deadline, known: dict[str, object]) -> None:
    """Raise what a status that is not optimal means."""
    if status is Status.TIME_LIMIT:
        raise deadline.passed(known)
    if status is not Status.OPTIMAL:
        raise FairoptError(f"Pyomo's solver did not solve a program that has a solution: {status.value}; try another solver")


def prices(model: Any, program: Program) -> FloatArray:
    """Return the multipliers of the limits; their sign is a convention of the solver's, and never differs between rows."""
    found = np.zeros(len(program.limits))
    for kind, name in COMPONENT.items():
        rows = np.flatnonzero(program.limits.kinds == kind)
        if rows.size:
            component = getattr(model, name)
            for j, label in zip(rows, component.index_set(), strict=True):
                found[j] = abs(float(model.dual.get(component[label], 0.0))) if label in component else 0.0
    return np.where(found > _NOISE * found.max(initial=0.0), found, 0.0)


def with_duals(model: Any) -> Any:
    """Ask for multipliers; return the model."""
    import pyomo.environ as pyo

    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return model
