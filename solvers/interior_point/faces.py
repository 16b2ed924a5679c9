"""What the levels so far leave open: the face of the program on which all its further levels lie.

At the end of a level an interior point shows which pairs are used and which limits are full in *some* allocation that is best so far, and
which users are stopped (its ends are strictly complementary, in the middle of the optimal face). A pair that is not used there is used in
no allocation with these levels, a limit with a price is full in all of them, and a user with a price has its level exactly. So the next
level is a program of the used pairs alone, with equations for full limits and settled users, whose prices may have either sign.

Otherwise prices would have to keep the others away from pairs that the levels below exclude: the price of a user who is settled has to
outbid those above it, and theirs those above them, tenfold with each level, until nothing can be read from them. (The same in one price
vector: p + M p' with a price p' of a level below and a large M. ``fairopt.certificate.levels`` takes them one by one.)

What is decided leaves the program: users who are settled with one pair left, and all who share nothing with anybody who rises.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.interior_point.path import Face, LevelPath, Reached
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
        Pairs that may still change.
    rising, settled_at, tight : arrays (users,)
        Who still rises; at which level the others are settled, in parts of their reach; and for whom that is an equation. It is none for
        users with all their tasks whom nothing stops.
    full : bool array (slots, servers)
        Limits that stay full.
    t : float
        The last level.
    """

    def __init__(self, scaled: ScaledProgram, arrays: Arrays) -> None:
        self.scaled, self.arrays = scaled, arrays
        self.x, self.open = np.zeros(scaled.n_pairs), np.ones(scaled.n_pairs, bool)
        self.rising, self.tight = np.ones(scaled.n_users, bool), np.zeros(scaled.n_users, bool)
        self.settled_at = np.zeros(scaled.n_users)
        self.full = np.zeros((scaled.n_slots, scaled.n_servers), bool)
        self.t = 0.0
        # The part that the present path is about.
        self._pair, self._user, self._server = np.arange(scaled.n_pairs), np.arange(scaled.n_users), np.arange(scaled.n_servers)

    def point(self, path: LevelPath, reached: Reached) -> FloatArray:
        """Return x where a path ends, (pairs,)."""
        x = self.x.copy()
        x[self._pair] = path.pairs.numbers(reached.x)
        return x

    def settle(self, path: LevelPath, reached: Reached, proved: BoolArray) -> None:
        """Settle those of a path's users who are proved to be stopped where it ends, and keep what that decides."""
        pairs, numpy = path.pairs, path.pairs.arrays.numpy
        self.x = self.point(path, reached)
        self.rising[self._user] = path.rising & ~proved
        self.settled_at[self._user] = np.where(proved, reached.level * path.per_t, path.settled_at)
        sets = path.ended(reached).sets
        assert sets is not None
        unused = self._pair[pairs.numbers(sets.used) == 0]
        self.open[unused], self.x[unused] = False, 0.0
        self.tight[self._user] = path.tight | proved | (numpy(sets.stopped)[: pairs.n_users] & ~path.rising)
        self.full[:, self._server] |= numpy(sets.full)
        self._decide()
        self.t = float(reached.level)

    def _decide(self) -> None:
        """Close the pairs of users whose level and one pair are all that is left to say, and of those who share nothing with the rising."""
        scaled, user, server = self.scaled, self.scaled.user, self.scaled.server
        one = self.tight & (np.bincount(user[self.open], minlength=scaled.n_users) == 1)
        known = self.open & one[user]
        self.x[known] = self.settled_at[user[known]] / scaled.W[known]
        self.open &= ~known
        left = np.flatnonzero(self.open)
        number = scaled.n_users + scaled.n_servers
        edges = sp.coo_array((np.ones(left.size), (user[left], scaled.n_users + server[left])), shape=(number, number))
        _, group = connected_components(edges, directed=False)
        self.open &= np.isin(group[user], group[: scaled.n_users][self.rising])

    @property
    def leaves_out_some(self) -> bool:
        """Is there somebody who rises, and has no pair left?"""
        return bool((np.bincount(self.scaled.user[self.open], minlength=self.scaled.n_users)[self.rising] == 0).any())

    def next(self) -> tuple[Pairs, Face]:
        """Return the part that is left to those who rise, and where a path on it may start."""
        scaled = self.scaled
        self._pair = np.flatnonzero(self.open)
        self._user, self._server = np.unique(scaled.user[self._pair]), np.unique(scaled.server[self._pair])
        part = scaled.part(self.open)
        try:
            pairs = lay_out(part, self.arrays)
        except Unsupported:  # a table of another device would be nearly empty
            pairs = lay_out(part, NUMPY)
        taken = np.where(self.open, 0.0, self.x)
        used = np.array([np.bincount(scaled.server, weights=row * taken, minlength=scaled.n_servers) for row in scaled.A])
        needed = np.array([np.bincount(part.server, weights=row, minlength=part.n_servers) for row in part.A])
        idle = needed == 0  # limits that nobody here takes anything of
        bounds = np.where(idle, 1.0, 1 - used[:, self._server])
        full = self.full[:, self._server] & ~idle
        user = self._user
        return pairs, Face(self.rising[user], self.settled_at[user], bounds, self.tight[user], full, self.x[self._pair], self.t)
