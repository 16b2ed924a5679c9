"""The central path of max sum phi[n] log U[n]: its equations in units of their own, and Newton's method along it and to its end.

With limits A y <= 1 and the weights summing to 1, the point for mu = 1 / c solves

    phi[n] u[p] / U[n] - (A'p)[p] + z[p] = 0,     A y + s = 1,     s p = mu,     y z = mu

where z belongs to the pairs of users who have several. Slacks and multipliers are variables of their own, so every coefficient stays
bounded as mu goes to 0, and a limit that is full loses no digits. At mu = 1e-16 the point is an optimum to rounding, but for limits
that are full although their price is 0 (and pairs that are empty although they cost nothing): there s = p = sqrt(mu), and a last step
solves the equations of the full limits and the used pairs alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program import AlphaFair, Program
from fairopt.solvers.backend import Deadline

__all__ = ["CentralPath", "Point", "solve_rows"]

_TOWARDS = 0.1  # factor on mu per Newton step
_LAST = 1e-16  # mu at the end
_STEPS = 200
_BACK = 0.99  # part of the way to the boundary that a Newton step may go
_LEAST = 1e-2  # c below which multipliers are not worth having
_TIGHT = 1e-6  # limits with less left and pairs of several with less in them may be full and empty
_SNAPS = 4
_NEGLIGIBLE = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point with slacks, multipliers of the limits and of the pairs of users who have several."""

    y: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray


