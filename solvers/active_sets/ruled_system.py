r"""The linear system of a primal-dual step under rules (`fairopt.solvers.active_sets.ruled`), in three forms.

    [ D     A'   E'   V D_H ]  [dy]
    [ A    -F               ]  [dp]
    [ E                     ]  [dq]
    [ D_H V'           -1   ]  [dh]          and a row more for each term of rank one of the second derivative, H = D_H^2

`by_rows` is the system of the other polish, `fairopt.solvers.active_sets.kkt`, with the rows of A, of E and of users: columns are
eliminated where no row is lost to rounding by it, so that most steps factorise a matrix of rows alone. It has no terms of rank one.

`whole` has all unknowns, and any terms, and is slower; `whole_with_largest_pivots` is the slowest, and solves what is nearly singular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.active_sets.by_user import Rows
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.settings import UNDER_RULES

__all__ = ["Curvature", "Form", "RuledRows", "Solve", "by_rows", "whole", "whole_with_largest_pivots"]

Solve: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From the right sides of the columns, of A and of E, to dy, dp and dq."""


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """A second derivative -H, H = diag(own) + across diag(factors) across': arrays (users,), (users, terms) and (terms,), no factor 0."""

    own: FloatArray
    across: FloatArray
    factors: FloatArray


class RuledRows:
    """The matrices A (limits, columns), E (equations, columns) and V (columns, users) of all steps, and their transposes."""

    def __init__(self, limits: sp.csr_array, equations: sp.csr_array, v: sp.csr_array) -> None:
        self.limits, self.equations, self.v = limits, equations, v
        self.by_column, self.by_equation, self.by_user = (sp.csr_array(each.T) for each in (limits, equations, v))
        self.user: IntArray = np.asarray(v.indices, np.int64)
        self.all = Rows(sp.csr_array(sp.vstack([limits, equations, -self.by_user], format="csr")), self.user, by_user=False)


Form: TypeAlias = Callable[[RuledRows, FloatArray, FloatArray, Curvature], Solve]
"""From the matrices, D, F and the second derivative to the solution of the system."""


def by_rows(rows: RuledRows, D: FloatArray, F: FloatArray, curvature: Curvature) -> Solve:
    """Return the solution of the system by the rows; ``D``, (columns,), and ``F``, (limits,), are > 0.

    Raises
    ------
    RuntimeError, ValueError, ArithmeticError
        The factorisation failed.
    """
    equations = rows.equations.shape[0]
    of_rows = np.concatenate([F, np.zeros(equations), 1 / curvature.own])
    keep = np.ones(D.size, bool)
    if D.size > UNDER_RULES.many_columns * of_rows.size:
        keep = rows.all.most_added(of_rows) > UNDER_RULES.drowned * D
    system = KKTSystem.factorised(rows.all, D, of_rows, keep)

    def solve(columns: FloatArray, limits: FloatArray, equal: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        dy, both = system.step(columns, np.concatenate([limits, equal, np.zeros(curvature.own.size)]))
        dp, dq, _ = np.split(both, [F.size, F.size + equations])
        return dy, dp, dq

    return solve


def whole(rows: RuledRows, D: FloatArray, F: FloatArray, curvature: Curvature) -> Solve:
    """Return the solution of the whole system, with pivots on the diagonal where they are not small.

    Raises
    ------
    RuntimeError
        The matrix is singular.
    """
    return _whole(rows, D, F, curvature, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=UNDER_RULES.pivot, options={"SymmetricMode": True})


def whole_with_largest_pivots(rows: RuledRows, D: FloatArray, F: FloatArray, curvature: Curvature) -> Solve:
    """Return the same with the largest pivots, whatever they fill.

    Raises
    ------
    RuntimeError
        The matrix is singular.
    """
    return _whole(rows, D, F, curvature)


def _whole(rows: RuledRows, D: FloatArray, F: FloatArray, curvature: Curvature, **pivots: Any) -> Solve:
    curved = sp.csr_array(rows.v @ sp.diags_array(np.sqrt(curvature.own)))
    terms, one_by_one = sp.csr_array(rows.v @ curvature.across), sp.diags_array(-1.0 / curvature.factors)
    equations = rows.equations.shape[0]
    regular = np.full(equations, UNDER_RULES.regular)  # equations may depend on one another; refinement takes it out again
    table: list[list[Any]] = [
        [sp.diags_array(D), rows.by_column, rows.by_equation, curved, terms],
        [rows.limits, -sp.diags_array(F), None, None, None],
        [rows.equations, None, -sp.diags_array(regular), None, None],
        [sp.csr_array(curved.T), None, None, -sp.eye_array(curvature.own.size), None],
        [sp.csr_array(terms.T), None, None, None, one_by_one],
    ]
    some = [True, True, equations > 0, True, curvature.factors.size > 0]
    blocks = [list(compress(row, some)) for row in compress(table, some)]
    system = sp.block_array(blocks, format="csc")
    factors = splu(system, **pivots)
    beside = curvature.own.size + curvature.factors.size
    ends = np.cumsum([D.size, F.size, equations, beside])
    true = system + sp.diags_array(np.concatenate([np.zeros(ends[1]), regular, np.zeros(beside)]))

    def solve(columns: FloatArray, limits: FloatArray, equal: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        right = np.concatenate([columns, limits, equal, np.zeros(beside)])
        found = factors.solve(right)
        for _ in range(UNDER_RULES.refinements):
            found += factors.solve(right - true @ found)
        dy, dp, dq, _ = np.split(found, ends[:-1])
        return dy, dp, dq

    return solve
