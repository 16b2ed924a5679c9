r"""The trajectory of Dolev et al.: proportional fairness as the end of a path that an ordinary differential equation describes.

Let the limits be scaled to A x <= 1, s = 1 - A x what is left of each, and let the weights phi sum to 1. The goal is sum phi[n] log U[n].
The path holds, for every c > 0, the maximiser of

    c sum_n phi[n] log U[n]  +  sum_j log s[j]  +  sum_p log x[p]          (the last over the pairs of users who have several)

At it, with g[p] = sum_j A[j,p] / s[j], and m[p] = 1 for the pairs of the last sum, else 0,

    x[p] g[p] - m[p] = c w[p],     w[p] = phi[n] u[p] x[p] / U[n]          so that c = x.g - sum m

and differentiating gives  [diag(g) + diag(x) A' diag(s)^-2 A - c dw/dx] dx = w dc.  The parameter is t = -sum_j log s[j] - sum m log x, which grows
along the path; dt = 1 fixes dc. With one pair per user w = phi, and this is the trajectory of the paper (section 5.4) word for word: level
sets f(x) = t, x_i sum_j r_ij / (1 - u_j) = c(t) e_i, from x = 0 at t = 0; the limits on tasks are its dummy resources. With several
pairs the path starts near the analytic centre instead, at c = 0.01.

The path is the central path of a barrier method: the multipliers 1 / (c s[j]) are prices that are off by (limits + m) / c, so the path ends at a weighted
Nash optimum, whatever else may be fair. It is integrated (LSODA) in log s and, where m = 1, log x, which cannot leave the
inside and lose no digits where 1 - u would; it ends at c = 1e8. From there Newton's method on the same equations, with s a variable of
its own, brings 1/c down to 1e-16: an exact optimum with its prices.

Dense linear algebra, cubic in the number of pairs: meant for pools and clusters that one looks at, not for thousands of pairs.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairopt.errors import FairoptError, Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import AlphaFair, Feature, Program, Solution
from fairopt.solvers.backend import Backend, Deadline

__all__ = ["Path", "Trajectory"]

log = logging.getLogger(__name__)

_END = 1e8  # c at which the path ends and Newton's method takes over
_START = 1e-2  # c at which it starts where users have several pairs
_LONGEST = 1e5  # t cannot get there before c gets to _END
_RTOL, _ATOL = 1e-8, 1e-10
_LONGEST_PATH = 3000  # steps
_TOWARDS = 0.1  # factor on 1/c per Newton step
_LAST = 1e-16  # 1/c at the end
_STEPS = 200
_BACK = 0.99  # part of the way to the boundary that a Newton step may go
_TIGHT = 1e-6  # limits with less left and pairs of several with less in them may be full and empty
_SNAPS = 4
_NEGLIGIBLE = 1e-14
_FULL = 1e-6  # a limit with this part left is a bottleneck


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The trajectory, step by step.

    Attributes
    ----------
    t : array (steps,)
        The parameter: f(x(t)) = t.
    x : array (steps, pairs)
        Tasks of each pair.
    utilization : array (steps, limits)
        Part of each limit that is used.
    multipliers : array (steps, limits)
        1 / (c(t) (1 - utilization)), of limits scaled to 1 and weights that sum to 1: they tend to prices of the whole of each limit.
        Infinite at t = 0, where c = 0.
    bottlenecks : bool array (limits,)
        Which limits are full at the end.
    pairs : tuple of (str, str)
        User and server of each pair.
    limits : tuple of str
        Names of the limits.
    """

    t: FloatArray
    x: FloatArray
    utilization: FloatArray
    multipliers: FloatArray
    bottlenecks: BoolArray
    pairs: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]


