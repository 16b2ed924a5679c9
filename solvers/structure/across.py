"""Rows of a program that belong to several servers, C x <= 1: resources of the whole cluster, limits over some servers and users.

They are few, and border the Newton system of servers and users (`fairopt.solvers.structure.newton`). With theta a weight of each pair, it
needs their products with the limits A of servers, with the rows U of users, and with each other,

    C theta A'        C theta U'        C theta C'.

A row that limits all users alike, of some resource on some servers, adds up limits of these servers: C = G A, with one number of G for each
server. Then these products are G (A theta A'), G (A theta U') and G (A theta A') G', and no pair is looked at. So C = G A + F, where a row
is in G or, entry by entry, in F. In NumPy and SciPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.structure.scaling import ScaledProgram
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["Across", "largest_of_each"]


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """The rows, over the pairs of a layout.

    Attributes
    ----------
    matrix, transposed : sparse arrays (rows across, pairs), (pairs, rows across)
        C.
    G : array (rows across, slots, servers)
    free : int array (rows,)
        The rows of F.
    F, F_transposed : sparse arrays (rows, pairs), (pairs, rows)
    row, user, server : int arrays (entries,)
        Of each entry of F.
    n_users : int
    """

    matrix: sp.csr_array
    transposed: sp.csr_array
    G: FloatArray
    free: IntArray
    F: sp.csr_array
    F_transposed: sp.csr_array
    row: IntArray
    user: IntArray
    server: IntArray
    n_users: int

    @classmethod
    def of(cls, scaled: ScaledProgram, n_pairs: int, position: IntArray | None) -> Across:
        """Return the rows of a scaled program over ``n_pairs`` entries, of which its pairs have these positions; by default their own."""
        matrix, G = scaled.across, scaled.G
        user, server = scaled.user, scaled.server
        if position is not None:
            matrix = sp.csr_array((matrix.data, position[matrix.indices], matrix.indptr), shape=(matrix.shape[0], n_pairs))
            user, server = np.divmod(np.arange(n_pairs), scaled.n_servers)
        transposed = sp.csr_array(matrix.T)
        combined: BoolArray = np.asarray(G.any(axis=(1, 2)))
        free = np.flatnonzero(~combined & (np.diff(matrix.indptr) > 0))
        F = matrix if not combined.any() and free.size == matrix.shape[0] else sp.csr_array(matrix[free])
        row = np.repeat(np.arange(free.size), np.diff(F.indptr))
        F_transposed = transposed if F is matrix else sp.csr_array(F.T)
        return cls(matrix, transposed, G, free, F, F_transposed, row, user[F.indices], server[F.indices], scaled.n_users)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    # Sums ------------------------------------------------------------------------------------------------------------------------

    def use(self, x: FloatArray, of_servers: FloatArray) -> FloatArray:
        """Return C x, (rows across,), given A x, (slots, servers)."""
        used = np.einsum("kri,ri->k", self.G, of_servers)
        used[self.free] += self.F @ x
        return np.asarray(used)

    def largest_use(self, x: FloatArray) -> FloatArray:
        """Return the largest part of each row that one pair of x uses, (rows across,)."""
        return largest_of_each(self.matrix.data * x[self.matrix.indices], self.matrix.indptr)

    def price_of_servers(self, p: FloatArray) -> FloatArray:
        """Return G'p, (slots, servers), for prices of rows across servers."""
        return np.asarray(np.einsum("kri,k->ri", self.G, p))

    def cost(self, p: FloatArray) -> FloatArray:
        """Return F'p, (pairs,)."""
        return np.asarray(self.F_transposed @ p[self.free])

    def largest_of_rows(self, values: FloatArray) -> FloatArray:
        """Return the largest value of the pairs of each row; 0 of a row without pairs, (rows across,)."""
        return largest_of_each(values[self.matrix.indices], self.matrix.indptr)

    def largest_of_pairs(self, values: FloatArray) -> FloatArray:
        """Return the largest value of the rows of each pair, (pairs,); 0 of a pair without rows."""
        return largest_of_each(values[self.transposed.indices], self.transposed.indptr)

    def largest_need(self, bounds: FloatArray) -> FloatArray:
        """Return the largest part of a row with such bounds that each pair takes at 1, (pairs,)."""
        return largest_of_each(self.transposed.data / bounds[self.transposed.indices], self.transposed.indptr)

    # Products --------------------------------------------------------------------------------------------------------------------

    def with_servers(self, theta: FloatArray, A: FloatArray, H: FloatArray) -> FloatArray:
        """Return C theta A' for A of (slots, pairs), given H = A theta A' of (slots, slots, servers); as (slots, rows across, servers)."""
        products = np.einsum("kci,cri->rki", self.G, H)
        weights, n_servers = self._weighted(theta), H.shape[2]
        place = self.row * n_servers + self.server
        for r, row in enumerate(A):
            products[r, self.free] += self._sums(weights * row[self.F.indices], place, n_servers)
        return np.asarray(products)

    def with_users(self, theta: FloatArray, rows: list[FloatArray]) -> list[FloatArray]:
        """Return F theta U' for each kind of rows of users, (pairs,), as (rows across, users)."""
        weights, place, products = self._weighted(theta), self.row * self.n_users + self.user, []
        for values in rows:
            products.append(np.zeros((self.n_rows, self.n_users)))
            products[-1][self.free] = self._sums(weights * values[self.F.indices], place, self.n_users)
        return products

    def with_each_other(self, theta: FloatArray, H: FloatArray, with_servers: FloatArray) -> FloatArray:
        """Return C theta C', (rows across, rows across)."""
        products = np.einsum("kri,rli->kl", self.G, with_servers)  # G A theta C'
        products[self.free] += np.einsum("rfi,lri->fl", with_servers[:, self.free], self.G)  # F theta A' G'
        places = np.ix_(self.free, self.free)
        if self.F.nnz > SETTINGS.dense_across * self.free.size * theta.size:
            table = np.zeros(self.F.shape)
            table[self.row, self.F.indices] = self.F.data * np.sqrt(theta)[self.F.indices]
            products[places] += table @ table.T
        else:
            weighted = sp.csr_array((self._weighted(theta), self.F.indices, self.F.indptr), shape=self.F.shape)
            products[places] += (weighted @ self.F_transposed).toarray()
        return np.asarray(products)

    def _weighted(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.F.data * theta[self.F.indices])

    def _sums(self, values: FloatArray, place: IntArray, width: int) -> FloatArray:
        sums = np.bincount(place, weights=values, minlength=self.free.size * width).astype(np.float64)  # integers where there is nothing
        return sums.reshape(self.free.size, width)


def largest_of_each(values: FloatArray, ends: np.ndarray) -> FloatArray:
    """Return the largest of each stretch of values >= 0, as a sparse matrix has them by its rows; 0 of an empty one."""
    most = np.zeros(ends.size - 1)
    some = ends[1:] > ends[:-1]
    most[some] = np.maximum.reduceat(values, ends[:-1][some])
    return most
