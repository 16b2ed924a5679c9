r"""The linear equations of an equilibrium of servers whose structure is known, and their solution near a given point.

Sweeps converge geometrically to an equilibrium, and slowly if users trade between servers. They find the structure first: which pairs hold
something, and which limit stopped each. Given the structure,

    sum of x over the pairs of n  =  g[p] L[j]     for each positive pair p of n that limit j stopped
    sum of x over the pairs of n  =  T[n]          for each user that has all its tasks
    sum of A[j,p] x[p]            =  b[j]          for each limit j that stopped a positive pair

with the x of the positive pairs and the levels L as unknowns. The system is square unless it is degenerate, and underdetermined if several
placements give the same answer. The unknowns are scaled by their present values, and the solution is the smallest correction in that scale
(one factorisation of the KKT matrix, regularised, with refinement). A pair that would become negative is left out, and the rest is solved
again. The caller must verify the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.processes.streams import unwarned
from fairopt.solvers.equilibrium.settings import SETTINGS

__all__ = ["Structure"]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """The structure of an equilibrium near a point x: the positive pairs, and the limit that stops each.

    Attributes
    ----------
    user, g, x, stop : arrays (pairs,)
        ``stop`` is a row of ``use``, or -1: nothing but the number of the user's tasks.
    tasks : array (users,)
    use : sparse (limits, pairs)
    bounds : array (limits,)
    """

    user: IntArray
    g: FloatArray
    tasks: FloatArray
    use: sp.csr_array
    bounds: FloatArray
    x: FloatArray
    stop: IntArray

    def solve(self, positive: BoolArray) -> FloatArray | None:
        """Return x >= 0 of the equations in which these pairs have something, or None where there is none; negative ones are left out."""
        positive = positive & (self.x > 0)
        for _ in range(SETTINGS.rounds):
            if not positive.any():
                return None
            answer = self._solve(positive)
            if answer is None:
                return None
            negative = positive & (answer < 0)
            if not negative.any():
                return answer
            positive = positive & ~negative
        return None

    def _solve(self, positive: BoolArray) -> FloatArray | None:
        columns = np.flatnonzero(positive)
        n, start, row = self.user[columns], self.x[columns], self.stop[columns]
        complete = np.zeros(self.tasks.size, bool)
        complete[n[row < 0]] = True
        complete &= np.isfinite(self.tasks)
        total = np.bincount(n, weights=start, minlength=self.tasks.size)

        levelled = np.flatnonzero(~complete[n])  # the pairs that have an equation of their own
        rows, which = np.unique(row[levelled], return_inverse=True)
        if rows.size and rows[0] < 0:
            return None
        if not rows.size and not complete.any():
            return None
        implied = total[n[levelled]] / self.g[columns[levelled]]
        level = np.bincount(which, weights=implied) / np.maximum(np.bincount(which), 1)
        done = np.flatnonzero(complete)

        number = columns.size
        share = start / total[n]  # of each pair in what its user has
        slope = self.g[columns[levelled]] * level[which] / total[n[levelled]]
        if number + rows.size + levelled.size + done.size <= SETTINGS.dense_equations and self.use.size <= SETTINGS.dense_equations**2:
            dense = np.zeros((levelled.size + rows.size + done.size, number + rows.size))
            levels_at, limits_at, done_at = np.split(dense, np.cumsum([levelled.size, rows.size]))
            levels_at[:, :number] = np.where(n[levelled][:, None] == n, share, 0.0)
            levels_at[np.arange(levelled.size), number + which] = -slope
            limits_at[:, :number] = self.use.toarray()[np.ix_(rows, columns)] / self.bounds[rows][:, None] * start
            done_at[:, :number] = np.where(done[:, None] == n, share, 0.0)
            matrix: FloatArray | sp.csr_array = dense
            used = limits_at.sum(axis=1)
        else:
            shares = sp.csr_array((share, (n, np.arange(number))), shape=(self.tasks.size, number))
            levels = sp.csr_array((slope, (np.arange(levelled.size), which)), shape=(levelled.size, rows.size))
            full = sp.csr_array(sp.diags_array(1.0 / self.bounds[rows]) @ self.use[rows][:, columns] @ sp.diags_array(start))
            # The total of each user is an unknown, too: else its k pairs would have k equations of k numbers.
            several, whose = np.unique(n[levelled], return_inverse=True)
            totals = sp.csr_array((np.ones(levelled.size), (np.arange(levelled.size), whose)), shape=(levelled.size, several.size))
            sums = [[shares[several], None, -sp.eye_array(several.size)]] if several.size else []
            blocks: list[Any] = [[None, -levels, totals], [full, None, None]] if rows.size else []
            blocks += [[shares[done], None, None] if rows.size else [shares[done]]] if done.size else []
            blocks += sums
            matrix, used = sp.csr_array(sp.block_array(blocks, format="csr")), full.sum(axis=1)
        rest = np.concatenate([slope - 1.0, 1.0 - used, self.tasks[done] / total[done] - 1.0])
        rest = np.append(rest, np.zeros(matrix.shape[0] - rest.size))  # the sums of totals
        correction = _smallest(matrix, rest)
        if correction is None:
            return None
        answer = np.zeros(self.x.size)
        answer[columns] = start * (1.0 + correction[:number])
        return answer


def _smallest(matrix: FloatArray | sp.csr_array, right: FloatArray) -> FloatArray | None:
    """Return the smallest z with matrix z = right, or None where there is none."""
    n = matrix.shape[1]
    solve = _factorised(matrix)
    if solve is None:
        return None
    z = np.zeros(n)
    rest = right
    for _ in range(SETTINGS.refinements):
        z = z + solve(np.concatenate([np.zeros(n), rest]))[:n]
        rest = right - matrix @ z
        if not np.isfinite(z).all():
            return None
        if np.abs(rest).max() <= ROUNDING:
            break
    return z


def _factorised(matrix: FloatArray | sp.csr_array) -> Callable[[FloatArray], FloatArray] | None:
    """Return the solution of the KKT system of the smallest z; None: it is exactly singular."""
    m, n = matrix.shape
    if isinstance(matrix, np.ndarray):
        system = np.diag(np.repeat([1.0, -SETTINGS.regular], [n, m]))
        system[:n, n:], system[n:, :n] = matrix.T, matrix
        factors, pivots, singular = dgetrf(system, overwrite_a=True)
        return None if singular else lambda right: np.asarray(dgetrs(factors, pivots, right)[0])
    try:
        with unwarned():
            corner = -SETTINGS.regular * sp.eye_array(m)
            factor = sp.linalg.splu(sp.block_array([[sp.eye_array(n), matrix.T], [matrix, corner]], format="csc"))
    except (RuntimeError, ValueError):  # exactly singular
        return None
    return lambda right: np.asarray(factor.solve(right))
