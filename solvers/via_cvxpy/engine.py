"""CVXPY: every convex goal, as matrices, by any installed solver (``solver="cvxpy:SCS"``).

The default is Clarabel for alpha-fair goals and HiGHS for linear programs: a leximin needs multipliers of more digits than an interior
point without crossover gives. Columns are scaled to 1 = the most that a pair can have alone, and limits to bounds of 1; an alpha-fair goal
is stated in the orders of magnitude of a first solve at alpha = 1: up to alpha = 4 in those of each user, above as a weighted norm.

Leximin, level by level: maximise t with U[n]/phi[n] >= t for the users not yet settled and >= their levels for the others. The prices of
the limits bound how far each user could rise in any solution that reaches t (see ``fairopt.certificate.levels``); a user who cannot rise is
settled.

Answers are good to about as many digits as the tolerance of the solver allows; `fairopt.solving.policy` polishes them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, NoSolution, Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import EXACT, NOTHING
from fairopt.processes.streams import unwarned
from fairopt.program import AlphaFair, Equalize, Feature, Leximin, LimitKind, Program, Solution, Stage, Total, Tradeoff, TreeFilling
from fairopt.solvers.backend import Backend, Deadline, Method, Status, final_levels, nothing_to_solve
from fairopt.solvers.leximin.levels import Course, Proof, Step, Together, settle_below, solve_levels
from fairopt.solvers.leximin.ruled import Scaled, shares_of_users
from fairopt.solvers.leximin.ruled_tree import solve_by_programs
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree
from fairopt.solvers.via_cvxpy.inside import imported, inside
from fairopt.solvers.via_cvxpy.running import Solver, require_point, status_of

__all__ = ["CVXPY", "status_of", "to_problem"]

log = logging.getLogger(__name__)

_PAIRS_OF_LEVELS = 5000  # up to which other goals are tried unasked
# Where Clarabel is faster than the interior point: benchmarks/results/choices.md.
_PAIRS_OF_NETWORKS = range(500, 10_001)  # of one place each,
_LIMITS_OF_NETWORKS = 100  # with so many limits of a server at least,
_TAKEN_OF_NETWORKS = 0.1  # of which a pair takes this part at most
_LEAST_LEVEL = 1e-12  # of a user at alpha = 1, in parts of what it could have
_STEEP = -3.0  # below this power a norm is easier to solve than a sum of powers
_LEAST_LOG_WEIGHT = -40.0  # relative to the largest: a solver cannot tell smaller weights apart


def to_problem(program: Program) -> Any:
    """Return the problem of a program with names: see `fairopt.solvers.via_cvxpy.model`."""
    CVXPY.require()
    from fairopt.solvers.via_cvxpy.model import build

    return build(program)


class CVXPY(Backend):
    """CVXPY with Clarabel, or with the solver that is named."""

    name = "cvxpy"
    title = "CVXPY: every convex goal, by Clarabel or any solver that CVXPY knows"
    features = frozenset(
        {
            Feature.TREE,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.ALPHA_FAIR,
            Feature.TRADEOFF,
            Feature.SEVERAL_SERVERS,
            Feature.RULES,
            Feature.INTEGRAL,
            Feature.WHOLE_BY_STOP_TIMES,
        }
    )
    package = "cvxpy"
    requirement = "pip install cvxpy"
    takes_solver = True
    takes_options = True
    most_pairs = 100_000  # an alpha-fair goal takes Clarabel 11 to 51 s

    @classmethod
    def solver_inside(cls, name: str) -> str | None:
        """Return CVXPY's name of a solver, whether it is installed or not."""
        with unwarned():
            from cvxpy.settings import SOLVERS
        return name.upper() if name.upper() in SOLVERS else None

    @classmethod
    def suits(cls, program: Program) -> bool:
        """Has the goal a gradient, so that one or two programs are solved, or is the program small enough for a linear program a level?

        Whole tasks are searched by a solver that is named: without a name, that would be HiGHS once more.
        """
        return not program.integral and (program.goal.has_gradient or program.n_pairs <= _PAIRS_OF_LEVELS)

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this proportional fairness in a network of many links?"""
        if not program.down_closed:
            return False
        is_proportional = isinstance(program.goal, AlphaFair) and program.goal.alpha == 1
        return is_proportional and program.n_pairs in _PAIRS_OF_NETWORKS and _is_network(program)

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the one method; its answer to an alpha-fair goal or a trade-off has few digits, and is always polished."""
        (method,) = super().methods(program, tolerance)
        return (replace(method, polish_above=EXACT) if program.goal.has_gradient else method,)

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Solve any program of these features."""
        solver = (self.within or "").upper() or ("CLARABEL" if program.goal.has_gradient else "HIGHS")
        within = Solver(imported(solver, self.options), solver, self.options)
        if deadline.seconds is not None and inside(solver).time_limit is None:
            log.warning('"%s" has no time limit of its own: it is stopped between its programs only', solver)
        if program.integral:
            return self._whole(within, program, deadline)
        if not program.down_closed and isinstance(program.goal, AlphaFair | Tradeoff):
            return _ruled_worths(within, program, program.goal, deadline)
        if not program.down_closed:
            return _ruled(within, program, tolerance, deadline)
        if not program.scaled().n_columns:  # CVXPY 1.8 has no variables without entries
            return nothing_to_solve(program)
        task = _Task(within, program, deadline)
        solve: dict[Feature, Callable[[Any, float], Solution]] = {
            Feature.TOTAL: task.total,
            Feature.ALPHA_FAIR: task.alpha_fair,
            Feature.TRADEOFF: task.tradeoff,
            Feature.TREE: task.filling,
            Feature.LEXIMIN: task.levels,
            Feature.EQUALIZE: task.levels,
        }
        with np.errstate(invalid="ignore"):  # CVXPY sums an array that holds anything, for its shape
            solution = solve[program.goal.feature](program.goal, tolerance)
        return replace(solution, iterations=task.iterations, programs_solved=task.solved, seconds=task.seconds)

    def _whole(self, solver: Solver, program: Program, deadline: Deadline) -> Solution:
        """Search whole tasks as `fairopt.solvers.via_highs` does, with this solver."""
        from fairopt.solvers.via_cvxpy.whole_model import WholeModel
        from fairopt.solvers.via_highs.whole import solve_whole_program

        if program.goal.has_gradient or isinstance(program.goal, Equalize):
            raise Unsupported(
                f'"cvxpy" finds whole tasks of leximins and totals alone, and "{program.name}" is neither; leave integral out'
            )
        return solve_whole_program(program, deadline, partial(WholeModel, solver))


def _is_network(program: Program) -> bool:
    """Has each user one place, whose server has many limits, of which each user takes few?"""
    limits = program.limits
    rows = np.flatnonzero(limits.of_kinds(LimitKind.CAPACITY))
    if program.members.size < program.n_pairs or rows.size < _LIMITS_OF_NETWORKS * len(program.servers):
        return False
    taken = int(np.diff(limits.matrix.indptr)[rows].sum())
    return taken <= _TAKEN_OF_NETWORKS * rows.size * program.n_pairs


def _ruled(solver: Solver, program: Program, tolerance: float, deadline: Deadline) -> Solution:
    """Solve a program with rules by the linear programs of `fairopt.solvers.leximin.ruled_tree`."""
    cp = solver.cp

    def solve(cost: FloatArray, matrix: sp.csr_array, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = cp.Variable(cost.size, nonneg=True)
        rows = matrix @ z <= right
        problem = cp.Problem(cp.Maximize(cost @ z), [rows])
        status = solver.run(problem, deadline, {})
        if status is Status.INFEASIBLE:
            raise NoSolution("nothing is feasible", {"infeasible": True})
        require_point(status, z.value, solver.name)
        return np.maximum(z.value, 0.0), solver.multipliers(rows)

    return solve_by_programs(program, solve, tolerance, deadline)


def _ruled_worths(solver: Solver, program: Program, goal: AlphaFair | Tradeoff, deadline: Deadline) -> Solution:
    """Solve a program with rules at alpha = 1, and then its goal in units of that answer; a polish gives the last digits."""
    cp, scaled = solver.cp, Scaled.of(program)
    own, members, reach = shares_of_users(scaled, program.utilities)
    y = cp.Variable(scaled.columns.size, nonneg=True)
    rows = scaled.matrix @ y <= scaled.right
    weights, unit = goal.weights[members], np.ones(members.size)
    goals = [cp.sum(cp.multiply(weights / weights.max(), cp.log(own @ y)))]
    found: tuple[FloatArray, FloatArray] | None = None
    for power in (1.0, goal.power) if goal.power != 1 else (1.0,):
        if power != 1:
            unit = np.maximum(own @ found[0], _LEAST_LEVEL) if found is not None else unit
            log_unit = np.log(reach[members] * unit)
            log_weight = np.log(weights) + (1 - power) * log_unit
            level = sp.csr_array(own / unit[:, None]) @ y
            if isinstance(goal, Tradeoff):
                goals.append(_tradeoff(cp, goal, level, log_weight - log_weight.max(), np.exp(log_unit - log_unit.max())))
            else:
                parts = np.exp(np.maximum(log_weight - log_weight.max(), _LEAST_LOG_WEIGHT))
                goals.append(cp.sum(cp.multiply(parts / (1 - power), cp.power(level, 1 - power, approx=False))))
        try:
            status = solver.run(cp.Problem(cp.Maximize(goals[-1]), [rows]), deadline, {})
            if status is Status.INFEASIBLE:
                raise NoSolution("nothing is feasible", {"infeasible": True})
            require_point(status, y.value, solver.name)
            found = np.maximum(y.value, 0.0), solver.multipliers(rows)
        except (NoSolution, Unsupported):
            raise
        except FairoptError:
            if found is None or deadline.left == 0.0:
                raise
    assert found is not None
    return Solution(scaled.point(found[0]), prices=found[1] / scaled.size)


def _tradeoff(cp: Any, goal: Tradeoff, own: Any, log_weight: FloatArray, units: FloatArray) -> Any:
    """Return the goal of levels in some units, whose weights have these logarithms."""
    if goal.beta < 1:
        powers = cp.log(cp.sum(cp.multiply(np.exp(log_weight), cp.power(own, 1 - goal.beta, approx=False))))
    else:
        powers = cp.log_sum_exp(log_weight + (1 - goal.beta) * cp.log(own))
    e = goal.efficiency
    return (1 - e) / (1 - goal.beta) * powers + e * cp.log(cp.sum(cp.multiply(units, own)))


class _Task:
    """One program in scaled columns, and the solves it takes."""

    def __init__(self, solver: Solver, program: Program, deadline: Deadline) -> None:
        self.cp, self.solver, self.program, self.deadline = solver.cp, solver, program, deadline
        self.scaled = program.scaled()
        self.use = self.scaled.use
        self.x = solver.cp.Variable(self.scaled.n_columns, nonneg=True)
        self.limits = self.use @ self.x <= 1
        self.seconds = {"compile": 0.0}
        self.iterations = self.solved = 0

    def run(self, objective: Any, constraints: list[Any], known: dict[str, object]) -> None:
        """Solve, and count."""
        problem = self.cp.Problem(self.cp.Maximize(objective), constraints)
        started = time.perf_counter()
        status = self.solver.run(problem, self.deadline, known)
        stats = problem.solver_stats
        self.seconds["compile"] += time.perf_counter() - started - float(getattr(stats, "solve_time", None) or 0.0)
        iterations = getattr(stats, "num_iters", None)
        self.iterations += int(iterations) if isinstance(iterations, int | float) else 0
        self.solved += 1
        require_point(status, self.x.value, self.solver.name)

    # Back to the program's units ---------------------------------------------------------------------------------------------

    def point(self) -> FloatArray:
        """Return the columns of the last solve, made feasible."""
        return self.feasible(self.x.value)

    def feasible(self, y: FloatArray) -> FloatArray:
        """Return columns without what a solver's tolerance puts above a limit or below 0."""
        y = np.maximum(y, 0.0)
        return np.asarray(y / max(1.0, float((self.use @ y).max(initial=0.0))))

    def prices(self) -> FloatArray:
        """Return the multipliers of whole limits, (rows,)."""
        return self.solver.multipliers(self.limits)

    # Goals -------------------------------------------------------------------------------------------------------------------

    def total(self, goal: Total, _: float) -> Solution:
        """One linear program."""
        scaled = self.scaled
        worth = goal.weights[scaled.members][scaled.user] * scaled.utilities
        unit = float(worth.max())
        self.run((worth / unit) @ self.x, [self.limits], {})
        return Solution(scaled.tasks(self.point()), prices=scaled.prices(self.prices() * unit))

    def utilities(self, unit: FloatArray) -> sp.csr_array:
        """Return the rows U[n] / unit[n] over the columns."""
        scaled = self.scaled
        entries = scaled.utilities / unit[scaled.user], (scaled.user, np.arange(scaled.n_columns))
        return sp.csr_array(entries, shape=(scaled.n_users, scaled.n_columns))

    def alpha_fair(self, goal: AlphaFair, _: float) -> Solution:
        """At alpha = 1 in units of what users could have, then at alpha in units of that answer.

        Where the second solve fails, the point of the first is the answer, for a polish to start from.
        """
        scaled, cp = self.scaled, self.cp
        weights, unit = goal.weights[scaled.members], np.maximum.reduceat(scaled.utilities, scaled.first)
        own = self.utilities(unit) @ self.x
        start = self.answer(cp.sum(cp.multiply(weights / weights.max(), cp.log(own))), "alpha = 1")
        if goal.alpha == 1:
            return self.in_money(goal, *start)
        level = unit * np.maximum(scaled.per_user(scaled.utilities * start[0]) / unit, _LEAST_LEVEL)
        return self.in_money(goal, *self.answer(self.power_mean(goal, weights, level), f"alpha = {goal.alpha:g}", start))

    def answer(self, objective: Any, what: str, instead: tuple[FloatArray, FloatArray] | None = None) -> tuple[FloatArray, FloatArray]:
        """Return columns and prices; where the solve fails, ``instead``, or the point where the solver stopped, without prices."""
        try:
            self.run(objective, [self.limits], {})
        except Unsupported:
            raise
        except FairoptError as error:
            if self.deadline.left == 0.0:
                raise
            if instead is None:
                if self.x.value is None or not np.isfinite(self.x.value).all():
                    raise
                instead = np.maximum(self.x.value, 0.0), np.zeros(self.scaled.rows.size)
            log.info('"cvxpy" goes on without an answer at %s: %s', what, error)
            return instead
        return np.maximum(self.x.value, 0.0), self.prices()

    def power_mean(self, goal: AlphaFair, weights: FloatArray, level: FloatArray) -> Any:
        """Return what grows with sum phi[n] U[n]^p / p, p = 1 - alpha: for steep p the weighted norm, whose terms are all of one order."""
        cp, p = self.cp, 1 - goal.alpha
        if p < _STEEP:
            log_unit = -np.log(weights) / p
            log_unit += (np.log(level) - log_unit).mean()
            return cp.pnorm(self.utilities(np.exp(log_unit)) @ self.x, p, approx=False)
        log_weight = np.log(weights) + p * np.log(level)
        parts = np.exp(np.maximum(log_weight - log_weight.max(), _LEAST_LOG_WEIGHT))
        return cp.sum(cp.multiply(parts / p, cp.power(self.utilities(level) @ self.x, p, approx=False)))

    def tradeoff(self, goal: Tradeoff, _: float) -> Solution:
        """The goal as it stands, in units of what users could have."""
        scaled = self.scaled
        unit = np.maximum.reduceat(scaled.utilities, scaled.first)
        own = self.utilities(unit) @ self.x
        log_unit = np.log(unit) - np.log(unit).mean()
        log_weight = np.log(goal.weights[scaled.members]) + (1 - goal.beta) * log_unit
        units = np.exp(log_unit - log_unit.max())
        self.run(_tradeoff(self.cp, goal, own, log_weight - log_weight.max(), units), [self.limits], {})
        return self.in_money(goal, self.x.value, self.prices())

    def in_money(self, goal: AlphaFair | Tradeoff, y: FloatArray, prices: FloatArray) -> Solution:
        """Return the answer with prices in the unit of the goal: at an optimum, users spend what their tasks are worth."""
        x, prices = self.scaled.tasks(self.feasible(y)), self.scaled.prices(prices)
        level = self.program.per_user(self.program.utilities * x)
        with np.errstate(all="ignore"):
            log_money = (goal.log_worth(level) + np.log(level))[level > 0]
            unit = float(np.exp(np.logaddexp.reduce(log_money) - np.log(prices @ self.program.limits.bounds)))
        return Solution(x, prices=prices * unit if 0 < unit < np.inf else prices)

    def levels(self, goal: Leximin | Equalize, tolerance: float) -> Solution:
        """One linear program a level."""
        program, members = self.program, np.zeros(len(self.program.users), bool)
        members[self.scaled.members] = True
        together = Together(members, goal.is_equal)
        return solve_levels(program, program.worth, _Levels(self, goal), together, settle_below(tolerance))

    def filling(self, goal: TreeFilling, tolerance: float) -> Solution:
        """One linear program a level, with the extra limits of the part."""
        made: list[_Task] = []

        def solver_of(of_part: Program, _: TreeGoal) -> _Levels:
            made.append(_Task(self.solver, of_part, self.deadline))
            return _Levels(made[-1], Leximin(np.ones(len(of_part.users))))

        found = solve_tree(self.program, goal, lambda _: solver_of, settle_below(tolerance), self.deadline)
        self.seconds["compile"] += sum(task.seconds["compile"] for task in made)
        self.iterations += found.iterations + sum(task.iterations for task in made)
        self.solved += found.programs_solved + sum(task.solved for task in made)
        return found


