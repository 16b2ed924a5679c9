r"""The residuals of an answer, recomputed from the answer and its dual prices. What a solver reports about itself is not used.

*Feasibility.* The largest relative excess over any limit, and the most negative task count. Of what queues keep
(`fairopt.program.kept_parts`) all rows are checked, also those that the program did not need.

*Leximin.* Optimality and fairness are proved level by level: ``fairopt.certificate.levels``.

*Finish times.* The levels, as those of a leximin: ``fairopt.certificate.finish_times``.

*Total.* By weak duality, sum of weights u x <= p.b + sum over pairs of max(0, weights u - A'p) * largest x, for any p >= 0. Optimality is
the relative gap between this bound and the value of the answer.

*Alpha-fair goal.* x is optimal if and only if sum_n phi[n] (U'[n] - U[n]) / U[n]^alpha <= 0 for every feasible x', that is, if x maximises
the total with weights phi[n] U[n]^-alpha. Optimality is the gap of this total. For large alpha the weights differ by many orders of
magnitude, and the sum does not show a user with a tiny weight that lacks most of what it could have. So fairness is the largest of

* the violation of the KKT conditions by a single user, relative to what this user spends;
* the room left of a pair;
* what users that run all their tasks spend on servers beyond the cheapest way to run them, relative to the spending of the others. The
  price of the tasks of such a user can be so large that its other spending is lost to rounding, although it takes servers from others.
  Only users whose tasks have the same worth on all servers are checked.

Under rules, an optimum may leave room: the price of a limit that is not full counts as less instead (`ruled_violation` in
``fairopt.certificate.conditions``).

All of these are differences of the goal. ``distance`` bounds the distance of each user's utility from its optimum, by the gap and the
curvature of the goal (``fairopt.certificate.distance``). Where that proves little, ``doubt`` estimates the distance: what some users pay
may be smaller than the rounding of what others pay (``fairopt.certificate.hidden_prices``). Under rules of several users, ``doubt`` is 0:
nothing is known.

*Trade-off*, (1 - e) log M(U) + e log sum U: the same, with the gradient phi[n] U[n]^-beta + kappa, where kappa = e / (1 - e) * sum phi[n]
U[n]^(1-beta) / sum U[n] is computed from the answer. The goal g is concave, so g(U') - g(U) is at most the gradient times U' - U. The
gradient is scaled such that its product with U is 1, so the residual bounds how much larger g could be.

*Equilibrium and alternatives.* The largest violation of the condition that defines them: ``fairopt.certificate.conditions``.

*Whole tasks*, and the best of all alternatives, have no dual prices. Optimality is the gap between the best solution and the bound of
branch and cut, as the engine reports it (``reported_gap``). Greedy schedules and approximations claim no optimum: only their feasibility
is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import isnan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairopt.certificate.conditions import bottleneck_violation, clause_violation, kkt_violation, room_left, ruled_violation
from fairopt.certificate.distance import proved_distance
from fairopt.certificate.finish_times import finish_time_gaps
from fairopt.certificate.hidden_prices import hidden_part
from fairopt.certificate.leximin_levels import level_gaps
from fairopt.certificate.nested_levels import nested_gaps
from fairopt.certificate.one_level import one_level_gaps
from fairopt.certificate.one_worth import alpha_fair_gaps
from fairopt.certificate.ruled_levels import ruled_gaps
from fairopt.certificate.tree_levels import tree_gaps
from fairopt.errors import CertificateError
from fairopt.instance import FloatArray, Instance
from fairopt.instance.ratios import safe_ratio
from fairopt.instance.rule_rows import rule_excess
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import (
    AllPairs,
    AlphaFair,
    Disjunctive,
    Equalize,
    Equilibrium,
    Feature,
    FinishTimes,
    Leximin,
    LimitKind,
    Nested,
    Program,
    Solution,
    Total,
    Tradeoff,
    TreeFilling,
)
from fairopt.program.kept_parts import counted_rows
from fairopt.program.parallelism import servers_at_once
from fairopt.show.drawing import ShowsItself
from fairopt.wording import contrast, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Certificate", "allocation_excess", "certify", "limit_excess", "marginal_worth"]


@dataclass(frozen=True, slots=True)
class Certificate(ShowsItself):
    """Relative residuals of an answer: 0 is perfect, rounding leaves about 1e-15.

    Attributes
    ----------
    feasibility : float
        Largest relative excess over a limit.
    optimality : float
        Upper bound on how much higher a level (or the total) could be.
    fairness : float
        Leximin: upper bound on how much a user could gain without harming a user no better off, or holds of what users at lower levels
        lack. Alpha-fair goals and trade-offs: the largest violation of a condition of optimality by a single user. Equilibria and
        alternatives: the largest violation of the condition that defines them. 0 for a total.
    whole_tasks : bool
        All tasks are whole.
    greedy : bool
        A greedy schedule. Only feasibility was checked: optimality, fairness and ``worst`` are nan.
    approximate : bool
        The same for an approximation.
    best_found : bool
        The same for the best whole tasks found within the time limit, which are not proved optimal.
    exact : bool
        Proved in rational arithmetic, without a tolerance: all residuals are exactly 0 (``solve(..., exact=True)``).
    distance : float or None
        Alpha-fair goals and trade-offs: a proved bound on the relative distance between a user's utility and its optimum, over all users;
        inf if it may be 1 or more. It grows with the square root of the residuals, since the goal is flat at the optimum, and ``worst``
        does not include it. None for other goals, and if nobody can run anything.
    reported_gap : bool
        Optimality is the gap that branch and cut reports; it is not recomputed.
    doubt : float
        Alpha-fair goals and trade-offs: an estimate of the largest part by which what a user has may differ from its optimum although all
        conditions of optimality hold to rounding. ``worst`` does not include it. It is 0 under rules of several users, where nothing is
        estimated.

    >>> Certificate(1e-16, 2e-12, 3e-11).worst
    3e-11
    """

    feasibility: float
    optimality: float
    fairness: float
    whole_tasks: bool = False
    greedy: bool = False
    approximate: bool = False
    best_found: bool = False
    exact: bool = False
    distance: float | None = None
    reported_gap: bool = False
    doubt: float = 0.0

    @property
    def unsure(self) -> float:
        """The largest of the three residuals and of the doubt; nan if one of the residuals is nan."""
        return _largest((self.worst, self.doubt))

    @property
    def qualifier(self) -> str:
        """Of an answer that is not claimed optimal: "greedy", "approximate" or "best found"; "" of one that is."""
        return "greedy" if self.greedy else "approximate" if self.approximate else "best found" if self.best_found else ""

    @property
    def reservation(self) -> str:
        """The former name of `qualifier`."""
        return self.qualifier

    @property
    def worst(self) -> float:
        """The largest of the three residuals; nan if one of them is nan."""
        return _largest((self.feasibility, self.optimality, self.fairness))

    def require(self, tolerance: float, notion: str, *engines: str, tried: str = "", instead: str = "another solver") -> None:
        """Refuse an answer whose worst residual (feasibility, if no optimum is claimed) exceeds the tolerance or is nan.

        Parameters
        ----------
        tolerance : float
            Largest relative error.
        notion : str
            Name of the notion, for the message.
        *engines : str
            The engines that took part in the answer.
        tried : str
            What has been tried besides, as a clause.
        instead : str
            What the message advises to try.

        Raises
        ------
        CertificateError
        """
        if not (self.feasibility if self.qualifier else self.worst) <= tolerance:
            quoted = [f'"{engine}"' for engine in engines]
            residuals = ", ".join(
                f"{name} {contrast(getattr(self, name), tolerance, 'e', 1)[0]}" for name in ("feasibility", "optimality", "fairness")
            )
            raise CertificateError(
                f'the answer of {joined(quoted)} for "{notion}" fails its check: {residuals}, allowed {tolerance:.1e}; '
                f"{f'{tried}; ' if tried else ''}try {instead} or a larger tolerance"
            )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per residual: its value, and what it bounds.

        >>> Certificate(1e-16, 2e-12, 3e-11).to_frame()["value"].to_dict()
        {'feasibility': 1e-16, 'optimality': 2e-12, 'fairness': 3e-11}
        """
        import pandas as pd

        meanings = {
            "feasibility": "largest excess over a limit, relative to it",
            "optimality": "the most by which a level, or the total, could be higher",
            "fairness": "the most that a user could gain without harm to a user no better off; or the violation of a condition",
        }
        if self.distance is not None:
            meanings["distance"] = "the largest relative distance of a user's optimum from what it has"
        if self.doubt > CERTIFIED:
            meanings["doubt"] = "an estimate of this distance where rounding hides prices or worths"
        rows = [(getattr(self, name), meaning) for name, meaning in meanings.items()]
        return pd.DataFrame(rows, index=pd.Index(list(meanings), name="residual"), columns=["value", "bounds"])

    @classmethod
    def combine(cls, parts: list[Certificate]) -> Certificate:
        """Return the largest of each residual, of the distances and of the doubts."""
        feasibility, optimality, fairness = (
            _largest((0.0, *(getattr(part, name) for part in parts))) for name in ("feasibility", "optimality", "fairness")
        )
        distance = max((part.distance for part in parts if part.distance is not None), default=None)
        whole, reported = (any(getattr(part, name) for part in parts) for name in ("whole_tasks", "reported_gap"))
        doubt = max((part.doubt for part in parts), default=0.0)
        return cls(feasibility, optimality, fairness, whole, distance=distance, reported_gap=reported, doubt=doubt)


