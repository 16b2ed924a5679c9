r"""Trade-offs of fairness and total: the root of one variable over a family of alpha-fair programs.

    maximise  G(U) = (1 - e) log M(U) + e log S,      M = T^(1 / (1 - beta)),  T = sum phi[n] U[n]^(1 - beta),  S = sum U[n]

G is concave: a power mean of order 1 - beta < 1 is concave, and the logarithm is concave and increasing. Its gradient in U[n] is a
multiple of

    phi[n] U[n]^-beta + kappa,      kappa = e / (1 - e) * T / S.

So U is optimal if and only if it is optimal for h = T / (1 - beta) + kappa S, an alpha-fair goal plus a linear total, with the kappa that U
itself implies. Let U(kappa) be the optimum of h for any kappa > 0, and m(kappa) = kappa S / T at U(kappa). For every m, U(kappa) is
optimal for the G with e / (1 - e) = m. G is strictly concave, so its optimum U is unique, and kappa = m T / S is unique with it: m is
one-to-one, continuous, and 0 at kappa = 0, hence increasing. So log m(kappa) = log(e / (1 - e)) has exactly one root. A safeguarded secant
method in log kappa finds it; the optimum at one kappa is the starting point at the next.

The residual of that equation at the end is the relative error of kappa. It shows in the certificate, which computes kappa from the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.program import Tradeoff
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.settings import SETTINGS
from fairopt.solvers.backend import Deadline

__all__ = ["find_total_worth"]

log = logging.getLogger(__name__)


def find_total_worth(
    problem: AlphaFairProblem,
    goal: Tradeoff,
    deadline: Deadline,
    solve: Callable[[AlphaFairProblem, Point], Point | None],
    start: Point,
) -> Point | None:
    """Return the optimum of a trade-off; None where ``solve`` found none for some kappa.

    Parameters
    ----------
    solve : callable
        Given the problem with a kappa, and a point near its optimum, it returns the optimum.
    start : Point
        Any point at which every user has something; best the optimum at kappa = 0, or an approximate answer.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    near, steps = start, start.steps
    now = _log_kappa(problem, goal, near.x)
    low, high = -np.inf, np.inf
    before: tuple[float, float] | None = None
    best, error = near, np.inf
    for _ in range(SETTINGS.evaluations):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": steps})
        with np.errstate(all="ignore"):
            found = solve(problem.with_total_worth(now), near)
        if found is None:
            return None
        near, steps = found, steps + found.steps
        if goal.efficiency == 0:
            return replace(found, steps=steps)
        off = now - _log_kappa(problem, goal, near.x)  # increases with kappa, as m does
        log.debug("log kappa %.15g: off by %.1e", now, off)
        last = abs(off) <= np.spacing(abs(now)) or (error <= SETTINGS.exact_kappa and abs(off) > 0.5 * error)
        if abs(off) < error:
            best, error = near, abs(off)
        if last:
            break
        low, high = (now, high) if off < 0 else (low, now)
        slope = 1.0
        if before is not None and now != before[0] and (off - before[1]) / (now - before[0]) > 0:
            slope = (off - before[1]) / (now - before[0])
        before = now, off
        ahead = now - float(np.clip(off / slope, -SETTINGS.longest, SETTINGS.longest))
        if not low < ahead < high:
            ahead = (low + high) / 2 if np.isfinite(low) and np.isfinite(high) else now - np.sign(off)
        if ahead == now or not low < ahead < high:  # no number left between
            break
        now = float(ahead)
    return None if error == np.inf else replace(best, steps=steps)


def _log_kappa(problem: AlphaFairProblem, goal: Tradeoff, x: FloatArray) -> float:
    """Return the log kappa that the utilities of tasks x imply."""
    utilities = np.zeros(goal.weights.size)
    utilities[problem.scaled.members] = problem.unit * np.maximum(problem.utility(np.maximum(x, 0.0)), TINY)
    return goal.log_total_worth(utilities)
