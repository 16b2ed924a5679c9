r"""The linear system of a Newton step on the KKT conditions of an `AlphaFairProblem`.

With dz, ds and dt eliminated, a step solves one quasi-definite system,

    [ D  B' ] [dx]       B = [ A  ]     D = z/x     F = (s/p, t / (a y))     q = (dp, dy)
    [ B  -F ] [dq]           [ -V']                 a: elasticity of the marginal worth

D is large for columns that are not used: these are eliminated, which is safe. The others stay, because D^-1 would drown F in rounding. What
remains is equilibrated, factorised (dense while it is small, else sparse) and solved with iterative refinement.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem

__all__ = ["KKTSystem"]

_DENSE = 1500  # unknowns; beyond that the sparse factorisation is faster
_REGULAR = 1e-14  # relative; refinement takes it out again
_REFINEMENTS = 4
_EQUILIBRATIONS = 6


@dataclass(frozen=True, slots=True, eq=False)
class KKTSystem:
    """The factorised system for given D (columns,) and F (limits and users,), both >= 0; ``kept`` columns are not eliminated."""

    problem: AlphaFairProblem
    D: FloatArray
    F: FloatArray
    kept: IntArray
    rest: IntArray
    B_rest: sp.csr_array
    units: FloatArray
    solve_scaled: Callable[[FloatArray], FloatArray]

    @classmethod
    def factorised(cls, problem: AlphaFairProblem, D: FloatArray, F: FloatArray, keep: BoolArray) -> KKTSystem:
        """Eliminate, equilibrate and factorise.

        Raises
        ------
        RuntimeError, ValueError, ArithmeticError
            The factorisation failed.
        """
        kept, rest = np.flatnonzero(keep), np.flatnonzero(~keep)
        B_kept, B_rest = sp.csr_array(problem.Bt[kept].T), sp.csr_array(problem.Bt[rest].T)
        G = sp.csr_array(B_rest * (1.0 / D[rest])) @ B_rest.T + sp.diags_array(F)
        matrix = sp.block_array([[sp.diags_array(D[kept]), B_kept.T], [B_kept, -G]], format="csr")
        units = _equilibrated(matrix)
        scaled = sp.csr_array(sp.csr_array(matrix * units) * units[:, None])
        sign = np.concatenate([np.ones(kept.size), -np.ones(problem.B.shape[0])])
        solve = _factorise(sp.csr_array(scaled + sp.diags_array(_REGULAR * sign)))
        return cls(problem, D, F, kept, rest, B_rest, units, solve)

    def step(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve D dx + B'dq = top, B dx - F dq = bottom."""
        dx, dq = self._once(top, bottom)
        best = np.inf
        for _ in range(_REFINEMENTS):
            # Each residual is judged in its own units; the eliminated columns are solved exactly.
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
        both = self.solve_scaled(right * self.units) * self.units
        dx, dq = np.empty(self.D.size), both[kept.size :]
        dx[kept] = both[: kept.size]
        dx[rest] = (top[rest] - self.B_rest.T @ dq) / self.D[rest]
        return dx, dq


def _equilibrated(matrix: sp.csr_array) -> FloatArray:
    """Return units in which every row and column of a symmetric matrix has a largest entry of about 1 (Ruiz 2001)."""
    units = np.ones(matrix.shape[0])
    size, columns = np.abs(matrix.data), matrix.indices  # plain arrays: on small systems, sparse ones would take most of the time
    rows = np.repeat(np.arange(units.size), np.diff(matrix.indptr))
    for _ in range(_EQUILIBRATIONS):
        largest = np.zeros(units.size)
        np.maximum.at(largest, rows, size * units[columns] * units[rows])
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
