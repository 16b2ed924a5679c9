"""The path of `fairopt.solvers.interior_point.alpha_fair`: its points, and the units of its products."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.interior_point.alpha_fair_end import End
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.sample_reduced import Start
from fairopt.solvers.interior_point.settings import ALPHA_FAIR, STEPS
from fairopt.solvers.interior_point.steps import Demand, Point, advance, part_of_the_way

__all__ = ["Path"]


class Path:
    """A path: what stays the same in all of its steps, and the units of its products, which follow the money of the users.

    Attributes
    ----------
    worths : Worths
        In a unit of money in which all users together start with 1.
    furthest : float
        Distance of demands from utilities before the last step, in logarithms of prices.
    settled : bool
        Has this distance been small? From then on demands follow prices in each step.
    uneven : float
        The largest product, in parts of their mean.
    near : list of Point
        Points on the way to the end, in order.
    to_the_poorest : bool
        Are the units of limits, at alpha > 1, as small as the money of users who could use them, but do not?
    money_of_limits : array (slots, places)
        Of the users of each limit: the harmonic mean, as a price is not small unless it is small for the user with the least money.
    """

    def __init__(self, worths: Worths, start: Start | None = None, *, to_the_poorest: bool = True) -> None:
        self.worths, self.pairs, self.to_the_poorest = worths, worths.pairs, to_the_poorest
        pairs, xp = self.pairs, self.pairs.xp
        self._even = pairs.even_slices() if start is None else pairs.lay(start.x[pairs.scaled.column] / pairs.scaled.scale)
        if worths.log_cap is not None:
            cap = xp.exp(worths.log_cap)
            self._even = self._even * pairs.spread(xp.clip(cap / pairs.rows(self._even) / 2, None, 1.0))
        log_money = pairs.arrays.numpy(worths.log_phi + (1 - worths.alpha) * xp.log(pairs.rows(self._even)))
        if start is None:
            middle = float(np.median(log_money))
            log_money = np.clip(log_money, middle - ALPHA_FAIR.spread_of_money, middle + ALPHA_FAIR.spread_of_money)
        unit = float(np.logaddexp.reduce(log_money))
        worths.count_in(unit)
        self._first_money = pairs.arrays.floats(np.exp(log_money - unit))
        self._first_prices = pairs.arrays.floats(self._prices(start))
        self._ones = pairs.arrays.floats(np.ones(pairs.n_rows))
        self._unit: Any = None
        self.money_of_limits: Any = None
        self.furthest, self.settled, self.uneven = np.inf, False, np.inf
        self.near: list[Point] = []

    def _prices(self, start: Start | None) -> FloatArray:
        """Return the first prices, (slots, places), at which all limits together cost more than all money."""
        pairs, scaled = self.pairs, self.pairs.scaled
        prices = np.ones((pairs.n_slots, pairs.n_places))
        if start is not None:
            prices[:] = 0.0
            prices[scaled.row_slot, scaled.row_place] = start.prices[scaled.row]
        return np.asarray(ALPHA_FAIR.dear_at_start * prices / prices.sum())

    def start(self) -> Point:
        """Return the first point: half of every limit divided evenly, and one price of all limits, unless the start has others."""
        pairs, x, p = self.pairs, self._even, self._first_prices
        v = pairs.rows(x)
        m = self._first_money / v
        cost = pairs.cost(p)
        z = pairs.eligible(pairs.xp.maximum(cost - pairs.along_rows(m), ALPHA_FAIR.least_cost * cost), 1.0)
        return Point(pairs.point(x, 1 - pairs.use(x), v), pairs.point(z, p, m), 0.0)

    def present(self, point: Point, error: float) -> End:
        """Return the point as it is, as an end with this error."""
        return End(error, self.pairs.parts(point.primal)[0], self.pairs.parts(point.dual)[1])

    def advanced(self, point: Point, gap: float, least_gap: float | None = None) -> Point:
        """Take a step to a gap of at least ``least_gap``; the default is where rounding begins."""
        xp, pairs, worths = self.pairs.xp, self.pairs, self.worths
        _, _, v = pairs.parts(point.primal)
        _, _, m = pairs.parts(point.dual)
        off, elasticity = worths.off(v, m)
        of_one = elasticity if worths.log_total is not None else min(1.0, 1 / worths.alpha)  # how much a factor e of prices changes demands
        self.furthest = float(xp.max(xp.abs(off / of_one)))
        self.settled |= self.furthest < ALPHA_FAIR.far
        if not self.settled:
            if worths.log_total is None:  # the unit of money is still free
                moved = elasticity > 0.5 / worths.alpha  # the demand of a stopped user does not depend on the unit
                middle = float(xp.max(xp.where(moved, off, -np.inf)) + xp.min(xp.where(moved, off, np.inf))) / 2 * worths.alpha
                if np.isfinite(middle):
                    worths.count_in(middle)
                    off, _ = worths.off(v, m)
            short = xp.clip(off / of_one, None, ALPHA_FAIR.far)
            off = of_one * xp.where(short < 0, xp.expm1(short), short)
        money = worths.mean_money(v, v * m) * pairs.n_users
        if least_gap is None:
            least_gap = ALPHA_FAIR.middle if not self.settled else STEPS.end_of_demand if pairs.across is None else STEPS.end_across
        least = least_gap * money / (pairs.n_products - pairs.n_rows)
        stopped = None if worths.log_cap is None else elasticity < 0.5 / worths.alpha
        demand = Demand(elasticity, off, self._unit, least, stopped)
        return advance(pairs, point, self._ones, None, xp.zeros_like(v), 0.0, part_of_the_way(gap), money, demand)

    def measured(self, point: Point) -> float:
        """Return the sum of the products x z and s p, each relative to the money of its users; set the units of the products."""
        pairs, xp, capped = self.pairs, self.pairs.xp, self.worths.log_cap is not None
        x, s, v = pairs.parts(point.primal)
        z, p, m = pairs.parts(point.dual)
        money = v * m
        mean = self.worths.mean_money(v, money)
        own, self.money_of_limits = self._money(x, v, m, money, mean)
        unit = pairs.point(pairs.spread(own), self.money_of_limits, xp.ones_like(v))
        if capped and self.settled and self._unit is not None:  # a stopped user may pay much less after a step: products follow slowly
            unit = xp.maximum(unit, ALPHA_FAIR.slowly * self._unit)
        counted = pairs.eligible(pairs.point(*pairs.parts(unit)[:2], xp.zeros_like(v)))
        self._unit = unit / (float(xp.sum(counted)) / (pairs.n_products - pairs.n_rows))
        products = pairs.eligible(pairs.point(x * z, s * p, xp.zeros_like(v)) / self._unit)
        gap = float(xp.sum(products)) / (mean * pairs.n_users)
        self.worths.width = min(self.worths.width, gap)
        self.uneven = float(xp.max(products)) * (pairs.n_products - pairs.n_rows) / float(xp.sum(products))
        return gap

    def measured_anew(self, point: Point) -> float:
        """Do the same at an earlier point, to which the path goes back: its units do not follow those of the last one."""
        self._unit = None
        return self.measured(point)

    @property
    def difference(self) -> str:
        """What sets the path apart from the one that is followed first."""
        return "in the units of the users of a limit alone"

    @property
    def distance(self) -> float:
        """How far the path is from demands that are utilities, at the alpha of its goal."""
        return self.furthest

    def missed(self, point: Point) -> float:
        """Return the largest distance of a demand from the utility of its user, in logarithms."""
        off, _ = self.worths.off(self.pairs.parts(point.primal)[2], self.pairs.parts(point.dual)[2])
        return float(self.pairs.xp.max(self.pairs.xp.abs(off)))

    def _money(self, x: Any, v: Any, m: Any, money: Any, mean: float) -> tuple[Any, Any]:
        """Return the money of users that their products are relative to, (users,), and that of limits, (slots, places).

        At alpha > 1, the user with the least money may be one who could use a limit, but does not. The price of the limit is not small
        unless it is small for this user, too: so the money of a limit is at most what each user would pay for all of it.

        What a stopped user pays may be nothing: in its limits it counts with a part of the mean. Its own products are relative to a part of
        what these limits would cost it then. Larger ones would hold its x above what its limit on tasks allows, at any price.
        """
        pairs, xp, log_cap = self.pairs, self.pairs.xp, self.worths.log_cap
        own = in_limits = xp.maximum(money, ALPHA_FAIR.poorest * mean)
        if log_cap is not None:
            stopped, least = self.worths.off(v, m)[1] < 0.5 / self.worths.alpha, ALPHA_FAIR.least_of_limit * mean
            in_limits = xp.where(stopped, xp.maximum(own, least), own)
        use, parts = pairs.use(x), pairs.use(x / pairs.spread(in_limits))
        of_limits = xp.where(parts > 0, use / xp.where(parts > 0, parts, 1.0), mean)
        if self.to_the_poorest and self.worths.alpha > 1 and self.worths.log_total is None:
            wanted = pairs.along_rows(in_limits / v)
            per_money = pairs.largest_use(pairs.eligible(1 / xp.where(wanted > 0, wanted, 1.0)))
            of_limits = xp.where(per_money > 0, xp.minimum(of_limits, 1 / xp.where(per_money > 0, per_money, 1.0)), of_limits)
        if log_cap is not None:
            of_limits = xp.clip(of_limits, None, mean)
            costs = xp.clip(xp.exp(log_cap), None, 1.0) * pairs.cheapest(of_limits, pairs.arrays.floats([]))
            own = xp.where(stopped, xp.maximum(own, ALPHA_FAIR.part_of_costs * xp.clip(costs, None, least)), own)
        return own, of_limits
