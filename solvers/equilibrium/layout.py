"""The program of an equilibrium in arrays by server, as the kernels read them, and the state of the servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.conditions import bottleneck_violation
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import NOTHING
from fairopt.program import Equilibrium, LimitKind, Program
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium.settings import SETTINGS

__all__ = ["Layout", "State"]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The program of an equilibrium in arrays by server.

    Attributes
    ----------
    program : Program
    goal : Equilibrium
    order : int array (pairs,)
        The pairs, sorted by server; the arrays below use this order.
    start : int array (servers + 1,)
        First pair of each server.
    user, g, largest : arrays (pairs,)
    tasks : array (users,)
        Limits on tasks, inf for users without a limit.
    matrix, row_bounds : (limits, pairs), (limits,)
        The limits of servers.
    use, bounds, row_of : arrays (pairs, slots), (servers, slots), (servers, slots)
        The same, with the limits of each server numbered from 0; -1 in ``row_of`` where a server has fewer.
    """

    program: Program
    goal: Equilibrium
    order: IntArray
    start: IntArray
    user: IntArray
    g: FloatArray
    largest: FloatArray
    tasks: FloatArray
    matrix: sp.csr_array
    row_bounds: FloatArray
    use: FloatArray
    bounds: FloatArray
    row_of: IntArray

    @classmethod
    def of(cls, program: Program, goal: Equilibrium) -> Layout:
        """Lay out a program.

        Raises
        ------
        Unsupported
            The program has limits other than those of servers and on tasks.
        """
        limits = program.limits
        order = np.lexsort((program.pair_users, program.pair_servers))
        number = len(program.servers)
        start = np.searchsorted(program.pair_servers[order], np.arange(number + 1)).astype(np.int64)
        user = program.pair_users[order].astype(np.int64)
        tasks = np.full(len(program.users), np.inf)
        owned = limits.kinds == LimitKind.TASKS
        tasks[limits.keys[owned, 0]] = limits.bounds[owned]
        rows = np.flatnonzero(~owned)
        server = _server_of(program, rows)
        first = np.searchsorted(np.sort(server), np.arange(number))
        by_server = np.argsort(server, kind="stable")
        slot = np.empty(rows.size, np.int64)
        slot[by_server] = np.arange(rows.size) - first[server[by_server]]
        width = int(slot.max(initial=0)) + 1
        given, row_bounds = limits.matrix if rows.size == len(limits) else sp.csr_array(limits.matrix[rows]), limits.bounds[rows]
        place = np.empty(order.size, given.indices.dtype)
        place[order] = np.arange(order.size)
        # The pairs of a row belong to one server and keep the order of their users, so their new positions ascend, too.
        matrix = sp.csr_array((given.data, place[given.indices], given.indptr), shape=given.shape)
        entries = matrix.tocoo()
        use, bounds, row_of = np.zeros((user.size, width)), np.full((number, width), np.inf), np.full((number, width), -1)
        use[entries.col, slot[entries.row]] = entries.data
        bounds[server, slot], row_of[server, slot] = row_bounds, np.arange(rows.size)
        g, largest = goal.weights[user] / program.utilities[order], program.largest()[order]
        return cls(program, goal, order, start, user, g, largest, tasks, matrix, row_bounds, use, bounds, row_of)

    def empty(self) -> State:
        """Return the state in which nobody has anything."""
        n = self.user.size
        return State(np.zeros(n), np.zeros(self.tasks.size), np.full(n, -1), np.full(self.bounds.shape, np.inf))

    def arrays(self, state: State) -> tuple[np.ndarray, ...]:
        """Return the arrays that a sweep reads and writes."""
        return (self.start, self.user, self.g, self.tasks, self.use, self.bounds, state.x, state.total, state.stop, state.level)

    def by_pair(self, values: FloatArray) -> FloatArray:
        """Return values in the order of the program's pairs."""
        x = np.empty(values.size)
        x[self.order] = values
        return x

    def stops(self, state: State) -> IntArray:
        """Return which row of ``matrix`` stopped each pair, -1 for none."""
        servers = self.program.pair_servers[self.order]
        return np.where(state.stop >= 0, self.row_of[servers, np.maximum(state.stop, 0)], -1)

    def violation(self, x: FloatArray, steps: Steps) -> float:
        """Return the largest relative excess of x (by the program's pairs) over a limit, or violation of the condition."""
        limits = self.program.limits
        if x.size >= SETTINGS.pairs_to_compile:
            arrays = (self.start, self.user, self.g, self.largest, self.tasks, self.use, self.bounds)
            total, mine = self.program.per_user(x), x[self.order]
            return float(steps.run("largest_violation", *arrays, total, mine, NOTHING, seconds=SETTINGS.pair_seconds * x.size))
        excess = limits.matrix @ x - limits.bounds
        relative = np.divide(excess, limits.bounds, out=excess.copy(), where=limits.bounds > 0).max(initial=0.0)
        return max(float(relative), float(-x.min(initial=0.0)), bottleneck_violation(self.program, self.goal, x))


def _server_of(program: Program, rows: IntArray) -> IntArray:
    """Return the server of each of these limits, all of whose pairs are there.

    Raises
    ------
    Unsupported
        A limit is about several servers.
    """
    limits = program.limits
    server = limits.keys[rows, 0]
    others = np.flatnonzero(~limits.of_kinds(LimitKind.CAPACITY, LimitKind.TIME)[rows])
    for k in others.tolist():
        there = np.unique(program.pair_servers[limits.matrix.indices[slice(*limits.matrix.indptr[rows[k] : rows[k] + 2])]])
        if there.size != 1:
            raise Unsupported("best-response knows limits of single servers and of users' tasks only")
        server[k] = there[0]
    return np.asarray(server)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The tasks that the servers give; sweeps write into these arrays.

    Attributes
    ----------
    x, stop : arrays (pairs,)
        Tasks, and the limit of its server that stopped the pair.
    total : array (users,)
    level : array (servers, slots)
        The level at which each limit filled up, inf if it did not.
    """

    x: FloatArray
    total: FloatArray
    stop: IntArray
    level: FloatArray

    def sets(self) -> bytes:
        """Return the active sets, to compare them: which pairs hold something, and which limit stopped each of these."""
        return np.where(self.x > 0, self.stop, -2).tobytes()

    def go_to(self, layout: Layout, x: FloatArray) -> None:
        """Replace the tasks by x."""
        self.x[:] = x
        self.total[:] = layout.program.per_user(layout.by_pair(x))
