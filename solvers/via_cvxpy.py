"""CVXPY: every convex goal, as matrices, by any installed solver (``solver="cvxpy:SCS"``).

The default is Clarabel for alpha-fair goals and HiGHS for linear programs: a leximin needs multipliers of more digits than an interior
point without crossover gives. Columns are scaled to 1 = the most that a pair can have alone, and limits to bounds of 1; an alpha-fair goal
is stated in each user's own order of magnitude, found by a first solve at alpha = 1, so that poor and rich differ no more than they must.

Leximin, level by level: maximise t with U[n]/phi[n] >= t for the users not yet settled and >= their levels for the others.
The prices of the
limits bound how far each user could rise in any solution that reaches t (see ``fairopt.certificate.levels``):
who cannot is settled.

Answers are good to about as many digits as the tolerance of the solver allows; `fairopt.solving.policy` polishes them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError, SolverUnavailable
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Equalize, Feature, Leximin, Program, Solution, Stage, Total, Tradeoff
from fairopt.solvers.backend import Backend, Deadline, Status, Way

__all__ = ["CVXPY", "status_of"]

_OPTIONS: dict[str, dict[str, object]] = {  # tight: what a solver leaves open, the certificate counts
    "CLARABEL": {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "tol_ktratio": 1e-10},
    "SCS": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000},
    "HIGHS": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
}
_TIME_OPTION = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "HIGHS": "time_limit", "OSQP": "time_limit"}
_EXACT = 1e-13  # a residual that is rounding
_NOISE = 1e-9  # a multiplier below this part of the largest is none
_LEAST_LEVEL = 1e-12  # of a user at alpha = 1, in parts of what it could have
_LEAST_LOG_WEIGHT = -40.0  # relative to the largest: a solver cannot tell smaller weights apart


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


class CVXPY(Backend):
    """CVXPY with Clarabel, or with the solver that is named."""

    name = "cvxpy"
    title = "CVXPY: every convex goal, by Clarabel or any solver that CVXPY knows"
    features = frozenset({Feature.LEXIMIN, Feature.EQUALIZE, Feature.TOTAL, Feature.ALPHA_FAIR, Feature.TRADEOFF, Feature.SEVERAL_SERVERS})
    package = "cvxpy"
    requirement = "pip install cvxpy"
    takes_solver = True

    def ways(self, program: Program, tolerance: float) -> Sequence[Way]:
        """Return the one way; its answer to an alpha-fair goal or a trade-off has few digits, and is always polished."""
        (way,) = super().ways(program, tolerance)
        return (replace(way, polish_above=_EXACT) if isinstance(program.goal, AlphaFair | Tradeoff) else way,)

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Solve any program of these features."""
        solver = (self.within or "").upper() or ("CLARABEL" if isinstance(program.goal, AlphaFair | Tradeoff) else "HIGHS")
        task = _Task(_imported(solver), solver, program, deadline)
        if task.column.size == 0:
            return Solution(np.zeros(program.n_pairs), prices=np.zeros(len(program.limits)))
        if isinstance(program.goal, Total):
            solution = task.total(program.goal)
        elif isinstance(program.goal, AlphaFair):
            solution = task.alpha_fair(program.goal)
        elif isinstance(program.goal, Tradeoff):
            solution = task.tradeoff(program.goal)
        else:
            assert isinstance(program.goal, Leximin | Equalize)
            solution = task.levels(program.goal, tolerance)
        return replace(solution, seconds=task.seconds)


