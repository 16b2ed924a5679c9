r"""Pyomo: any program as a ConcreteModel, solved through HiGHS or, ``solver="pyomo:NAME"``, any of Pyomo's solvers.

The model itself is built in `fairopt.solvers.via_pyomo.model`. Programs are brought to units of their own first: limits with bound 1,
tasks counted in what makes a unit of the user's level.

Leximins, and one equal level, are in `fairopt.solvers.via_pyomo.levels`.

Alternatives. A union of polytopes is a MILP (gdp.bigm or gdp.hull), whose answers are good to a solver's tolerance of 1e-6 or 1e-9
only. So the MILP only *chooses*: with one alternative of each clause fixed, its rows hold together with the limits, a linear program
that is solved with its tolerances tightened by iterative refinement. If the choice turns out to be feasible within the MILP's
tolerance only, it is excluded and the MILP solved again. The gap is that between the point found and the MILP's bound; a solver that gives
no bound leaves it unknown, and the answer uncertified."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, NoSolution, Unsupported
from fairopt.instance import FloatArray
from fairopt.program import Alternative, Disjunctive, Feature, Program, Solution, Total
from fairopt.solvers.backend import Backend, Deadline, Status, nothing_to_solve
from fairopt.solvers.highs_model import FINEST, HighsModel, solved
from fairopt.solvers.via_pyomo import model as pyomo_model
from fairopt.solvers.via_pyomo import running
from fairopt.solvers.via_pyomo.levels import solve_filling, solve_levels
from fairopt.solvers.via_pyomo.ruled import solve_with_rules

__all__ = ["Pyomo", "to_model"]

_CHOICES = 50  # choices that turn out to be infeasible before giving up


def to_model(program: Program, transformation: str | None = "bigm") -> Any:
    """Return the ConcreteModel of a program: see `fairopt.solvers.via_pyomo.model`."""
    Pyomo.require()
    return pyomo_model.build(program, transformation)


class Pyomo(Backend):
    """Pyomo models, solved by HiGHS or any of Pyomo's solvers."""

    name = "pyomo"
    title = "Pyomo: models to extend and write, and choices among alternatives; HiGHS, or any of its solvers"
    features = frozenset(
        {
            Feature.TREE,
            Feature.WHOLE_BY_STOP_TIMES,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.DISJUNCTIVE,
            Feature.INTEGRAL,
            Feature.SEVERAL_SERVERS,
            Feature.RULES,
        }
    )
    package = "pyomo"
    requirement = "pip install pyomo"
    takes_solver = True
    takes_options = True
    most_pairs = 1000

    @classmethod
    def solver_inside(cls, name: str) -> str | None:
        """Return Pyomo's name of a solver, whether it is installed or not."""
        return running.known_name(name)

    @classmethod
    def suits(cls, program: Program) -> bool:
        """Are there alternatives, which no other engine solves? Else it is HiGHS once more, unless a solver is named."""
        return program.goal.feature is Feature.DISJUNCTIVE

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Build the model in units of its own, and solve it."""
        goal = program.goal
        if _is_searched(program):
            return self._whole(program, deadline)
        if not program.down_closed:
            return solve_with_rules(program, running.solver(self.within, self.options), deadline, tolerance)
        if not (program.largest() > 0).any():
            return nothing_to_solve(program)
        engine = running.solver(self.within, self.options)
        return _SOLVE[goal.feature](program, goal, engine, tolerance, deadline)

    def _whole(self, program: Program, deadline: Deadline) -> Solution:
        """Search whole tasks as `fairopt.solvers.via_highs` does, with this solver."""
        from fairopt.solvers.via_highs.whole import solve_whole_program
        from fairopt.solvers.via_pyomo.whole_model import WholeModel

        if program.goal.feature not in (Feature.LEXIMIN, Feature.TOTAL, Feature.TREE):
            raise Unsupported(f'"pyomo" finds whole tasks of leximins and totals alone, and "{program.name}" is neither; use highs')
        return solve_whole_program(program, deadline, partial(WholeModel, running.solver(self.within, self.options)))


def _is_searched(program: Program) -> bool:
    """Does the program take several models of whole numbers?"""
    return program.integral and program.goal.feature is not Feature.DISJUNCTIVE


def _total(program: Program, goal: Total, engine: Any, _: float, deadline: Deadline) -> Solution:
    """One LP."""
    largest = program.largest()
    scale = np.where(largest > 0, largest, 1.0)
    worth = program.worth * largest
    unit = float(worth.max()) or 1.0
    scaled = pyomo_model.in_units(program, scale, Total(goal.weights / unit))
    model = pyomo_model.with_duals(pyomo_model.build(scaled))
    status, _bound = running.run(model, engine, deadline.left)
    running.require_solved(status, deadline, {})
    x: FloatArray = np.maximum(running.values(list(model.x.values())), 0.0)
    bounds = np.where(program.limits.bounds > 0, program.limits.bounds, 1.0)
    return Solution(x * scale, prices=pyomo_model.prices(model, program) * unit / bounds)


# Alternatives --------------------------------------------------------------------------------------------------------------------


def _choose(program: Program, goal: Disjunctive, engine: Any, _: float, deadline: Deadline) -> Solution:
    """Let the MILP choose one alternative of every clause, then solve the linear program of that choice."""
    largest = program.largest()
    scale = np.ones(largest.size) if program.integral else np.where(largest > 0, largest, 1.0)
    reach = np.concatenate([largest, goal.auxiliary_upper])
    auxiliary_scale = np.where(goal.auxiliary_upper > 0, goal.auxiliary_upper, 1.0)
    column_scale = np.concatenate([scale, auxiliary_scale])
    unit = float(np.abs(goal.preference * largest).max(initial=0.0)) or 1.0
    scaled = pyomo_model.in_units(
        program,
        scale,
        Disjunctive(
            goal.preference * scale / unit,
            tuple(tuple(_scaled(alternative, reach, column_scale) for alternative in clause) for clause in goal.clauses),
            goal.auxiliary_upper / auxiliary_scale,
        ),
    )
    within = scaled.goal_as(Disjunctive)
    model = pyomo_model.build(scaled)
    for attempt in range(_CHOICES):
        status, bound = running.run(model, engine, deadline.left)
        if program.integral and status is Status.INFEASIBLE and not attempt:
            raise NoSolution(f'no whole tasks meet the conditions of "{program.name}"; leave integral out')
        running.require_solved(status, deadline, {})
        point = running.values([*model.x.values(), *model.auxiliary.values()])
        chosen = [_held(model, clause, c) for c, clause in enumerate(within.clauses)]
        exact = _exactly(scaled, within, chosen, point, deadline)
        if exact is not None:
            value = float(within.preference @ exact[: largest.size])
            x = exact[: largest.size] * scale
            return Solution(
                x,
                gap=None if bound is None else max(bound - value, 0.0) / max(abs(bound), 1.0),
                bound=None if bound is None else max(bound, value) * unit,
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
    with running.inside():
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
    model = HighsModel(cost, low, high, matrix, lower, upper, tolerance=FINEST)
    outcome = model.run(deadline.left)
    if outcome.status is Status.FAILED:  # that says nothing of the choice: once more, from no basis
        model.forget()
        outcome = model.run(deadline.left)
    if outcome.status in (Status.INFEASIBLE, Status.UNBOUNDED):  # all columns have bounds: HiGHS means that it is one of the two
        return None
    outcome = solved(outcome, deadline, {})
    return np.clip(model.refine(outcome, deadline.left).x, low, high)


_SOLVE: dict[Feature, Callable[[Program, Any, Any, float, Deadline], Solution]] = {
    Feature.LEXIMIN: solve_levels,
    Feature.EQUALIZE: solve_levels,
    Feature.TREE: solve_filling,
    Feature.TOTAL: _total,
    Feature.DISJUNCTIVE: _choose,
}
