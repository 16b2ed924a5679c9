"""The pairs of users and servers of a scaled program as arrays, with the sums over pairs that an interior point needs.

Vectors of pairs are flat; limits are (slots, places), users (users,), in the units of `ScaledProgram`. Places are the servers and, after
them, as many as hold the rows across servers, C x (`fairopt.solvers.structure.across`). The rows of users, U x, are those of levels, W x,
and then those of limits on tasks, T x, as far as the program has them.

A vector of pairs is a table or a list (`fairopt.solvers.structure.layouts`): what depends on that is abstract here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.structure.across import Across
from fairopt.solvers.structure.arrays import Arrays
from fairopt.solvers.structure.boundary import length
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Pairs"]


class Pairs(ABC):
    """A layout.

    Attributes
    ----------
    scaled : ScaledProgram
    arrays : Arrays
        In which all that is named below lives.
    n_pairs : int
        Entries of a vector of pairs.
    n_products : int
        Products of a point that count: of eligible pairs, of limits, of rows of users.
    A, W, T : arrays (slots, pairs), (pairs,), (pairs,)
        T is empty where nobody is limited.
    bounds : array (slots, places), or 1
        Of the limits.
    across : Across or None
        The rows across servers, if there are any.
    """

    _position: IntArray | None = None  # of each pair of the scaled program in a vector of pairs, if not its own

    def __init__(self, scaled: ScaledProgram, arrays: Arrays, n_pairs: int) -> None:
        self.scaled, self.arrays, self.xp = scaled, arrays, arrays.xp
        self.n_pairs, self.n_users, self.n_servers, self.n_slots = n_pairs, scaled.n_users, scaled.n_servers, scaled.n_slots
        self.has_levels, self.n_levels, self.n_limited, self.n_rows = scaled.has_levels, scaled.n_levels, scaled.limited.size, scaled.n_rows
        self.n_places = scaled.n_places
        self.n_products = scaled.n_pairs + self.n_slots * self.n_places + self.n_rows
        self.across = Across.of(scaled, n_pairs, self._position) if scaled.across.shape[0] else None
        self.bounds: Any = 1.0
        self.system: Any = None  # of a Newton step, if not `fairopt.solvers.structure.newton.NewtonSystem`
        self.system_of_sets: Any = None  # the same on active sets, where values are 0
        self._tight: Any = None  # by entry of a point
        self.A, self.W = self.lay(scaled.A), self.lay(scaled.W)
        self.T = self.lay(scaled.T) if self.n_limited else arrays.floats([])
        place = np.full(self.n_users, self.n_limited)  # of each user among the limited ones; the others come last
        place[scaled.limited] = np.arange(self.n_limited)
        self._limited, self._place = arrays.integers(scaled.limited), arrays.integers(place)

    # What a layout is ----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def lay(self, values: FloatArray) -> Any:
        """Bring values (..., pairs) of the scaled program here, 0 where a pair is not eligible."""

    @abstractmethod
    def eligible(self, values: Any, elsewhere: float = 0.0) -> Any:
        """Return values of pairs, or of a point, with ``elsewhere`` for pairs that are not eligible."""

    @abstractmethod
    def view(self, values: Any) -> Any:
        """View values (slots, pairs) in a shape that goes with those of `at_servers`."""

    @abstractmethod
    def at_servers(self, values: Any) -> Any:
        """Return values (servers,) so that they meet the pairs of a row of a `view`."""

    @abstractmethod
    def spread(self, values: Any) -> Any:
        """Give every pair the value of its user."""

    @abstractmethod
    def dot_by_user(self, values: Any, others: Any) -> Any:
        """Sum the products of two values per pair over the pairs of each user, (users,)."""

    @abstractmethod
    def least_by_user(self, values: Any) -> Any:
        """Return the least value of each user's eligible pairs, (users,)."""

    @abstractmethod
    def most_by_server(self, values: Any) -> Any:
        """Return the largest value of each server's pairs, which are not negative, (servers,)."""

    @abstractmethod
    def use_of_servers(self, x: Any, slots: int | None = None) -> Any:
        """Return A x, (slots, servers), or the first so many slots of it."""

    @abstractmethod
    def cost_of_servers(self, p: Any) -> Any:
        """Return A'p, (pairs,), for p of (slots, servers)."""

    @abstractmethod
    def matrix(self, used: Any, rows: list[Any]) -> Any:
        """Return ``used`` (slots, pairs) times each of ``rows`` (pairs,), of levels, then of tasks, as (rows, slots * servers)."""

    @abstractmethod
    def numbers(self, x: Any) -> FloatArray:
        """Return values of the pairs of the scaled program: the way back from `lay`, for a vector."""

    # The same in all of them ---------------------------------------------------------------------------------------------------------

    def use(self, x: Any) -> Any:
        """Return the part of each limit that x uses, (slots, places)."""
        of_servers = self.use_of_servers(x)
        return of_servers if self.across is None else self.joined(of_servers, self.across.use(x, of_servers))

    def largest_use(self, x: Any) -> Any:
        """Return the largest part of each limit that one pair of x uses, (slots, places)."""
        of_servers = self.xp.stack([self.most_by_server(self.A[r, :] * x) for r in range(self.n_slots)])
        return of_servers if self.across is None else self.joined(of_servers, self.across.largest_use(x))

    def cost(self, p: Any) -> Any:
        """Return what each pair costs at 1, (pairs,), at prices of limits, (slots, places)."""
        if self.across is None:
            return self.cost_of_servers(p)
        of_servers, of_across = self.split(p)
        return self.cost_of_servers(of_servers + self.across.price_of_servers(of_across)) + self.across.cost(of_across)

    def split(self, limits: Any) -> tuple[Any, Any]:
        """Split values of limits, (slots, places): of servers, (slots, servers), and of rows across servers, (rows across,)."""
        return limits[:, : self.n_servers], self.xp.reshape(limits[:, self.n_servers :], (-1,))

    def joined(self, of_servers: Any, of_across: Any) -> Any:
        """Put the values of limits together: the way back from `split`."""
        return self.xp.concat([of_servers, self.xp.reshape(of_across, (self.n_slots, -1))], axis=1)

    def set_equalities(self, bounds: FloatArray, full: BoolArray, tight: BoolArray) -> None:
        """Set the limits' bounds, which of them (slots, places) stay full, and which rows of users (rows,) stay as they are.

        These are equations from now on: a point has s = 0 or v = 0 there, and a price p or m of either sign.
        """
        self.bounds = self.arrays.floats(bounds)
        self._tight = self.arrays.booleans(np.concatenate([np.zeros(self.n_pairs, bool), full.ravel(), tight]))
        self.n_products = self.scaled.n_pairs + int((~full).sum() + (~tight).sum())

    @property
    def holds(self) -> bool:
        """Are some limits or rows of users equations?"""
        return self._tight is not None

    def mask_equalities(self, values: Any, elsewhere: Any = 0.0) -> Any:
        """Return values of a point, with ``elsewhere`` for equations."""
        return values if self._tight is None else self.xp.where(self._tight, elsewhere, values)

    def tasks(self, x: Any) -> FloatArray:
        """Return tasks of all pairs of the program."""
        return self.scaled.tasks(self.numbers(x))

    def priced(self, p: Any, y: Any) -> Any:
        """Return A'p + T'y, (pairs,), for prices of limits and of limits on tasks."""
        return self.cost(p) + self.T * self.spread(self.scatter(y)) if self.n_limited else self.cost(p)

    def level(self, x: Any) -> Any:
        """Return W x, (users,)."""
        return self.dot_by_user(self.W, x)

    def rows(self, x: Any) -> Any:
        """Return U x, (rows,)."""
        if not self.n_limited:
            return self.level(x) if self.has_levels else self.arrays.floats([])
        tasks = self.of_limited(self.dot_by_user(self.T, x))
        return self.xp.concat([self.level(x), tasks]) if self.has_levels else tasks

    def along_levels(self, m: Any) -> Any:
        """Return W'm, (pairs,)."""
        return self.W * self.spread(m)

    def second_rows(self, x: Any) -> Any:
        """Return T x of the users with a second row."""
        return self.of_limited(self.dot_by_user(self.T, x)) if self.n_limited else self.arrays.floats([])

    def along_rows(self, q: Any) -> Any:
        """Return U'q, (pairs,)."""
        if not self.n_limited:
            return self.W * self.spread(q) if self.has_levels else 0.0
        tasks = self.T * self.spread(self.scatter(q[self.n_levels :]))
        return self.W * self.spread(q[: self.n_levels]) + tasks if self.has_levels else tasks

    def cheapest(self, p: Any, y: Any) -> Any:
        """Return the cheapest price of one unit of each user's level, min over its pairs of (A'p + T'y) / W, (users,)."""
        return self.least_by_user(self.priced(p, y) / self.eligible(self.W, 1.0))

    def fullest(self, x: Any) -> Any:
        """Return the part of the fullest limit of its server that is used, (pairs,)."""
        of_servers, of_across = self.split(self.use(x))
        part = self.at_servers(self.xp.max(of_servers, axis=0))
        fullest = self.xp.reshape(self.xp.zeros_like(self.view(self.xp.reshape(self.W, (1, -1)))) + part, (-1,))
        return fullest if self.across is None else np.maximum(fullest, self.across.largest_of_pairs(of_across))

    def room(self) -> Any:
        """Return how much of each pair its limits have room for, (pairs,): 1 where no limit is held."""
        if self._tight is None:
            return self.xp.ones_like(self.W)
        view, needs = self.view(self.A), []
        of_servers, of_across = self.split(self.bounds)
        for r in range(self.n_slots):
            needs.append(self.xp.reshape(view[r, ...] / self.at_servers(of_servers[r, :]), (-1,)))
        if self.across is not None:
            needs.append(self.across.largest_need(of_across))
        return 1 / self.xp.clip(self.xp.max(self.xp.stack(needs), axis=0), 1.0, None)

    def dearest(self, worth: Any) -> Any:
        """Return prices, (slots, places), at which every pair costs as much as it is worth at least, with its dearest limit alone."""
        most = self.xp.max(self.A, axis=0)
        if self.across is not None:
            most = np.maximum(most, self.across.largest_need(np.ones(self.across.n_rows)))
        price = worth / self.eligible(most, 1.0)
        of_servers = self.xp.stack([self.most_by_server(price)] * self.n_slots)
        if self.across is None:
            return of_servers
        of_across = self.across.largest_of_rows(price)
        return self.joined(of_servers, np.where(of_across > 0, of_across, of_servers.mean()))

    def scatter(self, of_limited: Any, elsewhere: float = 0.0) -> Any:
        """Give a value to every user from those of the users with a second row."""
        return self.xp.take(self.xp.concat([of_limited, self.arrays.floats([elsewhere])]), self._place)

    def of_limited(self, values: Any) -> Any:
        """Return the values of the users with a second row."""
        return self.xp.take(values, self._limited, axis=0)

    def parts(self, values: Any) -> tuple[Any, Any, Any]:
        """Split the values of a point: of pairs, of limits (slots, places), of the rows of users."""
        end = self.n_pairs + self.n_slots * self.n_places
        limits = self.xp.reshape(values[self.n_pairs : end], (self.n_slots, self.n_places))
        return values[: self.n_pairs], limits, values[end:]

    def rows_of(self, values: Any) -> tuple[Any, Any]:
        """Split the values of the rows of users: of levels, and of second rows."""
        return values[: self.n_levels], values[self.n_levels :]

    def point(self, of_pairs: Any, of_limits: Any, of_rows: Any) -> Any:
        """Put the values of a point together."""
        return self.xp.concat([of_pairs, self.xp.reshape(of_limits, (-1,)), of_rows])

    def even_slices(self) -> Any:
        """Return half of every limit, divided evenly among those who can use the server, or less where a limit on tasks is near."""
        server = self.scaled.server
        x = self.eligible(self.lay((0.5 / np.bincount(server))[server]), 1.0)
        if self.across is not None:
            x = x / np.maximum(1.0, self.across.largest_of_pairs(2 * (self.across.matrix @ x)))
        if not self.n_limited:
            return x
        tasks = self.rows(x)[self.n_levels :]
        return x / self.spread(self.scatter(self.xp.clip(2 * tasks, 1.0, None), 1.0))

    def length(self, values: Any, change: Any) -> float:
        """Return how far one can go, 1 at most, before a value of a point becomes 0."""
        return length(self.xp, self.mask_equalities(values, 1.0), self.mask_equalities(change))

    def mean(self, products: Any) -> float:
        """Return the mean of the products of a point."""
        return float(self.xp.sum(self.mask_equalities(self.eligible(products)))) / self.n_products
