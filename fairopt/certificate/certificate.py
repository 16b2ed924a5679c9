r"""Proof that an answer is what it claims to be, recomputed from the answer and its prices. Nothing that a solver says of
itself is believed.

Feasibility. The largest relative excess over any limit, and any negative task count.

Optimality and fairness of a leximin: by its levels, see ``fairopt.certificate.levels``.

Optimality of an alpha-fair goal. x is optimal if and only if sum_n phi[n] (U'[n] - U[n]) / U[n]^alpha <= 0 for every feasible x': the
total with weights phi[n] U[n]^-alpha has no better point than x. The residual is how much better one could be, by the bound of a total.
Where alpha is large these weights lie many orders of magnitude apart, and a user whose weight is next to nothing could lack much of what
it may have without being seen in the sum. So fairness is the largest violation of the conditions of optimality by a single user,
relative to that user's own money, and the room that some pair has left. And what users with all their tasks spend on servers beyond the
cheapest, in parts of what the others spend: it is lost in the digits of the price of their tasks, and keeps servers from the others. This
looks only at users whose tasks are worth the same everywhere.

Optimality of a trade-off of fairness and total, (1 - e) log M(U) + e log sum U: the same with its gradient, phi[n] U[n]^-beta + kappa,
where kappa = e / (1 - e) * sum phi[n] U[n]^(1-beta) / sum U[n] is computed from the answer. The goal g is concave, so g(U') - g(U) is at
most the gradient times U' - U; in these units the gradient times U is 1, and the residual bounds how much larger the goal could be.

Equilibrium and alternatives: the largest violation of the condition that defines them, see ``fairopt.certificate.conditions``.

Optimality of a total: sum of weights u x <= p.b + sum over pairs of max(0, weights u - A'p) * largest x, again for any p >= 0.

Whole tasks have no prices: the residual of optimality is the gap between the best solution and the bound of branch and cut,
as the engine reports it. Greedy schedules and approximations claim no optimum: of them, feasibility is all that is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.certificate.conditions import bottleneck_violation, clause_violation, kkt_violation, room_left
from fairopt.certificate.levels import level_gaps
from fairopt.errors import CertificateError
from fairopt.instance import FloatArray, Instance
from fairopt.program import AlphaFair, Disjunctive, Equalize, Equilibrium, Leximin, Program, Solution, Total, Tradeoff
from fairopt.program.parallelism import servers_at_once
from fairopt.wording import contrast, joined

__all__ = ["Certificate", "allocation_excess", "certify", "marginal_worth"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Relative residuals of an answer: 0 is perfect, rounding leaves about 1e-15.

    Attributes
    ----------
    feasibility : float
        Largest relative excess over a limit.
    optimality : float
        How much higher some level (or the total) could be at most.
    fairness : float
        How much some user could rise at most without hurting one at or below its level, or may have of what those below lack; of an
        alpha-fair goal the largest free part of what stops a pair; 0 where the goal has no levels.
    whole_tasks : bool
        Then optimality is the gap that branch and cut reports, not recomputed.
    greedy : bool
        Only feasibility was checked, and nothing else is claimed: optimality, fairness and ``worst`` are not numbers.
    approximate : bool
        The same of an algorithm that approximates another.
    best_found : bool
        The same of whole tasks that branch and cut had found when its time was up: not proved to be the best.

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

    @property
    def reservation(self) -> str:
        """What is always said with the answer, unless it claims to be exact: "greedy", "approximate", "best found" or ""."""
        return "greedy" if self.greedy else "approximate" if self.approximate else "best found" if self.best_found else ""

    @property
    def worst(self) -> float:
        """The largest of the three; not a number if one of them is not."""
        return float(np.max([self.feasibility, self.optimality, self.fairness]))

    def require(self, tolerance: float, notion: str, *engines: str, instead: str = "another solver") -> None:
        """Raise where the worst residual exceeds the tolerance (or is not a number); where no optimum is claimed, feasibility.

        ``engines`` are those whose best answer this is, and ``instead`` is what to try next.
        """
        if not (self.feasibility if self.reservation else self.worst) <= tolerance:
            quoted = [f'"{engine}"' for engine in engines]
            residuals = ", ".join(
                f"{name} {contrast(getattr(self, name), tolerance, 'e', 1)[0]}" for name in ("feasibility", "optimality", "fairness")
            )
            raise CertificateError(
                f'the answer of {joined(quoted)} for "{notion}" fails its check: {residuals}, allowed {tolerance:.1e}; '
                f"try {instead} or a larger tolerance"
            )

    @classmethod
    def combine(cls, parts: list[Certificate]) -> Certificate:
        """Return the worst of each residual."""
        residuals = np.array([(part.feasibility, part.optimality, part.fairness) for part in parts]).reshape(-1, 3)
        feasibility, optimality, fairness = residuals.max(axis=0, initial=0.0).tolist()
        return cls(feasibility, optimality, fairness, any(part.whole_tasks for part in parts))


def certify(program: Program, solution: Solution) -> Certificate:
    """Recompute the residuals of a solution of a program: of every goal but Separate, which is certified server by server.

    Parameters
    ----------
    program : Program
        With a goal Leximin, Equalize, Total, AlphaFair, Tradeoff, Equilibrium or Disjunctive; its ``part`` of each server where the
        goal is Separate.
    solution : Solution
        Where a number of it is not finite, all residuals are infinite.
    """
    numbers = [solution.x, *(stage.prices for stage in solution.stages), [stage.value for stage in solution.stages], solution.prices]
    if not all(np.isfinite(array).all() for array in numbers if array is not None):
        return Certificate(float("inf"), float("inf"), float("inf"))
    feasibility = _excess(program, solution.x)
    if program.integral:
        fractional = float(np.abs(solution.x - np.round(solution.x)).max(initial=0.0))
        gap = float("inf") if solution.gap is None else solution.gap
        return Certificate(max(feasibility, fractional), gap, 0.0, whole_tasks=True)
    if isinstance(program.goal, Total):
        return Certificate(feasibility, _total_gap(program, program.goal.weights, solution), 0.0)
    if isinstance(program.goal, AlphaFair | Tradeoff):
        worth = marginal_worth(program, program.goal, solution.x)
        prices = np.zeros(len(program.limits)) if solution.prices is None else solution.prices
        unfair = max(room_left(program, solution.x), kkt_violation(program, program.goal, solution.x, prices))
        return Certificate(feasibility, _total_gap(program, worth, solution, any_scale=True), unfair)
    if isinstance(program.goal, Equilibrium):
        return Certificate(feasibility, 0.0, bottleneck_violation(program, program.goal, solution.x))
    if isinstance(program.goal, Disjunctive):
        return Certificate(
            feasibility,
            float("inf") if solution.gap is None else solution.gap,
            clause_violation(program.goal, solution.x, solution.auxiliary),
        )
    assert isinstance(program.goal, Leximin | Equalize)
    optimality, fairness = level_gaps(program, program.goal, solution)
    return Certificate(feasibility, optimality, fairness)


def allocation_excess(instance: Instance, tasks: FloatArray, sharing: str) -> float:
    """Return the largest relative violation of the instance by (users, servers) tasks, straight from the instance's own arrays."""
    worst = float(np.abs(tasks[~instance.eligibility]).max(initial=0.0))
    worst = max(worst, float(-tasks.min(initial=0.0)))
    per_user = tasks.sum(axis=1)
    limited = np.isfinite(instance.tasks)
    worst = max(worst, _relative(per_user[limited], instance.tasks[limited]))
    some = np.flatnonzero(instance.limited)
    if some.size:
        worst = max(worst, _relative(servers_at_once(instance, tasks)[some], instance.parallelism[some]))
    if sharing == "tdm":
        rates = instance.rates
        used = np.divide(tasks, rates, out=np.zeros_like(tasks), where=(rates > 0) & np.isfinite(rates)).sum(axis=0)
        return max(worst, _relative(used, np.ones_like(used)))
    return max(worst, _relative(tasks.T @ instance.demands, instance.row_capacity))


