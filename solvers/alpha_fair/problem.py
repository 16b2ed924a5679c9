r"""An alpha-fair program in units of its own, its optimality conditions, and the linear system of their Newton steps.

    maximise  sum_n phi[n] g(t[n])    subject to   A x <= 1,   t = V'x,   x >= 0,          g'(t) = t^-alpha

is optimal where there are s, p, y, z >= 0 with

    A x + s = 1,     t = V'x,     A'p = V y + z,          linear
    y[n] t[n]^alpha = phi[n],     p s = 0,     x z = 0.    products: in logarithms of the unknowns the first is linear too

y[n] is what one more unit of t[n] is worth, m[n] = y[n] t[n] the money of user n: at alpha = 1 its weight. For alpha far from 1
both span many orders of magnitude, and so do the prices: a user who can have a millionth of what others have is
10^60 times as worthy at alpha = 10. Everything below is relative to the user's own money, or, of a limit, to
that of the users who fill it.

A `Tradeoff` goal has the conditions of sum phi[n] g(U[n]) + kappa sum U[n], with alpha = beta and one kappa that follows from its answer
(``tradeoff``). For a given kappa only the worth of a unit differs, y = phi t^-alpha + kappa: where it says alpha below, read
-d log y / d log t, the part of alpha that is left.

A Newton step of these equations, with dz, ds and dt eliminated, is one quasi-definite system,

    [ D  B' ] [dx]       B = [ A  ]     D = z/x     F = (s/p, t / (alpha y))     q = (dp, dy)
    [ B  -F ] [dq]           [ -V']

D is large for pairs that are not used: those columns are eliminated, safely. The others stay, since D^-1 would drown F in rounding.
What remains is equilibrated, factorised (dense while it is small, else sparse) and refined.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import AlphaFair, Program, Solution, Tradeoff

__all__ = ["AlphaFairProblem", "Newton", "State"]

_DENSE = 1500  # unknowns; beyond that the sparse factorisation is faster
_REGULAR = 1e-14  # relative; refinement takes it out again
_RETAIN = 1e-2  # a pair whose worth over its cost is nearer to 1 than this stays in the system
_REFINEMENTS = 4
_LEAST_FALL = 1e-12  # below, the worth of a unit is as good as constant
_LARGEST_LOG = 690.0  # exp of more overflows


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A point: tasks x, slack s, prices p, reduced costs z, utilities t and their worth y, all in the problem's units."""

    x: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray
    t: FloatArray
    y: FloatArray


