r"""The linear system of a Newton step, user by user.

    [ D  B' ]        of the columns
    [ B  -F ]        of the rows: limits, and the utilities of users

A row of B belongs to a user if it meets columns of this user alone: its utility, a limit on its tasks or on its servers at once. The other
rows are shared. Without these the matrix falls into a block M[n] for each user, and with C[n] the entries of the shared rows in the columns
of n, a Schur complement of the shared rows is left,

    S = -F - sum_n C[n] M[n]^-1 C[n]'.

So a step takes time linear in the users, where a user has few columns and few rows are shared. Blocks of one size are inverted at once,
with pivots: a block with small D and F is far from singular, but its diagonal is not large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.solvers.active_sets.settings import SETTINGS
from fairopt.solvers.structure.across import largest_of_each

__all__ = ["Rows", "UserBlocks"]


class Rows:
    """The matrix B (limits and users, columns), its transpose, and the blocks of users into which it falls.

    Parameters
    ----------
    B : sparse array
    user : int array (columns,)
        Ascending.
    by_user : bool
        May a step be solved user by user? That has fewer digits where rows are nearly equations.
    """

    def __init__(self, B: sp.csr_array, user: IntArray, by_user: bool = True) -> None:
        self.B, self.Bt = B, sp.csr_array(B.T)
        self._user, self._by_user = user, by_user

    @cached_property
    def blocks(self) -> UserBlocks | None:
        """Return the blocks, None where rows that are shared are many, or blocks large."""
        return UserBlocks.of(self.B, self.Bt, self._user) if self._by_user else None

    def most_added(self, F: FloatArray) -> FloatArray:
        """Return max over rows r of B[r,column]^2 / F[r], (columns,).

        Eliminating the column adds this, divided by D[column], to F[r], in parts of F[r]. An equation has no F that could be lost.
        """
        with np.errstate(over="ignore"):
            added = np.where(F > 0, 1 / np.maximum(F, TINY), 0.0)[self.Bt.indices] * self.Bt.data**2
        return largest_of_each(added, self.Bt.indptr)


@dataclass(frozen=True, slots=True, eq=False)
class _Alike:
    """Blocks of one size.

    Attributes
    ----------
    own : int array (blocks, unknowns)
        Columns, and after all columns rows, of each block; first its columns.
    columns : int
        Of each block.
    fixed : array (blocks, unknowns, unknowns)
        The entries of B and B' in them.
    shared : sparse array (blocks x columns, shared rows)
    """

    own: IntArray
    columns: int
    fixed: FloatArray
    shared: sp.csr_array


@dataclass(frozen=True, slots=True, eq=False)
class UserBlocks:
    """The blocks, by size; ``shared`` are the unknowns that are in none, and ``size`` is the number of all unknowns."""

    alike: list[_Alike]
    shared: IntArray
    size: int

    @classmethod
    def of(cls, B: sp.csr_array, Bt: sp.csr_array, user: IntArray) -> UserBlocks | None:
        """Return the blocks of a matrix, None where other ways are faster."""
        n_rows, n_columns = B.shape
        owner = np.full(n_rows, -1)
        some = np.flatnonzero(np.diff(B.indptr))
        of_entries = user[B.indices]
        least, most = (ufunc.reduceat(of_entries, B.indptr[some]) for ufunc in (np.minimum, np.maximum))
        owner[some] = np.where(least == most, least, -1)
        shared = some[least != most]
        n_users = int(user[-1]) + 1
        empty = np.setdiff1d(np.arange(n_rows), some)
        owner[empty] = n_users + np.arange(empty.size)
        if shared.size > SETTINGS.most_shared:
            return None
        block = np.concatenate([user, owner])
        order = np.argsort(block, kind="stable")[shared.size :]
        n_blocks = n_users + empty.size
        of_columns = np.bincount(user, minlength=n_blocks)
        sizes = of_columns + np.bincount(owner[owner >= 0], minlength=n_blocks)
        if (sizes.astype(float) ** 2).sum() > SETTINGS.widest * sizes.sum():
            return None
        ends, place = np.cumsum(sizes), np.empty(block.size, np.int64)
        place[order] = np.arange(order.size) - np.repeat(ends - sizes, sizes)
        inner, number = B.tocoo(), np.empty(n_blocks, np.int64)
        inside = owner[inner.row] >= 0
        row, column, data = inner.row[inside], inner.col[inside], inner.data[inside]
        kinds, kind = np.unique(np.stack([of_columns, sizes]), axis=1, return_inverse=True)
        alike = []
        for k, (columns, size) in enumerate(kinds.T):
            members = np.flatnonzero(kind.ravel() == k)
            number[members] = np.arange(members.size)
            own = order[(ends - sizes)[members][:, None] + np.arange(size)]
            here = kind.ravel()[user[column]] == k
            first, at, over = number[user[column[here]]], place[n_columns + row[here]], place[column[here]]
            fixed = np.zeros((members.size, size, size))
            fixed[first, at, over] = fixed[first, over, at] = data[here]
            alike.append(_Alike(own, int(columns), fixed, sp.csr_array(Bt[own[:, :columns].ravel()][:, shared])))
        return cls(alike, n_columns + shared, block.size)

    def factorised(self, rows: Rows, D: FloatArray, F: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return the units in which the largest entry of each row and column is 1, and the solution of the system in these units.

        Parameters
        ----------
        rows : Rows
        D, F : arrays (columns,) and (rows,), >= 0

        Raises
        ------
        numpy.linalg.LinAlgError
            A block is singular.
        """
        units = _units(rows, D, F)
        diagonal = np.concatenate([D, -F]) * units**2
        diagonal[: D.size] += SETTINGS.regular
        diagonal[D.size :] -= SETTINGS.regular
        schur = np.diag(diagonal[self.shared])
        parts = []
        for alike in self.alike:
            own, shared, columns = units[alike.own], alike.shared, alike.columns
            factors = np.repeat(own[:, :columns].ravel(), np.diff(shared.indptr)) * units[self.shared][shared.indices]
            C = sp.csr_array((shared.data * factors, shared.indices, shared.indptr), shape=shared.shape)
            inverse = np.empty_like(alike.fixed)
            for some in _chunks(own.shape[0], own.shape[1] * max(own.shape[1], self.shared.size)):
                block = alike.fixed[some] * own[some, :, None]
                block *= own[some, None, :]
                np.einsum("nii->ni", block)[:] += diagonal[alike.own[some]]
                inverse[some] = np.linalg.inv(block)
                if columns and self.shared.size:
                    dense = C[some.start * columns : some.stop * columns].toarray()
                    along = inverse[some, :columns, :columns] @ dense.reshape(-1, columns, self.shared.size)
                    schur -= dense.T @ along.reshape(dense.shape)
            parts.append((alike, C, inverse))
        of_shared = np.linalg.inv(schur)

        def solve(right: FloatArray) -> FloatArray:
            found, left = np.empty(self.size), right[self.shared]
            first = []
            for alike, C, inverse in parts:
                first.append(np.einsum("nij,nj->ni", inverse, right[alike.own]))
                left = left - C.T @ first[-1][:, : alike.columns].ravel()
            found[self.shared] = of_shared @ left
            for (alike, C, inverse), before in zip(parts, first, strict=True):
                more = np.asarray(C @ found[self.shared]).reshape(inverse.shape[0], alike.columns)
                found[alike.own] = before - np.einsum("nij,nj->ni", inverse[:, :, : alike.columns], more)
            return found

        return units, solve


