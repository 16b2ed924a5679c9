r"""An alpha-fair program in scaled columns, and its KKT conditions.

    maximise  sum_n phi[n] g(t[n])    subject to   A x <= 1,   t = V'x,   x >= 0,          g'(t) = t^-alpha

x is optimal if and only if there are s, p, y, z >= 0 with

    A x + s = 1,     t = V'x,     A'p = V y + z,          linear conditions
    y[n] t[n]^alpha = phi[n],     p s = 0,     x z = 0.    products; the first is linear in the logarithms of its factors

y[n] is the marginal worth of t[n], and y[n] t[n] the money of user n: at alpha = 1 its weight. For alpha far from 1, worth and money span
many orders of magnitude, and so do the prices: at alpha = 10, a user who can have a millionth of what others have has a marginal worth
10^60 times as large. All residuals are therefore relative to the user's own money, or, of a limit, to that of the users who fill it.

A `Tradeoff` has the KKT conditions of sum phi[n] g(t[n]) + kappa sum t[n], with alpha = beta and a kappa that depends on the answer
(`fairopt.solvers.active_sets.tradeoff`). For a given kappa only the marginal worth differs, y = phi t^-alpha + kappa: its elasticity,
-d log y / d log t, is alpha times the part of y that depends on t.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.program import AlphaFair, Program, ScaledColumns, Solution, Tradeoff
from fairopt.solvers.active_sets.by_user import Rows
from fairopt.solvers.active_sets.settings import SETTINGS

__all__ = ["LARGEST_LOG", "AlphaFairProblem", "Point", "too_little"]

LARGEST_LOG = 690.0  # exp of more overflows


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Tasks (columns,) and prices (limits,) in a problem's units, and the steps that they took."""

    x: FloatArray
    p: FloatArray
    steps: int = 0


def too_little(program: Program, user: int) -> Unsupported:
    """Return the error to raise where a user's tasks are fewer than floating point can hold."""
    goal = program.goal
    word, value = ("beta", goal.beta) if isinstance(goal, Tradeoff) else ("alpha", goal.alpha if isinstance(goal, AlphaFair) else 1.0)
    return Unsupported(
        f'at {word} = {value:g}, user "{program.users[user]}" gets less than floating point can hold (1e-308 tasks); '
        f'use a larger {word}, weights that are less far apart, or "efficiency", where it gets nothing'
    )


