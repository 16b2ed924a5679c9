"""The layouts of a vector of pairs (`fairopt.solvers.structure.pairs`), and which one is the faster.

If enough pairs are eligible, a vector of pairs is a table (users, servers) in NumPy, PyTorch or CuPy, with sums over its rows and columns.
In a table, a pair that is not eligible uses nothing and is worth nothing, its x and z never change, and ``eligible`` masks it in functions
of their products. Otherwise a vector holds the eligible pairs only, with sums by position, in NumPy and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.solvers.structure.arrays import Arrays
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram
from fairopt.solvers.structure.settings import SETTINGS
from fairopt.solvers.structure.user_blocks import BlockMatrix, UserBlocks, kinds_of

__all__ = ["PairLists", "PairTable", "lay_out"]


def lay_out(scaled: ScaledProgram, arrays: Arrays) -> Pairs:
    """Return the faster layout; in other arrays than NumPy's that is a table.

    Raises
    ------
    Unsupported
        Where a table of other arrays would be nearly empty, or there are limits across servers.
    """
    if scaled.across.shape[0] and not arrays.are_numpy:
        raise Unsupported(
            f'"interior-point" has limits across servers in NumPy\'s arrays alone, and "{scaled.program.name}" has some here: '
            'use "interior-point:numpy"'
        )
    if scaled.density >= (SETTINGS.table if arrays.are_numpy else SETTINGS.least_table):
        return PairTable(scaled, arrays)
    if arrays.are_numpy:
        return PairLists(scaled, arrays)
    raise Unsupported(
        f'"interior-point" has lists of pairs in NumPy\'s arrays alone, and only {scaled.density:.1%} of all pairs of '
        f'"{scaled.program.name}" are eligible, too few for a table: use "interior-point:numpy"'
    )


class PairTable(Pairs):
    """All pairs of users and servers, with a mask of the eligible ones where they are not all."""

    def __init__(self, scaled: ScaledProgram, arrays: Arrays) -> None:
        self._position = scaled.user * scaled.n_servers + scaled.server
        self._shape = scaled.n_users, scaled.n_servers
        self._there: Any = None  # by entry of a point, whose limits and rows are all there
        if not scaled.all_eligible:
            there = np.zeros(scaled.n_users * scaled.n_servers, bool)
            there[self._position] = True
            others = np.ones(scaled.n_slots * scaled.n_places + scaled.n_rows, bool)
            self._there = arrays.booleans(np.concatenate([there, others]))
        super().__init__(scaled, arrays, scaled.n_users * scaled.n_servers)

    def lay(self, values: FloatArray) -> Any:
        """Put them where they are in the table."""
        if self._there is None:
            return self.arrays.floats(values)
        table = np.zeros((*values.shape[:-1], self.n_pairs))
        table[..., self._position] = values
        return self.arrays.floats(table)

    def eligible(self, values: Any, elsewhere: float = 0.0) -> Any:
        """Ask the mask, where there is one."""
        return values if self._there is None else self.xp.where(self._there[: values.shape[0]], values, elsewhere)

    def view(self, values: Any) -> Any:
        """Tables, one a slot."""
        return self.xp.reshape(values, (-1, *self._shape))

    def at_servers(self, values: Any) -> Any:
        """A value a column."""
        return values

    def spread(self, values: Any) -> Any:
        """Along the rows."""
        return self.xp.repeat(values, self.n_servers)

    def dot_by_user(self, values: Any, others: Any) -> Any:
        """Of the rows."""
        return self.xp.vecdot(self.xp.reshape(values, self._shape), self.xp.reshape(others, self._shape))

    def least_by_user(self, values: Any) -> Any:
        """Of the rows."""
        return self.xp.min(self.xp.reshape(self.eligible(values, np.inf), self._shape), axis=1)

    def most_by_server(self, values: Any) -> Any:
        """Of the columns."""
        return self.xp.max(self.xp.reshape(values, self._shape), axis=0)

    def use_of_servers(self, x: Any, slots: int | None = None) -> Any:
        """Sums of columns."""
        return self.arrays.sum_rows(self.view(self.A)[:slots, :, :], self.xp.reshape(x, self._shape))

    def cost_of_servers(self, p: Any) -> Any:
        """Sums of tables."""
        return self.xp.reshape(self.arrays.sum_tables(self.view(self.A), p), (-1,))

    def matrix(self, used: Any, rows: list[Any]) -> Any:
        """Put tables side by side."""
        parts, xp = [], self.xp
        for values in rows:
            own = xp.reshape(values, self._shape)
            table = xp.empty((self.n_users, self.n_slots, self.n_servers), dtype=xp.float64, device=self.arrays.device)
            for r in range(self.n_slots):
                table[:, r, :] = self.view(used)[r, :, :] * own
            parts.append(xp.reshape(table, (self.n_users, -1)))
        if self.n_limited:
            parts[-1] = self.of_limited(parts[-1])
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def numbers(self, x: Any) -> FloatArray:
        """Take them from where they are in the table."""
        values: FloatArray = self.arrays.numpy(x)
        return values if self._there is None else np.asarray(values[self._position])


class PairLists(Pairs):
    """The eligible pairs alone, in NumPy; their matrix is SciPy's where they are few, and one of blocks where that is smaller."""

    def __init__(self, scaled: ScaledProgram, arrays: Arrays) -> None:
        self._user, self._server, self._first = scaled.user, scaled.server, scaled.first
        self._sparse = scaled.density < SETTINGS.sparse
        super().__init__(scaled, arrays, scaled.n_pairs)
        self._blocks = None
        limits = self.n_slots * self.n_servers
        eliminates_users = self.across is None and not self._sparse and not self.n_limited and self.n_rows > limits
        if eliminates_users and UserBlocks.may_be_smaller(self.n_users, limits):
            self._blocks = UserBlocks.of(kinds_of(scaled.program)[scaled.member], self._user, self._server, self.n_servers, self.n_slots)

    def lay(self, values: FloatArray) -> FloatArray:
        """As they are: the scaled program has the eligible pairs alone, too."""
        return values

    def eligible(self, values: FloatArray, elsewhere: float = 0.0) -> FloatArray:
        """As they are: all pairs here are eligible."""
        return values

    def view(self, values: FloatArray) -> FloatArray:
        """As they are: a row a slot."""
        return values

    def at_servers(self, values: FloatArray) -> FloatArray:
        """By position."""
        return np.asarray(values[self._server])

    def spread(self, values: FloatArray) -> FloatArray:
        """By position."""
        return np.asarray(values[self._user])

    def dot_by_user(self, values: FloatArray, others: FloatArray) -> FloatArray:
        """Of a stretch of pairs."""
        return np.asarray(np.add.reduceat(values * others, self._first))

    def least_by_user(self, values: FloatArray) -> FloatArray:
        """Of a stretch of pairs."""
        return np.asarray(np.minimum.reduceat(values, self._first))

    def most_by_server(self, values: FloatArray) -> FloatArray:
        """By position."""
        most = np.zeros(self.n_servers)
        np.maximum.at(most, self._server, values)
        return most

    def use_of_servers(self, x: FloatArray, slots: int | None = None) -> FloatArray:
        """By position."""
        return np.array([np.bincount(self._server, weights=row * x, minlength=self.n_servers) for row in self.A[:slots]])

    def cost_of_servers(self, p: FloatArray) -> FloatArray:
        """By position."""
        total: FloatArray = self.A[0] * p[0][self._server]  # a third of the time that all slots at once take
        for r in range(1, self.n_slots):
            total += self.A[r] * p[r][self._server]
        return total

    def matrix(self, used: FloatArray, rows: list[FloatArray]) -> FloatArray | sp.csr_array | BlockMatrix:
        """Place them in a matrix, a sparse one where they are few, and one of blocks where users of a kind have few servers."""
        if self._blocks is not None:
            return self._blocks.matrix(used * rows[0])
        if self._sparse:
            sparse = [self._sparse_matrix(used * values) for values in rows]
            if self.n_limited:
                sparse[-1] = sparse[-1][self._limited]
            return sp.csr_array(sp.vstack(sparse, format="csr"))
        dense = [self._dense_matrix(used, values) for values in rows]
        if self.n_limited:
            dense[-1] = dense[-1][self._limited]
        return dense[0] if len(dense) == 1 else np.concatenate(dense)

    def _sparse_matrix(self, values: FloatArray) -> sp.csr_array:
        n, k, m = self.n_users, self.n_servers, self.n_slots
        rows, columns = np.tile(self._user, m), (np.arange(m)[:, None] * k + self._server).ravel()
        return sp.csr_array((values.ravel(), (rows, columns)), shape=(n, m * k))

    def _dense_matrix(self, used: FloatArray, values: FloatArray) -> FloatArray:
        n, k, m = self.n_users, self.n_servers, self.n_slots
        table, start = np.zeros(n * m * k), self._user * (m * k) + self._server
        for r in range(m):
            table[start + r * k] = used[r] * values
        return table.reshape(n, m * k)

    def numbers(self, x: FloatArray) -> FloatArray:
        """As they are."""
        return x
