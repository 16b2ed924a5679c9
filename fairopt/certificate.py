r"""Proof that an answer is what it claims to be, recomputed from the answer and its prices. Nothing that a solver says of
itself is believed.

Feasibility. The largest relative excess over any limit, and any negative task count.

Optimality and fairness of a leximin. Let the users be settled level by level, t[1] < t[2] < ..., and look at level k: F are
the users settled before, at levels L[n], R the others. Take any prices p >= 0 of the limits and let

    q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair],        sigma = sum of q over R,

the cheapest price at which user n can be lifted by one unit of level. For every feasible x with levels s[n], s >= L on F,

    p.b >= p.Ax >= sum_n q[n] s[n] >= sum_F q[n] L[n] + sum_R q[n] s[n].

So min over R of s is at most  bound = (p.b - sum_F q L) / sigma,  and where s >= t[k] on R, user n of R has
s[n] <= t[k] + sigma (bound - t[k]) / q[n]. Hence two residuals, both relative to t[k]:

    optimality   (bound - t[k]) / t[k]                           no allocation has a higher k-th level
    fairness     sigma (bound - t[k]) / (q[n] t[k])              no allocation lifts n above level k without hurting somebody at or below it

for every n settled at level k. What a level lacks, however little, those above it have: who lives on a millionth of what others pay has
a millionth too much where these lack 1e-12. With gap[n] = bound - t of the level of each user of F, the prices of level k say how much
of it that may be:

    fairness     sum_F q[n] gap[n] / (sigma t[k])                level k is no higher at the expense of those settled before

A user who has the most that a limit of its own (its tasks, its parallelism; ``fairopt.own_limits``) lets
it have needs no proof. If every user is settled or at such a limit, the allocation is the leximin, by induction over k.
The bound holds for any prices, so the prices may come from anywhere, and t[k] is what
the answer reaches, not what the solver says it does (their difference counts as optimality). Capacities are taken to be known to 14
digits: 1e-14 p.b is subtracted from the bound, or the level of a user who takes a billionth of a server would be judged by the
rounding of the others. So that a price which is nothing but noise does not hide in these digits, and prove what it likes, the gap is at
least the sum of the small terms of

    sigma (bound - t[k]) = p.(b - Ax) + sum over pairs of x (A'p - q u / phi) + sum_R q (s - t[k]),

all of which are >= 0, each known to 14 digits of its own. A user whose part
q[n] s[n] of the spending is below 1e-13 proves nothing: that may be a solver's noise.

Optimality of an alpha-fair goal. x is optimal if and only if sum_n phi[n] (U'[n] - U[n]) / U[n]^alpha <= 0 for every feasible x': the
total with weights phi[n] U[n]^-alpha has no better point than x. The residual is how much better one could be, by the bound of a total.
Where alpha is large these weights lie many orders of magnitude apart, and a user whose weight is next to nothing could lack much of what
it may have without being seen in the sum. So fairness is the largest violation of the conditions of optimality by a single user,
relative to that user's own money, and the room that some pair has left.

Optimality of a trade-off of fairness and total, (1 - e) log M(U) + e log sum U: the same with its gradient, phi[n] U[n]^-beta + kappa,
where kappa = e / (1 - e) * sum phi[n] U[n]^(1-beta) / sum U[n] is computed from the answer. The goal g is concave, so g(U') - g(U) is at
most the gradient times U' - U; in these units the gradient times U is 1, and the residual bounds how much larger the goal could be.

Equilibrium and alternatives: the largest violation of the condition that defines them, see ``fairopt.conditions``.

Optimality of a total: sum of weights u x <= p.b + sum over pairs of max(0, weights u - A'p) * largest x, again for any p >= 0.

Whole tasks have no prices: the residual of optimality is the gap between the best solution and the bound of branch and cut,
as the engine reports it. Greedy schedules and approximations claim no optimum: of them, feasibility is all that is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.conditions import badly_spent, clause_violation, envy_of_servers, room_left
from fairopt.errors import CertificateError
from fairopt.instance import FloatArray, Instance
from fairopt.own_limits import OwnLimits
from fairopt.parallelism import servers_at_once
from fairopt.program import AlphaFair, Disjunctive, Equalize, Equilibrium, Leximin, Program, Solution, Total, Tradeoff

__all__ = ["Certificate", "allocation_excess", "certify", "marginal_worth"]

_NOISE = 1e-13  # a smaller part of all spending proves nothing
_DIGITS = 1e-14  # relative precision to which limits are taken to be known
_SMALL = 1e-4  # part of all spending below which a term of the gap counts by itself
_FULL = 1e-9  # a user with this relative part missing still has the most that a limit of its own allows


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

    def require(self, tolerance: float, notion: str, engine: str) -> None:
        """Raise where the worst residual exceeds the tolerance (or is not a number); where no optimum is claimed, feasibility."""
        if not (self.feasibility if self.reservation else self.worst) <= tolerance:
            raise CertificateError(
                f'the answer of "{engine}" for "{notion}" fails its check: feasibility {self.feasibility:.1e}, '
                f"optimality {self.optimality:.1e}, fairness {self.fairness:.1e}, allowed {tolerance:.1e}; "
                "try another solver or a larger tolerance"
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
        unfair = max(room_left(program, solution.x), badly_spent(program, program.goal, solution.x, prices))
        return Certificate(feasibility, _total_gap(program, worth, solution, any_scale=True), unfair)
    if isinstance(program.goal, Equilibrium):
        return Certificate(feasibility, 0.0, envy_of_servers(program, program.goal, solution.x))
    if isinstance(program.goal, Disjunctive):
        return Certificate(
            feasibility,
            float("inf") if solution.gap is None else solution.gap,
            clause_violation(program.goal, solution.x, solution.auxiliary),
        )
    assert isinstance(program.goal, Leximin | Equalize)
    optimality, fairness = _level_gaps(program, program.goal, solution)
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


def _level_gaps(program: Program, goal: Leximin | Equalize, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels."""
    users, limits = program.pair_users, program.limits
    number = len(program.users)
    per_level = program.utilities / goal.weights[users]
    levels = program.per_user(solution.x * per_level)
    open_to = program.per_user(program.largest()) > 0  # who can receive anything at all

    value = np.where(open_to, np.inf, 0.0)  # level at which each user was settled
    complete = ~open_to | _at_own_limit(program, levels, per_level)
    value[complete] = levels[complete]
    for stage in solution.stages:
        value[stage.users] = stage.value
    if np.isinf(value).any():  # somebody was never settled
        return 0.0, float("inf")
    if isinstance(goal, Equalize):
        spread = levels[open_to]
        unequal = float(np.ptp(spread) / spread.max()) if spread.size else 0.0
    else:
        unequal = 0.0

    optimality, fairness = unequal, 0.0
    lacking = np.zeros(number)  # by how much the level at which each user was settled may be too low
    for stage in solution.stages:
        if stage.prices is None:
            return float("inf"), float("inf")
        prices = np.maximum(stage.prices, 0.0)
        cost = np.asarray(limits.matrix.T @ prices)
        q = np.full(number, np.inf)
        np.minimum.at(q, users, cost / per_level)
        q[np.isinf(q)] = 0.0
        # R: settled here or later. Who is at a limit of its own at a level below this one counts as settled before.
        rising = value >= stage.value
        rising[stage.users] = True
        reached = float(levels[rising].min())
        sigma = float(q[rising].sum())
        if sigma <= 0 or reached <= 0:  # no proof, or a user with room left at level 0
            return float("inf"), float("inf")
        spent = float(prices @ limits.bounds)
        bound = (spent * (1 - _DIGITS) - float(q[~rising] @ levels[~rising])) / sigma
        # The same difference is a sum of terms >= 0: what is left free, what is bought too dear, who is above the level. Small ones, which
        # the digits of the whole would hide, count by themselves.
        free = np.maximum(limits.bounds * (1 - _DIGITS) - limits.matrix @ solution.x, 0.0)
        dear = np.maximum(cost * (1 - _DIGITS) - q[users] * per_level, 0.0)
        above = np.maximum(levels[rising] - reached * (1 + _DIGITS), 0.0)
        small = sum(
            float(price @ amount)
            for price, amount in (
                (np.where(prices * limits.bounds < _SMALL * spent, prices, 0.0), free),
                (np.where(cost * solution.x < _SMALL * spent, np.maximum(solution.x, 0.0), 0.0), dear),
                (np.where(q[rising] * levels[rising] < _SMALL * spent, q[rising], 0.0), above),
            )
        )
        gap = max(bound - reached, small / sigma, 0.0)
        taken = float(q[~rising] @ lacking[~rising]) / sigma  # how much of this level those settled before may lack
        lacking[stage.users] = gap
        told = float(np.abs(stage.value / levels[stage.users] - 1).max(initial=0.0)) if (levels[stage.users] > 0).all() else float("inf")
        optimality = max(optimality, gap / reached, told)
        own = q[stage.users]
        if isinstance(goal, Leximin):
            proves = bool((own * levels[stage.users] > _NOISE * spent).all())
            fairness = max(fairness, sigma * gap / (float(own.min()) * reached) if proves else float("inf"), taken / reached)
    return optimality, fairness


def _at_own_limit(program: Program, levels: FloatArray, per_level: FloatArray) -> np.ndarray:
    """Which users are at the most that a limit of their own lets them have, whatever the others do, (users,)."""
    return np.asarray(levels >= OwnLimits(program, per_level).caps()[0] * (1 - _FULL))
