"""The central path of max sum phi[n] log U[n], in scaled columns: its equations, and Newton's method on them.

With 0 <= y <= 1, limits A y <= 1 and weights that sum to 1, the point of the path at mu = 1 / c solves

    phi[n] u[p] / U[n] - (A'p)[p] + z[p] = 0,     A y + s = 1,     s p = mu,     y z = mu

where z belongs to the columns of users who have several. Slacks and multipliers are variables of their own: so every coefficient stays
bounded as mu goes to 0, and a full limit loses no digits. At mu = 1e-16 the point is an optimum to rounding, except where both factors of a
product vanish, as for a full limit at a price of 0: there s = p = sqrt(mu). The polish of alpha-fair answers makes these exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.program import AlphaFair, Program, ScaledColumns
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.boundary import length
from fairopt.solvers.trajectory.settings import SETTINGS

__all__ = ["CentralPath", "Point", "falling", "solve_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Columns y, slacks s, multipliers p of the limits, and z of the columns of users who have several (0 for the others)."""

    y: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CentralPath:
    """The program of a central path.

    Attributes
    ----------
    scaled : ScaledColumns
    a : array (limits, columns)
        A.
    u : array (columns,)
        Utility of each column at 1, in parts of the largest of its user.
    phi : array (columns,)
        Weight of the column's user, of weights that sum to 1.
    total : float
        Sum of the weights as they were.
    same : bool array (columns, columns)
        Do two columns belong to one user?
    several : bool array (columns,)
        Does the column's user have others?
    """

    scaled: ScaledColumns
    a: FloatArray
    u: FloatArray
    phi: FloatArray
    total: float
    same: BoolArray
    several: BoolArray

    @classmethod
    def of(cls, program: Program, goal: AlphaFair) -> CentralPath:
        """Scale a program that has a column with room."""
        scaled = program.scaled()
        user = scaled.user
        u = scaled.utilities / np.maximum.reduceat(scaled.utilities, scaled.first)[user]
        weights = goal.weights[scaled.members]
        total = float(weights.sum())
        same = user[:, None] == user
        return cls(scaled, scaled.use.toarray(), u, (weights / total)[user], total, same, same.sum(axis=1) > 1)

    @property
    def own(self) -> IntArray:
        """Positions of the columns that have a z."""
        return np.flatnonzero(self.several)

    def utility(self, y: FloatArray) -> FloatArray:
        """Return U of the user of each column, (columns,)."""
        return self.scaled.per_user(self.u * y)[self.scaled.user]

    def c(self, y: FloatArray, s: FloatArray) -> float:
        """Return the c of a point on the path: x.g - sum m."""
        return float(y @ (self.a.T @ (1 / s)) - self.several.sum())

    def at(self, y: FloatArray, s: FloatArray, c: float) -> Point:
        """Return a point with the multipliers that the path has there."""
        c = max(c, SETTINGS.least_c)
        y = np.maximum(y, TINY)
        return Point(y, s, 1 / (c * s), self.several / (c * y))

    def jacobian(self, at: Point) -> FloatArray:
        """Return the derivatives of the equations, negated where that saves signs, by y, p and z."""
        own = self.own
        n, k, q = at.y.size, at.s.size, own.size
        utility = self.utility(at.y)
        matrix = np.zeros((n + k + q, n + k + q))
        limits, rest = slice(n, n + k), n + k + np.arange(q)
        matrix[:n, :n] = np.where(self.same, np.outer(self.phi * self.u / utility**2, self.u), 0.0)
        matrix[:n, limits] = self.a.T
        matrix[own, rest] = -1.0
        matrix[limits, :n] = -at.p[:, None] * self.a
        matrix[limits, limits] = np.diag(at.s)
        matrix[rest, own] = at.z[own]
        matrix[rest, rest] = at.y[own]
        return matrix

    def residual(self, at: Point, mu: float) -> float:
        """Return the largest residual of the equations, in parts of the whole."""
        own, gradient = self.own, self.phi * self.u / self.utility(at.y)
        return max(
            float(np.abs(1 - self.a @ at.y - at.s).max()),
            float((np.abs(gradient - self.a.T @ at.p + at.z) * at.y).max()),
            float(np.abs(at.s * at.p - mu).max(initial=0.0)),
            float(np.abs((at.y * at.z)[own] - mu).max(initial=0.0)),
        )

    def step(self, at: Point, mu: float) -> Point:
        """Take a Newton step to the equations at mu, as far as all stays positive.

        Raises
        ------
        numpy.linalg.LinAlgError
        """
        y, s, p, z, own = at.y, at.s, at.p, at.z, self.own
        n, k = y.size, s.size
        r_limits = 1 - self.a @ y - s
        gradient = self.phi * self.u / self.utility(y)
        right = np.concatenate([gradient - self.a.T @ p + z, mu - s * p - p * r_limits, mu - (y * z)[own]])
        change = solve_rows(self.jacobian(at), right)
        dy, dp, dz = change[:n], change[n : n + k], np.zeros(n)
        dz[own] = change[n + k :]
        ds = r_limits - self.a @ dy
        primal, dual = (
            length(np, np.concatenate(values), np.concatenate(change), SETTINGS.part_of_the_way)
            for values, change in (((y, s), (dy, ds)), ((p, z[own]), (dp, dz[own])))
        )
        return Point(y + primal * dy, s + primal * ds, p + dual * dp, z + dual * dz)

    def follow(self, start: Point, targets: Iterable[float], deadline: Deadline) -> tuple[Point, int]:
        """Take a Newton step for each target of mu; return the best point at the last one, and the number of steps.

        Targets are repeated by who gives them: the steps end where they gain nothing at a target that is the last, or solved to rounding.

        Raises
        ------
        NoSolution
            At the deadline.
        """
        now = best = start
        least, last, steps, stalled = np.inf, np.inf, 0, 0
        for mu in targets:
            if deadline.left == 0.0:
                raise deadline.passed({})
            try:
                now = self.step(now, mu)
            except np.linalg.LinAlgError:
                break
            steps += 1
            residual = self.residual(now, mu)
            if mu != last:
                least, stalled, last = np.inf, 0, mu
            if residual < least:
                stalled = 0 if residual < 0.5 * least else stalled + 1
                best, least = now, residual
            else:
                stalled += 1
            if stalled >= SETTINGS.stalled:
                if least < SETTINGS.rounding or mu <= SETTINGS.last_mu:
                    break
                stalled = 0
        return best, steps


def falling(mu: float) -> Iterator[float]:
    """Yield targets of mu from here to the end, which is repeated."""
    for _ in range(SETTINGS.most_steps):
        mu = max(mu * SETTINGS.mu_falls, SETTINGS.last_mu)
        yield mu


def solve_rows(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a linear system with rows scaled to a largest entry of 1.

    Raises
    ------
    numpy.linalg.LinAlgError
        It is singular, or its solution is not finite.
    """
    size = np.abs(matrix).max(axis=1)
    size[size == 0] = 1.0
    solution: FloatArray = np.linalg.solve(matrix / size[:, None], right / size)
    if not np.isfinite(solution).all():
        raise np.linalg.LinAlgError("no finite solution")
    return solution