def _largest(residuals: tuple[float, ...]) -> float:
    """Return the largest of some residuals; nan if one of them is nan."""
    return float("nan") if any(map(isnan, residuals)) else float(max(residuals))


def certify(program: Program, solution: Solution) -> Certificate:
    """Recompute the residuals of a solution. A program with the goal Separate is certified server by server instead.

    Parameters
    ----------
    program : Program
        Its goal is TreeFilling, Leximin, FinishTimes, Equalize, Total, AlphaFair, Tradeoff, Equilibrium or Disjunctive. For Separate,
        pass its ``part`` of each server.
    solution : Solution
        If it holds a number that is not finite, all residuals are infinite.
    """
    numbers = [
        solution.x,
        *solution.parts,
        *(stage.prices for stage in solution.stages),
        [stage.value for stage in solution.stages],
        solution.prices,
    ]
    if not all(np.isfinite(array).all() for array in numbers if array is not None):
        of_users = float("inf") if program.goal.has_gradient else None
        return Certificate(float("inf"), float("inf"), float("inf"), distance=of_users)
    if isinstance(program, AllPairs) and (isinstance(program.goal, AlphaFair) or len(solution.stages) == 1):
        return _of_tables(program, solution)
    feasibility = limit_excess(program, solution.x)
    if program.integral:
        fractional = float(np.abs(solution.x - np.round(solution.x)).max(initial=0.0))
        gap = float("inf") if solution.gap is None else solution.gap
        return Certificate(max(feasibility, fractional), gap, 0.0, whole_tasks=True, reported_gap=True)
    optimality, fairness, distance = _residuals(program.goal, program, solution, feasibility)
    reported = program.goal.feature is Feature.DISJUNCTIVE
    doubt = hidden_part(program, solution.x, solution.prices) if program.goal.has_gradient else 0.0
    return Certificate(feasibility, optimality, fairness, distance=distance, reported_gap=reported, doubt=doubt)


