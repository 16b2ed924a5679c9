"""The pairs of users and servers of a program, in units of their own, and the sums over them that an interior point is made of.

The limits of these programs belong to servers: A[r, p] is the part of limit r of its server that a pair p takes when it is as large as it
can be, so that every limit is 1 and the largest entry of a column is 1. W[p] is the part of its user's reach (the level that the user
could have if it were alone everywhere) that the pair gives by then. Pairs are vectors sorted by user, limits are (slots, servers), users
(users,).

A limit on tasks is a cap on the level of its user in a leximin, where a task has to be worth the same on all its servers: no row is needed
for it. Elsewhere it is a second row of its user, T x <= 1, beside that of its level, W x; `rows` holds both, those of levels first.

With every user eligible on every server a vector of pairs is a table (users, servers), and sums are those of its rows and columns. Else
they go by the positions of the pairs. Nobody but this file knows which.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.program import AlphaFair, Equalize, Leximin, LimitKind, Program, Total

__all__ = ["Pairs", "obstacle"]

_SAME = 1e-15
_SPARSE = 0.02  # a smaller part of all pairs: products of sparse matrices are faster than the dense ones


def obstacle(program: Program) -> str:
    """Say what of a program has no place in this layout: the end of a sentence that begins "the program has", or ""."""
    limits, users = program.limits, program.pair_users
    if (limits.kinds == LimitKind.SLICE).any():
        return "slices of servers that are set aside for users"
    if (limits.kinds == LimitKind.PARALLELISM).any():
        return "users who are limited to some servers at once"
    limited = limits.keys[limits.kinds == LimitKind.TASKS, 0]
    if isinstance(program.goal, Leximin | AlphaFair) and limited.size:
        low, high = np.full(len(program.users), np.inf), np.zeros(len(program.users))
        np.minimum.at(low, users, program.utilities)
        np.maximum.at(high, users, program.utilities)
        if (high[limited] > low[limited] * (1 + _SAME)).any():
            return "limits on tasks that are worth more on one server than on another"
    if limited.size:  # what only its tasks bound: no price could measure it
        of_server = np.repeat(limits.of_servers, np.diff(limits.matrix.indptr))
        if (np.bincount(limits.matrix.indices[of_server], minlength=program.n_pairs) == 0).any():
            return "tasks that take nothing of a server"
    return ""


class Pairs:
    """A program in these units, without the users who can have nothing and the pairs with no room.

    Attributes
    ----------
    member : int array (users,)
        Positions of the users in the program.
    column : int array (pairs,)
        Positions of the pairs in the program.
    scale : array (pairs,)
        Tasks of a pair that is as large as it can be.
    reach : array (users,)
        Level of a user who has all its servers to itself.
    A, W, T : arrays (slots, pairs), (pairs,), (pairs,)
    limited : int array
        The users with a second row.
    cap : array (users,)
        Level at which a user runs all its tasks, inf if it has no end of them; in parts of its reach. Of leximins only.

    Raises
    ------
    Unsupported
        Where the program has an `obstacle`.
    """

    def __init__(self, program: Program) -> None:
        blocked = obstacle(program)
        if blocked:
            raise Unsupported(f'"interior-point" cannot solve "{program.name}" here: the program has {blocked}; use highs')
        self.program = program
        largest = program.largest()
        self.column = np.flatnonzero(largest > 0)
        self.scale = largest[self.column]
        new = np.diff(program.pair_users[self.column], prepend=-1) > 0  # pairs are sorted by user
        self.member, self.user = program.pair_users[self.column[new]], np.cumsum(new) - 1
        self.n_users, self.n_pairs = self.member.size, self.column.size
        there = np.zeros(len(program.servers), bool)
        there[program.pair_servers[self.column]] = True
        self.server, self.n_servers = (np.cumsum(there) - 1)[program.pair_servers[self.column]], int(there.sum())
        self.first = np.flatnonzero(new)  # first pair of each user
        self.whole = self.n_pairs == self.n_users * self.n_servers
        self.sparse = self.n_pairs < _SPARSE * self.n_users * self.n_servers
        self._place_limits()

        goal = program.goal
        assert isinstance(goal, Leximin | Equalize | Total | AlphaFair)
        self.has_levels = isinstance(goal, Leximin | Equalize)
        factor = goal.weights if isinstance(goal, Total) else 1.0 / goal.weights if self.has_levels else np.ones_like(goal.weights)
        worth = (program.utilities * factor[program.pair_users])[self.column] * self.scale
        self.reach = self.sum_by_user(worth)
        self.W = worth / self.reach[self.user]
        self._place_tasks(isinstance(goal, Leximin | AlphaFair))

    def _place_limits(self) -> None:
        """Number the limits of each server: slot and server of every row of the program that bounds something."""
        limits, program = self.program.limits, self.program
        self.row = np.flatnonzero((limits.kinds != LimitKind.TASKS) & (limits.bounds > 0))
        place = np.full(len(program.servers), -1)
        place[program.pair_servers[self.column]] = self.server
        server = place[limits.keys[self.row, 0]]
        self.row, server = self.row[server >= 0], server[server >= 0]
        order = np.argsort(server, kind="stable")
        slot = np.empty(order.size, np.int64)
        starts = np.searchsorted(server[order], np.arange(self.n_servers))
        slot[order] = np.arange(order.size) - starts[server[order]]
        self.row_slot, self.row_server = slot, server
        self.n_slots = int(slot.max(initial=0)) + 1
        slot_of = np.full(len(limits), -1)
        slot_of[self.row] = slot
        where = np.full(program.n_pairs, -1)
        where[self.column] = np.arange(self.n_pairs)
        matrix = limits.matrix.tocoo()
        rows, columns, data = slot_of[matrix.row], where[matrix.col], matrix.data
        kept = (rows >= 0) & (columns >= 0)
        if not kept.all():
            rows, columns, data = rows[kept], columns[kept], data[kept]
        bounds = np.ones((self.n_slots, self.n_servers))
        bounds[slot, server] = limits.bounds[self.row]
        self.A = np.zeros((self.n_slots, self.n_pairs))
        self.A[rows, columns] = data * self.scale[columns] / bounds[rows, self.server[columns]]

    def _place_tasks(self, caps: bool) -> None:
        """Turn limits on tasks into caps where that is possible and wanted, and into second rows elsewhere."""
        limits = self.program.limits
        rows = np.flatnonzero(limits.kinds == LimitKind.TASKS)
        self.task_row = np.full(self.n_users, -1)
        place = np.full(len(self.program.users), -1)
        place[self.member] = np.arange(self.n_users)
        rows = rows[place[limits.keys[rows, 0]] >= 0]
        self.task_row[place[limits.keys[rows, 0]]] = rows
        tasks = np.where(self.task_row >= 0, limits.bounds[self.task_row], np.inf)
        per_task = self.W / self.scale
        high = np.maximum.reduceat(per_task, self.first)
        self.cap = tasks * high if caps else np.full(self.n_users, np.inf)
        has_row = np.isfinite(tasks) & ~caps
        self.limited = np.flatnonzero(has_row)
        self.T = self.scale * self.spread(np.where(has_row, 1.0 / tasks, 0.0)) if self.limited.size else np.zeros(self.n_pairs)
        self.n_levels = self.n_users if self.has_levels else 0
        self.n_rows = self.n_levels + self.limited.size

    # Sums ------------------------------------------------------------------------------------------------------------------------

    def use(self, x: FloatArray) -> FloatArray:
        """Return A x, (slots, servers)."""
        if self.whole:  # einsum makes no table of products on the way
            return np.asarray(np.einsum("rnk,nk->rk", self._table_of(self.A), self._table_of(x)))
        return self.sum_by_server(self.A * x)

    def cost(self, p: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """Return A'p, (pairs,); with T'y where the prices of second rows are given, too."""
        if y is not None and y.size:
            return self.cost(p) + self.T * self.spread(self.placed(y))
        if self.whole:
            worth: FloatArray = np.einsum("rnk,rk->nk", self._table_of(self.A), p)
            return worth.ravel()
        return np.asarray(np.einsum("rp,rp->p", self.A, p.take(self.server, axis=1)))

    def level(self, x: FloatArray) -> FloatArray:
        """Return W x, (users,)."""
        if self.whole:
            return np.asarray(np.einsum("nk,nk->n", self._table_of(self.W), self._table_of(x)))
        return self.sum_by_user(self.W * x)

    def rows(self, x: FloatArray) -> FloatArray:
        """Return the rows of the users, W x (where the goal has levels) and T x, (rows,)."""
        level = self.level(x) if self.has_levels else np.zeros(0)
        return np.concatenate([level, self.sum_by_user(self.T * x)[self.limited]]) if self.limited.size else level

    def along_rows(self, q: FloatArray) -> FloatArray:
        """Return what the rows of the users are worth at each pair, for prices of the rows, (pairs,)."""
        worth = self.W * self.spread(q[: self.n_levels]) if self.has_levels else np.zeros(self.n_pairs)
        return worth + self.T * self.spread(self.placed(q[self.n_levels :])) if self.limited.size else worth

    def placed(self, of_limited: FloatArray, elsewhere: float = 0.0) -> FloatArray:
        """Give a value to every user from those of the users with a second row."""
        values = np.full(self.n_users, elsewhere)
        values[self.limited] = of_limited
        return values

    def parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Split the values of a point: of pairs, of limits (slots, servers), of the rows of users."""
        end = self.n_pairs + self.n_slots * self.n_servers
        return values[: self.n_pairs], values[self.n_pairs : end].reshape(self.n_slots, self.n_servers), values[end:]

    def spread(self, values: FloatArray) -> FloatArray:
        """Give every pair the value of its user."""
        return np.repeat(values, self.n_servers) if self.whole else values[self.user]

    def sum_by_user(self, values: FloatArray) -> FloatArray:
        """Sum a value per pair over the pairs of each user, (users,)."""
        if self.whole:
            return np.asarray(values.reshape(self.n_users, self.n_servers).sum(axis=1))
        return np.asarray(np.add.reduceat(values, self.first))

    def cheapest(self, p: FloatArray, y: FloatArray) -> FloatArray:
        """Return the cheapest price of one unit of each user's level, min over its pairs of (A'p + T'y) / W, (users,)."""
        per_level = self.cost(p, y) / self.W
        if self.whole:
            return np.asarray(per_level.reshape(self.n_users, self.n_servers).min(axis=1))
        return np.asarray(np.minimum.reduceat(per_level, self.first))

    def sum_by_server(self, values: FloatArray) -> FloatArray:
        """Sum values (rows, pairs) over the pairs of each server, (rows, servers)."""
        if self.whole:
            return np.asarray(values.reshape(-1, self.n_users, self.n_servers).sum(axis=1))
        return np.array([np.bincount(self.server, weights=row, minlength=self.n_servers) for row in values])

    def dot_by_server(self, values: FloatArray, others: FloatArray) -> FloatArray:
        """Sum the products of two values per pair over the pairs of each server, (servers,)."""
        if self.whole:
            return np.asarray(np.einsum("nk,nk->k", self._table_of(values), self._table_of(others)))
        return np.asarray(np.bincount(self.server, weights=values * others, minlength=self.n_servers), float)

    def tables(self, values: FloatArray, rows: list[FloatArray]) -> FloatArray | sp.csr_array:
        """Return values (slots, pairs) times those of the rows of levels (if there are any) and of tasks, each (pairs,), as one matrix.

        It is (rows, slots * servers), and sparse where few pairs are eligible.
        """
        last = [slice(None)] * (len(rows) - 1) + [self.limited if self.limited.size else slice(None)]
        if self.sparse:
            sparse = [self._sparse_table(values * row)[kept] for row, kept in zip(rows, last, strict=True)]
            return sp.csr_array(sp.vstack(sparse, format="csr"))
        dense = [self._dense_table(values, row)[kept] for row, kept in zip(rows, last, strict=True)]
        return dense[0] if len(dense) == 1 else np.concatenate(dense)

    def _sparse_table(self, values: FloatArray) -> sp.csr_array:
        """Return values (slots, pairs) as a sparse matrix (users, slots * servers)."""
        n, k, m = self.n_users, self.n_servers, values.shape[0]
        rows, columns = np.tile(self.user, m), (np.arange(m)[:, None] * k + self.server).ravel()
        return sp.csr_array((values.ravel(), (rows, columns)), shape=(n, m * k))

    def _dense_table(self, values: FloatArray, row: FloatArray) -> FloatArray:
        """Return values (slots, pairs) times those of a row (pairs,) as a matrix (users, slots * servers)."""
        n, k, m = self.n_users, self.n_servers, values.shape[0]
        if self.whole:
            table = np.empty((n, m, k))
            np.multiply(values.reshape(m, n, k), self._table_of(row), out=table.transpose(1, 0, 2))
        else:
            table = np.zeros((n, m, k))
            table[self.user, :, self.server] = (values * row).T
        return table.reshape(n, m * k)

    def _table_of(self, values: FloatArray) -> FloatArray:
        """Return values (..., pairs) as a table (..., users, servers), where all pairs are eligible."""
        return values.reshape(*values.shape[:-1], self.n_users, self.n_servers)

    # The way back ----------------------------------------------------------------------------------------------------------------

    def tasks(self, x: FloatArray) -> FloatArray:
        """Return tasks of all pairs of the program."""
        tasks = np.zeros(self.program.n_pairs)
        tasks[self.column] = x * self.scale
        return tasks

    def prices(self, p: FloatArray, y: FloatArray) -> FloatArray:
        """Return what a unit of each limit of the program is worth, (limits,), for prices of whole limits and second rows."""
        prices, bounds = np.zeros(len(self.program.limits)), self.program.limits.bounds
        prices[self.row] = p[self.row_slot, self.row_server] / bounds[self.row]
        rows = self.task_row[self.limited]
        prices[rows] = y / bounds[rows]
        return prices

    def positions(self, users: IntArray) -> IntArray:
        """Return positions in the program of users given by their positions here."""
        return self.member[users]