def _imported(solver: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cvxpy

        installed: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
    if solver not in installed:
        raise SolverUnavailable(f'CVXPY has no solver "{solver}" here; it has {", ".join(installed)}')
    return cvxpy


class _Task:
    """One program in scaled columns, and the solves it takes."""

    def __init__(self, cvxpy: Any, solver: str, program: Program, deadline: Deadline) -> None:
        self.cp, self.solver, self.program, self.deadline = cvxpy, solver, program, deadline
        largest = program.largest()
        self.column = np.flatnonzero(largest > 0)
        self.scale = largest[self.column]
        self.user = program.pair_users[self.column]
        self.row = np.flatnonzero(program.limits.bounds > 0)
        use = sp.csr_array(program.limits.matrix[self.row][:, self.column] * self.scale)
        self.use = sp.csr_array(use / program.limits.bounds[self.row][:, None])
        self.x = cvxpy.Variable(self.column.size, nonneg=True)
        self.limits = self.use @ self.x <= 1
        self.seconds = {"compile": 0.0}
        self.iterations = self.solved = 0

    def run(self, objective: Any, constraints: list[Any], known: dict[str, object]) -> None:
        """Solve, with whatever CVXPY and its solver throw or warn of kept inside."""
        options = dict(_OPTIONS.get(self.solver, {}))
        if np.isfinite(self.deadline.left):
            if self.deadline.left == 0.0:
                raise self.deadline.passed(known)
            if self.solver in _TIME_OPTION:
                options[_TIME_OPTION[self.solver]] = self.deadline.left
        problem = self.cp.Problem(self.cp.Maximize(objective), constraints)
        started = time.perf_counter()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                problem.solve(solver=self.solver, **options)
        except Exception as error:  # CVXPY's own, the solver's, and what bindings let through
            raise FairoptError(f"CVXPY with {self.solver} failed: {error}; try another solver") from None
        stats = problem.solver_stats
        self.seconds["compile"] += time.perf_counter() - started - float(getattr(stats, "solve_time", None) or 0.0)
        iterations = getattr(stats, "num_iters", None)
        self.iterations += int(iterations) if isinstance(iterations, int | float) else 0
        self.solved += 1
        status = status_of(problem.status)
        if status is Status.TIME_LIMIT or (status is not Status.OPTIMAL and self.deadline.left == 0.0):
            raise (
                self.deadline.passed(known)
                if self.deadline.seconds is not None
                else FairoptError(f"CVXPY with {self.solver} stopped at a limit of its own; try another solver")
            )
        if status is not Status.OPTIMAL or self.x.value is None:
            raise FairoptError(f"CVXPY with {self.solver} found no answer: {status.value}; try another solver")

    # Back to the program's units ---------------------------------------------------------------------------------------------

    def tasks(self) -> FloatArray:
        """Return x, made feasible: what a solver's tolerance puts above a limit is taken off."""
        y = np.maximum(self.x.value, 0.0)
        y /= max(1.0, float((self.use @ y).max(initial=0.0)))
        x = np.zeros(self.program.n_pairs)
        x[self.column] = y * self.scale
        return x

    def prices(self, unit: float, scaled: FloatArray | None = None) -> FloatArray:
        """Return the multipliers of the limits in the program's units."""
        scaled = np.asarray(self.limits.dual_value) if scaled is None else scaled
        prices = np.zeros(len(self.program.limits))
        prices[self.row] = np.maximum(scaled, 0.0) * unit / self.program.limits.bounds[self.row]
        return prices

    # Goals -------------------------------------------------------------------------------------------------------------------

    def total(self, goal: Total) -> Solution:
        """One linear program."""
        worth = (goal.weights[self.program.pair_users] * self.program.utilities)[self.column] * self.scale
        unit = float(worth.max())
        self.run((worth / unit) @ self.x, [self.limits], {})
        return Solution(self.tasks(), prices=self.prices(unit), iterations=self.iterations)

    def utilities(self, unit: FloatArray, number: int, group: np.ndarray) -> sp.csr_array:
        """Return the rows U[n] / unit[n] over the columns."""
        worth = self.program.utilities[self.column] * self.scale / unit[group]
        return sp.csr_array((worth, (group, np.arange(group.size))), shape=(number, group.size))

    def alpha_fair(self, goal: AlphaFair) -> Solution:
        """At alpha = 1 in units of what users could have, then at alpha in units of that answer."""
        scaled, cp, prices = self.program.scaled(), self.cp, np.zeros(self.row.size)
        weights, unit = goal.weights[scaled.members], np.maximum.reduceat(scaled.utilities, scaled.first)
        own = self.utilities(unit, scaled.n_users, scaled.user) @ self.x
        try:
            self.run(cp.sum(cp.multiply(weights / weights.max(), cp.log(own))), [self.limits], {})
            x, prices = np.maximum(self.x.value, 0.0), np.asarray(self.limits.dual_value)
            if goal.alpha != 1:
                level = unit * np.maximum(scaled.per_user(scaled.utilities * x) / unit, _LEAST_LEVEL)
                log_weight = np.log(weights) + (1 - goal.alpha) * np.log(level)
                parts = np.exp(np.maximum(log_weight - log_weight.max(), _LEAST_LOG_WEIGHT))
                power = cp.power(self.utilities(level, scaled.n_users, scaled.user) @ self.x, 1 - goal.alpha, approx=False)
                self.run(cp.sum(cp.multiply(parts / (1 - goal.alpha), power)), [self.limits], {})
                prices = np.asarray(self.limits.dual_value)
        except FairoptError:
            if self.x.value is None:
                raise
        return self.in_money(goal, prices)

    def tradeoff(self, goal: Tradeoff) -> Solution:
        """The goal as it stands, in units of what users could have."""
        scaled, cp = self.program.scaled(), self.cp
        unit = np.maximum.reduceat(scaled.utilities, scaled.first)
        own = self.utilities(unit, scaled.n_users, scaled.user) @ self.x
        log_unit = np.log(unit) - np.log(unit).mean()
        log_weight = np.log(goal.weights[scaled.members]) + (1 - goal.beta) * log_unit
        log_weight -= log_weight.max()
        if goal.beta < 1:
            powers = cp.log(cp.sum(cp.multiply(np.exp(log_weight), cp.power(own, 1 - goal.beta, approx=False))))
        else:
            powers = cp.log_sum_exp(log_weight + (1 - goal.beta) * cp.log(own))
        total = cp.log(cp.sum(cp.multiply(np.exp(log_unit - log_unit.max()), own)))
        e = goal.efficiency
        self.run((1 - e) / (1 - goal.beta) * powers + e * total, [self.limits], {})
        return self.in_money(goal, np.asarray(self.limits.dual_value))

    def in_money(self, goal: AlphaFair | Tradeoff, prices: FloatArray) -> Solution:
        """Return the answer with prices in the unit of the goal: at an optimum, users spend what their tasks are worth."""
        x, prices = self.tasks(), self.prices(1.0, prices)
        level = self.program.per_user(self.program.utilities * x)
        with np.errstate(all="ignore"):
            log_money = (goal.log_worth(level) + np.log(level))[level > 0]
            unit = float(np.exp(np.logaddexp.reduce(log_money) - np.log(prices @ self.program.limits.bounds)))
        return Solution(x, prices=prices * unit if 0 < unit < np.inf else prices, iterations=self.iterations)

    def levels(self, goal: Leximin | Equalize, tolerance: float) -> Solution:
        """One linear program a level."""
        cp, program = self.cp, self.program
        members, group = np.unique(self.user, return_inverse=True)
        reach = np.bincount(group, weights=program.utilities[self.column] * self.scale) / goal.weights[members]
        unit = float(np.exp(np.log(reach).mean()))
        rows = self.utilities(goal.weights[members] * unit, members.size, group)
        t = cp.Variable()
        level = np.zeros(members.size)
        rising = np.ones(members.size, bool)
        equal = isinstance(goal, Equalize)
        stages: list[Stage] = []
        while rising.any():
            constraints = [self.limits, rows @ self.x - t == 0 if equal else rows[np.flatnonzero(rising)] @ self.x - t >= 0]
            if not rising.all():
                constraints.append(rows[np.flatnonzero(~rising)] @ self.x >= level[~rising])
            self.run(t, constraints, {"levels": [stage.value for stage in stages]})
            value = float(t.value)
            prices = np.maximum(np.asarray(self.limits.dual_value), 0.0)
            prices[prices < _NOISE * prices.max(initial=0.0)] = 0.0
            q = np.full(members.size, np.inf)  # the cheapest price of one unit of level
            np.minimum.at(q, group, (self.use.T @ prices) / rows.data[np.argsort(rows.indices)])
            sigma = float(q[rising].sum())
            # In no solution that reaches t does a user rise further than this: see fairopt.certificate.levels.
            gap = max((float(prices.sum()) - float(q[~rising] @ level[~rising])) / sigma - value, 0.0) if sigma > 0 else np.inf
            with np.errstate(divide="ignore", invalid="ignore"):
                rise = np.where(rising & (q > 0), sigma * gap / q, np.inf)
            proved = rise <= 0.1 * tolerance * value
            settled = np.flatnonzero(rising if equal else proved if proved.any() else rise <= 2 * rise.min())
            stages.append(Stage(value * unit, members[settled], self.prices(unit, prices)))
            level[settled] = value
            rising[settled] = False
            if equal:
                break
        x = self.tasks()
        reached = program.per_user(x * program.utilities)[members] / goal.weights[members]
        factor = np.zeros(len(program.users))
        factor[members] = np.minimum(np.divide(level * unit, reached, out=np.ones(members.size), where=reached > 0), 1.0)
        return Solution(x * factor[program.pair_users], tuple(stages), iterations=self.iterations, programs_solved=self.solved)
