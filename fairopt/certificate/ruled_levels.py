"""Proof of a leximin with rules, rows of any sign, level by level: the plain proof of a level, without what lower levels imply.

At level t[k], let F be the users settled at lower levels, at L[n] each, and R the others. For any prices p >= 0 of the rows A x <= b let

    q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair].

Bounds and costs may be below 0. Where q >= 0, every feasible x with levels s >= L on F has

    p.b >= p.Ax >= sum_n q[n] s[n] >= sum_F q L + sum_R q s,

so the minimum of s over R is at most t + g / sigma, and a user n who is settled at t rises by at most g / q[n], with sigma = sum_R q and

    g = p.b - sum_F q L - sigma t.

A cost below 0 is charged for the most that its user could ever have. Residuals are relative to the largest level: a level may be 0, and p.b
may cancel. Capacities and bounds are known to 14 digits, so 1e-14 of the sum of p |b| is subtracted from g.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, NOISE
from fairopt.program import Equalize, Leximin, Program, Solution

__all__ = ["RuledProofs", "ruled_gaps"]

_NEVER = (float("inf"), float("inf"))


def ruled_gaps(program: Program, goal: Leximin | Equalize, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels of a leximin or of an equal level."""
    per_level, largest = program.worth, program.largest()
    levels, reach = program.per_user(solution.x * per_level), program.per_user(largest * per_level)
    members = reach > 0
    size = float(levels.max(initial=0.0)) or float(reach.max(initial=0.0)) or 1.0
    settled, optimality, fairness = ~members, 0.0, 0.0
    proofs = RuledProofs(program, per_level)
    for stage in sorted(solution.stages, key=lambda each: each.value):
        own = stage.users
        if stage.prices is None or not own.size or settled[own].any():
            return _NEVER
        target = np.where(settled, levels, stage.value)
        missing, rise = proofs.of(np.maximum(stage.prices, 0.0), own, ~settled, target, np.ones(target.size))
        off = float(np.abs(levels[own] - stage.value).max(initial=0.0))
        low = float(np.maximum(stage.value - levels[~settled], 0.0).max(initial=0.0))
        optimality = float(np.max([optimality, missing / size, off / size, low / size]))  # NaN stays NaN
        fairness = float(np.max([fairness, rise / size]))
        settled = settled.copy()
        settled[own] = True
    return (optimality, fairness) if settled.all() and np.isfinite([optimality, fairness]).all() else _NEVER


class RuledProofs:
    """The proofs of the levels of a program with rules, each from its own prices."""

    def __init__(self, program: Program, per_level: FloatArray) -> None:
        largest = program.largest()
        self.program, self.per_level, self.open = program, per_level, np.flatnonzero(largest > 0)
        self.reach = program.per_user(largest * per_level)

    def of(self, prices: FloatArray, own: IntArray, rising: BoolArray, target: FloatArray, rate: FloatArray) -> tuple[float, float]:
        """Return by how much t, and the share of one of its ``own`` users, could rise at most above ``target``, (users,)."""
        program, limits, open_to = self.program, self.program.limits, self.open
        cost = np.asarray(limits.transposed @ prices)
        q = program.cheapest((cost / self.per_level)[open_to], open_to)
        spent = float(prices @ np.abs(limits.bounds))
        below_0 = float(np.maximum(-q, 0.0) @ self.reach)
        q = np.maximum(q, 0.0)
        sigma = float((q * rate)[rising].sum())
        if not sigma > 0 or not (q[own] * rate[own] > NOISE * sigma).all():
            return _NEVER
        gap = max(float(prices @ limits.bounds) - float(q @ target) - DIGITS * spent, 0.0) + below_0
        return gap / sigma, gap / float(q[own].min(initial=np.inf))