class _Levels:
    """The linear programs of levels, each stated anew; levels in one unit for all."""

    def __init__(self, task: _Task, goal: Leximin | Equalize) -> None:
        self.task, self.equal = task, goal.is_equal
        weights = goal.weights[task.scaled.members]
        self.unit = float(np.exp(np.log(task.scaled.reach / weights).mean()))
        self.rows = task.utilities(weights * self.unit)
        self.t = task.cp.Variable()

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Maximise t with every user on its course, or, for one equal level, everybody exactly at it."""
        task, scaled, t, unit = self.task, self.task.scaled, self.t, self.unit
        start, rate = (values[scaled.members] for values in (course.start / unit, course.rate))
        above = self.rows @ task.x - task.cp.multiply(rate, t) - start
        task.run(t, [task.limits, above == 0 if self.equal else above >= 0], final_levels(task.program, stages))
        y, prices = task.point(), task.prices()
        prices[prices < NOTHING * prices.max(initial=0.0)] = 0.0
        levels, q = np.zeros(course.start.size), np.zeros(course.start.size)
        levels[scaled.members] = (self.rows @ y) * unit
        cost = (scaled.use.T @ prices) / self.rows.data
        q[scaled.members] = np.minimum.reduceat(cost, scaled.first) / unit
        reached = course.of(scaled.members).reached(levels[scaled.members], float(t.value) * unit)
        proof = Proof.of(course.lowered(levels), scaled.prices(prices * unit), q, float(prices.sum()))
        return Step(scaled.tasks(y), levels, reached, proof)
