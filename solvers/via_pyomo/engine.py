r"""Pyomo: any program as a ConcreteModel, solved through HiGHS or, ``solver="pyomo:NAME"``, any of Pyomo's solvers.

The model itself is built in `fairopt.solvers.via_pyomo.model`. Programs are brought to units of their own first: limits with bound 1,
tasks counted in what makes a unit of the user's level.

Leximin. With F the users already settled, at levels L[n], the next level is max t with U[n]/phi[n] >= t for the others and >= L[n] on
F. Its multipliers p >= 0 bound t; a user whose cheapest price q[n] of a unit of level is positive can rise by at most sigma (bound -
t) / q[n] in any optimal solution (``fairopt.certificate.levels``), and is settled where that is nothing. One linear program a level.

Alternatives. A union of polytopes is a MILP (gdp.bigm or gdp.hull), whose answers are good to a solver's tolerance of 1e-6 or 1e-9
only. So the MILP only *chooses*: with one alternative of each clause fixed, its rows hold together with the limits, a linear program
that is solved with its tolerances tightened by iterative refinement. If the choice turns out to be feasible within the MILP's
tolerance only, it is excluded and the MILP solved again. The gap is that between the point found and the MILP's bound."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, Unsupported
from fairopt.instance import FloatArray
from fairopt.program import Alternative, Disjunctive, Equalize, Feature, Leximin, Limits, Program, Solution, Stage, Total
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.via_highs.model import HighsModel, Status
from fairopt.solvers.via_pyomo import model as pyomo_model

__all__ = ["Pyomo", "to_model"]

_NOISE = 1e-12  # a dual below this part of the largest is none
_DIGITS = 1e-14
_SETTLED = 1e-9
_CHOICES = 50  # choices that turn out to be infeasible before giving up


def to_model(program: Program, transformation: str | None = "bigm") -> Any:
    """Return the ConcreteModel of a program: see `fairopt.solvers.via_pyomo.model`."""
    Pyomo.require()
    return pyomo_model.build(program, transformation)


class Pyomo(Backend):
    """Pyomo models, solved by HiGHS or any of Pyomo's solvers."""

    name = "pyomo"
    title = "Pyomo: models to extend and write, and choices among alternatives; HiGHS, or any of its solvers"
    features = frozenset({Feature.LEXIMIN, Feature.EQUALIZE, Feature.TOTAL, Feature.DISJUNCTIVE, Feature.INTEGRAL, Feature.SEVERAL_SERVERS})
    package = "pyomo"
    requirement = "pip install pyomo"
    takes_solver = True

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Build the model in units of its own, and solve it."""
        goal = program.goal
        if program.integral and isinstance(goal, Leximin | Equalize):
            raise Unsupported(f'"pyomo" does not solve a leximin over whole tasks, as "{program.name}" is here; use highs')
        if not (program.largest() > 0).any():
            return Solution(np.zeros(program.n_pairs), prices=np.zeros(len(program.limits)), gap=0.0, programs_solved=0)
        engine = pyomo_model.solver(self.within)
        if isinstance(goal, Disjunctive):
            return _choose(program, engine, deadline)
        if isinstance(goal, Total):
            return _total(program, goal, engine, deadline)
        assert isinstance(goal, Leximin | Equalize)
        return _levels(program, goal, engine, deadline)


def _in_units(program: Program, scale: FloatArray, goal: Any) -> Program:
    """Count the tasks of each pair in units of ``scale`` and limits in units of their bounds."""
    limits = program.limits
    unit = np.where(limits.bounds > 0, limits.bounds, 1.0)
    matrix = sp.csr_array(limits.matrix * scale / unit[:, None])
    scaled = Limits(matrix, np.where(limits.bounds > 0, 1.0, 0.0), limits.kinds, limits.keys)
    return dataclasses.replace(program, utilities=program.utilities * scale, limits=scaled, goal=goal)


def _solved(status: Status, deadline: Deadline, known: dict[str, object]) -> None:
    if status is Status.TIME_LIMIT:
        raise deadline.passed(known)
    if status is not Status.OPTIMAL:
        raise FairoptError(f"Pyomo's solver did not solve a program that has a solution: {status.value}; try another solver")


def _prices(model: Any, program: Program) -> FloatArray:
    """Multipliers of the limits; their sign is a convention of the solver's, and never differs between rows."""
    prices = np.zeros(len(program.limits))
    for kind, name in pyomo_model.COMPONENT.items():
        rows = np.flatnonzero(program.limits.kinds == kind)
        for j, label in zip(rows, getattr(model, name, ()), strict=False):
            prices[j] = abs(float(model.dual.get(getattr(model, name)[label], 0.0)))
    return np.where(prices > _NOISE * prices.max(initial=0.0), prices, 0.0)


