"""A program of users, servers and the pairs between them, in units in which an interior point is well scaled.

To the scaled columns of a program (`fairopt.program.scaling`) this adds its structure. Limits belong to servers, and are numbered in slots:
A[r, p] is the part of limit r of its server that pair p takes at 1. A few limits may belong to no server, such as a resource of the whole
cluster: they are sparse rows, ``across``. W[p] is the part of its user's reach that the pair gives at 1, where the reach is the level of a
user who has all its servers to itself. Pairs are vectors sorted by user, limits are (slots, places), users (users,); all is in NumPy.
Places are the servers and, after them, as many as hold the rows across servers. `fairopt.solvers.structure.pairs` lays out the pairs for
sums over them.

A limit on tasks is a cap on the level of its user in a leximin, where a task has to be worth the same on all its servers: it needs no row.
Elsewhere it is a second row of its user, T x <= 1, besides that of its level, W x. So is a limit on servers at once, for paths that ask for
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import Feature, LimitKind, Limits, Program, ScaledColumns
from fairopt.program.limits import ACROSS_SERVERS
from fairopt.program.own_floors import OwnFloors
from fairopt.solvers.structure.combinations import combinations
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["ScaledProgram", "floors_of", "obstacle", "task_rows"]

_OF_SERVERS = (LimitKind.CAPACITY, LimitKind.TIME)


def obstacle(program: Program, at_once: bool = False) -> str:
    """Return what of a program does not fit into this layout, as the end of a sentence that begins "the program has"; "" if it fits.

    Limits on servers ``at_once`` fit, as second rows, where a path can have second rows of any kind.
    """
    limits = program.limits
    if limits.of_kinds(LimitKind.SLICE, LimitKind.PAST).any():
        return "slices of servers that are set aside for users"
    on_servers = limits.keys[limits.kinds == LimitKind.PARALLELISM, 0]
    if on_servers.size and not at_once:
        return "users who are limited to some servers at once"
    across = _rows_across(program)
    if across.size > max(SETTINGS.most_across, int(limits.of_kinds(*_OF_SERVERS).sum())):
        return "many limits across servers"
    limited = limits.keys[limits.kinds == LimitKind.TASKS, 0]
    if limited.size and (program.goal.tasks_are_caps or program.goal.is_filling):
        low, high = program.range_of_utilities()
        if (high[limited] > low[limited] * (1 + ROUNDING)).any():
            return "limits on tasks that are worth more on one server than on another"
    if on_servers.size and not program.goal.tasks_are_caps and np.intersect1d(limited, on_servers).size:
        return "users with a limit on tasks and one on servers at once"
    # Pairs that no server bounds have no cost to measure them by.
    measured = limited.size or on_servers.size or across.size or program.goal.is_filling
    if measured and not limits.once("of servers on all pairs", lambda: _has_limits_everywhere(limits)):
        return "tasks that take nothing of a server"
    return ""


def _has_limits_everywhere(limits: Limits) -> bool:
    """Does each column take something of a limit of its server?"""
    taken = np.zeros(limits.matrix.shape[1], bool)
    taken[limits.matrix.indices[np.repeat(limits.of_kinds(*_OF_SERVERS), np.diff(limits.matrix.indptr))]] = True
    return bool(taken.all())


@dataclass(frozen=True, slots=True, eq=False)
class ScaledProgram:
    """A program in these units, without users who can have nothing and pairs without room.

    Attributes
    ----------
    columns : ScaledColumns
        The pairs.
    has_levels : bool
        Is the goal one over levels?
    reach : array (users,)
        Level (utility, of alpha-fair goals; worth, of totals) of a user who has all its servers to itself.
    A, W, T : arrays (slots, pairs), (pairs,), (pairs,)
    row, row_slot, row_place : int arrays (rows,)
        The limits with a bound > 0, without those of users: positions in the program, slots, places.
    task_row : int array (users,)
        Position in the program of the limit on tasks of each user, -1 for users without one.
    limited, second_row : int arrays
        The users with a second row, and its position in the program.
    cap : array (users,)
        Level at which a user holds all its tasks, in parts of its reach, inf for users without a limit on tasks; of leximins and alpha-fair
        goals only.
    floor : array (users,)
        Least level of a user, in parts of its reach, 0 for users without one; of alpha-fair goals under rules that say no more.
    floor_row : int array (users,)
        Position of such a rule in the program, -1 for users without one.
    across : sparse array (rows across, pairs)
        What a pair takes at 1 of each limit across servers, slot by slot; rows without an entry fill the last place.
    G : array (rows across, slots, servers)
        Where such a row adds up limits of servers, ``across`` = G A; else 0.
    """

    columns: ScaledColumns
    has_levels: bool
    reach: FloatArray
    A: FloatArray
    W: FloatArray
    T: FloatArray
    row: IntArray
    row_slot: IntArray
    row_place: IntArray
    task_row: IntArray
    limited: IntArray
    second_row: IntArray
    cap: FloatArray
    floor: FloatArray
    floor_row: IntArray
    across: sp.csr_array
    G: FloatArray

    @classmethod
    def of(cls, program: Program, at_once: bool = False) -> ScaledProgram:
        """Scale a program; limits on servers ``at_once`` are second rows, if asked for.

        Raises
        ------
        Unsupported
            It has an `obstacle`.
        """
        blocked = obstacle(program, at_once)
        if blocked:
            raise Unsupported(f'"interior-point" cannot solve "{program.name}" here: the program has {blocked}; use highs')
        goal, columns = program.goal, program.scaled()
        has_levels = goal.feature is not Feature.TOTAL
        worth = program.worth[columns.columns] * columns.scale
        reach = np.asarray(np.add.reduceat(worth, columns.first))
        W = worth / reach[columns.user]
        task_row = task_rows(columns)
        tasks = np.where(task_row >= 0, program.limits.bounds[task_row], np.inf)
        caps = goal.tasks_are_caps
        cap = tasks * np.maximum.reduceat(W / columns.scale, columns.first) if caps else np.full(tasks.size, np.inf)
        has_row = np.isfinite(tasks) & (not caps)
        T = columns.scale * np.where(has_row, 1.0 / tasks, 0.0)[columns.user] if has_row.any() else np.zeros(columns.n_columns)
        second_row = np.where(has_row, task_row, -1)
        if at_once:
            on_servers = rows_of_users(columns, LimitKind.PARALLELISM)
            second_row = np.where(on_servers >= 0, on_servers, second_row)
            T = T + _entries_of(columns, on_servers)
        A, row, slot, place, across = _limits(columns)
        G = combinations(columns, A, row, slot, place, across)
        limited = np.flatnonzero(second_row >= 0)
        floor, floor_row = floors_of(columns, reach)
        of_users = limited, second_row[limited], cap, floor, floor_row
        return cls(columns, has_levels, reach, A, W, T, row, slot, place, task_row, *of_users, across, G)

    # Sizes, and what belongs to the columns --------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The program as it is."""
        return self.columns.program

    @property
    def column(self) -> IntArray:
        """Position of each pair in the program."""
        return self.columns.columns

    @property
    def scale(self) -> FloatArray:
        """Tasks of each pair at 1."""
        return self.columns.scale

    @property
    def member(self) -> IntArray:
        """Position of each user in the program."""
        return self.columns.members

    @property
    def user(self) -> IntArray:
        """User of each pair."""
        return self.columns.user

    @property
    def server(self) -> IntArray:
        """Server of each pair."""
        return self.columns.server

    @property
    def first(self) -> IntArray:
        """First pair of each user."""
        return self.columns.first

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.columns.n_users

    @property
    def n_servers(self) -> int:
        """Number of servers."""
        return int(self.columns.servers.size)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.columns.n_columns

    @property
    def n_slots(self) -> int:
        """Largest number of limits of a server."""
        return int(self.A.shape[0])

    @property
    def n_places(self) -> int:
        """Number of servers, and of places after them for rows across servers."""
        return self.n_servers + int(self.across.shape[0]) // self.n_slots

    @property
    def n_levels(self) -> int:
        """Number of rows of levels."""
        return self.n_users if self.has_levels else 0

    @property
    def n_rows(self) -> int:
        """Number of rows of users: of levels, and of limits on tasks."""
        return self.n_levels + int(self.limited.size)

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

    def use(self, x: FloatArray) -> FloatArray:
        """Return the part of each limit that pairs use, (slots, places)."""
        of_servers = [np.bincount(self.server, weights=row * x, minlength=self.n_servers) for row in self.A]
        return np.concatenate([of_servers, (self.across @ x).reshape(self.n_slots, -1)], axis=1)

    def part(self, kept: BoolArray | IntArray) -> ScaledProgram:
        """Return the program of some pairs alone, in the same units, with their users and servers numbered anew.

        ``kept`` says of all pairs which, or is the positions of these, ascending.

        It has no rows of tasks: users with limits on tasks are below their caps.
        """
        before = self.columns
        own = self.user[kept]
        new = np.diff(own, prepend=-1) > 0  # pairs are sorted by user
        users, user = own[new], np.cumsum(new) - 1
        columns = ScaledColumns(before.program, before.columns[kept], before.scale[kept], before.members[users], user)
        place = np.full(self.n_places, -1)
        place[np.searchsorted(before.servers, columns.servers)] = np.arange(columns.servers.size)
        place[self.n_servers :] = np.arange(columns.servers.size, columns.servers.size + self.n_places - self.n_servers)
        here = place[self.row_place] >= 0
        return replace(
            self,
            columns=columns,
            reach=self.reach[users],
            A=self.A[:, kept],
            W=self.W[kept],
            T=np.zeros(columns.n_columns),
            row=self.row[here],
            row_slot=self.row_slot[here],
            row_place=place[self.row_place[here]],
            task_row=self.task_row[users],
            limited=np.zeros(0, np.int64),
            second_row=np.zeros(0, np.int64),
            cap=self.cap[users],
            floor=self.floor[users],
            floor_row=self.floor_row[users],
            across=sp.csr_array(self.across[:, kept] if self.across.shape[0] else (0, user.size)),
            G=self.G[:, :, place[: self.n_servers] >= 0],
        )

    # The way back ----------------------------------------------------------------------------------------------------------------

    def tasks(self, x: FloatArray) -> FloatArray:
        """Return tasks of all pairs of the program."""
        return self.columns.tasks(x)

    def prices(self, p: FloatArray, y: FloatArray) -> FloatArray:
        """Return the price of a unit of each limit of the program, (limits,), for prices of whole limits and second rows."""
        prices, bounds = np.zeros(len(self.program.limits)), self.program.limits.bounds
        prices[self.row] = p[self.row_slot, self.row_place] / bounds[self.row]
        prices[self.second_row] = y / bounds[self.second_row]
        return prices