class AlphaFairProblem:
    """A program with an `AlphaFair` or `Tradeoff` goal in units in which columns reach 1, limits are 1 and utilities are of order 1.

    Users who can have nothing, and what has no room at all, are left out.
    """

    def __init__(self, program: Program, goal: AlphaFair | Tradeoff) -> None:
        self.program, self.alpha = program, goal.beta if isinstance(goal, Tradeoff) else goal.alpha
        largest = program.largest()
        self.column = np.flatnonzero(largest > 0)
        self.row = np.flatnonzero(program.limits.bounds > 0)
        self.member, self.user = np.unique(program.pair_users[self.column], return_inverse=True)
        self.scale = largest[self.column]
        worth = program.utilities[self.column] * self.scale
        self.unit = np.zeros(self.member.size)
        np.maximum.at(self.unit, self.user, worth)
        self.v = worth / self.unit[self.user]
        matrix = sp.csr_array(program.limits.matrix[self.row][:, self.column] * self.scale)
        self.A = sp.csr_array(matrix / program.limits.bounds[self.row][:, None])
        self.At = sp.csr_array(self.A.T)
        V = sp.csr_array((self.v, (self.user, np.arange(self.v.size))), shape=(self.member.size, self.v.size))
        self.B = sp.csr_array(sp.vstack([self.A, -V], format="csr"))
        self.Bt = sp.csr_array(self.B.T)
        self.log_weight = np.log(goal.weights[self.member])
        self.log_kappa = -np.inf
        self.shift = 0.0
        self.set_alpha(self.alpha)
        self.shift = float(np.median(self.log_phi)) if self.member.size else 0.0
        self.set_alpha(self.alpha)

    def set_alpha(self, alpha: float) -> None:
        """Change alpha, on the way to the program's own."""
        self.alpha = alpha
        self.log_phi = self.log_weight + (1 - alpha) * np.log(self.unit) - self.shift
        self.log_flat = self.log_kappa + np.log(self.unit) - self.shift

    def set_total_worth(self, log_kappa: float) -> None:
        """Change what a unit of the total is worth, in the program's units; -inf, the default: nothing."""
        self.log_kappa = log_kappa
        self.set_alpha(self.alpha)

    @property
    def flat(self) -> bool:
        """Is a part of the worth the same whatever a user has?"""
        return self.log_kappa > -np.inf

    @property
    def n_rows(self) -> int:
        """Number of limits."""
        return int(self.row.size)

    def use(self, x: FloatArray) -> FloatArray:
        """Return A x, (limits,)."""
        return np.asarray(self.A @ x)

    def cost(self, p: FloatArray) -> FloatArray:
        """Return A'p, (pairs,)."""
        return np.asarray(self.At @ p)

    def utility(self, x: FloatArray) -> FloatArray:
        """Return V'x, (members,)."""
        return np.bincount(self.user, weights=self.v * x, minlength=self.member.size).astype(np.float64)

    def worth(self, t: FloatArray) -> FloatArray:
        """Return phi t^-alpha + kappa, (members,)."""
        log_worth = self.log_phi - self.alpha * np.log(t)
        if self.flat:
            log_worth = np.logaddexp(log_worth, self.log_flat)
        return np.exp(np.clip(log_worth, -_LARGEST_LOG, _LARGEST_LOG))

    def bent(self, log_y: FloatArray, log_t: FloatArray) -> FloatArray:
        """By how much log y is more than that of the worth of t, (members,)."""
        if not self.flat:
            return log_y + self.alpha * log_t - self.log_phi
        return np.asarray(log_y - np.logaddexp(self.log_phi - self.alpha * log_t, self.log_flat))

    def fall(self, log_t: FloatArray) -> FloatArray | float:
        """Return -d log y / d log t, by how many percent the worth falls where t grows by one: alpha, or the part of it that is left."""
        if not self.flat:
            return self.alpha
        own = self.log_phi - self.alpha * log_t
        left: FloatArray = np.exp(own - np.logaddexp(own, self.log_flat))
        return np.clip(self.alpha * left, _LEAST_FALL, None)

    def residuals(self, at: State) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return what is missing in A x + s = 1, t = V'x, A'p = V y + z and log y + alpha log t = log phi."""
        return (
            1.0 - self.use(at.x) - at.s,
            at.t - self.utility(at.x),
            self.v * at.y[self.user] + at.z - self.cost(at.p),
            self.bent(np.log(at.y), np.log(at.t)),
        )

    def log_money_of_limits(self, x: FloatArray, log_money: FloatArray) -> FloatArray:
        """Logarithm of the harmonic mean of the money of the pairs of each limit, (pairs,), by their parts of its use, (limits,).

        Harmonic, because a price is no small matter as long as it is not small for the user with the least money.
        """
        least = float(log_money.min())
        use = self.use(x)
        parts = self.use(x * np.exp(least - log_money))
        return np.asarray(least + np.log(np.where(use > 0, use, 1.0)) - np.log(np.maximum(np.where(use > 0, parts, 1.0), 1e-300)))

    def error(self, x: FloatArray, p: FloatArray) -> float:
        """Largest violation of the conditions at tasks x and prices p, each relative to the money that is at stake.

        Use beyond a limit; a pair that is worth more than it costs; and, of what each user has, the part of its money that is spent
        badly: on pairs that cost more than they are worth, or on limits that are not full.
        """
        t = self.utility(x)
        if not (t > 0).all() or not np.isfinite(p).all():
            return float("inf")
        y = self.worth(t)
        bang = (self.cost(p)) / (self.v * y[self.user])
        idle = np.maximum(1.0 - self.use(x), 0.0)
        overspent = np.bincount(self.user, self.v * x * np.maximum(bang - 1, 0.0), minlength=t.size) / t
        money = np.exp(self.log_money_of_limits(x, (np.log(y) + np.log(t))[self.user]))
        return max(
            float((self.use(x) - 1).max(initial=0.0)),
            float((1 - bang).max(initial=0.0)),
            float(overspent.max(initial=0.0)),
            float((p * idle / money).max(initial=0.0)),
            float(-x.min(initial=0.0)),
        )

    def solution(self, x: FloatArray, p: FloatArray, iterations: int) -> Solution:
        """Return a point in the program's own units."""
        tasks = np.zeros(self.program.n_pairs)
        tasks[self.column] = np.maximum(x, 0.0) * self.scale
        nothing = self.member[self.program.per_user(tasks)[self.member] == 0]
        if nothing.size:
            user = self.program.users[nothing[0]]
            word = "beta" if isinstance(self.program.goal, Tradeoff) else "alpha"
            raise Unsupported(
                f'at {word} = {self.alpha:g}, user "{user}" gets less than floating point can hold (1e-308 tasks); '
                f'use a larger {word}, weights that are less far apart, or "efficiency", where it gets nothing'
            )
        prices = np.zeros(len(self.program.limits))
        with np.errstate(divide="ignore"):
            log_price = np.log(np.maximum(p, 0.0)) - np.log(self.program.limits.bounds[self.row]) + self.shift
        # True multipliers, but for magnitudes beyond floating point.
        prices[self.row] = np.exp(log_price - max(0.0, float(log_price.max(initial=0.0)) - _LARGEST_LOG))
        return Solution(tasks, prices=prices, iterations=iterations, programs_solved=1)


