"""A matrix of users and limits of servers, where users of the same kind may run on the same few servers.

Rows are users, columns the limits of servers, slot by slot. Users of one kind are a block, of which only the columns of their servers are
kept. Users of kinds with most of the servers, or for whom a block of their own takes longer, are one block with all columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Program
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["Block", "BlockMatrix", "ColumnOrder", "UserBlocks", "kinds_of", "same_servers"]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnOrder:
    """An order of the columns in which those of a block are next to each other, as far as blocks share servers in the same way.

    Servers that belong to the same blocks are a class. Columns come class by class, and slot by slot within a class.

    Attributes
    ----------
    first, step : int arrays (servers,)
        Place of each server's column of the first slot, and how much further that of the next slot is.
    place, column : int arrays (columns,)
        The place of each column, and the column at each place.
    """

    first: IntArray
    step: IntArray
    place: IntArray
    column: IntArray

    @classmethod
    def of(cls, there: BoolArray, n_slots: int) -> ColumnOrder:
        """Return the order for blocks with these servers, ``there`` (blocks, servers)."""
        kind = np.unique(np.packbits(there.T, axis=1), axis=0, return_inverse=True)[1].ravel()
        servers, size = np.argsort(kind, kind="stable"), np.bincount(kind)
        before = np.cumsum(size) - size
        within = np.empty(kind.size, np.int64)
        within[servers] = np.arange(kind.size) - before[kind[servers]]
        first, step = n_slots * before[kind] + within, size[kind]
        place = (first + np.arange(n_slots)[:, None] * step).ravel()
        return cls(first, step, place, np.argsort(place))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Users, the columns that they may use, and where these are in the order of all columns.

    Attributes
    ----------
    users, columns : int arrays
    there : slice
        Where its table (users, columns) is in the buffer of all.
    place : int array (columns,)
        Of each column in the order of all, ascending.
    runs : list of (slice, slice)
        Columns next to each other: where they are in that order, and in the table; none if runs are too short.
    """

    users: IntArray
    columns: IntArray
    there: slice
    place: IntArray
    runs: list[tuple[slice, slice]]

    @classmethod
    def of(cls, users: IntArray, there: slice, place: IntArray, order: ColumnOrder) -> Block:
        """Return the block of columns at these places."""
        starts = np.flatnonzero(np.diff(place, prepend=-2) > 1)
        ends = np.append(starts, place.size)[1:]
        long = place.size >= SETTINGS.run * starts.size
        runs = [(slice(int(place[a]), int(place[a] + b - a)), slice(int(a), int(b))) for a, b in zip(starts, ends, strict=True) if long]
        return cls(users, order.column[place], there, place, runs)

    def add_products(self, out: FloatArray, table: FloatArray) -> None:
        """Add the products of the columns of its table to those of all columns, (columns, columns), both in ``order``."""
        products = table.T @ table
        if not self.runs:
            out.reshape(-1)[self.place[:, None] * len(out) + self.place] += products  # faster than by rows and columns
        for rows, own in self.runs:
            for columns, others in self.runs:
                out[rows, columns] += products[own, others]


