"""What the levels so far leave open: the face of the program on which all its further levels lie.

At the end of a level an interior point shows which pairs are used and which limits are full in *some* allocation that is best so far, and
which users are stopped (its ends are strictly complementary, in the middle of the optimal face). A pair that is not used there is used in
no allocation with these levels, a limit with a price is full in all of them, and a user with a price has its level exactly. So the next
level is a program of the used pairs alone, with equations for full limits and settled users, whose prices may have either sign.

Otherwise prices would have to keep the others away from pairs that the levels below exclude: the price of a user who is settled has to
outbid those above it, and theirs those above them, tenfold with each level, until nothing can be read from them. (The same in one price
vector: p + M p' with a price p' of a level below and a large M. ``fairopt.certificate.levels`` takes them one by one.)

What is decided leaves the program: users who are settled with one pair left. A path leaves out all who share nothing with those who rise.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.interior_point.path import Face, LevelPath, Reached
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.pairs import Pairs, lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Faces"]


class Faces:
    """How far a leximin is, on all users, limits and pairs of a scaled program; a path climbs to the next level on a part of them.

    Attributes
    ----------
    x : array (pairs,)
        So far; final for pairs that are not open.
    open : bool array (pairs,)
        Pairs that later levels may use.
    tight : bool array (users,)
        Settled users for whom their level is an equation. It is none for users with all their tasks whom nothing stops.
    full : bool array (slots, servers)
        Limits that stay full.
    """

    def __init__(self, scaled: ScaledProgram, arrays: Arrays) -> None:
        self.scaled, self.arrays = scaled, arrays
        self.x, self.open = np.zeros(scaled.n_pairs), np.ones(scaled.n_pairs, bool)
        self.tight = np.zeros(scaled.n_users, bool)
        self.full = np.zeros((scaled.n_slots, scaled.n_servers), bool)
        # The part that the present path is about.
        self._pair, self._user, self._server = np.arange(scaled.n_pairs), np.arange(scaled.n_users), np.arange(scaled.n_servers)

    def point(self, path: LevelPath, reached: Reached) -> FloatArray:
        """Return x where a path ends, (pairs,)."""
        x = self.x.copy()
        x[self._pair] = path.pairs.numbers(reached.x)
        return x

    def settle(self, path: LevelPath, reached: Reached, proved: BoolArray, course: Course) -> None:
        """Settle those of a path's users who are proved to be stopped where it ends, and keep what that decides.

        ``course`` is that of all users afterwards.
        """
        pairs, numpy = path.pairs, path.pairs.arrays.numpy
        self.x = self.point(path, reached)
        sets = path.ended(reached).sets
        assert sets is not None
        unused = self._pair[pairs.numbers(sets.used) == 0]
        self.open[unused], self.x[unused] = False, 0.0
        self.tight[self._user] = path.tight | proved | (numpy(sets.stopped)[: pairs.n_users] & ~path.rising)
        full = np.zeros_like(self.full)
        full[:, self._server] = numpy(sets.full)
        self.full |= full
        # Users who have nothing and do not rise are on no path: what they would take of these limits is not to be had.
        others = self.open.copy()
        others[self._pair] = False
        self.open &= ~(others & ((self.scaled.A > 0) & full[:, self.scaled.server]).any(axis=0))
        # Nor does anything change for users whose level and one pair are all that is left to say.
        scaled, user = self.scaled, self.scaled.user
        one = self.tight & (np.bincount(user[self.open], minlength=scaled.n_users) == 1)
        known = self.open & one[user]
        self.x[known] = course.start[user[known]] / scaled.W[known]
        self.open &= ~known

    def near(self, course: Course) -> BoolArray:
        """Say which open pairs are of those who rise, and of all who have something and share something with them, (pairs,)."""
        scaled, user, server = self.scaled, self.scaled.user, self.scaled.server
        there = self.open & (course.rising | (course.start > 0))[user]
        left = np.flatnonzero(there)
        number = scaled.n_users + scaled.n_servers
        edges = sp.coo_array((np.ones(left.size), (user[left], scaled.n_users + server[left])), shape=(number, number))
        _, group = sp.csgraph.connected_components(edges, directed=False)
        return there & np.isin(group[user], group[: scaled.n_users][course.rising])

    def leave_out_some(self, course: Course) -> bool:
        """Is there somebody who rises, and has no pair left?"""
        return bool((np.bincount(self.scaled.user[self.open], minlength=self.scaled.n_users)[course.rising] == 0).any())

    def next(self, course: Course, t: float) -> tuple[Pairs, Face]:
        """Return the part that is left to those who rise on a course, at t now, and where a path on it may start."""
        scaled, near = self.scaled, self.near(course)
        self._pair = np.flatnonzero(near)
        self._user, self._server = np.unique(scaled.user[self._pair]), np.unique(scaled.server[self._pair])
        part = scaled.part(near)
        try:
            pairs = lay_out(part, self.arrays)
        except Unsupported:  # a table of another device would be nearly empty
            pairs = lay_out(part, NUMPY)
        taken = np.where(near, 0.0, self.x)
        used = np.array([np.bincount(scaled.server, weights=row * taken, minlength=scaled.n_servers) for row in scaled.A])
        needed = np.array([np.bincount(part.server, weights=row, minlength=part.n_servers) for row in part.A])
        idle = needed == 0  # limits that nobody here takes anything of
        bounds = np.where(idle, 1.0, 1 - used[:, self._server])
        full = self.full[:, self._server] & ~idle
        return pairs, Face(course.of(self._user), bounds, self.tight[self._user], full, self.x[self._pair], t)
