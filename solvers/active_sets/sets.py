"""From an approximate solution of an alpha-fair program to the exact one, by its active sets.

The sets of used pairs and full limits are read off the approximate solution: of the two factors of every product in the KKT conditions
(`fairopt.solvers.active_sets.problem`), the relatively larger one counts as positive. With these sets fixed, the conditions are equations,

    A x = 1 on full limits,    t = V'x,    A'p = V y on used pairs,    y t^alpha = phi,

and Newton's method solves them. Where placements are not unique the system is singular: a small multiple of a metric makes it
quasi-definite, and selects a solution near the given one. Then the sets are corrected: pairs and prices that turned negative leave; pairs
that are worth more than they cost, and limits that overflow, join.

*Degenerate optima*: a limit is full at the price 0, or a pair that holds nothing has the reduced cost 0. Then both factors of the product
are about the square root of mu, and either set is right. The metric keeps a price that is almost 0 where it is, so the limit would keep
its slack. If the steps stall for this reason, a weaker metric lets the price go to 0.

*Negligible* users have so little that they affect no other user (at a small alpha, a small weight can ask for 1e-60 of what others have).
They are left out of the equations: each has its demand at the current prices, at its cheapest pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.settings import SETTINGS

__all__ = ["ActiveSets", "negligible_users", "solve_near", "solve_on_sets", "with_demands"]


@dataclass(frozen=True, slots=True, eq=False)
class ActiveSets:
    """Used pairs (columns,), full limits (limits,), and negligible users (users,)."""

    used: BoolArray
    full: BoolArray
    negligible: BoolArray


def solve_near(problem: AlphaFairProblem, near: Point) -> Point | None:
    """Return the exact solution near an approximate one, whose prices may be in any unit; None if it does not show the right sets."""
    x, p = near.x, near.p
    t = problem.utility(x)
    if not (t > 0).all():
        return None
    y = problem.worth(t)
    spent, earned = float(p.sum()), float(y @ t)
    p = p * (earned / spent) if spent > 0 else p
    worth = problem.v * y[problem.user]
    used = x * problem.v / t[problem.user] > 1 - worth / np.maximum(problem.cost(p), TINY)
    full = p / np.exp(problem.log_money_of_limits(x, (np.log(y) + np.log(t))[problem.user])) > 1 - problem.use(x)
    p = np.where(full, p, 0.0)
    return solve_on_sets(problem, Point(x, p), ActiveSets(used, full, negligible_users(problem, p)), SETTINGS.patience_at_end)


def solve_on_sets(
    problem: AlphaFairProblem, near: Point, sets: ActiveSets, patience: int = SETTINGS.patience, rounds: int = SETTINGS.rounds
) -> Point | None:
    """Return the exact solution near a point, correcting the sets of used pairs and full limits; None where that fails.

    Sets count as wrong after ``patience`` steps of Newton's method without progress; at most ``rounds`` of them are tried.
    """
    x, p, used, full, steps = near.x, near.p, sets.used, sets.full, 0
    in_equations = ~sets.negligible[problem.user]
    for _ in range(rounds):
        start = Point(np.where(used | ~in_equations, x, 0.0), np.where(full, p, 0.0))
        solved, y = _newton(problem, start, ActiveSets(used & in_equations, full, sets.negligible), patience)
        steps += solved.steps
        if y is None:
            return None
        x, p = solved.x, solved.p
        positive = Point(np.maximum(x, 0.0), np.maximum(p, 0.0), steps)
        if problem.kkt_violation(positive.x, positive.p) <= SETTINGS.exact:
            return positive
        worth = problem.v * y[problem.user]
        leave, unpriced = in_equations & used & (x < 0), full & (p < 0)
        join = in_equations & ~used & (problem.cost(p) - worth < -SETTINGS.joins * worth)
        over = ~full & (problem.use(x) > 1 + SETTINGS.overflows)
        if not (leave.any() or unpriced.any() or join.any() or over.any()):
            return None
        used, full = (used & ~leave) | join, (full & ~unpriced) | over
        x, p = positive.x, positive.p
        if (problem.utility(np.where(used | ~in_equations, x, 0.0)) <= 0).any():
            return None
    return None


# Negligible users ----------------------------------------------------------------------------------------------------------------


def _demand(problem: AlphaFairProblem, p: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the utility that each user would choose at prices p, and its cheapest pair, (users,)."""
    price = problem.cost(p) / problem.v
    order = np.lexsort((price, problem.user))
    cheapest = order[np.searchsorted(problem.user[order], np.arange(problem.n_users))]
    own = price[cheapest]
    if problem.has_total:  # the worth of the total pays a part of the price
        own = np.maximum(own - np.exp(problem.log_total_worth), 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp((problem.log_phi - np.log(own)) / problem.alpha), cheapest


def negligible_users(problem: AlphaFairProblem, p: FloatArray) -> BoolArray:
    """Return the users that demand next to nothing at prices p, (users,), on every pair that they may use: servers may be small."""
    if problem.alpha >= 1:
        return np.zeros(problem.n_users, bool)
    demand, cheapest = _demand(problem, p)
    price = problem.cost(p) / problem.v
    near = price <= (1 + SETTINGS.nearly_cheapest) * price[cheapest][problem.user]
    held = np.where(near, demand[problem.user] / problem.v, 0.0)  # relative to what the pairs can hold
    negligible = np.ones(problem.n_users, bool)
    negligible[problem.user[held >= SETTINGS.negligible]] = False
    return negligible


def with_demands(problem: AlphaFairProblem, x: FloatArray, p: FloatArray, negligible: BoolArray) -> FloatArray:
    """Return x with the demands of negligible users at prices p in place of what they have."""
    demand, cheapest = _demand(problem, p)
    x = np.where(negligible[problem.user], 0.0, x)
    x[cheapest[negligible]] = demand[negligible] / problem.v[cheapest[negligible]]
    return x


# Newton's method on fixed sets ---------------------------------------------------------------------------------------------------


def _metric(problem: AlphaFairProblem, at: Point, sets: ActiveSets, least: float) -> tuple[FloatArray, FloatArray]:
    """Return the metric of an interior point, of columns and of limits: pairs that hold little move little, and so do low prices.

    Sizes below the part ``least`` of what the user holds, or of the money of the limit's users, are raised to this part.
    """
    t = problem.utility(at.x)
    y = problem.worth(t)
    money, size = (y * t)[problem.user], np.maximum(at.x, least * t[problem.user] / problem.v)
    of_limit = np.exp(problem.log_money_of_limits(at.x, (np.log(y) + np.log(t))[problem.user]))
    absent = SETTINGS.absent / max(float(y[~sets.negligible].max(initial=0.0)), TINY)
    return (
        np.where(sets.used, SETTINGS.singular * money / size**2, SETTINGS.absent * problem.v * y[problem.user]),
        np.where(sets.full, SETTINGS.singular * of_limit / np.maximum(at.p, least * of_limit) ** 2, absent),
    )


def _newton(problem: AlphaFairProblem, start: Point, sets: ActiveSets, patience: int) -> tuple[Point, FloatArray | None]:
    """Solve the equations of these sets; return the point with the number of steps, and y (None if the steps do not converge)."""
    x, p, used, full, negligible = start.x, start.p, sets.used, sets.full, sets.negligible
    t = problem.utility(x)
    y = problem.worth(t)
    D, F_limits = _metric(problem, start, sets, SETTINGS.least)
    least, stalled, weak = np.inf, 0, False
    for step in range(SETTINGS.steps):
        if negligible.any():
            x = with_demands(problem, x, p, negligible)
            t = np.where(negligible, problem.utility(x), t)
            y = np.where(negligible, problem.worth(t), y)
        r_limits = np.where(full, 1.0 - problem.use(x), 0.0)
        r_utility = np.where(negligible, 0.0, t - problem.utility(x))
        r_pairs = np.where(used, problem.v * y[problem.user] - problem.cost(p), 0.0)
        r_worth, a = np.where(negligible, 0.0, problem.worth_residual(np.log(y), np.log(t))), problem.elasticity(np.log(t))
        parts = (r_limits, r_utility / t, r_worth, r_pairs / (problem.v * y[problem.user]))
        residual = float(max(np.abs(part).max(initial=0.0) for part in parts))
        stalled = 0 if residual < 0.5 * least else stalled + 1
        least = min(least, residual)
        if stalled >= patience and not weak and SETTINGS.nearly < residual < SETTINGS.mendable:
            D, F_limits = _metric(problem, Point(x, p), sets, SETTINGS.weak)
            stalled, weak = 0, True
        if (residual <= SETTINGS.rounding and (stalled or not residual)) or (stalled >= patience and residual < SETTINGS.close):
            return Point(x, p, step), y
        if stalled >= patience:
            break
        try:
            system = KKTSystem.factorised(problem.rows, D, np.concatenate([F_limits, t / (a * y)]), used)
            dx, dq = system.step(r_pairs, np.concatenate([r_limits, -(r_utility - t / a * r_worth)]))
        except (RuntimeError, ValueError, ArithmeticError):
            break
        dp, dy = dq[: problem.n_rows], np.where(negligible, 0.0, dq[problem.n_rows :])
        dt = np.where(negligible, 0.0, -t / a * (r_worth + dy / y))
        if not (np.isfinite(dx).all() and np.isfinite(dq).all()):
            break
        length = min(1.0, 0.5 / max(float((-dt / t).max()), float((-dy / y).max()), TINY))
        x, p = x + length * np.where(used, dx, 0.0), p + length * np.where(full, dp, 0.0)
        t, y = t + length * dt, y + length * dy
    else:
        return Point(x, p, SETTINGS.steps), y
    return Point(x, p, SETTINGS.steps), None