@dataclass(frozen=True, slots=True, eq=False)
class AlphaFairProblem:
    """A program with an `AlphaFair` or `Tradeoff` goal, in units in which columns reach 1, limits are 1 and utilities are of order 1.

    Attributes
    ----------
    scaled : ScaledColumns
        The columns with room; "users" below are its members.
    unit : array (users,)
        Unit of a user's utility: the largest that one column alone can give.
    v : array (columns,)
        V: utility of each column at 1, in parts of the unit.
    A, At : sparse
        (limits, columns), and its transpose.
    rows : Rows
        B = [A; -V'].
    log_weight : array (users,)
    alpha : float
    log_kappa : float
        Worth of one more unit of the total, in the program's units; -inf: none.
    shift : float
        Logarithm of the unit of money.
    log_phi : array (users,)
        phi in these units.
    log_total_worth : array (users,)
        kappa in these units, for each user.
    """

    scaled: ScaledColumns
    unit: FloatArray
    v: FloatArray
    A: sp.csr_array
    At: sp.csr_array
    rows: Rows
    log_weight: FloatArray
    alpha: float
    log_kappa: float = -np.inf
    shift: float = 0.0
    log_phi: FloatArray = field(init=False)
    log_total_worth: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        log_unit = np.log(self.unit)
        object.__setattr__(self, "log_phi", self.log_weight + (1 - self.alpha) * log_unit - self.shift)
        object.__setattr__(self, "log_total_worth", self.log_kappa + log_unit - self.shift)

    @classmethod
    def of(cls, program: Program, goal: AlphaFair | Tradeoff) -> AlphaFairProblem:
        """Scale a program; the unit of money is such that the median of phi is 1."""
        scaled = program.scaled()
        unit = np.maximum.reduceat(scaled.utilities, scaled.first) if scaled.n_columns else np.empty(0)
        v = scaled.utilities / unit[scaled.user]
        V = sp.csr_array((v, (scaled.user, np.arange(v.size))), shape=(scaled.n_users, v.size))
        B = sp.csr_array(sp.vstack([scaled.use, -V], format="csr"))
        alpha = goal.beta if isinstance(goal, Tradeoff) else goal.alpha
        log_weight = np.log(goal.weights[scaled.members])
        problem = cls(scaled, unit, v, scaled.use, sp.csr_array(scaled.use.T), Rows(B, scaled.user), log_weight, alpha)
        return problem.with_shift(float(np.median(problem.log_phi))) if scaled.n_users else problem

    def with_alpha(self, alpha: float) -> AlphaFairProblem:
        """Return the problem with another alpha, in the same unit of money."""
        return replace(self, alpha=alpha)

    def with_total_worth(self, log_kappa: float) -> AlphaFairProblem:
        """Return the problem with another worth of a unit of the total, in the program's units."""
        return replace(self, log_kappa=log_kappa)

    def with_shift(self, shift: float) -> AlphaFairProblem:
        """Return the problem in another unit of money."""
        return replace(self, shift=shift)

    # Sizes -----------------------------------------------------------------------------------------------------------------------

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.scaled.n_users

    @property
    def n_rows(self) -> int:
        """Number of limits."""
        return int(self.A.shape[0])

    @property
    def user(self) -> np.ndarray:
        """User of each column."""
        return self.scaled.user

    # Linear maps -----------------------------------------------------------------------------------------------------------------

    def use(self, x: FloatArray) -> FloatArray:
        """Return A x, (limits,)."""
        return np.asarray(self.A @ x)

    def cost(self, p: FloatArray) -> FloatArray:
        """Return A'p, (columns,)."""
        return np.asarray(self.At @ p)

    def utility(self, x: FloatArray) -> FloatArray:
        """Return V'x, (users,)."""
        return self.scaled.per_user(self.v * x)

    # Marginal worth --------------------------------------------------------------------------------------------------------------

    @property
    def has_total(self) -> bool:
        """Does a unit of the total have a worth of its own?"""
        return self.log_kappa > -np.inf

    def worth(self, t: FloatArray) -> FloatArray:
        """Return phi t^-alpha + kappa, (users,)."""
        log_worth = self.log_phi - self.alpha * np.log(t)
        if self.has_total:
            log_worth = np.logaddexp(log_worth, self.log_total_worth)
        return np.exp(np.clip(log_worth, -LARGEST_LOG, LARGEST_LOG))

    def worth_residual(self, log_y: FloatArray, log_t: FloatArray) -> FloatArray:
        """Return log y minus the logarithm of the marginal worth of t, (users,)."""
        if not self.has_total:
            return log_y + self.alpha * log_t - self.log_phi
        return np.asarray(log_y - np.logaddexp(self.log_phi - self.alpha * log_t, self.log_total_worth))

    def elasticity(self, log_t: FloatArray) -> FloatArray | float:
        """Return the elasticity of the marginal worth, -d log y / d log t."""
        if not self.has_total:
            return self.alpha
        own = self.log_phi - self.alpha * log_t
        part: FloatArray = np.exp(own - np.logaddexp(own, self.log_total_worth))
        return np.clip(self.alpha * part, SETTINGS.least_elasticity, None)

    # Residuals -------------------------------------------------------------------------------------------------------------------

    def log_money_of_limits(self, x: FloatArray, log_money: FloatArray) -> FloatArray:
        """Return logarithms of the money of the columns (columns,) of each limit: the harmonic mean by parts of its use, (limits,).

        Harmonic, because a price is not small unless it is small for the user with the least money.
        """
        least = float(log_money.min())
        use = self.use(x)
        parts = self.use(x * np.exp(least - log_money))
        log_use = np.log(np.where(use > 0, use, 1.0))
        return np.asarray(least + log_use - np.log(np.maximum(np.where(use > 0, parts, 1.0), TINY)))

    def kkt_violation(self, x: FloatArray, p: FloatArray) -> float:
        """Return the largest violation of the KKT conditions at tasks x and prices p, each relative to the money at stake.

        It is the largest of: use beyond a limit; worth of a column beyond its cost; and, for each user, the part of its money that goes to
        columns that cost more than they are worth, or to limits that are not full.
        """
        t = self.utility(x)
        if not (t > 0).all() or not np.isfinite(p).all():
            return float("inf")
        y = self.worth(t)
        cost_of_worth = self.cost(p) / (self.v * y[self.user])
        idle = np.maximum(1.0 - self.use(x), 0.0)
        overspent = self.scaled.per_user(self.v * x * np.maximum(cost_of_worth - 1, 0.0)) / t
        money = np.exp(self.log_money_of_limits(x, (np.log(y) + np.log(t))[self.user]))
        return max(
            float((self.use(x) - 1).max(initial=0.0)),
            float((1 - cost_of_worth).max(initial=0.0)),
            float(overspent.max(initial=0.0)),
            float((p * idle / money).max(initial=0.0)),
            float(-x.min(initial=0.0)),
        )

    # The way back ----------------------------------------------------------------------------------------------------------------

    def point(self, solution: Solution) -> Point:
        """Return a solution in these units, with its prices of whole limits in its own unit of money."""
        assert solution.prices is not None
        scaled, bounds = self.scaled, self.scaled.program.limits.bounds
        return Point(solution.x[scaled.columns] / scaled.scale, solution.prices[scaled.rows] * bounds[scaled.rows])

    def solution(self, point: Point) -> Solution:
        """Return a point in the program's own units.

        Raises
        ------
        Unsupported
            A user's tasks are fewer than floating point can hold.
        """
        program, scaled = self.scaled.program, self.scaled
        tasks = scaled.tasks(np.maximum(point.x, 0.0))
        nothing = scaled.members[program.per_user(tasks)[scaled.members] == 0]
        if nothing.size:
            raise too_little(program, int(nothing[0]))
        prices = np.zeros(len(program.limits))
        with np.errstate(divide="ignore"):
            log_price = np.log(np.maximum(point.p, 0.0)) - np.log(program.limits.bounds[scaled.rows]) + self.shift
        # True multipliers, unless they are beyond floating point: then in parts of the largest.
        prices[scaled.rows] = np.exp(log_price - max(0.0, float(log_price.max(initial=0.0)) - LARGEST_LOG))
        return Solution(tasks, prices=prices, iterations=point.steps, programs_solved=1)
