"""The constant data of the linear programs of a leximin's levels, or of one equal level.

Columns are pairs with room; rows are limits that no cap on a single user replaces. The unit of t for the first level is a bound
that needs no linear program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Equalize, Leximin, Program, TreeFilling
from fairopt.program.own_limits import OwnLimits
from fairopt.program.share_limits import ShareLimits

__all__ = ["LevelProblem"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelProblem:
    """The data of a leximin, or of one equal level, that is the same at every level.

    Attributes
    ----------
    program : Program
    equal : bool
    per_level : array (pairs,)
        The level that a task adds to its user.
    own : OwnLimits
        Limits of single users, in levels.
    columns, users : int arrays (columns,)
        Pairs with room, and their users.
    largest : array (columns,)
        The largest value of each.
    rows : int array (rows,)
        Limits that need a row, without those that only cap one user's level.
    reach : array (users,)
        No level can exceed it.
    members : bool array (users,)
        Users who can have anything; the others have no tasks or no room, and stay at level 0.
    decided : array (pairs,)
        The tasks of pairs that earlier levels have decided (`fairopt.solvers.via_highs.faces`), which are no columns; users all of whose
        pairs are decided are no members.
    taken : array (rows,)
        The part of each limit that these take.
    full : bool array (limits,)
        Limits of which no allocation with the levels so far leaves anything.
    """

    program: Program
    equal: bool
    per_level: FloatArray
    own: OwnLimits
    columns: IntArray
    users: IntArray
    largest: FloatArray
    rows: IntArray
    reach: FloatArray
    members: BoolArray
    decided: FloatArray
    taken: FloatArray
    full: BoolArray

    @classmethod
    def of(cls, program: Program, goal: Leximin | Equalize | TreeFilling) -> LevelProblem:
        """Return the problem of a program."""
        per_level = program.worth
        own, largest, equal = OwnLimits(program, per_level), program.largest(), goal.is_equal
        needed = program.limits.bounds > 0
        if goal.is_filling:
            needed &= ~ShareLimits.of(program).rows
        elif not equal and own.rows.size:
            needed[own.rows[own.even]] = False
        columns, rows = np.flatnonzero(largest > 0), np.flatnonzero(needed)
        reach = program.per_user(largest * per_level)
        users, nothing = program.pair_users[columns], (np.zeros(program.n_pairs), np.zeros(rows.size), np.zeros(needed.size, bool))
        return cls(program, equal, per_level, own, columns, users, largest[columns], rows, reach, reach > 0, *nothing)

    def first_unit(self) -> float:
        """Return an upper bound of the first level.

        It is the smallest level that a user reaches alone on the servers or, if that is smaller, what weak duality says with one price
        for every limit of a server.
        """
        limits, columns = self.program.limits, self.columns
        shared = np.repeat(limits.of_servers, np.diff(limits.matrix.indptr))
        part = (limits.matrix.data / np.repeat(np.where(limits.bounds > 0, limits.bounds, 1.0), np.diff(limits.matrix.indptr)))[shared]
        pairs = limits.matrix.indices[shared]
        per_level = self.per_level[columns]
        if self.equal:
            alone = self.reach
        else:
            largest_part = np.zeros(self.per_level.size)
            np.maximum.at(largest_part, pairs, part)
            largest_part = largest_part[columns]
            most = np.divide(per_level, largest_part, out=self.largest * per_level, where=largest_part > 0)
            alone = np.bincount(self.users, weights=most, minlength=self.reach.size).astype(np.float64)
        all_parts = np.bincount(pairs, weights=part, minlength=self.per_level.size)[columns]
        price = np.full(self.reach.size, np.inf)
        np.minimum.at(price, self.users, all_parts / per_level)
        paid, least = float(price[self.members].sum()), float(alone[self.members].min())
        return min(int(limits.of_servers.sum()) / paid, least) if paid > 0 else least
