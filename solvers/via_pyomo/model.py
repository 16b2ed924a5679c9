"""A program as a Pyomo ConcreteModel, with component names that a reader recognises.

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
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import AlphaFair, Disjunctive, Equalize, Feature, Leximin, LimitKind, Limits, Program, Total, Tradeoff
from fairopt.solvers.via_pyomo.running import inside

__all__ = ["COMPONENT", "build", "in_units", "prices", "row_of", "with_duals"]

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
_NOISE = 1e-12  # a multiplier below this part of the largest is none


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


def in_units(program: Program, scale: FloatArray, goal: Any) -> Program:
    """Count the tasks of each pair in units of ``scale`` and limits in units of their bounds."""
    limits = program.limits
    unit = np.where(limits.bounds > 0, limits.bounds, 1.0)
    matrix = sp.csr_array(limits.matrix * scale / unit[:, None])
    scaled = Limits(matrix, np.where(limits.bounds > 0, 1.0, 0.0), limits.kinds, limits.keys)
    return dataclasses.replace(program, utilities=program.utilities * scale, limits=scaled, goal=goal)


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
