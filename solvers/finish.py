"""From an approximate answer of an alpha-fair program, from any engine, to an exact one.

Which pairs are used and which limits are full is read off the approximate point: the larger of the two factors of every product
decides. With those held, the conditions of ``alpha_fair`` are equations,

    A x = 1 on full limits,    t = V'x,    A'p = V y on used pairs,    y t^alpha = phi,

and Newton's method solves them. Where placements are not unique the system is singular: a small multiple of the identity makes it
quasi-definite, and takes a solution near the point. Pairs and prices that turn out negative leave; pairs that are worth more than they
cost and limits that overflow join.

Where the sets cannot be told (a solver far off, users whose worths are a billion apart), the interior point solves the program from the
start. Which of the two it was makes no difference to the exactness: `AlphaFairProblem.error` decides.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair import AlphaFairProblem, Newton
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import follow, start

__all__ = ["active_sets", "finish"]

log = logging.getLogger(__name__)

_ROUNDS = 12  # of correcting the sets
_STEPS = 30  # of Newton's method in each
_EXACT = 1e-11
_SINGULAR = 1e-10  # the multiple of the identity
_ABSENT = 1e20  # what holds an unused pair or a limit that is not full at 0


def finish(problem: AlphaFairProblem, x: FloatArray, p: FloatArray, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Return exact tasks and prices in the problem's units, and the number of steps."""
    with np.errstate(all="ignore"):
        found = active_sets(problem, x, p)
    if found is not None:
        return found
    log.info("the sets of used pairs and full limits could not be told; solving by the interior point")
    x, p, steps = follow(problem, start(problem), deadline)
    return x, p, steps


def active_sets(problem: AlphaFairProblem, x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
    """Return exact tasks and prices and the number of steps; None where the sets cannot be told."""
    t = problem.utility(x)
    if not (t > 0).all():
        return None
    y = problem.worth(t)
    spent, earned = float(p.sum()), float(y @ t)
    p = p * (earned / spent) if spent > 0 else p  # the engine's unit of money is its own
    worth = problem.v * y[problem.user]
    used = x * problem.v / t[problem.user] > 1 - worth / np.maximum(problem.cost(p), 1e-300)
    full = p / problem.money_of_limits(x, y * t) > 1 - problem.use(x)
    steps = 0
    for _ in range(_ROUNDS):
        x, p, y, number = _newton(problem, np.where(used, x, 0.0), np.where(full, p, 0.0), used, full)
        steps += number
        if x.size == 0:
            return None
        if problem.error(np.maximum(x, 0.0), np.maximum(p, 0.0)) <= _EXACT:
            return np.maximum(x, 0.0), np.maximum(p, 0.0), steps
        reduced = problem.cost(p) - problem.v * y[problem.user]
        leave, unpriced = used & (x < 0), full & (p < 0)
        join = ~used & (reduced < -1e-12 * problem.v * y[problem.user])
        over = ~full & (problem.use(x) > 1 + 1e-13)
        if not (leave.any() or unpriced.any() or join.any() or over.any()):
            return None
        used, full = (used & ~leave) | join, (full & ~unpriced) | over
        x, p = np.maximum(x, 0.0), np.maximum(p, 0.0)
        if (problem.utility(np.where(used, x, 0.0)) <= 0).any():
            return None
    return None


def _newton(
    problem: AlphaFairProblem, x: FloatArray, p: FloatArray, used: np.ndarray, full: np.ndarray
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve the equations of these sets; an empty x where that fails."""
    a = problem.alpha
    t = problem.utility(x)
    y = problem.worth(t)
    D = np.where(used, _SINGULAR, _ABSENT) * problem.v * y[problem.user]
    for step in range(_STEPS):
        short = np.where(full, 1.0 - problem.use(x), 0.0)
        missing = t - problem.utility(x)
        unpaid = np.where(used, problem.v * y[problem.user] - problem.cost(p), 0.0)
        bent = np.log(y) + a * np.log(t) - problem.log_phi
        size = max(np.abs(short).max(initial=0.0), np.abs(missing / t).max(), np.abs(bent).max())
        size = max(size, np.abs(unpaid / (problem.v * y[problem.user])).max())
        if size <= 1e-14:
            return x, p, y, step
        F = np.concatenate([np.where(full, _SINGULAR, _ABSENT) / max(float(y.max()), 1e-300), t / (a * y)])
        try:
            dx, dq = Newton(problem, D, F, used).step(unpaid, np.concatenate([short, -(missing - t / a * bent)]))
        except (RuntimeError, ValueError, ArithmeticError):
            break
        dp, dy = dq[: problem.n_rows], dq[problem.n_rows :]
        dt = -t / a * (bent + dy / y)
        if not (np.isfinite(dx).all() and np.isfinite(dq).all()):
            break
        length = min(1.0, 0.5 / max(float((-dt / t).max()), float((-dy / y).max()), 1e-300))
        x, p = x + length * np.where(used, dx, 0.0), p + length * np.where(full, dp, 0.0)
        t, y = t + length * dt, y + length * dy
    else:
        return x, p, y, _STEPS
    return np.empty(0), p, y, _STEPS
