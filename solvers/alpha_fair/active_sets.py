"""From an approximate answer of an alpha-fair program, from any engine, to an exact one.

Which pairs are used and which limits are full is read off the approximate point: the larger of the two factors of every product
decides. With those held, the conditions of ``alpha_fair`` are equations,

    A x = 1 on full limits,    t = V'x,    A'p = V y on used pairs,    y t^alpha = phi,

and Newton's method solves them. Where placements are not unique the system is singular: a small multiple of the identity makes it
quasi-definite, and takes a solution near the point. Pairs and prices that turn out negative leave; pairs that are worth more than they
cost and limits that overflow join.

Users with next to nothing (a small weight at a small alpha can ask for 1e-60 of what others have) follow the prices: they have what they
want at their cheapest pair, and nobody feels it. Whether an answer is exact `AlphaFairProblem.error` decides, not how it was found.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem, Newton

__all__ = ["from_answer", "on_sets", "poor_at", "wanted", "wish"]

_ROUNDS = 12  # of correcting the sets
_STEPS = 30  # of Newton's method in each
_EXACT = 1e-11
_CLOSE = 1e-8
_SINGULAR = 1e-10  # the multiple of the identity
_POOR = 1e-7  # of what a pair could hold alone: nobody feels what it takes
_NEARLY = 1e-3  # part of the price by which a pair may be dearer and yet be the one to use
_LEAST = 1e-8  # part of a user's money, or of a limit's, below which the metric is that of this part
_ABSENT = 1e20  # what holds an unused pair or a limit that is not full at 0


def from_answer(problem: AlphaFairProblem, x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
    """Return exact tasks and prices and the number of steps; None where the sets cannot be told."""
    t = problem.utility(x)
    if not (t > 0).all():
        return None
    y = problem.worth(t)
    spent, earned = float(p.sum()), float(y @ t)
    p = p * (earned / spent) if spent > 0 else p  # the engine's unit of money is its own
    worth = problem.v * y[problem.user]
    used = x * problem.v / t[problem.user] > 1 - worth / np.maximum(problem.cost(p), 1e-300)
    full = p / np.exp(problem.log_money_of_limits(x, (np.log(y) + np.log(t))[problem.user])) > 1 - problem.use(x)
    held = np.where(full, p, 0.0)
    return on_sets(problem, x, held, used, full, poor_at(problem, held))


def on_sets(
    problem: AlphaFairProblem, x: FloatArray, p: FloatArray, used: BoolArray, full: BoolArray, poor: BoolArray, patience: int = 4
) -> tuple[FloatArray, FloatArray, int] | None:
    """Return exact tasks and prices near (x, p) and the number of steps, correcting the sets; None where that fails.

    ``poor`` users follow the prices. After ``patience`` steps of Newton's method without progress the sets count as wrong.
    """
    steps = 0
    for _ in range(_ROUNDS):
        rich = ~poor[problem.user]
        x, p, y, number = _newton(problem, np.where(used | ~rich, x, 0.0), np.where(full, p, 0.0), used & rich, full, poor, patience)
        steps += number
        if x.size == 0:
            return None
        if problem.error(np.maximum(x, 0.0), np.maximum(p, 0.0)) <= _EXACT:
            return np.maximum(x, 0.0), np.maximum(p, 0.0), steps
        reduced = problem.cost(p) - problem.v * y[problem.user]
        leave, unpriced = rich & used & (x < 0), full & (p < 0)
        join = rich & ~used & (reduced < -1e-12 * problem.v * y[problem.user])
        over = ~full & (problem.use(x) > 1 + 1e-13)
        if not (leave.any() or unpriced.any() or join.any() or over.any()):
            return None
        used, full = (used & ~leave) | join, (full & ~unpriced) | over
        x, p = np.maximum(x, 0.0), np.maximum(p, 0.0)
        if (problem.utility(np.where(used | ~rich, x, 0.0)) <= 0).any():
            return None
    return None


def wanted(problem: AlphaFairProblem, p: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return what each user would have at prices p if it alone could decide, and its cheapest pair, (members,)."""
    price = problem.cost(p) / problem.v
    order = np.lexsort((price, problem.user))
    cheapest = order[np.searchsorted(problem.user[order], np.arange(problem.member.size))]
    own = price[cheapest]
    if problem.flat:  # what the flat part pays for costs nothing
        own = np.maximum(own - np.exp(problem.log_flat), 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp((problem.log_phi - np.log(own)) / problem.alpha), cheapest


def poor_at(problem: AlphaFairProblem, p: FloatArray) -> BoolArray:
    """Who has next to nothing at prices p, (members,): next to nothing of any pair that it may use, for a small server is soon full."""
    poor = np.zeros(problem.member.size, bool)
    if problem.alpha >= 1:
        return poor
    want, cheapest = wanted(problem, p)
    price = problem.cost(p) / problem.v
    near = price <= (1 + _NEARLY) * price[cheapest][problem.user]
    held = np.where(near, want[problem.user] / problem.v, 0.0)  # parts of what the pairs could hold at most
    poor[:] = True
    poor[problem.user[held >= _POOR]] = False
    return poor


def wish(problem: AlphaFairProblem, x: FloatArray, p: FloatArray, poor: BoolArray) -> FloatArray:
    """Return x, with what the poor want at prices p in place of what they have."""
    want, cheapest = wanted(problem, p)
    x = np.where(poor[problem.user], 0.0, x)
    x[cheapest[poor]] = want[poor] / problem.v[cheapest[poor]]
    return x


def _newton(
    problem: AlphaFairProblem, x: FloatArray, p: FloatArray, used: BoolArray, full: BoolArray, poor: BoolArray, patience: int
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve the equations of these sets; an empty x where that fails."""
    t = problem.utility(x)
    y = problem.worth(t)
    # Who holds little of something moves little: the metric of an interior point.
    money, size = (y * t)[problem.user], np.maximum(x, _LEAST * t[problem.user] / problem.v)
    D = np.where(used, _SINGULAR * money / size**2, _ABSENT * problem.v * y[problem.user])
    of_limit = np.exp(problem.log_money_of_limits(x, (np.log(y) + np.log(t))[problem.user]))
    singular = np.where(
        full, _SINGULAR * of_limit / np.maximum(p, _LEAST * of_limit) ** 2, _ABSENT / max(float(y[~poor].max(initial=0.0)), 1e-300)
    )
    least: float = np.inf
    since = 0
    for step in range(_STEPS):
        if poor.any():
            x = wish(problem, x, p, poor)
            t = np.where(poor, problem.utility(x), t)
            y = np.where(poor, problem.worth(t), y)
        short = np.where(full, 1.0 - problem.use(x), 0.0)
        missing = np.where(poor, 0.0, t - problem.utility(x))
        unpaid = np.where(used, problem.v * y[problem.user] - problem.cost(p), 0.0)
        bent, a = np.where(poor, 0.0, problem.bent(np.log(y), np.log(t))), problem.fall(np.log(t))
        parts = (short, missing / t, bent, unpaid / (problem.v * y[problem.user]))
        left = float(max(np.abs(part).max(initial=0.0) for part in parts))
        since = 0 if left < 0.5 * least else since + 1
        least = min(least, left)
        if left <= 1e-14 or (since >= patience and left < _CLOSE):
            return x, p, y, step
        if since >= patience:
            break
        F = np.concatenate([singular, t / (a * y)])
        try:
            dx, dq = Newton(problem, D, F, used).step(unpaid, np.concatenate([short, -(missing - t / a * bent)]))
        except (RuntimeError, ValueError, ArithmeticError):
            break
        dp, dy = dq[: problem.n_rows], np.where(poor, 0.0, dq[problem.n_rows :])
        dt = np.where(poor, 0.0, -t / a * (bent + dy / y))
        if not (np.isfinite(dx).all() and np.isfinite(dq).all()):
            break
        length = min(1.0, 0.5 / max(float((-dt / t).max()), float((-dy / y).max()), 1e-300))
        x, p = x + length * np.where(used, dx, 0.0), p + length * np.where(full, dp, 0.0)
        t, y = t + length * dt, y + length * dy
    else:
        return x, p, y, _STEPS
    return np.empty(0), p, y, _STEPS
