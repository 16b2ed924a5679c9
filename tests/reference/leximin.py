"""Leximins by plain linear programs of SciPy's: by the definition, and as the engine of a loop over levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from reference.linear import largest
from scipy.optimize import linprog

from fairopt.instance import FloatArray
from fairopt.program import Program, Stage
from fairopt.solvers.leximin.levels import Course, Proof, Step

__all__ = ["OneLevel", "levels_of"]


def levels_of(program: Program, weights: FloatArray) -> FloatArray:
    """Levels by the definition: raise all, then ask for each user whether it could have more, (users,)."""
    n, pairs = len(program.users), program.n_pairs
    A = np.hstack([program.limits.matrix.toarray(), np.zeros((len(program.limits), 1))])
    own = np.zeros((n, pairs + 1))
    own[program.pair_users, np.arange(pairs)] = program.utilities / weights[program.pair_users]
    level = np.full(n, np.nan)
    level[np.setdiff1d(np.arange(n), program.members)] = 0.0
    while np.isnan(level).any():
        rising = np.isnan(level)
        held = np.where(rising, 0.0, level)
        rows = -own.copy()
        rows[rising, -1] = 1.0
        bounds = np.append(program.limits.bounds, -held * (1 - 1e-11))
        t = largest(np.eye(pairs + 1)[-1], np.vstack([A, rows]), bounds)
        rows[:, -1] = 0.0
        bounds = np.append(program.limits.bounds, -np.where(rising, t, held) * (1 - 1e-9))
        most = [largest(own[k], np.vstack([A, rows]), bounds) if rising[k] else 0.0 for k in range(n)]
        stopped = rising & (np.array(most) <= t * (1 + 1e-6))
        assert stopped.any()
        level[stopped] = t
    return level


class OneLevel:
    """One linear program a step, all limits as rows; prices are SciPy's multipliers."""

    def __init__(self, program: Program, per_level: FloatArray) -> None:
        self.program, self.per_level = program, per_level
        users = np.arange(len(program.users))
        self.levels = np.where(program.pair_users == users[:, None], per_level, 0.0)
        self.asked = 0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Maximise t subject to A x <= b, s >= start + rate t."""
        self.asked += 1
        limits = self.program.limits
        rows = np.block([[limits.matrix.toarray(), np.zeros((len(limits), 1))], [-self.levels, course.rate[:, None]]])
        cost = np.append(np.zeros(self.program.n_pairs), -1.0)
        found = linprog(cost, A_ub=rows, b_ub=np.append(limits.bounds, -course.start), method="highs")
        assert found.x is not None
        x, prices = found.x[:-1], np.maximum(-found.ineqlin.marginals[: len(limits)], 0.0)
        q = np.full(course.start.size, np.inf)
        np.minimum.at(q, self.program.pair_users, (limits.matrix.T @ prices) / self.per_level)
        return Step(x, self.levels @ x, float(found.x[-1]), Proof.of(course, prices, q, float(prices @ limits.bounds)))
