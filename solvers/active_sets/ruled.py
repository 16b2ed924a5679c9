r"""The polish of answers under rules to goals with a gradient: from an approximate answer to the exact one, by primal-dual steps.

    maximise  G(t)    subject to   A y + s = b,   t = V'y,   y, s >= 0

with G(t) = sum of phi[n] g(t[n]), g'(t) = t^-alpha, or a trade-off, (1 - e) log M(t) + e log S. Bounds b may have any sign, so that no
limit is 1 and none is full in parts. y is optimal if and only if there are prices p >= 0 and z >= 0 with

    A'p - z = V w(t),     w = the gradient of G,     p s = 0,     y z = 0.

Newton's method solves these equations with p s = y z = mu, and mu goes to 0 (Mehrotra's predictor and corrector). In each step dz and ds
are eliminated:

    [ V H V' + diag(z / y)      A'       ]  [dy]
    [          A            -diag(s / p) ]  [dp],

where -H is the second derivative of G: H = diag(alpha w / t) of an alpha-fair goal. Of a trade-off, with r = phi t^(-beta) / P, P the sum
of phi t^(1 - beta), u the units of utilities and S the sum of u t,

    w = (1 - e) r + e u / S,     H = (1 - e) (diag(beta r / t) + (1 - beta) r r') + e u u' / S^2.

Utilities are in units of those of the approximate answer.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.leximin.ruled import Scaled

__all__ = ["polish_ruled"]

_Point: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # y, s, p, z, or steps of them
_STEPS = 150
_TO_THE_BOUNDARY = 0.99
_EXACT = 1e-15  # of the money of all users: complementarity and residuals
_LEAST = 1e-6  # with which slacks, columns and prices begin, in units of their own


def polish_ruled(program: Program, solution: Solution) -> Solution | None:
    """Return the optimum near a solution in which every user of the goal has something; None where the steps do not reach it.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2 * x[b]"])
    >>> polish_ruled(fo.formulate(pool, "proportional"), Solution(np.array([5.5, 2.5]))).x.round(9)
    array([6., 3.])
    """
    goal = program.goal
    if not isinstance(goal, AlphaFair | Tradeoff):
        return None
    scaled = Scaled.of(program)
    users = program.pair_users[scaled.columns]
    some, user = np.unique(users, return_inverse=True)
    y = np.maximum(solution.x[scaled.columns] / scaled.scale, 0.0)
    utilities = program.utilities[scaled.columns] * scaled.scale
    unit = np.bincount(user, weights=utilities * np.maximum(y, _LEAST))
    v = sp.csr_array((utilities / unit[user], (np.arange(user.size), user)), shape=(user.size, some.size))
    log_weight = np.log(goal.weights[some]) + (1 - goal.power) * np.log(unit)
    weight = np.exp(log_weight - log_weight.max())
    total = unit / unit.max() if isinstance(goal, Tradeoff) else None
    with np.errstate(all="ignore"):
        worth = _Worth(weight, goal.power) if total is None else _Worth(weight, goal.power, goal.efficiency, total)
        found = _Steps(scaled.matrix, scaled.right, v, worth).solve(np.maximum(y, _LEAST))
    if found is None:
        return None
    y, p, steps = found
    return Solution(
        scaled.point(y), prices=p / scaled.size, iterations=solution.iterations + steps, programs_solved=solution.programs_solved
    )


class _Worth:
    """The gradient of a goal, and its second derivative; ``units`` are those of the total of a trade-off."""

    def __init__(self, weight: FloatArray, power: float, e: float = 0.0, units: FloatArray | None = None) -> None:
        self.weight, self.power, self.e, self.units = weight, power, e, units
        self.money = float(weight.sum()) if units is None else 1.0

    def gradient(self, t: FloatArray) -> FloatArray:
        """Return w, (users,)."""
        own = self.weight * t**-self.power
        if self.units is None:
            return own
        return np.asarray((1 - self.e) * own / (own @ t) + self.e * self.units / (self.units @ t))

    def curvature(self, t: FloatArray) -> sp.csr_array:
        """Return H, (users, users)."""
        own = self.weight * t**-self.power
        if self.units is None:
            return sp.csr_array(sp.diags_array(self.power * own / t))
        r, total = own / (own @ t), self.units / (self.units @ t)
        across = (1 - self.e) * (1 - self.power) * np.outer(r, r) + self.e * np.outer(total, total)
        return sp.csr_array(across + np.diag((1 - self.e) * self.power * r / t))


class _Steps:
    """The primal-dual steps of one program."""

    def __init__(self, matrix: sp.csr_array, right: FloatArray, v: sp.csr_array, worth: _Worth) -> None:
        self.matrix, self.right, self.v, self.worth = matrix, right, v, worth
        self.by_column, self.by_user = sp.csr_array(matrix.T), sp.csr_array(v.T)
        self.money = worth.money

    def solve(self, y: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
        """Return columns, prices and the number of steps; None where the steps stall."""
        s = np.maximum(self.right - self.matrix @ y, _LEAST)
        mean = self.money / (y.size + s.size)
        z, p = mean / np.maximum(y, 1e-3), mean / np.maximum(s, 1e-3)
        best, kept, steps = np.inf, (y, p), 0
        while steps < _STEPS:
            steps += 1
            residual = self._residual(y, s, p, z)
            if not np.isfinite(residual):
                break
            if residual < best:
                best, kept = residual, (y, p)
            if residual <= _EXACT:
                break
            moved = self._step(y, s, p, z)
            if moved is None:
                break
            y, s, p, z = moved
        return (*kept, steps) if best <= 1e-6 else None

    def _residuals(self, y: FloatArray, s: FloatArray, p: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.by_column @ p - z - self.v @ self.worth.gradient(self.by_user @ y), self.matrix @ y + s - self.right

    def _residual(self, y: FloatArray, s: FloatArray, p: FloatArray, z: FloatArray) -> float:
        dual, primal = self._residuals(y, s, p, z)
        return float((np.abs(dual) @ y + y @ z + s @ p) / self.money + np.abs(primal).max(initial=0.0))

    def _step(self, y: FloatArray, s: FloatArray, p: FloatArray, z: FloatArray) -> _Point | None:
        dual, primal = self._residuals(y, s, p, z)
        hessian = self.v @ self.worth.curvature(self.by_user @ y) @ self.by_user
        system = sp.block_array([[hessian + sp.diags_array(z / y), self.by_column], [self.matrix, -sp.diags_array(s / p)]], format="csc")
        try:
            factors = splu(system)
        except RuntimeError:
            return None

        def direction(columns: FloatArray, rows: FloatArray) -> _Point:
            """Return the step to y z = columns and s p = rows, first-order."""
            right = np.concatenate([-dual + columns / y - z, -primal - rows / p + s])
            found = factors.solve(right)
            found += factors.solve(right - system @ found)
            dy, dp = found[: y.size], found[y.size :]
            return dy, rows / p - s - s / p * dp, dp, columns / y - z - z / y * dy

        count = y.size + s.size
        mu = float(y @ z + s @ p) / count
        dy, ds, dp, dz = direction(np.zeros(y.size), np.zeros(s.size))
        length = _length((y, dy), (s, ds), (p, dp), (z, dz))
        ahead = float((y + length * dy) @ (z + length * dz) + (s + length * ds) @ (p + length * dp)) / count
        centre = mu * min(max(ahead / mu, 1e-3), 1.0) ** 3 if mu > 0 else 0.0
        dy, ds, dp, dz = direction(centre - dy * dz, centre - ds * dp)
        length = _TO_THE_BOUNDARY * _length((y, dy), (s, ds), (p, dp), (z, dz))
        if not np.isfinite(length) or length < 1e-12:
            return None
        length = min(length, 1.0)
        return y + length * dy, s + length * ds, p + length * dp, z + length * dz


def _length(*pairs: tuple[FloatArray, FloatArray]) -> float:
    """Return the longest step, up to a little more than 1, at which nothing is below 0."""
    longest = 1.0 / _TO_THE_BOUNDARY
    for value, change in pairs:
        falls = change < 0
        longest = min(longest, float((-value[falls] / change[falls]).min(initial=np.inf)))
    return longest
