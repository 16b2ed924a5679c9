r"""The linear equations of an equilibrium of servers whose structure is known, and their solution near a given point.

Sweeps converge geometrically to an equilibrium, and slowly if users trade between servers. They find the structure first: which pairs hold
something, and which limit stopped each. Given the structure,

    sum of x over the pairs of n  =  g[p] L[j]     for each positive pair p of n that limit j stopped
    sum of x over the pairs of n  =  T[n]          for each user that has all its tasks
    sum of A[j,p] x[p]            =  b[j]          for each limit j that stopped a positive pair

with the x of the positive pairs and the levels L as unknowns. The system is square unless it is degenerate, and underdetermined if several
placements give the same answer. The unknowns are scaled by their present values, and the solution is the smallest correction in that scale
(one factorisation of the KKT matrix, regularised, with refinement). A pair that would become negative is left out, and the rest is solved
again. The caller must verify the answer.

Where many shares are equal, thousands of pairs may hold something. Most of their equations of levels follow from the others then, and are
left out; and the pairs are eliminated before the rest is factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs
from scipy.sparse import csgraph

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING, SAME
from fairopt.solvers.backend import NO_LIMIT, Deadline
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.structure.factors import factorised, met_by_many

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

    def solve(self, positive: BoolArray, deadline: Deadline = NO_LIMIT) -> FloatArray | None:
        """Return x >= 0 of the equations in which these pairs have something; negative ones are left out.

        None where there is none, and where the next factorisation would end after the deadline.
        """
        positive = positive & (self.x > 0)
        for _ in range(SETTINGS.rounds):
            if not positive.any() or deadline.left == 0.0:
                return None
            answer = self._solve(positive, deadline)
            if answer is None:
                return None
            negative = positive & (answer < 0)
            if not negative.any():
                return answer
            positive = positive & ~negative
        return None

    def _solve(self, positive: BoolArray, deadline: Deadline) -> FloatArray | None:
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
        needed = ~_implied(n[levelled], which, np.log(self.g[columns[levelled]]))
        levelled, which = levelled[needed], which[needed]

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
        correction = _smallest(matrix, rest, number, deadline)
        if correction is None:
            return None
        answer = np.zeros(self.x.size)
        answer[columns] = start * (1.0 + correction[:number])
        return answer


def _implied(users: IntArray, limits: IntArray, ratio: FloatArray) -> BoolArray:
    """Return which of the equations log t[user] - log L[limit] = ratio follow from the others.

    Each is an edge of a graph of users and limits. A tree of edges gives all t and L of a component but for a common factor, and another
    edge follows from the tree if its ratio is that of its ends. Trees have fewer edges than nodes: with no more edges, all are kept.
    """
    nodes, ends = np.unique(np.concatenate([users, int(users.max(initial=0)) + 1 + limits]), return_inverse=True)
    if users.size < nodes.size:
        return np.zeros(users.size, bool)
    u, v = np.split(ends, 2)  # u < v
    root, shape = nodes.size, (nodes.size + 1, nodes.size + 1)
    _, component = csgraph.connected_components(sp.csr_array((np.ones(u.size), (u, v)), shape=shape)[:root, :root], directed=False)
    tops = np.unique(component, return_index=True)[1]
    rooted = sp.csr_array((np.ones(u.size + tops.size), (np.append(u, np.full(tops.size, root)), np.append(v, tops))), shape=shape)
    order, before = csgraph.breadth_first_order(rooted, root, directed=False)
    below = order[1:][before[order[1:]] != root]
    above = before[below]
    number = u * root + v
    by_number = np.argsort(number)
    tree = by_number[np.searchsorted(number[by_number], np.minimum(below, above) * root + np.maximum(below, above))]
    height = [0.0] * root
    for node, origin, rise in zip(below.tolist(), above.tolist(), np.where(below < above, ratio[tree], -ratio[tree]).tolist(), strict=True):
        height[node] = height[origin] + rise
    heights = np.array(height)
    implied: BoolArray = np.abs(heights[u] - heights[v] - ratio) <= SAME
    implied[tree] = False
    return implied


def _smallest(matrix: FloatArray | sp.csr_array, right: FloatArray, pairs: int, deadline: Deadline) -> FloatArray | None:
    """Return the smallest z with matrix z = right, or None where there is none or no time; the first columns are those of the pairs."""
    n = matrix.shape[1]
    solve = _factorised_dense(matrix) if isinstance(matrix, np.ndarray) else _factorised_sparse(matrix, pairs, deadline)
    if solve is None:
        return None
    z = np.zeros(n)
    rest = right
    for _ in range(SETTINGS.refinements):
        z = z + solve(rest)
        rest = right - matrix @ z
        if not np.isfinite(z).all():
            return None
        if np.abs(rest).max() <= ROUNDING:
            break
    return z


def _factorised_dense(matrix: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
    """Return the solution of the KKT system of the smallest z; None: it is exactly singular."""
    m, n = matrix.shape
    system = np.diag(np.repeat([1.0, -SETTINGS.regular], [n, m]))
    system[:n, n:], system[n:, :n] = matrix.T, matrix
    factors, pivots, singular = dgetrf(system, overwrite_a=True)
    return None if singular else lambda right: np.asarray(dgetrs(factors, pivots, np.concatenate([np.zeros(n), right]))[0])[:n]


def _factorised_sparse(matrix: sp.csr_array, pairs: int, deadline: Deadline) -> Callable[[FloatArray], FloatArray] | None:
    """Return the same without the pairs, which are eliminated: what is left has the size of users and limits, however many pairs.

    None, too, where the factorisation would end after the deadline. Each row updates the rows that it meets; the last ones all meet.
    """
    m, n = matrix.shape
    of_pairs, others = sp.csr_array(matrix[:, :pairs]), sp.csr_array(matrix[:, pairs:])
    corner = sp.csc_array(of_pairs @ of_pairs.T + SETTINGS.regular * sp.eye_array(m))
    system = sp.block_array([[sp.eye_array(n - pairs), others.T], [others, -corner]], format="csc") if n > pairs else -corner
    met, last = np.diff(system.indptr).astype(np.float64), met_by_many(system)
    products = float((met[~last] ** 2).sum()) + np.count_nonzero(last) ** 3 / 3
    if SETTINGS.factor_seconds * products > deadline.left:
        return None
    try:
        eliminated = factorised(system, last, pivots=0.0)  # quasi-definite: every pivot may come from the diagonal
    except (RuntimeError, ValueError):  # exactly singular
        return None

    def solve(right: FloatArray) -> FloatArray:
        found = eliminated(np.concatenate([np.zeros(n - pairs), right]))
        return np.concatenate([-(of_pairs.T @ found[n - pairs :]), found[: n - pairs]])

    return solve