def _relative(used: FloatArray, allowed: FloatArray) -> float:
    excess = used - allowed
    if not excess.size:
        return 0.0
    return float(np.max(np.divide(excess, allowed, out=excess.copy(), where=allowed > 0), initial=0.0))


def _excess(program: Program, x: FloatArray) -> float:
    return max(_relative(program.limits.matrix @ x, program.limits.bounds), float(-x.min(initial=0.0)))


def marginal_worth(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray) -> FloatArray:
    """Return the gradient of the goal with respect to U[n], (users,), up to a common factor; 0 without a column.

    Scaled so that the largest is 1: only ratios matter, and powers of small utilities would overflow.
    """
    level = program.per_user(program.utilities * x)
    worth = np.full(level.size, -np.inf)
    members = program.members[program.per_user(program.largest())[program.members] > 0]
    worth[members] = goal.log_worth(level)[members]
    return np.exp(worth - worth.max(initial=-np.inf, where=np.isfinite(worth))) if members.size else np.zeros(level.size)


def _total_gap(program: Program, weights: FloatArray, solution: Solution, any_scale: bool = False) -> float:
    """Return how much larger sum of weights U can be for any feasible x, relative; prices may be given in any unit if asked for."""
    worth = weights[program.pair_users] * program.utilities
    prices = np.zeros(len(program.limits)) if solution.prices is None else np.maximum(solution.prices, 0.0)
    reached = float(worth @ solution.x)
    cost = np.asarray(program.limits.matrix.T @ prices)
    income = float(prices @ program.limits.bounds)
    scales = [1.0]
    if any_scale and income > 0:
        scales = [reached / income]  # at an optimum, what the limits are worth is what the users gain
        valued = worth > 0
        if (cost[valued] > 0).all():  # the least at which no pair is worth more than it costs: rounding at a million pairs adds up
            scales.append(float((worth[valued] / cost[valued]).max(initial=0.0)))
    largest = program.largest()
    bound = min(scale * income + float(np.maximum(worth - scale * cost, 0.0) @ largest) for scale in scales)
    return max(bound - reached, 0.0) / bound if bound > 0 else 0.0