@dataclass(frozen=True, slots=True, eq=False)
class UserBlocks:
    """Where the entries of such a matrix are in one buffer.

    Attributes
    ----------
    blocks : list of Block
    order : ColumnOrder
    position, width : int arrays (pairs,)
        Of each pair in the first slot, and how much further the next slot is.
    shape : (int, int)
        Users and columns.
    size : int
        Of the buffer.
    """

    blocks: list[Block]
    order: ColumnOrder
    position: IntArray
    width: IntArray
    shape: tuple[int, int]
    size: int

    @staticmethod
    def may_be_smaller(n_users: int, columns: int) -> bool:
        """Has one table so many products that calls for a single block take less?"""
        return SETTINGS.products_of_a_block <= SETTINGS.worth * n_users * columns**2

    @classmethod
    def of(cls, kind: IntArray, user: IntArray, server: IntArray, n_servers: int, n_slots: int) -> UserBlocks | None:
        """Return the blocks, None where one table is no larger.

        Parameters
        ----------
        kind : int array (users,)
        user, server : int arrays (pairs,)
        """
        there = np.zeros((int(kind.max(initial=-1)) + 1, n_servers), bool)
        there[kind[user], server] = True
        of_kind = np.bincount(kind, minlength=there.shape[0])
        widths, columns = there.sum(axis=1), n_servers * n_slots
        together = (widths > SETTINGS.wide * n_servers) | (_products(of_kind, widths * n_slots) > of_kind * columns**2)
        block = np.unique(np.where(together[kind], -1, kind), return_inverse=True)[1]
        servers = np.zeros((int(block.max(initial=-1)) + 1, n_servers), bool)
        servers[block[user], server] = True
        servers[np.unique(block[together[kind]])] = True
        users, widths = np.bincount(block), servers.sum(axis=1)
        sizes = users * widths * n_slots
        if _products(users, widths * n_slots).sum() > SETTINGS.worth * kind.size * columns**2:
            return None
        order = ColumnOrder.of(servers, n_slots)
        in_order = servers[:, order.column % n_servers]
        ends = np.cumsum(sizes)
        members = np.split(np.argsort(block, kind="stable"), np.cumsum(users)[:-1])
        within = np.empty(kind.size, np.int64)
        within[np.concatenate(members)] = np.concatenate([np.arange(number) for number in users])
        of_pair = block[user]
        position = (ends - sizes)[of_pair] + within[user] * n_slots * widths[of_pair]
        position += (np.cumsum(in_order, axis=1) - 1)[of_pair, order.first[server]]
        blocks = [
            Block.of(own, slice(int(end - size), int(end)), np.flatnonzero(mine), order)
            for own, mine, end, size in zip(members, in_order, ends, sizes, strict=True)
        ]
        return cls(blocks, order, position, order.step[server], (kind.size, columns), int(ends[-1]))

    def matrix(self, values: FloatArray) -> BlockMatrix:
        """Return the matrix of values (slots, pairs)."""
        buffer = np.zeros(self.size)
        for r, row in enumerate(values):
            buffer[self.position + r * self.width] = row
        return BlockMatrix(self.shape, [(block, buffer[block.there].reshape(block.users.size, -1)) for block in self.blocks], self.order)


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """Such a matrix: its products with vectors, and its transpose times itself.

    Attributes
    ----------
    shape : (int, int)
    blocks : list of (Block, array (users, columns))
    order : ColumnOrder
        Of the products of columns.
    is_transposed : bool
    """

    shape: tuple[int, int]
    blocks: list[tuple[Block, FloatArray]]
    order: ColumnOrder
    is_transposed: bool = False

    @property
    def T(self) -> BlockMatrix:
        """The transpose."""
        return BlockMatrix(self.shape, self.blocks, self.order, not self.is_transposed)

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        """Return the product with a vector."""
        out = np.zeros(self.shape[1 if self.is_transposed else 0])
        for block, table in self.blocks:
            if self.is_transposed:
                out[block.columns] += table.T @ vector[block.users]
            else:
                out[block.users] = table @ vector[block.columns]
        return out

    def gram(self) -> FloatArray:
        """Return the products of columns, (columns, columns), both in ``order``."""
        n = self.shape[1]
        wide = [table for block, table in self.blocks if block.columns.size == n]
        out = wide[0].T @ wide[0] if wide else np.zeros((n, n))
        for table in wide[1:]:
            out += table.T @ table
        for block, table in self.blocks:
            if block.columns.size < n:
                block.add_products(out, table)
        return out

    def add_to_gram(self, gram: FloatArray, values: FloatArray, r: int, c: int) -> None:
        """Add values of all servers, (servers,), to the products of their columns of the slots r and c, in place."""
        rows, columns = self.order.place.reshape(-1, values.size)[[r, c]]
        gram.reshape(-1)[rows * self.shape[1] + columns] += values

    def in_order(self, solve: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
        """Return a function that solves a system of columns, from one that solves it in ``order``."""
        return lambda right: np.asarray(solve(right[self.order.column])[self.order.place])


def _products(users: IntArray, columns: IntArray) -> FloatArray:
    """Return what blocks of these sizes take, (blocks,), in products of two numbers: multiplying, adding to the others, and the calls."""
    return np.asarray((users + SETTINGS.products_of_a_sum) * columns.astype(float) ** 2 + SETTINGS.products_of_a_block)


def same_servers(user: IntArray, server: IntArray, shape: tuple[int, int]) -> IntArray:
    """Number the kinds of users who have the same servers, (users,)."""
    there: BoolArray = np.zeros(shape, bool)
    there[user, server] = True
    return np.asarray(np.unique(np.packbits(there, axis=1), axis=0, return_inverse=True)[1]).ravel()


def kinds_of(program: Program) -> IntArray:
    """Number the kinds of users of a program, (users,): those of one kind may run on the same servers. They are found once."""
    shape = len(program.users), len(program.servers)
    kinds: IntArray = program.limits.once("kinds of users", lambda: same_servers(program.pair_users, program.pair_servers, shape))
    return kinds
