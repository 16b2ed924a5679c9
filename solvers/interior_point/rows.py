"""Alpha-fair programs with many rows that belong to no server: on tasks whose worth differs by server, second limits of users, on links.

Each row is a limit of its own, in one slot, and the Newton system is that of the polish (`fairopt.solvers.active_sets.kkt`), sparse where
it is large. All else is as for servers (`fairopt.solvers.structure.pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import ROUNDING, TINY
from fairopt.program import Program
from fairopt.solvers.active_sets.by_user import Rows
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.interior_point.settings import ROWS
from fairopt.solvers.structure.across import largest_of_each
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import PairLists
from fairopt.solvers.structure.newton import Residuals
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram, floors_of, task_rows

__all__ = ["RowPairs", "RowSystem", "ScaledRows"]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows(ScaledProgram):
    """A program in the units of `ScaledProgram`, whose limits are rows, in one slot.

    ``row``: their positions in the program; limits on tasks that are worth the same everywhere are caps, not rows.
    """

    @classmethod
    def of(cls, program: Program, capped: bool = True) -> ScaledRows:
        """Scale a program; unless ``capped``, limits on tasks are rows."""
        columns = program.scaled()
        worth = columns.utilities
        reach = np.add.reduceat(worth, columns.first)
        task_row = task_rows(columns)
        tasks = np.where(task_row >= 0, program.limits.bounds[task_row], np.inf)
        utility = worth / columns.scale
        low, high = np.minimum.reduceat(utility, columns.first), np.maximum.reduceat(utility, columns.first)
        as_cap = np.isfinite(tasks) & (high <= low * (1 + ROUNDING)) & capped
        cap = np.where(as_cap, tasks * high / reach, np.inf)
        kept = np.ones(len(program.limits), bool)
        kept[task_row[as_cap]] = False
        row = np.flatnonzero(kept & (program.limits.bounds > 0))
        nothing, none = np.zeros(row.size, np.int64), np.zeros(0, np.int64)
        A = np.zeros((1, columns.n_columns))
        W, T = worth / reach[columns.user], np.zeros(columns.n_columns)
        across, G = sp.csr_array((0, columns.n_columns)), np.zeros((0, 1, row.size))
        of_users = none, none, cap, *floors_of(columns, reach)
        return cls(columns, True, reach, A, W, T, row, nothing, np.arange(row.size), task_row, *of_users, across, G)

    @property
    def n_servers(self) -> int:
        """Number of rows, each a limit of its own."""
        return int(self.row.size)


class RowPairs(PairLists):
    """The eligible pairs, with a sparse matrix of rows."""

    def __init__(self, scaled: ScaledRows) -> None:
        self._user, self._first, self._sparse, self._blocks = scaled.user, scaled.first, True, None
        Pairs.__init__(self, scaled, NUMPY, scaled.n_pairs)
        place = np.searchsorted(scaled.columns.rows, scaled.row)
        self.rows_matrix = sp.csr_array(scaled.columns.use[place])
        self._transposed = sp.csr_array(self.rows_matrix.T)
        V = sp.csr_array((self.W, (self._user, np.arange(self.n_pairs))), shape=(self.n_users, self.n_pairs))
        self.all_rows = Rows(sp.csr_array(sp.vstack([self.rows_matrix, -V], format="csr")), self._user)
        self.system = self.system_of_sets = RowSystem

    def use_of_servers(self, x: FloatArray, slots: int | None = None) -> FloatArray:
        """By the matrix."""
        return np.asarray(self.rows_matrix @ x)[None]

    def largest_use(self, x: FloatArray) -> FloatArray:
        """By the entries of each row."""
        return largest_of_each(self.rows_matrix.data * x[self.rows_matrix.indices], self.rows_matrix.indptr)[None]

    def cost_of_servers(self, p: FloatArray) -> FloatArray:
        """By its transpose."""
        return np.asarray(self._transposed @ p[0])

    def fullest(self, x: FloatArray) -> FloatArray:
        """Of the rows of each pair."""
        return largest_of_each(self.use(x)[0][self._transposed.indices], self._transposed.indptr)

    def room(self) -> FloatArray:
        """All of each pair."""
        return np.ones(self.n_pairs)

    def even_slices(self) -> FloatArray:
        """Half of every limit, divided evenly among the pairs that use it."""
        entries, sharers = self.rows_matrix.tocoo(), np.diff(self.rows_matrix.indptr)
        x = np.full(self.n_pairs, 0.5)
        np.minimum.at(x, entries.col, 0.5 / (entries.data * sharers[entries.row]))
        return x


class RowSystem:
    """The Newton step of `fairopt.solvers.structure.newton.NewtonSystem` for rows of any kind."""

    def __init__(self, pairs: RowPairs, primal: FloatArray, dual: FloatArray, side: FloatArray, a: None) -> None:
        self.pairs, self.dual, self.ratio = pairs, dual, primal / dual
        of_pairs, of_limits, of_users = pairs.parts(self.ratio)
        z, _, m = pairs.parts(dual)
        keep: BoolArray = z < ROWS.kept_pairs * pairs.along_rows(m)
        F = np.concatenate([of_limits[0], of_users])
        try:
            self.D = 1 / np.maximum(of_pairs, TINY)
            if pairs.all_rows.blocks is None and keep.sum() > ROWS.many_kept * F.size:  # eliminate also those without which nothing is lost
                keep &= pairs.all_rows.most_added(F) > ROWS.drowned * self.D
            self.kkt = KKTSystem.factorised(pairs.all_rows, self.D, F, keep)
        except (RuntimeError, ValueError, ArithmeticError) as error:
            raise np.linalg.LinAlgError(str(error)) from None

    def step(self, products: FloatArray, residuals: Residuals, refinements: int = 2) -> tuple[Any, Any, float]:
        """Return the changes of the primal values, of the dual ones, and 0.0."""
        pairs, quotient = self.pairs, products / self.dual
        qx, qs, qv = pairs.parts(quotient)
        below = np.concatenate([(residuals.limits - qs)[0], -(residuals.rows + qv)])
        dx, dq = self.kkt.step(residuals.costs + qx * self.D, below)
        dp, dm = dq[None, : pairs.n_servers], dq[pairs.n_servers :]
        d_dual = pairs.point(pairs.cost(dp) - pairs.along_rows(dm) - residuals.costs, dp, dm)
        d_primal = quotient - self.ratio * d_dual
        d_primal[: pairs.n_pairs] = dx
        return d_primal, d_dual, 0.0
