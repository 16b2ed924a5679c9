"""Sparse rows made, selected and stacked by hand: on small programs SciPy's classes take several times as long as the arithmetic.

All have the results of SciPy, entry by entry: entries of 0 stay, and those of a row keep their order.

>>> matrix = by_rows(np.array([2.0, 5.0, 7.0]), np.array([1, 0, 1]), np.array([0, 1, 2]), (2, 3))
>>> matrix.toarray().tolist()
[[0.0, 5.0, 0.0], [2.0, 0.0, 7.0]]
>>> selected(matrix, np.array([1])).toarray().tolist()
[[2.0, 0.0, 7.0]]
>>> stacked([matrix, selected(matrix, np.array([0]))]).toarray().tolist()
[[0.0, 5.0, 0.0], [2.0, 0.0, 7.0], [0.0, 5.0, 0.0]]
>>> Products.of(matrix)(np.array([1.0, 2.0, 3.0])).tolist()
[10.0, 23.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["Products", "by_rows", "entries_of", "selected", "stacked"]


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The products of one matrix with many vectors: the matrix, its rows that have an entry (None: all of them), and where these begin."""

    matrix: sp.csr_array
    values: FloatArray
    columns: npt.NDArray[np.integer[Any]]
    some: BoolArray | None
    starts: npt.NDArray[np.integer[Any]]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Products:
        """Return the products of a matrix."""
        starts, some = matrix.indptr[:-1], np.diff(matrix.indptr) > 0
        every = bool(some.all())
        return cls(matrix, matrix.data, matrix.indices, None if every else some, starts if every else starts[some])

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return matrix @ x, (rows,)."""
        if self.some is None:
            return np.add.reduceat(self.values * x[self.columns], self.starts) if self.starts.size else np.zeros(0)
        product = np.zeros(self.some.size)
        if self.starts.size:
            product[self.some] = np.add.reduceat(self.values * x[self.columns], self.starts)
        return product


_COUNTED = 2**16  # rows whose numbers have 16 bits: NumPy sorts these by counting


def by_rows(values: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sp.csr_array:
    """Return entries by ascending columns as a matrix, without the detour of coordinates."""
    order = np.argsort(rows.astype(np.uint16) if shape[0] <= _COUNTED else rows, kind="stable")
    return sp.csr_array((values[order], columns[order], _ends(np.bincount(rows, minlength=shape[0]))), shape=shape)


def entries_of(matrix: sp.csr_array, rows: BoolArray | IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the entries of some rows, one row after another, (entries,), and how many each row has, (rows,)."""
    starts = matrix.indptr[:-1][rows]
    sizes = matrix.indptr[1:][rows] - starts
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if ends.size else 0), sizes


def selected(matrix: sp.csr_array, rows: BoolArray | IntArray) -> sp.csr_array:
    """Return some of the rows, in the order in which they are named."""
    number = np.size(rows)
    if rows.dtype != bool and number and rows[-1] == number - 1 and (np.diff(rows) == 1).all():  # the first ones: no entry is copied
        end = matrix.indptr[number]
        return sp.csr_array((matrix.data[:end], matrix.indices[:end], matrix.indptr[: number + 1]), shape=(number, matrix.shape[1]))
    where, sizes = entries_of(matrix, rows)
    return sp.csr_array((matrix.data[where], matrix.indices[where], _ends(sizes)), shape=(sizes.size, matrix.shape[1]))


def stacked(blocks: Sequence[sp.csr_array]) -> sp.csr_array:
    """Return one block below another; all have the same columns."""
    before = accumulate((block.indptr[-1] for block in blocks), initial=0)
    ends = np.concatenate([[0], *(block.indptr[1:] + n for block, n in zip(blocks, before, strict=False))])
    data, indices = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("data", "indices"))
    return sp.csr_array((data, indices, ends), shape=(ends.size - 1, blocks[0].shape[1]))


def _ends(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)])
