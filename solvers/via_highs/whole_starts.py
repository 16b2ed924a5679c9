"""Whole tasks by first fit decreasing: a given number of tasks for each user, users with the largest tasks first.

Branch and cut begins with the best allocation known. Progressive filling places small and large tasks in turn, so small ones may fill the
servers that large ones need. First fit decreasing avoids that: users are sorted by the size of their tasks, or by the number of servers
where they may run, the fewest first. Tasks go to the servers that others need least, and of these to the fullest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import Program

__all__ = ["WholeStarts"]


@dataclass(frozen=True, slots=True, eq=False)
class WholeStarts:
    """The columns of a program in parts of their limits.

    Attributes
    ----------
    program : Program
    sizes : array (limits, pairs)
        Sparse, by column: what a task takes of each limit, as a part of it.
    """

    program: Program
    sizes: sp.csc_array

    @classmethod
    def of(cls, program: Program) -> WholeStarts:
        """Return those of a program."""
        matrix = sp.csc_array(program.limits.matrix)
        with np.errstate(divide="ignore"):
            sizes = matrix.data / program.limits.bounds[matrix.indices]
        return cls(program, sp.csc_array((sizes, matrix.indices, matrix.indptr), shape=matrix.shape))

    def packed(self, need: FloatArray, wanted: FloatArray | None = None) -> FloatArray | None:
        """Return tasks, (pairs,), of which each user has as many as it needs, (users,), or None where none of the orders finds them.

        Parameters
        ----------
        need : array (users,)
            Whole numbers.
        wanted : array (pairs,), optional
            Tasks of a divisible allocation on the servers like that of each pair. A user looks there first.
        """
        program, sizes = self.program, self.sizes
        entries = np.diff(sizes.indptr)
        if not entries.all():  # a column without limits
            return None
        users = program.pair_users
        largest = np.maximum.reduceat(sizes.data, sizes.indptr[:-1])
        usable = largest <= 1 + FITS
        choices = np.bincount(users[usable], minlength=need.size)
        if (choices[need > 0] == 0).any():
            return None
        size = np.full(need.size, np.inf)
        np.minimum.at(size, users, largest)
        size[need == 0] = 0.0  # a user without a pair needs nothing
        asked = (need * size / np.maximum(choices, 1))[users[usable]]
        by_server = np.bincount(program.pair_servers[usable], weights=asked, minlength=len(program.servers))
        pressure: FloatArray = np.asarray(by_server, float)[program.pair_servers]
        needy = np.flatnonzero(need > 0)
        by_size, by_choices = np.argsort(-size[needy], kind="stable"), np.lexsort((-size[needy], choices[needy]))
        avoided: list[FloatArray] = [pressure] if wanted is None else [pressure - wanted * (1 + pressure.max()), pressure]
        for order, last in product((by_size, by_choices), avoided):
            x = self._first_fit(need, needy[order], last)
            if x is not None:
                return x
        return None

    def _first_fit(self, need: FloatArray, order: IntArray, last: FloatArray) -> FloatArray | None:
        """Pack user after user; pairs with a large value of ``last``, (pairs,), come last, and of the others the fullest servers first."""
        users, sizes = self.program.pair_users, self.sizes
        start = np.searchsorted(users, np.arange(need.size + 1))
        free, x = np.full(sizes.shape[0], 1 + FITS), np.zeros(users.size)
        for n in order.tolist():
            pairs = slice(start[n], start[n + 1])
            ends = sizes.indptr[start[n] : start[n + 1] + 1]
            span = slice(ends[0], ends[-1])
            limits, part = sizes.indices[span], sizes.data[span]
            room = np.floor(np.minimum.reduceat(free[limits] / part, ends[:-1] - ends[0]))
            here = np.lexsort((np.add.reduceat(free[limits], ends[:-1] - ends[0]), last[pairs]))
            before = np.cumsum(room[here]) - room[here]
            take = np.zeros(room.size)
            take[here] = np.clip(need[n] - before, 0.0, room[here])
            if take.sum() < need[n]:
                return None
            np.subtract.at(free, limits, part * np.repeat(take, np.diff(ends)))
            if (free[limits] < 0).any():  # a limit over several servers
                return None
            x[pairs] = take
        return x