class CentralPath:
    """The program in units of its own: 0 <= y <= 1, A y <= 1, weights that sum to 1."""

    def __init__(self, program: Program, goal: AlphaFair, columns: IntArray, rows: IntArray) -> None:
        largest = program.largest()[columns]
        self.a = program.limits.matrix[rows][:, columns].toarray() * largest / program.limits.bounds[rows, None]
        _, user = np.unique(program.pair_users[columns], return_inverse=True)
        self.user: IntArray = np.asarray(user, dtype=np.int64)
        self.same = self.user[:, None] == self.user
        self.u = program.utilities[columns] * largest
        self.u /= np.array([self.u[self.user == n].max() for n in range(self.user.max() + 1)])[self.user]
        weights = goal.weights[np.unique(program.pair_users[columns])]
        self.total = float(weights.sum())
        self.phi = (weights / self.total)[self.user]  # of the pair's user
        self.several = self.same.sum(axis=1) > 1
        self.m = self.several.astype(np.float64)

    def utility(self, y: FloatArray) -> FloatArray:
        """U of the user of each pair."""
        total: FloatArray = np.bincount(self.user, weights=self.u * y).astype(np.float64)
        return total[self.user]

    def c(self, y: FloatArray, s: FloatArray) -> float:
        """Return c = x.g - sum m."""
        return float(y @ (self.a.T @ (1 / s)) - self.m.sum())

    def at(self, y: FloatArray, s: FloatArray, c: float) -> Point:
        """Return the point with the multipliers that the path gives it."""
        c = max(c, _LEAST)
        y = np.maximum(y, 1e-300)
        return Point(y, s, 1 / (c * s), self.m / (c * y))

    def finish(self, point: Point, deadline: Deadline) -> tuple[Point, int]:
        """Follow the path from c = _END on in Newton steps, to 1/c = _LAST."""
        mu = float(np.median(point.s * point.p))

        def targets() -> Iterable[float]:
            now = mu
            for _ in range(_STEPS):
                now = max(now * _TOWARDS, _LAST)
                yield now

        end, steps = self.newton(point, targets(), deadline)
        return self._snap(end), steps

    def _snap(self, point: Point) -> Point:
        """Solve the KKT equations of the full limits and the used pairs, where that satisfies all of them even better.

        A limit that is full although its price is 0 (a user whose request just fits) leaves s = p = sqrt(mu): here it becomes full.
        """
        rows, held = np.flatnonzero(point.s <= _TIGHT), np.flatnonzero(point.y > _TIGHT * self.several)
        a = self.a[np.ix_(rows, held)]
        y, p = point.y[held], point.p[rows]
        for _ in range(_SNAPS):
            full = np.zeros_like(point.y)
            full[held] = y
            utility = self.utility(full)[held]
            if (utility <= 0).any():
                return point
            gradient = self.phi[held] * self.u[held] / utility
            curvature = np.where(self.same[np.ix_(held, held)], np.outer(gradient / utility, self.u[held]), 0.0)
            matrix = np.block([[curvature, a.T], [a, np.zeros((rows.size, rows.size))]])
            step = np.linalg.lstsq(matrix, np.concatenate([gradient - a.T @ p, 1 - a @ y]), rcond=1e-13)[0]
            y, p = y + step[: held.size], p + step[held.size :]
        snapped = Point(np.zeros_like(point.y), point.s, np.zeros_like(point.p), np.zeros_like(point.z))
        snapped.y[held], snapped.p[rows] = y, np.where(np.abs(p) < _NEGLIGIBLE, 0.0, p)
        return snapped if self._violation(snapped) <= max(self._violation(point), _NEGLIGIBLE) else point

    def _violation(self, point: Point) -> float:
        """Largest violation of the KKT conditions, all in parts of the whole."""
        if not ((point.y >= 0).all() and (point.p >= 0).all() and np.isfinite(point.p).all() and (self.utility(point.y) > 0).all()):
            return float("inf")
        slack = 1 - self.a @ point.y
        reduced = self.a.T @ point.p - self.phi * self.u / self.utility(point.y)
        return float(max(-slack.min(), (point.p * slack).max(), (-reduced).max(), np.abs(reduced * point.y).max()))

    def jacobian(self, point: Point) -> FloatArray:
        """Return the derivatives of the equations below, negated where that saves signs, by y, p and the z of several pairs."""
        own = np.flatnonzero(self.several)
        n, k, q = point.y.size, point.s.size, own.size
        utility = self.utility(point.y)
        matrix = np.zeros((n + k + q, n + k + q))
        limits, rest = slice(n, n + k), n + k + np.arange(q)
        matrix[:n, :n] = np.where(self.same, np.outer(self.phi * self.u / utility**2, self.u), 0.0)
        matrix[:n, limits] = self.a.T
        matrix[own, rest] = -1.0
        matrix[limits, :n] = -point.p[:, None] * self.a
        matrix[limits, limits] = np.diag(point.s)
        matrix[rest, own] = point.z[own]
        matrix[rest, rest] = point.y[own]
        return matrix

    def newton(self, point: Point, targets: Iterable[float], deadline: Deadline) -> tuple[Point, int]:
        """Take Newton steps on  phi u / U - A'p + z = 0,  A y + s = 1,  s p = mu,  y z = mu  (z of users with several pairs).

        Slacks and multipliers are variables of their own, so every coefficient stays bounded as mu goes to 0, and a limit that is
        full loses no digits. The last target is repeated until nothing gets better.
        """
        y, s, p, z = point.y, point.s, point.p, point.z
        own = np.flatnonzero(self.several)
        n, k = y.size, s.size
        best, worst_seen, last, steps, stale = point, np.inf, np.inf, 0, 0
        for mu in targets:
            if deadline.left == 0.0:
                raise deadline.passed({})
            gradient = self.phi * self.u / self.utility(y)
            off = 1 - self.a @ y - s
            matrix = self.jacobian(Point(y, s, p, z))
            right = np.concatenate([gradient - self.a.T @ p + z, mu - s * p - p * off, mu - (y * z)[own]])
            try:
                step = solve_rows(matrix, right)
            except np.linalg.LinAlgError:
                break
            dy, dp, dz = step[:n], step[n : n + k], np.zeros(n)
            dz[own] = step[n + k :]
            ds = off - self.a @ dy
            primal = min(_room(y, dy), _room(s, ds))
            dual = min(_room(p, dp), _room(z[own], dz[own]))
            y, s, p, z = y + primal * dy, s + primal * ds, p + dual * dp, z + dual * dz
            steps += 1
            gradient = self.phi * self.u / self.utility(y)
            worst = max(
                float(np.abs(1 - self.a @ y - s).max()),
                float((np.abs(gradient - self.a.T @ p + z) * y).max()),
                float(np.abs(s * p - mu).max(initial=0.0)),
                float(np.abs((y * z)[own] - mu).max(initial=0.0)),
            )
            if mu != last:
                worst_seen, stale, last = np.inf, 0, mu
            if worst < worst_seen:
                stale = 0 if worst < 0.5 * worst_seen else stale + 1
                best, worst_seen = Point(y, s, p, z), worst
            else:
                stale += 1
            if stale >= 3:
                if worst_seen < 1e-12 or mu <= _LAST:
                    break
                stale = 0
        return best, steps


def solve_rows(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with rows scaled to a largest entry of 1."""
    size = np.abs(matrix).max(axis=1)
    size[size == 0] = 1.0
    step: FloatArray = np.linalg.solve(matrix / size[:, None], right / size)
    if not np.isfinite(step).all():
        raise np.linalg.LinAlgError("no finite solution")
    return step


def _room(value: FloatArray, change: FloatArray) -> float:
    """Return the step, at most 1, that keeps ``value`` positive."""
    falling = change < 0
    return float(min(1.0, _BACK * (value[falling] / -change[falling]).min(initial=np.inf)))