def _with_duals(model: Any) -> Any:
    import pyomo.environ as pyo

    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return model


def _total(program: Program, goal: Total, engine: Any, deadline: Deadline) -> Solution:
    """One LP, or one MILP."""
    largest = program.largest()
    scale = np.ones(largest.size) if program.integral else np.where(largest > 0, largest, 1.0)
    worth = goal.weights[program.pair_users] * program.utilities * largest
    unit = float(worth.max()) or 1.0
    scaled = _in_units(program, scale, Total(goal.weights / unit))
    model = pyomo_model.build(scaled)
    model = model if program.integral else _with_duals(model)
    status, bound = pyomo_model.run(model, engine, deadline.left)
    _solved(status, deadline, {})
    x: FloatArray = np.maximum(pyomo_model.values(list(model.x.values())), 0.0)
    if program.integral:
        x = np.rint(x)
        reached = float(goal.weights[program.pair_users] * program.utilities @ x)
        bound = reached if np.isnan(bound) else bound * unit
        return Solution(x, gap=max(bound - reached, 0.0) / max(bound, unit * 1e-9), bound=max(bound, reached))
    bounds = np.where(program.limits.bounds > 0, program.limits.bounds, 1.0)
    return Solution(x * scale, prices=_prices(model, program) * unit / bounds)


def _levels(program: Program, goal: Leximin | Equalize, engine: Any, deadline: Deadline) -> Solution:
    """Raise levels until every user is settled, then give everybody exactly its level."""
    users, largest = program.pair_users, program.largest()
    per_level = program.utilities / goal.weights[users]
    reach = program.per_user(largest * per_level)
    rising = reach > 0
    unit = float(reach[rising].min()) / max(1, int(rising.sum())) ** 0.5
    scale = np.where(largest > 0, np.minimum(unit / per_level, largest), 1.0)
    scaled = _in_units(program, scale, dataclasses.replace(goal, weights=goal.weights * unit))
    per_level = per_level * scale / unit
    model = _with_duals(pyomo_model.build(scaled))
    variables = list(model.x.values())
    matrix = scaled.limits.matrix
    bounds = np.where(program.limits.bounds > 0, program.limits.bounds, 1.0)
    level = np.zeros(rising.size)
    stages: list[Stage] = []
    y, programs = np.zeros(users.size), 0
    while rising.any():
        status, _ = pyomo_model.run(model, engine, deadline.left)
        _solved(status, deadline, {"levels": [stage.value for stage in stages]})
        programs += 1
        y = np.maximum(pyomo_model.values(variables), 0.0) * (largest > 0)
        y /= max(1.0, float((matrix @ y).max(initial=0.0)))
        up = np.flatnonzero(rising)
        t = float(program.per_user(y * per_level)[up].min())
        prices = _prices(model, program)
        full = prices * unit / bounds
        if isinstance(goal, Equalize):
            settled = up
        else:
            q = np.full(rising.size, np.inf)
            np.minimum.at(q, users, (matrix.T @ prices) / per_level)
            below = ~rising & np.isfinite(q) & (q > 0)
            sigma = float(q[up].sum())
            if sigma <= 0:
                raise FairoptError("Pyomo's solver gave no multipliers, which prove a leximin; use another solver")
            worth = float(prices @ scaled.limits.bounds) * (1 - _DIGITS)
            gap = max((worth - float(q[below] @ level[below])) / sigma - t, 0.0)
            rise = np.divide(sigma * gap, q[up], out=np.full(up.size, np.inf), where=q[up] > 0)
            settled = up[(rise <= _SETTLED * t) | (rise <= rise.min())]
        stages.append(Stage(t * unit, settled, full))
        level[settled] = t
        rising[settled] = False
        if not isinstance(goal, Equalize):
            for n in settled:
                name = program.users[n]
                model.share[name].set_value(model.utility[name] / float(goal.weights[n] * unit) >= t)
    reached = program.per_user(y * per_level)
    factor = np.divide(level, reached, out=np.zeros_like(level), where=reached > 0)
    return Solution(y * factor[users] * scale, tuple(stages), programs_solved=programs)


# Alternatives --------------------------------------------------------------------------------------------------------------------


