r"""The exact Pareto frontier of two linear goals: the total, and the smallest of the users' shares.

Over the allocations x of a program, let t(x) be the sum of x (of their work, where it differs), and m(x) the smallest of the shares
sum_p s[p] x[p] of the users who count. With one more variable m, at most every share, both are linear, so the points (t, m) that an
allocation reaches, or stays above, are a polygon P. Its upper right boundary is the frontier: no point of it can gain in one goal without
losing in the other. The frontier is a chain of edges, and its vertices say all.

*All vertices, by the slopes of the edges* (Aneja and Nair 1979). Start with a point A of largest m and a point B of largest t. For two
neighbours A and B found so far, take the weights w >= 0 at which they are worth the same, w.A = w.B, and solve the linear program
max w.(t, m). If its value is w.A, then no point of P lies above the line AB, and the piece of the frontier between A and B *is* the segment
AB. If it is larger, the optimum C is on the frontier, above the line, and both pairs (A, C) and (C, B) are looked at in the same way.

*It is complete.* When it ends, every pair of neighbours is an edge that a linear program has proved, from the largest m to the largest
t: the whole frontier. *It ends*: a line that supports P at C touches neither A nor B, so C is at a vertex or on an edge of P where neither
of them is; after C, no other point within that edge can be an optimum of a later program, but its two vertices can, as they lie above the
lines from C to its neighbours. So the points found are at most the vertices and one more for each edge. Points in line with
their neighbours are left out at the end, and so are ends that another point equals in one goal and exceeds in the other. V
vertices take about 2 V programs, each warm-started from the last basis, which a change of the goal leaves feasible.

*Numbers.* In units of the largest t and m. A point that rises above a line by less than 1e-9 is rounding. Every vertex is reached, as its
t and m are computed from tasks that fit; and of every edge the prices give a bound by weak duality,

    w.(t, m)  <=  p.b + sum over pairs of max(0, w_t + pi s - A'p) x_max + max(0, w_m - sum pi) m_max        for any p, pi >= 0,

x_max and m_max what a pair can hold and the smallest share can be at most, so that no allocation is above the frontier by more than
``gap``, which is returned and believes nothing that the solver says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.errors import CertificateError
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import CERTIFIED, NOTHING, TINY
from fairopt.program import LimitKind, Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import FINEST, PRIMAL_SIMPLEX, HighsModel, Outcome, Status, solved
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Pareto", "pareto_frontier"]


@dataclass(frozen=True, slots=True, eq=False)
class Pareto:
    """A Pareto frontier.

    Attributes
    ----------
    vertices : array (V, 2)
        Total and smallest share of each vertex, from the largest share to the largest total.
    gap : float
        The most by which an allocation could lie above the frontier, relative to the largest total and share.
    programs_solved : int
    """

    vertices: FloatArray
    gap: float
    programs_solved: int


def pareto_frontier(
    program: Program, shares: FloatArray, counted: BoolArray, deadline: Deadline | None = None, work: FloatArray | None = None
) -> Pareto:
    """Return the frontier of (sum of x, smallest share) over the limits of a program; its goal is not used.

    Parameters
    ----------
    program : Program
    shares : array (pairs,)
        Share that one task of the pair is worth, > 0.
    counted : bool array (users,)
        Whose shares count; each of them can have more than 0.
    work : array (pairs,), optional
        What a task of the pair adds to the total; default 1.

    Raises
    ------
    NoSolution
        At the deadline.
    CertificateError
        Where the bounds do not prove the frontier to 1e-8.
    """
    deadline = deadline or Deadline(None)
    work = np.ones(program.n_pairs) if work is None else work
    search = _Search(program, shares, counted, deadline, work)
    search = _Search(program, shares, counted, deadline, work, search.share_unit * float(search.best(0.0, 1.0)[1]))
    fairest, largest = search.best(0.0, 1.0), search.best(1.0, 0.0)
    chain = [fairest]
    waiting = [largest]  # right neighbours still to be reached, the nearest last
    while waiting:
        left, right = chain[-1], waiting[-1]
        across, down = right[0] - left[0], left[1] - right[1]
        if across > NOTHING and down > NOTHING:
            found = search.best(down / (across + down), across / (across + down))
            weights = np.array([down, across]) / (across + down)
            if weights @ found > weights @ left + NOTHING:
                waiting.append(found)
                continue
        chain.append(waiting.pop())
    if search.gap > CERTIFIED:
        raise CertificateError(f"the Pareto frontier is proved to {search.gap:.1e} only, allowed {CERTIFIED:.0e}; report the instance")
    return Pareto(_corners(np.array(chain)) * (search.total_unit, search.share_unit), search.gap, search.solved)


class _Search:
    """The linear program, in units of its own with limits of 1, and its solves."""

    def __init__(
        self,
        program: Program,
        shares: FloatArray,
        counted: BoolArray,
        deadline: Deadline,
        work: FloatArray,
        share_unit: float | None = None,
    ) -> None:
        self.deadline, self.gap, self.solved = deadline, 0.0, 0
        largest = program.largest()
        columns = np.flatnonzero(largest > 0)
        ruled = program.limits.kinds == LimitKind.RULE
        rows = np.flatnonzero((program.limits.bounds > 0) | ruled)
        self.scale = largest[columns]
        users, user = np.unique(program.pair_users[columns], return_inverse=True)
        members = np.flatnonzero(counted[users])
        worth = shares[columns] * largest[columns]
        most = float(np.bincount(user, weights=worth)[members].min())  # no smallest share is larger
        self.share_unit = most if share_unit is None else share_unit
        self.largest_level = most / self.share_unit
        # A user with a small weight reaches the unit of the smallest share with next to nothing: its columns are counted in numbers between
        # those that reach its limits and those that reach that share.
        self.scale = largest[columns] / np.sqrt(np.where(np.isin(user, members), np.maximum(worth / self.share_unit, 1.0), 1.0))
        self.reach, self.work = largest[columns] / self.scale, work[columns] * self.scale
        limits, bounds = sp.csr_array(program.limits.matrix[rows][:, columns] * self.scale), program.limits.bounds[rows]
        size = np.where(ruled[rows], np.maximum(np.abs(bounds), abs(limits).max(axis=1).toarray().ravel()), bounds)
        size = np.where(size > 0, size, 1.0)
        self.limits, self.bounds, self.down_closed = limits / size[:, None], bounds / size, program.down_closed
        mine = np.isin(user, members)
        entries = (shares[columns] * self.scale)[mine] / self.share_unit, (np.searchsorted(members, user[mine]), np.flatnonzero(mine))
        self.shares = sp.csr_array(entries, shape=(members.size, columns.size))
        self.total_unit = 1.0
        level = sp.csr_array(-np.ones((members.size, 1)))
        matrix = sp.block_array([[self.limits, None], [self.shares, level]], format="csc")
        self.model = HighsModel(
            np.zeros(columns.size + 1),
            np.zeros(columns.size + 1),
            np.append(self.reach, self.largest_level),
            sp.csc_array(matrix),
            np.concatenate([np.full(rows.size, -np.inf), np.zeros(members.size)]),
            np.concatenate([self.bounds, np.full(members.size, np.inf)]),
            tolerance=FINEST,
        )
        self.model.set_options(simplex_strategy=PRIMAL_SIMPLEX)  # a new goal leaves the basis feasible
        self.total_unit = float(self.best(1.0, 0.0)[0])

    def best(self, of_total: float, of_share: float) -> FloatArray:
        """Return (total, smallest share) of an optimum for these weights, and record the gap of its bound."""
        per_column = of_total * self.work / self.total_unit
        self.model.set_costs(np.append(per_column, of_share) * SETTINGS.magnified_goal)
        outcome = self.model.run(self.deadline.left)
        if outcome.status is Status.FAILED:  # about 1 in 300 warm starts fails; retry from where it stopped
            outcome = self.model.run(self.deadline.left)
        if outcome.status is Status.FAILED:
            self.model.forget()
            outcome = self.model.run(self.deadline.left)
        outcome = solved(outcome, self.deadline, {"programs": self.solved})
        point, gap = self._judged(outcome, per_column, of_total, of_share)
        if gap > SETTINGS.refined:
            again = self._judged(self.model.refine(outcome, self.deadline.left), per_column, of_total, of_share)
            point, gap = again if again[1] < gap else (point, gap)
        self.solved += 1
        self.gap = max(self.gap, gap)
        return point

    def _judged(self, outcome: Outcome, per_column: FloatArray, of_total: float, of_share: float) -> tuple[FloatArray, float]:
        """Return the point that an outcome reaches, and by how much, relative, the bound of its prices is above it."""
        y = np.maximum(outcome.x[:-1], 0.0)
        y = y / max(1.0, float((self.limits @ y).max(initial=0.0))) if self.down_closed else y
        point = np.array([self.work @ y / self.total_unit, float(np.asarray(self.shares @ y).min())])
        duals = outcome.row_duals / SETTINGS.magnified_goal
        prices = np.maximum(duals[: self.limits.shape[0]], 0.0)
        lifts = np.maximum(-duals[self.limits.shape[0] :], 0.0)
        reduced = per_column + self.shares.T @ lifts - self.limits.T @ prices
        level = max(of_share - float(lifts.sum()), 0.0) * self.largest_level
        bound = float(prices @ self.bounds + np.maximum(reduced, 0.0) @ self.reach) + level
        return point, (bound - float(of_total * point[0] + of_share * point[1])) / max(bound, TINY)


def _corners(chain: FloatArray) -> FloatArray:
    """Leave out points that another one equals or exceeds in both goals, and those in line with their neighbours."""
    kept: list[FloatArray] = []
    for point in chain[np.lexsort((-chain[:, 1], chain[:, 0]))]:
        while kept and kept[-1][1] <= point[1] + NOTHING:
            kept.pop()
        while len(kept) > 1 and _rise(kept[-2], kept[-1], point) <= NOTHING:
            kept.pop()
        if not kept or point[0] > kept[-1][0] + NOTHING:
            kept.append(point)
    return np.array(kept)


def _rise(left: FloatArray, middle: FloatArray, right: FloatArray) -> float:
    """Return how far the middle point lies above the line between the others."""
    across, down = right[0] - left[0], left[1] - right[1]
    return float((down * (middle[0] - left[0]) + across * (middle[1] - left[1])) / (across + down))
