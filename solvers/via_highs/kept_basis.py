r"""One level for users with task limits, from the basis of the last moment: dual simplex on a kept inverse.

    maximise t   subject to   A x <= b,   x >= 0,   sum_i u[n,i] x[n,i] >= min(phi[n] t, cap[n]) for each user n

From moment to moment only the caps and the weights phi differ: the right-hand side. Let y = (q, p) be prices under which no pair, no free
limit and no user is priced wrongly (dual feasible). By weak duality t is at most the root of

    sum_n q[n] min(phi[n] t, cap[n]) = p.b,

and at this t the right-hand side is orthogonal to y. The basic variables then solve a square system whose column for t has the coefficient
0, whatever the users' rates are, so that the inverse of one basis serves every moment. If no basic variable is negative, they are an
optimum, and t is its level (`KeptBasis`). Otherwise a pivot of dual simplex lowers the root. With a *past* of the users, past[n] >= 0, the
right-hand side is min(max(phi[n] t - past[n], 0), cap[n]), and the same argument holds.

If there are few tasks, every user has its cap and there is no level. A basis without t serves these moments; its prices are 0.

The point and the prices are an answer like that of any engine: its certificate is computed from them alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import NOISE, SAME
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["KeptBasis", "LevelSystem", "OneLevel"]


@dataclass(frozen=True, slots=True, eq=False)
class OneLevel:
    """Tasks per pair, (pairs,); and the level with its prices, (limits,), per unit of each limit, if some users are stopped by it."""

    x: FloatArray
    t: float
    prices: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class LevelSystem:
    """The rows and columns of a `LevelProblem` in units of their own: limits have the bound 1, a user's pairs add up to its utility.

    Variables are numbered pairs first, then the slack of each limit, then the surplus of each user.

    Attributes
    ----------
    problem : LevelProblem
    use : array (limits, pairs)
        Sparse, by row.
    by_pair : array (pairs, limits)
        The same, by pair.
    users : int array (pairs,)
        Position among the members.
    members : int array (members,)
    unit : array (members,)
        Utility of a user in these units.
    scale : array (pairs,)
        Tasks per unit of a pair.
    """

    problem: LevelProblem
    use: sp.csr_array
    by_pair: sp.csr_array
    users: IntArray
    members: IntArray
    unit: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, problem: LevelProblem, weights: FloatArray) -> LevelSystem:
        """Return the system of a problem whose levels are utilities divided by ``weights``, (users,)."""
        members = np.flatnonzero(problem.members)
        place = np.cumsum(problem.members) - 1
        unit = problem.reach * weights
        scale = unit[problem.users] / (problem.per_level[problem.columns] * weights[problem.users])
        limits = problem.program.limits
        matrix = sp.csr_array(limits.matrix[problem.rows][:, problem.columns])
        use = sp.csr_array(
            (
                matrix.data * scale[matrix.indices] / np.repeat(limits.bounds[problem.rows], np.diff(matrix.indptr)),
                matrix.indices,
                matrix.indptr,
            ),
            shape=matrix.shape,
        )
        return cls(problem, use, sp.csr_array(use.T), place[problem.users], members, unit[members], scale)

    @property
    def size(self) -> int:
        """Number of rows: limits, then users."""
        return self.use.shape[0] + self.members.size

    def columns(self, variables: IntArray) -> FloatArray:
        """Return the columns of these variables, (rows, variables)."""
        limits, pairs = self.use.shape
        matrix = np.zeros((self.size, variables.size))
        for k, j in enumerate(variables.tolist()):
            if j < pairs:
                span = slice(self.by_pair.indptr[j], self.by_pair.indptr[j + 1])
                matrix[self.by_pair.indices[span], k] = self.by_pair.data[span]
                matrix[limits + self.users[j], k] = 1.0
            else:
                matrix[j - pairs, k] = 1.0 if j - pairs < limits else -1.0
        return matrix

    def product(self, row: FloatArray) -> FloatArray:
        """Return the products of a row, (rows,), with all columns, (variables,)."""
        limits = self.use.shape[0]
        of_limits, of_users = row[:limits], row[limits:]
        return np.concatenate([self.by_pair @ of_limits + of_users[self.users], of_limits, -of_users])

    def row_sums(self, variables: IntArray, values: FloatArray) -> FloatArray:
        """Return the sums of the columns of these variables times their values, (rows,)."""
        limits, pairs = self.use.shape
        every = np.zeros(pairs + self.size)
        every[variables] = values
        y, slack, surplus = every[:pairs], every[pairs : pairs + limits], every[pairs + limits :]
        of_users = np.bincount(self.users, weights=y, minlength=surplus.size)
        return np.concatenate([self.use @ y + slack, of_users - surplus])


class KeptBasis:
    """A basis and its inverse, which serve one moment after another.

    Parameters
    ----------
    system : LevelSystem
    basic : int array (rows,) or (rows - 1,)
        The basic variables.
    rising : array (members,), or None
        Who rises where t is basic, at any positive rate; None: t is not basic, and ``basic`` has one variable more.
    """

    def __init__(self, system: LevelSystem, basic: IntArray, rising: FloatArray | None) -> None:
        self.system, self.basic, self.rising = system, np.array(basic), rising
        self.inverse, self.pivots = self._inverted(), 0

    @classmethod
    def of(cls, system: LevelSystem, basic: IntArray, rising: FloatArray | None) -> KeptBasis | None:
        """Return the basis; None where it is singular, or some variable has a price on the wrong side of 0."""
        try:
            kept = cls(system, basic, rising)
        except ZeroDivisionError:
            return None
        prices = kept.prices()
        reduced = system.product(prices)
        return kept if np.isfinite(kept.inverse).all() and reduced.min() >= -SETTINGS.wrong_price * np.abs(prices).max() else None

    @property
    def has_level(self) -> bool:
        """Is t basic?"""
        return self.rising is not None

    def _inverted(self) -> FloatArray:
        columns = self.system.columns(self.basic)
        if self.rising is not None:
            of_t = np.concatenate([np.zeros(self.system.use.shape[0]), -self.rising])
            columns = np.column_stack([columns, of_t])
        return _inverse(columns)

    def prices(self) -> FloatArray:
        """Return the prices of limits and, negative, those of users, (rows,); 0 without a level."""
        return self.inverse[-1] if self.has_level else np.zeros(self.system.size)

    def solve(self, cap: FloatArray, weights: FloatArray, t: float = np.inf, past: FloatArray | float = 0.0) -> OneLevel | None:
        """Return the answer for these caps, weights and past, of utilities, (members,); None where it needs another basis or more levels.

        ``t`` is the `level` at the present prices, where there is one.
        """
        for _ in range(SETTINGS.most_pivots):
            levels = np.minimum(np.maximum(weights * t - past, 0.0), cap) if self.has_level else cap
            right = np.concatenate([np.ones(self.system.use.shape[0]), levels / self.system.unit])
            values = self._values(right)
            lowest = int(values.argmin())
            if values[lowest] >= -SETTINGS.negative:
                return self._answer(self._refined(values, right), levels, t, cap, weights, past)
            if not self._pivot(lowest):
                return None
            t = self.level(cap, weights, past)
        return None

    def level(self, cap: FloatArray, weights: FloatArray, past: FloatArray | float = 0.0) -> float:
        """Return the root t at the present prices, which no level exceeds; inf where all have their caps, and where t is not basic."""
        if not self.has_level:
            return np.inf
        prices, limits = self.prices(), self.system.use.shape[0]
        q = np.maximum(-prices[limits:], 0.0) / self.system.unit
        if _anybody(past):
            return _root(q, cap, weights, np.broadcast_to(past, cap.shape), float(np.maximum(prices[:limits], 0.0).sum()))
        paid, most = q * cap, cap / weights
        order = np.argsort(most)
        after = np.cumsum((q * weights)[order][::-1])[::-1]  # what all with this cap or a larger one pay for a unit of t
        paid, most = np.cumsum(paid[order]) - paid[order], most[order]
        left = float(np.maximum(prices[:limits], 0.0).sum()) - paid
        stops = np.flatnonzero(left < most * after)
        return float(left[stops[0]] / after[stops[0]]) if stops.size else np.inf

    def _values(self, right: FloatArray) -> FloatArray:
        """Return the values of the basic variables for a right-hand side; that of t is 0."""
        return np.asarray(np.einsum("ij,j->i", self.inverse[: self.basic.size], right))

    def _refined(self, values: FloatArray, right: FloatArray) -> FloatArray:
        """Return more digits of the values, where rounding of the inverse shows."""
        for _ in range(SETTINGS.refinements_of_basis):
            left = right - self.system.row_sums(self.basic, values)
            if np.abs(left).max() <= SETTINGS.sharp:
                break
            values = values + self._values(left)
        return values

    def _pivot(self, leaving: int) -> bool:
        """Take a variable out of the basis for that with the smallest ratio of prices; False where there is none."""
        row = self.inverse[leaving]
        entries, reduced = self.system.product(row), self.system.product(self.prices())
        entries[self.basic] = 0.0
        able = np.flatnonzero(entries < -SETTINGS.least_pivot * np.abs(row).max())
        if not able.size:
            return False
        ratios = np.maximum(reduced[able], 0.0) / -entries[able]
        ties = able[ratios <= ratios.min() * (1 + SAME)]
        entering = int(ties[entries[ties].argmin()])
        before, self.basic[leaving] = self.basic[leaving], entering
        self.pivots += 1
        if self.pivots >= SETTINGS.refactor_every:
            try:
                self.inverse, self.pivots = self._inverted(), 0
            except ZeroDivisionError:  # singular: the basis stays what it was
                self.basic[leaving] = before
                return False
            return True
        column = np.einsum("ij,j->i", self.inverse, self.system.columns(np.array([entering]))[:, 0])
        pivot = column[leaving]
        column[leaving] -= 1.0
        self.inverse -= np.outer(column, self.inverse[leaving] / pivot)
        return True

    def _answer(
        self, values: FloatArray, levels: FloatArray, t: float, cap: FloatArray, weights: FloatArray, past: FloatArray | float
    ) -> OneLevel | None:
        """Return the point of the basis with every user at its level exactly, if it is one beyond rounding."""
        system = self.system
        limits, pairs = system.use.shape
        y = np.zeros(pairs)
        of_pairs = self.basic < pairs
        y[self.basic[of_pairs]] = np.maximum(values[of_pairs], 0.0)
        wanted, got = levels / system.unit, np.bincount(system.users, weights=y, minlength=levels.size)
        if (got < wanted * (1 - 1e-9)).any():
            return None
        y *= np.divide(wanted, got, out=np.zeros(levels.size), where=got > 0)[system.users]
        over = float((system.use @ y).max(initial=0.0)) - 1
        if over > (SETTINGS.over_with_past if _anybody(past) else SETTINGS.over):
            return None
        if over > SETTINGS.over:
            y /= 1 + over
        x = np.zeros(system.problem.program.n_pairs)
        x[system.problem.columns] = y * system.scale
        if not self.has_level:
            return OneLevel(x, t, None)
        prices = self.prices()
        q, p = np.maximum(-prices[limits:], 0.0), np.maximum(prices[:limits], 0.0)
        waiting = weights * t <= past  # they have as much from their past
        rising = (cap > weights * t - past) & ~waiting
        paid = q * np.maximum(wanted, past / system.unit)
        if not rising.any() or not (paid[rising | (waiting & (cap > 0))] > NOISE * p.sum()).all():
            return None  # somebody is not stopped by these prices, and has a higher level
        full = np.zeros(len(system.problem.program.limits))
        rate = float((q * weights / system.unit)[rising].sum())
        full[system.problem.rows] = p / rate / system.problem.program.limits.bounds[system.problem.rows]
        return OneLevel(x, t, full)


def _anybody(past: FloatArray | float) -> bool:
    """Has anybody a past?"""
    return isinstance(past, np.ndarray) and bool(past.any())


def _root(q: FloatArray, cap: FloatArray, weights: FloatArray, past: FloatArray, left: float) -> float:
    """Return the t at which the sum of q min(max(weights t - past, 0), cap) is ``left``; inf where it never is.

    >>> _root(np.ones(2), np.array([9.0, 1.0]), np.ones(2), np.array([0.0, 2.0]), 5.0)  # 2, then 1 more of each, then 1 more of the first
    4.0
    """
    times = np.concatenate([past / weights, (past + cap) / weights])
    order = np.argsort(times, kind="stable")
    times = times[order]
    slopes = np.cumsum(np.concatenate([q * weights, -q * weights])[order])
    values = np.append(0.0, np.cumsum(slopes[:-1] * np.diff(times)))
    after = np.flatnonzero(values >= left)
    if not after.size:
        return np.inf
    before = max(int(after[0]) - 1, 0)
    return float(times[before] + (left - values[before]) / slopes[before]) if slopes[before] > 0 else float(times[before])


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a matrix that is sparse, by Gauss-Jordan elimination on the rows that each column has.

    Threads of dense linear algebra take longer to start than this takes.

    >>> _inverse(np.array([[0.0, 2.0], [4.0, 0.0]]))
    array([[0.  , 0.25],
           [0.5 , 0.  ]])
    """
    size = matrix.shape[0]
    table = np.hstack([matrix, np.eye(size)])
    row_of, free = np.empty(size, np.int64), np.ones(size, bool)
    for k in range(size):
        entries = table[:, k]
        pivot = int(np.where(free, np.abs(entries), 0.0).argmax())
        if not free[pivot] or abs(entries[pivot]) < SETTINGS.singular:
            raise ZeroDivisionError
        table[pivot] /= entries[pivot]
        free[pivot], row_of[k] = False, pivot
        others = np.flatnonzero(entries)
        others = others[others != pivot]
        table[others] -= table[others, k, None] * table[pivot]
    return np.ascontiguousarray(table[row_of, size:])