class Newton:
    """The factorised system for given D (pairs,) and F (limits and members,), both >= 0."""

    def __init__(self, problem: AlphaFairProblem, D: FloatArray, F: FloatArray, keep: BoolArray) -> None:
        self.problem, self.D, self.F = problem, D, F
        self.kept: IntArray = np.flatnonzero(keep)
        rest = np.flatnonzero(~keep)
        self.rest = rest
        B = problem.B
        self.B_kept, self.B_rest = sp.csr_array(problem.Bt[self.kept].T), sp.csr_array(problem.Bt[rest].T)
        G = sp.csr_array(self.B_rest * (1.0 / D[rest])) @ self.B_rest.T + sp.diags_array(F)
        matrix = sp.block_array([[sp.diags_array(D[self.kept]), self.B_kept.T], [self.B_kept, -G]], format="csr")
        self.units = _equilibrate(matrix)
        scaled = sp.csr_array(sp.csr_array(matrix * self.units) * self.units[:, None])
        sign = np.concatenate([np.ones(self.kept.size), -np.ones(B.shape[0])])
        self._solve = _factorise(sp.csr_array(scaled + sp.diags_array(_REGULAR * sign)))

    def step(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve D dx + B'dq = top, B dx - F dq = bottom."""
        dx, dq = self._once(top, bottom)
        best = np.inf
        for _ in range(_REFINEMENTS):
            # Each equation is judged in its own units; the eliminated columns are solved exactly.
            left = top - self.D * dx - self.problem.Bt @ dq
            below = bottom - self.problem.B @ dx + self.F * dq
            size = float(np.abs(np.concatenate([left[self.kept], below]) * self.units).max(initial=0.0))
            if not size < 0.5 * best:
                break
            best = size
            ddx, ddq = self._once(left, below)
            dx, dq = dx + ddx, dq + ddq
        return dx, dq

    def _once(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest, kept = self.rest, self.kept
        right = np.concatenate([top[kept], bottom - self.B_rest @ (top[rest] / self.D[rest])])
        both = self._solve(right * self.units) * self.units
        dx, dq = np.empty(self.D.size), both[kept.size :]
        dx[kept] = both[: kept.size]
        dx[rest] = (top[rest] - self.B_rest.T @ dq) / self.D[rest]
        return dx, dq

    @staticmethod
    def nearly_worth_it(problem: AlphaFairProblem, at: State) -> BoolArray:
        """Which pairs must stay in the system: those that are used, or nearly so."""
        return np.asarray(at.z < _RETAIN * problem.v * at.y[problem.user])


def _equilibrate(matrix: sp.csr_array) -> FloatArray:
    """Units in which every row and column of a symmetric matrix has a largest entry of about 1 (Ruiz 2001)."""
    units = np.ones(matrix.shape[0])
    size = abs(matrix)
    for _ in range(6):
        largest = np.asarray((sp.csr_array(size * units) * units[:, None]).max(axis=1).toarray()).ravel()
        units /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return units


def _factorise(matrix: sp.csr_array) -> Callable[[FloatArray], FloatArray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nearly singular: the refinement and the step lengths see to that
        if matrix.shape[0] <= _DENSE:
            factors = scipy.linalg.lu_factor(matrix.toarray(), overwrite_a=True, check_finite=False)
            return lambda right: np.asarray(scipy.linalg.lu_solve(factors, right, check_finite=False))
        factor = scipy.sparse.linalg.splu(
            sp.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=1e-3, options={"SymmetricMode": True}
        )
        return lambda right: np.asarray(factor.solve(right))
