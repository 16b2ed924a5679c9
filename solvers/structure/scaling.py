"""A program of users, servers and the pairs between them, in units of their own in which an interior point is well scaled.

The limits of these programs belong to servers: A[r, p] is the part of limit r of its server that a pair p takes when it is as large as it
can be, so that every limit is 1 and the largest entry of a column is 1. W[p] is the part of its user's reach (the level that the user
could have if it were alone everywhere) that the pair gives by then. Pairs are vectors sorted by user, limits are (slots, servers), users
(users,); everything is in NumPy. ``structured_pairs`` lays the pairs out for sums over them.

A limit on tasks is a cap on the level of its user in a leximin, where a task has to be worth the same on all its servers: no row is needed
for it. Elsewhere it is a second row of its user, T x <= 1, beside that of its level, W x.
"""

from __future__ import annotations

import copy

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.program import AlphaFair, Equalize, Leximin, LimitKind, Program, Total

__all__ = ["SAME_WORTH", "ScaledProgram", "obstacle"]

SAME_WORTH = 1e-15  # relative: utilities of a user that differ by no more are the same, but for rounding


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
        if (high[limited] > low[limited] * (1 + SAME_WORTH)).any():
            return "limits on tasks that are worth more on one server than on another"
    if limited.size:  # what only its tasks bound: no price could measure it
        of_server = np.repeat(limits.of_servers, np.diff(limits.matrix.indptr))
        if (np.bincount(limits.matrix.indices[of_server], minlength=program.n_pairs) == 0).any():
            return "tasks that take nothing of a server"
    return ""


class ScaledProgram:
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
    user, server : int arrays (pairs,)
        Positions here.
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
        self._place_limits()

        goal = program.goal
        assert isinstance(goal, Leximin | Equalize | Total | AlphaFair)
        self.has_levels = isinstance(goal, Leximin | Equalize)
        factor = goal.weights if isinstance(goal, Total) else 1.0 / goal.weights if self.has_levels else np.ones_like(goal.weights)
        worth = (program.utilities * factor[program.pair_users])[self.column] * self.scale
        self.reach = self.sum_by_user(worth)
        self.W = worth / self.reach[self.user]
        self._place_tasks(isinstance(goal, Leximin | AlphaFair))

    @property
    def all_eligible(self) -> bool:
        """Is every user eligible on every server?"""
        return self.n_pairs == self.n_users * self.n_servers

    @property
    def density(self) -> float:
        """Part of all pairs of these users and servers that is eligible."""
        return self.n_pairs / max(1, self.n_users * self.n_servers)

    def sum_by_user(self, values: FloatArray) -> FloatArray:
        """Sum a value per pair over the pairs of each user, (users,)."""
        return np.asarray(np.add.reduceat(values, self.first))

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
        self.T = self.scale * np.where(has_row, 1.0 / tasks, 0.0)[self.user] if self.limited.size else np.zeros(self.n_pairs)
        self.n_levels = self.n_users if self.has_levels else 0
        self.n_rows = self.n_levels + self.limited.size

    def part(self, kept: BoolArray) -> ScaledProgram:
        """Return the program of some pairs alone, (pairs,), in the same units, with their users and servers numbered anew.

        It has no rows of tasks: those who end are at their caps.
        """
        part = copy.copy(self)
        users, part.user = np.unique(self.user[kept], return_inverse=True)
        servers, part.server = np.unique(self.server[kept], return_inverse=True)
        part.column, part.scale = self.column[kept], self.scale[kept]
        part.A, part.W, part.T = self.A[:, kept], self.W[kept], np.zeros(part.column.size)
        part.n_users, part.n_servers, part.n_pairs = users.size, servers.size, part.column.size
        part.first = np.flatnonzero(np.diff(part.user, prepend=-1))
        part.member, part.reach, part.cap = self.member[users], self.reach[users], self.cap[users]
        part.limited, part.n_levels, part.n_rows = np.zeros(0, np.int64), users.size, users.size
        place = np.full(self.n_servers, -1)
        place[servers] = np.arange(servers.size)
        here = place[self.row_server] >= 0
        part.row, part.row_slot, part.row_server = self.row[here], self.row_slot[here], place[self.row_server[here]]
        return part

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
