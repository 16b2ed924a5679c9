"""The parts of the prices of a level: which of them are a solver's noise, and what is only rounding in its own part.

Users who run on several servers link the limits that they take, and pay the same for a task on each of these servers. The prices of linked
limits are a part. So they are of one order, but for the sizes of their servers.

*Noise.* A part with less than 1e-7 of all spending may be a solver's noise. It is left out as a whole: without the price of one server
alone, a user's other servers would be dear.

*Rounding.* What dear pairs cost beyond their worth may be the rounding of what is spent. Compared with what is spent in all, a shortfall
would look like rounding as soon as an unrelated limit has a large price; so it is compared with what is spent in its own part.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program import Limits
from fairopt.program.components import components

__all__ = ["EPSILON", "PriceParts"]

EPSILON = 2.2e-16  # smallest relative rounding of a sum
_HARDLY = 1e-7  # fraction of all spending that may be noise
_LINK = 1e-6  # fraction of a limit, at least, with which a user links it to others, where rounding is judged


class PriceParts:
    """The parts of prices at an answer x, (pairs,), of n_users users."""

    def __init__(self, limits: Limits, pair_users: IntArray, x: FloatArray, n_users: int) -> None:
        self.limits, self.pair_users, self.x, self.n_users = limits, pair_users, x, n_users

    def without_noise(self, prices: FloatArray) -> FloatArray:
        """Return prices, (limits,) or of several levels (limits, levels), without those of parts with hardly any spending.

        The same array where there are none.
        """
        levels = prices if prices.ndim == 2 else prices[:, None]
        spent = np.abs(levels) * self.limits.bounds[:, None]
        noise = _HARDLY * spent.sum(axis=0)
        noisy = np.flatnonzero(((levels != 0) & (spent <= noise)).any(axis=0))
        if not noisy.size:
            return prices
        part = self._parts_of_levels(levels[:, noisy])
        of_part = np.bincount(part.ravel(), weights=spent[:, noisy].ravel())[part]
        levels = levels.copy()
        levels[:, noisy] = np.where(of_part > noise[noisy], levels[:, noisy], 0.0)
        return levels.reshape(prices.shape)

    def _parts_of_levels(self, prices: FloatArray) -> IntArray:
        """Return the part of each limit at each level, (limits, levels): parts of all levels have numbers of their own."""
        users, rows, taken = self._taken
        limits, number = prices.shape
        entry, level = np.nonzero((prices[rows] != 0) & (taken > 0)[:, None])
        part = components(rows[entry] * number + level, (limits + users[entry]) * number + level, (limits + self.n_users) * number)
        return part[: limits * number].reshape(limits, number)

    def beyond_rounding(self, prices: FloatArray, in_dear: FloatArray) -> float:
        """Return what dear pairs cost beyond their worth, ``in_dear`` (pairs,), summed over the parts where it is more than rounding."""
        if not in_dear.any():
            return 0.0
        part, of_user = self._of(prices, _LINK)
        spent = np.bincount(part, weights=np.abs(prices) * self.limits.bounds)  # the part of a user who links has a limit
        by_user = np.bincount(self.pair_users, weights=in_dear, minlength=self.n_users)
        linked = of_user >= 0
        by_part = np.bincount(of_user[linked], weights=by_user[linked], minlength=spent.size)
        return float(by_part[by_part > EPSILON * spent].sum() + by_user[~linked].sum())

    @cached_property
    def _taken(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Who takes of which limit, and which fraction of it."""
        matrix = self.limits.matrix
        entries = np.flatnonzero((self.x > 0)[matrix.indices])
        pairs, rows = matrix.indices[entries], np.searchsorted(matrix.indptr, entries, side="right") - 1
        bounds = np.maximum(self.limits.bounds[rows], np.finfo(float).tiny)
        return self.pair_users[pairs], rows, matrix.data[entries] * self.x[pairs] / bounds

    def _of(self, prices: FloatArray, link: float) -> tuple[IntArray, IntArray]:
        """Return the part of each limit and of each user; -1: the user takes no more than the fraction ``link`` of any priced limit."""
        users, rows, taken = self._taken
        linked = (prices[rows] != 0) & (taken > link)
        users = prices.size + users[linked]
        part = components(rows[linked], users, prices.size + self.n_users)
        of_node = np.full(part.size, -1)
        of_node[users] = part[users]
        return part[: prices.size], of_node[prices.size :]