class Trajectory(Backend):
    """The central path as an ordinary differential equation."""

    name = "trajectory"
    title = "The trajectory of Dolev et al.: proportional fairness as the end of a path"
    features = frozenset({Feature.ALPHA_FAIR, Feature.SEVERAL_SERVERS})

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Follow the path, then finish by Newton's method."""
        goal = program.goal
        assert isinstance(goal, AlphaFair)
        if goal.alpha != 1:
            raise Unsupported(
                f'"{self.name}" follows the path of proportional fairness only, and "{program.name}" has alpha = {goal.alpha:g} here; '
                "use alpha = 1, or another engine for alpha-fair goals (fairopt.SOLVERS)"
            )
        largest, bounds = program.largest(), program.limits.bounds
        columns, rows = np.flatnonzero(largest > 0), np.flatnonzero(bounds > 0)
        x = np.zeros(program.n_pairs)
        prices = np.zeros(bounds.size)
        if not columns.size:
            return Solution(x, prices=prices, programs_solved=0)
        problem = _Problem(program, goal, columns, rows)
        t, states, evaluations = problem.follow(deadline)
        y, s = problem.split(states[-1])
        end, steps = problem.finish(problem.at(y, s, problem.c(y, s)), deadline)
        x[columns] = end.y * largest[columns]
        prices[rows] = end.p * problem.total / bounds[rows]
        path = _path(program, problem, t, states, end, columns, rows)
        return Solution(x, prices=prices, iterations=evaluations + steps, trace=path)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A point with slacks, multipliers of the limits and of the pairs of users who have several."""

    y: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray


class _Problem:
    """The program in units of its own: 0 <= y <= 1, A y <= 1, weights that sum to 1."""

    def __init__(self, program: Program, goal: AlphaFair, columns: IntArray, rows: IntArray) -> None:
        largest = program.largest()[columns]
        self.a = program.limits.matrix[rows][:, columns].toarray() * largest / program.limits.bounds[rows, None]
        _, user = np.unique(program.pair_users[columns], return_inverse=True)
        self.user: IntArray = user.astype(np.int64)
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
        return np.bincount(self.user, weights=self.u * y)[self.user]

    # The path ------------------------------------------------------------------------------------------------------------------

    def split(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return y and s of a state, (log s, and y or its logarithm)."""
        n = self.user.size
        y = np.maximum(state[:n], 0.0)
        y[self.several] = np.exp(state[:n][self.several])
        return y, np.exp(state[n:])

    def c(self, y: FloatArray, s: FloatArray) -> float:
        """Return c = x.g - sum m."""
        return float(y @ (self.a.T @ (1 / s)) - self.m.sum())

    def slope(self, state: FloatArray) -> FloatArray:
        """d state / dt."""
        y, s = self.split(state)
        g = self.a.T @ (1 / s)
        c = self.c(y, s)
        if c > 1:  # d/dc of the equations of `_newton`, whose coefficients stay bounded
            point = self.at(y, s, c)
            right = np.concatenate([np.zeros(y.size), np.ones(s.size + int(self.m.sum()))])
            dy = -_solve_rows(self._jacobian(point), right)[: y.size]
        else:
            w, dw = self.phi.copy(), 0.0
            if self.several.any():
                utility = self.utility(y)
                w = np.where(self.several, self.phi * self.u * y / utility, self.phi)
                dw = np.where(self.same & self.several, np.diag(self.phi * self.u / utility) - np.outer(w / utility, self.u), 0.0)
            dy = np.linalg.solve(np.diag(g) + y[:, None] * ((self.a / s[:, None] ** 2).T @ self.a) - c * dw, w)
        relative = np.divide(dy, y, out=np.zeros_like(y), where=self.several)
        dy /= g @ dy - relative.sum()
        relative = np.divide(dy, y, out=np.zeros_like(y), where=self.several)
        return np.concatenate([np.where(self.several, relative, dy), -(self.a @ dy) / s])

    def follow(self, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
        """Integrate from the start to c = _END; return t, the states (steps, ...) and how many slopes were computed."""
        from scipy.integrate import LSODA

        y, s, t = np.zeros(self.user.size), np.ones(len(self.a)), 0.0
        if self.several.any():
            inside = 0.5 / self.a.sum(axis=1).max()
            y[:] = inside
            s = 1 - self.a @ y
            start = self._newton(self.at(y, s, 1.0), (1 / _START for _ in range(_STEPS)), deadline)[0]
            y, s = start.y, start.s
            t = float(-np.log(s).sum() - np.log(y[self.several]).sum())
        state = np.concatenate([np.where(self.several, np.log(np.where(self.several, y, 1.0)), y), np.log(s)])

        def slope(_: float, state: FloatArray) -> FloatArray:
            if deadline.left == 0.0:
                raise deadline.passed({})
            return self.slope(state)

        times, states, evaluations = [t], [state], 0
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                run = LSODA(slope, t, state, _LONGEST, rtol=_RTOL, atol=_ATOL)
                while run.status == "running" and len(times) < _LONGEST_PATH and self.c(*self.split(states[-1])) < _END:
                    message = run.step()
                    if run.status == "failed" or not np.isfinite(run.y).all():
                        log.info("the trajectory stops at t = %g: %s; Newton's method goes on from there", times[-1], message)
                        break
                    times.append(float(run.t))
                    states.append(np.array(run.y))
                evaluations = int(run.nfev)
            except (np.linalg.LinAlgError, ValueError) as error:
                log.info("the trajectory stops at t = %g: %s; Newton's method goes on from there", times[-1], error)
        return np.array(times), np.array(states), evaluations

    # The end -------------------------------------------------------------------------------------------------------------------

    def at(self, y: FloatArray, s: FloatArray, c: float) -> _Point:
        """Return the point with the multipliers that the path gives it."""
        c = max(c, _START)
        y = np.maximum(y, 1e-300)
        return _Point(y, s, 1 / (c * s), self.m / (c * y))

    def finish(self, point: _Point, deadline: Deadline) -> tuple[_Point, int]:
        """Follow the path from c = _END on in Newton steps, to 1/c = _LAST."""
        mu = float(np.median(point.s * point.p))

        def targets() -> Iterable[float]:
            now = mu
            for _ in range(_STEPS):
                now = max(now * _TOWARDS, _LAST)
                yield now

        end, steps = self._newton(point, targets(), deadline)
        return self._snap(end), steps

    def _snap(self, point: _Point) -> _Point:
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
        snapped = _Point(np.zeros_like(point.y), point.s, np.zeros_like(point.p), np.zeros_like(point.z))
        snapped.y[held], snapped.p[rows] = y, np.where(np.abs(p) < _NEGLIGIBLE, 0.0, p)
        return snapped if self._violation(snapped) <= max(self._violation(point), _NEGLIGIBLE) else point

    def _violation(self, point: _Point) -> float:
        """Largest violation of the KKT conditions, all in parts of the whole."""
        if not ((point.y >= 0).all() and (point.p >= 0).all() and np.isfinite(point.p).all() and (self.utility(point.y) > 0).all()):
            return float("inf")
        slack = 1 - self.a @ point.y
        reduced = self.a.T @ point.p - self.phi * self.u / self.utility(point.y)
        return float(max(-slack.min(), (point.p * slack).max(), (-reduced).max(), np.abs(reduced * point.y).max()))

    def _jacobian(self, point: _Point) -> FloatArray:
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

    def _newton(self, point: _Point, targets: Iterable[float], deadline: Deadline) -> tuple[_Point, int]:
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
            matrix = self._jacobian(_Point(y, s, p, z))
            right = np.concatenate([gradient - self.a.T @ p + z, mu - s * p - p * off, mu - (y * z)[own]])
            try:
                step = _solve_rows(matrix, right)
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
                best, worst_seen = _Point(y, s, p, z), worst
            else:
                stale += 1
            if stale >= 3:
                if worst_seen < 1e-12 or mu <= _LAST:
                    break
                stale = 0
        return best, steps


def _solve_rows(matrix: FloatArray, right: FloatArray) -> FloatArray:
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


def _path(
    program: Program, problem: _Problem, t: FloatArray, states: FloatArray, end: _Point, columns: IntArray, rows: IntArray
) -> Path:
    """Bring the states back to the pairs and limits of the program."""
    x = np.zeros((t.size, program.n_pairs))
    utilization = np.zeros((t.size, len(program.limits)))
    multipliers = np.zeros((t.size, len(program.limits)))
    scale = program.largest()[columns]
    for step, state in enumerate(states):
        y, s = problem.split(state)
        x[step, columns] = y * scale
        utilization[step, rows] = problem.a @ y
        c = problem.c(y, s)
        multipliers[step, rows] = 1 / (c * s) if c > 0 else np.inf
    full = np.zeros(len(program.limits), bool)
    full[rows] = end.s <= _FULL
    return Path(
        t,
        x,
        utilization,
        multipliers,
        full,
        tuple((program.users[n], program.servers[i]) for n, i in zip(program.pair_users, program.pair_servers, strict=True)),
        tuple(program.limit_name(row) for row in range(len(program.limits))),
    )
