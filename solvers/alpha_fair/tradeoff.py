"""Trade-offs of fairness and total, by a root of one variable over alpha-fair programs.

    maximise  G(U) = (1 - e) log M(U) + e log S,      M = T^(1 / (1 - beta)),  T = sum phi[n] U[n]^(1 - beta),  S = sum U[n]

is concave (a power mean of order 1 - beta < 1 is, and a logarithm is concave and grows), and its gradient in U[n] is a multiple of

    phi[n] U[n]^-beta + kappa,      kappa = e / (1 - e) * T / S.

So U is optimal if and only if it is optimal for h = T / (1 - beta) + kappa S, an alpha-fair goal with a total, with the kappa that U itself
gives. Let U(kappa) be the optimum of h for any kappa > 0, and m(kappa) = kappa S / T there, the part of the money that the total pays, over
the rest. Whatever m is, U(kappa) is optimal for the G with e / (1 - e) = m. G is strictly concave, so its U is unique, and kappa = m T / S
with it: m is one-to-one, continuous and 0 for kappa = 0, so it *grows with kappa*, and log m(kappa) = log(e / (1 - e)) has one root. A
secant in logarithms finds it; the optimum at one kappa is the start at the next.

What is left of the equation at the end is the relative error of kappa, and counts in the certificate, which computes its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray
from fairopt.program import Tradeoff
from fairopt.solvers.alpha_fair.polish import from_answer
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem
from fairopt.solvers.backend import Deadline

__all__ = ["find_total_worth"]

log = logging.getLogger(__name__)

_EXACT = 1e-11  # relative error of kappa
_EVALUATIONS = 60
Follow: TypeAlias = Callable[[AlphaFairProblem, Deadline], tuple[FloatArray, FloatArray, int]]
_LONGEST = 4.0  # change of log kappa


def find_total_worth(
    problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline, follow: Follow, near: tuple[FloatArray, FloatArray] | None = None
) -> tuple[FloatArray, FloatArray, int, str]:
    """Return tasks, prices (in the problem's units), the number of steps, and what found them: "active sets" or "interior-point".

    ``follow`` solves the problem for the kappa that it has (`fairopt.solvers.alpha_fair.logarithmic_path`). ``near`` are tasks and prices
    near the optimum, from another engine.
    """
    if goal.efficiency == 0 and near is None:
        return *follow(problem, deadline), "interior-point"
    found_by, steps = "active sets", 0
    x, p = near if near is not None else follow(problem, deadline)[:2]
    now = _log_kappa(problem, goal, x)
    low, high = -np.inf, np.inf
    before: tuple[float, float] | None = None
    best: tuple[FloatArray, FloatArray, float] = (x, p, np.inf)
    for _ in range(_EVALUATIONS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": steps})
        problem.set_total_worth(now)
        with np.errstate(all="ignore"):
            answer = from_answer(problem, x, p)
        if answer is None:
            answer, found_by = follow(problem, deadline), "interior-point"
        x, p, number = answer
        steps += number
        if goal.efficiency == 0:
            return x, p, steps, found_by
        off = now - _log_kappa(problem, goal, x)  # grows with kappa, as m does
        log.debug("log kappa %.15g: off by %.1e", now, off)
        if abs(off) < abs(best[2]):
            best = x, p, off
        if abs(off) <= _EXACT:
            break
        low, high = (now, high) if off < 0 else (low, now)
        slope = 1.0
        if before is not None and now != before[0] and (off - before[1]) / (now - before[0]) > 0:
            slope = (off - before[1]) / (now - before[0])
        before = now, off
        ahead = now - float(np.clip(off / slope, -_LONGEST, _LONGEST))
        if not low < ahead < high:
            ahead = (low + high) / 2 if np.isfinite(low) and np.isfinite(high) else now - np.sign(off)
        if ahead == now or not low < ahead < high:  # no number left between
            break
        now = float(ahead)
    if not np.isfinite(best[2]):
        raise NoSolution("the weight of the total was not found; try another solver, or numbers that are closer together", {})
    return best[0], best[1], steps, found_by


def _log_kappa(problem: AlphaFairProblem, goal: Tradeoff, x: FloatArray) -> float:
    """Return the log kappa that the utilities of tasks x give."""
    utilities = np.zeros(goal.weights.size)
    utilities[problem.member] = problem.unit * np.maximum(problem.utility(np.maximum(x, 0.0)), 1e-300)
    return goal.log_total_worth(utilities)
