"""Sparse symmetric systems, factorised in an order of minimum degree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.processes.streams import unwarned
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["factorised", "met_by_many"]


def met_by_many(matrix: sp.csc_array) -> BoolArray:
    """Return which rows of a symmetric system many others meet, such as a limit of all users: they should come last."""
    return np.asarray(np.diff(matrix.indptr) > SETTINGS.dense_row * np.sqrt(matrix.shape[0]))


def factorised(matrix: sp.csc_array, last: BoolArray, pivots: float) -> Callable[[FloatArray], FloatArray]:
    """Return the solution of a symmetric system; its rows ``last``, which many others meet, are eliminated last.

    Among them SuperLU's own order of minimum degree takes a multiple of the factorisation, and leaves more entries. Pivots come from the
    diagonal unless they are less than the part ``pivots`` of the largest entry of their column.

    Raises
    ------
    RuntimeError, ValueError
        The system is exactly singular.
    """
    options: dict[str, Any] = {"diag_pivot_thresh": pivots, "options": {"SymmetricMode": True}}
    with unwarned():  # nearly singular: the caller sees to that
        if not last.any():
            own = sp.linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", **options)
            return lambda right: np.asarray(own.solve(right))
        first = np.flatnonzero(~last)
        pattern = _reordered(matrix, first)
        on_diagonal = pattern.indices == np.repeat(np.arange(first.size), np.diff(pattern.indptr))
        pattern.data = np.where(on_diagonal, float(last.size), 1.0)  # regular, whatever the numbers are
        inner = sp.linalg.splu(pattern, permc_spec="MMD_AT_PLUS_A", **options)
        order = np.concatenate([first[np.argsort(inner.perm_c)], np.flatnonzero(last)])
        factor = sp.linalg.splu(_reordered(matrix, order), permc_spec="NATURAL", **options)

    def solve(right: FloatArray) -> FloatArray:
        found = np.empty_like(right)
        found[order] = factor.solve(right[order])
        return found

    return solve


def _reordered(matrix: sp.csc_array, order: IntArray) -> sp.csc_array:
    """Return the rows and columns of a square matrix in this order; those that it lacks are left out."""
    columns, place = matrix[:, order], np.full(matrix.shape[0], -1, matrix.indices.dtype)
    place[order] = np.arange(order.size)
    rows, data, ends = place[columns.indices], columns.data, columns.indptr
    if order.size < place.size:
        there = rows >= 0
        ends = np.concatenate([[0], np.cumsum(there)])[ends]
        rows, data = rows[there], data[there]
    return sp.csc_array((data, rows, ends), (order.size, order.size))
