"""Responses of users to given prices of the limits that they share.

User n wants the level L and may use at most P of a limit of its own. At prices p a unit of level costs C[i] = (A'p)[n,i] phi[n] / u[n,i]
on pair i and takes A[i] of its own limit. The response of the user is the cheapest way to its level:

    e(L) = minimise sum_i C[i] l[i]   subject to   sum_i l[i] = L,   sum_i A[i] l[i] <= P,   l >= 0
         = maximise q L - y P         subject to   q <= C[i] + y A[i],   y >= 0.

Vertices of this linear program are single pairs and mixtures of two, along the lower convex hull of the points (A[i], C[i]): start with the
cheapest pair, and while it takes too much of the limit, move to the pair that saves a unit of the limit at the lowest price y. All users
move at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import SAME

__all__ = ["Response", "Users"]


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """Levels l of the pairs, (pairs,), the cheapest prices q of a unit of level and y of the own limits, (users,)."""

    level: FloatArray
    q: FloatArray
    y: FloatArray


class Users:
    """Users with pairs and at most one limit each of their own.

    Parameters
    ----------
    user : int array (pairs,)
        Sorted, every number from 0 on.
    own : array (pairs,)
        What a unit of level takes of the user's own limit.
    bound : array (users,)
        That limit, inf without one.
    """

    def __init__(self, user: IntArray, own: FloatArray, bound: FloatArray) -> None:
        self.user, self.own, self.bound = user, own, bound
        self.first = np.flatnonzero(np.diff(user, prepend=-1))

    def respond(self, cost: FloatArray, wanted: FloatArray) -> Response:
        """Return what is cheapest at these costs of a unit of level, (pairs,), for these levels, (users,)."""
        n = self.bound.size
        level, q, y = np.zeros(self.user.size), np.zeros(n), np.zeros(n)
        here = self._least(cost, self.own, np.arange(self.user.size), self.user, self.first)
        q[:] = cost[here]
        level[here] = wanted
        users = np.flatnonzero(wanted * self.own[here] > self.bound * (1 + SAME))
        while users.size:
            moving = np.zeros(n, bool)
            moving[users] = True
            pairs = np.flatnonzero(moving[self.user])
            of = np.cumsum(moving)[self.user[pairs]] - 1
            at = here[users]
            saved = self.own[at][of] - self.own[pairs]
            with np.errstate(divide="ignore", invalid="ignore"):
                price = np.where(saved > SAME * self.own[at][of], (cost[pairs] - cost[at][of]) / saved, np.inf)
            first = np.flatnonzero(np.diff(of, prepend=-1))
            there = self._least(price, self.own[pairs], pairs, of, first)
            best = np.minimum.reduceat(price, first)
            can = np.isfinite(best)  # the others want more than they can have, by rounding
            users, at, there, best = users[can], at[can], there[can], best[can]
            y[users], q[users] = best, cost[there] + best * self.own[there]
            need, limit = wanted[users], self.bound[users]
            enough = need * self.own[there] <= limit * (1 + SAME)
            part = np.clip((need * self.own[at] - limit) / (self.own[at] - self.own[there]), 0.0, need)
            part = np.where(enough, part, need)
            level[at], level[there] = need - part, part
            here[users] = there
            users = users[~enough]
        return Response(level, q, y)

    @staticmethod
    def _least(value: FloatArray, then: FloatArray, pairs: IntArray, of: IntArray, first: IntArray) -> IntArray:
        """Return for each user the pair of the least value, and of those the one of the least second value."""
        least: BoolArray = value <= np.minimum.reduceat(value, first)[of]
        second = np.where(least, then, np.inf)
        least &= second <= np.minimum.reduceat(second, first)[of]
        return np.asarray(pairs[np.minimum.reduceat(np.where(least, np.arange(of.size), of.size), first)])