def _rows_across(program: Program) -> IntArray:
    """Return the positions of the limits with a bound > 0 that belong to no server and to no user, (rows across,)."""
    limits = program.limits
    return np.flatnonzero(limits.of_kinds(*ACROSS_SERVERS, LimitKind.NAMED) & (limits.bounds > 0))


def _limits(columns: ScaledColumns) -> tuple[FloatArray, IntArray, IntArray, IntArray, sp.csr_array]:
    """Number the limits of each server, and those across servers; return A, their positions, slots and places, and ``across``."""
    limits, n_servers = columns.program.limits, columns.servers.size
    place = np.full(len(columns.program.servers), -1)
    place[columns.servers] = np.arange(n_servers)
    row = np.flatnonzero(limits.of_kinds(*_OF_SERVERS) & (limits.bounds > 0))
    server = place[limits.keys[row, 0]]
    row, server = row[server >= 0], server[server >= 0]
    order = np.argsort(server, kind="stable")
    slot = np.empty(order.size, np.int64)
    starts = np.searchsorted(server[order], np.arange(n_servers))
    slot[order] = np.arange(order.size) - starts[server[order]]
    slot_of = np.full(len(limits), -1)
    slot_of[row] = slot
    A = np.zeros((int(slot.max(initial=0)) + 1, columns.n_columns))
    entries = columns.use.tocoo()
    slots = slot_of[columns.rows][entries.row]
    kept = slots >= 0
    if kept.all():
        A[slots, entries.col] = entries.data
    else:
        A[slots[kept], entries.col[kept]] = entries.data[kept]
    own, n_slots = _rows_across(columns.program), A.shape[0]
    more = -(-own.size // n_slots)  # places
    chosen = sp.csr_array(columns.use[np.searchsorted(columns.rows, own)])
    ends = np.append(chosen.indptr, np.full(more * n_slots - own.size, chosen.nnz))
    across = sp.csr_array((chosen.data, chosen.indices, ends), shape=(more * n_slots, columns.n_columns))
    slots, places = np.divmod(np.arange(own.size), max(1, more))
    return A, np.append(row, own), np.append(slot, slots), np.append(server, n_servers + places), across


def task_rows(columns: ScaledColumns) -> IntArray:
    """Return the position of the limit on tasks of each user, -1 for users without one."""
    return rows_of_users(columns, LimitKind.TASKS)


def floors_of(columns: ScaledColumns, reach: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the least level of each user in parts of its reach, and the rule that says so; 0 and -1 for users without one."""
    program = columns.program
    floors = None if program.down_closed else OwnFloors.of(program)
    if floors is None:
        return np.zeros(columns.n_users), np.full(columns.n_users, -1)
    return floors.least[columns.members] / reach, floors.row[columns.members]


def rows_of_users(columns: ScaledColumns, kind: LimitKind) -> IntArray:
    """Return the position of the limit of a kind that each user has at most one of, -1 for users without one."""
    limits = columns.program.limits
    rows = np.flatnonzero(limits.kinds == kind)
    place = np.full(len(columns.program.users), -1)
    place[columns.members] = np.arange(columns.n_users)
    user = place[limits.keys[rows, 0]]
    found = np.full(columns.n_users, -1)
    found[user[user >= 0]] = rows[user >= 0]
    return found


def _entries_of(columns: ScaledColumns, row_of: IntArray) -> FloatArray:
    """Return what each pair takes at 1 of the row of its user, 0 where the user has none, (pairs,)."""
    rows = row_of[row_of >= 0]
    chosen = sp.coo_array(columns.use[np.searchsorted(columns.rows, rows)])
    taken = np.zeros(columns.n_columns)
    taken[chosen.col] = chosen.data
    return taken