Residuals: TypeAlias = tuple[float, float, float | None]  # optimality, fairness, distance


@singledispatch
def _residuals(goal: Any, program: Program, solution: Solution, feasibility: float) -> Residuals:
    """Return what proves an answer to a goal: the residuals of optimality and fairness, and the distance of smooth goals."""
    raise TypeError(f"nothing proves an answer to the goal {type(goal).__name__}")


@_residuals.register
def _(goal: Leximin | Equalize, program: Program, solution: Solution, feasibility: float) -> Residuals:
    if not program.down_closed:
        return *ruled_gaps(program, goal, solution), None
    return *level_gaps(program, goal, solution), None


@_residuals.register
def _(goal: FinishTimes, program: Program, solution: Solution, feasibility: float) -> Residuals:
    return *finish_time_gaps(program, goal, solution), None


@_residuals.register
def _(goal: TreeFilling, program: Program, solution: Solution, feasibility: float) -> Residuals:
    return *tree_gaps(program, goal, solution), None


@_residuals.register
def _(goal: Nested, program: Program, solution: Solution, feasibility: float) -> Residuals:
    return *nested_gaps(program, goal, solution), None


@_residuals.register
def _(goal: Total, program: Program, solution: Solution, feasibility: float) -> Residuals:
    return _total_gap(program, goal.weights, solution), 0.0, None


@_residuals.register
def _(goal: AlphaFair | Tradeoff, program: Program, solution: Solution, feasibility: float) -> Residuals:
    prices = np.zeros(len(program.limits)) if solution.prices is None else solution.prices
    if program.down_closed:
        unfair = max(room_left(program, solution.x), kkt_violation(program, goal, solution.x, prices))
        gap = _total_gap(program, marginal_worth(program, goal, solution.x), solution, any_scale=True)
    else:
        gap, unfair = ruled_violation(program, goal, solution.x, prices)
    able = program.members[program.per_user(program.largest())[program.members] > 0]
    level = program.per_user(program.utilities * solution.x)[able]
    distance = proved_distance(goal, goal.weights[able], level, gap / (1 - gap) + feasibility if gap < 1 else np.inf)
    return gap, unfair, distance


@_residuals.register
def _(goal: Equilibrium, program: Program, solution: Solution, feasibility: float) -> Residuals:
    return 0.0, bottleneck_violation(program, goal, solution.x), None


@_residuals.register
def _(goal: Disjunctive, program: Program, solution: Solution, feasibility: float) -> Residuals:
    gap = float("inf") if solution.gap is None else solution.gap
    return gap, clause_violation(goal, solution.x, solution.auxiliary), None


