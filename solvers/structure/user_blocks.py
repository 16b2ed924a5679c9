"""A matrix of users and limits of servers, where users of the same kind may run on the same few servers.

Rows are users, columns the limits of servers, slot by slot. Users of one kind are a block, of which only the columns of their servers are
kept. Users of kinds with most of the servers, or of few users, are one block with all columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Program
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["BlockMatrix", "UserBlocks", "kinds_of", "same_servers"]


@dataclass(frozen=True, slots=True, eq=False)
class UserBlocks:
    """Where the entries of such a matrix are in one buffer.

    Attributes
    ----------
    blocks : list of (int array, int array, slice)
        Of each block its users, its columns, and where its table (users, columns) is.
    position, width : int arrays (pairs,)
        Of each pair in the first slot, and how much further the next slot is.
    shape : (int, int)
        Users and columns.
    size : int
        Of the buffer.
    """

    blocks: list[tuple[IntArray, IntArray, slice]]
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
        together = (there.sum(axis=1) > SETTINGS.wide * n_servers) | (of_kind < SETTINGS.least_users)
        block = np.unique(np.where(together[kind], -1, kind), return_inverse=True)[1]
        servers = np.zeros((int(block.max(initial=-1)) + 1, n_servers), bool)
        servers[block[user], server] = True
        servers[np.unique(block[together[kind]])] = True
        users, widths, columns = np.bincount(block), servers.sum(axis=1), n_servers * n_slots
        sizes = users * widths * n_slots
        products = ((users + SETTINGS.products_of_a_sum) * (widths * n_slots) ** 2 + SETTINGS.products_of_a_block).sum()
        if products > SETTINGS.worth * kind.size * columns**2:
            return None
        ends = np.cumsum(sizes)
        members = np.split(np.argsort(block, kind="stable"), np.cumsum(users)[:-1])
        within = np.empty(kind.size, np.int64)
        within[np.concatenate(members)] = np.concatenate([np.arange(number) for number in users])
        of_pair = block[user]
        width = widths[of_pair]
        position = (ends - sizes)[of_pair] + within[user] * n_slots * width + (np.cumsum(servers, axis=1) - 1)[of_pair, server]
        blocks = []
        for own, mine, end, size in zip(members, servers, ends, sizes, strict=True):
            of_block = (np.arange(n_slots)[:, None] * n_servers + np.flatnonzero(mine)).ravel()
            blocks.append((own, of_block, slice(int(end - size), int(end))))
        return cls(blocks, position, width, (kind.size, columns), int(ends[-1]))

    def matrix(self, values: FloatArray) -> BlockMatrix:
        """Return the matrix of values (slots, pairs)."""
        buffer = np.zeros(self.size)
        for r, row in enumerate(values):
            buffer[self.position + r * self.width] = row
        return BlockMatrix(self.shape, [(own, columns, buffer[there].reshape(own.size, -1)) for own, columns, there in self.blocks])


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """Such a matrix: its products with vectors, and its transpose times itself."""

    shape: tuple[int, int]
    blocks: list[tuple[IntArray, IntArray, FloatArray]]
    is_transposed: bool = False

    @property
    def T(self) -> BlockMatrix:
        """The transpose."""
        return BlockMatrix(self.shape, self.blocks, not self.is_transposed)

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        """Return the product with a vector."""
        out = np.zeros(self.shape[1 if self.is_transposed else 0])
        for users, columns, table in self.blocks:
            if self.is_transposed:
                out[columns] += table.T @ vector[users]
            else:
                out[users] = table @ vector[columns]
        return out

    def gram(self) -> FloatArray:
        """Return the products of columns, (columns, columns)."""
        out = np.zeros((self.shape[1], self.shape[1]))
        for _, columns, table in self.blocks:
            if columns.size == self.shape[1]:
                out += table.T @ table
            else:
                out[np.ix_(columns, columns)] += table.T @ table
        return out


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