def _choose(program: Program, engine: Any, deadline: Deadline) -> Solution:
    """Let the MILP choose one alternative of every clause, then solve the linear program of that choice."""
    goal = program.goal
    assert isinstance(goal, Disjunctive)
    largest = program.largest()
    scale = np.ones(largest.size) if program.integral else np.where(largest > 0, largest, 1.0)
    reach = np.concatenate([largest, goal.auxiliary_upper])
    auxiliary_scale = np.where(goal.auxiliary_upper > 0, goal.auxiliary_upper, 1.0)
    column_scale = np.concatenate([scale, auxiliary_scale])
    unit = float(np.abs(goal.preference * largest).max(initial=0.0)) or 1.0
    scaled = _in_units(
        program,
        scale,
        Disjunctive(
            goal.preference * scale / unit,
            tuple(tuple(_scaled(alternative, reach, column_scale) for alternative in clause) for clause in goal.clauses),
            goal.auxiliary_upper / auxiliary_scale,
        ),
    )
    within = scaled.goal
    assert isinstance(within, Disjunctive)
    model = pyomo_model.build(scaled)
    for attempt in range(_CHOICES):
        status, bound = pyomo_model.run(model, engine, deadline.left)
        _solved(status, deadline, {})
        point = pyomo_model.values([*model.x.values(), *model.auxiliary.values()])
        chosen = [_held(model, clause, c) for c, clause in enumerate(within.clauses)]
        exact = _exactly(scaled, within, chosen, point, deadline)
        if exact is not None:
            value = float(within.preference @ exact[: largest.size])
            gap = 0.0 if np.isnan(bound) else max(bound - value, 0.0) / max(abs(bound), 1.0)
            x = exact[: largest.size] * scale
            return Solution(
                x,
                gap=gap,
                bound=None if np.isnan(bound) else max(bound, value) * unit,
                programs_solved=2 * (attempt + 1),
                auxiliary=exact[largest.size :] * auxiliary_scale,
            )
        _exclude(model, chosen)
    raise FairoptError(f"{_CHOICES} choices of the MILP were feasible within its tolerance only; please report the instance")


def _scaled(alternative: Alternative, reach: FloatArray, column_scale: FloatArray) -> Alternative:
    """Bring columns and rows of an alternative to units of their own."""
    size = np.asarray(abs(alternative.matrix) @ reach)
    for bound in (alternative.lower, alternative.upper):
        size = np.maximum(size, np.where(np.isfinite(bound), np.abs(bound), 0.0))
    size[size == 0] = 1.0
    matrix = sp.csr_array(alternative.matrix * column_scale / size[:, None])
    return Alternative(matrix, alternative.lower / size, alternative.upper / size)


def _held(model: Any, clause: tuple[Alternative, ...], c: int) -> int:
    """Return the alternative that the MILP chose."""
    picked = [model.alternative[c, k].binary_indicator_var.value or 0.0 for k in range(len(clause))]
    return int(np.argmax(picked))


def _exclude(model: Any, chosen: list[int]) -> None:
    import pyomo.environ as pyo

    if not hasattr(model, "excluded"):
        model.excluded = pyo.ConstraintList()
    with pyomo_model.inside():
        model.excluded.add(pyo.quicksum(model.alternative[c, k].binary_indicator_var for c, k in enumerate(chosen)) <= len(chosen) - 1)


def _exactly(program: Program, goal: Disjunctive, chosen: list[int], point: FloatArray, deadline: Deadline) -> FloatArray | None:
    """Solve the linear program in which the chosen alternatives hold; None if it has no solution."""
    n = program.n_pairs
    picked = [goal.clauses[c][k] for c, k in enumerate(chosen)]
    none = sp.csr_array((len(program.limits), goal.auxiliary_upper.size))
    matrix = sp.csc_array(sp.vstack([sp.hstack([program.limits.matrix, none]), *(a.matrix for a in picked)], format="csc"))
    lower = np.concatenate([np.full(len(program.limits), -np.inf), *(a.lower for a in picked)])
    upper = np.concatenate([program.limits.bounds, *(a.upper for a in picked)])
    low, high = np.zeros(n + goal.auxiliary_upper.size), np.concatenate([program.largest(), goal.auxiliary_upper])
    if program.integral:
        low[:n] = high[:n] = np.round(point[:n])
    cost = np.concatenate([goal.preference, np.zeros(goal.auxiliary_upper.size)])
    model = HighsModel(cost, low, high, matrix, lower, upper, tolerance=1e-10)
    outcome = model.run(deadline.left)
    if outcome.status is Status.TIME_LIMIT:
        raise deadline.passed({})
    if outcome.status is not Status.OPTIMAL:
        return None
    return np.clip(model.refine(outcome, deadline.left).x, low, high)
