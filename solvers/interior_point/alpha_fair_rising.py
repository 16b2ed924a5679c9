"""A path of `fairopt.solvers.interior_point.alpha_fair` on which alpha rises, for a large alpha, or beta, for that of a trade-off.

At a large alpha the money of users spans many orders of magnitude, and nothing tells in advance who has how much: that is the answer. Each
step of the path changes prices by a factor e at most, and starts that are a hundred such factors away from the answer may never come near.
Here the path begins at a small alpha, where all users have about the same money. At every point whose demands are nearly the utilities,
alpha rises by as much as keeps them near: the marginal utility phi v^-alpha of a user changes by a factor v^(-d alpha), so d alpha follows
from the largest and the smallest v.

In a trade-off the marginal utility is phi v^-beta + kappa, and kappa follows from all v. Users whose worth is mostly that of the total move
little as beta rises.
"""

from __future__ import annotations

import numpy as np

from fairopt.program import AlphaFair, Tradeoff
from fairopt.solvers.interior_point.alpha_fair_path import Path
from fairopt.solvers.interior_point.alpha_fair_worths import Worths, log_odds_of
from fairopt.solvers.interior_point.settings import ALPHA_FAIR, RISING
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.structure.pairs import Pairs

__all__ = ["RisingPath"]


class RisingPath(Path):
    """A path that begins at a small alpha, and reaches that of the goal.

    Attributes
    ----------
    goal : AlphaFair or Tradeoff
    """

    def __init__(self, pairs: Pairs, goal: AlphaFair | Tradeoff, *, to_the_poorest: bool = True) -> None:
        first = Worths(pairs, min(RISING.first_alpha, goal.power), goal.weights, log_odds=log_odds_of(goal))
        super().__init__(first, to_the_poorest=to_the_poorest)
        self.goal = goal

    @property
    def difference(self) -> str:
        """What sets the path apart from the one that is followed first."""
        return "with an alpha that rises" if self.to_the_poorest else f"with an alpha that rises, {super().difference}"

    @property
    def distance(self) -> float:
        """How far alpha is from that of the goal; then, demands from utilities."""
        left = self.goal.power - self.worths.alpha
        return self.furthest if not left else RISING.distance_of_alpha + left

    def measured(self, point: Point) -> float:
        """Raise alpha; return the sum of the relative products."""
        if self.worths.alpha < self.goal.power:
            self._raise(point)
        return super().measured(point)

    def advanced(self, point: Point, gap: float, least_gap: float | None = None) -> Point:
        """Take a step; while alpha rises, the products fall no further."""
        if self.worths.alpha == self.goal.power:
            return super().advanced(point, gap, least_gap)
        after = super().advanced(point, gap, ALPHA_FAIR.middle)
        self.settled = False
        return after

    def _raise(self, point: Point) -> None:
        """Raise alpha by as much as keeps demands near utilities."""
        xp, worths = self.pairs.xp, self.worths
        v, m = self._demanded(point)
        off, elasticity = worths.off(v, m)
        of_one, most = (elasticity, RISING.rise_of_tradeoff) if worths.has_total else (1 / worths.alpha, RISING.rise)
        if max(float(xp.max(xp.abs(off / of_one))), abs(self._off_total(v))) > most / 2:
            return
        moved = elasticity > 0.5 / worths.alpha  # the others are stopped by limits on tasks, at any alpha
        with_alpha = worths.with_alpha(v)
        distance = float(xp.max(xp.where(moved, with_alpha, -np.inf)) - xp.min(xp.where(moved, with_alpha, np.inf)))
        rise = most / max(distance / 2, RISING.least_distance)
        self.worths = worths.at_alpha(min(self.goal.power, worths.alpha + rise), self.goal.weights, v, m, moved)
        self.kappa_of_point = self.worths.log_kappa - point.t if worths.has_total else 0.0
