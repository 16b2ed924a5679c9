r"""A leximin with a past: the goal compares past and present shares of users together.

    leximin over n of (O[n] + U[n]) / phi[n]

O[n] >= 0 is the past of user n, in units of its share. It is an additional pair of the user on a server called "the past", with utility 1
and limit O[n]. Nobody else uses this limit, so every optimum takes all of it, and engines and certificates treat the program like any
other. If the tasks of a user are limited and all worth the same, a second row has both, sum of U over its tasks + past <= its largest share
+ O[n]. This row is redundant, but gives a cap on the user's level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program.goals import Leximin
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program

__all__ = ["PAST", "WithPast"]

PAST = "the past"


@dataclass(frozen=True, slots=True, eq=False)
class WithPast:
    """A program with the pairs of the past.

    Attributes
    ----------
    program : Program
        With the bound 0 for the past of every user.
    now : int array (pairs,)
        Where the pairs of the program without a past are.
    past : int array (members,)
        The pairs of the past.
    members : int array (members,)
        Their users.
    capped : int array (capped,)
        Users whose tasks are worth the same everywhere and are limited.
    worth : array (capped,)
        What one of these tasks is worth.
    of_tasks : int array (capped,)
        The limits of their tasks.
    """

    program: Program
    now: IntArray
    past: IntArray
    members: IntArray
    capped: IntArray
    worth: FloatArray
    of_tasks: IntArray

    @classmethod
    def of(cls, program: Program) -> WithPast:
        """Return a program whose goal is a leximin with a past for every user who has a pair."""
        members, pairs = program.members, program.n_pairs
        ends = np.searchsorted(program.pair_users, members, side="right")
        past = ends + np.arange(members.size)
        now = np.delete(np.arange(pairs + members.size), past)
        place = np.append(now, past)
        old = program.limits.matrix.tocoo()
        matrix = sp.csr_array((old.data, (old.row, place[old.col])), shape=(len(program.limits), place.size))
        own = sp.csr_array((np.ones(members.size), (np.arange(members.size), past)), shape=(members.size, place.size))
        pasts = Limits.of(LimitKind.PAST, own, np.zeros(members.size), members)
        limits = Limits(matrix, program.limits.bounds, program.limits.kinds, program.limits.keys)
        low, high = program.range_of_utilities()
        of_tasks = np.flatnonzero(program.limits.kinds == LimitKind.TASKS)
        capped = program.limits.keys[of_tasks, 0]
        of_tasks, capped = of_tasks[low[capped] == high[capped]], capped[low[capped] == high[capped]]

        order = np.argsort(place)
        here = np.full(members.size, len(program.servers))
        extended = replace(
            program,
            servers=(*program.servers, PAST),
            pair_users=np.append(program.pair_users, members)[order],
            pair_servers=np.append(program.pair_servers, here)[order],
            utilities=np.append(program.utilities, np.ones(members.size))[order],
            limits=limits,
        )
        both = sp.csr_array(sp.csr_array(extended.pair_users[None, :] == capped[:, None]) @ sp.diags_array(extended.utilities))
        caps = Limits.of(LimitKind.WITH_PAST, both, np.zeros(capped.size), capped)
        return cls(replace(extended, limits=Limits.stack([limits, pasts, caps])), now, past, members, capped, high[capped], of_tasks)

    def at(self, bounds: FloatArray, weights: FloatArray | None, past: FloatArray) -> Program:
        """Return the program with these bounds of the limits of now, these weights, and this past, both (users,).

        Without weights the goal stays as it is.
        """
        goal = self.program.goal if weights is None else Leximin(weights)
        every = np.concatenate([bounds, past[self.members], bounds[self.of_tasks] * self.worth + past[self.capped]])
        return replace(self.program, limits=self.program.limits.with_bounds(every), goal=goal)

    def point(self, x: FloatArray, past: FloatArray) -> FloatArray:
        """Return the point of all pairs that takes all of the past."""
        every = np.empty(self.program.n_pairs)
        every[self.now], every[self.past] = x, past[self.members]
        return every

    def prices(self, prices: FloatArray, weights: FloatArray, past: FloatArray, value: float) -> FloatArray:
        """Return prices of all limits that prove a level, given those of the limits of now.

        The past of users whose past does not exceed the level costs what their shares cost now; that of the others costs nothing.
        """
        program = self.program
        cost = program.limits.transposed[:, : prices.size] @ prices
        cheapest = program.cheapest(cost[self.now] / program.utilities[self.now], self.now)
        counts = past[self.members] <= value * weights[self.members]
        return np.concatenate([prices, np.where(counts, cheapest[self.members], 0.0), np.zeros(self.capped.size)])
