"""The constant data of the linear programs of a leximin's levels, or of one equal level.

Columns are pairs with room; rows are limits that no cap on a single user replaces. The unit of t for the first level lies between two
bounds that need no linear program.
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

    @classmethod
    def of(cls, program: Program, goal: Leximin | Equalize | TreeFilling) -> LevelProblem:
        """Return the problem of a program."""
        per_level = program.utilities if isinstance(goal, TreeFilling) else program.utilities / goal.weights[program.pair_users]
        own, largest, equal = OwnLimits(program, per_level), program.largest(), isinstance(goal, Equalize)
        needed = program.limits.bounds > 0
        if isinstance(goal, TreeFilling):
            needed &= ~ShareLimits.of(program).rows
        elif not equal and own.rows.size:
            needed[own.rows[own.even]] = False
        columns, rows = np.flatnonzero(largest > 0), np.flatnonzero(needed)
        reach = program.per_user(largest * per_level)
        return cls(program, equal, per_level, own, columns, program.pair_users[columns], largest[columns], rows, reach, reach > 0)

    def first_unit(self, weights: FloatArray) -> float:
        """Return a value between a lower and an upper bound of the first level.

        Lower bound: the smallest weighted slice of what a user reaches alone on the servers. Upper bound: the smallest reach of a user
        alone, and, by weak duality, the level of all users if every limit of a server had the same price.
        """
        limits, columns = self.program.limits, self.columns
        shared = np.repeat(limits.of_servers, np.diff(limits.matrix.indptr))
        part = (limits.matrix.data / np.repeat(np.where(limits.bounds > 0, limits.bounds, 1.0), np.diff(limits.matrix.indptr)))[shared]
        pairs = limits.matrix.indices[shared]
        largest_part = np.zeros(self.per_level.size)
        np.maximum.at(largest_part, pairs, part)
        all_parts = np.bincount(pairs, weights=part, minlength=self.per_level.size)[columns]
        largest_part, per_level = largest_part[columns], self.per_level[columns]
        most = np.divide(per_level, largest_part, out=self.largest * per_level, where=largest_part > 0)
        alone = np.bincount(self.users, weights=most, minlength=self.reach.size)[self.members]
        price = np.full(self.reach.size, np.inf)
        np.minimum.at(price, self.users, all_parts / per_level)
        paid = float(price[self.members].sum())
        least = float((self.reach[self.members] if self.equal else alone).min())
        bound = int(limits.of_servers.sum()) / paid if paid > 0 else least
        weights = weights[self.members]
        return float(np.sqrt((alone * weights / weights.sum()).min() * min(bound, least)))
