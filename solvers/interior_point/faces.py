"""The optimal face of the levels so far, on which all further levels lie.

An interior point ends in the middle of the optimal face of a level, at a strictly complementary solution. It shows which pairs are used and
which limits are full in *some* optimal allocation, and which users are stopped. A pair that is not used there is used in no allocation with
these levels, a limit with a price is full in all of them, and a user with a price has its level exactly. So the program of the next level
has the used pairs alone, with equations for full limits and settled users, whose prices may have either sign.

Without this restriction the prices of a level would also have to exclude the pairs that lower levels rule out. The prices would then grow
by a large factor with each level, until rounding hides the smaller ones. (In one price vector: p + M p' with a price p' of a lower level
and a large M. The certificate uses such sums only where charges prove too little.)

A settled user with one pair left leaves the program, since its tasks are determined. A path leaves out all users who share no server with
a rising user, directly or through others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.interior_point.path import Face, LevelCertificate, LevelPath
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Faces"]


class Faces:
    """The progress of a leximin on all users, limits and pairs of a scaled program; a path climbs to the next level on a part of them.

    Attributes
    ----------
    x : array (pairs,)
        Tasks so far, in scaled units; final for pairs that are not open.
    open : bool array (pairs,)
        Pairs that later levels may use.
    tight : bool array (users,)
        Settled users whose level is an equation. It is not for users who run all their tasks and are not stopped by a price.
    full : bool array (slots, places)
        Limits that stay full.
    pair, user, place : int arrays
        The part that the present path is about.
    """

    def __init__(self, scaled: ScaledProgram, arrays: Arrays) -> None:
        self.scaled, self.arrays = scaled, arrays
        self.x, self.open = np.zeros(scaled.n_pairs), np.ones(scaled.n_pairs, bool)
        self.tight = np.zeros(scaled.n_users, bool)
        self.full = np.zeros((scaled.n_slots, scaled.n_places), bool)
        self.pair, self.user, self.place = np.arange(scaled.n_pairs), np.arange(scaled.n_users), np.arange(scaled.n_places)

    def point(self, path: LevelPath, reached: LevelCertificate) -> FloatArray:
        """Return x where a path ends, (pairs,)."""
        x = self.x.copy()
        x[self.pair] = path.pairs.numbers(reached.x)
        return x

    def settle(self, path: LevelPath, reached: LevelCertificate, proved: BoolArray, course: Course) -> None:
        """Settle the users of a path who are proved to be stopped at its end, and restrict the face accordingly.

        ``course`` is the course of all users afterwards.
        """
        pairs, numpy = path.pairs, path.pairs.arrays.numpy
        self.x = self.point(path, reached)
        sets = path.ended(reached).sets
        assert sets is not None
        unused = self.pair[pairs.numbers(sets.used) == 0]
        self.open[unused], self.x[unused] = False, 0.0
        self.tight[self.user] = path.tight | proved | (numpy(sets.stopped)[: pairs.n_users] & ~path.rising)
        full = np.zeros_like(self.full)
        full[:, self.place] = numpy(sets.full)
        self.full |= full
        # Users who have nothing and do not rise are on no path: close their pairs at limits that are full.
        others = self.open.copy()
        others[self.pair] = False
        server, n = self.scaled.server, self.scaled.n_servers
        near = np.flatnonzero(others & np.asarray(full[:, :n].any(axis=0))[server])
        shut = near[np.asarray(((self.scaled.A[:, near] > 0) & full[:, server[near]]).any(axis=0))]
        self.open[shut], self.x[shut] = False, 0.0
        if self.scaled.across.shape[0]:
            shut = others & (self.scaled.across.T @ full[:, n:].ravel().astype(float) > 0)
            self.open[shut], self.x[shut] = False, 0.0
        # A user with an exact level and one open pair is determined.
        scaled, user = self.scaled, self.scaled.user
        one = self.tight & (np.bincount(user[self.open], minlength=scaled.n_users) == 1)
        known = self.open & one[user]
        self.x[known] = course.start[user[known]] / scaled.W[known]
        self.open &= ~known

    def near(self, course: Course, among: BoolArray | None = None) -> BoolArray:
        """Return which open pairs belong to rising users, or to users who share servers with them, also through others, (pairs,).

        With ``among``, (users,), other users are left out.
        """
        scaled, user, server = self.scaled, self.scaled.user, self.scaled.server
        counts = course.rising | (course.start > 0)
        there = self.open & (counts if among is None else counts & among)[user]
        rising = course.rising if among is None else course.rising & among
        left = np.flatnonzero(there)
        if rising[user[left]].all():
            return np.asarray(there)
        across = scaled.across.tocoo()
        along = there[across.col]
        users = np.append(user[left], user[across.col[along]]).astype(np.int64)
        limits = np.append(server[left], scaled.n_servers + across.row[along]).astype(np.int64)
        number = scaled.n_users + scaled.n_servers + across.shape[0]
        edges = sp.coo_array((np.ones(users.size), (users, scaled.n_users + limits)), shape=(number, number))
        _, group = sp.csgraph.connected_components(edges, directed=False)
        rises = np.zeros(group.size, bool)
        rises[group[: scaled.n_users][rising]] = True
        there[left[~rises[group[user[left]]]]] = False
        return np.asarray(there)

    def _taken(self, servers: IntArray) -> FloatArray:
        """Return what pairs that are not open take of the limits, (slots, places); of those of servers only at these, 0 elsewhere.

        Open pairs of users who are on no path are not decided yet, or are at other servers.
        """
        scaled = self.scaled
        if scaled.across.shape[0]:
            return scaled.use(np.where(self.open, 0.0, self.x))
        here = np.zeros(scaled.n_servers, bool)
        here[servers] = True
        pair = np.flatnonzero(here[scaled.server] & ~self.open)
        server, x = scaled.server[pair], self.x[pair]
        return np.array([np.bincount(server, weights=row[pair] * x, minlength=scaled.n_servers) for row in scaled.A])

    def leave_out_some(self, course: Course) -> bool:
        """Is there a rising user without an open pair?"""
        return bool((np.bincount(self.scaled.user[self.open], minlength=self.scaled.n_users)[course.rising] == 0).any())

    def next(self, course: Course, t: float, near: BoolArray | None = None) -> tuple[Pairs, Face]:
        """Return the part of the program that concerns rising users, on a course at time t, and the face on which a path may start.

        ``near``, (pairs,), is the part where it is not `near` of the course.
        """
        scaled = self.scaled
        near = self.near(course) if near is None else near
        if near.all():
            self.pair, self.user, self.place = np.arange(scaled.n_pairs), np.arange(scaled.n_users), np.arange(scaled.n_places)
            full = self.full & (scaled.use(np.ones(scaled.n_pairs)) > 0) if self.full.any() else self.full
            return lay_out(scaled, self.arrays), Face(course, np.ones(full.shape), self.tight, full, self.x, t)
        self.pair = np.flatnonzero(near)
        self.user, servers = np.unique(scaled.user[self.pair]), np.unique(scaled.server[self.pair])
        self.place = np.append(servers, np.arange(scaled.n_servers, scaled.n_places))
        part = scaled.part(self.pair)
        try:
            pairs = lay_out(part, self.arrays)
        except Unsupported:  # a table of another device would be nearly empty
            pairs = lay_out(part, NUMPY)
        idle = part.use(np.ones(part.n_pairs)) == 0  # limits that no pair of this part uses
        bounds = np.where(idle, 1.0, 1 - self._taken(servers)[:, self.place])
        full = self.full[:, self.place] & ~idle
        return pairs, Face(course.of(self.user), bounds, self.tight[self.user], full, self.x[self.pair], t)
