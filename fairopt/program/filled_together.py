"""What guaranteed nodes would hold alone, read off one filling of all of them on servers that are large enough.

On such servers nodes are disturbed by limits that they share at most, not by the tasks of others. So the shares of an undisturbed node
(`fairopt.program.undisturbed`) are those of its filling alone there: they are what it asks for. Where a point in the cluster as it is,
empty, gives its users these shares, its filling alone there is the same, and it asks for the most that it could hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.instance import FloatArray, safe_ratio
from fairopt.instance.tolerances import SAME
from fairopt.program.guarantees import ample
from fairopt.program.program import Program
from fairopt.program.promises import Promise
from fairopt.program.tree_filling import TreeFilling

__all__ = ["FilledTogether", "even_slices", "on_large_servers"]


def on_large_servers(program: Program, goal: TreeFilling) -> Program:
    """Return the program of filling all guarantees, and no surplus, on servers that are large enough."""
    guarantees = replace(goal, parts=tuple(part for part in goal.parts if part.guarantees))
    large: Program = ample(program, guarantees)
    return replace(large, goal=guarantees)


def even_slices(program: Program, room: FloatArray) -> FloatArray:
    """Return x for a share of 1, divided over the servers of each user by the ``room`` of its pairs, (pairs,)."""
    return safe_ratio(room, program.per_user(room * program.utilities)[program.pair_users])


@dataclass(frozen=True, eq=False)
class FilledTogether:
    """A filling of all guarantees on large servers.

    Attributes
    ----------
    program : Program
        With the servers as they are.
    points : sequence of arrays (pairs,)
        The end of each part.
    undisturbed : collection of int
        The nodes that it fills as it would fill them alone.
    """

    program: Program
    points: Sequence[FloatArray]
    undisturbed: Collection[int]

    @cached_property
    def _even(self) -> FloatArray:
        return even_slices(self.program, self.program.largest())

    def point(self, promise: Promise, large: bool) -> FloatArray | None:
        """Return a point with the shares of the filling of the owner of a promise alone, (pairs,), on large servers or as they are.

        None: it is not known. In the cluster as it is, users are put on all their servers, in proportion to what they could run there.
        """
        if promise.owner not in self.undisturbed:
            return None
        program, users = self.program, self.program.pair_users
        point = np.where(promise.users[users], self.points[promise.part], 0.0)
        if large:
            return point
        shares = program.per_user(point * program.utilities)
        if (shares[program.per_user(self._even) == 0] > 0).any():  # beside what queues keep, they have no room there
            return None
        point = self._even * shares[users]
        return point if (program.limits.used(point) <= program.limits.bounds * (1 + SAME)).all() else None