def _of_tables(program: AllPairs, solution: Solution) -> Certificate:
    """Certify an alpha-fair optimum or a leximin of one level without an array of all pairs beside the tasks."""
    tasks = program.table(solution.x)
    prices = solution.prices if isinstance(program.goal, AlphaFair) else solution.stages[0].prices
    of_servers = program.prices_of_servers(np.zeros(len(program.limits)) if prices is None else prices)
    if isinstance(program.goal, AlphaFair):
        feasibility, optimality, fairness, distance, doubt = alpha_fair_gaps(program, program.goal, tasks, of_servers)
        return Certificate(feasibility, optimality, fairness, distance=distance, doubt=doubt)
    feasibility, optimality, fairness = one_level_gaps(program, tasks, solution.stages[0].value, of_servers)
    return Certificate(feasibility, optimality, fairness)


def allocation_excess(instance: Instance, tasks: FloatArray, sharing: str) -> float:
    """Return the largest relative violation of the instance's limits by tasks (users, servers), computed from the instance's arrays."""
    worst = max(0.0, float(-tasks.min(initial=0.0)), float(tasks.max(initial=0.0, where=~instance.eligibility)))
    per_user = tasks.sum(axis=1)
    limited = np.isfinite(instance.tasks)
    worst = max(worst, _relative(per_user[limited], instance.tasks[limited]))
    some = np.flatnonzero(instance.limited)
    if some.size:
        worst = max(worst, _relative(servers_at_once(instance, tasks)[some], instance.parallelism[some]))
    for row in counted_rows(instance, tasks):
        worst = max(worst, _relative(np.array([row.used(instance.kinds, tasks)]), np.array([row.bound])))
    if instance.shared_capacity.size:
        worst = max(worst, _relative(instance.usage_of_shared(tasks), instance.shared_capacity))
    worst = max(worst, rule_excess(instance, tasks))
    if sharing == "tdm":
        rates = instance.rates
        used = np.divide(tasks, rates, out=np.zeros_like(tasks), where=(rates > 0) & np.isfinite(rates)).sum(axis=0)
        return max(worst, _relative(used, np.ones_like(used)))
    return max(worst, _relative(instance.usage(tasks), instance.row_capacity))


def _relative(used: FloatArray, allowed: FloatArray) -> float:
    excess = used - allowed
    return float(np.divide(excess, allowed, out=excess, where=allowed > 0).max(initial=0.0))


def limit_excess(program: Program, x: FloatArray) -> float:
    """Return the largest relative excess of tasks x, (pairs,), over a limit of a program."""
    limits = program.limits
    used, worst = limits.used(x), max(float(-x.min(initial=0.0)), program.kept_excess(x))
    if program.down_closed:
        return max(_relative(used, limits.bounds), worst)
    ruled = limits.kinds == LimitKind.RULE
    size = (abs(limits.matrix) @ np.abs(x) + np.abs(limits.bounds))[ruled]  # what is compared: bounds may be 0, and sides cancel
    broken = float(safe_ratio(np.maximum((used - limits.bounds)[ruled], 0.0), size).max(initial=0.0))
    return max(_relative(used[~ruled], limits.bounds[~ruled]), broken, worst)


def marginal_worth(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray) -> FloatArray:
    """Return the gradient of the goal with respect to U[n], (users,), up to a common factor; 0 for users without a column.

    The largest is scaled to 1: only ratios matter, and powers of small utilities would overflow.
    """
    level = program.per_user(program.utilities * x)
    worth = np.full(level.size, -np.inf)
    members = program.members[program.per_user(program.largest())[program.members] > 0]
    worth[members] = goal.log_worth(level)[members]
    return np.exp(worth - worth.max(initial=-np.inf, where=np.isfinite(worth))) if members.size else np.zeros(level.size)


def _total_gap(program: Program, weights: FloatArray, solution: Solution, any_scale: bool = False) -> float:
    """Return the relative gap of sum weights[n] U[n]. With ``any_scale`` the unit of the prices does not matter."""
    worth = weights[program.pair_users] * program.utilities
    prices = np.zeros(len(program.limits)) if solution.prices is None else np.maximum(solution.prices, 0.0)
    reached = float(worth @ solution.x)
    cost = np.asarray(program.limits.transposed @ prices)
    income = float(prices @ program.limits.bounds)
    scales = [1.0]
    if any_scale and income > 0:
        scales = [reached / income]  # at an optimum both sides of the bound are equal
        valued = worth > 0
        if (cost[valued] > 0).all():  # the smallest at which no pair is worth more than it costs: rounding adds up
            scales.append(float((worth[valued] / cost[valued]).max(initial=0.0)))
    largest = program.largest()
    bound = min(scale * income + float(np.maximum(worth - scale * cost, 0.0) @ largest) for scale in scales)
    if bound == 0:
        return 0.0
    return max(bound - reached, 0.0) / bound if bound > 0 else float("inf")  # NaN is no bound