def _units(rows: Rows, D: FloatArray, F: FloatArray) -> FloatArray:
    """Return units in which the largest entry of each row and column of the whole matrix is 1.

    The first units of the columns may be too small; those of the rows are right for them. Then those of the columns grow until an entry of
    each is 1, and none is larger.
    """
    of_columns = 1 / np.sqrt(np.maximum(D, 1.0))
    largest = np.maximum(np.sqrt(F), _largest(rows.B, of_columns))
    of_rows = 1 / np.where(largest > 0, largest, 1.0)
    of_columns = 1 / np.maximum(np.sqrt(D), _largest(rows.Bt, of_rows))
    return np.concatenate([of_columns, of_rows])


def _largest(matrix: sp.csr_array, units: FloatArray) -> FloatArray:
    """Return the largest entry of each row, each entry in the unit of its column; 0 of an empty row."""
    largest = np.zeros(matrix.shape[0])
    some = np.flatnonzero(np.diff(matrix.indptr))
    largest[some] = np.maximum.reduceat(np.abs(matrix.data) * units[matrix.indices], matrix.indptr[some])
    return largest


def _chunks(number: int, entries: int) -> Iterator[slice]:
    """Yield slices of ``number`` blocks with so many ``entries`` each; the entries of a slice fit into the cache."""
    each = max(1, SETTINGS.entries_at_once // entries)
    return (slice(start, min(start + each, number)) for start in range(0, number, each))
