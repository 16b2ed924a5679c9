r"""The linear system of a Newton step on the KKT conditions of an `AlphaFairProblem`.

With dz, ds and dt eliminated, a step solves one quasi-definite system,

    [ D  B' ] [dx]       B = [ A  ]     D = z/x     F = (s/p, t / (a y))     q = (dp, dy)
    [ B  -F ] [dq]           [ -V']                 a: elasticity of the marginal worth

D is large for columns that are not used: these are eliminated, which is safe. The others stay, because D^-1 would drown F in rounding. What
remains is equilibrated, factorised (dense while it is small, else sparse) and solved with iterative refinement. Of small problems B is
dense, too: there, building sparse matrices would take most of the time.

Where users share few rows and each has few columns, the system is factorised user by user instead, with all columns
(`fairopt.solvers.active_sets.by_user`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.solvers.active_sets.by_user import Rows
from fairopt.solvers.active_sets.settings import SETTINGS
from fairopt.solvers.structure.factors import factorised, met_by_many

__all__ = ["KKTSystem"]


_Matrix = FloatArray | sp.csr_array
_Factors = tuple[FloatArray, Callable[[FloatArray], FloatArray]]  # the units, and the solution of the scaled system


@dataclass(frozen=True, slots=True, eq=False)
class KKTSystem:
    """The factorised system for given D (columns,) and F (limits and users,), both >= 0; ``kept`` columns are not eliminated."""

    B: _Matrix
    Bt: _Matrix
    D: FloatArray
    F: FloatArray
    kept: IntArray
    rest: IntArray
    B_rest: _Matrix
    units: FloatArray
    solve_scaled: Callable[[FloatArray], FloatArray]

    @classmethod
    def factorised(cls, rows: Rows, D: FloatArray, F: FloatArray, keep: BoolArray) -> KKTSystem:
        """Eliminate, equilibrate and factorise.

        Raises
        ------
        RuntimeError, ValueError, ArithmeticError
            The factorisation failed.
        """
        kept, rest = np.flatnonzero(keep), np.flatnonzero(~keep)
        sign = np.concatenate([np.ones(kept.size), -np.ones(F.size)])
        if F.size * D.size <= SETTINGS.small:
            B = rows.B.toarray()
            units, solve = _dense(B[:, kept], B[:, rest], D[kept], D[rest], F, sign)
            return cls(B, B.T, D, F, kept, rest, B[:, rest], units, solve)
        if rows.blocks is not None:
            with suppress(np.linalg.LinAlgError):  # a block is singular: pivots among all unknowns may not be
                units, solve = rows.blocks.factorised(rows, D, F)
                none = np.zeros(0, np.int64)
                return cls(rows.B, rows.Bt, D, F, np.arange(D.size), none, sp.csr_array((F.size, 0)), units, solve)
        Bt_rest = rows.Bt[rest]
        B_rest = sp.csr_array(Bt_rest.T)
        units, solve = _sparse(rows.Bt[kept], B_rest, Bt_rest, D[kept], D[rest], F, sign)
        return cls(rows.B, rows.Bt, D, F, kept, rest, B_rest, units, solve)

    def step(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve D dx + B'dq = top, B dx - F dq = bottom."""
        dx, dq = self._once(top, bottom)
        best = np.inf
        for _ in range(SETTINGS.refinements):
            # Each residual is judged in its own units; the eliminated columns are solved exactly.
            left = top - self.D * dx - self.Bt @ dq
            below = bottom - self.B @ dx + self.F * dq
            size = float(np.abs(np.concatenate([left[self.kept], below]) * self.units).max(initial=0.0))
            found = float(np.abs(np.concatenate([dx[self.kept], dq]) / self.units).max(initial=0.0))
            if not size < 0.5 * best or size <= SETTINGS.rounded * found:
                break
            best = size
            ddx, ddq = self._once(left, below)
            dx, dq = dx + ddx, dq + ddq
        return dx, dq

    def _once(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest, kept = self.rest, self.kept
        if not rest.size:
            both = self.solve_scaled(np.concatenate([top, bottom]) * self.units) * self.units
            return both[: kept.size], both[kept.size :]
        right = np.concatenate([top[kept], bottom - self.B_rest @ (top[rest] / self.D[rest])])
        both = self.solve_scaled(right * self.units) * self.units
        dx, dq = np.empty(self.D.size), both[kept.size :]
        dx[kept] = both[: kept.size]
        dx[rest] = (top[rest] - self.B_rest.T @ dq) / self.D[rest]
        return dx, dq


def _dense(B_kept: FloatArray, B_rest: FloatArray, D_kept: FloatArray, D_rest: FloatArray, F: FloatArray, sign: FloatArray) -> _Factors:
    """Return the units and the solution of the scaled system, all in plain arrays."""
    n = D_kept.size
    matrix = np.diag(np.concatenate([D_kept, -F]))
    matrix[n:, n:] -= (B_rest / D_rest) @ B_rest.T
    matrix[n:, :n] = B_kept
    matrix[:n, n:] = B_kept.T
    units, size, product = np.ones(sign.size), np.abs(matrix), np.empty_like(matrix)
    for _ in range(SETTINGS.equilibrations):
        units = _smaller_units(units, np.multiply(size, units, out=product).max(axis=1) * units)
    matrix *= units
    matrix *= units[:, None]
    np.einsum("ii->i", matrix)[:] += SETTINGS.regular * sign
    return units, _factorised(matrix)


def _sparse(
    Bt_kept: sp.csr_array,
    B_rest: sp.csr_array,
    Bt_rest: sp.csr_array,
    D_kept: FloatArray,
    D_rest: FloatArray,
    F: FloatArray,
    sign: FloatArray,
) -> _Factors:
    """Return the same with sparse matrices, which are put together entry by entry: the general ways take longer than the factorisation."""
    divided = sp.csr_array((B_rest.data / D_rest[B_rest.indices], B_rest.indices, B_rest.indptr), B_rest.shape)
    G = sp.csr_array(divided @ Bt_rest + sp.diags_array(np.maximum(F, TINY)))  # every row has an entry on the diagonal
    matrix, diagonal = _joined(D_kept, Bt_kept, G)
    units, size, columns = np.ones(sign.size), np.abs(matrix.data), matrix.indices
    for _ in range(SETTINGS.equilibrations):
        units = _smaller_units(units, np.maximum.reduceat(size * units[columns], matrix.indptr[:-1]) * units)
    matrix.data *= units[columns]
    matrix.data *= np.repeat(units, np.diff(matrix.indptr))
    matrix.data[diagonal] += SETTINGS.regular * sign
    if sign.size <= SETTINGS.dense and matrix.nnz >= SETTINGS.least_entries * sign.size**2:
        return units, _factorised(matrix.toarray())
    return units, _factorised_sparse(matrix)


def _joined(D: FloatArray, Bt: sp.csr_array, G: sp.csr_array) -> tuple[sp.csc_array, IntArray]:
    """Return the symmetric matrix [[D, B'], [B, -G]], and where the entries of its diagonal are."""
    n, B = D.size, sp.csr_array(Bt.T)
    own, of_B, of_G = np.diff(Bt.indptr), np.diff(B.indptr), np.diff(G.indptr)
    starts = np.concatenate([[0], np.cumsum(np.concatenate([own + 1, of_B + of_G]))])
    indices, data = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    above, below = starts[:n], starts[n:-1]
    blocks = ((Bt, above + 1, own, n, 1.0), (B, below, of_B, 0, 1.0), (G, below + of_B, of_G, n, -1.0))
    diagonal = np.empty(starts.size - 1, np.int64)
    indices[above], data[above], diagonal[:n] = np.arange(n), D, above
    for block, begins, lengths, shift, factor in blocks:
        places = np.repeat(begins - block.indptr[:-1], lengths) + np.arange(block.nnz)
        indices[places], data[places] = block.indices + shift, factor * block.data
        if block is G:
            diagonal[n:] = places[block.indices == np.repeat(np.arange(of_G.size), of_G)]
    return sp.csc_array((data, indices, starts.astype(np.int32)), (starts.size - 1,) * 2), diagonal


def _smaller_units(units: FloatArray, largest: FloatArray) -> FloatArray:
    """Return units in which the largest entry of each row and column of a symmetric matrix is nearer to 1 (Ruiz 2001)."""
    return np.asarray(units / np.sqrt(np.where(largest > 0, largest, 1.0)))


def _factorised_sparse(matrix: sp.csc_array) -> Callable[[FloatArray], FloatArray]:
    """Factorise with the rows that many others meet last."""
    return factorised(matrix, met_by_many(matrix), SETTINGS.pivots)


def _factorised(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the solution of a dense system; the matrix is overwritten."""
    # LAPACK itself: a step solves several small systems, and what SciPy checks before each takes longer than solving it.
    # Nearly singular: the refinement and the step lengths see to that.
    factors, pivots, _ = dgetrf(matrix, overwrite_a=True)
    return lambda right: np.asarray(dgetrs(factors, pivots, right)[0])
